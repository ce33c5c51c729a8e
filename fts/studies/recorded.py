"""Recorded trainings: Task -> RunRecord, and beside it the path of its supports.

A recorded run is the run itself: its record goes where the study of the task keeps it, and nothing is trained
a second time to be watched.
"""

import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fts.equations.terms import Library
from fts.observations import Observations
from fts.paths.recorder import RECORDED
from fts.paths.support_path import SupportPath
from fts.studies import runs, tables
from fts.studies.records import RunRecord
from fts.studies.runs import Task
from fts.studies.workers import run_study
from fts.svws.selection import Selection


def path_file(task: Task, folder: Path | None = None) -> Path:
    """Where the path of a task's training is kept."""
    words = re.findall(r"\w+", f"{task.problem} {task.protocol} {task.seed} {task.row.lower()}")
    return (folder or tables.records_folder()) / "paths" / f"{'-'.join(words)}.fts"


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
