import { fixed, h } from "./elements.js";
import { paintPixels } from "./colours.js";

/**
 * A vector as a row of colours, blue above zero and red below, white at zero; numbers when pointed at.
 * @param {ArrayLike<number>} values @param {number} largest that is as strong as colours get
 * @param {string} name for people who listen
 */
export function strip(values, largest, name) {
  const list = Array.from(values);
  const canvas = /** @type {HTMLCanvasElement} */ (h("canvas", { class: "strip", role: "img" }));
  const ends = list.length > 6 ? [...list.slice(0, 3).map((v) => fixed(v)), "…", fixed(list[list.length - 1])] : list.map((v) => fixed(v));
  canvas.setAttribute("aria-label", `${name}: ${list.length} numbers, ${ends.join(", ")}`);
  paintPixels(canvas, 1, list.length, (_, column) => 0.5 + list[column] / (largest || 1) / 2, 1);
  canvas.addEventListener("pointermove", (event) => {
    const at = Math.min(list.length - 1, Math.max(0, Math.floor((event.offsetX / canvas.clientWidth) * list.length)));
    canvas.title = `${name}[${at}] = ${fixed(list[at], 4)}`;
  });
  return canvas;
}

/** The largest absolute value. @param {ArrayLike<number>[]} vectors */
export function largestOf(vectors) {
  let largest = 0;
  for (const vector of vectors) for (let i = 0; i < vector.length; i++) largest = Math.max(largest, Math.abs(vector[i]));
  return largest || 1;
}
