"""Large files, folders of files, lazy arrays and collections -> streams of chunks.

Parquet files and folders of them, Arrow files, .npy files by memory maps, NetCDF files and Zarr stores
through xarray; xarray Datasets, Dask dataframes and arrays, mappings of arrays that are sliced, and any
iterable of tables. Only what describes them is read here; samples are read when a chunk is.
"""

import importlib
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs

from fts import containers, validation
from fts.containers import FileError
from fts.domain import Domain
from fts.io import formats, streams
from fts.io.formats import COORDINATES, Arrays, Columns, assign
from fts.io.readers import is_dataset, is_table, require_columns, table_columns
from fts.io.streams import Chunk, SampleStream
from fts.observations import Observations

PARQUET, ARROW = (".parquet",), (".arrow", ".feather", ".ipc")
# Files that are read as streams only; Parquet and NetCDF files are where they are too large to be read whole.
STREAMED = (*ARROW, ".npy", ".zarr")
_IN_ORDER = {3: ("x", "t", "u"), 4: ("x", "y", "t", "u"), 5: ("x", "y", "z", "t", "u")}


@validation.explain_signature_errors
def stream_samples(
    source: Any,
    domain: Domain | None = None,
    *,
    columns: Columns = None,
    kept: str | Path | None = None,
) -> SampleStream:
    """Samples that are read in chunks while a field is fitted: of files, arrays and collections of any size.

    `source` names a file (.parquet, .arrow, .npy, .nc), a folder of Parquet or Arrow files, or a Zarr store;
    or it is an xarray Dataset, a Dask dataframe or array, a mapping of arrays, a list of tables, or a
    function that returns an iterator over tables. `columns` says which are x, [y, [z,]] t and u where they
    are called otherwise; arrays without names have them in this order unless it lists another.
    `kept` names a folder for what is summed up so far, from which an interrupted fit goes on; for files it is
    the user's cache unless said otherwise.
    """
    require_columns(columns)
    remedy = "give fts.Domain((0,), (1,), 0, 1, (False,))"
    validation.require_type((Domain, type(None)), domain, "domain", remedy)
    validation.require_type((str, Path, type(None)), kept, "kept", "give the name of a folder")
    if isinstance(source, SampleStream):
        return source
    chunks, name = _chunks(source, columns)
    where = os.path.abspath(source) if isinstance(source, (str, Path)) else name
    if kept is None and isinstance(source, (str, Path)):
        kept = Path(platformdirs.user_cache_dir("fts")) / "sums"
    key = containers.content_key([where, dict(columns) if isinstance(columns, Mapping) else columns])
    return SampleStream(chunks, domain, name, None if kept is None else Path(kept) / key)


def is_large(source: Any) -> bool:
    """Whether samples are read in chunks rather than whole: by what they are, or by their size."""
    if isinstance(source, (str, Path)):
        path = Path(source)
        if not os.path.exists(path):  # also a name that no file system takes
            return False
        if path.suffix.lower() in STREAMED or path.is_dir():
            return True
        return (
            path.suffix.lower() in (*PARQUET, ".nc") and path.is_file() and _promised(path) > formats.LARGEST
        )
    return isinstance(source, SampleStream) or callable(source) or _is_dask(source) or _is_lazy(source)


def _promised(path: Path) -> int:
    """Bytes of the numbers in a file, or none where it cannot be read, which its reader says."""
    try:
        if path.suffix.lower() == ".nc":
            return path.stat().st_size
        from pyarrow import parquet

        with parquet.ParquetFile(path) as file:
            return 8 * file.metadata.num_rows * min(file.metadata.num_columns, len(COORDINATES) + 2)
    except Exception:  # whatever a damaged file ends in
        return 0


def _is_dask(source: Any) -> bool:
    return type(source).__module__.partition(".")[0].startswith("dask") and hasattr(source, "to_delayed")


