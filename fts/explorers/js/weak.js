// Field -> weak system: the same patches, test functions and quadrature as fts/weak.

import { softplusInPlace } from "./field.js";
import { accumulateRow } from "./linear.js";
import { evaluate, naturalPower } from "./terms.js";

/** {A [m, J], b [m], m, J} of the library on the patch grid shifted by `phase`. */
export function assemble(field, library, weak, phase) {
  checkGeometry(field, library, weak);
  const centers = patchCenters(field, weak, phase);
  const axes = centers.map((axis, a) => axisNodes(axis, weak.half_widths[a], weak.quadrature[a][0]));
  const groups = plan(library, field.dimension);
  const reduced = contractTime(field, axes, groups, weak);
  const m = weak.patches.reduce((a, b) => a * b, 1),
    J = library.length;
  const A = new Float64Array(m * J),
    b = new Float64Array(m);
  for (const group of groups) {
    for (const { place, factor, orders } of group.columns) {
      const column = group.q
        ? contractSpace(reduced.get(group).get(orders.at(-1)), orders, weak)
        : constantColumn(group, orders, weak, m);
      for (let l = 0; l < m; l++) {
        if (place < 0) b[l] = factor * column[l];
        else A[l * J + place] = factor * column[l];
      }
    }
  }
  for (const values of [A, b])
    if (!values.every(Number.isFinite)) throw new Error("a column is not finite on this field: drop that term");
  return { A, b, m, J };
}

function checkGeometry(field, library, weak) {
  const order = Math.max(1, ...library.map((term) => term.alpha.reduce((a, b) => a + b, 0)));
  if (weak.power <= order)
    throw new Error(
      `The power p = ${weak.power} must exceed the highest derivative order, ${order}: boundary terms would survive integration by parts.`,
    );
  weak.half_widths.forEach((h, a) => {
    if (!(2 * h < field.high[a] - field.low[a]))
      throw new Error(
        `A patch of half-width ${h} does not fit into an axis of length ${field.high[a] - field.low[a]}.`,
      );
  });
}

/** Centers per axis: low + h + (i + phase) spacing, spacing = (extent - 2 h) / n. */
export function patchCenters(field, weak, phase) {
  return weak.patches.map((n, a) => {
    const h = weak.half_widths[a],
      extent = field.high[a] - field.low[a];
    return Float64Array.from({ length: n }, (_, i) => field.low[a] + h + ((i + phase[a]) * (extent - 2 * h)) / n);
  });
}

function axisNodes(centers, h, nodes) {
  const points = new Float64Array(centers.length * nodes.length);
  centers.forEach((center, i) => nodes.forEach((s, k) => (points[i * nodes.length + k] = center + h * s)));
  return points;
}

/** The derivative of the given order of (1 - s^2)^p, by Leibniz on (1 - s)^p (1 + s)^p. */
function bump(s, p, order) {
  let total = 0,
    binomial = 1;
  for (let k = 0; k <= order; k++) {
    const falling = fallingFactorial(p, k) * (k % 2 ? -1 : 1) * fallingFactorial(p, order - k);
    if (falling) total += binomial * falling * (1 - s) ** (p - k) * (1 + s) ** (p - order + k);
    binomial *= (order - k) / (k + 1);
  }
  return Math.abs(s) < 1 ? total : 0;
}

function fallingFactorial(p, k) {
  let value = 1;
  for (let i = 0; i < k; i++) value *= p - i;
  return value;
}

/** Weights of a derivative of the test function along axis a. */
function weights(weak, a, order) {
  const [nodes, plain] = weak.quadrature[a],
    h = weak.half_widths[a];
  return Float64Array.from(nodes, (s, k) => bump(s, weak.power, order) * plain[k] * h ** (1 - order));
}

