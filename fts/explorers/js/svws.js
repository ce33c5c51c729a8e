// Weak systems -> equation: Algorithm S1 with its whole trace (fts/svws/rule.py).

import { normalize, physical, residual, solveOn, stlsq } from "./sparse.js";

/** Places in the row of drawn phases, by role: further generation systems come last, so that those that fit and
 * validate stay when `generation` is moved away from its `usual` number. */
export function placesOfRoles({ generation, validation, usual = generation }) {
  const proposing = Array.from({ length: generation }, (_, i) => (i < usual ? i : i + 1 + validation));
  return [...proposing, ...Array.from({ length: 1 + validation }, (_, i) => usual + i)];
}

/** The selection on systems in the order of their roles: generation, fit, validation. */
export function selectFrom(systems, params) {
  const generation = systems.slice(0, params.generation);
  const pool = generate(generation, params);
  return choose(pool, systems[params.generation], systems.slice(params.generation + 1), params);
}

/** Supports in the order of their first proposal, their counts, and the recurrence pi of every term. */
function generate(systems, params) {
  const J = systems[0].J,
    known = new Map(),
    supports = [],
    counts = [],
    places = [];
  for (const system of systems) {
    const normal = (system.normal ??= normalize(system));
    for (const multiplier of params.multipliers) {
      const x = stlsq(normal, multiplier * params.lam0, params.ridge, params.max_iterations);
      const support = supportOf(x),
        key = support.join();
      if (!known.has(key)) {
        known.set(key, supports.length);
        supports.push(support);
        counts.push(0);
      }
      counts[known.get(key)] += 1;
      places.push(known.get(key));
    }
  }
  const proposals = systems.length * params.multipliers.length;
  const pi = Array.from(
    { length: J },
    (_, j) => supports.reduce((sum, s, i) => sum + (s.includes(j) ? counts[i] : 0), 0) / proposals,
  );
  return { supports, counts, pi, proposals, places };
}

/** Steps 4 to 8: filter by recurrence, refit, validate, the smallest within one standard error. */
function choose(pool, fit, validation, params) {
  const stable = pool.pi.flatMap((value, j) => (value >= params.tau ? [j] : []));
  const inside = pool.supports.flatMap((support, i) => (support.every((j) => stable.includes(j)) ? [i] : []));
  const eligible = inside.length ? inside : pool.supports.map((_, i) => i);
  const normal = (fit.normal ??= normalize(fit));
  const rows = eligible.map((index) => {
    const xi = physical(normal, solveOn(normal, pool.supports[index], params.ridge));
    const risks = validation.map((system) => {
      const { squares, scale } = residual(system, xi);
      return squares / (scale + params.epsilon);
    });
    return {
      index,
      support: pool.supports[index],
      count: pool.counts[index],
      xi: Array.from(xi),
      risks,
      ...meanAndError(risks),
    };
  });
  const best = rows.reduce((a, b) => (b.mu < a.mu ? b : a));
  const bound = best.mu + best.se;
  for (const row of rows) row.admissible = row.mu <= bound;
  const winner = rows.filter((row) => row.admissible).reduce((a, b) => (precedes(b, a) ? b : a));
  return {
    ...pool,
    stable,
    fallback: !inside.length,
    rows,
    bound,
    winner: rows.indexOf(winner),
    xi: winner.xi,
    support: winner.support,
  };
}

/** Indices of the nonzero coefficients. */
function supportOf(x) {
  return Array.from(x).flatMap((value, j) => (value !== 0 ? [j] : []));
}

function meanAndError(risks) {
  const n = risks.length,
    mu = risks.reduce((a, b) => a + b, 0) / n;
  const squares = risks.reduce((sum, r) => sum + (r - mu) ** 2, 0);
  return { mu, se: n > 1 ? Math.sqrt(squares / (n - 1)) / Math.sqrt(n) : 0 };
}

function precedes(a, b) {
  const keys = (row) => [row.support.length, row.mu, -row.count, row.index];
  const left = keys(a),
    right = keys(b);
  for (let i = 0; i < left.length; i++) if (left[i] !== right[i]) return left[i] < right[i];
  return false;
}
