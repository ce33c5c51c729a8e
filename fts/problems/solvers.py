"""Reference solutions on the benchmark grids: a Problem's initial state carried through time (A.1, F).

Exponential time differencing for the stiff periodic equations, the closed form for 2D advection-diffusion,
finite differences with BDF for nonlinear diffusion as in the paper, and Fourier differentiation with BDF for
the problems that are not in it. All in float64, deterministic, a few seconds at most.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy.integrate import solve_ivp
from scipy.sparse import csr_array, diags_array

from fts.equations.algebra import derivative
from fts.equations.integration import stepper, wavenumbers
from fts.problems.problems import Problem

# Steps that agree with the released trajectories: KS to 3e-12, KdV to the released integrator's own error.
_STEP = {"kdv": 0.01, "ks": 0.025, "ks sines": 0.025, "tall kdv": 1e-6, "burgers": 0.01}
# Mean and amplitude of the three waves that the further problems start from; all stay positive.
_WAVES = {"decay": (0.75, 1.0), "fisher": (0.5, 1.0), "saturation": (1.1, 2.0)}


def solve(problem: Problem) -> Float[np.ndarray, "..."]:
    """u on the problem's grid, shaped (nx, [ny], nt)."""
    if problem.name == "kdv":
        return _etdrk4(problem, _kdv_initial, linear=lambda k: 1j * k**3, flux=-3.0)
    if problem.name == "ks":
        return _etdrk4(problem, _ks_initial, linear=lambda k: k**2 - k**4, flux=-0.5)
    if problem.name == "ks sines":
        return _etdrk4(problem, _sines_initial, linear=lambda k: k**2 - k**4, flux=-0.5)
    if problem.name == "tall kdv":
        return _etdrk4(problem, _tall_initial, linear=lambda k: 1j * k**3, flux=-0.5)
    if problem.name == "burgers":
        return _etdrk4(problem, _bump_initial, linear=lambda k: -0.1 * k**2, flux=-0.5)
    if problem.name == "transport":
        return _linear(problem, _transport_initial, lambda k: -1j * k - 0.05 * k**2)
    if problem.name == "heat":
        return _linear(problem, _heat_initial, lambda k: -0.16 * k**2)
    if problem.name == "ad":
        return _advected_gaussian(problem)
    if problem.name == "diffusion":
        return _nonlinear_diffusion(problem)
    if problem.name in _WAVES:
        return _spectral_lines(problem)
    raise ValueError(f"no generator for {problem.name!r}: add one to fts/problems/solvers.py")


def _kdv_initial(x: np.ndarray) -> np.ndarray:
    # Two solitons, u = c/2 sech^2(sqrt(c)/2 (x - x0)), with speeds c = 1 and 1/2.
    return 0.5 / np.cosh(0.5 * (x + 20)) ** 2 + 0.25 / np.cosh(0.5 * np.sqrt(0.5) * (x - 5)) ** 2


def _ks_initial(x: np.ndarray) -> np.ndarray:
    return np.cos(x / 16) * (1 + np.sin(x / 16))


def _sines_initial(x: np.ndarray) -> np.ndarray:
    return np.sin(x / 16) + 0.5 * np.cos(x / 8) + 0.3 * np.sin(5 * x / 16)


def _tall_initial(x: np.ndarray) -> np.ndarray:
    # Two solitons, u = 3 c sech^2(sqrt(c)/2 (x - x0)), with speeds c = 625 and 256.
    return 1875 / np.cosh(12.5 * (x + 2)) ** 2 + 768 / np.cosh(8 * (x + 1)) ** 2


def _bump_initial(x: np.ndarray) -> np.ndarray:
    return np.exp(-((x + 2) ** 2))


def _transport_initial(x: np.ndarray) -> np.ndarray:
    return 0.5 * np.sin(6 * np.pi * x) + 0.3 * np.cos(12 * np.pi * x + 1) + 0.2 * np.sin(20 * np.pi * x)


def _heat_initial(x: np.ndarray) -> np.ndarray:
    wave = 2 * np.pi * x / 10
    return np.sin(3 * wave) + 0.8 * np.cos(7 * wave + 0.5) + 0.5 * np.sin(12 * wave)


