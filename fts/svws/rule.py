"""Frozen field -> weak systems -> Candidates -> Selection: stability-validated weak selection (Algorithm S1).

Generation systems propose supports, one fit system gives them coefficients, validation systems compare them.
No system has two roles. The ablations (D.2) take one part of the rule away: single thresholds, no filter,
lowest risk, majority vote; they share the candidates, the refits and the risks.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from fts.equations.terms import Library
from fts.fields.frozen import Field
from fts.params.paper import RELATIVE_THRESHOLD
from fts.params.types import SVWSParams, WeakParams
from fts.selection import refits, sparse
from fts.selection.selection import Candidates, Selection, Trace, standard_error
from fts.weak.assembly import WeakSystem, assemble
from fts.weak.test_functions import phases


def build(
    field: Field, library: Library, weak: WeakParams, params: SVWSParams, *, seed: int | None = None
) -> tuple[WeakSystem, ...]:
    """R_g + 1 + R_v weak systems of one field with independent phases, in the order of their roles."""
    rng = np.random.default_rng(params.phase_seed if seed is None else seed)
    count = params.generation + 1 + params.validation
    drawn = phases(rng, count, field.domain.dimension)
    return tuple(assemble(field, library, weak, phase) for phase in drawn)


def select_from(
    systems: Sequence[WeakSystem], params: SVWSParams, variances: Float[np.ndarray, " m"] | None = None
) -> Selection:
    """SVWS on systems in the order of their roles, with the refits that follow it."""
    generation, fit, validation = roles(systems, params)
    chosen = choose(generate(generation, params), fit, validation, params)
    return refits.with_refits(chosen, (*generation, fit), validation, params, variances)


def relative_threshold(systems: Sequence[WeakSystem]) -> float:
    """A base threshold in the units of b, for a problem that has none of its own."""
    return RELATIVE_THRESHOLD * float(np.median([np.linalg.norm(system.b) for system in systems]))


def roles(
    systems: Sequence[WeakSystem], params: SVWSParams
) -> tuple[tuple[WeakSystem, ...], WeakSystem, tuple[WeakSystem, ...]]:
    """Generation, fit and validation systems; refuses a system, or a phase, that would serve twice."""
    wanted = params.generation + 1 + params.validation
    if len(systems) != wanted:
        raise ValueError(f"{len(systems)} systems for {wanted} roles: build as many as the parameters name")
    if len({system.phase.tobytes() for system in systems}) != wanted:
        raise ValueError("two systems have the same phase: a system may have one role only, draw new phases")
    cut = params.generation
    return tuple(systems[:cut]), systems[cut], tuple(systems[cut + 1 :])


def generate(systems: Sequence[WeakSystem], params: SVWSParams) -> Candidates:
    """Steps 2 and 3: the supports STLSQ proposes over all generation systems and thresholds m lam0."""
    if not systems or not params.multipliers:
        raise ValueError(f"{len(systems)} systems and multipliers {params.multipliers}: give one of each")
    thresholds = tuple(multiplier * params.lam0 for multiplier in params.multipliers)
    proposals, known = np.empty((len(systems), len(thresholds)), dtype=np.int64), {}
    for r, system in enumerate(systems):
        normal = sparse.normalize(system.A, system.b)
        for m, threshold in enumerate(thresholds):
            x = sparse.stlsq(normal, threshold, params.ridge, params.max_iterations)
            support = tuple(int(j) for j in np.flatnonzero(x))
            proposals[r, m] = known.setdefault(support, len(known))
    return Candidates(systems[0].library, tuple(known), proposals, thresholds)


def choose(
    candidates: Candidates, fit: WeakSystem, validation: Sequence[WeakSystem], params: SVWSParams
) -> Selection:
    """Steps 4 to 8: filter by recurrence, refit, validate, take the smallest within one standard error."""
    stable, eligible, fallback = filter_stable(candidates, params.tau)
    xi = refit_all(candidates, eligible, fit, params.ridge)
    risks = validate(xi, validation, params.epsilon)
    admissible = one_standard_error(risks)
    winner = _lexicographic(candidates, eligible, risks, admissible)
    trace = Trace(candidates, params.tau, stable, fallback, eligible, xi, risks, admissible, winner, "")
    return Selection(candidates.library, xi[winner], "svws", replace(trace, reason=_reason(trace)))


def filter_stable(candidates: Candidates, tau: float) -> tuple[tuple[int, ...], tuple[int, ...], bool]:
    """J_tau, the supports within it (C_tau), and whether there were none, so that all stay (step 4)."""
    # pi is a ratio of small integers: 0.5 is met exactly when half of the proposals contain the term.
    stable = tuple(int(j) for j in np.flatnonzero(candidates.pi >= tau))
    inside = tuple(i for i, support in enumerate(candidates.supports) if set(support) <= set(stable))
    return stable, inside or tuple(range(len(candidates.supports))), not inside


def refit_all(
    candidates: Candidates, eligible: Sequence[int], fit: WeakSystem, ridge: float
) -> Float[np.ndarray, "eligible J"]:
    """Step 5: physical coefficients of every eligible support, by ridge on the fit system's unit columns."""
    normal = sparse.normalize(fit.A, fit.b)
    terms = np.arange(len(candidates.library))
    masks = [np.isin(terms, candidates.supports[index]) for index in eligible]
    return np.array([normal.physical(sparse.solve(normal, mask, ridge)) for mask in masks])


