"""Fields, records, layouts -> figures of chapter "samples": orange the separable kernel, blue the other."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from fts.fields.frozen import Field
from fts.lab.studies import published
from fts.lab.studies.calibration import LEVELS, normal_coverage
from fts.lab.studies.records import Cells, RunRecord, Summary, by_cell, count_of_five, records_folder
from fts.observations import Observations
from fts.params.paper import SHORT_NAMES
from fts.plotting import INK, PALETTE, Table, canvas, legend_above, panel_row, table
from fts.problems.protocols import interpolate
from fts.problems.trajectories import Trajectory

TRAVELLING, SEPARABLE = PALETTE[0], PALETTE[1]
_ERRORS = (r"$E_\xi$", "$E_u$")
_PROTOCOLS = ("R20", "D20", "S20-30")  # points at random, drifting probes, gaps in the grid


def comoving(trajectory: Trajectory, speed: float) -> Float[np.ndarray, "nx nt"]:
    """u(x + c t, t): the field on a periodic line as one sees it who moves along with speed c."""
    t, low, extents = trajectory.t, trajectory.domain.low[0], trajectory.domain.extents
    x, frame = np.meshgrid(*trajectory.axes, np.arange(t.size), indexing="ij")
    moved = low + (x + speed * (t[frame] - t[0]) - low) % extents[0]
    values = interpolate(trajectory.axes, extents[:1], trajectory.u, moved.reshape(-1, 1), frame.ravel())
    return values.reshape(x.shape)


def decay(u: Float[np.ndarray, "nx nt"]) -> Float[np.ndarray, " r"]:
    """Singular values over the largest: how many products of space and time a field takes."""
    values = np.linalg.svd(u, compute_uv=False)
    return values / values[0]


def products_needed(u: Float[np.ndarray, "nx nt"], tolerance: float) -> int:
    """Products of space and time that leave at most this share of the field."""
    values = decay(u) ** 2
    left = 1 - np.cumsum(values) / values.sum()
    return int(np.argmax(np.sqrt(np.maximum(left, 0)) <= tolerance)) + 1


def singular_values(fields: Mapping[str, Float[np.ndarray, "nx nt"]], shown: int = 60) -> Figure:
    """Decay of the singular values of fields that stand, travel, and are followed."""
    figure, ax = canvas(0.6)
    for (name, u), marker in zip(fields.items(), "s^ov", strict=False):
        values = decay(u)[:shown]
        kept = values > 1e-9
        ax.semilogy(1 + np.flatnonzero(kept), values[kept], marker + "-", markersize=3.5, label=name)
    ax.set(xlabel="product of space and time", ylabel="singular value / largest", ylim=(3e-9, 2))
    ax.legend(fontsize=9)
    return figure


def layouts(shown: Mapping[str, Observations]) -> Figure:
    """Where samples lie in space and time, one panel per protocol."""
    figure, panels = panel_row(len(shown), 0.45, "$t$")
    for ax, (name, observations) in zip(panels, shown.items(), strict=True):
        ax.plot(observations.x[:, 0], observations.t, ".", markersize=1.2, alpha=0.6)
        ax.set(title=name, xlabel="$x$")
    return figure


def reconstructions(
    trajectory: Trajectory, fields: Mapping[str, Field], sensors: Float[np.ndarray, " n"] | None = None
) -> Figure:
    """The true field and others on one color scale, the sensors as lines on the truth."""
    x, t, u = trajectory.axes[0], trajectory.t, trajectory.u
    pictures = {"truth": u} | {name: field.on_grid(x, t) for name, field in fields.items()}
    figure, panels = panel_row(len(pictures), 0.5, "$t$")
    for ax, (name, values) in zip(panels, pictures.items(), strict=True):
        ax.pcolormesh(x, t, values.T, vmin=u.min(), vmax=u.max(), rasterized=True)
        ax.set(title=name, xlabel="$x$")
    if sensors is not None:
        panels[0].vlines(sensors, t[0], t[-1], color="white", alpha=0.5, linewidth=0.8)
    return figure


def any_samples(cells: Cells) -> Table:
    """Recoveries and median errors from samples that fill no grid, clean and noisy."""
    rows = []
    for protocol in _PROTOCOLS:
        for name in ("kdv", "ks", "ad"):
            pair = [cells.get(("kernel", name, protocol, noise)) for noise in (0.0, 0.1)]
            texts = [text for cell in pair for text in (_cell(cell) if cell else ("–",) * 3)]
            if any(pair):  # a setting that was not run has no row
                rows.append((f"{SHORT_NAMES[name]} {protocol}", *texts))
    headings = ("exact", *_ERRORS)
    return table(("samples", *headings, *(f"{heading}, 10 % noise" for heading in headings)), rows)


def few_sensors(cells: Cells) -> Table:
    """Recoveries and median errors from few fixed sensors, by a separable and a travelling kernel."""
    paper = published.density().cells
    rows = []
    for name, protocol in sorted({key[1:3] for key in cells if key[0] == "travelling"}, key=_percent_of):
        printed = next((cell for key, cell in paper.items() if key[1:] == (name, protocol)), None)
        theirs = "–" if printed is None or printed.exact is None else str(printed.exact)
        ours = [_cell(cells[row, name, protocol, 0.0]) for row in ("separable", "travelling")]
        rows.append((f"{SHORT_NAMES[name]} {protocol}", theirs, *ours[0], *ours[1]))
    return table(("samples", "paper", "separable", *_ERRORS, "travelling", *_ERRORS), rows)


def equation_of_kernel(run: RunRecord) -> dict[str, float]:
    """Coefficients of the linear equation that the largest part of a plane's travelling kernel follows."""
    largest = max(run.extra["field_parameters"]["parts"], key=lambda part: part["amplitude"])
    (c1, c2), (d1, d2) = largest["velocity"], largest["spreading"]
    return {"u_x": -c1, "u_y": -c2, "u_xx": d1, "u_yy": d2}


