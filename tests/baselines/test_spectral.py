"""The spectral reconstruction: a ridge fit, whoever solves it; left-out errors that are those of refits."""

from dataclasses import replace

import numpy as np
import pytest

from fts.baselines import spectral
from fts.baselines.spectral import SPECTRAL
from fts.domain import Domain
from fts.fields.frozen import FrozenField
from fts.observations import Observations

LINE = Domain((0.0,), (2 * np.pi,), 0.0, 3.0, (True,))
PLANE = Domain((-1.0, 0.0), (1.0, 3.0), 0.0, 2.0, (False, False))
FEW = replace(SPECTRAL, modes=(1, 2, 3))


def waves(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    return np.sin(x - 2 * t) + 0.5 * np.cos(2 * (x - 2 * t))


def on_line(
    rng: np.random.Generator, sensors: int = 20, frames: int = 15, noise: float = 0.1
) -> Observations:
    """Irregular sensors at irregular frames."""
    x, t = np.sort(rng.uniform(0, 2 * np.pi, sensors)), np.sort(rng.uniform(0, 3, frames))
    y = waves(x[:, None], t) + 0.7 + noise * rng.standard_normal((sensors, frames))
    return Observations(np.repeat(x, frames)[:, None], np.tile(t, sensors), y.ravel(), LINE)


def on_plane(rng: np.random.Generator, scattered: bool) -> Observations:
    """Sensors on a grid of the plane, or a third of them, at nine frames."""
    x, y, t = np.linspace(-1, 1, 8), np.linspace(0, 3, 9), np.linspace(0, 2, 9)
    points = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)
    if scattered:
        points = points[np.sort(rng.permutation(len(points))[:30])]
    values = np.sin(points[:, :1] - t) * np.cos(points[:, 1:] + t) + 0.05 * rng.standard_normal(
        (len(points), 9)
    )
    return Observations(np.repeat(points, 9, axis=0), np.tile(t, len(points)), values.ravel(), PLANE)


def without_grid(observations: Observations, rng: np.random.Generator) -> Observations:
    """A few samples lost, the rest in any order."""
    kept = rng.permutation(len(observations))[:-4]
    return replace(observations, x=observations.x[kept], t=observations.t[kept], y=observations.y[kept])


