import { address } from "./hash.js";
import { brief, button, failure, field, h, nothing, select } from "./elements.js";
import { themeButton } from "./colours.js";
import { tokenLines } from "./parts.js";
import { askLook, keptTexts, live, page } from "./source.js";
import { alignmentView } from "./view_alignment.js";
import { headsView } from "./view_heads.js";
import { stepsView } from "./view_steps.js";
import { searchView } from "./view_search.js";
import { interveneView, interventionsAsked } from "./view_intervene.js";
import { wordsView } from "./view_words.js";
import { probeView } from "./view_probe.js";
import { runView } from "./view_run.js";

/** @typedef {import("./parts.js").Scene} Scene */

/** @type {Record<string, [string, (scene: Scene) => any]>} */
const VIEWS = {
  alignment: ["Alignment", alignmentView],
  heads: ["Heads", headsView],
  steps: ["Six steps", stepsView],
  search: ["Search", searchView],
  intervene: ["Intervene", interveneView],
  words: ["Words", wordsView],
  probe: ["Probe", probeView],
  run: ["Run", runView],
};
/** Views that are not about the text that was asked. */
const APART = ["words", "probe", "run"];
/** A change of one of these asks the model anew; any other only draws anew. */
const ASKING = ["text", "target", "begin", "do"];

const notices = h("div", { class: "notices", "aria-live": "polite" });
const tabs = h("div", { class: "tabs", role: "tablist", "aria-label": "Views" });
const panes = h("div", { class: "panes", id: "panel", role: "tabpanel", tabindex: "-1" });
const asking = h("div", {});
let round = 0;

function questionAsked() {
  const first = live ? page.runs.find((run) => run.examples?.length)?.examples?.[0] ?? "" : keptTexts()[0] ?? "";
  return {
    text: address.values.has("text") ? address.get("text") : first,
    target: address.get("target") || null,
    begin: address.numbers("begin"),
    interventions: interventionsAsked(),
  };
}

function viewAsked() {
  return address.get("view") in VIEWS ? address.get("view") : "alignment";
}

/** The form in which a text is typed; in a file, the choice of those it was made for. */
function drawForm() {
  const question = questionAsked();
  if (!live) {
    const texts = keptTexts();
    asking.replaceChildren(texts.length > 1
      ? h("div", { class: "ask" }, select("Text", texts.map((/** @type {string} */ text) => [text, text]), question.text, (text) => address.set({ text, token: "", node: "" }, true)))
      : h("p", { class: "ask asked-text", dir: "auto" }, question.text));
    return;
  }
  const text = /** @type {HTMLTextAreaElement} */ (h("textarea", { id: "text", rows: 1, dir: "auto", spellcheck: "false", placeholder: "A text for the model", onkeydown: (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    send();
  } }));
  const target = /** @type {HTMLInputElement} */ (h("input", { id: "target", type: "text", dir: "auto", placeholder: "Its own answer, or write another" }));
  text.value = question.text;
  target.value = question.target ?? "";
  const send = () => address.set({ text: text.value || null, target: target.value, begin: "", node: "", token: "" }, true);
  // An empty field is a mistake to be told, not a wish for the first example.
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (!text.value.trim() && !page.runs[0]?.begins) return complain("There is nothing to read: write a text.");
    send();
  };
  const examples = [...new Set(page.runs.flatMap((run) => run.examples ?? []))].slice(0, 5);
  asking.replaceChildren(h("form", { class: "ask", onsubmit: submit },
    field("Text", text), field("Output", target), h("button", { type: "submit", class: "primary" }, "Look")),
  examples.length > 0 && h("div", { class: "examples" }, h("span", {}, "Such as"), ...examples.map((one) =>
    button(one.length > 44 ? `${one.slice(0, 42)}…` : one, () => address.set({ text: one, target: "", begin: "", do: "", node: "", token: "" }, true), { class: "example", dir: "auto" }))) || "");
}

/** @param {string} message */
function complain(message) {
  notices.replaceChildren(failure(message));
}

function drawTabs() {
  const current = viewAsked();
  const names = Object.keys(VIEWS);
  tabs.replaceChildren(...names.map((name) => button(VIEWS[name][0], () => address.set({ view: name === "alignment" ? "" : name }, true), {
    role: "tab", id: `tab-${name}`, "aria-selected": name === current ? "true" : "false", "aria-controls": "panel", tabindex: name === current ? "0" : "-1",
  })));
  panes.setAttribute("aria-labelledby", `tab-${current}`);
  document.getElementById(`tab-${current}`)?.scrollIntoView?.({ block: "nearest", inline: "nearest" });
}

tabs.addEventListener("keydown", (event) => {
  const names = Object.keys(VIEWS);
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const next = names[(names.indexOf(viewAsked()) + step + names.length) % names.length];
  address.set({ view: next === "alignment" ? "" : next });
  document.getElementById(`tab-${next}`)?.focus();
});

/** @type {{key: string, scenes: (Scene | Error)[]} | null} */
let known = null;

/** Ask every run, then draw the view; whoever comes later wins. */
async function draw() {
  const mine = ++round;
  const question = questionAsked();
  const key = JSON.stringify(question);
  if (known?.key !== key) {
    document.body.classList.add("waiting");
    const scenes = await Promise.all(page.runs.map(async (about, run) => {
      if (about.error) return new Error(about.error);
      try {
        return { run, about, question, look: await askLook(run, question) };
      } catch (error) {
        return /** @type {Error} */ (error);
      }
    }));
    if (mine !== round) return;
    known = { key, scenes };
  }
  const scenes = known.scenes;
  const [, view] = VIEWS[viewAsked()];
  const notes = scenes.flatMap((scene) => (scene instanceof Error ? [] : scene.look.notes));
  const drawn = await Promise.all(scenes.map(async (scene, i) => {
    const heading = scenes.length > 1 && h("h2", {}, page.runs[i].name);
    if (scene instanceof Error) return h("section", { class: "pane" }, heading, address.values.has("text") || page.runs[i].error ? failure(scene.message) : nothing("Write a text above to look into the model."));
    const parts = await view(scene);
    return h("section", { class: "pane", "aria-label": scene.about.name }, heading, !APART.includes(viewAsked()) && tokenLines(scene), h("div", { class: "view" }, ...parts.filter(Boolean)));
  }));
  if (mine !== round) return;
  document.body.classList.remove("waiting");
  notices.replaceChildren(...[...new Set(notes)].map((note) => h("p", { class: "notice" }, note)));
  panes.classList.toggle("both", scenes.length > 1);
  panes.replaceChildren(...drawn);
  document.body.dataset.ready = String(mine);
}

function begin() {
  const names = page.runs.map((run) => run.name).join(" · ");
  const size = page.runs.length === 1 && page.runs[0].parameters ? `${page.runs[0].task}, ${brief(page.runs[0].parameters)} parameters` : "";
  const app = /** @type {HTMLElement} */ (document.getElementById("app"));
  app.append(
    h("a", { class: "skip", href: "#panel", onclick: (/** @type {Event} */ event) => { event.preventDefault(); panes.focus(); } }, "Skip to the view"),
    h("header", { class: "masthead" }, h("h1", {}, h("span", { class: "brand" }, "regard"), " ", names), h("p", {}, size), themeButton()),
    h("main", {}, asking, notices, tabs, panes));
  drawForm();
  drawTabs();
  address.listeners.push((changed) => {
    if (["text", "target"].some((name) => changed.has(name))) drawForm();
    if (changed.has("view")) drawTabs();
    if (ASKING.some((name) => changed.has(name))) notices.replaceChildren();
    draw();
  });
  draw();
}

begin();
