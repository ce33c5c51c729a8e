"""What each protocol takes of a trajectory, what probes read between grid points, samples by the million."""

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest

import fts
from fts.params.paper import DEVELOPMENT_SEEDS
from fts.problems.protocols import interpolate, parse_protocol, probe_positions
from fts.weak.geometry import automatic

SEED = DEVELOPMENT_SEEDS[0]
LINE = fts.Domain((0.0,), (1.0,), 0.0, 1.0, (False,))


@pytest.fixture(scope="module")
def kdv() -> fts.Trajectory:
    return fts.simulate("kdv")


def _samples(o: fts.Observations) -> dict[tuple, float]:
    return {(*x, t): y for x, t, y in zip(o.x, o.t, o.y, strict=True)}


@pytest.mark.parametrize(
    "texts",
    [("R1", "R5", "R20"), ("N100", "N500", "N5000", "R20"), ("S20-50", "S20-30", "S20"),
     ("S5-30", "S20-30", "S50-10"), ("T5-30", "T20-30", "T20")],
)  # fmt: skip
def test_smaller_amounts_are_part_of_larger_ones_with_the_same_noise(kdv, texts):
    kept = [_samples(fts.observe(kdv, text, seed=SEED, noise=0.1)) for text in texts]
    for less, more in pairwise(kept):
        assert less.items() < more.items()


def test_few_probes_are_part_of_many_with_the_same_noise(kdv):
    few, many = (_samples(fts.observe(kdv, text, seed=SEED, noise=0.1)) for text in ("D5", "D20"))
    np.testing.assert_allclose([many[key] for key in few], list(few.values()), rtol=1e-12, atol=1e-14)
    assert len(few) == 25 * 201


def test_random_points_and_gaps_are_as_many_as_asked(kdv):
    n = kdv.u.size
    assert len(fts.observe(kdv, "R20", seed=SEED)) == n // 5
    assert len(fts.observe(kdv, "N500", seed=SEED)) == 500
    whole, gaps = (fts.observe(kdv, text, seed=SEED) for text in ("S20", "S20-30"))
    # Gaps are drawn one by one: five deviations of a binomial count.
    assert abs(len(gaps) - 0.7 * len(whole)) < 5 * np.sqrt(0.21 * len(whole))
    assert whole.grid is not None
    assert gaps.grid is None
    np.testing.assert_array_equal(np.unique(gaps.x), whole.grid.sensors[:, 0])


def test_random_points_are_points_of_the_trajectory(kdv):
    o = fts.observe(kdv, "N200", seed=SEED)
    position, frame = np.searchsorted(kdv.axes[0], o.x[:, 0]), np.searchsorted(kdv.t, o.t)
    np.testing.assert_array_equal(o.y, kdv.u[position, frame])
    assert len(np.unique(frame)) > 100
    other = fts.observe(kdv, "N200", seed=SEED + 1)
    assert _samples(o).keys() != _samples(other).keys()


def test_noise_of_random_points_has_the_stated_size(kdv):
    clean, noisy = (fts.observe(kdv, "R20", seed=SEED, noise=level) for level in (0.0, 0.5))
    assert np.std(noisy.y - clean.y) == pytest.approx(0.5 * kdv.u.std(), rel=0.02)


def test_probes_drift_slowly_and_stay_inside():
    t = np.linspace(0, 2, 41)
    for periodic in (False, True):
        domain = fts.Domain((-1.0, 0.0), (1.0, 10.0), 0.0, 2.0, (periodic, periodic))
        x = probe_positions(domain, t, 300, SEED)
        assert (x >= (-1, 0)).all()
        assert (x <= (1, 10)).all()
        steps = np.abs(np.diff(x, axis=1)) / (2, 10)
        if periodic:
            steps = np.minimum(steps, 1 - steps)
            assert (np.abs(np.diff(x[..., 0], axis=1)) > 1).any()  # some went round
        # A tenth of the axis in 40 steps at most; most probes move, and each at one speed.
        assert steps.max() <= 0.1 / 40 + 1e-12
        assert np.median(steps) > 0.02 / 40
        np.testing.assert_array_equal(probe_positions(domain, t, 20, SEED), x[:20])


def test_there_are_as_many_probes_as_sensors(kdv):
    probes, sensors = fts.observe(kdv, "D20", seed=SEED), fts.observe(kdv, "S20", seed=SEED)
    assert len(probes) == len(sensors)
    assert probes.grid is None
    on_grid = np.isclose((probes.x[:, 0] + 30) / 60 * 512 % 1, 0)
    assert on_grid.mean() < 0.01


def test_probes_read_the_closed_form_between_grid_points():
    ad = fts.simulate("ad")
    o = fts.observe(ad, "D20", seed=SEED)
    s = o.t + 3
    exact = 10 / (s + 0.5) * np.exp(-((o.x[:, 0] + s / 4) ** 2 + (o.x[:, 1] + s / 2) ** 2) / (2 * s + 1))
    assert np.abs(o.y - exact).max() < 2e-8 * ad.u.std()


@pytest.mark.parametrize("n", [32, 33])
def test_a_periodic_field_is_read_exactly_between_grid_points(n, rng):
    axis = -1 + 4 * (np.arange(n) + 1) / n

    def wave(x):
        return np.exp(np.sin(np.pi / 2 * x))[:, None] * [1.0, 2.0]

    x, frame = np.concatenate([rng.uniform(-1, 3, 99), axis[:3], [-1.0]]), rng.integers(0, 2, 103)
    read = interpolate((axis,), (4.0,), wave(axis), x[:, None], frame)
    np.testing.assert_allclose(read, wave(x)[np.arange(103), frame], rtol=1e-12)


