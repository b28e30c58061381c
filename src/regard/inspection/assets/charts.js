/** @typedef {{name: string, steps: number[], values: number[], places: number[]}} Curve */

/** Read values off a chart with a mouse, a finger or the arrow keys. @param {HTMLElement} figure @param {Curve[]} curves */
function readable(figure, curves) {
  const drawing = /** @type {SVGSVGElement} */ (/** @type {unknown} */ (figure.querySelector("svg")));
  const guide = /** @type {SVGLineElement} */ (figure.querySelector(".guide"));
  const readout = /** @type {HTMLElement} */ (figure.querySelector(".readout"));
  const places = [...new Set(curves.flatMap((curve) => curve.places))].sort((a, b) => a - b);
  let at = -1;

  const show = (/** @type {number} */ index) => {
    at = Math.max(0, Math.min(places.length - 1, index));
    const place = String(places[at]);
    guide.setAttribute("x1", place);
    guide.setAttribute("x2", place);
    guide.setAttribute("visibility", "visible");
    const words = curves.map((curve) => {
      const point = nearest(curve.places, places[at]);
      return `${curve.name} ${curve.values[point]}${curves.length > 1 ? ` (step ${curve.steps[point]})` : ""}`;
    });
    const step = curves.length === 1 ? `step ${curves[0].steps[nearest(curves[0].places, places[at])]}: ` : "";
    readout.textContent = step + words.join(" · ");
  };
  drawing.addEventListener("pointermove", (event) => {
    const box = drawing.getBoundingClientRect();
    show(nearest(places, ((event.clientX - box.left) / box.width) * drawing.viewBox.baseVal.width));
  });
  drawing.addEventListener("pointerleave", () => {
    guide.setAttribute("visibility", "hidden");
    readout.textContent = "";
  });
  drawing.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    show(at + step);
  });
}

/** @param {number[]} places @param {number} wanted */
function nearest(places, wanted) {
  let best = 0;
  places.forEach((place, index) => {
    if (Math.abs(place - wanted) < Math.abs(places[best] - wanted)) best = index;
  });
  return best;
}

/** @type {{charts: {curves: Curve[]}[]}} */
const report = JSON.parse(document.getElementById("data")?.textContent ?? "{}");
for (const figure of document.querySelectorAll("[data-chart]")) {
  const here = /** @type {HTMLElement} */ (figure);
  readable(here, report.charts[Number(here.dataset.chart)].curves);
}
