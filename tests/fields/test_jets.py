"""Taylor jets through compositions agree with automatic differentiation and with closed forms."""

import itertools
from collections.abc import Callable
from math import comb, factorial

import numpy as np
import pytest
import torch

from fts.fields import network

ALPHAS = [(4, 0), (0, 4), (2, 2), (3, 1), (1, 1), (1, 3), (0, 0), (1, 0)]


def inner(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.sin(1.3 * x) * torch.exp(0.4 * y) + 0.5 * x * y - 0.2


def autodiff(
    f: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], points: np.ndarray, alpha: tuple[int, int]
) -> np.ndarray:
    x, y = (torch.tensor(column, dtype=torch.float64, requires_grad=True) for column in points.T)
    value = f(x, y)
    for variable, order in zip((x, y), alpha, strict=True):
        for _ in range(order):
            (value,) = torch.autograd.grad(value.sum(), variable, create_graph=True)
    return value.detach().numpy()


def jet_of(
    f: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], points: np.ndarray, alpha: tuple[int, int]
) -> network.Jet:
    return {
        beta: autodiff(f, points, beta) / (factorial(beta[0]) * factorial(beta[1]))
        for beta in network.indices_below(alpha)
    }


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (network.sigmoid, torch.sigmoid),
        (network.swish, torch.nn.functional.silu),
        (network.softplus, torch.nn.functional.softplus),
    ],
)
def test_composition_agrees_with_autodiff(ours, theirs, alpha) -> None:
    points = np.random.default_rng(3).uniform(-2, 2, size=(40, 2))
    got = network.derivative(ours(jet_of(inner, points, alpha)), alpha)
    want = autodiff(lambda x, y: theirs(inner(x, y)), points, alpha)
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9 * np.abs(want).max())


def test_product_is_the_leibniz_rule() -> None:
    rng = np.random.default_rng(5)
    f = {(k,): rng.normal(size=7) for k in range(5)}
    g = {(k,): rng.normal(size=7) for k in range(5)}
    leibniz = sum(
        comb(4, k) * network.derivative(f, (k,)) * network.derivative(g, (4 - k,)) for k in range(5)
    )
    np.testing.assert_allclose(network.derivative(network.multiply(f, g), (4,)), leibniz)


def test_indices_come_lower_order_first_and_complete() -> None:
    indices = network.indices_below((2, 1, 3))
    assert sorted(indices) == sorted(itertools.product(range(3), range(2), range(4)))
    assert [sum(beta) for beta in indices] == sorted(sum(beta) for beta in indices)


def test_saturated_swish_is_linear_without_overflow() -> None:
    # z = 800 + x: exp(800) overflows, the sigmoid must not.
    jet = {(0,): np.array([800.0, -800.0]), (1,): np.ones(2), (2,): np.zeros(2)}
    swish = network.swish(jet)
    np.testing.assert_allclose(swish[(1,)], [1.0, 0.0], atol=1e-300)
    np.testing.assert_allclose(swish[(2,)], 0.0, atol=1e-300)
