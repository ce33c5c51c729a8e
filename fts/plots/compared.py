"""Records -> tables of one measure each, beside the paper's where it has them."""

from collections.abc import Mapping, Sequence

import numpy as np

from fts.params import PAPER, TEST_SEEDS
from fts.plots.results import TITLES, densities, published_median
from fts.plots.style import Table, table
from fts.studies import plans, tables
from fts.studies.published import REGIMES, Cell, Published
from fts.studies.records import RunRecord
from fts.studies.tables import Place, Summary

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
    found: Mapping[Place, Summary],
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
    found: Mapping[Place, Summary], published: Published, rows: Mapping[str, tuple[str, float]]
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
    found: Mapping[Place, Summary],
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
    found: Mapping[Place, Summary],
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
        rows.append((TITLES[name], *medians, f"{len(rest)}", f"{tables.chance_of_median(share):.0%}"))
    return table(
        ["problem", "test seeds", "further layouts", "the paper", "layouts", "chance of five as good"],
        rows,
    )


def lowest_densities(found: Mapping[Place, Summary], rows: Mapping[str, str]) -> Table:
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


def density_runs(found: Mapping[Place, Summary], rows: Mapping[str, str]) -> Table:
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
