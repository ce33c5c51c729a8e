"""The corpus of malformed files: name -> bytes, generated; each is wrong in one way that people meet."""

import io
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import xarray
from pyarrow import parquet as arrow_parquet
from scipy.io import netcdf_file, savemat

X, T = (a.ravel() for a in np.meshgrid(np.linspace(0, 1, 6), np.linspace(0, 1, 5), indexing="ij"))
U = np.sin(3 * X) * np.exp(-T)
GOOD = {"x": X, "t": T, "u": U}
_FLAT = "{'descr': '<f8', 'fortran_order': False, 'shape': (30,)}"


def corpus() -> dict[str, bytes]:
    """Every malformed file by its name."""
    result: dict[str, bytes] = {}
    for make in (
        _texts,
        _headings,
        _cells,
        _values,
        _npz,
        _npz_bytes,
        _bombs,
        _mat,
        _netcdf,
        _netcdf4,
        _parquet,
        _other,
    ):
        for name, data in make():
            assert name not in result, name
            result[name] = data
    return result


def table(rows: list[str], heading: str = "x,t,u") -> bytes:
    """A CSV file."""
    return "\n".join([heading, *rows, ""]).encode()


def good_rows() -> list[str]:
    """Thirty samples on a grid."""
    return [f"{x!r},{t!r},{u!r}" for x, t, u in zip(X.tolist(), T.tolist(), U.tolist(), strict=True)]


def npz(**arrays) -> bytes:
    """A NumPy archive."""
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def mat(**arrays) -> bytes:
    """A MATLAB file."""
    stream = io.BytesIO()
    savemat(stream, arrays, do_compression=True)
    return stream.getvalue()


