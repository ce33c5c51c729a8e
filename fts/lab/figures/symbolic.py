"""Searches, pools and records -> the figures and tables of the chapter on functions beyond a library.

Records of the rivals and of two terms -> the last tables of the chapter on functions beyond a library.
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from fts.lab.studies import published
from fts.lab.studies.records import RunRecord
from fts.lab.studies.symbolic import PROBLEM, ROWS, LawSummary, exponent, laws, rule_laws
from fts.params.paper import SHORT_NAMES
from fts.plotting import INK, PALETTE, WIDTH, Table, table
from fts.problems.problems import problem
from fts.problems.trajectories import simulate
from fts.symbolic.families import POWER_LAW, Form, canonical
from fts.symbolic.search import SYMBOLIC, SearchResult
from fts.symbolic.select import Fitted, SymbolicSelection
from fts.symbolic.trees import read

_MOST = 12  # families shown of a pool


def evolution(searches: Sequence[SearchResult]) -> Figure:
    """Risks of the population by generation, and the best of them, one panel per search."""
    figure, panels = plt.subplots(1, len(searches), figsize=(WIDTH, 0.5 * WIDTH), sharey=True)
    for number, (ax, one) in enumerate(zip(np.atleast_1d(panels), searches, strict=True), start=1):
        for place, generation in enumerate(one.history):
            risks = np.array([risk for risk in generation.risks if np.isfinite(risk)])
            ax.plot(np.full(risks.size, place), risks, ".", color=INK, alpha=0.35, markersize=4)
        ax.plot([generation.best_risk for generation in one.history], color=PALETTE[0], linewidth=2.2)
        ax.set(yscale="log", xlabel="generation", title=f"search {number}")
    np.atleast_1d(panels)[0].set_ylabel("risk")
    return figure


def best_trees(one: SearchResult) -> Table:
    """The best tree whenever it changed, with its risk."""
    rows, last = [], ""
    for place, generation in enumerate(one.history):
        if generation.best != last:
            rows.append((place, generation.best, f"{generation.best_risk:.5f}", generation.families))
            last = generation.best
    return table(("generation", "best tree", "risk", "families seen"), rows)


def pool(selection: SymbolicSelection, penalty: float) -> Figure:
    """Held-out risk of every family of the pool, and what its complexity adds."""
    shown = selection.pool[:_MOST]
    figure, ax = plt.subplots(figsize=(WIDTH, 0.12 * WIDTH * (1 + len(shown))))
    for place, one in enumerate(shown):
        color = PALETTE[0] if place == 0 else INK
        ax.barh(place, one.risk, color=color, height=0.62)
        ax.barh(place, penalty * one.form.complexity, left=one.risk, color=PALETTE[1], height=0.62)
    ax.set_yticks(range(len(shown)), [one.form.family.replace("*", " ") for one in shown])
    ax.invert_yaxis()
    ax.set_xlabel("held-out risk + penalty (orange)")
    return figure


def moved(selection: SymbolicSelection) -> Table:
    """Each family before and after the continuous refit."""
    rows = [
        (_numbers(one.start), _numbers(one.form), f"{one.proposed.proposal_risk:.5f}", _risks(one))
        for one in selection.pool
    ]
    return table(("proposed", "refitted", "proposal risk", "held-out risks"), rows)


def exponents_moved(runs: Iterable[RunRecord], row: str = "paper") -> Figure:
    """The power law of every run's pool: the exponent it was proposed with, and where the refit took it."""
    runs = [one for one in runs if one.row == row and not one.error]
    levels = sorted({one.noise for one in runs})
    figure, panels = plt.subplots(1, len(levels), figsize=(WIDTH, 0.42 * WIDTH), sharey=True)
    for ax, level in zip(np.atleast_1d(panels), levels, strict=True):
        for grid in SYMBOLIC.trees.exponents:
            ax.axhline(grid, color=INK, linewidth=0.4)
        for start, end in moves(one for one in runs if one.noise == level):
            ax.plot([0, 1], [start, end], "-", color=PALETTE[0])
            ax.plot(0, start, "s", color=INK, markersize=5)
            ax.plot(1, end, "o", color=PALETTE[0], markersize=6)
        ax.axhline(exponent(), color=INK, linestyle="--")
        ax.set(title=f"{level:.0%} noise", xlim=(-0.25, 1.25), ylim=(1.25, 2.15))
        ax.set_xticks([0, 1], ["proposed", "refitted"])
    np.atleast_1d(panels)[0].set_ylabel("exponent")
    return figure


