// A weak system -> sparse coefficients on unit columns (fts/selection/sparse.py).

import { choleskySolve } from "./linear.js";

/** Unit columns' Gram matrix, moment and norms: all that solves need. */
export function normalize({ A, b, m, J }) {
  const norms = new Float64Array(J),
    unit = new Float64Array(A.length);
  for (let j = 0; j < J; j++) {
    let largest = 0,
      sum = 0;
    for (let l = 0; l < m; l++) largest = Math.max(largest, Math.abs(A[l * J + j]));
    if (!largest) continue;
    for (let l = 0; l < m; l++) sum += (A[l * J + j] / largest) ** 2;
    norms[j] = Math.sqrt(sum) * largest;
    for (let l = 0; l < m; l++) unit[l * J + j] = A[l * J + j] / norms[j];
  }
  const gram = new Float64Array(J * J),
    moment = new Float64Array(J);
  for (let l = 0; l < m; l++) {
    for (let i = 0; i < J; i++) {
      const value = unit[l * J + i];
      moment[i] += value * b[l];
      for (let j = 0; j < J; j++) gram[i * J + j] += value * unit[l * J + j];
    }
  }
  return { gram, moment, norms, J, zero: b.every((value) => value === 0) };
}

/** argmin ||A~_S x - b||^2 + ridge ||x||^2 in normalized coordinates; the ridge keeps the Gram matrix definite. */
export function solveOn(normal, support, ridge) {
  const { gram, moment, J } = normal;
  const x = new Float64Array(J),
    active = support.filter((j) => normal.norms[j] > 0);
  if (!active.length || normal.zero) return x;
  const n = active.length,
    M = new Float64Array(n * n);
  active.forEach((i, r) => active.forEach((j, c) => (M[r * n + c] = gram[i * J + j] + (r === c ? ridge : 0))));
  const solution = choleskySolve(
    M,
    Float64Array.from(active, (j) => moment[j]),
  );
  if (!solution) throw new Error(`ridge ${ridge} is too small for these columns`);
  active.forEach((j, r) => (x[j] = solution[r]));
  return x;
}

/** Sequentially thresholded least squares: fit, drop |x_j| < threshold, until nothing is dropped. */
export function stlsq(normal, threshold, ridge, maxIterations) {
  let support = Array.from({ length: normal.J }, (_, j) => j).filter((j) => normal.norms[j] > 0);
  let x = solveOn(normal, support, ridge);
  for (let iteration = 0; iteration < maxIterations; iteration++) {
    const kept = support.filter((j) => Math.abs(x[j]) >= threshold && x[j] !== 0);
    if (kept.length === support.length) break;
    support = kept;
    x = solveOn(normal, support, ridge);
  }
  return x;
}

/** D^-1 x: coefficients of the columns as they were given. */
export function physical(normal, x) {
  return x.map((value, j) => (normal.norms[j] > 0 ? value / normal.norms[j] : 0));
}

/** b - A xi by patch, and its squared length relative to b's. */
export function residual({ A, b, m, J }, xi) {
  const values = new Float64Array(m);
  let top = 0,
    bottom = 0;
  for (let l = 0; l < m; l++) {
    let fit = 0;
    for (let j = 0; j < J; j++) fit += A[l * J + j] * xi[j];
    values[l] = b[l] - fit;
    top += values[l] ** 2;
    bottom += b[l] ** 2;
  }
  return { values, squares: top, scale: bottom };
}
