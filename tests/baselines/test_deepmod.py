"""DeepMoD: its gradient, schedule, read-out and lasso; watched, interrupted, resumed; beside the release."""

import importlib.util
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fts.baselines.deepmod import DEEPMOD, DeepMoDParams
from fts.baselines.training import taylor
from fts.baselines.training.deepmod import DeepMoDTraining, deepmod, lasso_cv, lasso_path
from fts.baselines.training.deepymod_reference import deepymod_reference
from fts.domain import Domain
from fts.equations.terms import Library
from fts.methods import method
from fts.observations import Observations
from fts.selection.selection import Selection

LIBRARY = Library.parse(["1", "u", "u_x", "u*u_x", "u_xx"])
SMALL = replace(DEEPMOD["kdv"], width=8, depth=2, samples=200, max_iterations=150)


def _heat(n: int = 240, seed: int = 0) -> Observations:
    """Two decaying waves: u_t = u_xx."""
    rng = np.random.default_rng(seed)
    x, t = rng.uniform(0, 2 * np.pi, n), rng.uniform(0, 1, n)
    y = np.exp(-t) * np.sin(x) + 0.7 * np.exp(-4 * t) * np.cos(2 * x)
    return Observations(x[:, None], t, y, Domain((0.0,), (2 * np.pi,), 0.0, 1.0, (True,)))


def _rng() -> np.random.Generator:
    return np.random.default_rng(4)


def _training(params: DeepMoDParams = SMALL, library: Library = LIBRARY) -> DeepMoDTraining:
    return DeepMoDTraining(_heat(), library, params, _rng())


def _systems() -> list[tuple[np.ndarray, np.ndarray]]:
    """Unit columns and targets, the last with columns that nearly coincide."""
    rng = np.random.default_rng(9)
    made = []
    for spread in (1.0, 0.3, 0.01):
        u = rng.standard_normal(203)
        others = u[:, None] + spread * rng.standard_normal((203, 3))
        X = np.column_stack([np.ones(203), u, u**2, u**3, others])
        y = X @ np.array([0.0, 0.0, 1.0, 0.0, 0.5, -0.5, 0.0]) + 0.3 * rng.standard_normal(203)
        made.append((X / np.linalg.norm(X, axis=0), y / np.linalg.norm(y)))
    return made


