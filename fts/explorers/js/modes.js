// A field's factors in two orders: as trained, and as principal modes, for the rank slider.

import { softplusInPlace } from "./field.js";
import { accumulateRow, eigenSymmetric, multiply, transpose } from "./linear.js";

/** Features [R, n], coefficients [R, T], background [n] and sizes, largest share of the field's norm first.
 *
 * "principal" rotates the factors so that the first r carry the best rank-r field on this grid (the SVD of F G);
 * "trained" keeps each network output and its splines, ordered by ||phi_r|| ||c_r||.
 */
export function fieldModes(field, axes, basis) {
  const { F, G } = field.halves(axes);
  const R = field.rank,
    columns = R + 1,
    n = F.length / columns,
    T = axes.at(-1).length;
  const background = Float64Array.from({ length: n }, (_, i) => F[i * columns]);
  const space = new Float64Array(n * R);
  for (let i = 0; i < n; i++) for (let r = 0; r < R; r++) space[i * R + r] = F[i * columns + r + 1];
  const turned = basis === "principal" ? principal(space, G.slice(T), n, R, T) : trained(space, G.slice(T), n, R, T);
  return { ...turned, background, rank: R, n, frames: T, positive: field.positive };
}

/** u on the grid from the background and the first `keep` modes. */
export function reconstruct(modes, keep) {
  const { background, features, coefficients, n, frames, positive, rank } = modes;
  const u = new Float64Array(n * frames),
    weights = new Float64Array(keep);
  for (let i = 0; i < n; i++) {
    u.fill(background[i], i * frames, (i + 1) * frames);
    for (let r = 0; r < Math.min(keep, rank); r++) weights[r] = features[r * n + i];
    accumulateRow(u, i * frames, weights, 0, coefficients, keep, frames);
  }
  if (positive) softplusInPlace(u);
  return u;
}

/** ||u - v|| / ||u||. */
export function relativeError(u, v) {
  let top = 0,
    bottom = 0;
  for (let i = 0; i < u.length; i++) {
    top += (u[i] - v[i]) ** 2;
    bottom += u[i] ** 2;
  }
  return Math.sqrt(top / bottom);
}

function trained(space, G, n, R, T) {
  const sizes = Array.from({ length: R }, (_, r) => {
    let left = 0,
      right = 0;
    for (let i = 0; i < n; i++) left += space[i * R + r] ** 2;
    for (let k = 0; k < T; k++) right += G[r * T + k] ** 2;
    return Math.sqrt(left * right);
  });
  const order = sizes.map((_, r) => r).sort((a, b) => sizes[b] - sizes[a]);
  const features = new Float64Array(R * n),
    coefficients = new Float64Array(R * T);
  order.forEach((from, to) => {
    for (let i = 0; i < n; i++) features[to * n + i] = space[i * R + from];
    coefficients.set(G.subarray(from * T, (from + 1) * T), to * T);
  });
  return { features, coefficients, sizes: order.map((r) => sizes[r]) };
}

/** F G = sum_k s_k a_k c_k^T, from the R x R Gram matrices: F^T F = U L U^T, then L^1/2 U^T (G G^T) U L^1/2. */
function principal(space, G, n, R, T) {
  const left = eigenSymmetric(gram(transpose(space, n, R), R, n), R);
  const half = left.values.map((value) => Math.sqrt(Math.max(value, 0)));
  // Directions the features do not span on this grid carry no field; dividing by their zero length would.
  const inverse = half.map((value) => (value > 1e-12 * half[0] ? 1 / value : 0));
  const turn = new Float64Array(R * R),
    back = new Float64Array(R * R);
  for (let i = 0; i < R; i++) {
    for (let k = 0; k < R; k++) {
      turn[k * R + i] = left.vectors[i * R + k] * half[k];
      back[i * R + k] = left.vectors[i * R + k] * inverse[k];
    }
  }
  const H = multiply(turn, G, R, R, T);
  const right = eigenSymmetric(gram(H, R, T), R);
  const features = transpose(multiply(space, multiply(back, right.vectors, R, R, R), n, R, R), n, R);
  const coefficients = multiply(transpose(right.vectors, R, R), H, R, R, T);
  return { features, coefficients, sizes: right.values.map((value) => Math.sqrt(Math.max(value, 0))) };
}

function gram(rows, R, n) {
  const M = new Float64Array(R * R);
  for (let r = 0; r < R; r++) {
    for (let s = 0; s <= r; s++) {
      let sum = 0;
      for (let i = 0; i < n; i++) sum += rows[r * n + i] * rows[s * n + i];
      M[r * R + s] = M[s * R + r] = sum;
    }
  }
  return M;
}
