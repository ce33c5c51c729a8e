"""Fourier sums of scattered samples: by finufft, by NumPy, and term by term."""

import numpy as np
import pytest

import fts
from fts.kernel import fourier

CLOSE = 1e-12  # relative to the largest sum; the transforms are good to 1e-13 of all strengths


@pytest.fixture
def without_finufft(monkeypatch: pytest.MonkeyPatch) -> None:
    """A platform for which finufft has no build."""
    monkeypatch.setattr(fourier, "finufft", None)


def _angles(rng: np.random.Generator, count: int, axes: int) -> list[np.ndarray]:
    angles = [rng.uniform(-np.pi, np.pi, count) for _ in range(axes)]
    angles[0][:2] = -np.pi, np.pi  # where the circle closes
    return angles


@pytest.mark.parametrize(
    ("most", "count"), [((1,), 3), ((40,), 500), ((3, 30), 2000), ((8, 5, 11), 3000), ((2, 3, 1, 2), 50)]
)
def test_sums_by_numpy_are_those_of_finufft(most: tuple[int, ...], count: int, rng, monkeypatch) -> None:
    angles = _angles(rng, count, len(most))
    strengths = rng.standard_normal(count)
    shape = [2 * m + 1 for m in most]
    series = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    sums, values = fourier.fourier_sums(angles, strengths, most), fourier.evaluate_at_points(angles, series)
    monkeypatch.setattr(fourier, "finufft", None)
    np.testing.assert_allclose(
        fourier.fourier_sums(angles, strengths, most), sums, rtol=0, atol=CLOSE * np.abs(sums).max()
    )
    np.testing.assert_allclose(
        fourier.evaluate_at_points(angles, series), values, rtol=0, atol=CLOSE * np.abs(values).max()
    )


@pytest.mark.usefixtures("without_finufft")
def test_sums_by_numpy_are_those_term_by_term(rng: np.random.Generator) -> None:
    x, y = _angles(rng, 200, 2)
    strengths = rng.standard_normal(200)
    k, m = np.arange(-6, 7), np.arange(-4, 5)
    waves = np.exp(-1j * k[:, None] * x)[:, None] * np.exp(-1j * m[:, None] * y)[None]
    expected = waves @ strengths
    np.testing.assert_allclose(fourier.fourier_sums([x, y], strengths, (6, 4)), expected, atol=1e-11)
    series = rng.standard_normal((13, 9)) + 1j * rng.standard_normal((13, 9))
    values = np.einsum("km,kmn->n", series, np.conj(waves)).real
    np.testing.assert_allclose(fourier.evaluate_at_points([x, y], series), values, atol=1e-11)


def test_blocks_change_nothing(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    angles, strengths = _angles(rng, 300, 2), rng.standard_normal(300)
    monkeypatch.setattr(fourier, "finufft", None)
    whole = fourier.fourier_sums(angles, strengths, (9, 9))
    monkeypatch.setattr(fourier, "_SPREAD_AT_ONCE", 1)
    np.testing.assert_allclose(fourier.fourier_sums(angles, strengths, (9, 9)), whole, atol=1e-12)


def test_a_discovery_needs_no_finufft(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    x, t = rng.uniform(0, 2 * np.pi, 700), rng.uniform(0, 3, 700)
    u = np.exp(-0.1 * t) * np.sin(x - 0.5 * t) + 0.6 * np.exp(-0.4 * t) * np.cos(2 * (x - 0.5 * t))
    domain = fts.Domain((0.0,), (2 * np.pi,), 0.0, 3.0, (True,))
    observations = fts.Observations(x[:, None], t, u + 0.01 * rng.standard_normal(700), domain)
    terms = ["u", "u_x", "u_xx"]
    expected = fts.discover(observations, terms, progress=False)
    monkeypatch.setattr(fourier, "finufft", None)
    result = fts.discover(observations, terms, progress=False)
    assert result.selection is not None
    assert expected.selection is not None
    assert str(result) == str(expected)
    for name, value in expected.selection.coefficients.items():
        # Where the solves of the search stop, rounding decides about the last digits.
        assert result.selection.coefficients[name] == pytest.approx(value, rel=1e-6)
