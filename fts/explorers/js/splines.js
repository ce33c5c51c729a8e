// The temporal half of a network field: clamped uniform cubic B-splines (fts/fields/network.py).

import { doubles } from "./container.js";
import { multiply } from "./linear.js";

/** c(t) = C (beta(t) - mean); row 0 is the constant one. */
export class SplineCoefficients {
  constructor(arrays) {
    [this.rank, this.size] = arrays.C.shape;
    this.C = doubles(arrays.C);
    this.mean = doubles(arrays.mean);
    [this.low, this.high] = doubles(arrays.interval);
  }

  /** Values [R + 1, n] at times t. */
  at(t) {
    const n = t.length,
      M = this.size;
    const basis = new Float64Array(M * n);
    for (let i = 0; i < n; i++) {
      const { first, values } = cubicSplines(t[i], M, this.low, this.high);
      for (let k = 0; k < 4; k++) basis[(first + k) * n + i] = values[k];
    }
    for (let k = 0; k < M; k++) for (let i = 0; i < n; i++) basis[k * n + i] -= this.mean[k];
    const rows = new Float64Array((this.rank + 1) * n).fill(1, 0, n);
    rows.set(multiply(this.C, basis, this.rank, M, n), n);
    return rows;
  }
}

/** The four clamped uniform cubic B-splines of `size` on [low, high] that do not vanish at t, by de Boor's recursion. */
function cubicSplines(t, size, low, high) {
  const cells = size - 3;
  const x = Math.min(Math.max((t - low) / (high - low), 0), 1) * cells;
  const cell = Math.min(Math.floor(x), cells - 1);
  const knot = (i) => Math.min(Math.max(i, 0), cells);
  const values = [1, 0, 0, 0];
  for (let degree = 1; degree <= 3; degree++) {
    let saved = 0;
    for (let r = 0; r < degree; r++) {
      const right = knot(cell + r + 1),
        left = knot(cell + 1 - degree + r);
      const part = values[r] / (right - left);
      values[r] = saved + (right - x) * part;
      saved = (x - left) * part;
    }
    values[degree] = saved;
  }
  return { first: cell, values };
}
