"""Observations -> field -> chosen function -> thawed, or refitted with weighted rows; both beyond the paper.

`thaw` fits the chosen form to the samples through its own equation, so noise in the field does not bias it.
Selection needs no equation in the fit; once a form is chosen, using it is no longer circular. u_t = d_xx q(u)
is integrated from an unknown initial state, and the state and the numbers of q are fitted to the raw samples
by Gauss-Newton steps, from the frozen field and the numbers found on it.

`generalized_least_squares` refits the form in the metric of the field's posterior. The true field is the
posterior mean plus an error e that the mean does not depend on. So the rows of u_t = d_xx q(u) on the mean
have, for the true q and to first order in e, mean zero and the covariance of the same rows over fields drawn
from the posterior: in that metric the noise a field has kept does not bias the exponent downwards.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from fts.equations.equation import Equation
from fts.equations.terms import Term
from fts.fields.frozen import Field, FrozenField
from fts.fitting import obtain_frozen, obtain_with_posterior
from fts.observations import Observations
from fts.params.types import FieldParams
from fts.symbolic.families import POWER_LAW, Form
from fts.symbolic.occupation import residual, state_systems
from fts.symbolic.search import SymbolicParams
from fts.symbolic.select import Summand, SymbolicSelection, fit_numbers, select_function

_STABLE = 2.0  # largest step times fastest decay; the classical Runge-Kutta method is stable up to 2.78
_HALVINGS = 8


@dataclass(frozen=True)
class ThawParams:
    """The chosen function fitted to the samples through its own equation; not in the paper."""

    points: int = 41  # of the periodic axis, odd
    waves: int = 8  # of the initial state
    iterations: int = 12
    tolerance: float = 1e-6  # largest change of an unknown that ends the iteration
    least_noise: float = 1e-7  # deviation of the samples below which they count as exact
    least_state: float = 1e-6  # what a power sees of the state at least


@dataclass(frozen=True)
class WeighParams:
    """The chosen function refitted with rows weighted by the field's posterior; not in the paper."""

    draws: int = 300  # fields drawn from the posterior, from which the rows' covariance is estimated
    # Added to its diagonal, in units of the mean variance of a row. Chosen on the development seeds: floors
    # from 0.001 to 0.1 and wider patches differ by less than a deviation.
    floor: float = 0.01


@dataclass(frozen=True)
class SymbolicRunParams:
    """A symbolic run on samples: the field, the selection on it, and what is done to its numbers after."""

    field: FieldParams
    symbolic: SymbolicParams
    thaw: ThawParams | None
    weigh: WeighParams | None = None


THAW, WEIGH = ThawParams(), WeighParams()


@dataclass(frozen=True)
class Thawed:
    """The form that the samples prefer."""

    form: Form
    deviations: Float[np.ndarray, " n"]  # standard errors of the form's parameters
    misfit: float  # root mean square of samples minus solution, an estimate of the noise


@dataclass(frozen=True)
class FunctionFound:
    """What a run reports, and what it came from."""

    form: Form
    selection: SymbolicSelection
    thawed: Thawed | None
    field: FrozenField
    seconds: dict[str, float]  # CPU time per stage; the field not included

    @property
    def power_law(self) -> tuple[float, float] | None:
        """(kappa, m) where the function is kappa u^m, else None."""
        return power_law(self.form)

    @property
    def equation(self) -> Equation:
        """u_t = d_xx q(u)."""
        return Equation((Term((2,), 1.0, self.form.expression),), [1.0])


def discover_function(
    observations: Observations, params: SymbolicRunParams, rng: np.random.Generator
) -> FunctionFound:
    """The function q of u_t = d_xx q(u) behind the observations, chosen on their frozen field."""
    weighted = params.weigh is not None and params.thaw is None
    fit = obtain_with_posterior(observations, params.field) if weighted else None
    field = obtain_frozen(observations, params.field) if fit is None else fit.field
    selection = select_function(field, params.symbolic, rng)
    began, thawed, form = time.process_time(), None, selection.chosen.form
    if params.thaw is not None:
        thawed = thaw(form, field, observations, params.thaw)
        form = thawed.form
    elif params.weigh is not None and fit is not None:
        draws = fit.draws(params.weigh.draws, rng)
        form = generalized_least_squares(form, field, draws, params.symbolic, params.weigh, rng)
    stage = "weigh" if params.weigh is not None else "thaw"
    seconds = selection.seconds | {stage: round(time.process_time() - began, 4)}
    return FunctionFound(form, selection, thawed, field, seconds)


