"""Settings tuned on development seeds and problems: of the baselines, and of the split-sample selection.

A baseline's candidates are compared by the rule of C.2: most exact recoveries over S20 and T20 together, then
the higher median F1, the lower median coefficient error, the smaller threshold. The settings of two fields
are varied one at a time: exact recoveries, and the geometric mean of E_xi, each counted as at most one;
the paper's rule on one field is measured on the same cells, by which `fts.discover` decides between the two.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from fts import containers
from fts.baselines.dl_pde import DL_PDE, TOLERANCES
from fts.baselines.regressions import PATCHES, PDE_FIND, THRESHOLDS, WSINDY
from fts.baselines.spectral import reconstruct
from fts.baselines.stridge import select_strong, select_weak
from fts.equations.equation import Equation
from fts.equations.terms import Library
from fts.lab.studies.records import grouped, records_folder
from fts.observations import Observations
from fts.params.paper import DEVELOPMENT_SEEDS, LIBRARIES
from fts.problems import metrics
from fts.problems.development import candidate_library, development, development_names, wavy_names
from fts.problems.problems import Problem, problem
from fts.problems.trajectories import observe, simulate
from fts.selection.instrumental import TWO_FIELDS, TwoFieldsParams, choose
from fts.selection.moments import CrossMoments
from fts.selection.selection import Selection

BASELINES_FILE, TWO_FIELDS_FILE = "candidates.json", "settled.json"
PROTOCOLS = ("S20", "T20")
# Terms beside the paper's eight that development problems with a small library need.
_FURTHER = ("u_x", "D_x(u^3)", "u_xxxxx")
_CHAOTIC = ("benney-lin", "drifting ks")
# Settings of two fields that are varied, and which of them change the moments, not the search on them.
_OF_MOMENTS = ("negligible", "smoothing", "splits")
_VARIED: dict[str, tuple[Any, ...]] = {
    "width": (1, 32),
    "tolerance": (0.0, 0.001, 0.002, 0.004),
    "shared": (0.0, 0.05, 0.1, 0.25, 0.5),
    "chance": (1.0, 0.2, 0.05, 0.01),
    "size": (0.02, 0.05),
    "negligible": (1.0, 0.01, 0.002, 0.0005, 0.0001),
    "smoothing": (0.3, 0.1, 0.03),
    "splits": (1, 3),
}


@dataclass(frozen=True)
class CandidateSettings:
    """One setting a method may get: what distinguishes it, and the method's settings with it."""

    threshold: float
    patches: str  # of a weak system; empty where there is none
    params: Any


@dataclass(frozen=True)
class Tuned:
    """A method to tune; its first half, a field, depends on no candidate: one per run."""

    method: str
    candidates: Mapping[str, tuple[CandidateSettings, ...]]  # by problem
    fit: Callable[[Observations, Any, np.random.Generator], Any]  # observations, settings, rng -> field
    select: Callable[[Any, Library, Any, np.random.Generator], Selection]  # field, library, settings, rng


@dataclass(frozen=True)
class Outcome:
    """How a candidate did over all development runs of one problem."""

    threshold: float
    patches: str
    exact: int
    f1: float  # median
    e_xi: float  # median

    @property
    def order(self) -> tuple[int, float, float, float]:
        """Lower is better; rounded, so that equal supports tie on any machine."""
        return -self.exact, -round(self.f1, 9), round(self.e_xi, 9), self.threshold


@dataclass(frozen=True)
class DevelopmentCell:
    """One set of samples of a development problem, and the library offered."""

    problem: str
    protocol: str
    noise: float
    seed: int
    terms: str  # "large" or "small"

    @property
    def group(self) -> str:
        """The line of the table it counts in."""
        if self.problem == "plane":
            return "plane"
        if self.protocol == "S100":
            return f"full grid, {self.noise:.0%}"
        return f"a fifth of the samples, {self.terms} library"


