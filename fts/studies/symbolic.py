"""The study of functions beyond a library: what a run leaves in its record, and the cells of Table 3."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fts import metrics
from fts.data.problems import problem
from fts.data.trajectories import simulate
from fts.equations.equation import Equation
from fts.equations.terms import parse_term, split
from fts.observations import Observations
from fts.params import SymbolicRunParams
from fts.studies.records import RunRecord
from fts.symbolic.discover import FunctionFound, discover_function
from fts.symbolic.search import Evolved
from fts.symbolic.select import Fitted

STUDY = "symbolic"
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


def came_out(
    observations: Observations, params: SymbolicRunParams, rng: np.random.Generator
) -> dict[str, Any]:
    """Terms, score and the rest of the record of one run."""
    found = discover_function(observations, params, rng)
    terms = terms_of(found.equation)
    score = score_terms(terms) | {"e_u": metrics.field_error(found.field, simulate(PROBLEM))}
    return {"terms": terms, "score": score, "extra": describe(found)}


def terms_of(equation: Equation) -> dict[str, float]:
    """{"D_xx(u^1.7)": 0.1}, as records hold equations."""
    (term,), (coefficient,) = equation.terms, equation.coefficients
    factor, body = split(term)
    return {body: float(coefficient) * factor}


def score_terms(terms: dict[str, float]) -> dict[str, Any]:
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


def _history(one: Evolved) -> dict[str, list[Any]]:
    """Per generation: the best risk and tree, the population's median risk, families seen."""
    return {
        "best": [generation.best_risk for generation in one.history],
        "tree": [generation.best for generation in one.history],
        "median": [float(np.median(generation.risks)) for generation in one.history],
        "families": [generation.families for generation in one.history],
    }