def power_law(form: Form) -> tuple[float, float] | None:
    """(kappa, m) of kappa u^m, else None."""
    if form.family != POWER_LAW:
        return None
    ((exponent, coefficient),) = form.numerator
    return coefficient, exponent


def thaw(form: Form, field: Field, observations: Observations, params: ThawParams) -> Thawed:
    """The numbers of `form` that fit the observations best, with their standard errors."""
    problem, amplitudes = _prepare(form, field, observations, params)
    unknowns = np.concatenate([form.parameters, amplitudes])
    (residual, tangents), precision = _linearize(problem, unknowns), problem.precision
    for _ in range(params.iterations):
        # The noise is what the residual shows; where there is none, rounding of the integrator.
        variance = max(float(np.mean(residual**2)), params.least_noise**2)
        normal = tangents.T @ tangents / variance + np.diag(precision)
        step = np.linalg.solve(normal, tangents.T @ residual / variance - precision * unknowns)
        moved = _line_search(problem, unknowns, step, residual, variance)
        if moved is None:
            break
        small = np.abs(moved[0] - unknowns).max() < params.tolerance
        unknowns, residual, tangents = moved
        if small:
            break
    variance = max(float(np.mean(residual**2)), params.least_noise**2)
    covariance = np.linalg.inv(tangents.T @ tangents / variance + np.diag(precision))
    n = form.parameters.size
    deviations = np.sqrt(np.diag(covariance)[:n])
    return Thawed(form.with_parameters(unknowns[:n]), deviations, float(np.sqrt(np.mean(residual**2))))


def generalized_least_squares(
    form: Form,
    field: Field,
    draws: Sequence[Field],
    symbolic: SymbolicParams,
    params: WeighParams,
    rng: np.random.Generator,
) -> Form:
    """The form with the numbers that fit a new weak system best, in the metric of the drawn fields."""
    if len(draws) < 2:
        raise ValueError(f"{len(draws)} drawn fields have no covariance: take a kernel field, and more draws")
    geometry, phase, floor = symbolic.patches.refit, rng.random(2), symbolic.protection.power_floor
    (system,) = state_systems(field, [(geometry, phase)], symbolic.patches.states)
    rows = [residual(draw, geometry, phase, lambda u: form.values(np.maximum(u, floor))) for draw in draws]
    metric = whitening(np.array(rows), params.floor)
    metric /= np.linalg.norm(metric @ system.b)
    refitted = fit_numbers((Summand(2, form),), system, symbolic, weighted=lambda values: metric @ values)
    return form if refitted is None else refitted[0].form


def whitening(rows: Float[np.ndarray, "draws m"], floor: float) -> Float[np.ndarray, "m m"]:
    """W with W C W = 1 for the covariance C of the rows, its diagonal raised by a share of its mean."""
    covariance = np.cov(rows.T)
    covariance[np.diag_indices_from(covariance)] += floor * np.trace(covariance) / len(covariance)
    sizes, vectors = np.linalg.eigh(covariance)
    return (vectors / np.sqrt(sizes)) @ vectors.T


@dataclass(frozen=True)
class _Problem:
    """What does not change between steps."""

    form: Form
    values: np.ndarray  # [sensors, frames]
    frames: np.ndarray
    waves: np.ndarray  # [points, 2 k + 1], the initial state is waves @ amplitudes
    at_sensors: np.ndarray  # [sensors, points]
    second: np.ndarray  # second derivative, [points, points]
    precision: np.ndarray  # prior, of the unknowns: numbers of the form, then amplitudes
    fastest: float  # largest eigenvalue of -second
    floor: float


