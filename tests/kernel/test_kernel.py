"""The closed-form field: its algebra against dense matrices, its errors against refits, its frozen form."""

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import fts
from fts.domain import Domain
from fts.equations.terms import Library
from fts.fields.frozen import FrozenField
from fts.kernel import closed_form, covariance, cross_validation
from fts.kernel.covariance import FAMILIES, Kernel, KernelFamily, SampleAxis
from fts.kernel.posterior import PosteriorVariance
from fts.kernel.separable import ExactVariance, SeparablePosterior, condition_grid
from fts.observations import Observations
from fts.params.types import WeakParams
from fts.problems.trajectories import observe, simulate
from fts.weak import assembly

PERIOD = 2 * np.pi
DOMAIN = Domain((0.0,), (PERIOD,), 0.0, 2.0, (True,))
OPEN = Domain((0.0, 0.0), (1.0, 2.0), 0.0, 1.0, (False, False))
NUGGET = 1e-3


def _wave(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    return np.exp(np.sin(x - t)) + 0.3 * np.cos(2 * x + t)


def _observations(
    sensors: int, frames: int, noise: float = 0.0, seed: int = 4, domain: Domain = DOMAIN
) -> Observations:
    rng = np.random.default_rng(seed)
    # one random position per cell: irregular, without gaps that no method could bridge
    x = (np.arange(sensors) + rng.uniform(0.1, 0.9, sensors)) * PERIOD / sensors
    t = np.linspace(0, 2, frames)
    xx, tt = np.repeat(x, frames), np.tile(t, sensors)
    y = _wave(xx, tt)
    return Observations(xx[:, None], tt, y + noise * y.std() * rng.standard_normal(y.size), domain)


def _plane(sensors: int, frames: int) -> Observations:
    """Scattered sensors in two dimensions."""
    rng = np.random.default_rng(6)
    points = rng.uniform([0, 0], [1, 2], (sensors, 2))
    t = np.linspace(0, 1, frames)
    x, tt = np.repeat(points, frames, axis=0), np.tile(t, sensors)
    y = np.exp(-((x[:, 0] - 0.4 - 0.2 * tt) ** 2) - (x[:, 1] - 1) ** 2)
    return Observations(x, tt, y, OPEN)


def _small_parts(circle: bool) -> tuple[SampleAxis, ...]:
    rng = np.random.default_rng(0)
    x = np.arange(7) * PERIOD / 7 if circle else np.sort(rng.uniform(0, PERIOD, 7))
    space = SampleAxis(x[:, None], (PERIOD,), (PERIOD,))
    plane = SampleAxis(rng.uniform(0, 1, (5, 2)), (1.0, 1.0), (None, None))
    time = SampleAxis(np.sort(rng.uniform(0, 2, 4))[:, None], (2.0,), (None,))
    return space, plane, time


KERNELS = (Kernel("rational", (1.1,)), Kernel("gaussian", (0.5, 0.8)), Kernel("rational", (0.9,)))


def _dense(parts: tuple[SampleAxis, ...]) -> np.ndarray:
    matrix = np.ones((1, 1))
    for part, chosen in zip(parts, KERNELS, strict=True):
        matrix = np.kron(matrix, part.cross(part.points, chosen))
    return matrix


@pytest.mark.parametrize("circle", [False, True])
def test_product_solve_is_the_dense_solve(circle: bool) -> None:
    parts = _small_parts(circle)
    y = np.random.default_rng(1).standard_normal((7, 5, 4))
    spectra = [covariance.decompose(part, k) for part, k in zip(parts, KERNELS, strict=True)]
    solved = covariance.rotate(y, spectra) * covariance.precision(spectra, NUGGET)
    for axis, spectrum in enumerate(spectra):
        solved = covariance.multiply(solved, spectrum.vectors, axis)
    dense = np.linalg.solve(_dense(parts) + NUGGET * np.eye(y.size), y.ravel())
    assert np.allclose(solved.ravel(), dense, rtol=1e-9, atol=1e-9 * np.abs(dense).max())


def test_fourier_modes_diagonalize_a_circle() -> None:
    for n in (7, 8):
        part = SampleAxis((np.arange(n) * PERIOD / n + 0.3)[:, None], (PERIOD,), (PERIOD,))
        assert part.circulant
        spectrum = covariance.decompose(part, KERNELS[0])
        again = (spectrum.vectors * spectrum.values) @ spectrum.vectors.T
        assert np.allclose(again, part.cross(part.points, KERNELS[0]), atol=1e-13)
        assert np.allclose(spectrum.vectors.T @ spectrum.vectors, np.eye(n), atol=1e-13)


@pytest.mark.parametrize("circle", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_left_out_errors_are_those_of_refits(circle: bool, axis: int) -> None:
    parts = _small_parts(circle)
    y = np.random.default_rng(2).standard_normal((7, 5, 4))
    spectra = [covariance.decompose(part, k) for part, k in zip(parts, KERNELS, strict=True)]
    shortcut = cross_validation.leave_group_out_of_grid(
        spectra, covariance.rotate(y, spectra), NUGGET, axis, parts[axis]
    )
    matrix = _dense(parts) + NUGGET * np.eye(y.size)
    position = np.indices(y.shape)[axis].ravel()

    def refit(slices: tuple[int, ...]) -> float:
        out = np.isin(position, slices)
        keep = ~out
        predicted = matrix[np.ix_(out, keep)] @ np.linalg.solve(matrix[np.ix_(keep, keep)], y.ravel()[keep])
        return float(np.mean((predicted - y.ravel()[out]) ** 2))

    pairs = parts[axis].neighbours
    if parts[axis].circulant:  # on a circle the last slice and the first are neighbours too
        pairs = np.vstack([pairs, [6, 0]])
    assert shortcut[0] == pytest.approx(np.mean([refit((j,)) for j in range(y.shape[axis])]), rel=1e-9)
    assert shortcut[1] == pytest.approx(np.mean([refit(tuple(pair)) for pair in pairs]), rel=1e-9)


def test_scattered_partners_are_nearest_neighbours() -> None:
    points = np.array([[0.0, 0.0], [0.1, 0.0], [1.0, 1.0], [1.0, 0.9], [0.0, 0.3]])
    part = SampleAxis(points, (1.0, 1.0), (None, None))
    assert {tuple(pair) for pair in part.neighbours.tolist()} == {(0, 1), (2, 3), (0, 4)}


def test_clean_data_are_interpolated() -> None:
    observations = _observations(30, 20)
    field = closed_form.fit(observations, progress=False)
    points = np.column_stack([observations.x, observations.t])
    tolerance = field.made.parameters["tolerance"]
    assert np.std(field(points) - observations.y) < 3 * tolerance * np.std(observations.y)


def test_error_falls_faster_than_any_fixed_order() -> None:
    x, t = np.linspace(0, PERIOD, 61), np.linspace(0, 2, 31)
    exact = _wave(*np.meshgrid(x, t, indexing="ij"))
    errors = [
        np.sqrt(np.mean((condition_grid(_observations(n, n), progress=False).on_grid(x, t) - exact) ** 2))
        for n in (8, 12, 18)
    ]
    rates = [np.log(a / b) / np.log(1.5) for a, b in pairwise(errors)]
    assert min(rates) > 3
    assert errors[-1] < 1e-4


def test_field_and_derivatives_are_periodic() -> None:
    field = closed_form.fit(_observations(30, 20), progress=False)
    t = np.linspace(0, 2, 5)
    for order in range(5):
        ends = field.on_grid(np.array([0.0, PERIOD]), t, alpha=(order,))
        assert np.allclose(ends[0], ends[1], atol=1e-9)


def test_derivatives_approach_those_of_the_field() -> None:
    field = closed_form.fit(_observations(40, 40), progress=False)
    x, t = np.linspace(0, PERIOD, 41), np.linspace(0.3, 1.7, 21)
    grid = np.meshgrid(x, t, indexing="ij")
    h = 1e-4
    # the complex step is exact for an analytic field
    slope = np.imag(_wave(grid[0] + 1j * h, grid[1])) / h
    rate = np.imag(_wave(grid[0], grid[1] + 1j * h)) / h
    assert np.abs(field.on_grid(x, t, alpha=(1,)) - slope).max() < 1e-3
    assert np.abs(field.on_grid(x, t, order=1) - rate).max() < 1e-3
    step = 1e-3
    for alpha, order in (((4,), 0), ((2,), 2)):
        below = (alpha[0] - 1,)
        difference = field.on_grid(x + step, t, alpha=below, order=order)
        difference = (difference - field.on_grid(x - step, t, alpha=below, order=order)) / (2 * step)
        exact = field.on_grid(x, t, alpha=alpha, order=order)
        assert np.abs(exact - difference).max() < 1e-4 * np.abs(exact).max()


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_freezing_keeps_the_posterior_mean_to_the_stated_tolerance(noise: float) -> None:
    observations = _observations(40, 30, noise)
    posterior = condition_grid(observations, progress=False)
    field = closed_form.freeze(posterior, observations)
    axes = (np.linspace(0, PERIOD, 101), np.linspace(0, 2, 61))
    difference = field.on_grid(*axes) - posterior.on_grid(*axes)
    tolerance = field.made.parameters["tolerance"]
    assert tolerance == pytest.approx(max(1e-6, 1e-3 * posterior.noise / posterior.scale))
    assert np.sqrt(np.mean(difference**2)) < 2 * tolerance * posterior.scale


def test_freezing_keeps_weak_systems() -> None:
    observations = _observations(40, 30)
    posterior = condition_grid(observations, progress=False)
    library = Library.parse(["u", "u*u_x", "u_xx", "u_xxxx"])
    params = WeakParams(half_widths=(1.0, 0.4), patches=(6, 5), nodes=(40, 30), power=8)
    first, two = (
        assembly.assemble(field, library, params, np.array([0.3, 0.6]))
        for field in (posterior, closed_form.freeze(posterior, observations))
    )
    assert np.allclose(first.A, two.A, atol=1e-5 * np.abs(first.A).max(axis=0))
    assert np.allclose(first.b, two.b, atol=1e-5 * np.abs(first.b).max())


@pytest.mark.parametrize("noise", [0.05, 0.2, 0.5])
def test_noise_is_estimated_and_suppressed(noise: float) -> None:
    observations = _observations(40, 40, noise)
    posterior = condition_grid(observations, progress=False)
    exact = _wave(observations.x[:, 0], observations.t)
    assert posterior.noise == pytest.approx(noise * exact.std(), rel=0.15)
    grid = observations.grid
    assert grid is not None
    fitted = posterior.on_grid(grid.sensors[:, 0], grid.frames)
    assert np.std(fitted.ravel() - exact) < 0.35 * noise * exact.std()


def test_posterior_variance_is_that_of_the_dense_process() -> None:
    observations = _plane(12, 6)
    posterior = condition_grid(observations, progress=False)
    axes = (np.array([0.1, 0.7]), np.array([0.2, 1.1, 1.9]), np.array([0.05, 0.5]))
    variance = posterior.variance()
    assert isinstance(variance, ExactVariance)
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    sensors, frames = posterior.parts
    chosen = posterior.choice.kernels
    matrix = np.kron(sensors.cross(sensors.points, chosen[0]), frames.cross(frames.points, chosen[1]))
    matrix += posterior.nugget * np.eye(len(matrix))
    rows = np.einsum(
        "ns,nf->nsf", sensors.cross(points[:, :2], chosen[0]), frames.cross(points[:, 2:], chosen[1])
    )
    rows = rows.reshape(len(points), -1)
    rest = 1 - np.einsum("ns,sn->n", rows, np.linalg.solve(matrix, rows.T))
    scale = posterior.scale**2 * posterior.amplitude
    assert np.allclose(variance.on_grid(*axes).ravel(), scale * rest, atol=1e-6 * scale)
    assert variance.domain == OPEN


def test_variance_is_small_at_samples_and_says_what_to_expect_between() -> None:
    observations = _observations(24, 24, noise=0.1)
    field, variance = fts.fit_with_variance(observations, progress=False)
    x, t = np.linspace(0, PERIOD, 80), np.linspace(0, 2, 40)
    error = field.on_grid(x, t) - _wave(*np.meshgrid(x, t, indexing="ij"))
    expected = np.sqrt(np.mean(variance.on_grid(x, t)))
    assert 0.4 < np.sqrt(np.mean(error**2)) / expected < 2.5


def test_scattered_sensors_in_two_dimensions() -> None:
    observations = _plane(120, 10)
    field = closed_form.fit(observations, progress=False)
    x, y, t = np.linspace(0.1, 0.9, 9), np.linspace(0.2, 1.8, 9), np.linspace(0, 1, 7)
    xx, yy, tt = np.meshgrid(x, y, t, indexing="ij")
    exact = np.exp(-((xx - 0.4 - 0.2 * tt) ** 2) - (yy - 1) ** 2)
    assert np.abs(field.on_grid(x, y, t) - exact).max() < 1e-5
    assert field.space.dimension == 2


def test_full_grids_use_one_factor_per_axis() -> None:
    trajectory = simulate("ad")
    observations = observe(trajectory, "T20", seed=42)
    posterior = condition_grid(observations, progress=False)
    assert [len(part.points) for part in posterior.parts] == [51, 51, 12]
    u = closed_form.freeze(posterior, observations).on_grid(*trajectory.axes, trajectory.t)
    assert np.linalg.norm(u - trajectory.u) < 1e-3 * np.linalg.norm(trajectory.u)


def test_choice_does_not_depend_on_units() -> None:
    observations = _observations(16, 12)
    scaled = Domain((0.0,), (PERIOD * 100,), 0.0, 0.02, (True,))
    two = Observations(observations.x * 100, observations.t / 100, 5 + 1e3 * observations.y, scaled)
    a, b = (condition_grid(each, progress=False).choice for each in (observations, two))
    assert a.nugget == pytest.approx(b.nugget)
    assert b.kernels[0].lengths[0] == pytest.approx(100 * a.kernels[0].lengths[0])
    assert b.kernels[1].lengths[0] == pytest.approx(a.kernels[1].lengths[0] / 100)


def test_saved_field_is_small_and_loads_as_it_was(tmp_path: Path) -> None:
    field = closed_form.fit(_observations(40, 30, noise=0.05), progress=False)
    path = tmp_path / "field.fts"
    field.save(path)
    again = FrozenField.load(path)
    axes = (np.linspace(0, PERIOD, 13), np.linspace(0, 2, 7))
    assert np.array_equal(
        again.on_grid(*axes, alpha=(2,), order=1), field.on_grid(*axes, alpha=(2,), order=1)
    )
    assert again.made == field.made
    assert path.stat().st_size < 100_000


def test_size_is_bounded_by_loosening_the_stated_tolerance() -> None:
    rng = np.random.default_rng(9)
    x, t = np.arange(120) * PERIOD / 120, np.linspace(0, 2, 120)
    y = rng.standard_normal((120, 120))  # nothing to compress
    observations = Observations(np.repeat(x, 120)[:, None], np.tile(t, 120), y.ravel(), DOMAIN)
    parts = covariance.factors(x[:, None], (x,), t, DOMAIN)
    kernels = (Kernel("gaussian", (0.1,)), Kernel("gaussian", (0.04,)))
    spectra = tuple(covariance.decompose(part, k) for part, k in zip(parts, kernels, strict=True))
    weights = covariance.rotate(y, spectra) * covariance.precision(spectra, 1e-8)
    choice = covariance.Choice(kernels, 1e-8, (1.0, 1.0))
    posterior = SeparablePosterior(
        parts=parts,
        spectra=spectra,
        values=y,
        weights=weights,
        amplitude=1.0,
        domain=DOMAIN,
        choice=choice,
        mean=0.0,
        scale=1.0,
        noise=1e-4,
    )
    field = closed_form.freeze(posterior, observations)
    assert field.space.arrays()["coefficients"].size + field.time.arrays()["coefficients"].size <= 24_000
    assert field.made.parameters["tolerance"] > 1e-6


MATERN = KernelFamily(
    lambda r: (1 + 7**0.5 * r + 2.8 * r**2 + 7**1.5 / 15 * r**3) * np.exp(-(7**0.5) * np.abs(r)),
    lambda rng, n: 1 / rng.gamma(3.5, 1 / 3.5, n),
)


@pytest.mark.parametrize("family", [*FAMILIES.values(), MATERN])
def test_frequencies_are_drawn_from_the_spectrum_of_the_kernel(family: KernelFamily) -> None:
    rng, r = np.random.default_rng(3), np.linspace(0, 3, 7)
    w = np.concatenate([family.sample_frequencies(0.7, 1, rng).ravel() for _ in range(40)])
    assert np.allclose(np.cos(np.outer(r, w)).mean(axis=1), family.covariance(r / 0.7), atol=0.02)
    k = np.arange(1, 200)
    theta = np.linspace(0, 2 * np.pi, 9)
    series = family.fourier_coefficients(0.7, PERIOD)
    total = series[0] + 2 * np.cos(np.outer(theta, k)) @ series[1:200]
    assert np.allclose(total, family.covariance(2 * np.abs(np.sin(theta / 2)) / 0.7), atol=1e-6)


@pytest.mark.parametrize("scattered", [False, True])
def test_a_third_family_is_registered_in_one_place(monkeypatch: pytest.MonkeyPatch, scattered: bool) -> None:
    for family in tuple(FAMILIES):
        monkeypatch.delitem(FAMILIES, family)
    monkeypatch.setitem(FAMILIES, "matern", MATERN)
    observations = _observations(24, 20, noise=0.1)
    if scattered:
        rng = np.random.default_rng(5)
        x, t = rng.uniform(0, PERIOD, 700), rng.uniform(0, 2, 700)
        y = _wave(x, t)
        observations = Observations(
            x[:, None], t, y + 0.1 * y.std() * rng.standard_normal(700), observations.domain
        )
    field, variance = fts.fit_with_variance(observations, progress=False)
    assert {kernel["family"] for kernel in field.made.parameters["kernels"]} == {"matern"}
    assert isinstance(variance, PosteriorVariance)
    x, t = np.linspace(0, PERIOD, 40), np.linspace(0, 2, 20)
    truth = _wave(*np.meshgrid(x, t, indexing="ij"))
    draws = variance.posterior.draw(field, 30, np.random.default_rng(1))
    scatter = np.sqrt(np.mean([(draw.on_grid(x, t) - field.on_grid(x, t)) ** 2 for draw in draws]))
    assert np.std(field.on_grid(x, t) - truth) < 0.1 * truth.std()
    assert scatter == pytest.approx(np.sqrt(np.mean(variance.on_grid(x, t))), rel=0.25)


def test_halves_of_a_grid_need_a_grid() -> None:
    rng = np.random.default_rng(1)
    x, t = rng.uniform(0, PERIOD, (50, 1)), rng.uniform(0, 2, 50)
    with pytest.raises(ValueError, match=r"fts\.fit, which takes any samples"):
        condition_grid(Observations(x, t, x[:, 0] * t, DOMAIN), progress=False)


def test_constant_data_are_refused() -> None:
    observations = _observations(8, 6)
    with pytest.raises(ValueError, match=r"all samples equal 2\.0"):
        closed_form.fit(
            Observations(observations.x, observations.t, np.full(len(observations), 2.0), DOMAIN),
            progress=False,
        )


def test_no_torch() -> None:
    code = "import sys, fts.kernel; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_linear_algebra_takes_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    class Seen(Exception):
        pass

    def threads() -> list[int]:
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    def look(*_, **__):
        raise Seen(max(threads()))

    monkeypatch.setattr(closed_form, "condition_grid", look)
    observations = observe(simulate("kdv"), "S5", seed=3)
    with threadpool_limits(2, user_api="blas"):
        assert max(threads()) == 2
        with pytest.raises(Seen, match="1"):
            closed_form.condition(observations, progress=False)
        assert max(threads()) == 2
