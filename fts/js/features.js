// The spatial half of a network field: background and R features on a tensor grid (fts/features.py).

import { doubles } from "./container.js";
import { multiply } from "./linear.js";

/** gamma(x) = [sin(B s x), cos(B s x)] through Swish layers; column 0 is the background. */
export class NetworkFeatures {
  constructor(arrays) {
    this.dimension = arrays.frequencies.shape[1];
    this.rows = doubles(arrays.frequencies).map((k) => k * doubles(arrays.scale)[0]);
    this.scale = doubles(arrays.scale)[0];
    this.layers = [];
    for (let i = 0; `weight${i}` in arrays; i++) {
      const [inputs, outputs] = arrays[`weight${i}`].shape;
      this.layers.push({ weight: doubles(arrays[`weight${i}`]), bias: doubles(arrays[`bias${i}`]), inputs, outputs });
    }
    this.columns = this.layers.at(-1).outputs;
  }

  /** Values [n, R + 1] at points [n, d]. */
  at(points) {
    const n = points.length / this.dimension;
    let z = this.encode(points, n);
    this.layers.forEach(({ weight, bias, inputs, outputs }, layer) => {
      z = multiply(z, weight, n, inputs, outputs);
      const swish = layer < this.layers.length - 1;
      for (let i = 0, j = 0; i < z.length; i++, j = j + 1 === outputs ? 0 : j + 1) {
        const value = z[i] + bias[j];
        z[i] = swish ? value / (1 + Math.exp(-value)) : value;
      }
    });
    return z;
  }

  /** Values on the tensor grid of `axes`, in C order. */
  onAxes(axes) {
    return this.at(gridPoints(axes));
  }

  encode(points, n) {
    const d = this.dimension, k = this.rows.length / d;
    if (!k) return points.map((x) => x * this.scale);
    const encoded = new Float64Array(n * 2 * k);
    for (let i = 0; i < n; i++) {
      for (let r = 0; r < k; r++) {
        let angle = 0;
        for (let a = 0; a < d; a++) angle += points[i * d + a] * this.rows[r * d + a];
        encoded[i * 2 * k + r] = Math.sin(angle);
        encoded[i * 2 * k + k + r] = Math.cos(angle);
      }
    }
    return encoded;
  }
}

/** All points [n, d] of the tensor grid of `axes`, in C order. */
export function gridPoints(axes) {
  const d = axes.length, n = axes.reduce((size, axis) => size * axis.length, 1);
  const points = new Float64Array(n * d);
  let inner = n;
  axes.forEach((axis, a) => {
    inner /= axis.length;
    for (let i = 0; i < n; i++) points[i * d + a] = axis[Math.floor(i / inner) % axis.length];
  });
  return points;
}
