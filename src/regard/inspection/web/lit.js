/**
 * Tokens that are lit everywhere at once. A key says which: `s3` is what was read at place 3, `t4` what was written at
 * place 4. Elements that stand for a token carry it as `data-token`; pictures listen.
 */

/** @type {Map<Element, (key: string | null) => void>} */
const listeners = new Map();
let now = /** @type {string | null} */ (null);

/** @param {string | null} key */
export function light(key) {
  if (key === now) return;
  now = key;
  for (const element of document.querySelectorAll("[data-token].lit")) element.classList.remove("lit");
  if (key) for (const element of document.querySelectorAll(`[data-token="${CSS.escape(key)}"]`)) element.classList.add("lit");
  for (const [element, listener] of [...listeners]) {
    if (element.isConnected) listener(key);
    else listeners.delete(element);
  }
}

/** Until `element` is gone from the page. @param {Element} element @param {(key: string | null) => void} listener */
export function onLight(element, listener) {
  listeners.set(element, listener);
}

document.addEventListener("pointerover", (event) => {
  const token = /** @type {Element} */ (event.target).closest?.("[data-token]");
  if (token) light(/** @type {HTMLElement} */ (token).dataset.token ?? null);
});
document.addEventListener("pointerout", (event) => {
  if (/** @type {Element} */ (event.target).closest?.("[data-token]")) light(null);
});
document.addEventListener("focusin", (event) => {
  const token = /** @type {Element} */ (event.target).closest?.("[data-token]");
  if (token) light(/** @type {HTMLElement} */ (token).dataset.token ?? null);
});

/**
 * Keys of the rows and columns of an attention. What looks in a decoder is the token before the one it predicts.
 * @param {{part: string, looks_at: string, rows: string[], columns: string[]}} seen
 * @param {boolean} reads whether the model reads something before it writes
 */
export function keysOf(seen, reads) {
  const read = (/** @type {string[]} */ names) => names.map((_, i) => `s${i}`);
  const wrote = (/** @type {string[]} */ names) => names.map((_, i) => `t${i}`);
  if (seen.part === "encoder" || (reads && seen.part !== "decoder")) return { rows: read(seen.rows), columns: read(seen.columns) };
  return {
    rows: wrote(seen.rows),
    columns: seen.looks_at === "memory" ? read(seen.columns) : seen.columns.map((_, i) => `t${i - 1}`),
  };
}
