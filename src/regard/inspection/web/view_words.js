import { address } from "./hash.js";
import { button, failure, field, fixed, h, nothing, pieceOf, s, scrolling, section, select, shown } from "./elements.js";
import { Grid } from "./grid.js";
import { Matrix, Numbers } from "./packed.js";
import { paintPixels } from "./colours.js";
import { saver } from "./saving.js";
import { askCuts, askPositions, askWords, live } from "./source.js";

/** @typedef {import("./parts.js").Scene} Scene */
/** @typedef {{sentences: string[][], places: {name: string, likeness: import("./packed.js").Packed, map: [number, number][]}[], vocabulary: Record<string, [string, number][]>}} Space */

/** Words in space, positions, and how words are cut. @param {Scene} scene */
export async function wordsView(scene) {
  const sub = address.get("sub", "neighbours");
  const names = /** @type {[string, string][]} */ ([["neighbours", "Words in context"], ["positions", "Positions"], ["cuts", "How words are cut"]]);
  const tabs = h("div", { class: "subtabs", role: "group", "aria-label": "Words" }, ...names.map(([key, name]) =>
    button(name, () => address.set({ sub: key === "neighbours" ? "" : key }), { class: `chip${key === sub ? " on" : ""}`, "aria-pressed": key === sub ? "true" : "false" })));
  const views = { neighbours: neighboursPart, positions: positionsPart, cuts: cutsPart };
  try {
    return [tabs, ...(await (views[/** @type {"cuts"} */ (sub)] ?? neighboursPart)(scene))];
  } catch (error) {
    return [tabs, ...(sub === "cuts" ? [cutForm(scene)] : sub === "neighbours" ? [sentenceForm(sentencesOf(scene))] : []), failure(/** @type {Error} */ (error).message)];
  }
}

/** @param {Scene} scene */
function sentencesOf(scene) {
  const said = address.get("sentences");
  return said ? said.split("\n") : [scene.look.text, ...(scene.about.examples ?? []).filter((text) => text !== scene.look.text).slice(0, 3)];
}

/** @param {string[]} sentences */
function sentenceForm(sentences) {
  const area = /** @type {HTMLTextAreaElement} */ (h("textarea", { rows: Math.min(8, sentences.length + 1), spellcheck: "false", disabled: !live }));
  area.value = sentences.join("\n");
  const file = h("input", {
    type: "file", accept: ".txt,text/plain", disabled: !live, onchange: async (/** @type {Event} */ event) => {
      const [chosen] = /** @type {HTMLInputElement} */ (event.target).files ?? [];
      if (chosen) area.value = (await chosen.text()).split("\n").slice(0, 200).join("\n");
    },
  });
  return h("form", { class: "ask-more", onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); address.set({ sentences: area.value, word: "" }, true); } },
    field("Sentences, one a line", area), h("div", { class: "controls" }, h("button", { type: "submit", class: "primary", disabled: !live }, "Compare"), field("or from a file", file)));
}

