"""Integrated equations: tangents against differences, recovery, and what cannot be integrated."""

from dataclasses import replace

import numpy as np
import pytest

import fts
from fts.equations.integration import evolve
from fts.equations.terms import Library
from fts.fitting import Fit
from fts.trajectory.comparison import compare_supports, score_tests, standard_errors, thaw_equation
from fts.trajectory.fit import (
    NotApplicable,
    fit_trajectory,
    multiple_shooting,
    resolved_record,
    shooting_windows,
)
from fts.trajectory.integration import FORECAST, Flow, PeriodicGrid, Unbounded

CIRCLE = PeriodicGrid(0.0, 2 * np.pi, 48)
LIBRARY = Library.parse(["1", "u", "u^2", "u_x", "u*u_x", "u_xx", "u_xxx", "u_xxxx"])
BURGERS = np.array([0, 0, 0, 0, -1.0, 0.1, 0, 0])
BOX = fts.Domain((0.0,), (2 * np.pi,), 0.0, 1.0, (True,))


def _start(rng, waves=4):
    unit = CIRCLE.unit_waves(waves)
    return rng.standard_normal(len(unit)) / (1 + np.arange(len(unit))), unit


def _last(flow, state, steps=40, step=0.02):
    *_, v = flow.states(state, step, steps)
    return np.fft.irfft(v, n=CIRCLE.points, axis=1)


def test_states_are_those_of_the_solver(rng):
    amplitudes, unit = _start(rng)
    state = (amplitudes @ unit)[None]
    inside = np.flatnonzero(BURGERS)
    equation = fts.Equation(tuple(LIBRARY[int(j)] for j in inside), BURGERS[inside])
    u = np.fft.irfft(state[0], n=CIRCLE.points)
    reference = evolve(equation, u, CIRCLE.length, 2, 0.8, 40)[:, -1]
    assert _last(Flow(LIBRARY, BURGERS, CIRCLE), state)[0] == pytest.approx(reference, abs=1e-12)


def test_tangents_are_derivatives(rng):
    amplitudes, unit = _start(rng)
    rows = np.zeros((1 + len(unit) + len(LIBRARY), unit.shape[1]), dtype=complex)
    rows[0], rows[1 : 1 + len(unit)] = amplitudes @ unit, unit
    tangents = _last(Flow(LIBRARY, BURGERS, CIRCLE), rows)[1:]
    h = 1e-6
    for i in range(len(unit)):
        shifted = [amplitudes + s * h * np.eye(len(unit))[i] for s in (1, -1)]
        high, low = (_last(Flow(LIBRARY, BURGERS, CIRCLE), (a @ unit)[None])[0] for a in shifted)
        assert tangents[i] == pytest.approx((high - low) / (2 * h), abs=1e-7)
    for j in range(len(LIBRARY)):
        around = [BURGERS + s * h * np.eye(len(LIBRARY))[j] for s in (1, -1)]
        high, low = (_last(Flow(LIBRARY, xi, CIRCLE), (amplitudes @ unit)[None])[0] for xi in around)
        # Along linear terms the step itself differs in its fourth order.
        assert tangents[len(unit) + j] == pytest.approx((high - low) / (2 * h), rel=1e-4, abs=1e-4)


def test_rows_read_a_state_anywhere(rng):
    amplitudes, unit = _start(rng)
    x = rng.uniform(0, 2 * np.pi, 20)
    waves = [np.ones(20)]
    for k in range(1, 5):
        waves += [np.cos(k * x), np.sin(k * x)]
    state = (amplitudes @ unit)[: CIRCLE.modes]
    assert (CIRCLE.rows(x) @ state).real == pytest.approx(amplitudes @ np.array(waves), abs=1e-12)


def test_growth_without_bound_is_said(rng):
    amplitudes, unit = _start(rng)
    explosive = np.array([0, 0, 50.0, 0, 0, 0, 0, 0])
    with pytest.raises(Unbounded, match="cannot be integrated"):
        _last(Flow(LIBRARY, explosive, CIRCLE), (5 * amplitudes @ unit)[None], steps=400)


