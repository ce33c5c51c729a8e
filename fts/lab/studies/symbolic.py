"""The study of functions beyond a library: what a run leaves in its record, and the cells of Table 3.

The study of two terms with operators that are searched too, on problems with known answers.

The study of symbolic regression on values of q: Operon on the pairs that the paper gives PySR (Section F).

A record's own function is the one the rule "score" takes of Operon's front, which recovers more power laws on
the development seeds; under `selectors` stand both of PySR's rules.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from fts.equations.equation import Equation
from fts.equations.terms import Term, factor_and_text, parse_term
from fts.fields.frozen import Field
from fts.fields.given import TabulatedField
from fts.fitting import obtain_frozen
from fts.lab.studies.records import RunRecord
from fts.observations import Observations
from fts.params.types import FieldParams
from fts.problems import metrics
from fts.problems.problems import problem
from fts.problems.trajectories import simulate
from fts.symbolic.composed import Composed, ComposedRunParams, select_terms
from fts.symbolic.discover import FunctionFound, SymbolicRunParams, discover_function
from fts.symbolic.rivals import FrontRule, RivalRunParams, choose_from, operon_front, spline_target
from fts.symbolic.search import SearchResult
from fts.symbolic.select import Fitted, Summand

SYMBOLIC_STUDY = "symbolic"
PROBLEM = "diffusion"
ROWS = ("paper", "paper, thawed", "kernel", "kernel, weighted", "kernel, thawed")


@dataclass(frozen=True)
class LawSummary:
    """One row of Table 3: recoveries of the power law, mean and sample deviation of its numbers."""

    runs: int
    recovered: int
    kappa: float | None
    kappa_deviation: float | None
    m: float | None
    m_deviation: float | None


def record_law(
    observations: Observations, params: SymbolicRunParams, rng: np.random.Generator
) -> dict[str, Any]:
    """Terms, score and the rest of the record of one run."""
    found = discover_function(observations, params, rng)
    terms = terms_of(found.equation)
    score = score_law_terms(terms) | {"e_u": metrics.field_error(found.field, simulate(PROBLEM))}
    return {"terms": terms, "score": score, "extra": describe(found)}


def terms_of(equation: Equation) -> dict[str, float]:
    """{"D_xx(u^1.7)": 0.1}, as records hold equations."""
    (term,), (coefficient,) = equation.terms, equation.coefficients
    factor, body = factor_and_text(term)
    return {body: float(coefficient) * factor}


def score_law_terms(terms: dict[str, float]) -> dict[str, Any]:
    """What a recorded function scores against the true one."""
    found = Equation(tuple(parse_term(text) for text in terms), list(terms.values()))
    u = simulate(PROBLEM).u
    return metrics.score_function(found, problem(PROBLEM).equation, (float(u.min()), float(u.max())))


def describe(found: FunctionFound) -> dict[str, Any]:
    """The pool, the searches and the seconds, compactly."""
    selection = found.selection
    kept: dict[str, Any] = {
        "family": found.form.family,
        "q": str(found.form),
        "risk": selection.chosen.risk,
        "complexity": selection.chosen.form.complexity,
        "core_seconds": found.seconds,
        "pool": [_pooled(one) for one in selection.pool],
        "searches": [_history(one) for one in selection.searches],
    }
    if found.thawed is not None:
        kept["thawed"] = {
            "deviations": found.thawed.deviations.tolist(),
            "misfit": found.thawed.misfit,
        }
    return kept


def exponent() -> float:
    """The exponent of the law that generated the data."""
    degree = problem(PROBLEM).equation.terms[0].q.degree
    assert degree is not None  # a power law
    return degree


def laws(runs: Iterable[RunRecord]) -> dict[tuple[str, float], LawSummary]:
    """Cells of Table 3 by row and noise; numbers are of the runs that recover the power law."""
    groups: dict[tuple[str, float], list[dict[str, Any]]] = {}
    for one in runs:
        groups.setdefault((one.row, one.noise), []).append(one.score)
    return {place: summarize_laws(scores) for place, scores in groups.items()}


def summarize_laws(scores: list[dict[str, Any]]) -> LawSummary:
    """Recoveries, and mean and deviation of their numbers; an empty score is a failed run."""
    recovered = [score for score in scores if score and score["exact"]]

    def of(name: str) -> tuple[float | None, float | None]:
        values = [score[name] for score in recovered]
        mean = float(np.mean(values)) if values else None
        return mean, float(np.std(values, ddof=1)) if len(values) > 1 else None

    return LawSummary(len(scores), len(recovered), *of("kappa"), *of("m"))


def _pooled(one: Fitted) -> dict[str, Any]:
    return {
        "family": one.form.family,
        "complexity": one.form.complexity,
        "start": str(one.start),
        "numerator": [list(pair) for pair in one.form.numerator],
        "denominator": [list(pair) for pair in one.form.denominator],
        "proposal_risk": one.proposed.proposal_risk,
        "risks": list(one.risks),
    }


def _history(one: SearchResult) -> dict[str, list[Any]]:
    """Per generation: the best risk and tree, the population's median risk, families seen."""
    return {
        "best": [generation.best_risk for generation in one.history],
        "tree": [generation.best for generation in one.history],
        "median": [float(np.median(generation.risks)) for generation in one.history],
        "families": [generation.families for generation in one.history],
    }


