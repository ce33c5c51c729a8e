"""Figures and tables of the chapter on your own data: a verdict, its rivals and its calibration."""

import itertools
from collections.abc import Sequence

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from fts.discovery.discover import Discovery
from fts.equations.terms import parse_term
from fts.lab.studies.calibration import VerdictCalibration, interval
from fts.lab.studies.records import RunRecord
from fts.plotting import INK, PALETTE, WIDTH, Table, canvas, panel_row, table
from fts.problems.problems import problem
from fts.trajectory.comparison import ThawedEquation
from fts.trajectory.integration import FORECAST

_POINTS = 200
_MARGINS = (0.03, 10.0)  # beyond them nothing is to be seen
_LEAST = 1e-12  # risks below are rounding, and would stretch the axis
_COLORS = {"identified": PALETTE[2], "ambiguous": PALETTE[4], "not identifiable": PALETTE[1]}


def reconstruction(result: Discovery) -> Figure:
    """The frozen field over space and time, and where it was measured."""
    figure, ax = canvas(0.5)
    if result.field is None or result.observations is None:
        raise ValueError("no field was fitted: there is nothing to draw")
    domain = result.field.domain
    x = np.linspace(domain.low[0], domain.high[0], _POINTS)
    t = np.linspace(domain.t0, domain.t1, _POINTS)
    mesh = ax.pcolormesh(t, x, result.field.on_grid(x, t), rasterized=True)
    figure.colorbar(mesh, ax=ax, label="$u$")
    ax.plot(result.observations.t, result.observations.x[:, 0], ".", color="w", markersize=1, alpha=0.5)
    ax.set(xlabel="$t$", ylabel="$x$")
    return figure


def rivals(result: Discovery) -> Figure:
    """What the equation and its rivals leave unexplained, beside what noise or the field lets expect."""
    verdict = result.verdict
    texts = [result.equation.latex, *(rival.equation.latex for rival in verdict.rivals)]
    values = np.maximum([verdict.risk, *(rival.risk for rival in verdict.rivals)], _LEAST)
    figure, ax = plt.subplots(figsize=(WIDTH, 0.9 + 0.62 * len(texts)))
    colors = [_COLORS[verdict.status], *[INK] * len(verdict.rivals)]
    heights = np.arange(len(texts))[::-1]
    left = 10 ** np.floor(np.log10(min(values.min(), max(verdict.expected, _LEAST))) - 0.5)
    ax.barh(heights - 0.15, values - left, left=left, height=0.3, color=colors)
    for height, text in zip(heights, texts, strict=True):
        ax.text(left * 1.1, height + 0.1, f"${text}$", va="bottom", fontsize=11)
    if np.isfinite(verdict.expected):
        expected = max(verdict.expected, _LEAST)
        # Beside the bars only: the equations stand above them.
        ends = (heights - 0.38, heights + 0.08)
        ax.vlines(
            np.full(len(texts), expected),
            *ends,
            color=PALETTE[0],
            linestyle="--",
            label="the field's estimate of the noise",
        )
        figure.legend(loc="outside upper right")
    ax.set(xscale="log", xlim=(left, 10), ylim=(-0.5, len(texts) - 0.2), yticks=[])
    ax.set_xlabel(f"unexplained part of {'$u_t$' if verdict.of == 'u_t' else verdict.of}")
    return figure


def scores_of_missing_terms(followed: ThawedEquation, offered: Sequence[str]) -> Figure:
    """How many standard errors from zero the significant terms left out are."""
    ranked = sorted(followed.wanted.items(), key=lambda pair: pair[1])
    names = [f"${parse_term(name).latex}$" for name, _ in ranked]
    colors = [_COLORS["ambiguous" if name in offered else "not identifiable"] for name, _ in ranked]
    figure, ax = plt.subplots(figsize=(WIDTH, 0.12 * WIDTH + 0.3 * len(names)))
    ax.barh(names, [ratio for _, ratio in ranked], color=colors, height=0.6)
    ax.axvline(FORECAST.wanted, color=INK, linestyle="--")
    ax.set(xlabel="standard errors from zero, each term added by itself")
    return figure


