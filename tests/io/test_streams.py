"""Streams: every source gives the same samples, a pass adds up alike, and what is wrong is named."""

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tqdm.auto import tqdm

import fts
from fts.containers import FileError
from fts.io import passes, sources, streams
from fts.io.passes import Kept, reduce_chunks
from fts.io.streams import Survey, survey_chunk

pa = pytest.importorskip("pyarrow")
from pyarrow import parquet  # noqa: E402

BOX = fts.Domain((0.0,), (1.0,), 0.0, 2.0, (True,))


def _table(rng: np.random.Generator, count: int = 3000) -> dict[str, np.ndarray]:
    x, t = rng.random(count), 2 * rng.random(count)
    return {"x": x, "t": t, "u": np.sin(2 * np.pi * (x - t)) + 0.1 * rng.standard_normal(count)}


def _survey(stream: fts.io.streams.SampleStream, kept: Kept | None = None) -> Survey:
    with tqdm(disable=True) as bar:
        return reduce_chunks(stream.chunks, partial(survey_chunk, BOX), kept, None, bar)


def _folder(path: Path, table: dict[str, np.ndarray]) -> Path:
    """Parquet files of 700 samples, in groups of 300."""
    path.mkdir()
    for i in range(0, len(table["x"]), 700):
        part = pa.table({name: column[i : i + 700] for name, column in table.items()})
        parquet.write_table(part, path / f"part-{i:05}.parquet", row_group_size=300)
    return path


def _arrow(path: Path, table: dict[str, np.ndarray]) -> Path:
    whole = pa.table(table)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, whole.schema) as writer:
        writer.write_table(whole, max_chunksize=100)
    return path


def _saved(path: Path, array: np.ndarray) -> Path:
    np.save(path, array)
    return path


def _dataset(table: dict[str, np.ndarray]) -> Any:
    xarray = pytest.importorskip("xarray")
    return xarray.Dataset({name: ("sample", column) for name, column in table.items()})


def _netcdf(path: Path, table: dict[str, np.ndarray]) -> Path:
    _dataset(table).to_netcdf(path, engine="h5netcdf")
    return path


def _dask_array(table: dict[str, np.ndarray]) -> Any:
    array = pytest.importorskip("dask.array")
    return array.from_array(np.column_stack(list(table.values())), chunks=(777, 2))


def _dask_frame(table: dict[str, np.ndarray]) -> Any:
    frame = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    return frame.from_pandas(pandas.DataFrame(table), npartitions=4, sort=False)


def _chunks(table: dict[str, np.ndarray]) -> Iterator[dict[str, np.ndarray]]:
    for i in range(0, len(table["x"]), 900):
        yield {name: column[i : i + 900] for name, column in table.items()}


