"""Kernels, bases and series: positivity, periodicity, transforms and derivatives."""

import numpy as np
import pytest
from numpy.polynomial import chebyshev

from fts.fields.series import Basis, SeriesCoefficients, SeriesFeatures
from fts.kernel.covariance import FAMILIES, Kernel, distance

FOURIER = Basis(-1.0, 3.0, True, 15)
CHEBYSHEV = Basis(-1.0, 3.0, False, 14)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("period", [None, 2.5])
def test_kernel_matrices_are_positive(family: str, period: float | None) -> None:
    x = np.sort(np.random.default_rng(3).uniform(0, 2.5, 40))
    matrix = FAMILIES[family].covariance(distance(x, x, period) / 0.3)
    assert np.allclose(np.diag(matrix), 1)
    assert np.linalg.eigvalsh(matrix).min() > -1e-13


def test_kernels_are_unit_length_scale_at_the_origin() -> None:
    r = np.array([1e-3])
    for family in FAMILIES.values():
        # k(r) = 1 - r^2 / 2 + O(r^4): length scales of the families mean the same thing
        assert family.covariance(r)[0] == pytest.approx(1 - r[0] ** 2 / 2, abs=1e-12)


def test_distance_closes_on_itself() -> None:
    a = np.array([0.1, 0.2])
    assert np.allclose(distance(a, a + 2.0, 2.0), distance(a, a, 2.0), atol=1e-15)
    # the chord agrees with the arc for small separations
    assert distance(np.array([0.0]), np.array([1.99]), 2.0)[0, 0] == pytest.approx(0.01, rel=1e-4)


def test_unknown_family_is_refused() -> None:
    with pytest.raises(ValueError, match=r"unknown kernel family 'matern': choose one of \('gaussian', 'rat"):
        Kernel("matern", (1.0,))


@pytest.mark.parametrize("basis", [FOURIER, CHEBYSHEV], ids=["fourier", "chebyshev"])
def test_transform_inverts_evaluation(basis: Basis) -> None:
    coefficients = np.random.default_rng(1).standard_normal((basis.size, 3))
    values = basis.at(basis.nodes, 0) @ coefficients
    assert np.allclose(basis.transform(values), coefficients, atol=1e-13)


def test_chebyshev_basis_is_numpys() -> None:
    x = np.linspace(-1, 3, 9)
    assert np.allclose(CHEBYSHEV.at(x, 0), chebyshev.chebvander((x - 1) / 2, 13))


@pytest.mark.parametrize("basis", [FOURIER, CHEBYSHEV], ids=["fourier", "chebyshev"])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_derivatives_agree_with_differences_of_the_order_below(basis: Basis, order: int) -> None:
    x, h = np.linspace(-0.9, 2.9, 11), 1e-3
    # eighth-order central difference of the derivative one order lower
    weights = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
    difference = sum(
        w * (basis.at(x + k * h, order - 1) - basis.at(x - k * h, order - 1)) for k, w in weights.items()
    )
    exact = basis.at(x, order)
    assert np.allclose(exact, difference / h, rtol=1e-9, atol=1e-9 * np.abs(exact).max())


def test_high_derivatives_of_a_short_polynomial_vanish() -> None:
    assert not Basis(0.0, 1.0, False, 3).at(np.linspace(0, 1, 5), 3).any()


def test_fourier_basis_is_periodic() -> None:
    x = np.linspace(-1, 3, 7)
    for order in range(5):
        assert np.allclose(FOURIER.at(x, order), FOURIER.at(x + 4.0, order), atol=1e-9)


def test_rounding_outside_an_interval_belongs_to_its_end() -> None:
    assert np.array_equal(CHEBYSHEV.at(np.array([3 + 1e-12]), 0), CHEBYSHEV.at(np.array([3.0]), 0))


@pytest.mark.parametrize("size", [0, 4])
def test_impossible_sizes_are_refused(size: int) -> None:
    with pytest.raises(ValueError, match="odd number"):
        Basis(0.0, 1.0, True, size)


def test_features_on_axes_are_features_at_the_points_of_the_grid() -> None:
    rng = np.random.default_rng(5)
    features = SeriesFeatures((FOURIER, CHEBYSHEV), rng.standard_normal((15 * 14, 4)))
    x, y = rng.uniform(-1, 3, 50), rng.uniform(-1, 3, 60)
    points = np.stack(np.meshgrid(x, y, indexing="ij"), -1).reshape(-1, 2)
    for alpha in ((0, 0), (1, 2), (4, 0), (0, 4), (2, 2)):
        grid = features.on_axes((x, y), alpha)
        assert np.allclose(features.at(points, alpha), grid, atol=1e-12 * np.abs(grid).max())
    assert (features.dimension, features.rank) == (2, 3)


def test_mixed_derivative_of_a_known_field() -> None:
    bases = (Basis(0.0, 2 * np.pi, True, 21), Basis(-1.0, 1.0, False, 24))
    x, y = (basis.nodes for basis in bases)
    values = np.exp(np.sin(x))[:, None] * np.sin(3 * y)
    coefficients = bases[1].transform(bases[0].transform(values).T).T
    features = SeriesFeatures(bases, coefficients.reshape(-1, 1))
    points = np.random.default_rng(2).uniform(-0.9, 0.9, (30, 2)) + np.array([3.0, 0.0])
    s, c = np.sin(points[:, 0]), np.cos(points[:, 0])
    exact = (c**2 - s) * np.exp(s) * -9 * np.sin(3 * points[:, 1])
    assert np.allclose(features.at(points, (2, 2))[:, 0], exact, atol=1e-6)


def test_coefficient_count_must_match_the_bases() -> None:
    with pytest.raises(ValueError, match="for bases of sizes"):
        SeriesFeatures((FOURIER,), np.zeros((14, 2)))


def test_first_temporal_row_is_the_constant_one() -> None:
    time = SeriesCoefficients(CHEBYSHEV, np.ones((14, 2)))
    t = np.linspace(-1, 3, 5)
    assert np.array_equal(time.at(t, 0)[0], np.ones(5))
    assert not time.at(t, 1)[0].any()
    assert time.at(t, 2).shape == (3, 5)


def test_arrays_restore_both_halves() -> None:
    rng = np.random.default_rng(8)
    features = SeriesFeatures((FOURIER, CHEBYSHEV), rng.standard_normal((210, 3)).astype(np.float32))
    time = SeriesCoefficients(CHEBYSHEV, rng.standard_normal((14, 2)).astype(np.float32))
    points, t = rng.uniform(-1, 3, (9, 2)), rng.uniform(-1, 3, 9)
    again = SeriesFeatures.from_arrays(features.arrays())
    assert again.bases == features.bases
    assert np.array_equal(again.at(points, (1, 0)), features.at(points, (1, 0)))
    assert np.array_equal(SeriesCoefficients.from_arrays(time.arrays()).at(t, 2), time.at(t, 2))
