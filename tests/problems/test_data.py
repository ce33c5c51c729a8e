"""Trajectories agree with the released files, satisfy their equations, and are sampled as Table S1 says."""

import hashlib
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import fts
from fts import containers
from fts.params.paper import TEST_SEEDS
from fts.problems import problems, trajectories

RELEASED = Path(__file__).resolve().parents[3] / "shared" / "data"
DOMAIN = fts.Domain((0.0,), (1.0,), 0.0, 1.0, (False,))


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.mark.parametrize(
    ("name", "file", "digest", "tolerance"),
    [
        (
            "ks",
            "kuramoto_sivishinky.mat",
            "0e3607e2fe46297e7651d883cecfd3dec587f6555aaaa11e496b320e17ca4528",
            1e-9,
        ),
        ("kdv", "kdv.mat", "e858b69d5c6dbf867dadb889cdd22fb598b3e48625042594378817750a153d4f", 1e-4),
    ],
)
def test_regenerated_trajectories_agree_with_the_released_files(name, file, digest, tolerance):
    path = RELEASED / file
    if not path.is_file():
        pytest.skip(f"the released {file} is not beside this checkout; the project works without it")
    assert hashlib.sha256(path.read_bytes()).hexdigest() == digest
    released, regenerated = fts.read_trajectory(path, name), fts.simulate(name)
    assert digest in released.source
    assert regenerated.source == "generated"
    np.testing.assert_allclose(released.axes[0], regenerated.axes[0], atol=1e-12)
    error = np.linalg.norm(released.u - regenerated.u) / np.linalg.norm(released.u)
    assert error < tolerance
    assert fts.observe(released, "S20", seed=1301).source == released.source


def _spectral(u: np.ndarray, length: float, order: int) -> np.ndarray:
    k = 2j * np.pi / length * np.fft.rfftfreq(len(u), 1 / len(u))
    return np.fft.irfft(k[:, None] ** order * np.fft.rfft(u, axis=0), n=len(u), axis=0)


