"""Selections and records -> the figures and tables of the chapter on stability-validated weak selection."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure

from fts import metrics, paper_tables, tables
from fts.data import Trajectory, observe, simulate
from fts.frozen import Field
from fts.paper_tables import Cell
from fts.plots import INK, PALETTE, WIDTH, Table, table
from fts.records import RunRecord
from fts.selection import Candidates, Selection, Trace
from fts.tables import Place, Summary
from fts.terms import Equation

# A recovery count or an error that is better than the paper's, equal to it, or worse.
_BETTER, _EQUAL, _WORSE = "▲", "=", "▼"
# Risks that span more than this factor are drawn on a logarithmic axis.
_WIDE_RANGE = 10.0
_TITLES = {"kdv": "KdV", "ks": "KS", "ad": "2D AD"}


def proposals(candidates: Candidates) -> Figure:
    """Which support each generation system proposes at each threshold; one color per distinct support."""
    ranks = np.argsort(np.argsort([-count for count in candidates.counts], kind="stable"))
    shown = min(len(candidates.supports), len(PALETTE))
    colors = [*PALETTE[: shown - 1], INK] if len(candidates.supports) > shown else PALETTE[:shown]
    values = np.minimum(ranks[candidates.proposals], len(colors) - 1)
    figure, ax = plt.subplots(figsize=(WIDTH, 0.6 * WIDTH))
    norm = BoundaryNorm(np.arange(len(colors) + 1) - 0.5, len(colors))
    ax.pcolormesh(values, cmap=ListedColormap(colors), norm=norm, edgecolors="white", linewidth=1.5)
    ax.set_xticks(np.arange(len(candidates.thresholds)) + 0.5, [f"{t:.3g}" for t in candidates.thresholds])
    ax.set_yticks(np.arange(len(values)) + 0.5, [str(r + 1) for r in range(len(values))])
    ax.set(xlabel=r"threshold $m\lambda_0$", ylabel="generation system")
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    order = np.argsort(ranks)
    for place, color in enumerate(colors):
        rest = len(candidates.supports) > shown and place == len(colors) - 1
        index = int(order[place])
        text = "other supports" if rest else f"{candidates.counts[index]}: {_set(candidates, index)}"
        ax.plot([], [], "s", color=color, markersize=8, label=text)
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.02), handletextpad=0.2, title="times: support")
    return figure


def recurrence(candidates: Candidates, tau: float) -> Figure:
    """Term frequencies against the stability threshold tau."""
    figure, ax = plt.subplots(figsize=(WIDTH, 0.36 * WIDTH))
    pi = candidates.pi
    places = np.arange(len(pi))
    ax.bar(places, pi, color=[PALETTE[0] if value >= tau else INK for value in pi], width=0.65)
    ax.axhline(tau, color=PALETTE[1], linewidth=1.2)
    ax.annotate(rf"$\tau = {tau:g}$", (-0.45, tau + 0.02), color=PALETTE[1], va="bottom")
    labels = [f"${term.latex}$" for term in candidates.library]
    ax.set_xticks(places, labels)
    ax.set(ylabel=r"recurrence $\pi_j$", ylim=(0, 1.05))
    ax.tick_params(axis="x", length=0)
    return figure


def risks(trace: Trace) -> Figure:
    """Validation risks of the eligible supports, their means with one standard error, and the rule's line."""
    rows = sorted(range(len(trace.eligible)), key=lambda row: trace.mu[row])
    figure, ax = plt.subplots(figsize=(WIDTH, (0.14 + 0.075 * len(rows)) * WIDTH))
    for height, row in enumerate(reversed(rows)):
        chosen = row == trace.winner
        color = PALETTE[0] if chosen else INK
        ax.plot(trace.risks[row], np.full(trace.risks.shape[1], height), "|", color=color, markersize=7)
        ax.errorbar(trace.mu[row], height, xerr=trace.se[row], fmt="o", color=color, markersize=5, capsize=3)
    ax.axvline(trace.bound, color=PALETTE[1], linewidth=1.2)
    ax.annotate(r" $\mu + \mathrm{se}$ of the lowest", (trace.bound, len(rows) - 0.45), color=PALETTE[1])
    names = [_set(trace.candidates, trace.eligible[row]) for row in reversed(rows)]
    ax.set_yticks(range(len(rows)), names)
    ax.set(xlabel="normalized validation risk", ylim=(-0.6, len(rows) - 0.2))
    if trace.risks.max() > _WIDE_RANGE * trace.risks.min() > 0:
        ax.set_xscale("log")
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return figure