def _texts() -> Iterator[tuple[str, bytes]]:
    whole = table(good_rows())
    yield "empty.csv", b""
    yield "blank-lines.csv", b"\n\n\n\n"
    yield "only-comments.csv", b"# x,t,u\n# nothing else\n"
    yield "heading-alone.csv", b"x,t,u\n"
    yield "no-heading.csv", whole.partition(b"\n")[2]
    yield "utf16.csv", whole.decode().encode("utf-16")
    yield "utf16-be.csv", whole.decode().encode("utf-16-be")
    yield "utf32.csv", whole.decode().encode("utf-32")
    yield "latin1.csv", whole + "1,2,3 µ\n".encode("latin-1")
    yield "zero-bytes.csv", whole.replace(b"0.2", b"0\x002")
    yield "binary.csv", bytes(range(256)) * 8
    yield "png.csv", b"\x89PNG\r\n\x1a\n" + bytes(64)
    yield "zip.csv", npz(**GOOD)
    yield "html.csv", b"<!doctype html><title>404</title><p>Not found</p>\n"
    yield "json.csv", b'{"x": [0, 1], "t": [0, 1], "u": [0, 1]}\n'
    yield "prose.txt", b"The samples are in the other file.\n"
    yield "one-long-line.csv", b"x,t,u " * 1_000_000
    yield "huge-cell.csv", whole + b"0.5,0.5," + b"1" * 200_000 + b"\n"
    yield "huge-quoted-cell.csv", whole + b'0.5,0.5,"' + b"1\n" * 200_000 + b'"\n'
    yield "open-quote.csv", whole + b'"0.5,0.5,1\n'
    yield "stray-quote.csv", whole + b'0.5,0.5,"1"2\n'
    yield "many-columns.csv", table(good_rows(), ",".join(f"c{i}" for i in range(20_000)))
    yield "truncated.csv", whole[: len(whole) // 2].rpartition(b",")[0]
    yield "one-row.csv", table(good_rows()[:1])
    yield "two-rows.csv", table(good_rows()[:2])


def _headings() -> Iterator[tuple[str, bytes]]:
    for number, heading in enumerate(
        ["x,z,t,u", "x,x,t,u", "x,t,t,u", "x,t,u,u", "X,x,t,u", "x,t,T,u", "z,y,t,u", "y,z,t,u", "a,b,c,d"]
    ):
        yield f"heading-{number}.csv", table([f"{row},1" for row in good_rows()], heading)
    for number, heading in enumerate(["x,t", "x,t,v", "time,x,u", "lon,t,u", "x t u v", "x;t", "u", "-,-,-"]):
        yield f"names-{number}.csv", table(good_rows(), heading)
    yield "tabs-without-u.tsv", table(good_rows(), "x\tt").replace(b",", b"\t")
    yield "semicolon-short.csv", table(good_rows(), "x;t;u").replace(b",", b";") + b"1;2\n"
    yield "wide-no-numbers.csv", b"x,0,1,2,3\n"
    yield "wide-short-row.csv", b"x,0,1,2,3\n0,1,2,3,4\n1,1,2\n"
    yield "wide-word.csv", b"x,0,1,2,3\n0,1,2,3,4\n1,1,two,3,4\n"
    yield "wide-blank.csv", b"x,0,1,2,3\n0,,,,\n1,,,,\n"
    yield "wide-twice.csv", b"x,0,1,2,2\n0,1,2,3,4\n1,1,2,3,4\n2,1,2,3,4\n3,1,2,3,5\n"
    yield "wide-no-position.csv", b"x,0,1,2,3\n,1,2,3,4\n"


def _cells() -> Iterator[tuple[str, bytes]]:
    cells = [
        "word",
        "1,5",
        '"1,5"',
        "1.2.3",
        "0x10",
        "1_000",
        "1e",
        "--1",
        "1 2",
        "50%",
        "$3",
        "1+2j",
        "True",
    ]
    cells += ["2024-01-01", "12:30:00", "2024-01-01T12:00:00Z", "NA", "N/A", "null", "-", "?", "#REF!", "٣"]
    cells += ["nan", "inf", "-inf", "NaN", "1e400", "-1e999"]
    for number, cell in enumerate(cells):
        yield f"cell-{number}.csv", table([*good_rows(), f"0.55,0.55,{cell}"])
    for number, row in enumerate(["0.5,0.5", "0.5,0.5,1,1", "0.5,,1", ",0.5,1", "nan,0.5,1", "0.5,inf,1"]):
        yield f"row-{number}.csv", table([*good_rows(), row])
    yield "decimal-comma.csv", table([r.replace(",", ";").replace(".", ",") for r in good_rows()], "x;t;u")


def _scaled(x: float = 1, t: float = 1, u: float = 1, x0: float = 0, t0: float = 0) -> bytes:
    rows = np.column_stack([X * x + x0, T * t + t0, U * u])
    return table([",".join(repr(float(value)) for value in row) for row in rows])


def _values() -> Iterator[tuple[str, bytes]]:
    yield "extent-1e-300.csv", _scaled(x=1e-300)
    yield "extent-1e-30.csv", _scaled(x=1e-30)
    yield "extent-1e300.csv", _scaled(x=1e300)
    yield "duration-1e-300.csv", _scaled(t=1e-300)
    yield "duration-1e200.csv", _scaled(t=1e200)
    yield "amplitude-1e200.csv", _scaled(u=1e200)
    yield "amplitude-1e-200.csv", _scaled(u=1e-200)
    yield "amplitude-1e308.csv", _scaled(u=1.7e308)
    yield "far-origin.csv", _scaled(x0=1e15)
    yield "far-time.csv", _scaled(t0=1e14)
    yield "one-position.csv", _scaled(x=0)
    yield "one-time.csv", _scaled(t=0)
    yield "repeated-samples.csv", table([*good_rows(), *(f"{row}1" for row in good_rows())])  # other values


def _cut(suffix: str, whole: bytes, parts: list[float]) -> Iterator[tuple[str, bytes]]:
    """Nothing, another format under the name, and the first part of a file."""
    yield f"empty.{suffix}", b""
    yield f"text.{suffix}", table(good_rows())
    for number, part in enumerate(parts):
        yield f"truncated-{number}.{suffix}", whole[: int(part * len(whole))]


def _npz() -> Iterator[tuple[str, bytes]]:
    bad = {
        "complex": U + 1j,
        "datetime": np.datetime64("2024-01-01") + np.arange(30),
        "timedelta": np.arange(30).astype("m8[s]"),
        "text": U.astype(str),
        "bytes": U.astype("S"),
        "objects": np.array(U.tolist(), dtype=object),
        "structured": np.array([(1.0, 2)] * 30, dtype=[("a", "f8"), ("b", "i4")]),
        "boolean": U > 0,
        "short": U[:-1],
        "scalar": np.float64(3),
        "empty": np.zeros(0),
        "nan": np.where(np.arange(30) == 3, np.nan, U),
        "inf": np.where(np.arange(30) == 3, np.inf, U),
        "square": U.reshape(5, 6)[:, :5],
        "components": np.stack([U.reshape(6, 5)] * 2, axis=-1),
    }
    for kind, values in bad.items():
        yield f"u-{kind}.npz", npz(x=X, t=T, u=values)
        if kind not in ("components", "square"):
            yield f"t-{kind}.npz", npz(x=X, t=values, u=U)
    yield "no-u.npz", npz(x=X, t=T)
    yield "no-arrays.npz", npz()
    yield "x-and-z.npz", npz(x=X, z=X, t=T, u=U)
    yield "positional.npz", npz(arr_0=X, arr_1=T, arr_2=U)
    yield "grid-wrong.npz", npz(x=np.arange(6.0), t=np.arange(5.0), u=np.zeros((7, 5)))
    yield "grid-flat-axis.npz", npz(x=np.arange(6.0).reshape(2, 3), t=np.arange(5.0), u=np.zeros((6, 5)))


def _npz_bytes() -> Iterator[tuple[str, bytes]]:
    whole = npz(**GOOD)
    yield from _cut("npz", whole, [0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
    yield "npy.npz", whole[whole.index(b"\x93NUMPY") :]
    rng = np.random.default_rng(7)
    # Bytes of the numbers and of the names: a flip there is found by the checksum or the missing name.
    for number in range(12):
        position = 200 + int(rng.integers(200))
        yield (
            f"flipped-{number}.npz",
            whole[:position] + bytes([whole[position] ^ 0x40]) + whole[position + 1 :],
        )
    for number, header in enumerate(
        [
            "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': 'abc'}",
            "{'descr': '|O', 'fortran_order': False, 'shape': (30,)}",
            "{'descr': '<f8', 'fortran_order': False}",
            "__import__('os').getcwd()",
            "[" * 200,
            "{'descr': '<f8', 'fortran_order': 7, 'shape': (30,)}",
        ]
    ):
        yield (
            f"header-{number}.npz",
            _archive({"x.npy": _npy(header), "t.npy": _npy(header), "u.npy": _npy(header)}),
        )
    yield "version-9.npz", _archive({f"{n}.npy": b"\x93NUMPY\x09\x00" + bytes(80) for n in "xtu"})
    yield "no-magic.npz", _archive({f"{n}.npy": bytes(80) for n in "xtu"})
    with_password = bytearray(whole)
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        position = whole.index(mark)
        while position >= 0:
            with_password[position + offset] |= 1
            position = whole.find(mark, position + 1)
    yield "encrypted.npz", bytes(with_password)
    position = whole.index(b"PK\x01\x02") + 10
    yield "method-99.npz", whole[:position] + struct.pack("<H", 99) + whole[position + 2 :]


def _npy(header: str) -> bytes:
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + U.tobytes()


def _archive(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return stream.getvalue()


def _bombs() -> Iterator[tuple[str, bytes]]:
    """Files of some hundred kilobytes that unpack to 300 megabytes."""
    size = 300 << 20
    packed = _zeros(size)
    whole = _archive({"x.npy": packed, "t.npy": _npy(_FLAT), "u.npy": _npy(_FLAT)}, zipfile.ZIP_STORED)
    yield "bomb.npz", _declared(whole, len(packed), size)
    # A promise in the directory that the numbers do not keep.
    yield "bomb-lying.npz", _declared(whole, len(packed), 400)
    packed = b"\x78\x01" + packed
    yield "bomb.mat", mat(**GOOD)[:128] + struct.pack("<II", 15, len(packed)) + packed
    yield "many-arrays.npz", _archive({f"a{i}.npy": b"" for i in range(5000)}, zipfile.ZIP_STORED)


def _zeros(size: int) -> bytes:
    """So many zeros, deflated: one block over and over, which takes no time."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return block * (size >> 20) + packer.flush()


def _declared(archive: bytes, packed: int, unpacked: int) -> bytes:
    """The archive with its first member declared deflated, of this size."""
    data = bytearray(archive)
    for mark, method in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        position = archive.index(mark) + method
        data[position : position + 2] = struct.pack("<H", zipfile.ZIP_DEFLATED)
        data[position + 10 : position + 18] = struct.pack("<II", packed, unpacked)
    return bytes(data)


def _mat() -> Iterator[tuple[str, bytes]]:
    whole = mat(**GOOD)
    yield from _cut("mat", whole, [0.05, 0.3, 0.6, 0.9])
    yield "flipped.mat", whole[:200] + bytes([whole[200] ^ 0x40]) + whole[201:]
    yield "v73.mat", b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(512) + b"\x89HDF\r\n\x1a\n" + bytes(100)
    yield "hdf5.mat", b"\x89HDF\r\n\x1a\n" + bytes(100)
    yield "no-u.mat", mat(x=X, t=T)
    yield "complex.mat", mat(x=X, t=T, u=U + 1j)
    yield "text-array.mat", mat(x=X, t=T, u="measured")
    yield "cell.mat", mat(x=X, t=T, u=np.array([U, T], dtype=object))
    yield "struct.mat", mat(x=X, t=T, u={"a": U})
    yield "shapes.mat", mat(x=X, t=T, u=U[:-1])


def _netcdf() -> Iterator[tuple[str, bytes]]:
    yield "empty.nc", b""
    yield "text.nc", table(good_rows())
    yield "hdf5.nc", b"\x89HDF\r\n\x1a\n" + bytes(100)
    whole = netcdf(("x", "t"), ("x", "t"))
    yield "truncated.nc", whole[:90]
    yield "flipped.nc", whole[:8] + b"\xff\xff" + whole[10:]
    yield "other-dimensions.nc", netcdf(("x", "t"), ("x", "e"))
    yield "no-u.nc", netcdf(("x", "t"), ("x", "t"), "v")


def _netcdf4() -> Iterator[tuple[str, bytes]]:
    axes, grid = (np.unique(X), np.unique(T)), U.reshape(6, 5)
    whole = netcdf4(u=(("x", "t"), grid), x=axes[0], t=axes[1])
    for number, part in enumerate([0.002, 0.1, 0.4, 0.7, 0.95]):
        yield f"truncated-4-{number}.nc", whole[: int(part * len(whole))]
    for index in (8, 9, 40):  # versions and addresses in the superblock
        yield f"flipped-4-{index}.nc", whole[:index] + bytes([whole[index] ^ 0x5A]) + whole[index + 1 :]
    yield "no-u-4.nc", netcdf4(v=(("x", "t"), grid), x=axes[0], t=axes[1])
    yield "other-dimensions-4.nc", netcdf4(u=(("x", "e"), grid), x=axes[0], t=axes[1])
    yield "text-4.nc", netcdf4(u=(("x", "t"), grid.astype(str)), x=axes[0], t=axes[1])
    yield "infinite-axis-4.nc", netcdf4(u=(("x", "t"), grid), x=axes[0] + np.inf, t=axes[1])
    for name in ("u", "x"):  # a gigabyte of zeros and more, in a few kilobytes: of values, or of an axis
        yield f"bomb-{name}-4.nc", _hdf5_bomb(name, 1 << 29)


def netcdf4(**variables) -> bytes:
    """A NetCDF 4 file of an xarray Dataset."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.nc"
        xarray.Dataset(variables).to_netcdf(path, engine="h5netcdf")
        return path.read_bytes()


def _hdf5_bomb(name: str, size: int) -> bytes:
    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        for axis in ("x", "t"):
            shape = size if axis == name else 5
            dataset = file.create_dataset(axis, (shape,), "f8", chunks=True, compression="gzip")
            dataset.make_scale(axis)
        # The values either agree with their axes, or are many more than these say.
        u = file.create_dataset("u", (size, 5), "f8", chunks=True)
        for index, axis in enumerate(("x", "t")):
            u.dims[index].attach_scale(file[axis])
    return stream.getvalue()


def _parquet() -> Iterator[tuple[str, bytes]]:
    whole = parquet(**GOOD)
    yield from _cut("parquet", whole, [0.01, 0.3, 0.6, 0.95])
    yield "flipped-end.parquet", whole[:-6] + bytes([whole[-6] ^ 0x7F]) + whole[-5:]
    yield "no-u.parquet", parquet(x=X, t=T)
    yield "text-column.parquet", parquet(x=X, t=T, u=["one"] * 30)
    yield "long-texts.parquet", parquet(x=np.zeros(100), t=np.zeros(100), u=["a" * 1_000_000] * 100)
    yield "lists.parquet", parquet(x=X, t=T, u=[[1.0, 2.0]] * 30)
    yield "dates.parquet", parquet(x=X, t=pa.array(range(30), pa.timestamp("s")), u=U)
    yield "logical.parquet", parquet(x=X, t=T, u=[True] * 30)
    yield "missing-place.parquet", parquet(x=[None, *X[1:]], t=T, u=U)
    yield "infinite.parquet", parquet(x=X, t=T, u=[np.inf, *U[1:]])
    yield "all-missing.parquet", parquet(x=X, t=T, u=pa.array([None] * 30, pa.float64()))
    zeros = pa.chunked_array([pa.array(np.zeros(1_000_000))] * 12)
    yield "bomb.parquet", parquet(x=zeros, t=zeros, u=zeros)


def parquet(**columns) -> bytes:
    """A Parquet file."""
    stream = io.BytesIO()
    arrow_parquet.write_table(pa.table(columns), stream)
    return stream.getvalue()


def netcdf(axes: tuple[str, ...], dims: tuple[str, ...], name: str = "u", fill: bool = False) -> bytes:
    """A NetCDF classic file of a grid of 6 positions and 5 times, one declared missing by `fill`."""
    stream = io.BytesIO()
    stream.close = lambda: None  # the file closes what it writes to
    file = netcdf_file(stream, "w")
    sizes = {"x": 6, "t": 5, "e": 5}
    for dim in dict.fromkeys((*axes, *dims)):
        file.createDimension(dim, sizes[dim])
    for axis in axes:
        file.createVariable(axis, "f8", (axis,))[:] = np.linspace(0, 1, sizes[axis])
    u = file.createVariable(name, "f8", dims)
    values = U.reshape(6, 5).copy()
    if fill:
        u._FillValue = -999.0
        values[2, 3] = -999.0
    u[:] = values if dims[0] == "x" else values.T
    file.flush()
    return stream.getvalue()


def _other() -> Iterator[tuple[str, bytes]]:
    yield "samples.xlsx", b"PK\x03\x04"
    yield "samples", table(good_rows())
    yield "samples.json", b"{}"
    yield "samples.pkl", b"\x80\x05K\x01."
    yield "samples.npy", _npy(_FLAT)
    yield "samples.parquet", b"PAR1" + bytes(40) + b"PAR1"
    yield "empty.fts", b""
    yield "text.fts", table(good_rows())
    yield "first-line.fts", b"fts1 observations " + b"0" * 64 + b"\n"
