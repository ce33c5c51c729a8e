// A Gaussian process on a sensor x frame grid, fitted in the page with given kernels (fts/kernel/separable.py).

import { eigenSymmetric, multiply, transpose } from "./linear.js";

const FAMILIES = { gaussian: (r) => Math.exp(-0.5 * r * r), rational: (r) => (1 + (r * r) / 4) ** -2 };

/** The posterior mean on a ring given values [sensors, frames], as a field that weak systems can be read off. */
export class GaussianField {
  constructor({ low, high, sensors, frames, values, kernels, nugget }) {
    Object.assign(this, { low, high, sensors, frames, kernels, dimension: 1, positive: false });
    this.space = { columns: sensors.length + 1 };
    const count = values.length;
    this.mean = values.reduce((sum, value) => sum + value, 0) / count;
    this.scale = Math.sqrt(values.reduce((sum, value) => sum + (value - this.mean) ** 2, 0) / count);
    this.weights = solve(this, values, Math.max(nugget, Number.EPSILON * count));
  }

  /** k(point, sample) along the ring, by the chord. */
  spaceRows(points) {
    const period = this.high[0] - this.low[0];
    return rows(points, this.sensors, this.kernels[0], (d) => (period / Math.PI) * Math.sin((Math.PI / period) * d));
  }

  timeRows(points) {
    return rows(points, this.frames, this.kernels[1], (d) => d);
  }

  /** F [n, sensors + 1] and G [sensors + 1, n_t] with the mean in front. */
  halves([x, t]) {
    const S = this.sensors.length,
      near = this.spaceRows(x),
      later = transpose(this.timeRows(t), t.length, this.frames.length);
    const F = new Float64Array(x.length * (S + 1)),
      G = new Float64Array((S + 1) * t.length).fill(this.mean);
    for (let i = 0; i < x.length; i++) {
      F[i * (S + 1)] = 1;
      F.set(near.subarray(i * S, (i + 1) * S), i * (S + 1) + 1);
    }
    G.set(multiply(this.weights, later, S, this.frames.length, t.length), t.length);
    return { F, G };
  }

  onGrid(axes) {
    const { F, G } = this.halves(axes);
    return multiply(F, G, axes[0].length, this.space.columns, axes[1].length);
  }
}

function rows(points, samples, { family, lengths }, distance) {
  const k = FAMILIES[family],
    m = samples.length,
    K = new Float64Array(points.length * m);
  for (let i = 0; i < points.length; i++)
    for (let j = 0; j < m; j++) K[i * m + j] = k(distance(points[i] - samples[j]) / lengths[0]);
  return K;
}

/** scale (K_x (x) K_t + nugget)^-1 of the standardized values, by the eigenvectors of both factors. */
function solve(field, values, nugget) {
  const S = field.sensors.length,
    F = field.frames.length;
  const x = eigenSymmetric(field.spaceRows(field.sensors), S),
    t = eigenSymmetric(field.timeRows(field.frames), F);
  const y = values.map((value) => value - field.mean);
  const rotated = multiply(multiply(transpose(x.vectors, S, S), y, S, S, F), t.vectors, S, F, F);
  for (let i = 0; i < S; i++)
    for (let j = 0; j < F; j++) rotated[i * F + j] /= Math.max(x.values[i], 0) * Math.max(t.values[j], 0) + nugget;
  return multiply(multiply(x.vectors, rotated, S, S, F), transpose(t.vectors, F, F), S, F, F);
}
