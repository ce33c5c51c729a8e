"""Explorers that step through recorded trainings, and through fields of fewer and fewer sensors.

A page carries every field at its stops, with eight bits per value: all that is shown, nothing else.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import traitlets
from jaxtyping import Float
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec

from fts import containers
from fts.equations.equation import Equation
from fts.explorers.explorer import Explorer, Payload, box_values, count, field_key, term_values, true_indices
from fts.fields.frozen import FrozenField, load_field
from fts.lab.figures.paths import f1_line
from fts.lab.figures.samples import SEPARABLE, TRAVELLING
from fts.lab.studies.paths import support_f1, true_field
from fts.lab.studies.plans import SWEEP
from fts.observations import Observations
from fts.params.paper import SHORT_NAMES
from fts.paths.recorder import SupportPath
from fts.plotting import WIDTH, use_style
from fts.problems import metrics
from fts.problems.problems import Problem, problem
from fts.problems.trajectories import Trajectory, observe, simulate
from fts.svws.select import select

# Shares of the training that the slider stops at, from its beginning to its end.
CHECKPOINTS = 30
_LEVELS = 255.0
KERNELS = ("separable", "travelling")
_COLORS = dict(zip(KERNELS, (SEPARABLE, TRAVELLING), strict=True))
# Points in x and in t that a page shows of a field.
_SHAPE = (128, 81)
_MOST_STOPS = 16


class PathPair(Payload):
    """A joint training and that of a frozen field on the same samples, as bytes for a page."""

    def __init__(self, joint: SupportPath, frozen: SupportPath) -> None:
        for name in ("problem", "protocol", "seed"):
            if joint.about[name] != frozen.about[name]:
                both = f"{joint.about[name]!r} beside {frozen.about[name]!r}"
                raise ValueError(f"{name} {both}: give two trainings on the same samples")
        self.joint, self.frozen = joint, frozen
        entry = problem(joint.about["problem"])
        self.library, truth = entry.library, true_field(joint)
        arrays = {
            "truth": _quantized("", truth[None])["_fields"],
            "true_xi": entry.equation.on(entry.library),
        }
        arrays |= _side("joint", joint) | _side("frozen", frozen)
        data, row = containers.pack_arrays("scrubber", {}, arrays), joint.about["row"]
        where = f"{SHORT_NAMES[entry.name]}-{joint.about['protocol']}, seed {joint.about['seed']}"
        names = {"key": field_key(data), "label": f"{row}, {where}", "method": row}
        super().__init__(data=data, info=_info(entry, truth) | names)


class FreezeAgainstJoint(Explorer):
    """Both trainings at the same share: field, coefficients, F1 and equation."""

    caption = "Freeze against joint"
    order = ("checkpoint",)
    view = traitlets.Unicode("scrubber").tag(sync=True)
    checkpoint = count(CHECKPOINTS - 1, 0, CHECKPOINTS - 1, "Training", play=True)

    @property
    def joint(self) -> Equation:
        """What the joint method would have reported, stopped here."""
        return equation_at(self.source.joint, self.checkpoint)

    @property
    def frozen(self) -> Equation:
        """What SVWS says of the field frozen here."""
        return equation_at(self.source.frozen, self.checkpoint)

    def still(self) -> Figure:
        pair, k = self.source, self.checkpoint
        methods = {pair.info["method"]: pair.joint, "adapter": pair.frozen}
        fields = {name: path.fields[_checkpoints(path)[k]] for name, path in methods.items()}
        figure, grid = _beside_truth(true_field(pair.joint), fields, [2, 1, 1])
        for row, path in enumerate((pair.joint, pair.frozen), start=1):
            ax = figure.add_subplot(grid[row, :])
            f1_line(ax, path, label=True)
            ax.axvline(k / (CHECKPOINTS - 1), linestyle=":", color="gray")
            ax.set_ylabel("$F_1$")
            ax.set_title(path.about["row"])
        return figure


class SensorSweep(Payload):
    """Fields of fewer and fewer sensors of one problem on a line, as bytes for a page.

    `layouts` are the samples, most sensors first; `fields` holds one field per layout for every kernel.
    """

    def __init__(self, layouts: Sequence[Observations], fields: Mapping[str, Sequence[FrozenField]]) -> None:
        if set(fields) != set(KERNELS) or any(len(made) != len(layouts) for made in fields.values()):
            given = f"fields of {sorted(fields)} for {len(layouts)} layouts"
            raise ValueError(f"{given}: give one per layout for each of {' and '.join(KERNELS)}")
        names = {samples.problem for samples in layouts}
        if len(names) != 1 or None in names or not 1 < len(layouts) <= _MOST_STOPS:
            raise ValueError(f"{len(layouts)} layouts of {names}: give two to {_MOST_STOPS} of one benchmark")
        entry = problem(str(layouts[0].problem))
        self.trajectory, self.library = simulate(entry.name), entry.library
        self.counts = [len(np.unique(samples.x, axis=0)) for samples in layouts]
        self.fields, self.selected, self.errors = fields, {}, {}
        truth = _shown(self.trajectory)
        arrays = {"truth": _quantized("", truth[None])["_fields"]}
        for kernel in KERNELS:
            made = fields[kernel]
            equations = self.selected[kernel] = [select(field, entry.name).equation for field in made]
            self.errors[kernel] = [metrics.field_error(field, self.trajectory) for field in made]
            exact = [metrics.score(equation, entry.equation).exact for equation in equations]
            arrays |= _quantized(kernel, np.stack([_on_page(field, self.trajectory) for field in made])) | {
                f"{kernel}_xi": np.stack([equation.on(self.library) for equation in equations]),
                f"{kernel}_error": np.array(self.errors[kernel]),
                f"{kernel}_exact": np.array(exact, dtype=np.int32),
            }
        data = containers.pack_arrays("sensors", {}, arrays)
        names = {"key": field_key(data), "label": f"{SHORT_NAMES[entry.name]}, seed {layouts[0].seed}"}
        sensors = [np.unique(samples.x).round(4).tolist() for samples in layouts]
        info = _info(entry, truth) | names | {"counts": self.counts, "sensors": sensors}
        super().__init__(data=data, info=info)


class TakeSensorsAway(Explorer):
    """A separable and a travelling kernel on the same sensors, fewer of them from stop to stop."""

    caption = "Take sensors away"
    order = ("taken",)
    view = traitlets.Unicode("sensors").tag(sync=True)
    taken = count(0, 0, _MOST_STOPS - 1, "Sensors")

    def ranges(self, source: SensorSweep) -> dict[str, tuple[int, int]]:
        return {"taken": (0, len(source.counts) - 1)}

    @property
    def equations(self) -> dict[str, Equation]:
        """What is selected on either field at the present number of sensors."""
        return {kernel: selected[self.taken] for kernel, selected in self.source.selected.items()}

    def still(self) -> Figure:
        sweep, k = self.source, self.taken
        fields = {kernel: _on_page(made[k], sweep.trajectory) for kernel, made in sweep.fields.items()}
        figure, grid = _beside_truth(_shown(sweep.trajectory), fields, [1.2, 1])
        ax = figure.add_subplot(grid[1, :])
        for kernel, errors in sweep.errors.items():
            ax.loglog(sweep.counts, errors, "o-", color=_COLORS[kernel], label=kernel)
        ax.axvline(sweep.counts[k], linestyle=":", color="gray")
        ax.set(xlabel="sensors", ylabel="field error")
        ax.legend()
        return figure


def _beside_truth(
    truth: np.ndarray, fields: Mapping[str, np.ndarray], heights: Sequence[float | int]
) -> tuple[Figure, GridSpec]:
    """A figure with the truth and two fields above, all on one color scale, and rows of these heights."""
    use_style()
    figure = plt.figure(figsize=(WIDTH, 0.75 * WIDTH))
    grid = figure.add_gridspec(len(heights), 3, height_ratios=heights)
    for column, (name, values) in enumerate({"the truth": truth, **fields}.items()):
        ax = figure.add_subplot(grid[0, column])
        shown = values if values.ndim == 2 else values[..., -1]
        ax.imshow(shown.T, origin="lower", aspect="auto", vmin=truth.min(), vmax=truth.max())
        ax.set(title=name, xticks=[], yticks=[])
    return figure, grid


def shipped_sweep(name: str, seed: int) -> SensorSweep:
    """The sweep of the fields that ship with the book."""
    trajectory = simulate(name)
    layouts = [observe(trajectory, protocol, seed=seed) for protocol in SWEEP]
    fields = {}
    for kernel, recipe in zip(KERNELS, ("kernel", "travelling"), strict=True):
        fields[kernel] = [load_field(name, protocol, seed=seed, recipe=recipe) for protocol in SWEEP]
    return SensorSweep(layouts, fields)


def equation_at(path: SupportPath, checkpoint: int) -> Equation:
    """The equation in force at one of the slider's stops."""
    library = problem(path.about["problem"]).library
    step = int(path.field_steps[_checkpoints(path)[checkpoint]])
    chosen = np.flatnonzero(path.support_at(step))
    return Equation(tuple(library[int(j)] for j in chosen), _coefficients(path, [step])[0][chosen])


