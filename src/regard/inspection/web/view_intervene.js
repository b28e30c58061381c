import { address } from "./hash.js";
import { button, failure, fixed, glimpse, h, nothing, percent, pieceOf, scrolling, section, shown, signed } from "./elements.js";
import { keysOf } from "./lit.js";
import { Numbers } from "./packed.js";
import { attentionName, attentionSelect, chosenAttention, chosenRow } from "./parts.js";
import { saver } from "./saving.js";
import { askImportance, live, NEEDS_MODEL } from "./source.js";

/** @typedef {import("./parts.js").Scene} Scene */
/** @typedef {import("./source.js").Intervention} Intervention */

/** @returns {Intervention[]} what the address asks for */
export function interventionsAsked() {
  try {
    const asked = JSON.parse(address.get("do", "[]"));
    return Array.isArray(asked) ? asked : [];
  } catch {
    return [];
  }
}

/** @param {Intervention[]} all */
function askFor(all) {
  address.set({ do: all.length ? JSON.stringify(all) : "" }, true);
}

/** Switch parts off, or tell them where to look, and see what it changes. @param {Scene} scene */
export function interveneView(scene) {
  const { trace } = scene.look;
  const asked = interventionsAsked();
  const has = (/** @type {string} */ deed, /** @type {string} */ name) => asked.find((one) => one.do === deed && one.name === name && !(one.heads ?? []).length);
  const toggle = (/** @type {string} */ deed, /** @type {string} */ name) => {
    const there = has(deed, name);
    askFor(there ? asked.filter((one) => one !== there) : [...asked, { do: deed, name, heads: [] }]);
  };
  const ending = (/** @type {string} */ last) => trace.names.filter((name) => name.endsWith(`.${last}`)).map((name) => name.slice(0, -last.length - 1));
  const switches = (/** @type {string} */ deed, /** @type {string[]} */ names) => h("div", { class: "chips" }, ...names.map((name) =>
    button(briefName(name), () => toggle(deed, name), { class: `chip off-chip${has(deed, name) ? " on" : ""}`, "aria-pressed": has(deed, name) ? "true" : "false", title: name, disabled: !live })));
  const residuals = ending("residual");
  const positions = ending("positions");
  // What is read first comes first.
  for (const names of [residuals, positions]) names.sort((a, b) => Number(b.startsWith("encoder")) - Number(a.startsWith("encoder")));
  const switchesPart = [
    trace.attentions.length > 0 && headSwitches(scene, asked, toggle, has),
    trace.attentions.length > 0 && drawing(scene, asked),
    residuals.length > 0 && section("Cut a residual connection", switches("cut", residuals)),
    positions.length > 0 && section("Do not tell positions", switches("lost", positions)),
    !trace.names.some((name) => /\.(weights|residual|positions)$/.test(name)) && nothing("This model has no attention, residual connections or positions to switch off."),
  ];
  return [!live && nothing(NEEDS_MODEL), h("div", { class: "beside-each-other wide-first" }, h("div", {}, ...switchesPart), outcome(scene, asked))];
}

/** "encoder.stack.layers.1.joins.0" is "encoder 2 · sublayer 1". @param {string} name */
function briefName(name) {
  const [part] = name.split(".");
  const numbers = [...name.matchAll(/\.(\d+)/g)].map((found) => Number(found[1]) + 1);
  const what = name.includes(".joins.") ? ` · sublayer ${numbers[1]}` : name.includes(".mixers.") ? " · attention" : "";
  return `${part}${numbers.length ? ` ${numbers[0]}` : " input"}${what}`;
}

