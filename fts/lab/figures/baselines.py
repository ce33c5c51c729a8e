"""Records -> tables of one measure each, beside the paper's; choices, costs and fields of the methods."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import cycle, pairwise, product, takewhile
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from fts.equations.equation import Equation
from fts.lab.figures.results import TITLES, densities, processor_seconds, published_median
from fts.lab.studies import plans, records
from fts.lab.studies.paths import true_field
from fts.lab.studies.published import CHOSEN, REGIMES, Cell, Published
from fts.lab.studies.records import Cells, RunRecord, Summary
from fts.params.paper import PAPER, SHORT_NAMES, TEST_SEEDS
from fts.paths.recorder import SupportPath
from fts.plotting import INK, PALETTE, Table, canvas, panel_row, table

# Our row and noise level by published row.
Words = Sequence[str]
Rows = Mapping[str, tuple[str, float]]
# What the methods call the stages of their training.
_STAGES = (
    "max_iterations",
    "adam_steps",
    "lbfgs_iterations",
    "cycles",
    "cycle_steps",
    "burn_in",
    "sparsification",
)
# Shares of a true coefficient that are drawn where they are.
_SHARES = (-0.2, 1.4)
# What goes in, what is fitted to it, what is optimized, and what is read off.
_STEPS = {
    "PDE-FIND": (
        "samples",
        "Fourier series\nby ridge",
        "thresholded\nridge on its\nderivatives",
        "terms and\ncoefficients",
    ),
    "WSINDy": (
        "samples",
        "Fourier series\nby ridge",
        "thresholded\nridge on one\nweak system",
        "terms; refit\non other\npatches",
    ),
    "DL-PDE": (
        "samples",
        "network\nof sines",
        "thresholded\nridge on its\nderivatives",
        "terms and\ncoefficients",
    ),
    "DeepMoD": (
        "samples\nand library",
        "network",
        "data error +\nresidual at\nthe samples",
        "terms of\nthe last\nlasso mask",
    ),
    "PINN-SR": (
        "samples\nand library",
        "network",
        "data error +\nresidual at\nmany points",
        "terms after\nthe last\nprojection",
    ),
    "Weak-PDE-LEARN": (
        "samples\nand library",
        "rational\nnetwork",
        "data error +\nweak residual\n+ p-norm",
        "terms above\na threshold",
    ),
}
_PLACES = (0.08, 0.32, 0.62, 0.91)  # of the four steps across a diagram
_JOINT = ("DeepMoD", "PINN-SR", "Weak-PDE-LEARN")


def diagram(method: str) -> Figure:
    """What goes into a method, what it fits and optimizes, and what is read off."""
    figure, ax = canvas(0.3)
    ax.set(xlim=(0, 1), ylim=(-0.62, 0.5))
    ax.axis("off")
    heads, boxes = ("goes in", "is fitted", "is optimized", "is read off"), []
    for i, (place, head, text) in enumerate(zip(_PLACES, heads, _STEPS[method], strict=True)):
        ax.text(place, 0.36, head, ha="center", fontsize=9, color=INK)
        color = PALETTE[1] if method in _JOINT and i in (1, 2) else PALETTE[0]
        look = {"boxstyle": "round,pad=0.35", "facecolor": "none", "edgecolor": color}
        boxes.append(ax.text(place, 0.0, text, ha="center", va="center", fontsize=9, bbox=look))
    for start, end in pairwise(boxes):
        ends = {"patchA": start.get_bbox_patch(), "patchB": end.get_bbox_patch(), "shrinkA": 1, "shrinkB": 1}
        look = {"arrowstyle": "->", "color": INK} | ends
        ax.annotate("", end.get_position(), start.get_position(), arrowprops=look)
    if method in _JOINT:
        turn = {"arrowstyle": "->", "color": PALETTE[1], "connectionstyle": "arc3,rad=-0.25"}
        ax.annotate("", (_PLACES[1], -0.2), (_PLACES[2], -0.2), arrowprops=turn)
        ax.text(
            sum(_PLACES[1:3]) / 2, -0.6, "step by step, together", ha="center", fontsize=9, color=PALETTE[1]
        )
    return figure


def choices(record: Mapping[str, Mapping[str, Any]]) -> Table:
    """Which threshold each method got per problem, how often it recovers there, and what the paper took."""
    lines = []
    for method, problems in record.items():
        for name, choice in problems.items():
            winner, tried = choice["winner"], choice["candidates"]
            same = next(each for each in tried if winner.items() <= each.items())
            exact = f"{same['exact']} of {len(choice['seeds']) * len(choice['protocols'])}"
            label = f"{winner['threshold']:g}" + (f", {winner['patches']}" if winner["patches"] else "")
            theirs = f"{CHOSEN[method][name]:g}" if method in CHOSEN else "–"
            lines.append((method, SHORT_NAMES[name], len(tried), label, exact, theirs))
    header = ["method", "problem", "candidates", "chosen", "exact in these runs", "the paper's"]
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
    figure, panels = panel_row(1 + len(paths), 0.42, "$t$" if truth.ndim == 2 else "$y$")
    for ax, path in zip(panels, (None, *paths), strict=True):
        values = truth if path is None else path.fields[-1]
        frame = values if values.ndim == 2 else values[..., values.shape[-1] // 2]
        ax.imshow(frame.T, origin="lower", aspect="auto", vmin=truth.min(), vmax=truth.max())
        ax.set(xticks=[], yticks=[], xlabel="$x$")
        ax.set_title("the truth" if path is None else _ended(path, runs), fontsize=10)
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
            inside = ["none" if run.score["extra"] else color for run in runs]
            values = np.clip([run.terms.get(str(term), 0.0) / xi for run in runs], *_SHARES)
            ax.scatter(values, spread, s=22, clip_on=False, facecolors=inside, edgecolors=color)
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
    return _span(amounts[0]), _span(amounts[1]), f"{capped}"


def _span(values: Sequence[float]) -> str:
    """The median, with the range under it where there is one."""
    low, high = min(values), max(values)
    return f"{np.median(values):,.0f}" + (f"\n{low:,.0f} to {high:,.0f}" if low < high else "")


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
    # The other iterations of DL-PDE are those of its regression.
    names = ["steps"] if "steps" in values else [name for name in _STAGES if name in values]
    return "; ".join(f"{name.replace('_', ' ')} {values[name]:,}" for name in names)


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
    cells: Cells, published: Published, rows: Rows, measure: str, heading: str = "method"
) -> Table:
    """One measure, ours above the paper's, marked; `rows` maps a published row to our (row, noise)."""
    regimes, theirs = list(dict.fromkeys(key[1:] for key in published.cells)), published.cells.get
    lines = []
    for row, (method, noise) in rows.items():
        pairs = [(cells.get((method, *regime, noise)), theirs((row, *regime))) for regime in regimes]
        lines.append((_NAMES.get(row, row), *(_beside(*pair, measure) for pair in pairs)))
    return table([heading, *map(_regime, regimes)], lines)


