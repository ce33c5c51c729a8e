"""DL-PDE: a surrogate kept at its best look, exact derivatives, thresholding that may leave nothing."""

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
import torch

from fts.baselines.dl_pde import DLPDEParams, SurrogateParams
from fts.baselines.mlp_field import MLPField
from fts.baselines.stridge import STRidgeParams
from fts.baselines.training import dl_pde, taylor
from fts.domain import Domain
from fts.equations.equation import strong
from fts.equations.terms import Library
from fts.observations import Observations

LIBRARY = Library.parse(["1", "u", "u^2", "u*u_x", "u_x", "u_xx"])
DOMAIN = Domain((-1.0,), (2.0,), 0.0, 2.0, (False,))
SURROGATE = SurrogateParams(
    width=16,
    depth=2,
    activation="sin",
    inputs="unit",
    learning_rate=3e-3,
    batch=500,
    held_out=0.2,
    check_every=100,
    patience=3,
    steps=1500,
)
PARAMS = DLPDEParams(
    SURROGATE,
    grid=(40, 25),
    margin=0.05,
    stridge=STRidgeParams(threshold=3.0, ridge=1e-5, max_iterations=10, refit_ridge=1e-4),
)


def travelling(n: int = 400, unit: float = 1.0) -> Observations:
    """Samples of a wave that solves u_t = -u_x, with space measured in `unit`."""
    rng = np.random.default_rng(1)
    x, t = rng.uniform(-1, 2, (n, 1)), rng.uniform(0, 2, n)
    y = np.sin(2 * (x[:, 0] - t)) + 0.5 * np.cos(x[:, 0] - t)
    return Observations(x * unit, t, y, Domain((-unit,), (2 * unit,), 0.0, 2.0, (False,)))


def network(
    inputs: Literal["raw", "unit"] = "unit", activation: taylor.Activation = "sin", dimension: int = 1
) -> MLPField:
    """An untrained surrogate; its derivatives are what is tested."""
    domain = Domain((-1.0, 0.0)[:dimension], (2.0, 1.0)[:dimension], 0.0, 2.0, (False,) * dimension)
    shape = taylor.perceptron(domain, 9, 2, activation, inputs)
    layers = taylor.uniform_wide(shape.sizes, torch.float32, torch.Generator().manual_seed(0))
    return shape.freeze(layers.vector)


@pytest.mark.parametrize("inputs", ["raw", "unit"])
@pytest.mark.parametrize("activation", ["tanh", "sin"])
def test_meta_data_are_derivatives(inputs: Literal["raw", "unit"], activation: taylor.Activation) -> None:
    model = network(inputs, activation)
    A, b = dl_pde.meta_data(model, LIBRARY, (12, 10), 0.05)
    axes = dl_pde.meta_axes(model.domain, (12, 10), 0.05)
    field, h = model, 1e-3
    x, t = axes

    def partial(alpha: tuple[int, int, int]) -> np.ndarray:
        low, here, high = (field.on_grid(x + step, t).ravel() for step in (-h, 0.0, h))
        return {0: here, 1: (high - low) / (2 * h), 2: (high - 2 * here + low) / h**2}[alpha[0]]

    wanted = np.column_stack([strong(term, partial) for term in LIBRARY])
    np.testing.assert_allclose(A, wanted, rtol=2e-4, atol=2e-4)
    slope = (field.on_grid(x, t + h) - field.on_grid(x, t - h)).ravel() / (2 * h)
    np.testing.assert_allclose(b, slope, rtol=2e-4, atol=2e-4)


