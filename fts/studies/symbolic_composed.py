"""The study of two terms with operators that are searched too, on problems with known answers."""

from typing import Any

import numpy as np

from fts import metrics
from fts.data.problems import problem
from fts.data.trajectories import simulate
from fts.equations.equation import Equation
from fts.equations.terms import Term, parse_term, split
from fts.observations import Observations
from fts.params.rivals import ComposedRunParams
from fts.recipes import obtain_frozen
from fts.symbolic.composed import Composed, Summand, select_terms

STUDY = "symbolic_composed"
_KEPT = 10  # right-hand sides that a record lists


def came_out(
    observations: Observations, params: ComposedRunParams, rng: np.random.Generator
) -> dict[str, Any]:
    """Terms, score and the rest of the record of one run."""
    assert observations.problem is not None
    field = obtain_frozen(observations, params.field)
    found = select_terms(field, params.composed, rng)
    terms = terms_of_parts(found.chosen.parts)
    score = score_terms(terms, observations.problem)
    score["e_u"] = metrics.field_error(field, simulate(observations.problem))
    penalty = params.composed.symbolic.continuous.penalty
    compared = [_described(one, penalty) for one in found.compared[:_KEPT]]
    extra = {"compared": compared, "right_hand_sides": len(found.compared), "core_seconds": found.seconds}
    return {"terms": terms, "score": score, "extra": extra}


def terms_of_parts(parts: tuple[Summand, ...]) -> dict[str, float]:
    """{"D_xx(u^1.73)": 0.1, "u": -0.3}, as records hold equations."""
    pairs = (split(Term((part.order, 0, 0), 1.0, part.form.expression)) for part in parts)
    return {body: factor for factor, body in pairs}


def score_terms(terms: dict[str, float], name: str) -> dict[str, Any]:
    """What a recorded right-hand side scores against the true one."""
    found = Equation(tuple(parse_term(text) for text in terms), list(terms.values()))
    u = simulate(name).u
    return metrics.score_parts(found, problem(name).equation, (float(u.min()), float(u.max())))


def _described(one: Composed, penalty: float) -> dict[str, Any]:
    parts = [[part.order, part.form.family, str(part.form)] for part in one.parts]
    return {"parts": parts, "risk": one.risk, "numbers": one.numbers, "score": one.score(penalty)}
