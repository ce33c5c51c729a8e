"""A frozen field evaluates like the torch model it came from, derivatives included, and survives the disk."""

import dataclasses
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from fts import containers
from fts.domain import Domain
from fts.fields import frozen
from fts.fields.frozen import CallableField, FrozenField, Provenance, TabulatedField
from fts.fields.network import NetworkFeatures, SplineCoefficients, spline_basis
from fts.fields.series import as_series

INTERVAL = (0.0, 3.0)
ALPHAS_1D = [(0,), (1,), (2,), (3,), (4,)]
ALPHAS_2D = [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (2, 2), (3, 1), (0, 4)]


def make_field(dimension: int, *, rows: int = 12, positive: bool = False, seed: int = 0) -> FrozenField:
    rng = np.random.default_rng(seed)
    sizes = [2 * rows if rows else dimension, 16, 16, 16, 6]
    shapes = list(pairwise(sizes))
    space = NetworkFeatures(
        frequencies=rng.normal(size=(rows, dimension)).astype(np.float32),
        scale=0.7,
        weights=tuple((rng.normal(size=s) * s[0] ** -0.5).astype(np.float32) for s in shapes),
        biases=tuple((0.1 * rng.normal(size=s[1])).astype(np.float32) for s in shapes),
    )
    time = SplineCoefficients(rng.normal(size=(5, 11)).astype(np.float32), rng.normal(size=11), INTERVAL)
    domain = Domain((-2.0,) * dimension, (2.0,) * dimension, *INTERVAL, (False,) * dimension)
    return FrozenField(space, time, domain, Provenance(recipe="test"), positive=positive)


def torch_values(field: FrozenField, points: np.ndarray, alpha: tuple[int, ...]) -> np.ndarray:
    """The same formula in float64 torch, differentiated in space by autograd."""
    space, time = field.space, field.time
    columns = [torch.tensor(c, dtype=torch.float64, requires_grad=True) for c in points[:, :-1].T]
    x = space.scale * torch.stack(columns, dim=1)
    if len(space.frequencies):
        phase = x @ torch.tensor(space.frequencies, dtype=torch.float64).T
        x = torch.cat([torch.sin(phase), torch.cos(phase)], dim=1)
    for i, (weight, bias) in enumerate(zip(space.weights, space.biases, strict=True)):
        x = x @ torch.tensor(weight, dtype=torch.float64) + torch.tensor(bias, dtype=torch.float64)
        if i < len(space.weights) - 1:
            x = torch.nn.functional.silu(x)
    basis = spline_basis(points[:, -1], time.mean.size, time.interval) - time.mean
    c = torch.tensor(basis @ time.C.astype(float).T)
    value = x[:, 0] + (x[:, 1:] * c).sum(1)
    if field.positive:
        value = torch.nn.functional.softplus(value)
    for variable, order in zip(columns, alpha, strict=True):
        for _ in range(order):
            (value,) = torch.autograd.grad(value.sum(), variable, create_graph=True)
    return value.detach().numpy()


def scattered(dimension: int, n: int = 50) -> np.ndarray:
    rng = np.random.default_rng(9)
    return np.column_stack([rng.uniform(-2, 2, size=(n, dimension)), rng.uniform(*INTERVAL, size=n)])


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("rows", [12, 0])
@pytest.mark.parametrize("alpha", ALPHAS_1D + ALPHAS_2D)
def test_space_derivatives_agree_with_autodiff(alpha, rows, positive) -> None:
    field = make_field(len(alpha), rows=rows, positive=positive)
    points = scattered(len(alpha))
    want = torch_values(field, points, alpha)
    error = np.linalg.norm(field.derivative(points, alpha) - want) / np.linalg.norm(want)
    assert error < 1e-9


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("order", [1, 2])
def test_time_derivative_is_the_limit_of_differences(order, positive) -> None:
    field = make_field(1, positive=positive)
    points = scattered(1)
    points[:, -1] = np.clip(points[:, -1], 0.1, 2.9)
    h = 1e-4
    step = np.array([0.0, h])
    lower = order - 1
    slope = (field.derivative(points + step, (2,), lower) - field.derivative(points - step, (2,), lower)) / (
        2 * h
    )
    got = field.derivative(points, (2,), order)
    assert np.linalg.norm(got - slope) < 1e-4 * np.linalg.norm(got)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize(("alpha", "order"), [((0, 0), 0), ((1, 1), 1), ((0, 2), 0)])
