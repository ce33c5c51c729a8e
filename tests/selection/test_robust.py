"""Refits over all systems: what reweighting survives, where it changes nothing, and who is preferred."""

from dataclasses import replace

import numpy as np
import pytest
from test_svws import LIBRARY, PARAMS, XI, systems

from fts.domain import Domain
from fts.fields.frozen import CallableField
from fts.params.types import WeakParams
from fts.selection import refits
from fts.svws import rule
from fts.weak import assembly, test_functions

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
    assert np.abs(refits.pooled(A, b, SUPPORT) - XI).max() > 0.5
    np.testing.assert_allclose(refits.tukey(A, b, SUPPORT), XI, atol=5e-3)


def test_on_gaussian_rows_both_agree_within_their_scatter():
    A, b = rows(bad=0.0)
    np.testing.assert_allclose(refits.tukey(A, b, SUPPORT), refits.pooled(A, b, SUPPORT), atol=5e-4)


def test_the_fit_is_a_fixed_point_of_its_own_weights():
    A, b = rows(bad=0.1)
    xi = refits.tukey(A, b, SUPPORT)
    root = np.sqrt(refits.biweights(A @ xi - b))
    np.testing.assert_allclose(refits.pooled(A * root[:, None], b * root, SUPPORT), xi, atol=1e-10)


def test_weights_are_tukeys():
    residual = np.array([-3.0, -1.0, 0.0, 1.0, 3.0])
    limit = 4.685 * 1.4826 * 1.0
    np.testing.assert_allclose(refits.biweights(residual), (1 - (residual / limit) ** 2) ** 2)
    far = refits.biweights(np.array([0.1, -0.1, 0.1, 100.0]))
    assert far[-1] == 0.0
    assert refits.biweights(np.array([0.0, 0.0, 0.0, 5.0])) is None, "half of the rows are met exactly"


def test_edges_have_outcomes():
    A, b = rows(noise=0.0)
    np.testing.assert_allclose(refits.tukey(A, b, SUPPORT), XI, rtol=1e-12)
    assert not refits.tukey(A, b, np.zeros(8, bool)).any()
    assert not refits.tukey(A, 0 * b, SUPPORT).any()
    assert refits.risk(A, 0 * b, XI) > 0
    assert refits.risk(A, b, XI) == pytest.approx(0, abs=1e-15)


def test_scale_equivariance():
    A, b = rows(bad=0.2)
    np.testing.assert_allclose(refits.tukey(A, 7 * b, SUPPORT), 7 * refits.tukey(A, b, SUPPORT), rtol=1e-9)
    assert refits.risk(A, 7 * b, 7 * XI) == pytest.approx(refits.risk(A, b, XI))


def _spoiled(system, seed: int):
    """The system with a tenth of its rows wrong, as where a field is badly reconstructed."""
    rng = np.random.default_rng(seed)
    b = system.b.copy()
    wrong = rng.choice(len(b), len(b) // 10, replace=False)
    b[wrong] += 0.5 * np.abs(b).max() * np.abs(rng.standard_normal(wrong.size))
    return replace(system, b=b)


def test_held_out_rows_prefer_the_robust_fit_where_rows_are_spoiled():
    made = [_spoiled(index, seed) for seed, index in enumerate(systems(noise=0.01))]
    selection = rule.select_from(made, PARAMS)
    assert selection.preferred == "robust"
    errors = {name: np.abs(refit.xi - XI).max() for name, refit in selection.refits.items()}
    assert errors["robust"] < 0.2 * errors["pooled"]
    assert selection.refits["robust"].risk < selection.refits["pooled"].risk
    np.testing.assert_array_equal(selection.xi, selection.refits["robust"].xi)


def test_the_papers_refit_stays_available():
    selection = rule.select_from(systems(), PARAMS)
    trace = selection.trace
    np.testing.assert_array_equal(selection.refits["ridge"].xi, trace.xi[trace.winner])
    ridge = selection.with_refit("ridge")
    assert ridge.coefficients == selection.ridge_coefficients
    assert ridge.support == selection.support


def _uneven(seed: int = 0):
    """Systems whose rows have Gaussian errors of known variances over four decades."""
    rng, made, variances = np.random.default_rng(seed), [], []
    for system in systems(noise=0.0):
        deviation = 0.002 * np.abs(system.b).mean() * 10 ** rng.uniform(-1, 1, len(system.b))
        made.append(replace(system, b=system.b + deviation * rng.standard_normal(len(system.b))))
        variances.append(deviation**2)
    return made, np.concatenate(variances)


def test_known_variances_make_the_best_linear_fit():
    made, variances = _uneven()
    plain, result = rule.select_from(made, PARAMS), rule.select_from(made, PARAMS, variances)
    assert result.support == plain.support == ("u*u_x", "u_xx", "u_xxxx")
    assert result.preferred.startswith("weighted")
    for name in ("ridge", "pooled", "robust"):
        np.testing.assert_array_equal(result.refits[name].xi, plain.refits[name].xi)
    A, b = refits.stack(made)
    floor = 1e-3 * np.median(variances)
    precision = np.diag(1 / (variances + floor))
    S = A[:, SUPPORT]
    expected = np.linalg.solve(S.T @ precision @ S, S.T @ precision @ b)
    np.testing.assert_allclose(result.refits["weighted pooled"].xi[SUPPORT], expected, rtol=1e-8)
    errors = {name: np.linalg.norm(refit.xi - XI) for name, refit in result.refits.items()}
    assert errors["weighted pooled"] < 0.3 * errors["pooled"]


def test_equal_variances_weigh_nothing():
    made = systems()
    count = sum(len(record) for record in made)
    selection = rule.select_from(made, PARAMS, np.full(count, 3.0))
    for name in ("pooled", "robust"):
        np.testing.assert_allclose(
            selection.refits[f"weighted {name}"].xi, selection.refits[name].xi, rtol=1e-9
        )
    assert set(rule.select_from(made, PARAMS, np.zeros(count)).refits) == {"ridge", "pooled", "robust"}


@pytest.mark.parametrize("variances", [np.ones(3), np.full(2400, -1.0)])
def test_variances_that_do_not_fit_the_rows_are_refused(variances):
    with pytest.raises(ValueError, match="give one, not negative"):
        rule.select_from(systems(), PARAMS, variances)


def test_a_rows_variance_is_the_fields_under_its_kernel():
    params = WeakParams((0.8, 0.2), (6, 5), (40, 40), 6)
    domain = Domain((0.0,), (2 * np.pi,), 0.0, 1.0, (True,))
    made = [
        assembly.assemble(CallableField(lambda x, t: x + t, domain), LIBRARY, params, np.array([0.3, 0.6]))
    ]
    flat = refits.row_variances(CallableField(lambda x, t: 2.0 + 0 * x * t, domain), params, made)
    mass = np.prod([test_functions.weights(h, 400, 6, 0).sum() for h in params.half_widths])
    np.testing.assert_allclose(flat, 2.0 * mass, rtol=1e-4)
    # Where the variance is affine, its mean under a symmetric kernel is its value at the center.
    slope = refits.row_variances(CallableField(lambda x, t: 1 + x + 0 * t, domain), params, made)
    np.testing.assert_allclose(slope, mass * (1 + made[0].centers[:, 0]), rtol=1e-4)
