"""An equation and a state -> later states, on one axis that closes on itself.

`evolve` is exponential time differencing of Fourier coefficients (ETDRK4, Kassam and Trefethen): linear terms
are carried exactly, the others by a fourth-order Runge-Kutta rule between them. `evolve_linear` takes any
time at once where all terms are linear, `evolve_by_lines` integrates any equation by BDF.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Complex, Float
from scipy.integrate import solve_ivp

from fts.equations.algebra import derivative, state
from fts.equations.equation import Equation
from fts.equations.expressions import Expression
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

    def advance(self, v: np.ndarray, rate: Rate) -> np.ndarray:
        """v one step later."""
        f1, f2, f3 = self.weights
        n_v = rate(v)
        a = self.half * v + self.q * n_v
        n_a = rate(a)
        b = self.half * v + self.q * n_a
        n_b = rate(b)
        c = self.half * a + self.q * (2 * n_b - n_v)
        return self.full * v + f1 * n_v + 2 * f2 * (n_a + n_b) + f3 * rate(c)


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
    """u at equal times 0 ... duration, `steps` between two of them."""
    # Products of two or three smooth factors: the upper third is kept empty, so that none folds back.
    multiplier, rate = semilinear(equation, u.size, length, highest=u.size // 3)
    return march(stepper(multiplier, duration / (frames - 1) / steps), rate, u, frames, steps)


def semilinear(
    equation: Equation, n: int, length: float, *, highest: int
) -> tuple[Complex[np.ndarray, " modes"], Rate]:
    """v_t = L v + N(v) for the Fourier coefficients v: L, and N cut off above the mode `highest`."""
    multiplier, products = np.zeros(n // 2 + 1, dtype=complex), []
    for term, coefficient in zip(equation.terms, equation.coefficients, strict=True):
        if is_linear(term):
            multiplier += coefficient * symbol(term, n, length)
        else:
            products.append((coefficient * symbol(term, n, length), term.q))
    kept = np.arange(multiplier.size) <= highest

    def rate(v: np.ndarray) -> np.ndarray:
        values = np.fft.irfft(v, n=n)
        total = np.zeros_like(v)
        for factor, q in products:
            total += factor * np.fft.rfft(np.broadcast_to(q(values), values.shape))
        return kept * total

    return multiplier, rate


def march(
    step: Stepper, rate: Rate, u: Float[np.ndarray, " nx"], frames: int, steps: int
) -> Float[np.ndarray, "nx frames"]:
    """u and the states after every `steps` steps."""
    v, result = np.fft.rfft(u), np.empty((u.size, frames))
    result[:, 0] = u
    for frame in range(1, frames):
        for _ in range(steps):
            v = step.advance(v, rate)
        result[:, frame] = np.fft.irfft(v, n=u.size)
    return result


def evolve_linear(
    equation: Equation, u: Float[np.ndarray, " nx"], length: float, t: Float[np.ndarray, " nt"]
) -> Float[np.ndarray, "nx nt"]:
    """u of an equation with linear terms only, exactly: every Fourier coefficient times exp(L t)."""
    multiplier, _ = semilinear(equation, u.size, length, highest=0)
    exponent = multiplier if np.imag(multiplier).any() else np.real(multiplier)
    return np.fft.irfft(np.fft.rfft(u)[:, None] * np.exp(exponent[:, None] * t), n=u.size, axis=0)


def evolve_by_lines(
    parts: Sequence[tuple[Any, Expression]],
    u: Float[np.ndarray, " nx"],
    t: Float[np.ndarray, " nt"],
    *,
    rtol: float,
    atol: float,
) -> Float[np.ndarray, "nx nt"]:
    """u of u_t = sum of D q(u), the D being matrices, dense or sparse: BDF with the exact Jacobian."""
    slopes = [(matrix, derivative(q)) for matrix, q in parts]

    def rate(_: float, u: np.ndarray) -> Any:
        return sum(matrix @ q(u) for matrix, q in parts)

    def jacobian(_: float, u: np.ndarray) -> Any:
        return sum(matrix * slope(u) for matrix, slope in slopes)

    return solve_ivp(rate, (t[0], t[-1]), u, "BDF", t, jac=jacobian, rtol=rtol, atol=atol).y
