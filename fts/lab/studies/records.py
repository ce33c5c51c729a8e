"""RunRecord: one run as one JSON line: what, with which parameters, what came out, or its error.

A record file opens with a line that counts and checksums the rest, and is replaced whole under a lock, so a
killed writer, a truncation or a flipped bit is never read as a shorter or different study.

Records -> the cells of the paper's tables: recoveries out of the runs, medians and extremes of the errors.

A failed run counts as no recovery and has no error to enter a median.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

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

    @property
    def key(self) -> str:
        """Names the run by what was asked, not by what came out: equal keys are the same run."""
        asked = [self.study, self.problem, self.protocol, self.row, self.method, self.seed, self.noise]
        return containers.content_key([*asked, self.parameters])


def append(path: Path, *records: RunRecord) -> None:
    """Add records to the file at `path`, atomically and safely beside other writers.

    A run that is there stays as it is, unless it failed and now did not: of two identical studies at once the
    first counts.
    """
    path = Path(path)
    with containers.locked(path.parent):
        lines = _lines(path) if path.exists() else []
        done = {one["key"]: not one["error"] for one in map(json.loads, lines)}
        fresh = {one.key: one for one in records if one.key not in done or not (done[one.key] or one.error)}
        lines += [containers.canonical_json({"key": key} | asdict(record)) for key, record in fresh.items()]
        containers.write_atomic(path, _pack(lines))


def read(path: Path) -> list[RunRecord]:
    """All records of the file at `path`, oldest first, every byte verified; FileError if it is damaged."""
    return [_record(line) for line in _lines(Path(path))]


def _record(line: str) -> RunRecord:
    values = json.loads(line)
    del values["key"]
    return RunRecord(**values)


def _pack(lines: list[str]) -> bytes:
    body = "".join(line + "\n" for line in lines).encode()
    head = {"count": len(lines), "format": _FORMAT, "sha256": hashlib.sha256(body).hexdigest()}
    return (containers.canonical_json(head) + "\n").encode() + body


def _lines(path: Path) -> list[str]:
    remedy = (
        f"restore it from version control, or delete it and run `python -m fts.lab.studies {path.stem}` again"
    )
    if not path.is_file():
        raise containers.FileError(f"no records at {path}: {remedy}")
    first, newline, body = path.read_bytes().partition(b"\n")
    try:
        head = json.loads(first)
        expected = (head["format"], head["sha256"])
    except (ValueError, KeyError, TypeError):
        raise containers.FileError(f"{path} is not a record file: {remedy}") from None
    lines = body.decode("utf-8", "replace").split("\n")[:-1]
    whole = (
        containers.canonical_json(head).encode() == first
        and newline == b"\n"
        and head.get("count") == len(lines)
    )
    if not whole or expected != (_FORMAT, hashlib.sha256(body).hexdigest()):
        raise containers.FileError(f"{path} is damaged (its checksum does not match): {remedy}")
    return lines


# What a cell is known by: row, problem, protocol, noise.
Place = tuple[str, str, str, float]


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


def records_folder() -> Path:
    """Where the committed records live."""
    return Path(__file__).resolve().parents[3] / "book" / "records"


def read_study(name: str, folder: Path | None = None) -> list[RunRecord]:
    """The study's records, the last one of every run; none when the study has not been run."""
    path = (folder or records_folder()) / f"{name}.jsonl"
    return list({one.key: one for one in read(path)}.values()) if path.is_file() else []


def summarize(runs: Iterable[RunRecord]) -> dict[Place, Summary]:
    """One summary per row, problem, protocol and noise."""
    groups: dict[Place, list[Mapping[str, Any]]] = {}
    for one in runs:
        groups.setdefault((one.row, one.problem, one.protocol, one.noise), []).append(one.score)
    return {place: summary(scores) for place, scores in groups.items()}


def summarize_selectors(runs: Iterable[RunRecord]) -> dict[Place, Summary]:
    """The same for the selector variants that a record lists beside its own selection."""
    groups: dict[Place, list[Mapping[str, Any]]] = {}
    for one in runs:
        for row, score in one.extra.get("selectors", {}).items():
            groups.setdefault((row, one.problem, one.protocol, one.noise), []).append(
                {"e_u": one.score["e_u"]} | score
            )
    return {place: summary(scores) for place, scores in groups.items()}


def summary(scores: list[Mapping[str, Any]]) -> Summary:
    """Recoveries, medians, quartiles and the largest field error; an empty score is a failed run."""
    finished = [score for score in scores if score]

    def values(name: str) -> np.ndarray:
        return np.array([score[name] for score in finished]) if finished else np.array([np.inf])

    def quartiles(name: str) -> tuple[float, float]:
        low, high = np.quantile(values(name), [0.25, 0.75]) if finished else (np.inf, np.inf)
        return float(low), float(high)

    return Summary(
        runs=len(scores),
        exact=sum(bool(score["exact"]) for score in finished),
        f1=float(np.median(values("f1"))) if finished else 0.0,
        e_xi=float(np.median(values("e_xi"))),
        e_u=float(np.median(values("e_u"))),
        e_u_max=float(values("e_u").max()),
        e_u_quartiles=quartiles("e_u"),
    )


def chance_of_median(share: float, runs: int = 5) -> float:
    """Chance that the median of so many runs is at most a value that a `share` of all runs stays below."""
    return float(bdtrc(runs // 2, runs, share))


def _finite(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_finite(one) for one in value]
    return value if np.isfinite(value) else None