/** @param {Scene} scene @param {Intervention[]} asked */
function outcome(scene, asked) {
  const { before, answer } = scene.look;
  if (!asked.length || !before) return h("p", { class: "note" }, "Nothing is changed yet. Switch something off below: the answer is found anew, and set beside the original.");
  const total = (/** @type {number[]} */ values) => values.reduce((a, b) => a + b, 0);
  const change = before.now.length ? total(before.now) - total(before.log_probs) : Number.NaN;
  const rows = before.pieces.map((piece, i) => {
    const [was, is] = [before.log_probs[i], before.now[i]];
    const bar = h("span", { class: "bar" });
    bar.style.setProperty("--p", String(Math.exp(is ?? was)));
    return h("tr", {}, h("th", { scope: "row", "data-token": `t${i}` }, pieceOf(piece)), h("td", { class: "number" }, percent(was)),
      h("td", { class: "number weight" }, bar, is === undefined ? "–" : percent(is)),
      h("td", { class: `number ${is - was < -0.1 ? "worse" : is - was > 0.1 ? "better" : ""}` }, is === undefined ? "–" : signed(is - was)));
  });
  const csv = () => [["token", "log_prob", "log_prob_changed"], ...before.pieces.map((piece, i) => [piece, before.log_probs[i], before.now[i] ?? ""])];
  return h("section", { class: "part outcome", "aria-live": "polite" },
    h("dl", { class: "pair" },
      h("dt", {}, "Original"), h("dd", { dir: "auto" }, glimpse(before.answer)),
      h("dt", {}, "Now"), h("dd", { dir: "auto", class: answer === before.answer ? "" : "changed" }, glimpse(answer))),
    h("p", { class: "note" }, answer === before.answer ? "The answer is the same. " : "The answer has changed. ",
      Number.isNaN(change) ? "" : `Log-probability of the original answer: ${fixed(total(before.log_probs))} → ${fixed(total(before.now))} (${signed(change)}).`),
    h("div", { class: "controls" }, button("Undo all", () => askFor([]), { class: "quiet" }), saver({ name: "intervention", rows: csv, json: () => ({ interventions: asked, before, now: answer }) })),
    h("details", { open: true }, h("summary", {}, "Token by token"), scrolling("Table", h("table", { class: "ranked" },
      h("thead", {}, h("tr", {}, ...["token of the original", "before", "now", "change of log"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, ...rows)))));
}

/**
 * @param {Scene} scene @param {Intervention[]} asked
 * @param {(deed: string, name: string) => void} toggle @param {(deed: string, name: string) => Intervention | undefined} has
 */
function headSwitches(scene, asked, toggle, has) {
  const { trace } = scene.look;
  const offs = (/** @type {string} */ name) => asked.find((one) => one.do === "off" && one.name === name && (one.heads ?? []).length);
  const switchHead = (/** @type {string} */ name, /** @type {number} */ head) => {
    const there = offs(name);
    const heads = there ? there.heads : [];
    const next = heads.includes(head) ? heads.filter((one) => one !== head) : [...heads, head].sort((a, b) => a - b);
    const others = asked.filter((one) => one !== there);
    askFor(next.length ? [...others, { do: "off", name, heads: next }] : others);
  };
  /** @type {Map<string, HTMLElement>} */
  const chips = new Map();
  const body = trace.attentions.map((seen) => {
    const [whole, uniform] = [has("off", seen.name), has("uniform", seen.name)];
    const heads = Array.from({ length: seen.heads }, (_, head) => {
      const on = Boolean(whole) || (offs(seen.name)?.heads.includes(head) ?? false);
      const chip = button(String(head + 1), () => switchHead(seen.name, head), {
        class: `chip off-chip${on ? " on" : ""}`, "aria-pressed": on ? "true" : "false", disabled: !live || Boolean(whole),
        "aria-label": `${attentionName(seen)}: switch off head ${head + 1}`,
      });
      chips.set(`${seen.name}/${head}`, chip);
      return chip;
    });
    return h("tr", {}, h("th", { scope: "row" }, attentionName(seen)), h("td", {}, h("div", { class: "chips" }, ...heads)),
      h("td", {}, h("div", { class: "chips" },
        button("all off", () => toggle("off", seen.name), { class: `chip off-chip${whole ? " on" : ""}`, "aria-pressed": whole ? "true" : "false", disabled: !live, "aria-label": `${attentionName(seen)}: switch off all heads` }),
        button("uniform", () => toggle("uniform", seen.name), { class: `chip off-chip${uniform ? " on" : ""}`, "aria-pressed": uniform ? "true" : "false", disabled: !live, "aria-label": `${attentionName(seen)}: look at everything alike` }))));
  });
  const said = h("p", { class: "note", "aria-live": "polite" });
  const measure = button("Measure every head", async () => {
    said.textContent = "Switching off one head at a time …";
    try {
      const plain = { ...scene.question, interventions: [] };
      const found = await askImportance(scene.run, plain);
      if (!found.length) return void (said.textContent = "An answer that is read off at once has no probability token by token.");
      const most = Math.max(1e-6, ...found.map((one) => Math.abs(one.change)));
      for (const one of found) {
        const chip = chips.get(`${one.name}/${one.head}`);
        chip?.style.setProperty("--loss", `${Math.round((Math.max(0, -one.change) / most) * 100)}%`);
        chip?.setAttribute("title", `without it the log-probability of the answer changes by ${signed(one.change)}`);
      }
      const worst = found.reduce((a, b) => (b.change < a.change ? b : a));
      const owner = trace.attentions.find((seen) => seen.name === worst.name);
      said.textContent = `Most is lost without ${owner ? attentionName(owner) : worst.name}, head ${worst.head + 1}: ${signed(worst.change)}. Stronger colour, greater loss.`;
    } catch (error) {
      said.replaceChildren(failure(/** @type {Error} */ (error).message));
    }
  }, { class: "quiet" });
  return section("Switch off attention", h("div", { class: "controls" }, measure, said), scrolling("Table", h("table", { class: "switches" },
    h("thead", {}, h("tr", {}, ...["attention", "heads off", "whole layer"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, ...body))));
}

/** Attention as a person draws it. @param {Scene} scene @param {Intervention[]} asked */
function drawing(scene, asked) {
  const { trace } = scene.look;
  const seen = chosenAttention(trace);
  const keys = keysOf(seen, trace.source.length > 0);
  const row = chosenRow(keys.rows);
  const head = address.get("head") === "" ? null : Math.min(address.number("head", 0), seen.heads - 1);
  const mean = new Numbers(seen.weights).matrix(head ?? "mean");
  const sliders = seen.columns.map((piece, i) => {
    const input = /** @type {HTMLInputElement} */ (h("input", { type: "range", min: 0, max: 1, step: 0.01, value: fixed(mean.at(row, i), 2), "aria-label": `weight of ${shown(piece)}`, disabled: !live }));
    return { input, line: h("li", { "data-token": keys.columns[i] }, h("span", { class: "slider-name" }, pieceOf(piece)), input) };
  });
  const apply = () => {
    const weights = sliders.map(({ input }) => Number(input.value));
    if (!weights.some((weight) => weight > 0)) return;
    const heads = head === null ? [] : [head];
    const others = asked.filter((one) => !(one.do === "drawn" && one.name === seen.name && one.row === row && String(one.heads) === String(heads)));
    askFor([...others, { do: "drawn", name: seen.name, heads, row, weights }]);
  };
  const drawn = asked.filter((one) => one.do === "drawn");
  return h("details", { class: "part", open: drawn.length > 0 }, h("summary", {}, "Draw where a token looks"),
    h("div", { class: "controls" }, attentionSelect(trace)),
    h("p", { class: "note" }, pieceOf(seen.rows[row] ?? ""), ` of ${attentionName(seen)}, ${head === null ? "all heads" : `head ${head + 1}`}. Choose another token above.`),
    h("ol", { class: "sliders" }, ...sliders.map(({ line }) => line)),
    h("div", { class: "controls" }, button("Look as drawn", apply, { disabled: !live, class: "primary" }),
      drawn.length > 0 && button(`Forget ${drawn.length} drawn`, () => askFor(asked.filter((one) => one.do !== "drawn")), { class: "quiet" })));
}