def _side(name: str, path: SupportPath) -> dict[str, np.ndarray]:
    kept = _checkpoints(path)
    steps, fields = path.field_steps[kept], path.fields[kept]
    since, f1 = support_f1(path)
    at = np.searchsorted(since, steps, side="right") - 1
    return {f"{name}_steps": steps.astype(np.int32), **_quantized(name, fields)} | {
        f"{name}_xi": _coefficients(path, steps.tolist()),
        f"{name}_f1": f1[at],
        f"{name}_since": since.astype(np.int32),
        f"{name}_since_f1": f1.astype(np.float32),
    }


def _checkpoints(path: SupportPath) -> np.ndarray:
    """The kept fields nearest to even shares of the training."""
    shares = np.linspace(0, path.end, CHECKPOINTS)
    return np.abs(path.field_steps[None, :] - shares[:, None]).argmin(axis=1)


def _coefficients(path: SupportPath, steps: list[int]) -> Float[np.ndarray, "m J"]:
    """Coefficients of the support, zero elsewhere; fields are kept at checks, which have them."""
    rows = np.searchsorted(path.steps, steps)
    support = np.stack([path.support_at(step) for step in steps])
    return np.where(support, path.xi[rows].astype(float), 0.0)


def _page_rows(trajectory: Trajectory) -> list[np.ndarray]:
    sizes = zip(trajectory.u.shape, _SHAPE, strict=True)
    return [np.linspace(0, size - 1, n).astype(int) for size, n in sizes]