def validation(trace: Trace) -> Table:
    """The eligible supports with their counts, risks and fate."""
    header = ["support", "proposed", "mean risk", "standard error", "admissible", "chosen"]
    word = {True: "yes", False: "no"}
    return table(
        header,
        [
            (
                _set(trace.candidates, index),
                trace.candidates.counts[index],
                f"{trace.mu[row]:.4f}",
                f"{trace.se[row]:.4f}",
                word[row in trace.admissible],
                word[row == trace.winner],
            )
            for row, index in enumerate(trace.eligible)
        ],
    )


def refits(selection: Selection, truth: Equation) -> Table:
    """Coefficients with standard errors of every refit, its held-out risk, its error against the truth."""
    rows = []
    for name, refit in selection.refits.items():
        chosen = refit.xi != 0
        pairs = zip(refit.xi[chosen], refit.deviation[chosen], strict=True)
        error = metrics.score(selection.with_refit(name), truth).e_xi
        label = f"{name} (preferred)" if name == selection.preferred else name
        rows.append((label, *(_plus_minus(c, s) for c, s in pairs), f"{refit.risk:.2g}", f"{error:.2g}"))
    return table(["refit", *selection.support, "held-out risk", "error, by the truth"], rows)


def _plus_minus(value: float, deviation: float) -> str:
    """The value to the digit its deviation begins at, three digits at least."""
    digits = 3 if deviation <= 0 else max(3, -int(np.floor(np.log10(deviation))))
    return f"{value:.{digits}f} ± {deviation:.{digits}f}"


def residual_tails(residual: Float[np.ndarray, " m"]) -> Figure:
    """Sizes of the rows' residuals against a Gaussian's of the same median, which lies on the line."""
    from scipy.stats import norm

    sizes = np.sort(np.abs(residual))
    levels = (np.arange(len(sizes)) + 0.5) / len(sizes)
    scale = 1.4826 * float(np.median(sizes))
    figure, ax = plt.subplots(figsize=(WIDTH, 0.42 * WIDTH))
    ax.loglog(norm.ppf(0.5 + levels / 2), sizes / scale, ".", markersize=3, color=PALETTE[0])
    ends = norm.ppf(0.5 + levels[[0, -1]] / 2)
    ax.plot(ends, ends, color=INK, linewidth=1)
    ax.axhline(4.685, color=PALETTE[1], linewidth=1.2)
    ax.annotate("weight zero above", (1.2e-2, 5.2), color=PALETTE[1], va="bottom")
    ax.set(xlabel="Gaussian quantile", ylabel=r"$|A\xi - b|$ / scale", xlim=(1e-2, 6), ylim=(1e-3, None))
    return figure


def where_rows_fail(
    field: Field,
    truth: Float[np.ndarray, "nx nt"],
    axes: Sequence[np.ndarray],
    centers: Float[np.ndarray, "m d1"],
    weights: Float[np.ndarray, " m"],
) -> Figure:
    """Left the field's error over x and t, right the patches by the weight the robust refit gives them."""
    x, t = axes
    figure, panels = plt.subplots(1, 2, figsize=(WIDTH, 0.5 * WIDTH), sharey=True)
    error = np.abs(field.on_grid(x, t) - truth)
    mesh = panels[0].pcolormesh(x, t, error.T, vmin=0, vmax=np.quantile(error, 0.99), rasterized=True)
    figure.colorbar(mesh, ax=panels[0], location="bottom", label=r"$|\hat u - u|$")
    order = np.argsort(-weights)
    dots = panels[1].scatter(*centers[order].T, c=weights[order], s=5, cmap="RdYlBu", vmin=0, vmax=1)
    figure.colorbar(dots, ax=panels[1], location="bottom", label="weight of the patch's row")
    for ax in panels:
        ax.set_xlabel("$x$")
        ax.spines[:].set_visible(False)
    panels[0].set_ylabel("$t$")
    return figure


