// Standard errors: least squares on a support over the rows of all systems, regions of space-time left out in turn
// (fts/selection/refits.py, `pooled`, and `jackknife` of fts/selection/moments.py).

import { choleskySolve } from "./linear.js";

const REGIONS = 16;

/** {xi, se} on the library, or null where a region's rows are needed to tell the terms apart; `centers` as of patchCenters, one per system. */
export function pooled(systems, centers, support) {
  const { J } = systems[0],
    n = support.length,
    xi = Array(J).fill(0),
    se = Array(J).fill(0);
  if (!n) return { xi, se };
  const norms = support.map((j) =>
    Math.sqrt(
      systems.reduce((sum, { A, m }) => {
        for (let l = 0; l < m; l++) sum += A[l * J + j] ** 2;
        return sum;
      }, 0),
    ),
  );
  const blocks = [...sums(systems, regionsOf(centers), support, norms).values()];
  const total = blocks.reduce(({ gram, moment }, one) => ({
    gram: gram.map((v, i) => v + one.gram[i]),
    moment: moment.map((v, i) => v + one.moment[i]),
  }));
  const all = choleskySolve(total.gram, total.moment);
  const left = blocks.map((one) =>
    choleskySolve(
      total.gram.map((v, i) => v - one.gram[i]),
      total.moment.map((v, i) => v - one.moment[i]),
    ),
  );
  if (!all || left.includes(null)) return null;
  support.forEach((j, r) => {
    const mean = left.reduce((sum, x) => sum + x[r], 0) / left.length;
    xi[j] = all[r] / norms[r];
    se[j] =
      left.length > 1
        ? Math.sqrt(((left.length - 1) / left.length) * left.reduce((sum, x) => sum + (x[r] - mean) ** 2, 0)) / norms[r]
        : 0;
  });
  return { xi, se };
}

/** A function (system, axis, place) -> the part of the axis that a center lies in; all systems share the parts. */
function regionsOf(centers) {
  const dimension = centers[0].length,
    parts = Math.max(2, Math.round(REGIONS ** (1 / dimension)));
  const ends = Array.from({ length: dimension }, (_, a) => {
    const all = centers.flatMap((axes) => [...axes[a]]);
    return [Math.min(...all), Math.max(...all)];
  });
  return {
    parts,
    of: (system, a, i) =>
      Math.min(parts - 1, Math.floor(((centers[system][a][i] - ends[a][0]) / (ends[a][1] - ends[a][0] || 1)) * parts)),
    shape: centers.map((axes) => axes.map((axis) => axis.length)),
  };
}

/** Gram matrix and moment of the unit columns by region. */
function sums(systems, regions, support, norms) {
  const n = support.length,
    found = new Map();
  systems.forEach(({ A, b, m, J }, s) => {
    for (let l = 0; l < m; l++) {
      let rest = l,
        key = 0;
      for (let a = regions.shape[s].length - 1; a >= 0; a--) {
        key = key * regions.parts + regions.of(s, a, rest % regions.shape[s][a]);
        rest = Math.floor(rest / regions.shape[s][a]);
      }
      if (!found.has(key)) found.set(key, { gram: new Float64Array(n * n), moment: new Float64Array(n) });
      const { gram, moment } = found.get(key);
      for (let i = 0; i < n; i++) {
        const value = A[l * J + support[i]] / norms[i];
        moment[i] += value * b[l];
        for (let k = 0; k < n; k++) gram[i * n + k] += (value * A[l * J + support[k]]) / norms[k];
      }
    }
  });
  return found;
}