def test_splines_converge_with_the_eighth_power_of_the_spacing(rng):
    x, frame = rng.random((200, 2)), np.zeros(200, dtype=int)
    errors = []
    for n in (17, 33, 65):
        axis = np.linspace(0, 1, n)
        u = np.sin(7 * axis)[:, None, None] * np.cos(5 * axis)[:, None]
        exact = np.sin(7 * x[:, 0]) * np.cos(5 * x[:, 1])
        errors.append(np.abs(interpolate((axis, axis), (None, None), u, x, frame) - exact).max())
    assert np.log2(errors[0] / errors[2]) / 2 > 7


def test_probes_on_a_grid_agree_with_its_fourier_series():
    ks = fts.simulate("ks")
    o = fts.observe(ks, "D20", seed=SEED)
    some = np.arange(0, len(o), 997)
    frame = np.searchsorted(ks.t, o.t[some])
    spectrum = np.fft.rfft(ks.u, axis=0)[:, frame] / len(ks.u)
    spectrum[1:-1] *= 2
    phase = np.outer(np.arange(len(spectrum)), o.x[some, 0] - ks.axes[0][0]) / 16
    assert np.abs(np.sum(spectrum * np.exp(1j * phase), axis=0).real - o.y[some]).max() < 1e-12 * ks.u.std()


@pytest.mark.parametrize(
    "text", ["", "R", "R0", "R120", "N", "N0.5", "S20-", "S20-100", "R20-30", "N500-30", "Q5"]
)
def test_an_unknown_protocol_is_answered_with_those_there_are(text):
    with pytest.raises(ValueError, match=r"write S20.*R20.*N500.*D20.*S20-30"):
        parse_protocol(text)


def test_more_points_than_there_are_and_too_few_are_refused(kdv):
    for text, count in (("N999999", 999999), ("N2", 2)):
        with pytest.raises(ValueError, match=f"{text} asks for {count} of {kdv.u.size} points: take"):
            fts.observe(kdv, text, seed=SEED)


def test_burgers_solves_its_equation():
    entry, trajectory = fts.problem("burgers"), fts.simulate("burgers")
    from fts.params.paper import PAPER
    from fts.svws.rule import build

    terms = fts.Library(entry.equation.terms)
    field = fts.TabulatedField((*trajectory.axes, trajectory.t), trajectory.u, entry.domain)
    system = build(field, terms, automatic(field, terms), PAPER["kdv"].svws)[0]
    estimate = np.linalg.lstsq(system.A, system.b, rcond=None)[0]
    np.testing.assert_allclose(estimate, entry.equation.coefficients, rtol=2e-3)
    # A Gaussian that does not reach the ends.
    assert trajectory.u[0].max() < 1e-3


@pytest.fixture(scope="module")
def million() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.random((1_000_000, 1)), rng.random(1_000_000), rng.random(1_000_000)


def test_a_million_scattered_samples_take_a_few_times_their_own_memory(million):
    x, t, y = million
    size = x.nbytes + t.nbytes + y.nbytes
    tracemalloc.start()
    try:
        o = fts.Observations(x, t, y, LINE)
        assert o.grid is None
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 * size


def test_one_repeated_sample_among_a_million_is_found(million):
    x, t, y = (array.copy() for array in million)
    x[999_999], t[999_999] = x[7], t[7]
    with pytest.raises(ValueError, match=r"0\.72949656 0\.80758267\] is sampled 2 times"):
        fts.Observations(x, t, y, LINE)


def test_zero_and_minus_zero_are_one_place():
    x, t = np.linspace(0, 1, 9)[:, None], np.linspace(0, 1, 9)
    x, t = np.append(x, [[-0.0]], axis=0), np.append(t, -0.0)
    with pytest.raises(ValueError, match="sampled 2 times"):
        fts.Observations(x, t, np.ones(10), LINE)


def test_few_frames_late_in_the_file_are_counted():
    x = np.tile(np.linspace(0, 1, 1500), 3)[:, None]
    t = np.repeat([0.0, 0.5, 1.0], 1500)
    with pytest.raises(ValueError, match="only 3 distinct frames"):
        fts.Observations(x, t, np.ones(4500), LINE)


@pytest.mark.parametrize("shape", [(7, 6), (5, 4, 6), (4, 3, 2, 5)])
def test_a_shuffled_grid_is_recognized(shape, rng):
    axes = [np.sort(rng.random(n)) for n in shape]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(shape))
    order = rng.permutation(len(points))
    d = len(shape) - 1
    domain = fts.Domain((0.0,) * d, (1.0,) * d, 0.0, 1.0, (False,) * d)
    y = np.arange(len(points), dtype=float)
    grid = fts.Observations(points[order, :-1], points[order, -1], y[order], domain).grid
    assert grid is not None
    np.testing.assert_array_equal(grid.values.ravel(), y)
    assert grid.axes is not None
    for first, axis in zip(grid.axes, axes, strict=False):
        np.testing.assert_array_equal(first, axis)
    without = fts.Observations(points[order[1:], :-1], points[order[1:], -1], y[order[1:]], domain)
    assert without.grid is None