def tuned_baselines() -> tuple[Tuned, ...]:
    """The methods whose settings are tuned here."""

    def candidates(
        settings: Mapping[str, Any], thresholds: tuple[float, ...], patches: Mapping[str, Any] | None = None
    ) -> dict[str, tuple[CandidateSettings, ...]]:
        offered = {}
        for name, params in settings.items():
            pairs = product((patches[name] if patches else {"": None}).items(), thresholds)
            offered[name] = tuple(CandidateSettings(t, label, _with(params, t, g)) for (label, g), t in pairs)
        return offered

    def fit(observations: Observations, params: Any, rng: np.random.Generator) -> Any:
        return reconstruct(observations, params.spectral)

    def strong(field: Any, library: Library, params: Any, rng: np.random.Generator) -> Selection:
        return select_strong(field, library, params.regression)

    def weak(field: Any, library: Library, params: Any, rng: np.random.Generator) -> Selection:
        return select_weak(field, library, params.regression, rng)

    return (
        Tuned("PDE-FIND", candidates(PDE_FIND, THRESHOLDS), fit, strong),
        Tuned("WSINDy", candidates(WSINDY, THRESHOLDS, PATCHES), fit, weak),
        Tuned("DL-PDE", candidates(DL_PDE, TOLERANCES), _train, _select_trained),
    )


def tune(
    tuned: Tuned, name: str, seeds: tuple[int, ...] = DEVELOPMENT_SEEDS
) -> tuple[CandidateSettings, list[Outcome]]:
    """The candidate the rule takes for a problem, and the outcomes of all of them."""
    candidates = tuned.candidates[name]
    by_candidate = zip(*_scores(tuned, name, seeds), strict=True)
    outcomes = []
    for candidate, scores in zip(candidates, by_candidate, strict=True):
        f1, e_xi = np.median([(score.f1, score.e_xi) for score in scores], axis=0).tolist()
        exact = sum(score.exact for score in scores)
        outcomes.append(Outcome(candidate.threshold, candidate.patches, exact, f1, e_xi))
    best = min(range(len(outcomes)), key=lambda i: outcomes[i].order)
    return candidates[best], outcomes


def write_baselines(
    folder: Path | None = None, *, methods: Collection[str] = (), problems: Collection[str] = ()
) -> dict[str, Any]:
    """Tunes these methods (all of them) on these problems and records each decision as it is made."""
    path = (folder or records_folder()) / BASELINES_FILE
    record = json.loads(path.read_text()) if path.is_file() else {}
    chosen = (tuned for tuned in tuned_baselines() if not methods or tuned.method in methods)
    tasks = [(each, name) for each in chosen for name in each.candidates if not problems or name in problems]
    for tuned, name in tqdm(tasks, desc="tuning", unit="problem", disable=None, delay=2):
        winner, outcomes = tune(tuned, name)
        record.setdefault(tuned.method, {})[name] = {
            "seeds": list(DEVELOPMENT_SEEDS),
            "protocols": list(PROTOCOLS),
            "candidates": [asdict(outcome) for outcome in outcomes],
            "winner": {"threshold": winner.threshold, "patches": winner.patches},
        }
        containers.write_atomic(path, _json(record))
    return record


def read_baselines(folder: Path | None = None) -> dict[str, Any]:
    """The recorded decisions, by method and problem."""
    return json.loads(((folder or records_folder()) / BASELINES_FILE).read_text())


def cells(seeds: tuple[int, ...] = DEVELOPMENT_SEEDS[:2]) -> Iterator[DevelopmentCell]:
    """Full grids under heavy noise, sparse samples with little or none, and the plane."""
    first, *_ = seeds
    wavy = wavy_names()
    for name in (each for each in development_names()[:-1] if each not in wavy):
        for noise, seed in product((0.5, 1.0), seeds if name in _CHAOTIC else (first,)):
            yield DevelopmentCell(name, "S100", noise, seed, "large")
    for name, protocol in product((*_CHAOTIC, "mkdv", "burgers"), PROTOCOLS):
        for noise in (0.0, 0.1, 0.2):
            yield DevelopmentCell(name, protocol, noise, first, "large")
        yield DevelopmentCell(name, protocol, 0.1, first, "small")
    for name in wavy:
        yield DevelopmentCell(name, "S100", 1.0, first, "large")
        yield DevelopmentCell(name, "T20", 0.5, first, "small")
    for protocol in PROTOCOLS:
        yield DevelopmentCell("plane", protocol, 0.5, first, "small")


