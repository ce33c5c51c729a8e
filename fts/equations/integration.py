"""An equation and a state -> later states: exponential time differencing of Fourier coefficients (ETDRK4).

Terms linear in u are carried exactly, the others by a fourth-order Runge-Kutta rule between them (Kassam and
Trefethen). Axes close on themselves; what does not is for the caller to arrange.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Complex, Float

from fts.equations.algebra import state
from fts.equations.equation import Equation
from fts.equations.terms import Term

_CONTOUR_POINTS = 32
Rate = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Stepper:
    """One ETDRK4 step of v' = L v + N(v): exp(hL), exp(hL/2) and four weights per coefficient."""

    full: Complex[np.ndarray, " *modes"]
    half: Complex[np.ndarray, " *modes"]
    q: Complex[np.ndarray, " *modes"]
    weights: tuple[np.ndarray, np.ndarray, np.ndarray]

    def advance(
        self, v: np.ndarray, rate: Rate, half: Rate | None = None, end: Rate | None = None
    ) -> np.ndarray:
        """v one step later; `half` and `end` are the rates at those times where N depends on time."""
        half, end = half or rate, end or rate
        f1, f2, f3 = self.weights
        n_v = rate(v)
        a = self.half * v + self.q * n_v
        n_a = half(a)
        b = self.half * v + self.q * n_a
        n_b = half(b)
        c = self.half * a + self.q * (2 * n_b - n_v)
        return self.full * v + f1 * n_v + 2 * f2 * (n_a + n_b) + f3 * end(c)


def stepper(multiplier: Complex[np.ndarray, " *modes"], step: float) -> Stepper:
    """The weights as means over a circle around each hL, where their formulas do not cancel."""
    z = step * multiplier
    angles = np.exp(2j * np.pi * (np.arange(1, _CONTOUR_POINTS + 1) - 0.5) / _CONTOUR_POINTS)
    r = z[..., None] + angles
    e = np.exp(r)
    q = step * np.mean((np.exp(r / 2) - 1) / r, axis=-1)
    f1 = step * np.mean((-4 - r + e * (4 - 3 * r + r**2)) / r**3, axis=-1)
    f2 = step * np.mean((2 + r + e * (r - 2)) / r**3, axis=-1)
    f3 = step * np.mean((-4 - 3 * r - r**2 + e * (4 - r)) / r**3, axis=-1)
    return Stepper(np.exp(z), np.exp(z / 2), q, (f1, f2, f3))


def wavenumbers(n: int, length: float, *, odd: bool) -> Float[np.ndarray, " modes"]:
    """Of a real FFT over n points; an `odd` derivative of the Nyquist mode has no meaning on the grid."""
    k = 2 * np.pi / length * np.arange(n // 2 + 1)
    return np.where(2 * np.arange(k.size) == n, 0.0, k) if odd else k


def symbol(term: Term, n: int, length: float) -> Complex[np.ndarray, " modes"]:
    """scale (i k)^alpha: what the term's derivative does to every Fourier coefficient along x."""
    order = term.alpha[0]
    return term.scale * (1j * wavenumbers(n, length, odd=order % 2 == 1)) ** order


def is_linear(term: Term) -> bool:
    """True for derivatives of u itself, u among them."""
    return term.q == state()


def evolve(
    equation: Equation, u: Float[np.ndarray, " nx"], length: float, frames: int, duration: float, steps: int
) -> Float[np.ndarray, "nx frames"]:
    """u of a one-dimensional equation at equal times 0 ... duration, `steps` between two of them."""
    n = u.size
    multiplier, products = np.zeros(n // 2 + 1, dtype=complex), []
    for term, coefficient in zip(equation.terms, equation.coefficients, strict=True):
        if is_linear(term):
            multiplier += coefficient * symbol(term, n, length)
        else:
            products.append((coefficient * symbol(term, n, length), term.q))
    # Products of two or three smooth factors: the upper third is kept empty, so that none folds back.
    kept = np.arange(multiplier.size) <= n // 3

    def rate(v: np.ndarray) -> np.ndarray:
        values = np.fft.irfft(v, n=n)
        total = np.zeros_like(v)
        for factor, q in products:
            total += factor * np.fft.rfft(np.broadcast_to(q(values), values.shape))
        return kept * total

    one = stepper(multiplier, duration / (frames - 1) / steps)
    v, result = np.fft.rfft(u), np.empty((n, frames))
    result[:, 0] = u
    for frame in range(1, frames):
        for _ in range(steps):
            v = one.advance(v, rate)
        result[:, frame] = np.fft.irfft(v, n=n)
    return result
