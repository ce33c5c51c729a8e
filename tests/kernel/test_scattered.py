"""Closed-form fields from samples anywhere: against dense processes and full grids, and their invariances."""

import multiprocessing
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fts
from fts.domain import Domain
from fts.kernel import closed_form, cross_validation, normal_equations, search
from fts.kernel.covariance import FAMILIES, Choice, Kernel, decompose, distance
from fts.kernel.cross_validation import HoldOut, tracks
from fts.kernel.fourier import PADDING, FourierBasis, fourier_sums, trigonometric
from fts.kernel.normal_equations import FourierSums
from fts.kernel.posterior import DrawnVariance
from fts.kernel.separable import ScatteredPosterior, SeparablePosterior, condition_partial_grid
from fts.observations import Observations
from fts.problems.development import development

NUGGET = 1e-3
DOMAINS = (
    Domain((0.0,), (2.0,), -1.0, 1.0, (True,)),
    Domain((0.0, 1.0), (1.0, 3.0), 0.0, 2.0, (False, True)),
    Domain((0.0, 1.0, 0.0), (1.0, 3.0, 1.0), 0.0, 2.0, (False, True, False)),
)


def _covariance_of(kernel: Kernel, r: np.ndarray) -> np.ndarray:
    return FAMILIES[kernel.family].covariance(r)


def _silent() -> None:
    return None


