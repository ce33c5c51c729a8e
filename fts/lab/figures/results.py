"""Records -> the figures of the studies, and the paper's claims judged by them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from fts.lab.studies import published
from fts.lab.studies.published import REGIMES, Published
from fts.lab.studies.records import Cells, RunRecord, Summary
from fts.params.paper import SHORT_NAMES, TEST_SEEDS
from fts.plotting import INK, PALETTE, WIDTH, Table, legend_above, panel_row, table
from fts.problems.trajectories import Trajectory, observe, simulate

PROTOCOLS = ("S20", "T20")
# Runs of a row over all regimes.
_RUNS = len(REGIMES) * len(TEST_SEEDS)
_BROWN = "#8C564B"  # an eighth color, for an eighth method
# The problems of the density study, as a reader calls them.
TITLES = {name: SHORT_NAMES[name] for name in ("kdv", "ks", "ad")}


@dataclass(frozen=True)
class Claim:
    """What the paper says, whether it is so here, one number, and the table that shows it."""

    text: str
    holds: bool
    number: str
    evidence: str  # name of a table
    exception: bool = False

    @property
    def verdict(self) -> str:
        return "partly" if self.holds and self.exception else "holds" if self.holds else "fails"


def recovery_matrix(cells: Cells, fields: Sequence[str], selectors: Sequence[str]) -> Figure:
    """Exact recoveries over all regimes: fields down, selectors across, clean observations and noisy ones."""
    figure, panels = plt.subplots(2, 1, figsize=(WIDTH, 0.85 * WIDTH), sharex=True)
    totals = recovery_counts(cells, fields, selectors)
    for ax, (noise, counts) in zip(panels, totals.items(), strict=True):
        ax.imshow(counts / _RUNS, vmin=0, vmax=1, aspect="auto")
        for (i, j), count in np.ndenumerate(counts):
            color = "black" if count > 0.6 * _RUNS else "white"
            ax.annotate(f"{count}/{_RUNS}", (j, i), ha="center", va="center", color=color)
        ax.set_xticks(range(len(selectors)), [name.replace(" ", "\n", 1) for name in selectors])
        ax.set_yticks(range(len(fields)), fields)
        ax.set_title(f"{noise:.0%} noise" if noise else "clean")
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0)
    return figure


def recovery_counts(
    cells: Cells, fields: Sequence[str], selectors: Sequence[str]
) -> dict[float, Int[np.ndarray, "fields selectors"]]:
    """Exact recoveries over all regimes by noise level; a crossing that is not complete is refused."""
    rows = [[f"{field}, {selector}" for selector in selectors] for field in fields]
    levels = (0.0, 0.1)
    return {
        noise: np.array([[_recovered(cells, name, noise) for name in row] for row in rows])
        for noise in levels
    }


def against_seconds(methods: Mapping[str, Sequence[RunRecord]]) -> Figure:
    """Coefficient error of every run against the seconds it took to fit and select, one color per method."""
    figure, panels = panel_row(3, 0.75, r"$E_\xi$", sharex=True)
    for ax, (problem, title) in zip(panels, TITLES.items(), strict=True):
        for color, (label, runs) in zip((*PALETTE, INK, _BROWN), methods.items(), strict=False):
            mine = [run for run in runs if run.problem == problem and run.score]
            for exact, marker in ((True, "o"), (False, "x")):
                some = [run for run in mine if run.score["exact"] == exact]
                seconds, errors = map(processor_seconds, some), [run.score["e_xi"] for run in some]
                name = label if exact else None
                ax.loglog(list(seconds), errors, marker, color=color, markersize=4, label=name)
        ax.set(title=title, xlabel="seconds")
    legend_above(figure, panels[0])
    return figure


def processor_seconds(run: RunRecord) -> float:
    """Seconds of the core to fit and to select, where the run says so; else all it took by the clock."""
    fit, select = run.extra.get("fit_seconds"), run.extra.get("select_seconds")
    # A method that trains field and equation together has no second stage.
    return run.seconds if fit is None else fit + (select or 0.0)


def _recovered(cells: Cells, row: str, noise: float) -> int:
    summaries = [cells[row, *regime, noise] for regime in REGIMES if (row, *regime, noise) in cells]
    if sum(summary.runs for summary in summaries) != _RUNS:
        raise ValueError(f"{row} at {noise:.0%} noise is not complete: run python -m fts.lab.studies crossed")
    return sum(summary.exact for summary in summaries)


def layouts(tested: Sequence[RunRecord], further: Sequence[RunRecord], published: Published) -> Figure:
    """Coefficient error against the widest gap between sensors, beside the paper's median."""
    problems = list(dict.fromkeys(run.problem for run in further))
    figure, panels = panel_row(len(problems), 0.55, r"$E_\xi$")
    for ax, name in zip(panels, problems, strict=True):
        trajectory = simulate(name)
        groups = (("test seeds", tested, "o", PALETTE[1]), ("further layouts", further, ".", PALETTE[0]))
        for label, runs, style, color in groups:
            scored = [run for run in runs if run.problem == name and run.score]
            gaps = [_widest_gap(trajectory, run) for run in scored]
            ax.semilogy(gaps, [run.score["e_xi"] for run in scored], style, color=color, label=label)
        ax.axhline(published_median(published, name), color=INK, linewidth=1, label="the paper's median")
        ax.set(title=TITLES[name])
    figure.supxlabel("widest gap between sensors", color=INK, fontsize=12)
    legend_above(figure, panels[0])
    return figure


