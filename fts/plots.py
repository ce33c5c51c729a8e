"""Fields and observations -> the book's figures and tables, in a style for light and for dark pages."""

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
from cycler import cycler
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fts.data import Observations, Trajectory

# Okabe and Ito's colors without black and yellow, which vanish on a dark and on a light page.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# A gray with about the same contrast, 4.2 and 4.4 to 1, against the theme's white and its near black.
INK = "#7B7B7B"
# Perceptually uniform, readable without color.
FIELD_MAP = "viridis"
WIDTH = 6.4  # inches, the book's text column


@dataclass(frozen=True)
class Table:
    """Rows under a header: HTML in notebooks, text in `print`. $...$ is a formula, \\n breaks the line."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        lines = [tuple(cell.replace("\n", "; ") for cell in line) for line in (self.header, *self.rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.header))]
        return "\n".join(
            "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) for line in lines
        )

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{_cell(text)}</th>" for text in self.header)
        body = "".join(
            "<tr>" + "".join(f"<td>{_cell(text)}</td>" for text in row) + "</tr>" for row in self.rows
        )
        return f'<table class="table"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """A table of the rows' values as text."""
    body = tuple(tuple(str(value) for value in row) for row in rows)
    for row in body:
        if len(row) != len(header):
            raise ValueError(
                f"row {row} has {len(row)} cells under {len(header)} headings: give one per heading"
            )
    return Table(tuple(header), body)


def use_style() -> None:
    """Set matplotlib's defaults to the book's: no background, gray ink, the palette, one column wide."""
    mpl.rcParams.update(
        {
            "axes.edgecolor": INK,
            "axes.facecolor": "none",
            "axes.labelcolor": INK,
            "axes.labelsize": 13,
            "axes.linewidth": 0.8,
            "axes.prop_cycle": cycler(color=PALETTE),
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlecolor": INK,
            "axes.titlelocation": "left",
            "axes.titlesize": 11,
            "figure.constrained_layout.use": True,
            "figure.dpi": 180,
            "figure.facecolor": "none",
            "figure.figsize": (WIDTH, 0.5 * WIDTH),
            "font.size": 11,
            "grid.color": INK,
            "grid.linewidth": 0.5,
            "image.cmap": FIELD_MAP,
            "legend.frameon": False,
            "legend.labelcolor": INK,
            "lines.linewidth": 1.6,
            "mathtext.fontset": "cm",
            "savefig.facecolor": "none",
            "text.color": INK,
            "xtick.color": INK,
            "ytick.color": INK,
        }
    )


def space_time(trajectories: Sequence[Trajectory], titles: Sequence[str]) -> Figure:
    """One panel per one-dimensional trajectory: u over x (across) and t (up)."""
    figure, panels = plt.subplots(1, len(trajectories), figsize=(WIDTH, 0.45 * WIDTH), squeeze=False)
    for ax, trajectory, title in zip(panels[0], trajectories, titles, strict=True):
        _field(ax, trajectory, trajectory.u)
        ax.set_title(title)
    panels[0, 0].set_ylabel("$t$")
    return figure


def snapshots(trajectory: Trajectory, frames: Sequence[int]) -> Figure:
    """A two-dimensional trajectory at a few frames, all on one color scale."""
    figure, panels = plt.subplots(1, len(frames), figsize=(WIDTH, 0.4 * WIDTH), sharey=True, squeeze=False)
    x, y = trajectory.axes
    for ax, frame in zip(panels[0], frames, strict=True):
        ax.pcolormesh(x, y, trajectory.u[..., frame].T, vmin=trajectory.u.min(), vmax=trajectory.u.max())
        ax.set(title=f"$t = {trajectory.t[frame]:g}$", xlabel="$x$", aspect="equal")
        _frame(ax)
    panels[0, 0].set_ylabel("$y$")
    return figure


def kept(trajectory: Trajectory, observations: Sequence[Observations]) -> Figure:
    """What each set of observations keeps of a one-dimensional trajectory; the rest stays empty."""
    figure, panels = plt.subplots(
        1, len(observations), figsize=(WIDTH, 0.5 * WIDTH), sharey=True, squeeze=False
    )
    for ax, samples in zip(panels[0], observations, strict=True):
        values = np.full(trajectory.u.shape, np.nan)
        row = np.searchsorted(trajectory.axes[0], samples.x[:, 0])
        values[row, np.searchsorted(trajectory.t, samples.t)] = samples.y
        _field(ax, trajectory, values)
        ax.set_title(f"{samples.protocol}: {len(samples):,} samples")
    panels[0, 0].set_ylabel("$t$")
    return figure


def sensors(observations: Sequence[Observations]) -> Figure:
    """Sensor positions of each set of observations: ticks on rows in 1D, dots in panels in 2D."""
    if observations[0].domain.dimension == 1:
        figure, ax = plt.subplots(figsize=(WIDTH, 0.22 * WIDTH))
        positions = [np.unique(samples.x[:, 0]) for samples in observations]
        ax.eventplot(positions[::-1], linelengths=0.7, linewidths=0.9, colors=PALETTE[0])
        ax.set_yticks(range(len(positions)), [f"{samples.protocol}" for samples in observations][::-1])
        ax.set_xlabel("$x$")
        ax.spines[:].set_visible(False)
        return figure
    figure, panels = plt.subplots(
        1, len(observations), figsize=(WIDTH, 0.4 * WIDTH), sharey=True, squeeze=False
    )
    for ax, samples in zip(panels[0], observations, strict=True):
        positions = np.unique(samples.x, axis=0)
        ax.plot(*positions.T, ".", color=PALETTE[0], markersize=2.5, clip_on=False)
        (left, low), (right, high) = samples.domain.low, samples.domain.high
        ax.set(xlim=(left, right), ylim=(low, high), xlabel="$x$", aspect="equal")
        ax.set_title(f"{samples.protocol}: {len(positions)} sensors")
        _frame(ax)
    panels[0, 0].set_ylabel("$y$")
    return figure


def sensor_series(trajectory: Trajectory, observations: Observations, sensor: int) -> Figure:
    """The clean field at one sensor over time, and what was observed there."""
    grid = observations.grid
    if grid is None:
        raise ValueError("scattered observations have no sensor that reads at every frame: use an S protocol")
    row = np.flatnonzero(np.all(np.isclose(trajectory.points, grid.sensors[sensor]), axis=1))[0]
    figure, ax = plt.subplots(figsize=(WIDTH, 0.4 * WIDTH))
    ax.plot(trajectory.t, trajectory.u.reshape(-1, trajectory.t.size)[row], label="clean field")
    ax.plot(grid.frames, grid.values[sensor], ".", color=PALETTE[1], markersize=4, label="observed")
    ax.set(xlabel="$t$", ylabel=f"$u$ at $x = {grid.sensors[sensor, 0]:.1f}$")
    ax.legend(loc="upper right", ncols=2)
    return figure


def _field(ax: Axes, trajectory: Trajectory, values: np.ndarray) -> None:
    (x,) = trajectory.axes
    ax.pcolormesh(
        x, trajectory.t, values.T, vmin=trajectory.u.min(), vmax=trajectory.u.max(), rasterized=True
    )
    ax.set_xlabel("$x$")
    _frame(ax)


def _frame(ax: Axes) -> None:
    ax.spines[:].set_visible(False)
    ax.tick_params(length=2.5)


def _cell(text: str) -> str:
    if text.startswith("$"):
        return f'<span class="math">\\({html.escape(text.strip("$"))}\\)</span>'
    return html.escape(text).replace("\n", "<br>")
