"""Which of its candidate settings a baseline gets, problem by problem, on the development seeds.

The rule of C.2: most exact recoveries over S20 and T20 together, then the higher median F1, then the lower
median coefficient error, then the smaller threshold. What came out for every candidate is recorded, so a
choice can be looked up and made again.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from fts import containers
from fts.baselines.dl_pde import DL_PDE, TOLERANCES
from fts.baselines.regressions import PATCHES, PDE_FIND, THRESHOLDS, WSINDY
from fts.baselines.spectral import reconstruct
from fts.baselines.stridge import select_strong, select_weak
from fts.equations.terms import Library
from fts.lab.studies.records import records_folder
from fts.observations import Observations
from fts.params.paper import DEVELOPMENT_SEEDS
from fts.problems import metrics
from fts.problems.problems import problem
from fts.problems.trajectories import observe, simulate
from fts.selection.selection import Selection

FILE = "candidates.json"
PROTOCOLS = ("S20", "T20")


@dataclass(frozen=True)
class Candidate:
    """One setting a method may get: what distinguishes it, and the method's settings with it."""

    threshold: float
    patches: str  # of a weak system; empty where there is none
    params: Any


@dataclass(frozen=True)
class Tuned:
    """A method to choose settings for; its first half, a field, depends on no candidate: one per run."""

    method: str
    candidates: Mapping[str, tuple[Candidate, ...]]  # by problem
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


def choices() -> tuple[Tuned, ...]:
    """The methods whose settings are chosen here."""
    strong = {
        name: tuple(Candidate(value, "", _with_threshold(params, value)) for value in THRESHOLDS)
        for name, params in PDE_FIND.items()
    }
    weak = {
        name: tuple(
            Candidate(value, patches, _with_threshold(_with_patches(params, geometry), value))
            for patches, geometry in PATCHES[name].items()
            for value in THRESHOLDS
        )
        for name, params in WSINDY.items()
    }
    trained = {
        name: tuple(
            Candidate(value, "", replace(params, stridge=replace(params.stridge, threshold=value)))
            for value in TOLERANCES
        )
        for name, params in DL_PDE.items()
    }
    return (
        Tuned("PDE-FIND", strong, _reconstruct, _select_strong),
        Tuned("WSINDy", weak, _reconstruct, _select_weak),
        Tuned("DL-PDE", trained, _train, _select_trained),
    )


def choose(
    choice: Tuned, name: str, seeds: tuple[int, ...] = DEVELOPMENT_SEEDS
) -> tuple[Candidate, list[Outcome]]:
    """The candidate the rule takes for a problem, and the outcomes of all of them."""
    candidates = choice.candidates[name]
    scores: list[list[metrics.Score]] = [[] for _ in candidates]
    for run in _runs(choice, name, seeds):
        for each, score in zip(scores, run, strict=True):
            each.append(score)
    outcomes = [_outcome(one, each) for one, each in zip(candidates, scores, strict=True)]
    best = min(range(len(outcomes)), key=lambda i: outcomes[i].order)
    return candidates[best], outcomes


def write(
    folder: Path | None = None,
    seeds: tuple[int, ...] = DEVELOPMENT_SEEDS,
    *,
    methods: Collection[str] = (),
    problems: Collection[str] = (),
) -> dict[str, Any]:
    """Makes the choices of these methods (all of them) and records each in candidates.json as it is made."""
    path = (folder or records_folder()) / FILE
    record = json.loads(path.read_text()) if path.is_file() else {}
    tasks = [
        (choice, name)
        for choice in choices()
        for name in choice.candidates
        if (not methods or choice.method in methods) and (not problems or name in problems)
    ]
    for choice, name in tqdm(tasks, desc="choose", unit="choice", disable=None, delay=2):
        winner, outcomes = choose(choice, name, seeds)
        record.setdefault(choice.method, {})[name] = {
            "seeds": list(seeds),
            "protocols": list(PROTOCOLS),
            "candidates": [asdict(outcome) for outcome in outcomes],
            "winner": {"threshold": winner.threshold, "patches": winner.patches},
        }
        text = json.dumps(record, indent=1, sort_keys=True, allow_nan=False)
        containers.write_atomic(path, text.encode() + b"\n")
    return record


def read(folder: Path | None = None) -> dict[str, Any]:
    """The recorded choices, by method and problem."""
    return json.loads(((folder or records_folder()) / FILE).read_text())


def _runs(choice: Tuned, name: str, seeds: tuple[int, ...]) -> Iterator[list[metrics.Score]]:
    """Scores of all candidates, run by run; all read the same field and draw the same numbers."""
    entry, trajectory = problem(name), simulate(name)
    candidates = choice.candidates[name]
    for protocol in PROTOCOLS:
        for seed in seeds:
            # As in a run of a study: one generator, drawn from by the fit first.
            rng = np.random.default_rng(seed)
            field = choice.fit(observe(trajectory, protocol, seed=seed), candidates[0].params, rng)
            yield [
                metrics.score(
                    choice.select(field, entry.library, one.params, np.random.default_rng(seed)),
                    entry.equation,
                )
                for one in candidates
            ]


def _outcome(candidate: Candidate, scores: list[metrics.Score]) -> Outcome:
    return Outcome(
        candidate.threshold,
        candidate.patches,
        exact=sum(score.exact for score in scores),
        f1=float(np.median([score.f1 for score in scores])),
        e_xi=float(np.median([score.e_xi for score in scores])),
    )


def _with_threshold(params: Any, threshold: float) -> Any:
    regression = params.regression
    stridge = replace(regression.stridge, threshold=threshold)
    return replace(params, regression=replace(regression, stridge=stridge))


def _with_patches(params: Any, geometry: Any) -> Any:
    return replace(params, regression=replace(params.regression, weak=geometry))


def _reconstruct(observations: Observations, params: Any, rng: np.random.Generator) -> Any:
    return reconstruct(observations, params.spectral)


def _select_strong(field: Any, library: Library, params: Any, rng: np.random.Generator) -> Selection:
    return select_strong(field, library, params.regression)


def _select_weak(field: Any, library: Library, params: Any, rng: np.random.Generator) -> Selection:
    return select_weak(field, library, params.regression, rng)


def _train(observations: Observations, params: Any, rng: np.random.Generator) -> Any:
    # torch takes seconds to import, and the other choices need none of it.
    from fts.baselines.training.dl_pde import fit_surrogate

    surrogate, _ = fit_surrogate(observations, params.surrogate, rng)
    return surrogate


def _select_trained(field: Any, library: Library, params: Any, rng: np.random.Generator) -> Selection:
    from fts.baselines.training.dl_pde import select_on

    return select_on(field, library, params)