def _shown(trajectory: Trajectory) -> Float[np.ndarray, "nx nt"]:
    return trajectory.u[np.ix_(*_page_rows(trajectory))]


def _on_page(field: FrozenField, trajectory: Trajectory) -> Float[np.ndarray, "nx nt"]:
    x, t = _page_rows(trajectory)
    return field.on_grid(trajectory.axes[0][x], trajectory.t[t])


def _info(entry: Problem, truth: np.ndarray) -> dict[str, Any]:
    """What a page knows of a problem, and of the true field as shown."""
    return box_values(entry.domain) | {
        "shape": list(truth.shape),
        "lowest": float(truth.min()),
        "highest": float(truth.max()),
        "library": [term_values(term) for term in entry.library],
        "truth": true_indices(entry.equation, entry.library),
    }


def _quantized(name: str, fields: np.ndarray) -> dict[str, np.ndarray]:
    """Fields in eight bits, each between its own lowest and highest value, and these ranges."""
    flat = fields.reshape(len(fields), -1)
    low, high = flat.min(axis=1, keepdims=True), flat.max(axis=1, keepdims=True)
    levels = np.rint((flat - low) / np.where(high > low, high - low, 1.0) * _LEVELS).astype(np.uint8)
    ranges = np.concatenate([low, high], axis=1).astype(np.float32)
    return {f"{name}_fields": levels.reshape(fields.shape), f"{name}_ranges": ranges}
