"""Terms with coefficients -> states through time, and their derivatives by initial state and coefficients.

One ETDRK4 step carries all rows at once: the state, its tangents along every wave of the initial state, and
its tangents along every coefficient. A tangent obeys the linearized equation

    v_t = sum_j xi_j D_j (q_j'(u) v)  (+ D_j q_j(u) along xi_j),

which shares the state's linear part, and so the step's weights. One periodic axis.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from jaxtyping import Complex, Float

from fts.equations.calculus import derivative
from fts.equations.evolve import is_linear, stepper, symbol
from fts.equations.expressions import Expression
from fts.equations.terms import Library

# A state this many times larger than it was is no forecast.
_MOST_GROWTH = 1e3


class Unbounded(ValueError):
    """A state that grew out of all bounds."""


@dataclass(frozen=True)
class Ring:
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
    """u_t = sum_j xi_j Theta_j on a circle; terms with xi_j = 0 have tangents too."""

    library: Library
    xi: Float[np.ndarray, " J"]
    circle: Ring

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
        one, v = stepper(self.multiplier, step), start
        most = _MOST_GROWTH * float(np.abs(np.fft.irfft(v[0], n=self.circle.points)).max())
        rate = partial(self._rate, most=most)
        yield v
        for _ in range(steps):
            v = one.advance(v, rate)
            yield v

    def fastest(self, u: Float[np.ndarray, " n"], waves: int) -> float:
        """The largest rate at which products move a wave, over the first `waves` and the state's values."""
        total = np.zeros(u.size)
        for order, members in self._products.items():
            slope = sum(self._weight(j) * self._slopes[j](u) for j in members)
            total += (2 * np.pi * waves / self.circle.length) ** order * np.abs(slope)
        return float(total.max())

    def growth(self, waves: int) -> float:
        """The largest rate at which the linear terms make one of the first `waves` grow."""
        return float(np.real(self.multiplier[: waves + 1]).max())

    @cached_property
    def _kept(self) -> np.ndarray:
        return np.arange(self.circle.points // 2 + 1) < self.circle.modes

    @cached_property
    def _symbols(self) -> np.ndarray:
        n, length = self.circle.points, self.circle.length
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
        found: dict[int, list[int]] = {}
        for j in self._nonlinear:
            if self.xi[j] != 0:
                found.setdefault(self.library[j].order, []).append(j)
        return found

    def _weight(self, j: int) -> float:
        return float(self.xi[j] * self.library[j].scale)

    @cached_property
    def _kinds(self) -> list[int]:
        """For every term the first that has its q: a function of u is evaluated and transformed once."""
        functions = [term.q for term in self.library]
        return [functions.index(q) for q in functions]

    def _rate(self, v: np.ndarray, most: float) -> np.ndarray:
        values = np.fft.irfft(v, n=self.circle.points, axis=1)
        u, total = values[0], np.zeros_like(v)
        if not np.abs(u).max() <= most:
            raise Unbounded(f"the state grew beyond {most:.3g}: the equation cannot be integrated from there")
        wanted = sorted({self._kinds[j] for j in self._wanted(len(v))})
        powers = {j: np.broadcast_to(self.library[j].q(u), u.shape) for j in wanted}
        for members in self._products.values():
            inside = values * sum(self._weight(j) * self._slopes[j](u) for j in members)
            inside[0] = sum(self._weight(j) * powers[self._kinds[j]] for j in members)
            lead = members[0]
            total += self._symbols[lead] / self.library[lead].scale * np.fft.rfft(inside, axis=1)
        if len(v) > 1:
            self._add_sources(total, v[0], powers)
        return total * self._kept

    def _wanted(self, rows: int) -> list[int]:
        in_play = [j for members in self._products.values() for j in members]
        return self._nonlinear if rows > 1 else in_play

    def _add_sources(self, total: np.ndarray, state: np.ndarray, powers: dict[int, np.ndarray]) -> None:
        """D_j q_j(u) in the row of every coefficient."""
        first = len(total) - len(self.library)
        spectra = dict(zip(powers, np.fft.rfft(list(powers.values()), axis=1), strict=True)) if powers else {}
        rows = [spectra.get(kind, state) for kind in self._kinds]
        total[first:] += self._symbols * rows
