"""The style of figures and tables, for light and for dark pages, and the pictures of a selection's trace."""

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import matplotlib as mpl
import numpy as np
from cycler import cycler
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from fts.selection.selection import Candidates, Trace

# Okabe and Ito's colors without black and yellow, which vanish on a dark and on a light page.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# A gray with about the same contrast, 4.2 and 4.4 to 1, against the theme's white and its near black.
INK = "#7B7B7B"
# Perceptually uniform, readable without color.
FIELD_MAP = "viridis"
_BLUE, _ORANGE = PALETTE[:2]
# Zero is the page itself, light or dark: blue below it, orange above, stronger with size.
SIGNED_MAP = LinearSegmentedColormap.from_list(
    "signed", [(0.0, (_BLUE, 1)), (0.5, (_BLUE, 0)), (0.5, (_ORANGE, 0)), (1.0, (_ORANGE, 1))]
)
WIDTH = 5.2  # inches: text of a figure as wide as a phone is still as large as a caption
DPI = 180
SMALLEST_TEXT = 7.6  # points: eleven pixels where the book shows a figure in full
_FORMULA = re.compile(r"\$([^$]+)\$")
_KEPT = re.compile(r"(\$[^$]+\$|\{numref\}`[\w-]+`)")  # formulas and references
_POWER = re.compile(r"(?<=\d)e([+-])0*(\d+)\b")
_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_SIGNS = re.compile(r"[\\`*_{}\[\]<>#|+%~-]")  # what Markdown would read as markup


@dataclass(frozen=True)
class Table:
    """Rows under a header: numbered in the book, HTML in notebooks, text in `print`. $...$ is a formula.

    A second line of a cell, what the first is compared with, stands below it in italics.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    name: str = ""  # the book refers to it: {numref}`name`
    caption: str = ""

    def titled(self, name: str, caption: str) -> "Table":
        """The same table with the name it is referred to by and the caption above it."""
        return replace(self, name=name, caption=caption)

    def flipped(self, heading: str) -> "Table":
        """Columns as rows, for a table that is wide and low; `heading` stands above the old headings."""
        _, *columns = zip(self.header, *self.rows, strict=True)
        return replace(self, header=(heading, *(row[0] for row in self.rows)), rows=tuple(columns))

    def __str__(self) -> str:
        lines = [[cell.replace("\n", " | ") for cell in line] for line in (self.header, *self.rows)]
        columns = list(zip(*lines, strict=True))
        padded = ([cell.ljust(max(map(len, column))) for cell in column] for column in columns)
        return "\n".join(map("  ".join, zip(*padded, strict=True)))

    def _repr_html_(self) -> str:
        caption = f"<caption>{_in_html(self.caption)}</caption>" if self.caption else ""
        head = "".join(f'<th scope="col">{_in_html(text)}</th>' for text in self.header)
        body = ""
        for first, *rest in self.rows:
            cells = "".join(f"<td>{_in_html(text)}</td>" for text in rest)
            body += f'<tr><th scope="row">{_in_html(first)}</th>{cells}</tr>'
        return f'<table class="table">{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'

    def _repr_markdown_(self) -> str:
        """For the book, where Sphinx numbers the table and typesets its formulas."""
        options = f":name: {self.name}\n" if self.name else ""
        lines = [f"````{{list-table}} {self.caption}\n{options}:header-rows: 1\n:stub-columns: 1\n"]
        for row in (self.header, *self.rows):
            cells = [_in_markdown(cell) for cell in row]
            lines += [f"* - {cells[0]}", *(f"  - {cell}" for cell in cells[1:])]
        return "\n".join([*lines, "````"])


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """A table of the rows' values as text; 1e-06 is written as 1×10⁻⁶."""
    body = tuple(tuple(_POWER.sub(_power_of_ten, str(value)) for value in row) for row in rows)
    for row in body:
        if len(row) != len(header):
            counts = f"{len(row)} cells under {len(header)} headings"
            raise ValueError(f"row {row} has {counts}: give one per heading")
    if not all(header):
        raise ValueError(f"a heading of {tuple(header)} is empty: say what stands below it")
    return Table(tuple(header), body)


