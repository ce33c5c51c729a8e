"""Is "identified" to be believed? Random problems nobody tuned for, and what `fts.discover` says about them.

Settings are decided on problems of `DEVELOPMENT`; those of `BENCHMARK` are run once per configuration.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binomtest

from fts.discovery.discover import Discovery, discover
from fts.discovery.evidence import VERDICT
from fts.equations.equation import Equation
from fts.equations.terms import Library
from fts.lab.studies import records, runs
from fts.lab.studies.records import RunRecord
from fts.lab.studies.runs import Task
from fts.params.paper import DEFAULT_LIBRARIES
from fts.problems import metrics
from fts.problems.drawn import DrawnProblem, draw

DEVELOPMENT = range(1_000, 10_000)
BENCHMARK = range(200_000, 200_600)
# Coefficients this near to the truth, in E_xi, make a right support a right answer.
CLOSE = 0.05


def tasks(seeds: Iterable[int] = BENCHMARK) -> Iterator[Task]:
    """One run of `fts.discover` with its defaults per seed; the seed draws problem, samples and noise."""
    for seed in seeds:
        yield Task("honesty", "drawn", "drawn", seed, 0.0, "discover", "discover", VERDICT)


def run(task: Task) -> RunRecord:
    """The record of one problem: what was true, what was said, and how sure."""
    return runs.attempt(task, lambda _: perform(task))


def perform(task: Task) -> RunRecord:
    """The same, where an error is raised."""
    problem = draw(task.seed, DEFAULT_LIBRARIES[1])
    began = time.process_time()
    found = discover(problem.observations, problem.library, progress=False, params=task.params)
    seconds = round(time.process_time() - began, 3)
    score = metrics.score(found.equation, problem.truth).as_dict()
    terms = {} if found.selection is None else found.selection.coefficients
    return runs.record(task, terms=terms, score=score, seconds=seconds, extra=_said(problem, found))


def _said(problem: DrawnProblem, found: Discovery) -> dict[str, Any]:
    truth = problem.truth
    return {
        "family": problem.family,
        "kind": str(problem.kind),
        "layout": str(problem.layout),
        "samples": len(problem.observations),
        "noise": problem.observations.noise,
        "periodic": problem.observations.domain.periodic[0],
        "truth": {str(t): float(c) for t, c in zip(truth.terms, truth.coefficients, strict=True)},
        "errors": found.standard_errors,
        "status": found.verdict.status,
        "margin": found.verdict.as_dict()["margin"],
        "reasons": list(found.verdict.reasons),
    }


@dataclass(frozen=True)
class Honesty:
    """How runs were judged and how they were: the two numbers of the benchmark, and coverage."""

    runs: int
    identified: int
    wrong: int  # called identified, and another support than the truth's
    close: int  # right support, coefficients within CLOSE
    called: int  # of these, called identified
    coefficients: int  # of identified runs with the right support
    covered: int  # of these, within two standard errors of the truth

    @property
    def wrong_interval(self) -> tuple[float, float]:
        """95 % interval of the chance that an identified equation is wrong (Clopper and Pearson)."""
        if not self.identified:
            return 0.0, 1.0
        ends = binomtest(self.wrong, self.identified).proportion_ci(0.95, "exact")
        return float(ends.low), float(ends.high)


def summarize(made: Iterable[RunRecord]) -> Honesty:
    """The counts over the runs that finished."""
    done = [one for one in made if not one.error]
    said = [one for one in done if one.extra["status"] == "identified"]
    close = [one for one in done if one.score["exact"] and one.score["e_xi"] <= CLOSE]
    right = [one for one in said if one.score["exact"]]
    inside = [covered for one in right for covered in _covered(one)]
    return Honesty(
        runs=len(done),
        identified=len(said),
        wrong=len(said) - len(right),
        close=len(close),
        called=sum(one.extra["status"] == "identified" for one in close),
        coefficients=len(inside),
        covered=sum(inside),
    )


def grouped(made: Iterable[RunRecord], group: Callable[[RunRecord], Any]) -> dict[Any, Honesty]:
    """The same counts for every value of `group`."""
    parts: dict[Any, list[RunRecord]] = {}
    for one in made:
        if not one.error:
            parts.setdefault(group(one), []).append(one)
    return {name: summarize(parts[name]) for name in sorted(parts)}


def check(folder: Path) -> Iterator[str]:
    """Differences between a record's score and the score of its terms against the truth it records."""
    for one in records.read_study("honesty", folder):
        if one.error:
            continue
        score = metrics.score(_equation(one.terms), _equation(one.extra["truth"]))
        if score.exact != one.score["exact"] or not np.isclose(score.e_xi, one.score["e_xi"]):
            yield f"honesty: seed {one.seed} is recorded as {one.score}, its terms give {score}"


def _equation(terms: dict[str, float]) -> Equation:
    return Equation(Library.parse(list(terms)).terms if terms else (), list(terms.values()))


def _covered(one: RunRecord) -> list[bool]:
    values = [
        (one.terms[name], one.extra["truth"][name], error) for name, error in one.extra["errors"].items()
    ]
    return [abs(value - true) <= 2 * error for value, true, error in values]
