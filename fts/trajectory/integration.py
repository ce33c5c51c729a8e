"""Terms with coefficients -> states through time, and their derivatives by initial state and coefficients.

One ETDRK4 step carries all rows at once: the state, its tangents along every wave of the initial state, and
its tangents along every coefficient. A tangent obeys the linearized equation

    v_t = sum_j xi_j D_j (q_j'(u) v)  (+ D_j q_j(u) along xi_j),

which shares the state's linear part, and so the step's weights. One periodic axis; not in the paper.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from jaxtyping import Complex, Float

from fts.equations.algebra import derivative
from fts.equations.expressions import Expression
from fts.equations.integration import is_linear, stepper, symbol
from fts.equations.terms import Library


@dataclass(frozen=True)
class ForecastParams:
    """Windows, steps and passes of the fit, and when another equation explains the samples as well.

    Chosen on drawn problems of the development range (fts.lab.studies.calibration).
    """

    windows: tuple[int, ...] = (1, 2, 4, 8, 16)  # of the record, tried in turn until the equation follows it
    steps: int = 96  # at least, over the whole record
    courant: float = 1.0  # largest rate of a product times a step
    most_steps: int = 600  # over the whole record
    budget: int = 600_000  # steps times rows times points of one pass, at most
    passes: int = 6  # Gauss-Newton steps
    settled: float = 0.1  # gain in squared noise units below which they end
    most_waves: int = 48  # of a state
    most_samples: int = 8000  # used, evenly drawn
    present: float = 1.0  # standard errors of an amplitude; waves that are smaller throughout are left out
    visible: float = 4.0  # standard errors of an amplitude; smaller waves say nothing of the coefficients
    least_noise: float = 1e-4  # in deviations of the samples; the integrator's own error
    seed: int = 20_270  # of the samples drawn
    lost: float = (
        0.4  # misfit beyond noise, one step on, in deviations of the samples, if windows are too long
    )
    near: float = 3.0  # misfit after one step, over that of the best, up to which a start is fitted
    better: float = 0.9  # misfit over that of fewer windows, for which more of them are worth it
    follows: float = 1.15  # misfit over the field's noise up to which an equation follows the samples,
    negligible: float = 1e-3  # or in deviations of the samples, whatever the noise
    wanted: float = 5.0  # standard errors from zero at which a term left out would improve the fit
    per_term: float = 16.0  # squared noise units a term must gain to be kept
    least_share: float = 0.02  # of the change of state; a term that does less is none
    rounds: int = 4  # of proposing supports around the best
    proposals: int = 3  # fitted per round
    promising: float = 10.0  # squared noise units a support may cost more, to second order, and is fitted
    hopeless: float = (
        400.0  # squared noise units, to second order, by which a support is worse and not fitted,
    )
    unexplained: float = 1e-3  # unless it explains all but this fraction of what the best one does


FORECAST = ForecastParams()
# A state this many times larger than it was is no forecast.
_MOST_GROWTH = 1e3


class Unbounded(ValueError):
    """A state that grew out of all bounds."""


@dataclass(frozen=True)
class PeriodicGrid:
    """The periodic axis a state lives on: `points` equidistant ones, and a third as many waves."""

    low: float
    length: float
    points: int

    @property
    def modes(self) -> int:
        """Fourier coefficients that products do not fold back onto."""
        return self.points // 3 + 1

    def rows(self, x: Float[np.ndarray, " n"]) -> Complex[np.ndarray, "n modes"]:
        """What the Fourier coefficients are multiplied by to give, as a real part, the state at x."""
        waves = np.exp(2j * np.pi / self.length * np.outer(x - self.low, np.arange(self.modes)))
        waves[:, 1:] *= 2
        return waves / self.points

    def unit_waves(self, count: int) -> Complex[np.ndarray, "unknowns modes"]:
        """1, cos, sin, cos 2, ... up to wave `count`, each of amplitude one, as Fourier coefficients."""
        waves = np.zeros((2 * count + 1, self.points // 2 + 1), dtype=complex)
        waves[0, 0] = self.points
        k = np.arange(1, count + 1)
        waves[2 * k - 1, k], waves[2 * k, k] = self.points / 2, -0.5j * self.points
        return waves


@dataclass(frozen=True)
class Flow:
    """u_t = sum_j xi_j Theta_j on a periodic axis; terms with xi_j = 0 have tangents too."""

    library: Library
    xi: Float[np.ndarray, " J"]
    grid: PeriodicGrid

    @property
    def directions(self) -> int:
        """Number of tangents beside those along the state."""
        return len(self.library)

    @cached_property
    def multiplier(self) -> Complex[np.ndarray, " modes"]:
        """What the linear terms multiply every Fourier coefficient by."""
        linear = [j for j, term in enumerate(self.library) if is_linear(term)]
        return self.xi[linear] @ self._symbols[linear]

    def states(
        self, start: Complex[np.ndarray, "rows modes"], step: float, steps: int
    ) -> Iterator[Complex[np.ndarray, "rows modes"]]:
        """The rows at the start and after every step; the last J are tangents along the coefficients.

        A single row is the state alone.
        """
        method, v = stepper(self.multiplier, step), start
        most = _MOST_GROWTH * float(np.abs(np.fft.irfft(v[0], n=self.grid.points)).max())
        yield v
        for done in range(steps):
            # The four evaluations of a step of ETDRK4, in steps since the start.
            times = iter((float(done), done + 0.5, done + 0.5, done + 1.0))
            v = method.advance(v, partial(self._rate, most=most, times=times))
            yield v

    def fastest(self, u: Float[np.ndarray, " n"], waves: int) -> float:
        """The largest rate at which products move a wave, over the first `waves` and the state's values."""
        total = np.zeros(u.size)
        for order, members in self._products.items():
            slope = sum(self._weight(j) * self._slopes[j](u) for j in members)
            total += (2 * np.pi * waves / self.grid.length) ** order * np.abs(slope)
        return float(total.max())

    def growth(self, waves: int) -> float:
        """The largest rate at which the linear terms make one of the first `waves` grow."""
        return float(np.real(self.multiplier[: waves + 1]).max())

    @cached_property
    def _kept(self) -> np.ndarray:
        return np.arange(self.grid.points // 2 + 1) < self.grid.modes

    @cached_property
    def _symbols(self) -> np.ndarray:
        n, length = self.grid.points, self.grid.length
        return np.array([symbol(term, n, length) for term in self.library]) * self._kept

    @cached_property
    def _nonlinear(self) -> list[int]:
        return [j for j, term in enumerate(self.library) if not is_linear(term)]

    @cached_property
    def _slopes(self) -> dict[int, Expression]:
        return {j: derivative(self.library[j].q) for j in self._nonlinear}

    @cached_property
    def _products(self) -> dict[int, list[int]]:
        """Nonlinear terms in play by the order of their derivative: each order costs one transform."""
        products: dict[int, list[int]] = {}
        for j in self._nonlinear:
            if self.xi[j] != 0:
                products.setdefault(self.library[j].order, []).append(j)
        return products

    def _weight(self, j: int) -> float:
        return float(self.xi[j] * self.library[j].scale)

    @cached_property
    def _kinds(self) -> list[int]:
        """For every term the first that has its q: a function of u is evaluated and transformed once."""
        functions = [term.q for term in self.library]
        return [functions.index(q) for q in functions]

    def _rate(self, v: np.ndarray, most: float, times: Iterator[float]) -> np.ndarray:
        time, values = next(times), np.fft.irfft(v, n=self.grid.points, axis=1)
        u, total = values[0], np.zeros_like(v)
        if not np.abs(u).max() <= most:
            raise Unbounded(f"the state grew beyond {most:.3g}: the equation cannot be integrated from there")
        terms = self._nonlinear if len(v) > 1 else [j for group in self._products.values() for j in group]
        wanted = sorted({self._kinds[j] for j in terms})
        powers = {j: np.broadcast_to(self.library[j].q(u), u.shape) for j in wanted}
        for members in self._products.values():
            inside = values * sum(self._weight(j) * self._slopes[j](u) for j in members)
            inside[0] = sum(self._weight(j) * powers[self._kinds[j]] for j in members)
            lead = members[0]
            total += self._symbols[lead] / self.library[lead].scale * np.fft.rfft(inside, axis=1)
        if len(v) > 1:
            rate = self.multiplier * v[0] + total[0]
            total[len(total) - self.directions :] += self._sources(v[0], powers, rate, time)
        return total * self._kept

    def _sources(
        self, state: np.ndarray, powers: dict[int, np.ndarray], rate: np.ndarray, time: float
    ) -> np.ndarray:
        """D_j q_j(u), what the tangent along every coefficient is driven by.

        Other directions may depend on the state's `rate` of change and on time, in steps since the start.
        """
        spectra = dict(zip(powers, np.fft.rfft(list(powers.values()), axis=1), strict=True)) if powers else {}
        return self._symbols * [spectra.get(kind, state) for kind in self._kinds]
