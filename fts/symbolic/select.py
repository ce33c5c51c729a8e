"""Frozen field -> q of u_t = d_xx q(u): search, freeze the pool, refit, validate, choose (Section F).

searches, each on three shifted systems -> one representative per family -> merged, frozen pool
-> continuous refit on an independent system -> mean risk on held-out systems + penalty * complexity
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.optimize import least_squares

from fts.fields.frozen import Field
from fts.params.types import WeakParams
from fts.symbolic.families import Form
from fts.symbolic.occupation import StateSystem, state_systems
from fts.symbolic.search import Candidate, SearchResult, SearchSystems, SymbolicParams, search


@dataclass(frozen=True)
class Summand:
    """One term d_x^order q(u) of a right-hand side."""

    order: int
    form: Form


@dataclass(frozen=True)
class Fitted:
    """One family of the pool after its refit."""

    proposed: Candidate
    start: Form  # the representative in canonical form, with its scale
    form: Form
    risks: tuple[float, ...]  # on the held-out systems

    @property
    def risk(self) -> float:
        """Mean held-out risk."""
        return float(np.mean(self.risks))

    def score(self, penalty: float) -> float:
        """What the choice minimizes."""
        return self.risk + penalty * self.form.complexity


@dataclass(frozen=True)
class SymbolicSelection:
    """The chosen function beside everything it was chosen from."""

    chosen: Fitted
    pool: tuple[Fitted, ...]  # ascending in score
    searches: tuple[SearchResult, ...]
    seconds: dict[str, float]  # CPU time per stage


@dataclass(frozen=True)
class RunSystems:
    """All weak systems of one run, on one grid of states; no two share a phase."""

    searches: tuple[SearchSystems, ...]
    refit: StateSystem
    validation: tuple[StateSystem, ...]


def select_function(field: Field, params: SymbolicParams, rng: np.random.Generator) -> SymbolicSelection:
    """The function that held-out weak systems prefer, penalized by its complexity."""
    marks = [time.process_time()]
    systems = run_systems(field, params, rng)
    marks.append(time.process_time())
    searches = tuple(search(three, params, rng) for three in systems.searches)
    marks.append(time.process_time())
    pool = choose(merge(searches, params), systems, params)
    marks.append(time.process_time())
    return SymbolicSelection(pool[0], pool, searches, stage_seconds(marks))


def run_systems(
    field: Field, params: SymbolicParams, rng: np.random.Generator, orders: tuple[int, ...] = (2,)
) -> RunSystems:
    """The systems of a run: three per search, one to refit, and those that validate."""
    patches, count = params.patches, params.evolution.searches
    kinds: list[WeakParams] = [patches.proposal, patches.proposal, patches.judging] * count
    kinds += [patches.refit] + [patches.judging] * params.continuous.validations
    systems = state_systems(field, [(kind, rng.random(2)) for kind in kinds], patches.states, orders)
    searches = tuple(SearchSystems(*systems[3 * i : 3 * i + 3]) for i in range(count))
    return RunSystems(searches, systems[3 * count], tuple(systems[3 * count + 1 :]))


def merge(searches: tuple[SearchResult, ...], params: SymbolicParams) -> tuple[Candidate, ...]:
    """The pool: the best representative of every family that can be refitted, best first."""
    limits = params.continuous
    representatives = [candidate for each in searches for candidate in each.representatives.values()]
    pool: dict[str, Candidate] = {}
    for candidate in sorted(representatives, key=lambda candidate: candidate.proposal_risk):
        form = candidate.form
        assert form is not None  # constants represent no family
        if form.parameters.size <= limits.max_parameters and bool(form.denominator) <= limits.max_divisions:
            pool.setdefault(form.family, candidate)
    if not pool:
        raise ValueError("no expression explains u_t on the weak systems: enlarge the population")
    return tuple(pool.values())[: limits.candidates]


def choose(pool: tuple[Candidate, ...], systems: RunSystems, params: SymbolicParams) -> tuple[Fitted, ...]:
    """The pool refitted and validated, in the order of the score."""
    u = positive_states(systems.refit, params)
    fitted = []
    for candidate in pool:
        start = scaled_form(candidate)
        form = refit(start, systems.refit, params)
        if form is not None:
            q = form.values(u)
            risks = tuple(system.risk(q) for system in systems.validation)
            fitted.append(Fitted(candidate, start, form, risks))
    if not fitted:
        raise ValueError("every expression of the pool has a pole on this field: enlarge the population")
    return tuple(sorted(fitted, key=lambda family: family.score(params.continuous.penalty)))


def refit(form: Form, system: StateSystem, params: SymbolicParams) -> Form | None:
    """The form with the numbers that fit `system` best within the bounds; None where it has a pole."""
    fitted = fit_numbers((Summand(2, form),), system, params)
    return None if fitted is None else fitted[0].form


def fit_numbers(
    terms: tuple[Summand, ...],
    system: StateSystem,
    params: SymbolicParams,
    *,
    evaluations: int | None = None,
    weighted: Callable[[np.ndarray], np.ndarray] | None = None,
) -> tuple[Summand, ...] | None:
    """All functions with the numbers that fit `system` best together; None where one has a pole.

    Bounded least squares of the rows, `weighted` or divided by the norm of the left-hand side.
    """
    u, size = positive_states(system, params), np.linalg.norm(system.b)
    rows = weighted or (lambda values: values / size)
    ends = np.cumsum([term.form.parameters.size for term in terms])[:-1]
    low, high = np.concatenate([_bounds(term.form, params) for term in terms], axis=1)
    start = np.clip(np.concatenate([term.form.parameters for term in terms]), low, high)

    def with_numbers(values: Float[np.ndarray, " n"]) -> tuple[Summand, ...]:
        parts = zip(terms, np.split(values, ends), strict=True)
        return tuple(Summand(term.order, term.form.with_parameters(part)) for term, part in parts)

    def residuals(values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " m"]:
        present = with_numbers(values)
        if any(_has_pole(term.form, u) for term in present):
            return np.full(system.b.shape, np.nan)  # the solver halves such a step
        return rows(right_hand_side(present, system, u) - system.b)

    def jacobian(values: Float[np.ndarray, " n"]) -> Float[np.ndarray, "m n"]:
        columns = [system.on_states[term.order] @ term.form.jacobian(u) for term in with_numbers(values)]
        return rows(np.concatenate(columns, axis=1))

    if not np.isfinite(residuals(start)).all():
        return None
    derivative: Any = jacobian  # SciPy's stubs know only the names of its own difference schemes
    limit = params.continuous.evaluations if evaluations is None else evaluations
    fit = least_squares(residuals, start, derivative, bounds=(low, high), x_scale="jac", max_nfev=limit)
    return with_numbers(fit.x)


def right_hand_side(
    terms: tuple[Summand, ...], system: StateSystem, u: Float[np.ndarray, " s"]
) -> Float[np.ndarray, " m"]:
    """The sum of the terms' weak columns."""
    return sum((system.column(term.form.values(u), term.order) for term in terms), np.zeros_like(system.b))


