"""The four explorers: frozen fields -> widgets that compute in the reader's browser (chapter "Explore").

`explorer.selection` and its kin are what NumPy says for the values the reader sees.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import traitlets
from jaxtyping import Float
from matplotlib.figure import Figure

from fts.explorers import stills
from fts.explorers.explorer import Explorer, count, number
from fts.explorers.models import Source
from fts.explorers.scripts import SEEDS
from fts.params import SVWSParams, WeakParams
from fts.svws import ablation, rule, sparse
from fts.svws.selection import Selection
from fts.weak import assembly


class SelectionExplorer(Explorer):
    """SVWS on one field: base threshold, stability, generation systems, phase seed, ridge."""

    caption = "Stability-validated selection"
    order = ("lam0_factor", "tau", "generation", "phase_seed", "ridge")
    view = traitlets.Unicode("selection").tag(sync=True)
    lam0_factor = number(1.0, 1 / 16, 16.0, 0.125, "Base threshold λ₀", base=2)
    tau = number(0.5, 0.0, 1.0, 0.05, "Stability τ")
    generation = count(12, 1, 24, "Generation systems")
    phase_seed = count(SEEDS[0], SEEDS[0], SEEDS[-1], "Phase seed")
    ridge = number(1e-4, 1e-6, 1e-1, 0.5, "Ridge", base=10)

    def defaults(self, source: Source) -> dict[str, Any]:
        """The field's own rule."""
        params = source.params
        return {name: getattr(params, name) for name in ("tau", "generation", "phase_seed", "ridge")}

    @property
    def params(self) -> SVWSParams:
        """The rule's parameters for the present values."""
        base = self.source.params
        changed = {name: getattr(self, name) for name in ("tau", "generation", "phase_seed", "ridge")}
        return replace(base, lam0=base.lam0 * self.lam0_factor, **changed)

    @property
    def selection(self) -> Selection:
        """Algorithm S1 in NumPy for the present values, with the paper's refit on the fit system."""
        return _svws(self.source, self.params)

    def still(self) -> Figure:
        """Recurrence and risks."""
        return stills.selection(self.selection, self.source.info["label"])


class PathExplorer(Explorer):
    """STLSQ on one weak system along its threshold, beside SVWS on all systems."""

    caption = "Threshold path"
    order = ("lam0_factor", "system", "phase_seed", "ridge")
    view = traitlets.Unicode("path").tag(sync=True)
    lam0_factor = number(1.0, 1 / 32, 8.0, 0.125, "Threshold λ", base=2)
    system = count(1, 1, 20, "Weak system")
    phase_seed = count(SEEDS[0], SEEDS[0], SEEDS[-1], "Phase seed")
    ridge = number(1e-4, 1e-6, 1e-1, 0.5, "Ridge", base=10)

    def defaults(self, source: Source) -> dict[str, Any]:
        """The field's own rule."""
        params = source.params
        return {name: getattr(params, name) for name in ("phase_seed", "ridge")}

    @property
    def params(self) -> SVWSParams:
        """The parameters of the selection it is compared with."""
        return replace(self.source.params, phase_seed=self.phase_seed, ridge=self.ridge)

    @property
    def single(self) -> Selection:
        """STLSQ at the present threshold on the present system, in NumPy."""
        params = self.params
        return ablation.single(self.source.systems(params)[self.system - 1], self.lam0_factor, params)

    @property
    def selection(self) -> Selection:
        """SVWS on all systems, in NumPy."""
        return _svws(self.source, self.params)

    def still(self) -> Figure:
        """Coefficients along the threshold."""
        params, source = self.params, self.source
        system = source.systems(params)[self.system - 1]
        normal = sparse.normalize(system.A, system.b)
        factors = np.geomspace(1 / 32, 8, 97)
        values = [
            sparse.stlsq(normal, factor * params.lam0, params.ridge, params.max_iterations)
            for factor in factors
        ]
        kept = [source.library.index(name) for name in self.selection.support]
        return stills.path(source.library, factors, np.array(values), kept, source.info["label"])


