import { address } from "./hash.js";
import { button, fixed, h, s, shown, select } from "./elements.js";
import { headColour, paintPixels, strength } from "./colours.js";
import { keysOf, onLight } from "./lit.js";
import { Numbers } from "./packed.js";
import { attentionName, attentionSelect, chosenAttention, chosenRow, noAttention } from "./parts.js";
import { saver } from "./saving.js";

/** @typedef {import("./parts.js").Scene} Scene */
/** @typedef {import("./source.js").Attention} Attention */

const DEEDS = {
  layer: "Layer", previous: "Previous token", next: "Next token", same: "Same token", separator: "Begin and end marks",
  diagonal: "Diagonal", focus: "Focus (low entropy)", entropy: "Spread (high entropy)",
};
const LINE = 24;
/** Of each head; more would be a fog, and slow. */
const MOST_LINES = 12;

/** Who looks at whom, by lines; and every head there is, by what it does. @param {Scene} scene */
export function headsView(scene) {
  const { trace } = scene.look;
  if (!trace.attentions.length) return [noAttention(scene)];
  const seen = chosenAttention(trace);
  return [h("div", { class: "beside-each-other" }, lines(scene, seen), thumbnails(scene, seen))];
}

/** @param {Scene} scene @param {Attention} seen */
function lines(scene, seen) {
  const weights = new Numbers(seen.weights);
  const keys = keysOf(seen, scene.look.trace.source.length > 0);
  const heads = headsChosen(seen);
  const left = 130;
  const width = 460;
  const height = LINE * Math.max(seen.rows.length, seen.columns.length) + 8;
  const drawn = s("g", {});
  const label = (/** @type {string} */ piece, /** @type {number} */ i, /** @type {string} */ key, /** @type {boolean} */ right) =>
    s("text", {
      x: right ? width - left + 10 : left - 10, y: i * LINE + 19, "text-anchor": right ? "start" : "end", class: "arc-token", "data-token": key,
      onclick: right ? null : () => address.set({ token: key }),
    }, shown(piece).slice(0, 16));
  const picture = s("svg", { viewBox: `0 0 ${width} ${height}`, class: "arcs", role: "img", "aria-label": `Lines from a token of ${attentionName(seen)} to what it looks at` },
    drawn, ...seen.rows.map((piece, i) => label(piece, i, keys.rows[i], false)), ...seen.columns.map((piece, i) => label(piece, i, keys.columns[i], true)));
  const said = h("p", { class: "readout", "aria-live": "polite" });
  let row = chosenRow(keys.rows);
  const draw = () => {
    const found = [];
    for (const head of heads) {
      const own = weights.row(head, row);
      const strongest = Array.from(own.keys()).sort((a, b) => own[b] - own[a]).slice(0, MOST_LINES);
      for (const column of strongest) {
        if (own[column] < 0.01) break;
        // Heads that look at the same token run side by side.
        const apart = (heads.indexOf(head) - (heads.length - 1) / 2) * Math.min(2.5, 12 / heads.length);
        const [y1, y2] = [row * LINE + 14 + apart, column * LINE + 14 + apart];
        const bend = (width - 2 * left) / 2;
        found.push(s("path", {
          d: `M${left},${y1} C${left + bend},${y1} ${width - left - bend},${y2} ${width - left},${y2}`,
          fill: "none", stroke: headColour(head), "stroke-width": Math.max(0.6, own[column] * 9), "stroke-opacity": 0.25 + 0.65 * own[column],
        }));
      }
    }
    drawn.replaceChildren(...found);
    const best = heads.map((head) => {
      const own = Array.from(weights.row(head, row));
      const at = own.indexOf(Math.max(...own));
      return `head ${head + 1}: ${shown(seen.columns[at] ?? "")} ${fixed(own[at] ?? 0)}`;
    });
    said.textContent = `${shown(seen.rows[row] ?? "")} looks most at — ${best.slice(0, 4).join(" · ")}${best.length > 4 ? " …" : ""}`;
  };
  draw();
  onLight(picture, (key) => {
    const at = key === null ? -1 : keys.rows.indexOf(key);
    const next = at < 0 ? chosenRow(keys.rows) : at;
    if (next !== row) {
      row = next;
      draw();
    }
  });
  const chips = Array.from({ length: seen.heads }, (_, head) => {
    const on = heads.includes(head);
    const chip = button(`Head ${head + 1}`, () => {
      const all = on ? heads.filter((one) => one !== head) : [...heads, head].sort((a, b) => a - b);
      address.set({ heads: all.length === seen.heads ? "" : all.join(",") || String(head) });
    }, { class: `chip${on ? " on" : ""}`, "aria-pressed": on ? "true" : "false" });
    chip.style.setProperty("--chip", headColour(head));
    return chip;
  });
  const rows = () => [["row", ...seen.columns], ...heads.map((head) => [`head ${head + 1}`, ...Array.from(weights.row(head, row))])];
  return h("section", { class: "part" },
    h("div", { class: "controls" }, attentionSelect(scene.look.trace),
      select("Token", seen.rows.map((piece, i) => /** @type {[string, string]} */ ([keys.rows[i], `${i + 1} · ${shown(piece)}`])), keys.rows[row], (value) => address.set({ token: value }))),
    h("div", { class: "chips", role: "group", "aria-label": "Heads that are drawn" }, ...chips,
      seen.heads > 1 && button("All", () => address.set({ heads: "" }), { class: "quiet" })),
    h("div", { class: "arc-room" }, picture), said,
    saver({ name: `${attentionName(seen)} lines`, svg: () => picture, rows, json: () => ({ row: seen.rows[row], heads, columns: seen.columns, weights: rows().slice(1).map((r) => r.slice(1)) }) }));
}

