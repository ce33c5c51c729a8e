"""What a file does never crashes, misleads or destroys."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pandas
import pytest
import scipy.io
import xarray
from malformed import GOOD, T, U, X, good_rows, mat, netcdf4, npz, parquet, table

import fts
from fts.containers import FileError
from fts.io.formats import FileWarning

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


def test_a_text_is_bounded_by_its_numbers_and_a_longer_one_at_once(tmp_path: Path, monkeypatch) -> None:
    long = table([f"{x:.20f},{t:.20f},{u:.20f}" for x, t, u in zip(X, T, U, strict=True)])
    path = _store(tmp_path / "a.csv", long)
    monkeypatch.setattr("fts.io.formats.LARGEST", 8 * 3 * len(U))
    assert len(long) > 2 * 8 * 3 * len(U)
    np.testing.assert_allclose(fts.read_samples(path).y, U, atol=1e-12)
    _refuse(_store(path, b"x,t,u\n" + b"".join(b"%d,0,1\n" % n for n in range(31))), "MB of numbers")
    monkeypatch.setattr("builtins.open", None)
    _refuse(_store(path, 2 * long), "MB of text")


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


def test_a_sentinel_is_refused_with_how_to_blank_it(tmp_path: Path) -> None:
    for marker in ("-999", "-9999", "1e20"):
        rows = [*good_rows(), f"0.55,0.5,{marker}", f"0.55,0.75,{marker}"]
        path = _store(tmp_path / "a.csv", table(rows))
        _refuse(path, "--missing")
        assert len(fts.read_samples(path, missing=[marker])) == 30
    u = np.array([1e20, 1e20, *U[2:]], np.float32)
    path = _store(tmp_path / "a.npz", npz(x=X, t=T, u=u))
    _refuse(path, "--missing 1")
    assert len(fts.read_samples(path, missing=["1e20"])) == 28


@pytest.mark.parametrize("marker", ["-999", "-999.0", "-9.99e2", " -999.00 "])
@pytest.mark.parametrize("stored", ["-999", "-999.0", "-999.00", "-9.99E+02"])
def test_a_marker_is_a_number_however_it_is_written(marker: str, stored: str, tmp_path: Path) -> None:
    path = _store(tmp_path / "a.csv", table([*good_rows(), f"0.55,0.5,{stored}", f"0.55,0.75,{stored}"]))
    np.testing.assert_array_equal(fts.read_samples(path, missing=[marker, "NA"]).y, U)
    rows = [row.replace(",", ";").replace(".", ",") for row in good_rows()]
    comma = _store(tmp_path / "b.csv", table([*rows, f"0,55;0,5;{stored.replace('.', ',')}"], "x;t;u"))
    np.testing.assert_array_equal(
        fts.read_samples(comma, decimal=",", missing=[marker.replace(".", ",")]).y, U
    )
    wide = table([f"0,1,2,3,{stored}", "1,2,3,4,5", "2,1,3,5,4", "3,7,6,5,4"], "x,0,1,2,3")
    assert len(fts.read_samples(_store(tmp_path / "c.csv", wide), missing=[marker])) == 15


def test_not_a_number_marks_missing_values_in_any_spelling(tmp_path: Path) -> None:
    path = _store(tmp_path / "a.csv", table([*good_rows(), "0.55,0.5,NaN", "0.55,0.75,nan"]))
    np.testing.assert_array_equal(fts.read_samples(path, missing=["nan"]).y, U)
    with pytest.raises(ValueError, match=r"u\[30\] is nan: drop the sample"):
        fts.read_samples(path, missing=["-999"])


def test_rows_given_twice_are_taken_once_and_counted(tmp_path: Path) -> None:
    path = _store(tmp_path / "a.csv", table([*good_rows(), *good_rows()[:3]]))
    with pytest.warns(FileWarning, match="3 rows twice"):
        np.testing.assert_array_equal(fts.read_samples(path).y, U)
    path = _store(tmp_path / "b.csv", table([*good_rows(), good_rows()[0] + "1"]))
    with pytest.raises(ValueError, match="average repeated"):
        fts.read_samples(path)


def test_a_second_column_of_values_is_named(tmp_path: Path) -> None:
    path = _store(tmp_path / "a.csv", table([f"{row},1.5" for row in good_rows()], "x,t,u,v"))
    with pytest.warns(FileWarning, match="also holds .'v'"):
        np.testing.assert_array_equal(fts.read_samples(path).y, U)
    fts.read_samples(path, columns={"u": "u"})


def test_dates_are_read_as_seconds_since_the_first(tmp_path: Path) -> None:
    dates = np.datetime64("2024-02-28T23:59:58") + (T * 4).astype(int) * np.timedelta64(1, "s")
    cells = [
        f"{x!r},{date},{u!r}" for x, date, u in zip(X.tolist(), dates.astype(str), U.tolist(), strict=True)
    ]
    path = _store(tmp_path / "a.csv", table(cells))
    with pytest.warns(FileWarning, match="seconds since 2024-02-28T23:59:58"):
        samples = fts.read_samples(path)
    np.testing.assert_allclose(samples.t, T * 4)
    _refuse(_store(tmp_path / "b.csv", table([*cells, "0.55,2024-02-28,1"])), "all times alike")
    _refuse(_store(tmp_path / "b.csv", table([*cells, "0.55,0.5,1"])), "all times alike")
    _refuse(_store(tmp_path / "b.csv", table([cells[0], "0.55,2024-02-30T00:00:00,1"])), "no such date")
    path.write_bytes(table(cells).partition(b"\n")[2])
    with pytest.warns(FileWarning, match="seconds since"):
        assert len(fts.read_samples(path, columns=["x", "t", "u"])) == 30


_DAYS = [f"2024-02-{day}" for day in (27, 28, 29)] + ["2024-03-01", "2024-03-02"]
_DEPTHS = ("0.5", "1", "1.5", "2", "2.5", "3")


@pytest.mark.parametrize("first", ["t", "time", "Date", "t\\x"])
@pytest.mark.parametrize("clock", ["", "T06:00:00Z", " 06:30"])
def test_a_wide_table_with_dates_is_read_like_one_with_numbers(
    first: str, clock: str, tmp_path: Path
) -> None:
    values = U.reshape(5, 6).tolist()
    dated, numbered = (
        table(
            [f"{time},{','.join(map(repr, row))}" for time, row in zip(times, values, strict=True)],
            ",".join([heading, *_DEPTHS]),
        )
        for heading, times in ((first, [day + clock for day in _DAYS]), ("t", np.arange(5) * 86400))
    )
    with pytest.warns(FileWarning, match="t of a.csv is read as seconds since 2024-02-27"):
        samples = fts.read_samples(_store(tmp_path / "a.csv", dated))
    expected = fts.read_samples(_store(tmp_path / "b.csv", numbered))
    for name in ("x", "t", "y"):
        np.testing.assert_array_equal(getattr(samples, name), getattr(expected, name))
    # The same, times along the heading.
    turned = [
        f"{x},{','.join(map(repr, column))}"
        for x, column in zip(_DEPTHS, U.reshape(5, 6).T.tolist(), strict=True)
    ]
    with pytest.warns(FileWarning, match="seconds since"):
        samples = fts.read_samples(_store(tmp_path / "c.csv", table(turned, ",".join(["depth", *_DAYS]))))
    np.testing.assert_array_equal(samples.grid.values, expected.grid.values)


def test_a_wide_table_with_dates_written_in_two_ways_is_refused(tmp_path: Path) -> None:
    rows = [f"{day},1,2,3,4,5,6" for day in _DAYS]
    for bad in ("2024-03-03T00:00:00", "5", "3.3.2024", "2024-02-30"):
        path = _store(tmp_path / "a.csv", table([*rows, f"{bad},1,2,3,4,5,6"], ",".join(["t", *_DEPTHS])))
        _refuse(path, "line 7 of a.csv holds .*(all times alike|no such date|must be a number)")


def test_a_column_per_named_sensor_is_refused_with_the_heading_to_write(tmp_path: Path) -> None:
    path = _store(tmp_path / "a.csv", table(["0,1,2,3", "1,2,3,4"], "time,north,south,east"))
    _refuse(path, "a column per sensor is headed by its position, the times before them by t")


def test_arrays_that_are_not_read_are_named(tmp_path: Path) -> None:
    flat = {**GOOD, "v": U + 1, "w": U + 2}
    about = {"note": np.array("by hand"), "count": np.array(30)}
    frame = pandas.DataFrame(flat).assign(who="me")
    stores = {
        "a.npz": npz(**flat, **about),
        "a.mat": mat(**flat, **about),
        "a.parquet": parquet(**flat, who=["me"] * 30),
        "a.nc": netcdf4(**{name: ("sample", values) for name, values in flat.items()}),
        "a.csv": frame.to_csv(index=False).encode(),
    }
    for source in [*(_store(tmp_path / name, data) for name, data in stores.items()), frame, dict(flat)]:
        with pytest.warns(FileWarning) as caught:
            np.testing.assert_array_equal(fts.read_samples(source).y, U)
        (line,) = (str(warning.message) for warning in caught)
        assert "also holds ['v', 'w'], not read" in line
        assert "\n" not in line
        with pytest.raises(FileWarning):  # an error where warnings are, not a damaged file
            fts.read_samples(source)
        fts.read_samples(source, columns={"u": "u"})  # was asked for by name: no warning
        np.testing.assert_array_equal(fts.read_samples(source, columns={"u": "w"}).y, U + 2)


def test_arrays_of_a_classic_netcdf_file_that_are_not_read_are_named(tmp_path: Path) -> None:
    with scipy.io.netcdf_file(tmp_path / "a.nc", "w") as file:
        file.createDimension("sample", 30)
        for name, values in {**GOOD, "v": U}.items():
            file.createVariable(name, "f8", ("sample",))[:] = values
    with pytest.warns(FileWarning, match="also holds .'v'., not read"):
        np.testing.assert_array_equal(fts.read_samples(tmp_path / "a.nc").y, U)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "count"),
    [
        *(("a.csv", 380), ("a.npz", 380), ("a.nc", 380), ("b.nc", 380), ("a.parquet", 380), ("a.mat", 60)),
        *(("a.csv.gz", 100), ("a.fts", 100)),
    ],
)
def test_mutated_files_are_read_or_refused(name: str, count: int, tmp_path: Path) -> None:
    """2,160 files of every format, in children: no crash, no other error, at most 1 GB and 10 s a file."""
    batch = Path(__file__).with_name("fuzz_batch.py")
    command = [sys.executable, batch, tmp_path, name, "0", str(count)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path.cwd())
    assert (done.returncode, done.stdout) == (0, f"{count} read\n"), done.stderr[-2000:]