class PatchExplorer(Explorer):
    """One weak system under the reader's hand: phases, half-widths, power, and STLSQ on it."""

    caption = "Patches and phases"
    order = ("phase_x", "phase_y", "phase_t", "width_x", "width_t", "power", "lam0_factor")
    view = traitlets.Unicode("patches").tag(sync=True)
    phase_x = number(0.5, 0.0, 0.999, 0.01, "Phase in x")
    phase_y = number(0.5, 0.0, 0.999, 0.01, "Phase in y", dimension=2)
    phase_t = number(0.5, 0.0, 0.999, 0.01, "Phase in t")
    width_x = number(1.0, 0.25, 2.0, 0.125, "Half-width in space", base=2)
    width_t = number(1.0, 0.25, 2.0, 0.125, "Half-width in time", base=2)
    power = count(8, 2, 16, "Power p")
    lam0_factor = number(1.0, 1 / 16, 16.0, 0.125, "Threshold λ", base=2)

    def defaults(self, source: Source) -> dict[str, Any]:
        """The field's own test function."""
        return {"power": source.geometry.power}

    @property
    def geometry(self) -> WeakParams:
        """The weak system's geometry for the present values."""
        base, d = self.source.geometry, self.source.field.domain.dimension
        factors = (self.width_x,) * d + (self.width_t,)
        widths = tuple(h * factor for h, factor in zip(base.half_widths, factors, strict=True))
        return replace(base, half_widths=widths, power=self.power)

    @property
    def phase(self) -> Float[np.ndarray, " d1"]:
        """The grid's shift, a fraction of the spacing per axis."""
        axes = (self.phase_x, self.phase_y, 0.5)[: self.source.field.domain.dimension]
        return np.array([*axes, self.phase_t])

    @property
    def system(self) -> assembly.WeakSystem:
        """The weak system, in NumPy."""
        return assembly.assemble(self.source.field, self.source.library, self.geometry, self.phase)

    @property
    def single(self) -> Selection:
        """STLSQ on it, in NumPy."""
        return ablation.single(self.system, self.lam0_factor, self.source.params)

    def still(self) -> Figure:
        """The field with its patches, and the coefficients."""
        return stills.patches(self.source.field, self.system, self.geometry.half_widths, self.single)


class AdapterExplorer(Explorer):
    """Features and coefficients of one field, truncated to a rank, at a frame."""

    caption = "Features and coefficients"
    order = ("rank", "frame", "basis")
    view = traitlets.Unicode("adapter").tag(sync=True)
    rank = count(64, 0, 64, "Modes kept")
    frame = number(0.5, 0.0, 1.0, 0.01, "Frame")
    basis = traitlets.Enum(("principal", "trained"), "principal").tag(
        sync=True, label="Modes", options=["principal", "trained"]
    )

    def defaults(self, source: Source) -> dict[str, Any]:
        """All modes."""
        return {"rank": source.field.rank}

    def truncated(self, *axes: np.ndarray) -> Float[np.ndarray, "..."]:
        """The field of the background and the kept modes on the grid of the axes (x, [y,] t), in NumPy."""
        field, (*space, t) = self.source.field, axes
        F, G = field.space.on_axes(tuple(space), (0,) * len(space)), field.time.at(t, 0)
        left, sizes, right = _modes(F[:, 1:], G[1:], self.basis)
        keep = min(self.rank, len(sizes))
        u = F[:, :1] + left[:, :keep] @ right[:keep]
        u = np.logaddexp(0.0, u) if field.positive else u
        return u.reshape(*(axis.size for axis in axes))

    def still(self) -> Figure:
        """The field and its largest modes."""
        field, domain = self.source.field, self.source.field.domain
        space = tuple(
            np.linspace(low, high, 240 if domain.dimension == 1 else 49)
            for low, high in zip(domain.low, domain.high, strict=True)
        )
        F = field.space.on_axes(space, (0,) * domain.dimension)
        G = field.time.at(np.linspace(domain.t0, domain.t1, 161), 0)
        left, _, right = _modes(F[:, 1:], G[1:], self.basis)
        return stills.adapter(field, left, right)


def _svws(source: Source, params: SVWSParams) -> Selection:
    """Algorithm S1 with the paper's refit on the fit system."""
    generation, fit, validation = rule.roles(source.systems(params), params)
    return rule.choose(rule.generate(generation, params), fit, validation, params)


def _modes(F: np.ndarray, G: np.ndarray, basis: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features [n, R], sizes and coefficients [R, T]: the SVD of F G, or F and G by falling size."""
    if basis == "principal":
        q, r = np.linalg.qr(F)
        left, sizes, right = np.linalg.svd(r @ G, full_matrices=False)
        return q @ left * sizes, sizes, right
    sizes = np.linalg.norm(F, axis=0) * np.linalg.norm(G, axis=1)
    order = np.argsort(-sizes, kind="stable")
    return F[:, order], sizes[order], G[order]
