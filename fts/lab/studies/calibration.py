"""Are claims of certainty calibrated? Verdicts on drawn problems, deviations of the field on drawn layouts.

Verdicts: how often is "identified" wrong, on problems nobody tuned for? Fields: how often does the error stay
within k posterior deviations, on held-out draws? Settings are decided on seeds of the development ranges;
those of the others are run once per configuration.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import erf
from scipy.stats import binomtest

from fts.lab.studies import records, runs
from fts.lab.studies.records import RunRecord, grouped
from fts.lab.studies.runs import Task, equation_of, study
from fts.params.paper import DEFAULT_LIBRARIES
from fts.params.types import FieldParams
from fts.problems import metrics
from fts.problems.development import draw
from fts.problems.problems import problem
from fts.problems.trajectories import simulate

# Seeds of drawn problems: those that decide settings, and those that judge.
VERDICT_DEVELOPMENT = range(1_000, 10_000)
VERDICT_BENCHMARK = range(200_000, 200_600)
# Coefficients this near to the truth, in E_xi, make a right support a right answer.
CLOSE = 0.05
# Seeds of layouts.
FIELD_DEVELOPMENT = range(2_000, 2_050)
FIELD_BENCHMARK = range(200_000, 200_050)
# Deviations at which coverage is counted.
LEVELS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
_NOISE = 0.1
_PROBLEMS = ("kdv", "ks", "ad")
_PROTOCOLS = ("S20", "S20-30", "D20", "R5", "N2000")
_MOST = 64  # points per axis at which a field is compared


@dataclass(frozen=True)
class VerdictCalibration:
    """How runs were judged and how they were: the two numbers of the benchmark, and coverage."""

    runs: int
    identified: int
    wrong: int  # called identified, and another support than the truth's
    close: int  # right support, coefficients within CLOSE
    called: int  # of these, called identified
    coefficients: int  # of identified runs with the right support
    covered: int  # of these, within two standard errors of the truth

    @property
    def wrong_interval(self) -> tuple[float, float]:
        """95 % interval of the chance that an identified equation is wrong (Clopper and Pearson)."""
        return interval(self.wrong, self.identified) if self.identified else (0.0, 1.0)


def interval(count: int, runs: int) -> tuple[float, float]:
    """95 % interval of a chance that came true in `count` of so many runs (Clopper and Pearson)."""
    ends = binomtest(count, runs).proportion_ci(0.95, "exact")
    return float(ends.low), float(ends.high)


def summarize(made: Iterable[RunRecord]) -> VerdictCalibration:
    """The counts over the runs that finished."""
    done = [run for run in made if not run.error]
    identified = [run for run in done if run.extra["status"] == "identified"]
    close = [run for run in done if run.score["exact"] and run.score["e_xi"] <= CLOSE]
    right = [run for run in identified if run.score["exact"]]
    errors = [(run, *item) for run in right for item in run.extra["errors"].items()]
    inside = [abs(run.terms[name] - run.extra["truth"][name]) <= 2 * error for run, name, error in errors]
    wrong, called = len(identified) - len(right), sum(r.extra["status"] == "identified" for r in close)
    counts = (len(done), len(identified), wrong, len(close), called)
    return VerdictCalibration(*counts, coefficients=len(inside), covered=sum(inside))


def summarize_by(made: Iterable[RunRecord], group: Callable) -> dict[Any, VerdictCalibration]:
    """The same counts for every value of `group`."""
    groups = grouped((group(run), run) for run in made if not run.error)
    return {name: summarize(groups[name]) for name in sorted(groups)}


def run_verdict(task: Task, folder: Path | None = None) -> RunRecord:
    """The record of one problem: the truth, the verdict, and how sure it is."""
    from fts.discovery.discover import discover

    def perform() -> dict[str, Any]:
        drawn = draw(task.seed, DEFAULT_LIBRARIES[1])
        began = time.process_time()
        result = discover(drawn.observations, drawn.library, progress=False, params=task.params)
        seconds = round(time.process_time() - began, 3)
        truth = drawn.truth
        samples, verdict = drawn.observations, result.verdict
        extra = {"family": drawn.family, "kind": str(drawn.kind), "layout": str(drawn.layout)}
        extra |= {"samples": len(samples), "noise": samples.noise, "periodic": samples.domain.periodic[0]}
        extra |= {
            "truth": {str(t): float(c) for t, c in zip(truth.terms, truth.coefficients, strict=True)},
            "errors": result.standard_errors,
            "status": verdict.status,
            "margin": verdict.as_dict()["margin"],
            "reasons": list(verdict.reasons),
        }
        terms = {} if result.selection is None else result.selection.coefficients
        score = metrics.score(result.equation, truth).as_dict()
        return {"terms": terms, "score": score, "seconds": seconds, "extra": extra}

    return runs.attempt(task, perform)


def check_verdicts(folder: Path) -> Iterator[str]:
    """Differences between a record's score and the score of its terms against the truth it records."""
    for run in records.read_study("honesty", folder):
        if run.error:
            continue
        score = metrics.score(equation_of(run.terms), equation_of(run.extra["truth"]))
        if score.exact != run.score["exact"] or not np.isclose(score.e_xi, run.score["e_xi"]):
            yield f"honesty: seed {run.seed} is recorded as {run.score}, its terms give {score}"


