"""Bytes on disk, whole and verified or refused: the ground under fields, observations and records.

One container holds named arrays and a JSON header. Its first line is `fts1 <kind> <sha256 of the rest>`,
its second the header, then the raw little-endian arrays. There is no pickle, no compression and no code in
it, so a browser reads it too.
"""

import contextlib
import fcntl
import hashlib
import json
import math
import os
import re
import secrets
import stat
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

MAGIC = "fts1"
# A container is small (a frozen field is about 80 KB, a trajectory some MB); a larger file is not ours.
LARGEST = 1 << 27
# Nested lists and objects in a header; what is written has five.
DEEPEST = 20
# What a file is called until it is whole, with the number of the process that writes it.
_PARTIAL = re.compile(r"\.fts-([1-9]\d*)-[0-9a-f]{8}\.partial")
_DTYPES = {"<f8", "<f4", "<i8", "<i4", "|u1"}


class FileError(ValueError):
    """A file that is truncated, corrupted or foreign; the message says how to rebuild it."""


def content_key(value: Any) -> str:
    """Sixteen hex digits that name a JSON value: sha256 of its canonical text."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:16]


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces, refusing NaN: one text per value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def write_atomic(path: Path, data: bytes) -> None:
    """Replace `path` by `data` in one step: write aside, flush to disk, rename, flush the folder.

    Symbolic links are followed. A file that is replaced keeps its mode and owner; a new one
    gets what the umask leaves. Whatever is not a regular file is refused.
    """
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        replaced = path.lstat()
    except FileNotFoundError:
        replaced = None
    if replaced and not stat.S_ISREG(replaced.st_mode):
        raise OSError(f"{path} is not a regular file: name another")
    _remove_stale(path.parent)
    with _partial_file(path.parent, 0o600 if replaced else 0o666) as (descriptor, temporary):
        with open(descriptor, "wb", closefd=False) as stream:
            stream.write(data)
        if replaced:
            with contextlib.suppress(PermissionError):
                os.fchown(descriptor, replaced.st_uid, replaced.st_gid)
            os.fchmod(descriptor, stat.S_IMODE(replaced.st_mode))
        os.fsync(descriptor)
        os.replace(temporary, path)
    with _opened(path.parent, os.O_RDONLY) as descriptor:
        os.fsync(descriptor)


def require_writable(folder: Path) -> None:
    """An OSError unless files can be made in the folder."""
    with _partial_file(folder, 0o600):
        pass


@contextlib.contextmanager
def _partial_file(folder: Path, mode: int) -> Iterator[tuple[int, Path]]:
    """Descriptor and path of a new file in the folder; it is removed at the end unless it was renamed."""
    while True:
        path = folder / f".fts-{os.getpid()}-{secrets.token_hex(4)}.partial"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        # The lock is held as long as the writer lives. Some network folders have none.
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            break
        os.close(descriptor)  # taken for stale between its creation and the lock
    try:
        yield descriptor, path
    finally:
        # After the renaming there is nothing of this name.
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _remove_stale(folder: Path) -> None:
    """Remove the partial files that killed writers left: no process has their number, none holds their lock.

    The number alone does not do where containers or computers share a folder, the lock alone not where the
    folder has none.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    for name in os.listdir(folder):
        match = _PARTIAL.fullmatch(name)
        if not match or _is_alive(int(match[1])):
            continue
        with contextlib.suppress(OSError), _opened(folder / name, flags) as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.unlink(folder / name)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


