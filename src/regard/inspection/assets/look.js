import { element } from "./dom.js";
import { headGroups } from "./heads.js";
import { Heatmap } from "./heatmap.js";
import { TokenLines } from "./tokens.js";
import { Weights } from "./weights.js";

/** @typedef {{rows: string[], columns: string[], weights: import("./weights.js").Packed}} Summary */

/**
 * @typedef {object} Example
 * @property {string[]} source
 * @property {import("./heads.js").Attention[]} attentions
 * @property {{alignment?: Summary, rollout?: Summary}} views
 */

/** @param {HTMLElement} section @param {Example} example */
function drawExample(section, example) {
  const lines = new TokenLines(section);
  const place = /** @type {HTMLElement} */ (section.querySelector(".alignment"));
  if (example.views.alignment) {
    const map = new Heatmap(viewOf("Alignment", example.views.alignment), (point) => lines.show(point));
    lines.alignment = map;
    place.append(element("h3", {}, "Alignment"), map.element);
  } else if (example.source.length) {
    place.append(element("p", { class: "none" }, "This model does not look back at its source: there is no alignment."));
  }
  const details = /** @type {HTMLDetailsElement} */ (section.querySelector("details.heads"));
  details.hidden = example.attentions.length === 0;
  const rollout = example.views.rollout ? viewOf("Attention rollout of the encoder", example.views.rollout) : null;
  const draw = () => details.append(element("div", { class: "groups" }, ...headGroups(example.attentions, rollout)));
  if (details.open) draw();
  else details.addEventListener("toggle", draw, { once: true }); // hundreds of pictures wait until asked for
}

/** @param {string} title @param {Summary} summary */
function viewOf(title, summary) {
  return { title, rows: summary.rows, columns: summary.columns, weights: new Weights(summary.weights), head: 0 };
}

/** @type {{examples: Example[]}} */
const page = JSON.parse(document.getElementById("data")?.textContent ?? "{}");
for (const section of document.querySelectorAll(".example")) {
  const here = /** @type {HTMLElement} */ (section);
  drawExample(here, page.examples[Number(here.dataset.example)]);
}
