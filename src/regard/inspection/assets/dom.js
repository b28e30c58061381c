/**
 * Make an element. Text is always set as text, so nothing that a model says can become markup.
 *
 * @param {string} tag
 * @param {Record<string, string>} [attributes]
 * @param {...(Node | string)} children
 * @returns {HTMLElement}
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/**
 * @param {string} text
 * @param {Record<string, string>} [attributes]
 */
export function isolated(text, attributes = {}) {
  return element("bdi", attributes, text);
}

/**
 * A piece with something to see in place of white space.
 * @param {string} piece
 */
export function visible(piece) {
  if (piece === "") return "∅";
  return piece.trim() === "" ? piece.replace(/[\n\r\u2028\u2029]/g, "⏎").replace(/\t/g, "⇥").replace(/\s/g, "␣") : piece;
}

/** @param {number} weight */
export function decimal(weight) {
  return weight.toFixed(weight < 0.0995 ? 3 : 2);
}
