"""Systems, waves, known inputs, varying media and several runs: how often is every equation right?

A record holds the terms of all equations, each after its left-hand side: {"u_t: u_xx": 0.2, "v_t: u": 0.3}.
A coefficient that varies is recorded as one, and its curve beside it.
"""

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from fts.equations.equation import Equation
from fts.equations.expressions import Factor, unknown_axis
from fts.equations.terms import expand
from fts.fields.varying import Curve
from fts.lab.studies import runs
from fts.lab.studies.records import RunRecord
from fts.lab.studies.runs import DISCOVER, Task, study
from fts.problems import metrics
from fts.problems.problems import problem
from fts.problems.pseudospectral import SystemTrajectory
from fts.problems.systems import (
    DEVELOPMENT_SEEDS,
    TEST_SEEDS,
    observe_system,
    simulate_runs,
    simulate_system,
    system_names,
    system_problem,
)
from fts.problems.trajectories import Trajectory, observe, simulate
from fts.selection.selection import Selection

# What selects is imported by the run: tables and figures, which only read records, need none of it.

EXPERIMENTS, PEER = "experiments", "PySINDy weak"
# One field, first order in time: problems of other chapters that lists of benchmarks have beside systems.
SCALAR = ("burgers", "kdv", "ad", "ks")
_NOISE, _FULL_NOISE, _RUN_NOISE = (0.0, 0.05, 0.1), (0.0, 0.05), 0.02
# On the development seeds one short run of these fails and six do not.
SHORT_RUNS = ("schroedinger", "coupled_burgers", "keller_segel")
Monomial = tuple[tuple[Factor, float], ...]
Products = dict[Monomial, float]
_RUNS, _SENSORS, GRIDS_OF_RUNS = {"1 x 15": 1, "6 x 15": 6}, 15, "6 x S100"


def run(task: Task, folder: Path | None = None) -> RunRecord:
    """The record of all equations of a problem; nothing is kept in `folder`."""
    perform = {DISCOVER: _discovered, EXPERIMENTS: _from_short_runs, PEER: _by_peer}[task.method]
    return runs.attempt(task, lambda: perform(task))


def score_equations(terms: Mapping[str, float], name: str) -> dict[str, Any]:
    """What recorded terms score: exact where every equation has the true terms and no other.

    All are compared with derivatives multiplied out, so that D_x(u*v) is u*v_x + v*u_x: other libraries have
    these two. E_xi is the relative error of all constant coefficients together, `error` the worst one's.
    """
    truths = {target: _pointwise(target, text, _states(name)) for target, text in _truths(name).items()}
    answers: dict[str, Products] = {target: {} for target in truths}
    for label, value in terms.items():
        target, _, text = label.partition(": ")
        for factors, c in _pointwise(target, text, _states(name)).items():
            answers[target][factors] = answers[target].get(factors, 0.0) + value * c
    chosen, true = _labelled(answers), _labelled(truths)
    right = [answers[target].keys() == truth.keys() for target, truth in truths.items()]
    constant = [key for key in true if not any(unknown_axis(factor.name) for factor, _ in key[1])]
    beyond = [key for key in chosen if key not in true]
    off = {key: chosen.get(key, 0.0) - true.get(key, 0.0) for key in (*constant, *beyond)}
    size = float(np.linalg.norm([true[key] for key in constant])) or 1.0
    return {
        "exact": all(right),
        "right": sum(right),
        "equations": len(right),
        "f1": 2 * len(chosen.keys() & true) / (len(chosen) + len(true)),
        "e_xi": float(np.linalg.norm(list(off.values()))) / size,
        "error": max((abs(off[key] / true[key]) for key in constant), default=0.0),
    }


def _labelled(equations: Mapping[str, Products]) -> dict[tuple[str, Monomial], float]:
    return {(target, factors): c for target, terms in equations.items() for factors, c in terms.items()}


@cache
def _truths(name: str) -> dict[str, str]:
    """The text behind every left-hand side; what is a known function of x there is unknown here."""
    if name in SCALAR:
        texts = [problem(name).truth]
    else:
        texts = [_with_unknown(text, name) for text in system_problem(name).truth.values()]
    return {target.strip(): right for target, _, right in (text.partition("=") for text in texts)}


