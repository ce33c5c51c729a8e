"""What the explorers show, as plain figures: for print, and for readers without JavaScript."""

import base64
import html
import io
import re
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fts.equations.equation import Equation
from fts.equations.terms import Library
from fts.fields.frozen import FrozenField
from fts.plotting import INK, PALETTE, canvas, panel_row, use_style
from fts.plotting import proposals as proposal_map
from fts.selection.selection import Candidates, Selection
from fts.weak.assembly import WeakSystem

_MOST_ROWS = 8
_LONGEST_LINE = 75  # characters of LaTeX in a line as wide as the figure


def as_html(figure: Figure, key: str, text: str) -> str:
    """The figure as an image in a holder the explorer `key` can hide; assets/heights.css keeps its room."""
    stream = io.BytesIO()
    # Every reader fetches it, few see it.
    figure.savefig(stream, format="png", dpi=88)
    plt.close(figure)
    data = base64.b64encode(stream.getvalue()).decode()
    image = f'<img alt="{html.escape(text)}" loading="lazy" src="data:image/png;base64,{data}">'
    return f'<div class="fts-still" data-key="{html.escape(key)}">{image}</div>'


def proposals(candidates: Candidates) -> Figure:
    """The support each generation system proposes at each threshold."""
    use_style()
    return proposal_map(candidates)


def selection(chosen: Selection, title: str) -> Figure:
    """Recurrence against tau, and the supports of lowest risk with the one-standard-error line."""
    use_style()
    trace, names = chosen._traced(), [f"${term.latex}$" for term in chosen.library]
    figure, (left, right) = panel_row(2, 0.5, sharey=False)
    colors = [PALETTE[0] if j in trace.stable else INK for j in range(len(names))]
    left.barh(names, trace.candidates.pi, color=colors, height=0.62)
    left.axvline(trace.tau, color=PALETTE[1], linestyle="--")
    left.invert_yaxis()
    left.set(xlabel=r"recurrence $\pi$", title=title)
    rows = sorted(trace.table(), key=lambda row: row["mu"])[:_MOST_ROWS]
    labels = [_support_text(chosen.library, row["support"]) + f"  ({row['count']})" for row in rows]
    mu, se = ([row[name] for row in rows] for name in ("mu", "se"))
    right.errorbar(mu, range(len(rows)), xerr=se, fmt="o", color=INK)
    won = [i for i, row in enumerate(rows) if row["chosen"]]
    right.plot([mu[i] for i in won], won, "o", color=PALETTE[0], zorder=3)
    right.axvline(trace.bound, color=PALETTE[1], linestyle="--")
    right.set_yticks(range(len(rows)), labels, fontsize=8)
    right.invert_yaxis()
    right.set(xscale="log", xlabel="validation risk")
    _say(figure, chosen.equation)
    return figure


def path(
    library: Library,
    thresholds: Float[np.ndarray, " n"],
    values: Float[np.ndarray, "n J"],
    chosen: Selection,
    looked_at: tuple[float, float],
) -> Figure:
    """Normalized STLSQ coefficients of one system along its threshold; SVWS's terms are thick."""
    use_style()
    figure, ax = canvas(0.7)
    kept = [library.index(name) for name in chosen.support]
    ax.axvspan(*looked_at, color=INK, alpha=0.12, linewidth=0)
    ax.plot(thresholds, thresholds, color=INK, linestyle=":", linewidth=1)
    for j, term in enumerate(library):
        alive = values[:, j] != 0
        if alive.any():
            (curve,) = ax.plot(thresholds[alive], np.abs(values[alive, j]), label=f"${term.latex}$")
            curve.set(linewidth=2.6 if j in kept else 1.2, linestyle="-" if j < len(PALETTE) else "--")
    ax.set(xscale="log", yscale="log", xlabel=r"threshold $\lambda$", ylabel="size on unit columns")
    figure.legend(loc="outside right center")
    _say(figure, chosen.equation)
    return figure


def patches(
    field: FrozenField, system: WeakSystem, half_widths: Sequence[float], single: Selection
) -> Figure:
    """The field with the patch centers and one patch, beside the coefficients STLSQ keeps."""
    use_style()
    figure, (left, right) = panel_row(2, 0.48, sharey=False, width_ratios=[1.5, 1])
    _field_map(left, field)
    left.plot(*system.centers[:, :2].T, ".", color="white", markersize=2.5)
    sizes = np.array(half_widths[:2])
    corner = system.centers[len(system) // 2][:2] - sizes
    left.add_patch(plt.Rectangle(tuple(corner), *(2 * sizes), fill=False, edgecolor="white"))
    names = [f"${term.latex}$" for term in single.library]
    right.barh(names, single.xi, color=PALETTE[0], height=0.62)
    right.invert_yaxis()
    right.set(xlabel=r"$\xi$")
    _say(figure, single.equation)
    return figure


def adapter(
    field: FrozenField, features: Float[np.ndarray, "n R"], coefficients: Float[np.ndarray, "R T"]
) -> Figure:
    """The field, and its four largest modes in space and time."""
    use_style()
    figure, panels = panel_row(3, 0.4, sharey=False)
    _field_map(panels[0], field)
    shown = min(4, features.shape[1])
    if field.domain.dimension == 1:
        x = np.linspace(field.domain.low[0], field.domain.high[0], len(features))
        panels[1].plot(x, features[:, :shown])
        panels[1].set(xlabel="$x$", title="features")
    else:
        side = round(np.sqrt(len(features)))
        panels[1].imshow(features[:, 0].reshape(side, side).T, origin="lower")
        panels[1].set(title="first feature", xticks=[], yticks=[])
    t = np.linspace(field.domain.t0, field.domain.t1, coefficients.shape[1])
    panels[2].plot(t, coefficients[:shown].T)
    panels[2].set(xlabel="$t$", title="coefficients")
    return figure


def _say(figure: Figure, equation: Equation) -> None:
    """The equation above the panels, broken before a sign where it would not fit."""
    first, *rest = re.split(r" (?=[+-] )", equation.latex)
    lines = [first]
    for part in rest:
        if len(lines[-1]) + len(part) > _LONGEST_LINE:
            lines.append(part)
        else:
            lines[-1] += f" {part}"
    figure.suptitle("\n".join(f"${line}$" for line in lines), fontsize=11, ha="left", x=0.02)


def _field_map(ax: Axes, field: FrozenField) -> None:
    """u over x and t, or over x and y at half time."""
    domain = field.domain
    axes = [np.linspace(low, high, 120) for low, high in zip(domain.low, domain.high, strict=True)]
    if domain.dimension == 1:
        t = np.linspace(domain.t0, domain.t1, 120)
        ax.pcolormesh(axes[0], t, field.on_grid(axes[0], t).T, rasterized=True)
        ax.set(xlabel="$x$", ylabel="$t$")
    else:
        half = np.array([(domain.t0 + domain.t1) / 2])
        ax.pcolormesh(*axes[:2], field.on_grid(*axes, half)[..., 0].T, rasterized=True)
        ax.set(xlabel="$x$", ylabel="$y$", aspect="equal")


def _support_text(library: Library, names: Sequence[str]) -> str:
    return ", ".join(f"${library[library.index(name)].latex}$" for name in names) or "none"