SOURCES = {
    "folder": lambda path, table: _folder(path / "samples", table),
    "arrow": lambda path, table: _arrow(path / "samples.arrow", table),
    "npy": lambda path, table: _saved(path / "samples.npy", np.column_stack(list(table.values()))),
    "structured": lambda path, table: _saved(
        path / "samples.npy",
        np.rec.fromarrays(list(table.values()), names=list(table)),  # pyright: ignore[reportArgumentType]
    ),
    "netcdf": lambda path, table: _netcdf(path / "samples.nc", table),
    "dataset": lambda _, table: _dataset(table),
    "dask array": lambda _, table: _dask_array(table),
    "dask frame": lambda _, table: _dask_frame(table),
    "mapping": lambda _, table: table,
    "list": lambda _, table: list(_chunks(table)),
    "function": lambda _, table: partial(_chunks, table),
    "observations": lambda _, table: fts.Observations(table["x"][:, None], table["t"], table["u"], BOX),
}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks and a reservoir of some hundred samples."""
    monkeypatch.setattr(streams, "BLOCK", 512)
    monkeypatch.setattr(streams, "RESERVOIR", 1000)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", SOURCES)
def test_every_source_gives_the_same_samples(name: str, tmp_path: Path, rng: np.random.Generator) -> None:
    table = _table(rng)
    expected = _survey(fts.stream_samples(list(_chunks(table)), BOX))
    stream = fts.stream_samples(SOURCES[name](tmp_path, table), BOX)
    survey = _survey(stream)
    assert survey.count == 3000
    assert len(survey.rows) == 1000
    assert np.array_equal(survey.rows, expected.rows)
    assert np.array_equal(survey.low, [table["x"].min(), table["t"].min()])
    assert survey.sensors is None
    names = [chunk.name for chunk in stream.chunks]
    assert len(set(names)) == len(names) > 1 or name in ("arrow", "list")


@pytest.mark.usefixtures("small")
def test_the_reservoir_is_the_samples_of_smallest_codes(rng: np.random.Generator) -> None:
    table = _table(rng)
    rows = np.column_stack(list(table.values()))
    codes = streams.row_codes((table["x"], table["t"]))
    expected = rows[codes <= np.sort(codes)[999]]
    for size in (1, 999, 1000, 1001, 3000):
        parts = [{n: c[i : i + size] for n, c in table.items()} for i in range(0, 3000, size)][:400]
        survey = _survey(fts.stream_samples(parts, BOX))
        if len(parts) * size >= 3000:
            assert np.array_equal(survey.rows, expected)


def test_a_grid_in_slabs_is_its_samples(tmp_path: Path, rng: np.random.Generator) -> None:
    xarray = pytest.importorskip("xarray")
    t, x, y = np.linspace(0, 2, 9), np.linspace(0, 1, 7, endpoint=False), np.linspace(3, 4, 5)
    u = rng.random((9, 5, 7))
    u[2, 3, 4] = np.nan  # not measured
    data = xarray.Dataset({"u": (("t", "y", "x"), u)}, {"t": t, "x": x, "y": y})
    whole = fts.read_samples(data)
    data.to_netcdf(tmp_path / "grid.nc", engine="h5netcdf")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "BLOCK", 20)  # less than a frame
        for source in (data, data.chunk({"t": 2}), tmp_path / "grid.nc"):
            stream = fts.stream_samples(source)
            with tqdm(disable=True) as bar:
                survey = reduce_chunks(stream.chunks, partial(survey_chunk, None), None, None, bar)
            samples = survey.observations(stream)
            order, other = (np.lexsort((*o.x.T, o.t)) for o in (samples, whole))
            assert np.array_equal(samples.y[order], whole.y[other])
            assert np.array_equal(samples.x[order], whole.x[other])
            assert survey.sensors is not None
            assert len(survey.sensors) == 35
            assert survey.frames is not None
            assert np.array_equal(survey.frames[:, 0], t)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (
            lambda t: t | {"u": np.where(t["x"] == t["x"][5], np.nan, t["u"])},
            r"part-01400.*u\[5\] is nan: drop",
        ),
        (lambda t: t | {"t": t["t"] + 5}, "part-01400.*lies outside.*enlarge the domain"),
        (lambda t: {"x": t["x"], "t": t["t"], "v": t["u"]}, "part-01400.*u missing, rename"),
        (lambda t: t | {"u": t["u"].astype(str)}, "u of part-01400.*has type string: store numbers"),
        (lambda t: t | {"u": 1e90 * t["u"]}, "part-01400.*change their unit"),
        (lambda t: t | {"y": t["x"]}, "part-01400.*2 axes of space, the domain 1: make them agree"),
    ],
)
def test_a_chunk_that_is_wrong_is_named(
    damage: Any, sentence: str, tmp_path: Path, rng: np.random.Generator
) -> None:
    folder = _folder(tmp_path / "samples", _table(rng))
    parquet.write_table(pa.table(damage(_table(rng, 500))), folder / "part-01400.parquet")
    with pytest.raises(FileError, match=sentence):
        fts.fit(fts.stream_samples(folder, BOX), progress=False)


@pytest.mark.parametrize("name", ["folder", "npy", "arrow", "netcdf"])
def test_a_file_that_ends_early_is_named(name: str, tmp_path: Path, rng: np.random.Generator) -> None:
    source = SOURCES[name](tmp_path, _table(rng))
    file = source / "part-01400.parquet" if source.is_dir() else source
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(FileError, match=f"{file.name} .*damaged or ends early.*write it again"):
        _survey(fts.stream_samples(source, BOX))


def _unreadable() -> Any:
    raise OSError("Couldn't deserialize thrift")


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda frame: frame.rename(columns={"u": "v"}), "has no column 'u': give all the same"),
        (lambda frame: frame.astype({"u": str}).astype(object), "holds objects.*store plain numbers"),
        (lambda frame: frame.assign(u=np.nan), r"u\[0\] is nan: drop"),
        (lambda frame: frame.assign(t=9.0), "lies outside.*enlarge the domain"),
        (lambda _: _unreadable(), "damaged or ends early .OSError: Couldn't.*write it again"),
    ],
)
def test_a_partition_that_is_wrong_is_named(wrong: Any, sentence: str, rng: np.random.Generator) -> None:
    dataframe, pandas = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    from dask import delayed

    good = pandas.DataFrame(_table(rng))
    parts = [delayed(good), delayed(wrong, pure=False)(delayed(good)), delayed(good)]
    collection = dataframe.from_delayed(parts, meta=good[:0], verify_meta=False)
    with pytest.raises(FileError, match=f"partition 1 of the Dask DataFrame.*{sentence}"):
        fts.fit(fts.stream_samples(collection, BOX), progress=False)


def test_a_file_cut_after_it_was_opened_is_named(tmp_path: Path, rng: np.random.Generator) -> None:
    folder = _folder(tmp_path / "samples", _table(rng))
    stream = fts.stream_samples(folder, BOX)
    file = folder / "part-00700.parquet"
    file.write_bytes(file.read_bytes()[:5000])
    with pytest.raises(FileError, match=r"part-00700\.parquet is damaged or ends early"):
        _survey(stream)


@pytest.mark.usefixtures("small")
def test_samples_that_change_between_passes_are_refused(rng: np.random.Generator) -> None:
    passed = []

    def growing() -> list[dict[str, np.ndarray]]:
        passed.append(None)
        return [_table(np.random.default_rng(0), 3000 + len(passed))]

    with pytest.raises(FileError, match="held 3,001 samples at first, now 3,002: read samples that nobody"):
        fts.fit(fts.stream_samples(growing, BOX), progress=False)


def test_a_package_that_is_missing_is_asked_for_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "samples.zarr").mkdir()
    for package in ("zarr", "xarray"):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(ValueError, match=rf"samples\.zarr .* needs {package}.*pip install"):
            fts.stream_samples(tmp_path / "samples.zarr")


def test_what_is_no_source_is_answered(tmp_path: Path, rng: np.random.Generator) -> None:
    (tmp_path / "empty").mkdir()
    for source, sentence in (
        (iter([_table(rng)]), "can be read only once.*give a list, or a function"),
        (tmp_path / "empty", "holds no Parquet or Arrow files: name"),
        (tmp_path / "none.npy", "no file or folder at .*give one"),
        (3, "source is 3: name a file"),
        (np.zeros((4, 7)), r"shape \(4, 7\): give one row per sample"),
    ):
        with pytest.raises(ValueError, match=sentence):
            fts.stream_samples(source)
    with pytest.raises(FileError, match="holds no samples: give columns"):
        _survey(fts.stream_samples(list, BOX))
    with pytest.raises(ValueError, match="recipe 'paper' takes samples in memory"):
        fts.fit(fts.stream_samples([_table(rng)]), "paper", progress=False)
    with pytest.raises(ValueError, match="one equation for u_t, without inputs"):
        fts.discover(fts.stream_samples([_table(rng)]), target="u_tt", progress=False)


def test_positions_sampled_again_and_again_are_refused(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    monkeypatch.setattr(streams, "RESERVOIR", 100)
    table = {name: np.repeat(column[:1], 900) for name, column in _table(rng).items()}
    with pytest.raises(FileError, match="sampled some 800 times: average"):
        _survey(fts.stream_samples([table], BOX))


def _kept(path: Path) -> Kept[Survey]:
    return Kept(path, Survey, "box")


@pytest.mark.usefixtures("small")
def test_an_interrupted_pass_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rng: np.random.Generator
) -> None:
    table, kept = _table(rng), _kept(tmp_path / "kept.fts")
    stream = fts.stream_samples(_folder(tmp_path / "samples", table), BOX)
    whole, read = _survey(stream), []
    blocks = streams.Chunk.blocks

    def failing(chunk: streams.Chunk) -> Any:
        read.append(chunk.name)
        if len(read) == 4:
            raise KeyboardInterrupt
        return blocks(chunk)

    monkeypatch.setattr(streams.Chunk, "blocks", failing)
    with pytest.raises(KeyboardInterrupt):
        _survey(stream, kept)
    resumed = _survey(stream, kept)
    names = [chunk.name for chunk in stream.chunks]
    assert read == [*names[:4], *names[3:]]
    assert np.array_equal(resumed.rows, whole.rows)
    assert resumed.count == whole.count
    # A finished pass is not done again, a chunk that changed makes what is kept worthless.
    assert np.array_equal(_survey(stream, kept).rows, whole.rows)
    assert len(read) == 4 + len(names) - 3
    changed = replace(stream, chunks=[replace(c, mark="new") for c in stream.chunks])
    assert np.array_equal(_survey(changed, kept).rows, whole.rows)
    assert len(read) == 4 + 2 * len(names) - 3


def test_a_damaged_file_of_sums_is_made_again(tmp_path: Path, rng: np.random.Generator) -> None:
    stream, kept = fts.stream_samples([_table(rng)], BOX), _kept(tmp_path / "kept.fts")
    whole = _survey(stream, kept)
    kept.path.write_bytes(kept.path.read_bytes()[:-100])
    assert np.array_equal(_survey(stream, kept).rows, whole.rows)


def test_a_full_disk_is_said_and_loses_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rng: np.random.Generator
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(passes.containers, "save_arrays", full)
    stream = fts.stream_samples([_table(rng)], BOX)
    with pytest.warns(UserWarning, match="sums up to chunk 0 are not kept .No space left on device.: free"):
        survey = _survey(stream, _kept(tmp_path / "kept.fts"))
    assert survey.count == 3000
    assert not list(tmp_path.iterdir())


def test_a_disk_that_fills_while_sums_are_written_leaves_nothing(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    resource = pytest.importorskip("resource")
    stream = fts.stream_samples([_table(rng)], BOX)
    least, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, most))  # Python ignores the signal, the write fails
    try:
        with pytest.warns(UserWarning, match="sums up to chunk 0 are not kept .File too large.: free"):
            survey = _survey(stream, _kept(tmp_path / "kept.fts"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (least, most))
    assert survey.count == 3000
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("small")
def test_a_fit_goes_on_in_either_pass_where_a_chunk_was_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rng: np.random.Generator
) -> None:
    folder = _folder(tmp_path / "samples", _table(rng))
    expected = fts.fit(fts.stream_samples(folder, BOX, kept=tmp_path / "other"), progress=False)
    tables, read = sources._parquet_tables, []

    def damaging(path: Path, *arguments: Any) -> Iterator[Any]:
        read.append((path.name, arguments[0]))
        for table in tables(path, *arguments):
            # The fifth chunk in the first pass, the third in the second.
            yield table | {"u": table["u"] * np.nan} if len(read) in (5, 5 + 1 + 4 + 3) else table

    monkeypatch.setattr(sources, "_parquet_tables", damaging)
    stream = fts.stream_samples(folder, BOX, kept=tmp_path / "kept")
    for name in ("part-01400", "part-00700"):
        with pytest.raises(FileError, match=rf"{name}.*u\[0\] is nan: drop"):
            fts.fit(stream, progress=False)
    field = fts.fit(stream, progress=False)
    # Every chunk was read once in each pass, those refused once more.
    assert len(list(stream.chunks)) == 9
    assert sorted(read) == sorted([*2 * read[5:10], *2 * read[:4], read[4], read[12]])
    axes = np.linspace(0, 1, 9), np.linspace(0, 2, 9)
    assert np.array_equal(field.on_grid(*axes), expected.on_grid(*axes))
    assert not list((tmp_path / "kept").iterdir())


@pytest.mark.usefixtures("small")
def test_nothing_is_left_once_the_fit_is_done(tmp_path: Path, rng: np.random.Generator) -> None:
    folder = _folder(tmp_path / "samples", _table(rng))
    stream = fts.stream_samples(folder, BOX, kept=tmp_path / "kept")
    fts.fit(stream, progress=False)
    assert not list((tmp_path / "kept").iterdir())


def test_the_command_reads_in_chunks(
    tmp_path: Path, rng: np.random.Generator, capsys: pytest.CaptureFixture[str]
) -> None:
    from fts.cli import main

    x, t = 2 * np.pi * rng.random(2500), rng.random(2500)
    u = np.exp(-t) * np.sin(x - t) + np.exp(-4 * t) * np.cos(2 * (x - t))
    np.save(tmp_path / "samples.npy", np.column_stack([x, t, u]))
    axis = f"x=0:{2 * np.pi}:periodic"
    command = ["discover", str(tmp_path / "samples.npy"), "--axis", axis, "--json", "--quiet"]
    main([*command, "--library", "u", "u_x", "u_xx", "u*u_x"])
    printed = capsys.readouterr()
    assert not printed.err
    answer = json.loads(printed.out)
    assert set(answer["coefficients"]) == {"u_x", "u_xx"}
    assert answer["samples"] == 2500
    assert answer["domain"]["periodic"] == [True]
    assert main([*command, "--missing", "-9"]) == 2
    assert "--missing does not hold" in capsys.readouterr().err
    assert main([*command, "--decimal", ","]) == 2
    assert "--decimal does not hold" in capsys.readouterr().err
    assert main([*command, "--scheduler", "tcp://127.0.0.1:1"]) == 2
    assert re.search("no Dask scheduler answers at tcp://127.0.0.1:1", capsys.readouterr().err)
