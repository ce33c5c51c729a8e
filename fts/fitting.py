"""Observations -> FrozenField by a recipe; the one door to everything that fits.

A field that was made before is taken again: from those that ship with the book, or from the user's cache.
"""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import platformdirs
from jaxtyping import Float

from fts import containers, validation
from fts.fields.frozen import CoordinateField, Field, FrozenField, field_path, load, recipe_version
from fts.io.passes import require_client
from fts.io.streams import SampleStream
from fts.kernel import closed_form
from fts.kernel.posterior import DrawnField, Posterior, PosteriorVariance
from fts.kernel.streamed import StreamedPosterior
from fts.observations import Observations, unique_rows
from fts.params.types import FieldParams, ProjectedParams, named

Recipe = Literal["auto", "paper", "projected", "kernel", "travelling"]
_PROJECTED = 0.01  # seconds per scattered sample of a training with exact coefficients, measured
_origin = attrgetter("problem", "protocol", "seed", "noise")
_RECIPES = ("auto", "kernel", "travelling", "projected", "paper")


@dataclass(frozen=True)
class Fit:
    """A fit: the samples, the frozen field, and the posterior where the recipe has one."""

    observations: Observations  # of a stream: its reservoir
    field: FrozenField
    posterior: Posterior | None = None

    def __repr__(self) -> str:
        return f"<Fit: {self.field.made.recipe} field of {self.observations!r}>"

    @cached_property
    def variance(self) -> PosteriorVariance | None:
        """The posterior variance as a field."""
        return None if self.posterior is None else self.posterior.variance()

    @property
    def count(self) -> int:
        """Samples, of which `observations` may hold some."""
        return (
            self.posterior.count if isinstance(self.posterior, StreamedPosterior) else len(self.observations)
        )

    @property
    def sample(self) -> Observations:
        """As many of the samples as a test of equations by integration takes."""
        posterior = self.posterior
        return posterior.reservoir if isinstance(posterior, StreamedPosterior) else self.observations

    @property
    def noise(self) -> float:
        """Standard deviation of the noise, as the recipe estimates it; zero where it does not."""
        return self.field.made.noise_estimate

    @cached_property
    def residuals(self) -> Float[np.ndarray, " n"]:
        """The samples less the field."""
        samples, grid = self.observations, self.observations.grid
        if grid is None or not isinstance(self.field, FrozenField):
            return samples.y - self.field(np.column_stack([samples.x, samples.t]))
        _, row = unique_rows(samples.x)
        values = self.field.at_sensors(grid.sensors, grid.frames)
        return samples.y - values[row, np.searchsorted(grid.frames, samples.t)]

    def draws(self, count: int, rng: np.random.Generator) -> tuple[DrawnField, ...]:
        """Fields the samples allow, drawn from the posterior around `field`; none where there is none."""
        return () if self.posterior is None else self.posterior.draw(self.field, count, rng)

    def halves(
        self, count: int, smoothing: float, rng: np.random.Generator, *, derivatives: bool = False
    ) -> tuple[tuple[Field, Field], ...]:
        """Pairs of fields fitted to disjoint halves of the samples, none where they cannot be halved.

        Such a field gives values on grids; its own `derivatives` only where they are asked for.
        """

        def frozen(half: Posterior) -> Field:
            return (
                half
                if half.fast_on_grids and not derivatives
                else closed_form.freeze(half, self.observations)
            )

        pairs = () if self.posterior is None else self.posterior.split(count, smoothing, rng)
        return tuple((frozen(first), frozen(second)) for first, second in pairs)


@validation.explain_signature_errors
def fit(
    observations: Observations | SampleStream,
    recipe: Recipe = "auto",
    *,
    client: Any = None,
    progress: bool = True,
) -> FrozenField:
    """The field fitted to the observations and frozen; no PDE residual enters.

    Samples that do not fit in memory come as a stream (`fts.stream_samples`); with a Dask `client` its chunks
    are read and summed up by its workers.

    "kernel", which is what "auto" takes, is closed form for samples that lie anywhere: on a sensor x frame
    grid, on one with holes, along the tracks of probes, at random. "travelling" takes some ten times as long:
    it looks for kernels that move with the waves where "kernel" predicts left-out samples badly, and keeps
    its field where they are not clearly better. "projected" trains the network with its temporal
    coefficients solved exactly; "paper" is the paper's own training.
    """
    return fit_posterior(observations, recipe, client=client, progress=progress).field


@validation.explain_signature_errors
def fit_with_variance(
    observations: Observations, recipe: Recipe = "auto", *, progress: bool = True
) -> tuple[FrozenField, Field | None]:
    """The same field, and its posterior variance where the recipe has one; `select` takes both."""
    posterior = fit_posterior(observations, recipe, progress=progress)
    return posterior.field, posterior.variance


