"""Fields, samples and residuals as panels of figures, for reports and for `plot`."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure

from fts.domain import Domain
from fts.fields.frozen import Field
from fts.observations import Observations
from fts.plotting import WIDTH

_GRID = 160  # points per axis of the maps
_MOST_DOTS = 20_000  # samples drawn; more would only hide each other


def fields_and_residuals(
    records: Mapping[str, tuple[Observations, Field, Float[np.ndarray, " n"]]],
) -> Figure:
    """A row for every component: its field, and the residuals of its samples."""
    size = (WIDTH, 0.45 * WIDTH * len(records))
    figure, rows = plt.subplots(len(records), 2, figsize=size, squeeze=False, layout="constrained")
    for (name, (observations, field, residual)), (left, right) in zip(records.items(), rows, strict=True):
        figure.colorbar(draw_map(left, field), ax=left, label=f"${name}$")
        dots = draw_residuals(right, observations, residual)
        figure.colorbar(dots, ax=right, label="samples less field")
    return figure


def draw_map(ax: Axes, field: Field) -> ScalarMappable:
    """Values of the field over x and t; of one in the plane over x and y, in the middle of the record."""
    domain = field.domain
    axes = [np.linspace(low, high, _GRID) for low, high, _ in domain.axes]
    for axis in range(2, len(axes)):  # a plane has two axes: the others stand in their middle
        axes[axis] = axes[axis][_GRID // 2 : _GRID // 2 + 1]
    values = field.on_grid(*axes).reshape(_GRID, _GRID)
    mesh = ax.pcolormesh(axes[0], axes[1], values.T, rasterized=True)
    _label(ax, domain)
    if domain.dimension > 1:
        ax.set_title(f"$t = {axes[-1][0]:.3g}$")
    return mesh


def draw_samples(ax: Axes, observations: Observations) -> ScalarMappable:
    """Where and when it was measured, and what."""
    every = -(-len(observations) // _MOST_DOTS)
    across, along = _plane(observations)
    dots = ax.scatter(across[::every], along[::every], c=observations.y[::every], s=4, linewidths=0)
    _label(ax, observations.domain)
    return dots


def draw_residuals(ax: Axes, observations: Observations, residual: Float[np.ndarray, " n"]) -> ScalarMappable:
    """Residuals where they occur; the scale leaves one in a hundred beyond it."""
    shown = slice(None, None, -(-len(observations) // _MOST_DOTS))
    across, along = _plane(observations)
    largest = float(np.quantile(np.abs(residual), 0.99)) or 1.0
    limits = {"cmap": "RdBu", "vmin": -largest, "vmax": largest, "s": 4, "linewidths": 0}
    dots = ax.scatter(across[shown], along[shown], c=residual[shown], **limits)
    _label(ax, observations.domain)
    return dots


def _plane(observations: Observations) -> tuple[np.ndarray, np.ndarray]:
    """Two coordinates of every sample: x against t on a line, x against y elsewhere."""
    second = observations.t if observations.domain.dimension == 1 else observations.x[:, 1]
    return observations.x[:, 0], second


def _label(ax: Axes, domain: Domain) -> None:
    ax.set(xlabel="$x$", ylabel="$t$" if domain.dimension == 1 else "$y$")
