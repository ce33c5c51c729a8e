"""Refits over all systems: what reweighting survives, where it changes nothing, and who is preferred."""

from dataclasses import replace

import numpy as np
import pytest
from test_svws import PARAMS, XI, systems

from fts import robust, svws

SUPPORT = XI != 0


def rows(seed: int = 0, bad: float = 0.0, noise: float = 0.01) -> tuple[np.ndarray, np.ndarray]:
    """A planted system in which the fraction `bad` of the rows is wrong by far."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((600, 8))
    b = A @ XI + noise * rng.standard_normal(600)
    wrong = rng.choice(600, int(600 * bad), replace=False)
    b[wrong] += rng.uniform(5, 20, wrong.size) * A[wrong, 4]
    return A, b


def test_outliers_move_the_pooled_fit_and_not_the_robust_one():
    A, b = rows(bad=0.2)
    assert np.abs(robust.pooled(A, b, SUPPORT) - XI).max() > 0.5
    np.testing.assert_allclose(robust.tukey(A, b, SUPPORT), XI, atol=5e-3)


def test_on_gaussian_rows_both_agree_within_their_scatter():
    A, b = rows(bad=0.0)
    np.testing.assert_allclose(robust.tukey(A, b, SUPPORT), robust.pooled(A, b, SUPPORT), atol=5e-4)


def test_the_fit_is_a_fixed_point_of_its_own_weights():
    A, b = rows(bad=0.1)
    xi = robust.tukey(A, b, SUPPORT)
    root = np.sqrt(robust.biweights(A @ xi - b))
    np.testing.assert_allclose(robust.pooled(A * root[:, None], b * root, SUPPORT), xi, atol=1e-10)


def test_weights_are_tukeys():
    residual = np.array([-3.0, -1.0, 0.0, 1.0, 3.0])
    limit = 4.685 * 1.4826 * 1.0
    np.testing.assert_allclose(robust.biweights(residual), (1 - (residual / limit) ** 2) ** 2)
    far = robust.biweights(np.array([0.1, -0.1, 0.1, 100.0]))
    assert far[-1] == 0.0
    assert robust.biweights(np.array([0.0, 0.0, 0.0, 5.0])) is None, "half of the rows are met exactly"


def test_edges_have_outcomes():
    A, b = rows(noise=0.0)
    np.testing.assert_allclose(robust.tukey(A, b, SUPPORT), XI, rtol=1e-12)
    assert not robust.tukey(A, b, np.zeros(8, bool)).any()
    assert not robust.tukey(A, 0 * b, SUPPORT).any()
    assert robust.risk(A, 0 * b, XI) > 0
    assert robust.risk(A, b, XI) == pytest.approx(0, abs=1e-15)


def test_scale_equivariance():
    A, b = rows(bad=0.2)
    np.testing.assert_allclose(robust.tukey(A, 7 * b, SUPPORT), 7 * robust.tukey(A, b, SUPPORT), rtol=1e-9)
    assert robust.risk(A, 7 * b, 7 * XI) == pytest.approx(robust.risk(A, b, XI))


def _spoiled(one, seed: int):
    """The system with a tenth of its rows wrong, as where a field is badly reconstructed."""
    rng = np.random.default_rng(seed)
    b = one.b.copy()
    wrong = rng.choice(len(b), len(b) // 10, replace=False)
    b[wrong] += 0.5 * np.abs(b).max() * np.abs(rng.standard_normal(wrong.size))
    return replace(one, b=b)


def test_held_out_rows_prefer_the_robust_fit_where_rows_are_spoiled():
    made = [_spoiled(one, seed) for seed, one in enumerate(systems(noise=0.01))]
    found = svws.select_from(made, PARAMS)
    assert found.preferred == "robust"
    errors = {name: np.abs(refit.xi - XI).max() for name, refit in found.refits.items()}
    assert errors["robust"] < 0.2 * errors["pooled"]
    assert found.refits["robust"].risk < found.refits["pooled"].risk
    np.testing.assert_array_equal(found.xi, found.refits["robust"].xi)


def test_the_papers_refit_stays_available():
    found = svws.select_from(systems(), PARAMS)
    trace = found.trace
    np.testing.assert_array_equal(found.refits["ridge"].xi, trace.xi[trace.winner])
    ridge = found.with_refit("ridge")
    assert ridge.coefficients == found.ridge_coefficients
    assert ridge.support == found.support
