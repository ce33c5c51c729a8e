"""Figures and tables of the chapter on more than one: species, runs, a curve, and how often all is found."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from fts.discovery.systems import SystemDiscovery
from fts.domain import Domain
from fts.fields.varying import Curve
from fts.lab.studies.records import RunRecord, by_cell
from fts.lab.studies.systems import SCALAR
from fts.plotting import INK, PALETTE, Table, canvas, field_map, panel_row, table
from fts.problems.problems import problem
from fts.problems.systems import system_names, system_problem

_POINTS = 160


def reconstructions(result: SystemDiscovery) -> Figure:
    """The frozen field of every component over space and time, with the probes below."""
    fits = result.experiments[0].fits
    figure, axes = panel_row(len(fits), 0.5, "$t$")
    for ax, (name, fit) in zip(axes, fits.items(), strict=True):
        x, t = _axes(fit.field.domain)
        mesh = field_map(ax, x, t, fit.field.on_grid(x, t))
        figure.colorbar(mesh, ax=ax, label=f"${name}$", location="bottom")
        probes = np.unique(fit.observations.x[:, 0])
        ax.plot(probes, np.full(probes.size, t[0]), "^", color=INK, markersize=3, clip_on=False)
    return figure


def _axes(domain: Domain) -> tuple[np.ndarray, np.ndarray]:
    return np.linspace(domain.low[0], domain.high[0], _POINTS), np.linspace(domain.t0, domain.t1, _POINTS)


def curve(estimate: Curve, truth: Callable[[np.ndarray], np.ndarray] | None = None) -> Figure:
    """A coefficient with the band of two standard errors, and the true one dashed."""
    figure, ax = canvas(0.45)
    x, values, errors = estimate.points, estimate.values, estimate.errors
    ax.fill_between(x, values - 2 * errors, values + 2 * errors, color=PALETTE[0], alpha=0.25, linewidth=0)
    ax.plot(x, values, color=PALETTE[0], label="found")
    if truth is not None:
        ax.plot(x, truth(x), "--", color=INK, label="true")
        ax.legend()
    inside = np.quantile(np.concatenate([values - 3 * errors, values + 3 * errors]), [0.08, 0.92])
    ax.set(
        xlabel=f"${estimate.axis}$", ylabel=f"$c({estimate.axis})$", xlim=(x[0], x[-1]), ylim=tuple(inside)
    )
    return figure


def runs_table(alone: Sequence[SystemDiscovery], together: SystemDiscovery) -> Table:
    """What every run says alone, and all of them."""
    rows = [(f"run {k}", *_answer(result)) for k, result in enumerate(alone, 1)]
    return table(("samples", "verdict", "equation"), [*rows, (f"all {len(alone)}", *_answer(together))])


def _answer(result: SystemDiscovery) -> tuple[str, str]:
    (discovery,) = result.components.values()
    return discovery.verdict.status, f"${discovery.equation.latex}$"


def recovery_table(records: Iterable[RunRecord], *, several: bool) -> Table:
    """The runs with every equation right, of those made, by noise, for problems of several fields or one."""
    entries = map(system_problem, system_names())
    problems = [each.name for each in entries if several == (len(each.components) + len(each.inputs) > 1)]
    cells = {key: runs for key, runs in by_cell(records).items() if key[1] in problems and key[2] == "S20"}
    levels = sorted({noise for *_, noise in cells})
    rows = []
    for name in problems:
        of_problem = {noise: runs for (_, other, _, noise), runs in cells.items() if other == name}
        if of_problem:
            shown = [_share(of_problem.get(noise, ())) for noise in levels]
            rows.append((_title(name), *shown, _worst(of_problem.get(levels[0], ()))))
    header = ("problem", *(f"{noise:.0%} noise" for noise in levels), "coefficients within")
    return table(header, rows)


def comparison_table(records: Iterable[RunRecord], rows_of: Mapping[str, tuple[str, str]]) -> Table:
    """Runs with every equation right, by problem and noise, for every row and protocol in `rows_of`."""
    cells = by_cell(records)
    columns = list(rows_of.values())
    recorded = Counter((name, noise) for row, name, protocol, noise in cells if (row, protocol) in columns)
    # A single column compares nothing.
    shown = sorted(cell for cell, count in recorded.items() if count > 1)
    rows = [
        (
            _title(name),
            f"{noise:.0%}",
            *(_share(cells.get((row, name, protocol, noise), ())) for row, protocol in columns),
        )
        for name, noise in shown
    ]
    return table(("problem", "noise", *rows_of), rows)


# The fourteen partial differential equations of MDBench, and the problem of that kind here. Both flows around
# a cylinder need a domain with a hole.
MDBENCH = {
    "Advection": "advection",
    "Burgers": "burgers",
    "Korteweg-de Vries": "kdv",
    "Kuramoto-Sivashinsky": "ks",
    "Advection-diffusion, 2D": "ad",
    "Heat in soil, 1D": "daily_heat_1d",
    "Heat in soil, 2D": "daily_heat_2d",
    "Heat in soil, 3D": "daily_heat_3d",
    "Heat of a laser": "moving_source",
    "Reaction-diffusion, 2D": "lambda_omega_2d",
    "Nonlinear Schrödinger": "schroedinger",
    "Channel flow": "channel_flow",
    "Flow around a cylinder": None,
    "Reaction-diffusion around a cylinder": None,
}


def benchmark_table(records: Iterable[RunRecord]) -> Table:
    """Every equation of the list: how often the problem of its kind is found here, and in which time."""
    cells = {key: runs for key, runs in by_cell(records).items() if key[2] == "S20"}
    levels = sorted({noise for *_, noise in cells})
    rows = []
    for title, name in MDBENCH.items():
        made = [cells.get(("discover", name or "", "S20", noise), []) for noise in levels]
        seconds = [run.seconds for runs in made for run in runs if not run.error]
        time = f"{np.median(seconds):.0f}" if seconds else "–"
        rows.append((title, _title(name) if name else "no: a domain with a hole", *map(_share, made), time))
    return table(("equation", "here", *(f"{noise:.0%} noise" for noise in levels), "seconds"), rows)


def _title(name: str) -> str:
    return problem(name).title if name in SCALAR else system_problem(name).title.partition(",")[0]


def _share(runs: Sequence[RunRecord]) -> str:
    return f"{sum(run.score['exact'] for run in runs if not run.error)}/{len(runs)}" if runs else "–"


def _worst(runs: Sequence[RunRecord]) -> str:
    """The largest relative error of a coefficient, or a curve's, at the median over runs that are right."""
    scores = [run.score for run in runs if not run.error and run.score["exact"]]
    errors = [score.get("error_of_curve", score["error"]) for score in scores]
    return f"{np.median(errors):.2g}" if errors else "–"


def failures(records: Iterable[RunRecord]) -> list[str]:
    """A line for every problem and noise where equations were wrong, and how many were called identified."""
    lines = []
    for (row, name, protocol, noise), runs in by_cell(records).items():
        wrong = [run for run in runs if run.error or not run.score["exact"]]
        called = sum(set(run.extra.get("status", {}).values()) == {"identified"} for run in wrong)
        counts = f"{len(wrong)} of {len(runs)} wrong, {called} of these called identified"
        lines += [f"{row}, {_title(name)} {protocol}, {noise:.0%} noise: {counts}"] if wrong else []
    return lines
