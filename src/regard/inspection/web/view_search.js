import { address } from "./hash.js";
import { button, fixed, glimpse, h, nothing, percent, pieceOf, s, scrolling, section, shown } from "./elements.js";
import { saver } from "./saving.js";
import { live } from "./source.js";

/** @typedef {import("./parts.js").Scene} Scene */
/** @typedef {import("./source.js").Search} Search */
/** @typedef {import("./source.js").Expansion} Expansion */

const ACROSS = 112;
const DOWN = 26;

/** How the answer was found: every hypothesis, its fate, and what else could have been said. @param {Scene} scene */
export function searchView(scene) {
  const { search, candidates } = scene.look;
  const parts = [forced(scene)];
  if (!search) {
    parts.push(candidates.length
      ? section("Answers", h("p", { class: "note" }, "This model answers at once; there is no search to draw."), candidateTable(scene))
      : nothing("There was nothing to answer: the text was only read."));
    return parts;
  }
  parts.push(tree(scene, search), section("Hypotheses", search.expansions.some((one) => one.status === "finished") ? hypotheses(search) : candidateTable(scene)));
  return parts;
}

/** @param {Scene} scene */
function forced(scene) {
  const { begin, search } = scene.look;
  if (!begin.length) return null;
  const words = begin.map((token) => search?.pieces[String(token)] ?? `#${token}`);
  return h("p", { class: "forced", role: "status" }, "Forced to begin with ", h("strong", {}, ...words.map(pieceOf)), " ",
    button("Let it choose again", () => address.set({ begin: "" }, true), { class: "quiet" }));
}

/** @param {Search} search @param {number} node @returns {number[]} */
function pathTo(search, node) {
  const path = [];
  for (let at = node; at > 0; at = search.expansions[at - 1].parent) path.unshift(search.expansions[at - 1].token);
  return path;
}

/** @param {Scene} scene @param {Search} search */
function tree(scene, search) {
  const pruned = address.get("pruned") === "1";
  const shownOnes = search.expansions.filter((one) => pruned || one.status !== "pruned");
  const best = new Set();
  for (let at = search.best ?? 0; at > 0; at = search.expansions[at - 1].parent) best.add(at);
  /** @type {Map<number, {x: number, y: number}>} */
  const places = new Map([[0, { x: 0, y: 0 }]]);
  /** @type {Map<number, Expansion[]>} */
  const columns = new Map();
  for (const one of shownOnes) columns.set(one.step, [...(columns.get(one.step) ?? []), one]);
  // A column for each step; within it the answer's path first, then as their parents stand, so that few lines cross.
  for (const [step, column] of [...columns].sort(([a], [b]) => a - b)) {
    const order = (/** @type {Expansion} */ one) => (best.has(one.node) ? -1 : one.status === "pruned" ? 1e6 : 0) + (places.get(one.parent)?.y ?? 0);
    column.sort((a, b) => order(a) - order(b) || b.score - a.score);
    column.forEach((one, i) => places.set(one.node, { x: (step - 1) * ACROSS + 22, y: i * DOWN }));
  }
  const leaves = Math.max(1, ...[...columns.values()].map((column) => column.length));
  const steps = Math.max(0, ...shownOnes.map((one) => one.step));
  const at = (/** @type {number} */ node) => /** @type {{x: number, y: number}} */ (places.get(node));
  const chosen = places.has(address.number("node", -1)) ? address.number("node", 0) : 0;
  const edges = shownOnes.map((one) => {
    const [from, to] = [at(one.parent), at(one.node)];
    const start = one.parent ? from.x + ACROSS - 6 : 14;
    const middle = (start + to.x + 10) / 2;
    return s("path", {
      class: `edge ${one.status}${best.has(one.node) ? " best" : ""}`,
      d: `M${start},${from.y + 16} C${middle},${from.y + 16} ${middle},${to.y + 16} ${to.x + 10},${to.y + 16}`,
    });
  });
  const mark = { finished: " ■", pruned: " ×", kept: "" };
  const nodes = shownOnes.map((one) => {
    const { x, y } = at(one.node);
    const piece = shown(search.pieces[String(one.token)] ?? "?");
    const choose = () => address.set({ node: one.node });
    return s("g", {
      class: `node ${one.status}${best.has(one.node) ? " best" : ""}${one.node === chosen ? " on" : ""}`, tabindex: "0", role: "button",
      "aria-label": `${piece}, step ${one.step}, probability ${fixed(Math.exp(one.log_prob))}, score ${fixed(one.score)}, ${one.status}`,
      transform: `translate(${x} ${y})`, onclick: choose,
      onkeydown: (/** @type {KeyboardEvent} */ event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), choose()),
    }, s("title", {}, `${piece}\nprobability ${percent(one.log_prob)}\nlog-probability so far ${fixed(one.cumulative)}\nnormalised ${fixed(one.score, 3)}\n${one.status}`),
    s("rect", { x: 10, y: 4, width: ACROSS - 16, height: 22, rx: 4 }),
    s("text", { x: 16, y: 19 }, clipped(piece), s("tspan", { class: "aside" }, ` ${Math.round(Math.exp(one.log_prob) * 100)}${mark[/** @type {"kept"} */ (one.status)] ?? ""}`)));
  });
  const begin = s("g", {
    class: `node begin${chosen === 0 ? " on" : ""}`, tabindex: "0", role: "button", "aria-label": "The begin", onclick: () => address.set({ node: 0 }),
    onkeydown: (/** @type {KeyboardEvent} */ event) => event.key === "Enter" && address.set({ node: 0 }),
  }, s("circle", { cx: 10, cy: at(0).y + 16, r: 5 }));
  const picture = s("svg", { class: "tree", viewBox: `0 0 ${steps * ACROSS + 40} ${leaves * DOWN + 12}`, role: "group", "aria-label": "The search as a tree" }, ...edges, begin, ...nodes);
  picture.style.width = `${steps * ACROSS + 40}px`;
  const rows = () => [["node", "parent", "step", "token", "log_prob", "cumulative", "score", "status"],
    ...search.expansions.map((one) => [one.node, one.parent, one.step, search.pieces[String(one.token)], one.log_prob, one.cumulative, one.score, one.status])];
  const toggle = h("label", { class: "check" }, h("input", { type: "checkbox", checked: pruned, onchange: () => address.set({ pruned: pruned ? "" : "1" }) }), "Show what was pruned");
  return h("section", { class: "part" },
    h("div", { class: "controls" }, toggle, saver({ name: "search", svg: () => picture, rows, json: () => search })),
    h("p", { class: "note" }, "Each box is a token and its probability in per cent; the thick path is the answer; ■ ended, × pruned. Choose a box to see what could have followed it."),
    h("div", { class: "scroll tree-room" }, picture), following(search, chosen));
}

