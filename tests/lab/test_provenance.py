"""Nothing that is published changes unnoticed, and a record says which code made it."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fts.lab.studies import provenance, published, records, runs, verify
from fts.lab.studies.published import Cell
from fts.lab.studies.runs import STUDIES

BOOK = records.records_folder().parent


@pytest.fixture(scope="module")
def book(tmp_path_factory) -> Path:
    """A copy of records and fields."""
    folder = tmp_path_factory.mktemp("book")
    for name in ("records", "fields"):
        shutil.copytree(BOOK / name, folder / name)
    return folder


def _forge_record(path: Path, rng: np.random.Generator) -> None:
    """One run of a study another, under checksums that fit."""
    made = records.read(path)
    k = int(rng.integers(len(made)))
    made[k] = replace(made[k], seconds=made[k].seconds + 1)
    path.unlink()
    records.append(path, *made)
    records.seal(path)


def _drop_record(path: Path, rng: np.random.Generator) -> None:
    made = records.read(path)
    del made[int(rng.integers(len(made)))]
    path.unlink()
    records.append(path, *made)
    records.seal(path)


def _flip_byte(path: Path, rng: np.random.Generator) -> None:
    data = bytearray(path.read_bytes())
    data[int(rng.integers(len(data)))] ^= 1
    path.write_bytes(data)


def _delete(path: Path, rng: np.random.Generator) -> None:
    path.unlink()


CHANGES = (
    ("records/*.jsonl", _forge_record),
    ("records/*.jsonl", _drop_record),
    ("records/**/*.*", _delete),
    ("records/paths/*.fts", _flip_byte),
    ("fields/*.fts", _flip_byte),
    ("fields/*.fts", _delete),
    ("published", None),
)


@pytest.mark.parametrize("draw", range(20))
def test_whatever_is_altered_verify_notices(draw, book, monkeypatch):
    monkeypatch.setenv("FTS_FIELDS", str(book / "fields"))
    rng = np.random.default_rng(draw)
    pattern, change = CHANGES[draw % len(CHANGES)]
    if change is None:
        name = str(rng.choice(["main", "methods", "adapters", "thresholds", "noise", "density"]))
        table = getattr(published, name)()
        key = list(table.cells)[int(rng.integers(len(table.cells)))]
        altered = replace(table, cells=table.cells | {key: Cell(exact=-1)})

        def forged():
            return altered

        forged.__module__ = published.__name__
        monkeypatch.setattr(published, name, forged)
        assert next(verify.check(book / "records")) == (
            f"published/{name} was changed: restore it, or accept it with python -m fts.lab.studies tables"
        )
        return
    paths = sorted(path for path in book.glob(pattern) if path.stat().st_size < 1_200_000)
    path = paths[int(rng.integers(len(paths)))]
    before = path.read_bytes()
    change(path, rng)
    try:
        assert path.name in next(verify.check(book / "records"))
    finally:
        path.write_bytes(before)


def test_the_committed_files_are_those_of_the_digests():
    assert list(provenance.check(BOOK / "records")) == []


def test_verify_reports_damage_and_goes_on(book, capsys, monkeypatch):
    monkeypatch.setenv("FTS_FIELDS", str(book / "fields"))
    path = book / "records" / "main.jsonl"
    before = path.read_bytes()
    path.write_bytes(before[:-100])
    try:
        assert verify.main(book / "records") > 0
        assert "main.jsonl was changed" in capsys.readouterr().out
    finally:
        path.write_bytes(before)


def test_the_version_of_code_is_that_of_what_a_run_imports(tmp_path):
    assert runs.code_of("main", "freeze, then select") != runs.code_of("baselines", "PDE-FIND")
    assert runs.code_of("main", "freeze, then select") == runs.code_of("noise", "freeze, then select")
    texts = (
        '"""A."""\ndef f(x):\n    return x  # as it is\n',
        "def f(x): return x\n",
        "def f(x): return -x\n",
    )
    codes = []
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.py").write_text(text)
        codes.append(provenance._code(tmp_path / f"{number}.py"))
    assert codes[0] == codes[1] != codes[2]


def test_stale_records_are_counted_by_study(tmp_path):
    task = runs.paper_task("main", "ks", "S20", 1301)
    present = runs.code_of("main", task.method)
    for seed, code in enumerate((present, "0" * 16, "")):
        records.append(tmp_path / "main.jsonl", replace(runs.record(task), seed=seed, code=code))
    made = verify.versions(tmp_path)
    assert made["main"] == {"present": 1, "other": 1, "unknown": 1}
    assert list(verify.describe_stale(made)) == [
        "stale: 1 runs were made by other code: main 1",
        "stale: 1 runs do not say which code made them: main 1",
    ]
    assert runs.attempt(task, dict).code == present


def test_every_record_file_has_a_study():
    committed = json.loads((BOOK / "records" / "digests.json").read_text())
    recorded = {name.removeprefix("records/").removesuffix(".jsonl") for name in committed if "jsonl" in name}
    assert recorded <= set(STUDIES)