def single_thresholds(cells: Cells, published: Published) -> Figure:
    """Exact recoveries at one threshold for all seeds, over its multiple of the base, beside the paper's."""
    multiples = sorted({float(row.split()[1]) for row, *_ in published.cells if row.startswith("stlsq")})
    problems = dict.fromkeys(problem for _, problem, _ in published.cells)
    figure, panels = panel_row(len(problems), 0.5, "exact recoveries")
    for ax, problem in zip(panels, problems, strict=True):
        mine = [_over_protocols(cells, f"stlsq {multiple:g}", problem, (0.0,)) for multiple in multiples]
        theirs = [_over_protocols(published.cells, f"stlsq {multiple:g}", problem) for multiple in multiples]
        ax.plot(multiples, theirs, "--", color=INK, label="one threshold, the paper")
        ax.plot(multiples, mine, "o-", color=PALETTE[1], label="one threshold, here")
        rule = _over_protocols(cells, "svws", problem, (0.0,))
        ax.axhline(rule, color=PALETTE[0], linewidth=2, label="SVWS, here")
        ax.set(title=TITLES[problem], xlabel=r"threshold / $\lambda_0$", ylim=(-0.4, 10.6))
        ax.set_xticks([0.25, 1, 1.5, 2], ["¼", "1", "1½", "2"])
    legend_above(figure, panels[0])
    return figure


def _over_protocols(cells: Mapping[Any, Any], row: str, problem: str, noise: tuple[float, ...] = ()) -> int:
    return sum(cells[row, problem, protocol, *noise].exact for protocol in PROTOCOLS)


def noise_errors(cells: Cells) -> Figure:
    """Median coefficient error over the noise: the paper's recipe, and the kernel field with two refits."""
    figure, panels = panel_row(len(TITLES), 0.7, r"median $E_\xi$")
    rows = {
        "paper": "the paper's recipe",
        "kernel": "kernel field",
        "kernel, weighted": "kernel field, weighted rows",
    }
    for ax, (problem, title) in zip(panels, TITLES.items(), strict=True):
        for color, (row, label) in zip(PALETTE, rows.items(), strict=False):
            for protocol, style in zip(PROTOCOLS, ("-", "--"), strict=True):
                key = (row, problem, protocol)
                levels = sorted(level for *others, level in cells if (*others,) == key and level > 0)
                medians = [cells[*key, level] for level in levels]
                name = label if protocol == PROTOCOLS[0] else None
                percents = [100 * level for level in levels]
                ax.semilogy(percents, [cell.e_xi for cell in medians], style, color=color, label=name)
                for percent, cell in zip(percents, medians, strict=True):
                    full = color if cell.exact == cell.runs else "none"
                    ax.plot(percent, cell.e_xi, "o", color=color, markerfacecolor=full, markersize=5)
        ax.set(title=title, xlabel="noise, %", xticks=[10, 30, 50])
    legend_above(figure, panels[-1])
    return figure


