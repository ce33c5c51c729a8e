"""Records -> tables of one measure each, beside the paper's; choices, costs and fields of the methods."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from fts.equations.equation import Equation
from fts.lab.figures.results import TITLES, densities, processor_seconds, published_median
from fts.lab.studies import plans, records
from fts.lab.studies.paths import true_field
from fts.lab.studies.published import CHOSEN, REGIMES, Cell, Published
from fts.lab.studies.records import CellKey, RunRecord, Summary
from fts.params.paper import PAPER, SHORT_NAMES, TEST_SEEDS
from fts.paths.recorder import SupportPath
from fts.plotting import INK, PALETTE, Table, panel_row, table

# What the methods call the stages of their training.
_STAGES = [
    "max_iterations",
    "adam_steps",
    "lbfgs_iterations",
    "cycles",
    "cycle_steps",
    "burn_in",
    "sparsification",
]
# Shares of a true coefficient that are drawn where they are.
_SHARES = (-0.2, 1.4)


def choices(record: Mapping[str, Mapping[str, Any]]) -> Table:
    """Which threshold each method got per problem, how often it recovers there, and what the paper took."""
    lines = []
    for method, problems in record.items():
        for name, choice in problems.items():
            winner = choice["winner"]
            same = [each for each in choice["candidates"] if winner.items() <= each.items()]
            runs = len(choice["seeds"]) * len(choice["protocols"])
            label = f"{winner['threshold']:g}" + (f", {winner['patches']}" if winner["patches"] else "")
            theirs = f"{CHOSEN[method][name]:g}" if method in CHOSEN else "–"
            tried = str(len(choice["candidates"]))
            lines.append((method, SHORT_NAMES[name], tried, label, f"{same[0]['exact']} of {runs}", theirs))
    header = ["method", "problem", "candidates", "chosen", "exact there", "the paper's"]
    return table(header, lines)


def budgets(settings: Mapping[str, Mapping[str, Any]]) -> Table:
    """Network and longest training of each method that trains, from its settings by name."""
    rows = [(name, f"{each['depth']} × {each['width']}", _stages(each)) for name, each in settings.items()]
    return table(["method", "hidden layers × units", "at most"], rows)


def costs(runs: Iterable[RunRecord], settings: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Table:
    """Per method that trains and problem: runs recorded, their seconds and iterations, and the cap."""
    finished = [run for run in runs if not run.error]
    lines = []
    for method, problems in settings.items():
        if not any(run.row == method for run in finished):
            (cap,) = {_cap(values) for values in problems.values()}  # one budget for all problems
            lines.append((method, "all", "not run", "–", "–", f"{cap:,}", "–"))
            continue
        for name, values in problems.items():
            group = [run for run in finished if (run.row, run.problem) == (method, name)]
            seconds, taken, capped = _costs(group) if group else ("–", "–", "–")
            count = f"{len(group)}" if group else "not run"
            lines.append((method, SHORT_NAMES[name], count, seconds, taken, f"{_cap(values):,}", capped))
    return table(["method", "problem", "runs", "seconds", "iterations", "cap", "ended by it"], lines)


def trained_fields(paths: Sequence[SupportPath], runs: Mapping[str, RunRecord]) -> Figure:
    """The true field, and on its colors where each training on the same samples ended; one frame in 2D.

    Errors are those of the runs' records, over the whole reference grid.
    """
    truth = true_field(paths[0])
    figure, panels = panel_row(1 + len(paths), 0.42)
    for ax, path in zip(panels, (None, *paths), strict=True):
        values = truth if path is None else path.fields[-1]
        frame = values if values.ndim == 2 else values[..., values.shape[-1] // 2]
        ax.imshow(frame.T, origin="lower", aspect="auto", vmin=truth.min(), vmax=truth.max())
        ax.set(xticks=[], yticks=[], xlabel="$x$")
        ax.set_title("the truth" if path is None else _ended(path, runs), fontsize=10)
    panels[0].set_ylabel("$t$" if truth.ndim == 2 else "$y$")
    return figure


def coefficient_shares(methods: Mapping[str, Sequence[RunRecord]], truth: Equation) -> Figure:
    """Every true term's coefficient as a share of the true one, a dot per run: 1 is right, 0 is dropped.

    Hollow dots are runs that also report terms that are not there; what lies outside is drawn at the edge.
    """
    terms = truth.physical()
    figure, panels = panel_row(len(terms), 0.6)
    for ax, (term, xi) in zip(panels, terms.items(), strict=True):
        for row, (color, runs) in enumerate(zip(cycle(PALETTE), methods.values(), strict=False)):
            spread = row + np.linspace(-0.25, 0.25, len(runs))
            look = {
                "facecolors": ["none" if run.score["extra"] else color for run in runs],
                "edgecolors": color,
            }
            values = [run.terms.get(str(term), 0.0) / xi for run in runs]
            ax.scatter(np.clip(values, *_SHARES), spread, s=22, clip_on=False, **look)
        ax.axvline(1.0, color=INK, linewidth=1, zorder=0)
        ax.set(title=f"${term.latex}$", xlim=_SHARES)
    panels[0].set_yticks(range(len(methods)), list(methods))
    panels[0].invert_yaxis()
    figure.supxlabel("coefficient, share of the true one", color=INK, fontsize=12)
    return figure


def _ended(path: SupportPath, runs: Mapping[str, RunRecord]) -> str:
    name = path.about["row"].replace(", ", ",\n").replace("-LEARN", "-\nLEARN")
    return f"{name}\n$E_u$ = {runs[path.about['key']].score['e_u']:.2g}"


def _costs(runs: Sequence[RunRecord]) -> tuple[str, str, str]:
    amounts = ([processor_seconds(run) for run in runs], [_iterations(run) for run in runs])
    capped = sum(run.extra["notes"].get("stopped_by") == "budget" for run in runs)
    spans = [f"{np.median(each):,.0f} ({min(each):,.0f} to {max(each):,.0f})" for each in amounts]
    return spans[0], spans[1], f"{capped}"


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
    cells: Mapping[CellKey, Summary],
    published: Published,
    rows: Mapping[str, tuple[str, float]],
    measure: str,
    heading: str = "method",
) -> Table:
    """One measure, ours above the paper's, marked; `rows` maps a published row to our (row, noise)."""
    regimes = list(dict.fromkeys((problem, protocol) for _, problem, protocol in published.cells))
    lines = []
    for row, (method, noise) in rows.items():
        pairs = [
            (cells.get((method, *regime, noise)), published.cells.get((row, *regime))) for regime in regimes
        ]
        lines.append((_NAMES.get(row, row), *(_beside(ours, theirs, measure) for ours, theirs in pairs)))
    return table([heading, *map(_regime, regimes)], lines)