def _is_lazy(source: Any) -> bool:
    """Whether it is a Dataset whose numbers a Dask collection makes, or too many to be read whole."""
    if not is_dataset(source):
        return False
    return bool(source.chunks) or source.nbytes > formats.LARGEST


def _chunks(source: Any, columns: Columns) -> tuple[Iterable[Chunk], str]:
    """The chunks of a source, and what errors call it."""
    kind = type(source).__name__
    if isinstance(source, (str, Path)):
        return _file_chunks(Path(source), columns), Path(source).name
    if isinstance(source, Observations):
        return observed_chunks(source), source.source
    if is_dataset(source):
        return _dataset_chunks(source, columns, "the Dataset", None), "the Dataset"
    if _is_dask(source):
        return _partitions(source, columns, f"the Dask {kind}"), f"the Dask {kind}"
    if isinstance(source, Mapping):
        return _slices(source, columns, f"the {kind}", None), f"the {kind}"
    if isinstance(source, Iterator):
        remedy = "give a list, or a function that makes it anew"
        raise ValueError(f"the {kind} can be read only once, a fit reads samples twice: {remedy}")
    if callable(source) or (isinstance(source, Iterable) and not isinstance(source, np.ndarray)):
        return _Tables(source, columns), f"the {kind}"
    if isinstance(source, np.ndarray):
        return _rows(source, columns, "the array", None), "the array"
    remedy = "name a file or folder, or give a Dataset, a Dask collection, a mapping of arrays or tables"
    raise ValueError(f"source is {validation.shown(source)}: {remedy}")


def observed_chunks(observations: Observations) -> list[Chunk]:
    """Samples in memory, in chunks as large as blocks are."""
    letters = COORDINATES[: observations.domain.dimension]
    arrays = dict(zip(letters, observations.x.T, strict=True))
    return _slices({**arrays, "t": observations.t, "u": observations.y}, None, observations.source, None)


def _file_chunks(path: Path, columns: Columns) -> list[Chunk]:
    ending = path.suffix.lower()
    if not os.path.exists(path):  # also of a name that no file system takes
        raise FileError(f"no file or folder at {validation.shortened(str(path))}: give one of samples")
    if path.is_dir() and ending != ".zarr":
        files = sorted(
            Path(folder, name)
            for folder, _, names in os.walk(path)
            for name in names
            if Path(name).suffix.lower() in (*PARQUET, *ARROW) and not name.startswith((".", "_"))
        )
        if not files:
            raise FileError(f"{path} holds no Parquet or Arrow files: name a file, or a folder of some")
        return [chunk for file in files for chunk in _file_chunks(file, columns)]
    readers: dict[str, Callable[[Path, Columns], list[Chunk]]] = {
        **dict.fromkeys(PARQUET, _parquet_chunks),
        **dict.fromkeys(ARROW, _arrow_chunks),
        ".npy": _npy_chunks,
        ".nc": _stored_chunks,
        ".zarr": _stored_chunks,
    }
    if ending not in readers:
        raise FileError(f"{path.name} is not read in chunks: give one of {', '.join(readers)}")
    try:
        return readers[ending](path, columns)
    except (FileError, validation.NotInstalled):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno:
            raise FileError(formats.unreadable(path, error)) from None
        kind = type(error).__name__
        raise FileError(f"{path.name} is damaged or ends early ({kind}): write it again") from None


def _mark(path: Path, part: object) -> str:
    state = path.stat()
    return f"{path.absolute()} {state.st_size} {state.st_mtime_ns} {part}"


def _parquet_chunks(path: Path, columns: Columns) -> list[Chunk]:
    with validation.require_extra("formats", f"{path.name} is a Parquet file and"):
        from pyarrow import parquet
    with parquet.ParquetFile(path) as file:
        sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    chunks, groups, rows = [], [], 0
    for i, size in enumerate(sizes):
        groups.append(i)
        rows += size
        if rows >= streams.BLOCK or i == len(sizes) - 1:
            name = path.name if len(groups) == len(sizes) else f"{path.name}, row groups {groups[0]} to {i}"
            tables = partial(_parquet_tables, path, tuple(groups), columns)
            chunks.append(Chunk(name, tables, _mark(path, groups[0])))
            groups, rows = [], 0
    return chunks


