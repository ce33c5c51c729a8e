"""Records survive what happens to files: truncation, flipped bits, a killed writer, two writers at once."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from fts import containers
from fts.lab.studies import records
from fts.lab.studies.records import RunRecord

# A writer that acknowledges each record on stdout once `append` has returned.
WRITER = """
import sys
from pathlib import Path
from fts.lab.studies.records import RunRecord, append
path, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
for i in range(count):
    asked = "study", "ks", "S20", name, "svws", i, 0.0, {"i": i}, "generated"
    append(path, RunRecord(*asked, {"u": 1.0 / (i + 1)}))
    print(i, flush=True)
"""


def record(seed: int, **changes) -> RunRecord:
    values = {"terms": {"u*u_x": -0.99}, "score": {"exact": True, "e_xi": 0.01}, "seconds": 1.5}
    return RunRecord(
        "study", "ks", "S20", "paper", "svws", seed, 0.0, {"rank": 24}, "generated", **values | changes
    )


def writer(path: Path, name: str, count: int) -> subprocess.Popen:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), name, str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert process.stdout.readline() == "ready\n"
    return process


def test_records_come_back_as_they_were(tmp_path):
    path = tmp_path / "study.jsonl"
    written = [record(1), record(2, error="ValueError: no"), record(3, extra={"list": [1, 2.5, None]})]
    records.append(path, *written[:2])
    records.append(path, written[2])
    assert records.read(path) == written
    assert all(json.loads(line) for line in path.read_text().splitlines())


def test_the_key_is_what_was_asked_not_what_came_out():
    assert record(1).key == record(1, seconds=99.0, error="x", terms={}).key
    assert record(1).key != record(2).key
    other = RunRecord("study", "ks", "S20", "paper", "svws", 1, 0.0, {"rank": 25}, "generated")
    assert other.key != record(1).key


def test_a_value_that_is_no_json_is_refused_and_leaves_the_file_alone(tmp_path):
    path = tmp_path / "study.jsonl"
    records.append(path, record(1))
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"JSON|nan"):
        records.append(path, record(2, score={"e_xi": float("nan")}))
    assert path.read_bytes() == before


def test_every_damage_is_detected(tmp_path):
    path, damaged = tmp_path / "study.jsonl", tmp_path / "damaged.jsonl"
    records.append(path, *(record(seed) for seed in range(6)))
    records.seal(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for trial in range(100):
        data = bytearray(whole)
        if trial % 2:
            data = data[: rng.integers(len(data))]
        else:
            data[rng.integers(len(data))] ^= 1 << rng.integers(8)
        damaged.write_bytes(data)
        with pytest.raises(containers.FileError, match="restore it from version control"):
            records.read(damaged)
        with pytest.raises(containers.FileError):
            records.append(damaged, record(9))
        assert damaged.read_bytes() == data, "a damaged file is left for its owner to look at"


def test_of_an_open_file_only_a_torn_last_line_is_lost(tmp_path):
    path, damaged = tmp_path / "study.jsonl", tmp_path / "damaged.jsonl"
    records.append(path, record(0))
    records.seal(path)
    records.append(path, *(record(seed) for seed in range(1, 6)))
    whole = path.read_bytes()
    last = whole.rindex(b"\n", 0, -1) + 1
    for cut in (last + 1, last + 40, len(whole) - 1):
        damaged.write_bytes(whole[:cut])
        assert [entry.seed for entry in records.read(damaged)] == [0, 1, 2, 3, 4]
        records.append(damaged, record(5))
        assert damaged.read_bytes() == whole, "the next line takes the place of the torn one"
    rng = np.random.default_rng(0)
    for _ in range(100):
        data = bytearray(whole)
        data[rng.integers(last)] ^= 1 << rng.integers(8)
        damaged.write_bytes(data)
        with pytest.raises(containers.FileError, match="restore it from version control"):
            records.read(damaged)


def test_appending_leaves_the_bytes_before_alone_and_sealing_gives_one_text(tmp_path):
    path, at_once = tmp_path / "study.jsonl", tmp_path / "whole.jsonl"
    records.append(path, record(1))
    before, inode = path.read_bytes(), path.stat().st_ino
    records.append(path, record(2))
    assert path.read_bytes().startswith(before)
    assert path.stat().st_ino == inode
    records.append(at_once, record(1), record(2))
    for each in (path, at_once):
        records.seal(each)
    assert path.read_bytes() == at_once.read_bytes()
    assert [entry.seed for entry in records.read(path)] == [1, 2]


def test_the_committed_files_are_sealed(root):
    for path in (root / "book" / "records").glob("*.jsonl"):
        head = json.loads(path.read_text().split("\n", 1)[0])
        assert head["count"] == len(records.read(path)), path.name


def test_a_killed_writer_loses_nothing_it_acknowledged(tmp_path):
    path = tmp_path / "study.jsonl"
    rng = np.random.default_rng(1)
    acknowledged: list[tuple[str, int]] = []
    for trial in range(20):
        process = writer(path, f"writer {trial}", 1000)
        process.stdin.write("go\n")
        process.stdin.flush()
        time.sleep(float(rng.uniform(0.0, 0.03)))
        os.kill(process.pid, signal.SIGKILL)
        reported, _ = process.communicate()
        acknowledged += [(f"writer {trial}", int(line)) for line in reported.split()]
        if path.exists():
            present = {(entry.row, entry.seed) for entry in records.read(path)}
            assert present >= set(acknowledged)
    assert acknowledged, "no writer lived long enough for the test to mean anything"


def test_two_writers_at_once_both_arrive(tmp_path):
    path = tmp_path / "study.jsonl"
    both = [writer(path, name, 25) for name in ("first", "second")]
    for process in both:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in both:
        process.communicate()
        assert process.returncode == 0
    result = [(entry.row, entry.seed) for entry in records.read(path)]
    assert sorted(result) == [(name, i) for name in ("first", "second") for i in range(25)]


def test_two_identical_studies_at_once_record_each_run_once(tmp_path):
    path = tmp_path / "main.jsonl"
    first, failed = record(1, terms={"u": 1.0}), record(2, error="out of memory")
    records.append(path, first, failed)
    records.append(path, record(1, terms={"u": 2.0}), record(2, error="again"))
    assert records.read(path) == [first, failed]
    # A failure that was repeated with success is a new line; the later one counts.
    records.append(path, record(2, terms={"u": 3.0}))
    assert [entry.error for entry in records.read(path)] == ["", "out of memory", ""]