def differences(cells: Cells, published: Published, rows: Rows) -> Table:
    """Cells whose recoveries differ from the paper's by more than one run in five."""
    lines = []
    for (row, *regime), theirs in published.cells.items():
        method, noise = rows.get(row, ("", 0.0))
        ours = cells.get((method, regime[0], regime[1], noise))
        if ours is None or theirs.exact is None or abs(5 * ours.exact / ours.runs - theirs.exact) <= 1:
            continue
        lines.append((_NAMES.get(row, row), _regime(regime), _text(ours, "exact"), theirs.exact))
    return table(["method", "regime", "here", "in the paper"], lines)


def only_ours(cells: Cells, rows: Rows, measure: str, heading: str = "field") -> Table:
    """One measure of rows the paper does not have, over its six regimes."""
    lines = [(_NAMES.get(row, row), *_over_regimes(cells, *ours, measure)) for row, ours in rows.items()]
    return table([heading, *map(_regime, REGIMES)], lines)


def crossed_table(cells: Cells, fields: Words, selectors: Words, noise: float, measure: str) -> Table:
    """The same by regime, one measure."""
    pairs = product(fields, selectors)
    lines = [(*pair, *_over_regimes(cells, ", ".join(pair), noise, measure)) for pair in pairs]
    return table(["field", "selector", *map(_regime, REGIMES)], lines)