@cache
def _states(name: str) -> tuple[str, ...]:
    if name in SCALAR:
        return ("u",)
    entry = system_problem(name)
    return (*entry.components, *entry.inputs)


@cache
def _pointwise(target: str, text: str, states: tuple[str, ...]) -> Products:
    """The coefficients of a right-hand side by its products of states and derivatives."""
    equation, products = Equation.parse(f"{target} = {text}", states), {}
    for term, value in equation.physical().items():
        for factors, c in expand(term.orders, term.q).monomials:
            products[factors] = products.get(factors, 0.0) + value * term.scale * c
    return {factors: value for factors, value in products.items() if value != 0}


def _with_unknown(text: str, name: str) -> str:
    """The text with k(x), which is to be found, for each known function k of the problem."""
    for function in system_problem(name).functions:
        text = re.sub(rf"\b{function}\b(?!\()", f"{function}(x)", text)
    return text


def _discovered(task: Task) -> dict[str, Any]:
    """All equations from a share of the sensors."""
    if task.problem in SCALAR:
        samples = observe(simulate(task.problem), task.protocol, seed=task.seed, noise=task.noise)
        return _answer(task, samples, {"u": simulate(task.problem)})
    trajectory = _solution(task.problem, task.seed)
    samples = observe_system(trajectory, _share(task), task.noise, seed=task.seed)
    return _answer(task, samples, _by_field(trajectory))


def _share(task: Task) -> float:
    return float(task.protocol.removeprefix("S")) / 100


def _from_short_runs(task: Task) -> dict[str, Any]:
    """All equations from short runs of few sensors each."""
    trajectories = simulate_runs(task.problem, _RUNS[task.protocol], seed=task.seed)
    share = _SENSORS / trajectories[0].axes[0].size
    samples = [
        observe_system(each, share, task.noise, seed=100 * task.seed + number)
        for number, each in enumerate(trajectories)
    ]
    return _answer(task, samples, _by_field(trajectories[0]))


@lru_cache(maxsize=1)
def _solution(name: str, seed: int) -> SystemTrajectory:
    return simulate_system(name, seed)


def _by_field(trajectory: SystemTrajectory) -> dict[str, Trajectory]:
    return {
        name: Trajectory(
            trajectory.axes, trajectory.t, values, trajectory.domain, trajectory.problem, "generated"
        )
        for name, values in {**trajectory.values, **trajectory.inputs}.items()
    }


def _answer(task: Task, samples: Any, fields: Mapping[str, Trajectory]) -> dict[str, Any]:
    """What `fts.discover` says of the samples with the problem's library, and its score."""
    from fts.discovery.discover import Discovery
    from fts.discovery.systems import discover

    began = time.perf_counter()
    if task.problem in SCALAR:
        result = discover(samples, problem(task.problem).library.names, progress=False)
    else:
        entry = system_problem(task.problem)
        if len(_states(task.problem)) == 1 and isinstance(samples, dict):
            (samples,) = samples.values()  # what someone with one field gives
        library = [_with_unknown(text, task.problem) for text in entry.library]
        target = entry.target if entry.order == 2 else None
        result = discover(samples, library, inputs=tuple(entry.inputs), target=target, progress=False)
    seconds = round(time.perf_counter() - began, 3)
    single = isinstance(result, Discovery)
    components = {"u": result} if single else dict(result.components)
    left_out = {} if single else {name: list(each) for name, each in result.left_out.items()}
    extra = _verdicts(components) | ({"left_out": left_out} if any(left_out.values()) else {})
    selections = {name: _selection(name, each) for name, each in components.items()}
    terms = {
        f"{each.target}: {term}": c for each in selections.values() for term, c in each.coefficients.items()
    }
    score = score_equations(terms, task.problem)
    score["e_u"] = max(
        metrics.field_error(each.field, fields[name]) for name, each in components.items() if each.field
    )
    curves = {term: curve for each in selections.values() for term, curve in each.curves.items()}
    if curves and score["exact"]:
        score |= _curve_scores(task.problem, curves)
    extra["curves"] = {term: curve.as_dict() for term, curve in curves.items()}
    return {"terms": terms, "score": score, "extra": extra, "seconds": seconds}


