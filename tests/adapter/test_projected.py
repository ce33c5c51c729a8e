"""Variable projection: C solves its normal equations, the gradient is that of the loss, data may scatter."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from fts.adapter import networks, projected, samples
from fts.domain import Domain
from fts.fields.frozen import FrozenField
from fts.observations import Observations
from fts.params.paper import PROJECTED
from fts.params.types import ProjectedParams

DOMAIN = Domain((0.0,), (2 * np.pi,), 0.0, 2.0, (True,))


def wave(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    return 1.5 + np.sin(x - t) + 0.3 * np.cos(2 * x + t)


def grid_observations(sensors: int = 40, frames: int = 30) -> Observations:
    x = np.linspace(0, 2 * np.pi, sensors, endpoint=False)
    X, T = (a.ravel() for a in np.meshgrid(x, np.linspace(0, 2, frames), indexing="ij"))
    return Observations(X[:, None], T, wave(X, T), DOMAIN, seed=7)


def scattered_observations(n: int = 500) -> Observations:
    rng = np.random.default_rng(4)
    x, t = rng.uniform(0, 2 * np.pi, n), rng.uniform(0, 2, n)
    return Observations(x[:, None], t, wave(x, t), DOMAIN, seed=7)


def small(**changes: object) -> ProjectedParams:
    return replace(PROJECTED, **{"rank": 8, "knots": 6, "updates": 150, **changes})


def build(
    observations: Observations, params: ProjectedParams
) -> tuple[networks.Structured, projected.Projection, samples.Samples]:
    prepared = samples.prepare(observations, torch.device("cpu"))
    model_params = projected.model_params(observations, params)
    model = networks.Structured(prepared, observations.domain, model_params, torch.Generator().manual_seed(1))
    return model, projected.Projection(model, prepared, params), prepared


def forget_grid(observations: Observations) -> Observations:
    hidden = replace(observations)
    hidden.__dict__["grid"] = None
    return hidden


def test_c_solves_the_penalized_least_squares() -> None:
    observations, params = grid_observations(), small(coefficient_ridge=1e-3, smoothness=1e-4)
    model, objective, prepared = build(observations, params)
    objective.observation_error()
    with torch.no_grad():
        outputs = model.network(objective.inputs).double().numpy()
    basis = model.basis.double().numpy()
    B = basis @ basis.T / basis.shape[1]
    K = model.curvature.double().numpy() * 2.0**3
    Y = prepared.values.double().numpy().T
    phi = outputs[:, 1:]
    right = phi.T @ (Y - Y.mean(axis=1, keepdims=True)) @ basis.T / Y.size
    C = model.C.detach().double().numpy()
    left = phi.T @ phi / len(phi) @ C @ B + params.coefficient_ridge * C @ B + params.smoothness * C @ K
    np.testing.assert_allclose(left, right, rtol=0, atol=2e-3 * np.abs(right).max())


def test_gradient_is_that_of_the_projected_loss() -> None:
    # With a negligible penalty the loss is the projected one: check the surrogate against differences.
    model, objective, _ = build(grid_observations(), small(coefficient_ridge=1e-9, smoothness=1e-13))
    error = objective(0)
    parameters = model.network.parameters
    gradient = torch.nn.utils.parameters_to_vector([part.grad for part in parameters]).double()
    direction = gradient / gradient.norm()
    start = torch.nn.utils.parameters_to_vector(parameters).detach()
    values = []
    for step in (1e-3, -1e-3):
        torch.nn.utils.vector_to_parameters(start + step * direction.float(), parameters)
        values.append(objective.observation_error().item())
    slope = (values[0] - values[1]) / 2e-3
    assert slope == pytest.approx(gradient.norm().item(), rel=2e-2)
    assert error.item() == pytest.approx(np.mean(values), rel=0.2)


def test_reported_error_is_that_of_the_frozen_field() -> None:
    for observations in (grid_observations(), scattered_observations()):
        field = projected.fit(observations, small(), progress=False)
        prediction = field(np.column_stack([observations.x, observations.t]))
        error = np.mean((prediction - observations.y) ** 2) / observations.y.var()
        assert error == pytest.approx(field.made.history.error, rel=0.05, abs=1e-9)


def test_conjugate_gradients_find_the_grids_solution() -> None:
    # A named problem, so that both are given the same encoding.
    observations = replace(grid_observations(), problem="ks")
    params = small(coefficient_ridge=1e-4, smoothness=1e-6)
    model, objective, _ = build(observations, params)
    other, scattered, _ = build(forget_grid(observations), params)
    assert objective.observation_error().item() == pytest.approx(
        scattered.observation_error().item(), rel=1e-6
    )
    objective(0)
    scattered(0)
    for first, two in zip(model.network.parameters, other.network.parameters, strict=True):
        torch.testing.assert_close(first.grad, two.grad, rtol=1e-3, atol=1e-6)
    assert model.size == other.size


@pytest.mark.parametrize("make", [grid_observations, scattered_observations])
def test_field_is_learned_in_few_updates(make, tmp_path: Path) -> None:
    field = projected.fit(make(), small(), progress=False)
    x, t = np.linspace(0, 2 * np.pi, 50), np.linspace(0, 2, 41)
    want = wave(x[:, None], t[None, :])
    assert np.linalg.norm(field.on_grid(x, t) - want) < 0.01 * np.linalg.norm(want)
    field.save(tmp_path / "field.fts")
    assert (tmp_path / "field.fts").stat().st_size <= 100_000
    np.testing.assert_array_equal(FrozenField.load(tmp_path / "field.fts").on_grid(x, t), field.on_grid(x, t))


def test_more_splines_than_frames_interpolate_smoothly() -> None:
    observations = grid_observations(frames=8)
    field = projected.fit(observations, small(knots=20), progress=False)
    x, t = np.linspace(0, 2 * np.pi, 50), np.linspace(0, 2, 41)
    want = wave(x[:, None], t[None, :])
    assert np.linalg.norm(field.on_grid(x, t) - want) < 0.02 * np.linalg.norm(want)


def test_units_do_not_matter() -> None:
    observations = grid_observations()
    large = replace(observations, y=1e6 * observations.y)
    axes = (np.linspace(0, 6, 20), np.linspace(0, 2, 15))
    first, million = (projected.fit(o, small(updates=20), progress=False) for o in (observations, large))
    np.testing.assert_allclose(1e6 * first.on_grid(*axes), million.on_grid(*axes), rtol=1e-2, atol=2e4)


def test_offsets_do_not_matter() -> None:
    """The mean is taken off and coordinates are centered before anything is rounded to single precision."""
    observations, shift, origin = grid_observations(), 300.0, 1e6
    domain = observations.domain
    moved = replace(domain, low=(domain.low[0] + origin,), high=(domain.high[0] + origin,))
    far = replace(observations, x=observations.x + origin, y=observations.y + shift, domain=moved)
    x, t = np.linspace(0, 6, 20), np.linspace(0, 2, 15)
    near, there = (projected.fit(o, small(), progress=False) for o in (observations, far))
    np.testing.assert_allclose(there.on_grid(x + origin, t) - shift, near.on_grid(x, t), atol=0.05)


def test_divergence_is_named() -> None:
    with pytest.raises(ValueError, match=r"at update \d+"):
        projected.fit(grid_observations(), small(learning_rate=1e30), progress=False)


def test_periodic_axes_of_ones_own_data_close_and_the_papers_stay_as_they_are() -> None:
    observations = scattered_observations()
    field = projected.fit(observations, small(updates=20), progress=False)
    t = np.linspace(0, 2, 4)
    ends = field.on_grid(np.array([0.0, 2 * np.pi]), t)
    assert np.allclose(ends[0], ends[1], atol=1e-4)
    slopes = field.on_grid(np.array([0.0, 2 * np.pi]), t, alpha=(1,))
    assert np.allclose(slopes[0], slopes[1], atol=1e-3)
    papers = projected.fit(replace(observations, problem="ks"), small(updates=20), progress=False)
    ends = papers.on_grid(np.array([0.0, 2 * np.pi]), t)
    assert not np.allclose(ends[0], ends[1], atol=1e-4)
