"""Every published number follows from the records: `python -m fts.lab.studies verify`.

1. The score in each record is what its recorded terms score against the true equation.
2. The cells in tables.json, the numbers the book is reviewed with, are what the records give.
3. Each recorded training ends in the terms of its record.
4. Each cell the book claims something about keeps within its claim.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from fts import containers
from fts.equations.equation import Equation
from fts.equations.terms import Library, Term
from fts.lab.studies import calibration, honesty, paths, plans, published, records, symbolic
from fts.lab.studies.records import RunRecord
from fts.problems import metrics
from fts.problems.problems import problem

_FILE = "tables.json"
# Scores are recomputed from coefficients printed with all their digits; only the order of additions differs.
_ROUNDING = 1e-9
# Training on another machine takes another path; medians over five seeds then move, but not by this factor.
_FACTOR = 3.0
# How near the mean exponent of the symbolic study is to the true one, once it is thawed.
_NEAR = 0.02


def main(folder: Path) -> int:
    """Prints what does not hold; returns the number of such lines, at most 100, as exit status."""
    problems = list(check(folder))
    for line in problems:
        print(line)
    count = sum(len(records.read_study(name, folder)) for name in plans.RECORDED)
    print(f"{count} runs checked, {len(problems)} differences")
    return min(len(problems), 100)


def reproduce(folder: Path) -> int:
    """Compares fresh runs of the main study in `folder` with the committed ones; exit status as `main`."""
    problems = list(compare_runs(records.read_study("main", folder), records.read_study("main")))
    for line in problems:
        print(line)
    return min(len(problems), 100)


def compare_runs(fresh: list[RunRecord], committed: list[RunRecord]) -> Iterator[str]:
    """Cells of fresh runs that recover less often than the committed ones, or whose medians moved too far."""
    if not fresh:
        yield "no fresh runs: make some with python -m fts.lab.studies main --folder FOLDER"
    expected = records.summarize(committed)
    for place, cell in sorted(records.summarize(fresh).items()):
        if place not in expected:
            yield f"{_place(place)}: no committed runs to compare with"
            continue
        if cell.exact / cell.runs < expected[place].exact / expected[place].runs:
            old = expected[place]
            yield f"{_place(place)}: {cell.exact} of {cell.runs} exact, committed {old.exact} of {old.runs}"
        for name in ("e_xi", "e_u"):
            new, old = getattr(cell, name), getattr(expected[place], name)
            if not old / _FACTOR <= new <= old * _FACTOR:
                yield f"{_place(place)}: median {name} {new:.3g} is not within {_FACTOR:g} times of {old:.3g}"


def check(folder: Path) -> Iterator[str]:
    """One line per score, cell or claim that does not follow from the records in `folder`."""
    for path in sorted(folder.glob("*.jsonl")):
        if path.stem not in (*plans.RECORDED, "honesty", calibration.STUDY):
            yield f"{path.name} belongs to no study: name one in fts/lab/studies/plans.py, or delete it"
    for name in plans.RECORDED:
        for one in records.read_study(name, folder):
            yield from check_record(one)
    yield from paths.check_paths(folder)
    yield from honesty.check(folder)
    yield from calibration.check(folder)
    path = folder / _FILE
    if not path.is_file():
        yield f"{path} is missing: write it with python -m fts.lab.studies tables"
        return
    yield from compare(json.loads(path.read_text()), compute(folder))
    yield from check_claims(folder)
    yield from check_laws(folder)


def check_record(record: RunRecord) -> Iterator[str]:
    """Differences between a record's score and the score of its terms."""
    if record.error:
        return
    where = f"{record.study}: {record.problem}-{record.protocol} {record.row} seed {record.seed}"
    scored = {"": (record.terms, record.score)}
    for name, score in record.extra.get("selectors", {}).items():
        scored[f" {name}"] = (score["terms"], score)
    for name, (terms, score) in scored.items():
        expected = _expected(terms, record)
        for key, value in expected.items():
            same = (
                np.isclose(score[key], value, rtol=_ROUNDING, atol=1e-15)
                if key == "e_xi"
                else score[key] == value
            )
            if not same:
                yield f"{where}{name}: {key} is recorded as {score[key]}, its terms give {value}"


def _expected(terms: dict[str, float], record: RunRecord) -> dict[str, Any]:
    if record.study in (symbolic.SYMBOLIC_STUDY, symbolic.RIVALS_STUDY):
        return symbolic.score_law_terms(terms)
    if record.study == symbolic.COMPOSED_STUDY:
        return symbolic.score_composed_terms(terms, record.problem)
    return score_terms(terms, record.problem)


