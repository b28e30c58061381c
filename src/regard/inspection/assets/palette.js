import { element } from "./dom.js";
import { Weights } from "./weights.js";

/** One hue for all weights; the same colour means the same weight everywhere on the page. */
const STOPS = 5;
const LEVELS = 256;

/** @type {WeakMap<HTMLCanvasElement, () => void>} */
const painters = new WeakMap();
/** @type {Uint8ClampedArray | null} */
let colours = null;

/** Small weights are many and would all be white: colour grows with the root of a weight. @param {number} weight */
export function strength(weight) {
  return Math.sqrt(Math.min(1, Math.max(0, weight)));
}

/**
 * One pixel a weight; the style sheet makes it large.
 * @param {HTMLCanvasElement} canvas
 * @param {Weights} weights
 * @param {number} head
 */
export function paint(canvas, weights, head) {
  canvas.width = weights.columns;
  canvas.height = weights.rows;
  const draw = () => {
    const context = canvas.getContext("2d");
    if (!context) return;
    const table = (colours ??= readColours());
    const image = context.createImageData(weights.columns, weights.rows);
    for (let row = 0, at = 0; row < weights.rows; row++) {
      for (let column = 0; column < weights.columns; column++, at += 4) {
        const level = Math.round(strength(weights.at(head, row, column)) * (LEVELS - 1)) * 3;
        image.data[at] = table[level];
        image.data[at + 1] = table[level + 1];
        image.data[at + 2] = table[level + 2];
        image.data[at + 3] = 255;
      }
    }
    context.putImageData(image, 0, 0);
  };
  painters.set(canvas, draw);
  draw();
}

/** What the colours mean. */
export function legend() {
  const bar = element("span", { class: "legend-bar", "aria-hidden": "true" });
  const marks = [0, 0.06, 0.25, 0.56, 1].map((weight) => element("span", {}, String(weight)));
  return element("div", { class: "legend", role: "img", "aria-label": "Colour scale from weight 0, pale, to 1, strong" },
    bar, element("span", { class: "legend-marks", "aria-hidden": "true" }, ...marks));
}

/** The scale of the style sheet, light or dark, as a table of 256 colours. */
function readColours() {
  const style = getComputedStyle(document.documentElement);
  const stops = Array.from({ length: STOPS }, (_, i) => rgb(style.getPropertyValue(`--scale-${i}`).trim()));
  const table = new Uint8ClampedArray(LEVELS * 3);
  for (let level = 0; level < LEVELS; level++) {
    const place = (level / (LEVELS - 1)) * (STOPS - 1);
    const below = Math.min(STOPS - 2, Math.floor(place));
    for (let channel = 0; channel < 3; channel++) {
      const [from, to] = [stops[below][channel], stops[below + 1][channel]];
      table[level * 3 + channel] = from + (to - from) * (place - below);
    }
  }
  return table;
}

/** @param {string} hex */
function rgb(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  colours = null;
  for (const canvas of document.querySelectorAll("canvas")) painters.get(canvas)?.();
});