def use_style() -> None:
    """Set matplotlib's defaults to the book's: no background, gray ink, the palette, one column wide."""
    mpl.rc("axes", edgecolor=INK, facecolor="none", labelcolor=INK, labelsize=13, linewidth=0.8)
    mpl.rc("axes", prop_cycle=cycler(color=PALETTE), titlecolor=INK, titlelocation="left", titlesize=11)
    mpl.rc("axes.spines", right=False, top=False)
    mpl.rc("figure", dpi=DPI, facecolor="none", figsize=(WIDTH, 0.5 * WIDTH))
    mpl.rc("figure.constrained_layout", use=True)
    mpl.rc("font", size=11)
    mpl.rc("grid", color=INK, linewidth=0.5)
    mpl.rc("image", cmap=FIELD_MAP)
    mpl.rc("legend", frameon=False, labelcolor=INK)
    mpl.rc("lines", linewidth=1.6)
    mpl.rc("mathtext", fontset="cm")
    mpl.rc("savefig", facecolor="none")
    for group in ("text", "xtick", "ytick"):
        mpl.rc(group, color=INK)


def canvas(height: float = 0.5, width: float = 1.0) -> tuple[Figure, Axes]:
    """A figure with one panel; both sizes in units of the book's column."""
    return plt.subplots(figsize=(width * WIDTH, height * WIDTH))


def panel_row(count: int, height: float = 0.5, ylabel: str = "", **shared: Any) -> tuple[Figure, list[Axes]]:
    """A figure with panels side by side that share the vertical axis and its label, or as `shared` says."""
    shared = {"sharey": True} | shared
    figure, axes = plt.subplots(1, count, figsize=(WIDTH, height * WIDTH), squeeze=False, **shared)
    axes[0, 0].set_ylabel(ylabel)
    return figure, list(axes[0])


def field_map(ax: Axes, x: np.ndarray, t: np.ndarray, values: np.ndarray, **limits: Any) -> QuadMesh:
    """Values [x, t] as colors over x (across) and t (up), without a frame."""
    ax.set_xlabel("$x$")
    ax.spines[:].set_visible(False)
    return ax.pcolormesh(x, t, values.T, rasterized=True, **limits)


def legend_above(figure: Figure, ax: Axes, columns: int = 2) -> None:
    """The legend of one panel above all of them."""
    figure.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=columns)


def legend_beside(ax: Axes, **options: Any) -> None:
    """The legend to the right of the panel."""
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), **options)


# Risks that span more than this factor are drawn on a logarithmic axis.
_WIDE_RANGE = 10.0


def proposals(candidates: Candidates) -> Figure:
    """Which support each generation system proposes at each threshold; one color per distinct support."""
    ranks = np.argsort(np.argsort([-count for count in candidates.counts], kind="stable"))
    shown = min(len(candidates.supports), len(PALETTE))
    colors = [*PALETTE[: shown - 1], INK] if len(candidates.supports) > shown else PALETTE[:shown]
    values = np.minimum(ranks[candidates.proposals], len(colors) - 1)
    figure, ax = canvas(1.0)
    for (row, column), value in np.ndenumerate(values):
        ax.add_patch(Rectangle((column + 0.04, row + 0.04), 0.92, 0.92, color=colors[value], linewidth=0))
    ax.set(xlim=(0, values.shape[1]), ylim=(0, values.shape[0]))
    ax.set_xticks(np.arange(len(candidates.thresholds)) + 0.5, [f"{t:.3g}" for t in candidates.thresholds])
    ax.set_yticks(np.arange(len(values)) + 0.5, [str(r + 1) for r in range(len(values))])
    ax.set(xlabel=r"threshold $m\lambda_0$", ylabel="generation system")
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    order = [int(index) for index in np.argsort(ranks)[: len(colors)]]
    texts = [f"{candidates.counts[index]}: {support_text(candidates, index)}" for index in order]
    if len(candidates.supports) > shown:
        texts[-1] = "other supports"
    for color, text in zip(colors, texts, strict=True):
        ax.plot([], [], "s", color=color, markersize=8, label=text)
    figure.legend(loc="outside lower left", handletextpad=0.2, title="times: support", alignment="left")
    return figure