def score_terms(terms: dict[str, float], name: str) -> dict[str, Any]:
    """What an equation written as {term: coefficient} scores on a benchmark."""
    found = Equation(_parsed(tuple(terms)), np.array(list(terms.values()), dtype=float))
    return metrics.score(found, _truth(name)).as_dict()


# Thousands of records hold the same few terms and are scored against the same few equations.
@cache
def _parsed(names: tuple[str, ...]) -> tuple[Term, ...]:
    return Library.parse(list(names)).terms if names else ()


@cache
def _truth(name: str) -> Equation:
    return problem(name).equation


def compute(folder: Path) -> dict[str, dict[str, Any]]:
    """All cells by study and place, from the records."""
    cells: dict[str, dict[str, Any]] = {}
    for name in plans.RECORDED:
        runs = records.read_study(name, folder)
        places = records.summarize(runs)
        chosen = records.summarize_selectors(runs)
        cells[name] = {_place(place): cell.as_dict() for place, cell in sorted(places.items())}
        if chosen:
            cells[f"{name}, selectors"] = {
                _place(place): cell.as_dict() for place, cell in sorted(chosen.items())
            }
    cells["paths, supports"] = paths.compute(folder)
    laws = symbolic.laws(records.read_study(symbolic.SYMBOLIC_STUDY, folder))
    cells[f"{symbolic.SYMBOLIC_STUDY}, power laws"] = {
        _place((row, symbolic.PROBLEM, "S20", noise)): asdict(cell)
        for (row, noise), cell in sorted(laws.items())
    }
    cells[calibration.STUDY] = calibration.compute(folder)
    return {name: table for name, table in cells.items() if table}


def write(folder: Path) -> None:
    """Writes the cells the records give, for review and for later comparison."""
    text = json.dumps(compute(folder), indent=1, sort_keys=True, allow_nan=False)
    containers.write_atomic(folder / _FILE, text.encode() + b"\n")


def compare(published: dict[str, Any], computed: dict[str, Any], path: str = "") -> Iterator[str]:
    """Differences between two nested tables, numbers up to rounding."""
    for key in sorted(published.keys() | computed.keys()):
        here = f"{path}/{key}" if path else key
        if key not in published or key not in computed:
            yield f"{here}: only in {'the records' if key in computed else _FILE}"
            continue
        old, new = published[key], computed[key]
        if isinstance(old, dict) and isinstance(new, dict):
            yield from compare(old, new, here)
        elif not _close(old, new):
            yield f"{here}: {_FILE} says {old}, the records give {new}"


def check_claims(folder: Path) -> Iterator[str]:
    """Cells of the rows that repeat the paper's method and recover less often than the paper does."""
    found = records.summarize(records.read_study("main", folder))
    for (_, name, protocol), cell in published.main().cells.items():
        place = ("paper", name, protocol, 0.0)
        if place not in found:
            yield f"main: no runs for {_place(place)}"
        elif cell.exact is not None and found[place].exact < cell.exact:
            got = found[place]
            yield f"main: {_place(place)} recovers {got.exact} of {got.runs}, not {cell.exact}"


def check_laws(folder: Path) -> Iterator[str]:
    """Rows of Table 3 that recover less often than the paper, and thawed ones further off than claimed."""
    found = symbolic.laws(records.read_study(symbolic.SYMBOLIC_STUDY, folder))
    truth = symbolic.exponent()
    rows = symbolic.ROWS if found else ()  # a folder of fresh runs need not hold this study
    for (noise, (recovered, _, (m, _))), row in product(published.symbolic().items(), rows):
        cell = found.get((row, noise))
        where = f"{symbolic.SYMBOLIC_STUDY}: {row} at {noise:.0%} noise"
        if cell is None or cell.m is None or cell.recovered < recovered:
            yield f"{where} recovers {cell}, not {recovered}"
        elif row.endswith("thawed") and abs(cell.m - truth) > min(_NEAR, abs(m - truth)):
            yield f"{where}: m = {cell.m:.4f} is not within {_NEAR} of {truth}, or the paper is nearer"


def _close(old: Any, new: Any) -> bool:
    try:
        return bool(np.allclose(old, new, rtol=_ROUNDING, atol=1e-15))
    except TypeError:  # a cell of failed runs holds None
        return old == new


def _place(place: records.Place) -> str:
    row, name, protocol, noise = place
    return f"{row} | {name}-{protocol}" + (f" | {noise:.0%} noise" if noise else "")
