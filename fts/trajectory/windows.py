"""A frozen field and samples -> windows for multiple shooting, each with the waves its state may have.

Every window is integrated from a state of its own: a chaotic or long record fitted in one piece has no useful
gradient. Waves are as large as the frozen field shows them, and the field's state is where a fit begins.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Complex, Float, Int

from fts.fields.frozen import Field
from fts.observations import Observations
from fts.trajectory.integration import ForecastParams, PeriodicGrid

# Points of the interpolation between steps, for samples that stand between them.
_STENCIL = 6
_NOTHING = 1e-9  # weights below this are rounding
# Products make waves shorter than those that are unknown: the grid has room for so many times more.
_FINER = 2
_SIZES = (32, 48, 64, 96, 128, 144, 192, 256, 320)
_LOOKS = 33  # states of the frozen field that say how large a wave gets


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


@dataclass(frozen=True)
class Record:
    """Everything a fit needs that does not change with the equation."""

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
    # (`fit._resolved_states`).
    least = max(params.present * noise * np.sqrt(2 / len(observations)), params.least_noise * scale)
    seen = np.flatnonzero(sizes[1 : _SIZES[-1]] > least)
    waves = int(seen.max(initial=0)) + 1
    if waves > params.most_waves:
        return None
    grid = PeriodicGrid(domain.low[0], domain.extents[0], next(n for n in _SIZES if n > 3 * _FINER * waves))
    # A wave may be as large as any shorter one that is seen, whatever the looks happened to meet.
    envelope = np.maximum.accumulate(sizes[waves:0:-1])[::-1]
    spread = np.concatenate([[3 * (sizes[0] + scale)], np.repeat(2 * envelope, 2)])
    return Record(grid, waves, spread, (), noise, scale)


def shooting_windows(
    record: Record,
    field: Field,
    observations: Observations,
    count: int,
    steps: int,
    params: ForecastParams,
    most: int | None = None,
) -> Record:
    """The record with its samples in `count` windows of equal length, of so many steps each.

    At most `most` of them are taken, evenly spaced.
    """
    domain, t = observations.domain, observations.t
    edges = np.linspace(domain.t0, domain.t1, count + 1)
    spectra = _spectra(field, edges[:-1])[: record.waves + 1]
    taken = min(most or count, count)
    rng, samples = np.random.default_rng(params.seed), params.most_samples // taken
    windows = []
    for i in np.linspace(0, count - 1, taken).round().astype(int).tolist():
        low, high = float(edges[i]), float(edges[i + 1])
        inside = np.flatnonzero((t >= low) & ((t < high) | (i == count - 1)))
        if not inside.size:
            continue
        chosen = np.sort(rng.permutation(inside)[:samples])
        waves = 2 * spectra[1:, i]
        start = np.concatenate(
            [np.real(spectra[:1, i]), np.column_stack([np.real(waves), -np.imag(waves)]).ravel()]
        )
        step = (high - low) / steps
        read, weigh = _interpolation((t[chosen] - low) / step, steps)
        rows = record.grid.rows(observations.x[chosen, 0])
        windows.append(Window(observations.y[chosen], rows, read, weigh, start, step, steps))
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
