"""Records survive what happens to files: truncation, flipped bits, a killed writer, two writers at once."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from fts import containers
from fts.lab.studies import records
from fts.lab.studies.records import RunRecord

# Writes as many records as each line says in a process of its own, which gives its number, then the number of
# each record once `append` has returned. The package is imported once.
WRITER = """
import os, sys
from pathlib import Path
from fts.lab.studies.records import RunRecord, append
print("ready", flush=True)
for line in sys.stdin:
    if child := os.fork():
        os.waitpid(child, 0)
        print("ended", flush=True)
        continue
    print(os.getpid(), flush=True)
    name, count = line.split()
    for i in range(int(count)):
        task = "study", "ks", "S20", name, "svws", i, 0.0, {"i": i}, "generated"
        append(Path(sys.argv[1]), RunRecord(*task, {"u": 1.0 / (i + 1)}))
        sys.stdout.write(f"{i}\\n")  # at once, so that no number is cut
        sys.stdout.flush()
    os._exit(0)
"""


def record(seed: int, **changes) -> RunRecord:
    values = {"terms": {"u*u_x": -0.99}, "score": {"exact": True, "e_xi": 0.01}, "seconds": 1.5}
    return RunRecord(
        "study", "ks", "S20", "paper", "svws", seed, 0.0, {"rank": 24}, "generated", **values | changes
    )


@contextmanager
def writer(path: Path) -> Iterator[subprocess.Popen]:
    command = [sys.executable, "-c", WRITER, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdout.readline() == "ready\n"
        yield process
        process.stdin.close()


def written(process: subprocess.Popen) -> list[int]:
    """Numbers of the acknowledged records, once their writer has ended."""
    return [int(line) for line in iter(process.stdout.readline, "ended\n")]


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
    with writer(path) as process:
        for trial in range(20):
            process.stdin.write(f"writer-{trial} 1000\n")
            pid = int(process.stdout.readline())
            time.sleep(float(rng.uniform(0.0, 0.03)))
            os.kill(pid, signal.SIGKILL)
            acknowledged += [(f"writer-{trial}", number) for number in written(process)]
            if path.exists():
                present = {(record.row, record.seed) for record in records.read(path)}
                assert present >= set(acknowledged)
    assert acknowledged, "no writer lived long enough for the test to mean anything"


def test_two_writers_at_once_both_arrive(tmp_path):
    path = tmp_path / "study.jsonl"
    with writer(path) as first, writer(path) as second:
        first.stdin.write("first 25\n")
        second.stdin.write("second 25\n")
        for process in (first, second):
            assert process.stdout.readline()
            assert written(process) == list(range(25))
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
