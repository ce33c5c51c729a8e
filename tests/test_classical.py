"""Classical selectors on a frozen field: analytic derivatives, PySINDy's optimizers and weak library."""

from itertools import pairwise

import numpy as np
import pytest

from fts import classical, svws
from fts.domain import Domain
from fts.features import NetworkFeatures, SplineCoefficients
from fts.frozen import CallableField, FrozenField
from fts.params import PAPER, WeakParams
from fts.terms import Library

LIBRARY = Library.parse(["1", "u", "u^2", "u*u_x", "u_x", "u_xx"])
PARAMS = PAPER["ks"].svws
WEAK = WeakParams(half_widths=(1.0, 0.4), patches=(10, 8), nodes=(30, 20), power=8)
DOMAIN = Domain((0.0,), (2 * np.pi,), 0.0, 3.0, (True,))
# u_t = -2 u_x for each of the three waves.
WAVES = CallableField(
    lambda x, t: np.sin(x - 2 * t) + 0.5 * np.cos(2 * (x - 2 * t)) + 0.2 * np.sin(3 * (x - 2 * t)), DOMAIN
)


@pytest.fixture(scope="module")
def frozen() -> FrozenField:
    """A small network field with random weights; its derivatives are what is tested."""
    rng = np.random.default_rng(0)
    sizes = [8, 10, 4]
    weights = tuple(rng.standard_normal((a, b)) / np.sqrt(a) for a, b in pairwise(sizes))
    biases = tuple(rng.standard_normal(b) for b in sizes[1:])
    space = NetworkFeatures(rng.standard_normal((4, 1)), 1.0, weights, biases)
    time = SplineCoefficients(rng.standard_normal((3, 8)), np.zeros(8), (0.0, 3.0))
    return FrozenField(space, time, DOMAIN, {})


def test_the_strong_system_is_made_of_derivatives(frozen):
    points = classical.interior(frozen, 50, np.random.default_rng(1))
    A, b = classical.strong_system(frozen, LIBRARY, points)
    h = 1e-4
    dx, dt = np.array([h, 0]), np.array([0, h])
    u = frozen(points)
    u_x = (frozen(points + dx) - frozen(points - dx)) / (2 * h)
    u_xx = (frozen(points + dx) - 2 * u + frozen(points - dx)) / h**2
    expected = np.column_stack([np.ones(50), u, u**2, u * u_x, u_x, u_xx])
    np.testing.assert_allclose(A, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(b, (frozen(points + dt) - frozen(points - dt)) / (2 * h), rtol=1e-4, atol=1e-6)
    assert points[:, 0].min() > 0.1
    assert points[:, 1].max() < 2.95


def test_strong_selectors_return_selections(frozen):
    rng = np.random.default_rng(2)
    for found in (
        classical.select_strong(frozen, LIBRARY, PARAMS, rng, 300),
        classical.select_stridge(frozen, LIBRARY, rng, 300),
    ):
        assert found.method.startswith("strong ST")
        assert set(found.support) <= set(LIBRARY.names)


def test_pysindys_optimizers_select_on_our_systems():
    pysindy = pytest.importorskip("pysindy", reason="PySINDy is not installed (extra `peers`)")
    system = svws.build(WAVES, LIBRARY, WEAK, PARAMS)[0]
    for optimizer in (pysindy.STLSQ(threshold=0.2), pysindy.SSR(criteria="model_residual", kappa=1e-3)):
        found = classical.select_with(system.A, system.b, LIBRARY, optimizer)
        assert found.coefficients["u_x"] == pytest.approx(-2, abs=1e-2)
        assert found.method == type(optimizer).__name__


def test_pysindys_weak_library_on_a_field_agrees_with_ours():
    pysindy = pytest.importorskip("pysindy", reason="PySINDy is not installed (extra `peers`)")
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    A, b = classical.pysindy_weak_system(WAVES, LIBRARY, WEAK, (128, 96), seed=3)
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002
    again, _ = classical.pysindy_weak_system(WAVES, LIBRARY, WEAK, (128, 96), seed=3)
    np.testing.assert_array_equal(A, again)
    found = classical.select_with(A, b, LIBRARY, pysindy.STLSQ(threshold=0.2))
    assert found.support == ("u_x",)
    assert found.coefficients["u_x"] == pytest.approx(-2, abs=1e-3)
    with pytest.raises(ValueError, match="no column for"):
        classical.pysindy_weak_system(WAVES, Library.parse(["u", "D_xx(u^2)"]), WEAK, (64, 48), seed=3)
