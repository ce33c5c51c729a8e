"""Tasks and studies; one run of a task: Task -> Selection -> Score -> RunRecord.

A task holds everything that makes the run, so its record's key is known before it starts.
"""

import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fts.equations.equation import Equation
from fts.equations.terms import Library, parse_term
from fts.lab.studies.provenance import code_version
from fts.lab.studies.records import RunRecord
from fts.observations import Observations
from fts.params import paper
from fts.params.types import FieldParams, FreezeThenSelectParams, named
from fts.problems import metrics
from fts.problems.problems import Problem, problem
from fts.problems.trajectories import observe, simulate
from fts.selection.selection import Selection

# What selects is imported by the run: tables and figures, which only read records, need none of it.

OURS = "freeze, then select"
# The method of a user who leaves everything to `fts.discover`.
DISCOVER = "discover"
# The library of a user who gives none.
GENERAL = "general"
# Supports are proposed by the hundreds when two fields choose: so many of the best are recorded.
_LISTED = 8


@dataclass(frozen=True)
class Task:
    """One planned run: a method with its settings on the observations of a problem."""

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


Plan = Callable[[Iterable[int]], Iterator[Task]]
# A task and the folder of the records -> the record: an error is one, too.
Run = Callable[[Task, Path], RunRecord]


def equation_of(terms: Mapping[str, float]) -> Equation:
    """The equation that a record holds as {term: coefficient}."""
    return Equation(tuple(map(_parsed, terms)), list(terms.values()))


def score_terms(terms: Mapping[str, float], name: str) -> dict[str, Any]:
    """What recorded terms score on a benchmark."""
    return metrics.score(equation_of(terms), _truth(name)).as_dict()


# Thousands of records hold the same few terms and are scored against the same few equations.
_parsed = cache(parse_term)


@cache
def _truth(name: str) -> Equation:
    return problem(name).equation


@dataclass(frozen=True)
class Study:
    """A study, and what follows from its records."""

    name: str  # also of its record file
    plan: Plan
    run: Run
    seeds: Mapping[str, Sequence[int]]
    # Recorded terms and problem -> their score; None where the study checks its scores itself.
    score: Callable[[Mapping[str, float], str], dict[str, Any]] | None = score_terms
    # The folder of the records -> what does not hold.
    check: Callable[[Path], Iterator[str]] = lambda folder: iter(())
    # The folder of the records -> further tables by name.
    tables: Callable[[Path], dict[str, Any]] = lambda folder: {}
    # Whether a recorded run has left all it should.
    complete: Callable[[Task, Path], bool] = lambda task, folder: True
    recorded: bool = True

    def tasks(self, seeds: Iterable[int] | None = None) -> list[Task]:
        """The planned runs, by default of the seeds that tables are made of."""
        return list(self.plan(self.seeds["test"] if seeds is None else tuple(seeds)))


STUDIES: dict[str, Study] = {}


def run(task: Task, folder: Path | None = None, method: Callable[..., Selection] | None = None) -> RunRecord:
    """The finished run, or its record with the error: a study never stops at one run.

    `method` stands in for the task's own where something more than its selection is wanted of it. A method
    that trains keeps its state in the records' `folder`, and a run that was killed goes on from there.
    """
    return attempt(task, lambda: _perform(task, training_file(folder, task) if folder else None, method))


def study(
    name: str = "", *, run: Run = run, seeds: Mapping[str, Sequence[int]] | None = None, **options: Any
) -> Callable[[Plan], Plan]:
    """Registers a plan as a study, by default under the plan's own name; options are fields of Study."""

    def register(plan: Plan) -> Plan:
        known = seeds or {"test": paper.TEST_SEEDS, "development": paper.DEVELOPMENT_SEEDS}
        entry = Study(name or getattr(plan, "__name__", ""), plan, run, known, **options)
        STUDIES[entry.name] = entry
        return plan

    return register


def training_file(folder: Path, run: Task | RunRecord) -> Path:
    """Where the state of an unfinished training is kept, beside the record file."""
    return folder / f"{run.study}.training" / f"{run.key}.fts"


def attempt(task: Task, perform: Callable[[], dict[str, Any]]) -> RunRecord:
    """The record of what `perform` returns, or of the error that ended it."""
    began = time.perf_counter()
    try:
        results = perform()
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error} ({Path(where.filename).name}, line {where.lineno})"
        results = {"error": text}
    made = {"seconds": round(time.perf_counter() - began, 3), "code": code_of(task.study, task.method)}
    return record(task, **made | results)


def code_of(study: str, method: str) -> str:
    """The present version of the code that a run of the study with the method imports."""
    from fts import methods

    run_by = STUDIES[study].run.__module__ if study in STUDIES else __name__
    modules = [] if run_by == __name__ else [run_by]
    if method == DISCOVER:
        modules.append("fts.discovery.discover")
    elif entry := methods.METHODS.get(method):
        training = f"fts.baselines.training.{entry.training}"
        modules.append(training if entry.function is None else entry.function.__module__)
    return code_version(*modules)


def record(task: Task, **results: Any) -> RunRecord:
    """The record of a task with its results."""
    inputs = ("study", "problem", "protocol", "row", "method", "seed", "noise")
    parameters = named(task.params) | ({"library": task.library} if task.library else {})
    values = {name: getattr(task, name) for name in inputs} | results
    return RunRecord(**values, parameters=parameters, source="generated")