def recurrence(candidates: Candidates, tau: float) -> Figure:
    """Term frequencies against the stability threshold tau."""
    figure, ax = canvas(0.36)
    pi = candidates.pi
    ax.bar(range(len(pi)), pi, color=[PALETTE[0] if value >= tau else INK for value in pi], width=0.65)
    ax.axhline(tau, color=PALETTE[1], linewidth=1.2)
    ax.annotate(rf"$\tau = {tau:g}$", (-0.45, tau + 0.02), color=PALETTE[1], va="bottom")
    ax.set_xticks(range(len(pi)), [f"${term.latex}$" for term in candidates.library])
    ax.set(ylabel=r"recurrence $\pi_j$", ylim=(0, 1.05))
    ax.tick_params(axis="x", length=0)
    return figure


def risks(trace: Trace) -> Figure:
    """Validation risks of the eligible supports, their means with one standard error, and the rule's line."""
    rows = sorted(range(len(trace.eligible)), key=trace.mu.__getitem__)
    figure, ax = canvas(0.14 + 0.075 * len(rows))
    for height, row in enumerate(rows[::-1]):
        color = PALETTE[0] if row == trace.winner else INK
        ax.plot(trace.risks[row], np.full(trace.risks.shape[1], height), "|", color=color, markersize=7)
        ax.errorbar(trace.mu[row], height, xerr=trace.se[row], fmt="o", color=color, markersize=5, capsize=3)
    ax.axvline(trace.bound, color=PALETTE[1], linewidth=1.2)
    ax.annotate(r" $\mu + \mathrm{se}$ of the lowest", (trace.bound, len(rows) - 0.45), color=PALETTE[1])
    ax.set_yticks(range(len(rows)), [support_text(trace.candidates, trace.eligible[r]) for r in rows[::-1]])
    ax.set(xlabel="normalized validation risk", ylim=(-0.6, len(rows) - 0.2))
    if trace.risks.max() > _WIDE_RANGE * trace.risks.min() > 0:
        ax.set_xscale("log")
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return figure


def support_text(candidates: Candidates, index: int) -> str:
    terms = [candidates.library[j].latex for j in candidates.supports[index]]
    return r"$\{" + r",\; ".join(terms) + r"\}$"


def _power_of_ten(match: re.Match[str]) -> str:
    return f"×10{(match[1] + match[2]).lstrip('+').translate(_SUPERSCRIPTS)}"


def _in_html(text: str) -> str:
    first, *below = (_line_in_html(line) for line in text.split("\n"))
    return "<br>".join([first, *(f"<em>{line}</em>" for line in below)])


def _line_in_html(line: str) -> str:
    parts = _FORMULA.split(html.escape(line))
    parts[1::2] = [f'<span class="math">\\({part}\\)</span>' for part in parts[1::2]]
    return "".join(parts)


def _in_markdown(text: str) -> str:
    """A backslash ends a line; four spaces keep the next in its cell of the list."""
    first, *below = (_line_in_markdown(line) for line in text.split("\n"))
    return "\\\n    ".join([first, *(f"*{line}*" for line in below)])


def _line_in_markdown(line: str) -> str:
    parts = _KEPT.split(line)
    return "".join(part if i % 2 else _SIGNS.sub(r"\\\g<0>", part) for i, part in enumerate(parts))
