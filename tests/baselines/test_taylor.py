"""Taylor mode against nested autograd, the library's columns against the strong form, the frozen network."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from fts.baselines.mlp_field import MLPField
from fts.baselines.training import taylor
from fts.domain import Domain
from fts.equations.equation import strong
from fts.equations.terms import Library
from fts.params.paper import LIBRARIES

LINE = Domain((-2.0,), (3.0,), 0.0, 4.0, (True,))
PLANE = Domain((-2.0, 1.0), (3.0, 2.0), 0.0, 4.0, (False, False))
DOMAINS = {1: LINE, 2: PLANE}
ALPHAS = {
    1: {(1, 0, 0): 2, (2, 0, 0): 3, (3, 0, 0): 4, (4, 0, 0): 5},
    2: {(1, 0, 0): 2, (0, 1, 0): 3, (2, 0, 0): 4, (0, 2, 0): 5},
}


def _bounds(dimension: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    domain = DOMAINS[dimension]
    return (domain.t0, *domain.low), (domain.t1, *domain.high)


def _network(dimension: int, seed: int = 3) -> taylor.Weights:
    generator = torch.Generator().manual_seed(seed)
    net = taylor.uniform_fan_in((dimension + 1, 7, 7, 7, 1), torch.float64, generator)
    for tensor in _tensors(net):
        tensor.requires_grad_(True)
    return net


def _tensors(net: taylor.Weights) -> list[Tensor]:
    return [*net.weights, *net.biases]


def _points(dimension: int, n: int = 11) -> Tensor:
    low, high = (torch.tensor(side, dtype=torch.float64) for side in _bounds(dimension))
    draws = torch.rand((n, dimension + 1), dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    return low + (high - low) * draws


def _forward(net: taylor.Weights, points: Tensor, activation: str, bounds) -> Tensor:
    if bounds is not None:
        low, high = (torch.tensor(side, dtype=torch.float64) for side in bounds)
        points = 2.0 * (points - low) / (high - low) - 1.0
    act = {"tanh": torch.tanh, "sin": torch.sin}[activation]
    for weight, bias in zip(net.weights[:-1], net.biases[:-1], strict=True):
        points = act(points @ weight + bias)
    return (points @ net.weights[-1] + net.biases[-1])[:, 0]


def _nested(net: taylor.Weights, points: Tensor, activation: str, bounds) -> Tensor:
    """The six slices by repeated reverse mode, which stays differentiable in the weights."""
    points = points.clone().requires_grad_(True)
    u = _forward(net, points, activation, bounds)

    def along(values: Tensor, axis: int) -> Tensor:
        return torch.autograd.grad(values.sum(), points, create_graph=True)[0][:, axis]

    if points.shape[1] == 2:
        chain = [u]
        for _ in range(4):
            chain.append(along(chain[-1], 1))
        return torch.stack([u, along(u, 0), *chain[1:]])
    x, y = along(u, 1), along(u, 2)
    return torch.stack([u, along(u, 0), x, y, along(x, 1), along(y, 2)])


CASES = [(d, a, scaled) for d in (1, 2) for a in ("tanh", "sin") for scaled in (False, True)]


@pytest.mark.parametrize(("dimension", "activation", "scaled"), CASES)
def test_slices_and_gradients_are_those_of_nested_autograd(
    dimension: int, activation: taylor.Activation, scaled: bool
) -> None:
    net, points = _network(dimension), _points(dimension)
    bounds = _bounds(dimension) if scaled else None
    ours = taylor.propagate(net, points, activation, bounds)
    theirs = _nested(net, points, activation, bounds)
    torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-12)
    value = taylor.values(net, points, activation, bounds)
    torch.testing.assert_close(value, ours[0], rtol=1e-13, atol=1e-14)
    mix = torch.rand(ours.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    gradients = [
        torch.autograd.grad((mix * slices**2).sum(), _tensors(net), allow_unused=True)
        for slices in (ours, theirs)
    ]
    for first, other in zip(*gradients, strict=True):
        torch.testing.assert_close(first, other, rtol=1e-10, atol=1e-11)


def test_a_vector_holds_the_layers() -> None:
    net = _network(2)
    vector = net.vector.requires_grad_(True)
    again = taylor.unpack(vector, (3, 7, 7, 7, 1))
    assert all(torch.equal(a, b) for a, b in zip(_tensors(again), _tensors(net), strict=True))
    slices = [taylor.propagate(n, _points(2), "tanh") for n in (again, net)]
    (whole,) = torch.autograd.grad(slices[0].sum(), vector)
    parts = torch.autograd.grad(slices[1].sum(), _tensors(net), allow_unused=True)
    torch.testing.assert_close(whole, torch.cat([part.reshape(-1) for part in parts]))


def test_derivatives_are_in_physical_units_whatever_the_scaling() -> None:
    # Scaling inside the network is the same as scaled first weights and a shifted bias.
    net, points, bounds = _network(1), _points(1), _bounds(1)
    low, high = (torch.tensor(side, dtype=torch.float64) for side in bounds)
    rate = 2.0 / (high - low)
    weight = (net.weights[0] * rate[:, None]).detach()
    bias = (net.biases[0] - (rate * low + 1.0) @ net.weights[0]).detach()
    layers = taylor.Weights((weight, *net.weights[1:]), (bias, *net.biases[1:]))
    folded = taylor.propagate(layers, points, "tanh")
    inside = taylor.propagate(net, points, "tanh", bounds)
    torch.testing.assert_close(inside, folded, rtol=1e-11, atol=1e-12)


LIBRARY_TEXTS = [
    (1, LIBRARIES["kdv"]),
    (1, ("u^4*u_x", "D_xx(u^3 + u^2)", "D_xxxx(u^2)", "2*u", "u_x", "D_xxx(u^5)")),
    (2, LIBRARIES["ad"]),
    (2, ("D_yy(u^3)", "u*u_y", "u^2*u_x", "D_xx(u^2)")),
]


@pytest.mark.parametrize(("dimension", "texts"), LIBRARY_TEXTS)
def test_columns_are_the_strong_form(dimension: int, texts: tuple[str, ...]) -> None:
    library = Library.parse(texts)
    jet = torch.randn((6, 13), dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    slices = ALPHAS[dimension] | {(0, 0, 0): 0}
    ours = taylor.evaluate(taylor.plan_columns(library, dimension), jet)
    for column, term in zip(ours.T.numpy(), library, strict=True):
        np.testing.assert_allclose(column, strong(term, lambda alpha: jet[slices[alpha]].numpy()), rtol=1e-12)


@pytest.mark.parametrize(
    ("dimension", "text", "message"),
    [
        (1, "u_xxxxx", "only u_x to u_xxxx are carried: drop the term"),
        (2, "u_xxx", "only u_x, u_y, u_xx, u_yy are carried"),
        (2, "u_xy", "needs the derivatives"),
        (1, "sin(u)", "no polynomial in u"),
        (1, "u^0.5", "no polynomial in u"),
        (1, "u_y", "spatial axes"),
    ],
)
def test_what_the_slices_do_not_carry_is_refused(dimension: int, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        taylor.plan_columns(Library.parse([text]), dimension)


def test_a_network_without_hidden_layer_is_refused() -> None:
    net = taylor.uniform_fan_in((2, 1), torch.float64, torch.Generator())
    with pytest.raises(ValueError, match="hidden layer"):
        taylor.propagate(net, _points(1), "tanh")


@pytest.mark.parametrize(("dimension", "activation", "scaled"), CASES)
def test_the_frozen_network_takes_the_same_values(
    dimension: int, activation: taylor.Activation, scaled: bool
) -> None:
    net, points, domain = _network(dimension), _points(dimension), DOMAINS[dimension]
    bounds = _bounds(dimension) if scaled else None
    field = net.freeze(activation, bounds, domain)
    values = taylor.propagate(net, points, activation, bounds)[0]
    np.testing.assert_allclose(
        field(np.roll(points.numpy(), -1, axis=1)), values.detach().numpy(), rtol=1e-12
    )
    axes = [
        np.linspace(low, high, 5 + i) for i, (low, high) in enumerate(zip(*_bounds(dimension), strict=True))
    ]
    axes = [*axes[1:], axes[0]]  # space, then time
    table = field.on_grid(*axes)
    assert table.shape == tuple(axis.size for axis in axes)
    corner = np.array([[axis[-1] for axis in axes]])
    np.testing.assert_allclose(field(corner)[0], table[(-1,) * len(axes)], rtol=1e-12)


def test_chunks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    field = _network(1).freeze("tanh", None, LINE)
    points = np.random.default_rng(0).random((100, 2))
    whole = field(points)
    monkeypatch.setattr("fts.baselines.mlp_field._CHUNK", 7)
    np.testing.assert_allclose(field(points), whole, rtol=1e-13)
    assert field(points[:0]).shape == (0,)


def test_a_network_of_other_inputs_or_activation_is_refused() -> None:
    net = _network(1)
    with pytest.raises(ValueError, match="take one more, give one"):
        net.freeze("tanh", None, PLANE)
    arrays = [tuple(tensor.detach().numpy() for tensor in part) for part in (net.weights, net.biases)]
    with pytest.raises(ValueError, match="unknown activation 'relu'"):
        MLPField(*arrays, "relu", None, LINE)


def test_the_frozen_network_needs_no_torch(root: Path) -> None:
    code = "import sys, fts.baselines.mlp_field; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)


STARTS = [taylor.uniform_fan_in, taylor.uniform_wide, taylor.xavier_truncated]


@pytest.mark.parametrize("start", STARTS)
def test_starts_are_drawn_from_their_generator(start) -> None:
    sizes = (3, 50, 50, 1)
    nets = [start(sizes, torch.float32, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)]
    assert [tuple(w.shape) for w in nets[0].weights] == [(3, 50), (50, 50), (50, 1)]
    assert all(tensor.dtype == torch.float32 for tensor in _tensors(nets[0]))
    assert all(torch.equal(a, b) for a, b in zip(_tensors(nets[0]), _tensors(nets[1]), strict=True))
    assert not torch.equal(nets[0].weights[0], nets[2].weights[0])


def test_starts_have_the_spread_they_name() -> None:
    sizes, generator = (2, 400, 400, 1), torch.Generator().manual_seed(7)
    fan_in = taylor.uniform_fan_in(sizes, torch.float64, generator)
    assert fan_in.weights[1].abs().max() <= 1 / 20
    assert fan_in.biases[1].std().item() == pytest.approx(1 / 20 / math.sqrt(3), rel=0.1)
    assert fan_in.biases[0].abs().max() > 0.65  # 1/sqrt(2), by the inputs and not by the width
    wide = taylor.uniform_wide(sizes, torch.float64, generator)
    assert wide.weights[0].std().item() == pytest.approx(3 / 20 / math.sqrt(3), rel=0.1)
    assert not any(bias.any() for bias in wide.biases)
    xavier = taylor.xavier_truncated(sizes, torch.float64, generator)
    std = math.sqrt(2 / 800)
    assert xavier.weights[1].abs().max() <= 2 * std
    # A normal cut at two deviations keeps 0.8796 of its deviation.
    assert xavier.weights[1].std().item() == pytest.approx(0.8796 * std, rel=0.01)
