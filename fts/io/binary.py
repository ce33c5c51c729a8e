"""Arrays in .npz, .mat, NetCDF, Parquet and xarray's Datasets -> named arrays, no more than the bound.

Sizes are read from the headers before the numbers, so a small file that unpacks to a large one is refused.
SciPy's reader of MATLAB files runs compiled code on whatever a file says; a flipped byte can end the process.
So it runs in a child, limited in time and memory: a fresh interpreter that imports the readers alone and does
not run the caller's script; arrays are handed over as .npy files.
"""

import json
import math
import subprocess
import sys
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import loadmat, netcdf_file, whosmat

from fts.containers import FileError
from fts.io import formats
from fts.io.formats import Arrays, Columns, assign, numbers, refuse_large, refuse_many, warn_ignored

_UNPACKED_AT_ONCE = 1 << 20
HDF5 = b"\x89HDF\r\n\x1a\n"  # how such a file begins
_MOST_ARRAYS = 4096  # arrays in one file
# A version 5 MAT-file: a header of so many bytes, then elements of which some are compressed.
_MAT_HEADER, _MAT_COMPRESSED = 128, 15
_MAT_NUMBERS = ("double", "single", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)))
SECONDS = 60
MEMORY = 3 << 30  # address space: the libraries' own, and a few copies of the largest file that is read
_START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from fts.io.binary import main; main()"


def read_isolated(ending: str, path: Path, columns: Columns) -> Arrays:
    """What `read_binary` returns, from a child; FileError where it died."""
    # In a browser no process can be started, and the page is as closed in as the child would be.
    if not sys.executable or sys.platform == "emscripten":
        return read_binary(ending, path, columns)
    folders = [str(Path(folder).absolute()) for folder in sys.path]
    with tempfile.TemporaryDirectory(prefix="fts-") as folder:
        task = {"ending": ending, "path": str(path.absolute()), "columns": columns, "folder": folder}
        command = [sys.executable, "-I", "-c", _START, json.dumps(folders), json.dumps(task, default=dict)]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            raise FileError(f"{path.name} took {SECONDS} s to read: save it again, or thin it out") from None
        answer = _answer(done.stdout)
        if answer is None:
            raise FileError(f"{path.name} is damaged: its reader died ({_cause(done)}); save it again")
        if "refused" in answer:
            raise FileError(answer["refused"])
        for text in answer["warnings"]:
            warnings.warn(text, formats.FileWarning, stacklevel=2)
        return {role: _load(Path(folder), role, role in answer["masked"]) for role in answer["roles"]}


