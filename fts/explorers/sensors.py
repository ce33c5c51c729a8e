"""Take sensors away: fields of fewer and fewer sensors by two kernels -> a slider (chapter "samples").

A page carries both fields at every number of sensors, with eight bits per value, and the selected equations.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import traitlets
from jaxtyping import Float
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from fts import files, metrics
from fts.data.problems import problem
from fts.data.trajectories import Trajectory, observe, simulate
from fts.equations.equation import Equation
from fts.explorers.explorer import Explorer, count
from fts.explorers.models import Payload, term_values, true_places
from fts.explorers.payload import field_key
from fts.explorers.scrubber import levels
from fts.fields.frozen import FrozenField
from fts.fields.shipped import load_field
from fts.observations import Observations
from fts.params import SHORT_NAMES
from fts.plots.samples import SEPARABLE, TRAVELLING
from fts.plots.style import WIDTH, use_style
from fts.studies.plans import SWEEP
from fts.svws.select import select

KERNELS = ("separable", "travelling")
_COLORS = dict(zip(KERNELS, (SEPARABLE, TRAVELLING), strict=True))
# Points in x and in t that a page shows of a field.
_SHAPE = (128, 81)
_MOST_STOPS = 16


class SensorSweep(Payload):
    """Fields of fewer and fewer sensors of one problem on a line, as bytes for a page.

    `layouts` are the samples, most sensors first; `fields` holds one field per layout for every kernel.
    """

    def __init__(self, layouts: Sequence[Observations], fields: Mapping[str, Sequence[FrozenField]]) -> None:
        if set(fields) != set(KERNELS) or any(len(made) != len(layouts) for made in fields.values()):
            raise ValueError(
                f"fields of {sorted(fields)} for {len(layouts)} layouts: give one per layout for each of "
                f"{' and '.join(KERNELS)}"
            )
        names = {one.problem for one in layouts}
        if len(names) != 1 or None in names or not 1 < len(layouts) <= _MOST_STOPS:
            raise ValueError(f"{len(layouts)} layouts of {names}: give two to {_MOST_STOPS} of one benchmark")
        entry = problem(str(layouts[0].problem))
        self.trajectory, self.library = simulate(entry.name), entry.library
        self.counts = [len(np.unique(one.x, axis=0)) for one in layouts]
        self.fields = fields
        self.found = {kernel: [_select(one, entry.name) for one in made] for kernel, made in fields.items()}
        self.errors = {
            kernel: [metrics.field_error(one, self.trajectory) for one in made]
            for kernel, made in fields.items()
        }
        truth = _shown(self.trajectory)
        low, high = float(truth.min()), float(truth.max())
        arrays = {"truth": levels(truth[None], np.array([[low, high]]))}
        for kernel in KERNELS:
            arrays |= self._side(kernel, entry.equation)
        data = files.pack_arrays("sensors", {}, arrays)
        domain = entry.domain
        info = {
            "key": field_key(data),
            "label": f"{SHORT_NAMES[entry.name]}, seed {layouts[0].seed}",
            "dimension": domain.dimension,
            "shape": list(_SHAPE),
            "low": [*domain.low, domain.t0],
            "high": [*domain.high, domain.t1],
            "lowest": low,
            "highest": high,
            "library": [term_values(term) for term in entry.library],
            "truth": true_places(entry.equation, entry.library),
            "counts": self.counts,
            "sensors": [np.unique(one.x).round(4).tolist() for one in layouts],
        }
        super().__init__(data=data, info=info)

    def _side(self, kernel: str, truth: Equation) -> dict[str, np.ndarray]:
        values = np.stack([_on_page(one, self.trajectory) for one in self.fields[kernel]])
        flat = values.reshape(len(values), -1)
        ranges = np.stack([flat.min(axis=1), flat.max(axis=1)], axis=1)
        found = self.found[kernel]
        return {
            f"{kernel}_fields": levels(values, ranges),
            f"{kernel}_ranges": ranges.astype(np.float32),
            f"{kernel}_xi": np.stack([one.on(self.library) for one in found]),
            f"{kernel}_error": np.array(self.errors[kernel]),
            f"{kernel}_exact": np.array([metrics.score(one, truth).exact for one in found], dtype=np.int32),
        }


class TakeSensorsAway(Explorer):
    """A separable and a travelling kernel on the same sensors, fewer of them from stop to stop."""

    caption = "Take sensors away"
    order = ("taken",)
    view = traitlets.Unicode("sensors").tag(sync=True)
    taken = count(0, 0, _MOST_STOPS - 1, "Sensors")

    def ranges(self, source: SensorSweep) -> dict[str, tuple[int, int]]:
        """As many stops as there are layouts."""
        return {"taken": (0, len(source.counts) - 1)}

    @property
    def equations(self) -> dict[str, Equation]:
        """What is selected on either field at the present number of sensors."""
        return {kernel: found[self.taken] for kernel, found in self.source.found.items()}

    def still(self) -> Figure:
        """Both fields at the chosen number of sensors beside the truth, and their errors at all."""
        use_style()
        sweep, k = self.source, self.taken
        figure = plt.figure(figsize=(WIDTH, 0.75 * WIDTH))
        grid = figure.add_gridspec(2, 3, height_ratios=[1.2, 1])
        truth = _shown(sweep.trajectory)
        pictures = {"the truth": truth}
        pictures |= {kernel: _on_page(made[k], sweep.trajectory) for kernel, made in sweep.fields.items()}
        for column, (name, values) in enumerate(pictures.items()):
            ax = figure.add_subplot(grid[0, column])
            ax.imshow(values.T, origin="lower", aspect="auto", vmin=truth.min(), vmax=truth.max())
            ax.set(title=name, xticks=[], yticks=[])
        ax = figure.add_subplot(grid[1, :])
        for kernel, errors in sweep.errors.items():
            ax.loglog(sweep.counts, errors, "o-", color=_COLORS[kernel], label=kernel)
        ax.axvline(sweep.counts[k], linestyle=":", color="gray")
        ax.set(xlabel="sensors", ylabel="field error")
        ax.legend()
        return figure


def shipped_sweep(name: str, seed: int) -> SensorSweep:
    """The sweep of the fields that ship with the book."""
    trajectory = simulate(name)
    layouts = [observe(trajectory, protocol, seed=seed) for protocol in SWEEP]
    recipes = dict(zip(KERNELS, ("kernel", "travelling"), strict=True))
    fields = {
        kernel: [load_field(name, protocol, seed=seed, recipe=recipe) for protocol in SWEEP]
        for kernel, recipe in recipes.items()
    }
    return SensorSweep(layouts, fields)


def _select(field: FrozenField, name: str) -> Equation:
    return select(field, name).equation


def _places(trajectory: Trajectory) -> list[np.ndarray]:
    axes = (*trajectory.axes, trajectory.t)
    return [np.linspace(0, axis.size - 1, n).astype(int) for axis, n in zip(axes, _SHAPE, strict=True)]


def _shown(trajectory: Trajectory) -> Float[np.ndarray, "nx nt"]:
    return trajectory.u[np.ix_(*_places(trajectory))]


def _on_page(field: FrozenField, trajectory: Trajectory) -> Float[np.ndarray, "nx nt"]:
    axes = (*trajectory.axes, trajectory.t)
    return field.on_grid(*(axis[at] for axis, at in zip(axes, _places(trajectory), strict=True)))
