"""A chosen function, fitted to the samples through its own equation: noise in the field no longer biases it.

Selection needs no equation in the fit. Once a form is chosen, using it is no longer circular: u_t = d_xx q(u)
is integrated from an unknown initial state, and the state and the numbers of q are fitted to the raw samples
by Gauss-Newton steps, from the frozen field and the numbers found on it. Beyond the paper.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from fts.fields.frozen import Field
from fts.observations import Observations
from fts.params.symbolic import ThawParams
from fts.symbolic.families import Form

_STABLE = 2.0  # largest step times fastest decay; the classical Runge-Kutta method is stable up to 2.78
_HALVINGS = 8


@dataclass(frozen=True)
class Thawed:
    """The form that the samples prefer."""

    form: Form
    deviations: Float[np.ndarray, " n"]  # standard errors of the form's parameters
    misfit: float  # root mean square of samples minus solution, an estimate of the noise


@dataclass(frozen=True)
class _Fit:
    """What does not change between steps."""

    form: Form
    values: np.ndarray  # [sensors, frames]
    frames: np.ndarray
    waves: np.ndarray  # [points, 2 k + 1], the initial state is waves @ amplitudes
    at_sensors: np.ndarray  # [sensors, points]
    second: np.ndarray  # second derivative, [points, points]
    spread: np.ndarray  # prior deviations of the amplitudes
    fastest: float  # largest eigenvalue of -second
    floor: float


def thaw(form: Form, field: Field, observations: Observations, params: ThawParams) -> Thawed:
    """The numbers of `form` that fit the observations best, with their standard errors."""
    task, amplitudes = _prepare(form, field, observations, params)
    unknowns = np.concatenate([form.parameters, amplitudes])
    residual, tangents = _linearize(task, unknowns)
    precision = np.concatenate([np.zeros(form.parameters.size), task.spread**-2.0])
    for _ in range(params.iterations):
        # The noise is what the residual shows; where there is none, rounding of the integrator.
        variance = max(float(np.mean(residual**2)), params.least_noise**2)
        normal = tangents.T @ tangents / variance + np.diag(precision)
        step = np.linalg.solve(normal, tangents.T @ residual / variance - precision * unknowns)
        moved = _descend(task, unknowns, step, precision, variance)
        if moved is None:
            break
        small = np.abs(moved[0] - unknowns).max() < params.tolerance
        unknowns, residual, tangents = moved
        if small:
            break
    variance = max(float(np.mean(residual**2)), params.least_noise**2)
    covariance = np.linalg.inv(tangents.T @ tangents / variance + np.diag(precision))
    n = form.parameters.size
    found = form.with_parameters(unknowns[:n])
    return Thawed(found, np.sqrt(np.diag(covariance)[:n]), float(np.sqrt(np.mean(residual**2))))


def _prepare(
    form: Form, field: Field, observations: Observations, params: ThawParams
) -> tuple[_Fit, np.ndarray]:
    domain, grid = observations.domain, observations.grid
    if domain.dimension != 1 or not domain.periodic[0] or grid is None:
        raise ValueError("thawing integrates on one periodic axis, with samples on a sensor x frame grid")
    n, k = params.points, params.waves
    (low,), (extent, _) = domain.low, domain.extents
    nodes = np.arange(n) / n
    full = _waves(nodes, (n - 1) // 2)  # n is odd: as many waves as points
    numbers = 2 * np.pi * np.repeat(np.arange((n + 1) // 2), 2)[1:] / extent
    inverse = np.linalg.inv(full)
    at_start = field.on_grid(low + extent * nodes, grid.frames[:1])[:, 0]
    amplitudes = (inverse @ at_start)[: 2 * k + 1]
    # A wave may be as large as the frozen field shows it: those it does not show stay out.
    pairs = np.hypot(amplitudes[1::2], amplitudes[2::2]) / np.sqrt(2)
    spread = np.concatenate([[np.inf], np.repeat(np.maximum(pairs, params.least_noise), 2)])
    sensors = (grid.sensors[:, 0] - low) / extent
    task = _Fit(
        form=form,
        values=grid.values,
        frames=grid.frames,
        waves=full[:, : 2 * k + 1],
        at_sensors=_waves(sensors, (n - 1) // 2) @ inverse,
        second=-(full * numbers**2) @ inverse,
        spread=spread,
        fastest=float(numbers.max() ** 2),
        floor=params.least_state,
    )
    return task, amplitudes


def _waves(x: np.ndarray, k: int) -> np.ndarray:
    """1, sin 2 pi x, cos 2 pi x, ..., sin 2 pi k x, cos 2 pi k x as columns."""
    angles = 2 * np.pi * np.outer(x, np.arange(1, k + 1))
    return np.column_stack(
        [np.ones(x.size), np.stack([np.sin(angles), np.cos(angles)], axis=2).reshape(x.size, -1)]
    )


def _descend(
    task: _Fit, unknowns: np.ndarray, step: np.ndarray, precision: np.ndarray, variance: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """The step, halved until samples and prior are fitted no worse; None when no step is."""

    def loss(at: np.ndarray, residual: np.ndarray) -> float:
        return float(residual @ residual) / variance + float(precision @ at**2)

    now = loss(unknowns, _linearize(task, unknowns)[0])
    for halving in range(_HALVINGS):
        there = unknowns + step / 2**halving
        residual, tangents = _linearize(task, there)
        if np.isfinite(tangents).all() and loss(there, residual) <= now:
            return there, residual, tangents
    return None


def _linearize(task: _Fit, unknowns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Samples minus solution, and the solution's derivatives by numbers and amplitudes at the samples."""
    n = task.form.parameters.size
    form, start = task.form.with_parameters(unknowns[:n]), task.waves @ unknowns[n:]
    # Columns: the state, its derivatives by the numbers (zero at the start), by the amplitudes.
    columns = np.column_stack([start, np.zeros((start.size, n)), task.waves])
    kept = [task.at_sensors @ columns]
    with np.errstate(all="ignore"):  # a step too far may blow up; it is then refused
        for before, after in zip(task.frames[:-1], task.frames[1:], strict=True):
            columns = _advance(task, form, columns, float(after - before))
            kept.append(task.at_sensors @ columns)
    solution = np.stack(kept, axis=1)  # [sensors, frames, 1 + unknowns]
    residual = (task.values - solution[:, :, 0]).ravel()
    return residual, solution[:, :, 1:].reshape(residual.size, -1)


