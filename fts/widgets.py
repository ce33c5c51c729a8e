"""Frozen fields -> explorers: Jupyter widgets whose numerics run in the reader's browser (chapter "Explore").

Every control is a trait: moving a slider sets it, setting it moves the slider, and `explorer.selection` is
what NumPy says for the values the reader sees.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import anywidget
import numpy as np
import traitlets
from IPython.display import HTML, display
from jaxtyping import Float
from matplotlib.figure import Figure

from fts import sparse, stills, svws, weak
from fts.params import PAPER, SVWSParams, WeakParams
from fts.selection import Selection
from fts.sources import Source, shared_code

# The model's own module is only a door: the text behind it is in the model `code`, once for all explorers.
_DOOR = """
const doors = (globalThis[Symbol.for("fts modules")] ??= new Map());
async function render(context) {
  const id = context.model.get("code");
  if (!doors.has(id)) {
    const code = await context.model.widget_manager.get_model(id);
    doors.set(id, import(URL.createObjectURL(new Blob([code.get("text")], { type: "text/javascript" }))));
  }
  return (await doors.get(id)).default.render(context);
}
export default { render };
"""


# All of the paper's problems draw their phases from one seed; the slider offers it and those behind it.
_SEED = PAPER["kdv"].svws.phase_seed


def _number(default: float, low: float, high: float, step: float, label: str, **tags: Any) -> traitlets.Float:
    tags = {"control": True, "low": low, "high": high, "step": step, "label": label, **tags}
    return traitlets.Float(default, min=low, max=high).tag(sync=True, **tags)


def _count(
    default: int, low: int, high: int, label: str, offered: tuple[int, int] | None = None
) -> traitlets.Int:
    """An integer in [low, high]; the slider may offer fewer."""
    first, last = offered or (low, high)
    tags = {"control": True, "low": first, "high": last, "step": 1, "integer": True, "label": label}
    return traitlets.Int(default, min=low, max=high).tag(sync=True, **tags)


class Explorer(anywidget.AnyWidget):
    """What the four explorers share: fields to choose from, controls as traits, values to return to."""

    _esm = _DOOR
    order: tuple[str, ...] = ()  # the controls, as they stand on the page
    caption = ""

    view = traitlets.Unicode().tag(sync=True)
    code = traitlets.Unicode().tag(sync=True)
    sources = traitlets.List(traitlets.Unicode()).tag(sync=True)
    choice = traitlets.Int(0).tag(sync=True)
    controls = traitlets.List().tag(sync=True)
    papers = traitlets.List().tag(sync=True)  # the paper's values, one dict per field
    key = traitlets.Unicode().tag(sync=True)
    heading = traitlets.Unicode().tag(sync=True)

    def __init__(self, sources: Sequence[Source], heading: str = "", key: str = "", **values: Any) -> None:
        if not sources:
            raise ValueError("no field to explore: give at least one")
        self.offered = tuple(sources)
        traits = {name: self.class_traits()[name] for name in self.order}
        controls = [
            {
                "name": name,
                **{tag: value for tag, value in trait.metadata.items() if tag not in ("sync", "control")},
            }
            for name, trait in traits.items()
        ]
        super().__init__(
            code=shared_code().model_id,
            sources=[source.model_id for source in sources],
            controls=controls,
            key=key
            or re.sub(r"[^a-z0-9]+", "-", f"{self.view} {sources[0].info['label']}".lower()).strip("-"),
            heading=heading or self.title(sources),
        )
        common = {name: getattr(self, name) for name in self.order}
        self.papers = [common | self.defaults(source) for source in sources]
        self.choice = values.pop("choice", 0)
        for name, value in {**self.paper, **values}.items():
            setattr(self, name, value)

    def title(self, sources: Sequence[Source]) -> str:
        """The heading above the controls."""
        return self.caption if len(sources) > 1 else f"{self.caption}: {sources[0].info['label']}"

    def defaults(self, source: Source) -> dict[str, Any]:
        """The paper's values that depend on the field."""
        return {}

    @property
    def paper(self) -> dict[str, Any]:
        """The paper's values for the chosen field, to which the button returns."""
        return self.papers[self.choice]

    @property
    def source(self) -> Source:
        """The chosen field with its settings."""
        return self.offered[self.choice]

    @traitlets.observe("choice")
    def _follow_choice(self, change: Any) -> None:
        """What the paper sets differently for the new field follows it; the rest stays."""
        if self.papers:
            old, new = self.papers[change["old"]], self.papers[change["new"]]
            for name, value in new.items():
                if value != old[name]:
                    setattr(self, name, value)

    @traitlets.validate("choice")
    def _known_choice(self, proposal: Any) -> int:
        if not 0 <= proposal["value"] < len(self.offered):
            raise traitlets.TraitError(
                f"choice {proposal['value']}: there are {len(self.offered)} fields, from 0"
            )
        return proposal["value"]

    def still(self) -> Figure:
        """The explorer as a figure at its present values, for print and for pages without JavaScript."""
        raise NotImplementedError

    def _ipython_display_(self) -> None:
        # Two outputs: the figure first, which the explorer hides once it stands.
        display(HTML(stills.as_html(self.still(), self.key, self.heading)))
        view = {"version_major": 2, "version_minor": 0, "model_id": self.model_id}
        display({"application/vnd.jupyter.widget-view+json": view, "text/plain": self.heading}, raw=True)


