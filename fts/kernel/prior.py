"""Functions drawn from the prior of slices and waves, and what a refit to their samples makes of them."""

import numpy as np
from jaxtyping import Float

from fts.kernel.normal import System, mean_of, solve
from fts.kernel.random_waves import phases, wave_vectors, weights
from fts.kernel.slices import Sums
from fts.observations import distinct_rows

# A draw is one of many: its solve may stop early.
_TOLERANCE, _MOST = 1e-3, 300


def prior(
    system: System, wanted: Float[np.ndarray, "P k"], rng: np.random.Generator
) -> tuple[Float[np.ndarray, "..."], Float[np.ndarray, "..."]]:
    """One function: its coefficients of waves at the slices, and at the wanted coordinates of slices."""
    layout, shape = system.layout, system.box.shape
    if layout.part is None:
        z = system.root * rng.standard_normal((1, *shape))
        return z, z
    waves = wave_vectors(layout.part, layout.slice_kernel(system.kernels), rng)
    mixed = weights((int(np.prod(shape)),), rng).T
    known, there = (
        np.real(phases(layout.part, points, waves) @ mixed).reshape(len(points), *shape)
        for points in (layout.part.points, wanted)
    )
    return system.root * known, system.root * there


def refit(
    sums: Sums, system: System, known: Float[np.ndarray, "..."], rng: np.random.Generator
) -> Float[np.ndarray, "..."]:
    """White coefficients given the samples of that function, with noise."""
    noise = np.sqrt(system.nugget) * rng.standard_normal(system.layout.count)
    noisy = np.stack([system.box.sums(one) for one in sums.strengths(noise, system.box.most)])
    right = system.project(system.box.analyze(system.density * system.box.synthesize(known)) + noisy)
    return solve(system, right, tolerance=_TOLERANCE, most=_MOST).z


def drawn_error(
    sums: Sums,
    system: System,
    x: Float[np.ndarray, "n d"],
    t: Float[np.ndarray, " n"],
    rng: np.random.Generator,
) -> Float[np.ndarray, " n"]:
    """One function less its refit, at scattered points."""
    layout = system.layout
    wanted, place = distinct_rows(x if layout.sliced == "sensors" else t[:, None])
    known, there = prior(system, wanted, rng)
    mean = mean_of(system, refit(sums, system, known, rng))
    truth = mean.at_rows(there, place if layout.sliced else np.zeros(len(t), dtype=int), x, t)
    return truth - mean.at(x, t)
