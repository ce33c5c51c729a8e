"""Verdicts where the truth is not on the list, or the instrument errs: the second benchmark.

Of every three seeds two draw an equation beyond the default library, the third one inside it that a faulty
instrument measures; classes and defects take turns, so that a part of the runs is a fair sample of all.
Settings are decided on seeds of the development range; the others are run once.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fts.lab.studies import records, runs
from fts.lab.studies.calibration import interval
from fts.lab.studies.records import RunRecord, grouped
from fts.lab.studies.runs import Task, equation_of, study
from fts.params.paper import DEFAULT_LIBRARIES
from fts.problems import metrics
from fts.problems.outside import (
    CLASSES,
    DEFECTS,
    DefectProblem,
    OutsideProblem,
    draw_defect,
    draw_outside,
)

DEVELOPMENT = range(10_000, 100_000)
BENCHMARK = range(300_000, 300_660)
OUTSIDE, DEFECT = "outside", "defect"
# From this share of u_t on a missing part should keep an equation from being called identified.
SHARE = 0.05
# Standard errors beyond which a coefficient is wrong, and within which nineteen of twenty should lie.
FAR, NEAR = 4.0, 2.0


@dataclass(frozen=True)
class Rate:
    """So many of so many, with a 95 % interval."""

    count: int
    runs: int

    def __str__(self) -> str:
        if not self.runs:
            return "–"
        low, high = interval(self.count, self.runs)
        return f"{self.count}/{self.runs} = {self.count / self.runs:.0%} ({low:.0%} to {high:.0%})"


def is_wrong(run: RunRecord) -> bool:
    """Called identified though a part of u_t is missing, or a term or a coefficient is wrong."""
    if run.extra["status"] != "identified":
        return False
    if run.row == OUTSIDE:
        return run.extra["share"] >= SHARE and not run.score["exact"]
    return not run.score["exact"] or _beyond(run, FAR) > 0


def wrong(made: Iterable[RunRecord]) -> Rate:
    """Wrong and called identified, of all problems that count: those whose missing part is no trifle."""
    counted = [run for run in made if not run.error and counts(run)]
    return Rate(sum(map(is_wrong, counted)), len(counted))


def counts(run: RunRecord) -> bool:
    """Whether a run takes part in the rates of wrong answers."""
    return run.row == DEFECT or run.extra["share"] >= SHARE


def named(made: Iterable[RunRecord]) -> Rate:
    """The missing term named, of problems whose missing part has a name and is no trifle."""
    runs = [r for r in made if not r.error and r.row == OUTSIDE and r.extra["names"] and counts(r)]
    return Rate(sum(map(names_missing, runs)), len(runs))


def names_missing(run: RunRecord) -> bool:
    """Whether a reason of the verdict, or the equation itself, has the missing part by one of its names."""
    text = " ".join((*run.terms, *run.extra["reasons"])).replace(",", " ").replace(";", " ").split()
    return bool(set(run.extra["names"]) & set(text))


def called(made: Iterable[RunRecord]) -> Rate:
    """Called identified, of the right answers within four standard errors."""
    right = [r for r in made if not r.error and r.row == DEFECT and r.score["exact"] and not _beyond(r, FAR)]
    return Rate(sum(r.extra["status"] == "identified" for r in right), len(right))


def covered(made: Iterable[RunRecord]) -> Rate:
    """Coefficients within two standard errors, of identified equations with the right terms."""
    runs = [r for r in made if not r.error and r.row == DEFECT]
    runs = [r for r in runs if r.extra["status"] == "identified" and r.score["exact"]]
    return Rate(
        sum(len(r.terms) - _beyond(r, NEAR) for r in runs),
        sum(len(r.terms) for r in runs),
    )


def by(made: Iterable[RunRecord], group: Callable[[RunRecord], Any]) -> dict[Any, list[RunRecord]]:
    """Finished runs by the value of `group`, sorted."""
    groups = grouped((group(run), run) for run in made if not run.error)
    return {name: groups[name] for name in sorted(groups)}


def axis(run: RunRecord) -> str:
    """The kind of axes a run's problem lives on."""
    if run.extra["dimension"] > 1:
        return "2D, periodic" if run.extra["periodic"] else "2D, open"
    return "ring" if run.extra["periodic"] else "open axis"


