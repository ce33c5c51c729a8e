// A network's features on many shifted grids: tabulated once at Chebyshev points of panels, then interpolated.
// A network costs 20,000 multiplications per point and a weak system has 1,240 to 14,400 of them. The features are
// analytic, so a table of few points reaches the tolerance; its size is tried out on lines through the box.

import { accumulateRow } from "./linear.js";

const TOLERANCE = 1e-9;
// Lines see less than the box: they are held to a tenth of the tolerance.
const ON_LINES = 1e-10;
// [panels, points per panel] per axis, coarse to fine.
const SIZES = {
  1: [[32, 16], [64, 16], [128, 16], [256, 16]],
  2: [[2, 16], [2, 20], [2, 24], [2, 28], [2, 34], [2, 40], [2, 48]],
};
const PROBES = 31;
const LINES = 3;
const SCATTER = { 1: 64, 2: 16 };

/** Wraps features of a box: `onAxes` as before, to 1e-9 of the largest value, or exact where no table suffices. */
export class TabulatedFeatures {
  constructor(features, low, high) {
    Object.assign(this, { exact: features, columns: features.columns, low, high, table: null });
    const known = SIZES[low.length] ?? [];
    let choice = low.map((_, a) => known.findIndex((size) => this.lineError(a, size) < ON_LINES));
    while (known.length && choice.every((c) => c >= 0 && c < known.length)) {
      const sizes = choice.map((c) => known[c]);
      this.table = { sizes, values: features.onAxes(sizes.map((size, a) => panelPoints(low[a], high[a], size))) };
      if (this.boxError() < TOLERANCE) return;
      this.table = null;
      choice = choice.map((c) => c + 1);
    }
  }

  onAxes(axes) {
    if (!this.table) return this.exact.onAxes(axes);
    const { sizes, values } = this.table, places = axes.map((x, a) => weightsAt(x, this.low[a], this.high[a], sizes[a]));
    const first = readAxis(values, places[0], values.length / (sizes[0][0] * sizes[0][1]));
    if (axes.length === 1) return first;
    const slab = sizes[1][0] * sizes[1][1] * this.columns, n = axes[1].length * this.columns;
    const result = new Float64Array(axes[0].length * n);
    for (let i = 0; i < axes[0].length; i++) result.set(readAxis(first.subarray(i * slab, (i + 1) * slab), places[1], this.columns), i * n);
    return result;
  }

  /** Largest interpolation error at places all over the box, relative to the largest value. */
  boxError() {
    const axes = this.low.map((_, a) => this.spread(a, SCATTER[this.low.length]));
    return largestDifference(this.exact.onAxes(axes), this.onAxes(axes));
  }

  /** Largest interpolation error along axis `a` on a few lines, relative to the largest value. */
  lineError(a, size) {
    let worst = 0;
    for (let l = 0; l < (this.low.length === 1 ? 1 : LINES); l++) {
      const along = (x) => this.exact.onAxes(this.low.map((_, axis) => (axis === a ? x : this.spread(axis, LINES).subarray(l, l + 1))));
      const x = this.spread(a, PROBES), places = weightsAt(x, this.low[a], this.high[a], size);
      const read = readAxis(along(panelPoints(this.low[a], this.high[a], size)), places, this.columns);
      worst = Math.max(worst, largestDifference(along(x), read));
    }
    return worst;
  }

  /** Places on an axis by irrational steps, without a pattern the nodes could share. */
  spread(axis, n) {
    const step = axis ? 0.7548776662 : 0.6180339887;
    return Float64Array.from({ length: n }, (_, i) => this.low[axis] + (this.high[axis] - this.low[axis]) * (((i + 0.5) * step) % 1));
  }
}

function largestDifference(exact, read) {
  let worst = 0, largest = 0;
  exact.forEach((value, i) => {
    largest = Math.max(largest, Math.abs(value));
    worst = Math.max(worst, Math.abs(value - read[i]));
  });
  return worst / largest;
}

function panelPoints(low, high, [panels, points]) {
  const width = (high - low) / panels;
  return Float64Array.from({ length: panels * points }, (_, i) => low + width * (Math.floor(i / points) + (1 + chebyshevPoint(i % points, points)) / 2));
}

function chebyshevPoint(k, points) {
  return -Math.cos((Math.PI * (k + 0.5)) / points);
}

/** Panel and barycentric weights [n, points] of every x. */
function weightsAt(x, low, high, [panels, points]) {
  const rows = new Float64Array(x.length * points), panel = new Int32Array(x.length);
  const nodes = Array.from({ length: points }, (_, k) => chebyshevPoint(k, points));
  const signs = nodes.map((_, k) => (k % 2 ? -1 : 1) * Math.sin((Math.PI * (k + 0.5)) / points));
  for (let i = 0; i < x.length; i++) {
    const place = ((x[i] - low) / (high - low)) * panels;
    panel[i] = Math.min(Math.max(Math.floor(place), 0), panels - 1);
    const s = 2 * (place - panel[i]) - 1, hit = nodes.indexOf(s);
    let sum = 0;
    for (let k = 0; k < points; k++) sum += rows[i * points + k] = hit < 0 ? signs[k] / (s - nodes[k]) : Number(k === hit);
    for (let k = 0; k < points; k++) rows[i * points + k] /= sum;
  }
  return { rows, panel, points };
}

/** Values [N, m] at panel points -> values [n, m] at the places. */
function readAxis(values, { rows, panel, points }, m) {
  const result = new Float64Array(panel.length * m);
  for (let i = 0; i < panel.length; i++) {
    const start = panel[i] * points * m;
    accumulateRow(result, i * m, rows, i * points, values.subarray(start, start + points * m), points, m);
  }
  return result;
}