/** Columns by q, so that each q(u) is evaluated once; place -1 is b = -<u, d_t psi>. */
function plan(library, dimension) {
  const zero = Array(dimension).fill(0);
  const groups = new Map([
    ["u", { q: [[[["u", null, 1]], 1]], columns: [{ place: -1, factor: -1, orders: [...zero, 1] }] }],
  ]);
  library.forEach((term, place) => {
    const constant = term.q.length === 1 && !term.q[0][0].length;
    const key = naturalPower(term.q) === 1 ? "u" : JSON.stringify(term.q);
    const order = term.alpha.reduce((a, b) => a + b, 0);
    if (!groups.has(key))
      groups.set(key, constant ? { q: null, value: term.q[0][1], columns: [] } : { q: term.q, columns: [] });
    groups.get(key).columns.push({
      place,
      factor: (order % 2 ? -1 : 1) * term.scale,
      orders: [...term.alpha.slice(0, dimension), 0],
    });
  });
  return [...groups.values()];
}

/** Per group and time order, the integrals over time: [spatial nodes, patches in time]; u passes through one row at a time. */
function contractTime(field, axes, groups, weak) {
  const { F, G } = field.halves(axes);
  const columns = field.space.columns,
    T = axes.at(-1).length,
    n = F.length / columns;
  const nodes = weak.nodes.at(-1),
    patches = weak.patches.at(-1);
  const bumps = [0, 1].map((order) => weights(weak, weak.nodes.length - 1, order));
  const targets = new Map();
  for (const group of groups) {
    if (!group.q) continue;
    const orders = [...new Set(group.columns.map((column) => column.orders.at(-1)))];
    targets.set(group, new Map(orders.map((order) => [order, new Float64Array(n * patches)])));
  }
  const u = new Float64Array(T),
    values = new Float64Array(T);
  for (let i = 0; i < n; i++) {
    accumulateRow(u.fill(0), 0, F, i * columns, G, columns, T);
    if (field.positive) softplusInPlace(u);
    for (const [group, byOrder] of targets) {
      const row = rowValues(group, u, values);
      for (const [order, target] of byOrder) segments(row, bumps[order], nodes, patches, target, i * patches);
    }
  }
  return targets;
}

function rowValues(group, u, values) {
  group.power ??= naturalPower(group.q) ?? 0;
  const n = group.power;
  if (n === 1) return u;
  if (n === 2) for (let i = 0; i < u.length; i++) values[i] = u[i] * u[i];
  else if (n === 3) for (let i = 0; i < u.length; i++) values[i] = u[i] * u[i] * u[i];
  else evaluate(group.q, u, values);
  return values;
}

function segments(row, bumpWeights, nodes, patches, target, at) {
  for (let patch = 0, k = 0; patch < patches; patch++) {
    let sum = 0;
    for (let i = 0; i < nodes; i++, k++) sum += bumpWeights[i] * row[k];
    target[at + patch] = sum;
  }
}

/** Remaining axes, last first: [outer, patches * nodes, inner] -> [outer, patches, inner]. */
function contractSpace(values, orders, weak) {
  const d = orders.length - 1;
  let current = values,
    inner = weak.patches[d];
  for (let a = d - 1; a >= 0; a--) {
    const nodes = weak.nodes[a],
      patches = weak.patches[a];
    const w = weights(weak, a, orders[a]);
    const outer = current.length / (nodes * patches * inner);
    const next = new Float64Array(outer * patches * inner);
    for (let o = 0; o < outer * patches; o++) {
      for (let k = 0; k < nodes; k++) {
        const from = (o * nodes + k) * inner,
          factor = w[k];
        for (let i = 0; i < inner; i++) next[o * inner + i] += factor * current[from + i];
      }
    }
    current = next;
    inner *= patches;
  }
  return current;
}

function constantColumn(group, orders, weak, m) {
  const total = orders.reduce(
    (product, order, a) => product * weights(weak, a, order).reduce((s, w) => s + w, 0),
    group.value,
  );
  return new Float64Array(m).fill(total);
}
