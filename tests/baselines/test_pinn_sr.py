"""PINN-SR: its STRidge, its loss against independent derivatives, the alternation, and resuming."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from fts.baselines.pinn_sr import PINNSRParams
from fts.baselines.training import pinn_sr, taylor
from fts.baselines.training.loop import Checkpoint
from fts.baselines.training.pinn_sr import Search
from fts.domain import Domain
from fts.equations.terms import Library
from fts.observations import Observations
from fts.selection.selection import Selection

DOMAIN = Domain((-1.0,), (2.0,), 0.0, 2.0, (False,))
LIBRARY = Library.parse(["u", "u^2", "u_x", "u_xx"])
TINY = PINNSRParams(
    width=8,
    depth=2,
    samples=300,
    held_out=0.2,
    collocation=80,
    residual_samples=60,
    sparsity=1e-7,
    residual_weight=1.0,
    adam_steps=20,
    adam_rate=1e-3,
    lbfgs_iterations=20,
    lbfgs_memory=50,
    lbfgs_line_search=50,
    lbfgs_tolerance=2.2e-16,
    cycles=3,
    cycle_residual_weight=2.0,
    cycle_steps=5,
    cycle_rate=1e-3,
    cycle_betas=(0.99, 0.9),
    ridge=1e-5,
    rounds=100,
    tolerance_step=1.0,
    thresholdings=10,
    test_rows=0.2,
)


def travelling(n: int = 400) -> Observations:
    """Samples of a wave that solves u_t = -u_x."""
    rng = np.random.default_rng(1)
    x, t = rng.uniform(-1, 2, (n, 1)), rng.uniform(0, 2, n)
    return Observations(x, t, np.sin(2 * (x[:, 0] - t)) + 0.5 * np.cos(x[:, 0] - t), DOMAIN)


def regression(noise: float = 0.01) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    A = rng.standard_normal((500, 5)) * np.array([1.0, 10.0, 0.1, 2.0, 1.0])
    xi = np.array([0.0, -0.6, 0.0, 1.5, 0.0])
    dense = xi + rng.standard_normal(5) * np.array([0.05, 0.005, 0.5, 0.03, 0.05])
    return A, A @ xi + noise * rng.standard_normal(500), xi, dense


def test_the_search_finds_what_the_rows_say() -> None:
    A, b, xi, dense = regression()
    test = np.arange(500) % 5 == 0
    outcome = pinn_sr.search(A, b, Search(dense, 1.0, None), test, TINY)
    np.testing.assert_allclose(outcome.xi, xi, atol=0.01)
    assert (outcome.xi[xi == 0] == 0).all()
    # The price of a term is the held-out error of what the first search was given; later ones keep it.
    assert outcome.eta == pytest.approx(np.mean((b[test] - A[test] @ dense) ** 2))
    again = pinn_sr.search(A, b, outcome, test, TINY)
    assert again.eta == outcome.eta
    np.testing.assert_allclose(again.xi, outcome.xi)


def test_what_is_gone_stays_gone() -> None:
    A, b, _, dense = regression()
    dense[3] = 0.0  # a true term
    outcome = pinn_sr.search(A, b, Search(dense, 1.0, None), np.arange(500) % 5 == 0, TINY)
    assert outcome.xi[3] == 0.0


def test_columns_in_other_units_or_order_give_the_same_equation() -> None:
    A, b, _, dense = regression()
    test = np.arange(500) % 5 == 0
    scales, order = np.array([2.0, 0.01, 7.0, 1.0, 100.0]), np.array([3, 0, 4, 1, 2])
    result = pinn_sr.search(A, b, Search(dense, 1.0, None), test, TINY).xi
    rescaled = pinn_sr.search(A * scales, b, Search(dense / scales, 1.0, None), test, TINY).xi
    permuted = pinn_sr.search(A[:, order], b, Search(dense[order], 1.0, None), test, TINY).xi
    np.testing.assert_allclose(rescaled * scales, result, rtol=1e-8)
    np.testing.assert_allclose(permuted, result[order], rtol=1e-8)


def test_thresholding_may_leave_nothing_at_once_but_not_later() -> None:
    A, b, _, _ = regression()
    A = A / np.linalg.norm(A, axis=0)
    assert not pinn_sr.threshold(A, b, np.ones(5), 2.0, 1e-5, 10).any()
    # The third column passes the first look, its refit would not: it is kept, and fitted.
    given = np.array([0.0, 0.0, 5.0, 0.0, 0.0])
    left = pinn_sr.threshold(A, b, given, 4.9, 1e-5, 10)
    assert np.flatnonzero(left).tolist() == [2]
    assert left[2] == pytest.approx(A[:, 2] @ b)


def test_an_empty_equation_wins_when_terms_cost_more_than_they_explain() -> None:
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((300, 3)), rng.standard_normal(300)
    outcome = pinn_sr.search(A, b, Search(np.full(3, 0.05), 1.0, None), np.arange(300) % 5 == 0, TINY)
    assert not outcome.xi.any()


def test_the_loss_is_what_it_says() -> None:
    """Against nested automatic differentiation, gradient included."""
    training = pinn_sr.JointTraining(travelling(), LIBRARY, TINY, np.random.default_rng(0))
    lam = torch.tensor([0.3, -0.2, 0.7, 0.1], requires_grad=True)
    theta = training.theta.detach().clone().requires_grad_(True)
    loss = training.loss(theta, lam, torch.tensor(2.0))
    low, high = (torch.tensor(side) for side in training.network.bounds)

    def network(points: torch.Tensor) -> torch.Tensor:
        z = 2 * (points - low) / (high - low) - 1
        layers = taylor.unpack(theta, training.network.sizes)
        for weight, bias in zip(layers.weights[:-1], layers.biases[:-1], strict=True):
            z = torch.tanh(z @ weight + bias)
        return (z @ layers.weights[-1] + layers.biases[-1])[:, 0]

    points = training.residual_points.clone().requires_grad_(True)
    u = network(points)
    (du,) = torch.autograd.grad(u.sum(), points, create_graph=True)
    (ddu,) = torch.autograd.grad(du[:, 1].sum(), points, create_graph=True)
    residual = torch.stack([u, u**2, du[:, 1], ddu[:, 1]], dim=1) @ lam - du[:, 0]
    data = (network(training.samples[0]) - training.samples[1]).square().mean()
    wanted = torch.log(data + 2.0 * residual.square().mean() + TINY.sparsity * lam.abs().sum())
    torch.testing.assert_close(loss, wanted)
    for first, other in zip(
        *(torch.autograd.grad(part, [theta, lam]) for part in (loss, wanted)), strict=True
    ):
        torch.testing.assert_close(first, other, rtol=1e-3, atol=1e-5)


def test_residual_points_fill_the_box_and_join_samples() -> None:
    points = pinn_sr.latin_hypercube(DOMAIN, 40, np.random.default_rng(0))
    for column, low, high in zip(points.T, (0.0, -1.0), (2.0, 2.0), strict=True):
        assert sorted(((column - low) / (high - low) * 40).astype(int)) == list(range(40))
    training = pinn_sr.JointTraining(travelling(), LIBRARY, TINY, np.random.default_rng(0))
    assert len(training.residual_points) == 140
    assert (len(training.samples[1]), len(training.held[1])) == (240, 60)


def run(params: PINNSRParams = TINY, seed: int = 0, checkpoint: Path | None = None) -> Selection:
    return pinn_sr.pinn_sr(travelling(), LIBRARY, params, np.random.default_rng(seed), checkpoint=checkpoint)


def test_the_generator_decides() -> None:
    first, same, other = run(), run(), run(seed=1)
    np.testing.assert_array_equal(first.xi, same.xi)
    assert (first.field.weights[0] != other.field.weights[0]).any()
    assert first.notes["iterations"]["adam"] == 20
    assert first.notes["iterations"]["cycles"] == 3


@pytest.mark.parametrize("saves", [4, 15, 21])
def test_a_resumed_run_ends_in_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, saves: int
) -> None:
    path, original, count = tmp_path / "state.fts", Checkpoint.save, [0]

    def interrupted(self: Checkpoint, header: dict, arrays: dict) -> None:
        original(self, header, arrays)
        count[0] += 1
        if count[0] == saves:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "save", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(checkpoint=path)
    resumed, whole = run(checkpoint=path), run()
    np.testing.assert_array_equal(resumed.xi, whole.xi)
    for first, other in zip(resumed.field.weights, whole.field.weights, strict=True):
        np.testing.assert_array_equal(first, other)
    with pytest.raises(ValueError, match="another run"):
        run(replace(TINY, cycles=2), checkpoint=path)


def test_a_run_that_diverges_is_started_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    original, count = pinn_sr.JointTraining.adam, [0]

    def adam(self: pinn_sr.JointTraining, steps: int, alpha: float) -> float:
        count[0] += 1
        if count[0] == 2:
            with torch.no_grad():
                self.theta.fill_(torch.nan)
        return original(self, steps, alpha)

    monkeypatch.setattr(pinn_sr.JointTraining, "adam", adam)
    assert "nan" in run().notes["reseeded"]


@pytest.mark.slow
def test_a_wave_is_recovered() -> None:
    params = replace(
        TINY, width=16, depth=3, adam_steps=1000, lbfgs_iterations=600, cycles=6, cycle_steps=100
    )
    trained = run(params)
    assert trained.support == ("u_x",)
    assert trained.coefficients["u_x"] == pytest.approx(-1.0, abs=0.02)
