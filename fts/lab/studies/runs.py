"""One run of a study: Task -> Selection -> Score -> RunRecord.

A task says everything that makes the run, so its record's key is known before it starts.

Our method's configurations as tasks: the paper's own, better fields, rows weighted by their variance.
"""

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fts.discovery.discover import discover
from fts.discovery.evidence import VERDICT, VerdictParams
from fts.equations.equation import Equation
from fts.equations.terms import Library
from fts.fitting import field_key
from fts.lab.studies import symbolic
from fts.lab.studies.records import RunRecord
from fts.methods import Method, method
from fts.observations import Observations
from fts.params.paper import CLOSED_FORM, DEFAULT_LIBRARIES, LARGE_LIBRARIES, PAPER, PROJECTED, REFINED
from fts.params.types import FieldParams, FreezeThenSelectParams, named
from fts.problems import metrics
from fts.problems.problems import Problem, problem
from fts.problems.trajectories import observe, simulate
from fts.selection.selection import Selection
from fts.symbolic.composed import ComposedRunParams
from fts.symbolic.discover import SymbolicRunParams
from fts.symbolic.rivals import RivalRunParams

# A beam proposes hundreds of supports: their best are recorded.
_TOLD = 8
# The method of a user who leaves everything to `fts.discover`.
DISCOVER = "discover"
# The library of a user who gives none.
GENERAL = "general"


@dataclass(frozen=True)
class Task:
    """One run asked for: a method with its settings on the observations of a problem."""

    study: str
    problem: str
    protocol: str
    seed: int
    noise: float
    row: str  # of the table
    method: str
    params: Any  # the method's own settings class
    library: str = ""  # name of a large library, or GENERAL, where it is not the problem's own

    @property
    def key(self) -> str:
        """The key of the record this task will make."""
        return record(self).key

    def observations(self) -> Observations:
        """The samples the method is given."""
        return observe(simulate(self.problem), self.protocol, seed=self.seed, noise=self.noise)


def run(task: Task, by: Method | None = None, *, trainings: Path | None = None) -> RunRecord:
    """The finished run, or its record with the error: a study never stops at one run.

    `by` stands in for the task's method where something more than its selection is wanted of it. A method
    that trains keeps its state in the folder `trainings`, and a run that was killed goes on from there.
    """
    state = training_file(trainings, task.key) if trainings else None
    return attempt(task, lambda began: _perform(task, began, by, state))


def training_file(folder: Path, key: str) -> Path:
    """Where the state of an unfinished training is kept."""
    return folder / f"{key}.fts"


def attempt(task: Task, perform: Callable[[float], RunRecord]) -> RunRecord:
    """What `perform` makes, given the time it began, or the record of the error that ended it."""
    began = time.perf_counter()
    try:
        return perform(began)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error} ({Path(where.filename).name}, line {where.lineno})"
        return failure(task, text, _seconds(began))


def failure(task: Task, error: str, seconds: float = 0.0) -> RunRecord:
    """The record of a run that did not finish."""
    return record(task, error=error, seconds=seconds)


def describe(found: Selection, truth: Equation) -> dict[str, Any]:
    """What a record keeps of a selection beside its score, as far as the method has it."""
    kept: dict[str, Any] = {f"{stage}_seconds": spent for stage, spent in found.seconds.items()}
    made = getattr(found.field, "made", None)
    if made is not None:
        kept["field_parameters"] = dict(made.parameters)
    if found.trace is not None:
        table = found.trace.table()
        kept |= {
            "recurrence": found.recurrence,
            "reason": found.trace.reason,
            "fallback": found.trace.fallback,
            "candidates": telling(table) if found.method == "two fields" else table,
        }
    if found.refits:
        kept |= {"preferred": found.preferred, "refits": _refits(found, truth)}
        kept["deviations"] = found.deviations
    if found.notes:
        kept["notes"] = dict(found.notes)
    if found.variants:
        kept["selectors"] = {
            name: metrics.score(one, truth).as_dict() | {"terms": one.coefficients}
            for name, one in found.variants.items()
        }
    return kept