def _cloud(
    domain: Domain, sliced: str, count: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Points anywhere, at a few sensors, or in a few frames."""
    x = rng.uniform(domain.low, domain.high, (count, domain.dimension))
    t = rng.uniform(domain.t0, domain.t1, count)
    if sliced == "sensors":
        x = x[rng.integers(0, 12, count)]
    if sliced == "frames":
        t = t[rng.integers(0, 12, count)]
    return x, t


def _covariance(a: tuple, b: tuple, kernels: tuple[Kernel, ...], domain: Domain, sliced: str) -> np.ndarray:
    """The kernel between points, on closed axes where waves carry them."""
    *extents, duration = domain.extents
    periods = [e if closed else e * PADDING for e, closed in zip(extents, domain.periodic, strict=True)]
    if sliced == "sensors":
        periods = [e if closed else None for e, closed in zip(extents, domain.periodic, strict=True)]
    last = None if sliced == "frames" else duration * PADDING
    matrix = _covariance_of(kernels[1], distance(a[1], b[1], last) / kernels[1].lengths[0])
    for i, (period, length) in enumerate(zip(periods, kernels[0].lengths, strict=True)):
        matrix = matrix * _covariance_of(kernels[0], distance(a[0][:, i], b[0][:, i], period) / length)
    return matrix


def _kernels(domain: Domain) -> tuple[Kernel, ...]:
    share = 0.35 if domain.dimension < 3 else 0.8  # four axes of short waves are many
    lengths = tuple(share * e for e in domain.extents[:-1])
    return Kernel("rational", lengths), Kernel("gaussian", (share * domain.extents[-1],))


@pytest.mark.parametrize("sliced", ["", "sensors", "frames"])
@pytest.mark.parametrize("domain", DOMAINS, ids=["1D", "2D", "3D"])
def test_solve_is_that_of_the_dense_process(
    domain: Domain, sliced: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(normal_equations, "_FEWEST_MODES", 1 << 15)
    x, t = _cloud(domain, sliced, 250, rng)
    y = np.sin(3 * x[:, 0] + t) + 0.3 * rng.standard_normal(250)
    kernels = _kernels(domain)
    system = normal_equations.assemble(FourierSums(x, t, y, domain, sliced), kernels, NUGGET)
    solution = system.solve(system.right, tolerance=1e-10, most=2000)
    assert solution.converged
    matrix = _covariance((x, t), (x, t), kernels, domain, sliced) + NUGGET * np.eye(250)
    wanted = _cloud(domain, "", 40, rng)
    expected = _covariance(wanted, (x, t), kernels, domain, sliced) @ np.linalg.solve(matrix, y)
    mean = normal_equations.mean_function(system, solution.z)
    assert np.allclose(mean.at(*wanted), expected, atol=2e-4)
    axes = [np.unique(column)[:3] for column in (*wanted[0].T, wanted[1])]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(axes))
    assert np.allclose(mean.on_grid(*axes).ravel(), mean.at(points[:, :-1], points[:, -1]), atol=1e-8)


@pytest.mark.parametrize("axes", [1, 2, 3, 4])
def test_sums_and_densities_are_those_of_the_functions(axes: int, rng: np.random.Generator) -> None:
    most, count = (5, 4, 3, 2)[:axes], 60
    theta = [rng.uniform(-np.pi, np.pi, count) for _ in most]
    rows = np.ones((count, 1))
    for angle, m in zip(theta, most, strict=True):
        rows = (rows[:, :, None] * trigonometric(angle, m)[:, None, :]).reshape(count, -1)
    box, y = FourierBasis(most), rng.standard_normal(count)
    z = rng.standard_normal(box.shape)
    doubled = [2 * m for m in most]
    assert np.allclose(box.values(theta, z), rows @ z.ravel(), atol=1e-9)
    assert np.allclose(box.project(fourier_sums(theta, y, doubled)).ravel(), rows.T @ y, atol=1e-9)
    density = box.density(fourier_sums(theta, np.ones(count), doubled))
    applied = box.analyze(density * box.synthesize(z))
    assert np.allclose(applied.ravel(), rows.T @ (rows @ z.ravel()), atol=1e-8)


def test_sums_in_chunks_are_the_sums(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    theta, y = [rng.uniform(-3, 3, 100)], rng.standard_normal(100)
    whole = fourier_sums(theta, y, [7])
    monkeypatch.setattr("fts.kernel.fourier._CHUNK", 33)
    assert np.allclose(fourier_sums(theta, y, [7]), whole, atol=1e-10)


def test_a_grid_with_holes_is_the_dense_process(rng: np.random.Generator) -> None:
    domain = DOMAINS[0]
    x, t = np.sort(rng.uniform(0, 2, 15)), np.linspace(-1, 1, 14)
    known = rng.random((15, 14)) < 0.7
    xx, tt = (a[known] for a in np.meshgrid(x, t, indexing="ij"))
    y = np.sin(3 * xx + tt)
    observations = Observations(xx[:, None], tt, y, domain)
    samples = normal_equations.partial_grid(observations, y)
    assert samples is not None
    assert np.array_equal(samples.known, known)
    kernels = _kernels(domain)
    system = samples.system(kernels, NUGGET, samples.known)
    solution = system.solve(samples.values)
    assert solution.converged
    choice = Choice(kernels, NUGGET, (0.0, 0.0))
    process = SeparablePosterior(
        parts=samples.parts,
        spectra=system.spectra,
        values=samples.values,
        weights=system.weights(solution.z),
        amplitude=1.0,
        holes=system,
        domain=domain,
        choice=choice,
        mean=0.0,
        scale=1.0,
        noise=NUGGET**0.5,
    )
    assert process.split(1, 0.1, rng) == ()
    axes = np.linspace(0, 2, 7), np.linspace(-1, 1, 5)
    where = tuple(a.ravel() for a in np.meshgrid(*axes, indexing="ij"))
    ks, kt = kernels
    times = _covariance_of(kt, distance(tt, tt, None) / kt.lengths[0])
    matrix = _covariance_of(ks, distance(xx, xx, 2.0) / ks.lengths[0]) * times + NUGGET * np.eye(len(y))
    rows = _covariance_of(ks, distance(where[0], xx, 2.0) / ks.lengths[0])
    rows = rows * _covariance_of(kt, distance(where[1], tt, None) / kt.lengths[0])
    assert np.allclose(process.on_grid(*axes).ravel(), rows @ np.linalg.solve(matrix, y), atol=1e-5)


def _wave(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    return np.exp(np.sin(np.pi * (x - 0.5 * t))) + 0.3 * np.cos(2 * np.pi * x + t)


def _random(count: int, noise: float, seed: int = 3) -> Observations:
    rng = np.random.default_rng(seed)
    x, t = _cloud(DOMAINS[0], "", count, rng)
    y = _wave(x[:, 0], t)
    return Observations(x, t, y + noise * y.std() * rng.standard_normal(count), DOMAINS[0])


GRID = np.linspace(0, 2, 41), np.linspace(-1, 1, 33)
TRUTH = _wave(*np.meshgrid(*GRID, indexing="ij"))


@pytest.fixture(scope="module")
def noisy() -> tuple[Observations, ScatteredPosterior]:
    observations = _random(800, 0.1)
    posterior = closed_form.condition(observations, progress=False)
    assert isinstance(posterior, ScatteredPosterior)
    return observations, posterior


def test_scattered_samples_give_the_field_and_its_noise(noisy: tuple) -> None:
    observations, posterior = noisy
    error = np.linalg.norm(posterior.on_grid(*GRID) - TRUTH) / np.linalg.norm(TRUTH - TRUTH.mean())
    assert error < 0.06
    assert posterior.noise == pytest.approx(0.1 * TRUTH.std(), rel=0.2)
    field = closed_form.freeze(posterior, observations)
    tolerance = field.made.parameters["tolerance"] * posterior.scale
    assert np.std(field.on_grid(*GRID) - posterior.on_grid(*GRID)) < 3 * tolerance
    assert {"noise_estimate", "left_out", "kernels", "nugget"} <= set(field.made.parameters)


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("clocks", ["common", "own"])
def test_probes_that_stay_in_places_are_told_from_points_anywhere(
    dimension: int, clocks: str, rng: np.random.Generator
) -> None:
    probes, frames = 40, 60
    domain = Domain((0.0,) * dimension, (1.0,) * dimension, 0.0, 1.0, (True,) * dimension)
    t = np.tile(np.linspace(0, 1, frames), probes)
    if clocks == "own":
        t = rng.random(t.size)
    start, speed = rng.random((2, probes, dimension))
    drifting = np.repeat(start, frames, axis=0) + 0.1 * np.repeat(speed - 0.5, frames, axis=0) * t[:, None]
    y = rng.standard_normal(t.size)
    paths = tracks(Observations(drifting % 1, t, y, domain))
    assert paths is not None
    if clocks == "common":  # a tile is about as wide as the probes are apart
        assert 0.5 * probes < np.unique(paths).size <= 1.3 * probes
    assert tracks(Observations(rng.random(drifting.shape), t, y, domain)) is None


@pytest.mark.slow
def test_noise_along_tracks_does_not_hide_what_lies_between_them() -> None:
    """A layout on which samples left out singly chose a kernel that errs by a third."""
    kdv = fts.simulate("kdv")
    observations = fts.observe(kdv, "D20", seed=46, noise=0.1)
    posterior = closed_form.condition(observations, progress=False)
    error = np.linalg.norm(posterior.on_grid(*kdv.axes, kdv.t) - kdv.u) / np.linalg.norm(kdv.u)
    assert error < 0.15
    between, single = posterior.choice.errors
    assert between > 1.2 * single


@pytest.mark.slow
def test_samples_are_not_given_up_for_what_nothing_predicts() -> None:
    """Forty probes are too few for this field; one that is smoother still errs less between them, and would
    take a part of the field for noise."""
    _, mkdv = development("mkdv")
    observations = fts.observe(mkdv, "D20", seed=9, noise=0.1)
    posterior = closed_form.condition(observations, progress=False)
    between, single = posterior.choice.errors
    assert between > 4 * single
    assert posterior.noise == pytest.approx(0.1 * mkdv.u.std(), rel=0.1)


def test_the_variance_is_enough_for_every_way_of_leaving_out() -> None:
    """A nugget that is far too small expects next to nothing of single samples, which err by the noise."""
    observations, rng = _random(900, 0.1), np.random.default_rng(3)
    values = (observations.y - observations.y.mean()) / observations.y.std()
    tiles = np.floor(observations.x[:, 0] * 10).astype(int)
    kernels = Kernel("gaussian", (0.08,)), Kernel("gaussian", (1.2,))

    def variance(ways: list) -> float:
        left = HoldOut(observations, values, "", ways, np.random.default_rng(5))
        return left.calibration(kernels, 1e-5, rng)()

    both, alone, between = (variance(ways) for ways in ([tiles, None], [None], [tiles]))
    assert both > 0.5 * alone > 5 * between
    assert 1e-5 * alone > 0.2 * 0.1**2  # the noise


def test_clean_scattered_samples_are_interpolated() -> None:
    posterior = closed_form.condition(_random(600, 0.0), progress=False)
    assert np.std(posterior.on_grid(*GRID) - TRUTH) < 2e-3 * TRUTH.std()


def test_variance_covers_what_the_field_misses(noisy: tuple) -> None:
    observations, posterior = noisy
    variance = posterior.variance()
    claimed = np.sqrt(variance.on_grid(*GRID))
    missed = np.abs(posterior.on_grid(*GRID) - TRUTH)
    assert 0.85 < np.mean(missed < 2 * claimed) <= 1
    assert 0.5 < np.sqrt(np.mean(missed**2) / np.mean(claimed**2)) < 2
    field = closed_form.freeze(posterior, observations)
    first, two = posterior.draw(field, 2, np.random.default_rng(0))
    assert not np.allclose(first.on_grid(*GRID), two.on_grid(*GRID))
    assert np.array_equal(DrawnVariance(posterior).on_grid(*GRID), variance.on_grid(*GRID))


def test_order_units_and_origin_do_not_matter(noisy: tuple) -> None:
    observations, posterior = noisy
    again = closed_form.condition(observations, progress=False)
    assert np.array_equal(again.on_grid(*GRID), posterior.on_grid(*GRID))
    o, d = observations, observations.domain
    scaled = Domain((0.0,), (20.0,), -3.0, 3.0, d.periodic)
    other = closed_form.condition(Observations(10 * o.x, 3 * o.t, 5 * o.y + 7, scaled), progress=False)
    moved = 5 * posterior.on_grid(*GRID) + 7
    assert np.allclose(other.on_grid(10 * GRID[0], 3 * GRID[1]), moved, atol=1e-3 * moved.std())


def _sensors(jitter: float, drop: int) -> Observations:
    rng = np.random.default_rng(8)
    x = (np.arange(20) + rng.uniform(0.1, 0.9, 20)) / 10
    xx, tt = np.repeat(x, 30), np.tile(np.linspace(-1, 1, 30), 20)
    y0 = np.random.default_rng(9).standard_normal(600)
    tt = np.clip(tt + jitter * rng.uniform(-1, 1, 600), -1, 1)
    y = _wave(xx, tt) + 0.1 * TRUTH.std() * y0
    keep = np.sort(rng.permutation(600)[drop:])
    return Observations(xx[keep, None], tt[keep], y[keep], DOMAINS[0])


@pytest.mark.parametrize(("jitter", "drop"), [(0.0, 1), (1e-3, 0), (0.0, 180)])
def test_holes_and_own_clocks_keep_the_quality_of_the_grid(jitter: float, drop: int) -> None:
    def error(observations: Observations) -> float:
        posterior = closed_form.condition(observations, progress=False)
        return float(np.std(posterior.on_grid(*GRID) - TRUTH) / TRUTH.std())

    allowed = 1.15 if drop < 2 else 1.6  # a third of the samples is a fifth of the accuracy
    assert error(_sensors(jitter, drop)) < allowed * error(_sensors(0.0, 0))


def test_what_fills_holes_does_not_pass_for_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without filling them anew from the field, a clean grid with holes errs thousands of times as much."""
    x, t = (np.arange(30) + 0.5) / 15, np.linspace(-1, 1, 40)
    xx, tt = (a.ravel() for a in np.meshgrid(x, t, indexing="ij"))
    keep = np.random.default_rng(5).random(xx.size) < 0.7
    assert keep.sum() > cross_validation.MOST_DENSE

    def error(kept: np.ndarray) -> float:
        samples = Observations(xx[kept, None], tt[kept], _wave(xx, tt)[kept], DOMAINS[0])
        posterior = closed_form.condition(samples, progress=False)
        return float(np.std(posterior.on_grid(*GRID) - TRUTH) / TRUTH.std())

    holed = error(keep)
    assert holed < 1e-5
    monkeypatch.setattr(search, "_refined", lambda *_: None)
    assert error(keep) > 100 * holed


def test_few_holes_converge_to_the_full_grid() -> None:
    full = closed_form.condition(_sensors(0.0, 0), progress=False)
    posterior = condition_partial_grid(_sensors(0.0, 1), np.random.default_rng(0), _silent)
    assert posterior is not None
    assert np.std(posterior.on_grid(*GRID) - full.on_grid(*GRID)) < 0.02 * TRUTH.std()
    claimed, exact = (p.variance().on_grid(*GRID) for p in (posterior, full))
    assert np.mean(claimed) == pytest.approx(np.mean(exact), rel=0.25)


def test_a_solve_that_does_not_converge_says_so() -> None:
    matrix = np.diag(np.geomspace(1e-8, 1, 50))
    solution = normal_equations.conjugate_gradients(
        lambda z: matrix @ z, lambda z: z, np.ones(50), tolerance=1e-10, most=5
    )
    assert not solution.converged
    assert solution.residual > 1e-10


def test_the_default_recipe_takes_the_kernel_for_any_samples() -> None:
    field, variance = fts.fit_with_variance(_random(400, 0.1), progress=False)
    assert field.made.recipe == "kernel"
    assert isinstance(variance, DrawnVariance)


def test_constant_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="constant field"):
        fts.fit(replace(_random(300, 0.0), y=np.ones(300)), progress=False)


