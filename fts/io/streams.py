"""Samples that need not fit in memory: named chunks, checked as they pass, and what a first pass tells.

A pass measures every chunk and adds the parts up, here or on the workers of a Dask client. What is kept of
the samples themselves is a reservoir: those whose positions have the smallest hash codes. It is the same
however the samples are cut into chunks, and holds all samples of a position or none.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int, UInt64

from fts import validation
from fts.containers import FileError
from fts.domain import Domain
from fts.io import formats
from fts.io.formats import COORDINATES, Arrays
from fts.observations import Observations, require_amplitude, require_finite, require_inside, row_codes

BLOCK = 1 << 20  # samples in memory at once
RESERVOIR = 1 << 18  # samples kept: all of them up to here
MOST_GROUPS = 2000  # sensors or frames whose kernel matrix is decomposed
_FIRST_LOOK = 1 << 13  # samples that mostly show whether a block has more

_UNSTABLE = "give samples that every pass reads alike, as list(chunks) or a function that makes them anew"


class Block(NamedTuple):
    """Some samples in float64."""

    x: Float[np.ndarray, "n d"]
    t: Float[np.ndarray, " n"]
    u: Float[np.ndarray, " n"]


@dataclass(frozen=True)
class Chunk:
    """A part of a stream, under the name errors give; it is read wherever it is measured."""

    name: str
    tables: Callable[[], Iterable[Arrays]]  # arrays x, [y, [z,]] t and u of one length
    mark: str | None = None  # changes with the content; None where nothing tells
    # The Dask task that makes a partition where a Dask collection is read, and what turns it into arrays.
    delayed: Any = None
    convert: Callable[[Any], Arrays] | None = None

    def blocks(self) -> Iterator[Block]:
        """The samples in order, checked; whatever is wrong is a FileError that names the chunk."""
        for table in self._read():
            with named(self):
                yield from _blocks(table, self.name)

    def _read(self) -> Iterator[Arrays]:
        try:
            yield from self.tables()
        except FileError:
            raise
        except Exception as error:
            raise damaged(self, error) from None


def damaged(chunk: Chunk, error: BaseException) -> FileError:
    """What to say of a chunk that cannot be read: libraries' parsers end in whatever they did not foresee."""
    reason = f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
    return FileError(f"{chunk.name} is damaged or ends early ({reason}): write it again")


@contextlib.contextmanager
def named(chunk: Chunk) -> Iterator[None]:
    """Let what is refused inside say in which chunk it stands."""
    try:
        yield
    except FileError:
        raise
    except ValueError as error:
        raise FileError(f"{chunk.name}: {error}") from None


def _blocks(table: Arrays, where: str) -> Iterator[Block]:
    roles = [*(axis for axis in COORDINATES if axis in table), "t", "u"]
    sizes = {role: np.shape(table[role]) for role in roles}
    if len(set(sizes.values())) > 1 or len(sizes["u"]) != 1:
        raise FileError(f"{where} holds arrays of shapes {sizes}: give columns of equal length")
    for start in range(0, sizes["u"][0], BLOCK):
        rows = slice(start, start + BLOCK)
        columns = {role: formats.numbers(role, np.asarray(table[role][rows]), where) for role in roles}
        for role in roles:
            require_finite(role, columns[role])
        *space, t, u = columns.values()
        require_amplitude(u)
        yield Block(np.column_stack(space), t, u)


@dataclass(frozen=True)
class SampleStream:
    """Samples in chunks that every pass reads alike; `fts.fit` and `fts.discover` take it for Observations.

    Without a `domain` the samples' bounding box is taken and no axis is periodic. What a pass has summed up
    is kept in files whose names begin as `kept` does, until the fit is done: an interrupted one goes on.
    """

    chunks: Iterable[Chunk]
    domain: Domain | Callable[[Domain], Domain] | None = None  # a function of the samples' bounding box
    source: str = "a stream"
    kept: Path | None = None

    def __post_init__(self) -> None:
        if isinstance(self.chunks, Iterator):
            raise ValueError(f"chunks can be read only once: {_UNSTABLE}")

    def __repr__(self) -> str:
        try:
            count = f"{len(self.chunks)} "  # pyright: ignore[reportArgumentType]
        except TypeError:
            count = ""
        box = f" in {self.domain.as_text()}" if isinstance(self.domain, Domain) else ""
        return f"<SampleStream: {count}chunks{box}, source {validation.shortened(repr(self.source))}>"


