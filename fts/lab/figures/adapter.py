"""Frozen fields -> the adapter chapter's figures: encoding, features, training, reconstruction."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from fts.fields.frozen import FrozenField
from fts.fields.network import NetworkFeatures
from fts.params.paper import SHORT_NAMES
from fts.params.types import AdapterParams
from fts.plotting import (
    INK,
    PALETTE,
    SIGNED_MAP,
    WIDTH,
    Table,
    canvas,
    field_map,
    legend_above,
    panel_row,
    table,
)
from fts.problems.metrics import field_error
from fts.problems.trajectories import Trajectory

Regime = tuple[str, str]  # problem, protocol


def encoding(space: NetworkFeatures, x: np.ndarray, count: int = 3) -> Figure:
    """A slow, a middling and a fast row of the fixed Fourier encoding, as functions of x."""
    order = np.argsort(np.abs(space.frequencies[:, 0]))
    rows = order[np.linspace(0, len(order) - 1, count + 2).astype(int)[1:-1]]
    figure, panels = plt.subplots(count, 1, figsize=(WIDTH, 0.45 * WIDTH), sharex=True, sharey=True)
    for ax, row in zip(np.atleast_1d(panels), rows, strict=True):
        frequency = float(space.frequencies[row, 0]) * space.scale
        ax.plot(x, np.sin(frequency * x), linewidth=1.0)
        ax.set_title(f"row {row}: wavelength {2 * np.pi / abs(frequency):.1f}")
        ax.set_yticks([-1, 1])
    panels[-1].set_xlabel("$x$")
    return figure


def features(field: FrozenField, x: np.ndarray, t: np.ndarray, count: int = 4) -> Figure:
    """The strongest features over x (left) and their coefficients over t (right), the background on top."""
    columns, rows = field.space.at(x[:, None], (0,)), field.time.at(t, 0)
    strength = columns[:, 1:].std(axis=0) * rows[1:].std(axis=1)
    strongest = 1 + np.argsort(strength)[::-1][:count]
    size = (WIDTH, 0.17 * WIDTH * (count + 1))
    figure, panels = plt.subplots(count + 1, 2, figsize=size, sharex="col", squeeze=False)
    for (left, right), r in zip(panels, [0, *strongest], strict=True):
        color = INK if r == 0 else PALETTE[0]
        left.plot(x, columns[:, r], color=color, linewidth=1.0)
        right.plot(t, rows[r], color=color, linewidth=1.0)
        left.set_ylabel("$b$" if r == 0 else rf"$\Phi_{{{r}}}$")
        right.set_ylabel("1" if r == 0 else f"$c_{{{r}}}$")
    panels[-1, 0].set_xlabel("$x$")
    panels[-1, 1].set_xlabel("$t$")
    return figure


def training(field: FrozenField) -> Figure:
    """Mean squared error over all observations along the training, and the iterate that was frozen."""
    history, parameters = field.made.history, field.made.parameters
    if history is None:
        raise ValueError(f"a field by recipe {field.made.recipe!r} was not trained: it has no losses to draw")
    updates, errors = np.array(history.losses).T
    figure, ax = canvas(0.4)
    ax.semilogy(updates, errors)
    start = parameters["ramp_start"]
    marks = {"$C$ starts to move": parameters["background_epochs"], "penalties start": start}
    marks["penalties in full"] = start + parameters["ramp_length"]
    for label, update in marks.items():
        if update < updates[-1]:
            ax.axvline(update, color=INK, linewidth=0.8, linestyle=":")
            low = np.interp(update, updates, errors) > np.sqrt(errors.min() * errors.max())
            place = (update, errors.min() if low else errors.max())
            ax.annotate(label, place, rotation=90, fontsize=9, va="bottom" if low else "top", ha="right")
    ax.plot(history.kept, history.error, "o", color=PALETTE[1], label="frozen here")
    ax.set(xlabel="update", ylabel="mean squared error")
    ax.legend(loc="upper right")
    return figure


def reconstruction(trajectory: Trajectory, field: FrozenField) -> Figure:
    """Reference, reconstruction and their difference over x and t, for a one-dimensional field."""
    (x,), t, u = trajectory.axes, trajectory.t, trajectory.u
    estimate = field.on_grid(x, t)
    figure, panels = panel_row(3, 0.5, "$t$")
    limit = np.quantile(np.abs(estimate - u), 0.995)
    error = (f"error, ±{limit:.1g}", estimate - u, SIGNED_MAP)
    shown = [("reference", u, None), ("reconstruction", estimate, None), error]
    for ax, (title, values, cmap) in zip(panels, shown, strict=True):
        low, high = (-limit, limit) if cmap else (u.min(), u.max())
        field_map(ax, x, t, values, vmin=low, vmax=high, cmap=cmap)
        ax.set_title(title)
    return figure


def error_maps(trajectory: Trajectory, fields: Mapping[str, FrozenField]) -> Figure:
    """Absolute error of each field over x and t, in units of the deviation, on one logarithmic scale."""
    deviation = trajectory.u.std()
    figure, panels = panel_row(len(fields), 0.5, "$t$")
    image = None
    for ax, (title, field) in zip(panels, fields.items(), strict=True):
        error = np.abs(field.on_grid(*trajectory.axes, trajectory.t) - trajectory.u) / deviation
        limits = {"norm": LogNorm(1e-6, 1)}
        image = field_map(ax, trajectory.axes[0], trajectory.t, np.maximum(error, 1e-7), **limits)
        ax.set_title(title)
    if image is not None:
        figure.colorbar(image, ax=panels, label="error / deviation", pad=0.02)
    return figure


def field_errors(errors: Mapping[Regime, Sequence[float]], published: Mapping[Regime, float]) -> Table:
    """Median field error per regime beside the published one, with the range over the seeds."""
    rows = []
    for (problem, protocol), values in errors.items():
        numbers = min(values), float(np.median(values)), max(values), published[problem, protocol]
        rows.append((f"{SHORT_NAMES[problem]}-{protocol}", *map("{:.2g}".format, numbers)))
    return table(["regime", "lowest", "median", "highest", "the paper's median"], rows)


def settings(params: AdapterParams) -> Table:
    """What the objective and its optimizer are set to."""
    penalties, training = params.penalties, params.training
    rows = [
        (r"$\lambda_\Phi$", "weight of the Gram penalty", penalties.lam_phi),
        (r"$\lambda_t$", "weight of the curvature penalty", penalties.lam_t),
        (r"$\kappa_\Phi$", "cap of the Gram penalty", penalties.cap_phi),
        (r"$\kappa_t$", "cap of the curvature penalty", penalties.cap_t),
        ("$N_g$", "points of the Gram matrix, drawn anew at every update", penalties.gram_points),
        ("$k_C$", "first update that moves $C$", training.background_epochs),
        ("$k_0$", "first update with penalties", penalties.ramp_start),
        ("$k_1$", "updates over which they grow", penalties.ramp_length),
        ("frames", "drawn for one update", training.frames_per_update),
        ("updates", "at most", training.epochs),
    ]
    return table(["symbol", "meaning", "value"], [(*words, f"{value:,}") for *words, value in rows])


def recipes(fields: Mapping[str, FrozenField], seconds: Sequence[float], trajectory: Trajectory) -> Table:
    """Field error, time and stored numbers of each recipe's field."""
    rows = []
    for (name, field), duration in zip(fields.items(), seconds, strict=True):
        arrays = [*field.space.arrays().values(), *field.time.arrays().values()]
        size, error = sum(array.size for array in arrays), field_error(field, trajectory)
        rows.append((name, f"{error:.2g}", f"{duration:.1f}", f"{size:,}"))
    return table(["recipe", "$E_u$", "seconds", "stored numbers"], rows)


def predicted_error(t: np.ndarray, deviation: np.ndarray, error: np.ndarray, frames: np.ndarray) -> Figure:
    """Posterior deviation and actual error over time, with the observed frames as ticks below."""
    figure, ax = canvas(0.4)
    ax.semilogy(t, deviation, label="predicted")
    ax.semilogy(t, error, label="actual")
    ax.plot(frames, np.full(frames.size, min(deviation.min(), error.min())), "|", color=INK, markersize=6)
    ax.set(xlabel="$t$", ylabel="error")
    legend_above(figure, ax)
    return figure