def test_large_grids_are_searched_on_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    observations = _sensors(0.0, 0)
    whole = closed_form.condition(observations, progress=False)
    monkeypatch.setattr("fts.kernel.search._SLICES", 14)
    sizes = []
    monkeypatch.setattr(
        "fts.kernel.search.decompose", lambda part, k: sizes.append(len(part.points)) or decompose(part, k)
    )
    monkeypatch.setattr("fts.kernel.search._OPERATIONS", 4 * 14**3)
    thinned = closed_form.condition(observations, progress=False)
    assert max(sizes) <= 14
    errors = [np.std(p.on_grid(*GRID) - TRUTH) for p in (whole, thinned)]
    assert errors[1] < 1.5 * errors[0]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_memory_is_bounded_by_the_samples_and_one_chunk() -> None:
    """Beside the samples themselves a fit holds at most some 120 bytes per sample and half a gigabyte."""
    peaks = [_apart(_peak_of_fit, count) for count in (100_000, 1_500_000)]
    assert peaks[1] < 500 + 120e-6 * 1_500_000
    # Megabytes per million samples, 24 of which are the arrays of the caller, whom a copy keeps apart.
    assert (peaks[1] - peaks[0]) / 1.4 < 185


def _apart(function: Callable[[int], float], count: int) -> float:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, (count,))


