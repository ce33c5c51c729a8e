"""The explorer of the first page: a field fitted to as many sensors as the reader leaves, and its equation.

The page carries a part of one record with draws of noise and, for every number of sensors and every noise
level, the kernels that a search on the same samples chose. It solves for the field and selects by itself.
"""

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import traitlets
from matplotlib.figure import Figure
from scipy.stats import qmc

from fts.domain import Domain
from fts.equations.equation import Equation
from fts.explorers.explorer import (
    Explorer,
    Payload,
    box_values,
    count,
    field_key,
    geometry_values,
    term_values,
)
from fts.fields.frozen import FrozenField
from fts.fitting import Fit, fit_posterior
from fts.observations import Observations
from fts.params.paper import PAPER
from fts.plotting import panel_row, use_style
from fts.problems.problems import problem
from fts.problems.trajectories import simulate
from fts.svws import rule

_PROBLEM, _SEED = "ks", 1301
# Every fourth point of the ring, and 96 frames of the developed motion: what a page fits while a hand moves.
_EVERY, _FRAMES = 4, slice(155, 251)
_SHOWN = 128  # points on the ring that are drawn and integrated
_SHARES = (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.6, 0.8, 1.0)
_LEVELS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5)
_NOISE_STEPS = 32.0  # levels of the stored noise per deviation
_TIME_STEP = 0.05
# Fewer and coarser patches than the paper's: all twenty systems in the time of a drag.
_PATCHES, _NODES = (14, 10), (24, 16)


class SensorRecord(Payload):
    """A part of a record, which sensors go first, and the kernels for every number of them."""

    def __init__(self) -> None:
        entry, trajectory, paper = problem(_PROBLEM), simulate(_PROBLEM), PAPER[_PROBLEM]
        self.x, self.t = trajectory.axes[0][::_EVERY], trajectory.t[_FRAMES]
        u = trajectory.u[::_EVERY, _FRAMES]
        box = trajectory.domain
        self.domain = Domain(box.low, box.high, float(self.t[0]), float(self.t[-1]), box.periodic)
        step = float(np.abs(u).max()) / np.iinfo(np.int16).max
        levels = np.round(u / step).astype("<i2")
        rng = np.random.default_rng(_SEED)
        noise = np.clip(np.round(_NOISE_STEPS * rng.standard_normal(u.shape)), -127, 127).astype("i1")
        # Halton's sequence in base two: however many go first, they cover the ring.
        first = np.floor(len(u) * qmc.Halton(1, scramble=True, rng=_SEED).random(len(u))[:, 0])
        self.order, self.counts = first.astype(int), [round(share * len(u)) for share in _SHARES]
        self.truth, self.noise = step * levels.astype(float), noise / _NOISE_STEPS
        self.library, self.equation = entry.library, entry.equation
        self.weak = replace(paper.weak, patches=_PATCHES, nodes=_NODES)
        self.svws = paper.svws
        info: dict[str, Any] = box_values(self.domain) | {
            "label": entry.title,
            "samples": True,
            "points": len(u),
            "frames": len(self.t),
            "shape": [_SHOWN, len(self.t)],
            "lowest": float(u.min()),
            "highest": float(u.max()),
            "step": step,
            "noise_steps": _NOISE_STEPS,
            "deviation": float(self.truth.std()),
            "time_step": _TIME_STEP,
            "order": self.order.tolist(),
            "counts": self.counts,
            "levels": list(_LEVELS),
            "settings": [[self._setting(i, j) for j in range(len(_LEVELS))] for i in range(len(_SHARES))],
            "library": [term_values(term) for term in self.library],
            "truth": self.equation.on(self.library).tolist(),
            "weak": geometry_values(self.weak),
            "svws": asdict(self.svws),
        }
        data = levels.tobytes() + noise.tobytes()
        super().__init__(data=data, info=info | {"key": field_key(data)})

    def samples(self, sensors: int, level: int) -> Observations:
        """What that many sensors read at that level of noise."""
        rows = np.sort(self.order[: self.counts[sensors]])
        values = self.truth[rows] + _LEVELS[level] * self.truth.std() * self.noise[rows]
        x, t = np.repeat(self.x[rows], len(self.t)), np.tile(self.t, len(rows))
        return Observations(x[:, None], t, values.ravel(), self.domain)

    def fit(self, sensors: int, level: int) -> Fit:
        """The field of those samples, by the search that chose the page's kernels."""
        return fit_posterior(self.samples(sensors, level), progress=False)

    def _setting(self, sensors: int, level: int) -> dict[str, Any]:
        posterior = self.fit(sensors, level).posterior
        assert posterior is not None
        choice = posterior.choice
        return {"kernels": [asdict(kernel) for kernel in choice.kernels], "nugget": choice.nugget}


class FrontExplorer(Explorer):
    """Sensors and noise, the field, the equation."""

    caption = "A few sensors, a field, an equation"
    order = ("sensors", "noise")
    view = traitlets.Unicode("front").tag(sync=True)
    sensors = count(5, 0, len(_SHARES) - 1, "Sensors")
    noise = count(2, 0, len(_LEVELS) - 1, "Noise")

    @property
    def field(self) -> FrozenField:
        """The frozen field of the present samples."""
        return self.source.fit(self.sensors, self.noise).field

    @property
    def equation(self) -> Equation:
        """What SVWS selects on it, refitted on the rows of all systems."""
        record = self.source
        systems = rule.build(self.field, record.library, record.weak, record.svws)
        return rule.select_from(systems, record.svws).with_refit("pooled").equation

    def still(self) -> Figure:
        use_style()
        record, field = self.source, self.field
        rows = np.sort(record.order[: record.counts[self.sensors]])
        read = np.full(record.truth.shape, np.nan)
        read[rows] = record.samples(self.sensors, self.noise).y.reshape(len(rows), -1)
        figure, panels = panel_row(3, 0.4)
        limits = {"vmin": record.truth.min(), "vmax": record.truth.max()}
        titles = ("what the sensors read", "the field fitted to it", "the truth, kept aside")
        for ax, values, title in zip(
            panels, (read, field.on_grid(record.x, record.t), record.truth), titles, strict=True
        ):
            ax.pcolormesh(record.x, record.t, values.T, shading="nearest", rasterized=True, **limits)
            ax.set(xlabel="$x$", title=title)
        panels[0].set_ylabel("$t$")
        figure.suptitle(f"${self.equation.latex}$")
        return figure
