"""Records of the rivals and of two terms -> the last tables of the chapter on functions beyond a library."""

from collections.abc import Callable, Iterable

import numpy as np

from fts.data.problems import problem
from fts.params import SHORT_NAMES
from fts.plots.style import Table, table
from fts.studies import published
from fts.studies.records import RunRecord
from fts.studies.symbolic import LawSummary
from fts.studies.symbolic_rivals import rule_laws

_PUBLISHED = "PySR, full grid (published, not rerun)"


def rivals_recovered(runs: Iterable[RunRecord]) -> Table:
    """Recoveries of the power law by Operon under both rules and by noise, below PySR's published ones."""
    laws, levels = rule_laws(runs), tuple(published.pysr())
    theirs = [f"{published.pysr()[level][0]}/5" for level in levels]
    rows = [(_PUBLISHED, *theirs)]
    for name in sorted({row for row, _ in laws}):
        rows.append((name, *(_count(laws.get((name, level))) for level in levels)))
    return table(("rival, pairs from, rule", *_headings(levels)), rows)


def rivals_exponents(runs: Iterable[RunRecord]) -> Table:
    """Mean and sample deviation of the exponent over the runs that recover the power law."""
    laws, levels = rule_laws(runs), tuple(published.pysr())
    theirs = [_spread(*published.pysr()[level][2]) for level in levels]
    rows = [(_PUBLISHED, *theirs)]
    for name in sorted({row for row, _ in laws}):
        cells = [laws.get((name, level)) for level in levels]
        rows.append((name, *(_spread(c.m, c.m_deviation) if c else "not run" for c in cells)))
    return table(("rival, pairs from, rule", *_headings(levels)), rows)


def composed_recovered(runs: Iterable[RunRecord]) -> Table:
    """Runs with the true operators and families, by problem and noise."""
    return _composed(runs, lambda group: f"{sum(bool(one.score.get('exact')) for one in group)}/{len(group)}")


def composed_errors(runs: Iterable[RunRecord]) -> Table:
    """Median over runs of the largest relative error of a true function."""
    return _composed(
        runs, lambda group: f"{np.median([one.score['e_xi'] for one in group if one.score]):.2g}"
    )


def _composed(runs: Iterable[RunRecord], cell: Callable[[list[RunRecord]], str]) -> Table:
    groups: dict[tuple[str, float], list[RunRecord]] = {}
    for one in runs:
        groups.setdefault((one.problem, one.noise), []).append(one)
    names, levels = dict.fromkeys(name for name, _ in groups), sorted({level for _, level in groups})
    rows = [
        (
            SHORT_NAMES[name],
            f"${problem(name).equation.latex}$",
            *(cell(groups[name, level]) if (name, level) in groups else "not run" for level in levels),
        )
        for name in names
    ]
    return table(("problem", "equation", *_headings(levels)), rows)


def _headings(levels: Iterable[float]) -> list[str]:
    return [f"{level:.0%} noise" for level in levels]


def _count(cell: LawSummary | None) -> str:
    return f"{cell.recovered}/{cell.runs}" if cell else "not run"


def _spread(mean: float | None, deviation: float | None) -> str:
    if mean is None:
        return "none"
    return f"{mean:.3f}" if deviation is None else f"{mean:.3f} ± {deviation:.3f}"
