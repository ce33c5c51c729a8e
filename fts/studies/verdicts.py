"""What a user is told: seeds -> tasks that ask `fts.discover` for a verdict on known problems."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from fts.data.problems import noisy_names
from fts.studies.configured import discover_task
from fts.studies.published import REGIMES
from fts.studies.runs import GENERAL, Task

# A verdict is asked for on so many layouts per seed and noise level, and with 43 terms on full grids.
_BURGERS_NOISE, _BURGERS_LAYOUTS = (0.0, 0.05, 0.1, 0.2), 4
_LARGE_NOISE = (0.1, 0.2, 0.5)


def verdicts(seeds: tuple[int, ...]) -> Iterator[Task]:
    """What `fts.discover` says: defaults on the paper's regimes, Burgers again and again, 43 terms."""
    for level, (problem, protocol), seed in product((0.0, 0.1), REGIMES, seeds):
        yield replace(
            discover_task("verdicts", problem, protocol, seed, level), row="defaults", library=GENERAL
        )
    for level, seed, further in product(_BURGERS_NOISE, seeds, range(_BURGERS_LAYOUTS)):
        yield replace(discover_task("verdicts", "burgers", "S20", seed + further, level), row="defaults")
    for level, problem, seed in product(_LARGE_NOISE, noisy_names(), seeds):
        yield replace(discover_task("verdicts", problem, "S100", seed, level), row="43 terms")