def differences(
    cells: Mapping[CellKey, Summary], published: Published, rows: Mapping[str, tuple[str, float]]
) -> Table:
    """Cells whose recoveries differ from the paper's by more than one run in five."""
    lines = []
    for (row, problem, protocol), theirs in published.cells.items():
        key = (rows[row][0], problem, protocol, rows[row][1]) if row in rows else None
        ours = cells.get(key) if key else None
        if ours is None or theirs.exact is None or abs(5 * ours.exact / ours.runs - theirs.exact) <= 1:
            continue
        label = _NAMES.get(row, row)
        lines.append((label, _regime((problem, protocol)), _text(ours, "exact"), theirs.exact))
    return table(["method", "regime", "here", "in the paper"], lines)


def only_ours(
    cells: Mapping[CellKey, Summary],
    rows: Mapping[str, tuple[str, float]],
    measure: str,
    heading: str = "field",
) -> Table:
    """One measure of rows the paper does not have, over its six regimes."""
    lines = [
        (_NAMES.get(row, row), *_over_regimes(cells, method, noise, measure))
        for row, (method, noise) in rows.items()
    ]
    return table([heading, *map(_regime, REGIMES)], lines)


def crossed_table(
    cells: Mapping[CellKey, Summary],
    fields: Sequence[str],
    selectors: Sequence[str],
    noise: float,
    measure: str,
) -> Table:
    """The same by regime, one measure."""
    lines = [
        (field, selector, *_over_regimes(cells, f"{field}, {selector}", noise, measure))
        for field in fields
        for selector in selectors
    ]
    return table(["field", "selector", *map(_regime, REGIMES)], lines)


