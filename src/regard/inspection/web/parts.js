import { address } from "./hash.js";
import { fixed, h, pieceOf, percent, select } from "./elements.js";

/** @typedef {import("./source.js").Look} Look */
/** @typedef {import("./source.js").Attention} Attention */
/** @typedef {import("./source.js").Trace} Trace */
/** @typedef {{run: number, look: Look, question: import("./source.js").Question, about: import("./source.js").About}} Scene */

/** What the rows of a decoder are: the target and, if it came to that, its end. @param {Trace} trace */
export function predictionsOf(trace) {
  return trace.ended ? [...trace.target, "⟨end⟩"] : trace.target;
}

/** "Decoder 2 → source". @param {Attention} seen */
export function attentionName(seen) {
  const part = seen.part.charAt(0).toUpperCase() + seen.part.slice(1);
  return `${part} ${seen.layer + 1} ${seen.looks_at === "memory" ? "→ source" : "→ itself"}`;
}

/** Which attention the address names, or the one that says most about the output. @param {Trace} trace */
export function chosenAttention(trace) {
  const named = trace.attentions.find((seen) => seen.name === address.get("att"));
  if (named) return named;
  const looking = trace.attentions.filter((seen) => seen.looks_at === "memory");
  return looking[Math.max(0, looking.length - 2)] ?? trace.attentions[0];
}

/** @param {Trace} trace */
export function attentionSelect(trace) {
  const options = trace.attentions.map((seen) => /** @type {[string, string]} */ ([seen.name, attentionName(seen)]));
  return select("Attention", options, chosenAttention(trace)?.name ?? "", (value) => address.set({ att: value, heads: "", head: "" }));
}

/** Why there is nothing to see. @param {Scene} scene */
export function noAttention(scene) {
  return h("p", { class: "nothing" }, `${scene.about.name} does not attend to anything: what it knows of a text is in its states (or its counts) alone. `,
    "Search, Words, Probe and Run show what there is.");
}

/** The tokens of a text with how sure the model was of each. @param {Scene} scene */
export function tokenLines(scene) {
  const { trace } = scene.look;
  const lines = [];
  if (trace.source.length) lines.push(tokenLine("Read", trace.source, trace.source.map((_, i) => `s${i}`)));
  const wrote = predictionsOf(trace);
  if (wrote.length) {
    const name = !trace.source.length ? "Text" : scene.look.search ? "Wrote" : "Answer";
    lines.push(tokenLine(name, wrote, wrote.map((_, i) => `t${i}`), trace.log_probs, trace.top));
  }
  return h("div", { class: "lines" }, ...lines);
}

/**
 * @param {string} name @param {string[]} pieces @param {string[]} keys @param {number[]} [logProbs]
 * @param {[string, number][][]} [top]
 */
function tokenLine(name, pieces, keys, logProbs, top) {
  const pinned = address.get("token");
  const items = pieces.map((piece, i) => {
    const sure = logProbs?.[i];
    const others = (top?.[i] ?? []).map(([word, value]) => `${word} ${percent(value)}`).join("\n");
    const made = h("button", {
      type: "button", class: `token${keys[i] === pinned ? " pinned" : ""}${sure === undefined ? "" : " sure"}`, "data-token": keys[i],
      title: sure === undefined ? "" : `${percent(sure)}${others ? `\n\n${others}` : ""}`,
      "aria-pressed": keys[i] === pinned ? "true" : "false",
      "aria-label": sure === undefined ? piece : `${piece}, probability ${fixed(Math.exp(sure), 3)}`,
      onclick: () => address.set({ token: keys[i] === address.get("token") ? "" : keys[i] }),
    }, pieceOf(piece));
    if (sure !== undefined) made.style.setProperty("--p", String(Math.exp(sure)));
    return h("li", {}, made);
  });
  return h("div", { class: "line" }, h("h3", {}, name), h("ol", { class: "tokens", "aria-label": `${name}: tokens` }, ...items));
}

/** The place of the chosen token among `keys`, or `otherwise`. @param {string[]} keys @param {number} [otherwise] */
export function chosenRow(keys, otherwise = 0) {
  const at = keys.indexOf(address.get("token"));
  return at < 0 ? otherwise : at;
}