def foretold(variances: Float[np.ndarray, " m"], residual: Float[np.ndarray, " m"]) -> Figure:
    """Sizes of the rows' residuals against the field's variance under their kernels, with running medians."""
    figure, ax = plt.subplots(figsize=(WIDTH, 0.42 * WIDTH))
    sizes = np.abs(residual)
    ax.loglog(variances, sizes, ".", markersize=2, color=PALETTE[0], alpha=0.4, rasterized=True)
    groups = np.array_split(np.argsort(variances), 20)
    medians = [(np.median(variances[group]), np.median(sizes[group])) for group in groups]
    ax.loglog(*np.transpose(medians), ".-", color=PALETTE[1])
    ax.set(xlabel="posterior variance under the patch", ylabel=r"$|A\xi - b|$")
    return figure


def beside_paper(
    found: Mapping[Place, Summary],
    published: paper_tables.Table,
    rows: Mapping[str, tuple[str, float]],
    measures: Sequence[str] = ("exact", "e_xi"),
) -> Table:
    """Our cells beside the paper's, difference marked; `rows` maps a published row to our (row, noise)."""
    regimes = list(dict.fromkeys((problem, protocol) for _, problem, protocol in published.cells))
    header = ["row", *(f"{_TITLES[problem]}-{protocol}" for problem, protocol in regimes)]
    lines = []
    for row, (method, noise) in rows.items():
        cells = []
        for problem, protocol in regimes:
            theirs = published.cells.get((row, problem, protocol))
            ours = found.get((method, problem, protocol, noise))
            cells.append(_beside(ours, theirs, measures))
        lines.append((row, *cells))
    return table(header, lines)


def only_ours(found: Mapping[Place, Summary], rows: Mapping[str, tuple[str, float]]) -> Table:
    """Rows the paper does not have, over its six regimes: recoveries, median E_xi and E_u."""
    header = ["row", *(f"{_TITLES[problem]}-{protocol}" for problem, protocol in paper_tables.REGIMES)]
    lines = []
    for row, (method, noise) in rows.items():
        cells = []
        for problem, protocol in paper_tables.REGIMES:
            cell = found.get((method, problem, protocol, noise))
            text = f"{cell.exact}/{cell.runs} ({cell.e_xi:.2g}; {cell.e_u:.2g})" if cell else "not run"
            cells.append(text)
        lines.append((row, *cells))
    return table(header, lines)


def layouts(
    tested: Sequence[RunRecord], further: Sequence[RunRecord], published: paper_tables.Table
) -> Figure:
    """Coefficient error against the widest gap between sensors, beside the paper's median."""
    problems = list(dict.fromkeys(one.problem for one in further))
    figure, panels = plt.subplots(1, len(problems), figsize=(WIDTH, 0.42 * WIDTH), sharey=True, squeeze=False)
    for ax, name in zip(panels[0], problems, strict=True):
        trajectory = simulate(name)
        for label, runs, style, color in (
            ("test seeds", tested, "o", PALETTE[1]),
            ("further layouts", further, ".", PALETTE[0]),
        ):
            mine = [one for one in runs if one.problem == name and one.score]
            gaps = [_widest_gap(trajectory, one) for one in mine]
            ax.semilogy(gaps, [one.score["e_xi"] for one in mine], style, color=color, label=label)
        ax.axhline(_published(published, name), color=INK, linewidth=1, label="the paper's median")
        ax.set(title=_TITLES[name], xlabel="widest gap between sensors")
    panels[0, 0].set_ylabel(r"$E_\xi$")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


def layout_medians(
    tested: Sequence[RunRecord], further: Sequence[RunRecord], published: paper_tables.Table
) -> Table:
    """Medians of test seeds, further draws and paper, and the chance that five draws match the paper."""
    rows = []
    for name in dict.fromkeys(one.problem for one in further):
        theirs = _published(published, name)
        first, rest = (
            np.array([one.score["e_xi"] for one in runs if one.problem == name and one.score])
            for runs in (tested, further)
        )
        share = float(np.mean(rest <= theirs))
        medians = (f"{np.median(first):.2g}", f"{np.median(rest):.2g}", f"{theirs:.2g}")
        rows.append((_TITLES[name], *medians, f"{len(rest)}", f"{tables.chance_of_median(share):.0%}"))
    return table(
        [
            "",
            "test seeds",
            "further layouts",
            "the paper's",
            "layouts",
            "chance of five as good as the paper's",
        ],
        rows,
    )


