"""Searches, pools and records -> the figures and tables of the chapter on functions beyond a library."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from fts.lab.studies import published
from fts.lab.studies.records import RunRecord, count_of_five, grouped
from fts.lab.studies.symbolic import PROBLEM, ROWS, LawSummary, exponent, laws, rule_laws
from fts.params.paper import SHORT_NAMES
from fts.plotting import INK, PALETTE, WIDTH, Table, canvas, legend_beside, panel_row, table
from fts.problems.problems import problem
from fts.problems.trajectories import simulate
from fts.symbolic.families import POWER_LAW, Form, canonical
from fts.symbolic.search import SYMBOLIC, SearchResult
from fts.symbolic.select import SymbolicSelection
from fts.symbolic.trees import read

_MOST = 12  # families shown of a pool


def evolution(searches: Sequence[SearchResult]) -> Figure:
    """Risks of the population by generation, and the best of them, one panel per search."""
    figure, panels = panel_row(len(searches), 0.5, "risk")
    for number, (ax, search) in enumerate(zip(panels, searches, strict=True), start=1):
        for i, generation in enumerate(search.history):
            risks = [risk for risk in generation.risks if np.isfinite(risk)]
            ax.plot([i] * len(risks), risks, ".", color=INK, alpha=0.35, markersize=4)
        ax.plot([generation.best_risk for generation in search.history], color=PALETTE[0], linewidth=2.2)
        ax.set(yscale="log", xlabel="generation", title=f"search {number}")
    return figure


def best_trees(search: SearchResult) -> Table:
    """The best tree whenever it changed, with its risk."""
    rows, last = [], ""
    for i, generation in enumerate(search.history):
        if generation.best != last:
            rows.append((i, _rounded(generation.best), f"{generation.best_risk:.4g}", generation.families))
            last = generation.best
    return table(("generation", "best tree", "risk", "families seen"), rows)


def pool(selection: SymbolicSelection, penalty: float) -> Figure:
    """Held-out risk of every family of the pool, and what its complexity adds."""
    shown = selection.pool[:_MOST]
    figure, ax = plt.subplots(figsize=(WIDTH, 0.12 * WIDTH * (1 + len(shown))))
    for row, fitted in enumerate(shown):
        color = PALETTE[0] if row == 0 else INK
        ax.barh(row, fitted.risk, color=color, height=0.62)
        ax.barh(row, penalty * fitted.form.complexity, left=fitted.risk, color=PALETTE[1], height=0.62)
    ax.set_yticks(range(len(shown)), [fitted.form.family.replace("*", " ") for fitted in shown])
    ax.invert_yaxis()
    ax.set_xlabel("held-out risk + penalty (orange)")
    return figure


def refitted_forms(selection: SymbolicSelection) -> Table:
    """Each family before and after the continuous refit."""
    rows = []
    for fitted in selection.pool:
        forms, risks = map(_numbers, (fitted.start, fitted.form)), map("{:.3g}".format, fitted.risks)
        rows.append((*forms, f"{fitted.proposed.proposal_risk:.3g}", ", ".join(risks)))
    return table(("proposed", "refitted", "proposal risk", "held-out risks"), rows)


def exponents_by_refit(runs: Iterable[RunRecord], row: str = "paper") -> Figure:
    """The power law of every run's pool: the exponent it was proposed with, and where the refit took it."""
    levels = _by_noise(run for run in runs if run.row == row)
    figure, panels = panel_row(len(levels), 0.42, "exponent")
    for ax, (level, group) in zip(panels, levels.items(), strict=True):
        for grid in SYMBOLIC.trees.exponents:
            ax.axhline(grid, color=INK, linewidth=0.4)
        for start, end in refitted_exponents(group):
            ax.plot([0, 1], [start, end], "-", color=PALETTE[0])
            ax.plot(0, start, "s", color=INK, markersize=5)
            ax.plot(1, end, "o", color=PALETTE[0], markersize=6)
        ax.axhline(exponent(), color=INK, linestyle="--")
        ax.set(title=_heading(level), xlim=(-0.25, 1.25), ylim=(1.25, 2.15))
        ax.set_xticks([0, 1], ["proposed", "refitted"])
    return figure


def refitted_exponents(runs: Iterable[RunRecord]) -> list[tuple[float, float]]:
    """(proposed, refitted) exponent of the power law in the pool of every run."""
    pairs = []
    for run in runs:
        (law,) = [entry for entry in run.extra["pool"] if entry["family"] == POWER_LAW]
        start = canonical(read(law["start"]))
        assert start is not None  # a family is represented by what has a form
        pairs.append((start.numerator[0][0], law["numerator"][0][0]))
    return pairs


