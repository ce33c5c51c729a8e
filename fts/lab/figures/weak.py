"""Kernels, patches, phases, columns and bounds -> the figures of the chapter on weak forms."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from fts.domain import Domain, grid_points
from fts.equations.equation import Equation
from fts.equations.terms import Library, Term
from fts.fields.frozen import Field
from fts.params.types import WeakParams
from fts.plotting import INK, PALETTE, Table, canvas, legend_above, legend_beside, panel_row, table
from fts.weak.assembly import EntryBounds, WeakSystem
from fts.weak.test_functions import bump, patch_centers, quadrature

Errors = Float[np.ndarray, "settings J"]


def written_terms(written: Sequence[str], terms: Sequence[Term]) -> Table:
    """Terms as typed, and the scale, derivative and function read from them."""
    rows = []
    for text, term in zip(written, terms, strict=True):
        letters = "".join(name * n for name, n in zip("xyz", term.alpha, strict=False))
        q = Term((0, 0, 0), 1.0, term.q).latex
        rows.append((text, f"${term.latex}$", f"{term.scale:.2g}", f"${letters or '1'}$", f"${q}$"))
    return table(["typed", "read as", "scale", r"$\alpha$", "$q(u)$"], rows)


def terms_by_parts(terms: Sequence[Term]) -> Table:
    """Terms, the sum of D_alpha q that is integrated instead, and the highest derivative left in q."""
    rows = []
    for term in terms:
        parts = (Term(alpha[:3], 1.0, q, alpha[3]) for alpha, q in term.weak_parts)
        integrated = Equation(tuple(parts), np.ones(len(term.weak_parts))).latex.removeprefix("u_t = ")
        rows.append((f"${term.latex}$", f"${integrated}$", str(term.strong_derivatives)))
    return table(["term", "integrated as", "derivatives of the field"], rows)


def geometries(given: Mapping[str, WeakParams]) -> Table:
    """Half-widths, patches, nodes, power and rule of each, axis by axis."""
    columns: list[tuple[str, ...]] = [
        ("setting", "half-widths", "patches", "nodes per patch", "power $p$", "rule")
    ]
    for name, params in given.items():
        counts = (" × ".join(map(str, each)) for each in (params.patches, params.nodes))
        widths = ", ".join(f"{h:.2g}" for h in params.half_widths)
        columns.append((name, widths, *counts, str(params.power), params.rule))
    header, *rows = zip(*columns, strict=True)
    return table(header, rows)


def bumps(powers: Sequence[int], orders: Sequence[int]) -> Figure:
    """rho_p and its derivatives, scaled to their largest values; one panel per order, a curve per power."""
    s = np.linspace(-1.2, 1.2, 481)
    figure, panels = panel_row(len(orders), 0.4)
    for ax, order in zip(panels, orders, strict=True):
        for p, color in zip(powers, PALETTE, strict=False):
            values = bump(s, p, order)
            ax.plot(s, values / np.abs(values).max(), color=color, label=f"$p = {p}$")
        ax.set_title(r"$\rho_p$" if order == 0 else rf"$\rho_p^{{({order})}}$")
        ax.set(xlabel="$s$", xticks=[-1, 0, 1], yticks=[-1, 0, 1])
        ax.axhline(0, color=INK, linewidth=0.5)
    legend_above(figure, panels[0], len(powers))
    return figure


def patch(field: Field, params: WeakParams, phase: Float[np.ndarray, " d1"], row: int) -> Figure:
    """The field with the centers of a system's patches (left), one patch with its test function (right)."""
    figure, (whole, near) = panel_row(2, 0.48, "$t$", sharey=False)
    domain = field.domain
    (hx, ht), p = params.half_widths, params.power
    centers = grid_points(tuple(patch_centers(domain, params, phase)))
    _map(whole, field, (domain.low[0], domain.high[0]), (domain.t0, domain.t1))
    whole.plot(*centers.T, "+", color="white", markersize=3, markeredgewidth=0.6)
    cx, ct = centers[row]
    _map(near, field, (cx - 1.4 * hx, cx + 1.4 * hx), (ct - 1.4 * ht, ct + 1.4 * ht))
    s = np.linspace(-1, 1, 81)
    psi = np.outer(bump(s, p), bump(s, p))
    near.contour(cx + hx * s, ct + ht * s, psi.T, levels=[0.05, 0.35, 0.7], colors="white", linewidths=1.0)
    for ax in (whole, near):
        box = Rectangle((cx - hx, ct - ht), 2 * hx, 2 * ht, fill=False, edgecolor=PALETTE[1], linewidth=1.5)
        ax.add_patch(box)
    return figure


