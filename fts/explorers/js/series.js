// Truncated Fourier and Chebyshev series: the spatial half of every field, the temporal half of a kernel field (fts/fields/series.py).

import { doubles } from "./container.js";
import { multiply } from "./linear.js";

/** Columns [n, R + 1] of a tensor-product series on a tensor grid. */
export class SeriesFeatures {
  constructor(arrays) {
    this.bases = basesOf(arrays);
    this.columns = arrays.coefficients.shape[1];
    this.coefficients = doubles(arrays.coefficients);
  }

  onAxes(axes) {
    let values = this.coefficients,
      outer = 1;
    this.bases.forEach((basis, a) => {
      // values is [outer, size, inner]; the axis in the middle is replaced by its points.
      const rows = basisValues(basis, axes[a]),
        n = axes[a].length,
        inner = values.length / (outer * basis.size);
      const next = new Float64Array(outer * n * inner),
        slab = basis.size * inner;
      for (let o = 0; o < outer; o++)
        next.set(multiply(rows, values.subarray(o * slab, (o + 1) * slab), n, basis.size, inner), o * n * inner);
      values = next;
      outer *= n;
    });
    return values;
  }
}

/** Rows [R + 1, n]: the constant one, then c_r(t) as series. */
export class SeriesCoefficients {
  constructor(arrays) {
    [this.basis] = basesOf(arrays);
    [this.size, this.rank] = arrays.coefficients.shape;
    const stored = doubles(arrays.coefficients);
    this.turned = new Float64Array(stored.length);
    for (let k = 0; k < this.size; k++)
      for (let r = 0; r < this.rank; r++) this.turned[r * this.size + k] = stored[k * this.rank + r];
  }

  at(t) {
    const n = t.length,
      rows = new Float64Array((this.rank + 1) * n).fill(1, 0, n),
      values = basisValues(this.basis, t);
    const byFunction = new Float64Array(values.length);
    for (let i = 0; i < n; i++) for (let k = 0; k < this.size; k++) byFunction[k * n + i] = values[i * this.size + k];
    rows.set(multiply(this.turned, byFunction, this.rank, this.size, n), n);
    return rows;
  }
}

function basesOf(arrays) {
  const [low, high, size, periodic] = ["low", "high", "size", "periodic"].map((name) => arrays[name].data);
  // Sizes stay the integers of the file: a size held as a double makes every index one, and a weak system takes 77 ms for 41.
  return Array.from(low, (_, a) => ({ low: low[a], high: high[a], size: size[a], periodic: Boolean(periodic[a]) }));
}

/** Values [n, size]: 1, cos, sin, cos 2, sin 2, ... when periodic, else Chebyshev polynomials. */
function basisValues({ low, high, size, periodic }, x) {
  const values = new Float64Array(x.length * size);
  for (let i = 0; i < x.length; i++) {
    const row = values.subarray(i * size, (i + 1) * size);
    row[0] = 1;
    if (periodic) {
      for (let k = 1; 2 * k < size; k++) {
        const angle = (2 * Math.PI * k * (x[i] - low)) / (high - low);
        row[2 * k - 1] = Math.cos(angle);
        row[2 * k] = Math.sin(angle);
      }
    } else {
      const unit = Math.min(Math.max((2 * (x[i] - low)) / (high - low) - 1, -1), 1);
      if (size > 1) row[1] = unit;
      for (let k = 2; k < size; k++) row[k] = 2 * unit * row[k - 1] - row[k - 2];
    }
  }
  return values;
}