def _prepare(
    form: Form, field: Field, observations: Observations, params: ThawParams
) -> tuple[_Problem, np.ndarray]:
    domain, grid = observations.domain, observations.grid
    if domain.dimension != 1 or not domain.periodic[0] or grid is None:
        raise ValueError("thawing integrates on one periodic axis, with samples on a sensor x frame grid")
    n, k = params.points, params.waves
    (low,), (extent, _) = domain.low, domain.extents
    nodes = np.arange(n) / n
    full = _fourier_basis(nodes, (n - 1) // 2)  # n is odd: as many waves as points
    numbers = 2 * np.pi * np.repeat(np.arange((n + 1) // 2), 2)[1:] / extent
    inverse = np.linalg.inv(full)
    at_start = field.on_grid(low + extent * nodes, grid.frames[:1])[:, 0]
    amplitudes = (inverse @ at_start)[: 2 * k + 1]
    # A wave may be as large as the frozen field shows it: those it does not show stay out.
    pairs = np.hypot(amplitudes[1::2], amplitudes[2::2]) / np.sqrt(2)
    spread = np.concatenate([[np.inf], np.repeat(np.maximum(pairs, params.least_noise), 2)])
    sensors = (grid.sensors[:, 0] - low) / extent
    problem = _Problem(
        form=form,
        values=grid.values,
        frames=grid.frames,
        waves=full[:, : 2 * k + 1],
        at_sensors=_fourier_basis(sensors, (n - 1) // 2) @ inverse,
        second=-(full * numbers**2) @ inverse,
        precision=np.concatenate([np.zeros(form.parameters.size), spread**-2.0]),
        fastest=float(numbers.max() ** 2),
        floor=params.least_state,
    )
    return problem, amplitudes


def _fourier_basis(x: np.ndarray, k: int) -> np.ndarray:
    """1, sin 2 pi x, cos 2 pi x, ..., sin 2 pi k x, cos 2 pi k x as columns."""
    angles = 2 * np.pi * np.outer(x, np.arange(1, k + 1))
    pairs = np.stack([np.sin(angles), np.cos(angles)], axis=2)
    return np.column_stack([np.ones(x.size), pairs.reshape(x.size, -1)])


def _line_search(
    problem: _Problem, unknowns: np.ndarray, step: np.ndarray, residual: np.ndarray, variance: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """The step, halved until samples and prior are fitted no worse; None when no step is."""

    def loss(at: np.ndarray, residual: np.ndarray) -> float:
        return float(residual @ residual) / variance + float(problem.precision @ at**2)

    now = loss(unknowns, residual)
    for halving in range(_HALVINGS):
        trial = unknowns + step / 2**halving
        residual, tangents = _linearize(problem, trial)
        if np.isfinite(tangents).all() and loss(trial, residual) <= now:
            return trial, residual, tangents
    return None


def _linearize(problem: _Problem, unknowns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Samples minus solution, and the solution's derivatives by numbers and amplitudes at the samples."""
    n = problem.form.parameters.size
    form, start = problem.form.with_parameters(unknowns[:n]), problem.waves @ unknowns[n:]
    # Columns: the state, its derivatives by the numbers (zero at the start), by the amplitudes.
    columns = np.column_stack([start, np.zeros((start.size, n)), problem.waves])
    kept = [problem.at_sensors @ columns]
    with np.errstate(all="ignore"):  # a step too far may blow up; it is then refused
        for before, after in zip(problem.frames[:-1], problem.frames[1:], strict=True):
            columns = _advance(problem, form, columns, float(after - before))
            kept.append(problem.at_sensors @ columns)
    solution = np.stack(kept, axis=1)  # [sensors, frames, 1 + unknowns]
    residual = (problem.values - solution[:, :, 0]).ravel()
    return residual, solution[:, :, 1:].reshape(residual.size, -1)


def _advance(problem: _Problem, form: Form, columns: np.ndarray, time: float) -> np.ndarray:
    """State and tangents `time` later, by Runge-Kutta steps as long as stability allows."""
    fastest = problem.fastest * float(np.abs(form.slope(np.maximum(columns[:, 0], problem.floor))).max())
    # More steps than this, and the equation is not one that these samples can follow.
    count = int(min(np.ceil(time * fastest / _STABLE), 1000)) if np.isfinite(fastest) else 1
    h = time / max(count, 1)
    for _ in range(max(count, 1)):
        k1 = _rates(problem, form, columns)
        k2 = _rates(problem, form, columns + h / 2 * k1)
        k3 = _rates(problem, form, columns + h / 2 * k2)
        k4 = _rates(problem, form, columns + h * k3)
        columns = columns + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return columns


def _rates(problem: _Problem, form: Form, columns: np.ndarray) -> np.ndarray:
    """d_xx q(u) and its derivatives d_xx (q'(u) v + dq/dp)."""
    u = np.maximum(columns[:, 0], problem.floor)
    inside = form.slope(u)[:, None] * columns
    inside[:, 0] = form.values(u)
    inside[:, 1 : 1 + form.parameters.size] += form.jacobian(u)
    return problem.second @ inside