def _parquet_tables(path: Path, groups: Sequence[int], columns: Columns) -> Iterator[Arrays]:
    from pyarrow import parquet

    # Without buffering ahead a row group of any size takes the memory of a batch.
    with parquet.ParquetFile(path, pre_buffer=False) as file:
        roles = assign(file.schema_arrow.names, columns, path.name)
        names = list(roles.values())
        for batch in file.iter_batches(
            streams.BLOCK, row_groups=list(groups), columns=names, use_threads=False
        ):
            yield _record_batch(batch, roles, path.name)


def _arrow_chunks(path: Path, columns: Columns) -> list[Chunk]:
    with validation.require_extra("formats", f"{path.name} is an Arrow file and"):
        from pyarrow import OSFile, ipc
    with OSFile(str(path)) as stream:
        count = ipc.open_file(stream).num_record_batches
    per = 8  # batches are small as they are written
    return [
        Chunk(
            f"{path.name}, batches from {i}",
            partial(_arrow_tables, path, range(i, min(i + per, count)), columns),
            _mark(path, i),
        )
        for i in range(0, count, per)
    ]


def _arrow_tables(path: Path, batches: Iterable[int], columns: Columns) -> Iterator[Arrays]:
    from pyarrow import OSFile, ipc

    with OSFile(str(path)) as stream:
        file = ipc.open_file(stream)
        roles = assign(file.schema.names, columns, path.name)
        for i in batches:
            yield _record_batch(file.get_batch(i), roles, path.name)


def _record_batch(batch: Any, roles: Mapping[str, str], where: str) -> Arrays:
    """Its columns, without the rows whose u was not measured."""
    from pyarrow import types

    taken = batch.column(roles["u"])
    if taken.null_count:
        batch = batch.filter(taken.is_valid())
    arrays = {}
    for role, name in roles.items():
        column = batch.column(name)
        if column.null_count:
            raise FileError(f"{name} of {where} lacks {column.null_count} values: fill in or drop those rows")
        if not (types.is_integer(column.type) or types.is_floating(column.type)):
            raise FileError(f"{name} of {where} has type {column.type}: store numbers")
        # Not by to_numpy, which would import pandas.
        arrays[role] = formats.numbers(name, np.from_dlpack(column), where)
    return arrays


def _npy_chunks(path: Path, columns: Columns) -> list[Chunk]:
    opened = partial(np.load, path, mmap_mode="r", allow_pickle=False)
    return _rows(opened(), columns, path.name, (path, opened))


def _rows(array: Any, columns: Columns, where: str, file: tuple[Path, Callable] | None) -> list[Chunk]:
    """Chunks of a structured array, or of a table of numbers whose columns stand in order."""
    if array.dtype.names:
        roles = assign(array.dtype.names, columns, where)
    else:
        roles = {role: i for i, role in enumerate(_in_order(array.shape, columns, where))}
    chunks = []
    for start in range(0, len(array), streams.BLOCK):
        rows = slice(start, min(start + streams.BLOCK, len(array)))
        opened: Any = partial(_itself, array[rows]) if file is None else file[1]
        read = partial(_row_tables, opened, slice(None) if file is None else rows, roles)
        mark = None if file is None else _mark(file[0], start)
        chunks.append(Chunk(f"{where}, rows from {start}", read, mark))
    return chunks


def _itself(source: Any) -> Any:
    return source


def _in_order(shape: tuple[int, ...], columns: Columns, where: str) -> Sequence[str]:
    if isinstance(columns, Mapping):
        raise FileError(f"{where} names no columns: list them in order, as ['x', 't', 'u']")
    names = columns or _IN_ORDER.get(shape[-1] if len(shape) == 2 else 0, ())
    if len(shape) != 2 or len(names) != shape[1]:
        raise FileError(f"{where} has shape {shape}: give one row per sample, columns x, [y, [z,]] t, u")
    assign(names, None, where)
    return names


