/** @typedef {import("./packed.js").Packed} PackedNumbers */
/**
 * @typedef {object} Attention
 * @property {string} name @property {string} part @property {number} layer @property {number} mixer
 * @property {"itself" | "memory"} looks_at @property {number} heads @property {string[]} rows @property {string[]} columns
 * @property {string} score @property {number | null} scale @property {PackedNumbers} weights
 * @property {Record<string, number>[]} deeds @property {Record<string, PackedNumbers>} [steps]
 */
/**
 * @typedef {object} Trace
 * @property {string[]} source @property {string[]} target @property {boolean} ended @property {number[]} log_probs
 * @property {[string, number][][]} top @property {string[]} names @property {Attention[]} attentions
 */
/** @typedef {{text: string, score: number, log_prob: number, pieces: string[], token_log_probs: number[]}} Candidate */
/** @typedef {{node: number, parent: number, step: number, token: number, log_prob: number, cumulative: number, score: number, status: string}} Expansion */
/** @typedef {{expansions: Expansion[], words: Record<string, [number, number][]>, pieces: Record<string, string>, best: number | null}} Search */
/** @typedef {{do: string, name: string, heads: number[], row?: number | null, weights?: number[]}} Intervention */
/**
 * @typedef {object} Look
 * @property {string} text @property {string | null} target @property {number[]} begin @property {Intervention[]} interventions
 * @property {string} answer @property {Candidate[]} candidates @property {Search | null} search
 * @property {Record<string, {rows: string[], columns: string[], weights: PackedNumbers}>} views @property {string[]} notes
 * @property {{source: string[], target: string[], pairs: [number, number][]} | null} words
 * @property {{answer: string, pieces: string[], log_probs: number[], now: number[], candidates: Candidate[]} | null} before
 * @property {Trace} trace
 */
/** @typedef {{name: string, task?: string, parameters?: number, pairs?: boolean, begins?: boolean, gap?: string, examples?: string[], error?: string}} About */
/** @typedef {{text: string, target: string | null, begin: number[], interventions: Intervention[]}} Question */
/** @typedef {{mode: "server" | "file", runs: About[], kept?: any[]}} PageData */

/** @type {PageData} */
export const page = JSON.parse(/** @type {HTMLElement} */ (document.getElementById("data")).textContent ?? "{}");
export const live = page.mode === "server";

/** @type {Map<string, Promise<any>>} */
const asked = new Map();

/** The same question is asked once. @param {string} path @param {unknown} [body] @returns {Promise<any>} */
function ask(path, body) {
  const key = path + JSON.stringify(body ?? null);
  const known = asked.get(key);
  if (known) return known;
  const answer = fetched(path, body);
  asked.set(key, answer);
  answer.catch(() => asked.delete(key));
  if (asked.size > 60) asked.delete(/** @type {string} */ (asked.keys().next().value));
  return answer;
}

/** @param {string} path @param {unknown} body */
async function fetched(path, body) {
  let response;
  try {
    response = await fetch(path, body === undefined ? {} : {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
    });
  } catch {
    throw new Error("The inspector's server does not answer: has it been ended?");
  }
  const answer = await response.json().catch(() => ({ error: `the server said ${response.status}` }));
  if (!response.ok) throw new Error(answer.error ?? `the server said ${response.status}`);
  return answer;
}

/** In a file only what was asked when it was made is known. @param {number} run @param {string} what @param {number} [at] */
async function found(run, what, at) {
  const kept = page.kept?.[run]?.[what];
  const value = at === undefined ? kept : kept?.[at];
  if (value === undefined) throw new Error(NEEDS_MODEL);
  if (value && value.error) throw new Error(value.error);
  return value;
}

export const NEEDS_MODEL = "This needs the model. The page is a file without one: open the run with  regard look DIR.";

/** Texts a file was made for. */
export function keptTexts() {
  return (page.kept?.[0]?.looks ?? []).map((/** @type {Look} */ look) => look.text);
}

/** @param {Question} question */
function place(question) {
  return Math.max(0, keptTexts().indexOf(question.text));
}

/** @param {number} run @param {Question} question @returns {Promise<Look>} */
export async function askLook(run, question) {
  if (live) return ask("api/look", { run, ...question });
  if (question.begin.length || question.interventions.length) throw new Error(NEEDS_MODEL);
  return found(run, "looks", place(question));
}

/** @param {number} run @param {Question} question @param {string} attention @returns {Promise<Attention>} */
export async function askSteps(run, question, attention) {
  if (live) return ask("api/steps", { run, ...question, attention });
  const look = await askLook(run, question);
  const one = look.trace.attentions.find((seen) => seen.name === attention);
  if (!one?.steps) throw new Error(NEEDS_MODEL);
  return one;
}

/** @param {number} run @param {Question} question @returns {Promise<{name: string, head: number, change: number}[]>} */
export async function askImportance(run, question) {
  return live ? ask("api/importance", { run, ...question }) : found(run, "importance", place(question));
}

/** @param {number} run @param {string[]} sentences */
export async function askWords(run, sentences) {
  return live ? ask("api/words", { run, sentences }) : found(run, "words");
}

/** @param {number} run */
export async function askPositions(run) {
  return live ? ask(`api/positions/${run}`) : found(run, "positions");
}

/** @param {number} run @param {string} text */
export async function askCuts(run, text) {
  return live ? ask("api/cuts", { run, text }) : found(run, "cuts", Math.max(0, keptTexts().indexOf(text)));
}

/** @param {number} run @param {string} text */
export async function askProbe(run, text) {
  return live ? ask("api/probe", { run, text }) : Promise.reject(new Error(NEEDS_MODEL));
}

/** @param {number} run */
export async function askFacts(run) {
  return live ? ask(`api/facts/${run}`) : found(run, "facts");
}