def layout_medians(tested: Sequence[RunRecord], further: Sequence[RunRecord], published: Published) -> Table:
    """Medians of test seeds, further draws and paper, and the chance that five draws match the paper."""
    rows = []
    for name in dict.fromkeys(run.problem for run in further):
        theirs = published_median(published, name)
        first, rest = (
            np.array([run.score["e_xi"] for run in runs if run.problem == name and run.score])
            for runs in (tested, further)
        )
        chance = records.chance_of_median(float(np.mean(rest <= theirs)))
        medians = (f"{np.median(first):.2g}", f"{np.median(rest):.2g}", f"{theirs:.2g}")
        rows.append((TITLES[name], *medians, len(rest), f"{chance:.0%}"))
    header = ["problem", "test seeds", "further layouts", "the paper", "layouts", "chance of five as good"]
    return table(header, rows)


def lowest_densities(cells: Mapping[CellKey, Summary], rows: Mapping[str, str]) -> Table:
    """Per row and problem the lowest measured density from which on every run is exact."""
    lines = []
    for label, method in rows.items():
        texts = []
        for problem in TITLES:
            reached = None
            for percent, cell in reversed(densities(cells, method, problem).items()):
                if cell.exact < cell.runs:
                    break
                reached = percent
            texts.append("none" if reached is None else f"{reached:g} %")
        lines.append((label, *texts))
    return table(["method", *TITLES.values()], lines)


def density_runs(cells: Mapping[CellKey, Summary], rows: Mapping[str, str]) -> Table:
    """Per row and problem the runs recorded at the paper's densities, of those it has."""
    lines = []
    for label, method in rows.items():
        texts = []
        for problem in TITLES:
            percents = plans.PAPER_DENSITIES[problem]
            points = densities(cells, method, problem)
            made = sum(points[percent].runs for percent in percents if percent in points)
            texts.append(f"{made} of {len(percents) * len(TEST_SEEDS)}")
        lines.append((label, *texts))
    return table(["method", *TITLES.values()], lines)


def _over_regimes(cells: Mapping[CellKey, Summary], row: str, noise: float, measure: str) -> list[str]:
    return [_text(cells.get((row, *regime, noise)), measure) for regime in REGIMES]


def _regime(regime: tuple[str, str]) -> str:
    return f"{TITLES[regime[0]]}-{regime[1]}"


def _text(cell: Summary | None, measure: str) -> str:
    if cell is None:
        return "not run"
    if measure != "exact":
        return f"{getattr(cell, measure):.2g}"
    return records.count_of_five(cell.exact, cell.runs)


def _beside(ours: Summary | None, theirs: Cell | None, measure: str) -> str:
    published = None if theirs is None else getattr(theirs, measure)
    if ours is None:
        return f"not run\n{_published_text(theirs, measure)}" if theirs is not None else "–"
    # A cell whose runs are not all there yet is compared by its share.
    counts, mine = measure == "exact", getattr(ours, measure)
    share = mine * 5 / ours.runs if counts else mine
    mark = "" if published is None else f" {_mark(share, published, counts)}"
    return f"{_text(ours, measure)}{mark}\n{_published_text(theirs, measure)}"


def _published_text(theirs: Cell | None, name: str) -> str:
    value = None if theirs is None else getattr(theirs, name)
    if value is None:
        return "–"
    return f"{value}" if name == "exact" else f"{value:.3g}"


def _mark(ours: float | int, theirs: float | int, more_is_better: bool) -> str:
    if np.isclose(ours, theirs, rtol=0.02):
        return _EQUAL
    return _BETTER if (ours > theirs) == more_is_better else _WORSE