COMPOSED_STUDY = "symbolic_composed"
_KEPT = 10  # right-hand sides that a record lists


def record_composed(
    observations: Observations, params: ComposedRunParams, rng: np.random.Generator
) -> dict[str, Any]:
    """Terms, score and the rest of the record of one run."""
    assert observations.problem is not None
    field = obtain_frozen(observations, params.field)
    found = select_terms(field, params.composed, rng)
    terms = terms_of_parts(found.chosen.parts)
    score = score_composed_terms(terms, observations.problem)
    score["e_u"] = metrics.field_error(field, simulate(observations.problem))
    penalty = params.composed.symbolic.continuous.penalty
    compared = [_described(one, penalty) for one in found.compared[:_KEPT]]
    extra = {"compared": compared, "right_hand_sides": len(found.compared), "core_seconds": found.seconds}
    return {"terms": terms, "score": score, "extra": extra}


def terms_of_parts(parts: tuple[Summand, ...]) -> dict[str, float]:
    """{"D_xx(u^1.73)": 0.1, "u": -0.3}, as records hold equations."""
    pairs = (factor_and_text(Term((part.order, 0, 0), 1.0, part.form.expression)) for part in parts)
    return {body: factor for factor, body in pairs}


def score_composed_terms(terms: dict[str, float], name: str) -> dict[str, Any]:
    """What a recorded right-hand side scores against the true one."""
    found = Equation(tuple(parse_term(text) for text in terms), list(terms.values()))
    u = simulate(name).u
    return metrics.score_parts(found, problem(name).equation, (float(u.min()), float(u.max())))


def _described(one: Composed, penalty: float) -> dict[str, Any]:
    parts = [[part.order, part.form.family, str(part.form)] for part in one.parts]
    return {"parts": parts, "risk": one.risk, "numbers": one.numbers, "score": one.score(penalty)}


RIVALS_STUDY = "symbolic_rivals"
_OWN_RULE: FrontRule = "score"


def record_rival(observations: Observations, params: RivalRunParams, seed: int) -> dict[str, Any]:
    """Terms, score and the rest of the record of one run."""
    field = read_field(observations, params.field)
    began = time.process_time()
    front = operon_front(spline_target(field, params.target), params.operon, seed)
    seconds = round(time.process_time() - began, 3)
    e_u = metrics.field_error(field, simulate(PROBLEM))
    chosen: dict[str, dict[str, Any]] = {}
    for rule in get_args(FrontRule):
        term = Term((2, 0, 0), 1.0, choose_from(front, rule).q)
        terms = terms_of(Equation((term,), [1.0]))
        chosen[rule] = score_law_terms(terms) | {"e_u": e_u, "terms": terms}
    score = dict(chosen[_OWN_RULE])
    kept = [{"q": str(one.q), "size": one.size, "error": one.error} for one in front]
    return {
        "terms": score.pop("terms"),
        "score": score,
        "extra": {"selectors": chosen, "front": kept, "core_seconds": seconds},
    }


def read_field(observations: Observations, params: FieldParams | None) -> Field:
    """The frozen field; without a recipe, the samples of a grid as they are, noise and all."""
    if params is not None:
        return obtain_frozen(observations, params)
    grid = observations.grid
    if grid is None or grid.axes is None:
        raise ValueError(f"{len(observations)} scattered samples fill no grid: take S100, or a recipe")
    return TabulatedField((*grid.axes, grid.frames), grid.values, observations.domain)


def rule_laws(runs: Iterable[RunRecord]) -> dict[tuple[str, float], LawSummary]:
    """Cells like those of Table 3 by row with its rule, and noise."""
    groups: dict[tuple[str, float], list[dict[str, Any]]] = {}
    for one in runs:
        for rule in get_args(FrontRule):
            score = one.extra["selectors"][rule] if not one.error else {}
            groups.setdefault((f"{one.row}, {rule}", one.noise), []).append(score)
    return {place: summarize_laws(scores) for place, scores in groups.items()}