def layout_medians(tested: Sequence[RunRecord], further: Sequence[RunRecord], published: Published) -> Table:
    """Medians of test seeds, further draws and paper, and the chance that five draws match the paper."""
    rows = []
    for name in dict.fromkeys(run.problem for run in further):
        theirs, both = published_median(published, name), (tested, further)
        scores = ([r.score for r in runs if r.problem == name and r.score] for runs in both)
        first, rest = (np.array([score["e_xi"] for score in part]) for part in scores)
        chance = records.chance_of_median(float(np.mean(rest <= theirs)))
        medians = map("{:.2g}".format, (np.median(first), np.median(rest), theirs))
        rows.append((TITLES[name], *medians, len(rest), f"{chance:.0%}"))
    header = ["problem", "test seeds", "further layouts", "the paper", "layouts", "chance of five as good"]
    return table(header, rows)


def lowest_densities(cells: Cells, rows: Mapping[str, str]) -> Table:
    """Per row and problem the lowest measured density from which on every run is exact."""

    def lowest(method: str, problem: str) -> str:
        falling = reversed(densities(cells, method, problem).items())
        whole = [percent for percent, _ in takewhile(lambda item: item[1].exact == item[1].runs, falling)]
        return f"{whole[-1]:g} %" if whole else "none"

    return _by_problem(rows, lowest)


def density_runs(cells: Cells, rows: Mapping[str, str]) -> Table:
    """Per row and problem the runs recorded at the paper's densities, of those it has."""

    def recorded(method: str, problem: str) -> str:
        percents, points = plans.PAPER_DENSITIES[problem], densities(cells, method, problem)
        made = sum(points[percent].runs for percent in percents if percent in points)
        return f"{made} of {len(percents) * len(TEST_SEEDS)}"

    return _by_problem(rows, recorded)


def _by_problem(rows: Mapping[str, str], text: Callable[[str, str], str]) -> Table:
    lines = [(label, *(text(method, problem) for problem in TITLES)) for label, method in rows.items()]
    return table(["method", *TITLES.values()], lines)


def _over_regimes(cells: Cells, row: str, noise: float, measure: str) -> list[str]:
    return [_text(cells.get((row, *regime, noise)), measure) for regime in REGIMES]


def _regime(regime: Sequence[str]) -> str:
    return f"{TITLES[regime[0]]}-{regime[1]}"


def _text(cell: Summary | None, measure: str) -> str:
    if cell is None:
        return "not run"
    value = getattr(cell, measure)
    return records.count_of_five(value, cell.runs) if measure == "exact" else f"{value:.2g}"


def _beside(ours: Summary | None, theirs: Cell | None, measure: str) -> str:
    if ours is None and theirs is None:
        return "–"
    value, printed, mark = getattr(theirs, measure, None), "–", ""
    if value is not None:
        printed = f"{value}" if measure == "exact" else f"{value:.3g}"
        mark = f"\u00a0{_mark(ours, value, measure)}" if ours is not None else ""
    return f"{_text(ours, measure)}{mark}\n{printed}"


def _mark(ours: Summary, theirs: Any, measure: str) -> str:
    counts, value = measure == "exact", getattr(ours, measure)
    share = value * 5 / ours.runs if counts else value  # of the runs that are there
    if np.isclose(share, theirs, rtol=0.02):
        return _EQUAL
    return _BETTER if (share > theirs) == counts else _WORSE