def moves(runs: Iterable[RunRecord]) -> list[tuple[float, float]]:
    """(proposed, refitted) exponent of the power law in the pool of every run."""
    found = []
    for one in runs:
        (law,) = [entry for entry in one.extra["pool"] if entry["family"] == POWER_LAW]
        start = canonical(read(law["start"]))
        assert start is not None  # a family is represented by what has a form
        found.append((start.numerator[0][0], law["numerator"][0][0]))
    return found


def curves(runs: Iterable[RunRecord], row: str = "paper") -> Figure:
    """q of every run and the spread over the runs beside the true one, up to a constant, by noise."""
    runs = [one for one in runs if one.row == row and not one.error]
    u, truth = _states_and_truth()
    levels = sorted({one.noise for one in runs})
    figure, panels = plt.subplots(1, len(levels), figsize=(WIDTH, 0.42 * WIDTH), sharey=True)
    for ax, level in zip(np.atleast_1d(panels), levels, strict=True):
        found = np.array([_centered(_recorded(one).values(u)) for one in runs if one.noise == level])
        ax.fill_between(u, found.min(axis=0), found.max(axis=0), color=PALETTE[0], alpha=0.35, linewidth=0)
        ax.plot(u, found.T, color=PALETTE[0], linewidth=0.9)
        ax.plot(u, truth, color=INK, linestyle="--")
        ax.set(title=f"{level:.0%} noise", xlabel="$u$")
    np.atleast_1d(panels)[0].set_ylabel(r"$\hat q(u)$, $q^\star(u)$")
    return figure


def functions(runs: Iterable[RunRecord], rows: Sequence[str] = ("paper", "kernel, thawed")) -> Figure:
    """q of every run against the true one, up to a constant, by noise."""
    runs = list(runs)
    u, truth = _states_and_truth()
    levels = sorted({one.noise for one in runs})
    figure, panels = plt.subplots(
        len(rows),
        len(levels),
        figsize=(WIDTH, 0.38 * WIDTH * len(rows)),
        sharex=True,
        sharey="row",
        squeeze=False,
    )
    for (row, level), ax in zip(
        [(row, level) for row in rows for level in levels], panels.ravel(), strict=True
    ):
        for one in runs:
            if (one.row, one.noise) == (row, level) and not one.error:
                ax.plot(
                    u, 1e3 * (_centered(_recorded(one).values(u)) - truth), color=PALETTE[0], linewidth=1.2
                )
        ax.axhline(0, color=INK, linestyle="--")
        ax.set_title(f"{row}\n{level:.0%} noise", fontsize=9)
    for ax in panels[-1]:
        ax.set_xlabel("$u$")
    for ax in panels[:, 0]:
        ax.set_ylabel(r"$10^3(\hat q - q^\star)$")
    return figure


def exponents(runs: Iterable[RunRecord]) -> Figure:
    """The exponent of every run by row and noise, beside the paper's mean and deviation."""
    runs = [one for one in runs if not one.error and one.score["exact"]]
    truth = exponent()
    levels = sorted({one.noise for one in runs})
    figure, ax = plt.subplots(figsize=(WIDTH, 0.5 * WIDTH))
    for place, row in enumerate(ROWS):
        at = [levels.index(one.noise) + 0.13 * (place - 1) for one in runs if one.row == row]
        ax.plot(at, [one.score["m"] for one in runs if one.row == row], ".", label=row, color=PALETTE[place])
    for level, (_, _, (m, deviation)) in published.symbolic().items():
        ax.errorbar(
            levels.index(level) - 0.3,
            m,
            yerr=deviation,
            fmt="s",
            color=INK,
            label="published" if not level else None,
        )
    ax.axhline(truth, color=INK, linestyle="--")
    ax.set_xticks(range(len(levels)), [f"{level:.0%} noise" for level in levels])
    ax.set_ylabel(r"$\hat m$")
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=9)
    return figure


