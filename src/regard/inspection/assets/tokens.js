import { strength } from "./palette.js";
import { Heatmap } from "./heatmap.js";

/** The source and output lines of one example: pointing at a token shows what it goes with on the other side. */
export class TokenLines {
  /** @param {HTMLElement} section */
  constructor(section) {
    this.source = tokensOf(section, "source");
    this.output = tokensOf(section, "output");
    /** @type {Heatmap | null} */
    this.alignment = null;
    this.listen(this.source, (column) => ({ row: null, column }));
    this.listen(this.output, (row) => ({ row, column: null }));
  }

  /**
   * @param {HTMLElement[]} tokens
   * @param {(index: number) => import("./heatmap.js").Point} pointAt
   */
  listen(tokens, pointAt) {
    const nothing = { row: null, column: null };
    tokens.forEach((token, index) => {
      token.tabIndex = index ? -1 : 0; // one stop of the tab key for a whole line; arrows go along it
      token.addEventListener("pointerenter", () => this.point(pointAt(index)));
      token.addEventListener("pointerleave", (event) => event.pointerType !== "touch" && this.point(nothing));
      token.addEventListener("focus", () => this.point(pointAt(index)));
      token.addEventListener("blur", () => this.point(nothing));
      token.addEventListener("keydown", (event) => {
        const right = getComputedStyle(token).direction === "rtl" ? -1 : 1;
        const step = { ArrowLeft: -right, ArrowRight: right, Home: -index, End: tokens.length - 1 - index }[event.key];
        const next = step === undefined ? undefined : tokens[index + step];
        if (!next) return;
        event.preventDefault();
        token.tabIndex = -1;
        next.tabIndex = 0;
        next.focus();
      });
    });
  }

  /** @param {import("./heatmap.js").Point} point */
  point(point) {
    this.alignment?.show(point);
    this.show(point);
  }

  /** Mark what ``point`` names and shade what it goes with. @param {import("./heatmap.js").Point} point */
  show({ row, column }) {
    const weights = this.alignment?.view.weights;
    const both = row !== null && column !== null;
    shade(this.source, row !== null && weights ? weights.row(0, row) : null);
    shade(this.output, column !== null && !both && weights ? weights.column(0, column) : null);
    this.source.forEach((token, index) => token.classList.toggle("on", index === column));
    this.output.forEach((token, index) => token.classList.toggle("on", index === row));
  }
}

/** @param {HTMLElement} section @param {string} side */
function tokensOf(section, side) {
  return /** @type {HTMLElement[]} */ ([...section.querySelectorAll(`[data-side="${side}"] .token`)]);
}

/** @param {HTMLElement[]} tokens @param {number[] | null} weights */
function shade(tokens, weights) {
  tokens.forEach((token, index) => {
    token.classList.toggle("shaded", weights !== null);
    token.style.setProperty("--w", weights ? strength(weights[index]).toFixed(3) : "0");
  });
}