def _field_and_samples(rng, noise, terms=("u*u_x", "u_xx"), values=(-1.0, 0.1), sensors=24, frames=31):
    equation = fts.Equation(tuple(Library.parse(list(terms))), list(values))
    grid = 2 * np.pi * np.arange(96) / 96
    u0 = np.sin(grid) + 0.5 * np.cos(2 * grid + 1) + 0.3 * np.sin(3 * grid)
    u = evolve(equation, u0, 2 * np.pi, frames, 1.0, 20)
    spectrum = np.fft.rfft(u, axis=0) / 96
    spectrum[1:] *= 2
    x = np.sort(rng.uniform(0, 2 * np.pi, sensors))
    y = (np.exp(1j * np.outer(x, np.arange(49))) @ spectrum).real
    y = y + noise * u.std() * rng.standard_normal(y.shape)
    t = np.linspace(0, 1, frames)
    observations = fts.Observations(np.repeat(x, frames)[:, None], np.tile(t, sensors), y.ravel(), BOX)
    return fts.fit(observations, "kernel", progress=False), observations


def test_coefficients_reach_the_noise_and_their_errors_are_honest(rng):
    field, observations = _field_and_samples(rng, 0.1)
    xi = np.array([0, 0, 0, 0, -0.8, 0.15, 0, 0])
    whole = resolved_record(field, observations, field.made.noise_estimate, FORECAST)
    record = shooting_windows(whole, field, observations, 1, 96)
    fitted = fit_trajectory(record, LIBRARY, xi)
    assert fitted is not None
    errors = standard_errors(fitted)[[4, 5]]
    assert np.all(errors < 0.05)
    assert np.abs(fitted.xi[[4, 5]] - [-1.0, 0.1]) == pytest.approx([0, 0], abs=4 * errors.max())
    assert fitted.misfit == pytest.approx(0.1 * observations.y.std(), rel=0.15)
    assert max(abs(value) / error for value, error in score_tests(fitted).values()) < 4


def _equation(text):
    return fts.Equation.parse(text)


def test_the_equation_comes_back_with_the_noise_and_wants_nothing(rng):
    field, observations = _field_and_samples(rng, 0.05)
    thawed = thaw_equation(Fit(observations, field), _equation("u_t = -0.8 u*u_x + 0.15 u_xx"), LIBRARY)
    assert thawed.windows == 1
    assert thawed.wanted == {}
    assert thawed.misfit == pytest.approx(0.05 * observations.y.std(), rel=0.15)
    for name, true in (("u*u_x", -1.0), ("u_xx", 0.1)):
        (value,) = (
            c
            for t, c in zip(thawed.equation.terms, thawed.equation.coefficients, strict=True)
            if str(t) == name
        )
        assert abs(value - true) < 4 * thawed.standard_errors[name]
    assert "misses the samples by" in str(thawed)


def test_a_missing_term_is_asked_for(rng):
    field, observations = _field_and_samples(rng, 0.05)
    thawed = thaw_equation(Fit(observations, field), _equation("u_t = 0.15 u_xx"), LIBRARY)
    assert thawed.misfit > 2 * thawed.noise or "u*u_x" in thawed.wanted


def test_windows_share_the_samples_without_counting_one_twice(rng):
    field, observations = _field_and_samples(rng, 0.0)
    record = resolved_record(field, observations, field.made.noise_estimate, FORECAST)
    for count in (1, 2, 4):
        divided = shooting_windows(record, field, observations, count, 24)
        assert divided.samples == len(observations)
        read = [np.concatenate(window.read) for window in divided.windows]
        assert all(
            set(rows) == set(range(len(first.y))) for rows, first in zip(read, divided.windows, strict=True)
        )


