"""WSINDy: support from one weak system, coefficients from another, both on plain integrals."""

from dataclasses import replace

import numpy as np
import pytest
from test_pde_find import DOMAIN, LIBRARY, observed

from fts.baselines import stridge
from fts.baselines.regressions import WSINDY, WSINDyParams, wsindy
from fts.baselines.spectral import SPECTRAL, reconstruct
from fts.baselines.stridge import STRidgeParams, WeakRegressionParams
from fts.domain import Domain
from fts.equations.terms import Library
from fts.params.types import WeakParams, named
from fts.selection import sparse
from fts.selection.selection import Selection
from fts.weak.assembly import assemble
from fts.weak.test_functions import patch_centers, phases

WEAK = WeakParams(half_widths=(1.0, 0.4), patches=(10, 8), nodes=(30, 20), power=8)
STRIDGE = STRidgeParams(threshold=0.2, ridge=1e-5, max_iterations=20, refit_ridge=1e-8)
PARAMS = WSINDyParams(SPECTRAL, WeakRegressionParams(WEAK, 0.05, STRIDGE))


def find(params: WSINDyParams = PARAMS, library: Library = LIBRARY, seed: int = 2) -> Selection:
    return wsindy(observed(), library, params, np.random.default_rng(seed))


def with_threshold(threshold: float) -> WSINDyParams:
    return replace(
        PARAMS, regression=replace(PARAMS.regression, stridge=replace(STRIDGE, threshold=threshold))
    )


def test_the_equation_of_the_waves_is_found():
    selection = find()
    assert selection.support == ("u_x",)
    assert selection.coefficients["u_x"] == pytest.approx(-2, abs=5e-3)
    assert selection.method == "WSINDy"
    assert selection.seconds.keys() == {"fit", "select"}
    assert selection.field is not None


def test_the_phases_are_all_that_is_drawn():
    np.testing.assert_array_equal(find(seed=2).xi, find(seed=2).xi)
    assert find(seed=2).coefficients["u_x"] != find(seed=3).coefficients["u_x"]


def test_the_order_of_the_library_does_not_matter():
    turned = Library(tuple(reversed(LIBRARY.terms)))
    loose = with_threshold(1e-4)
    assert len(find(loose).support) > 1
    assert find(loose, turned).coefficients == pytest.approx(find(loose).coefficients, rel=1e-6)


def test_everything_below_the_tolerance_is_an_empty_equation():
    selection = find(with_threshold(1e6))
    assert selection.support == ()
    assert str(selection.equation) == "u_t = 0"


def test_support_and_coefficients_come_from_two_systems():
    field = reconstruct(observed(), SPECTRAL)
    inner = replace(field, domain=stridge.inner_domain(DOMAIN, 0.05))
    first, second = (assemble(inner, LIBRARY, WEAK, p) for p in phases(np.random.default_rng(2), 2, 1))
    kept = stridge.survivors(first.A, first.b, STRIDGE)
    selection = find()
    np.testing.assert_array_equal(selection.xi, sparse.refit(second.A, second.b, kept, 1e-8))
    assert selection.xi[4] != pytest.approx(sparse.refit(first.A, first.b, kept, 1e-8)[4], rel=1e-9)


def test_patches_keep_clear_of_the_ends_of_time():
    inner = stridge.inner_domain(DOMAIN, 0.05)
    for phase in (np.zeros(2), np.full(2, 0.999)):
        _, t = patch_centers(inner, WEAK, phase)
        assert t.min() - 0.4 >= 0.15 - 1e-12
        assert t.max() + 0.4 <= 2.85 + 1e-12
    assert (inner.low, inner.high) == (DOMAIN.low, DOMAIN.high)
    plane = stridge.inner_domain(Domain((-5.0, 0.0), (5.0, 1.0), 0.0, 6.0, (False, True)), 0.1)
    assert (plane.low, plane.high) == ((-4.0, 0.0), (4.0, 1.0))
    assert (plane.t0, plane.t1) == pytest.approx((0.6, 5.4))


def test_plain_integrals_scale_the_tolerance_with_the_patch():
    # Ten times the length makes every integral, and every coefficient of a unit column, ten times larger.
    selection = find(with_threshold(1e-4))
    assert len(selection.support) > 1
    long = Domain((0.0,), (20 * np.pi,), 0.0, 3.0, (True,))
    wide = with_threshold(1e-3)
    regression = replace(wide.regression, weak=replace(WEAK, half_widths=(10.0, 0.4)))
    ten = wsindy(
        observed(long, 10.0), LIBRARY, replace(wide, regression=regression), np.random.default_rng(2)
    )
    np.testing.assert_allclose(ten.xi, selection.xi * 10.0 ** np.array([0, 0, 0, 1, 1, 2]), rtol=1e-6)


def test_there_is_one_configuration_per_problem():
    assert WSINDY.keys() == {"kdv", "ks", "ad"}
    for params in WSINDY.values():
        assert named(params)["refit_ridge"] == 1e-4
        assert np.prod(params.regression.weak.patches) in (300, 320)