def telling(candidates: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The chosen candidate and those of lowest risk, in the order of the pool."""
    limit = sorted(one["mu"] for one in candidates)[:_TOLD][-1]
    return [one for one in candidates if one["chosen"] or one["mu"] <= limit]


def _perform(task: Task, began: float, by: Method | None, state: Path | None) -> RunRecord:
    entry, observations = problem(task.problem), task.observations()
    rng = np.random.default_rng(task.seed)
    came_out = _function_came_out(task, observations, rng)
    if came_out is not None:
        return record(task, **came_out, seconds=_seconds(began), field_key=_field_key(task, observations))
    library = _offered(task, entry)
    chosen = by or (discovered if task.method == DISCOVER else method(task.method, state))
    found = chosen(observations, library, task.params, rng)
    score = metrics.score(found, entry.equation).as_dict()
    if found.field is not None:
        score["e_u"] = metrics.field_error(found.field, simulate(task.problem))
    made = getattr(found.field, "made", None)
    return record(
        task,
        terms=found.coefficients,
        score=score,
        seconds=_seconds(began),
        device=made.device if made is not None else "cpu",
        field_key=_field_key(task, observations),
        extra=describe(found, entry.equation),
    )


def _offered(task: Task, entry: Problem) -> Library:
    if task.library == GENERAL:
        return Library.parse(DEFAULT_LIBRARIES[entry.domain.dimension])
    return Library.parse(LARGE_LIBRARIES[task.library]) if task.library else entry.library


def discovered(
    observations: Observations, library: Library, params: VerdictParams, rng: np.random.Generator
) -> Selection:
    """What `fts.discover` selects, with its verdict in the notes; nothing is drawn from `rng`."""
    found = discover(observations, library.names, progress=False, params=params)
    if found.selection is None:
        raise ValueError(f"{found.verdict.status}: {'; '.join(found.verdict.reasons)}")
    notes = {"status": found.verdict.status, "reasons": list(found.verdict.reasons)}
    return replace(found.selection, field=found.field, notes=notes)


def _function_came_out(
    task: Task, observations: Observations, rng: np.random.Generator
) -> dict[str, Any] | None:
    """What a search for functions leaves in its record; None for a method that selects terms."""
    match task.params:
        case SymbolicRunParams():
            return symbolic.record_law(observations, task.params, rng)
        case RivalRunParams():
            return symbolic.record_rival(observations, task.params, task.seed)
        case ComposedRunParams():
            return symbolic.record_composed(observations, task.params, rng)
    return None


def _field_key(task: Task, observations: Observations) -> str:
    """The key of the frozen field a method selects on; empty for methods that fit none apart."""
    params = getattr(task.params, "field", None)
    return field_key(observations, params) if params is not None else ""


def _refits(found: Selection, truth: Equation) -> dict[str, dict[str, Any]]:
    each = {name: found.with_refit(name) for name in found.refits}
    return {
        name: {
            "e_xi": metrics.score(one, truth).e_xi,
            "risk": found.refits[name].risk,
            "terms": one.coefficients,
        }
        for name, one in each.items()
    }


def record(task: Task, **came_out: Any) -> RunRecord:
    """The record of a task with what came out of it."""
    return RunRecord(
        study=task.study,
        problem=task.problem,
        protocol=task.protocol,
        row=task.row,
        method=task.method,
        seed=task.seed,
        noise=task.noise,
        parameters=named(task.params) | ({"library": task.library} if task.library else {}),
        source="generated",
        **came_out,
    )


def _seconds(began: float) -> float:
    return round(time.perf_counter() - began, 3)


OURS = "freeze, then select"


def paper_task(study: str, problem: str, protocol: str, seed: int, recipe: str = "paper") -> Task:
    """The paper's own configuration, or a variant of its adapter, with its ridge refit."""
    used = PAPER[problem]
    params = FreezeThenSelectParams(FieldParams(recipe, used.adapter), used.weak, used.svws, "ridge")
    return Task(study, problem, protocol, seed, 0.0, recipe, OURS, params)


def refined_task(study: str, problem: str, protocol: str, seed: int, recipe: str) -> Task:
    """A better field, with quadrature that does not limit it and the refit that held-out rows prefer."""
    used = PAPER[problem]
    weak = REFINED.get(problem, used.weak) if recipe in CLOSED_FORM else used.weak
    field = FieldParams(recipe, PROJECTED if recipe == "projected" else None)
    params = FreezeThenSelectParams(field, weak, used.svws, "preferred")
    return Task(study, problem, protocol, seed, 0.0, recipe, OURS, params)


def weighted_task(study: str, problem: str, protocol: str, seed: int) -> Task:
    """The kernel field again, with rows weighted by its posterior variance."""
    base = refined_task(study, problem, protocol, seed, "kernel")
    return replace(base, row="kernel, weighted", params=replace(base.params, refit="weighted"))


def discover_task(study: str, problem: str, protocol: str, seed: int, noise: float) -> Task:
    """What a user gets who says nothing: `fts.discover` on the samples."""
    return Task(study, problem, protocol, seed, noise, DISCOVER, DISCOVER, VERDICT)
