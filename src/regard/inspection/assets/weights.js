/**
 * @typedef {object} Packed
 * @property {string} encoding
 * @property {[number, number, number]} shape
 * @property {string} scale
 * @property {string} data
 */

/** Attention weights (heads, rows, columns), kept as bytes: weight = byte / 255 · largest of its row. */
export class Weights {
  /** @param {Packed} packed */
  constructor(packed) {
    const [heads, rows, columns] = packed.shape;
    this.heads = heads;
    this.rows = rows;
    this.columns = columns;
    this.levels = bytes(packed.data);
    this.scale = new Float32Array(bytes(packed.scale).buffer);
  }

  /**
   * @param {number} head
   * @param {number} row
   * @param {number} column
   */
  at(head, row, column) {
    const line = head * this.rows + row;
    return (this.levels[line * this.columns + column] / 255) * this.scale[line];
  }

  /**
   * Everything one row gives, or one column gets.
   * @param {number} head
   * @param {number} row
   */
  row(head, row) {
    return Array.from({ length: this.columns }, (_, column) => this.at(head, row, column));
  }

  /**
   * @param {number} head
   * @param {number} column
   */
  column(head, column) {
    return Array.from({ length: this.rows }, (_, row) => this.at(head, row, column));
  }
}

/** @param {string} base64 */
function bytes(base64) {
  const text = atob(base64);
  const found = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) found[i] = text.charCodeAt(i);
  return found;
}
