"""Figures and tables of the chapter on your own data: a verdict and its rivals, and whether to believe it."""

import itertools
from collections.abc import Sequence

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from fts.discovery.discover import Discovery
from fts.plots.style import INK, PALETTE, WIDTH, Table, table
from fts.studies.honesty import Honesty
from fts.studies.records import RunRecord

_POINTS = 200
_LEAST = 1e-12  # risks below are rounding, and would stretch the axis
_COLORS = {"identified": PALETTE[2], "ambiguous": PALETTE[4], "not identifiable": PALETTE[1]}


def reconstruction(result: Discovery) -> Figure:
    """The frozen field over space and time, and where it was measured."""
    figure, ax = plt.subplots(figsize=(WIDTH, 0.5 * WIDTH))
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
    """What the equation and its rivals leave unexplained, beside what the field's uncertainty lets expect."""
    verdict = result.verdict
    texts = [result.equation.latex, *(one.equation.latex for one in verdict.rivals)]
    values = np.maximum([verdict.risk, *(one.risk for one in verdict.rivals)], _LEAST)
    figure, ax = plt.subplots(figsize=(WIDTH, 0.9 + 0.62 * len(texts)))
    colors = [_COLORS[verdict.status], *[INK] * len(verdict.rivals)]
    places = np.arange(len(texts))[::-1]
    left = 10 ** np.floor(np.log10(min(values.min(), max(verdict.expected, _LEAST))) - 0.5)
    ax.barh(places - 0.15, values - left, left=left, height=0.3, color=colors)
    for place, text in zip(places, texts, strict=True):
        ax.text(left * 1.1, place + 0.1, f"${text}$", va="bottom", fontsize=11)
    if np.isfinite(verdict.expected):
        ax.axvline(
            max(verdict.expected, _LEAST), color=PALETTE[0], linestyle="--", label="expected of the truth"
        )
        figure.legend(loc="outside upper right")
    ax.set(
        xscale="log",
        xlim=(left, 10),
        ylim=(-0.5, len(texts) - 0.2),
        yticks=[],
        xlabel="unexplained part of $u_t$",
    )
    return figure


def reliability(records: Sequence[RunRecord]) -> Figure:
    """How often the equation is right, by the margin of its verdict; bars are 95 % intervals."""
    done = [one for one in records if not one.error and one.extra["margin"] is not None]
    margin = np.array([max(one.extra["margin"], 1e-3) for one in done])
    right = np.array([one.score["exact"] for one in done])
    edges = np.array([0.0, 0.1, 0.3, 0.6, 1.0, 1.3, 1.8, 3.0, np.inf])
    figure, ax = plt.subplots(figsize=(WIDTH, 0.5 * WIDTH))
    for low, high in itertools.pairwise(edges):
        inside = (margin >= low) & (margin < high)
        if not inside.any():
            continue
        share, (bottom, top) = right[inside].mean(), _interval(right[inside])
        color = _COLORS["identified" if low >= 1 else "ambiguous"]
        place = float(np.median(margin[inside]))
        ax.plot([place, place], [bottom, top], color=color)
        ax.plot(place, share, "o", color=color)
        ax.annotate(f"{inside.sum()}", (place, 1.06), ha="center", fontsize=9)
    ax.axvline(1.0, color=INK, linestyle="--")
    ax.set(xscale="log", xlabel="margin of the verdict", ylabel="share that is right", ylim=(-0.03, 1.13))
    return figure


def by_group(groups: dict[str, Honesty], heading: str) -> Table:
    """The two numbers of the benchmark, for every group."""
    rows = [
        (
            name,
            one.runs,
            f"{one.wrong}/{one.identified}",
            f"{one.called}/{one.close}",
            f"{one.covered}/{one.coefficients}",
        )
        for name, one in groups.items()
    ]
    return table(
        (heading, "problems", "wrong of identified", "identified of right", "within two errors"), rows
    )


def samples_band(count: int) -> str:
    """A sample count in words, for grouping."""
    bands = ((1000, "0: fewer than 1,000"), (2500, "1: 1,000 to 2,500"), (5000, "2: 2,500 to 5,000"))
    return next((name for limit, name in bands if count < limit), "3: 5,000 and more")


def _interval(right: np.ndarray) -> tuple[float, float]:
    from scipy.stats import binomtest

    ends = binomtest(int(right.sum()), right.size).proportion_ci(0.95, "exact")
    return float(ends.low), float(ends.high)
