"""Samples and a support -> the coefficients that fit best, by multiple shooting and Gauss-Newton.

The state each window begins with is unknown, too, with a Gaussian prior of the waves' sizes, and is
eliminated window by window. What remains is the information that the samples hold about the coefficients of
*all* terms, those left out too:

    information = sum_windows J^T (1 - J_a H^-1 J_a^T / s^2) J / s^2,   H = J_a^T J_a / s^2 + prior,

with J the tangents along the coefficients, J_a those along the state, s the noise.

One long window says most about the coefficients; a chaotic equation, or one that is far off at the start, is
followed only in shorter ones. The smallest number of windows is used with which an equation fits the samples
as well as with more. Waves are as large as the frozen field shows them; a fit begins at the field's state.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Complex, Float, Int

from fts.equations.terms import Library
from fts.fields.frozen import Field
from fts.fitting import Fit
from fts.observations import Observations
from fts.selection.support_search import Support
from fts.trajectory.integration import Flow, ForecastParams, PeriodicGrid, Unbounded

# Points of the interpolation between steps, for samples that stand between them.
_STENCIL = 6
_NOTHING = 1e-9  # weights below this are rounding
# Products make waves shorter than those that are unknown: the grid has room for so many times more.
_FINER = 2
_SIZES = (32, 48, 64, 96, 128, 144, 192, 256, 320)
_LOOKS = 33  # states of the frozen field that say how large a wave gets
States = tuple[np.ndarray, ...]  # amplitudes, window by window


@dataclass(frozen=True)
class Window:
    """Samples of a window of time: which steps each lies between, and what reads it off a state."""

    y: Float[np.ndarray, " n"]
    rows: Complex[np.ndarray, "n modes"]
    read: tuple[Int[np.ndarray, " _"], ...]  # for every step, the samples it contributes to,
    weigh: tuple[Float[np.ndarray, " _"], ...]  # and with which weight
    start: Float[np.ndarray, " unknowns"]  # amplitudes of the frozen field's state
    step: float
    steps: int
    t: Float[np.ndarray, " n"]  # of the samples
    x: Float[np.ndarray, " n"]
    begin: float  # time at which it starts


@dataclass(frozen=True)
class Record:
    """Everything a fit needs that does not change with the equation."""

    params: ForecastParams
    grid: PeriodicGrid
    waves: int
    spread: Float[np.ndarray, " unknowns"]  # prior deviations of a state's amplitudes
    windows: tuple[Window, ...]
    noise: float  # as the field estimates it
    scale: float  # deviation of the samples
    part: float = 1.0  # of the whole record that the windows are

    @property
    def samples(self) -> int:
        """Samples in all windows."""
        return sum(len(window.y) for window in self.windows)


def resolved_record(
    field: Field, observations: Observations, noise: float, params: ForecastParams
) -> Record | None:
    """The waves of the field's states, no window yet; None where they are more than is affordable."""
    domain, scale = observations.domain, float(observations.y.std())
    noise = max(noise, params.least_noise * scale)
    times = np.linspace(domain.t0, domain.t1, _LOOKS)
    sizes = 2 * np.abs(_spectra(field, times)).max(axis=1)
    # Smaller waves are left out; those that stay and are noise take no part in the information
    # (`fit.resolved_states`).
    least = max(params.present * noise * np.sqrt(2 / len(observations)), params.least_noise * scale)
    seen = np.flatnonzero(sizes[1 : _SIZES[-1]] > least)
    waves = int(seen.max(initial=0)) + 1
    if waves > params.most_waves:
        return None
    grid = PeriodicGrid(domain.low[0], domain.extents[0], next(n for n in _SIZES if n > 3 * _FINER * waves))
    # A wave may be as large as any shorter one that is seen, whatever the looks happened to meet.
    envelope = np.maximum.accumulate(sizes[waves:0:-1])[::-1]
    spread = np.concatenate([[3 * (sizes[0] + scale)], np.repeat(2 * envelope, 2)])
    return Record(params, grid, waves, spread, (), noise, scale)


