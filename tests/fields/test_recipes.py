"""The one door to fields: what ships is taken only when it is the field that was asked for."""

from dataclasses import replace

import numpy as np
import pytest

from fts import fitting
from fts.fields import frozen
from fts.fields.frozen import History, Provenance, field_path, load, load_field
from fts.params.paper import PAPER
from fts.params.types import FieldParams, changed
from fts.problems.trajectories import observe, simulate

KERNEL = FieldParams("kernel")
ADAPTER = FieldParams("paper", PAPER["ks"].adapter)


@pytest.fixture(scope="module")
def observations():
    return observe(simulate("ks"), "S20", seed=1301)


def test_a_shipped_field_is_taken(observations):
    for params in (KERNEL, ADAPTER):
        field = fitting.shipped_field(observations, params)
        assert field is not None
        assert field.made.recipe == params.recipe
        assert field.made.seconds > 0
        assert field.made.device == "cpu"


def test_a_field_of_an_older_recipe_or_of_other_settings_is_not(observations, monkeypatch):
    assert fitting.shipped_field(replace(observations, noise=0.3), ADAPTER) is None
    assert fitting.shipped_field(replace(observations, problem=None), ADAPTER) is None
    other = FieldParams("paper", changed(PAPER["ks"].adapter, rank=23))
    assert fitting.shipped_field(observations, other) is None
    monkeypatch.setitem(frozen.RECIPE_VERSIONS, "kernel", 2)
    assert fitting.shipped_field(observations, KERNEL) is None
    assert fitting.shipped_field(observations, ADAPTER) is not None


def test_what_is_not_shipped_is_made_once(tmp_path, monkeypatch, observations):
    monkeypatch.setattr(fitting.platformdirs, "user_cache_dir", lambda name: tmp_path)
    monkeypatch.setenv("FTS_FIELDS", str(tmp_path / "none"))
    made = []

    def make(samples, params):
        made.append(params)
        return load_field_before

    load_field_before = load(field_path_before)
    monkeypatch.setattr(fitting, "make", make)
    first, again = (fitting.obtain(observations, ADAPTER) for _ in range(2))
    assert made == [ADAPTER]
    axes = np.linspace(0, 100, 7), np.linspace(0, 100, 5)
    np.testing.assert_array_equal(first.on_grid(*axes), again.on_grid(*axes))
    for damaged in (tmp_path / "fields").glob("*.fts"):
        damaged.write_bytes(damaged.read_bytes()[:-8])
    fitting.obtain(observations, ADAPTER)
    assert made == [ADAPTER] * 2, "a damaged file is made again"


field_path_before = field_path("ks", "S20", 1301)


def test_keys_follow_samples_settings_and_version(observations, monkeypatch):
    key = fitting.field_key(observations, ADAPTER)
    assert key == fitting.field_key(observations, ADAPTER)
    others = {
        fitting.field_key(replace(observations, y=observations.y + 1e-12), ADAPTER),
        fitting.field_key(observations, FieldParams("paper", changed(PAPER["ks"].adapter, width=65))),
        fitting.field_key(observations, KERNEL),
    }
    monkeypatch.setitem(frozen.RECIPE_VERSIONS, "paper", 2)
    others.add(fitting.field_key(observations, ADAPTER))
    assert len(others | {key}) == 5


def test_provenance_survives_its_json_form():
    made = Provenance(
        "paper", 1, {"rank": 3}, "ks", "S20", 1, 0.1, 2.5, "cpu", History(9, 8, 0.1, ((0, 1.0),))
    )
    assert Provenance.from_dict(made.as_dict()) == made
    assert Provenance.from_dict(Provenance().as_dict()) == Provenance()
    assert load_field("ks", recipe="kernel").made.history is None


@pytest.mark.parametrize(("problem", "protocol"), [("ks", "S20"), ("ad", "T20"), ("kdv", "R20")])
def test_residuals_are_those_point_by_point(problem, protocol):
    samples = observe(simulate(problem), protocol, seed=1301, noise=0.1)
    shuffled = np.random.default_rng(1).permutation(len(samples))
    samples = replace(samples, x=samples.x[shuffled], t=samples.t[shuffled], y=samples.y[shuffled])
    fit = fitting.fit_posterior(samples, progress=False)
    expected = samples.y - fit.field(np.column_stack([samples.x, samples.t]))
    np.testing.assert_allclose(fit.residuals, expected, rtol=0, atol=1e-10)
