"""Files of samples -> named arrays x, [y, [z,]] t and u; nothing is guessed, nothing is unpickled.

Text of separated values: commas, semicolons, tabs or blanks, one sample a row, or a wide table with the
sensors' positions in one direction and the times in the other, whose heading is `x` (or `t`) and then
numbers. Blank cells are samples that were not taken. Lines that start with # or % are comments; the last one
above the numbers may be the heading, as NumPy writes it.
"""

import csv
import difflib
import gzip
import math
import re
import warnings
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path

import numpy as np

from fts.containers import FileError

COORDINATES = ("x", "y", "z")
# Bytes of numbers read from one file: more than any of the fits takes, and a bound on what a small file that
# promises a large one can ask for.
LARGEST = 1 << 28
# What a user may say about the names: {"t": "time"} for some of them, or a name for each column in order.
Columns = Mapping[str, str] | Sequence[str] | None
Arrays = dict[str, np.ndarray]  # by role: x, [y, [z,]] t and u
Rows = Iterator[list[str]]

# A text is read in blocks, its numbers counted meanwhile; eight bytes are written in up to 25 characters.
_MOST_TEXT = 4  # times `LARGEST`
_LONGEST_LINE = 1 << 22
_BLOCK = 1 << 18  # characters turned into numbers at once
_LOOK = 1024  # lines after which the numbers so far are counted
# A date or a time of day as ISO 8601 writes it, with Z or without.
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.]\d{1,6})?)?)?Z?")
_COMMENTS = ("#", "%")
# A heading of a wide table: what its rows are, and what its columns are.
_CORNERS = {"x": "xt", "t": "tx", "x\\t": "xt", "t\\x": "tx", "x/t": "xt", "t/x": "tx"}

_EXACT = 1 << 53  # integers beyond it are rounded by float64

_REMEDY = {
    "b": "store numbers",
    "c": "store its real part",
    "M": "store the seconds since the first one",
    "m": "store them as a number of seconds",
    "O": "it holds objects, which are not loaded (allow_pickle is off); store plain numbers",
    "V": "store one array per column",
}


class FileWarning(UserWarning):
    """Something a file holds that is not used; the message says what."""


