import { address } from "./hash.js";
import { failure, fixed, h, nothing, pieceOf, scrolling, select, shown } from "./elements.js";
import { keysOf } from "./lit.js";
import { Numbers } from "./packed.js";
import { attentionSelect, chosenAttention, chosenRow, noAttention } from "./parts.js";
import { saver } from "./saving.js";
import { askSteps } from "./source.js";
import { largestOf, strip } from "./strip.js";

/** @typedef {import("./parts.js").Scene} Scene */
/** @typedef {import("./source.js").Attention} Attention */

/** How one token looks, in six steps with the real numbers. @param {Scene} scene */
export async function stepsView(scene) {
  const { trace } = scene.look;
  if (!trace.attentions.length) return [noAttention(scene)];
  const seen = chosenAttention(trace);
  const keys = keysOf(seen, trace.source.length > 0);
  const row = chosenRow(keys.rows);
  const head = Math.min(address.number("head", 0), seen.heads - 1);
  const controls = h("div", { class: "controls" }, attentionSelect(trace),
    seen.heads > 1 && select("Head", Array.from({ length: seen.heads }, (_, i) => /** @type {[string, string]} */ ([String(i), `Head ${i + 1}`])), String(head), (value) => address.set({ head: value })),
    select("Token that looks", seen.rows.map((piece, i) => /** @type {[string, string]} */ ([keys.rows[i], `${i + 1} · ${shown(piece)}`])), keys.rows[row], (value) => address.set({ token: value })));
  try {
    const full = await askSteps(scene.run, scene.question, seen.name);
    return [controls, walk(full, keys, row, head)];
  } catch (error) {
    return [controls, failure(/** @type {Error} */ (error).message)];
  }
}

/** @param {Attention} seen @param {{rows: string[], columns: string[]}} keys @param {number} row @param {number} head */
function walk(seen, keys, row, head) {
  const steps = seen.steps;
  if (!steps) return nothing("This page carries weights alone: the text was too long for all numbers to be kept.");
  const [queries, keyed, values, scores, allowed] = ["queries", "keys", "values", "scores", "allowed"].map((name) => new Numbers(steps[name]));
  const weights = new Numbers(seen.weights);
  const query = queries.row(head, row);
  const columns = seen.columns.map((_, i) => i);
  const allKeys = columns.map((i) => keyed.row(head, i));
  const allValues = columns.map((i) => values.row(head, i));
  const own = columns.map((i) => weights.at(head, row, i));
  const score = columns.map((i) => scores.at(head, row, i));
  const products = allKeys.map((key) => (key.length === query.length ? key.reduce((sum, k, i) => sum + k * query[i], 0) : Number.NaN));
  const scaled = products.map((product) => product * (seen.scale ?? 1));
  const felt = seen.scale !== null && columns.some((i) => Math.abs(score[i] - scaled[i]) > 0.02 * (1 + Math.abs(score[i])));
  const sum = Array.from(allValues[0] ?? [], (_, at) => columns.reduce((total, i) => total + own[i] * allValues[i][at], 0));
  const sizes = { k: largestOf([query, ...allKeys]), v: largestOf(allValues) };
  const may = columns.map((i) => allowed.at(head, row, i) > 0.5);
  const heads = [["", "Token"], ["①", "key"]];
  if (seen.scale !== null) heads.push(["②", "q · k"], ["③", `× ${fixed(seen.scale, 3)}`]);
  if (seen.scale === null) heads.push(["② ③", seen.score || "score"]);
  if (felt) heads.push(["", "+ position"]);
  heads.push(["④", "masked"], ["⑤", "softmax"], ["①", "value"], ["⑥", "weight × value"]);
  const body = columns.map((i) => {
    const bar = h("span", { class: "bar" });
    bar.style.setProperty("--p", String(own[i]));
    return h("tr", { class: may[i] ? "" : "masked" },
      h("th", { scope: "row", "data-token": keys.columns[i] }, pieceOf(seen.columns[i])),
      h("td", {}, strip(allKeys[i], sizes.k, `key of ${shown(seen.columns[i])}`)),
      seen.scale !== null && h("td", { class: "number" }, fixed(products[i])),
      h("td", { class: "number" }, fixed(seen.scale !== null ? scaled[i] : score[i])),
      felt && h("td", { class: "number" }, fixed(score[i])),
      h("td", { class: "number" }, may[i] ? fixed(score[i]) : "−∞"),
      h("td", { class: "number weight" }, bar, fixed(own[i], 3)),
      h("td", {}, strip(allValues[i], sizes.v, `value of ${shown(seen.columns[i])}`)),
      h("td", {}, strip(allValues[i].map((v) => v * own[i]), sizes.v, `weighted value of ${shown(seen.columns[i])}`)));
  });
  const json = () => ({ attention: seen.name, head, row: seen.rows[row], columns: seen.columns, score: seen.score, scale: seen.scale, query: Array.from(query), keys: allKeys.map((k) => Array.from(k)), values: allValues.map((v) => Array.from(v)), products, scores: score, allowed: may, weights: own, sum });
  const rows = () => [["token", "q·k", "score", "allowed", "weight"], ...columns.map((i) => [seen.columns[i], products[i], score[i], may[i] ? 1 : 0, own[i]])];
  return h("div", { class: "walk" },
    h("p", { class: "note" }, "Score: ", h("code", {}, seen.score || "score(q, k)"), seen.scale !== null ? `, scale ${fixed(seen.scale, 4)} = 1/√${Math.round(1 / seen.scale ** 2)}` : "",
      ". Colours: blue above zero, red below; point at a strip to read its numbers."),
    h("div", { class: "query" }, h("span", { class: "step-name" }, "① query of ", h("strong", {}, pieceOf(seen.rows[row]))), strip(query, sizes.k, "query")),
    scrolling("The steps", h("table", { class: "steps" },
      h("caption", { class: "sr" }, `Six steps of attention for ${seen.rows[row]}`),
      h("thead", {}, h("tr", {}, ...heads.map(([step, name]) => h("th", { scope: "col" }, h("span", { class: "step-number" }, step), " ", name)))),
      h("tbody", {}, ...body),
      h("tfoot", {}, h("tr", {}, h("th", { scope: "row" }, "sum"), h("td", { colspan: heads.length - 4 }, `the weights sum to ${fixed(own.reduce((a, b) => a + b, 0), 3)}`),
        h("td", {}), h("td", { class: "number" }, "⑥ output"), h("td", {}, strip(sum, largestOf([sum]), "sum of weighted values")))))),
    saver({ name: `steps of ${seen.rows[row]}`, rows, json }));
}
