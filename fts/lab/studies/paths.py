"""Recorded trainings: the path of supports beside a run's record, and when it was exact (Table S10).

A recorded run is the run itself: its record goes where its study keeps it, and nothing is trained a second
time to be watched. The truth says F1 at every change, when it was exact, and which stopping rule hits that.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import compress, pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from fts.lab.studies import records, runs
from fts.lab.studies.plans import baseline_task
from fts.lab.studies.published import JOINT_SETTINGS, REGIMES
from fts.lab.studies.records import RunRecord
from fts.lab.studies.runs import OURS, Task, equation_of, paper_task, study
from fts.params.paper import TEST_SEEDS
from fts.paths import recorder
from fts.paths.recorder import SupportPath, load_path
from fts.problems import metrics
from fts.problems.problems import problem
from fts.problems.trajectories import simulate
from fts.selection.selection import Selection

# (row, problem, protocol)
Setting = tuple[str, str, str]
Paths = dict[Setting, dict[int, SupportPath]]


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


def run(task: Task, folder: Path) -> RunRecord:
    """The run's record; its path is written when it has succeeded."""
    recorded: list[SupportPath] = []

    def method(samples: Any, library: Any, params: Any, rng: Any) -> Selection:
        about = {name: getattr(task, name) for name in ("key", "problem", "protocol", "seed", "row")}
        selection, path = recorder.RECORDED[task.method](samples, library, params, rng, about)
        recorded.append(path)
        return selection

    record = runs.run(task, method=method)
    if not record.error:
        recorded[0].save(path_file(task, folder))
    return record


def path_file(task: Task, folder: Path | None = None) -> Path:
    """Where the path of a task's training is kept."""
    words = re.findall(r"\w+", f"{task.problem} {task.protocol} {task.seed} {task.row.lower()}")
    return (folder or records.records_folder()) / "paths" / f"{'-'.join(words)}.fts"


def read_paths(folder: Path | None = None, seeds: Sequence[int] = TEST_SEEDS) -> Paths:
    """The recorded trainings by setting and seed, as many as there are."""
    recorded: Paths = {}
    for task in paths(seeds):
        of_setting = recorded.setdefault((task.row, task.problem, task.protocol), {})
        if path_file(task, folder).is_file():
            of_setting[task.seed] = load_path(path_file(task, folder))
    return recorded


def support_f1(path: SupportPath) -> tuple[Int[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """The steps at which the support changed, and its F1 from each of them on."""
    return path.since, np.array([_score(path, support).f1 for support in path.supports])


def true_field(path: SupportPath) -> Float[np.ndarray, "..."]:
    """The true field at the grid points nearest to those the path's fields are kept at."""
    trajectory = simulate(path.about["problem"])
    domain = trajectory.domain
    ends = (*domain.low, domain.t0), (*domain.high, domain.t1), path.fields.shape[1:]
    kept = (np.linspace(*each) for each in zip(*ends, strict=True))
    axes = zip((*trajectory.axes, trajectory.t), kept, strict=True)
    nearest = [np.abs(axis - points[:, None]).argmin(axis=1) for axis, points in axes]
    return trajectory.u[np.ix_(*nearest)]


def summarize_path(path: SupportPath) -> PathSummary:
    """One training against the truth."""
    exact = [_score(path, support).exact for support in path.supports]
    intervals = tuple(compress(pairwise([*path.since.tolist(), path.end]), exact))
    supports = {name: path.support_at(rule(path)) for name, rule in recorder.RULES.items()}
    stopped = {name: bool(_score(path, support).exact) for name, support in supports.items()}
    return PathSummary(any(exact), stopped["lowest held-out loss"], exact[-1], intervals, stopped)


def counts(summaries: Sequence[PathSummary]) -> dict[str, Any]:
    """How many of the runs were exact: ever, at the held-out minimum, at the end, by every rule."""
    stopped = {name: sum(each.stopped[name] for each in summaries) for name in recorder.RULES}
    totals = {name: sum(getattr(s, name) for s in summaries) for name in ("ever", "held_out", "terminal")}
    return {"runs": len(summaries), **totals, "stopped": stopped}


def tables(folder: Path | None = None) -> dict[str, Any]:
    """Every setting with its counts and its runs, from the recorded trainings."""
    cells = {}
    for (row, name, protocol), of_setting in read_paths(folder).items():
        summaries = {str(seed): summarize_path(path) for seed, path in of_setting.items()}
        if summaries:
            by_seed = {seed: summary.as_dict() for seed, summary in summaries.items()}
            cells[f"{row} | {name}-{protocol}"] = counts(list(summaries.values())) | {"by seed": by_seed}
    return {"paths, supports": cells}


def check_paths(folder: Path) -> Iterator[str]:
    """Paths that belong to no run, or end in other terms than the run's record has."""
    planned = {path_file(task, folder): task for task in paths(TEST_SEEDS)}
    for file in sorted((folder / "paths").glob("*")):
        if file not in planned:
            yield f"paths/{file.name} belongs to no run of the study: delete it"
    both = (records.read_study(name, folder) for name in ("baselines", "paths"))
    recorded = {record.key: record for made in both for record in made}
    for file, task in planned.items():
        if file.is_file():
            yield from _check_path(load_path(file), task, recorded.get(task.key))


@study(
    run=run, check=check_paths, tables=tables, complete=lambda task, folder: path_file(task, folder).is_file()
)
def paths(seeds: Iterable[int]) -> Iterator[Task]:
    """Supplement E: trainings of the joint methods, recorded, and of our field, read at every stage."""
    for (row, name, protocol), seed in product(JOINT_SETTINGS, seeds):
        # Where Table 1 has the run, the recorded one is that run.
        study = "baselines" if (name, protocol) in REGIMES else "paths"
        yield baseline_task(study, row, name, protocol, seed)
    for regime, seed in product(dict.fromkeys(setting[1:] for setting in JOINT_SETTINGS), seeds):
        yield replace(paper_task("paths", *regime, seed), row=OURS)


def _check_path(path: SupportPath, task: Task, record: RunRecord | None) -> Iterator[str]:
    where = f"paths: {task.row} {task.problem}-{task.protocol} seed {task.seed}"
    if path.about["key"] != task.key:
        yield f"{where} was recorded with other settings: record it again"
    elif record is None:
        yield f"{where} has no record in {task.study}.jsonl: record it again"
    elif set(record.terms) != set(path.names_at(path.end)):
        yield f"{where} ends with {path.names_at(path.end)}, its record has {tuple(record.terms)}"


def _score(path: SupportPath, support: np.ndarray) -> metrics.Score:
    """A support as the equation with ones for coefficients: only its terms are looked at."""
    terms = {name: 1.0 for name, used in zip(path.terms, support, strict=True) if used}
    return metrics.score(equation_of(terms), problem(path.about["problem"]).equation)
