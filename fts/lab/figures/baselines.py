"""Choices, costs and fields of the competing methods -> the tables and figures about them.

Records -> tables of one measure each, beside the paper's where it has them.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from fts.equations.equation import Equation
from fts.lab.figures.results import TITLES, densities, published_median, spent
from fts.lab.studies import plans, records
from fts.lab.studies.paths import true_field
from fts.lab.studies.published import CHOSEN, REGIMES, Cell, Published
from fts.lab.studies.records import CellKey, RunRecord, Summary
from fts.params.paper import PAPER, SHORT_NAMES, TEST_SEEDS
from fts.paths.recorder import SupportPath
from fts.plotting import INK, PALETTE, WIDTH, Table, table

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


# A recovery count or an error that is better than the paper's, equal to it, or worse.
_BETTER, _EQUAL, _WORSE = "▲", "=", "▼"
# Rows of the records and of the paper's tables, as a reader calls them.
_NAMES = {
    "structured": "structured adapter",
    "structured, no Fourier": "structured, raw coordinates",
    "coordinate": "coordinate network",
    "coordinate, no Fourier": "coordinate, raw coordinates",
    "coordinate, width 128": "coordinate, 128 units",
    "no penalties": "without penalties",
    "kernel": "kernel field",
    "kernel, weighted": "kernel field, weighted rows",
    "projected": "projected adapter",
    "svws": "SVWS",
    "without stability filter": "no stability filter",
} | {f"stlsq {m:g}": rf"${m:g}\,\lambda_0$" for m in PAPER["ks"].svws.multipliers}


def beside_paper(
    found: Mapping[CellKey, Summary],
    published: Published,
    rows: Mapping[str, tuple[str, float]],
    measure: str,
    heading: str = "method",
) -> Table:
    """One measure, ours beside the paper's, marked; `rows` maps a published row to our (row, noise)."""
    regimes = list(dict.fromkeys((problem, protocol) for _, problem, protocol in published.cells))
    lines = []
    for row, (method, noise) in rows.items():
        cells = []
        for regime in regimes:
            theirs = published.cells.get((row, *regime))
            ours = found.get((method, *regime, noise))
            cells.append(_beside(ours, theirs, measure))
        lines.append((_NAMES.get(row, row), *cells))
    return table([heading, *map(_regime, regimes)], lines)


def differences(
    found: Mapping[CellKey, Summary], published: Published, rows: Mapping[str, tuple[str, float]]
) -> Table:
    """Cells whose recoveries differ from the paper's by more than one run in five."""
    lines = []
    for (row, problem, protocol), theirs in published.cells.items():
        place = (rows[row][0], problem, protocol, rows[row][1]) if row in rows else None
        ours = found.get(place) if place else None
        if ours is None or theirs.exact is None or abs(5 * ours.exact / ours.runs - theirs.exact) <= 1:
            continue
        label = _NAMES.get(row, row)
        lines.append((label, _regime((problem, protocol)), _text(ours, "exact"), f"{theirs.exact}/5"))
    return table(["method", "regime", "here", "in the paper"], lines)


def only_ours(
    found: Mapping[CellKey, Summary],
    rows: Mapping[str, tuple[str, float]],
    measure: str,
    heading: str = "field",
) -> Table:
    """One measure of rows the paper does not have, over its six regimes."""
    lines = []
    for row, (method, noise) in rows.items():
        cells = [found.get((method, *regime, noise)) for regime in REGIMES]
        lines.append((_NAMES.get(row, row), *(_text(cell, measure) for cell in cells)))
    return table([heading, *map(_regime, REGIMES)], lines)


def crossed_table(
    found: Mapping[CellKey, Summary],
    fields: Sequence[str],
    selectors: Sequence[str],
    noise: float,
    measure: str,
) -> Table:
    """The same by regime, one measure."""
    lines = []
    for field in fields:
        for selector in selectors:
            cells = [found.get((f"{field}, {selector}", *regime, noise)) for regime in REGIMES]
            lines.append((field, selector, *(_text(cell, measure) for cell in cells)))
    return table(["field", "selector", *map(_regime, REGIMES)], lines)


def layout_medians(tested: Sequence[RunRecord], further: Sequence[RunRecord], published: Published) -> Table:
    """Medians of test seeds, further draws and paper, and the chance that five draws match the paper."""
    rows = []
    for name in dict.fromkeys(one.problem for one in further):
        theirs = published_median(published, name)
        first, rest = (
            np.array([one.score["e_xi"] for one in runs if one.problem == name and one.score])
            for runs in (tested, further)
        )
        share = float(np.mean(rest <= theirs))
        medians = (f"{np.median(first):.2g}", f"{np.median(rest):.2g}", f"{theirs:.2g}")
        rows.append((TITLES[name], *medians, f"{len(rest)}", f"{records.chance_of_median(share):.0%}"))
    return table(
        ["problem", "test seeds", "further layouts", "the paper", "layouts", "chance of five as good"],
        rows,
    )


def lowest_densities(found: Mapping[CellKey, Summary], rows: Mapping[str, str]) -> Table:
    """Per row and problem the lowest measured density from which on every run is exact."""
    lines = []
    for label, method in rows.items():
        cells = []
        for problem in TITLES:
            reached = None
            for percent, cell in reversed(densities(found, method, problem).items()):
                if cell.exact < cell.runs:
                    break
                reached = percent
            cells.append("none" if reached is None else f"{reached:g} %")
        lines.append((label, *cells))
    return table(["method", *TITLES.values()], lines)


def density_runs(found: Mapping[CellKey, Summary], rows: Mapping[str, str]) -> Table:
    """Per row and problem the runs recorded at the paper's densities, of those it has."""
    lines = []
    for label, method in rows.items():
        cells = []
        for problem in TITLES:
            percents = plans.PAPER_DENSITIES[problem]
            points = densities(found, method, problem)
            made = sum(points[percent].runs for percent in percents if percent in points)
            cells.append(f"{made} of {len(percents) * len(TEST_SEEDS)}")
        lines.append((label, *cells))
    return table(["method", *TITLES.values()], lines)


def _regime(regime: tuple[str, str]) -> str:
    return f"{TITLES[regime[0]]}-{regime[1]}"


def _text(cell: Summary | None, measure: str) -> str:
    if cell is None:
        return "not run"
    return f"{cell.exact}/{cell.runs}" if measure == "exact" else f"{getattr(cell, measure):.2g}"


def _beside(ours: Summary | None, theirs: Cell | None, measure: str) -> str:
    published = None if theirs is None else getattr(theirs, measure)
    if ours is None:
        return f"not run | {_published_text(theirs, measure)}" if theirs is not None else "–"
    # A cell whose runs are not all there yet is compared by its share.
    counts, mine = measure == "exact", getattr(ours, measure)
    share = mine * 5 / ours.runs if counts else mine
    mark = "" if published is None else f" {_mark(share, published, counts)}"
    return f"{_text(ours, measure)} | {_published_text(theirs, measure)}{mark}"


def _published_text(theirs: Cell | None, name: str) -> str:
    value = None if theirs is None else getattr(theirs, name)
    if value is None:
        return "–"
    return f"{value}/5" if name == "exact" else f"{value:.2g}"


def _mark(ours: float | int, theirs: float | int, more_is_better: bool) -> str:
    if np.isclose(ours, theirs, rtol=0.02):
        return _EQUAL
    return _BETTER if (ours > theirs) == more_is_better else _WORSE