def _linear(
    problem: Problem,
    initial: Callable[[np.ndarray], np.ndarray],
    multiplier: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """u_t = L u on a circle, exactly: every Fourier mode times exp(L t)."""
    (x,) = problem.axes
    k = 2 * np.pi / problem.domain.extents[0] * np.arange(x.size // 2 + 1)
    modes = np.fft.rfft(initial(x))[:, None] * np.exp(multiplier(k)[:, None] * problem.frames)
    return np.fft.irfft(modes, n=x.size, axis=0)


def _etdrk4(
    problem: Problem,
    initial: Callable[[np.ndarray], np.ndarray],
    linear: Callable[[np.ndarray], np.ndarray],
    flux: float,
) -> np.ndarray:
    """Fourth-order exponential time differencing of u_t = L u + flux * (u^2)_x (ETDRK4)."""
    (x,) = problem.axes
    k, k_odd = (wavenumbers(x.size, problem.domain.extents[0], odd=odd) for odd in (False, True))
    multiplier = linear(k_odd if problem.name.endswith("kdv") else k).astype(complex)
    one = stepper(multiplier, _STEP[problem.name])

    def nonlinear(v: np.ndarray) -> np.ndarray:
        return flux * 1j * k_odd * np.fft.rfft(np.fft.irfft(v, n=x.size) ** 2)

    v = np.fft.rfft(initial(x))
    frames = problem.frames
    steps = round((frames[1] - frames[0]) / _STEP[problem.name])
    u = np.empty(problem.shape)
    u[:, 0] = initial(x)
    for frame in range(1, frames.size):
        for _ in range(steps):
            v = one.advance(v, nonlinear)
        u[:, frame] = np.fft.irfft(v, n=x.size)
    return u


def _advected_gaussian(problem: Problem) -> np.ndarray:
    """u = 10/(s + 1/2) exp(-((x + s/4)^2 + (y + s/2)^2) / (2 s + 1)) with s = t + 3."""
    x, y = problem.axes
    s = problem.frames + 3
    x, y, s = x[:, None, None], y[None, :, None], s[None, None, :]
    return 10 / (s + 0.5) * np.exp(-((x + s / 4) ** 2 + (y + s / 2) ** 2) / (2 * (s + 0.5)))


def _nonlinear_diffusion(problem: Problem) -> np.ndarray:
    """u_t = (0.1 u^1.73)_xx by second-order periodic differences in space and BDF in time."""
    (x,) = problem.axes
    n, h = x.size, 1 / x.size
    shift = np.roll(np.eye(n), 1, axis=1)
    laplacian = csr_array((shift - 2 * np.eye(n) + shift.T) / h**2)
    kappa, m = 0.1, 1.73
    initial = 0.75 + _three_waves(x)
    solution = solve_ivp(
        lambda _, u: laplacian @ (kappa * u**m),
        (problem.domain.t0, problem.domain.t1),
        initial,
        method="BDF",
        t_eval=problem.frames,
        jac=lambda _, u: laplacian @ diags_array(kappa * m * u ** (m - 1)),
        rtol=2e-7,
        atol=1e-9,
    )
    return solution.y


def _spectral_lines(problem: Problem) -> np.ndarray:
    """u_t = sum of c D^k q(u), read off the problem's equation: Fourier differentiation in x, BDF in time."""
    (x,) = problem.axes
    mean, amplitude = _WAVES[problem.name]
    equation = problem.equation
    parts = [
        (c * term.scale * _fourier_matrix(x.size, term.order), term.q, derivative(term.q))
        for term, c in zip(equation.terms, equation.coefficients, strict=True)
    ]
    solution = solve_ivp(
        lambda _, u: sum(matrix @ q(u) for matrix, q, _ in parts),
        (problem.domain.t0, problem.domain.t1),
        mean + amplitude * _three_waves(x),
        method="BDF",
        t_eval=problem.frames,
        jac=lambda _, u: sum(matrix * slope(u) for matrix, _, slope in parts),
        rtol=1e-9,
        atol=1e-11,
    )
    return solution.y


def _fourier_matrix(n: int, order: int) -> np.ndarray:
    """Differentiation of the given order on n points of [0, 1)."""
    k = 2j * np.pi * np.fft.fftfreq(n, 1 / n)
    if order % 2:
        k[n // 2] = 0.0  # an odd derivative of the Nyquist mode has no meaning on the grid
    return np.fft.ifft(k[:, None] ** order * np.fft.fft(np.eye(n), axis=0), axis=0).real


def _three_waves(x: np.ndarray) -> np.ndarray:
    return (
        0.30 * np.sin(2 * np.pi * x)
        + 0.14 * np.cos(4 * np.pi * x - 0.35)
        + 0.07 * np.sin(6 * np.pi * x + 0.60)
    )