@pytest.mark.parametrize(
    ("name", "highest", "tolerance"), [("kdv", 1.5, 2e-4), ("ks", np.inf, 3e-3), ("diffusion", np.inf, 2e-3)]
)
def test_periodic_trajectories_satisfy_their_equation(name, highest, tolerance):
    trajectory = fts.simulate(name)
    u, length = trajectory.u, trajectory.domain.extents[0]
    # Sixth-order central differences in time, away from KS's fast start.
    weights = np.array([-1, 9, -45, 0, 45, -9, 1]) / 60 / (trajectory.t[1] - trajectory.t[0])
    frames = np.arange(len(trajectory.t) // 2, len(trajectory.t) - 3)
    u_t = sum(w * u[:, frames + shift] for w, shift in zip(weights, range(-3, 4), strict=True))
    right = sum(
        c * term.scale * _spectral(term.q(u), length, term.alpha[0])[:, frames]
        for term, c in fts.problem(name).equation.physical().items()
    )
    # The tails of KdV's initial state do not quite close on the circle: its short waves outrun the frames.
    low = 2 * np.pi / length * np.arange(len(u) // 2 + 1) < highest
    left, right = (np.fft.rfft(side, axis=0)[low] for side in (u_t, right))
    assert np.linalg.norm(left - right) / np.linalg.norm(left) < tolerance


def test_advected_gaussian_solves_its_equation_exactly():
    # Symbolic: the closed form inserted into the parsed truth leaves nothing.
    import sympy as sp

    x, y, t = sp.symbols("x y t", real=True)
    s = t + 3
    half = sp.Rational(1, 2)
    u = 10 / (s + half) * sp.exp(-((x + s / 4) ** 2 + (y + s / 2) ** 2) / (2 * (s + half)))
    right = sum(
        sp.nsimplify(c) * sp.diff(u, *[v for v, n in zip((x, y), term.alpha, strict=False) for _ in range(n)])
        for term, c in fts.problem("ad").equation.physical().items()
    )
    assert sp.simplify((sp.diff(u, t) - right) / u) == 0
    stored = fts.simulate("ad")
    i, j, n = 7, 31, 40
    value = u.subs({x: stored.axes[0][i], y: stored.axes[1][j], t: stored.t[n]})
    assert float(value) == pytest.approx(stored.u[i, j, n], rel=1e-12)


def test_grids_and_counts_are_those_of_table_s1():
    expected = {"kdv": ((512, 201), 102, 40), "ks": ((1024, 251), 204, 50), "ad": ((51, 51, 61), 520, 12)}
    for name, (shape, sensors, frames) in expected.items():
        trajectory = fts.simulate(name)
        assert trajectory.u.shape == shape
        s20, t20 = (fts.observe(trajectory, protocol, seed=1301) for protocol in ("S20", "T20"))
        assert s20.grid.values.shape == (sensors, shape[-1])
        assert t20.grid.values.shape == (np.prod(shape[:-1]), frames)
        assert t20.grid.frames[0] == trajectory.t[0]
        assert s20.grid.axes is None or len(shape) == 2
        assert t20.grid.axes is not None


@pytest.mark.parametrize("seed", TEST_SEEDS)
@pytest.mark.parametrize("kind", ["S", "T"])
def test_fractions_are_nested_with_the_same_noise(kind, seed):
    trajectory = fts.simulate("kdv")
    kept: dict[tuple, float] = {}
    for percent in (5, 10, 20, 50, 100):
        o = fts.observe(trajectory, f"{kind}{percent}", seed=seed, noise=0.1)
        samples = {(*x, t): y for x, t, y in zip(o.x, o.t, o.y, strict=True)}
        assert kept.items() <= samples.items()
        kept = samples


def test_noise_has_the_stated_size_and_seeds_differ():
    trajectory = fts.simulate("ks")
    clean, noisy = (fts.observe(trajectory, "S100", seed=42, noise=n) for n in (0.0, 0.1))
    assert np.std(noisy.y - clean.y) == pytest.approx(0.1 * trajectory.u.std(), rel=0.01)
    sensors = {seed: fts.observe(trajectory, "S20", seed=seed).grid.sensors.tobytes() for seed in TEST_SEEDS}
    assert len(set(sensors.values())) == len(TEST_SEEDS)


def test_grid_holds_the_very_samples():
    trajectory = fts.simulate("ad")
    o = fts.observe(trajectory, "S20", seed=7)
    lookup = {tuple(p): row for p, row in zip(trajectory.points, trajectory.u.reshape(-1, 61), strict=True)}
    for sensor, values in zip(o.grid.sensors, o.grid.values, strict=True):
        np.testing.assert_array_equal(values, lookup[tuple(sensor)])


def test_the_widest_gap_is_between_neighbors():
    grid = fts.observe(fts.simulate("kdv"), "S20", seed=1301).grid
    sensors = np.sort(grid.sensors[:, 0])
    assert grid.widest_gap == max(b - a for a, b in pairwise(sensors))
    with pytest.raises(ValueError, match="no order"):
        _ = fts.observe(fts.simulate("ad"), "S20", seed=1301).grid.widest_gap


def test_scattered_samples_have_no_grid(rng):
    x, t = rng.random((50, 1)), rng.random(50)
    assert fts.Observations(x, t, np.sin(x[:, 0]), DOMAIN).grid is None


def test_observations_round_trip(tmp_path):
    o = fts.observe(fts.simulate("ad"), "T20", seed=2203, noise=0.05)
    o.save(tmp_path / "o.fts")
    again = fts.Observations.load(tmp_path / "o.fts")
    for name in ("x", "t", "y"):
        np.testing.assert_array_equal(getattr(again, name), getattr(o, name))
    assert (again.domain, again.problem, again.protocol, again.seed) == (o.domain, "ad", "T20", 2203)
    assert (again.noise, again.source) == (0.05, "generated")


def test_a_damaged_cache_is_regenerated():
    clean = fts.simulate("diffusion")
    path = trajectories._cache_path(fts.problem("diffusion"))
    path.write_bytes(path.read_bytes()[:-7])
    np.testing.assert_array_equal(fts.simulate("diffusion").u, clean.u)
    containers.load_arrays(path, "trajectory", "remedy")


def _bad(**change):
    rng = np.random.default_rng(0)
    values = {"x": rng.random((40, 1)), "t": rng.random(40), "y": rng.random(40)} | change
    return fts.Observations(values["x"], values["t"], values["y"], DOMAIN)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.append(np.zeros(39), np.nan)}, r"y\[39\] is nan.*drop"),
        ({"t": np.append(np.zeros(39), np.inf)}, r"t\[39\] is inf"),
        ({"y": np.zeros(39)}, r"same samples"),
        ({"x": np.full((40, 1), 2.0)}, r"outside .*enlarge"),
        ({"x": np.full((40, 1), 0.5), "t": np.full(40, 0.5)}, r"sampled 40 times.*average"),
        ({"t": np.repeat([0.1, 0.2], 20)}, r"only 2 distinct frames.*add"),
        ({"x": np.full((40, 1), 0.5)}, r"only 1 distinct positions.*add"),
    ],
)
def test_bad_observations_are_refused_with_a_remedy(change, message):
    with pytest.raises(ValueError, match=message):
        _bad(**change)