@dataclass(frozen=True)
class Survey:
    """Count and box of samples, their reservoir, and their sensors and frames where these are few."""

    count: Int[np.ndarray, " 1"]  # all that a pass measures is arrays
    low: Float[np.ndarray, " k"]
    high: Float[np.ndarray, " k"]
    codes: UInt64[np.ndarray, " r"]
    rows: Float[np.ndarray, "r c"]  # x, [y, [z,]] t, u in the order they came in
    sensors: Float[np.ndarray, "S d"] | None
    frames: Float[np.ndarray, "F 1"] | None

    def __add__(self, other: "Survey") -> "Survey":
        if len(self.low) != len(other.low):
            raise FileError(f"{len(self.low) - 1} and {len(other.low) - 1} axes of space: give chunks alike")
        count = self.count + other.count
        codes, rows = (np.concatenate(pair) for pair in ((self.codes, other.codes), (self.rows, other.rows)))
        kept = _smallest(codes)
        return Survey(
            count,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            codes[kept],
            rows[kept],
            _united(self.sensors, other.sensors),
            _united(self.frames, other.frames),
        )

    def observations(self, stream: SampleStream) -> Observations:
        """The reservoir: all samples where it holds them."""
        domain = stream.domain
        *low, t0 = self.low.tolist()
        *high, t1 = self.high.tolist()
        if not isinstance(domain, Domain):
            for letter, first, last in zip((*COORDINATES[: len(low)], "t"), self.low, self.high, strict=True):
                if first == last:
                    remedy = "measure at others, or drop the axis"
                    raise FileError(f"every sample has {letter} = {first:g}: {remedy}")
            box = Domain(tuple(low), tuple(high), t0, t1, (False,) * len(low))
            domain = box if domain is None else domain(box)
            ends = np.array([self.low, self.high])
            require_inside(domain, ends[:, :-1], ends[:, -1])
        x, t, u = self.rows[:, :-2], self.rows[:, -2], self.rows[:, -1]
        return Observations(x, t, u, domain, source=stream.source)


def survey_chunk(domain: Domain | None, chunk: Chunk) -> Survey | None:
    """What the samples of one chunk tell; None where it is empty."""
    total: Survey | None = None
    for block in chunk.blocks():
        if domain is not None:
            if block.x.shape[1] != domain.dimension:
                raise FileError(
                    f"{chunk.name} has {block.x.shape[1]} axes of space, the domain {domain.dimension}: "
                    "make them agree"
                )
            with named(chunk):
                require_inside(domain, block.x, block.t)
        part = _survey(block, total)
        total = part if total is None else total + part
    return total


def _survey(block: Block, before: Survey | None) -> Survey:
    columns = (*block.x.T, block.t)
    codes = row_codes(columns)
    kept = _smallest(codes)
    few_sensors = before is None or before.sensors is not None
    few_frames = before is None or before.frames is not None
    return Survey(
        np.array([len(block.t)]),
        np.array([column.min() for column in columns]),
        np.array([column.max() for column in columns]),
        codes[kept],
        np.column_stack([column[kept] for column in (*columns, block.u)]),
        _few(block.x) if few_sensors else None,
        _few(block.t[:, None]) if few_frames else None,
    )


def _smallest(codes: np.ndarray) -> np.ndarray | slice:
    """Where the smallest codes are, as many as the reservoir holds."""
    if len(codes) <= RESERVOIR:
        return slice(None)
    # Equal codes are one position, which is kept as a whole.
    kept = np.flatnonzero(codes <= np.partition(codes, RESERVOIR - 1)[RESERVOIR - 1])
    if len(kept) > 2 * RESERVOIR:
        times = len(kept) - RESERVOIR
        raise FileError(f"a position is sampled some {times:,} times: average repeated measurements")
    return kept


def _few(points: Float[np.ndarray, "n d"]) -> np.ndarray | None:
    """The distinct points in lexicographic order where these are few."""
    codes = row_codes(tuple(points.T))
    for part in (codes[:_FIRST_LOOK], codes):
        if len(np.unique(part)) > MOST_GROUPS:
            return None
    _, first = np.unique(codes, return_index=True)
    return np.unique(points[first], axis=0)


def _united(first: np.ndarray | None, second: np.ndarray | None) -> np.ndarray | None:
    if first is None or second is None:
        return None
    points = np.unique(np.concatenate([first, second]), axis=0)
    return points if len(points) <= MOST_GROUPS else None