@pytest.mark.parametrize("system", _systems())
def test_the_lasso_path_satisfies_the_optimality_conditions(system: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = system
    G, q = X.T @ X, X.T @ y
    alphas = np.geomspace(1.5 * np.abs(q).max(), 1e-4 * np.abs(q).max(), 60)
    W = lasso_path(G, q, alphas)
    assert not W[0].any()
    slopes = q - W @ G
    for alpha, w, slope in zip(alphas, W, slopes, strict=True):
        assert np.abs(slope).max() <= alpha + 1e-9
        np.testing.assert_allclose(slope[w != 0], alpha * np.sign(w[w != 0]), atol=1e-9)
    assert np.count_nonzero(W[-1]) >= 6


def test_the_lasso_of_orthonormal_columns_is_a_soft_threshold() -> None:
    q = np.array([0.9, -0.5, 0.2, 0.0])
    W = lasso_path(np.eye(4), q, np.array([1.0, 0.4, 0.1]))
    np.testing.assert_allclose(W, [[0, 0, 0, 0], [0.5, -0.1, 0, 0], [0.8, -0.4, 0.1, 0]], atol=1e-15)


@pytest.mark.parametrize("system", _systems())
def test_the_lasso_is_scikit_learns(system: tuple[np.ndarray, np.ndarray]) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    X, y = system
    peer = linear_model.LassoCV(cv=5, fit_intercept=False, tol=1e-12, max_iter=1_000_000).fit(X, y)
    np.testing.assert_allclose(lasso_cv(X, y, 5, 100, 1e-3), peer.coef_, atol=1e-5)


def test_the_lasso_permutes_with_its_columns_and_takes_what_is_degenerate() -> None:
    X, y = _systems()[1]
    order = np.random.default_rng(1).permutation(X.shape[1])
    np.testing.assert_allclose(
        lasso_cv(X[:, order], y, 5, 100, 1e-3), lasso_cv(X, y, 5, 100, 1e-3)[order], atol=1e-9
    )
    assert not lasso_cv(X, 0 * y, 5, 100, 1e-3).any()
    twice = np.column_stack([X, X[:, 2], 0 * y])
    w = lasso_cv(twice, y, 5, 100, 1e-3)
    np.testing.assert_allclose(X @ lasso_cv(X, y, 5, 100, 1e-3), twice @ w, atol=1e-8)
    assert w[-1] == 0
    with pytest.raises(ValueError, match="3 rows in 5 folds"):
        lasso_cv(X[:3], y[:3], 5, 100, 1e-3)


def test_the_gradient_is_the_one_through_the_solve() -> None:
    training = _training()
    training.mask = np.array([True, False, True, True, True])
    for _ in range(30):
        training.descend(training.solve())
    (ours,) = torch.autograd.grad(training.solve(), training.theta)
    jet = training.jet(training.theta, training.points)[:, : training.n].double()
    columns = taylor.evaluate(training.plan, jet)[:, torch.from_numpy(training.mask)]
    xi = torch.linalg.lstsq(columns, jet[1][:, None]).solution[:, 0]
    np.testing.assert_allclose(training.xi[training.mask], xi.detach().numpy(), rtol=1e-6)
    loss = (jet[0] - training.y[: training.n]).square().mean() + (jet[1] - columns @ xi).square().mean()
    (attached,) = torch.autograd.grad(loss, training.theta)
    torch.testing.assert_close(ours, attached, rtol=1e-4, atol=1e-6)


def test_padded_rows_carry_no_weight() -> None:
    training = _training()
    assert (training.n, len(training.points), len(training.held_y)) == (160, 200, 40)
    before = training.solve().item()
    training.points[training.n :] = 0.3
    training.y[training.n :] = 100.0
    assert training.solve().item() == pytest.approx(before, rel=1e-6)


def _watched(params: DeepMoDParams, **settings: Any) -> tuple[Selection, list[tuple]]:
    seen: list[tuple] = []
    run = deepmod(_heat(), LIBRARY, params, _rng(), callback=lambda *check: seen.append(check), **settings)
    return run, seen


def _same(first: Selection, other: Selection) -> None:
    """To the last bit."""
    np.testing.assert_array_equal(first.xi, other.xi)
    for a, b in zip(first.field.weights, other.field.weights, strict=True):
        np.testing.assert_array_equal(a, b)
    assert first.notes == other.notes


def test_watching_changes_nothing_and_the_generator_decides() -> None:
    watched, seen = _watched(SMALL)
    assert [check[0] for check in seen] == [0, 25, 50, 75, 100, 125]
    assert all(set(check[1]) == {"data", "residual", "held_out", "validation"} for check in seen)
    _same(watched, deepmod(_heat(), LIBRARY, SMALL, _rng()))
    other = deepmod(_heat(), LIBRARY, SMALL, np.random.default_rng(5))
    assert not np.array_equal(watched.field.weights[0], other.field.weights[0])


@pytest.mark.parametrize("stop", [49, 50, 120])
def test_an_interrupted_run_ends_in_the_same_bits(
    stop: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DeepMoDTraining, "save_every", 10)
    path = tmp_path / "state"
    # Terms are dropped from about the second check on, so that the best state matters as well.
    params = replace(SMALL, patience=25, min_decrease=0.1)
    whole = deepmod(_heat(), LIBRARY, params, _rng())
    real = DeepMoDTraining.step

    def interrupted(training: DeepMoDTraining) -> None:
        if training.steps == stop:
            raise KeyboardInterrupt
        real(training)

    monkeypatch.setattr(DeepMoDTraining, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        deepmod(_heat(), LIBRARY, params, _rng(), checkpoint=path)
    monkeypatch.setattr(DeepMoDTraining, "step", real)
    _same(whole, deepmod(_heat(), LIBRARY, params, _rng(), checkpoint=path))
    # A finished run needs no further iteration.
    monkeypatch.setattr(DeepMoDTraining, "step", lambda training: pytest.fail("one more iteration"))
    _same(whole, deepmod(_heat(), LIBRARY, params, _rng(), checkpoint=path))
    for settings, rng in ((SMALL, _rng()), (params, np.random.default_rng(5))):
        with pytest.raises(ValueError, match="belongs to another run"):
            deepmod(_heat(), LIBRARY, settings, rng, checkpoint=path)


def test_terms_are_dropped_when_the_held_out_error_stalls_and_then_at_every_period() -> None:
    params = replace(SMALL, max_iterations=700, patience=60, min_decrease=3e-2, settled_change=0.0)
    run, seen = _watched(params)
    errors = {check[0]: check[1]["validation"] for check in seen}
    best, since, switch = errors[0], 0, None
    for iteration, error in errors.items():
        if iteration and best - error >= params.min_decrease:
            best, since = error, iteration
        elif iteration - since >= params.patience:
            switch = iteration
            break
    assert switch is not None
    assert run.notes["sparse_since"] == switch
    assert run.notes["masks"] == 1 + (699 - switch) // params.periodicity
    masks = {check[0]: tuple(check[3]) for check in seen}
    assert all(all(mask) for iteration, mask in masks.items() if iteration <= switch)
    changes = [i for i in range(25, 700, 25) if masks[i] != masks[i - 25]]
    # A mask decided at a check is first used by the iteration after it.
    assert changes
    assert {(i - 25 - switch) % params.periodicity for i in changes} == {0}
    for _, _, xi, mask, _ in seen:
        assert not xi[~mask].any()


def test_training_ends_when_the_coefficients_have_settled() -> None:
    params = replace(SMALL, patience=0, min_decrease=1e3, settled_change=1e3, settled_patience=100)
    run, seen = _watched(replace(params, max_iterations=1000))
    # Dropping begins at the second check, 25; sizes are compared from the third on, 50, until 150.
    assert run.notes["sparse_since"] == 25
    assert run.notes["iterations"] == seen[-1][0] + 1 == 151
    assert (run.notes["converged"], run.notes["stopped_by"]) == (True, "convergence")
    capped, _ = _watched(replace(params, settled_change=0.0))
    assert (capped.notes["iterations"], capped.notes["stopped_by"]) == (150, "budget")


def test_what_is_read_out_is_least_squares_under_the_terminal_mask() -> None:
    training = _training()
    run = deepmod(_heat(), LIBRARY, replace(SMALL, patience=25, min_decrease=0.1), _rng())
    assert 0 < len(run.support) < len(LIBRARY)
    net = taylor.Weights(
        *(
            tuple(torch.from_numpy(a.astype(np.float32)) for a in group)
            for group in (run.field.weights, run.field.biases)
        )
    )
    losses = []
    trained_on = training.points[: training.n], training.y[: training.n]
    for points, y in (trained_on, (training.held_points, training.held_y)):
        jet = taylor.propagate(net, points, "tanh").double()
        A, b = taylor.evaluate(training.plan, jet).numpy(), jet[1].numpy()
        if not losses:
            xi = np.zeros(len(LIBRARY))
            xi[run.xi != 0] = np.linalg.lstsq(A[:, run.xi != 0], b, rcond=None)[0]
            np.testing.assert_allclose(run.xi, xi, rtol=1e-3, atol=1e-6)
        losses.append([((jet[0] - y) ** 2).mean().item(), ((b - A @ run.xi) ** 2).mean()])
    names = ("final_data", "final_residual")
    np.testing.assert_allclose([run.notes[name] for name in names], losses[0], rtol=1e-4)
    assert run.notes["held_out"] == pytest.approx(sum(losses[1]), rel=1e-4)


def test_no_term_may_be_left() -> None:
    params = replace(SMALL, threshold=1e9, patience=25, min_decrease=1e3, max_iterations=1000)
    run = deepmod(_heat(), LIBRARY, params, _rng())
    assert run.support == ()
    assert not run.xi.any()
    # Nothing is in play from iteration 25 on: settled as soon as the patience allows.
    assert run.notes["iterations"] == 251


def test_the_order_of_the_library_does_not_matter() -> None:
    order = [3, 0, 4, 2, 1]
    shuffled = Library(tuple(LIBRARY[j] for j in order))
    params = replace(SMALL, max_iterations=60)
    xi = deepmod(_heat(), LIBRARY, params, _rng()).xi
    np.testing.assert_allclose(deepmod(_heat(), shuffled, params, _rng()).xi, xi[order], rtol=1e-2, atol=1e-4)


def test_scaled_inputs_train_in_physical_units() -> None:
    run = deepmod(_heat(), LIBRARY, replace(SMALL, inputs="unit"), _rng())
    assert run.field.bounds == ((0.0, 0.0), (1.0, 2 * np.pi))
    assert np.isfinite(run.xi).all()


def test_the_method_by_its_name() -> None:
    selection = method("DeepMoD")(_heat(), LIBRARY, SMALL, _rng())
    assert selection.method == "DeepMoD"
    assert selection.notes["iterations"] == 150
    assert not selection.notes["compiled"]
    assert selection.seconds["fit"] > 0
    assert selection.field is not None
    assert selection.field.on_grid(np.linspace(0, 6, 4), np.linspace(0, 1, 3)).shape == (4, 3)


def test_too_few_samples_and_terms_beyond_the_slices_are_refused() -> None:
    with pytest.raises(ValueError, match="4 samples leave 4 to train on and 0 to hold out"):
        deepmod(_heat(), LIBRARY, replace(SMALL, samples=4), _rng())
    with pytest.raises(ValueError, match="drop the term"):
        deepmod(_heat(), Library.parse(["u_xxxxx"]), SMALL, _rng())


def test_two_dimensions() -> None:
    rng = np.random.default_rng(2)
    points = rng.uniform(0, 1, (240, 3))
    y = np.sin(points[:, 0] + 2 * points[:, 1]) * np.exp(-points[:, 2])
    plane = Domain((0.0, 0.0), (1.0, 1.0), 0.0, 1.0, (False, False))
    observations = Observations(points[:, :2], points[:, 2], y, plane)
    library = Library.parse(["u", "u_x", "u_y", "u_xx", "u_yy"])
    run = deepmod(observations, library, replace(DEEPMOD["ad"], max_iterations=30), rng)
    assert run.field.on_grid(*(np.linspace(0, 1, k) for k in (3, 4, 5))).shape == (3, 4, 5)


HERE = importlib.util.find_spec("deepymod") is not None


@pytest.mark.skipif(HERE, reason="deepymod is installed")
def test_without_the_release_its_adapter_says_how_to_install_it() -> None:
    with pytest.raises(ValueError, match=r"pip install --no-deps deepymod==2\.2\.0"):
        deepymod_reference(_heat(), LIBRARY, SMALL, _rng())


@pytest.mark.skipif(not HERE, reason="deepymod 2.2.0 is not installed")
def test_the_release_walks_the_same_path_until_terms_are_dropped() -> None:
    # Later the two differ by design: we drop terms on the reloaded network, the release on the one before.
    params = replace(SMALL, max_iterations=100, patience=1000)
    theirs = deepymod_reference(_heat(), LIBRARY, params, _rng())
    ours = deepmod(_heat(), LIBRARY, params, _rng())
    np.testing.assert_allclose(ours.xi, theirs.xi, rtol=1e-2, atol=1e-4)
    for a, b in zip(ours.field.weights, getattr(theirs.field, "weights"), strict=True):  # noqa: B009
        np.testing.assert_allclose(a, b, atol=1e-4)


def test_the_transport_of_a_pulse_is_recovered() -> None:
    rng = np.random.default_rng(0)
    x, t = rng.uniform(-3, 4, 400), rng.uniform(0, 2, 400)
    domain = Domain((-3.0,), (4.0,), 0.0, 2.0, (False,))
    observations = Observations(x[:, None], t, np.exp(-((x - 0.8 * t) ** 2)), domain)
    params = replace(SMALL, width=12, depth=3, samples=300, learning_rate=3e-3, max_iterations=3000)
    selection = deepmod(observations, LIBRARY, params, _rng())
    assert selection.support == ("u_x",)
    assert selection.coefficients["u_x"] == pytest.approx(-0.8, rel=0.01)
    assert selection.notes["converged"]


COMPILED = """
import numpy as np, torch
from dataclasses import replace
from tests.baselines.test_deepmod import SMALL, LIBRARY, _heat, _rng
from fts.baselines.training.deepmod import DeepMoDTraining
found = []
for calls in (0, 10**6):
    training = DeepMoDTraining(_heat(), LIBRARY, SMALL, _rng(), calls=calls)
    for _ in range(20):
        training.descend(training.solve())
    found.append((training.is_compiled, training.theta.detach().numpy().copy(), training.xi))
(eager, theta, xi), (compiled, other, eta) = found
assert not eager
print("compiled" if compiled else "no compiler")
assert np.abs(theta - other).max() < 1e-4 and np.allclose(xi, eta, rtol=1e-2, atol=1e-4)
"""


@pytest.mark.slow
def test_compiled_training_is_the_same_to_rounding(root: Path) -> None:
    # In a process of its own: the checks of shapes that tests install are no code a compiler takes.
    done = subprocess.run(
        [sys.executable, "-c", COMPILED], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