def shooting_windows(
    record: Record,
    field: Field,
    observations: Observations,
    count: int,
    steps: int,
    most: int | None = None,
) -> Record:
    """The record with its samples in `count` windows of equal length, of so many steps each.

    At most `most` of them are taken, evenly spaced.
    """
    domain, t = observations.domain, observations.t
    edges = np.linspace(domain.t0, domain.t1, count + 1)
    spectra = _spectra(field, edges[:-1])[: record.waves + 1]
    taken = min(most or count, count)
    rng, samples = np.random.default_rng(record.params.seed), record.params.most_samples // taken
    windows = []
    for i in np.linspace(0, count - 1, taken).round().astype(int).tolist():
        low, high = float(edges[i]), float(edges[i + 1])
        inside = np.flatnonzero((t >= low) & ((t < high) | (i == count - 1)))
        if not inside.size:
            continue
        chosen = np.sort(rng.permutation(inside)[:samples])
        waves = 2 * spectra[1:, i]
        pairs = np.column_stack([np.real(waves), -np.imag(waves)])
        start = np.concatenate([np.real(spectra[:1, i]), pairs.ravel()])
        step = (high - low) / steps
        read, weigh = _interpolation((t[chosen] - low) / step, steps)
        x = observations.x[chosen, 0]
        rows = record.grid.rows(x)
        y = observations.y[chosen]
        windows.append(Window(y, rows, read, weigh, start, step, steps, t[chosen], x, low))
    return replace(record, windows=tuple(windows), part=taken / count)


def _spectra(field: Field, times: np.ndarray) -> Complex[np.ndarray, "modes times"]:
    """Fourier coefficients of the field's states."""
    domain, n = field.domain, 2 * _SIZES[-1]
    x = domain.low[0] + domain.extents[0] * np.arange(n) / n
    return np.fft.rfft(field.on_grid(x, times), axis=0) / n


