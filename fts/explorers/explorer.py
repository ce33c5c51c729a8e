"""What all explorers share: frozen fields as models that a notebook holds once, and controls that are traits.

A page carries a field's bytes, about 80 KB, and the text of js/ once for all its explorers. Every spatial
half goes as a series, all that a browser evaluates: few coefficients hold a network's analytic features.
Shipped fields take 85 KB in the mean with float32 series, 84 KB with weights; features agree to 4e-7, weak
systems to 1e-7.
"""

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import anywidget
import ipywidgets
import numpy as np
import traitlets
from IPython.display import HTML, display
from matplotlib.figure import Figure

from fts.domain import Domain
from fts.equations.equation import Equation
from fts.equations.expressions import Expression
from fts.equations.grammar import TermError
from fts.equations.terms import Library, Term, factor_and_text
from fts.explorers import stills
from fts.fields.frozen import FrozenField, TabulatedField
from fts.fields.series import as_series
from fts.observations import Observations
from fts.params.paper import PAPER, SHORT_NAMES
from fts.params.types import SVWSParams, WeakParams
from fts.problems.trajectories import Trajectory
from fts.svws import rule
from fts.weak.assembly import WeakSystem
from fts.weak.test_functions import quadrature

# Relative to a feature's largest coefficient; float32 resolves 6e-8.
_TOLERANCE = 5e-8
# Sets of weak systems that a source keeps.
_MOST_KEPT = 32
# All of the paper's problems draw their phases from one seed; explorers offer it and those behind it.
SEEDS = range(PAPER["kdv"].svws.phase_seed, PAPER["kdv"].svws.phase_seed + 30)

# The grids an explorer evaluates a field on by dimension, as in js/view_adapter.js.
SHAPES = {1: (240, 161), 2: (49, 49, 61)}

_FOLDER = Path(__file__).resolve().parent / "js"
# Joined in this order: a file imports only files before it.
_NUMERICS = (
    *("container", "phases", "linear", "splines", "series", "field", "gaussian", "terms", "forward"),
    *("weak", "sparse", "svws", "errors", "modes", "tasks", "worker"),
)
_FRONT = (
    *("container", "terms", "engine", "palette", "charts", "share", "style", "frame", "view_selection"),
    *("view_path", "view_patches", "view_proposals", "view_adapter", "view_scrubber", "view_pool"),
    *("view_sensors", "view_front", "view_bump", "view_variation", "supports", "view_noise"),
    *("view_experiments", "main"),
)
# Numbers per seed: up to 24 generation systems, one fit and seven validation systems, on three axes and time.
_DRAWN = (24 + 1 + 7) * 4


class Code(ipywidgets.Widget):
    """The explorers' module, one per notebook."""

    text = traitlets.Unicode().tag(sync=True)


class Payload(ipywidgets.Widget):
    """Bytes that a page carries once, and what an explorer must know to read them."""

    data = traitlets.Bytes().tag(sync=True)
    info = traitlets.Dict().tag(sync=True)


class Source(Payload):
    """A frozen field's bytes, with the library and settings it is explored with."""

    def __init__(
        self,
        field: FrozenField,
        library: Library,
        geometry: WeakParams,
        params: SVWSParams,
        truth: Equation | None,
        systems: tuple[WeakSystem, ...] | None = None,
    ) -> None:
        library.check_autonomous("an explorer")
        self.field, self.library, self.geometry, self.params = field, library, geometry, params
        self._built = {} if systems is None else {_drawn_by(params): systems}
        data = field_bytes(field)
        info = box_values(field.domain) | {
            "key": field_key(data),
            "label": field_label(field),
            "rank": field.rank,
            "library": [term_values(term) for term in library],
            "weak": geometry_values(geometry),
            "svws": asdict(params),
            "truth": None if truth is None else true_values(truth, library),
            "highest": max(sum(term.alpha) for term in library),
        }
        super().__init__(data=data, info=info)

    def systems(self, params: SVWSParams) -> tuple[WeakSystem, ...]:
        """R_g + 1 + R_v systems of the seed in NumPy, kept while only thresholds change."""
        key = _drawn_by(params)
        if key not in self._built:
            if len(self._built) >= _MOST_KEPT:
                self._built.pop(next(iter(self._built)))
            self._built[key] = rule.build(self.field, self.library, self.geometry, params)
        return self._built[key]


class Reference(ipywidgets.Widget):
    """What an explorer lays beside a field: the true values on its grid, and where the samples lie."""

    data = traitlets.Bytes().tag(sync=True)  # 16-bit integers; u = low + step * integer
    info = traitlets.Dict().tag(sync=True)

    def __init__(self, truth: Trajectory, samples: Observations | None) -> None:
        domain = truth.domain
        ends = zip((*domain.low, domain.t0), (*domain.high, domain.t1), SHAPES[domain.dimension], strict=True)
        field = TabulatedField((*truth.axes, truth.t), truth.u, domain)
        u = field.on_grid(*(np.linspace(*each) for each in ends))
        step = max(float(np.ptp(u)) / 65535, 1e-300)
        levels = np.round((u - u.min()) / step).astype("<u2")
        grid = samples.grid if samples is not None else None
        seen = {} if grid is None else {"sensors": grid.sensors.tolist(), "frames": grid.frames.tolist()}
        super().__init__(data=levels.tobytes(), info={"low": float(u.min()), "step": step, **seen})


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