def validate(
    xi: Float[np.ndarray, "eligible J"], validation: Sequence[WeakSystem], epsilon: float
) -> Float[np.ndarray, "eligible validation"]:
    """Step 6: r_s(S) = ||A_s xi_S - b_s||^2 / (||b_s||^2 + epsilon)."""
    if not validation:
        raise ValueError("no validation systems: at least one is needed to compare supports")
    columns = []
    for system in validation:
        residual = system.A @ xi.T - system.b[:, None]
        columns.append(np.einsum("me,me->e", residual, residual) / (system.b @ system.b + epsilon))
    return np.stack(columns, axis=1)


def one_standard_error(risks: Float[np.ndarray, "eligible validation"]) -> tuple[int, ...]:
    """Step 7: rows with mu(S) <= mu(S_min) + se(S_min)."""
    mu = risks.mean(axis=1)
    best = int(np.argmin(mu))
    return tuple(int(row) for row in np.flatnonzero(mu <= mu[best] + standard_error(risks)[best]))


def _lexicographic(
    candidates: Candidates, eligible: Sequence[int], risks: np.ndarray, admissible: Sequence[int]
) -> int:
    """Step 8: argmin over the admissible rows of (|S|, mu(S), -v(S)); a full tie goes to the first."""
    mu, counts = risks.mean(axis=1), candidates.counts

    def order(row: int) -> tuple[int, float, int, int]:
        index = eligible[row]
        return len(candidates.supports[index]), float(mu[row]), -counts[index], index

    return min(admissible, key=order)


def _reason(trace: Trace) -> str:
    mu, winner = trace.mu, trace.winner
    sizes = [len(trace.candidates.supports[index]) for index in trace.eligible]
    rivals = [row for row in trace.admissible if row != winner and sizes[row] == sizes[winner]]
    text = "no support was stable, so all were compared; " if trace.fallback else ""
    count, total = len(trace.admissible), len(sizes)
    text += (
        f"{count} of {total} eligible supports have mean risk at most {trace.bound:.3g}, one "
        f"standard error above the lowest ({mu.min():.3g}); this is the smallest, with {sizes[winner]} terms"
    )
    if not rivals:
        return text
    tied = any(mu[row] == mu[winner] for row in rivals)
    last = "generated most often" if tied else f"of lowest risk ({mu[winner]:.3g})"
    return f"{text}, and of {len(rivals) + 1} that small the one {last}"


def single(system: WeakSystem, multiplier: float, params: SVWSParams) -> Selection:
    """Ablation: STLSQ at one threshold on one system, coefficients as STLSQ leaves them."""
    normal = sparse.normalize(system.A, system.b)
    x = sparse.stlsq(normal, multiplier * params.lam0, params.ridge, params.max_iterations)
    return Selection(system.library, normal.physical(x), f"stlsq {multiplier:g}")


def without_filter(
    candidates: Candidates, fit: WeakSystem, validation: Sequence[WeakSystem], params: SVWSParams
) -> Selection:
    """Ablation: every proposed support is eligible (tau = 0), then the rule as it is."""
    chosen = choose(candidates, fit, validation, replace(params, tau=0.0))
    return replace(chosen, method="without stability filter")


def minimum_risk(
    candidates: Candidates, fit: WeakSystem, validation: Sequence[WeakSystem], params: SVWSParams
) -> Selection:
    """Ablation: the support of lowest mean validation risk over the whole pool."""
    trace = without_filter(candidates, fit, validation, params)._traced()
    winner = int(np.argmin(trace.mu))
    reason = f"lowest mean validation risk, {trace.mu[winner]:.3g}"
    trace = replace(trace, winner=winner, reason=reason)
    return Selection(candidates.library, trace.xi[winner], "minimum risk", trace)


def majority(candidates: Candidates, fit: WeakSystem, params: SVWSParams) -> Selection:
    """Ablation: the terms that more than half of the proposals contain, refit on the fit system."""
    vote = candidates.pi > 0.5
    xi = sparse.refit(fit.A, fit.b, vote, params.ridge)
    return Selection(candidates.library, xi, "majority vote")


def variants(systems: Sequence[WeakSystem], params: SVWSParams) -> dict[str, Selection]:
    """What the rule and everything it is compared with select on the same systems, by name."""
    generation, fit, validation = roles(systems, params)
    pool = generate(generation, params)
    every = [
        choose(pool, fit, validation, params),
        *(single(generation[0], multiplier, params) for multiplier in params.multipliers),
        without_filter(pool, fit, validation, params),
        minimum_risk(pool, fit, validation, params),
        majority(pool, fit, params),
    ]
    return {selection.method: selection for selection in every}