def fit_posterior(
    observations: Observations | SampleStream,
    recipe: Recipe = "auto",
    *,
    client: Any = None,
    progress: bool = True,
) -> Fit:
    """The same field with the posterior it is the mean of."""
    validation.require_type(
        (Observations, SampleStream),
        observations,
        "observations",
        "give samples, as fts.observe(trajectory, 'S20', seed=1) or fts.read_samples(path) return them",
    )
    if not isinstance(recipe, str) or recipe not in _RECIPES:
        raise ValueError(f"unknown recipe {recipe!r}: choose {', '.join(map(repr, _RECIPES))}")
    require_client(client)
    if isinstance(observations, SampleStream):
        if recipe not in ("auto", "kernel"):
            raise ValueError(
                f"recipe {recipe!r} takes samples in memory: give fewer, or take recipe 'kernel'"
            )
        posterior, sample = closed_form.condition_samples(observations, client, progress=progress)
        return Fit(sample, closed_form.freeze(posterior, sample), posterior)
    if recipe in ("projected", "paper"):
        field = make(observations, FieldParams(recipe), progress=progress)
        assert isinstance(field, FrozenField)  # only variants of the adapter are not
        return Fit(observations, field)
    if recipe == "travelling":
        posterior = closed_form.condition_travelling(observations, progress=progress)
    else:
        posterior = closed_form.condition(observations, client, progress=progress)
    return Fit(observations, closed_form.freeze(posterior, observations), posterior)


def make(
    observations: Observations, params: FieldParams, *, progress: bool = False
) -> FrozenField | CoordinateField:
    """The field that a recipe, or a variant of the adapter, makes of the observations."""
    recipe, settings = params.recipe, params.settings
    if recipe in ("kernel", "travelling"):
        return fit_posterior(observations, recipe, progress=progress).field
    # Imported when it is asked for: torch takes seconds, and the kernel needs none of it.
    with validation.require_extra("adapter", f"recipe {recipe!r} trains a network and"):
        import torch as torch
    if recipe == "projected":
        from fts.adapter import projected

        assert settings is None or isinstance(settings, ProjectedParams)
        if observations.grid is None:
            n = len(observations)
            validation.warn_if_long(_PROJECTED * n, f"training on {n:,} samples", "take recipe 'kernel'")
        return projected.fit(observations, settings, progress=progress)
    assert not isinstance(settings, ProjectedParams)
    if recipe == "paper":
        from fts.adapter import paper

        return paper.fit(observations, settings, progress=progress)
    from fts.adapter import paper as variants

    # An unknown name is refused there, with those that are known.
    return variants.fit_variant(observations, cast(Any, recipe), settings, progress=progress)


def obtain(observations: Observations, params: FieldParams) -> FrozenField | CoordinateField:
    """The same field as `make` gives: shipped, cached, or made now and cached."""
    shipped = shipped_field(observations, params)
    if shipped is not None:
        return shipped
    cached = Path(platformdirs.user_cache_dir("fts")) / "fields" / f"{field_key(observations, params)}.fts"
    if cached.is_file():
        try:
            return load(cached)
        except (containers.FileError, OSError):
            containers.remove_from_cache(cached)
    field = make(observations, params)
    # Reading a kernel field of a grid back is hardly faster than computing it.
    if params.recipe != "kernel" or observations.grid is None:
        containers.write_to_cache(cached, field.save)
    return field


def obtain_with_posterior(observations: Observations, params: FieldParams) -> Fit:
    """The same with the kernel's posterior, which no file holds; another recipe's field gets it too."""
    posterior = closed_form.condition(observations, progress=False)
    if params.recipe == "kernel" and shipped_field(observations, params) is None:
        return Fit(observations, closed_form.freeze(posterior, observations), posterior)
    return Fit(observations, obtain_frozen(observations, params), posterior)


def obtain_frozen(observations: Observations, params: FieldParams) -> FrozenField:
    """The same, for selectors that differentiate the field: a factorized one."""
    field = obtain(observations, params)
    if not isinstance(field, FrozenField):
        raise ValueError(
            f"recipe {params.recipe!r} makes no factorized field: take paper, projected, kernel or travelling"
        )
    return field


def shipped_field(observations: Observations, params: FieldParams) -> FrozenField | CoordinateField | None:
    """The shipped field of these observations, if one was made with these settings by the present recipe."""
    wanted = _origin(observations)
    if None in wanted or not (path := field_path(*wanted, params.recipe)).is_file():
        return None
    field = load(path)
    made = field.made
    same = _origin(made) == wanted
    current = made.recipe == params.recipe and made.version == recipe_version(params.recipe)
    # What the kernel's search chose follows from the samples; a network's settings must be those asked for.
    fitting = params.settings is None or made.parameters == named(params.settings)
    return field if same and current and fitting else None


def field_key(observations: Observations, params: FieldParams) -> str:
    """Names a field by the samples, the recipe with its version and settings, and its training's seed."""
    digest = hashlib.sha256()
    for array in (observations.x, observations.t, observations.y):
        digest.update(np.ascontiguousarray(array).tobytes())
    settings = None if params.settings is None else named(params.settings)
    version = recipe_version(params.recipe)
    return containers.content_key([digest.hexdigest(), params.recipe, version, settings, observations.seed])
