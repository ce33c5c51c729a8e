"""Crossing fields and selectors: every pair is what the method that owns it makes."""

from dataclasses import replace

import numpy as np
import pytest

from fts.baselines.crossed import CrossedParams, WeakRuleParams, crossed
from fts.baselines.regressions import PDEFindParams, WSINDyParams, pde_find, wsindy
from fts.baselines.spectral import SPECTRAL
from fts.baselines.stridge import STRidgeParams, StrongRegressionParams, WeakRegressionParams
from fts.domain import Domain
from fts.equations.terms import Library
from fts.observations import Observations
from fts.params.paper import PAPER
from fts.params.types import FieldParams, FreezeThenSelectParams, WeakParams, named
from fts.selection.selection import Selection
from fts.svws.select import freeze_then_compare, freeze_then_select

LIBRARY = Library.parse(["1", "u", "u^2", "u*u_x", "u_x", "u_xx"])
DOMAIN = Domain((0.0,), (2 * np.pi,), 0.0, 3.0, (True,))
WEAK = WeakParams(half_widths=(1.0, 0.4), patches=(10, 8), nodes=(30, 20), power=8)
STRONG = StrongRegressionParams((48, 40), 0.05, STRidgeParams(2.0, 1e-5, 20, 1e-8))
WEAKLY = WeakRegressionParams(WEAK, 0.05, STRidgeParams(0.2, 1e-5, 20, 1e-8))
RULE = WeakRuleParams(WEAK, replace(PAPER["ks"].svws, lam0=0.05))
KERNEL = FieldParams("kernel")
SELECTORS = {"strong STRidge": STRONG, "weak STRidge": WEAKLY, "single weak STLSQ": RULE, "SVWS": RULE}
FIELDS = {"spectral": (SPECTRAL, None), "kernel": (None, KERNEL)}


def observed() -> Observations:
    x, t = np.arange(40) * 2 * np.pi / 40, np.linspace(0.0, 3.0, 60)
    z = x[:, None] - 2 * t
    y = np.sin(z) + 0.5 * np.cos(2 * z) + 0.2 * np.sin(3 * z)
    return Observations(np.repeat(x, 60)[:, None], np.tile(t, 40), y.ravel(), DOMAIN)


def cross(field: str, selector: str) -> Selection:
    params = CrossedParams(*FIELDS[field], selector, SELECTORS[selector])  # pyright: ignore[reportArgumentType]
    return crossed(observed(), LIBRARY, params, np.random.default_rng(2))


@pytest.mark.parametrize("selector", SELECTORS)
@pytest.mark.parametrize("field", FIELDS)
def test_every_pair_finds_the_equation_of_the_waves(field, selector):
    selection = cross(field, selector)
    assert selection.support == ("u_x",)
    assert selection.coefficients["u_x"] == pytest.approx(-2, abs=0.02)
    assert selection.method == selector
    assert selection.field is not None
    assert selection.seconds.keys() == {"fit", "select"}


def test_the_pairs_of_pde_find_and_wsindy_are_these_methods():
    draws = np.random.default_rng(2)
    strong = pde_find(observed(), LIBRARY, PDEFindParams(SPECTRAL, STRONG), draws)
    weak = wsindy(observed(), LIBRARY, WSINDyParams(SPECTRAL, WEAKLY), draws)
    np.testing.assert_array_equal(cross("spectral", "strong STRidge").xi, strong.xi)
    np.testing.assert_array_equal(cross("spectral", "weak STRidge").xi, weak.xi)


def test_the_rule_and_its_single_threshold_are_those_of_our_method():
    params = FreezeThenSelectParams(KERNEL, WEAK, RULE.svws, "ridge")
    ours = freeze_then_select(observed(), LIBRARY, params, np.random.default_rng(2))
    every = freeze_then_compare(observed(), LIBRARY, params, np.random.default_rng(2)).variants
    np.testing.assert_array_equal(cross("kernel", "SVWS").xi, ours.xi)
    np.testing.assert_array_equal(cross("kernel", "single weak STLSQ").xi, every["stlsq 1"].xi)


def test_pairs_that_cannot_be_are_refused():
    rng = np.random.default_rng(2)
    for both in ((SPECTRAL, KERNEL), (None, None)):
        with pytest.raises(ValueError, match="either `spectral` or `field`"):
            crossed(observed(), LIBRARY, CrossedParams(*both, "SVWS", RULE), rng)
    with pytest.raises(ValueError, match="does not take StrongRegressionParams"):
        crossed(observed(), LIBRARY, CrossedParams(SPECTRAL, None, "SVWS", STRONG), rng)


@pytest.mark.parametrize("selector", SELECTORS)
def test_a_pair_is_recorded_by_names_that_stand_once(selector):
    adapter = FieldParams("paper", PAPER["ks"].adapter)
    for field in ((SPECTRAL, None), (None, adapter)):
        values = named(CrossedParams(*field, selector, SELECTORS[selector]))
        assert values["selector"] == selector
        assert ("penalty" in values) != ("recipe" in values)