def number(default: float, low: float, high: float, step: float, label: str, **tags: Any) -> traitlets.Float:
    """A control for a number in [low, high]; `base` makes its slider logarithmic."""
    tags = {"low": low, "high": high, "step": step, "label": label, **tags}
    return traitlets.Float(default, min=low, max=high).tag(sync=True, **tags)


def count(default: int, low: int, high: int, label: str, **tags: Any) -> traitlets.Int:
    """A control for an integer in [low, high]; `button` draws the next one instead of a slider."""
    tags = {"low": low, "high": high, "step": 1, "integer": True, "label": label, **tags}
    return traitlets.Int(default, min=low, max=high).tag(sync=True, **tags)


class Explorer(anywidget.AnyWidget):
    """What all explorers share: fields to choose from, controls as traits, values to return to."""

    _esm = _DOOR
    order: tuple[str, ...] = ()  # the controls, as they stand on the page
    caption = ""

    view = traitlets.Unicode().tag(sync=True)
    code = traitlets.Unicode().tag(sync=True)
    sources = traitlets.List(traitlets.Unicode()).tag(sync=True)
    choice = traitlets.Int(0).tag(sync=True)
    controls = traitlets.List().tag(sync=True)
    papers = traitlets.List().tag(sync=True)  # the paper's values, one dict per field
    limits = traitlets.List().tag(sync=True)  # what a field narrows of the controls' ranges, one dict each
    references = traitlets.List(traitlets.Unicode()).tag(sync=True)
    key = traitlets.Unicode().tag(sync=True)
    heading = traitlets.Unicode().tag(sync=True)
    first = traitlets.Dict().tag(sync=True)  # the answer at the values it opens with, where a page takes long

    def __init__(self, sources: Sequence[Payload], heading: str = "", key: str = "", **values: Any) -> None:
        if not sources:
            raise ValueError("no field to explore: give at least one")
        self.offered = tuple(sources)
        traits = self.class_traits()
        controls = [{"name": name, **traits[name].metadata} for name in self.order]
        for control in controls:
            del control["sync"]
        words = re.findall(r"[a-z0-9]+", f"{self.view} {sources[0].info['label']}".lower())
        models = {"code": shared_code().model_id, "sources": [source.model_id for source in sources]}
        heading = heading or self.title(sources)
        super().__init__(**models, controls=controls, key=key or "-".join(words), heading=heading)
        common = {name: getattr(self, name) for name in self.order}
        self.papers = [common | self.defaults(source) for source in sources]
        self.limits = [self.ranges(source) for source in sources]
        self.choice = values.pop("choice", 0)
        for name, value in {**self.paper, **self.start(), **values}.items():
            setattr(self, name, value)

    def title(self, sources: Sequence[Payload]) -> str:
        """The heading above the controls."""
        return self.caption if len(sources) > 1 else f"{self.caption}: {sources[0].info['label']}"

    def defaults(self, source: Any) -> dict[str, Any]:
        """The paper's values that depend on the field."""
        return {}

    def ranges(self, source: Any) -> dict[str, tuple[int, int]]:
        """Ranges of controls that the field narrows."""
        return {}

    def start(self) -> dict[str, Any]:
        """Values to begin with where the paper's show nothing."""
        return {}

    @property
    def paper(self) -> dict[str, Any]:
        """The paper's values for the chosen field, to which the button returns."""
        return self.papers[self.choice]

    @property
    def source(self) -> Any:
        """What is chosen: in most explorers a field with its settings."""
        return self.offered[self.choice]

    @traitlets.observe("choice")
    def _follow_choice(self, change: Any) -> None:
        """What the paper sets differently for the new field follows it; the rest stays."""
        if self.papers:
            old, new = self.papers[change["old"]], self.papers[change["new"]]
            for name, value in new.items():
                if value != old[name]:
                    setattr(self, name, value)
            for name, (low, high) in self.limits[change["new"]].items():
                setattr(self, name, min(max(getattr(self, name), low), high))

    @traitlets.validate("choice")
    def _known_choice(self, proposal: Any) -> int:
        if not 0 <= (value := proposal["value"]) < len(self.offered):
            raise traitlets.TraitError(f"choice {value}: there are {len(self.offered)} fields, from 0")
        return value

    def answer(self) -> dict[str, Any]:
        """What the page's worker would answer at the present values; empty where it answers at once."""
        return {}

    def still(self) -> Figure:
        """The explorer as a figure at its present values, for print and for pages without JavaScript."""
        raise NotImplementedError

    def _ipython_display_(self) -> None:
        self.first = self.answer()
        # Two outputs: the figure first, which the explorer hides once it stands.
        display(HTML(stills.as_html(self.still(), self.key, self.heading)))
        view = {"version_major": 2, "version_minor": 0, "model_id": self.model_id}
        display({"application/vnd.jupyter.widget-view+json": view, "text/plain": self.heading}, raw=True)


