"""Frozen field -> u_t = D_1 q_1(u) + D_2 q_2(u): the search also chooses the operators and how many terms.

The paper fixes the operator and one function. Here every operator alone and every two together are searched.
While q_1 is sought, a spline in u stands in for q_2: its weak columns are projected out of the system, so the
core's search sees an equation with one unknown function, whatever the other one is. Representatives of
both are then paired, refitted jointly on an independent system, and compared on held-out systems by the
core's rule, mean risk + penalty * complexity, with the numbers in it for the complexity.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.optimize import least_squares

from fts.domain import Domain
from fts.fields.frozen import Field
from fts.symbolic.families import Form
from fts.symbolic.occupation import StateSystem, state_systems
from fts.symbolic.refit import bounds, has_pole, positive_states
from fts.symbolic.rivals import spline_basis
from fts.symbolic.search import Judged, SearchSystems, search
from fts.symbolic.select import merge, scaled
from fts.symbolic.settings import ComposedParams, PatchParams, SymbolicParams


@dataclass(frozen=True)
class Summand:
    """One term d_x^order q(u)."""

    order: int
    form: Form


@dataclass(frozen=True)
class Composed:
    """One right-hand side after its joint refit."""

    parts: tuple[Summand, ...]
    risks: tuple[float, ...]  # on the held-out systems

    @property
    def risk(self) -> float:
        """Mean held-out risk."""
        return float(np.mean(self.risks))

    @property
    def numbers(self) -> int:
        """Coefficients and exponents in all functions.

        They stand for the complexity. Nodes cannot tell c u^p / (1 + c u^r) from c / (1 + c u^r), which for
        p = r are one function up to a constant; numbers prefer the second, and recover more on the
        development seeds.
        """
        return sum(part.form.parameters.size for part in self.parts)

    def score(self, penalty: float) -> float:
        """What the choice minimizes."""
        return self.risk + penalty * self.numbers


@dataclass(frozen=True)
class ComposedSelection:
    """The chosen right-hand side, all that were compared, and the CPU seconds of the stages."""

    chosen: Composed
    compared: tuple[Composed, ...]  # ascending in score
    seconds: dict[str, float]


def select_terms(field: Field, params: ComposedParams, rng: np.random.Generator) -> ComposedSelection:
    """The sum of terms that held-out weak systems prefer."""
    marks = [time.process_time()]
    symbolic = replace(params.symbolic, patches=on_domain(params.symbolic.patches, params, field.domain))
    searches, refit, validation = _systems(field, symbolic, params, rng)
    marks.append(time.process_time())
    sets = [chosen for size in range(1, params.terms + 1) for chosen in combinations(params.orders, size)]
    proposed = [
        (orders, [_proposals(order, orders, searches, symbolic, params, rng) for order in orders])
        for orders in sets
    ]
    marks.append(time.process_time())
    compared = [
        found
        for orders, pools in proposed
        for forms in product(*pools)
        if (found := _compare(orders, forms, refit, validation, symbolic, params.joint_evaluations))
        is not None
    ]
    if not compared:
        raise ValueError("no expression explains u_t on the weak systems: enlarge the population")
    marks.append(time.process_time())
    compared.sort(key=lambda one: one.score(symbolic.continuous.penalty))
    systems, searched, chosen = np.diff(marks).round(4).tolist()
    seconds = {"systems": systems, "search": searched, "choice": chosen}
    return ComposedSelection(compared[0], tuple(compared), seconds)


def on_domain(patches: PatchParams, params: ComposedParams, domain: Domain) -> PatchParams:
    """The patches in the same proportion to this domain as they have to the one they were given for."""
    x, t = (new / old for new, old in zip(domain.extents, params.extents, strict=True))
    (a, b), (c, d) = patches.search_half_widths, patches.refit_half_widths
    return replace(patches, search_half_widths=(a * x, b * t), refit_half_widths=(c * x, d * t))


def against(system: StateSystem, order: int, others: Sequence[int], splines: int) -> StateSystem:
    """The system for the one function behind d_x^order, any functions behind the others projected out.

    Its columns stand where the core looks for them, at order 2.
    """
    columns, b = system.on_states[order], system.b
    if others:
        basis = spline_basis(system.states[0], system.states[-1], splines)(system.states)
        stand_in = np.concatenate([system.on_states[other] @ basis for other in others], axis=1)
        left, sizes, _ = np.linalg.svd(stand_in, full_matrices=False)
        left = left[:, sizes > 1e-10 * sizes[0]]  # a derivative sees no constant
        columns, b = columns - left @ (left.T @ columns), b - left @ (left.T @ b)
    return StateSystem(system.states, {2: columns}, b)


def joint_refit(
    parts: tuple[Summand, ...], system: StateSystem, params: SymbolicParams, evaluations: int
) -> tuple[Summand, ...] | None:
    """All functions with the numbers that fit `system` best together; None where one has a pole."""
    u, size = positive_states(system, params), np.linalg.norm(system.b)
    ends = np.cumsum([part.form.parameters.size for part in parts])[:-1]
    low, high = (
        np.concatenate(each) for each in zip(*(bounds(part.form, params) for part in parts), strict=True)
    )
    start = np.clip(np.concatenate([part.form.parameters for part in parts]), low, high)

    def at(values: Float[np.ndarray, " n"]) -> tuple[Summand, ...]:
        numbers = np.split(values, ends)
        return tuple(Summand(p.order, p.form.with_parameters(v)) for p, v in zip(parts, numbers, strict=True))

    def residuals(values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " m"]:
        found = at(values)
        if any(has_pole(part.form, u) for part in found):
            return np.full(system.b.shape, np.nan)  # the solver halves such a step
        return (_right_hand_side(found, system, u) - system.b) / size

    def jacobian(values: Float[np.ndarray, " n"]) -> Float[np.ndarray, "m n"]:
        columns = [system.on_states[part.order] @ part.form.jacobian(u) for part in at(values)]
        return np.concatenate(columns, axis=1) / size

    if not np.isfinite(residuals(start)).all():
        return None
    derivative: Any = jacobian  # SciPy's stubs know only the names of its own difference schemes
    found = least_squares(
        residuals, start, derivative, bounds=(low, high), x_scale="jac", max_nfev=evaluations
    )
    return at(found.x)


def _right_hand_side(parts: tuple[Summand, ...], system: StateSystem, u: np.ndarray) -> np.ndarray:
    return sum((system.column(part.form.values(u), part.order) for part in parts), np.zeros_like(system.b))


def _compare(
    orders: tuple[int, ...],
    forms: tuple[Form, ...],
    refit: StateSystem,
    validation: Sequence[StateSystem],
    params: SymbolicParams,
    evaluations: int,
) -> Composed | None:
    parts = joint_refit(tuple(map(Summand, orders, forms)), refit, params, evaluations)
    if parts is None:
        return None
    u = positive_states(refit, params)
    residuals = [_right_hand_side(parts, system, u) - system.b for system in validation]
    return Composed(
        parts, tuple(float(r @ r / (s.b @ s.b)) for r, s in zip(residuals, validation, strict=True))
    )


def _proposals(
    order: int,
    orders: tuple[int, ...],
    searches: Sequence[SearchSystems],
    symbolic: SymbolicParams,
    params: ComposedParams,
    rng: np.random.Generator,
) -> list[Form]:
    """The families that explain d_x^order q(u) best, beside any functions behind the other orders."""
    others = [other for other in orders if other != order]
    evolved = []
    for systems in searches:
        three = (systems.fit, systems.generation, systems.validation)
        alone = SearchSystems(*(against(one, order, others, params.stand_in) for one in three))
        evolved.append(search(alone, symbolic, rng))
    pool = sorted(merge(tuple(evolved), symbolic), key=lambda one: _rank(one, symbolic))
    return [scaled(one.form, one.scale) for one in pool[: params.partners] if one.form is not None]


def _rank(one: Judged, symbolic: SymbolicParams) -> float:
    assert one.form is not None
    return one.proposal_risk + symbolic.continuous.penalty * one.form.complexity


def _systems(
    field: Field, symbolic: SymbolicParams, params: ComposedParams, rng: np.random.Generator
) -> tuple[list[SearchSystems], StateSystem, list[StateSystem]]:
    """Three systems per search, one to refit and those that validate, with the columns of every operator."""
    patches, count = symbolic.patches, symbolic.evolution.searches
    kinds = [patches.proposal, patches.proposal, patches.judging] * count
    kinds += [patches.refit] + [patches.judging] * symbolic.continuous.validations
    made = state_systems(field, [(kind, rng.random(2)) for kind in kinds], patches.states, params.orders)
    searches = [SearchSystems(*made[3 * i : 3 * i + 3]) for i in range(count)]
    return searches, made[3 * count], made[3 * count + 1 :]
