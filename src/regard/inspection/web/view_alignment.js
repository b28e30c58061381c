import { address } from "./hash.js";
import { h, scrolling, select } from "./elements.js";
import { Grid } from "./grid.js";
import { keysOf } from "./lit.js";
import { Numbers } from "./packed.js";
import { attentionName, noAttention } from "./parts.js";
import { saver } from "./saving.js";

/** @typedef {import("./parts.js").Scene} Scene */

const SUMMARIES = {
  alignment: ["Alignment (mean of heads)", "decoder", "memory"],
  source_rollout: ["Rollout from source to output", "decoder", "memory"],
  encoder_rollout: ["Rollout within the encoder", "encoder", "itself"],
  decoder_rollout: ["Rollout within the decoder", "decoder", "itself"],
};

/** Which token an output rests on: one matrix. @param {Scene} scene */
export function alignmentView(scene) {
  const { trace, views } = scene.look;
  if (!trace.attentions.length) return [noAttention(scene)];
  const summaries = Object.entries(SUMMARIES).filter(([name]) => views[name]);
  const options = [
    ...summaries.map(([name, [title]]) => /** @type {[string, string]} */ ([name, title])),
    ...trace.attentions.map((seen) => /** @type {[string, string]} */ ([seen.name, attentionName(seen)])),
  ];
  const asked = address.get("map");
  const chosen = options.some(([value]) => value === asked) ? asked : options[0][0];
  const seen = trace.attentions.find((one) => one.name === chosen);
  const controls = [select("Map", options, chosen, (value) => address.set({ map: value, head: "" }))];
  let matrix, rows, columns, keys;
  const head = address.get("head", "mean");
  if (seen) {
    const heads = Array.from({ length: seen.heads }, (_, i) => /** @type {[string, string]} */ ([String(i), `Head ${i + 1}`]));
    const which = head === "mean" || Number(head) >= seen.heads ? "mean" : head;
    if (seen.heads > 1) controls.push(select("Head", [["mean", "Mean of all"], ...heads], which, (value) => address.set({ head: value === "mean" ? "" : value })));
    matrix = new Numbers(seen.weights).matrix(seen.heads === 1 ? 0 : which === "mean" ? "mean" : Number(which));
    ({ rows, columns } = seen);
    keys = keysOf(seen, trace.source.length > 0);
  } else {
    const view = views[chosen];
    const [, part, looks_at] = SUMMARIES[/** @type {keyof typeof SUMMARIES} */ (chosen)];
    matrix = new Numbers(view.weights).matrix(0);
    ({ rows, columns } = view);
    keys = keysOf({ part, looks_at, rows, columns }, trace.source.length > 0);
  }
  const title = options.find(([value]) => value === chosen)?.[1] ?? "";
  const grid = new Grid({
    title, rows, columns, matrix, rowKeys: keys.rows, columnKeys: keys.columns,
    verb: chosen.includes("rollout") ? "rests on" : "looks at",
    onChoose: (row) => address.set({ token: keys.rows[row] }),
  });
  const what = keys.rows[0]?.startsWith("t") ? "A row for each token it wrote, a column for each it could see." : "A row for each token that looks, a column for each it looks at.";
  return [h("div", { class: "controls" }, ...controls), h("p", { class: "note" }, what), grid.element, wordPairs(scene)];
}

/** The alignment word by word, for those who want to carry markup along. @param {Scene} scene */
function wordPairs(scene) {
  const { words } = scene.look;
  if (!words?.pairs.length) return null;
  const rows = () => [["source", "target", "source word", "target word"], ...words.pairs.map(([from, to]) => [from, to, words.source[from], words.target[to]])];
  return h("details", { class: "part" }, h("summary", {}, "Word by word"),
    h("p", { class: "note" }, h("code", {}, words.pairs.map(([from, to]) => `${from}-${to}`).join(" "))),
    scrolling("Word pairs", h("table", { class: "ranked" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "wrote"), h("th", { scope: "col" }, "rests on"))),
      h("tbody", {}, ...words.pairs.map(([from, to]) => h("tr", {}, h("th", { scope: "row", dir: "auto" }, words.target[to]), h("td", { dir: "auto" }, words.source[from])))))),
    saver({ name: "word alignment", rows, json: () => words }));
}
