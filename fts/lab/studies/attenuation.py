"""What noise does to a regression, on one field and on two: slopes and risks against the noise level."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from fts.equations.terms import Library, parse_term
from fts.kernel.separable import condition_grid
from fts.problems.problems import problem
from fts.problems.trajectories import observe, simulate
from fts.selection import instrumental
from fts.selection.instrumental import TwoFieldsParams
from fts.selection.moments import CrossMoments
from fts.svws.split_sample import measure
from fts.weak.geometry import automatic


@dataclass(frozen=True)
class Attenuation:
    """Coefficients over true ones, and unexplained shares of u_t, by noise level, one field and two."""

    noise: tuple[float, ...]
    terms: tuple[str, ...]  # of the true equation
    one: Float[np.ndarray, "n terms"]
    two: Float[np.ndarray, "n terms"]
    right: Float[np.ndarray, "n 4"]  # share and standard error by two fields, then by one
    wrong: Float[np.ndarray, "n 4"]


def attenuation(
    name: str, wrong: Sequence[str], levels: Sequence[float], seed: int, params: TwoFieldsParams
) -> Attenuation:
    """A problem's true equation and a wrong one, fitted at every noise level to the same noise draw."""
    entry = problem(name)
    true = entry.equation.terms
    library = Library((*true, *(term for term in map(parse_term, wrong) if term not in true)))
    inside, other = tuple(range(len(true))), tuple(library.index(text) for text in wrong)
    slopes, risks = [], []
    for two in noise_levels(name, library, levels, seed, params).values():
        one = CrossMoments(library, two.within, two.within, two.norms)
        both = (one, two)
        slopes.append(
            [each.physical(inside, instrumental.fit(each.cross, inside))[list(inside)] for each in both]
        )
        shares = ((instrumental.unexplained(each, terms) for each in (two, one)) for terms in (inside, other))
        risks.append([[*first, *second] for first, second in shares])
    table, shares = np.array(slopes) / np.asarray(entry.equation.coefficients), np.array(risks)
    names = tuple(f"${term.latex}$" for term in true)
    return Attenuation(tuple(levels), names, table[:, 0], table[:, 1], shares[:, 0], shares[:, 1])


def noise_levels(
    name: str, library: Library, levels: Sequence[float], seed: int, params: TwoFieldsParams
) -> dict[float, CrossMoments]:
    """Cross moments of a problem's full grid at every noise level, with the same noise draw."""
    trajectory, moments = simulate(name), {}
    for level in levels:
        observations = observe(trajectory, "S100", seed=seed, noise=level)
        posterior = condition_grid(observations, progress=False)
        phases = np.random.default_rng(params.svws.phase_seed).random((params.phases, 2))
        pairs = posterior.split(params.splits, params.smoothing, np.random.default_rng(params.split_seed))
        moments[level] = measure(pairs, library, automatic(posterior, library), phases)
    return moments
