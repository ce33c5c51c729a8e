"""Stored bytes are whole or refused: a truncation, a flipped bit, a foreign file names its remedy."""

import multiprocessing
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from fts import containers

ARRAYS = {"a": np.arange(12.0).reshape(3, 4), "b": np.array([1, 2, 3], dtype=np.int32), "c": np.zeros((0, 2))}


def _store(path: Path) -> bytes:
    containers.save_arrays(path, "field", {"who": "test", "n": 3}, ARRAYS)
    return path.read_bytes()


def test_round_trip_keeps_values_shapes_and_dtypes(tmp_path):
    _store(tmp_path / "a.fts")
    header, arrays = containers.load_arrays(tmp_path / "a.fts", "field", "remedy")
    assert header == {"who": "test", "n": 3}
    assert list(arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype
        assert not arrays[name].flags.writeable


def test_same_content_same_bytes_and_aligned_arrays(tmp_path):
    data = _store(tmp_path / "a.fts")
    assert data == _store(tmp_path / "b.fts")
    first = data.index(b"\n") + 1
    assert (data.index(b"\n", first) + 1) % 8 == 0


def test_hundred_truncations_and_bit_flips_are_detected(tmp_path, rng):
    data = _store(tmp_path / "a.fts")
    broken = tmp_path / "broken.fts"
    for trial in range(100):
        if trial % 2:
            damaged = data[: rng.integers(len(data))]
        else:
            position, bit = rng.integers(len(data)), rng.integers(8)
            damaged = data[:position] + bytes([data[position] ^ (1 << bit)]) + data[position + 1 :]
        broken.write_bytes(damaged)
        with pytest.raises(containers.FileError, match="fit it again"):
            containers.load_arrays(broken, "field", "fit it again")


@pytest.mark.parametrize(
    "data", [b"", b"PK\x03\x04 zip", b"fts1 field", b"\x80\x05pickle.", b"fts1 field x\n{}\n"]
)
def test_foreign_files_are_refused(tmp_path, data):
    (tmp_path / "a.fts").write_bytes(data)
    with pytest.raises(containers.FileError, match="remedy"):
        containers.load_arrays(tmp_path / "a.fts", "field", "remedy")


def test_another_kind_is_refused_by_name(tmp_path):
    _store(tmp_path / "a.fts")
    with pytest.raises(containers.FileError, match="holds 'field', not 'observations'"):
        containers.load_arrays(tmp_path / "a.fts", "observations", "remedy")


def test_objects_are_not_stored(tmp_path):
    with pytest.raises(ValueError, match="dtype object"):
        containers.save_arrays(tmp_path / "a.fts", "field", {}, {"a": np.array([{}])})
    assert not list(tmp_path.iterdir())


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch):
    old = _store(tmp_path / "a.fts")
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        containers.write_atomic(tmp_path / "a.fts", b"new")
    assert [p.name for p in tmp_path.iterdir()] == ["a.fts"]
    assert (tmp_path / "a.fts").read_bytes() == old


def _write_forever(path: Path) -> None:
    for n in range(1_000_000):
        containers.save_arrays(path, "field", {"n": n}, {"a": np.full(4096, float(n))})


def test_twenty_killed_writers_leave_a_whole_file(tmp_path, rng):
    path = tmp_path / "a.fts"
    containers.save_arrays(path, "field", {"n": -1}, {"a": np.full(4096, -1.0)})
    context = multiprocessing.get_context("fork")
    for _ in range(20):
        writer = context.Process(target=_write_forever, args=(path,))
        writer.start()
        time.sleep(0.005 + 0.03 * rng.random())
        os.kill(writer.pid, signal.SIGKILL)
        writer.join()
        header, arrays = containers.load_arrays(path, "field", "remedy")
        assert np.all(arrays["a"] == header["n"])
    # What a killed writer leaves aside never looks like a stored file.
    assert {p.suffix for p in tmp_path.iterdir()} <= {".fts", ".partial"}


def test_content_key_ignores_order_and_refuses_nan():
    assert containers.content_key({"a": 1, "b": [1.5]}) == containers.content_key({"b": [1.5], "a": 1})
    assert containers.content_key({"a": 1}) != containers.content_key({"a": 2})
    with pytest.raises(ValueError, match="JSON"):
        containers.content_key(float("nan"))


def test_a_cache_that_cannot_be_written_loses_nothing(tmp_path, monkeypatch):
    """The folder is a file, and then the disk is full: the trajectory comes back all the same."""
    import platformdirs

    from fts.problems.trajectories import simulate

    (tmp_path / "file").write_text("in the way")
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda _: str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="not cached"):
        u = simulate("ad").u
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda _: str(tmp_path / "full"))

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(containers, "write_atomic", full)
    with pytest.warns(UserWarning, match="No space left"):
        np.testing.assert_array_equal(simulate("ad").u, u)