def _row_tables(opened: Callable[[], Any], rows: slice, roles: Mapping[str, Any]) -> Iterator[Arrays]:
    table = opened()[rows]
    plain = table.dtype.names is None
    yield {role: np.array(table[:, key] if plain else table[key]) for role, key in roles.items()}


def _slices(table: Mapping[str, Any], columns: Columns, where: str, mark: str | None) -> list[Chunk]:
    """Chunks of arrays of one length that can be sliced, as memory maps and stored arrays can."""
    roles = assign(list(map(str, table)), columns, where)
    sizes = {role: len(table[name]) for role, name in roles.items()}
    if len(set(sizes.values())) > 1:
        raise FileError(f"{where} holds columns of {sizes} rows: give as many in each")
    return [
        Chunk(
            f"{where}, rows from {start}",
            partial(
                _mapped, {role: table[name][start : start + streams.BLOCK] for role, name in roles.items()}
            ),
            mark,
        )
        for start in range(0, sizes["u"], streams.BLOCK)
    ]


def _mapped(arrays: Mapping[str, Any]) -> list[Arrays]:
    return [dict(arrays)]


class _Tables:
    """Chunks of tables that an iterable or a function gives, anew for every pass."""

    def __init__(self, source: Any, columns: Columns) -> None:
        self.source, self.columns = source, columns

    def __iter__(self) -> Iterator[Chunk]:
        tables: Any = self.source() if callable(self.source) else self.source
        if not isinstance(tables, Iterable) or isinstance(tables, np.ndarray):
            remedy = "let it return an iterator over tables"
            raise FileError(f"the source returns {validation.shown(tables)}: {remedy}")
        for i, table in enumerate(tables):
            yield Chunk(f"chunk {i}", partial(_converted, table, self.columns, f"chunk {i}"))


def _converted(table: Any, columns: Columns, where: str) -> list[Arrays]:
    """A table in memory, whatever it is, as arrays by role."""
    if isinstance(table, Observations):
        letters = COORDINATES[: table.x.shape[1]]
        return [{**dict(zip(letters, table.x.T, strict=True)), "t": table.t, "u": table.y}]
    if is_dataset(table):
        return [arrays for chunk in _dataset_chunks(table, columns, where, None) for arrays in chunk.tables()]
    if is_table(table):
        return [table_columns(table, columns, where)]
    try:
        array = np.asarray(table)
    except ValueError:
        raise FileError(f"{where} holds rows of different lengths: give as many numbers in each") from None
    if array.dtype.names:
        return [{role: array[name] for role, name in assign(array.dtype.names, columns, where).items()}]
    names = _in_order(array.shape, columns, where)
    return [dict(zip(names, array.T, strict=True))]


def _partitions(collection: Any, columns: Columns, where: str) -> list[Chunk]:
    """A chunk per partition of a Dask dataframe, or per block of rows of a Dask array."""
    if hasattr(collection, "columns"):
        roles = assign(list(map(str, collection.columns)), columns, where)
        parts, convert = collection[list(roles.values())].to_delayed(), partial(_frame, roles)
    else:
        names = _in_order(collection.shape, columns, where)
        parts = collection.rechunk({1: -1}).to_delayed().ravel()
        convert = partial(_columns_in_order, names)
    chunks = []
    for i, part in enumerate(parts):
        name = f"partition {i} of {where}"
        arrays = partial(convert, name)
        chunks.append(Chunk(name, partial(_computed, part, arrays), delayed=part, convert=arrays))
    return chunks


def _computed(part: Any, convert: Callable[[Any], Arrays]) -> list[Arrays]:
    return [convert(part.compute(scheduler="synchronous"))]


