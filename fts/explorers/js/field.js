// A frozen field in the browser: u_hat = F(x) G(t) on tensor grids (fts/fields/frozen.py, fts/explorers/explorer.py).

import { readContainer } from "./container.js";
import { multiply } from "./linear.js";
import { SeriesCoefficients, SeriesFeatures } from "./series.js";
import { SplineCoefficients } from "./splines.js";

const TIME = { splines: SplineCoefficients, series: SeriesCoefficients };

export class FrozenField {
  constructor(bytes) {
    const { header, arrays } = readContainer(bytes);
    const half = (name) =>
      Object.fromEntries(
        Object.entries(arrays)
          .filter(([key]) => key.startsWith(name))
          .map(([key, a]) => [key.slice(name.length), a]),
      );
    if (header.space !== "series" || !(header.time in TIME))
      throw new Error(`this page cannot evaluate a field of kind ${header.space} and ${header.time}`);
    this.low = [...header.domain.low, header.domain.t0];
    this.high = [...header.domain.high, header.domain.t1];
    this.dimension = header.domain.low.length;
    this.positive = header.positive;
    this.space = new SeriesFeatures(half("space."));
    this.time = new TIME[header.time](half("time."));
  }

  get rank() {
    return this.space.columns - 1;
  }

  /** Both halves on a grid: F [n, R + 1] and G [R + 1, n_t]. */
  halves(axes) {
    return { F: this.space.onAxes(axes.slice(0, -1)), G: this.time.at(axes.at(-1)) };
  }

  /** u_hat [n_x (n_y) n_t] on the tensor grid of the axes, time last. */
  onGrid(axes) {
    const { F, G } = this.halves(axes);
    const columns = this.space.columns,
      u = multiply(F, G, F.length / columns, columns, axes.at(-1).length);
    if (this.positive) softplusInPlace(u);
    return u;
  }
}

/** log(1 + exp(z)) entrywise, without overflow. */
export function softplusInPlace(z) {
  for (let i = 0; i < z.length; i++) z[i] = Math.max(z[i], 0) + Math.log1p(Math.exp(-Math.abs(z[i])));
}