def matrix(observations: Observations, bases: spectral.Bases) -> np.ndarray:
    """A, written out: cosines and sines with their periods."""
    columns = []
    for basis, z in zip(bases, (*observations.x.T, observations.t), strict=True):
        phase = 2 * np.pi * (z - basis.low) / (basis.high - basis.low)
        rows = [np.ones_like(z)]
        for k in range(1, basis.size // 2 + 1):
            rows += [np.sqrt(2) * np.cos(k * phase), np.sqrt(2) * np.sin(k * phase)]
        columns.append(np.array(rows).T)
    A = columns[0]
    for factor in columns[1:]:
        A = np.einsum("ni,nj->nij", A, factor).reshape(len(A), -1)
    return A


CASES = ["line", "plane", "scattered sensors", "scattered"]


def case(name: str, rng: np.random.Generator) -> tuple[Observations, spectral.Bases]:
    samples = {
        "line": lambda: on_line(rng),
        "plane": lambda: on_plane(rng, False),
        "scattered sensors": lambda: on_plane(rng, True),
        "scattered": lambda: without_grid(on_line(rng), rng),
    }[name]()
    return samples, spectral.bases(samples.domain, (2, 3), FEW)


def solve(samples: Observations, bases: spectral.Bases, penalty: float) -> np.ndarray:
    solver = spectral.solve_scattered if samples.grid is None else spectral.solve_grid
    return solver(samples, bases, penalty)


@pytest.mark.parametrize("name", CASES)
def test_every_solver_minimizes_the_penalized_misfit(name, rng):
    samples, bases = case(name, rng)
    A, y = matrix(samples, bases), samples.y - samples.y.mean()
    np.testing.assert_allclose(
        spectral.functions(bases, np.column_stack([samples.x, samples.t])), A, atol=1e-12
    )
    expected = np.linalg.solve(A.T @ A / len(y) + 1e-3 * np.eye(A.shape[1]), A.T @ y / len(y))
    selection = solve(samples, bases, 1e-3)
    np.testing.assert_allclose(selection.ravel(), expected, atol=1e-10)


@pytest.mark.parametrize("name", CASES)
def test_left_out_errors_are_those_of_refits_without_the_samples(name, rng):
    samples, bases = case(name, rng)
    A, y = matrix(samples, bases), samples.y - samples.y.mean()
    total = 0.0
    position = samples.x @ np.array([1.0, 100.0])[: samples.x.shape[1]]
    masks = (
        spectral.inner_points(samples.domain, samples.x, FEW.ends),
        spectral.inner_times(samples.domain, samples.t, FEW.ends),
    )
    for label, scored in zip((position, samples.t), masks, strict=True):
        errors = np.empty(len(y))
        for each in np.unique(label):
            out = label == each
            gram = A[~out].T @ A[~out] + len(y) * FEW.penalty * np.eye(A.shape[1])
            errors[out] = y[out] - A[out] @ np.linalg.solve(gram, A[~out].T @ y[~out])
        total += np.mean(errors[scored] ** 2)
    scattered = samples.grid is None
    leave_one_out = spectral.scattered_leave_one_out if scattered else spectral.grid_leave_one_out
    scores = leave_one_out(samples, {(2, 3): bases}, FEW)
    assert scores == {(2, 3): pytest.approx(total, rel=1e-8)}


def test_samples_at_the_ends_of_an_open_axis_are_not_scored():
    x = np.array([[-1.0, 1.0], [0.0, 0.1], [0.0, 1.0], [0.95, 2.0]])
    np.testing.assert_array_equal(spectral.inner_points(PLANE, x, 0.05), [False, False, True, False])
    np.testing.assert_array_equal(
        spectral.inner_times(LINE, np.array([0.0, 0.2, 2.9]), 0.05), [False, True, False]
    )
    np.testing.assert_array_equal(spectral.inner_points(LINE, np.array([[0.0], [6.2]]), 0.05), [True, True])
    with pytest.raises(ValueError, match="lower `ends`"):
        spectral.inner_times(LINE, np.array([0.0, 3.0]), 0.05)


def test_the_field_and_its_derivatives_are_those_of_the_waves(rng):
    # Continued by a quarter, this record is one period of the waves in time: they are in the span.
    record = Domain((0.0,), (2 * np.pi,), 0.0, 0.8 * np.pi, (True,))
    x, t = np.sort(rng.uniform(0, 2 * np.pi, 20)), np.sort(rng.uniform(0, 0.8 * np.pi, 15))
    y = waves(x[:, None], t) + 0.7
    samples = Observations(np.repeat(x, 15)[:, None], np.tile(t, 20), y.ravel(), record)
    field = spectral.reconstruct(samples, replace(FEW, penalty=1e-12))
    assert isinstance(field, FrozenField)
    x, t = np.linspace(0, 6, 31), np.linspace(0.1, 2.4, 21)
    phase = x[:, None] - 2 * t
    close = {"rtol": 0, "atol": 1e-6}
    np.testing.assert_allclose(field.on_grid(x, t), waves(x[:, None], t) + 0.7, **close)
    u_xxx = -np.cos(phase) + 4 * np.sin(2 * phase)
    np.testing.assert_allclose(field.on_grid(x, t, alpha=(3,)), u_xxx, **close)
    u_t = -2 * np.cos(phase) + 2 * np.sin(2 * phase)
    np.testing.assert_allclose(field.on_grid(x, t, order=1), u_t, **close)
    points = np.column_stack([x[:21], t])
    np.testing.assert_allclose(field.derivative(points, (3,)), np.diag(u_xxx), **close)


def test_the_lowest_left_out_error_wins_and_is_told(rng, tmp_path):
    samples = on_line(rng)
    made = spectral.compare(samples, FEW)
    assert made.errors.keys() == set(spectral.candidates(samples, FEW))
    assert made.errors[made.waves] == min(made.errors.values())
    assert made.waves[0] == 2  # the waves have two wavelengths
    assert made.field.made.parameters["waves"] == list(made.waves)
    made.field.save(tmp_path / "field.fts")
    again = FrozenField.load(tmp_path / "field.fts")
    axes = np.linspace(0, 6, 7), np.linspace(0, 3, 5)
    np.testing.assert_array_equal(again.on_grid(*axes), made.field.on_grid(*axes))


def test_the_reconstruction_follows_units_and_knows_no_order(rng):
    samples = on_line(rng)
    first = spectral.compare(samples, FEW)
    wide = Domain((0.0,), (20 * np.pi,), 0.0, 6.0, (True,))
    other = replace(samples, x=10 * samples.x, t=2 * samples.t, y=3 * samples.y - 5, domain=wide)
    turned = rng.permutation(len(samples))
    shuffled = replace(samples, x=samples.x[turned], t=samples.t[turned], y=samples.y[turned])
    second, third = (spectral.compare(each, FEW) for each in (other, shuffled))
    assert first.waves == second.waves == third.waves
    x, t = np.linspace(0, 6, 11), np.linspace(0, 3, 7)
    np.testing.assert_allclose(
        second.field.on_grid(10 * x, 2 * t), 3 * first.field.on_grid(x, t) - 5, atol=1e-9
    )
    np.testing.assert_allclose(third.field.on_grid(x, t), first.field.on_grid(x, t), atol=1e-9)


def test_a_series_has_no_more_functions_than_places_or_times(rng):
    samples = on_line(rng, sensors=6, frames=9)
    assert spectral.candidates(samples, replace(FEW, modes=(1, 2, 3, 4))) == [
        (k, m) for k in (1, 2) for m in (1, 2, 3, 4)
    ]
    plane = on_plane(rng, True)  # thirty places: five functions to either side are 25, seven are 49
    assert {k for k, _ in spectral.candidates(plane, FEW)} == {1, 2}


def test_too_many_unknowns_are_refused_with_a_remedy(rng):
    samples = without_grid(on_line(rng), rng)
    assert samples.grid is None
    assert spectral.candidates(samples, replace(FEW, unknowns=9)) == [(1, 1)]
    with pytest.raises(ValueError, match="at most 8 unknowns: add samples"):
        spectral.reconstruct(samples, replace(FEW, unknowns=8))
    with pytest.raises(ValueError, match="scattered"):
        spectral.solve_grid(samples, spectral.bases(LINE, (1, 1), FEW), 1e-3)


def test_both_solvers_agree_on_a_grid(rng):
    samples = on_plane(rng, True)
    series = {waves: spectral.bases(PLANE, waves, FEW) for waves in spectral.candidates(samples, FEW)}
    dense = spectral.scattered_leave_one_out(samples, series, FEW)
    assert dense == pytest.approx(spectral.grid_leave_one_out(samples, series, FEW), rel=1e-8)
    for bases in series.values():
        factored = spectral.solve_grid(samples, bases, 1e-3)
        np.testing.assert_allclose(factored, spectral.solve_scattered(samples, bases, 1e-3), atol=1e-9)
