"""The package's import graph and a traced call -> the page on how the code is laid out."""

from itertools import chain

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgba
from matplotlib.figure import Figure

from fts.lab.layout import CallTrace, Layout, importers, makers
from fts.plotting import INK, PALETTE, WIDTH, Table, table

DATA, TORCH = PALETTE[:2]
# The way of the data. What reads a frozen field reads anything that can be evaluated: Field is its protocol.
WAY = (("Observations",), ("FrozenField", "Field"), ("WeakSystem",), ("Selection",), ("Equation",))
LEFT, NAMES, ARCS, RIGHT = -7.0, 0.45, 4.8, 12.8  # columns, in units of a row
_MOMENTS = 240  # columns of the picture of a call
_BUSY = LinearSegmentedColormap.from_list("busy", [to_rgba(DATA, 0), to_rgba(DATA)])
SIZE = 10.5  # points: a phone shows the picture at two thirds of its width


def reading_order(layout: Layout) -> Figure:
    """Lines as rows in reading order: left what they make of the data, right who imports whom."""
    rows = {line.name: -i - 0.8 * line.truth for i, line in enumerate(layout.lines)}
    bottom, top = min(rows.values()) - 0.6, 0.6
    figure, ax = plt.subplots(figsize=(WIDTH, WIDTH * (top - bottom) / (RIGHT - LEFT)))
    trained = {layout.files[name].line for name in importers(layout, "torch")}
    for line in layout.lines:
        color = TORCH if line.name in trained else INK
        ax.text(NAMES, rows[line.name], str(line), va="center", family="monospace", size=SIZE, color=color)
        ax.plot(ARCS, rows[line.name], "o", color=color, markersize=3.5)
        for other in layout.imports(line.name):
            look = {"color": INK, "linewidth": 0.8, "alpha": 0.35 if line.truth else 0.7}
            if other in trained:
                look = {"color": TORCH, "linewidth": 2.0, "zorder": 3}
            ax.plot(*_arc(rows[other], rows[line.name], top - bottom), **look)
    _way(ax, layout, rows)
    first = next(rows[line.name] for line in layout.lines if line.truth)
    ax.axhline(first + 0.9, color=INK, linestyle=(0, (5, 3)), linewidth=1.2)
    ax.text(LEFT + 0.2, first + 0.7, "here begins the truth", va="top", style="italic", size=SIZE)
    ax.set(xlim=(LEFT, RIGHT), ylim=(bottom, top))
    ax.axis("off")
    figure.set_layout_engine("none")
    ax.set_position((0.0, 0.0, 1.0, 1.0))
    return figure


def call_in_time(layout: Layout, trace: CallTrace) -> Figure:
    """Lines that took part as rows in reading order, dark while they worked; calls and share of the time."""
    lines = [line for line in layout.lines if trace.calls[line.name]]
    edges = np.linspace(0.0, trace.seconds, _MOMENTS + 1)
    busy = np.array([np.diff(_worked(trace, line.name, edges)) for line in lines]) / np.diff(edges)
    figure, ax = plt.subplots(figsize=(WIDTH, 0.27 * len(lines) + 0.9))
    # Square roots, so that a tenth of a moment is still to be seen.
    ends = (0.0, trace.seconds, len(lines) - 0.5, -0.5)
    ax.imshow(busy**0.5, extent=ends, aspect="auto", cmap=_BUSY, vmin=0, vmax=1, interpolation="none")
    ax.hlines(np.arange(len(lines)) + 0.5, *ends[:2], color=INK, linewidth=0.4)
    numbers = [f"{trace.calls[line.name]:>6,} {trace.share(line.name):>4.0%}" for line in lines]
    for side, labels in ((ax, list(map(str, lines))), (ax.twinx(), [" calls time", *numbers])):
        rows = range(len(lines) - len(labels), len(lines))
        side.set_yticks(rows, labels, family="monospace", size=SIZE)
        side.set_ylim(len(lines) - 0.5, -1.4)
        side.tick_params(axis="y", length=0)
        side.spines[:].set_visible(False)
    ax.set_xlabel("seconds")
    return figure


def _worked(trace: CallTrace, name: str, moments: np.ndarray) -> np.ndarray:
    """Seconds that a line has worked by each moment."""
    stops = np.array([stop for *_, stop in trace.intervals])
    spent = np.array([stop - start if line == name else 0.0 for line, start, stop in trace.intervals])
    return np.interp(moments, [0.0, *stops], [0.0, *spent.cumsum()])


def line_table(layout: Layout) -> Table:
    """Every line with what it does, the number of its files and their length."""
    sizes = {line.name: [file.length for file in layout.of(line.name)] for line in layout.lines}
    rows = [(line, line.says, len(sizes[line.name]), sum(sizes[line.name])) for line in layout.lines]
    return table(("folder or module", "what it does", "files", "lines"), rows)


def _arc(upper: float, lower: float, height: float) -> tuple[np.ndarray, np.ndarray]:
    """Half an ellipse from row to row; one over the whole height would end at the right edge."""
    angle, half = np.linspace(-np.pi / 2, np.pi / 2, 81), (upper - lower) / 2
    width = 2 * half * (RIGHT - ARCS) / height
    return ARCS + width * np.cos(angle), (upper + lower) / 2 + half * np.sin(angle)


def _way(ax: Axes, layout: Layout, rows: dict[str, float]) -> None:
    """The data's way: a track with a stop where a line makes one of another."""
    stops = _stops(layout)
    for line, types in stops.items():
        ax.plot(0.0, rows[line], "o", color=DATA, markersize=7)
        ax.text(-0.4, rows[line], " → ".join(types), va="center", ha="right", color=DATA, size=SIZE)
    ends = [rows[line] for line in stops]
    ax.plot([0.0, 0.0], [max(ends), min(ends)], color=DATA, linewidth=2.2)


def _stops(layout: Layout) -> dict[str, list[str]]:
    """Types of the way by the line that makes them of earlier ones: what is new there, or else the last."""
    (first, *_), *later = WAY
    stops = {file.line: [first] for file in layout.files.values() if first in file.classes}
    known = {first}
    makers_of = [makers(layout, chain(*WAY[:i]), name) for i, (name, *_) in enumerate(later, start=1)]
    for line in (line.name for line in layout.lines if not line.truth):
        made = [name for (name, *_), lines in zip(later, makers_of, strict=True) if line in lines]
        if made:
            stops[line] = [name for name in made if name not in known] or made[-1:]
            known |= set(made)
    return stops
