import { address } from "./hash.js";
import { failure, field, fixed, h, nothing, percent, scrolling, section, signed } from "./elements.js";
import { saver } from "./saving.js";
import { askProbe, live, NEEDS_MODEL } from "./source.js";

/** @typedef {import("./parts.js").Scene} Scene */
/** @typedef {{choice: string[], text: string, log_prob: number, difference: number, pieces: string[], token_log_probs: number[]}} ProbeRow */

/** Templates run through the model, to see what it picked up from its data. @param {Scene} scene */
export async function probeView(scene) {
  if (!live) return [nothing(NEEDS_MODEL)];
  const example = scene.about.pairs ? "{3,4} mai {1979,2024}\t{1979,2024}-05-03" : "The {doctor,nurse,teacher} said that {he,she} was late .";
  const template = address.get("template");
  const area = /** @type {HTMLTextAreaElement} */ (h("textarea", { rows: 2, spellcheck: "false", placeholder: example }));
  area.value = template;
  const form = h("form", { class: "ask-more", onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); address.set({ template: area.value }, true); } },
    field("Template", area),
    h("p", { class: "note" }, "Alternatives stand in braces: ", h("code", {}, "{he,she}"), ". The last slot is the contrast. ",
      scene.about.pairs ? "A tab parts what is read from what is written; without one the model's own answer is judged." : ""),
    h("div", { class: "controls" }, h("button", { type: "submit", class: "primary" }, "Run"),
      h("button", { type: "button", class: "quiet", onclick: () => { area.value = example; } }, "Example")));
  if (!template) return [form];
  try {
    return [form, ...results(await askProbe(scene.run, template))];
  } catch (error) {
    return [form, failure(/** @type {Error} */ (error).message)];
  }
}

/** @param {{slots: string[][], rows: ProbeRow[], answers: {text: string, candidates: [string, number][]}[]}} found */
function results(found) {
  const contrast = found.slots[found.slots.length - 1];
  const groups = [];
  for (let i = 0; i < found.rows.length; i += contrast.length) groups.push(found.rows.slice(i, i + contrast.length));
  const largest = Math.max(1e-9, ...found.rows.map((row) => Math.abs(row.difference)));
  const body = groups.map((group) => h("tr", {}, h("th", { scope: "row" }, group[0].choice.slice(0, -1).join(" · ") || "–"),
    ...group.map((row) => h("td", { class: "number" }, fixed(row.log_prob))),
    ...group.slice(1).map((row) => {
      const bar = h("span", { class: `lean ${row.difference < 0 ? "left" : "right"}` });
      bar.style.setProperty("--p", String(Math.abs(row.difference) / largest));
      return h("td", { class: "number leaning" }, signed(row.difference), h("span", { class: "lean-room" }, bar));
    })));
  const csvRows = () => [[...found.slots.map((_, i) => `slot ${i + 1}`), "text", "log_prob", "difference"], ...found.rows.map((row) => [...row.choice, row.text, row.log_prob, row.difference])];
  const table = h("table", { class: "ranked probe" }, h("caption", {}, `Log-probabilities, and the difference to “${contrast[0]}”`),
    h("thead", {}, h("tr", {}, h("td", {}), ...contrast.map((name) => h("th", { scope: "col" }, name)), ...contrast.slice(1).map((name) => h("th", { scope: "col" }, `${name} − ${contrast[0]}`)))),
    h("tbody", {}, ...body));
  const parts = [scrolling("Table", table), saver({ name: "probe", rows: csvRows, json: () => found })];
  if (found.answers.length) {
    parts.push(section("What the model itself would say", scrolling("Table", h("table", { class: "ranked" }, h("tbody", {}, ...found.answers.map((answer, i) =>
      h("tr", {}, h("th", { scope: "row", dir: "auto" }, found.rows[i].text.split("\t")[0]), h("td", { dir: "auto" }, answer.candidates.slice(0, 5).map(([text, value]) => `${text} ${percent(value)}`).join(" · ")))))))));
  }
  return parts;
}