def _peak_of_fit(count: int) -> float:
    """Most megabytes a process has held that fitted so many scattered samples."""
    rng = np.random.default_rng(0)
    x, t = rng.random((2, count))
    y = np.sin(2 * np.pi * (3 * x - 2 * t)) + 0.1 * rng.standard_normal(count)
    domain = Domain((0.0,), (1.0,), 0.0, 1.0, (True,))
    fts.fit(Observations(x[:, None], t, y, domain), progress=False)
    # Not getrusage: its peak counts what the process that started this one held, too.
    (line,) = (
        entry for entry in Path("/proc/self/status").read_text().splitlines() if entry.startswith("VmHWM")
    )
    return int(line.split()[1]) / 1024


def test_waves_that_a_few_of_many_samples_do_not_resolve_are_fitted(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    monkeypatch.setattr(search, "_COARSE_SAMPLES", 300)  # too few for so many waves
    waves = [(*rng.integers(-24, 25, 2), *rng.standard_normal(2)) for _ in range(40)]

    def wave(x: np.ndarray, t: np.ndarray) -> np.ndarray:
        turns = ((2 * np.pi * (k * x + w * t), a, b) for k, w, a, b in waves)
        return sum((a * np.cos(turn) + b * np.sin(turn) for turn, a, b in turns), np.zeros(()))

    x, t = rng.random((2, 20_000))
    box = fts.Domain((0.0,), (1.0,), 0.0, 1.0, (True,))
    observations = fts.Observations(x[:, None], t, wave(x, t) + 0.5 * rng.standard_normal(x.size), box)
    axes = np.arange(50) / 50, np.linspace(0.05, 0.95, 50)
    truth = wave(axes[0][:, None], axes[1])
    field = fts.fit(observations, progress=False)
    assert np.linalg.norm(field.on_grid(*axes) - truth) < 0.1 * np.linalg.norm(truth)


def test_a_field_of_many_products_is_frozen_with_as_many_numbers_as_it_takes(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    x, t = rng.random((2, 4000))
    y = np.sin(20 * x * t) + np.cos(15 * (x - t) ** 2)
    observations = fts.Observations(x[:, None], t, y, fts.Domain((0.0,), (1.0,), 0.0, 1.0, (False,)))
    posterior = closed_form.condition(observations, progress=False)
    axes = np.linspace(0, 1, 40), np.linspace(0, 1, 40)
    expected = posterior.on_grid(*axes)
    for largest in (24_000, 50):
        monkeypatch.setattr(closed_form, "_LARGEST", largest)
        field = closed_form.freeze(posterior, observations)
        assert np.linalg.norm(field.on_grid(*axes) - expected) < 0.02 * np.linalg.norm(expected)