def test_meta_data_in_the_plane() -> None:
    library = Library.parse(["u_x", "u_y", "u_yy", "u^2"])
    model = network(dimension=2)
    A, b = dl_pde.meta_data(model, library, (5, 6, 4), 0.1)
    x, y, t = dl_pde.meta_axes(model.domain, (5, 6, 4), 0.1)
    field, h = model, 1e-3
    assert A.shape == (120, 4)
    u_y = (field.on_grid(x, y + h, t) - field.on_grid(x, y - h, t)).ravel() / (2 * h)
    u_t = (field.on_grid(x, y, t + h) - field.on_grid(x, y, t - h)).ravel() / (2 * h)
    np.testing.assert_allclose(A[:, 1], u_y, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(A[:, 3], field.on_grid(x, y, t).ravel() ** 2, rtol=1e-8)
    np.testing.assert_allclose(b, u_t, rtol=1e-4, atol=1e-4)


def test_meta_data_keep_away_from_the_ends() -> None:
    x, t = dl_pde.meta_axes(DOMAIN, (11, 5), 0.1)
    np.testing.assert_allclose([x[0], x[-1], t[0], t[-1]], [-0.7, 1.7, 0.2, 1.8])
    with pytest.raises(ValueError, match="one count for each"):
        dl_pde.meta_axes(DOMAIN, (11,), 0.1)


def test_a_wave_is_recovered() -> None:
    selection = dl_pde.dl_pde(travelling(), LIBRARY, PARAMS, np.random.default_rng(0))
    assert selection.support == ("u_x",)
    assert selection.coefficients["u_x"] == pytest.approx(-1.0, abs=0.03)
    assert selection.notes["rows"] == 1000
    assert selection.notes["kept"] <= selection.notes["iterations"] <= SURROGATE.steps
    assert selection.field is not None
    axes = np.linspace(-0.9, 1.9, 20), np.linspace(0.1, 1.9, 15)
    z = axes[0][:, None] - axes[1]
    assert np.abs(selection.field.on_grid(*axes) - np.sin(2 * z) - 0.5 * np.cos(z)).max() < 0.1


def test_inputs_mapped_to_the_unit_box_do_not_know_units() -> None:
    # Rounding of single precision grows in training: a short one, and a tolerance.
    short = replace(PARAMS, surrogate=replace(SURROGATE, steps=100))
    first, other = (
        dl_pde.dl_pde(travelling(unit=unit), LIBRARY, short, np.random.default_rng(0)) for unit in (1.0, 4.0)
    )
    powers = np.array([0, 0, 0, 1, 1, 2])
    np.testing.assert_allclose(other.xi, first.xi * 4.0**powers, rtol=1e-3)


def test_the_order_of_the_library_does_not_matter() -> None:
    short = replace(PARAMS, surrogate=replace(SURROGATE, steps=200))
    permuted = Library.parse(["u_xx", "u", "u_x", "u^2", "1", "u*u_x"])
    first, other = (
        dl_pde.dl_pde(travelling(), library, short, np.random.default_rng(0))
        for library in (LIBRARY, permuted)
    )
    assert set(first.support) == set(other.support)
    for name, value in first.coefficients.items():
        assert other.coefficients[name] == pytest.approx(value, rel=1e-8)


def test_the_generator_decides() -> None:
    short = replace(PARAMS, surrogate=replace(SURROGATE, steps=30, batch=50))
    first, same, other = (
        dl_pde.dl_pde(travelling(), LIBRARY, short, np.random.default_rng(seed)).xi for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, same)
    assert (first != other).any()


def test_nothing_may_survive() -> None:
    strict = replace(PARAMS, surrogate=replace(SURROGATE, steps=10))
    strict = replace(strict, stridge=replace(PARAMS.stridge, threshold=1e6))
    assert dl_pde.dl_pde(travelling(), LIBRARY, strict, np.random.default_rng(0)).support == ()


def test_the_best_look_is_kept_and_patience_ends() -> None:
    # A rate this high makes the error rise again soon.
    wild = replace(SURROGATE, learning_rate=0.3, check_every=5, patience=2, steps=2000)
    _, notes = dl_pde.fit_surrogate(travelling(), wild, np.random.default_rng(0))
    assert notes["stopped_by"] == "patience"
    assert notes["iterations"] == notes["kept"] + 10


def test_a_term_without_a_slice_is_refused_before_training() -> None:
    with pytest.raises(ValueError, match="drop the term"):
        dl_pde.dl_pde(travelling(), Library.parse(["u_xxxxx"]), PARAMS, np.random.default_rng(0))