def density(found: Mapping[Place, Summary], rows: Mapping[str, str]) -> Figure:
    """Exact recoveries and field error against sensor density, one column per problem, one curve per row."""
    figure, panels = plt.subplots(2, 3, figsize=(WIDTH, 0.62 * WIDTH), sharey="row", sharex="col")
    for column, (problem, title) in enumerate(_TITLES.items()):
        top, bottom = panels[:, column]
        for color, (label, method) in zip(PALETTE, rows.items(), strict=False):
            points = _densities(found, method, problem)
            percents = list(points)
            top.plot(percents, [p.exact / p.runs for p in points.values()], ".-", color=color, label=label)
            bottom.plot(percents, [p.e_u for p in points.values()], ".-", color=color)
            low, high = np.array([p.e_u_quartiles for p in points.values()]).reshape(-1, 2).T
            bottom.fill_between(percents, low, high, color=color, alpha=0.2, linewidth=0)
        top.set(title=title, ylim=(-0.06, 1.06))
        bottom.set(xlabel="sensors, %")
        measured = _measured(found, problem)
        if measured:
            top.set_xscale("log")
            bottom.set(xscale="log", yscale="log")
            _plain_ticks(bottom, measured)
        else:
            top.annotate("not run", (0.5, 0.5), xycoords="axes fraction", ha="center")
    panels[0, 0].set_ylabel("exact")
    panels[1, 0].set_ylabel("$E_u$")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=len(rows))
    return figure


def lowest_densities(found: Mapping[Place, Summary], rows: Mapping[str, str]) -> Table:
    """Per row and problem the lowest measured density from which on every run is exact."""
    lines = []
    for label, method in rows.items():
        cells = []
        for problem in _TITLES:
            reached = None
            for percent, cell in reversed(_densities(found, method, problem).items()):
                if cell.exact < cell.runs:
                    break
                reached = percent
            cells.append("none" if reached is None else f"{reached:g} %")
        lines.append((label, *cells))
    return table(["all runs exact from", *_TITLES.values()], lines)


def _widest_gap(trajectory: Trajectory, run: RunRecord) -> float:
    grid = observe(trajectory, run.protocol, seed=run.seed).grid
    assert grid is not None  # both protocols sample grids
    return grid.widest_gap


def _published(published: paper_tables.Table, name: str, protocol: str = "S20") -> float:
    median = next(cell.e_xi for key, cell in published.cells.items() if key[1:] == (name, protocol))
    assert median is not None  # every cell of Table 1 has one
    return median


def _densities(found: Mapping[Place, Summary], method: str, problem: str) -> dict[float, Summary]:
    places = {
        float(place[2].removeprefix("S")): summary
        for place, summary in found.items()
        if place[0] == method and place[1] == problem and place[2].startswith("S")
    }
    return dict(sorted(places.items()))


def _measured(found: Mapping[Place, Summary], problem: str) -> list[float]:
    return sorted({float(place[2][1:]) for place in found if place[1] == problem and place[2][0] == "S"})


def _plain_ticks(ax: Axes, percents: Sequence[float]) -> None:
    kept = list(percents[::2]) if len(percents) > 5 else list(percents)
    ax.set_xticks(kept, [f"{p:g}" for p in kept])
    ax.minorticks_off()


def _beside(ours: Summary | None, theirs: Cell | None, measures: Sequence[str]) -> str:
    parts = []
    for name in measures:
        mine = None if ours is None else getattr(ours, name)
        published = None if theirs is None else getattr(theirs, name)
        if mine is None and published is None:
            continue
        counts = name == "exact"
        left = "not run" if ours is None else f"{mine}/{ours.runs}" if counts else f"{mine:.2g}"
        right = "–" if published is None else f"{published}/5" if counts else f"{published:.2g}"
        # A cell whose runs are not all there yet is compared by its share.
        share = mine * 5 / ours.runs if counts and ours is not None and mine is not None else mine
        mark = "" if share is None or published is None else f" {_mark(share, published, counts)}"
        parts.append(f"{left} | {right}{mark}")
    return "\n".join(parts) or "–"


def _mark(ours: float | int, theirs: float | int, more_is_better: bool) -> str:
    if np.isclose(ours, theirs, rtol=0.02):
        return _EQUAL
    return _BETTER if (ours > theirs) == more_is_better else _WORSE


def _set(candidates: Candidates, index: int) -> str:
    terms = [candidates.library[j].latex for j in candidates.supports[index]]
    return r"$\{" + r",\; ".join(terms) + r"\}$"
