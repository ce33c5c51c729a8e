"""What people have is read; the malformed is refused in one line, in bounded memory, with nothing written."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray
from malformed import GOOD, T, U, X, corpus, good_rows, mat, netcdf, netcdf4, npz, parquet, table

import fts
from fts import cli

CORPUS = corpus()
REMEDY = (":", ";", ",")


def _refused(capsys: pytest.CaptureFixture, arguments: list[str]) -> str:
    """The one line of a refusal after any warnings; fails on a verdict, a traceback, or a second line."""
    code = cli.main(["discover", *arguments, "--quiet"])
    output = capsys.readouterr()
    assert (code, output.out) == (2, ""), output
    *warned, line = output.err.splitlines(keepends=True)
    assert all(text.startswith("fts: warning: ") for text in warned), output.err
    assert line.startswith("fts: ")
    assert line.endswith("\n")
    assert len(line) < 700
    return line


def test_the_corpus_is_as_large_as_the_one_that_found_the_faults() -> None:
    assert len(CORPUS) >= 177


@pytest.mark.parametrize("name", CORPUS)
def test_a_malformed_file_is_refused_in_one_line(name: str, tmp_path: Path, capsys) -> None:
    path = tmp_path / name
    path.write_bytes(CORPUS[name])
    line = _refused(capsys, [str(path)])
    # What is wrong, and after a sign what to do about it.
    assert any(sign in line[5:] for sign in REMEDY), line
    assert list(tmp_path.iterdir()) == [path]


MEASURE = """
import re, sys
from pathlib import Path
from fts import cli
codes = [cli.main(["discover", path, "--quiet"]) for path in sys.argv[1:]]
assert set(codes) == {2}, codes
# The peak of this program alone: getrusage counts the process it was started from.
print(int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text()).group(1)) >> 10)
"""


def test_the_largest_files_are_refused_in_bounded_memory(tmp_path: Path) -> None:
    """A process of its own: 500 MB for everything, of which the libraries take a hundred."""
    names = [
        name for name in CORPUS if name.startswith(("bomb", "huge", "one-long", "long-", "many", "header"))
    ]
    paths = [tmp_path / name for name in names]
    for path in paths:
        path.write_bytes(CORPUS[path.name])
    # A text that is as large as texts may be, and ends in a cell that is no number.
    paths.append(tmp_path / "large.csv")
    with paths[-1].open("wb") as stream:
        stream.write(b"x,t,u\n")
        for start in range(40):
            stream.write(b"".join(b"%d,%d,0.123456789\n" % (start, i) for i in range(10_000)))
        stream.write(b"0,0,word\n")
    command = [sys.executable, "-c", MEASURE, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Traceback" not in done.stderr
    assert int(done.stdout) < 500


def _same(samples: fts.Observations) -> None:
    order = np.lexsort((samples.t, samples.x[:, 0]))
    expected = np.lexsort((T, X))
    np.testing.assert_allclose(samples.x[order, 0], X[expected])
    np.testing.assert_allclose(samples.t[order], T[expected])
    np.testing.assert_allclose(samples.y[order], U[expected])


def _grid_text() -> str:
    """Rows are positions, columns times."""
    rows = [f"{x!r},{','.join(map(repr, row))}" for x, row in zip(_AXES[0], _GRID.tolist(), strict=True)]
    return "\n".join([f"x,{','.join(map(repr, _AXES[1]))}", *rows]) + "\n"


_AXES = (np.unique(X).tolist(), np.unique(T).tolist())
_GRID = U.reshape(6, 5)
_ROWS = table(good_rows()).decode()
_COMMA = "\n".join(["x;t;u", *(row.replace(",", ";").replace(".", ",") for row in good_rows())])
_EXTRA = "\n".join(["name,x,t,u", *(f"probe {i},{row}" for i, row in enumerate(good_rows()))])
_WIDE_T = "\n".join(
    [f"t\\x,{','.join(map(repr, _AXES[0]))}"]
    + [f"{t!r},{','.join(map(repr, column))}" for t, column in zip(_AXES[1], _GRID.T.tolist(), strict=True)]
)
READ = {
    "commas.csv": (_ROWS, {}),
    "byte-order-mark.csv": ("\ufeff" + _ROWS, {}),
    "windows.csv": (_ROWS.replace("\n", "\r\n"), {}),
    "capitals.CSV": (_ROWS.replace("x,t,u", " X , T,U"), {}),
    "semicolons.csv": (_ROWS.replace(",", ";"), {}),
    "tabs.tsv": (_ROWS.replace(",", "\t"), {}),
    "blanks.txt": (_ROWS.replace(",", "   "), {}),
    "numpy.txt": ("# x t u\n" + _ROWS.replace(",", " ").partition("\n")[2], {}),
    "comments.csv": ("# from the lab\n% of 2024\n\n" + _ROWS + "# the end\n", {}),
    "decimal-commas.csv": (_COMMA, {"decimal": ","}),
    "missing-blank.csv": (_ROWS + "0.55,0.5,\n0.55,0.75,  \n,,\n", {}),
    "missing-marked.csv": (_ROWS + "0.55,0.5,NA\n0.55,0.75,-999\n", {"missing": ["NA", "-999"]}),
    "named.csv": (
        _ROWS.replace("x,t,u", "pos,time,h"),
        {"columns": {"x": "pos", "t": "Time", "u": "h"}},
    ),
    "swapped.csv": (_ROWS.replace("x,t,u", "t,x,u"), {"columns": {"x": "t", "t": "x"}}),
    "in-order.csv": (_ROWS.partition("\n")[2], {"columns": ["x", "t", "u"]}),
    "in-order-headed.csv": (_ROWS.replace("x,t,u", "a,b,c"), {"columns": ["x", "t", "u"]}),
    "extra-column.csv": (_EXTRA, {}),
    "wide.csv": (_grid_text(), {}),
    "wide-blank.csv": (_grid_text() + "0.55,,,,,\n", {}),
    "wide-by-time.csv": (_WIDE_T, {}),
    "wide-named.csv": (_grid_text().replace("x,", "pos,", 1), {"columns": {"x": "pos"}}),
    "flat.npz": (npz(**GOOD), {}),
    "grid.npz": (npz(x=_AXES[0], t=_AXES[1], u=_GRID), {}),
    "grid-time-first.npz": (npz(x=_AXES[0], t=_AXES[1], u=_GRID.T), {}),
    "grid-component.npz": (
        npz(x=_AXES[0], t=_AXES[1], u=_GRID[..., None], du=_GRID),
        {"columns": {"u": "u"}},
    ),
    "fortran.npz": (npz(x=_AXES[0], t=_AXES[1], u=np.asfortranarray(_GRID)), {}),
    "meshgrid.npz": (npz(x=X.reshape(6, 5), t=T.reshape(6, 5), u=_GRID), {}),
    "real-complex.npz": (npz(x=X, t=T, u=U.astype(complex)), {}),
    "single.npz": (npz(x=X, t=T, U=U), {}),
    "missing.npz": (npz(x=[*X, 0.55], t=[*T, 0.5], u=[*U, np.nan]), {"missing": ["nan"]}),
    "named.npz": (npz(x=_AXES[0], tt=_AXES[1], uu=_GRID), {"columns": {"t": "tt", "u": "uu"}}),
    "matlab.mat": (mat(x=_AXES[0], t=np.array(_AXES[1])[:, None], u=_GRID), {}),
    "named.mat": (mat(x=_AXES[0], tt=_AXES[1], usol=_GRID), {"columns": {"t": "tt", "u": "usol"}}),
    "grid.nc": (netcdf(("x", "t"), ("x", "t")), {}),
    "grid-4.nc": (netcdf4(u=(("x", "t"), _GRID), x=_AXES[0], t=_AXES[1]), {}),
    "grid-4-time-first.nc": (netcdf4(u=(("t", "x"), _GRID.T), x=_AXES[0], t=_AXES[1]), {}),
    "flat-4.nc": (netcdf4(**{name: ("sample", values) for name, values in GOOD.items()}), {}),
    "flat.parquet": (parquet(**GOOD), {}),
    "single.parquet": (parquet(X=X, T=T, u=U, name=["probe"] * 30), {}),
    "named.parquet": (parquet(pos=X, t=T, u=U), {"columns": {"x": "pos"}}),
    "grid-time-first.nc": (netcdf(("x", "t"), ("t", "x")), {}),
}


@pytest.mark.parametrize("name", READ)
def test_what_people_have_is_read(name: str, tmp_path: Path) -> None:
    content, how = READ[name]
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    _same(fts.read_samples(path, **how))


def test_values_a_file_declares_missing_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "fill.nc").write_bytes(netcdf(("x", "t"), ("x", "t"), fill=True))
    samples = fts.read_samples(tmp_path / "fill.nc")
    assert len(samples) == 29
    assert samples.grid is None


def test_two_dimensional_grids_are_read(tmp_path: Path) -> None:
    axes = np.arange(4.0), np.arange(5.0), np.arange(6.0)
    u = np.arange(120.0).reshape(4, 5, 6)
    (tmp_path / "plane.npz").write_bytes(npz(x=axes[0], y=axes[1], t=axes[2], u=u))
    samples = fts.read_samples(tmp_path / "plane.npz")
    assert samples.domain.dimension == 2
    np.testing.assert_array_equal(samples.grid.values, u.reshape(20, 6))


def test_a_value_missing_in_parquet_is_not_a_sample(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(parquet(**GOOD | {"u": [None, *U[1:]]}))
    samples = fts.read_samples(tmp_path / "a.parquet")
    np.testing.assert_array_equal(samples.y, U[1:])


def test_missing_and_scaled_values_of_netcdf_4(tmp_path: Path) -> None:
    stored = xarray.Dataset({"u": (("t", "x"), _GRID.T.copy())}, {"x": _AXES[0], "t": _AXES[1]})
    stored["u"][1, 2] = np.nan
    stored["u"].encoding = {"dtype": "i4", "scale_factor": 1e-8, "add_offset": 0.5, "_FillValue": -1}
    stored.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    samples = fts.read_samples(tmp_path / "a.nc")
    there = np.ones((6, 5), bool)
    there[2, 1] = False
    np.testing.assert_array_equal(samples.x[:, 0], X[there.ravel()])
    np.testing.assert_allclose(samples.y, _GRID[there], atol=1e-8)


def test_a_dataset_is_read_as_its_file_is(tmp_path: Path) -> None:
    stored = xarray.Dataset({"h": (("t", "pos"), _GRID.T)}, {"pos": _AXES[0], "t": _AXES[1]})
    columns = {"x": "pos", "u": "h"}
    _same(fts.read_samples(stored, columns=columns))
    stored.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    _same(fts.read_samples(tmp_path / "a.nc", columns=columns))
    for wrong, reported in (({"u": "v"}, "did you mean|no column"), (["x", "t", "u"], "which is which")):
        with pytest.raises(ValueError, match=reported):
            fts.read_samples(stored, columns=wrong)
    with pytest.raises(ValueError, match="seconds since"):
        fts.read_samples(stored.assign_coords(t=np.arange(5).astype("M8[s]")), columns=columns)
    with pytest.raises(ValueError, match="a DataArray: give"):
        fts.read_samples(stored["h"])


@pytest.mark.parametrize("packages", [("pyarrow",), ("xarray",), ("h5py",)])
def test_what_is_not_installed_is_asked_for_by_name(tmp_path: Path, monkeypatch, packages) -> None:
    for name in packages:
        monkeypatch.setitem(sys.modules, name, None)
    path = tmp_path / ("a.parquet" if packages == ("pyarrow",) else "a.nc")
    path.write_bytes(parquet(**GOOD) if path.suffix == ".parquet" else READ["grid-4.nc"][0])
    with pytest.raises(ValueError, match=r"pip install 'fts\[formats\]'"):
        fts.read_samples(path)


def _long_table(tmp_path: Path, change: dict[int, str]) -> tuple[Path, np.ndarray]:
    """50,000 samples, more than are read at once, with some lines replaced."""
    rng = np.random.default_rng(0)
    rows = rng.random((50_000, 3))
    lines = [f"{x!r},{t!r},{u!r}" for x, t, u in rows.tolist()]
    for number, line in change.items():
        lines[number] = line
    path = tmp_path / "long.csv"
    path.write_text("x,t,u\n" + "\n".join(lines) + "\n")
    return path, rows


@pytest.mark.parametrize(
    "late", ["0.25, ,0.5", '"0.25",0.125,0.5', "# a comment", "0.25,0.125,", " 0.25 , 0.125 , 0.5 "]
)
def test_a_long_table_is_read_the_same_whatever_stands_late_in_it(late: str, tmp_path: Path) -> None:
    path, rows = _long_table(tmp_path, {40_000: late})
    if late == "0.25, ,0.5":
        with pytest.raises(ValueError, match=r"line 40002 of long\.csv holds '' for t"):
            fts.read_samples(path)
        return
    o = fts.read_samples(path)
    expected = np.insert(np.delete(rows, 40_000, axis=0), 40_000, [0.25, 0.125, 0.5], axis=0)
    if late in ("# a comment", "0.25,0.125,"):
        expected = np.delete(rows, 40_000, axis=0)
    np.testing.assert_array_equal(np.column_stack([o.x, o.t, o.y]), expected)


@pytest.mark.parametrize("cell", ["1_0", "\u0661", "1d3", "0x1p3", "1+2j", "(1)", "0.5;"])
def test_a_slip_late_in_a_long_table_is_refused_with_its_line(cell: str, tmp_path: Path) -> None:
    path, _ = _long_table(tmp_path, {40_000: f"0.25,0.125,{cell}"})
    with pytest.raises(ValueError, match=r"line 40002 of long\.csv"):
        fts.read_samples(path)