def curves(runs: Iterable[RunRecord], row: str = "paper") -> Figure:
    """q of every run and the spread over the runs beside the true one, up to a constant, by noise."""
    u, truth = _states_and_truth()
    levels = _by_noise(run for run in runs if run.row == row)
    figure, panels = panel_row(len(levels), 0.42, r"$\hat q(u)$, $q^\star(u)$")
    for ax, (level, group) in zip(panels, levels.items(), strict=True):
        values = np.array([_centered(_recorded(run).values(u)) for run in group])
        ax.fill_between(u, values.min(axis=0), values.max(axis=0), color=PALETTE[0], alpha=0.35, linewidth=0)
        ax.plot(u, values.T, color=PALETTE[0], linewidth=0.9)
        ax.plot(u, truth, color=INK, linestyle="--")
        ax.set(title=_heading(level), xlabel="$u$")
    return figure


def functions(runs: Iterable[RunRecord], rows: Sequence[str] = ("paper", "kernel, thawed")) -> Figure:
    """q of every run against the true one, up to a constant, by noise."""
    runs = list(runs)
    u, truth = _states_and_truth()
    levels = sorted({run.noise for run in runs})
    size, shared = (WIDTH, 0.38 * WIDTH * len(rows)), {"sharex": True, "sharey": "row"}
    figure, panels = plt.subplots(len(rows), len(levels), figsize=size, squeeze=False, **shared)
    for (i, j), ax in np.ndenumerate(panels):
        for run in runs:
            if (run.row, run.noise) == (rows[i], levels[j]) and not run.error:
                error = _centered(_recorded(run).values(u)) - truth
                ax.plot(u, 1e3 * error, color=PALETTE[0], linewidth=1.2)
        ax.axhline(0, color=INK, linestyle="--")
        ax.set_title(f"{rows[i]}\n{_heading(levels[j])}", fontsize=9)
        ax.set(xlabel="$u$", ylabel=r"$10^3(\hat q - q^\star)$")
        ax.label_outer()
    return figure


def exponents(runs: Iterable[RunRecord]) -> Figure:
    """The exponent of every run by row and noise, beside the paper's mean and deviation."""
    runs = [run for run in runs if not run.error and run.score["exact"]]
    levels = sorted({run.noise for run in runs})
    figure, ax = canvas(0.5)
    for i, row in enumerate(ROWS):
        at = [levels.index(run.noise) + 0.13 * (i - 1) for run in runs if run.row == row]
        ax.plot(at, [run.score["m"] for run in runs if run.row == row], ".", label=row, color=PALETTE[i])
    for level, (_, _, (m, deviation)) in published.symbolic().items():
        label = None if level else "published"
        ax.errorbar(levels.index(level) - 0.3, m, yerr=deviation, fmt="s", color=INK, label=label)
    ax.axhline(exponent(), color=INK, linestyle="--")
    ax.set_xticks(range(len(levels)), map(_heading, levels))
    ax.set_ylabel(r"$\hat m$")
    legend_beside(ax, fontsize=9)
    return figure


def table_3(runs: Iterable[RunRecord]) -> Table:
    """Recoveries, kappa and m as mean and sample deviation, beside the published ones."""
    cells: list[tuple[Any, ...]] = [(*key, *_law(cell)) for key, cell in laws(runs).items()]
    cells.sort(key=lambda cell: (ROWS.index(cell[0]), cell[1]))
    theirs = {"published": published.symbolic(), "PySR, published, not rerun": published.pysr()}
    for name, printed in theirs.items():
        cells += [(name, noise, count, *law) for noise, (count, *law) in printed.items()]
    rows = [(row, f"{noise:.0%}", n, _spread(kappa, 4), _spread(m, 3)) for row, noise, n, kappa, m in cells]
    return table(("field", "noise", "power law", r"$\hat\kappa$", r"$\hat m$"), rows)


def distances(runs: Iterable[RunRecord]) -> dict[tuple[str, float], float]:
    """|mean m - m*| by row and noise, the published one as row "published"."""
    means = {key: cell.m for key, cell in laws(runs).items() if cell.m is not None}
    means |= {("published", noise): cell[2][0] for noise, cell in published.symbolic().items()}
    return {key: abs(m - exponent()) for key, m in means.items()}


