"""The study of symbolic regression on values of q: Operon on the pairs that the paper gives PySR (Section F).

A record's own function is the one the rule "score" takes of Operon's front, which recovers more power laws on
the development seeds; under `selectors` stand both of PySR's rules.
"""

import time
from collections.abc import Iterable
from typing import Any, get_args

from fts import metrics
from fts.data.trajectories import simulate
from fts.equations.equation import Equation
from fts.equations.terms import Term
from fts.fields.frozen import Field
from fts.fields.given import TabulatedField
from fts.observations import Observations
from fts.params import FieldParams
from fts.params.rivals import RivalRunParams
from fts.recipes import obtain_frozen
from fts.studies import symbolic
from fts.studies.records import RunRecord
from fts.symbolic.fronts import FrontRule, choose_from
from fts.symbolic.operon import operon_front
from fts.symbolic.targets import spline_target

STUDY = "symbolic_rivals"
_OWN_RULE: FrontRule = "score"


def came_out(observations: Observations, params: RivalRunParams, seed: int) -> dict[str, Any]:
    """Terms, score and the rest of the record of one run."""
    field = read_field(observations, params.field)
    began = time.process_time()
    front = operon_front(spline_target(field, params.target), params.operon, seed)
    seconds = round(time.process_time() - began, 3)
    e_u = metrics.field_error(field, simulate(symbolic.PROBLEM))
    chosen: dict[str, dict[str, Any]] = {}
    for rule in get_args(FrontRule):
        term = Term((2, 0, 0), 1.0, choose_from(front, rule).q)
        terms = symbolic.terms_of(Equation((term,), [1.0]))
        chosen[rule] = symbolic.score_terms(terms) | {"e_u": e_u, "terms": terms}
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


def rule_laws(runs: Iterable[RunRecord]) -> dict[tuple[str, float], symbolic.LawSummary]:
    """Cells like those of Table 3 by row with its rule, and noise."""
    groups: dict[tuple[str, float], list[dict[str, Any]]] = {}
    for one in runs:
        for rule in get_args(FrontRule):
            score = one.extra["selectors"][rule] if not one.error else {}
            groups.setdefault((f"{one.row}, {rule}", one.noise), []).append(score)
    return {place: symbolic.summarize_laws(scores) for place, scores in groups.items()}
