/**
 * @typedef {object} Packed
 * @property {"uint8" | "float16" | "float32"} encoding
 * @property {[number, number, number]} shape
 * @property {string} [scale]
 * @property {string} data
 */

/** Numbers (heads, rows, columns) as `packing` in Python wrote them. */
export class Numbers {
  /** @param {Packed} packed */
  constructor(packed) {
    const [heads, rows, columns] = packed.shape;
    this.heads = heads;
    this.rows = rows;
    this.columns = columns;
    const raw = bytesOf(packed.data);
    if (packed.encoding === "float32") this.values = new Float32Array(raw.buffer);
    else if (packed.encoding === "float16") this.values = halves(new Uint16Array(raw.buffer));
    else {
      const scale = new Float32Array(bytesOf(packed.scale ?? "").buffer);
      this.values = new Float32Array(raw.length);
      for (let line = 0, at = 0; line < scale.length; line++) {
        for (let column = 0; column < this.columns; column++, at++) this.values[at] = (raw[at] / 255) * scale[line];
      }
    }
  }

  /** @param {number} head @param {number} row @param {number} column */
  at(head, row, column) {
    return this.values[(head * this.rows + row) * this.columns + column];
  }

  /** @param {number} head @param {number} row */
  row(head, row) {
    const begin = (head * this.rows + row) * this.columns;
    return this.values.subarray(begin, begin + this.columns);
  }

  /** One head, or the mean of all. @param {number | "mean"} head @returns {Matrix} */
  matrix(head) {
    const size = this.rows * this.columns;
    if (head !== "mean") return new Matrix(this.rows, this.columns, this.values.subarray(head * size, (head + 1) * size));
    const mean = new Float32Array(size);
    for (let i = 0; i < this.values.length; i++) mean[i % size] += this.values[i] / this.heads;
    return new Matrix(this.rows, this.columns, mean);
  }
}

export class Matrix {
  /** @param {number} rows @param {number} columns @param {Float32Array} values */
  constructor(rows, columns, values) {
    this.rows = rows;
    this.columns = columns;
    this.values = values;
  }

  /** @param {number} row @param {number} column */
  at(row, column) {
    return this.values[row * this.columns + column];
  }
}

/** @param {string} base64 */
function bytesOf(base64) {
  const text = atob(base64);
  const found = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) found[i] = text.charCodeAt(i);
  return found;
}

/** IEEE half precision. @param {Uint16Array} bits */
function halves(bits) {
  const found = new Float32Array(bits.length);
  for (let i = 0; i < bits.length; i++) {
    const sign = bits[i] & 0x8000 ? -1 : 1;
    const exponent = (bits[i] >> 10) & 31;
    const fraction = bits[i] & 1023;
    found[i] = sign * (exponent === 0 ? fraction * 2 ** -24 : exponent === 31 ? Infinity : (1 + fraction / 1024) * 2 ** (exponent - 15));
  }
  return found;
}
