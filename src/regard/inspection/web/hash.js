/** What is shown is in the address: a view can be sent to someone, and going back goes back. */
class Address {
  constructor() {
    /** @type {Map<string, string>} */
    this.values = new Map();
    /** @type {((changed: Set<string>) => void)[]} */
    this.listeners = [];
    this.read();
    window.addEventListener("hashchange", () => this.told(this.read()));
  }

  /** @returns {Set<string>} what changed */
  read() {
    const before = this.values;
    this.values = new Map(new URLSearchParams(location.hash.slice(1)));
    const names = new Set([...before.keys(), ...this.values.keys()]);
    return new Set([...names].filter((name) => before.get(name) !== this.values.get(name)));
  }

  /** @param {string} name @param {string} [otherwise] */
  get(name, otherwise = "") {
    return this.values.get(name) ?? otherwise;
  }

  /** @param {string} name @param {number} otherwise */
  number(name, otherwise) {
    const value = Number.parseInt(this.get(name), 10);
    return Number.isNaN(value) ? otherwise : value;
  }

  /** @param {string} name @returns {number[]} */
  numbers(name) {
    return this.get(name).split(",").filter(Boolean).map(Number).filter(Number.isInteger);
  }

  /** Whatever is empty is left out. @param {Record<string, string | number | null>} changes @param {boolean} [step] */
  set(changes, step = false) {
    const changed = new Set();
    for (const [name, value] of Object.entries(changes)) {
      const text = value === null ? "" : String(value);
      if (this.get(name) === text) continue;
      changed.add(name);
      if (text === "") this.values.delete(name);
      else this.values.set(name, text);
    }
    if (!changed.size) return;
    const hash = `#${new URLSearchParams([...this.values])}`;
    if (step) history.pushState(null, "", hash);
    else history.replaceState(null, "", hash);
    this.told(changed);
  }

  /** @param {Set<string>} changed */
  told(changed) {
    if (changed.size) for (const listener of this.listeners) listener(changed);
  }
}

export const address = new Address();
