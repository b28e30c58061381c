import { button } from "./elements.js";

const HEAD_COLOURS = ["--h0", "--h1", "--h2", "--h3", "--h4", "--h5", "--h6", "--h7"];

/** @type {Set<() => void>} */
const repaints = new Set();
/** @type {Uint8ClampedArray[]} */
let tables = [];

/** The colour of a head. @param {number} head */
export function headColour(head) {
  return `var(${HEAD_COLOURS[head % HEAD_COLOURS.length]})`;
}

/** Small weights are many and would all be white: colour grows with the root of a weight. @param {number} weight */
export function strength(weight) {
  return Math.sqrt(Math.min(1, Math.max(0, weight)));
}

/** 256 colours, three bytes each: 0 for weights, 1 for numbers with a sign. @param {0 | 1} which */
export function colourTable(which) {
  if (!tables.length) {
    const style = getComputedStyle(document.documentElement);
    const read = (/** @type {string[]} */ names) => names.map((name) => hexColour(style.getPropertyValue(name).trim()));
    tables = [
      blended(read(["--scale-0", "--scale-1", "--scale-2", "--scale-3", "--scale-4"])),
      blended(read(["--minus-2", "--minus-1", "--zero", "--plus-1", "--plus-2"])),
    ];
  }
  return tables[which];
}

/** @param {number[][]} stops */
function blended(stops) {
  const table = new Uint8ClampedArray(256 * 3);
  for (let level = 0; level < 256; level++) {
    const at = (level / 255) * (stops.length - 1);
    const below = Math.min(stops.length - 2, Math.floor(at));
    for (let channel = 0; channel < 3; channel++) {
      table[level * 3 + channel] = stops[below][channel] + (stops[below + 1][channel] - stops[below][channel]) * (at - below);
    }
  }
  return table;
}

/** @param {string} hex */
function hexColour(hex) {
  return [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));
}

/** @param {0 | 1} which @param {number} level 0 to 1 */
export function colourAt(which, level) {
  const at = Math.round(Math.min(1, Math.max(0, level)) * 255) * 3;
  const table = colourTable(which);
  return `rgb(${table[at]},${table[at + 1]},${table[at + 2]})`;
}

/**
 * One pixel a value; the style sheet makes it large. Painted anew when the theme changes.
 * @param {HTMLCanvasElement} canvas @param {number} rows @param {number} columns
 * @param {(row: number, column: number) => number} level 0 to 1 @param {0 | 1} [which]
 */
export function paintPixels(canvas, rows, columns, level, which = 0) {
  canvas.width = Math.max(1, columns);
  canvas.height = Math.max(1, rows);
  const draw = () => {
    if (!canvas.isConnected && canvas.dataset.painted) return void repaints.delete(draw);
    canvas.dataset.painted = "1";
    const context = canvas.getContext("2d");
    if (!context) return;
    const table = colourTable(which);
    const image = context.createImageData(canvas.width, canvas.height);
    for (let row = 0, at = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++, at += 4) {
        const place = Math.round(Math.min(1, Math.max(0, level(row, column))) * 255) * 3;
        image.data[at] = table[place];
        image.data[at + 1] = table[place + 1];
        image.data[at + 2] = table[place + 2];
        image.data[at + 3] = 255;
      }
    }
    context.putImageData(image, 0, 0);
  };
  repaints.add(draw);
  draw();
}

function repaintAll() {
  tables = [];
  for (const draw of [...repaints]) draw();
}

/** A button that goes through: as the system, dark, light. */
export function themeButton() {
  const names = { "": "Theme: system", dark: "Theme: dark", light: "Theme: light" };
  const order = /** @type {("" | "dark" | "light")[]} */ (["", "dark", "light"]);
  let at = Math.max(0, order.indexOf(/** @type {any} */ (storedTheme())));
  const made = button(names[order[at]], () => {
    at = (at + 1) % order.length;
    apply();
  }, { class: "quiet" });
  const apply = () => {
    made.textContent = names[order[at]];
    document.documentElement.dataset.theme = order[at];
    try {
      localStorage.setItem("regard-theme", order[at]);
    } catch { /* a file may have no storage */ }
    repaintAll();
  };
  apply();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaintAll);
  return made;
}

function storedTheme() {
  try {
    return localStorage.getItem("regard-theme") ?? "";
  } catch {
    return "";
  }
}
