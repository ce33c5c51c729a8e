"""The plan of two fields: 43 terms under heavy noise and on sparse samples, the paper's under noise."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from fts.data.problems import noisy_names
from fts.params import TWO_FIELDS
from fts.studies.published import REGIMES
from fts.studies.runs import Task

# Rows beside the others: a single split of the samples instead of the average over several, and draws of
# sensors and noise that were first seen when the rule was finished.
ONE_SPLIT, FRESH = ", one split", ", fresh draws"
_FURTHER = 10_000  # from a seed to a fresh one
NOISE_LEVELS = (0.1, 0.2, 0.3, 0.5)
_HEAVY_NOISE = (0.2, 0.5, 1.0)


def cross(seeds: tuple[int, ...]) -> Iterator[Task]:
    """Two fields: 43 terms under heavy noise and on sparse samples, and the paper's libraries under noise."""
    further = tuple(seed + _FURTHER for seed in seeds)
    kinds = {"": (seeds, TWO_FIELDS), ONE_SPLIT: (seeds, replace(TWO_FIELDS, splits=1))}
    kinds |= {FRESH: (further, TWO_FIELDS)}
    for kind, (own, params) in kinds.items():
        for (row, problem, protocol, level, library), seed in product(_crossings(), own):
            yield Task("cross", problem, protocol, seed, level, row + kind, "two fields", params, library)


def _crossings() -> Iterator[tuple[str, str, str, float, str]]:
    """Row, problem, protocol, noise and library."""
    for level, problem in product(_HEAVY_NOISE, noisy_names()):
        yield "43 terms", problem, "S100", level, ""
    for level, regime in product(NOISE_LEVELS[::-1], REGIMES):
        yield "paper's terms", *regime, level, ""
    for problem, protocol in REGIMES:
        yield "43 terms", problem, protocol, 0.0, "powers 2D" if problem == "ad" else "powers"
    for level, protocol, problem in product((0.1, 0.2), ("S20", "T20"), noisy_names()):
        yield "43 terms", problem, protocol, level, ""
