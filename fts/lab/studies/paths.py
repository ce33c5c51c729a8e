"""Recorded trainings: Task -> RunRecord, and beside it the path of its supports.

A recorded run is the run itself: its record goes where the study of the task keeps it, and nothing is trained
a second time to be watched.

Recorded trainings against the truth: when the support was exact, which stopping rule hits it (Table S9).

F1 of the support at every change, exact intervals, first visit; ever, at the held-out minimum, at the end
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from fts.equations.equation import Equation
from fts.equations.terms import Library
from fts.lab.studies import plans, records, runs
from fts.lab.studies import records as tables
from fts.lab.studies.records import RunRecord
from fts.lab.studies.runs import Task
from fts.lab.studies.workers import run_study
from fts.observations import Observations
from fts.params.paper import TEST_SEEDS
from fts.paths import stopping
from fts.paths.recorder import RECORDED, SupportPath, load_path
from fts.problems import metrics
from fts.problems.problems import problem
from fts.problems.trajectories import simulate
from fts.selection.selection import Selection


def path_file(task: Task, folder: Path | None = None) -> Path:
    """Where the path of a task's training is kept."""
    words = re.findall(r"\w+", f"{task.problem} {task.protocol} {task.seed} {task.row.lower()}")
    return (folder or records.records_folder()) / "paths" / f"{'-'.join(words)}.fts"


def record_study(tasks: Iterable[Task], folder: Path, client: Any, *, again: bool = False) -> list[RunRecord]:
    """Runs what has no path yet, adding its record to the study it belongs to."""
    made, todo = [], list(tasks)
    for study in dict.fromkeys(task.study for task in todo):
        made += run_study(
            [task for task in todo if task.study == study],
            folder / f"{study}.jsonl",
            client,
            again=again,
            run=partial(run_recorded, folder=folder),
            complete=lambda task: path_file(task, folder).is_file(),
        )
    return made


def run_recorded(task: Task, folder: Path) -> RunRecord:
    """The run's record; its path is written when it has succeeded."""
    paths: list[SupportPath] = []

    def method(
        observations: Observations, library: Library, params: Any, rng: np.random.Generator
    ) -> Selection:
        about = {name: getattr(task, name) for name in ("key", "problem", "protocol", "seed", "row")}
        found, path = RECORDED[task.method](observations, library, params, rng, about)
        paths.append(path)
        return found

    record = runs.run(task, method)
    if not record.error:
        paths[0].save(path_file(task, folder))
    return record


# (row, problem, protocol)
Setting = tuple[str, str, str]


@dataclass(frozen=True)
class PathSummary:
    """What the truth says of one training."""

    ever: bool
    held_out: bool  # exact where the held-out objective is lowest
    terminal: bool
    intervals: tuple[tuple[int, int], ...]  # steps between which the support was exact
    stopped: Mapping[str, bool]  # whether a stopping rule reports the exact support

    @property
    def first(self) -> int | None:
        """The first step with the exact support."""
        return self.intervals[0][0] if self.intervals else None

    @property
    def behavior(self) -> str:
        """One of the three: it persists to the end, was there for a while, or never."""
        return "persists" if self.terminal else "transient" if self.ever else "never"

    def as_dict(self) -> dict[str, Any]:
        """JSON form."""
        intervals = [list(ends) for ends in self.intervals]
        return asdict(self) | {"intervals": intervals, "first": self.first, "behavior": self.behavior}


def read_paths(
    folder: Path | None = None, seeds: Sequence[int] = TEST_SEEDS
) -> dict[Setting, dict[int, SupportPath]]:
    """The recorded trainings by setting and seed, as many as there are."""
    found: dict[Setting, dict[int, SupportPath]] = {}
    for task in plans.paths(tuple(seeds)):
        paths = found.setdefault((task.row, task.problem, task.protocol), {})
        if path_file(task, folder).is_file():
            paths[task.seed] = load_path(path_file(task, folder))
    return found


