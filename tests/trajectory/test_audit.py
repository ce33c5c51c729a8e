"""Score tests of a wide class: tangents against integrated departures, what is wanted, and residuals."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import fts
from fts.equations.integration import evolve
from fts.equations.terms import Library
from fts.fitting import Fit
from fts.trajectory.audit import AUDIT, DepartingFlow, _log_chance, audit, wide_library
from fts.trajectory.fit import multiple_shooting
from fts.trajectory.integration import FORECAST, PeriodicGrid

GRID = PeriodicGrid(0.0, 2 * np.pi, 32)
LIBRARY = Library.parse(["1", "u", "u^2", "u_x", "u*u_x", "u_xx", "u_xxx", "u_xxxx"])
WIDE = wide_library(LIBRARY)
DURATION, STEPS = 0.4, 100
X = 2 * np.pi * np.arange(32) / 32
K = np.arange(17)
BOX = fts.Domain((0.0,), (2 * np.pi,), 0.0, 1.0, (True,))


def _spectral(u, symbol):
    return np.fft.irfft(symbol * (GRID.modes > K) * np.fft.rfft(u), n=32)


def _right_hand_side(u):
    """Burgers' equation."""
    return _spectral(u**2, -0.5j * K) + _spectral(u, -0.1 * K**2)


def _curvature(u):
    return _spectral(u, -(K**2))


# The source that a departure stands for, of (u, x, t, memory of u), and its place among the columns.
SOURCES = {
    "u^2*u_x": (0, lambda u, t, w: _spectral(u**3 / 3, 1j * K)),
    "D_xx(u^3)": (0, lambda u, t, w: _curvature(u**3)),
    "u_xx with a coefficient that varies in x": (
        1,
        lambda u, t, w: _spectral(np.sin(X) * _curvature(u), 1.0),
    ),
    "u_xx with a coefficient that varies in t": (0, lambda u, t, w: (2 * t / DURATION - 1) * _curvature(u)),
    "a forcing f(x)": (2, lambda u, t, w: np.cos(2 * X)),
    "a forcing f(t)": (0, lambda u, t, w: (2 * t / DURATION - 1) + 0 * X),
    "a fractional power in place of u_xx": (
        0,
        lambda u, t, w: _spectral(u, -(K**2) * np.log(np.maximum(K, 1))),
    ),
    "|D| u": (0, lambda u, t, w: _spectral(u, -1.0 * K)),
    "H u_xx": (0, lambda u, t, w: _spectral(u, 1j * K * K)),
    "a hidden component": (1, lambda u, t, w: w),
    "u_xxt": (0, lambda u, t, w: _curvature(_right_hand_side(u))),
    "u_tt": (
        0,
        lambda u, t, w: (
            _spectral(u * _right_hand_side(u), -1j * K) + _spectral(_right_hand_side(u), -0.1 * K**2)
        ),
    ),
}


@pytest.mark.parametrize("name", SOURCES)
def test_a_tangent_is_the_response_to_the_departure(name):
    column, source = SOURCES[name]
    xi = np.zeros(len(WIDE))
    xi[[WIDE.index("u*u_x"), WIDE.index("u_xx")]] = -1.0, 0.1
    step = DURATION / STEPS
    flow = DepartingFlow(WIDE, xi, GRID, 0.0, step, (0.0, DURATION))
    (departure,) = (each for each in flow.departures if each.name == name)
    u0 = np.sin(X) + 0.3 * np.cos(2 * X + 1)
    rows = np.zeros((1 + flow.directions, 17), dtype=complex)
    rows[0] = np.fft.rfft(u0)
    *_, last = flow.states(rows, step, STEPS)
    tangent = np.fft.irfft(last[1 + departure.columns[column]], n=32)

    def rate(t, v, size):
        u, w = v[:32], v[32:]
        return np.concatenate([_right_hand_side(u) + size * source(u, t, w), u - 3.0 / DURATION * w])

    ends = []
    for size in (1e-5, -1e-5):
        start = np.concatenate([u0, np.zeros(32)])
        solved = solve_ivp(rate, (0, DURATION), start, args=(size,), rtol=1e-10, atol=1e-12)
        ends.append(solved.y[:32, -1])
    response = (ends[0] - ends[1]) / 2e-5
    # The past is summed by the trapezoidal rule.
    tolerance = 1e-3 if name == "a hidden component" else 1e-6
    assert tangent == pytest.approx(response, abs=tolerance * np.abs(response).max())


