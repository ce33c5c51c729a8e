"""Fields of scattered samples on one core: against the network and a general Gaussian process, and growth.

Prints one line per figure: name, ours, peer, ratio. CPU seconds; `make bench` sets one thread. Every size of
the growth runs in a process of its own, so that its peak of memory is its own.
"""

import multiprocessing
import re
import time
from pathlib import Path

import numpy as np
from _timing import growth_line, line

import fts
from fts.params.paper import DEVELOPMENT_SEEDS
from fts.problems.metrics import field_error

SEED = DEVELOPMENT_SEEDS[0]
SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
# Samples a dense Gaussian process can still take: its cost is their cube.
DENSE = 2000
# A sensor x frame grid of this many on either side.
SIDE = 2000
MINUTE = 60.0
BOX = fts.Domain((0.0,), (1.0,), 0.0, 1.0, (True,))


def main() -> None:
    """All figures."""
    for problem, protocol, noise in (("kdv", "R20", 0.0), ("ks", "R20", 0.0), ("ks", "D20", 0.1)):
        _network(problem, protocol, noise)
    _dense()
    _apart(_wide)
    _growth()


def _network(problem: str, protocol: str, noise: float) -> None:
    trajectory = fts.simulate(problem)
    observations = fts.observe(trajectory, protocol, seed=SEED, noise=noise)
    seconds, errors = [], []
    for recipe in ("kernel", "projected"):
        began = time.process_time()
        field = fts.fit(observations, recipe, progress=False)
        seconds.append(time.process_time() - began)
        errors.append(field_error(field, trajectory))
    name = f"samples: {problem}-{protocol}, {noise:.0%} noise"
    line(name, *seconds, "projected")
    _error_line(name, errors[0], errors[1], "projected")


def _dense() -> None:
    """A part of KdV's random points through scikit-learn's regressor, its scales by marginal likelihood."""
    try:
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    except ImportError:
        print(f"{'samples: scikit-learn':<52} not installed")
        return
    trajectory = fts.simulate("kdv")
    observations = fts.observe(trajectory, f"N{DENSE}", seed=SEED, noise=0.01)
    began = time.process_time()
    field = fts.fit(observations, "kernel", progress=False)
    ours = time.process_time() - began
    points = np.column_stack([observations.x, observations.t])
    covariance = RBF((2.0, 1.0), (1e-2, 1e3)) + WhiteKernel(1e-4, (1e-10, 1.0))
    mean, scale = observations.y.mean(), observations.y.std()
    began = time.process_time()
    peer = GaussianProcessRegressor(covariance).fit(points, (observations.y - mean) / scale)
    theirs = time.process_time() - began
    name = f"samples: kdv-N{DENSE}, 1% noise"
    line(name, ours, theirs, "scikit-learn")
    rows = np.stack(np.meshgrid(*trajectory.axes, trajectory.t, indexing="ij"), -1).reshape(-1, 2)
    parts = [peer.predict(rows[i : i + 4096]) for i in range(0, len(rows), 4096)]
    off = np.linalg.norm(mean + scale * np.concatenate(parts) - trajectory.u.ravel())
    _error_line(
        name, field_error(field, trajectory), float(off / np.linalg.norm(trajectory.u)), "scikit-learn"
    )


def _error_line(name: str, ours: float, peer: float, peer_name: str) -> None:
    print(f"{name + ', E_u':<52} {ours:10.2e}     {peer_name} {peer:10.2e}     ratio {peer / ours:8.1f}")


def _wave(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    return np.sin(2 * np.pi * (3 * x - 2 * t)) + 0.5 * np.cos(2 * np.pi * (5 * x + t)) * np.exp(-t)


def _scattered(count: int) -> tuple[float, float, float]:
    """CPU seconds and peak megabytes of fitting so many scattered samples, and the field's error."""
    rng = np.random.default_rng(SEED)
    x, t = rng.random(count), rng.random(count)
    y = _wave(x, t) + 0.1 * rng.standard_normal(count)
    began = time.process_time()
    field = fts.fit(fts.Observations(x[:, None], t, y, BOX), "kernel", progress=False)
    return time.process_time() - began, _peak(), _error(field)


def _wide() -> None:
    axis, frames = np.arange(SIDE) / SIDE, np.linspace(0, 1, SIDE)
    x, t = np.repeat(axis, SIDE), np.tile(frames, SIDE)
    y = _wave(x, t) + 0.1 * np.random.default_rng(SEED).standard_normal(x.size)
    began = time.process_time()
    field = fts.fit(fts.Observations(x[:, None], t, y, BOX), "kernel", progress=False)
    line(f"samples: {SIDE} sensors x {SIDE} frames", time.process_time() - began, MINUTE, "promised")
    print(f"{'  its peak of memory, its error':<52} {_peak():10.0f} MB  E_u {_error(field):.1e}")


def _growth() -> None:
    found = []
    for count in SIZES:
        seconds, megabytes, error = _apart(_scattered, count)
        found.append(seconds)
        line(f"samples: {count:,} scattered", seconds, MINUTE * count / 1_000_000, "promised")
        name = "  peak of memory, per sample, error"
        print(f"{name:<52} {megabytes:10.0f} MB  {megabytes * 2**20 / count:8.0f} bytes  E_u {error:.1e}")
    growth_line("samples: growth in seconds", SIZES, found)


def _error(field: fts.FrozenField) -> float:
    x, t = np.linspace(0, 1, 200, endpoint=False), np.linspace(0, 1, 101)
    truth = _wave(x[:, None], t)
    return float(np.linalg.norm(field.on_grid(x, t) - truth) / np.linalg.norm(truth))


def _peak() -> float:
    """Most megabytes this process has held."""
    status = Path("/proc/self/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+)", status)
    return int(found[1]) / 1024 if found else float("nan")


def _apart(function, *arguments):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


if __name__ == "__main__":
    main()
