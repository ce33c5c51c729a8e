"""RunRecord: one run as one JSON line: what, with which parameters, what came out, or its error.

A record file opens with a line that counts and checksums the rest, and is replaced whole under a lock, so a
killed writer, a truncation or a flipped bit is never read as a shorter or different study.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fts import files

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
        return files.content_key([*asked, self.parameters])


def append(path: Path, *records: RunRecord) -> None:
    """Add records to the file at `path`, atomically and safely beside other writers.

    A run that is there stays as it is, unless it failed and now did not: of two identical studies at once the
    first counts.
    """
    path = Path(path)
    with files.locked(path.parent):
        lines = _lines(path) if path.exists() else []
        done = {one["key"]: not one["error"] for one in map(json.loads, lines)}
        fresh = {one.key: one for one in records if one.key not in done or not (done[one.key] or one.error)}
        lines += [files.canonical_json({"key": key} | asdict(record)) for key, record in fresh.items()]
        files.write_atomic(path, _pack(lines))


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
    return (files.canonical_json(head) + "\n").encode() + body


def _lines(path: Path) -> list[str]:
    remedy = (
        f"restore it from version control, or delete it and run `python -m fts.studies {path.stem}` again"
    )
    if not path.is_file():
        raise files.FileError(f"no records at {path}: {remedy}")
    first, newline, body = path.read_bytes().partition(b"\n")
    try:
        head = json.loads(first)
        expected = (head["format"], head["sha256"])
    except (ValueError, KeyError, TypeError):
        raise files.FileError(f"{path} is not a record file: {remedy}") from None
    lines = body.decode("utf-8", "replace").split("\n")[:-1]
    whole = (
        files.canonical_json(head).encode() == first and newline == b"\n" and head.get("count") == len(lines)
    )
    if not whole or expected != (_FORMAT, hashlib.sha256(body).hexdigest()):
        raise files.FileError(f"{path} is damaged (its checksum does not match): {remedy}")
    return lines
