"""The kernels the selectors share: STLSQ against a naive one and PySINDy's, invariances, defined outcomes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fts.selection import sparse


def planted(seed: int, m: int = 60, J: int = 8, terms: int = 3, noise: float = 0.0):
    """A well-conditioned system with columns of very different size and a sparse planted solution."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, J)) * 10.0 ** rng.uniform(-3, 3, J)
    xi = np.zeros(J)
    chosen = rng.choice(J, terms, replace=False)
    xi[chosen] = rng.choice([-1, 1], terms) * rng.uniform(1, 3, terms) / np.linalg.norm(A[:, chosen], axis=0)
    return A, A @ xi + noise * rng.standard_normal(m), xi


def naive_stlsq(A, b, threshold, ridge, max_iterations):
    """STLSQ written with augmented rows and no Gram matrix."""
    unit = A / np.linalg.norm(A, axis=0)
    active = list(range(A.shape[1]))
    x = np.zeros(A.shape[1])
    for _ in range(max_iterations + 1):
        x[:] = 0
        if active:
            rows = np.vstack([unit[:, active], np.sqrt(ridge) * np.eye(len(active))])
            x[active] = np.linalg.lstsq(rows, np.append(b, np.zeros(len(active))), rcond=None)[0]
        kept = [j for j in active if abs(x[j]) >= threshold]
        if kept == active:
            break
        active = kept
    return x


@given(seed=st.integers(0, 10_000), threshold=st.floats(0.05, 2.0), noise=st.floats(0, 0.3))
@settings(deadline=None, max_examples=60)
def test_stlsq_is_the_naive_algorithm(seed, threshold, noise):
    A, b, _ = planted(seed, noise=noise)
    expected = naive_stlsq(A, b, threshold, 1e-4, 20)
    x = sparse.stlsq(sparse.normalize(A, b), threshold, 1e-4, 20)
    assert ((x != 0) == (expected != 0)).all()
    np.testing.assert_allclose(x, expected, atol=1e-10)


@pytest.mark.parametrize("seed", range(6))
def test_stlsq_agrees_with_pysindy(seed):
    pysindy = pytest.importorskip("pysindy", reason="PySINDy is not installed (extra `peers`)")
    A, b, _ = planted(seed, noise=0.2)
    optimizer = pysindy.STLSQ(threshold=0.4, alpha=1e-4, max_iter=20, normalize_columns=True, unbias=False)
    optimizer.fit(A, b[:, None])
    ours = sparse.stlsq(sparse.normalize(A, b), 0.4, 1e-4, 20)
    theirs = np.ravel(optimizer.coef_) * np.linalg.norm(A, axis=0)
    assert ((ours != 0) == (theirs != 0)).all()
    np.testing.assert_allclose(ours, theirs, atol=1e-8)


@given(seed=st.integers(0, 1000), data=st.data())
@settings(deadline=None, max_examples=40)
def test_support_ignores_column_scale_and_row_order(seed, data):
    A, b, _ = planted(seed, noise=0.1)
    scales = np.array(data.draw(st.lists(st.floats(1e-8, 1e8), min_size=8, max_size=8)))
    rows = np.random.default_rng(seed).permutation(len(b))
    before = sparse.normalize(A, b)
    after = sparse.normalize((A * scales)[rows], b[rows])
    x, y = sparse.stlsq(before, 0.4, 1e-4, 20), sparse.stlsq(after, 0.4, 1e-4, 20)
    assert ((x != 0) == (y != 0)).all()
    np.testing.assert_allclose(before.physical(x), after.physical(y) * scales, rtol=1e-6)


def test_a_planted_support_is_found_and_refit_exactly():
    A, b, xi = planted(3)
    support = sparse.stlsq(sparse.normalize(A, b), 0.4, 1e-4, 20) != 0
    assert (support == (xi != 0)).all()
    np.testing.assert_allclose(sparse.refit(A, b, support, 0.0), xi, rtol=1e-12)
    np.testing.assert_allclose(sparse.refit(A, b, support, 1e-4), xi, rtol=1e-3, atol=1e-3 * np.abs(xi).max())


def test_ridge_refit_solves_its_own_normal_equations():
    A, b, _ = planted(4, noise=0.5)
    support = np.array([True, False] * 4)
    D = np.linalg.norm(A, axis=0)[support]
    unit = A[:, support] / D
    expected = np.linalg.solve(unit.T @ unit + 1e-4 * np.eye(4), unit.T @ b) / D
    np.testing.assert_allclose(sparse.refit(A, b, support, 1e-4)[support], expected, rtol=1e-10)


def test_an_ill_conditioned_gram_keeps_its_digits():
    rng = np.random.default_rng(0)
    first = rng.standard_normal(200)
    A = np.column_stack([first, first + 1e-7 * rng.standard_normal(200)])
    b = A @ np.array([2.0, -1.0])
    got = sparse.refit(A, b, np.array([True, True]), 0.0)
    # cond(A) is 1e7: QR leaves an error near 1e-9, normal equations (cond 1e14) could not be trusted at 1e-3.
    np.testing.assert_allclose(got, [2.0, -1.0], rtol=1e-7)


def test_defined_outcomes():
    A, b, _ = planted(5)
    system = sparse.normalize(A, b)
    everything, nothing = np.ones(8, bool), np.zeros(8, bool)
    assert not sparse.solve(system, nothing, 1e-4).any()
    assert not sparse.stlsq(system, 1e9, 1e-4, 20).any(), (
        "a threshold above all coefficients leaves the empty support"
    )
    assert not sparse.stlsq(sparse.normalize(A, 0 * b), 0.4, 1e-4, 20).any()
    assert not sparse.stlsq(sparse.normalize(A, 0 * b), 0.0, 1e-4, 20).any()
    A[:, 2] = 0.0
    x = sparse.stlsq(sparse.normalize(A, b), 0.0, 1e-4, 20)
    assert x[2] == 0
    assert np.isfinite(sparse.refit(A, b, everything, 0.0)).all()
    twin = np.column_stack([A[:, 0], A[:, 0]])
    for ridge in (0.0, 1e-4):
        pair = sparse.refit(twin, 3 * A[:, 0], np.array([True, True]), ridge)
        np.testing.assert_allclose(pair, 1.5, rtol=1e-3)


def test_entries_that_are_not_finite_are_refused():
    A, b, _ = planted(6)
    A[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"A\[3, 1\] is nan"):
        sparse.normalize(A, b)
    with pytest.raises(ValueError, match="same number of rows"):
        sparse.normalize(A[:0], b[:0])
    with pytest.raises(ValueError, match="threshold -1"):
        sparse.stlsq(sparse.normalize(*planted(6)[:2]), -1.0, 1e-4, 20)


def test_stridge_unbiases_and_its_search_finds_the_plant():
    A, b, xi = planted(7, m=200, noise=1e-3)
    system = sparse.normalize(A, b)
    direct = system.physical(sparse.stridge(system, 0.4, 1e-3, 10))
    searched = system.physical(sparse.train_stridge(system, 1e-5, 0.05, 25, np.random.default_rng(0)))
    for entry in (direct, searched):
        assert ((entry != 0) == (xi != 0)).all()
        np.testing.assert_allclose(entry, xi, rtol=5e-3)