def test_an_ill_posed_equation_ends_in_a_sentence(rng):
    field, observations = _field_and_samples(rng, 0.0)
    with pytest.raises(ValueError, match="no equation proposed can be integrated"):
        thaw_equation(Fit(observations, field), _equation("u_t = -5 u_xx"), LIBRARY)


def test_what_cannot_be_followed_is_said(rng):
    field, observations = _field_and_samples(rng, 0.0)
    burgers = _equation("u_t = -1 u*u_x + 0.1 u_xx")
    with pytest.raises(ValueError, match="more than 2 waves"):
        thaw_equation(Fit(observations, field), burgers, LIBRARY, replace(FORECAST, most_waves=2))
    open_box = replace(observations, domain=replace(BOX, periodic=(False,)))
    with pytest.raises(ValueError, match="periodic"):
        thaw_equation(Fit(open_box, field), burgers, LIBRARY)


def test_a_wave_of_noise_says_nothing_of_derivatives(rng):
    """One wave under noise: what derivative moves it is open, whatever short waves the noise shows."""
    x, t = rng.uniform(0, 2 * np.pi, 900), rng.uniform(0, 1, 900)
    y = np.sin(x - 2 * t) + 0.1 * rng.standard_normal(900)
    observations = fts.Observations(x[:, None], t, y, BOX)
    field = fts.fit(observations, "kernel", progress=False)
    record = resolved_record(field, observations, field.made.noise_estimate, FORECAST)
    assert record is not None
    assert record.waves > 1
    fitted = fit_trajectory(shooting_windows(record, field, observations, 1, 96), LIBRARY, _xi(u_x=-2.0))
    assert fitted is not None
    third = LIBRARY.index("u_xxx")
    value, error = score_tests(fitted)[third]
    assert (value, error) == (0.0, np.inf)


def _xi(**values):
    xi = np.zeros(len(LIBRARY))
    for name, value in values.items():
        xi[LIBRARY.index(name)] = value
    return xi


def test_the_samples_choose_between_supports(rng):
    field, observations = _field_and_samples(rng, 0.05)
    steps = []
    start = [_xi(u_x=-0.5, u_xx=0.1)]
    comparison = compare_supports(Fit(observations, field), LIBRARY, start, FORECAST, lambda: steps.append(1))
    assert len(steps) >= len(comparison.fits)
    assert comparison.best.support == (4, 5)
    assert comparison.fits[0].misfit <= min(fit.misfit for fit in comparison.fits) * 1.01
    others = [i for i, index in enumerate(comparison.fits) if not {4, 5} <= set(index.support)]
    assert others
    assert min(comparison.gap(i) for i in others) > 10
    assert comparison.preferring(others[0]).best is comparison.fits[others[0]]


@pytest.mark.parametrize("noise", [0.0, 0.3, 1.0])
def test_noise_does_not_cut_the_record_into_stretches(noise, rng):
    field, observations = _field_and_samples(rng, noise, sensors=60)
    record, (fitted,) = multiple_shooting(
        Fit(observations, field), LIBRARY, [_xi(**{"u*u_x": -0.9, "u_xx": 0.12})], FORECAST
    )
    assert len(record.windows) == 1
    assert np.all(np.abs(fitted.xi - BURGERS) <= 4 * standard_errors(fitted))


def test_part_of_a_long_record_is_followed_within_the_budget(rng):
    field, observations = _field_and_samples(rng, 0.05)
    start = [_xi(**{"u*u_x": -1.0, "u_xx": 0.1})]
    whole, _ = multiple_shooting(Fit(observations, field), LIBRARY, start, FORECAST)
    assert whole.part == 1
    part, _ = multiple_shooting(Fit(observations, field), LIBRARY, start, replace(FORECAST, budget=20_000))
    assert 0 < part.part < 1
    with pytest.raises(NotApplicable, match="costs too much"):
        multiple_shooting(Fit(observations, field), LIBRARY, start, replace(FORECAST, budget=100))
