import { brief, failure, h, nothing, s, section } from "./elements.js";
import { saver } from "./saving.js";
import { askFacts } from "./source.js";

/** @typedef {import("./parts.js").Scene} Scene */
/** @typedef {{title: string, from_zero: boolean, may_be_log: boolean, curves: {name: string, points: [number, number][], dots: boolean}[]}} Chart */

/** How the run learned. @param {Scene} scene */
export async function runView(scene) {
  try {
    const found = await askFacts(scene.run);
    const facts = Object.entries(found.facts).filter(([, value]) => value !== null);
    return [
      found.charts.length ? h("div", { class: "charts" }, ...found.charts.map(chart)) : nothing("There is no log of training here."),
      section("Samples over time", found.samples.length ? samplesTable(found.samples) : nothing("This run kept none while it was trained.")),
      section("Data and versions", h("table", { class: "facts" }, h("tbody", {}, ...facts.map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, name.replaceAll("_", " ")), h("td", {}, String(value))))))),
      h("details", { class: "part" }, h("summary", {}, "Specification"), h("pre", { tabindex: "0" }, found.spec), saver({ name: "specification", json: () => found.spec })),
    ];
  } catch (error) {
    return [failure(/** @type {Error} */ (error).message)];
  }
}

/** @param {{step: number, source: string, reference: string | null, answer: string}[]} samples */
function samplesTable(samples) {
  const sources = [...new Set(samples.map((sample) => sample.source))];
  return h("div", {}, ...sources.map((source) => {
    const own = samples.filter((sample) => sample.source === source);
    const changed = own.filter((sample, i) => i === 0 || sample.answer !== own[i - 1].answer);
    const reference = own[0].reference;
    return h("details", { class: "sample", open: source === sources[0] }, h("summary", { dir: "auto" }, source),
      h("table", { class: "facts" }, h("tbody", {}, ...changed.map((sample) => h("tr", {}, h("th", { scope: "row" }, `step ${sample.step}`), h("td", { dir: "auto", class: sample.answer === reference ? "right" : "" }, sample.answer || "∅"))),
        reference !== null && reference !== "" && h("tr", {}, h("th", { scope: "row" }, "reference"), h("td", { dir: "auto" }, reference)))));
  }));
}

/** @param {Chart} spec */
function chart(spec) {
  const [width, height, left, bottom, top] = [420, 200, 52, 26, 12];
  const all = spec.curves.flatMap((curve) => curve.points);
  const xs = all.map(([x]) => x);
  const ys = all.map(([, y]) => y);
  const [lowest, highest] = [Math.min(...ys), Math.max(...ys)];
  const log = spec.may_be_log && lowest > 0 && highest / lowest >= 30;
  const scaled = (/** @type {number} */ y) => (log ? Math.log(y) : y);
  const [low, high] = [scaled(spec.from_zero ? Math.min(0, lowest) : lowest), scaled(highest)];
  const right = Math.max(1, ...xs);
  const px = (/** @type {number} */ x) => left + (x / right) * (width - left - 10);
  const py = (/** @type {number} */ y) => top + (1 - (scaled(y) - low) / (high - low || 1)) * (height - top - bottom);
  const marks = [0, 0.5, 1].map((share) => (log ? Math.exp(low + share * (high - low)) : low + share * (high - low)));
  const picture = s("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": `${spec.title}: ${spec.curves.map((curve) => `${curve.name} from ${brief(curve.points[0][1])} to ${brief(curve.points[curve.points.length - 1][1])}`).join("; ")}` },
    ...marks.flatMap((mark) => [s("line", { class: "rule", x1: left, x2: width - 10, y1: py(mark), y2: py(mark) }), s("text", { class: "mark", x: left - 8, y: py(mark) + 4, "text-anchor": "end" }, brief(mark))]),
    ...[0, 0.5, 1].map((share) => s("text", { class: "mark", x: px(share * right), y: height - 8, "text-anchor": share === 1 ? "end" : share ? "middle" : "start" }, brief(Math.round(share * right)))),
    ...spec.curves.flatMap((curve, i) => [
      s("polyline", { class: `curve tone${i}`, points: curve.points.map(([x, y]) => `${px(x).toFixed(1)},${py(y).toFixed(1)}`).join(" ") }),
      ...(curve.dots ? curve.points.map(([x, y]) => s("circle", { class: `dot tone${i}`, cx: px(x), cy: py(y), r: 2.6 })) : []),
    ]));
  const keys = spec.curves.length > 1 ? h("span", { class: "keys" }, ...spec.curves.map((curve, i) => h("span", { class: `key tone${i}` }, curve.name))) : null;
  return h("figure", { class: "chart-figure" }, h("figcaption", {}, h("strong", {}, spec.title), log ? h("span", { class: "note" }, " logarithmic") : "", " ", keys), picture,
    saver({ name: spec.title, svg: () => picture, rows: () => [["curve", "step", "value"], ...spec.curves.flatMap((curve) => curve.points.map(([x, y]) => [curve.name, x, y]))] }));
}
