import { button, h } from "./elements.js";

/** @typedef {{name: string, svg?: () => SVGElement, rows?: () => (string | number)[][], json?: () => unknown}} Savable */

const COPIED = ["fill", "stroke", "stroke-width", "stroke-opacity", "fill-opacity", "opacity", "font-family", "font-size",
  "font-weight", "text-anchor", "dominant-baseline"];

/** Buttons that save a picture or its numbers. @param {Savable} what */
export function saver(what) {
  const all = [
    what.svg && button("SVG", () => save(`${what.name}.svg`, "image/svg+xml", svgText(what))),
    what.svg && button("PNG", () => savePng(what)),
    what.rows && button("CSV", () => save(`${what.name}.csv`, "text/csv", csv(/** @type {any} */ (what.rows)()))),
    what.json && button("JSON", () => save(`${what.name}.json`, "application/json", JSON.stringify(/** @type {any} */ (what.json)(), null, 1))),
  ];
  return h("div", { class: "saver", role: "group", "aria-label": `Save ${what.name}` }, h("span", {}, "Save"), ...all);
}

/** @param {(string | number)[][]} rows */
export function csv(rows) {
  const cell = (/** @type {string | number} */ value) => {
    const text = String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => row.map(cell).join(",")).join("\n") + "\n";
}

/** @param {string} name @param {string} kind @param {BlobPart} content */
function save(name, kind, content) {
  const link = /** @type {HTMLAnchorElement} */ (h("a", { download: name.replace(/[^\w.-]+/g, "-") }));
  link.href = URL.createObjectURL(new Blob([content], { type: kind }));
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** A drawing that stands alone: what the style sheet gave it becomes its own. @param {Savable} what */
function svgText(what) {
  const drawn = /** @type {() => SVGElement} */ (what.svg)();
  const copy = /** @type {SVGElement} */ (drawn.cloneNode(true));
  const [from, to] = [[drawn, ...drawn.querySelectorAll("*")], [copy, ...copy.querySelectorAll("*")]];
  if (drawn.isConnected) {
    from.forEach((element, i) => {
      const style = getComputedStyle(element);
      for (const name of COPIED) to[i].setAttribute(name, style.getPropertyValue(name));
    });
  }
  const paper = getComputedStyle(document.documentElement).getPropertyValue("--paper").trim();
  const box = copy.getAttribute("viewBox")?.split(" ") ?? ["0", "0", "100", "100"];
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [name, value] of [["x", box[0]], ["y", box[1]], ["width", box[2]], ["height", box[3]], ["fill", paper]]) {
    ground.setAttribute(name, value);
  }
  copy.prepend(ground);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", box[2]);
  copy.setAttribute("height", box[3]);
  return new XMLSerializer().serializeToString(copy);
}

/** @param {Savable} what */
async function savePng(what) {
  const text = svgText(what);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  const larger = 2;
  canvas.width = image.width * larger;
  canvas.height = image.height * larger;
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => blob && save(`${what.name}.png`, "image/png", blob));
}
