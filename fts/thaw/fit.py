"""A record and a support -> coefficients and states that follow the samples best: Gauss-Newton steps.

States are unknown too, with a Gaussian prior of the waves' sizes, and are eliminated window by window. What
remains is the information that the samples hold about the coefficients of *all* terms, those left out too:

    information = sum_windows J^T (1 - J_a H^-1 J_a^T / s^2) J / s^2,   H = J_a^T J_a / s^2 + prior,

with J the tangents along the coefficients, J_a those along the state, s the noise.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from fts.equations.terms import Library
from fts.params import ForecastParams
from fts.thaw.flow import Flow, Unbounded
from fts.thaw.windows import Record, Window

# A state this many e-foldings larger than it was is no forecast.
_MOST_GROWTH = 8.0
_HALVINGS = 4


@dataclass(frozen=True)
class Following:
    """A support fitted to the samples through its own equation."""

    support: tuple[int, ...]
    xi: Float[np.ndarray, " J"]
    states: tuple[np.ndarray, ...]  # amplitudes each window begins with
    residuals: tuple[np.ndarray, ...]
    freedom: float  # samples less fitted numbers
    information: Float[np.ndarray, "J J"]  # in units of the misfit squared
    score: Float[np.ndarray, " J"]

    @property
    def square(self) -> float:
        """Sum of the squared residuals."""
        return float(sum(one @ one for one in self.residuals))

    @property
    def misfit(self) -> float:
        """Root mean square residual per degree of freedom: the noise, if the equation is right."""
        return float(np.sqrt(self.square / self.freedom))


@dataclass(frozen=True)
class _Point:
    """Coefficients and states, what they leave of the samples, and the tangents there."""

    xi: np.ndarray
    states: tuple[np.ndarray, ...]
    residuals: tuple[np.ndarray, ...]
    tangents: tuple[np.ndarray, ...]  # [n, unknowns of the state + J] per window


@dataclass(frozen=True)
class _Normal:
    """Normal equations of the coefficients, and of every window's state given them."""

    information: np.ndarray
    score: np.ndarray
    windows: tuple[tuple[np.ndarray, np.ndarray, np.ndarray], ...]  # H, J_a^T J, gradient
    freedom: float


def thaw(
    record: Record,
    library: Library,
    xi: Float[np.ndarray, " J"],
    params: ForecastParams,
    states: tuple[np.ndarray, ...] | None = None,
) -> Following | None:
    """The support of `xi` fitted from there on, and from `states`; None where it cannot be integrated."""
    inside = np.flatnonzero(xi)
    begin = states or tuple(one.start for one in record.windows)
    now = _integrate(record, library, np.asarray(xi, dtype=float), begin)
    if now is None:
        return None
    for _ in range(params.passes):
        variance = _variance(record, now, params)
        moved = _descend(record, library, now, inside, variance)
        if moved is None:
            break
        gain = _loss(record, now, variance) - _loss(record, moved, variance)
        now = moved
        if gain < params.settled:
            break
    normal = _normal(record, now, inside, _variance(record, now, params))
    return Following(
        support=tuple(int(j) for j in inside),
        xi=now.xi,
        states=now.states,
        residuals=now.residuals,
        freedom=normal.freedom,
        information=normal.information,
        score=normal.score,
    )


def _descend(
    record: Record, library: Library, now: _Point, inside: np.ndarray, variance: float
) -> _Point | None:
    """One Gauss-Newton step, halved until samples and prior are fitted no worse; None when no step is."""
    normal = _normal(record, now, inside, variance)
    step = np.zeros(now.xi.size)
    step[inside] = np.linalg.lstsq(
        normal.information[np.ix_(inside, inside)], normal.score[inside], rcond=None
    )[0]
    moves = [np.linalg.solve(H, gradient - cross @ step) for H, cross, gradient in normal.windows]
    before = _loss(record, now, variance)
    for halving in range(_HALVINGS):
        part = 0.5**halving
        states = tuple(state + part * move for state, move in zip(now.states, moves, strict=True))
        xi = now.xi + part * step
        there = _integrate(record, library, xi, states, tangents=False)
        if there is not None and _loss(record, there, variance) <= before:
            return _integrate(record, library, xi, states)
    return None


def _normal(record: Record, at: _Point, inside: np.ndarray, variance: float) -> _Normal:
    size, precision = len(record.spread), np.diag(record.spread**-2.0)
    information, score = 0.0, 0.0
    windows, fitted = [], float(len(inside))
    for state, residual, tangents in zip(at.states, at.residuals, at.tangents, strict=True):
        along, by = tangents[:, :size], tangents[:, size:]
        H = along.T @ along / variance + precision
        cross = along.T @ by / variance
        gradient = along.T @ residual / variance - precision @ state
        solved = np.linalg.solve(H, np.column_stack([cross, gradient, precision]))
        J = by.shape[1]
        information = information + by.T @ by / variance - cross.T @ solved[:, :J]
        score = score + by.T @ residual / variance - cross.T @ solved[:, J]
        fitted += size - float(np.trace(solved[:, J + 1 :]))
        windows.append((H, cross, gradient))
    freedom = max(record.samples - fitted, 1.0)
    return _Normal(np.asarray(information), np.asarray(score), tuple(windows), freedom)


def _integrate(
    record: Record, library: Library, xi: np.ndarray, states: tuple[np.ndarray, ...], *, tangents: bool = True
) -> _Point | None:
    """Residuals there, and tangents where wanted; None where the state grows out of all bounds."""
    flow, found = Flow(library, xi, record.circle), []
    with np.errstate(all="ignore"):  # a step too far may blow up; it is then refused
        for window, state in zip(record.windows, states, strict=True):
            if flow.growth(record.waves) * window.step * window.steps > _MOST_GROWTH:
                return None
            try:
                found.append(_read(window, flow, state, record.waves, tangents))
            except Unbounded:
                return None
    if not all(np.isfinite(columns).all() for columns in found):
        return None
    residuals = tuple(one.y - columns[:, 0] for one, columns in zip(record.windows, found, strict=True))
    return _Point(xi, states, residuals, tuple(columns[:, 1:] for columns in found))


def _read(window: Window, flow: Flow, state: np.ndarray, waves: int, tangents: bool) -> np.ndarray:
    """State and tangents at the window's samples, summed over the steps each lies between."""
    unit = flow.circle.unit_waves(waves)
    start = np.zeros((1 + tangents * (len(unit) + len(flow.library)), unit.shape[1]), dtype=complex)
    start[0] = state @ unit
    if tangents:
        start[1 : 1 + len(unit)] = unit
    columns = np.zeros((len(window.y), len(start)))
    states = flow.states(start, window.step, window.steps)
    for rows, weights, v in zip(window.read, window.weigh, states, strict=True):
        if rows.size:
            at, kept = window.rows[rows], v[:, : flow.circle.modes]
            columns[rows] += weights[:, None] * (
                np.real(at) @ np.real(kept).T - np.imag(at) @ np.imag(kept).T
            )
    return columns


def _variance(record: Record, at: _Point, params: ForecastParams) -> float:
    """The noise is what the residual shows; where there is none, the integrator's error."""
    square = sum(float(one @ one) for one in at.residuals)
    return max(square / record.samples, (params.least_noise * record.scale) ** 2)


def _loss(record: Record, at: _Point, variance: float) -> float:
    square = sum(float(one @ one) for one in at.residuals)
    return square / variance + sum(float(np.sum((one / record.spread) ** 2)) for one in at.states)