def run_beyond(task: Task, folder: Path | None = None) -> RunRecord:
    """The record of one problem: what is missing or errs, the verdict, and how far its numbers are off."""
    from fts.discovery.discover import discover

    def perform() -> dict[str, Any]:
        problem = _drawn(task)
        samples = problem.observations
        began = time.process_time()
        result = discover(samples, progress=False, params=task.params)
        seconds = round(time.process_time() - began, 3)
        values = {} if result.selection is None else result.selection.coefficients
        extra = _described(problem) | {
            "samples": len(samples),
            "noise": samples.noise,
            "dimension": samples.domain.dimension,
            "periodic": all(samples.domain.periodic),
            "errors": result.standard_errors,
            "status": result.verdict.status,
            "margin": result.verdict.as_dict()["margin"],
            "reasons": list(result.verdict.reasons),
        }
        score = metrics.score(result.equation, equation_of(extra["truth"])).as_dict()
        score["exact"] = score["exact"] and extra["complete"]
        return {"terms": values, "score": score, "seconds": seconds, "extra": extra}

    return runs.attempt(task, perform)


def _drawn(task: Task) -> OutsideProblem | DefectProblem:
    if task.row == DEFECT:
        return draw_defect(task.seed, task.problem)
    kind = next(each for each in CLASSES if each.name == task.problem)
    return draw_outside(task.seed, kind, DEFAULT_LIBRARIES[kind.axes])


def _described(problem: OutsideProblem | DefectProblem) -> dict[str, Any]:
    """What a record keeps of a problem; `complete` where its terms state all of the equation."""
    if isinstance(problem, DefectProblem):
        terms = zip(problem.truth.terms, problem.truth.coefficients, strict=True)
        return {
            "family": problem.family,
            "complete": True,
            "truth": {str(term): float(c) for term, c in terms},
        }
    return {
        "family": problem.family,
        "complete": problem.complete,
        "truth": dict(problem.known),
        "equations": dict(problem.truth),
        "names": list(problem.names),
        "share": problem.share,
        "unexplained": problem.unexplained,
    }


def _beyond(run: RunRecord, errors: float) -> int:
    """How many coefficients of a record are further from the truth than so many standard errors."""
    truth, size = run.extra["truth"], run.extra["errors"]
    return sum(abs(c - truth.get(name, 0.0)) > errors * size[name] for name, c in run.terms.items())


def check_beyond(folder: Path) -> Iterator[str]:
    """Differences between a record's score and the score of its terms against the truth it records."""
    for run in records.read_study("beyond", folder):
        if run.error:
            continue
        score = metrics.score(equation_of(run.terms), equation_of(run.extra["truth"]))
        exact = score.exact and run.extra["complete"]
        if exact != run.score["exact"] or not np.isclose(score.e_xi, run.score["e_xi"]):
            yield f"beyond: seed {run.seed} is recorded as {run.score}, its terms give {score}"


@study(
    "beyond",
    run=run_beyond,
    seeds={"test": BENCHMARK, "development": DEVELOPMENT[:150]},
    score=None,
    check=check_beyond,
)
def verdicts_beyond(seeds: Iterable[int] = BENCHMARK) -> Iterator[Task]:
    """Verdicts with default settings where the truth is not on the list, or the instrument errs."""
    from fts.discovery.evidence import VERDICT

    defects = tuple(DEFECTS)
    for seed in seeds:
        turn, third = divmod(seed, 3)
        if third == 2:
            row, name = DEFECT, defects[turn % len(defects)]
        else:
            row, name = OUTSIDE, CLASSES[(2 * turn + third) % len(CLASSES)].name
        yield Task("beyond", name, "drawn", seed, 0.0, row, "discover", VERDICT)
