"""Frozen field -> q of u_t = d_xx q(u): search, freeze the pool, refit, validate, choose (Section F).

searches, each on three shifted systems -> one representative per family -> merged, frozen pool
-> continuous refit on an independent system -> mean risk on held-out systems + penalty * complexity
"""

import time
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fts.fields.frozen import Field
from fts.params.types import WeakParams
from fts.symbolic.families import Form
from fts.symbolic.occupation import StateSystem, state_systems
from fts.symbolic.refit import positive_states, refit
from fts.symbolic.search import Evolved, Judged, SearchSystems, search
from fts.symbolic.settings import SymbolicParams


@dataclass(frozen=True)
class Fitted:
    """One family of the pool after its refit."""

    proposed: Judged
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
    searches: tuple[Evolved, ...]
    seconds: dict[str, float]  # of the core, per stage


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
    searches = tuple(search(one, params, rng) for one in systems.searches)
    marks.append(time.process_time())
    pool = choose(merge(searches, params), systems, params)
    marks.append(time.process_time())
    stages = ("systems", "search", "choice")
    seconds = {stage: round(b - a, 4) for stage, (a, b) in zip(stages, pairwise(marks), strict=True)}
    return SymbolicSelection(pool[0], pool, searches, seconds)


def run_systems(field: Field, params: SymbolicParams, rng: np.random.Generator) -> RunSystems:
    """The systems of a run: three per search, one to refit, and those that validate."""
    patches, count = params.patches, params.evolution.searches
    kinds: list[WeakParams] = [patches.proposal, patches.proposal, patches.judging] * count
    kinds += [patches.refit] + [patches.judging] * params.continuous.validations
    made = state_systems(field, [(kind, rng.random(2)) for kind in kinds], patches.states)
    searches = tuple(SearchSystems(*made[3 * i : 3 * i + 3]) for i in range(count))
    return RunSystems(searches, made[3 * count], tuple(made[3 * count + 1 :]))


def merge(searches: tuple[Evolved, ...], params: SymbolicParams) -> tuple[Judged, ...]:
    """The pool: the best representative of every family that can be refitted, best first."""
    limits = params.continuous
    every = [one for found in searches for one in found.representatives.values()]
    pool: dict[str, Judged] = {}
    for one in sorted(every, key=lambda one: one.proposal_risk):
        form = one.form
        assert form is not None  # constants represent no family
        if form.parameters.size <= limits.max_parameters and bool(form.denominator) <= limits.max_divisions:
            pool.setdefault(form.family, one)
    if not pool:
        raise ValueError("no expression explains u_t on the weak systems: enlarge the population")
    return tuple(pool.values())[: limits.candidates]


def choose(pool: tuple[Judged, ...], systems: RunSystems, params: SymbolicParams) -> tuple[Fitted, ...]:
    """The pool refitted and validated, in the order of the score."""
    u = positive_states(systems.refit, params)
    fitted = []
    for one in pool:
        assert one.form is not None
        start = scaled(one.form, one.scale)
        form = refit(start, systems.refit, params)
        if form is not None:
            q = form.values(u)
            fitted.append(Fitted(one, start, form, tuple(system.risk(q) for system in systems.validation)))
    if not fitted:
        raise ValueError("every expression of the pool has a pole on this field: enlarge the population")
    return tuple(sorted(fitted, key=lambda one: one.score(params.continuous.penalty)))


def scaled(form: Form, factor: float) -> Form:
    return Form(tuple((e, factor * c) for e, c in form.numerator), form.denominator)
