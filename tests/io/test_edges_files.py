"""What a file does never crashes, misleads or destroys."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.io
import xarray
from malformed import T, U, X, good_rows, mat, netcdf4, npz, parquet, table

import fts
from fts.containers import FileError

AXES = (np.unique(X), np.unique(T))
GRID = U.reshape(6, 5)


def _refuse(path: Path, match: str, **how) -> None:
    with pytest.raises(FileError, match=match):
        fts.read_samples(path, **how)


def _store(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def _plain_mat(path: Path, **arrays) -> bytearray:
    scipy.io.savemat(path, arrays)
    return bytearray(path.read_bytes())


def test_a_damaged_mat_file_never_ends_the_process(tmp_path: Path) -> None:
    """In a script without a guard, as a user's is."""
    path = tmp_path / "a.mat"
    data = _plain_mat(path, x=X, t=T, u=U)
    data[176] ^= 0xFF
    path.write_bytes(data)
    script = _store(
        tmp_path / "script.py",
        b"import sys, fts\ntry:\n    fts.read_samples(sys.argv[1])\n"
        b"except ValueError as error:\n    print('refused', error)\n",
    )
    done = subprocess.run([sys.executable, script, path], capture_output=True, text=True, cwd=Path.cwd())
    assert done.returncode == 0, done
    assert done.stdout.startswith("refused")
    assert "damaged" in done.stdout


@pytest.mark.parametrize("ending", ["npz", "mat"])
@pytest.mark.parametrize(("kind", "n"), [("f2", 11_000), ("u1", 16_000)])
def test_a_grid_is_bounded_by_what_it_becomes(ending: str, kind: str, n: int, tmp_path: Path) -> None:
    if ending == "mat" and kind == "f2":
        kind = "i1"
    arrays = {"x": np.arange(n), "t": np.arange(n, dtype=float), "u": np.zeros((n, n), kind)}
    path = tmp_path / f"a.{ending}"
    if ending == "npz":
        np.savez_compressed(path, **arrays)
    else:
        scipy.io.savemat(path, arrays, do_compression=True)
    _refuse(path, "MB of numbers")


def test_a_text_that_grows_is_not_followed(tmp_path: Path, monkeypatch) -> None:
    path = _store(tmp_path / "a.csv", table(good_rows()))
    stat = os.stat(path)
    smaller = os.stat_result((*stat[:6], stat.st_size - 40, *stat[7:10]))
    monkeypatch.setattr(Path, "stat", lambda self, **_: smaller)
    _refuse(path, "grew while it was read")


def test_arrays_kept_in_other_files_are_refused(tmp_path: Path) -> None:
    secret = _store(tmp_path / "secret", U.tobytes())
    for name in ("external", "link", "soft", "virtual"):
        path = tmp_path / f"{name}.nc"
        with h5py.File(path, "w") as file:
            file["x"], file["t"] = X, T
            if name == "external":
                file.create_dataset("u", (30,), "f8", external=[(str(secret), 0, h5py.h5f.UNLIMITED)])
            elif name == "virtual":
                layout = h5py.VirtualLayout((30,), "f8")
                layout[:] = h5py.VirtualSource(str(tmp_path / "b.h5"), "u", (30,))
                file.create_virtual_dataset("u", layout)
            else:
                link = h5py.ExternalLink(str(tmp_path / "b.h5"), "u")
                file["u"] = link if name == "link" else h5py.SoftLink("/x")
        _refuse(path, "links to another place or file")


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.csv")
    _refuse(tmp_path / "a.csv", "no regular file")
    (tmp_path / "b.npz").mkdir()
    _refuse(tmp_path / "b.npz", "no regular file")


@pytest.mark.parametrize("ending", ["npz", "mat"])
def test_a_square_grid_without_named_dimensions_is_refused(ending: str, tmp_path: Path) -> None:
    x, t, u = np.arange(5.0), np.arange(5.0), np.arange(25.0).reshape(5, 5)
    write = npz if ending == "npz" else mat
    path = _store(tmp_path / f"a.{ending}", write(x=x, t=t, u=u))
    _refuse(path, "time may run first or last")
    grid = np.meshgrid(x, t, indexing="ij")
    path.write_bytes(write(x=grid[0], t=grid[1], u=u))
    np.testing.assert_array_equal(fts.read_samples(path).grid.values, u)


def test_dimensions_decide_how_a_square_grid_lies(tmp_path: Path) -> None:
    u = np.arange(25.0).reshape(5, 5)
    axes = {"x": np.arange(5.0), "t": np.arange(5.0)}
    path = _store(tmp_path / "a.nc", netcdf4(u=(("t", "x"), u), **axes))
    np.testing.assert_array_equal(fts.read_samples(path).grid.values, u.T)
    stored = xarray.Dataset({"u": (("t", "x"), u)}, axes)
    np.testing.assert_array_equal(fts.read_samples(stored).grid.values, u.T)


def test_complex_values_logicals_and_long_integers_are_refused(tmp_path: Path) -> None:
    complex_u = U.astype(complex)
    complex_u[7] += 1e-3j
    _refuse(_store(tmp_path / "a.npz", npz(x=X, t=T, u=complex_u)), "real part")
    _refuse(_store(tmp_path / "a.mat", mat(x=X, t=T, u=complex_u)), "real part")
    _refuse(_store(tmp_path / "b.npz", npz(x=X, t=T, u=U > 0.5)), "store numbers")
    _refuse(_store(tmp_path / "b.mat", mat(x=X, t=T, u=U > 0.5)), "logical")
    for kind in ("u8", "i8"):
        long = (np.arange(30) + 2**53 + 1).astype(kind)
        _refuse(_store(tmp_path / "c.npz", npz(x=X, t=T, u=long)), "beyond 2\\^53")
        _refuse(_store(tmp_path / "c.mat", mat(x=X, t=T, u=long)), "beyond 2\\^53")
        _refuse(
            _store(tmp_path / "c.nc", netcdf4(**{n: ("n", v) for n, v in (("x", X), ("t", T), ("u", long))})),
            "2\\^53",
        )
        _refuse(_store(tmp_path / "c.parquet", parquet(x=X, t=T, u=[None, *long[1:].tolist()])), "2\\^53")


def test_packed_text_is_read_within_bounds(tmp_path: Path, monkeypatch) -> None:
    path = _store(tmp_path / "a.csv.gz", gzip.compress(table(good_rows())))
    np.testing.assert_array_equal(fts.read_samples(path).y, U)
    whole = path.read_bytes()
    for damaged in (whole[:-20], whole[:40] + b"\xff\xff" + whole[42:], table(good_rows())):
        _refuse(
            _store(tmp_path / "b.txt.gz", damaged), "damaged or no gzip|is no table|UTF-8|number|values for"
        )
    rows = b"0,0,0\n" * (1 << 20)
    bomb = _store(tmp_path / "bomb.csv.gz", gzip.compress(b"x,t,u\n" + rows))
    monkeypatch.setattr("fts.io.formats.LARGEST", 1 << 22)
    _refuse(bomb, "MB of numbers")
    _refuse(_store(tmp_path / "a.npz.gz", b""), "unpack it")