@contextlib.contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's advisory lock, so that processes that read, change and replace a file take turns."""
    folder.mkdir(parents=True, exist_ok=True)
    with _opened(folder, os.O_RDONLY) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def save_arrays(path: Path, kind: str, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write a container of `kind` at `path`, atomically; the same content gives the same bytes."""
    write_atomic(Path(path), pack_arrays(kind, header, arrays))


def write_to_cache(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` keep a computed result at `path`; a cache that is full or not writable loses nothing."""
    try:
        write(path)
    except OSError as error:
        warnings.warn(f"not cached, so computed again next time ({error}): free {path.parent}", stacklevel=3)


def remove_from_cache(path: Path) -> None:
    """Remove a damaged file of a cache, where that is possible."""
    with contextlib.suppress(OSError):
        path.unlink()


def load_arrays(path: Path, kind: str, remedy: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of the container at `path`; FileError unless every byte is as written."""
    path = Path(path)
    if not os.path.isfile(path):  # also of a name that no file system takes
        raise FileError(f"no file at {path}: {remedy}")
    if path.stat().st_size > LARGEST:
        raise FileError(f"{path} has {path.stat().st_size} bytes, more than any {kind} file: {remedy}")
    with file_errors(path, remedy):
        return unpack_arrays(path.read_bytes(), kind)


def pack_arrays(kind: str, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """The container's bytes."""
    table, blobs, offset = [], [], 0
    for name, array in arrays.items():
        array = np.asarray(array)
        dtype = array.dtype.newbyteorder("<").str
        if dtype not in _DTYPES:
            raise ValueError(
                f"array {name!r} has dtype {array.dtype}: store float64, float32, int64, int32 or uint8"
            )
        blob = array.astype(dtype, order="C").tobytes()
        table.append({"name": name, "dtype": dtype, "shape": list(array.shape), "offset": offset})
        blobs.append(blob)
        offset += len(blob)
    text = canonical_json({"header": dict(header), "arrays": table, "bytes": offset}).encode()
    # Arrays start at a multiple of eight, so that a typed array in a browser can view them in place.
    prefix = len(MAGIC) + 1 + len(kind) + 1 + 64 + 1
    text += b" " * (-(prefix + len(text) + 1) % 8) + b"\n"
    body = text + b"".join(blobs)
    return f"{MAGIC} {kind} {hashlib.sha256(body).hexdigest()}\n".encode() + body


def unpack_arrays(data: bytes, kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays from the container's bytes; FileError when they are not exactly what was packed."""
    first, newline, body = data.partition(b"\n")
    words = first[:200].decode("ascii", "replace").split(" ")
    if not newline or len(words) != 3 or words[0] != MAGIC:
        raise FileError("is not an fts file")
    if words[1] != kind:
        raise FileError(f"holds {words[1]!r}, not {kind!r}")
    if hashlib.sha256(body).hexdigest() != words[2]:
        raise FileError("is damaged (its checksum does not match)")
    text, _, raw = body.partition(b"\n")
    document = _document(text)
    offset, arrays = 0, {}
    for entry in document["arrays"]:
        name, array = _array(raw, entry, offset)
        if name in arrays:
            raise FileError(f"holds the array {name!r} twice")
        arrays[name] = array
        offset += array.nbytes
    if not offset == len(raw) == document["bytes"]:
        raise FileError(f"describes {offset} bytes of arrays and holds {len(raw)}")
    return document["header"], arrays


@contextlib.contextmanager
def file_errors(path: Path, remedy: str) -> Iterator[None]:
    """Turn whatever a stored description is refused for into a FileError with the path and the remedy."""
    try:
        yield
    except FileError as error:
        raise FileError(f"{path} {error}: {remedy}") from None
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        what = f"{type(error).__name__}: {error}".split("\n")[0][:200]
        raise FileError(f"{path} was not written by fts ({what}): {remedy}") from None


def require_entries(values: object, kinds: Mapping[str, tuple[type, ...]]) -> None:
    """An error unless the values have exactly these names and each one of its kinds; numbers are finite."""
    if not isinstance(values, Mapping) or set(values) != set(kinds):
        raise FileError(f"does not hold {', '.join(kinds)}")
    for name, value in values.items():
        # In Python a truth value is an integer too, and an integer does for a real number.
        allowed = (*kinds[name], int) if float in kinds[name] else kinds[name]
        right = isinstance(value, allowed) and (not isinstance(value, bool) or bool in kinds[name])
        if not right or (isinstance(value, float) and not np.isfinite(value)):
            raise FileError(f"holds {str(value)[:60]!r} for {name}")


def _document(text: bytes) -> dict[str, Any]:
    """The header line, exactly as canonical JSON writes it: one text, so one meaning."""
    if _depth(text) > DEEPEST:
        raise FileError("has a header nested too deeply")
    try:
        document = json.loads(text)
        same = canonical_json(document).encode() == text.rstrip(b" ")
    except (ValueError, RecursionError):
        raise FileError("has a header that is no JSON") from None
    if not same:
        raise FileError("has a header that is not in canonical form")
    require_entries(document, {"header": (dict,), "arrays": (list,), "bytes": (int,)})
    return document


def _depth(text: bytes) -> int:
    """Most brackets open at once; those in strings count too, which only makes it stricter."""
    signs = np.frombuffer(text, np.uint8)
    opened = np.isin(signs, list(b"[{")).astype(int) - np.isin(signs, list(b"]}"))
    return int(np.cumsum(opened).max(initial=0))


def _array(raw: bytes, entry: Any, offset: int) -> tuple[str, np.ndarray]:
    require_entries(entry, {"name": (str,), "dtype": (str,), "shape": (list,), "offset": (int,)})
    name, dtype, shape = entry["name"], entry["dtype"], entry["shape"]
    if dtype not in _DTYPES:
        raise FileError(f"stores {name!r} as {dtype!r}, which is never written")
    if not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in shape) or len(shape) > 32:
        raise FileError(f"gives {name!r} the shape {str(shape)[:60]}")
    count = math.prod(shape)
    if entry["offset"] != offset or offset + count * np.dtype(dtype).itemsize > len(raw):
        raise FileError(f"places {name!r} outside of its bytes, or out of order")
    flat = np.frombuffer(raw, dtype=dtype, count=count, offset=offset)
    array = flat.reshape(shape).astype(flat.dtype.newbyteorder("="))
    array.setflags(write=False)
    return name, array
