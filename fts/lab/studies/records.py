"""RunRecord: one run as one JSON line; records -> the cells of tables: recoveries, medians, extremes.

A file's first line counts and checksums the records below it; lines that a running study appends carry their
own checksums until `seal`. No flipped bit is read as a result; a killed writer loses the line it was writing.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from scipy.special import bdtrc

from fts import containers

_FORMAT = "fts-records 1"


@dataclass(frozen=True)
class RunRecord:
    """One finished or failed run."""

    study: str
    problem: str
    protocol: str
    row: str  # of the table
    method: str
    seed: int
    noise: float
    parameters: dict[str, Any]
    source: str  # trajectory: "generated" or a released file
    terms: dict[str, float] = field(default_factory=dict)  # selected term -> coefficient
    score: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    device: str = "cpu"
    field_key: str = ""  # equal keys: the same field, of the same samples
    extra: dict[str, Any] = field(default_factory=dict)
    error: str = ""
    code: str = ""  # version of the code that made the run (`provenance.code_version`)

    @property
    def key(self) -> str:
        """Names the run by its inputs, not its results: equal keys are the same run."""
        inputs = [self.study, self.problem, self.protocol, self.row, self.method, self.seed, self.noise]
        return containers.content_key([*inputs, self.parameters])

    @property
    def label(self) -> str:
        """How messages call the run."""
        return f"{self.study}: {self.problem}-{self.protocol} {self.row} seed {self.seed}"


# Row, problem, protocol and noise: what a cell of a table is known by.
CellKey = tuple[str, str, str, float]


def cell_label(key: CellKey) -> str:
    """How tables.json and messages call a cell."""
    row, name, protocol, noise = key
    return f"{row} | {name}-{protocol}" + (f" | {noise:.0%} noise" if noise else "")


@dataclass(frozen=True)
class Summary:
    """One cell: how many of the runs were exact, and where their errors lie."""

    runs: int
    exact: int
    f1: float
    e_xi: float
    e_u: float
    e_u_max: float
    e_u_quartiles: tuple[float, float]

    def as_dict(self) -> dict[str, Any]:
        """JSON form; where every run failed, an error is None."""
        return {name: _finite(value) for name, value in asdict(self).items()}


Cells = Mapping[CellKey, Summary]


def count_of_five(part: int, runs: int) -> str:
    """A count as a table shows it: the number alone where a cell has its five runs."""
    return f"{part}" if runs == 5 else f"{part} of {runs}"


def append(path: Path, *records: RunRecord) -> None:
    """Add records at the end of the file at `path`, on disk on return and safe beside other writers.

    A run that is there stays as it is, unless it failed and now did not: of two studies the first counts.
    """
    path = Path(path)
    with containers.locked(path.parent):
        lines, size = _lines(path) if path.exists() else ([], 0)
        failed = {values["key"]: bool(values["error"]) for values in map(json.loads, lines)}
        fresh = {r.key: r for r in records if r.key not in failed or (failed[r.key] and not r.error)}
        added = [containers.canonical_json({"key": key} | asdict(record)) for key, record in fresh.items()]
        if not size:
            containers.write_atomic(path, _sealed([]))
        with open(path, "r+b") as stream:
            stream.seek(size or path.stat().st_size)
            stream.truncate()  # what a killed writer left of its last line
            stream.write("".join(_checked(line) for line in added).encode())
            stream.flush()
            os.fsync(stream.fileno())


def seal(path: Path) -> None:
    """Put all lines under the checksum of the first one, as committed files have them."""
    with containers.locked(path.parent):
        containers.write_atomic(path, _sealed(_lines(path)[0]))


def read(path: Path) -> list[RunRecord]:
    """All records of the file at `path`, oldest first, every byte verified; FileError if it is damaged."""
    records = []
    for number, text in enumerate(_lines(Path(path))[0], start=2):
        try:
            records.append(RunRecord(**{name: v for name, v in json.loads(text).items() if name != "key"}))
        except (ValueError, TypeError, AttributeError):
            fault = f"line {number} of {path} is no record: restore the file from version control"
            raise containers.FileError(fault) from None
    return records


def read_study(name: str, folder: Path | None = None) -> list[RunRecord]:
    """The study's records, the last one of every run; none when the study has not been run."""
    path = (folder or records_folder()) / f"{name}.jsonl"
    return list({record.key: record for record in read(path)}.values()) if path.is_file() else []


