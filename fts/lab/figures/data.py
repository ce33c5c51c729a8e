"""Trajectories and observations -> the figures of the chapter on data."""

import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fts.fields.frozen import Field
from fts.observations import Observations
from fts.plotting import PALETTE, canvas, field_map, panel_row
from fts.problems.trajectories import Trajectory
from fts.selection.selection import Selection

_NARROW = 14  # characters above a third of a figure


def space_time(trajectories: Sequence[Trajectory], titles: Sequence[str]) -> Figure:
    """One panel per one-dimensional trajectory: u over x (across) and t (up)."""
    figure, panels = panel_row(len(trajectories), 0.55, "$t$", sharey=False)
    for ax, trajectory, title in zip(panels, trajectories, titles, strict=True):
        _field(ax, trajectory, trajectory.u)
        ax.set_title(textwrap.fill(title, _NARROW))
    return figure


def snapshots(trajectory: Trajectory, frames: Sequence[int]) -> Figure:
    """A two-dimensional trajectory at a few frames, all on one color scale."""
    figure, panels = panel_row(len(frames), 0.4, "$y$")
    x, y = trajectory.axes
    for ax, frame in zip(panels, frames, strict=True):
        ax.pcolormesh(x, y, trajectory.u[..., frame].T, vmin=trajectory.u.min(), vmax=trajectory.u.max())
        ax.set(title=f"$t = {trajectory.t[frame]:g}$", xlabel="$x$", aspect="equal")
        _frame(ax)
    return figure


def observed_values(trajectory: Trajectory, observations: Sequence[Observations]) -> Figure:
    """What each set of observations keeps of a one-dimensional trajectory; the rest stays empty."""
    figure, panels = panel_row(len(observations), 0.5, "$t$")
    for ax, samples in zip(panels, observations, strict=True):
        values = np.full(trajectory.u.shape, np.nan)
        row = np.searchsorted(trajectory.axes[0], samples.x[:, 0])
        values[row, np.searchsorted(trajectory.t, samples.t)] = samples.y
        _field(ax, trajectory, values)
        ax.set_title(f"{samples.protocol}: {len(samples):,}\nsamples")
    return figure


def overview(
    trajectory: Trajectory, observations: Observations, field: Field, selection: Selection
) -> Figure:
    """What the sensors read, the field frozen from it, and the equation selected on that."""
    figure = observed_values(trajectory, [observations] * 2)
    first, second = figure.axes
    second.collections[0].set_array(field.on_grid(*trajectory.axes, trajectory.t).T)
    first.set_title(f"{observations.protocol}: {len(observations):,} samples")
    second.set_title("frozen field")
    figure.supxlabel(f"${selection.equation.latex}$", fontsize=12)
    return figure


def sensors(observations: Sequence[Observations]) -> Figure:
    """Sensor positions of each set of observations: ticks on rows in 1D, dots in panels in 2D."""
    if observations[0].domain.dimension == 1:
        figure, ax = canvas(0.22)
        positions = [np.unique(samples.x[:, 0]) for samples in observations]
        ax.eventplot(positions[::-1], linelengths=0.7, linewidths=0.9, colors=PALETTE[0])
        ax.set_yticks(range(len(positions)), [f"{samples.protocol}" for samples in observations][::-1])
        ax.set_xlabel("$x$")
        ax.spines[:].set_visible(False)
        return figure
    figure, panels = panel_row(len(observations), 0.4, "$y$")
    for ax, samples in zip(panels, observations, strict=True):
        positions = np.unique(samples.x, axis=0)
        ax.plot(*positions.T, ".", color=PALETTE[0], markersize=2.5, clip_on=False)
        (left, low), (right, high) = samples.domain.low, samples.domain.high
        ax.set(xlim=(left, right), ylim=(low, high), xlabel="$x$", aspect="equal")
        ax.set_title(f"{samples.protocol}: {len(positions)}")
        _frame(ax)
    return figure


def sensor_series(trajectory: Trajectory, observations: Observations, sensor: int) -> Figure:
    """The clean field at one sensor over time, and what was observed there."""
    grid = observations.grid
    if grid is None:
        raise ValueError("scattered observations have no sensor that reads at every frame: use an S protocol")
    row = np.flatnonzero(np.all(np.isclose(trajectory.points, grid.sensors[sensor]), axis=1))[0]
    figure, ax = canvas(0.4)
    ax.plot(trajectory.t, trajectory.u.reshape(-1, trajectory.t.size)[row], label="clean field")
    ax.plot(grid.frames, grid.values[sensor], ".", color=PALETTE[1], markersize=4, label="observed")
    ax.set(xlabel="$t$", ylabel=f"$u$ at $x = {grid.sensors[sensor, 0]:.1f}$")
    ax.legend(loc="upper right", ncols=2)
    return figure


def _field(ax: Axes, trajectory: Trajectory, values: np.ndarray) -> None:
    u = trajectory.u
    field_map(ax, trajectory.axes[0], trajectory.t, values, vmin=u.min(), vmax=u.max())
    ax.tick_params(length=2.5)


def _frame(ax: Axes) -> None:
    ax.spines[:].set_visible(False)
    ax.tick_params(length=2.5)
