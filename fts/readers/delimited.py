"""Text of separated values -> columns: commas, semicolons, tabs or blanks, one sample a row, or a wide table.

A wide table has the sensors' positions in one direction and the times in the other: its heading is `x` (or
`t`) and then numbers. Blank cells are samples that were not taken. Lines that start with # or % are comments;
the last one above the numbers may be the heading, as NumPy writes it.
"""

import csv
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from fts.files import FileError
from fts.readers.columns import Columns, assign, refuse_large

Rows = Iterator[list[str]]

_LONGEST_LINE = 1 << 22
_BLOCK = 1 << 18  # characters turned into numbers at once
_COMMENTS = ("#", "%")
# A heading of a wide table: what its rows are, and what its columns are.
_CORNERS = {"x": "xt", "t": "tx", "x\\t": "xt", "t\\x": "tx", "x/t": "xt", "t/x": "tx"}


def read_delimited(
    path: Path, columns: Columns = None, decimal: str = ".", missing: Sequence[str] = ()
) -> dict[str, np.ndarray]:
    """Columns x, [y, [z,]] t, u of the text at `path`, rows without a value left out."""
    refuse_large(path.stat().st_size, path.name)
    if decimal not in (".", ","):
        raise FileError(f"decimal {decimal!r}: write '.' or ','")
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            return _Text(stream, path.name, decimal, {"", *(text.strip() for text in missing)}).read(columns)
    except UnicodeDecodeError:
        raise FileError(f"{path.name} is not UTF-8 text: save it as CSV in UTF-8") from None
    except csv.Error as error:
        raise FileError(f"{path.name} is no table ({error}): one number a cell, quotes in pairs") from None


class _Text:
    """One pass over the lines of a table."""

    def __init__(self, stream, name: str, decimal: str, missing: set[str]) -> None:
        self.stream, self.name, self.decimal, self.missing = stream, name, decimal, missing
        self.number = 0  # of the line read last
        self.comment = ""
        self.separator: str | None = None

    def read(self, columns: Columns) -> dict[str, np.ndarray]:
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
        if corner:
            return self._wide(names, chain(head, rows), corner)
        places = {
            role: names.index(name) for role, name in assign(names, _mapping(columns), self.name).items()
        }
        return self._long(places, len(names), head)

    def _long(self, places: dict[str, int], width: int, head: list[list[str]]) -> dict[str, np.ndarray]:
        found = {role: array("d") for role in places}
        self._append(found, places, width, iter(head))
        while lines := self._block():
            block = self._plain(lines, width)
            if block is None:
                self.number -= len(lines)
                # A quoted cell may go on in the next block: from here on all is read in one go.
                rest = self._lines() if any('"' in line for line in lines) else ()
                self._append(found, places, width, self._cells(chain(self._counted(lines), rest)))
                continue
            for role, place in places.items():
                found[role].frombytes(block[:, place].tobytes())
        if not found["u"]:
            raise FileError(f"{self.name} holds no samples below its heading: write columns x, [y,] t, u")
        return {role: np.array(values) for role, values in found.items()}

    def _append(self, found: dict[str, array], places: dict[str, int], width: int, table: Rows) -> None:
        for row in table:
            self._check_width(row, width)
            if row[places["u"]].strip() in self.missing:
                continue
            for role, place in places.items():
                found[role].append(self._value(row[place], role))

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
        if self.decimal != "." or self.missing != {""} or not any(line.strip() for line in lines):
            return None
        try:
            block = np.loadtxt(lines, delimiter=self.separator, comments=None, ndmin=2)
        except ValueError:
            return None
        return block if block.shape[1] == width else None

    def _wide(self, names: list[str], table: Iterable[list[str]], corner: str) -> dict[str, np.ndarray]:
        across = [self._value(name, corner[1]) for name in names[1:]]
        found = {role: array("d") for role in (*corner, "u")}
        for row in table:
            self._check_width(row, len(names))
            along = self._value(row[0], corner[0])
            for place, cell in zip(across, row[1:], strict=True):
                if cell.strip() not in self.missing:
                    for role, value in zip(
                        (*corner, "u"), (along, place, self._value(cell, "u")), strict=True
                    ):
                        found[role].append(value)
        if not found["u"]:
            raise FileError(f"{self.name} holds no samples below its heading: fill the table")
        return {role: np.array(found[role]) for role in ("x", "t", "u")}

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
            if len(line) == _LONGEST_LINE:
                raise FileError(f"line {self.number} of {self.name} does not end: write one sample a line")
            if "\0" in line:
                raise FileError(f"line {self.number} of {self.name} holds a zero byte: save it as plain text")
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
            raise FileError(
                f"{self.name} separates by commas: a decimal comma needs ';' or tabs between cells"
            )
        return ","

    def _numeric(self, row: Sequence[str]) -> bool:
        return all(cell.strip() in self.missing or self._float(cell) is not None for cell in row)

    def _commented(self, width: int) -> list[str]:
        text = self.comment.lstrip().lstrip("#%").strip()
        separator = self._separator(text) if text else None
        names = [name.strip() for name in text.split(separator)]
        if len(names) != width:
            raise FileError(
                f"{self.name} has no heading: write x,t,u above the numbers, or give --columns x t u"
            )
        return names

    def _corner(self, names: list[str], columns: Columns) -> str:
        first = names[0].lower()
        for role, name in (_mapping(columns) or {}).items():
            if name.strip().lower() == first:
                first = role
        wide = len(names) > 1 and all(self._float(name) is not None for name in names[1:])
        return _CORNERS.get(first, "") if wide else ""

    def _check_width(self, row: list[str], width: int) -> None:
        if len(row) != width:
            raise FileError(
                f"line {self.number} of {self.name} has {len(row)} values for {width} columns: mend it"
            )

    def _value(self, cell: str, role: str) -> float:
        value = self._float(cell)
        if value is None:
            hint = ", or say --decimal ," if "," in cell else ""
            raise FileError(
                f"line {self.number} of {self.name} holds {cell[:60]!r} for {role}: it must be a number{hint}"
            )
        return value

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


def _mapping(columns: Columns) -> Mapping[str, str] | None:
    return columns if isinstance(columns, Mapping) else None
