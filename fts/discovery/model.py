"""Discovered equations as a model: integrated from any state, on axes that close on themselves."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.fft
import scipy.signal
from jaxtyping import Float

from fts import validation
from fts.domain import Domain
from fts.equations.equation import Equation
from fts.equations.expressions import unknown_axis
from fts.equations.terms import parse_term
from fts.fields.frozen import Field, FrozenField
from fts.fields.varying import Curve
from fts.observations import require_finite
from fts.trajectory.dynamics import Known, NoFlow, PeriodicBox, SystemFlow, SystemTerms
from fts.trajectory.integration import Unbounded

# Steps are halved until a solution moves by less than this part of its size.
_SETTLED, _HALVINGS, _FIRST_STEPS = 1e-6, 9, 64
Values = Float[np.ndarray, "..."]


def simulate(
    equations: Sequence[Equation],
    domain: Domain,
    start: Mapping[str, Values],
    times: Float[np.ndarray, " nt"],
    inputs: Mapping[str, Field],
    curves: Sequence[Mapping[str, Curve]],
) -> dict[str, Values]:
    """Every component at the times, the first being that of `start`, each shaped (x, [y, [z,]] t).

    `start` has a state on equally spaced points for every component, and for the rate of one whose equation
    is of second order; `curves` the coefficients that vary, of every equation by the text of the term.
    """
    system, functions = as_system(equations, curves)
    if not all(domain.periodic):
        raise ValueError(
            "simulate needs what happens at the ends of an axis, and equations do not say it: discover with "
            "domain= whose axes are periodic"
        )
    fields = {name: inputs[name] for name in sorted(system.inputs) if name in inputs}
    times = _checked_times(times, domain, fields)
    shape, states = _checked_start(system, start, domain)
    missing = sorted(name for name in system.inputs if name not in inputs and name not in functions)
    if missing:
        raise ValueError(
            f"the equation needs {', '.join(missing)}: simulate with the result for all components, or give "
            "the input by load(path, inputs={...})"
        )
    # Room for every wave of the state given.
    next_length: Any = scipy.fft.next_fast_len
    points = tuple(int(next_length(3 * (n // 2) + 1, real=True)) for n in shape)
    box = PeriodicBox(domain.low, domain.extents[:-1], points)
    flow = SystemFlow(system, np.concatenate([each.coefficients for each in equations]), box)
    modes = box.to_modes(_resampled(states, points))
    before, largest = None, 0.0
    for halving in range(_HALVINGS):
        steps = _FIRST_STEPS * 2**halving
        try:
            solution = _integrated(flow, modes, times, steps, functions, fields)
        except Unbounded:
            solution = None  # a finer step may hold it
        if before is not None and solution is not None:
            largest = max(float(np.abs(solution).max()), np.finfo(float).tiny)
            if float(np.abs(solution - before).max()) <= _SETTLED * largest:
                kept = [_resampled(solution[k], shape, first=1) for k in range(len(system.rows))]
                return {name: np.moveaxis(u, 0, -1) for name, u in zip(system.rows, kept, strict=True)}
        before = solution
    raise ValueError(
        f"the solution up to t = {times[-1]:g} grows without bound, or moves with the step however small it "
        "is: ask for earlier times"
    )


def field_at(field: FrozenField, points: Float[np.ndarray, "n d1"]) -> Float[np.ndarray, " n"]:
    """The field at points of its record; an error beyond it, where a field is no forecast."""
    values = field(points)
    times = np.asarray(points, dtype=float)[:, -1]
    if times.size and not (field.domain.t0 <= times.min() and times.max() <= field.domain.t1):
        raise ValueError(
            f"points from t = {times.min():g} to {times.max():g} leave the record, which goes from "
            f"{field.domain.t0:g} to {field.domain.t1:g}: integrate the equation with simulate"
        )
    return values


def as_system(
    equations: Sequence[Equation], curves: Sequence[Mapping[str, Curve]]
) -> tuple[SystemTerms, dict[str, Curve]]:
    """The terms of all equations, and their curves under a name for each; a ValueError where they cannot be
    integrated."""
    if not all(equation.terms for equation in equations):
        raise ValueError("an empty equation moves nothing: nothing was selected")
    targets, members, terms, functions = [], [], [], {}
    for k, (equation, varying) in enumerate(zip(equations, curves, strict=True)):
        targets.append(parse_term(equation.target, (equation.target.partition("_")[0],)))
        for term in equation.terms:
            if str(term) in varying:
                # One letter stands for another function in every term.
                name = f"c{len(terms)}({unknown_axis(term.unknown)})"
                functions[name], term = varying[str(term)], term.with_unknown(name)
            members.append(k)
            terms.append(term)
    try:
        return SystemTerms(tuple(targets), tuple(members), tuple(terms)), functions
    except NoFlow as reason:
        raise ValueError(str(reason)) from None


def known_on(
    box: PeriodicBox,
    functions: Mapping[str, Curve],
    fields: Mapping[str, Field],
    symbols: Sequence[str],
    times: Float[np.ndarray, " times"],
) -> Known:
    """Coordinates, varying coefficients and inputs on the grid at equal times, half a step apart."""
    still: dict[str, np.ndarray] = dict(
        zip("xyz", np.meshgrid(*box.axes, indexing="ij", sparse=True), strict=False)
    )
    moving = {}
    for name, curve in functions.items():
        if curve.axis == "t":
            moving[name] = curve(times)[:, None]
        else:
            still[name] = curve(still[curve.axis])
    for name, field in fields.items():
        values = np.moveaxis(np.asarray(field.on_grid(*box.axes, times), dtype=float), -1, 0)
        for symbol in symbols:
            head, _, letters = symbol.partition("_")
            if head == name:
                alpha = tuple(letters.count(letter) for letter in "xyz")
                moving[symbol] = (
                    box.to_values(box.to_modes(values) * box.symbol(alpha)) if letters else values
                )
    return Known(still, moving, float(times[0]), float(times[1] - times[0]))


def _integrated(
    flow: SystemFlow,
    modes: np.ndarray,
    times: np.ndarray,
    steps: int,
    functions: Mapping[str, Curve],
    fields: Mapping[str, Field],
) -> Float[np.ndarray, "rows times ..."]:
    """The rows on the grid at the times, of `steps` steps or a few more from the first to the last."""
    states, whole = [modes], times[-1] - times[0]
    with np.errstate(all="ignore"):  # a step too long may blow up; it is then refused
        for first, last in pairwise(times):
            count = max(1, int(np.ceil(steps * (last - first) / whole - 1e-9)))
            halves = np.linspace(first, last, 2 * count + 1)
            known = known_on(flow.box, functions, fields, flow.symbols, halves)
            *_, end = flow.states(states[-1][None], known, count)
            states.append(end[0])
    if not np.isfinite(np.array(states)).all():
        raise Unbounded("the state grew beyond all numbers")
    return flow.box.to_values(np.stack(states, axis=1))


def _resampled(u: np.ndarray, points: tuple[int, ...], first: int = 1) -> np.ndarray:
    resample: Any = scipy.signal.resample
    for axis, n in enumerate(points, start=first):
        u = resample(u, n, axis=axis)
    return u


def _checked_times(
    times: Float[np.ndarray, " nt"], domain: Domain, inputs: Mapping[str, Field]
) -> np.ndarray:
    times = validation.real_array("times", times)
    require_finite("times", times)
    if times.ndim != 1 or len(times) < 2 or not (np.diff(times) > 0).all():
        raise ValueError(
            f"times have shape {times.shape}: give two or more that ascend, the first that of the state"
        )
    if inputs and not (domain.t0 <= times[0] and times[-1] <= domain.t1):
        raise ValueError(
            f"times from {times[0]:g} to {times[-1]:g}: inputs are known from {domain.t0:g} to {domain.t1:g}"
        )
    return times


def _checked_start(
    system: SystemTerms, start: Mapping[str, Values], domain: Domain
) -> tuple[tuple[int, ...], np.ndarray]:
    remedy = f"give {', '.join(system.rows)} as arrays by name"
    validation.require_type(Mapping, start, "the initial state", remedy)
    missing = [name for name in system.rows if name not in start]
    if missing:
        raise ValueError(f"the initial state lacks {', '.join(missing)}: {remedy}")
    arrays = [validation.real_array(name, start[name]) for name in system.rows]
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1 or arrays[0].ndim != domain.dimension or min(arrays[0].shape, default=0) < 4:
        listed = ", ".join(map(str, shapes))
        raise ValueError(
            f"the initial state has shape {listed}: give values on equally spaced points, four or more along "
            f"each of {domain.dimension} axes"
        )
    for name, array in zip(system.rows, arrays, strict=True):
        require_finite(name, array)
    return arrays[0].shape, np.array(arrays)
