"""Fields drawn from the posterior scatter as the posterior variance says, and as the field errs."""

import numpy as np
import pytest

import fts
from fts.kernel import closed_form, separable


@pytest.mark.parametrize("noise", [0.02, 0.2])
def test_draws_have_the_posterior_variance(noise, rng):
    x, t = np.sort(rng.uniform(0, 1, 24)), np.linspace(0, 1, 30)
    clean = np.sin(2 * np.pi * (x[:, None] - 0.4 * t)) + 0.5 * np.cos(4 * np.pi * x[:, None]) * np.exp(-t)
    y = clean + noise * rng.standard_normal(clean.shape)
    where = (np.repeat(x, t.size)[:, None], np.tile(t, x.size), y.ravel())
    observations = fts.Observations(*where, fts.Domain((0.0,), (1.0,), 0.0, 1.0, (True,)))
    known = separable.condition_grid(observations, progress=False)
    field = closed_form.freeze(known, observations)
    axes = np.linspace(0, 1, 40, endpoint=False), np.linspace(0, 1, 40)
    errors = np.array([draw.on_grid(*axes) for draw in known.draw(field, 40, rng)]) - field.on_grid(*axes)
    expected = known.variance().on_grid(*axes)
    assert np.mean(errors**2) == pytest.approx(np.mean(expected), rel=0.15)
    # Where the posterior is unsure the draws scatter more.
    unsure = expected > np.median(expected)
    assert np.mean(errors[:, unsure] ** 2) > np.mean(errors[:, ~unsure] ** 2)
    assert abs(errors.mean()) < 0.1 * errors.std()