def test_bad_trajectories_protocols_and_names_are_refused():
    t = np.array([0.0, 1.0, 0.5, 2.0])
    x = np.linspace(0, 1, 5)
    with pytest.raises(ValueError, match=r"from 1\.0 to 0\.5 at frame 2: sort"):
        fts.Trajectory((x,), t, np.zeros((5, 4)), DOMAIN, "kdv", "test")
    with pytest.raises(ValueError, match=r"shape \(4, 5\).*order it"):
        fts.Trajectory((x,), np.sort(t), np.zeros((4, 5)), DOMAIN, "kdv", "test")
    with pytest.raises(ValueError, match="did you mean 'ks'"):
        fts.simulate("kuramoto")
    with pytest.raises(ValueError, match="did you mean 'kdv'"):
        fts.simulate("KDV")
    trajectory = fts.simulate("kdv")
    for protocol in ("X20", "S0", "S101", "20", "S-5"):
        with pytest.raises(ValueError, match="write S20"):
            fts.observe(trajectory, protocol, seed=1)
    with pytest.raises(ValueError, match=r"keeps 2 of 512.*larger"):
        fts.observe(trajectory, "S0.5", seed=1)
    with pytest.raises(ValueError, match="noise -1"):
        fts.observe(trajectory, "S20", seed=1, noise=-1.0)


def test_every_problem_prints_and_lists_its_truth_in_its_library():
    for name in problems.names():
        entry = fts.problem(name)
        assert fts.Equation.parse(str(entry.equation)) == entry.equation
        if name != "diffusion":
            assert set(entry.equation.on(entry.library).nonzero()[0])


def test_released_formats_are_read(tmp_path):
    from scipy.io import savemat

    ad, kdv = fts.simulate("ad"), fts.simulate("kdv")
    mesh = np.meshgrid(*ad.axes, ad.t + 3, indexing="ij")
    savemat(
        tmp_path / "ad.mat",
        {"x": mesh[0], "y": mesh[1], "t": mesh[2], "Expression1": ad.u.astype(np.float32)},
    )
    np.savez(tmp_path / "kdv.npz", t=kdv.t, x=kdv.axes[0], u=kdv.u[..., None], du=kdv.u[..., None])
    again = fts.read_trajectory(tmp_path / "ad.mat", "ad")
    np.testing.assert_allclose(again.t, ad.t, atol=1e-12)
    np.testing.assert_allclose(again.u, ad.u, atol=1e-6)
    np.testing.assert_allclose(again.axes[1], ad.axes[1])
    np.testing.assert_array_equal(fts.read_trajectory(tmp_path / "kdv.npz", "kdv").u, kdv.u)
    with pytest.raises(ValueError, match="wrong problem"):
        fts.read_trajectory(tmp_path / "kdv.npz", "ks")
    with pytest.raises(ValueError, match=r"fts\.simulate"):
        fts.read_trajectory(tmp_path / "none.mat", "ks")


def test_a_users_table_is_read_or_refused(tmp_path):
    o = fts.observe(fts.simulate("ad"), "S10", seed=42)
    rows = np.column_stack([o.x, o.t, o.y])
    np.savetxt(tmp_path / "s.csv", rows, delimiter=",", header="x,y,t,u", comments="", fmt="%.17g")
    np.savez(tmp_path / "s.npz", **dict(zip(("x", "y", "t", "u"), rows.T, strict=True)))
    for name in ("s.csv", "s.npz"):
        again = fts.read_samples(tmp_path / name)
        np.testing.assert_array_equal(again.x, o.x)
        np.testing.assert_array_equal(again.grid.values, o.grid.values)
        assert again.problem is None
    o.save(tmp_path / "s.fts")
    assert fts.read_samples(tmp_path / "s.fts").seed == 42
    for text, message in [
        ("x,t\n1,2\n", "u missing"),
        ("x,t,u\n1,2\n", "line 2 .* 2 values for 3"),
        ("x,t,u\n1,2,__import__('os')\n", "must be a number"),
        ("x,t,u\n", "no samples"),
    ]:
        (tmp_path / "bad.csv").write_text(text)
        with pytest.raises(ValueError, match=message):
            fts.read_samples(tmp_path / "bad.csv")


def test_pickled_arrays_are_not_loaded(tmp_path):
    np.savez(tmp_path / "evil.npz", x=np.array([print], dtype=object), t=np.zeros(1), u=np.zeros(1))
    with pytest.raises(ValueError, match="allow_pickle"):
        fts.read_samples(tmp_path / "evil.npz")
