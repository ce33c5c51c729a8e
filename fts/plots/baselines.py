"""Choices, costs and fields of the competing methods -> the tables and figures about them."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from fts.equations.equation import Equation
from fts.params import SHORT_NAMES
from fts.paths.support_path import SupportPath
from fts.plots.results import spent
from fts.plots.style import INK, PALETTE, WIDTH, Table, table
from fts.studies.path_tables import true_field
from fts.studies.published import CHOSEN
from fts.studies.records import RunRecord

# What the methods call the stages of their training.
_STAGES = (
    *("max_iterations", "adam_steps", "lbfgs_iterations", "cycles", "cycle_steps"),
    *("burn_in", "sparsification"),
)
# Shares of a true coefficient that are drawn where they are.
_SHARES = (-0.2, 1.4)


def choices(record: Mapping[str, Mapping[str, Any]]) -> Table:
    """Which threshold each method got per problem, how often it recovers there, and what the paper took."""
    lines = []
    for method, problems in record.items():
        for name, choice in problems.items():
            winner = choice["winner"]
            exact = next(one["exact"] for one in choice["candidates"] if _same(one, winner))
            runs = len(choice["seeds"]) * len(choice["protocols"])
            label = f"{winner['threshold']:g}" + (f", {winner['patches']}" if winner["patches"] else "")
            theirs = f"{CHOSEN[method][name]:g}" if method in CHOSEN else "–"
            tried = str(len(choice["candidates"]))
            lines.append((method, SHORT_NAMES[name], tried, label, f"{exact}/{runs}", theirs))
    header = ["method", "problem", "candidates", "chosen", "exact there", "the paper's"]
    return table(header, lines)


def budgets(settings: Mapping[str, Mapping[str, Any]]) -> Table:
    """Network and longest training of each method that trains, from its settings by name."""
    lines = [
        (method, f"{values['depth']} × {values['width']}", _stages(values))
        for method, values in settings.items()
    ]
    return table(["method", "hidden layers × units", "at most"], lines)


def costs(runs: Iterable[RunRecord], settings: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Table:
    """Per method that trains and problem: runs recorded, their seconds and iterations, and the cap."""
    recorded = [one for one in runs if not one.error]
    lines = []
    for method, problems in settings.items():
        if not any(one.row == method for one in recorded):
            (cap,) = {_cap(values) for values in problems.values()}  # one budget for all problems
            lines.append((method, "all", "not run", "–", "–", f"{cap:,}", "–"))
            continue
        for name, values in problems.items():
            mine = [one for one in recorded if (one.row, one.problem) == (method, name)]
            seconds, taken, capped = _spent(mine) if mine else ("–", "–", "–")
            count = f"{len(mine)}/10" if mine else "not run"
            lines.append((method, SHORT_NAMES[name], count, seconds, taken, f"{_cap(values):,}", capped))
    return table(["method", "problem", "runs", "seconds", "iterations", "cap", "ended by it"], lines)


def ends(paths: Sequence[SupportPath], runs: Mapping[str, RunRecord]) -> Figure:
    """The true field, and on its colors where each training on the same samples ended; one frame in 2D.

    Errors are those of the runs' records, over the whole reference grid.
    """
    truth = true_field(paths[0])
    figure, panels = plt.subplots(1, 1 + len(paths), figsize=(WIDTH, 0.42 * WIDTH), sharey=True)
    for ax, path in zip(panels, (None, *paths), strict=True):
        values = truth if path is None else path.fields[-1]
        frame = values if values.ndim == 2 else values[..., values.shape[-1] // 2]
        ax.imshow(frame.T, origin="lower", aspect="auto", vmin=truth.min(), vmax=truth.max())
        ax.set(xticks=[], yticks=[], xlabel="$x$")
        ax.set_title("the truth" if path is None else _ended(path, runs), fontsize=10)
    panels[0].set_ylabel("$t$" if truth.ndim == 2 else "$y$")
    return figure


def shares(found: Mapping[str, Sequence[RunRecord]], truth: Equation) -> Figure:
    """Every true term's coefficient as a share of the true one, a dot per run: 1 is right, 0 is dropped.

    Hollow dots are runs that also report terms that are not there; what lies outside is drawn at the edge.
    """
    terms = truth.physical()
    figure, panels = plt.subplots(1, len(terms), figsize=(WIDTH, 0.6 * WIDTH), sharey=True)
    for ax, (term, xi) in zip(panels, terms.items(), strict=True):
        for row, (color, runs) in enumerate(zip(cycle(PALETTE), found.values(), strict=False)):
            spread = row + np.linspace(-0.25, 0.25, len(runs))
            filled = ["none" if one.score["extra"] else color for one in runs]
            values = [one.terms.get(str(term), 0.0) / xi for one in runs]
            ax.scatter(
                np.clip(values, *_SHARES), spread, s=22, clip_on=False, facecolors=filled, edgecolors=color
            )
        ax.axvline(1.0, color=INK, linewidth=1, zorder=0)
        ax.set(title=f"${term.latex}$", xlim=_SHARES)
    panels[0].set_yticks(range(len(found)), list(found))
    panels[0].invert_yaxis()
    figure.supxlabel("coefficient, share of the true one", color=INK, fontsize=12)
    return figure


def _ended(path: SupportPath, runs: Mapping[str, RunRecord]) -> str:
    name = path.about["row"].replace(", ", ",\n").replace("-LEARN", "-\nLEARN")
    return f"{name}\n$E_u$ = {runs[path.about['key']].score['e_u']:.2g}"


def _spent(runs: Sequence[RunRecord]) -> tuple[str, str, str]:
    seconds = np.array([spent(one) for one in runs])
    taken = np.array([_iterations(one) for one in runs])
    capped = sum(one.extra["notes"].get("stopped_by") == "budget" for one in runs)
    return (
        f"{np.median(seconds):,.0f} ({seconds.min():,.0f} to {seconds.max():,.0f})",
        f"{np.median(taken):,.0f} ({taken.min():,.0f} to {taken.max():,.0f})",
        f"{capped}/{len(runs)}",
    )


def _iterations(run: RunRecord) -> float:
    taken = run.extra["notes"]["iterations"]
    if not isinstance(taken, Mapping):
        return float(taken)
    return float(taken["adam"] + taken["lbfgs"] + taken["cycles"] * run.parameters["cycle_steps"])


def _cap(values: Mapping[str, Any]) -> int:
    """Most iterations of all stages together."""
    if "cycles" in values:
        return values["adam_steps"] + values["lbfgs_iterations"] + values["cycles"] * values["cycle_steps"]
    names = ("steps",) if "steps" in values else ("max_iterations", "burn_in", "sparsification")
    return sum(values[name] for name in names if name in values)


def _stages(values: Mapping[str, Any]) -> str:
    if "steps" in values:  # DL-PDE, whose other iterations are those of its regression
        return f"steps {values['steps']:,}"
    return "; ".join(f"{name.replace('_', ' ')} {values[name]:,}" for name in _STAGES if name in values)


def _same(one: Mapping[str, Any], winner: Mapping[str, Any]) -> bool:
    return all(one[name] == value for name, value in winner.items())
