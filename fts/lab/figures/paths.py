"""Recorded trainings -> figures of chapter "paths": green is true or exact, orange false or not."""

from collections.abc import Mapping

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec

from fts.lab.studies import published
from fts.lab.studies.paths import Setting, counts, summarize_path, support_f1
from fts.lab.studies.records import count_of_five
from fts.params.paper import SHORT_NAMES, TEST_SEEDS
from fts.paths import recorder
from fts.paths.recorder import SupportPath
from fts.plotting import INK, PALETTE, WIDTH, Table, table
from fts.problems.problems import problem

_EXACT, _WRONG, _LINE = PALETTE[2], PALETTE[1], PALETTE[0]
_TERMS = ListedColormap([_WRONG, _EXACT])
# Where terms leave only after a share of a training, a part of the rest is magnified (the paper: 12 %).
_LATE, _MAGNIFIED = 0.2, 0.12
Zoom = tuple[float, float]
_WORDS = {
    "persists": "exact, and it stays",
    "transient": "exact for a while, then lost",
    "never": "never exact",
}
_NAMES = {"ever": "ever", "held_out": "held-out minimum", "terminal": "at the end"}


def title(setting: Setting) -> str:
    """A setting as the figures name it."""
    return ", ".join(_words(setting))


def _words(setting: Setting) -> tuple[str, str]:
    return setting[0], f"{SHORT_NAMES[setting[1]]}-{setting[2]}"


def behaviors(paths: Mapping[Setting, SupportPath]) -> Figure:
    """Per training: F1 of the support, and under it which terms were in it, over the whole training."""
    figure = plt.figure(figsize=(WIDTH, 2.9 * len(paths)))
    slots = figure.add_gridspec(len(paths), 1)
    for i, (setting, path) in enumerate(paths.items(), start=1):
        _behavior(figure, slots[i - 1], path, title(setting), last=i == len(paths))
    return figure


def all_seeds(paths: Mapping[Setting, Mapping[int, SupportPath]]) -> Figure:
    """F1 over each training, one row per seed and one column per setting, as in the supplement.

    A method that drops terms late has a narrow column more: the first eighth of what follows.
    """
    seeds = sorted({seed for runs in paths.values() for seed in runs})
    columns = [column for setting, runs in paths.items() for column in _columns(setting, runs)]
    look = {"figsize": (WIDTH, 0.95 * len(seeds) + 0.7), "sharex": "col", "sharey": True, "squeeze": False}
    widths = [1.0 if zoom is None else 0.6 for _, zoom in columns]
    figure, panels = plt.subplots(len(seeds), len(columns), width_ratios=widths, **look)
    for axes, (setting, zoom) in zip(panels.T, columns, strict=True):
        axes[0].set_title("\n".join(_words(setting)) if zoom is None else "\nzoom", fontsize=9)
        for ax, seed in zip(axes, seeds, strict=True):
            if seed in paths[setting]:
                f1_line(ax, paths[setting][seed], label=zoom is None, zoom=zoom)
            elif zoom is None:
                ax.text(0.5, 0.5, "not run yet", ha="center", va="center", fontsize=8, transform=ax.transAxes)
            ax.tick_params(labelsize=8)
        if zoom is None:
            axes[-1].set_xticks([0, 1])
        else:  # a narrow panel has room for one label
            axes[-1].set_xticks([sum(zoom) / 2], ["{:.2f}–{:.2f}".format(*zoom)])
        axes[-1].set_xlabel("progress", fontsize=9)
    for ax, seed in zip(panels[:, 0], seeds, strict=True):
        ax.set_ylabel(f"{seed}", fontsize=9)
    return figure


def _columns(setting: Setting, runs: Mapping[int, SupportPath]) -> list[tuple[Setting, Zoom | None]]:
    # Shares of the trainings after which terms may be dropped.
    shares = [float(path.about.get("sparse_from") or 0) / max(path.end, 1) for path in runs.values()]
    begin = max(shares, default=0.0)
    magnified = [(setting, (begin, begin + _MAGNIFIED * (1 - begin)))] if begin > _LATE else []
    return [(setting, None), *magnified]


def f1_line(ax: Axes, path: SupportPath, *, label: bool = False, zoom: Zoom | None = None) -> None:
    """F1 as it was, unsmoothed; exact intervals green, a star at the first, a circle at the end."""
    since, f1 = support_f1(path)
    summary = summarize_path(path)
    ax.step(np.append(since, path.end) / path.end, np.append(f1, f1[-1]), where="post", color=INK, lw=0.9)
    for start, stop in summary.intervals:
        ax.plot([start / path.end, max(stop, start) / path.end], [1, 1], color=_EXACT, lw=3.2)
    low, high = zoom or (0.0, 1.0)
    if summary.first is not None and low <= (at := summary.first / path.end) <= high:
        ax.plot(at, 1, "*", color=_EXACT, ms=11, zorder=4, clip_on=False)
        if label:
            aside, side = (7, "left") if at < 0.5 * (low + high) else (-7, "right")
            look = {"xytext": (aside, 4), "textcoords": "offset points", "ha": side, "fontsize": 8}
            ax.annotate(f"{summary.first:,}", (at, 1), **look)
    if zoom is None:
        color = _EXACT if summary.terminal else _WRONG
        ax.plot(1, f1[-1], "o", color=color, ms=6, zorder=5, clip_on=False)
    ax.set(xlim=zoom or (0, 1.01), ylim=(-0.06, 1.35), yticks=[0, 1])