def support_f1(path: SupportPath) -> tuple[Int[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """The steps at which the support changed, and its F1 from each of them on."""
    return path.since, np.array([_score(path, support).f1 for support in path.supports])


def true_field(path: SupportPath) -> Float[np.ndarray, "..."]:
    """The true field at the grid points nearest to those the path's fields are kept at."""
    trajectory = simulate(path.about["problem"])
    domain = trajectory.domain
    ends = zip((*domain.low, domain.t0), (*domain.high, domain.t1), path.fields.shape[1:], strict=True)
    wanted = [np.linspace(low, high, n) for low, high, n in ends]
    nearest = [
        np.abs(axis[None, :] - points[:, None]).argmin(axis=1)
        for axis, points in zip((*trajectory.axes, trajectory.t), wanted, strict=True)
    ]
    return trajectory.u[np.ix_(*nearest)]


def summarize_path(path: SupportPath) -> PathSummary:
    """One training against the truth."""
    exact = [_score(path, support).exact for support in path.supports]
    ends = [*path.since.tolist(), path.end]
    found: list[tuple[int, int]] = []
    for is_exact, (start, stop) in zip(exact, pairwise(ends), strict=True):
        if is_exact:
            found.append((start, stop))
    stopped = {
        name: bool(_score(path, path.support_at(rule(path))).exact) for name, rule in stopping.RULES.items()
    }
    return PathSummary(
        ever=any(exact),
        held_out=stopped["lowest held-out loss"],
        terminal=exact[-1],
        intervals=tuple(found),
        stopped=stopped,
    )


def compute(folder: Path | None = None) -> dict[str, Any]:
    """Every setting with its counts and its runs, from the recorded trainings."""
    cells = {}
    for (row, name, protocol), paths in read_paths(folder).items():
        if paths:
            runs = {seed: summarize_path(path) for seed, path in paths.items()}
            cells[f"{row} | {name}-{protocol}"] = counts(list(runs.values())) | {
                "by seed": {str(seed): one.as_dict() for seed, one in runs.items()}
            }
    return cells


def counts(runs: Sequence[PathSummary]) -> dict[str, Any]:
    """How many of the runs were exact: ever, at the held-out minimum, at the end, by every rule."""
    return {
        "runs": len(runs),
        "ever": sum(one.ever for one in runs),
        "held_out": sum(one.held_out for one in runs),
        "terminal": sum(one.terminal for one in runs),
        "stopped": {name: sum(one.stopped[name] for one in runs) for name in stopping.RULES},
    }


def check_paths(folder: Path) -> Iterator[str]:
    """Paths that belong to no run, or end in other terms than the run's record has."""
    planned = {path_file(task, folder): task for task in plans.paths(TEST_SEEDS)}
    for file in sorted((folder / "paths").glob("*")):
        if file not in planned:
            yield f"paths/{file.name} belongs to no run of the study: delete it"
    for file, task in planned.items():
        if file.is_file():
            yield from _check_path(load_path(file), task, folder)


def _check_path(path: SupportPath, task: Task, folder: Path) -> Iterator[str]:
    where = f"paths: {task.row} {task.problem}-{task.protocol} seed {task.seed}"
    if path.about["key"] != task.key:
        yield f"{where} was recorded with other settings: record it again"
        return
    records = [one for one in tables.read_study(task.study, folder) if one.key == task.key]
    if not records:
        yield f"{where} has no record in {task.study}.jsonl: record it again"
    elif set(records[0].terms) != set(path.names_at(path.end)):
        yield f"{where} ends with {path.names_at(path.end)}, its record has {tuple(records[0].terms)}"


def _score(path: SupportPath, support: np.ndarray) -> metrics.Score:
    """A support as the equation with ones for coefficients: only its terms are looked at."""
    names = [name for name, used in zip(path.terms, support, strict=True) if used]
    terms = Library.parse(names).terms if names else ()
    return metrics.score(Equation(terms, np.ones(len(terms))), problem(path.about["problem"]).equation)