def variant_errors(cells: Cells, rows: Mapping[str, str]) -> Figure:
    """Median field error of every variant: S20 full, T20 hollow; one panel per problem."""
    figure, panels = panel_row(len(TITLES), 0.75)
    places = range(len(rows), 0, -1)
    for ax, (problem, title) in zip(panels, TITLES.items(), strict=True):
        for place, row in zip(places, rows, strict=True):
            ax.axhline(place, color=INK, linewidth=0.3)
            for protocol, full in zip(PROTOCOLS, (PALETTE[0], "none"), strict=True):
                cell = cells.get((row, problem, protocol, 0.0))
                if cell is not None:
                    look = {"color": PALETTE[0], "markerfacecolor": full, "zorder": 3}
                    ax.semilogx(cell.e_u, place, "o", label=protocol if place == len(rows) else None, **look)
        ax.set(title=title, xlabel="median $E_u$")
    panels[0].set_yticks(places, list(rows.values()))
    legend_above(figure, panels[0])
    return figure


def density(cells: Cells, rows: Mapping[str, str]) -> Figure:
    """Exact recoveries and field error against sensor density, one column per problem, one curve per row."""
    figure, panels = plt.subplots(2, 3, figsize=(WIDTH, 0.75 * WIDTH), sharey="row", sharex="col")
    for column, (problem, title) in enumerate(TITLES.items()):
        top, bottom = panels[:, column]
        for color, (label, method) in zip(PALETTE, rows.items(), strict=False):
            points = densities(cells, method, problem)
            percents = list(points)
            top.plot(percents, [p.exact / p.runs for p in points.values()], ".-", color=color, label=label)
            bottom.plot(percents, [p.e_u for p in points.values()], ".-", color=color)
            low, high = np.array([p.e_u_quartiles for p in points.values()]).reshape(-1, 2).T
            bottom.fill_between(percents, low, high, color=color, alpha=0.2, linewidth=0)
        top.set(title=title, ylim=(-0.06, 1.06))
        bottom.set(xlabel="sensors, %")
        measured = sorted({float(key[2][1:]) for key in cells if key[1] == problem and key[2][0] == "S"})
        if measured:
            top.set_xscale("log")
            bottom.set(xscale="log", yscale="log")
            labelled = _apart(measured)
            bottom.set_xticks(labelled, [f"{percent:g}" for percent in labelled])
            bottom.minorticks_off()
        else:
            top.annotate("not run", (0.5, 0.5), xycoords="axes fraction", ha="center")
    panels[0, 0].set_ylabel("exact")
    panels[1, 0].set_ylabel("$E_u$")
    legend_above(figure, panels[0, 0])
    return figure


def _apart(percents: Sequence[float]) -> list[float]:
    """Those of ascending numbers that have room for a label on a logarithmic axis: a quarter of it each."""
    kept, factor = [percents[0]], (percents[-1] / percents[0]) ** 0.24
    for percent in percents[1:]:
        if percent >= factor * kept[-1]:
            kept.append(percent)
    return kept


def _widest_gap(trajectory: Trajectory, run: RunRecord) -> float:
    grid = observe(trajectory, run.protocol, seed=run.seed).grid
    assert grid is not None  # both protocols sample grids
    return grid.widest_gap


def published_median(published: Published, name: str, protocol: str = "S20") -> float:
    """The paper's median coefficient error."""
    median = next(cell.e_xi for key, cell in published.cells.items() if key[1:] == (name, protocol))
    assert median is not None  # every cell of Table 1 has one
    return median


def densities(cells: Cells, method: str, problem: str) -> dict[float, Summary]:
    """Cells of a method on a problem by the percentage of its sensors, sparsest first."""
    keys = (key for key in cells if key[:2] == (method, problem) and key[2].startswith("S"))
    return dict(sorted((float(key[2][1:]), cells[key]) for key in keys))


