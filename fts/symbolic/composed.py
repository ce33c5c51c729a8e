"""Frozen field -> u_t = D_1 q_1(u) + D_2 q_2(u): the search also chooses the operators and how many terms.

The paper fixes the operator and one function. Here every operator alone and every two together are searched.
While q_1 is sought, a spline in u stands in for q_2: its weak columns are projected out of the system, so the
search sees an equation with one unknown function, whatever the other one is. Representatives of both are
then paired, refitted jointly on an independent system, and compared on held-out systems by the same rule,
mean risk + penalty * complexity, with the count of numbers as the complexity.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np

from fts.domain import Domain
from fts.fields.frozen import Field
from fts.params.types import FieldParams
from fts.symbolic import select
from fts.symbolic.families import Form
from fts.symbolic.occupation import PatchParams, StateSystem, spline_basis
from fts.symbolic.search import SYMBOLIC, Candidate, SearchSystems, SymbolicParams, search
from fts.symbolic.select import RunSystems, Summand, scaled_form


@dataclass(frozen=True)
class ComposedParams:
    """The search with a choice of operators and up to two terms; not in the paper."""

    symbolic: SymbolicParams = SYMBOLIC
    orders: tuple[int, ...] = (0, 1, 2)  # derivatives in x that may stand before a function
    terms: int = 2  # most terms
    stand_in: int = 7  # splines in u that stand in for the other function while one is sought
    partners: int = 5  # families kept per operator, each paired with each of the other's
    joint_evaluations: int = 200  # of the residual, in the joint fit of all numbers of a right-hand side
    extents: tuple[float, float] = (1.0, 0.3)  # of the domain that the half-widths of the patches belong to


@dataclass(frozen=True)
class ComposedRunParams:
    """A search for operators and functions on samples."""

    field: FieldParams
    composed: ComposedParams


COMPOSED = ComposedParams()


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
    systems = select.run_systems(field, symbolic, rng, params.orders)
    marks.append(time.process_time())
    sets = [orders for size in range(1, params.terms + 1) for orders in combinations(params.orders, size)]
    params = replace(params, symbolic=symbolic)
    pools = [[_proposals(order, orders, systems, params, rng) for order in orders] for orders in sets]
    marks.append(time.process_time())
    choices = [(orders, forms) for orders, pool in zip(sets, pools, strict=True) for forms in product(*pool)]
    sums = [tuple(map(Summand, orders, forms)) for orders, forms in choices]
    refitted = [_compose(terms, systems, symbolic, params.joint_evaluations) for terms in sums]
    compared = [composed for composed in refitted if composed is not None]
    if not compared:
        raise ValueError("no expression explains u_t on the weak systems: enlarge the population")
    compared.sort(key=lambda composed: composed.score(symbolic.continuous.penalty))
    marks.append(time.process_time())
    return ComposedSelection(compared[0], tuple(compared), select.stage_seconds(marks))


def on_domain(patches: PatchParams, params: ComposedParams, domain: Domain) -> PatchParams:
    """The patches in the same proportion to this domain as they have to the one they were given for."""
    x, t = (new / old for new, old in zip(domain.extents, params.extents, strict=True))
    (a, b), (c, d) = patches.search_half_widths, patches.refit_half_widths
    return replace(patches, search_half_widths=(a * x, b * t), refit_half_widths=(c * x, d * t))


def project_out(system: StateSystem, order: int, others: Sequence[int], splines: int) -> StateSystem:
    """The system for the one function behind d_x^order, any functions behind the others projected out.

    Its columns are stored at order 2, where the search expects them.
    """
    columns, b = system.on_states[order], system.b
    if others:
        basis = spline_basis(system.states[0], system.states[-1], splines)(system.states)
        stand_in = np.concatenate([system.on_states[other] @ basis for other in others], axis=1)
        left, sizes, _ = np.linalg.svd(stand_in, full_matrices=False)
        left = left[:, sizes > 1e-10 * sizes[0]]  # a derivative sees no constant
        columns, b = columns - left @ (left.T @ columns), b - left @ (left.T @ b)
    return StateSystem(system.states, {2: columns}, b)


def _compose(
    terms: tuple[Summand, ...], systems: RunSystems, params: SymbolicParams, evaluations: int
) -> Composed | None:
    """The terms refitted jointly, with their held-out risks; None where one has a pole."""
    parts = select.fit_numbers(terms, systems.refit, params, evaluations=evaluations)
    if parts is None:
        return None
    u = select.positive_states(systems.refit, params)
    residuals = [select.right_hand_side(parts, system, u) - system.b for system in systems.validation]
    sizes = [system.b @ system.b for system in systems.validation]
    return Composed(parts, tuple(float(r @ r / size) for r, size in zip(residuals, sizes, strict=True)))


def _proposals(
    order: int, orders: tuple[int, ...], systems: RunSystems, params: ComposedParams, rng: np.random.Generator
) -> list[Form]:
    """The families that explain d_x^order q(u) best, beside any functions behind the other orders."""
    others, symbolic = [other for other in orders if other != order], params.symbolic

    def rank(candidate: Candidate) -> float:
        assert candidate.form is not None
        return candidate.proposal_risk + symbolic.continuous.penalty * candidate.form.complexity

    results = []
    for each in systems.searches:
        three = (each.fit, each.generation, each.validation)
        alone = SearchSystems(*(project_out(system, order, others, params.stand_in) for system in three))
        results.append(search(alone, symbolic, rng))
    pool = sorted(select.merge(tuple(results), symbolic), key=rank)
    return [scaled_form(candidate) for candidate in pool[: params.partners]]