def records_folder() -> Path:
    """Where the committed records live."""
    return Path(__file__).resolve().parents[3] / "book" / "records"


def by_cell(runs: Iterable[RunRecord]) -> dict[CellKey, list[RunRecord]]:
    """Runs by row, problem, protocol and noise."""
    return grouped(((run.row, run.problem, run.protocol, run.noise), run) for run in runs)


def summarize(runs: Iterable[RunRecord]) -> dict[CellKey, Summary]:
    """One summary per row, problem, protocol and noise."""
    return _summaries((run, run.row, run.score) for run in runs)


def summarize_selectors(runs: Iterable[RunRecord]) -> dict[CellKey, Summary]:
    """The same for the selector variants that a record lists beside its own selection."""
    pairs = ((run, item) for run in runs for item in run.extra.get("selectors", {}).items())
    return _summaries((run, row, {"e_u": run.score["e_u"]} | score) for run, (row, score) in pairs)


def summary(scores: list[Mapping[str, Any]]) -> Summary:
    """Recoveries, medians, quartiles and the largest field error; an empty score is a failed run.

    A failed run counts as no recovery and has no error to enter a median.
    """
    finished = [score for score in scores if score]
    if not finished:
        return Summary(len(scores), 0, 0.0, np.inf, np.inf, np.inf, (np.inf, np.inf))
    errors = np.array([[score[name] for name in ("f1", "e_xi", "e_u")] for score in finished], dtype=float)
    exact, e_u = sum(bool(score["exact"]) for score in finished), errors[:, 2]
    low, high = np.quantile(e_u, [0.25, 0.75]).tolist()
    f1, e_xi, middle = np.median(errors, axis=0).tolist()
    return Summary(len(scores), exact, f1, e_xi, middle, float(e_u.max()), (low, high))


K = TypeVar("K")
V = TypeVar("V")


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Values by key, both in the order in which they come."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def chance_of_median(share: float, runs: int = 5) -> float:
    """Chance that the median of so many runs is at most a value that a `share` of all runs stays below."""
    return float(bdtrc(runs // 2, runs, share))


def _summaries(scored: Iterable[tuple[RunRecord, str, Mapping[str, Any]]]) -> dict[CellKey, Summary]:
    cells = grouped(((row, run.problem, run.protocol, run.noise), score) for run, row, score in scored)
    return {key: summary(scores) for key, scores in cells.items()}


def _finite(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_finite(each) for each in value]
    return value if np.isfinite(value) else None


def _sealed(lines: list[str]) -> bytes:
    body = "".join(line + "\n" for line in lines).encode()
    head = {"count": len(lines), "format": _FORMAT, "sha256": hashlib.sha256(body).hexdigest()}
    return (containers.canonical_json(head) + "\n").encode() + body


def _checked(line: str) -> str:
    """An appended line: the record beside its own checksum."""
    return f'{{"record":{line},"sha256":"{hashlib.sha256(line.encode()).hexdigest()}"}}\n'


def _lines(path: Path) -> tuple[list[str], int]:
    """The records' texts, and the size of the file up to the end of its last whole line."""
    command = f"`python -m fts.lab.studies {path.stem}`"
    remedy = f"restore it from version control, or delete it and run {command} again"
    if not path.is_file():
        raise containers.FileError(f"no records at {path}: {remedy}")
    data = path.read_bytes()
    first, *rest = data.split(b"\n")
    try:
        head = json.loads(first)
        count, digest = int(head["count"]), (head["format"], head["sha256"])
    except (ValueError, KeyError, TypeError):
        raise containers.FileError(f"{path} is not a record file: {remedy}") from None
    whole, torn = rest[:-1], rest[-1:]
    body = b"".join(line + b"\n" for line in whole[:count])
    appended = [line.decode("utf-8", "replace") for line in whole[count:]]
    # A checked line is the same text around the record every time.
    texts = [line.removeprefix('{"record":').rpartition(',"sha256":"')[0] for line in appended]
    if (
        containers.canonical_json(head).encode() != first
        or not 0 <= count <= len(whole)
        or digest != (_FORMAT, hashlib.sha256(body).hexdigest())
        or any(_checked(text) != line + "\n" for text, line in zip(texts, appended, strict=True))
    ):
        raise containers.FileError(f"{path} is damaged (its checksum does not match): {remedy}")
    return body.decode().split("\n")[:-1] + texts, len(data) - sum(map(len, torn))