def _drawn_by(params: SVWSParams) -> tuple[int, int, int]:
    """What of the rule decides which systems are built."""
    return params.generation, params.validation, params.phase_seed


@lru_cache(maxsize=1)
def shared_code() -> Code:
    """The one model of the module's text."""
    return Code(text=module())


def field_bytes(field: FrozenField) -> bytes:
    """The field's file, with series in place of a network."""
    if field.space.kind != "series":
        series = as_series(field.space, field.domain, _TOLERANCE)
        field = replace(field, space=replace(series, coefficients=series.coefficients.astype(np.float32)))
    return field.packed()


def field_key(data: bytes) -> str:
    """Sixteen hex digits that name a field by its content."""
    return hashlib.sha256(data).hexdigest()[:16]


def geometry_values(geometry: WeakParams) -> dict[str, Any]:
    """The geometry for the browser, with nodes and weights on [-1, 1] for each axis."""
    axes = [[part.tolist() for part in quadrature(n, geometry.rule)] for n in geometry.nodes]
    return asdict(geometry) | {"quadrature": axes}


def box_values(domain: Domain) -> dict[str, Any]:
    """The space-time box for the browser."""
    low, high = [*domain.low, domain.t0], [*domain.high, domain.t1]
    return {"dimension": domain.dimension, "low": low, "high": high}


def field_label(field: FrozenField) -> str:
    """What a reader sees of where a field comes from: "KS T20, seed 1301, 10 % noise, kernel"."""
    made = field.made
    if not made.problem:
        return "Frozen field"
    parts = [f"{SHORT_NAMES.get(made.problem, made.problem)} {made.protocol or ''}".strip()]
    parts += [f"seed {made.seed}"] if made.seed is not None else []
    parts += [f"{100 * made.noise:g} % noise"] if made.noise else []
    parts += [made.recipe] if made.recipe not in ("", "paper") else []
    return ", ".join(parts)


def term_values(term: Term) -> dict[str, Any]:
    """A term as JSON: its text, and scale * D_alpha q(u) as numbers."""
    # "2*u_x" is said as 2c u_x: the factor goes into the coefficient, as in Equation.
    factor, body = factor_and_text(term)
    words = {"name": str(term), "factor": factor, "body": body, "alpha": list(term.alpha)}
    return words | {"scale": term.scale, "q": _expression_values(term.q)}


def _expression_values(q: Expression) -> list[Any]:
    return [
        [[[f.name, _expression_values(f.argument), power] for f, power in factors], coefficient]
        for factors, coefficient in q.monomials
    ]


def true_indices(truth: Equation, library: Library) -> list[int] | None:
    """Places of the true terms, or None when the library cannot say the truth."""
    values = true_values(truth, library)
    return None if values is None else [j for j, value in enumerate(values) if value]


def true_values(truth: Equation, library: Library) -> list[float] | None:
    """The true coefficients on the library, or None when it cannot say the truth."""
    try:
        return truth.on(library).tolist()
    except TermError:
        return None


@cache
def numerics() -> str:
    """The worker's script: fields, weak systems, STLSQ and SVWS, without a page."""
    return f"const DRAWN = {json.dumps(_drawn())};\n{join_modules(_NUMERICS)}"


@cache
def module() -> str:
    """The ES module whose default export renders an explorer; it carries the worker's script as a string."""
    return f"const NUMERICS = {json.dumps(numerics(), ensure_ascii=False)};\n{join_modules(_FRONT)}"


def _drawn() -> dict[str, str]:
    """What NumPy draws for every seed, in base64: 41 KB, so that pages need not repeat its generator."""
    drawn = {seed: np.random.default_rng(seed).random(_DRAWN).astype("<f8") for seed in SEEDS}
    return {str(seed): base64.b64encode(values.tobytes()).decode() for seed, values in drawn.items()}


def join_modules(names: tuple[str, ...]) -> str:
    """The files as one: their imports and exports fall away, and comments, which pages need not carry."""
    text = "".join((_FOLDER / f"{name}.js").read_text(encoding="utf-8") for name in names)
    text = re.sub(r"^import [^;]*;\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^\s*//.*\n|^\s*/\*\*[\s\S]*?\*/\n", "", text, flags=re.MULTILINE)
    # Neither do pages need the indentation.
    return re.sub(r"^[ \t]*(?:export (?!default ))?", "", text, flags=re.MULTILINE)
