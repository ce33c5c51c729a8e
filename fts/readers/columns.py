"""Which array of a file is x, [y, [z,]] t and u, and what numbers it may hold: nothing is guessed."""

import difflib
from collections.abc import Mapping, Sequence

import numpy as np

from fts.files import FileError

COORDINATES = ("x", "y", "z")
# Bytes of numbers read from one file: more than any of the fits takes, and a bound on what a small file that
# promises a large one can ask for.
LARGEST = 1 << 28
# What a user may say about the names: {"t": "time"} for some of them, or a name for each column in order.
Columns = Mapping[str, str] | Sequence[str] | None

_REMEDY = {
    "c": "store its real part",
    "M": "store the seconds since the first one",
    "m": "store them as a number of seconds",
    "O": "it holds objects, which are not loaded (allow_pickle is off); store plain numbers",
    "V": "store one array per column",
    "S": "store numbers",
    "U": "store numbers",
    "b": "store numbers",
}


def assign(names: Sequence[str], columns: Columns, where: str) -> dict[str, str]:
    """The file's own name for each of x, [y, [z,]] t, u; an error unless that is beyond doubt."""
    given = dict(columns) if isinstance(columns, Mapping) else {}
    unknown = set(given) - {*COORDINATES, "t", "u"}
    if unknown:
        raise FileError(f"columns name {sorted(unknown)}: only x, y, z, t and u can be given, as x=HEADING")
    found = {}
    for role in (*COORDINATES, "t", "u"):
        wanted = given.get(role, role)
        taken = {given[other].lower() for other in given if other != role}
        matches = [name for name in names if _same(name, wanted) and (role in given or name not in taken)]
        if len(matches) > 1:
            raise FileError(f"{where} has {len(matches)} columns {wanted!r}: rename all but one")
        if matches:
            found[role] = matches[0]
        elif role in given:
            near = difflib.get_close_matches(wanted, names, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise FileError(f"{where} has no column {wanted[:60]!r}: {hint}It has {_listing(names)}")
    _refuse_incomplete(found, names, where)
    return found


def numbers(name: str, array: np.ndarray, where: str) -> np.ndarray:
    """The array in float64; refused where that would change what it says."""
    array = np.ma.getdata(array)
    kind = array.dtype.kind
    if kind == "c" and not np.any(np.imag(array)):
        return np.real(array).astype(float)
    if array.dtype.names or kind not in "iuf":
        kind = "V" if array.dtype.names else kind
        raise FileError(f"{name} of {where} has type {array.dtype}: {_REMEDY.get(kind, 'store numbers')}")
    return array.astype(float)


def refuse_large(total: int, where: str) -> None:
    """An error when a file holds, or promises, more numbers than are read."""
    if total > LARGEST:
        raise FileError(f"{where} holds {total >> 20} MB of numbers, {LARGEST >> 20} are read: thin it out")


def _same(name: str, wanted: str) -> bool:
    return name.strip().lower() == wanted.strip().lower()


def _refuse_incomplete(found: Mapping[str, str], names: Sequence[str], where: str) -> None:
    missing = [role for role in ("x", "t", "u") if role not in found]
    if missing:
        raise FileError(
            f"{where} has columns {_listing(names)}: {', '.join(missing)} missing, "
            f"rename them or say which they are (--columns {missing[0]}=HEADING)"
        )
    if "z" in found and "y" not in found:
        raise FileError(f"{where} has x and z but no y: call the second axis y (--columns y=z)")


def _listing(names: Sequence[str]) -> str:
    shown = [name if len(name) <= 30 else name[:27] + "..." for name in names[:12]]
    return repr(shown) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