def _verdicts(components: Mapping[str, Any]) -> dict[str, Any]:
    verdicts = {name: each.verdict for name, each in components.items()}
    return {
        "status": {name: verdict.status for name, verdict in verdicts.items()},
        "reasons": {name: list(verdict.reasons) for name, verdict in verdicts.items()},
        "deviations": {name: each.standard_errors for name, each in components.items()},
    }


def _selection(name: str, result: Any) -> Selection:
    if result.selection is None:
        raise ValueError(f"{name} is {result.verdict.status}: {'; '.join(result.verdict.reasons)}")
    return result.selection


def _curve_scores(name: str, curves: Mapping[str, Curve]) -> dict[str, float]:
    """The curve's relative error, and the share of points within two standard errors of the truth."""
    (curve,) = curves.values()
    (function,) = system_problem(name).functions.values()
    ((target, text),) = _truths(name).items()
    (sign,) = {float(np.sign(c)) for c in _pointwise(target, text, ("u",)).values()}
    true = sign * function(curve.points, 0.0)
    off = np.abs(curve.values - true)
    error = float(np.linalg.norm(off) / np.linalg.norm(true))
    return {"error_of_curve": error, "covered": float(np.mean(off <= 2 * curve.errors))}


def _by_peer(task: Task) -> dict[str, Any]:
    """PySINDy's weak library on the samples of full grids, one or several."""
    from fts.baselines.pysindy import pysindy_weak_terms

    entry = system_problem(task.problem)
    if task.protocol == GRIDS_OF_RUNS:
        trajectories = simulate_runs(task.problem, 6, seed=task.seed)
    else:
        trajectories = [_solution(task.problem, task.seed)]
    fields, grids = _states(task.problem), []
    for number, trajectory in enumerate(trajectories):
        seed = 100 * task.seed + number if len(trajectories) > 1 else task.seed
        samples = observe_system(trajectory, 1.0, task.noise, seed=seed)
        shape = (*(axis.size for axis in trajectory.axes), trajectory.t.size)
        grids.append(np.stack([samples[name].y.reshape(shape) for name in fields], axis=-1))
    axes = (*trajectories[0].axes, trajectories[0].t)
    began = time.perf_counter()
    answers = pysindy_weak_terms(grids, axes, fields, task.params, task.seed)
    seconds = round(time.perf_counter() - began, 3)
    terms = {f"{name}_t: {term}": c for name in entry.components for term, c in answers[name].items()}
    clean = np.stack([trajectories[0].values[name] for name in entry.components])
    given = np.moveaxis(grids[0], -1, 0)[: len(clean)]
    e_u = float(np.linalg.norm(given - clean) / np.linalg.norm(clean))
    return {"terms": terms, "score": score_equations(terms, task.problem) | {"e_u": e_u}, "seconds": seconds}


def _cost(name: str) -> int:
    """Points of the grid, all fields together: what a run takes time in proportion to."""
    return len(_states(name)) * int(np.prod(system_problem(name).shape))


@study(run=run, score=score_equations, seeds={"test": TEST_SEEDS[:5], "development": DEVELOPMENT_SEEDS[:2]})
def systems(seeds: Iterable[int]) -> Iterator[Task]:
    """Systems, waves, known inputs, varying media: a fifth of the sensors, short runs, full grids, a peer."""
    from fts.baselines.pysindy import GRIDS
    from fts.discovery.systems import SYSTEM

    problems = (*SCALAR, *sorted(system_names(), key=_cost))
    for level, name, seed in product(_NOISE, problems, seeds):
        yield Task("systems", name, "S20", seed, level, DISCOVER, DISCOVER, SYSTEM)
    for name, protocol, seed in product(SHORT_RUNS, _RUNS, seeds):
        yield Task("systems", name, protocol, seed, _RUN_NOISE, EXPERIMENTS, EXPERIMENTS, SYSTEM)
    for level, name, seed in product(_FULL_NOISE, GRIDS, seeds):
        yield Task("systems", name, "S100", seed, level, PEER, PEER, GRIDS[name])
        yield Task("systems", name, "S100", seed, level, DISCOVER, DISCOVER, SYSTEM)
    for name, seed in product((name for name in SHORT_RUNS if name in GRIDS), seeds):
        yield Task("systems", name, GRIDS_OF_RUNS, seed, _RUN_NOISE, PEER, PEER, GRIDS[name])
