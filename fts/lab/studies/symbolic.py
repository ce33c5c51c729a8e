"""Functions beyond a library: plans, what their runs record, scores, and the cells of Table 3.

Laws: d_xx q(u) with q searched (the paper's Section F). Rivals: Operon on pairs (u, q), as the paper has
PySR; records take the rule "score", which recovers more power laws on the development seeds.
Composed: two functions and the operators before them searched together, on problems with known answers.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from fts.equations.equation import Equation
from fts.equations.terms import Term, factor_and_text
from fts.fields.frozen import Field, TabulatedField
from fts.lab.studies import runs
from fts.lab.studies.records import RunRecord, cell_label, grouped, read_study
from fts.lab.studies.runs import Task, equation_of, study
from fts.observations import Observations
from fts.params.paper import PAPER
from fts.params.types import FieldParams
from fts.problems import metrics
from fts.problems.problems import names, problem
from fts.problems.trajectories import simulate

# The searches and their settings are imported by plans and runs: tables, which only read records, need none.

PROBLEM = "diffusion"
ROWS = ("paper", "paper, thawed", "kernel", "kernel, weighted", "kernel, thawed")
_NOISE = (0.0, 0.05, 0.1)
_COMPOSED_NOISE = (0.0, 0.05)
# PySR's rules for one function of a front; the record's own is the last one.
RULES = ("best", "score")
_KEPT = 10  # right-hand sides that a record lists


@dataclass(frozen=True)
class LawSummary:
    """One row of Table 3: recoveries of the power law, mean and sample deviation of its numbers."""

    runs: int
    recovered: int
    kappa: float | None
    kappa_deviation: float | None
    m: float | None
    m_deviation: float | None


def run(task: Task, folder: Path | None = None) -> RunRecord:
    """The record of a search for functions; nothing is kept in `folder`."""
    search = {"symbolic": _law, "Operon": _rival, "composed": _composed}[task.method]

    def perform() -> dict[str, Any]:
        observations = task.observations()
        results = search(observations, task.params, task.seed)
        return results | {"field_key": runs.field_key(task, observations)}

    return runs.attempt(task, perform)


def score_law(terms: Mapping[str, float], name: str = PROBLEM) -> dict[str, Any]:
    """What a recorded function scores against the true one."""
    return metrics.score_function(equation_of(terms), problem(name).equation, _states(name))


def score_composed(terms: Mapping[str, float], name: str) -> dict[str, Any]:
    """What a recorded right-hand side scores against the true one."""
    return metrics.score_parts(equation_of(terms), problem(name).equation, _states(name))


def exponent() -> float:
    """The exponent of the law that generated the data."""
    degree = problem(PROBLEM).equation.terms[0].q.degree
    assert degree is not None  # a power law
    return degree


def laws(made: Iterable[RunRecord]) -> dict[tuple[str, float], LawSummary]:
    """Cells of Table 3 by row and noise; numbers are of the runs that recover the power law."""
    cells = grouped(((record.row, record.noise), record.score) for record in made)
    return {cell: summarize_laws(scores) for cell, scores in cells.items()}


def rule_laws(made: Iterable[RunRecord]) -> dict[tuple[str, float], LawSummary]:
    """Cells like those of Table 3 by row with its rule, and noise."""
    pairs = product(made, RULES)
    scored = ((run, rule, {} if run.error else run.extra["selectors"][rule]) for run, rule in pairs)
    cells = grouped(((f"{run.row}, {rule}", run.noise), score) for run, rule, score in scored)
    return {cell: summarize_laws(scores) for cell, scores in cells.items()}


def summarize_laws(scores: list[dict[str, Any]]) -> LawSummary:
    """Recoveries, and mean and deviation of their numbers; an empty score is a failed run."""
    recovered = [score for score in scores if score and score["exact"]]

    def spread(name: str) -> tuple[float | None, float | None]:
        values = [score[name] for score in recovered]
        mean = float(np.mean(values)) if values else None
        return mean, float(np.std(values, ddof=1)) if len(values) > 1 else None

    return LawSummary(len(scores), len(recovered), *spread("kappa"), *spread("m"))


def tables(folder: Path) -> dict[str, Any]:
    """Table 3 by row and noise, for review."""
    cells = laws(read_study("symbolic", folder))
    table = {cell_label((row, PROBLEM, "S20", noise)): asdict(law) for (row, noise), law in cells.items()}
    return {"symbolic, power laws": table}


@study(run=run, score=score_law, tables=tables)
def symbolic(seeds: Iterable[int]) -> Iterator[Task]:
    """Table 3: a function beyond any library, on the paper's fields and on kernel fields, and thawed."""
    from fts.symbolic.discover import THAW, WEIGH, SymbolicRunParams
    from fts.symbolic.search import SYMBOLIC

    fields = {"paper": _paper_field(), "kernel": FieldParams("kernel")}
    for level, seed, recipe in product(_NOISE, seeds, fields):
        for row, thaw in ((recipe, None), (f"{recipe}, thawed", THAW)):
            params = SymbolicRunParams(fields[recipe], SYMBOLIC, thaw)
            yield Task("symbolic", PROBLEM, "S20", seed, level, row, "symbolic", params)
    for level, seed in product(_NOISE, seeds):
        params = SymbolicRunParams(fields["kernel"], SYMBOLIC, None, WEIGH)
        yield Task("symbolic", PROBLEM, "S20", seed, level, "kernel, weighted", "symbolic", params)


