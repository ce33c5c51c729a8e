"""Every published number follows from the records, and the records from runs.

Each record's score is what its terms score against the true equation, tables.json what the records give, each
recorded training ends in the terms of its record, each cell the book makes a claim of keeps within it, and
runs drawn at random, made again from scratch, come out as they are recorded.
"""

import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import product, zip_longest
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from fts import containers
from fts.lab.studies import (
    beyond,
    calibration,
    paths,
    plans,
    provenance,
    published,
    records,
    symbolic,
    systems,
)
from fts.lab.studies.records import RunRecord, cell_label
from fts.lab.studies.runs import STUDIES, Study, Task, code_of
from fts.params.paper import CLOSED_FORM

# Importing a module registers its studies.
MODULES = (plans, paths, symbolic, calibration, beyond, systems)
_FILE = "tables.json"
# Scores are recomputed from coefficients printed with all their digits; only the order of additions differs.
_ROUNDING = 1e-9
# Training on another machine takes another path; medians over five seeds then move, but not by this factor.
_FACTOR = 3.0
# How near the mean exponent of the symbolic study is to the true one, once it is thawed.
_NEAR = 0.02
# A closed form that runs again gives its coefficients and errors to this relative difference.
_SAME = 1e-6
# Methods whose outcome is an optimizer's path: they are held to the same support and errors within _FACTOR.
_SEARCHES = ("DeepMoD", "DL-PDE", "PINN-SR", "Weak-PDE-LEARN", "symbolic", "composed", "Operon")


def main(folder: Path) -> int:
    """Prints what does not hold, and which records are stale; returns how many do not, at most 100."""
    lines, notes, count = [], [], 0
    try:
        lines.extend(check(folder))
        made = versions(folder)
        notes, count = list(describe_stale(made)), sum(made[study.name].total() for study in _scored())
    except containers.FileError as error:
        lines.append(str(error))
    print("\n".join([*lines, *notes, f"{count} runs checked, {len(lines)} differences"]))
    return min(len(lines), 100)


def versions(folder: Path) -> dict[str, Counter[str]]:
    """By study, how many records were made by the "present" code, by "other" code, by code "unknown"."""
    counts = {name: Counter[str]() for name, study in STUDIES.items() if study.recorded}
    for name, count in counts.items():
        for record in records.read_study(name, folder):
            present = record.code == code_of(name, record.method) if record.code else None
            count["unknown" if present is None else "present" if present else "other"] += 1
    return counts


def describe_stale(made: Mapping[str, Counter[str]]) -> Iterator[str]:
    """The records that the present code did not make, by study; none where it made all."""
    texts = {"other": "were made by other code", "unknown": "do not say which code made them"}
    for kind, text in texts.items():
        studies = {name: count[kind] for name, count in made.items() if count[kind]}
        if studies:
            listed = ", ".join(f"{name} {number}" for name, number in studies.items())
            yield f"stale: {sum(studies.values())} runs {text}: {listed}"


def reproduce(folder: Path) -> int:
    """Compares fresh runs of the main study in `folder` with the committed ones; exit status as `main`."""
    lines = list(compare_runs(records.read_study("main", folder), records.read_study("main")))
    print(*lines, sep="\n", end="\n" if lines else "")
    return min(len(lines), 100)


def rerun(folder: Path, count: int, seed: int, seconds: float) -> int:
    """Repeats runs drawn from the records in `folder` and prints how they differ; exit status as `main`."""
    drawn, expensive = draw(folder, count, seed, seconds)
    print(f"{len(drawn)} runs drawn with seed {seed}; not drawn, as they took more than {seconds:g} s:")
    print("\n".join(f"  {name}: {number} of {total}" for name, (number, total) in expensive.items()))
    different = 0
    with _from_scratch() as scratch:
        for i, (study, task, record) in enumerate(drawn, 1):
            again = study.run(task, scratch)
            lines = list(compare_record(again, record))
            different += bool(lines)
            print(f"{i:3} {record.label}: {'; '.join(lines) or 'same'} ({again.seconds:.0f} s)", flush=True)
    print(f"{len(drawn)} runs made again, {different} differ")
    return min(different, 100)


