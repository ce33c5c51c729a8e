"""One run of a study: Task -> frozen field -> Selection -> Score -> RunRecord.

A task says everything that makes the run, so its record's key is known before it starts. Fields are looked
for among those that ship with the book, then in the user's cache, and fitted only when neither has them.
"""

import hashlib
import os
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import platformdirs

from fts import files, metrics, robust, svws
from fts.coordinate import CoordinateField
from fts.data import Observations, observe, simulate
from fts.frozen import Field, FrozenField, load
from fts.params import AdapterParams, ProjectedParams, SVWSParams, WeakParams
from fts.problems import problem
from fts.records import RunRecord
from fts.selection import Selection
from fts.shipped import field_path
from fts.terms import Equation

# How a recipe's coefficients are reported: the paper's ridge refit, the one held-out regions prefer, or the
# one they prefer of those whose rows are weighted by a kernel field's posterior variance.
PAPER_REFIT, BEST_REFIT, WEIGHTED_REFIT = "ridge", "preferred", "weighted"
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Task:
    """One run asked for."""

    study: str
    problem: str
    protocol: str
    seed: int
    noise: float
    method: str  # the row of the table
    recipe: str  # "paper", "projected", "kernel", or a variant of the adapter
    adapter: AdapterParams | ProjectedParams | None  # None for the kernel, which has no settings
    weak: WeakParams
    svws: SVWSParams
    refit: str
    selectors: bool = False  # also score every selector variant on the same systems

    @property
    def parameters(self) -> dict[str, Any]:
        """What the run depends on beside problem, protocol, seed and noise."""
        return {
            "recipe": self.recipe,
            "adapter": None if self.adapter is None else asdict(self.adapter),
            "weak": _geometry(self.weak),
            "svws": _jsonable(asdict(self.svws)),
            "refit": self.refit,
            "selectors": self.selectors,
        }

    @property
    def key(self) -> str:
        """The key of the record this task will make."""
        return _record(self).key


def run(task: Task) -> RunRecord:
    """The finished run, or its record with the error: a study never stops at one run."""
    began = time.perf_counter()
    try:
        return _perform(task, began)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error} ({Path(where.filename).name}, line {where.lineno})"
        return failure(task, text, _seconds(began))


def failure(task: Task, error: str, seconds: float = 0.0) -> RunRecord:
    """The record of a run that did not finish."""
    return _record(task, error=error, seconds=seconds)


def observations_of(task: Task) -> Observations:
    """The samples the task's field is fitted to."""
    return observe(simulate(task.problem), task.protocol, seed=task.seed, noise=task.noise)


def obtain(task: Task, observations: Observations) -> tuple[FrozenField | CoordinateField, str]:
    """The task's frozen field and its key: shipped, cached, or fitted now and cached."""
    key = field_key(task, observations)
    shipped = field_path(task.problem, task.protocol, task.seed, task.noise, task.recipe)
    if shipped.is_file():
        field = load(shipped)
        if _made_for(task, field):
            return field, key
    cached = Path(platformdirs.user_cache_dir("fts")) / "fields" / f"{key}.fts"
    if cached.is_file():
        try:
            return load(cached), key
        except files.FileError:
            cached.unlink(missing_ok=True)
    field = fit(task, observations)
    # Reading a kernel field back is hardly faster than computing it, and nothing names its version.
    if task.recipe != "kernel":
        field.save(cached)
    return field, key


def field_key(task: Task, observations: Observations) -> str:
    """Names a field by the samples, the recipe and its parameters."""
    digest = hashlib.sha256()
    for array in (observations.x, observations.t, observations.y):
        digest.update(np.ascontiguousarray(array).tobytes())
    adapter = None if task.adapter is None else asdict(task.adapter)
    return files.content_key([digest.hexdigest(), task.recipe, adapter, task.seed])


def fit(task: Task, observations: Observations) -> FrozenField | CoordinateField:
    """The task's field, fitted by its recipe or as a variant of the adapter, on one thread."""
    if task.recipe == "kernel":
        from fts import kernel

        return kernel.fit(observations, progress=False)
    if isinstance(task.adapter, ProjectedParams):
        from fts import projected

        return projected.fit(observations, task.adapter, progress=False)
    if task.recipe == "paper":
        from fts import adapter

        return adapter.fit(observations, task.adapter, progress=False)
    from fts import variants

    # An unknown name is refused there, with those that are known.
    return variants.fit_variant(observations, cast(Any, task.recipe), task.adapter, progress=False)