def main() -> None:
    """The child: reads one request, writes .npy files and one line of JSON."""
    import resource  # not on platforms that start no processes

    task = json.loads(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    path, folder = Path(task["path"]), Path(task["folder"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            arrays = read_binary(task["ending"], path, task["columns"])
        except OSError as error:
            return _say({"refused": formats.unreadable(path, error)})
        except FileError as error:
            return _say({"refused": str(error)})
    masked = [role for role, values in arrays.items() if np.ma.getmaskarray(values).any()]
    for role, values in arrays.items():
        np.save(folder / f"{role}.npy", np.ma.getdata(values), allow_pickle=False)
        if role in masked:
            np.save(folder / f"{role}-mask.npy", np.ma.getmaskarray(values), allow_pickle=False)
    sentences = [str(entry.message) for entry in caught if entry.category is formats.FileWarning]
    _say({"roles": list(arrays), "masked": masked, "warnings": sentences})


def _say(answer: dict) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")


def _answer(output: bytes) -> dict | None:
    try:
        return json.loads(output.decode().strip().rpartition("\n")[2])
    except ValueError:
        return None


def _cause(done: subprocess.CompletedProcess) -> str:
    """How the child ended: its signal, or the last line it wrote."""
    if done.returncode < 0:
        return f"signal {-done.returncode}"
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"code {done.returncode}"]
    return lines[-1][:120]


def _load(folder: Path, role: str, masked: bool) -> np.ndarray:
    values = np.load(folder / f"{role}.npy", allow_pickle=False)
    return np.ma.array(values, mask=np.load(folder / f"{role}-mask.npy")) if masked else values


def read_npz(path: Path, columns: Columns) -> Arrays:
    """The arrays x, [y, [z,]] t, u of a NumPy archive."""
    with zipfile.ZipFile(path) as archive:
        members = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()[:_MOST_ARRAYS]}
        if len(members) != len(archive.infolist()):
            raise FileError(f"{path.name} holds an array twice, or thousands: keep x, [y,] t, u")
        roles = assign(list(members), columns, path.name)
        refuse_large(sum(members[name].file_size for name in roles.values()), path.name)
        shapes = {role: _npy_header(archive, members[name], path.name)[0] for role, name in roles.items()}
        refuse_many(shapes, path.name)
        others = [name for name in members if name not in roles.values()]
        ignored = [name for name in others if _holds_numbers(archive, members[name], path.name)]
        warn_ignored(ignored, columns, path.name)
        return {role: _npy(archive, members[name], path.name) for role, name in roles.items()}


def _npy_header(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, where: str
) -> tuple[tuple, bool, np.dtype, int]:
    """Shape, whether in Fortran's order, type and where the numbers begin."""
    name = entry.filename.removesuffix(".npy")
    with archive.open(entry) as stream:
        version = np.lib.format.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise FileError(f"{name} of {where} has .npy version {version}: save it with numpy.savez")
        shape, fortran, dtype = getattr(np.lib.format, f"read_array_header_{version[0]}_0")(stream)
        if dtype.hasobject or dtype.names or dtype.kind not in "iufc":
            numbers(name, np.empty(0, dtype), where)
        begin = stream.tell()
    if min(shape, default=0) < 0 or begin + math.prod(shape) * dtype.itemsize != entry.file_size:
        raise FileError(f"{name} of {where} does not hold the {shape} numbers it says: save it again")
    return shape, fortran, dtype, begin


def _holds_numbers(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, where: str) -> bool:
    """Whether an array that is not read could have been meant: it is whole, and more than one number."""
    try:
        return math.prod(_npy_header(archive, entry, where)[0]) > 1
    except (
        FileError,
        ValueError,
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        RuntimeError,
    ):
        return False


def _npy(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, where: str) -> np.ndarray:
    shape, fortran, dtype, begin = _npy_header(archive, entry, where)
    with archive.open(entry) as stream:
        flat = np.frombuffer(stream.read(entry.file_size), dtype, offset=begin)
    name = entry.filename.removesuffix(".npy")
    return numbers(name, flat.reshape(shape, order="F" if fortran else "C"), where)


def read_mat(path: Path, columns: Columns) -> Arrays:
    """The same of a MATLAB file up to version 7."""
    with path.open("rb") as stream:
        begin = stream.read(_MAT_HEADER)
    if begin.startswith(HDF5) or b"MATLAB 7.3" in begin:
        raise FileError(f"{path.name} is a MATLAB 7.3 file: save it with save('{path.name}', '-v7')")
    refuse_large(_unpacked(path), path.name)
    kinds = {name: (shape, kind) for name, shape, kind in whosmat(path)}
    roles = assign(list(kinds), columns, path.name)
    for name in roles.values():
        if kinds[name][1] not in _MAT_NUMBERS:
            kind = kinds[name][1]
            raise FileError(f"{name} of {path.name} is a {kind} array: store a full array of numbers")
    refuse_many({role: kinds[name][0] for role, name in roles.items()}, path.name)
    others = {name: entry for name, entry in kinds.items() if name not in roles.values()}
    ignored = [
        name for name, (shape, kind) in others.items() if kind in _MAT_NUMBERS and math.prod(shape) > 1
    ]
    warn_ignored(ignored, columns, path.name)
    stored = loadmat(path, variable_names=list(roles.values()))
    return {role: numbers(name, np.asarray(stored[name]), path.name) for role, name in roles.items()}


def _unpacked(path: Path) -> int:
    """Bytes of the file once its compressed elements are unpacked, counted without keeping them."""
    total = path.stat().st_size
    with path.open("rb") as stream:
        stream.seek(_MAT_HEADER)
        while total <= 1 << 40 and len(tag := stream.read(8)) == 8:
            kind, size = (int(word) for word in np.frombuffer(tag, "<u4"))
            if kind != _MAT_COMPRESSED:
                stream.seek(size, 1)
                continue
            unpack, pending = zlib.decompressobj(), stream.read(min(size, path.stat().st_size))
            while pending and not unpack.eof:
                total += len(unpack.decompress(pending, _UNPACKED_AT_ONCE))
                refuse_large(total, path.name)
                pending = unpack.unconsumed_tail
    return total


def read_netcdf(path: Path, columns: Columns) -> Arrays:
    """The same of a NetCDF file, u in the order of its axes; version 4 takes xarray and h5netcdf."""
    with path.open("rb") as stream:
        begin = stream.read(8)
    if begin == HDF5:
        return _xarray(path, columns)
    refuse_large(path.stat().st_size, path.name)
    with netcdf_file(path, mmap=False, maskandscale=True) as file:
        roles = assign(list(file.variables), columns, path.name)
        refuse_many({role: file.variables[name].shape for role, name in roles.items()}, path.name)
        others = {name: entry.data for name, entry in file.variables.items() if name not in roles.values()}
        ignored = [name for name, values in others.items() if values.dtype.kind in "iuf" and values.size > 1]
        warn_ignored(ignored, columns, path.name)
        dims = {role: file.variables[name].dimensions for role, name in roles.items()}
        read = {role: _masked(name, file.variables[name][:], path.name) for role, name in roles.items()}
    return _ordered(read, dims, path.name)


def _masked(name: str, values: np.ndarray, where: str) -> np.ndarray:
    """Values in float64, masked where the file declares them missing."""
    return np.ma.array(numbers(name, values, where), mask=np.ma.getmaskarray(values))


def _xarray(path: Path, columns: Columns) -> Arrays:
    try:
        import h5py
        import xarray
    except ImportError:
        raise FileError(f"{path.name} is a NetCDF 4 file: pip install 'fts[formats]' to read it") from None
    # The sizes as they are stored: xarray believes those of the dimensions, and reads what is there.
    with h5py.File(path) as file:
        if len(file) > _MOST_ARRAYS:
            raise FileError(f"{path.name} holds thousands of arrays: keep x, [y,] t, u")
        for name in map(str, file):
            _refuse_elsewhere(file, name, path.name)
        roles = assign(list(file), columns, path.name)
        refuse_many({role: getattr(file[name], "shape", ()) for role, name in roles.items()}, path.name)
    # Without indexes nothing is loaded before it is asked for.
    lazy: dict[str, Any] = {"decode_times": False, "create_default_indexes": False}
    with xarray.open_dataset(path, engine="h5netcdf", **lazy) as stored:
        return read_dataset(stored, columns, path.name)


def _refuse_elsewhere(file: Any, name: str, where: str) -> None:
    """An error for an array that is kept in another file: the samples are this one's, and nobody else's."""
    import h5py

    # Soft links may lead to external ones.
    elsewhere = not isinstance(file.get(name, getlink=True), h5py.HardLink)
    if not elsewhere and isinstance(stored := file[name], h5py.Dataset):
        elsewhere = bool(stored.external) or stored.is_virtual
        refuse_large(math.prod(stored.chunks or ()) * stored.dtype.itemsize, where)
    if elsewhere:
        raise FileError(f"{name[:60]} of {where} links to another place or file: keep the numbers themselves")


def read_dataset(stored: Any, columns: Columns, where: str) -> Arrays:
    """The same of an xarray Dataset."""
    roles = assign([str(name) for name in stored.variables], columns, where)
    for name in roles.values():
        numbers(name, np.empty(0, stored[name].dtype), where)
    refuse_many({role: stored[name].shape for role, name in roles.items()}, where)
    others = {str(name): entry for name, entry in stored.variables.items() if str(name) not in roles.values()}
    ignored = [name for name, entry in others.items() if entry.dtype.kind in "iuf" and entry.size > 1]
    warn_ignored(ignored, columns, where)
    dims = {role: tuple(str(d) for d in stored[name].dims) for role, name in roles.items()}
    read = {role: numbers(name, stored[name].values, where) for role, name in roles.items()}
    # xarray has put NaN where the file declares a value missing.
    read["u"] = np.ma.masked_invalid(read["u"])
    return _ordered(read, dims, where)


def _ordered(read: Arrays, dims: Mapping[str, Sequence[str]], where: str) -> Arrays:
    """u with its axes as x, [y, [z,]] t, by the names of its dimensions."""
    axes = [role for role in read if role != "u"]
    if not all(len(dims[role]) == 1 for role in axes) or len(dims["u"]) == 1:
        return read  # samples along one dimension, or full grids of coordinates
    order = [dims[role][0] for role in axes]
    if sorted(order) != sorted(dims["u"]):
        raise FileError(f"u of {where} runs over {list(dims['u'])}, the coordinates over {order}: keep those")
    return read | {"u": read["u"].transpose([list(dims["u"]).index(name) for name in order])}


def read_parquet(path: Path, columns: Columns) -> Arrays:
    """The columns of a Parquet file, through PyArrow."""
    try:
        from pyarrow import parquet, types
    except ImportError:
        raise FileError(f"{path.name} is a Parquet file: pip install 'fts[formats]' to read it") from None
    with parquet.ParquetFile(path) as file:
        roles = assign(file.schema_arrow.names, columns, path.name)
        refuse_many(dict.fromkeys(roles, (file.metadata.num_rows,)), path.name)
        for name in roles.values():
            numbers(name, np.empty(0, file.schema_arrow.field(name).type.to_pandas_dtype()), path.name)
        others = [field for field in file.schema_arrow if field.name not in roles.values()]
        numeric = [
            field.name for field in others if types.is_integer(field.type) or types.is_floating(field.type)
        ]
        warn_ignored(numeric, columns, path.name)
        table = file.read(columns=list(roles.values()))
    for name in roles.values():
        numbers(name, table[name].drop_null().to_numpy(), path.name)  # nulls turn integers into float64
    arrays = {role: table[name].to_numpy() for role, name in roles.items()}
    read = {role: numbers(roles[role], values, path.name) for role, values in arrays.items()}
    read["u"] = np.ma.array(read["u"], mask=table[roles["u"]].is_null().to_numpy())
    return read


BINARY: dict[str, Callable[[Path, Columns], Arrays]] = {
    ".npz": read_npz,
    ".mat": read_mat,
    ".nc": read_netcdf,
    ".parquet": read_parquet,
}


def read_binary(ending: str, path: Path, columns: Columns) -> Arrays:
    """The arrays of a file with this ending; whatever a parser ends in is a FileError."""
    try:
        return BINARY[ending](path, columns)
    # A warning, where the caller makes errors of them.
    except (FileError, formats.FileWarning, PermissionError):
        raise
    # A damaged file ends in the parsers of other libraries in whatever they did not foresee.
    except Exception as error:
        kind = type(error).__name__
        raise FileError(f"{path.name} is damaged or no {ending} file ({kind}): save it again") from None
