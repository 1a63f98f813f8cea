// Which points there are near a place, or in view: cells of a grid over the positions.

const CELLS = 96; // on a side

export class Points {
  /** @param {Float32Array} at x and y of each; NaN for what is on no map. */
  constructor(at) {
    this.at = at;
    this.count = at.length / 2;
    let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
    for (let i = 0; i < at.length; i += 2) {
      const [x, y] = [at[i], at[i + 1]];
      if (x !== x) continue;
      left = Math.min(left, x), right = Math.max(right, x);
      top = Math.min(top, y), bottom = Math.max(bottom, y);
    }
    if (left > right) [left, top, right, bottom] = [-1, -1, 1, 1];
    this.box = { left, top, right, bottom };
    this.side = Math.max(right - left, bottom - top, 1e-6) / CELLS;
    this.starts = new Uint32Array(CELLS * CELLS + 1);
    const cells = new Int32Array(this.count);
    for (let i = 0; i < this.count; i++) {
      cells[i] = this.has(i) ? this.cell(at[2 * i], at[2 * i + 1]) : -1;
      if (cells[i] >= 0) this.starts[cells[i] + 1]++;
    }
    for (let i = 0; i < CELLS * CELLS; i++) this.starts[i + 1] += this.starts[i];
    const next = this.starts.slice();
    this.members = new Uint32Array(this.starts[CELLS * CELLS]);
    for (let i = 0; i < this.count; i++) if (cells[i] >= 0) this.members[next[cells[i]]++] = i;
  }

  has(i) {
    return i < this.count && this.at[2 * i] === this.at[2 * i];
  }

  column(value, from) {
    return Math.min(CELLS - 1, Math.max(0, Math.floor((value - from) / this.side)));
  }

  cell(x, y) {
    return this.column(y, this.box.top) * CELLS + this.column(x, this.box.left);
  }

  /** All points between two corners. */
  *inside(left, top, right, bottom) {
    const [c0, c1] = [this.column(left, this.box.left), this.column(right, this.box.left)];
    for (let row = this.column(top, this.box.top); row <= this.column(bottom, this.box.top); row++)
      for (let k = this.starts[row * CELLS + c0]; k < this.starts[row * CELLS + c1 + 1]; k++) {
        const i = this.members[k];
        const [x, y] = [this.at[2 * i], this.at[2 * i + 1]];
        if (x >= left && x <= right && y >= top && y <= bottom) yield i;
      }
  }

  /** The point nearest to a place, at most so far away; -1 for none. */
  nearest(x, y, most) {
    let [best, least] = [-1, most * most];
    for (const i of this.inside(x - most, y - most, x + most, y + most)) {
      const away = (this.at[2 * i] - x) ** 2 + (this.at[2 * i + 1] - y) ** 2;
      if (away <= least) [best, least] = [i, away];
    }
    return best;
  }
}
