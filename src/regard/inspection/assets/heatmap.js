import { decimal, element, isolated, visible } from "./dom.js";
import { legend, paint } from "./palette.js";
import { Weights } from "./weights.js";

const LARGEST_CELL = 34;
const SMALLEST_CELL = 13;

/**
 * @typedef {object} View
 * @property {string} title
 * @property {string[]} rows
 * @property {string[]} columns
 * @property {Weights} weights
 * @property {number} head
 */

/** A cell, or a whole row or column where the other is null. @typedef {{row: number | null, column: number | null}} Point */

/** One attention matrix with its names; point at it with a mouse, a finger or the arrow keys. */
export class Heatmap {
  /**
   * @param {View} view
   * @param {(point: Point) => void} [onPoint] told whenever the reader points somewhere
   */
  constructor(view, onPoint = () => {}) {
    this.view = view;
    this.onPoint = onPoint;
    /** @type {Point} */
    this.at = { row: null, column: null };
    this.columnNames = view.columns.map(label);
    this.rowNames = view.rows.map(label);
    this.rowBand = element("div", { class: "band across", hidden: "" });
    this.columnBand = element("div", { class: "band down", hidden: "" });
    const canvas = /** @type {HTMLCanvasElement} */ (element("canvas", { "aria-hidden": "true" }));
    paint(canvas, view.weights, view.head);
    this.cells = element("div", { class: "cells" }, canvas, element("div", { class: "mesh" }), this.rowBand, this.columnBand);
    this.frame = element("div", {
      class: "frame", tabindex: "0", role: "group",
      "aria-label": `${view.title}: ${view.rows.length} rows by ${view.columns.length} columns. Arrow keys move from cell to cell.`,
    },
      element("div", { class: "corner" }),
      element("div", { class: "names top" }, ...this.columnNames),
      element("div", { class: "names side" }, ...this.rowNames),
      this.cells);
    this.readout = element("p", { class: "readout", "aria-live": "polite" });
    const under = element("div", { class: "under" }, this.readout, legend());
    this.body = element("div", { class: "heatmap" }, this.frame, under);
    this.element = element("div", { class: "holder" }, this.body);
    this.body.style.setProperty("--columns", String(view.columns.length));
    this.body.style.setProperty("--rows", String(view.rows.length));
    this.listen();
    this.show(this.at);
  }

  listen() {
    this.cells.addEventListener("pointermove", (event) => this.point(this.under(event)));
    this.cells.addEventListener("pointerdown", (event) => this.point(this.under(event)));
    this.cells.addEventListener("pointerleave", (event) => {
      if (event.pointerType !== "touch") this.point({ row: null, column: null }); // a lifted finger still points
    });
    this.columnNames.forEach((name, column) => name.addEventListener("pointerenter", () => this.point({ row: null, column })));
    this.rowNames.forEach((name, row) => name.addEventListener("pointerenter", () => this.point({ row, column: null })));
    this.frame.addEventListener("keydown", (event) => this.move(event));
    new ResizeObserver(() => requestAnimationFrame(() => this.resize())).observe(this.element);
  }

  /** As large as there is room for, never too small to point at. */
  resize() {
    const names = /** @type {HTMLElement} */ (this.frame.querySelector(".side")).offsetWidth;
    const room = this.element.clientWidth - names - 2;
    const cell = Math.floor(room / Math.max(1, this.view.columns.length));
    const size = Math.max(SMALLEST_CELL, Math.min(LARGEST_CELL, cell));
    this.body.style.setProperty("--cell", `${size}px`);
  }

  /** @param {PointerEvent} event @returns {Point} */
  under(event) {
    const box = this.cells.getBoundingClientRect();
    const row = Math.floor(((event.clientY - box.top) / box.height) * this.view.rows.length);
    const column = Math.floor(((event.clientX - box.left) / box.width) * this.view.columns.length);
    return { row: within(row, this.view.rows.length), column: within(column, this.view.columns.length) };
  }

  /** @param {KeyboardEvent} event */
  move(event) {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    const begun = this.at.row !== null && this.at.column !== null;
    const row = begun ? within((this.at.row ?? 0) + step[0], this.view.rows.length) : 0;
    const column = begun ? within((this.at.column ?? 0) + step[1], this.view.columns.length) : 0;
    this.point({ row, column });
    this.rowNames[row].scrollIntoView({ block: "nearest", inline: "nearest" });
    this.columnNames[column].scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  /** @param {Point} point */
  point(point) {
    if (point.row === this.at.row && point.column === this.at.column) return;
    this.show(point);
    this.onPoint(point);
  }

  /** Mark a place without telling anyone. @param {Point} point */
  show(point) {
    const { row, column } = point;
    mark(this.rowNames, this.at.row, row);
    mark(this.columnNames, this.at.column, column);
    this.at = point;
    this.rowBand.hidden = row === null;
    this.columnBand.hidden = column === null;
    this.body.style.setProperty("--row", String(row ?? 0));
    this.body.style.setProperty("--column", String(column ?? 0));
    this.readout.replaceChildren(...this.words(point));
  }

  /** @param {Point} point @returns {(Node | string)[]} */
  words({ row, column }) {
    const { rows, columns, weights, head } = this.view;
    if (row !== null && column !== null) {
      const weight = element("strong", {}, decimal(weights.at(head, row, column)));
      return [isolated(visible(rows[row])), " looks at ", isolated(visible(columns[column])), ": ", weight];
    }
    if (row !== null) return [isolated(visible(rows[row])), " looks most at ", ...most(weights.row(head, row), columns)];
    if (column !== null) return [isolated(visible(columns[column])), " is seen most by ", ...most(weights.column(head, column), rows)];
    return ["Point at a cell or a name."];
  }
}

/** @param {number[]} weights @param {string[]} names @returns {(Node | string)[]} */
function most(weights, names) {
  const order = weights.map((_, i) => i).sort((a, b) => weights[b] - weights[a]).slice(0, 3);
  return order.flatMap((i, place) => [place ? ", " : "", isolated(visible(names[i])), ` (${decimal(weights[i])})`]);
}

/** @param {string} piece */
function label(piece) {
  const shown = visible(piece);
  return element("span", { class: [...shown].length > 1 ? "name" : "name single" }, isolated(shown));
}

/** @param {number} value @param {number} count */
function within(value, count) {
  return Math.max(0, Math.min(count - 1, value));
}

/** @param {HTMLElement[]} names @param {number | null} before @param {number | null} after */
function mark(names, before, after) {
  if (before !== null) names[before].classList.remove("on");
  if (after !== null) names[after].classList.add("on");
}