def scorecard(
    main: Cells, methods: Cells, variants: Cells, thresholds: Cells, noisy: Cells, density: Cells
) -> list[Claim]:
    """What the paper claims of fields and selection, judged by our cells, with one number each."""
    rivals = [
        row for row in dict.fromkeys(row for row, *_ in published.methods().cells) if row != "structured"
    ]
    networks = ("structured, no Fourier", "coordinate", "coordinate, no Fourier")
    ks = REGIMES[2:4]
    ours = [main["paper", *regime, 0.0].exact for regime in REGIMES]
    best = [max(methods[row, *regime, 0.0].exact for row in rivals) for regime in REGIMES]
    errors = [[methods[row, *regime, 0.0].e_xi for row in ("paper", *rivals)] for regime in ks]
    least = {row: min(variants[row, *regime, 0.0].exact for regime in ks) for row in networks}
    slow = [variants["coordinate, slow time", *regime, 0.0].exact for regime in ks]
    margin = min(
        min(variants[row, *regime, 0.0].e_u for row in networks) / main["paper", *regime, 0.0].e_u
        for regime in ks
    )
    single: dict[str, int] = {}
    for (row, _, _, _), cell in thresholds.items():
        single[row] = single.get(row, 0) + cell.exact
    suited = [row.removeprefix("stlsq ") for row, exact in single.items() if exact == 20 and row != "svws"]
    every = {**main, **density}
    dense = [every["paper", *key[1:], 0.0].exact for key in published.density().cells if key[1] == "ks"]
    slower = [variants["coordinate, slow time", *regime, 0.0].e_u for regime in ks]
    closer = any(error < main["paper", *regime, 0.0].e_u for error, regime in zip(slower, ks, strict=True))
    loud = sum(noisy["paper", *regime, 0.1].exact for regime in published.SELECTOR_REGIMES)
    wsindy = methods["WSINDy", "ad", "T20", 0.0].exact
    multiples = ", ".join(rf"${multiple}\,\lambda_0$" for multiple in suited) or "no multiple"
    better = all(mine >= other for mine, other in zip(ours, best, strict=True))
    return [
        Claim("exact in all six regimes", sum(ours) == 30, f"{sum(ours)} of 30", "tab-methods"),
        Claim(
            "no method recovers more in any regime", better, f"ours at least {min(ours)} of 5", "tab-methods"
        ),
        Claim(
            "on KS no other method exceeds 3 of 5",
            max(best[2:4]) <= 3,
            f"{max(best[2:4])} of 5",
            "tab-methods",
        ),
        Claim(
            "lowest coefficient error on KS",
            all(row[0] == min(row) for row in errors),
            f"best {min(errors[0]):.2g}, ours {errors[0][0]:.2g} (S20)",
            "tab-methods-error",
        ),
        Claim("WSINDy recovers 2D AD-T20 five times", wsindy == 5, f"{wsindy} of 5", "tab-methods"),
        Claim(
            "only the structured adapter recovers all of KS",
            max(least.values()) < 5,
            f"with slow time {sum(slow)} of 10",
            "tab-capacity",
            exception=min(slow) == 5,
        ),
        Claim(
            "lowest field error of the networks on KS",
            margin > 1,
            f"{margin:.2g} times lower",
            "tab-adapters-field",
            exception=closer,
        ),
        Claim(
            "no single threshold suits KS and 2D AD", not suited, f"{multiples}: 20 of 20", "tab-thresholds"
        ),
        Claim("SVWS suits both", single["svws"] == 20, f"{single['svws']} of 20", "tab-thresholds"),
        Claim(
            "exact on KS at every density from 20 %",
            min(dense) == 5,
            f"{sum(dense)} of {5 * len(dense)}",
            "tab-density",
        ),
        Claim("exact on KS and 2D AD at 10 % noise", loud == 20, f"{loud} of 20", "tab-noise-error"),
    ]


def scorecard_table(claims: Sequence[Claim]) -> Table:
    """The claims with a verdict, a number and a reference to the evidence."""
    rows = [(each.text, each.verdict, each.number, f"{{numref}}`{each.evidence}`") for each in claims]
    return table(("claim of the paper", "here", "number", "evidence"), rows)