def assign(names: Sequence[str], columns: Columns, where: str) -> dict[str, str]:
    """The file's own name for each of x, [y, [z,]] t, u; an error unless that is beyond doubt."""
    given = dict(columns) if isinstance(columns, Mapping) else {}
    unknown = set(given) - {*COORDINATES, "t", "u"}
    if unknown:
        raise FileError(f"columns name {sorted(unknown)}: only x, y, z, t and u can be given, as x=HEADING")
    roles = {}
    for role in (*COORDINATES, "t", "u"):
        wanted = given.get(role, role)
        taken = {given[other].lower() for other in given if other != role}
        matches = [name for name in names if _same(name, wanted) and (role in given or name not in taken)]
        if len(matches) > 1:
            raise FileError(f"{where} has {len(matches)} columns {wanted!r}: rename all but one")
        if matches:
            roles[role] = matches[0]
        elif role in given:
            near = difflib.get_close_matches(wanted, names, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise FileError(f"{where} has no column {wanted[:60]!r}: {hint}it has {_listing(names)}")
    _refuse_incomplete(roles, names, where)
    return roles


def numbers(name: str, array: np.ndarray, where: str) -> np.ndarray:
    """The array in float64; refused where that would change what it says."""
    array = np.ma.getdata(array)
    kind = array.dtype.kind
    if kind == "c" and not np.any(np.imag(array)):
        return np.real(array).astype(float)
    long = kind in "iu" and array.dtype.itemsize == 8 and array.size > 0
    if long and (int(array.max()) > _EXACT or int(array.min()) < -_EXACT):
        raise FileError(f"{name} of {where} holds integers beyond 2^53, to be rounded: subtract an offset")
    if array.dtype.names or kind not in "iuf":
        kind = "V" if array.dtype.names else kind
        raise FileError(f"{name} of {where} has type {array.dtype}: {_REMEDY.get(kind, 'store numbers')}")
    return array.astype(float)


def warn_ignored(names: Iterable[str], columns: Columns, where: str) -> None:
    """A warning with the arrays of numbers that are not read, unless it was said which one is u."""
    others = [name for name in names if name]
    if others and isinstance(columns, Mapping | None) and "u" not in (columns or {}):
        _warn(f"{where} also holds {_listing(others)}, not read: --columns u=NAME takes another for u")


def refuse_large(total: int, where: str) -> None:
    """An error when a file holds, or promises, more numbers than are read."""
    if total > LARGEST:
        raise FileError(f"{where} holds {total >> 20} MB of numbers, {LARGEST >> 20} are read: thin it out")


def refuse_many(shapes: Mapping[str, Sequence[int]], where: str) -> None:
    """The same for arrays of these shapes: a grid becomes one row of coordinates and value per sample."""
    rows = math.prod(shapes["u"]) * len(shapes)
    refuse_large(8 * max(rows, sum(math.prod(shape) for shape in shapes.values())), where)


def unreadable(path: Path, error: OSError) -> str:
    """The sentence for a file the system does not give."""
    return f"{path.name} cannot be read ({error.strerror or error}): mend or move it"


def _same(name: str, wanted: str) -> bool:
    return name.strip().lower() == wanted.strip().lower()


def _refuse_incomplete(roles: Mapping[str, str], names: Sequence[str], where: str) -> None:
    missing = [role for role in ("x", "t", "u") if role not in roles]
    if missing:
        raise FileError(
            f"{where} has columns {_listing(names)}: {', '.join(missing)} missing, "
            f"rename them or say which they are (--columns {missing[0]}=HEADING)"
        )
    if "z" in roles and "y" not in roles:
        raise FileError(f"{where} has x and z but no y: call the second axis y (--columns y=z)")


def _listing(names: Sequence[str]) -> str:
    shown = [name if len(name) <= 30 else name[:27] + "..." for name in names[:12]]
    return repr(shown) + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def read_delimited(path: Path, columns: Columns, decimal: str, missing: Sequence[str]) -> Arrays:
    """Columns x, [y, [z,]] t, u of the text at `path`, rows without a value left out."""
    size = path.stat().st_size
    if size > _MOST_TEXT * LARGEST:
        most = _MOST_TEXT * LARGEST >> 20
        raise FileError(f"{path.name} holds {size >> 20} MB of text, {most} are read: thin it out")
    packed = path.suffix.lower() == ".gz"
    if decimal not in (".", ","):
        raise FileError(f"decimal {decimal!r}: write '.' or ','")
    try:
        with (gzip.open if packed else open)(path, "rt", newline="", encoding="utf-8-sig") as stream:
            text = _Text(stream, path.name, decimal, missing)
            text.packed, text.most = packed, LARGEST if packed else size
            return text.read(columns)
    except UnicodeDecodeError:
        raise FileError(f"{path.name} is not UTF-8 text: save it as CSV in UTF-8") from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise FileError(f"{path.name} is damaged or no gzip file: save it again") from None
    except csv.Error as error:
        raise FileError(f"{path.name} is no table ({error}): one number a cell, quotes in pairs") from None


class _Text:
    """One pass over the lines of a table."""

    def __init__(self, stream, name: str, decimal: str, missing: Sequence[str]) -> None:
        self.stream, self.name, self.decimal = stream, name, decimal
        self.missing = {"", *(marker.strip() for marker in missing)}
        # A marker that is a number means it however it is written: -999, -999.0, -9.99e2.
        self.markers = np.array([value for value in map(self._float, self.missing) if value is not None])
        self.number = 0  # of the line read last
        self.packed = False
        self.characters, self.most = 0, LARGEST  # read, and read at most: what the file held when opened
        self.comment = ""
        self.separator: str | None = None
        self.form: str | None = None  # of the times: "" for numbers, else how the dates are written
        self.origin = np.datetime64(0, "us")

    @property
    def _line(self) -> str:
        return f"line {self.number} of {self.name}"

    def read(self, columns: Columns) -> Arrays:
        rows = self._rows()
        first = next(rows, None)
        if first is None:
            raise FileError(f"{self.name} is empty: write columns x, [y,] t, u")
        head = [first] if self._numeric(first) else []
        if columns is not None and not isinstance(columns, Mapping):
            names = [str(name) for name in columns]
        else:
            names = self._commented(len(first)) if head else [name.strip() for name in first]
        corner = self._corner(names, columns)
        if not corner:
            head = head or list(islice(rows, 1))
            # Where the first column holds dates, it is the time whatever its heading.
            corner = "tx" if self._all_numbers(names[1:]) and head and _form(head[0][0].strip()) else ""
        if corner:
            return self._wide(names, chain(head, rows), corner)
        indices = {role: names.index(name) for role, name in self._assign(names, columns).items()}
        # Only columns of numbers could have been meant.
        others = [
            name
            for index, (name, cell) in enumerate(zip(names, head[0] if head else (), strict=False))
            if index not in indices.values() and cell.strip() and self._float(cell) is not None
        ]
        warn_ignored(others, columns, self.name)
        return self._long(indices, len(names), head)

    def _assign(self, names: list[str], columns: Columns) -> dict[str, str]:
        try:
            return assign(names, _mapping(columns), self.name)
        except FileError as error:
            if len(names) < len("xtu") or {"x", "u"} & {name.lower() for name in names}:
                raise
            hint = "a column per sensor is headed by its position, the times before them by t"
            raise FileError(f"{error}; {hint}") from None

    def _long(self, indices: dict[str, int], width: int, head: list[list[str]]) -> Arrays:
        collected = {role: array("d") for role in indices}
        self._append(collected, indices, width, iter(head))
        while lines := self._block():
            block = self._plain(lines, width)
            if block is None:
                self.number -= len(lines)
                # A quoted cell may go on in the next block: from here on all is read in one go.
                rest = self._lines() if any('"' in line for line in lines) else ()
                self._append(collected, indices, width, self._cells(chain(self._counted(lines), rest)))
                continue
            for role, index in indices.items():
                collected[role].frombytes(block[:, index].tobytes())
            self._refuse_many(collected)
        if not collected["u"]:
            raise FileError(f"{self.name} holds no samples below its heading: write columns x, [y,] t, u")
        self._warn_of_dates()
        return {role: np.array(values) for role, values in collected.items()}

    def _warn_of_dates(self) -> None:
        if self.form:
            _warn(f"t of {self.name} is read as seconds since {self.origin}")

    def _append(self, collected: dict[str, array], indices: dict[str, int], width: int, table: Rows) -> None:
        for row in table:
            self._check_width(row, width)
            if self._is_missing(row[indices["u"]]):
                continue
            for role, index in indices.items():
                collected[role].append(self._value(row[index], role))
            if self.number % _LOOK == 0:
                self._refuse_many(collected)

    def _refuse_many(self, collected: Mapping[str, array]) -> None:
        refuse_large(8 * sum(len(values) for values in collected.values()), self.name)

    def _block(self) -> list[str]:
        lines, size = [], 0
        for line in self._lines():
            lines.append(line)
            size += len(line)
            if size >= _BLOCK:
                break
        return lines

    def _plain(self, lines: list[str], width: int) -> np.ndarray | None:
        """The numbers of lines that hold nothing else, several times faster; None where they need a look."""
        special = self.form or self.decimal != "." or self.missing != {""}
        if special or not any(line.strip() for line in lines):
            return None
        try:
            block = np.loadtxt(lines, delimiter=self.separator, comments=None, ndmin=2)
        except ValueError:
            return None
        if block.shape[1] != width:
            return None
        self.form = ""
        return block

    def _wide(self, names: list[str], table: Iterable[list[str]], corner: str) -> Arrays:
        across = [self._value(name, corner[1]) for name in names[1:]]
        collected = {role: array("d") for role in (*corner, "u")}
        for row in table:
            self._check_width(row, len(names))
            along = self._value(row[0], corner[0])
            for position, cell in zip(across, row[1:], strict=True):
                if not self._is_missing(cell):
                    values = along, position, self._value(cell, "u")
                    for role, value in zip(collected, values, strict=True):
                        collected[role].append(value)
            self._refuse_many(collected)
        if not collected["u"]:
            raise FileError(f"{self.name} holds no samples below its heading: fill the table")
        self._warn_of_dates()
        return {role: np.array(collected[role]) for role in ("x", "t", "u")}

    def _rows(self) -> Rows:
        lines = self._lines()
        first = next((line for line in lines if line.strip()), None)
        if first is None:
            return
        self.separator = self._separator(first)
        yield from self._cells(chain([first], lines))

    def _cells(self, lines: Iterable[str]) -> Rows:
        if self.separator is None:
            yield from (line.split() for line in lines if line.strip())
            return
        reader = csv.reader(lines, delimiter=self.separator, skipinitialspace=True, strict=True)
        yield from (row for row in reader if any(cell.strip() for cell in row))

    def _counted(self, lines: list[str]) -> Iterator[str]:
        for line in lines:
            self.number += 1
            yield line

    def _lines(self) -> Iterator[str]:
        """The lines, comments blanked, none longer than a bound: a file without ends of line is refused."""
        while line := self.stream.readline(_LONGEST_LINE):
            self.number += 1
            self.characters += len(line)
            if self.characters > self.most:
                if self.packed:
                    refuse_large(self.characters, self.name)
                raise FileError(f"{self.name} grew while it was read: wait until it is complete")
            if len(line) == _LONGEST_LINE:
                raise FileError(f"{self._line} does not end: write one sample a line")
            if "\0" in line:
                raise FileError(f"{self._line} holds a zero byte: save it as plain text")
            if line.lstrip().startswith(_COMMENTS):
                self.comment = line
                line = "\n"
            yield line

    def _separator(self, line: str) -> str | None:
        if ";" in line or "\t" in line:
            return ";" if ";" in line else "\t"
        if "," not in line:
            return None
        if self.decimal == ",":
            raise FileError(f"{self.name} separates by commas: a decimal comma needs ';' or tabs instead")
        return ","

    def _numeric(self, row: Sequence[str]) -> bool:
        """Whether it is a row of the table: numbers, and dates beside them."""
        numeric = [cell.strip() in self.missing or self._float(cell) is not None for cell in row]
        cells = zip(numeric, row, strict=True)
        return any(numeric) and all(is_number or _form(cell.strip()) for is_number, cell in cells)

    def _commented(self, width: int) -> list[str]:
        text = self.comment.lstrip().lstrip("#%").strip()
        separator = self._separator(text) if text else None
        names = [name.strip() for name in text.split(separator)]
        if len(names) != width:
            raise FileError(f"{self.name} has no heading: write x,t,u above it, or give --columns x t u")
        return names

    def _corner(self, names: list[str], columns: Columns) -> str:
        first = names[0].lower()
        for role, name in (_mapping(columns) or {}).items():
            if name.strip().lower() == first:
                first = role
        if len(names) > 1 and all(_form(name) for name in names[1:]):
            return "xt"
        return _CORNERS.get(first, "") if self._all_numbers(names[1:]) else ""

    def _all_numbers(self, names: Sequence[str]) -> bool:
        return len(names) > 0 and all(self._float(name) is not None for name in names)

    def _is_missing(self, cell: str) -> bool:
        if cell.strip() in self.missing:
            return True
        value = self._float(cell) if self.markers.size else None
        if value is None:
            return False
        return bool(np.isnan(self.markers).any() if math.isnan(value) else (self.markers == value).any())

    def _check_width(self, row: list[str], width: int) -> None:
        if len(row) != width:
            raise FileError(f"{self._line} has {len(row)} values for {width} columns: mend it")

    def _value(self, cell: str, role: str) -> float:
        value = self._time(cell) if role == "t" else self._float(cell)
        if value is None:
            hint = ", or say --decimal ," if "," in cell else ""
            raise FileError(f"{self._line} holds {cell[:60]!r} for {role}: it must be a number{hint}")
        return value

    def _time(self, cell: str) -> float | None:
        """A number, or seconds since the first date; None where it is not written as the first is."""
        value, text = self._float(cell), cell.strip()
        form = "" if value is not None else _form(text)
        if self.form is None and form:
            self.origin = self._date(text)
        if self.form is None:
            self.form = form
        if form is None or form == self.form == "":
            return value
        if form != self.form:
            what = f"{cell[:60]!r} for t, not written as the first"
            raise FileError(f"{self._line} holds {what}: write all times alike")
        return float((self._date(text) - self.origin) / np.timedelta64(1, "s"))

    def _date(self, text: str) -> np.datetime64:
        try:
            date = np.datetime64(text.removesuffix("Z"), "us")
        except ValueError:
            raise FileError(f"{self._line} holds {text!r} for t: no such date") from None
        return date

    def _float(self, cell: str) -> float | None:
        if self.decimal == ",":
            cell = cell.replace(",", ".") if "." not in cell else "two decimal signs"
        # Python reads 1_000 and other scripts' digits; in a table they are more likely a slip.
        if "_" in cell or not cell.isascii():
            return None
        try:
            return float(cell)
        except ValueError:
            return None


def _form(text: str) -> str | None:
    """How a date is written, its digits blanked; None where it is none. Fractions may differ in length."""
    return re.sub(r"\d", "0", re.sub(r"[.]\d+", ".0", text)) if _DATE.fullmatch(text) else None


def _warn(text: str) -> None:
    warnings.warn(text, FileWarning, stacklevel=2)


def _mapping(columns: Columns) -> Mapping[str, str] | None:
    return columns if isinstance(columns, Mapping) else None
