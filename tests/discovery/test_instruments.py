"""Samples that an instrument spoilt are left out, and no others."""

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
    domain = sound.domain
    return fts.Observations(sound.x, sound.t, y, domain), np.isin(np.arange(len(sound)), at)


def test_exactly_the_outliers_are_left_out():
    spoilt, wrong = _spoilt()
    fit, found = instruments.fit_without_outliers(spoilt, "auto", progress=False)
    assert found.outliers == wrong.sum()
    kept = instruments.subset(spoilt, ~wrong)
    np.testing.assert_array_equal(fit.observations.y, kept.y)
    assert str(int(wrong.sum())) in found.notes[0]


@pytest.mark.parametrize(
    ("name", "protocol", "noise"), [("ks", "S20", 0.0), ("kdv", "S5", 0.0), ("kdv", "S20", 0.1)]
)
def test_sound_samples_give_the_very_field_they_gave(name, protocol, noise):
    observations = fts.observe(fts.simulate(name), protocol, seed=1301, noise=noise)
    fit, found = instruments.fit_without_outliers(observations, "auto", progress=False)
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


@pytest.mark.slow
@pytest.mark.parametrize("seed", [20_001, 20_005])
def test_spikes_end_no_identification(seed):
    problem = draw_defect(seed, "spikes")
    answer = fts.discover(problem.observations, progress=False)
    assert answer.identified
    assert set(answer.selection.support) == {str(term) for term in problem.truth.terms}
    assert "left out" in str(answer)
    assert answer.as_dict()["notes"]
