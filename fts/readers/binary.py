"""Arrays in .npz, .mat, NetCDF, Parquet and xarray's Datasets -> named arrays, no more than the bound.

Sizes are read from the headers before the numbers, so a small file that unpacks to a large one is refused. No
file is unpickled.
"""

import math
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import loadmat, netcdf_file

from fts.files import FileError
from fts.readers.columns import Columns, assign, numbers, refuse_large

_CHUNK = 1 << 20
# A version 5 MAT-file: a header of so many bytes, then elements of which some are compressed.
_MAT_HEADER, _MAT_COMPRESSED = 128, 15
_MANY = 4096  # arrays in one file
HDF5 = b"\x89HDF\r\n\x1a\n"  # how such a file begins


def read_npz(path: Path, columns: Columns) -> dict[str, np.ndarray]:
    """The arrays x, [y, [z,]] t, u of a NumPy archive."""
    with zipfile.ZipFile(path) as archive:
        members = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()[:_MANY]}
        if len(members) != len(archive.infolist()):
            raise FileError(f"{path.name} holds an array twice, or thousands: keep x, [y,] t, u")
        found = assign(list(members), columns, path.name)
        refuse_large(sum(members[name].file_size for name in found.values()), path.name)
        return {role: _npy(archive, members[name], path.name) for role, name in found.items()}


def _npy(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, where: str) -> np.ndarray:
    name = entry.filename.removesuffix(".npy")
    with archive.open(entry) as stream:
        version = np.lib.format.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise FileError(f"{name} of {where} has .npy version {version}: save it with numpy.savez")
        read = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        shape, fortran, dtype = read(stream)
        if dtype.hasobject or dtype.names or dtype.kind not in "iufc":
            numbers(name, np.empty(0, dtype), where)
        size = math.prod(shape) * dtype.itemsize
        if min(shape, default=0) < 0 or stream.tell() + size != entry.file_size:
            raise FileError(f"{name} of {where} does not hold the {shape} numbers it says: save it again")
        flat = np.frombuffer(stream.read(size), dtype)
    return numbers(name, flat.reshape(shape, order="F" if fortran else "C"), where)


def read_mat(path: Path, columns: Columns) -> dict[str, np.ndarray]:
    """The same of a MATLAB file up to version 7."""
    with path.open("rb") as stream:
        begin = stream.read(_MAT_HEADER)
    if begin.startswith(HDF5) or b"MATLAB 7.3" in begin:
        raise FileError(f"{path.name} is a MATLAB 7.3 file: save it with save('{path.name}', '-v7')")
    refuse_large(_unpacked(path), path.name)
    stored = loadmat(path, chars_as_strings=False, struct_as_record=True)
    arrays = {name: values for name, values in stored.items() if not name.startswith("__")}
    found = assign(list(arrays), columns, path.name)
    return {role: numbers(name, np.asarray(arrays[name]), path.name) for role, name in found.items()}


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
                total += len(unpack.decompress(pending, _CHUNK))
                refuse_large(total, path.name)
                pending = unpack.unconsumed_tail
    return total


def read_netcdf(path: Path, columns: Columns) -> dict[str, np.ndarray]:
    """The same of a NetCDF file, u in the order of its axes; version 4 takes xarray and h5netcdf."""
    with path.open("rb") as stream:
        begin = stream.read(8)
    if begin == HDF5:
        return _xarray(path, columns)
    refuse_large(path.stat().st_size, path.name)
    with netcdf_file(path, mmap=False, maskandscale=True) as file:
        found = assign(list(file.variables), columns, path.name)
        size = sum(math.prod(file.variables[name].shape) * 8 for name in found.values())
        refuse_large(size, path.name)
        dims = {role: file.variables[name].dimensions for role, name in found.items()}
        read = {role: _masked(name, file.variables[name][:], path.name) for role, name in found.items()}
    return _ordered(read, dims, path.name)


def _masked(name: str, values: np.ndarray, where: str) -> np.ndarray:
    """Values in float64, masked where the file declares them missing."""
    return np.ma.array(numbers(name, values, where), mask=np.ma.getmaskarray(values))


def _xarray(path: Path, columns: Columns) -> dict[str, np.ndarray]:
    try:
        import h5py
        import xarray
    except ImportError:
        raise FileError(f"{path.name} is a NetCDF 4 file: pip install 'fts[formats]' to read it") from None
    # The sizes as they are stored: xarray believes those of the dimensions, and reads what is there.
    with h5py.File(path) as file:
        found = assign(list(file), columns, path.name)
        stored_sizes = (math.prod(getattr(file[name], "shape", ())) for name in found.values())
        refuse_large(sum(stored_sizes) * 8, path.name)
    # Without indexes nothing is loaded before it is asked for.
    lazy: dict[str, Any] = {"decode_times": False, "create_default_indexes": False}
    with xarray.open_dataset(path, engine="h5netcdf", **lazy) as stored:
        return read_dataset(stored, columns, path.name)


def read_dataset(stored: Any, columns: Columns, where: str) -> dict[str, np.ndarray]:
    """The same of an xarray Dataset."""
    found = assign([str(name) for name in stored.variables], columns, where)
    for name in found.values():
        numbers(name, np.empty(0, stored[name].dtype), where)
    refuse_large(sum(stored[name].size * 8 for name in found.values()), where)
    dims = {role: tuple(str(d) for d in stored[name].dims) for role, name in found.items()}
    read = {role: numbers(name, stored[name].values, where) for role, name in found.items()}
    # xarray has put NaN where the file declares a value missing.
    read["u"] = np.ma.masked_invalid(read["u"])
    return _ordered(read, dims, where)


def _ordered(
    read: dict[str, np.ndarray], dims: Mapping[str, Sequence[str]], where: str
) -> dict[str, np.ndarray]:
    """u with its axes as x, [y, [z,]] t, by the names of its dimensions."""
    axes = [role for role in read if role != "u"]
    if not all(len(dims[role]) == 1 for role in axes) or len(dims["u"]) == 1:
        return read  # samples along one dimension, or full grids of coordinates
    order = [dims[role][0] for role in axes]
    if sorted(order) != sorted(dims["u"]):
        raise FileError(
            f"u of {where} runs over {list(dims['u'])}, the coordinates over {order}: keep those alone"
        )
    return read | {"u": read["u"].transpose([list(dims["u"]).index(name) for name in order])}


def read_parquet(path: Path, columns: Columns) -> dict[str, np.ndarray]:
    """The columns of a Parquet file, through PyArrow."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise FileError(f"{path.name} is a Parquet file: pip install 'fts[formats]' to read it") from None
    with parquet.ParquetFile(path) as file:
        found = assign(file.schema_arrow.names, columns, path.name)
        refuse_large(file.metadata.num_rows * 8 * len(found), path.name)
        for name in found.values():
            numbers(name, np.empty(0, file.schema_arrow.field(name).type.to_pandas_dtype()), path.name)
        table = file.read(columns=list(found.values()))
    arrays = {role: table[name].to_numpy() for role, name in found.items()}
    read = {role: numbers(found[role], values, path.name) for role, values in arrays.items()}
    read["u"] = np.ma.array(read["u"], mask=table[found["u"]].is_null().to_numpy())
    return read
