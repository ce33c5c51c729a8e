"""The settings of two fields, one at a time, on the development problems: what each value recovered.

Every cell is a problem, a protocol, a noise level and a seed; its samples are conditioned once. A candidate
changes one setting of `fts.params.TWO_FIELDS`; it is judged by exact recoveries and by the mean of log E_xi,
each error counted as one at most. The paper's rule on one field is measured on the same cells, which is how
`fts.discover` decides between the two.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from fts import containers
from fts.equations.equation import Equation
from fts.equations.terms import Library
from fts.fitting import Fit
from fts.kernel.closed_form import freeze
from fts.kernel.separable import condition_grid
from fts.lab.studies.records import records_folder
from fts.params.paper import DEVELOPMENT_SEEDS, LIBRARIES
from fts.problems import metrics
from fts.problems.development import candidate_library, development, development_names, wavy_names
from fts.problems.problems import Problem
from fts.problems.trajectories import observe
from fts.selection.instrumental import TWO_FIELDS, TwoFieldsParams, choose
from fts.selection.moments import CrossMoments
from fts.selection.selection import Selection
from fts.svws.split_sample import moments_of_halves, prepare_halves, select_halves

FILE = "settled.json"
# Terms beside the paper's eight that development problems with a small library need.
_FURTHER = ("u_x", "D_x(u^3)", "u_xxxxx")
_CHAOTIC = ("benney-lin", "drifting ks")
# Settings tried: those that change the moments, and those that change what is made of them.
_MEASURED: dict[str, tuple[Any, ...]] = {
    "negligible": (1.0, 0.01, 0.002, 0.0005, 0.0001),
    "smoothing": (0.3, 0.1, 0.03),
    "splits": (1, 3),
}
_DECIDED: dict[str, tuple[Any, ...]] = {
    "width": (1, 32),
    "tolerance": (0.0, 0.001, 0.002, 0.004),
    "shared": (0.0, 0.05, 0.1, 0.25, 0.5),
    "chance": (1.0, 0.2, 0.05, 0.01),
    "size": (0.02, 0.05),
}


@dataclass(frozen=True)
class DevelopmentCell:
    """One set of samples of a development problem, and the library offered."""

    problem: str
    protocol: str
    noise: float
    seed: int
    terms: str  # "large" or "small"


@dataclass(frozen=True)
class Tried:
    """What a rule with one setting recovered."""

    setting: str
    value: float | str
    exact: dict[str, int]  # by group of cells
    e_xi: float  # geometric mean, every error at most one


def cells(seeds: tuple[int, ...] = DEVELOPMENT_SEEDS[:2]) -> Iterator[DevelopmentCell]:
    """Full grids under heavy noise, sparse samples with little or none, and the plane."""
    first, *_ = seeds
    wavy = wavy_names()
    for name in (each for each in development_names()[:-1] if each not in wavy):
        for noise in (0.5, 1.0):
            for seed in seeds if name in _CHAOTIC else (first,):
                yield DevelopmentCell(name, "S100", noise, seed, "large")
    for name in (*_CHAOTIC, "mkdv", "burgers"):
        for protocol in ("S20", "T20"):
            for noise in (0.0, 0.1, 0.2):
                yield DevelopmentCell(name, protocol, noise, first, "large")
            yield DevelopmentCell(name, protocol, 0.1, first, "small")
    for name in wavy:
        yield DevelopmentCell(name, "S100", 1.0, first, "large")
        yield DevelopmentCell(name, "T20", 0.5, first, "small")
    for protocol in ("S20", "T20"):
        yield DevelopmentCell("plane", protocol, 0.5, first, "small")


def group(cell: DevelopmentCell) -> str:
    """The line of the table a cell counts in."""
    if cell.problem == "plane":
        return "plane"
    if cell.protocol == "S100":
        return f"full grid, {cell.noise:.0%}"
    return f"a fifth of the samples, {cell.terms} library"


def write(folder: Path | None = None) -> dict[str, Any]:
    """Measures all candidates on all cells and records the outcomes."""
    every = list(cells())
    found: dict[tuple[str, Any], list[tuple[str, metrics.Score]]] = {}
    for cell in tqdm(every, desc="settle", unit="cell", disable=None):
        for key, score in measured(cell):
            found.setdefault(key, []).append((group(cell), score))
    outcomes = [_outcome(*key, scores) for key, scores in found.items()]
    counts = {name: sum(group(cell) == name for cell in every) for name in dict.fromkeys(map(group, every))}
    record = {"cells": counts, "outcomes": [asdict(one) for one in outcomes]}
    text = json.dumps(record, indent=1, sort_keys=True, allow_nan=False)
    containers.write_atomic((folder or records_folder()) / FILE, text.encode() + b"\n")
    return record


def read(folder: Path | None = None) -> dict[str, Any]:
    """The recorded outcomes."""
    return json.loads(((folder or records_folder()) / FILE).read_text())


def measured(cell: DevelopmentCell) -> Iterator[tuple[tuple[str, Any], metrics.Score]]:
    """Scores on one cell by setting and value; those of the rules themselves under "rule"."""
    entry, trajectory = development(cell.problem)
    observations = observe(trajectory, cell.protocol, seed=cell.seed, noise=cell.noise)
    library, truth = _library(cell, entry), entry.equation
    posterior = condition_grid(observations, progress=False)
    fit = Fit(observations, freeze(posterior, observations), posterior)
    chosen = select_halves(fit, library, TWO_FIELDS)
    yield ("rule", "two fields"), metrics.score(chosen, truth)
    yield ("rule", "one field"), metrics.score(chosen.variants["svws"], truth)
    ready = prepare_halves(fit, library, TWO_FIELDS).with_variances(fit.variance)
    known = moments_of_halves(fit, ready, TWO_FIELDS)
    usual = _decided(known, library, TWO_FIELDS, truth)
    for setting, values in {**_DECIDED, **_MEASURED}.items():
        for value in values:
            if value == getattr(TWO_FIELDS, setting):
                yield (setting, value), usual
                continue
            params = replace(TWO_FIELDS, **{setting: value})
            again = setting in _MEASURED
            seen = moments_of_halves(fit, ready, params) if again else known
            yield (setting, value), _decided(seen, library, params, truth)


def _decided(
    known: CrossMoments | None, library: Library, params: TwoFieldsParams, truth: Equation
) -> metrics.Score:
    """By the cross estimate alone: refits on the whole field do not depend on these settings."""
    if known is None:
        return metrics.score(Selection(library, np.zeros(len(library)), "none"), truth)
    return metrics.score(choose(known, params), truth)


def _library(cell: DevelopmentCell, entry: Problem) -> Library:
    if cell.terms == "large" or cell.problem == "plane":
        return candidate_library(entry)
    return Library.parse((*LIBRARIES["ks"], *_FURTHER))


def _outcome(setting: str, value: Any, scores: list[tuple[str, metrics.Score]]) -> Tried:
    exact: dict[str, int] = {}
    for name, score in scores:
        exact[name] = exact.get(name, 0) + int(score.exact)
    errors = [min(max(score.e_xi, 1e-12), 1.0) for _, score in scores]
    return Tried(setting, value, exact, float(np.exp(np.mean(np.log(errors)))))