def kernel_beside_equation(runs: Sequence[RunRecord]) -> Table:
    """What the kernel follows beside what was selected from its field, run by run."""
    rows = []
    for run in runs:
        pairs = ((value, run.terms.get(term, 0.0)) for term, value in equation_of_kernel(run).items())
        rows.append((run.seed, *(f"{kernel:.3f}\n{selected:.3f}" for kernel, selected in pairs)))
    terms = (f"${term.replace('u_', 'u_{')}}}$" for term in equation_of_kernel(runs[0]))
    return table(("seed", *terms), rows)


def beside_peer(runs: Iterable[RunRecord]) -> Table:
    """Burgers from scattered samples in the two settings of the peer: recoveries and seconds."""
    rows = []
    groups = by_cell(run for run in runs if run.problem == "burgers")
    for (*_, protocol, noise), group in sorted(groups.items(), key=lambda item: item[0][2:]):
        errors = [run.score["e_xi"] for run in group if run.score.get("exact")]
        error = f"{np.median(errors):.2g}" if errors else "–"
        identified = sum(run.extra.get("notes", {}).get("status") == "identified" for run in group)
        seconds = f"{np.median([run.seconds for run in group]):.1f}"
        setting = f"{int(protocol[1:]):,}", f"{noise:.0%}", count_of_five(len(errors), len(group))
        rows.append((*setting, error, identified, seconds, "recovered, under 60 s"))
    measures = ("exact", r"$E_\xi$ where exact", "called identified", "seconds")
    return table(("samples", "noise", *measures, "mesh-free SINDy"), rows)


def coverage(shares: Float[np.ndarray, "layouts levels"]) -> Figure:
    """How often errors stay within so many deviations, against how often they should."""
    figure, ax = canvas(0.6)
    expected = normal_coverage()
    ax.plot([0, 1], [0, 1], color=INK, linestyle=":", label="calibrated")
    low, middle, high = np.quantile(shares, [0.25, 0.5, 0.75], axis=0)
    ax.fill_between(expected, low, high, color=TRAVELLING, alpha=0.2, lw=0, label="half of the layouts")
    ax.plot(expected, middle, "o-", color=TRAVELLING, label="median layout")
    ax.plot(expected, shares.mean(axis=0), "s--", color=SEPARABLE, markersize=4, label="all layouts together")
    ax.set(xlabel="share claimed", ylabel="share covered", xlim=(0.3, 1.01), ylim=(0.0, 1.02))
    ax.legend(fontsize=9)
    return figure


def coverage_table(shares: Float[np.ndarray, "layouts levels"]) -> Table:
    """The same as numbers."""
    low, middle, high = np.quantile(shares, [0.25, 0.5, 0.75], axis=0)
    values = np.stack([normal_coverage(), shares.mean(axis=0), middle, low, high], axis=1)
    texts = (map("{:.1f} %".format, row) for row in 100 * values)
    rows = [(f"{level:g}", *row) for level, row in zip(LEVELS, texts, strict=True)]
    header = ("deviations", "claimed", "covered", "median layout", "lower quarter", "upper quarter")
    return table(header, rows)


def read_large() -> dict[str, Any]:
    """What `benchmarks/bench_large.py` recorded: fits by size, a dense process, workers, projections."""
    return json.loads((records_folder() / "large.json").read_text())


def growth(large: Mapping[str, Any]) -> Figure:
    """CPU seconds and peak memory against samples: the stream's, and those of scikit-learn's process."""
    figure, panels = panel_row(2, 0.45, sharey=False)
    curves = (("streamed", large["fits"], "o-", SEPARABLE), ("scikit-learn", large["dense"], "s--", INK))
    for ax, measure in zip(panels, ("seconds", "megabytes"), strict=True):
        for name, fits, style, color in curves:
            samples, values = zip(*((fit["samples"], fit[measure]) for fit in fits), strict=True)
            ax.loglog(samples, values, style, color=color, markersize=5, label=name)
        ax.set(xlabel="samples", title=measure)
    legend_above(figure, panels[0])
    return figure


def large_fits(large: Mapping[str, Any]) -> Table:
    """The same fits as numbers, with the errors of the field and of the coefficients selected from it."""
    rows = [
        (
            f"{fit['samples']:,}",
            f"{fit['seconds']:.2g}",
            f"{1e6 * fit['seconds'] / fit['samples']:.2g}",
            fit["megabytes"],
            f"{fit['field_error']:.1e}",
            f"{fit['coefficient_error']:.1e}",
            f"{max(fit['load']):.0f}",
        )
        for fit in large["fits"]
    ]
    return table(("samples", "seconds", "µs each", "MB", *reversed(_ERRORS), "load"), rows)


def projected(large: Mapping[str, Any]) -> Table:
    """What more samples would take on more workers if every part took what was measured."""
    rows = [
        (f"{row['samples']:,}", row["workers"], f"{row['seconds']:.0f}", f"{row['moved'] / 1e9:.0f}")
        for row in large["projected"]
    ]
    return table(("samples", "workers", "seconds", "GB moved, at most"), rows)


def _cell(cell: Summary) -> tuple[str, str, str]:
    return count_of_five(cell.exact, cell.runs), f"{cell.e_xi:.2g}", f"{cell.e_u:.2g}"


def _percent_of(cell: tuple[str, str]) -> tuple[bool, float]:
    name, protocol = cell
    return name != "kdv", -float(protocol[1:])
