"""Does the posterior deviation say how far a field is off? How often it covers the error on held-out layouts.

A layout is a draw of sensors, probes or points with noise. On a grid over the domain the error of the field
is divided by its own posterior deviation; a calibrated one stays within k deviations as often as a normal
variable does. Settings are decided on layouts of `DEVELOPMENT`; those of `LAYOUTS` are run once.
"""

from collections.abc import Iterable, Iterator
from itertools import cycle
from pathlib import Path

import numpy as np
from jaxtyping import Float
from scipy.special import erf

from fts.fitting import fit_with_variance
from fts.lab.studies import records, runs
from fts.lab.studies.records import RunRecord
from fts.lab.studies.runs import Task
from fts.params.types import FieldParams
from fts.problems.problems import problem
from fts.problems.trajectories import simulate

DEVELOPMENT = range(2_000, 2_050)
LAYOUTS = range(200_000, 200_050)
STUDY = "calibration"
# Deviations at which coverage is counted.
LEVELS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
_NOISE = 0.1
_PROBLEMS = ("kdv", "ks", "ad")
_PROTOCOLS = ("S20", "S20-30", "D20", "R5", "N2000")
_MOST = 64  # points per axis at which a field is compared


def tasks(seeds: Iterable[int] = LAYOUTS) -> Iterator[Task]:
    """One layout per seed; problems and protocols take turns, so that each meets each."""
    for seed, name, protocol in zip(seeds, cycle(_PROBLEMS), cycle(_PROTOCOLS), strict=False):
        yield Task(STUDY, name, protocol, seed, _NOISE, "kernel", STUDY, FieldParams("kernel"))


def run(task: Task) -> RunRecord:
    """The record of one layout: the share of places where the error is within each number of deviations."""
    return runs.attempt(task, lambda _: perform(task))


def perform(task: Task) -> RunRecord:
    """The same, where an error is raised."""
    trajectory = simulate(task.problem)
    field, variance = fit_with_variance(task.observations(), task.params.recipe, progress=False)
    if variance is None:
        raise ValueError(f"recipe {task.params.recipe!r} has no posterior variance: take the kernel")
    places = [
        np.unique(np.linspace(0, axis.size - 1, min(_MOST, axis.size)).astype(int))
        for axis in (*trajectory.axes, trajectory.t)
    ]
    axes = [axis[at] for axis, at in zip((*trajectory.axes, trajectory.t), places, strict=True)]
    error = np.abs(field.on_grid(*axes) - trajectory.u[np.ix_(*places)])
    deviation = np.sqrt(variance.on_grid(*axes))
    score = {
        "covered": [float(np.mean(error <= level * deviation)) for level in LEVELS],
        "e_u": float(np.linalg.norm(error) / np.linalg.norm(trajectory.u[np.ix_(*places)])),
        "claimed": float(np.linalg.norm(deviation) / np.linalg.norm(trajectory.u[np.ix_(*places)])),
    }
    return runs.record(task, score=score, seconds=field.made.seconds)


def claimed() -> Float[np.ndarray, " levels"]:
    """How often a normal variable stays within each level."""
    return erf(np.array(LEVELS) / np.sqrt(2))


def coverage(made: Iterable[RunRecord]) -> Float[np.ndarray, "layouts levels"]:
    """Shares covered, one row per layout that finished."""
    rows = [one.score["covered"] for one in made if not one.error]
    if not rows:
        raise ValueError("no layouts recorded: make some with python -m fts.lab.studies calibration")
    return np.array(rows)


def check(folder: Path) -> Iterator[str]:
    """Records whose shares cannot be shares: outside 0 to 1, or falling as more deviations are allowed."""
    for one in records.read_study(STUDY, folder):
        if one.error:
            continue
        shares = np.array(one.score["covered"])
        known = one.problem == problem(one.problem).name and len(shares) == len(LEVELS)
        if not known or shares.min() < 0 or shares.max() > 1 or (np.diff(shares) < 0).any():
            yield f"calibration: seed {one.seed} records shares {one.score['covered']}"


def compute(folder: Path) -> dict[str, list[float]]:
    """Mean share covered at each level over all layouts, and the layouts' quartiles, for review."""
    made = records.read_study(STUDY, folder)
    if not any(not one.error for one in made):
        return {}
    shares = coverage(made)
    named = {"mean": shares.mean(axis=0), "median": np.median(shares, axis=0)}
    named |= {f"{q:.0%}": np.quantile(shares, q, axis=0) for q in (0.25, 0.75)}
    return {name: [float(value) for value in values] for name, values in named.items()}