class SelectionExplorer(Explorer):
    """SVWS on one field: base threshold, stability, generation systems, phase seed, ridge."""

    caption = "Stability-validated selection"
    order = ("lam0_factor", "tau", "generation", "phase_seed", "ridge")
    view = traitlets.Unicode("selection").tag(sync=True)
    lam0_factor = _number(1.0, 1 / 16, 16.0, 0.125, "Base threshold λ₀", base=2)
    tau = _number(0.5, 0.0, 1.0, 0.05, "Stability τ")
    generation = _count(12, 1, 24, "Generation systems")
    phase_seed = _count(_SEED, 0, 2**31, "Phase seed", offered=(_SEED, _SEED + 29))
    ridge = _number(1e-4, 1e-6, 1e-1, 0.5, "Ridge", base=10)

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
    lam0_factor = _number(1.0, 1 / 32, 8.0, 0.125, "Threshold λ", base=2)
    system = _count(1, 1, 20, "Weak system")
    phase_seed = _count(_SEED, 0, 2**31, "Phase seed", offered=(_SEED, _SEED + 29))
    ridge = _number(1e-4, 1e-6, 1e-1, 0.5, "Ridge", base=10)

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
        return svws.single(self.source.systems(params)[self.system - 1], self.lam0_factor, params)

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
    """One weak system under the reader's hand: phases, half-widths, kernel power, and STLSQ on it."""

    caption = "Patches and phases"
    order = ("phase_x", "phase_y", "phase_t", "width_x", "width_t", "power", "lam0_factor")
    view = traitlets.Unicode("patches").tag(sync=True)
    phase_x = _number(0.5, 0.0, 0.999, 0.01, "Phase in x")
    phase_y = _number(0.5, 0.0, 0.999, 0.01, "Phase in y", dimension=2)
    phase_t = _number(0.5, 0.0, 0.999, 0.01, "Phase in t")
    width_x = _number(1.0, 0.25, 2.0, 0.125, "Half-width in space", base=2)
    width_t = _number(1.0, 0.25, 2.0, 0.125, "Half-width in time", base=2)
    power = _count(8, 2, 16, "Kernel power p")
    lam0_factor = _number(1.0, 1 / 16, 16.0, 0.125, "Threshold λ", base=2)

    def defaults(self, source: Source) -> dict[str, Any]:
        """The field's own kernel."""
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
    def system(self) -> weak.WeakSystem:
        """The weak system, in NumPy."""
        return weak.assemble(self.source.field, self.source.library, self.geometry, self.phase)

    @property
    def single(self) -> Selection:
        """STLSQ on it, in NumPy."""
        return svws.single(self.system, self.lam0_factor, self.source.params)

    def still(self) -> Figure:
        """The field with its patches, and the coefficients."""
        return stills.patches(self.source.field, self.system, self.geometry.half_widths, self.single)


class AdapterExplorer(Explorer):
    """Features and coefficients of one field, truncated to a rank, at a frame."""

    caption = "Features and coefficients"
    order = ("rank", "frame", "basis")
    view = traitlets.Unicode("adapter").tag(sync=True)
    rank = _count(64, 0, 64, "Modes kept")
    frame = _number(0.5, 0.0, 1.0, 0.01, "Frame")
    basis = traitlets.Enum(("principal", "trained"), "principal").tag(
        sync=True, control=True, label="Modes", options=["principal", "trained"]
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
    generation, fit, validation = svws.roles(source.systems(params), params)
    return svws.choose(svws.generate(generation, params), fit, validation, params)


def _modes(F: np.ndarray, G: np.ndarray, basis: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features [n, R], sizes and coefficients [R, T]: the SVD of F G, or F and G by falling size."""
    if basis == "principal":
        q, r = np.linalg.qr(F)
        left, sizes, right = np.linalg.svd(r @ G, full_matrices=False)
        return q @ left * sizes, sizes, right
    sizes = np.linalg.norm(F, axis=0) * np.linalg.norm(G, axis=1)
    order = np.argsort(-sizes, kind="stable")
    return F[:, order], sizes[order], G[order]