def _law(observations: Observations, params: Any, seed: int) -> dict[str, Any]:
    """Terms, score, and compactly the pool, the searches and the seconds."""
    from fts.symbolic.discover import discover_function

    discovery = discover_function(observations, params, np.random.default_rng(seed))
    terms = terms_of(discovery.equation)
    score = score_law(terms) | {"e_u": metrics.field_error(discovery.field, simulate(PROBLEM))}
    chosen, thawed = discovery.selection.chosen, discovery.thawed
    extra: dict[str, Any] = {
        "family": discovery.form.family,
        "q": str(discovery.form),
        "risk": chosen.risk,
        "complexity": chosen.form.complexity,
        "core_seconds": discovery.seconds,
        "pool": [_pooled(fitted) for fitted in discovery.selection.pool],
        "searches": [_history(search) for search in discovery.selection.searches],
    }
    if thawed is not None:
        extra["thawed"] = {"deviations": thawed.deviations.tolist(), "misfit": thawed.misfit}
    return {"terms": terms, "score": score, "extra": extra}


def terms_of(equation: Equation) -> dict[str, float]:
    """{"D_xx(u^1.7)": 0.1}, as records hold equations."""
    (term,), (coefficient,) = equation.terms, equation.coefficients
    factor, body = factor_and_text(term)
    return {body: float(coefficient) * factor}


def _pooled(fitted: Any) -> dict[str, Any]:
    form, risks = fitted.form, {"proposal_risk": fitted.proposed.proposal_risk, "risks": list(fitted.risks)}
    parts = {name: list(map(list, getattr(form, name))) for name in ("numerator", "denominator")}
    words = {"family": form.family, "complexity": form.complexity, "start": str(fitted.start)}
    return words | parts | risks


def _history(search: Any) -> dict[str, list[Any]]:
    """Per generation: the best risk and tree, the population's median risk, families seen."""
    return {
        "best": [generation.best_risk for generation in search.history],
        "tree": [generation.best for generation in search.history],
        "median": [float(np.median(generation.risks)) for generation in search.history],
        "families": [generation.families for generation in search.history],
    }


@study(run=run, score=score_law)
def symbolic_rivals(seeds: Iterable[int]) -> Iterator[Task]:
    """Table 3, a rival measured: Operon on pairs from the full noisy grid, the paper's and kernel fields."""
    from fts.symbolic.rivals import OPERON, TARGET, RivalRunParams

    fields = {"full grid": None, "paper": _paper_field(), "kernel": FieldParams("kernel")}
    for level, seed, (name, field) in product(_NOISE, seeds, fields.items()):
        params, protocol = RivalRunParams(field, TARGET, OPERON), "S100" if field is None else "S20"
        yield Task("symbolic_rivals", PROBLEM, protocol, seed, level, f"Operon, {name}", "Operon", params)