/** @param {Attention} seen */
function headsChosen(seen) {
  const asked = address.numbers("heads").filter((head) => head < seen.heads);
  return asked.length ? asked : Array.from({ length: seen.heads }, (_, i) => i);
}

/** @param {Scene} scene @param {Attention} current */
function thumbnails(scene, current) {
  const sort = address.get("sort", "layer");
  const all = scene.look.trace.attentions.flatMap((seen) => {
    const numbers = new Numbers(seen.weights);
    return Array.from({ length: seen.heads }, (_, head) => ({ seen, head, numbers, deeds: seen.deeds?.[head] ?? {} }));
  });
  const value = (/** @type {typeof all[number]} */ one) => (sort === "focus" ? -one.deeds.entropy : one.deeds[sort] ?? 0);
  if (sort !== "layer") all.sort((a, b) => value(b) - value(a));
  const chosen = headsChosen(current);
  const cards = all.map(({ seen, head, numbers, deeds }) => {
    const canvas = /** @type {HTMLCanvasElement} */ (h("canvas", { "aria-hidden": "true" }));
    paintPixels(canvas, numbers.rows, numbers.columns, (row, column) => strength(numbers.at(head, row, column)));
    const [name, score] = sort === "layer" ? mostly(deeds) : [sort, sort === "focus" ? deeds.entropy : deeds[sort]];
    const unit = name === "entropy" || name === "focus" ? ` ${fixed(score, 1)} bit` : ` ${fixed(score)}`;
    const label = `${seen.part.slice(0, 3)} ${seen.layer + 1}.${head + 1}${seen.looks_at === "memory" ? " →src" : ""}`;
    return h("button", {
      type: "button", class: `thumb${seen === current && chosen.length === 1 && chosen[0] === head ? " on" : ""}`,
      "aria-label": `${attentionName(seen)}, head ${head + 1}: ${name}${unit}`,
      onclick: () => address.set({ att: seen.name, heads: String(head), head: String(head), map: seen.name }),
    }, canvas, h("span", { class: "thumb-name" }, label), h("span", { class: "thumb-deed" }, name === "focus" ? "entropy" : name, unit));
  });
  const rows = () => [["attention", "head", "previous", "next", "same", "separator", "diagonal", "entropy"],
    ...all.map(({ seen, head, deeds }) => [seen.name, head, deeds.previous, deeds.next, deeds.same, deeds.separator, deeds.diagonal, deeds.entropy])];
  return h("section", { class: "part" }, h("h3", {}, "Every layer and head"),
    h("div", { class: "controls" }, select("Sort by", Object.entries(DEEDS), sort, (next) => address.set({ sort: next === "layer" ? "" : next })),
      saver({ name: "heads", rows, json: () => rows() })),
    h("div", { class: "thumbs" }, ...cards));
}

/** What a head does most. @param {Record<string, number>} deeds @returns {[string, number]} */
function mostly(deeds) {
  const shares = /** @type {[string, number][]} */ (["previous", "next", "same", "separator", "diagonal"].map((name) => [name, deeds[name] ?? 0]));
  const best = shares.slice(0, 4).sort((a, b) => b[1] - a[1])[0];
  if (best[1] >= 0.4) return best;
  return shares[4][1] >= 0.6 ? shares[4] : ["entropy", deeds.entropy ?? 0];
}