def write_two_fields(folder: Path | None = None) -> None:
    """Measures all settings on all cells and records the outcomes."""
    every = list(cells())
    bar = tqdm(every, desc="tuning", unit="cell", disable=None)
    pairs = ((cell.group, *scored) for cell in bar for scored in measure(cell))
    measured = grouped((setting, (group, score)) for group, setting, score in pairs)
    outcomes = []
    for (setting, value), scores in measured.items():
        exact = dict.fromkeys((name for name, _ in scores), 0)
        for name, score in scores:
            exact[name] += int(score.exact)
        errors = [min(max(score.e_xi, 1e-12), 1.0) for _, score in scores]
        e_xi = float(np.exp(np.mean(np.log(errors))))  # geometric mean, every error at most one
        outcomes.append({"setting": setting, "value": value, "exact": exact, "e_xi": e_xi})
    record = {"cells": dict(Counter(cell.group for cell in every)), "outcomes": outcomes}
    containers.write_atomic((folder or records_folder()) / TWO_FIELDS_FILE, _json(record))


def read_two_fields(folder: Path | None = None) -> dict[str, Any]:
    """The recorded outcomes."""
    return json.loads(((folder or records_folder()) / TWO_FIELDS_FILE).read_text())


def measure(cell: DevelopmentCell) -> Iterator[tuple[tuple[str, Any], metrics.Score]]:
    """Scores on one cell by setting and value; those of the rules themselves under "rule"."""
    from fts.fitting import Fit
    from fts.kernel.closed_form import freeze
    from fts.kernel.separable import condition_grid
    from fts.svws.split_sample import moments_of_halves, prepare_halves, select_halves

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
    usual = _score(known, library, TWO_FIELDS, truth)
    for setting, value in ((setting, v) for setting, values in _VARIED.items() for v in values):
        if value == getattr(TWO_FIELDS, setting):
            yield (setting, value), usual
            continue
        params = replace(TWO_FIELDS, **{setting: value})
        moments = moments_of_halves(fit, ready, params) if setting in _OF_MOMENTS else known
        yield (setting, value), _score(moments, library, params, truth)


def _score(
    moments: CrossMoments | None, library: Library, params: TwoFieldsParams, truth: Equation
) -> metrics.Score:
    """By the split-sample estimate alone: refits on the whole field do not depend on these settings."""
    if moments is None:
        return metrics.score(Selection(library, np.zeros(len(library)), "none"), truth)
    return metrics.score(choose(moments, params), truth)


def _library(cell: DevelopmentCell, entry: Problem) -> Library:
    if cell.terms == "large" or cell.problem == "plane":
        return candidate_library(entry)
    return Library.parse((*LIBRARIES["ks"], *_FURTHER))


def _scores(tuned: Tuned, name: str, seeds: tuple[int, ...]) -> Iterator[list[metrics.Score]]:
    """Scores of all candidates, run by run; all read the same field and draw the same numbers."""
    entry, trajectory = problem(name), simulate(name)
    candidates = tuned.candidates[name]
    for protocol, seed in product(PROTOCOLS, seeds):
        # As in a run of a study: one generator, drawn from by the fit first.
        rng = np.random.default_rng(seed)
        field = tuned.fit(observe(trajectory, protocol, seed=seed), candidates[0].params, rng)
        rest = ((entry.library, each.params, np.random.default_rng(seed)) for each in candidates)
        yield [metrics.score(tuned.select(field, *each), entry.equation) for each in rest]


def _with(params: Any, threshold: float, geometry: Any) -> Any:
    """The settings with another threshold, and with other patches where they are given."""
    if hasattr(params, "regression"):
        return replace(params, regression=_with(params.regression, threshold, geometry))
    weak = {} if geometry is None else {"weak": geometry}
    return replace(params, stridge=replace(params.stridge, threshold=threshold), **weak)


def _train(observations: Observations, params: Any, rng: np.random.Generator) -> Any:
    # torch takes seconds to import, and the other methods need none of it.
    from fts.baselines.training.dl_pde import fit_surrogate

    surrogate, _ = fit_surrogate(observations, params.surrogate, rng)
    return surrogate


def _select_trained(field: Any, library: Library, params: Any, rng: np.random.Generator) -> Selection:
    from fts.baselines.training.dl_pde import select_on

    return select_on(field, library, params)


def _json(record: dict[str, Any]) -> bytes:
    return json.dumps(record, indent=1, sort_keys=True, allow_nan=False).encode() + b"\n"
