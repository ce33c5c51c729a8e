"""Selections -> the figures and tables of the chapter on stability-validated weak selection."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from fts.equations.equation import Equation
from fts.fields.frozen import Field
from fts.params.types import WeakParams
from fts.plotting import INK, PALETTE, Table, canvas, panel_row, support_text, table
from fts.plotting import proposals as proposals
from fts.plotting import recurrence as recurrence
from fts.plotting import risks as risks
from fts.problems import metrics
from fts.selection.selection import Selection, Trace

Values = Float[np.ndarray, "nx nt"]
Centers = Float[np.ndarray, "m d1"]
Rows = Float[np.ndarray, " m"]


def validation(trace: Trace) -> Table:
    """The eligible supports with their counts, risks and fate, the lowest mean first."""
    lines = []
    for row in np.argsort(trace.mu, kind="stable"):
        index = trace.eligible[row]
        fate = "chosen" if row == trace.winner else "admissible" if row in trace.admissible else "dropped"
        risk = plus_minus(float(trace.mu[row]), float(trace.se[row]))
        lines.append((support_text(trace.candidates, index), trace.candidates.counts[index], risk, fate))
    return table(["support", "proposed", r"risk $\mu \pm \mathrm{se}$", "fate"], lines)


def refits(selection: Selection) -> Table:
    """Coefficients with standard errors of every refit."""
    rows = []
    for name, refit in selection.refits.items():
        chosen = refit.xi != 0
        pairs = zip(refit.xi[chosen], refit.deviation[chosen], strict=True)
        label = f"{name}, preferred" if name == selection.preferred else name
        rows.append((label, *(plus_minus(c, s) for c, s in pairs)))
    terms = [f"${selection.library[selection.library.index(name)].latex}$" for name in selection.support]
    return table(["refit", *terms], rows)


def refit_errors(selections: Mapping[str, Selection], truth: Equation) -> Table:
    """E_xi of every refit of the named selections, by the truth."""

    def error(selection: Selection, name: str) -> str:
        known = name in selection.refits
        return f"{metrics.score(selection.with_refit(name), truth).e_xi:.2g}" if known else "–"

    names = dict.fromkeys(name for selection in selections.values() for name in selection.refits)
    rows = [(name, *(error(selection, name) for selection in selections.values())) for name in names]
    return table(["refit", *selections], rows)


def plus_minus(value: float, deviation: float) -> str:
    """Value and deviation to the deviation's second digit, as a formula that does not break."""
    digits = 3 if deviation <= 0 else max(0, 1 - int(np.floor(np.log10(deviation))))
    return rf"${value:.{digits}f} \pm {deviation:.{digits}f}$"


def residual_tails(residual: Rows) -> Figure:
    """Sizes of the rows' residuals against a Gaussian's of the same median, which lies on the line."""
    from scipy.stats import norm

    sizes = np.sort(np.abs(residual))
    levels = (np.arange(len(sizes)) + 0.5) / len(sizes)
    scale = 1.4826 * float(np.median(sizes))
    figure, ax = canvas(0.42)
    ax.loglog(norm.ppf(0.5 + levels / 2), sizes / scale, ".", markersize=3, color=PALETTE[0])
    ends = norm.ppf(0.5 + levels[[0, -1]] / 2)
    ax.plot(ends, ends, color=INK, linewidth=1)
    ax.axhline(4.685, color=PALETTE[1], linewidth=1.2)
    ax.annotate("weight zero above", (1.2e-2, 5.2), color=PALETTE[1], va="bottom")
    ax.set(xlabel="Gaussian quantile", ylabel=r"$|A\xi - b|$ / scale", xlim=(1e-2, 6), ylim=(1e-3, None))
    return figure


def where_rows_fail(
    field: Field, truth: Values, axes: Sequence[np.ndarray], centers: Centers, weights: Rows
) -> Figure:
    """Left the field's error over x and t, right the patches by the weight the robust refit gives them."""
    x, t = axes
    figure, panels = panel_row(2, 0.5, "$t$")
    error = np.abs(field.on_grid(x, t) - truth)
    mesh = panels[0].pcolormesh(x, t, error.T, vmin=0, vmax=np.quantile(error, 0.99), rasterized=True)
    figure.colorbar(mesh, ax=panels[0], location="bottom", label=r"$|\hat u - u|$")
    order = np.argsort(-weights)
    colors = LinearSegmentedColormap.from_list("weights", [PALETTE[1], PALETTE[0]])
    dots = panels[1].scatter(*centers[order].T, c=weights[order], s=4, cmap=colors, vmin=0, vmax=1)
    figure.colorbar(dots, ax=panels[1], location="bottom", label="weight of the patch's row")
    for ax in panels:
        ax.set_xlabel("$x$")
        ax.spines[:].set_visible(False)
    return figure


def error_under(
    field: Field, truth: Values, axes: Sequence[np.ndarray], centers: Centers, geometry: WeakParams
) -> Rows:
    """The field's mean absolute error on each patch."""
    error = np.abs(field.on_grid(*axes) - truth)
    sides = zip(axes, centers.T, geometry.half_widths, strict=True)
    halves = [np.abs(axis - middle[:, None]) < h for axis, middle, h in sides]
    return np.array([error[np.ix_(*box)].mean() for box in zip(*halves, strict=True)])


def residuals_by_variance(variances: Rows, residual: Rows) -> Figure:
    """Sizes of the rows' residuals against the field's variance under their kernels, with running medians."""
    figure, ax = canvas(0.42)
    sizes = np.abs(residual)
    ax.loglog(variances, sizes, ".", markersize=2, color=PALETTE[0], alpha=0.4, rasterized=True)
    groups = np.array_split(np.argsort(variances), 20)
    medians = [(np.median(variances[group]), np.median(sizes[group])) for group in groups]
    ax.loglog(*np.transpose(medians), ".-", color=PALETTE[1])
    ax.set(xlabel="posterior variance under the patch", ylabel=r"$|A\xi - b|$")
    return figure