def _frame(roles: Mapping[str, str], where: str, frame: Any) -> Arrays:
    missing = [name for name in roles.values() if name not in frame.columns]
    if missing:
        raise FileError(f"{where} has no column {missing[0]!r}: give all the same columns")
    return {role: formats.numbers(name, frame[name].to_numpy(), where) for role, name in roles.items()}


def _columns_in_order(names: Sequence[str], where: str, array: Any) -> Arrays:
    if np.ndim(array) != 2 or np.shape(array)[1] != len(names):
        raise FileError(f"{where} has shape {np.shape(array)}: give {len(names)} columns in each")
    return dict(zip(names, np.asarray(array).T, strict=True))


def _stored_chunks(path: Path, columns: Columns) -> list[Chunk]:
    """Chunks of a NetCDF file or a Zarr store, opened anew for each."""
    opened = partial(_opened, path)
    with opened() as stored:
        return _dataset_chunks(stored, columns, path.name, (path, opened))


def _opened(path: Path) -> Any:
    with validation.require_extra("formats", f"{path.name} is read through xarray, which"):
        import xarray
    lazy: dict[str, Any] = {"decode_times": False, "create_default_indexes": False}
    if path.suffix.lower() == ".zarr":
        with validation.require_extra("zarr", f"{path.name} is a Zarr store and"):
            importlib.import_module("zarr")
        return xarray.open_zarr(path, chunks=None, **lazy)
    return xarray.open_dataset(path, **lazy)


def _dataset_chunks(
    stored: Any, columns: Columns, where: str, file: tuple[Path, Callable] | None
) -> list[Chunk]:
    roles = assign([str(name) for name in stored.variables], columns, where)
    for name in roles.values():
        formats.numbers(name, np.empty(0, stored[name].dtype), where)
    dims, shape = stored[roles["u"]].dims, stored[roles["u"]].shape
    gridded = len(dims) > 1
    axes = [stored[name].dims for role, name in roles.items() if role != "u"]
    if gridded and sorted(sum(axes, ())) != sorted(dims):
        raise FileError(f"u of {where} runs over {list(dims)}, the coordinates over {axes}: keep those")
    chunks = []
    for slices in _slabs(shape):
        named = dict(zip(dims, slices, strict=True))
        first = ", ".join(f"{dim} from {rows.start}" for dim, rows in named.items())
        opened: Any = file[1] if file else partial(_itself, stored[list(roles.values())].isel(named))
        read = partial(_slab, opened, named if file else {}, roles, where)
        mark = _mark(file[0], first) if file else None
        chunks.append(Chunk(f"{where}, {first}", read, mark))
    return chunks


def _slabs(shape: Sequence[int]) -> Iterator[tuple[slice, ...]]:
    """Slices along the first axes into parts of a block of samples."""
    if not shape:
        yield ()
        return
    rest = math.prod(shape[1:])
    step = max(1, streams.BLOCK // max(1, rest))
    for start in range(0, shape[0], step):
        rows = slice(start, min(start + step, shape[0]))
        inner = _slabs(shape[1:]) if rest > streams.BLOCK else [tuple(slice(0, n) for n in shape[1:])]
        yield from ((rows, *others) for others in inner)


def _slab(
    opened: Callable[[], Any], slices: Mapping[str, slice], roles: Mapping[str, str], where: str
) -> Any:
    stored = opened()
    part = stored.isel(slices)
    if part.chunks:  # on a worker, whose scheduler would wait for this very task
        part = part.compute(scheduler="synchronous")
    u = formats.numbers(roles["u"], part[roles["u"]].values, where)
    dims = part[roles["u"]].dims
    # xarray has put NaN where the file declares a value missing.
    taken = ~np.isnan(u)
    arrays: Arrays = {}
    for role, name in roles.items():
        values = formats.numbers(name, part[name].values, where)
        if role != "u" and u.ndim > 1:
            along = [1] * u.ndim
            along[dims.index(part[name].dims[0])] = -1
            values = np.broadcast_to(values.reshape(along), u.shape)
        arrays[role] = values[taken]
    if slices:
        stored.close()
    yield arrays