/** As much of a piece as a box has room for. @param {string} piece */
function clipped(piece) {
  const letters = [...piece];
  return letters.length > 9 ? `${letters.slice(0, 8).join("")}…` : piece;
}

/** Everything that came to an end, best first. @param {Search} search */
function hypotheses(search) {
  const ends = search.expansions.filter((one) => one.status === "finished").sort((a, b) => b.score - a.score);
  return scrolling("Answers", h("table", { class: "ranked" },
    h("thead", {}, h("tr", {}, ...["finished", "log-probability", "normalised score"].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, ...ends.slice(0, 20).map((one) => h("tr", {},
      h("th", { scope: "row", class: "said", dir: "auto" }, ...pathTo(search, one.node).map((token) => pieceOf(search.pieces[String(token)] ?? "?"))),
      h("td", { class: "number" }, fixed(one.cumulative, 3)), h("td", { class: "number" }, fixed(one.score, 3)))))));
}

/** The most probable next tokens after a node, each with a button to force it. @param {Search} search @param {number} node */
function following(search, node) {
  const words = search.words[String(node)];
  const path = pathTo(search, node);
  const said = path.map((token) => search.pieces[String(token)] ?? "?");
  const heading = h("h3", {}, "After ", said.length ? h("span", { class: "said" }, ...said.map(pieceOf)) : "the begin");
  if (!words) return h("div", { class: "following" }, heading, nothing("The search did not go on from here."));
  return h("div", { class: "following" }, heading, h("table", { class: "ranked" },
    h("caption", { class: "sr" }, "The most probable next tokens"),
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "next"), h("th", { scope: "col" }, "probability"), h("th", { scope: "col" }, "log"), h("td", {}))),
    h("tbody", {}, ...words.map(([token, logProb]) => {
      const bar = h("span", { class: "bar" });
      bar.style.setProperty("--p", String(Math.exp(logProb)));
      const piece = search.pieces[String(token)] ?? "?";
      return h("tr", {}, h("th", { scope: "row" }, pieceOf(piece)), h("td", { class: "number weight" }, bar, percent(logProb)), h("td", { class: "number" }, fixed(logProb)),
        h("td", {}, live && button("Force", () => address.set({ begin: [...path, token].join(","), node: "" }, true), { class: "small", "aria-label": `Force ${piece} here` })));
    }))));
}

/** @param {Scene} scene */
function candidateTable(scene) {
  const { candidates } = scene.look;
  return scrolling("Answers", h("table", { class: "ranked" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "answer"), h("th", { scope: "col" }, "probability"), h("th", { scope: "col" }, "log-probability"), h("th", { scope: "col" }, "normalised score"))),
    h("tbody", {}, ...candidates.map((one) => h("tr", {}, h("th", { scope: "row", dir: "auto" }, glimpse(one.text, 160)),
      h("td", { class: "number" }, percent(one.log_prob)), h("td", { class: "number" }, fixed(one.log_prob, 3)), h("td", { class: "number" }, fixed(one.score, 3)))))));
}