/** @param {Scene} scene */
async function neighboursPart(scene) {
  const sentences = sentencesOf(scene);
  const space = /** @type {Space} */ (await askWords(scene.run, sentences));
  const tokens = space.sentences.flatMap((pieces, sentence) => pieces.map((piece, at) => ({ piece, sentence, at })));
  const first = tokens.findIndex(({ piece }) => /^▁?\p{L}+$/u.test(piece));
  const chosen = Math.min(Math.max(0, address.number("word", Math.max(0, first))), tokens.length - 1);
  const names = space.places.map((place) => place.name);
  const layers = names.filter((name) => name !== "fixed");
  const layer = names.includes(address.get("place")) ? address.get("place") : layers[layers.length - 1] ?? names[0];
  const like = (/** @type {string} */ name) => {
    const found = space.places.find((place) => place.name === name);
    return found ? new Numbers(found.likeness).row(0, chosen) : null;
  };
  const lines = space.sentences.map((pieces, sentence) => h("ol", { class: "tokens", "aria-label": `Sentence ${sentence + 1}` }, ...pieces.map((piece, at) => {
    const number = tokens.findIndex((one) => one.sentence === sentence && one.at === at);
    return h("li", {}, button("", () => address.set({ word: number }), { class: `token${number === chosen ? " pinned" : ""}`, "aria-pressed": number === chosen ? "true" : "false", "aria-label": piece }));
  })));
  lines.forEach((line, sentence) => [...line.querySelectorAll("button")].forEach((made, at) => made.append(pieceOf(space.sentences[sentence][at]))));
  const near = (/** @type {string} */ name) => {
    const values = like(name);
    if (!values) return nothing("–");
    const order = tokens.map((_, i) => i).filter((i) => i !== chosen).sort((a, b) => values[b] - values[a]).slice(0, 8);
    return h("table", { class: "ranked near" }, h("tbody", {}, ...order.map((i) => h("tr", {}, h("td", { class: "number" }, fixed(values[i])), h("td", { class: "in-context" }, ...inContext(space, tokens[i]))))));
  };
  const word = tokens[chosen];
  const vocabulary = space.vocabulary[word.piece];
  const fixedPart = [names.includes("fixed") ? near("fixed") : nothing("This model's words have no vectors of their own."),
    vocabulary && h("h4", {}, "in the whole vocabulary"),
    vocabulary && h("table", { class: "ranked near" }, h("tbody", {}, ...vocabulary.map(([piece, value]) => h("tr", {}, h("td", { class: "number" }, fixed(value)), h("td", {}, pieceOf(piece))))))];
  const rows = () => [["sentence", "place", "token", ...names], ...tokens.map(({ piece, sentence, at }, i) => [sentence, at, piece, ...names.map((name) => like(name)?.[i] ?? "")])];
  return [
    live && sentenceForm(sentences),
    h("div", { class: "sentences" }, ...lines),
    h("div", { class: "controls" }, select("Context as of", layers.map((name) => [name, name]), layer, (value) => address.set({ place: value })), saver({ name: `likeness to ${word.piece}`, rows, json: () => ({ word, likeness: Object.fromEntries(names.map((name) => [name, Array.from(like(name) ?? [])])) }) })),
    sameWord(space, tokens, chosen),
    h("div", { class: "two" },
      section(`Nearest to “${shown(word.piece)}” in context (${layer})`, near(layer)),
      section("Nearest by its fixed vector", ...fixedPart)),
    scatter(space, tokens, chosen, layer),
  ];
}

/** @param {Space} space @param {{piece: string, sentence: number, at: number}} token */
function inContext(space, { sentence, at }) {
  const pieces = space.sentences[sentence];
  const [from, to] = [Math.max(0, at - 4), Math.min(pieces.length, at + 5)];
  return pieces.slice(from, to).map((piece, i) => (from + i === at ? h("strong", {}, pieceOf(piece)) : h("span", { class: "beside" }, pieceOf(piece))));
}

/** The same word elsewhere: how alike are its vectors, layer by layer. @param {Space} space @param {{piece: string, sentence: number, at: number}[]} tokens @param {number} chosen */
function sameWord(space, tokens, chosen) {
  const bare = (/** @type {string} */ piece) => piece.replace(/^▁/, "").toLowerCase();
  const others = tokens.map((token, i) => ({ token, i })).filter(({ token, i }) => i !== chosen && bare(token.piece) === bare(tokens[chosen].piece)).slice(0, 6);
  if (!others.length) return section("The same word elsewhere", nothing(`“${shown(tokens[chosen].piece)}” occurs once. Write another sentence with it to see whether context changes it.`));
  const rows = others.map(({ token, i }) => h("tr", {}, h("th", { scope: "row", class: "in-context" }, ...inContext(space, token)),
    ...space.places.map((place) => h("td", { class: "number" }, fixed(new Numbers(place.likeness).at(0, chosen, i), 3)))));
  return section("The same word elsewhere", h("p", { class: "note" }, "Cosine with the chosen one. A fixed vector is always 1; what is less was made by context."),
    scrolling("Table", h("table", { class: "ranked" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "in"), ...space.places.map((place) => h("th", { scope: "col" }, place.name)))), h("tbody", {}, ...rows))));
}

/** @param {Space} space @param {{piece: string, sentence: number, at: number}[]} tokens @param {number} chosen @param {string} layer */
function scatter(space, tokens, chosen, layer) {
  const [width, height, edge] = [640, 360, 40];
  const map = space.places.find((place) => place.name === layer)?.map ?? [];
  const dots = map.map(([x, y], i) => s("text", {
    x: width / 2 + x * (width / 2 - edge), y: height / 2 - y * (height / 2 - edge) , "text-anchor": "middle", tabindex: "0", role: "button", "aria-label": tokens[i].piece,
    class: `dot-word${i === chosen ? " on" : tokens[i].piece === tokens[chosen].piece ? " same" : ""}`, onclick: () => address.set({ word: i }),
    onkeydown: (/** @type {KeyboardEvent} */ event) => event.key === "Enter" && address.set({ word: i }),
  }, shown(tokens[i].piece)));
  const picture = s("svg", { viewBox: `0 0 ${width} ${height}`, class: "scatter", role: "group", "aria-label": `Words at ${layer}, drawn flat` }, ...dots);
  return section(`All words, ${layer}, drawn flat`, h("p", { class: "note" }, "The two directions in which these vectors differ most; near in the picture is mostly near in truth, not always."), picture,
    saver({ name: `map of ${layer}`, svg: () => picture, rows: () => [["token", "x", "y"], ...map.map(([x, y], i) => [tokens[i].piece, x, y])] }));
}

