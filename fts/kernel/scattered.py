"""Scattered samples -> posterior of a Gaussian process whose kernel is a product of space and time.

Probes that move, clocks of their own, points at random: after one pass of Fourier sums over the samples the
solve does not depend on their number.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float

from fts.domain import grid_points
from fts.kernel import cross_validation
from fts.kernel.fourier import Sums, arrange
from fts.kernel.normal_equations import Mean, Solution, System, build, mean_of, prior, refit, solve
from fts.kernel.posterior import Posterior, interleaved_halves, nugget_of_halves
from fts.kernel.search import Choice
from fts.observations import LEAST_POINTS, Observations, unique_rows

_FEW = 8  # samples per sensor, or per frame, at least, for these to be slices
_MOST_SLICES = 2000  # their kernel matrix is decomposed
# A solve that has come close when its steps end is kept: ten times the nugget costs more than the rest does.
_TOLERANCE, _CLOSE, _MOST, _EASIER = 1e-7, 1e-6, 1500, 10.0


@dataclass(frozen=True, kw_only=True)
class ScatteredPosterior(Posterior):
    """A Gaussian process given scattered samples, by coefficients of slices and waves."""

    x: Float[np.ndarray, "n d"]
    t: Float[np.ndarray, " n"]
    sums: Sums
    system: System
    z: Float[np.ndarray, "..."]
    calibrate: Callable[[], float]  # draws the amplitude
    steps: int  # of the conjugate gradients

    @property
    def amplitude(self) -> float:
        """Prior variance, in squared units of scale."""
        return self.calibrate()

    @cached_property
    def _function(self) -> Mean:
        return mean_of(self.system, self.z)

    def standardized(self, *axes: np.ndarray) -> Float[np.ndarray, "..."]:
        """The posterior mean less `mean`, in units of `scale`."""
        return self._function.on_grid(*axes)

    def draw_error(self, nodes: Sequence[np.ndarray], rng: np.random.Generator) -> Float[np.ndarray, "..."]:
        """f - E[f | f at the samples + noise] on the tensor grid of the nodes, f drawn from the prior."""
        frames = self.system.layout.sliced == "frames"
        wanted = nodes[-1][:, None] if frames else grid_points(tuple(nodes[:-1]))
        known, truth = prior(self.system, wanted, rng)
        mean = mean_of(self.system, refit(self.sums, self.system, known, rng))
        missed = mean.along(truth, *nodes) - mean.on_grid(*nodes)
        return self.scale * np.sqrt(self.amplitude) * missed

    def split(
        self, count: int, smoothing: float, rng: np.random.Generator
    ) -> tuple[tuple["ScatteredPosterior", "ScatteredPosterior"], ...]:
        """Of every two neighbours in space-time one each; near is meant in units of the length scales."""
        space, time = self.choice.kernels
        if len(self.t) < 2 * LEAST_POINTS**2:
            return ()
        points = np.column_stack([self.x / np.array(space.lengths), self.t / time.lengths[0]])
        nugget = nugget_of_halves(self.choice.nugget, smoothing, len(self.t))
        return tuple(
            (self._half(first, nugget), self._half(~first, nugget))
            for first in interleaved_halves(points, count, rng)
        )

    def _half(self, kept: Bool[np.ndarray, " n"], nugget: float) -> "ScatteredPosterior":
        """The process given the kept samples."""
        x, t = self.x[kept], self.t[kept]
        sums = Sums(arrange(x, t, self.domain, self.system.layout.sliced), self.sums.y[kept])
        choice, system, solution = solved(sums, replace(self.choice, nugget=nugget))
        return replace(
            self,
            x=x,
            t=t,
            sums=sums,
            system=system,
            z=solution.z,
            choice=choice,
            steps=solution.steps,
            seconds=0.0,
        )


def condition(
    observations: Observations, rng: np.random.Generator, step: Callable[[], object]
) -> ScatteredPosterior:
    """The Gaussian process given samples anywhere, kernels chosen by what they predict of those left out."""
    began = time.perf_counter()
    mean, scale = float(observations.y.mean()), float(observations.y.std())
    values = (observations.y - mean) / scale
    sliced = _sliced(observations)
    choice, calibrate = cross_validation.choose(observations, values, sliced, rng, step)
    sums = Sums(arrange(observations.x, observations.t, observations.domain, sliced), values)
    choice, system, solution = solved(sums, choice)
    step()
    return ScatteredPosterior(
        x=observations.x,
        t=observations.t,
        sums=sums,
        system=system,
        z=solution.z,
        calibrate=calibrate,
        steps=solution.steps,
        domain=observations.domain,
        choice=choice,
        mean=mean,
        scale=scale,
        noise=scale * _noise(values, system, solution.z),
        seconds=time.perf_counter() - began,
    )


def _sliced(observations: Observations) -> str:
    """Whether sensors or frames recur often enough to be slices."""
    n = len(observations)
    for name, points in (("sensors", observations.x), ("frames", observations.t[:, None])):
        count = len(unique_rows(points)[0])
        if count <= min(n / _FEW, _MOST_SLICES, np.sqrt(n)):
            return name
    return ""


def solved(sums: Sums, choice: Choice) -> tuple[Choice, System, Solution]:
    """The solve, with a larger nugget where it does not come close."""
    while True:
        system = build(sums, choice.kernels, choice.nugget)
        solution = solve(system, system.right, tolerance=_TOLERANCE, most=_MOST)
        if solution.residual < _CLOSE or choice.nugget >= 1:
            return choice, system, solution
        choice = replace(choice, nugget=_EASIER * choice.nugget)


def _noise(values: np.ndarray, system: System, z: np.ndarray) -> float:
    """Deviation of the noise: of the residuals, less the freedom that the field has taken from them."""
    left = float(values @ values - 2 * np.vdot(z, system.right) + np.vdot(z, system.normal(z)))
    return float(np.sqrt(max(left, 0.0) / max(len(values) - system.freedom, 1)))
