"""What would take an hour says so before it starts, and what takes a minute does not."""

import numpy as np
import pytest

from fts import fitting, validation
from fts.domain import Domain
from fts.kernel import closed_form, separable
from fts.kernel.covariance import Kernel, SampleAxis
from fts.kernel.fourier import circle
from fts.kernel.normal_equations import SampleLayout, seconds_of_scattered
from fts.kernel.separable import seconds_of_grid
from fts.observations import Observations
from fts.params.types import FieldParams

HOUR = 3600.0
BOX = Domain((0.0,), (1.0,), 0.0, 1.0, (True,))
KERNELS = (Kernel("gaussian", (0.1,)), Kernel("gaussian", (0.1,)))


def _axis(count: int) -> SampleAxis:
    # only its length counts: no memory is taken
    return SampleAxis(np.broadcast_to(0.0, (count, 1)), (1.0,), (None,))


def _layout(count: int) -> SampleLayout:
    circles = (circle(0.0, 1.0, True), circle(0.0, 1.0, False))
    return SampleLayout(BOX, None, circles, "", count)


def _cloud(count: int, rng: np.random.Generator) -> Observations:
    x, t = rng.random((2, count))
    return Observations(x[:, None], t, np.sin(6 * x) * np.cos(3 * t) + 0.1 * rng.standard_normal(count), BOX)


def test_large_grids_and_many_samples_take_an_hour_and_common_ones_do_not():
    assert seconds_of_grid((_axis(2000), _axis(2000))) < 60
    assert seconds_of_grid((_axis(30_000), _axis(100))) > HOUR
    assert seconds_of_scattered(_layout(1_000_000), KERNELS, 1e-3) < 60
    assert seconds_of_scattered(_layout(10**9), KERNELS, 1e-3) > HOUR


def test_short_waves_take_longer_than_long_ones():
    short = (Kernel("gaussian", (1e-3,)), Kernel("gaussian", (1e-3,)))
    count = 10**5
    assert seconds_of_scattered(_layout(count), short, 1e-3) > 2 * seconds_of_scattered(
        _layout(count), KERNELS, 1e-3
    )


def test_a_fit_of_scattered_samples_warns_before_it_solves(monkeypatch, rng):
    monkeypatch.setattr("fts.validation._HOUR", 1e-6)
    monkeypatch.setattr(separable, "solve_with_nugget", lambda *_: pytest.fail("solved before it warned"))
    with pytest.raises(
        validation.LongRun, match=r"fitting 2,000 samples will take .* h of one core: thin them"
    ):
        closed_form.condition(_cloud(2000, rng), progress=False)


def test_a_fit_of_a_grid_warns_before_it_searches(monkeypatch, rng):
    x, t = np.arange(8) / 8.3, np.linspace(0, 1, 9)
    y = np.sin(6 * x[:, None]) * np.cos(3 * t)
    observations = Observations(np.repeat(x, 9)[:, None], np.tile(t, 8), y.ravel(), BOX)
    monkeypatch.setattr("fts.validation._HOUR", 1e-9)
    monkeypatch.setattr(
        "fts.kernel.separable.search_grid", lambda *_: pytest.fail("searched before it warned")
    )
    with pytest.raises(validation.LongRun, match="8 sensors x 9 frames"):
        closed_form.condition(observations, progress=False)


def test_a_training_on_many_samples_names_the_kernel(monkeypatch, rng):
    pytest.importorskip("torch")
    monkeypatch.setattr("fts.validation._HOUR", 1.0)
    monkeypatch.setattr("fts.adapter.projected.fit", lambda *_, **__: pytest.fail("trained before it warned"))
    with pytest.raises(validation.LongRun, match="take recipe 'kernel'"):
        fitting.make(_cloud(2000, rng), FieldParams("projected"))