def table_3(runs: Iterable[RunRecord]) -> Table:
    """Recoveries, kappa and m as mean and sample deviation, beside the published ones."""
    rows = []
    for (row, noise), cell in sorted(
        laws(runs).items(), key=lambda item: (ROWS.index(item[0][0]), item[0][1])
    ):
        kappa = _spread(cell.kappa, cell.kappa_deviation, 4)
        rows.append(
            (
                row,
                f"{noise:.0%}",
                f"{cell.recovered}/{cell.runs}",
                kappa,
                _spread(cell.m, cell.m_deviation, 3),
            )
        )
    for name, cells in (
        ("published", published.symbolic()),
        ("PySR, published, not rerun", published.pysr()),
    ):
        for noise, (count, kappa, m) in cells.items():
            rows.append((name, f"{noise:.0%}", f"{count}/5", _spread(*kappa, 4), _spread(*m, 3)))
    return table(("field", "noise", "power law", r"$\hat\kappa$", r"$\hat m$"), rows)


def distances(runs: Iterable[RunRecord]) -> dict[tuple[str, float], float]:
    """|mean m - m*| by row and noise, the published one as row "published"."""
    truth = exponent()
    found = {place: abs(cell.m - truth) for place, cell in laws(runs).items() if cell.m is not None}
    return found | {
        ("published", noise): abs(cell[2][0] - truth) for noise, cell in published.symbolic().items()
    }


def recovered(runs: Iterable[RunRecord]) -> dict[tuple[str, float], LawSummary]:
    """The cells by row and noise."""
    return laws(runs)


def _states_and_truth() -> tuple[np.ndarray, np.ndarray]:
    """States between the extremes of the true field, and the true function on them, up to a constant."""
    u = np.linspace(simulate(PROBLEM).u.min(), simulate(PROBLEM).u.max(), 200)
    equation = problem(PROBLEM).equation
    return u, _centered(equation.terms[0].q(u) * equation.coefficients[0])


def _recorded(one: RunRecord) -> Form:
    (chosen,) = [entry for entry in one.extra["pool"] if entry["family"] == one.extra["family"]]
    form = Form(*(tuple((e, c) for e, c in chosen[part]) for part in ("numerator", "denominator")))
    law = one.score
    # A thawed law has left its place in the pool.
    return Form(((law["m"], law["kappa"]),), ()) if law["exact"] else form


def _centered(values: np.ndarray) -> np.ndarray:
    return values - values.mean()


def _numbers(form: Form) -> str:
    rounded = Form(
        *(
            tuple((float(f"{e:.3g}"), float(f"{c:.3g}")) for e, c in part)
            for part in (form.numerator, form.denominator)
        )
    )
    return str(rounded)


def _risks(one: Fitted) -> str:
    return ", ".join(f"{risk:.5f}" for risk in one.risks)


def _spread(mean: float | None, deviation: float | None, digits: int) -> str:
    if mean is None:
        return "-"
    return f"{mean:.{digits}f}" if deviation is None else f"{mean:.{digits}f} ± {deviation:.{digits}f}"


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
    theirs = [_spread_of_rivals(*published.pysr()[level][2]) for level in levels]
    rows = [(_PUBLISHED, *theirs)]
    for name in sorted({row for row, _ in laws}):
        cells = [laws.get((name, level)) for level in levels]
        rows.append((name, *(_spread_of_rivals(c.m, c.m_deviation) if c else "not run" for c in cells)))
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


def _spread_of_rivals(mean: float | None, deviation: float | None) -> str:
    if mean is None:
        return "none"
    return f"{mean:.3f}" if deviation is None else f"{mean:.3f} ± {deviation:.3f}"