def _observed(equation, noise, rng, sensors=24, frames=31):
    """Samples of an equation at random sensors, and the fit of their field."""
    x = 2 * np.pi * np.arange(96) / 96
    u0 = np.sin(x) + 0.5 * np.cos(2 * x + 1) + 0.3 * np.cos(3 * x)
    u = evolve(fts.Equation.parse(equation), u0, 2 * np.pi, frames, 1.0, 20)
    chosen = np.sort(rng.permutation(96)[:sensors])
    y = u[chosen] + noise * u.std() * rng.standard_normal((sensors, frames))
    t = np.linspace(0, 1, frames)
    samples = fts.Observations(np.repeat(x[chosen], frames)[:, None], np.tile(t, sensors), y.ravel(), BOX)
    return Fit(samples, fts.fit(samples, "kernel", progress=False))


def _audited(fit, **values):
    xi = np.zeros(len(LIBRARY))
    for name, value in values.items():
        xi[LIBRARY.index(name)] = value
    record, (fitted,) = multiple_shooting(fit, LIBRARY, [xi], FORECAST)
    made = audit(record, LIBRARY, fitted, AUDIT)
    assert made is not None
    return made


BURGERS = {"u*u_x": -0.9, "u_xx": 0.12}


def test_a_right_equation_wants_nothing_and_leaves_independent_residuals(rng):
    made = _audited(_observed("u_t = -1 u*u_x + 0.1 u_xx", 0.1, rng), **BURGERS)
    assert made.wanted == ()
    correlations = made.residuals.correlations
    assert set(correlations) == {"time", "space"}
    assert max(abs(each.z) for each in correlations.values()) < AUDIT.alike
    (decay,) = (test for test in made.tests if test.departure.name == "u")
    assert 0 < decay.least < 0.5


@pytest.mark.parametrize("gone", ["- 0.005 u_xxxxx", "+ 0.5 u^2*u_x", "- 0.5 u^3*u_x"])
def test_a_missing_term_is_wanted_first(gone, rng):
    made = _audited(_observed(f"u_t = -1 u*u_x + 0.1 u_xx {gone}", 0.02, rng), **BURGERS)
    assert made.wanted[0].departure.name == gone.split()[-1]
    assert max(each.z for each in made.residuals.correlations.values()) > AUDIT.alike


def test_chances_too_small_for_a_float_are_ranked():
    assert _log_chance(1e4, 1) < _log_chance(1e4, 6) < _log_chance(9e3, 1) < -4000
    assert _log_chance(1400.0, 6) == pytest.approx(_log_chance(1500.0, 6) + 50, abs=0.5)


def test_what_is_small_is_not_wanted(rng):
    fit = _observed("u_t = -1 u*u_x + 0.1 u_xx + 0.003 u", 0.0, rng)
    assert _audited(fit, **BURGERS).wanted == ()


def test_correlated_noise_shows_in_the_residuals(rng):
    fit = _observed("u_t = -1 u*u_x + 0.1 u_xx", 0.0, rng)
    noise = 0.1 * rng.standard_normal((24, 32))
    y = fit.observations.y + (noise[:, 1:] + noise[:, :-1]).ravel()
    correlated = replace(fit, observations=replace(fit.observations, y=y))
    correlations = _audited(correlated, **BURGERS).residuals.correlations
    assert correlations["time"].z > 3 * AUDIT.alike
    assert correlations["time"].value == pytest.approx(0.5, abs=0.15)
