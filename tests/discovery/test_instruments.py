"""Samples that an instrument spoilt are left out, and no others."""

from dataclasses import replace

import numpy as np
import pytest

import fts
from fts.discovery import instruments
from fts.fitting import fit_posterior
from fts.params.paper import DEFAULT_LIBRARIES
from fts.problems.development import draw
from fts.problems.outside import draw_defect


def _spoilt(count: int = 24, scale: float = 10.0) -> tuple[fts.Observations, np.ndarray]:
    """A drawn problem of the development range, and the same with some samples far off."""
    seed = next(s for s in range(1_000, 1_100) if draw(s, DEFAULT_LIBRARIES[1]).layout == "sensors")
    sound = draw(seed, DEFAULT_LIBRARIES[1]).observations
    rng = np.random.default_rng(1)
    at = rng.choice(len(sound), count, replace=False)
    y = sound.y.copy()
    y[at] += scale * sound.y.std() * rng.choice([-1, 1], count)
    return fts.Observations(sound.x, sound.t, y, sound.domain), np.isin(np.arange(len(sound)), at)


def test_exactly_the_outliers_are_left_out():
    spoilt, wrong = _spoilt()
    fit, found = instruments.fit_sound_samples(spoilt, "auto", progress=False)
    assert found.outliers == wrong.sum()
    kept = instruments.subset(spoilt, ~wrong)
    np.testing.assert_array_equal(fit.observations.y, kept.y)
    assert str(int(wrong.sum())) in found.notes[0]


@pytest.mark.parametrize(
    ("name", "protocol", "noise"), [("ks", "S5", 0.0), ("kdv", "S5", 0.0), ("kdv", "S20", 0.1)]
)
def test_sound_samples_give_the_very_field_they_gave(name, protocol, noise):
    observations = fts.observe(fts.simulate(name), protocol, seed=1301, noise=noise)
    fit, found = instruments.fit_sound_samples(observations, "auto", progress=False)
    assert found.notes == ()
    again = fit_posterior(observations, progress=False)
    assert fit.observations is observations
    x, t = np.linspace(*observations.domain.axes[0][:2], 50), np.linspace(0, observations.domain.t1, 20)
    assert fit.field.on_grid(x, t).tobytes() == again.field.on_grid(x, t).tobytes()


def test_a_noisy_sensor_has_no_outliers():
    sound, _ = _spoilt(0)
    sensors = np.unique(sound.x[:, 0])
    noisy = np.isin(sound.x[:, 0], sensors[:2])
    y = sound.y + np.where(noisy, 0.3 * sound.y.std(), 0) * np.random.default_rng(2).standard_normal(
        len(sound)
    )
    fit = fit_posterior(fts.Observations(sound.x, sound.t, y, sound.domain), progress=False)
    assert not instruments.outliers(fit).any()


def test_a_sensor_that_shows_something_else_is_named_and_left_out():
    sound, _ = _spoilt(0)
    sensors = np.unique(sound.x[:, 0])
    stuck = sound.x[:, 0] == sensors[7]
    y = np.where(stuck, sound.y.mean() + 1.5 * sound.y.std(), sound.y)
    fit, found = instruments.fit_sound_samples(replace(sound, y=y), "auto", progress=False)
    assert found.sensors == ((sensors[7],),)
    assert len(fit.observations) == (~stuck).sum()
    assert f"{sensors[7]:.4g}" in found.notes[0]


def test_errors_at_sensors_left_out_are_those_of_fits_without_them():
    sound, _ = _spoilt(0)
    fit = fit_posterior(sound, progress=False)
    square, _ = instruments.left_out_errors(fit)
    grid, posterior, which = sound.grid, fit.posterior, 5
    part, other = posterior.parts[0], np.arange(len(grid.sensors)) != which
    kernels = [
        k.covariance(axis.distances)
        for k, axis in zip(posterior.choice.kernels, posterior.parts, strict=True)
    ]
    known = np.kron(kernels[0][np.ix_(other, other)], kernels[1])
    values = posterior.values[other].ravel()
    weights = np.linalg.solve(known + posterior.nugget * np.eye(len(known)), values)
    predicted = np.kron(kernels[0][which, other], kernels[1]) @ weights
    error = posterior.scale**2 * np.mean((predicted - posterior.values[which]) ** 2)
    assert len(part.points) == len(square)
    assert square[which] == pytest.approx(error, rel=1e-3)


def test_offsets_are_noise_that_lasts_and_white_noise_is_none():
    sound, _ = _spoilt(0)
    fit = fit_posterior(sound, progress=False)
    assert instruments.lasting_noise(fit) == ()
    sensors, row = np.unique(sound.x[:, 0], return_inverse=True)
    offsets = 0.1 * sound.y.std() * np.random.default_rng(3).standard_normal(sensors.size)
    (reason,) = instruments.lasting_noise(
        fit_posterior(replace(sound, y=sound.y + offsets[row]), progress=False)
    )
    assert "offsets" in reason


@pytest.mark.slow
@pytest.mark.parametrize("seed", [20_001, 20_005])
def test_spikes_end_no_identification(seed):
    problem = draw_defect(seed, "spikes")
    answer = fts.discover(problem.observations, progress=False)
    assert answer.identified
    assert set(answer.selection.support) == {str(term) for term in problem.truth.terms}
    assert "left out" in str(answer)
    assert answer.as_dict()["notes"]
