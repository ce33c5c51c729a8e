"""Fields, records and layouts -> figures and tables of chapter "samples".

Orange is the separable kernel, blue the travelling one, in every figure.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from fts.fields.frozen import Field
from fts.lab.studies import published
from fts.lab.studies.calibration import LEVELS, normal_coverage
from fts.lab.studies.records import CellKey, RunRecord, Summary
from fts.observations import Observations
from fts.params.paper import SHORT_NAMES
from fts.plotting import INK, PALETTE, WIDTH, Table, table
from fts.problems.protocols import interpolate
from fts.problems.trajectories import Trajectory

TRAVELLING, SEPARABLE = PALETTE[0], PALETTE[1]
_SPOKEN = {"R20": "points at random", "D20": "drifting probes", "S20-30": "gaps in the grid"}


def followed(trajectory: Trajectory, speed: float) -> Float[np.ndarray, "nx nt"]:
    """u(x + c t, t): the field on a periodic line as one sees it who moves along with speed c."""
    (axis,), t, domain = trajectory.axes, trajectory.t, trajectory.domain
    x, frame = np.meshgrid(axis, np.arange(t.size), indexing="ij")
    places = domain.low[0] + (x + speed * (t[frame] - t[0]) - domain.low[0]) % domain.extents[0]
    values = interpolate((axis,), (domain.extents[0],), trajectory.u, places.reshape(-1, 1), frame.ravel())
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
    figure, ax = plt.subplots(figsize=(WIDTH, 0.6 * WIDTH))
    for (name, u), marker in zip(fields.items(), "s^ov", strict=False):
        values = decay(u)[:shown]
        kept = values > 1e-9
        ax.semilogy(1 + np.flatnonzero(kept), values[kept], marker + "-", markersize=3.5, label=name)
    ax.set(xlabel="product of space and time", ylabel="singular value / largest", ylim=(3e-9, 2))
    ax.legend(fontsize=9)
    return figure


def layouts(shown: Mapping[str, Observations]) -> Figure:
    """Where samples lie in space and time, one panel per protocol."""
    figure, panels = plt.subplots(1, len(shown), figsize=(WIDTH, 0.45 * WIDTH), sharey=True)
    for ax, (name, observations) in zip(np.atleast_1d(panels), shown.items(), strict=True):
        ax.plot(observations.x[:, 0], observations.t, ".", markersize=1.2, alpha=0.6)
        ax.set(title=name, xlabel="$x$")
    np.atleast_1d(panels)[0].set_ylabel("$t$")
    return figure


def beside(
    trajectory: Trajectory, fields: Mapping[str, Field], sensors: Float[np.ndarray, " n"] | None = None
) -> Figure:
    """The true field and others on one color scale, the sensors as lines on the truth."""
    x, t = trajectory.axes[0], trajectory.t
    pictures = {"truth": trajectory.u} | {name: field.on_grid(x, t) for name, field in fields.items()}
    figure, panels = plt.subplots(1, len(pictures), figsize=(WIDTH, 0.5 * WIDTH), sharey=True)
    for ax, (name, values) in zip(panels, pictures.items(), strict=True):
        ax.pcolormesh(x, t, values.T, vmin=trajectory.u.min(), vmax=trajectory.u.max(), rasterized=True)
        ax.set(title=name, xlabel="$x$")
    if sensors is not None:
        panels[0].vlines(sensors, t[0], t[-1], color="white", alpha=0.5, linewidth=0.8)
    panels[0].set_ylabel("$t$")
    return figure


def any_samples(found: Mapping[CellKey, Summary]) -> Table:
    """Recoveries and median errors from samples that fill no grid, clean and noisy."""
    rows = []
    for protocol in _SPOKEN:
        for name in ("kdv", "ks", "ad"):
            cells = [found.get(("kernel", name, protocol, noise)) for noise in (0.0, 0.1)]
            texts = [text for cell in cells for text in (_cell(cell) if cell else ("–",) * 3)]
            if any(cells):  # a setting that was not run has no row
                rows.append((f"{SHORT_NAMES[name]} {protocol}", *texts))
    return table(
        (
            "samples",
            "exact",
            r"$E_\xi$",
            "$E_u$",
            "exact, 10 % noise",
            r"$E_\xi$, 10 % noise",
            "$E_u$, 10 % noise",
        ),
        rows,
    )


def few_sensors(found: Mapping[CellKey, Summary]) -> Table:
    """Recoveries and median errors from few fixed sensors, by a separable and a travelling kernel."""
    paper = published.density().cells
    rows = []
    places = sorted({place[1:3] for place in found if place[0] == "travelling"}, key=_percent_of)
    for name, protocol in places:
        separable, travelling = (found[row, name, protocol, 0.0] for row in ("separable", "travelling"))
        printed = next((cell for (_, *at), cell in paper.items() if tuple(at) == (name, protocol)), None)
        rows.append(
            (
                f"{SHORT_NAMES[name]} {protocol}",
                "–" if printed is None or printed.exact is None else f"{printed.exact}/5",
                *_cell(separable),
                *_cell(travelling),
            )
        )
    errors = r"$E_\xi$", "$E_u$"
    return table(("samples", "paper", "separable", *errors, "travelling", *errors), rows)


def brought(run: RunRecord) -> dict[str, float]:
    """Coefficients of the linear equation that the largest part of a plane's travelling kernel follows."""
    largest = max(run.extra["field_parameters"]["parts"], key=lambda part: part["amplitude"])
    (c1, c2), (d1, d2) = largest["velocity"], largest["spreading"]
    return {"u_x": -c1, "u_y": -c2, "u_xx": d1, "u_yy": d2}