def posterior_variance(task: Task, observations: Observations) -> Field | None:
    """The variance of the task's kernel field, where its refit asks for it."""
    if task.refit != WEIGHTED_REFIT:
        return None
    from fts import kernel

    return kernel.PosteriorVariance(kernel.condition(observations, progress=False))


def score_selectors(systems: tuple, params: SVWSParams, truth: Equation) -> dict[str, dict[str, Any]]:
    """Scores of every selector variant on the same systems, by the row's name in the paper's table."""
    generation, fit_system, validation = svws.roles(systems, params)
    pool = svws.generate(generation, params)
    chosen = {"svws": svws.choose(pool, fit_system, validation, params)}
    for multiplier in params.multipliers:
        one = svws.single(generation[0], multiplier, params)
        chosen[one.method] = one
    variants: tuple[Callable[..., Selection], ...] = (svws.without_filter, svws.minimum_risk)
    for variant in variants:
        one = variant(pool, fit_system, validation, params)
        chosen[one.method] = one
    vote = svws.majority(pool, fit_system, params)
    chosen[vote.method] = vote
    return {
        name: metrics.score(one, truth).as_dict() | {"terms": one.coefficients}
        for name, one in chosen.items()
    }


def _perform(task: Task, began: float) -> RunRecord:
    trajectory = simulate(task.problem)
    observations = observe(trajectory, task.protocol, seed=task.seed, noise=task.noise)
    field, key = obtain(task, observations)
    truth = problem(task.problem)
    variance = posterior_variance(task, observations)
    started = time.process_time()
    systems = svws.build(field, truth.library, task.weak, task.svws)
    variances = None if variance is None else robust.row_variances(variance, task.weak, systems)
    found = svws.select_from(systems, task.svws, variances)
    # CPU time: runs beside each other do not change it.
    selecting = time.process_time() - started
    reported = found.with_refit(PAPER_REFIT) if task.refit == PAPER_REFIT else found
    score = metrics.score(reported, truth.equation).as_dict()
    extra = describe(found, truth.equation) | {
        "select_seconds": round(selecting, 4),
        "fit_seconds": field.made.get("seconds"),
        "field_parameters": field.made.get("parameters"),
    }
    if task.selectors:
        extra["selectors"] = score_selectors(systems, task.svws, truth.equation)
    return _record(
        task,
        terms=reported.coefficients,
        score=score | {"e_u": metrics.field_error(field, trajectory)},
        seconds=_seconds(began),
        device=str(field.made.get("device", "cpu")),
        field_key=key,
        extra=extra,
    )


def describe(found: Selection, truth: Equation) -> dict[str, Any]:
    """What a record keeps of a selection beside its score: recurrence, risks, spread and every refit."""
    trace = found.trace
    refits = {
        name: {
            "e_xi": metrics.score(found.with_refit(name), truth).e_xi,
            "risk": refit.risk,
            "terms": found.with_refit(name).coefficients,
        }
        for name, refit in found.refits.items()
    }
    return {
        "recurrence": found.recurrence,
        "preferred": found.preferred,
        "refits": refits,
        "intervals": {name: list(ends) for name, ends in found.intervals.items()},
        "reason": trace.reason if trace else "",
        "fallback": bool(trace and trace.fallback),
        "candidates": trace.table() if trace else [],
    }


def _made_for(task: Task, field: FrozenField | CoordinateField) -> bool:
    made = field.made
    same = (made.get("problem"), made.get("protocol"), made.get("seed")) == (
        task.problem,
        task.protocol,
        task.seed,
    )
    if task.adapter is None:
        return same
    return same and made.get("parameters") == _jsonable(asdict(task.adapter))


def _record(task: Task, **came_out: Any) -> RunRecord:
    return RunRecord(
        study=task.study,
        problem=task.problem,
        protocol=task.protocol,
        method=task.method,
        seed=task.seed,
        noise=task.noise,
        parameters=task.parameters,
        source="generated",
        **came_out,
    )


def _geometry(weak: WeakParams) -> dict[str, Any]:
    """The geometry as a record names it: the paper's rule goes without saying."""
    values = _jsonable(asdict(weak))
    return values if weak.rule == "gauss" else {k: v for k, v in values.items() if k != "rule"}


def _jsonable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _jsonable(entry) for key, entry in value.items()}
    return [_jsonable(entry) for entry in value] if isinstance(value, (tuple, list)) else value


def _seconds(began: float) -> float:
    return round(time.perf_counter() - began, 3)


def one_thread() -> None:
    """Keep linear algebra on one thread: parallelism is over runs."""
    for name in THREAD_VARIABLES:
        os.environ[name] = "1"
