"""Records -> the cells of the paper's tables: recoveries out of the runs, medians and extremes of the errors.

A failed run counts as no recovery and has no error to enter a median.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import bdtrc

from fts.studies import records
from fts.studies.records import RunRecord

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
    return Path(__file__).resolve().parents[2] / "book" / "records"


def read_study(name: str, folder: Path | None = None) -> list[RunRecord]:
    """The study's records, the last one of every run; none when the study has not been run."""
    path = (folder or records_folder()) / f"{name}.jsonl"
    return list({one.key: one for one in records.read(path)}.values()) if path.is_file() else []


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
