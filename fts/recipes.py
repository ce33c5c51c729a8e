"""Observations -> FrozenField by one of three recipes; the one door to everything that trains."""

import sys
from typing import Literal

from tqdm.auto import tqdm

from fts.data import Observations
from fts.frozen import Field, FrozenField

Recipe = Literal["auto", "paper", "projected", "kernel"]


def fit(observations: Observations, recipe: Recipe = "auto", *, progress: bool = True) -> FrozenField:
    """The field fitted to the observations and frozen; no PDE residual enters.

    "kernel" is closed form and needs a sensor x frame grid; "projected" trains the network with its temporal
    coefficients solved exactly; "paper" is the paper's own training. "auto" takes "kernel" on a grid and
    "projected" elsewhere.
    """
    return fit_with_variance(observations, recipe, progress=progress)[0]


def fit_with_variance(
    observations: Observations, recipe: Recipe = "auto", *, progress: bool = True
) -> tuple[FrozenField, Field | None]:
    """The same field, and its posterior variance where the recipe has one; `select` takes both."""
    if recipe == "auto":
        recipe = "projected" if observations.grid is None else "kernel"
        if progress:
            reason = "scattered samples" if recipe == "projected" else "a sensor x frame grid"
            tqdm.write(f"fts.fit: recipe={recipe!r} ({reason})", file=sys.stderr)
    # Each recipe is imported when it is asked for: torch takes seconds, and the kernel needs none of it.
    if recipe == "kernel":
        from fts import kernel

        return kernel.fit_with_variance(observations, progress=progress)
    if recipe == "projected":
        from fts import projected

        return projected.fit(observations, progress=progress), None
    if recipe == "paper":
        from fts import adapter

        return adapter.fit(observations, progress=progress), None
    raise ValueError(f"unknown recipe {recipe!r}: choose 'auto', 'kernel', 'projected' or 'paper'")