def draw(
    folder: Path, count: int, seed: int, seconds: float
) -> tuple[list[tuple[Study, Task, RunRecord]], dict[str, tuple[int, int]]]:
    """Runs to make again, studies in turn, and by study how many took too long, of how many."""
    pools, expensive = [], {}
    for _, study in sorted(STUDIES.items()):
        rng = np.random.default_rng([seed, *study.name.encode()])  # another study changes no draw
        tasks = {task.key: task for task in study.tasks()} if study.recorded else {}
        made = [r for r in records.read_study(study.name, folder) if r.key in tasks and not r.error]
        quick = sorted((r for r in made if _cost(r) <= seconds), key=lambda record: record.key)
        if len(quick) < len(made):
            expensive[study.name] = (len(made) - len(quick), len(made))
        pools.append([(study, tasks[quick[i].key], quick[i]) for i in rng.permutation(len(quick))])
    turns = zip_longest(*pools)
    return [run for turn in turns for run in turn if run is not None][:count], expensive


def compare_record(again: RunRecord, record: RunRecord) -> Iterator[str]:
    """How a repeated run differs from its record: closed forms to 1e-6, searches by support and a factor."""
    if again.error:
        yield again.error
        return
    if set(again.terms) != set(record.terms) and not _searches(record):
        yield f"terms {sorted(again.terms)}, recorded {sorted(record.terms)}"
        return
    for name in ("status", "exact"):
        new, old = (_outcome(each, name) for each in (again, record))
        if new != old:
            yield f"{name} {new}, recorded {old}"
    numbers = {name: (again.score.get(name), record.score.get(name)) for name in ("e_u", "e_xi", "covered")}
    if not _searches(record):
        numbers |= {name: (again.terms[name], value) for name, value in record.terms.items()}
    for name, (new, old) in numbers.items():
        if _searches(record) and name != "covered" and old:
            same = new is not None and old / _FACTOR <= new <= old * _FACTOR
        else:
            same = new is old or _close(old, new, _SAME)
        if not same:
            yield f"{name} {new}, recorded {old}"


def compare_runs(fresh: list[RunRecord], committed: list[RunRecord]) -> Iterator[str]:
    """Cells of fresh runs that recover less often than the committed ones, or whose medians moved too far."""
    if not fresh:
        yield "no fresh runs: make some with python -m fts.lab.studies main --folder FOLDER"
    expected = records.summarize(committed)
    for key, cell in sorted(records.summarize(fresh).items()):
        old = expected.get(key)
        if old is None:
            yield f"{cell_label(key)}: no committed runs to compare with"
            continue
        if cell.exact / cell.runs < old.exact / old.runs:
            yield f"{cell_label(key)}: {cell.exact} of {cell.runs} exact, committed {old.exact} of {old.runs}"
        for name in ("e_xi", "e_u"):
            new, before = getattr(cell, name), getattr(old, name)
            if not before / _FACTOR <= new <= before * _FACTOR:
                moved = f"{new:.3g} is not within {_FACTOR:g} times of {before:.3g}"
                yield f"{cell_label(key)}: median {name} {moved}"


def check(folder: Path) -> Iterator[str]:
    """One line per score, cell or claim that does not follow from the records in `folder`."""
    yield from provenance.check(folder)
    for path in sorted(folder.glob("*.jsonl")):
        if path.stem not in STUDIES:
            yield f"{path.name} belongs to no study: name one in fts/lab/studies/plans.py, or delete it"
    for study in _scored():
        for record in records.read_study(study.name, folder):
            yield from check_record(record)
    for study in STUDIES.values():
        yield from study.check(folder)
    path = folder / _FILE
    if not path.is_file():
        yield f"{path} is missing: write it with python -m fts.lab.studies tables"
        return
    yield from compare(json.loads(path.read_text()), compute(folder))
    yield from check_claims(folder)
    yield from check_laws(folder)


def check_record(record: RunRecord) -> Iterator[str]:
    """Differences between a record's score and the score of its terms."""
    expect = STUDIES[record.study].score
    if record.error or expect is None:
        return
    variants = record.extra.get("selectors", {}).items()
    scored = {"": (record.terms, record.score)} | {f" {name}": (s["terms"], s) for name, s in variants}
    for name, (terms, score) in scored.items():
        for key, value in expect(terms, record.problem).items():
            if not (_close(score[key], value) if key == "e_xi" else score[key] == value):
                yield f"{record.label}{name}: {key} is recorded as {score[key]}, its terms give {value}"