def test_grid_and_points_agree(alpha, order, positive) -> None:
    field = make_field(2, positive=positive)
    axes = (np.linspace(-2, 2, 5), np.linspace(-1, 2, 4), np.linspace(0, 3, 6))
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    grid = field.on_grid(*axes, alpha=alpha, order=order)
    assert grid.shape == (5, 4, 6)
    np.testing.assert_allclose(grid.ravel(), field.derivative(points, alpha, order), rtol=1e-10, atol=1e-12)


def test_splines_sum_to_one_and_reproduce_cubics() -> None:
    t = np.linspace(*INTERVAL, 40)
    basis = spline_basis(t, 9, INTERVAL)
    np.testing.assert_allclose(basis.sum(axis=1), 1.0, atol=1e-12)
    cubic = t**3 - 2 * t
    coefficients, *_ = np.linalg.lstsq(basis, cubic, rcond=None)
    np.testing.assert_allclose(basis @ coefficients, cubic, atol=1e-10)
    second = spline_basis(t, 9, INTERVAL, 2)
    np.testing.assert_allclose(second @ coefficients, 6 * t, atol=1e-8)


@pytest.mark.parametrize("dimension", [1, 2])
def test_disk_round_trip_is_exact(tmp_path: Path, dimension) -> None:
    field = make_field(dimension, positive=True)
    field.save(tmp_path / "a.fts")
    again = FrozenField.load(tmp_path / "a.fts")
    points = scattered(dimension)
    np.testing.assert_array_equal(again(points), field(points))
    assert again.made == field.made
    assert again.domain == field.domain
    again.save(tmp_path / "b.fts")
    assert (tmp_path / "a.fts").read_bytes() == (tmp_path / "b.fts").read_bytes()


def test_network_as_a_series_keeps_values_and_derivatives(tmp_path: Path) -> None:
    field = make_field(1, positive=True)
    table = dataclasses.replace(field, space=as_series(field.space, field.domain, 1e-12))
    points = scattered(1)
    for order, tolerance in enumerate((1e-10, 1e-8, 1e-7, 1e-6, 1e-5)):
        want = field.derivative(points, (order,))
        assert np.linalg.norm(table.derivative(points, (order,)) - want) < tolerance * np.linalg.norm(want)
    table.save(tmp_path / "a.fts")
    np.testing.assert_array_equal(FrozenField.load(tmp_path / "a.fts")(points), table(points))
    rough = dataclasses.replace(field.space, scale=1e5)
    with pytest.raises(ValueError, match="fit a smoother field"):
        as_series(rough, field.domain, 1e-9)


def test_damage_is_refused_with_a_remedy(tmp_path: Path) -> None:
    path = tmp_path / "a.fts"
    make_field(1).save(path)
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(containers.FileError, match=r"checksum.*fts\.fit"):
        FrozenField.load(path)


def test_shipped_fields_are_small_and_whole(root: Path) -> None:
    paths = sorted((root / "book" / "fields").glob("*.fts"))
    assert len(paths) >= 65
    for path in paths:
        assert path.stat().st_size <= 100_000, path.name
        field = frozen.load(path)
        assert path.stem.startswith(f"{field.made.problem}-{field.made.protocol}-{field.made.seed}")
        assert path.stem.endswith(field.made.recipe)


def test_field_cannot_be_changed(tmp_path: Path) -> None:
    field = make_field(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        field.positive = True  # type: ignore[misc]
    field.save(tmp_path / "a.fts")
    loaded = FrozenField.load(tmp_path / "a.fts")
    with pytest.raises(ValueError, match="read-only"):
        loaded.time.C[0, 0] = 1.0  # type: ignore[attr-defined]


def test_chunks_do_not_change_values() -> None:
    field = make_field(1)
    points = scattered(1, n=(1 << 16) + 3)
    np.testing.assert_allclose(field(points)[-5:], field(points[-5:]), rtol=1e-12)


def test_tabulated_field_converges_to_the_function() -> None:
    domain = Domain((0.0,), (2 * np.pi,), 0.0, 1.0, (True,))
    exact = CallableField(lambda x, t: np.sin(x) * np.exp(-t), domain)
    where = (np.linspace(0.1, 6.0, 33), np.linspace(0.05, 0.95, 21))
    errors = []
    for n in (16, 32):
        axes = (2 * np.pi * np.arange(n) / n, np.linspace(0, 1, n))
        field = TabulatedField(axes, exact.on_grid(*axes), domain)
        errors.append(np.abs(field.on_grid(*where) - exact.on_grid(*where)).max())
    assert errors[1] < errors[0] / 32  # degree five converges at order six