def positive_states(system: StateSystem, params: SymbolicParams) -> Float[np.ndarray, " s"]:
    """What a power sees of the states."""
    return np.maximum(system.states, params.protection.power_floor)


def scaled_form(candidate: Candidate) -> Form:
    """The candidate's canonical form with its fitted scale."""
    assert candidate.form is not None  # constants enter no pool
    numerator = tuple((e, candidate.scale * c) for e, c in candidate.form.numerator)
    return Form(numerator, candidate.form.denominator)


def stage_seconds(marks: list[float]) -> dict[str, float]:
    """CPU seconds of the three stages between four readings of the clock."""
    stages = ("systems", "search", "choice")
    return {stage: round(b - a, 4) for stage, (a, b) in zip(stages, pairwise(marks), strict=True)}


def _has_pole(form: Form, u: np.ndarray) -> bool:
    """Whether the denominator comes near zero or changes its sign among the states."""
    below = form.below(u)
    return bool(below.min() < 1e-3 * max(1.0, float(np.abs(below).max())))


def _bounds(form: Form, params: SymbolicParams) -> np.ndarray:
    """Lower and upper bounds of exponents, of scales (the numerator's coefficients), of other constants."""
    limits, parts = params.continuous, (form.numerator, form.denominator)
    bounds = []
    for part, coefficient in zip(parts, (limits.scale_bounds, limits.constant_bounds), strict=True):
        for exponent, _ in part:
            bounds += [coefficient, limits.exponent_bounds] if exponent else [coefficient]
    return np.array(bounds).T
