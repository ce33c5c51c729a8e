"""The closed-form field on one core: against dense Gaussian processes on the same samples, and per regime.

Prints one line per figure: name, ours, peer, ratio. CPU seconds, the least of several runs in this process;
`make bench` sets one thread.
"""

import numpy as np
from _timing import cpu, line
from scipy.linalg import cho_factor, cho_solve

from fts.kernel import closed_form, covariance, cross_validation, search
from fts.params.paper import DEVELOPMENT_SEEDS
from fts.problems.trajectories import observe, simulate

# Dense algebra costs the cube of the number of samples: a part of KdV-S20 is what it can do in seconds.
SENSORS, FRAMES, NUGGET = 34, 50, 1e-6
PROMISED_SECONDS = 5.0
SEED = DEVELOPMENT_SEEDS[0]


def main() -> None:
    """All figures."""
    parts, values = _small()
    kernels = (covariance.Kernel("gaussian", (2.0,)), covariance.Kernel("gaussian", (1.0,)))
    ours = cpu(lambda: _solve(parts, values, kernels))
    name = f"{SENSORS} x {FRAMES} samples"
    line(f"kernel: one solve, {name}", ours, cpu(lambda: _dense(parts, values, kernels)), "dense Cholesky")
    ours = cpu(lambda: _left_out(parts, values, kernels))
    refits = cpu(lambda: _refits(parts, values, kernels), times=1)
    line(f"kernel: every sensor left out, {name}", ours, refits, "refits")
    ours = cpu(lambda: search.search_grid(parts, values, lambda: None))
    line(f"kernel: kernels and nugget chosen, {name}", ours, _scikit(parts, values), "scikit-learn")
    for problem in ("kdv", "ks", "ad"):
        trajectory = simulate(problem)
        for protocol in ("S20", "T20"):
            observations = observe(trajectory, protocol, seed=SEED)
            seconds = cpu(
                lambda observations=observations: closed_form.fit(observations, progress=False), times=2
            )
            line(f"kernel: fit {problem}-{protocol}", seconds, PROMISED_SECONDS, "promised")


def _small() -> tuple[tuple[covariance.SampleAxis, ...], np.ndarray]:
    grid = observe(simulate("kdv"), "S20", seed=SEED).grid
    assert grid is not None
    rows, columns = slice(0, 3 * SENSORS, 3), slice(0, 4 * FRAMES, 4)
    domain = simulate("kdv").domain
    parts = covariance.factors(grid.sensors[rows], (grid.sensors[rows, 0],), grid.frames[columns], domain)
    values = grid.values[rows, columns]
    return parts, (values - values.mean()) / values.std()


def _solve(parts, values, kernels) -> np.ndarray:
    spectra = [covariance.decompose(part, chosen) for part, chosen in zip(parts, kernels, strict=True)]
    weights = covariance.rotate(values, spectra) * covariance.precision(spectra, NUGGET)
    for axis, spectrum in enumerate(spectra):
        weights = covariance.multiply(weights, spectrum.vectors, axis)
    return weights


def _matrix(parts, kernels) -> np.ndarray:
    space, time = (part.cross(part.points, chosen) for part, chosen in zip(parts, kernels, strict=True))
    return np.kron(space, time) + NUGGET * np.eye(len(space) * len(time))


def _dense(parts, values, kernels) -> np.ndarray:
    return cho_solve(cho_factor(_matrix(parts, kernels)), values.ravel())


def _left_out(parts, values, kernels) -> float:
    spectra = [covariance.decompose(part, chosen) for part, chosen in zip(parts, kernels, strict=True)]
    return cross_validation.leave_group_out_of_grid(
        spectra, covariance.rotate(values, spectra), NUGGET, 0, parts[0]
    )[0]


def _refits(parts, values, kernels) -> float:
    matrix, y = _matrix(parts, kernels), values.ravel()
    place = np.indices(values.shape)[0].ravel()
    errors = []
    for sensor in range(len(values)):
        out, keep = place == sensor, place != sensor
        weights = cho_solve(cho_factor(matrix[np.ix_(keep, keep)]), y[keep])
        errors.append(np.mean((matrix[np.ix_(out, keep)] @ weights - y[out]) ** 2))
    return float(np.mean(errors))


def _scikit(parts, values) -> float | None:
    """The same samples through a general Gaussian process, its scales found by marginal likelihood."""
    try:
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    except ImportError:
        return None
    x = np.stack(np.meshgrid(*(part.points[:, 0] for part in parts), indexing="ij"), -1).reshape(-1, 2)
    covariance = RBF((2.0, 1.0), (1e-2, 1e3)) + WhiteKernel(NUGGET, (1e-10, 1.0))
    return cpu(lambda: GaussianProcessRegressor(covariance).fit(x, values.ravel()), times=1)


if __name__ == "__main__":
    main()
