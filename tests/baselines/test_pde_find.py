"""PDE-FIND: the rows are derivatives, the survivors those of sequential thresholding, the refit a ridge."""

from dataclasses import replace

import numpy as np
import pytest

from fts.baselines import stridge
from fts.baselines.regressions import PDE_FIND, PDEFindParams, pde_find
from fts.baselines.spectral import SPECTRAL, reconstruct
from fts.baselines.stridge import STRidgeParams, StrongRegressionParams
from fts.domain import Domain
from fts.equations.terms import Library
from fts.observations import Observations
from fts.params.types import named
from fts.selection.selection import Selection

LIBRARY = Library.parse(["1", "u", "u^2", "u*u_x", "u_x", "u_xx"])
DOMAIN = Domain((0.0,), (2 * np.pi,), 0.0, 3.0, (True,))
STRIDGE = STRidgeParams(threshold=2.0, ridge=1e-5, max_iterations=20, refit_ridge=1e-8)
PARAMS = PDEFindParams(SPECTRAL, StrongRegressionParams((48, 40), 0.05, STRIDGE))


def observed(domain: Domain = DOMAIN, stretch: float = 1.0) -> Observations:
    """u_t = -2 stretch u_x on a line `stretch` times as long, with one percent of noise."""
    x, t = np.arange(40) * 2 * np.pi / 40, np.linspace(0.0, 3.0, 60)
    z = x[:, None] - 2 * t
    y = np.sin(z) + 0.5 * np.cos(2 * z) + 0.2 * np.sin(3 * z)
    y += 0.01 * np.random.default_rng(7).standard_normal(y.shape)
    return Observations(np.repeat(stretch * x, 60)[:, None], np.tile(t, 40), y.ravel(), domain)


def find(params: PDEFindParams = PARAMS, library: Library = LIBRARY, seed: int = 2) -> Selection:
    return pde_find(observed(), library, params, np.random.default_rng(seed))


def with_stridge(**changes: float) -> PDEFindParams:
    regression = replace(PARAMS.regression, stridge=replace(STRIDGE, **changes))
    return replace(PARAMS, regression=regression)


def test_the_equation_of_the_waves_is_found():
    selection = find()
    assert selection.support == ("u_x",)
    assert selection.coefficients["u_x"] == pytest.approx(-2, abs=0.02)
    assert selection.method == "PDE-FIND"
    assert selection.seconds.keys() == {"fit", "select"}
    assert selection.field is not None


def test_nothing_is_drawn_and_the_order_of_the_library_does_not_matter():
    np.testing.assert_array_equal(find(seed=2).xi, find(seed=3).xi)
    turned = Library(tuple(reversed(LIBRARY.terms)))
    loose = with_stridge(threshold=0.005)
    assert len(find(loose).support) > 1
    assert find(loose, turned).coefficients == pytest.approx(find(loose).coefficients, rel=1e-6)


def test_everything_below_the_tolerance_is_an_empty_equation():
    selection = find(with_stridge(threshold=1e6))
    assert selection.support == ()
    assert str(selection.equation) == "u_t = 0"


def test_the_rows_are_derivatives_on_the_inner_grid():
    field = reconstruct(observed(), SPECTRAL)
    A, b = stridge.strong_rows(field, LIBRARY, PARAMS.regression)
    x, t = stridge.inner_axes(DOMAIN, (48, 40), 0.05)
    np.testing.assert_allclose(x, np.arange(48) * 2 * np.pi / 48)
    assert t[[0, -1]] == pytest.approx([0.15, 2.85])
    points = np.stack(np.meshgrid(x, t, indexing="ij"), axis=-1).reshape(-1, 2)
    u, u_x, u_xx = (field.derivative(points, (k,)) for k in range(3))
    np.testing.assert_allclose(A, np.column_stack([np.ones(1920), u, u**2, u * u_x, u_x, u_xx]), atol=1e-9)
    np.testing.assert_allclose(b, field.derivative(points, (0,), 1), atol=1e-9)


def test_survivors_and_coefficients_are_those_of_a_plain_implementation():
    field = reconstruct(observed(), SPECTRAL)
    params = with_stridge(threshold=0.02, refit_ridge=1e-2).regression
    A, b = stridge.strong_rows(field, LIBRARY, params)
    lengths = np.linalg.norm(A, axis=0)
    unit, kept = A / lengths, np.ones(6, dtype=bool)
    while True:
        w = np.zeros(6)
        w[kept] = np.linalg.solve(
            unit[:, kept].T @ unit[:, kept] + 1e-5 * np.eye(kept.sum()), unit[:, kept].T @ b
        )
        if (kept == (np.abs(w) >= 0.02)).all():
            break
        kept = np.abs(w) >= 0.02
    assert 0 < kept.sum() < 6
    gram = unit[:, kept].T @ unit[:, kept] + 1e-2 * np.eye(kept.sum())
    expected = np.linalg.solve(gram, unit[:, kept].T @ b) / lengths[kept]
    selection = stridge.select_strong(field, LIBRARY, params)
    np.testing.assert_array_equal(selection.xi != 0, kept)
    np.testing.assert_allclose(selection.xi[kept], expected, rtol=1e-6)


@pytest.mark.parametrize("threshold", [0.002, 0.005, 0.05, 5.0])
def test_survivors_are_those_of_pysindys_stlsq(threshold):
    pysindy = pytest.importorskip("pysindy", reason="PySINDy is not installed (extra `peers`)")
    A, b = stridge.strong_rows(reconstruct(observed(), SPECTRAL), LIBRARY, PARAMS.regression)
    optimizer = pysindy.STLSQ(threshold=threshold, alpha=1e-5, normalize_columns=True, unbias=False)
    theirs = np.ravel(optimizer.fit(A, b[:, None]).coef_)
    kept = stridge.survivors(A, b, replace(STRIDGE, threshold=threshold))
    np.testing.assert_array_equal(kept, theirs != 0)


def test_the_unit_of_length_does_not_matter():
    # Columns have unit length whatever the unit of x, so the tolerance need not change with it.
    loose = with_stridge(threshold=0.005)
    selection = find(loose)
    assert len(selection.support) > 1
    long = Domain((0.0,), (20 * np.pi,), 0.0, 3.0, (True,))
    ten = pde_find(observed(long, 10.0), LIBRARY, loose, np.random.default_rng(2))
    powers = np.array([0, 0, 0, 1, 1, 2])
    np.testing.assert_allclose(ten.xi, selection.xi * 10.0**powers, rtol=1e-6)


def test_impossible_rows_are_refused():
    with pytest.raises(ValueError, match="give two or more for each of 1 spatial axes and time"):
        stridge.inner_axes(DOMAIN, (48,), 0.05)
    with pytest.raises(ValueError, match="less than half"):
        stridge.inner_domain(DOMAIN, 0.5)


def test_there_is_one_configuration_per_problem():
    assert PDE_FIND.keys() == {"kdv", "ks", "ad"}
    assert all(named(params)["penalty"] == 1e-3 for params in PDE_FIND.values())
    rows = {name: int(np.prod(params.regression.grid)) for name, params in PDE_FIND.items()}
    assert all(20_000 < count < 30_000 for count in rows.values())