def shifted(domain: Domain, params: WeakParams, phases: Float[np.ndarray, "n d1"]) -> Figure:
    """Patch centers of several systems in a corner of the domain; the box is one spacing."""
    figure, ax = canvas(0.45)
    for phase, color in zip(phases, PALETTE, strict=False):
        grid = grid_points(tuple(axis[:4] for axis in patch_centers(domain, params, phase)))
        ax.plot(*grid.T, "o", color=color, markersize=5, label=f"({phase[0]:.2f}, {phase[1]:.2f})")
    (x0, x1), (t0, t1) = (axis[:2] for axis in patch_centers(domain, params, np.zeros(2)))
    ax.add_patch(Rectangle((x0, t0), x1 - x0, t1 - t0, fill=False, edgecolor=INK, linestyle=":"))
    ax.set(xlabel="$x$", ylabel="$t$")
    legend_beside(ax, title="phase", handletextpad=0.1)
    return figure


def noise(levels: Sequence[float], strong: Errors, weak: Errors, library: Library) -> Figure:
    """Relative error of every column against the noise: pointwise derivatives (left), weak form (right)."""
    figure, panels = panel_row(2, 0.5, "relative error", sharex=True)
    for ax, errors, title in zip(panels, (strong, weak), ("strong form", "weak form"), strict=True):
        for j, term in enumerate(library):
            ax.loglog(levels, errors[:, j], "o-", color=PALETTE[j], markersize=4, label=f"${term.latex}$")
        ax.axhline(1.0, color=INK, linewidth=0.8, linestyle=":")
        ax.set(title=title)
    figure.supxlabel("noise / deviation of $u$", color=INK, fontsize=12)
    legend_above(figure, panels[0], len(library))
    return figure


def bounds(ours: WeakSystem, reference: WeakSystem, bound: EntryBounds) -> Figure:
    """Every entry's actual error against its bound; on the diagonal the bound would be attained."""
    actual = np.abs(ours.A - reference.A)
    figure, ax = canvas(0.55)
    drawn = [j for j in range(len(ours.library)) if bound.A[:, j].any()]
    for j, color in zip(drawn, [*PALETTE, INK], strict=False):
        ax.loglog(bound.A[:, j], actual[:, j], ".", color=color, markersize=3.5)
        ax.plot([], [], "o", color=color, label=f"${ours.library[j].latex}$")
    ends = np.array([bound.A[:, drawn].min(), bound.A.max()])
    ax.plot(ends, ends, color=INK, linewidth=0.8)
    ax.set(xlabel="bound", ylabel="actual error", ylim=(1e-4 * ends[0], 2 * ends[1]))
    legend_beside(ax, handletextpad=0.1)
    return figure


def convergence(nodes: Sequence[int], errors: Errors, library: Library, order: float) -> Figure:
    """Relative quadrature error of every column against the nodes per axis, with a slope to compare."""
    figure, ax = canvas(0.5)
    for j, term in enumerate(library):
        ax.loglog(nodes, errors[:, j], "o-", color=PALETTE[j], markersize=4, label=f"${term.latex}$")
    n = np.array(nodes, dtype=float)
    guide = 4 * errors.max() * (n / n[0]) ** -order
    ax.loglog(n, guide, color=INK, linewidth=0.8, linestyle=":", label=rf"$n^{{-{order:g}}}$")
    ax.set(ylim=(0.3 * errors.min(), None))
    return _label_nodes(figure, ax, nodes)


def rules(nodes: Sequence[int], errors: Mapping[str, Sequence[float]]) -> Figure:
    """Relative error of the worst column against the nodes per axis, for each quadrature rule."""
    figure, ax = canvas(0.4)
    for color, (rule, values) in zip(PALETTE, errors.items(), strict=False):
        ax.loglog(nodes, values, "o-", color=color, markersize=4, label=rule)
    return _label_nodes(figure, ax, nodes)


def _label_nodes(figure: Figure, ax: Axes, nodes: Sequence[int]) -> Figure:
    ax.set(xlabel="nodes per axis", ylabel="relative error")
    ax.set_xticks(nodes, list(map(str, nodes)))
    ax.minorticks_off()
    legend_beside(ax)
    return figure


def _map(ax: Axes, field: Field, x: tuple[float, float], t: tuple[float, float]) -> None:
    """The field on a rectangle of space-time."""
    axes = [low + (high - low) * (1 + quadrature(300)[0]) / 2 for low, high in (x, t)]
    ax.pcolormesh(*axes, field.on_grid(*axes).T, rasterized=True)
    ax.set(xlabel="$x$", xlim=x, ylim=t)
    ax.spines[:].set_visible(False)