def paper_task(study: str, problem: str, protocol: str, seed: int, recipe: str = "paper") -> Task:
    """The paper's own configuration, or a variant of its adapter, with its ridge refit."""
    used = paper.PAPER[problem]
    params = FreezeThenSelectParams(FieldParams(recipe, used.adapter), used.weak, used.svws, "ridge")
    return Task(study, problem, protocol, seed, 0.0, recipe, OURS, params)


def refined_task(study: str, problem: str, protocol: str, seed: int, recipe: str) -> Task:
    """A better field, with quadrature that does not limit it and the refit that held-out rows prefer."""
    used = paper.PAPER[problem]
    weak = paper.REFINED.get(problem, used.weak) if recipe in paper.CLOSED_FORM else used.weak
    field = FieldParams(recipe, paper.PROJECTED if recipe == "projected" else None)
    params = FreezeThenSelectParams(field, weak, used.svws, "preferred")
    return Task(study, problem, protocol, seed, 0.0, recipe, OURS, params)


def weighted_task(study: str, problem: str, protocol: str, seed: int) -> Task:
    """The kernel field again, with rows weighted by its posterior variance."""
    base = refined_task(study, problem, protocol, seed, "kernel")
    return replace(base, row="kernel, weighted", params=replace(base.params, refit="weighted"))


def discover_task(study: str, problem: str, protocol: str, seed: int, noise: float) -> Task:
    """What a user gets who says nothing: `fts.discover` on the samples."""
    from fts.discovery.evidence import VERDICT

    return Task(study, problem, protocol, seed, noise, DISCOVER, DISCOVER, VERDICT)


def describe(selection: Selection, truth: Equation) -> dict[str, Any]:
    """What a record keeps of a selection beside its score, as far as the method has it."""
    kept: dict[str, Any] = {f"{stage}_seconds": spent for stage, spent in selection.seconds.items()}
    made = getattr(selection.field, "made", None)
    if made is not None:
        kept["field_parameters"] = dict(made.parameters)
    if selection.trace is not None:
        table = selection.trace.table()
        table = _best(table) if selection.method == "two fields" else table
        kept |= {"recurrence": selection.recurrence, "candidates": table}
        kept |= {"reason": selection.trace.reason, "fallback": selection.trace.fallback}
    if selection.refits:
        kept |= {"preferred": selection.preferred, "deviations": selection.deviations, "refits": {}}
        for name, refit in selection.refits.items():
            refitted = selection.with_refit(name)
            errors = {"e_xi": metrics.score(refitted, truth).e_xi, "risk": refit.risk}
            kept["refits"][name] = errors | {"terms": refitted.coefficients}
    if selection.notes:
        kept["notes"] = dict(selection.notes)
    if selection.variants:
        kept["selectors"] = {
            name: metrics.score(variant, truth).as_dict() | {"terms": variant.coefficients}
            for name, variant in selection.variants.items()
        }
    return kept


def field_key(task: Task, observations: Observations) -> str:
    """The key of the frozen field a method selects on; empty for methods that fit none apart."""
    from fts import fitting

    params = getattr(task.params, "field", None)
    return fitting.field_key(observations, params) if params is not None else ""


def _perform(task: Task, state: Path | None, method: Callable[..., Selection] | None) -> dict[str, Any]:
    entry, observations = problem(task.problem), task.observations()
    if method is None:
        from fts import methods

        method = _discover if task.method == DISCOVER else methods.method(task.method, state)
    library, rng = _library(task, entry), np.random.default_rng(task.seed)
    selection = method(observations, library, task.params, rng)
    score = metrics.score(selection, entry.equation).as_dict()
    if selection.field is not None:
        score["e_u"] = metrics.field_error(selection.field, simulate(task.problem))
    made = getattr(selection.field, "made", None)
    results = {"terms": selection.coefficients, "score": score, "extra": describe(selection, entry.equation)}
    results |= {"device": made.device if made is not None else "cpu"}
    return results | {"field_key": field_key(task, observations)}


def _library(task: Task, entry: Problem) -> Library:
    if task.library == GENERAL:
        return Library.parse(paper.DEFAULT_LIBRARIES[entry.domain.dimension])
    return Library.parse(paper.LARGE_LIBRARIES[task.library]) if task.library else entry.library


def _discover(observations: Observations, library: Library, params: Any, _: Any) -> Selection:
    """What `fts.discover` selects, with its verdict in the notes; nothing is drawn at random."""
    from fts.discovery.discover import discover

    result = discover(observations, library.names, progress=False, params=params)
    if result.selection is None:
        raise ValueError(f"{result.verdict.status}: {'; '.join(result.verdict.reasons)}")
    notes = {"status": result.verdict.status, "reasons": list(result.verdict.reasons)}
    return replace(result.selection, field=result.field, notes=notes)


def _best(candidates: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The chosen candidate and those of lowest risk, in the order of the pool."""
    limit = sorted(candidate["mu"] for candidate in candidates)[:_LISTED][-1]
    return [candidate for candidate in candidates if candidate["chosen"] or candidate["mu"] <= limit]