def _interpolation(at: Float[np.ndarray, " n"], steps: int) -> tuple[tuple[np.ndarray, ...], ...]:
    """For every step the samples it contributes to and its weights, of samples at `at` steps."""
    # Lagrange interpolation between the nearest steps; a sample at a step has all its weight there.
    first = np.clip(np.floor(at).astype(int) - _STENCIL // 2 + 1, 0, steps + 1 - _STENCIL)
    nodes = first[:, None] + np.arange(_STENCIL)
    weights = np.ones(nodes.shape)
    for i in range(_STENCIL):
        for j in range(_STENCIL):
            if i != j:
                weights[:, i] *= (at - nodes[:, j]) / (i - j)
    read = [np.nonzero((nodes == m) & (np.abs(weights) > _NOTHING)) for m in range(steps + 1)]
    return tuple(rows for rows, _ in read), tuple(weights[pair] for pair in read)


# A state this many e-foldings larger than it was is no forecast.
_MOST_GROWTH = 8.0
_HALVINGS = 4
# Tangents beyond this cannot be squared and summed, and moves below that not be divided by.
_LARGEST, _SMALLEST = 1e60, 1e-100


class NotApplicable(ValueError):
    """Samples to which no equation can be fitted here, whichever it is, with the reason."""


@dataclass(frozen=True)
class TrajectoryFit:
    """A support fitted to the samples through the solution of its equation."""

    support: Support
    xi: Float[np.ndarray, " J"]
    states: States  # that the windows begin with
    square: float  # sum of the squared residuals
    freedom: float  # samples less fitted numbers
    prior: float  # what the states cost, in squared deviations
    information: Float[np.ndarray, "J J"]  # in units of the misfit squared
    score: Float[np.ndarray, " J"]
    reach: Float[np.ndarray, "J J"]  # products of the tangents along the coefficients: how far each moves u

    @property
    def misfit(self) -> float:
        """Root mean square residual per degree of freedom: the noise, if the equation is right."""
        return float(np.sqrt(self.square / self.freedom))

    @property
    def sizes(self) -> Float[np.ndarray, " J"]:
        """How far a unit of each coefficient moves the state, in units of what the equation moves it by."""
        whole = float(self.xi @ self.reach @ self.xi)
        return np.sqrt(np.diag(self.reach) / max(whole, _SMALLEST))

    @property
    def least_share(self) -> float:
        """The part of its smallest term in what the equation does to the state."""
        return float((np.abs(self.xi) * self.sizes)[list(self.support)].min(initial=np.inf))


@dataclass(frozen=True)
class Linearization:
    """Coefficients and states, what they leave of the samples, and the tangents there."""

    xi: Float[np.ndarray, " J"]
    states: States
    residuals: tuple[np.ndarray, ...]
    tangents: tuple[np.ndarray, ...]  # [n, unknowns of the state + terms] per window

    @property
    def square(self) -> float:
        """Sum of the squared residuals."""
        return float(sum(residual @ residual for residual in self.residuals))


@dataclass(frozen=True)
class EliminatedEquations:
    """Normal equations of the coefficients, and of every window's state given them."""

    information: np.ndarray
    score: np.ndarray
    windows: tuple[tuple[np.ndarray, np.ndarray, np.ndarray], ...]  # H, J_a^T J, gradient
    freedom: float  # of the samples, once the states are fitted


def multiple_shooting(
    fit: Fit,
    library: Library,
    starts: Sequence[Float[np.ndarray, " J"]],
    params: ForecastParams,
    step: Callable[[], object] = lambda: None,
) -> tuple[Record, tuple[TrajectoryFit, ...]]:
    """The record in windows, and every start that can be integrated fitted to it; `step` follows each fit."""
    observations, domain = fit.sample, fit.sample.domain
    if domain.dimension != 1 or not domain.periodic[0]:
        raise NotApplicable("an equation is followed on one periodic axis: say domain= with periodic=(True,)")
    if not all(term.is_autonomous for term in library):
        raise NotApplicable("an equation with coordinates, derivatives in time or products of them")
    whole = resolved_record(fit.field, observations, fit.noise, params)
    if whole is None:
        raise NotApplicable(f"the field has more than {params.most_waves} waves: follow a shorter axis")
    # As many steps as the fastest product needs.
    rates = [Flow(library, xi, whole.grid).fastest(observations.y, whole.waves) for xi in starts]
    turns = max(rates) * domain.extents[-1] / params.courant
    steps = int(np.clip(np.ceil(turns), params.steps, params.most_steps))
    per_step = (len(whole.spread) + len(library) + 1) * whole.grid.points
    shortest = -(-steps // params.windows[-1])
    if shortest * per_step > params.budget:
        raise NotApplicable(f"a window of {shortest} steps costs too much: follow a shorter record")
    kept: tuple[Record, tuple[TrajectoryFit, ...]] | None = None
    least = np.inf
    for count in params.windows:
        last, each = count == params.windows[-1], -(-steps // count)
        affordable = params.budget // (each * per_step)
        if not affordable:
            continue
        record = shooting_windows(whole, fit.field, observations, count, each, affordable)
        fits = _fitted(record, library, starts, step, patient=last)
        misfit = min((each.misfit for each in fits), default=np.inf)
        if misfit < params.better * least:
            kept, least = (record, fits), misfit
        elif kept is not None:
            break
        if misfit <= max(params.follows * record.noise, params.negligible * record.scale):
            break
    if kept is None:
        raise Unbounded("no equation proposed can be integrated: their solutions grow without bound")
    return kept


def _fitted(
    record: Record,
    library: Library,
    starts: Sequence[np.ndarray],
    step: Callable[[], object],
    *,
    patient: bool,
) -> tuple[TrajectoryFit, ...]:
    """Starts fitted that one pass brings near; none where it tells that windows so long are too long."""
    params, once = record.params, replace(record, params=replace(record.params, passes=1))
    probes = [gauss_newton(once, library, xi) for xi in starts]
    reached = [probe for probe in probes if probe is not None]
    least = min((probe.square for probe in reached), default=np.inf)
    # Noise is no sign that an equation was lost.
    if least > record.samples * ((params.lost * record.scale) ** 2 + record.noise**2) and not patient:
        return ()
    fits = []
    for probe in reached:
        if probe.square <= params.near**2 * least:
            fits.append(fit_trajectory(record, library, probe.xi, probe.states))
            step()
    return tuple(fit for fit in fits if fit is not None)


def fit_trajectory(
    record: Record, library: Library, xi: Float[np.ndarray, " J"], states: States | None = None
) -> TrajectoryFit | None:
    """The support of `xi` fitted from there on, and from `states`; None where it cannot be integrated."""
    best = gauss_newton(record, library, xi, states)
    resolved = best and linearize(record, library, best.xi, resolved_states(record, best))
    if best is None or resolved is None:
        return None
    best = replace(best, tangents=resolved.tangents)
    normal, inside = normal_equations(record, best, residual_variance(record, best)), np.flatnonzero(xi)
    along = [tangents[:, len(record.spread) :] for tangents in best.tangents]
    return TrajectoryFit(
        support=tuple(int(j) for j in inside),
        xi=best.xi,
        states=best.states,
        square=best.square,
        freedom=max(normal.freedom - len(inside), 1.0),
        prior=_prior(record, best),
        information=normal.information,
        score=normal.score,
        reach=np.asarray(sum(tangents.T @ tangents for tangents in along)),
    )


def gauss_newton(
    record: Record, library: Library, xi: Float[np.ndarray, " J"], states: States | None = None
) -> Linearization | None:
    """Where the support of `xi` is after some steps; terms left out, tangents too, take no part in them."""
    inside = np.flatnonzero(xi)
    if not inside.size:
        return None
    restricted = Library(tuple(library[int(j)] for j in inside))
    begin = states or tuple(window.start for window in record.windows)
    point = linearize(record, restricted, np.asarray(xi, dtype=float)[inside], begin)
    for _ in range(record.params.passes):
        moved = point and _gauss_newton_step(record, restricted, point)
        if moved is None:
            break
        point = moved
    if point is None:
        return None
    whole = np.zeros(len(library))
    whole[inside] = point.xi
    return replace(point, xi=whole)


def resolved_states(record: Record, at: Linearization) -> States:
    """The states without waves that are no larger than their own uncertainty.

    Noise in a short wave would pass for knowledge of what derivatives do to it.
    """
    variance, size, kept = residual_variance(record, at), len(record.spread), []
    for state, tangents in zip(at.states, at.tangents, strict=True):
        along = tangents[:, :size]
        known = np.diag(_solve(along.T @ along / variance + np.diag(record.spread**-2.0), np.eye(size)))
        pairs, errors = state[1:].reshape(-1, 2), known[1:].reshape(-1, 2)
        visible = (pairs**2).sum(axis=1) > record.params.visible**2 * errors.mean(axis=1)
        kept.append(np.concatenate([state[:1], (pairs * visible[:, None]).ravel()]))
    return tuple(kept)


# The thaw of a symbolic form halves its steps likewise, on dense normal equations of one window: what both
# have in common is three lines.
def _gauss_newton_step(record: Record, library: Library, point: Linearization) -> Linearization | None:
    """One step, halved until samples and prior are fitted no worse; None when there is none."""
    variance = residual_variance(record, point)
    normal = normal_equations(record, point, variance)
    step = np.linalg.lstsq(normal.information, normal.score, rcond=None)[0]
    solved = [_solve(H, np.column_stack([cross, g])) for H, cross, g in normal.windows]
    moves = [columns[:, -1] - columns[:, :-1] @ step for columns in solved]
    gains = [g @ columns[:, -1] for (_, _, g), columns in zip(normal.windows, solved, strict=True)]
    if step @ normal.score + sum(gains) < record.params.settled:
        return None
    before = _objective(record, point, variance)
    for halving in range(_HALVINGS):
        part = 0.5**halving
        states = tuple(state + part * move for state, move in zip(point.states, moves, strict=True))
        xi = point.xi + part * step
        trial = linearize(record, library, xi, states, tangents=False)
        if trial is not None and _objective(record, trial, variance) <= before:
            return linearize(record, library, xi, states)
    return None


def normal_equations(record: Record, at: Linearization, variance: float) -> EliminatedEquations:
    """The normal equations of all tangents, states eliminated, in noise of that variance."""
    size, precision = len(record.spread), np.diag(record.spread**-2.0)
    information, score = 0.0, 0.0
    windows, fitted = [], 0.0
    for state, residual, tangents in zip(at.states, at.residuals, at.tangents, strict=True):
        along, by = tangents[:, :size], tangents[:, size:]
        H = along.T @ along / variance + precision
        cross = along.T @ by / variance
        gradient = along.T @ residual / variance - precision @ state
        solved = _solve(H, np.column_stack([cross, gradient, precision]))
        J = by.shape[1]
        information = information + by.T @ by / variance - cross.T @ solved[:, :J]
        score = score + by.T @ residual / variance - cross.T @ solved[:, J]
        fitted += size - float(np.trace(solved[:, J + 1 :]))
        windows.append((H, cross, gradient))
    freedom = record.samples - fitted
    return EliminatedEquations(np.asarray(information), np.asarray(score), tuple(windows), freedom)


def _solve(H: Float[np.ndarray, "n n"], columns: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n k"]:
    """H^-1 columns; the smallest solution where a state that nearly diverges hides all others by rounding."""
    try:
        return np.linalg.solve(H, columns)
    except np.linalg.LinAlgError:
        return np.linalg.lstsq(H, columns, rcond=None)[0]


def linearize(
    record: Record, library: Library, xi: np.ndarray, states: States, *, tangents: bool = True
) -> Linearization | None:
    """Residuals there, and tangents where wanted; None where the state grows out of all bounds."""
    flow, solutions = Flow(library, xi, record.grid), []
    with np.errstate(all="ignore"):  # a step too far may blow up; it is then refused
        for window, state in zip(record.windows, states, strict=True):
            if flow.growth(record.waves) * window.step * window.steps > _MOST_GROWTH:
                return None
            try:
                solutions.append(_at_samples(window, flow, state, record.waves, tangents))
            except Unbounded:
                return None
    if not all(np.abs(columns).max(initial=0) < _LARGEST for columns in solutions):
        return None
    residuals = tuple(w.y - columns[:, 0] for w, columns in zip(record.windows, solutions, strict=True))
    return Linearization(xi, states, residuals, tuple(columns[:, 1:] for columns in solutions))


def tangents_at_samples(
    window: Window, flow: Flow, state: Float[np.ndarray, " unknowns"], waves: int
) -> Float[np.ndarray, "n tangents"]:
    """Tangents along the state's amplitudes and along the flow's directions, at the window's samples."""
    return _at_samples(window, flow, state, waves, True)[:, 1:]


def _at_samples(window: Window, flow: Flow, state: np.ndarray, waves: int, tangents: bool) -> np.ndarray:
    """State and tangents at the window's samples, summed over the steps each lies between."""
    unit = flow.grid.unit_waves(waves)
    start = np.zeros((1 + tangents * (len(unit) + flow.directions), unit.shape[1]), dtype=complex)
    start[0] = state @ unit
    if tangents:
        start[1 : 1 + len(unit)] = unit
    columns = np.zeros((len(window.y), len(start)))
    states = flow.states(start, window.step, window.steps)
    for samples, weights, v in zip(window.read, window.weigh, states, strict=True):
        if samples.size:
            at, modes = window.rows[samples], v[:, : flow.grid.modes]
            real = np.real(at) @ np.real(modes).T - np.imag(at) @ np.imag(modes).T
            columns[samples] += weights[:, None] * real
    return columns


def residual_variance(record: Record, at: Linearization) -> float:
    """The noise is what the residual shows; where there is none, the integrator's error."""
    return max(at.square / record.samples, (record.params.least_noise * record.scale) ** 2)


def _objective(record: Record, at: Linearization, variance: float) -> float:
    return at.square / variance + _prior(record, at)


def _prior(record: Record, at: Linearization) -> float:
    return sum(float(np.sum((state / record.spread) ** 2)) for state in at.states)
