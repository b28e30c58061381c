import { element } from "./dom.js";
import { Heatmap } from "./heatmap.js";
import { paint } from "./palette.js";
import { Weights } from "./weights.js";

/**
 * @typedef {object} Attention
 * @property {string} name
 * @property {string} part
 * @property {number} layer
 * @property {number} mixer
 * @property {"itself" | "memory"} looks_at
 * @property {string[]} rows
 * @property {string[]} columns
 * @property {import("./weights.js").Packed} weights
 */

/** @typedef {import("./heatmap.js").View} View */

/**
 * Thumbnails of all heads, a group for each kind of looking, a line for each layer.
 * @param {Attention[]} attentions
 * @param {View | null} rollout
 */
export function headGroups(attentions, rollout) {
  /** @type {Map<string, Attention[]>} */
  const groups = new Map();
  for (const attention of attentions) {
    const title = `${attention.part} looks at ${attention.looks_at === "memory" ? "the source" : "itself"}`;
    groups.set(title, [...(groups.get(title) ?? []), attention]);
  }
  return [...groups].map(([title, members]) => {
    const whole = rollout && title === "encoder looks at itself" ? rollout : null;
    return headGroup(title, members, whole);
  });
}

/** @param {string} title @param {Attention[]} members @param {View | null} whole */
function headGroup(title, members, whole) {
  /** @type {View[]} */
  const views = [];
  const lines = members.map((attention) => {
    const weights = new Weights(attention.weights);
    const buttons = Array.from({ length: weights.heads }, (_, head) => {
      const { rows, columns, layer } = attention;
      views.push({ title: `${title} · layer ${layer} · head ${head}`, rows, columns, weights, head });
      return thumbnail(views, views.length - 1);
    });
    const line = element("div", { class: "thumbs" }, ...buttons);
    line.style.setProperty("--heads", String(weights.heads));
    return [element("span", { class: "layer", title: attention.name }, `layer ${attention.layer}`), line];
  }).flat();
  if (whole) {
    const line = element("div", { class: "thumbs" }, thumbnail([whole], 0));
    line.style.setProperty("--heads", String(members[0].weights.shape[0]));
    lines.push(element("span", { class: "layer", title: "Attention rollout: all layers together" }, "rollout"), line);
  }
  const most = Math.max(...members.map((attention) => attention.weights.shape[0]));
  const numbers = Array.from({ length: most }, (_, head) => element("span", {}, String(head)));
  const header = element("div", { class: "thumbs numbers", "aria-hidden": "true" }, ...numbers);
  header.style.setProperty("--heads", String(most));
  const heading = element("h3", {}, title[0].toUpperCase() + title.slice(1));
  const corner = element("span", { class: "layer", "aria-hidden": "true" }, most > 1 ? "head" : "");
  const body = element("div", { class: "layers" }, corner, most > 1 ? header : "", ...lines);
  return element("section", { class: "group" }, heading, body);
}

/** @param {View[]} views @param {number} index */
function thumbnail(views, index) {
  const view = views[index];
  const canvas = /** @type {HTMLCanvasElement} */ (element("canvas", { "aria-hidden": "true" }));
  paint(canvas, view.weights, view.head);
  const button = element("button", { type: "button", class: "thumb", title: view.title, "aria-label": `Enlarge: ${view.title}` }, canvas);
  button.addEventListener("click", () => enlarge(views, index));
  return button;
}

/**
 * Show one head large, with its neighbours a key away.
 * @param {View[]} views
 * @param {number} index
 */
function enlarge(views, index) {
  const dialog = /** @type {HTMLDialogElement} */ (element("dialog", { class: "large", "aria-labelledby": "large-title" }));
  const title = element("h2", { id: "large-title" });
  const stage = element("div", { class: "stage" });
  const before = element("button", { type: "button", "aria-label": "Head before" }, "←");
  const after = element("button", { type: "button", "aria-label": "Head after" }, "→");
  const close = element("button", { type: "button", "aria-label": "Close" }, "✕");
  const go = (/** @type {number} */ step) => {
    index = (index + step + views.length) % views.length;
    title.textContent = views[index].title;
    stage.replaceChildren(new Heatmap(views[index]).element);
  };
  before.addEventListener("click", () => go(-1));
  after.addEventListener("click", () => go(1));
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  before.hidden = after.hidden = views.length < 2;
  dialog.append(element("div", { class: "bar" }, title, before, after, close), stage);
  document.body.append(dialog);
  go(0);
  dialog.showModal();
  /** @type {HTMLElement | null} */ (stage.querySelector(".frame"))?.focus();
}