def _rival(observations: Observations, params: Any, seed: int) -> dict[str, Any]:
    from fts.symbolic.rivals import choose_from, operon_front, spline_target

    field = read_field(observations, params.field)
    began = time.process_time()
    front = operon_front(spline_target(field, params.target), params.operon, seed)
    seconds = round(time.process_time() - began, 3)
    e_u = metrics.field_error(field, simulate(PROBLEM))
    chosen: dict[str, dict[str, Any]] = {}
    for rule in RULES:
        terms = terms_of(Equation((Term((2, 0, 0), 1.0, choose_from(front, rule).q),), [1.0]))
        chosen[rule] = score_law(terms) | {"e_u": e_u, "terms": terms}
    score = dict(chosen[RULES[-1]])
    listed = [{"q": str(each.q), "size": each.size, "error": each.error} for each in front]
    extra = {"selectors": chosen, "front": listed, "core_seconds": seconds}
    return {"terms": score.pop("terms"), "score": score, "extra": extra}


def read_field(observations: Observations, params: FieldParams | None) -> Field:
    """The frozen field; without a recipe, the samples of a grid as they are, noise and all."""
    from fts.fitting import obtain_frozen

    if params is not None:
        return obtain_frozen(observations, params)
    grid = observations.grid
    if grid is None or grid.axes is None:
        raise ValueError(f"{len(observations)} scattered samples fill no grid: take S100, or a recipe")
    return TabulatedField((*grid.axes, grid.frames), grid.values, observations.domain)


@study(run=run, score=score_composed)
def symbolic_composed(seeds: Iterable[int]) -> Iterator[Task]:
    """Beyond the paper: operators and two functions searched together, clean and with 5 % noise."""
    from fts.symbolic.composed import COMPOSED, ComposedRunParams

    params = ComposedRunParams(FieldParams("kernel"), COMPOSED)
    for level, name, seed in product(_COMPOSED_NOISE, names("further"), seeds):
        yield Task("symbolic_composed", name, "S20", seed, level, "kernel", "composed", params)


def _composed(observations: Observations, params: Any, seed: int) -> dict[str, Any]:
    from fts.fitting import obtain_frozen
    from fts.symbolic.composed import select_terms

    assert observations.problem is not None
    field = obtain_frozen(observations, params.field)
    choice = select_terms(field, params.composed, np.random.default_rng(seed))
    terms = terms_of_parts(choice.chosen.parts)
    score = score_composed(terms, observations.problem)
    score["e_u"] = metrics.field_error(field, simulate(observations.problem))
    penalty, compared = params.composed.symbolic.continuous.penalty, []
    for side in choice.compared[:_KEPT]:
        parts = [[part.order, part.form.family, str(part.form)] for part in side.parts]
        values = {"risk": side.risk, "numbers": side.numbers, "score": side.score(penalty)}
        compared.append({"parts": parts} | values)
    extra = {"compared": compared, "right_hand_sides": len(choice.compared), "core_seconds": choice.seconds}
    return {"terms": terms, "score": score, "extra": extra}


def terms_of_parts(parts: Iterable[Any]) -> dict[str, float]:
    """{"D_xx(u^1.73)": 0.1, "u": -0.3}, as records hold equations."""
    pairs = (factor_and_text(Term((part.order, 0, 0), 1.0, part.form.expression)) for part in parts)
    return {body: factor for factor, body in pairs}


def _paper_field() -> FieldParams:
    return FieldParams("paper", PAPER[PROBLEM].adapter)


def _states(name: str) -> tuple[float, float]:
    """The range of states of a problem's reference field."""
    u = simulate(name).u
    return float(u.min()), float(u.max())
