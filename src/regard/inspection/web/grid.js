import { fixed, h, pieceOf, s, scrolling, shown, within } from "./elements.js";
import { colourAt, paintPixels, strength } from "./colours.js";
import { light, onLight } from "./lit.js";
import { saver } from "./saving.js";
import { Matrix } from "./packed.js";

/**
 * @typedef {object} GridSpec
 * @property {string} title for people who listen, and for files
 * @property {string[]} rows @property {string[]} columns @property {Matrix} matrix
 * @property {string[]} [rowKeys] @property {string[]} [columnKeys]
 * @property {string} [verb] between a row's name and a column's
 * @property {boolean} [signs] numbers may be negative
 * @property {(row: number, column: number) => void} [onChoose]
 * @property {number} [largest] cell size
 */

/** A matrix with the names of its rows and columns; for mouse, finger, arrow keys and screen readers. */
export class Grid {
  /** @param {GridSpec} spec */
  constructor(spec) {
    this.spec = spec;
    this.at = { row: -1, column: -1 };
    const { matrix } = spec;
    this.largest = Math.max(1e-9, ...matrix.values.map(Math.abs));
    this.rowNames = spec.rows.map((name, i) => gridLabel(name, spec.rowKeys?.[i]));
    this.columnNames = spec.columns.map((name, i) => gridLabel(name, spec.columnKeys?.[i]));
    const canvas = /** @type {HTMLCanvasElement} */ (h("canvas", { "aria-hidden": "true" }));
    paintPixels(canvas, matrix.rows, matrix.columns, (row, column) => this.level(matrix.at(row, column)), spec.signs ? 1 : 0);
    this.rowBand = h("div", { class: "band across", hidden: true });
    this.columnBand = h("div", { class: "band down", hidden: true });
    this.cells = h("div", { class: "cells" }, canvas, h("div", { class: "mesh" }), this.rowBand, this.columnBand);
    this.frame = h("div", {
      class: "frame", tabindex: "0", role: "group",
      "aria-label": `${spec.title}: ${spec.rows.length} rows by ${spec.columns.length} columns. Arrow keys move, Enter chooses.`,
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.move(event),
    }, h("div", { class: "corner" }), h("div", { class: "names top" }, ...this.columnNames),
    h("div", { class: "names side" }, ...this.rowNames), this.cells);
    this.readout = h("p", { class: "readout", "aria-live": "polite" }, "Point at a cell, or walk with the arrow keys.");
    this.element = h("figure", { class: "grid" }, this.frame,
      h("figcaption", { class: "under" }, this.readout,
        saver({ name: spec.title, svg: () => this.drawing(), rows: () => this.table(), json: () => this.json() })),
      this.alternative());
    this.frame.style.setProperty("--columns", String(spec.columns.length));
    this.frame.style.setProperty("--rows", String(spec.rows.length));
    this.listen();
  }

  /** @param {number} value */
  level(value) {
    return this.spec.signs ? 0.5 + value / this.largest / 2 : strength(value);
  }

  listen() {
    const under = (/** @type {PointerEvent} */ event) => {
      const box = this.cells.getBoundingClientRect();
      const { rows, columns } = this.spec;
      const row = within(Math.floor(((event.clientY - box.top) / box.height) * rows.length), 0, rows.length - 1);
      const column = within(Math.floor(((event.clientX - box.left) / box.width) * columns.length), 0, columns.length - 1);
      this.point(row, column);
    };
    this.cells.addEventListener("pointermove", under);
    this.cells.addEventListener("pointerdown", under);
    this.cells.addEventListener("pointerleave", () => light(null));
    this.cells.addEventListener("click", () => this.spec.onChoose?.(this.at.row, this.at.column));
    onLight(this.element, (key) => {
      const row = key === null ? -1 : (this.spec.rowKeys ?? []).indexOf(key);
      const column = key === null ? -1 : (this.spec.columnKeys ?? []).indexOf(key);
      this.mark(row, column);
    });
    new ResizeObserver(() => requestAnimationFrame(() => this.resize())).observe(this.element);
  }

  /** As large as there is room for, never too small to point at. */
  resize() {
    const names = /** @type {HTMLElement} */ (this.frame.querySelector(".side")).offsetWidth;
    const room = this.element.clientWidth - names - 2;
    const cell = Math.floor(room / Math.max(1, this.spec.columns.length));
    this.frame.style.setProperty("--cell", `${within(cell, Math.min(14, this.spec.largest ?? 32), this.spec.largest ?? 32)}px`);
  }