def _advance(task: _Fit, form: Form, columns: np.ndarray, time: float) -> np.ndarray:
    """State and tangents `time` later, by Runge-Kutta steps as long as stability allows."""
    fastest = task.fastest * float(np.abs(form.slope(np.maximum(columns[:, 0], task.floor))).max())
    # More steps than this, and the equation is not one that these samples can follow.
    count = int(min(np.ceil(time * fastest / _STABLE), 1000)) if np.isfinite(fastest) else 1
    h = time / max(count, 1)
    for _ in range(max(count, 1)):
        one = _rates(task, form, columns)
        two = _rates(task, form, columns + h / 2 * one)
        three = _rates(task, form, columns + h / 2 * two)
        four = _rates(task, form, columns + h * three)
        columns = columns + h / 6 * (one + 2 * two + 2 * three + four)
    return columns


def _rates(task: _Fit, form: Form, columns: np.ndarray) -> np.ndarray:
    """d_xx q(u) and its derivatives d_xx (q'(u) v + dq/dp)."""
    u = np.maximum(columns[:, 0], task.floor)
    inside = form.slope(u)[:, None] * columns
    inside[:, 0] = form.values(u)
    inside[:, 1 : 1 + form.parameters.size] += form.jacobian(u)
    return task.second @ inside