/** @param {Scene} scene */
async function positionsPart(scene) {
  const all = await askPositions(scene.run);
  if (!all.length) return [nothing("This model is not told where a word stands: it reads one word after another.")];
  const names = all.map((/** @type {any} */ one, /** @type {number} */ i) => /** @type {[string, string]} */ ([String(i), `${one.name} — ${one.kind}`]));
  const one = all[Math.min(address.number("pos", 0), all.length - 1)];
  const parts = [h("div", { class: "controls" }, select("Positions", names, String(Math.min(address.number("pos", 0), all.length - 1)), (value) => address.set({ pos: value })))];
  const numbered = (/** @type {number} */ count) => Array.from({ length: count }, (_, i) => (i % 8 === 0 ? String(i) : "·"));
  if (one.picture) {
    const picture = new Numbers(one.picture);
    const canvas = /** @type {HTMLCanvasElement} */ (h("canvas", { class: "picture", role: "img", "aria-label": `${picture.rows} positions, ${picture.columns} numbers each` }));
    let largest = 1e-9;
    for (const value of picture.values) largest = Math.max(largest, Math.abs(value));
    paintPixels(canvas, picture.rows, picture.columns, (row, column) => 0.5 + picture.at(0, row, column) / largest / 2, 1);
    const likeness = new Numbers(one.likeness);
    parts.push(section("As a picture", h("p", { class: "note" }, `A row for each of the first ${picture.rows} positions, a column for each of ${picture.columns} numbers${one.kind.includes("turned") ? ", for a vector of ones" : ""}.`), canvas),
      section("How alike positions are", new Grid({ title: "likeness of positions", rows: numbered(likeness.rows), columns: numbered(likeness.columns), matrix: likeness.matrix(0), verb: "and", signs: true, largest: 10 }).element));
  }
  if (one.bias) {
    const bias = new Numbers(one.bias);
    const head = Math.min(address.number("head", 0), bias.heads - 1);
    parts.push(section(`Added to the scores, head ${head + 1} of ${bias.heads}`, h("p", { class: "note" }, "For a query of ones; rows look, columns are looked at."),
      new Grid({ title: "position bias", rows: numbered(bias.rows), columns: numbered(bias.columns), matrix: /** @type {Matrix} */ (bias.matrix(head)), verb: "to", signs: true, largest: 10 }).element));
  }
  return parts;
}

/** @param {Scene} scene */
function cutForm(scene) {
  const input = /** @type {HTMLInputElement} */ (h("input", { type: "text", value: address.get("cut", scene.look.text), disabled: !live }));
  return h("form", { class: "controls", onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); address.set({ cut: input.value }, true); } },
    field("A word or a text", input), h("button", { type: "submit", class: "primary", disabled: !live }, "Cut"));
}

/** @param {Scene} scene */
async function cutsPart(scene) {
  const found = await askCuts(scene.run, address.get("cut", scene.look.text));
  const words = found.words.map((/** @type {any[]} */ steps) => h("li", {}, h("ol", { class: "merges" }, ...steps.map((step) =>
    h("li", {}, h("span", { class: "symbols" }, ...step.symbols.map((/** @type {string} */ symbol) => h("span", { class: `symbol${step.pair && symbol === step.pair.join("") ? " new" : ""}` }, pieceOf(symbol)))),
      step.pair && h("span", { class: "merge-note" }, `merge ${step.rank + 1}: `, pieceOf(step.pair[0]), " + ", pieceOf(step.pair[1])))))));
  const how = { bpe: "Characters are joined pair by pair, the pair that was learned first before all others.", byte_bpe: "Bytes are joined pair by pair, the pair that was learned first before all others.", character: "Every character is a token.", wordpiece: "The longest known piece is taken from the left, again and again." };
  return [live && cutForm(scene), h("p", { class: "note" }, how[/** @type {"bpe"} */ (found.unit)] ?? "Every word is a token; one that is not known becomes the unknown."), h("ol", { class: "cut-words" }, ...words)];
}