  /** @param {KeyboardEvent} event */
  move(event) {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (event.key === "Enter") return this.spec.onChoose?.(Math.max(0, this.at.row), Math.max(0, this.at.column));
    if (!step) return;
    event.preventDefault();
    const row = within(Math.max(0, this.at.row) + (this.at.row < 0 ? 0 : step[0]), 0, this.spec.rows.length - 1);
    const column = within(Math.max(0, this.at.column) + (this.at.column < 0 ? 0 : step[1]), 0, this.spec.columns.length - 1);
    this.point(row, column);
    this.rowNames[row].scrollIntoView({ block: "nearest", inline: "nearest" });
    this.columnNames[column].scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  /** @param {number} row @param {number} column */
  point(row, column) {
    if (row === this.at.row && column === this.at.column) return;
    light(this.spec.rowKeys?.[row] ?? null);
    this.mark(row, column);
    const { rows, columns, matrix } = this.spec;
    this.readout.replaceChildren(pieceOf(rows[row]), ` ${this.spec.verb ?? "looks at"} `, pieceOf(columns[column]), " ",
      h("strong", {}, fixed(matrix.at(row, column), 3)));
  }

  /** @param {number} row @param {number} column */
  mark(row, column) {
    this.rowNames[this.at.row]?.classList.remove("on");
    this.columnNames[this.at.column]?.classList.remove("on");
    this.at = { row, column };
    this.rowNames[row]?.classList.add("on");
    this.columnNames[column]?.classList.add("on");
    this.rowBand.hidden = row < 0;
    this.columnBand.hidden = column < 0;
    this.frame.style.setProperty("--row", String(row));
    this.frame.style.setProperty("--column", String(column));
  }

  table() {
    const { rows, columns, matrix } = this.spec;
    return [["", ...columns], ...rows.map((name, row) => [name, ...columns.map((_, column) => +matrix.at(row, column).toFixed(5))])];
  }

  json() {
    const { title, rows, columns } = this.spec;
    return { title, rows, columns, values: this.table().slice(1).map((row) => row.slice(1)) };
  }

  /** The same as a table, made when somebody opens it. */
  alternative() {
    const made = h("details", { class: "as-table" }, h("summary", {}, "As a table"));
    made.addEventListener("toggle", () => {
      if (made.childElementCount > 1) return;
      const [head, ...body] = this.table();
      made.append(scrolling("Table", h("table", {},
        h("caption", {}, this.spec.title),
        h("thead", {}, h("tr", {}, h("td", {}), ...head.slice(1).map((name) => h("th", { scope: "col" }, shown(String(name)))))),
        h("tbody", {}, ...body.map(([name, ...values]) => h("tr", {}, h("th", { scope: "row" }, shown(String(name))),
          ...values.map((value) => h("td", {}, fixed(Number(value), 3)))))))));
    });
    return made;
  }

  /** For files. */
  drawing() {
    const { rows, columns, matrix } = this.spec;
    const size = 18;
    const longest = (/** @type {string[]} */ names) => Math.min(160, 12 + 7.5 * Math.max(1, ...names.map((name) => [...name].length)));
    const [left, top] = [longest(rows), longest(columns)];
    const cells = [];
    for (let row = 0; row < rows.length; row++) {
      for (let column = 0; column < columns.length; column++) {
        cells.push(s("rect", {
          x: left + column * size, y: top + row * size, width: size, height: size,
          fill: colourAt(this.spec.signs ? 1 : 0, this.level(matrix.at(row, column))),
        }));
      }
    }
    const ink = getComputedStyle(document.documentElement).getPropertyValue("--ink").trim();
    const text = { "font-family": "monospace", "font-size": 12, fill: ink };
    return s("svg", { viewBox: `0 0 ${left + columns.length * size + 8} ${top + rows.length * size + 8}` }, ...cells,
      ...rows.map((name, i) => s("text", { ...text, x: left - 6, y: top + i * size + 13, "text-anchor": "end" }, shown(name))),
      ...columns.map((name, i) => s("text", { ...text, transform: `translate(${left + i * size + 13} ${top - 6}) rotate(-90)` }, shown(name))));
  }
}

/** @param {string} piece @param {string} [key] */
function gridLabel(piece, key) {
  return h("span", { class: [...shown(piece)].length > 1 ? "name" : "name single", "data-token": key }, pieceOf(piece));
}
