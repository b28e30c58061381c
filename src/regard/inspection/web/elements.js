/** @typedef {Node | string | null | undefined | false} Child */
/** @typedef {Record<string, string | number | boolean | null | undefined | ((event: any) => void)>} Attributes */

const SVG = "http://www.w3.org/2000/svg";

/**
 * Make an element. Text is always set as text, so nothing that a person types or a model says can become markup.
 * A function under a name such as `onclick` listens.
 * @param {string} tag @param {Attributes} [attributes] @param {...Child} children
 * @returns {HTMLElement}
 */
export function h(tag, attributes = {}, ...children) {
  return /** @type {HTMLElement} */ (filled(document.createElement(tag), attributes, children));
}

/** @param {string} tag @param {Attributes} [attributes] @param {...Child} children @returns {SVGElement} */
export function s(tag, attributes = {}, ...children) {
  return /** @type {SVGElement} */ (filled(document.createElementNS(SVG, tag), attributes, children));
}

/** @param {Element} made @param {Attributes} attributes @param {Child[]} children */
function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, String(value));
  }
  made.append(...children.filter(/** @returns {c is Node | string} */ (c) => c !== null && c !== undefined && c !== false));
  return made;
}

/** A piece with something to see in place of white space. @param {string} piece */
export function shown(piece) {
  if (piece === "") return "∅";
  if (piece.trim() !== "") return piece;
  return piece.replace(/[\n\r\u2028\u2029]/g, "⏎").replace(/\t/g, "⇥").replace(/\s/g, "␣");
}

/** A piece as an element: its space mark paler than its letters. @param {string} piece */
export function pieceOf(piece) {
  const text = shown(piece);
  if (text.length > 1 && text.startsWith("▁")) return h("bdi", {}, h("span", { class: "space" }, "▁"), text.slice(1));
  return h("bdi", {}, text);
}

/** @param {number} value @param {number} [digits] */
export function fixed(value, digits = 2) {
  if (value === undefined || value === null || Number.isNaN(value)) return "–";
  return value.toFixed(digits).replace("-", "−");
}

/** @param {number} value */
export function signed(value) {
  const text = fixed(value, Math.abs(value) < 0.995 ? 3 : 2);
  return value > 0 ? `+${text}` : text;
}

/** @param {number} logProb */
export function percent(logProb) {
  const share = Math.exp(logProb) * 100;
  return share >= 99.95 ? "100 %" : share >= 9.95 ? `${share.toFixed(0)} %` : share >= 0.095 ? `${share.toFixed(1)} %` : "<0.1 %";
}

/** Short, for people: 0.0003 is 3e-4, 12000 is 12k. @param {number} value */
export function brief(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${+(value / 1e6).toPrecision(3)}M`;
  if (size >= 1e4) return `${+(value / 1e3).toPrecision(3)}k`;
  if (size > 0 && size < 1e-3) return value.toExponential(1).replaceAll("-", "−");
  return String(+value.toPrecision(3)).replace("-", "−");
}

/** @param {number} value @param {number} low @param {number} high */
export function within(value, low, high) {
  return Math.max(low, Math.min(high, value));
}

/** As much of a text as can be read at a glance. @param {string} text @param {number} [most] */
export function glimpse(text, most = 400) {
  return text.length > most ? `${text.slice(0, most)}…` : text || "∅";
}

/** A control with its name above it. @param {string} label @param {HTMLElement} control */
export function field(label, control) {
  control.setAttribute("aria-label", label);
  return h("label", { class: "field" }, h("span", { class: "field-name" }, label), control);
}

/**
 * @param {string} label @param {[string, string][]} options value and name
 * @param {string} chosen @param {(value: string) => void} onChange
 */
export function select(label, options, chosen, onChange) {
  const made = /** @type {HTMLSelectElement} */ (
    h("select", { onchange: (/** @type {Event} */ event) => onChange(/** @type {HTMLSelectElement} */ (event.target).value) },
      ...options.map(([value, name]) => h("option", { value, selected: value === chosen }, name))));
  made.value = chosen;
  return field(label, made);
}

/** @param {string} name @param {() => void} onClick @param {Attributes} [attributes] */
export function button(name, onClick, attributes = {}) {
  return h("button", { type: "button", onclick: onClick, ...attributes }, name);
}

/** What a view says where it has nothing to show. @param {...Child} words */
export function nothing(...words) {
  return h("p", { class: "nothing" }, ...words);
}

/** @param {string} text */
export function failure(text) {
  return h("p", { class: "failure", role: "alert" }, text);
}

/** Room for something wide, which the keyboard can move along too. @param {string} name @param {Child} child */
export function scrolling(name, child) {
  return h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": name }, child);
}

/** @param {string} heading @param {...Child} children */
export function section(heading, ...children) {
  return h("section", { class: "part" }, h("h3", {}, heading), ...children);
}