def compute(folder: Path) -> dict[str, dict[str, Any]]:
    """All cells by study and label, from the records."""
    cells: dict[str, dict[str, Any]] = {}
    for study in _scored():
        made = records.read_study(study.name, folder)
        for rest, summarized in (("", records.summarize), (", selectors", records.summarize_selectors)):
            table = sorted(summarized(made).items())
            cells[study.name + rest] = {cell_label(key): cell.as_dict() for key, cell in table}
    for study in STUDIES.values():
        cells |= study.tables(folder)
    return {name: table for name, table in cells.items() if table}


def write(folder: Path) -> None:
    """Writes the cells the records give, for review and for later comparison."""
    text = json.dumps(compute(folder), indent=1, sort_keys=True, allow_nan=False)
    containers.write_atomic(folder / _FILE, text.encode() + b"\n")
    provenance.write(folder)


def compare(old: dict[str, Any], new: dict[str, Any], path: str = "") -> Iterator[str]:
    """Differences between two nested tables, numbers up to rounding."""
    for key in sorted(old.keys() | new.keys()):
        here = f"{path}/{key}" if path else key
        if key not in old or key not in new:
            yield f"{here}: only in {'the records' if key in new else _FILE}"
        elif isinstance(old[key], dict) and isinstance(new[key], dict):
            yield from compare(old[key], new[key], here)
        elif not _close(old[key], new[key]):
            yield f"{here}: {_FILE} says {old[key]}, the records give {new[key]}"


def check_claims(folder: Path) -> Iterator[str]:
    """Cells of the rows that repeat the paper's method and recover less often than the paper does."""
    cells = records.summarize(records.read_study("main", folder))
    for (_, name, protocol), theirs in published.main().cells.items():
        key = ("paper", name, protocol, 0.0)
        ours = cells.get(key)
        if ours is None:
            yield f"main: no runs for {cell_label(key)}"
        elif theirs.exact is not None and ours.exact < theirs.exact:
            yield f"main: {cell_label(key)} recovers {ours.exact} of {ours.runs}, not {theirs.exact}"


def check_laws(folder: Path) -> Iterator[str]:
    """Rows of Table 3 that recover less often than the paper, and thawed ones further off than claimed."""
    cells = symbolic.laws(records.read_study("symbolic", folder))
    truth = symbolic.exponent()
    rows = symbolic.ROWS if cells else ()  # a folder of fresh runs need not hold this study
    for (noise, (recovered, _, (m, _))), row in product(published.symbolic().items(), rows):
        cell = cells.get((row, noise))
        where = f"symbolic: {row} at {noise:.0%} noise"
        if cell is None or cell.m is None or cell.recovered < recovered:
            yield f"{where} recovers {cell}, not {recovered}"
        elif row.endswith("thawed") and abs(cell.m - truth) > min(_NEAR, abs(m - truth)):
            yield f"{where}: m = {cell.m:.4f} is not within {_NEAR} of {truth}, or the paper is nearer"


def _scored() -> list[Study]:
    """Studies whose records are scored again from their terms, and summarized in cells."""
    return [study for study in STUDIES.values() if study.recorded and study.score is not None]


def _close(old: Any, new: Any, rounding: float = _ROUNDING) -> bool:
    try:
        return bool(np.allclose(old, new, rtol=rounding, atol=1e-15))
    except TypeError:  # a cell of failed runs holds None
        return old == new


def _cost(record: RunRecord) -> float:
    """Seconds of the run, and of its field where that was taken from the cache."""
    return max(record.seconds, record.extra.get("fit_seconds") or 0.0)


def _searches(record: RunRecord) -> bool:
    recipe = record.parameters.get("recipe")
    return record.method in _SEARCHES or (recipe is not None and recipe not in CLOSED_FORM)


def _outcome(record: RunRecord, name: str) -> Any:
    """What was decided: in the score, or by a verdict."""
    notes = record.extra.get("notes", {})
    return record.score.get(name, record.extra.get(name, notes.get(name)))


@contextmanager
def _from_scratch() -> Iterator[Path]:
    """An empty folder of records, fields and caches, so that no earlier result is taken again."""
    with tempfile.TemporaryDirectory() as scratch:
        fresh = {name: f"{scratch}/{name}" for name in ("FTS_FIELDS", "XDG_CACHE_HOME")}
        with mock.patch.dict(os.environ, fresh):
            yield Path(scratch)