def describe_training(path: SupportPath) -> str:
    """One training in words: when its support was exact, and what it ended with."""
    summary = summarize_path(path)
    when = f"best F1 on the way {best(path):.2f}"
    if summary.first is not None:
        intervals = f"{len(summary.intervals)} intervals" if len(summary.intervals) > 1 else "one interval"
        when = f"first exact at step {summary.first:,}, in {intervals}"
    return f"seed {path.about['seed']}, {_WORDS[summary.behavior]}: {when}; step {path.end:,}: {_ended(path)}"


def best(path: SupportPath) -> float:
    """The highest F1 that the support had on the way."""
    return float(support_f1(path)[1].max())


def last_change(path: SupportPath) -> float:
    """The share of the training after which the support never changed again."""
    return float(path.since[-1] / path.end)


def table_s9(paths: Mapping[Setting, Mapping[int, SupportPath]]) -> Table:
    """Trainings with the exact support ever, at the held-out minimum, at the end; the paper's in brackets."""
    theirs, lines = published.paths(), []
    for setting, runs in paths.items():
        got = counts([summarize_path(path) for path in runs.values()])
        cells = [_of(got[name], got["runs"]) for name in _NAMES]
        if setting in theirs:
            printed = ("–" if count is None else count for count in theirs[setting].values())
            cells = [f"{ours} ({count})" for ours, count in zip(cells, printed, strict=True)]
        lines.append((*_words(setting), *cells))
    return table(["method", "setting", *_NAMES.values()], lines)


def differences(paths: Mapping[Setting, Mapping[int, SupportPath]]) -> list[str]:
    """Where our counts cannot be the paper's, whatever the trainings still missing will do."""
    lines = []
    for setting, cells in published.paths().items():
        runs = paths.get(setting, {})
        got = counts([summarize_path(path) for path in runs.values()])
        for name, theirs in cells.items():
            if theirs is not None and not got[name] <= theirs <= got[name] + len(TEST_SEEDS) - len(runs):
                ours = f"{got[name]}/{got['runs']}"
                lines.append(f"{title(setting)}, {_NAMES[name]}: {ours}, the paper {theirs}/5")
    return lines


def missing(paths: Mapping[Setting, Mapping[int, SupportPath]]) -> dict[str, list[int]]:
    """Seeds whose training is not recorded yet, by setting."""
    lacking = ((setting, [s for s in TEST_SEEDS if s not in runs]) for setting, runs in paths.items())
    return {title(setting): seeds for setting, seeds in lacking if seeds}


def stopping_table(paths: Mapping[Setting, Mapping[int, SupportPath]]) -> Table:
    """How often each stopping rule, applied without the truth, reports the exact support."""
    lines = []
    for setting, runs in paths.items():
        got = counts([summarize_path(path) for path in runs.values()])
        lines.append((title(setting), *(_of(exact, got["runs"]) for exact in got["stopped"].values())))
    return table(["training", *recorder.RULES], lines)


def visits(paths: Mapping[Setting, Mapping[int, SupportPath]]) -> Table:
    """Every training: how it behaves, when it was first exact and for how much of it, what it ended with."""
    lines = []
    for setting, runs in paths.items():
        for seed, path in runs.items():
            summary = summarize_path(path)
            exact = sum(stop - start for start, stop in summary.intervals) / path.end
            first = "–" if summary.first is None else f"{summary.first:,} of {path.end:,}"
            lines.append((title(setting), seed, summary.behavior, first, f"{exact:.0%}", _ended(path)))
    return table(["training", "seed", "behavior", "first exact", "exact for", "ended with"], lines)


def _behavior(figure: Figure, slot: SubplotSpec, path: SupportPath, text: str, *, last: bool) -> None:
    halves = slot.subgridspec(2, 1, height_ratios=[1, 2.4], hspace=0.02)
    upper = figure.add_subplot(halves[0])
    lower = figure.add_subplot(halves[1], sharex=upper)
    f1_line(upper, path, label=True)
    upper.set_title(f"{text}: {_WORDS[summarize_path(path).behavior]}", fontsize=10)
    upper.set_ylabel("$F_1$", fontsize=10)
    upper.tick_params(labelbottom=False, bottom=False, labelsize=8)
    _barcode(lower, path)
    lower.tick_params(axis="y", labelsize=11, left=False)
    lower.tick_params(axis="x", labelsize=8)
    lower.spines["left"].set_visible(False)
    lower.tick_params(labelbottom=last)
    lower.set_xlabel("progress of the training" if last else "", fontsize=10)


def _barcode(ax: Axes, path: SupportPath) -> None:
    """One bar per term while it is in the support: true terms on top and green, false ones orange."""
    entry = problem(path.about["problem"])
    true = np.isin(path.terms, [str(term) for term in entry.equation.physical()])
    order = np.argsort(~true, kind="stable").tolist()
    values = np.where(path.supports[:, order].T, true[order, None], np.nan)
    edges = np.append(path.since, path.end) / path.end
    if len(edges) == 2 and edges[0] == edges[1]:
        edges = np.array([0.0, 1.0])
    rows = np.arange(len(order) + 1) - 0.5
    ax.pcolormesh(edges, rows, np.ma.masked_invalid(values), cmap=_TERMS, vmin=0, vmax=1, rasterized=True)
    for row in rows[1:-1]:
        ax.axhline(row, color=INK, lw=0.25)
    ax.set_yticks(range(len(order)), [f"${entry.library[j].latex}$" for j in order])
    ax.set_ylim(len(order) - 0.5, -0.5)


def _of(count: int, runs: int) -> str:
    return count_of_five(count, runs) if runs else "not run"


def _ended(path: SupportPath) -> str:
    return ", ".join(path.names_at(path.end)) or "no term"