def rivals_recovered(runs: Iterable[RunRecord]) -> Table:
    """Recoveries of the power law by Operon under both rules and by noise, below PySR's published ones."""
    return _rivals(runs, lambda pysr: str(pysr[0]), _count)


def rivals_exponents(runs: Iterable[RunRecord]) -> Table:
    """Mean and sample deviation of the exponent over the runs that recover the power law."""
    text = partial(_spread, digits=3, missing="none")
    return _rivals(runs, lambda pysr: text(pysr[2]), lambda cell: text(_law(cell)[2]) if cell else "not run")


def composed_recovered(runs: Iterable[RunRecord]) -> Table:
    """Runs with the true operators and families, by problem and noise."""

    def text(group: list[RunRecord]) -> str:
        return count_of_five(sum(bool(run.score.get("exact")) for run in group), len(group))

    return _composed(runs, text)


def composed_errors(runs: Iterable[RunRecord]) -> Table:
    """Median over runs of the largest relative error of a true function."""
    return _composed(runs, lambda group: f"{np.median([r.score['e_xi'] for r in group if r.score]):.2g}")


def _rivals(runs: Iterable[RunRecord], published_text: Callable, text: Callable) -> Table:
    """PySR's published cells, and below them those of every rival that was run."""
    cells, pysr = rule_laws(runs), published.pysr()
    rows = [("PySR, full grid (published, not rerun)", *map(published_text, pysr.values()))]
    for name in sorted({row for row, _ in cells}):
        rows.append((name, *(text(cells.get((name, level))) for level in pysr)))
    return table(("rival, pairs from, rule", *map(_heading, pysr)), rows)


def _composed(runs: Iterable[RunRecord], cell: Callable[[list[RunRecord]], str]) -> Table:
    groups = grouped(((run.problem, run.noise), run) for run in runs)
    names, levels = dict.fromkeys(name for name, _ in groups), sorted({level for _, level in groups})
    rows = []
    for name in names:
        cells = [cell(groups[name, level]) if (name, level) in groups else "not run" for level in levels]
        rows.append((SHORT_NAMES[name], f"${problem(name).equation.latex}$", *cells))
    return table(("problem", "equation", *map(_heading, levels)), rows)


def _by_noise(runs: Iterable[RunRecord]) -> dict[float, list[RunRecord]]:
    return dict(sorted(grouped((run.noise, run) for run in runs if not run.error).items()))


def _states_and_truth() -> tuple[np.ndarray, np.ndarray]:
    """States between the extremes of the true field, and the true function on them, up to a constant."""
    u = np.linspace(simulate(PROBLEM).u.min(), simulate(PROBLEM).u.max(), 200)
    equation = problem(PROBLEM).equation
    return u, _centered(equation.terms[0].q(u) * equation.coefficients[0])


def _recorded(run: RunRecord) -> Form:
    # A thawed law has left its place in the pool.
    if run.score["exact"]:
        return Form(((run.score["m"], run.score["kappa"]),), ())
    (chosen,) = [entry for entry in run.extra["pool"] if entry["family"] == run.extra["family"]]
    return Form(*(tuple((e, c) for e, c in chosen[part]) for part in ("numerator", "denominator")))


def _centered(values: np.ndarray) -> np.ndarray:
    return values - values.mean()


def _numbers(form: Form) -> str:
    parts = (form.numerator, form.denominator)
    return _rounded(
        str(Form(*(tuple((float(f"{e:.3g}"), float(f"{c:.3g}")) for e, c in part) for part in parts)))
    )


def _rounded(text: str) -> str:
    """The text with three digits of every number: sums of rounded ones have more."""
    return re.sub(r"\d+\.\d{4,}", lambda number: f"{float(number[0]):.3g}", text)


def _spread(pair: tuple[float | None, float | None], digits: int, missing: str = "-") -> str:
    mean, deviation = pair
    if mean is None:
        return missing
    return f"{mean:.{digits}f}" if deviation is None else f"{mean:.{digits}f} ± {deviation:.{digits}f}"


def _law(cell: LawSummary) -> tuple[Any, ...]:
    return _count(cell), (cell.kappa, cell.kappa_deviation), (cell.m, cell.m_deviation)


_heading = "{:.0%} noise".format


def _count(cell: LawSummary | None) -> str:
    return count_of_five(cell.recovered, cell.runs) if cell else "not run"
