"""One pass over a stream: every chunk measured, here or on workers of a Dask client, and the parts added up.

Parts are added in the order of their chunks. What is summed up so far can be kept in a file, from which an
interrupted pass goes on.
"""

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from tqdm.auto import tqdm

from fts import containers, validation
from fts.containers import FileError
from fts.io.formats import Arrays
from fts.io.streams import Chunk, damaged

PER_THREAD, FAN = 8, 8  # chunks a worker's thread is given at once; parts that one task adds up
_KEEP_EVERY = 20.0  # seconds from one file to the next
_DTYPES = ("<f8", "<c16", "<u8", "<i8")
_REMEDY = "remove it"

T = TypeVar("T")  # a frozen dataclass of arrays with a sum
Measure = Callable[[Chunk], T | None]  # None of a chunk without samples


@dataclass(frozen=True)
class Kept(Generic[T]):
    """A file with what a pass has summed up so far; another `plan` or changed chunks make it worthless."""

    path: Path
    kind: type[T]
    plan: str

    def read(self, chunks: Iterable[Chunk]) -> tuple[T | None, list[str]]:
        """The sum and the marks of the chunks it is of; none where there is no such file."""
        if not self.path.is_file():
            return None, []
        try:
            header, stored = containers.load_arrays(self.path, "sums", _REMEDY)
            marks = [str(chunk.mark) for chunk in islice(chunks, header["done"])]
            if (header["plan"], header["marks"]) != (self.plan, containers.content_key(marks)):
                return None, []
            arrays = {
                name: stored[name].view(dtype if dtype in _DTYPES else "<f8").reshape(shape)
                for name, (dtype, shape) in header["arrays"].items()
            }
            return self.kind(**{each.name: arrays.get(each.name) for each in fields(self.kind)}), marks  # pyright: ignore[reportArgumentType]
        except (FileError, KeyError, ValueError, TypeError):
            containers.remove_from_cache(self.path)
            return None, []

    def write(self, total: T, marks: list[str], last: Chunk) -> None:
        """Keep the sum of the chunks with these marks; a warning where the disk does not take it."""
        arrays = {each.name: getattr(total, each.name) for each in fields(total)}  # pyright: ignore[reportArgumentType]
        arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items() if array is not None}
        shapes = {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()}
        header = {"done": len(marks), "marks": containers.content_key(marks), "plan": self.plan}
        stored = {name: array.reshape(-1).view(np.uint8) for name, array in arrays.items()}
        try:
            containers.save_arrays(self.path, "sums", {**header, "arrays": shapes}, stored)
        except OSError as error:
            text = f"sums up to {last.name} are not kept ({error.strerror or error}): free {self.path.parent}"
            warnings.warn(f"{text}; the fit goes on, an interrupted one would start over", stacklevel=2)


def reduce_chunks(
    chunks: Iterable[Chunk], measure: Measure[T], kept: Kept[T] | None, client: Any, bar: tqdm
) -> T:
    """The sum of what `measure` makes of the chunks."""
    total, marks = kept.read(chunks) if kept else (None, [])
    bar.update(len(marks))
    saved, last = time.monotonic(), None
    try:
        for batch, part in _measured(islice(chunks, len(marks), None), measure, client):
            total, last = _sum(total, part), batch[-1]
            marks += [str(chunk.mark) for chunk in batch]
            bar.update(len(batch))
            if kept and total is not None and time.monotonic() - saved > _KEEP_EVERY:
                kept.write(total, marks, last)
                saved = time.monotonic()
    finally:  # also when a chunk is refused, or the run interrupted
        if kept and total is not None and last is not None:
            kept.write(total, marks, last)
    if total is None:
        raise FileError("the stream holds no samples: give columns x, [y,] t, u")
    return total


def require_client(client: Any) -> None:
    """An error unless it is a Dask client, or None."""
    if client is not None and not (hasattr(client, "submit") and hasattr(client, "nthreads")):
        raise ValueError(f"client is {validation.shown(client)}: give a dask.distributed.Client")


def _sum(*parts: T | None) -> T | None:
    total: Any = None
    for part in parts:
        total = part if total is None else total if part is None else total + part
    return total


def _measured(
    chunks: Iterator[Chunk], measure: Measure[T], client: Any
) -> Iterator[tuple[list[Chunk], T | None]]:
    """Batches of chunks, and the sum of each."""
    if client is None:
        yield from (([chunk], measure(chunk)) for chunk in chunks)
        return
    submit = partial(_submit_chunk, measure=measure, client=client)
    size = PER_THREAD * max(1, sum(client.nthreads().values()))
    pending: tuple[list[Chunk], Any] | None = None
    while batch := list(islice(chunks, size)):
        # The next batch is handed out before the sum of this one is waited for: nobody idles meanwhile.
        following = batch, _submit(batch, submit, client)
        if pending:
            yield pending[0], _gather(*pending, submit)
        pending = following
    if pending:
        yield pending[0], _gather(*pending, submit)


def _submit(batch: list[Chunk], submit: Callable[[Chunk], Any], client: Any) -> Any:
    """The future of a batch's sum: Dask does again what a lost worker had done, and adds up as a tree."""
    futures = list(map(submit, batch))
    while len(futures) > 1:
        groups = [futures[i : i + FAN] for i in range(0, len(futures), FAN)]
        futures = [client.submit(_sum, *group, pure=False) for group in groups]
    return futures[0]


def _submit_chunk(chunk: Chunk, measure: Measure[T], client: Any) -> Any:
    if chunk.delayed is None:
        return client.submit(measure, chunk, pure=False)
    from dask import delayed

    # The collection's own tasks make the table on a worker.
    named = replace(chunk, tables=tuple, delayed=None)
    return client.compute(delayed(_measure_table, pure=False)(measure, named, chunk.delayed))


def _measure_table(measure: Measure[T], chunk: Chunk, table: Any) -> T | None:
    return measure(replace(chunk, tables=partial(_tables_of, chunk.convert, table)))


def _tables_of(convert: Callable[[Any], Arrays] | None, table: Any) -> list[Arrays]:
    return [table if convert is None else convert(table)]


def _gather(batch: list[Chunk], future: Any, submit: Callable[[Chunk], Any]) -> Any:
    from distributed import KilledWorker
    from distributed.client import FutureCancelledError

    span = f"{batch[0].name} to {batch[-1].name}"
    try:
        return future.result()
    except KilledWorker as error:
        raise FileError(
            f"workers died over {span} ({error}): give them more memory, or smaller chunks"
        ) from None
    except FutureCancelledError:
        raise ConnectionError(f"the Dask scheduler is gone at {span}: start again where one runs") from None
    except FileError:
        raise
    except Exception as error:
        # A collection's own tasks know no chunk: which of them fails is seen by having each done again.
        failed = (chunk for chunk in batch if chunk.delayed is not None and submit(chunk).exception())
        chunk = next(failed, None)
        if chunk is None:
            raise
        raise damaged(chunk, error) from None
