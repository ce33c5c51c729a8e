// What the page asks its worker to compute: one function per question, weak systems kept between questions.

import { pooled } from "./errors.js";
import { FrozenField } from "./field.js";
import { integrate } from "./forward.js";
import { GaussianField } from "./gaussian.js";
import { fieldModes, reconstruct, relativeError } from "./modes.js";
import { drawnPhases } from "./phases.js";
import { normalize, physical, residual, solveOn, stlsq } from "./sparse.js";
import { placesOfRoles, selectFrom } from "./svws.js";
import { assemble, patchCenters } from "./weak.js";

const fields = new Map();
const systems = new Map();
const modesOf = new Map();
// 300 patches x 9 columns are 22 KB: these are at most 9 MB.
const KEPT = 400;

export const TASKS = {
  /** Parse a field once; later questions name it by its key. */
  load({ field, bytes }) {
    if (!fields.has(field)) fields.set(field, new FrozenField(new Uint8Array(bytes)));
  },

  /** A field fitted to samples, its values on a grid, and the selection on its weak systems. */
  async fitted({ samples, axes, ...question }, step) {
    if (!fields.has(question.field)) fields.set(question.field, new GaussianField(samples));
    const u = fields.get(question.field).onGrid(axes);
    return { u, selection: selected(await systemsFor(question, step), question) };
  },

  /** The equation with these coefficients from a state onward. */
  forward({ library, xi, start, length, times, step }) {
    return integrate(library, xi, start, length, times, step);
  },

  /** One weak system and STLSQ on it. */
  system(question) {
    const system = systemFor(question, question.phase),
      { params } = question;
    const normal = (system.normal ??= normalize(system));
    const x = stlsq(normal, question.lam, params.ridge, params.max_iterations);
    const xi = physical(normal, x),
      rest = residual(system, xi);
    const every = solveOn(normal, Array.from(normal.norms.keys()), params.ridge);
    const centers = centersOf(question, question.phase),
      support = Array.from(xi).flatMap((value, j) => (value ? [j] : []));
    return {
      A: system.A,
      b: system.b,
      norms: normal.norms,
      largest: Math.max(...every.map(Math.abs)),
      x,
      xi,
      centers,
      pooled: pooled([system], [centers], support),
      residual: rest.values,
      risk: rest.squares / (rest.scale + params.epsilon),
    };
  },

  /** The whole of Algorithm S1, a step of progress per weak system. */
  async svws(question, step) {
    return selected(await systemsFor(question, step), question);
  },

  /** Coefficients of a support on the fit systems of other draws of patch grids, one row per draw. */
  async redrawn({ seeds, support, ...question }, step) {
    const { params } = question,
      place = params.usual ?? params.generation;
    const phases = seeds.map((seed) => drawnPhases(seed, place + 1, fields.get(question.field).dimension)[place]);
    const all = await systemsAt(question, phases, step);
    return {
      coefficients: all.map((system) => {
        const normal = (system.normal ??= normalize(system));
        return Array.from(physical(normal, solveOn(normal, support, params.ridge)));
      }),
    };
  },

  /** Normalized STLSQ coefficients along the thresholds on one of the systems, and the selection on all of them. */
  async path(question, step) {
    const all = await systemsFor(question, step),
      system = all[question.index],
      { params } = question;
    const normal = (system.normal ??= normalize(system));
    const along = question.lams.map((lam) => Array.from(stlsq(normal, lam, params.ridge, params.max_iterations)));
    const x = stlsq(normal, question.lam, params.ridge, params.max_iterations);
    const xi = physical(normal, x),
      rest = residual(system, xi);
    return {
      along,
      x: Array.from(x),
      xi: Array.from(xi),
      risk: rest.squares / (rest.scale + params.epsilon),
      selection: selected(all, question),
    };
  },

  /** All proposals, the risks of all their supports, and one proposal with its coefficients and patches. */
  async proposals(question, step) {
    const all = await systemsFor(question, step),
      { params, index } = question,
      system = all[index];
    const normal = (system.normal ??= normalize(system));
    const x = stlsq(normal, question.lam, params.ridge, params.max_iterations);
    const phase = phasesOf(question)[index];
    const centers = centersOf(question, phase);
    return {
      xi: Array.from(physical(normal, x)),
      x: Array.from(x),
      centers,
      chosen: selectFrom(all, params),
      every: selectFrom(all, { ...params, tau: 0 }),
    };
  },

  /** u on a uniform grid over the whole domain; [n_x (n_y) n_t] values. */
  grid({ field, shape }) {
    const f = fields.get(field),
      axes = uniformAxes(f, shape);
    return { u: f.onGrid(axes), axes };
  },

  /** Modes, the field truncated to `keep` of them and what that leaves out. */
  modes({ field, shape, basis, keep }) {
    const key = JSON.stringify([field, shape, basis]),
      f = fields.get(field),
      axes = uniformAxes(f, shape);
    if (!modesOf.has(key)) {
      const modes = fieldModes(f, axes, basis);
      modesOf.set(key, { modes, full: reconstruct(modes, modes.rank) });
    }
    const { modes, full } = modesOf.get(key),
      u = reconstruct(modes, keep);
    return { ...modes, axes, full, u, error: relativeError(full, u) };
  },
};

/** The selection on all systems, and the refit of its support on all their rows with standard errors. */
function selected(systems, question) {
  const found = selectFrom(systems, question.params);
  return {
    ...found,
    pooled: pooled(
      systems,
      phasesOf(question).map((phase) => centersOf(question, phase)),
      found.support,
    ),
  };
}

/** The phase of every system, in the order of their roles. */
function phasesOf({ field, params }) {
  const places = placesOfRoles(params);
  const drawn = drawnPhases(params.phase_seed, 1 + Math.max(...places), fields.get(field).dimension);
  return places.map((place) => drawn[place]);
}

function centersOf({ field, weak }, phase) {
  return patchCenters(fields.get(field), weak, phase).map((axis) => Array.from(axis));
}

/** R_g + 1 + R_v systems with the phases of the seed, in the order of their roles. */
async function systemsFor(question, step) {
  return systemsAt(question, phasesOf(question), step);
}

async function systemsAt(question, phases, step) {
  const all = [];
  for (const phase of phases) {
    const known = systems.size;
    all.push(systemFor(question, phase));
    // A kept system takes no time: only those just built are worth a pause for cancelling and progress.
    if (systems.size !== known || systems.size === KEPT) await step(all.length / phases.length);
  }
  return all;
}

function systemFor({ field, library, weak }, phase) {
  const key = JSON.stringify([field, library.map((term) => term.name), weak, phase]);
  let system = systems.get(key);
  if (!system) {
    system = assemble(fields.get(field), library, weak, phase);
    if (systems.size >= KEPT) systems.delete(systems.keys().next().value);
  }
  systems.delete(key);
  systems.set(key, system);
  return system;
}

function uniformAxes(field, shape) {
  return shape.map((n, a) =>
    Float64Array.from({ length: n }, (_, i) => field.low[a] + ((field.high[a] - field.low[a]) * i) / (n - 1)),
  );
}