def verdict_table(records: Sequence[RunRecord]) -> Table:
    """How many runs were right, and how many of every noise level were called identified."""
    levels = sorted({run.noise for run in records})
    samples: dict[str, list[RunRecord]] = {}
    for run in records:
        library = "" if run.row == "defaults" else f", {run.row}"
        samples.setdefault(f"{problem(run.problem).title} {run.protocol}{library}", []).append(run)
    rows = []
    for name, runs in samples.items():
        by_level = [[run for run in runs if run.noise == level] for level in levels]
        called = [sum(run.extra["notes"]["status"] == "identified" for run in some) for some in by_level]
        counts = (str(count) if some else "–" for count, some in zip(called, by_level, strict=True))
        exact = sum(run.score["exact"] for run in runs)
        rows.append((name, max(map(len, by_level)), f"{exact}\u00a0of\u00a0{len(runs)}", *counts))
    header = ("samples", "runs each", "right", *(f"{level:.0%} noise" for level in levels))
    return table(header, rows)


def reliability(records: Sequence[RunRecord]) -> Figure:
    """How often the equation is right, by the margin of its verdict; bars are 95 % intervals."""
    judged = [run for run in records if not run.error and run.extra["margin"] is not None]
    margin = np.clip([run.extra["margin"] for run in judged], *_MARGINS)
    right = np.array([run.score["exact"] for run in judged])
    edges = np.array([0.0, 0.1, 0.3, 0.6, 1.0, 1.3, 1.8, 3.0, np.inf])
    figure, ax = canvas(0.5)
    for low, high in itertools.pairwise(edges):
        inside = (margin >= low) & (margin < high)
        if not inside.any():
            continue
        color = _COLORS["identified" if low >= 1 else "ambiguous"]
        middle = float(np.median(margin[inside]))
        ax.plot([middle, middle], interval(int(right[inside].sum()), int(inside.sum())), color=color)
        ax.plot(middle, right[inside].mean(), "o", color=color)
        # Neighbors on the logarithmic axis would run into one another.
        height = 1.15 if 1.2 <= low < 1.8 else 1.06
        ax.annotate(f"{inside.sum()}", (middle, height), ha="center", fontsize=9)
    ax.axvline(1.0, color=INK, linestyle="--")
    ax.set(xscale="log", xlabel="margin of the verdict", ylabel="share that is right", ylim=(-0.03, 1.24))
    return figure


def verdict_shares(levels: dict[str, VerdictCalibration], bands: dict[str, VerdictCalibration]) -> Figure:
    """Identified equations that are right, and right ones that are identified, by noise and by samples."""
    figure, axes = panel_row(2, 0.45, "share of problems")
    for ax, groups, label in zip(axes, (levels, bands), ("noise", "samples"), strict=True):
        right = [(group.identified - group.wrong, group.identified) for group in groups.values()]
        called = [(group.called, group.close) for group in groups.values()]
        shares = (("identified", "right of identified", right), ("ambiguous", "identified of right", called))
        for shift, (color, text, pairs) in zip((-0.08, 0.08), shares, strict=True):
            x, color = np.arange(len(pairs)) + shift, _COLORS[color]
            for at, pair in zip(x, pairs, strict=True):
                ax.plot([at, at], interval(*pair), color=color)
            ax.plot(x, [part / whole for part, whole in pairs], "o", color=color, label=text)
        ax.set(xlabel=label, xticks=range(len(groups)), ylim=(0.5, 1.02))
        ax.set_xticklabels(groups, fontsize=8)
    axes[0].legend(fontsize=8, loc="lower left")
    return figure


def by_group(groups: dict[str, VerdictCalibration], heading: str) -> Table:
    """The two numbers of the benchmark, for every group."""
    rows = []
    for name, group in groups.items():
        wrong, called = f"{group.wrong}/{group.identified}", f"{group.called}/{group.close}"
        rows.append((name, group.runs, wrong, called, f"{group.covered}/{group.coefficients}"))
    header = (heading, "problems", "wrong of identified", "identified of right", "within two errors")
    return table(header, rows)


def samples_band(count: int) -> str:
    """A sample count in words, for grouping."""
    bands = ((1000, "0: fewer than 1,000"), (2500, "1: 1,000 to 2,500"), (5000, "2: 2,500 to 5,000"))
    return next((name for limit, name in bands if count < limit), "3: 5,000 and more")