def kernel_beside_equation(runs: Sequence[RunRecord]) -> Table:
    """What the kernel follows beside what was selected from its field, run by run."""
    rows = [
        (run.seed, *(f"{own:.3f} | {run.terms.get(term, 0.0):.3f}" for term, own in brought(run).items()))
        for run in runs
    ]
    return table(("seed", *(f"${term.replace('u_', 'u_{')}}}$" for term in brought(runs[0]))), rows)


def beside_peer(runs: Iterable[RunRecord]) -> Table:
    """Burgers from scattered samples in the two settings of the peer: recoveries and seconds."""
    groups: dict[tuple[str, float], list[RunRecord]] = {}
    for one in runs:
        if one.problem == "burgers":
            groups.setdefault((one.protocol, one.noise), []).append(one)
    rows = []
    for (protocol, noise), made in sorted(groups.items()):
        exact = sum(bool(one.score.get("exact")) for one in made)
        errors = [one.score["e_xi"] for one in made if one.score.get("exact")]
        seconds = [one.seconds for one in made]
        rows.append(
            (
                f"{int(protocol[1:]):,}",
                f"{noise:.0%}",
                f"{exact}/{len(made)}",
                f"{np.median(errors):.2g}" if errors else "–",
                f"{sum(_status(one) == 'identified' for one in made)}",
                f"{np.median(seconds):.1f}",
                "recovered, under 60 s",
            )
        )
    return table(
        (
            "samples",
            "noise",
            "exact",
            r"$E_\xi$ where exact",
            "called identified",
            "seconds",
            "mesh-free SINDy",
        ),
        rows,
    )


def coverage(shares: Float[np.ndarray, "layouts levels"]) -> Figure:
    """How often errors stay within so many deviations, against how often they should."""
    figure, ax = plt.subplots(figsize=(0.75 * WIDTH, 0.7 * WIDTH))
    expected = normal_coverage()
    ax.plot([0, 1], [0, 1], color=INK, linestyle=":", label="calibrated")
    low, middle, high = np.quantile(shares, [0.25, 0.5, 0.75], axis=0)
    ax.fill_between(
        expected, low, high, color=TRAVELLING, alpha=0.2, linewidth=0, label="half of the layouts"
    )
    ax.plot(expected, middle, "o-", color=TRAVELLING, label="median layout")
    ax.plot(expected, shares.mean(axis=0), "s--", color=SEPARABLE, markersize=4, label="all layouts together")
    ax.set(xlabel="share claimed", ylabel="share covered", xlim=(0.3, 1.01), ylim=(0.0, 1.02))
    ax.legend(fontsize=9)
    return figure


def coverage_table(shares: Float[np.ndarray, "layouts levels"]) -> Table:
    """The same as numbers."""
    low, middle, high = np.quantile(shares, [0.25, 0.5, 0.75], axis=0)
    columns: Sequence[Iterable[float]] = (normal_coverage(), shares.mean(axis=0), middle, low, high)
    rows = [
        (f"{level:g}", *(f"{100 * value:.1f} %" for value in values))
        for level, *values in zip(LEVELS, *columns, strict=True)
    ]
    return table(
        ("deviations", "claimed", "covered", "median layout", "lower quarter", "upper quarter"), rows
    )


def _status(one: RunRecord) -> str:
    return one.extra.get("notes", {}).get("status", "")


def _cell(cell: Summary) -> tuple[str, str, str]:
    return f"{cell.exact}/{cell.runs}", f"{cell.e_xi:.2g}", f"{cell.e_u:.2g}"


def _percent_of(place: tuple[str, str]) -> tuple[bool, float]:
    name, protocol = place
    return name != "kdv", -float(protocol[1:])