@study(
    "honesty",
    run=run_verdict,
    seeds={"test": VERDICT_BENCHMARK, "development": VERDICT_DEVELOPMENT[:500]},
    score=None,
    check=check_verdicts,
)
def verdict_calibration(seeds: Iterable[int] = VERDICT_BENCHMARK) -> Iterator[Task]:
    """Verdicts with default settings: a seed draws problem, samples and noise."""
    from fts.discovery.evidence import VERDICT

    for seed in seeds:
        yield Task("honesty", "drawn", "drawn", seed, 0.0, "discover", "discover", VERDICT)


def normal_coverage() -> Float[np.ndarray, " levels"]:
    """How often a normal variable stays within each level."""
    return erf(np.array(LEVELS) / np.sqrt(2))


def coverage(made: Iterable[RunRecord]) -> Float[np.ndarray, "layouts levels"]:
    """Shares covered, one row per layout that finished."""
    rows = [run.score["covered"] for run in made if not run.error]
    if not rows:
        raise ValueError("no layouts recorded: make some with python -m fts.lab.studies calibration")
    return np.array(rows)


def run_field(task: Task, folder: Path | None = None) -> RunRecord:
    """The record of one layout: the share of points where the error is within each number of deviations."""
    from fts.fitting import fit_with_variance

    def perform() -> dict[str, Any]:
        trajectory = simulate(task.problem)
        field, variance = fit_with_variance(task.observations(), task.params.recipe, progress=False)
        if variance is None:
            raise ValueError(f"recipe {task.params.recipe!r} has no posterior variance: take the kernel")
        full = (*trajectory.axes, trajectory.t)
        kept = [np.unique(np.linspace(0, axis.size - 1, min(_MOST, axis.size)).astype(int)) for axis in full]
        axes, truth = [axis[at] for axis, at in zip(full, kept, strict=True)], trajectory.u[np.ix_(*kept)]
        error, deviation = np.abs(field.on_grid(*axes) - truth), np.sqrt(variance.on_grid(*axes))
        sizes = {"e_u": error, "claimed": deviation}
        score = {name: float(np.linalg.norm(v) / np.linalg.norm(truth)) for name, v in sizes.items()}
        covered = {"covered": [float(np.mean(error <= level * deviation)) for level in LEVELS]}
        return {"score": covered | score, "seconds": field.made.seconds}

    return runs.attempt(task, perform)


def check_coverage(folder: Path) -> Iterator[str]:
    """Records whose shares cannot be shares: outside 0 to 1, or falling as more deviations are allowed."""
    for run in records.read_study("calibration", folder):
        if run.error:
            continue
        shares = np.array(run.score["covered"])
        known = run.problem == problem(run.problem).name and len(shares) == len(LEVELS)
        if not known or shares.min() < 0 or shares.max() > 1 or (np.diff(shares) < 0).any():
            yield f"calibration: seed {run.seed} records shares {run.score['covered']}"


def coverage_tables(folder: Path) -> dict[str, dict[str, list[float]]]:
    """Mean share covered at each level over all layouts, and the layouts' quartiles, for review."""
    made = records.read_study("calibration", folder)
    if all(run.error for run in made):
        return {}
    shares = coverage(made)
    rows = {"mean": shares.mean(axis=0), "median": np.median(shares, axis=0)}
    rows |= {f"{q:.0%}": np.quantile(shares, q, axis=0) for q in (0.25, 0.75)}
    return {"calibration": {name: values.tolist() for name, values in rows.items()}}


@study(
    "calibration",
    run=run_field,
    seeds={"test": FIELD_BENCHMARK, "development": FIELD_DEVELOPMENT},
    score=None,
    check=check_coverage,
    tables=coverage_tables,
)
def field_calibration(seeds: Iterable[int] = FIELD_BENCHMARK) -> Iterator[Task]:
    """Posterior deviations: one layout per seed; problems and protocols take turns, so each meets each."""
    for seed, name, protocol in zip(seeds, cycle(_PROBLEMS), cycle(_PROTOCOLS), strict=False):
        params = FieldParams("kernel")
        yield Task("calibration", name, protocol, seed, _NOISE, "kernel", "calibration", params)
