"""Freeze against joint: two recorded trainings on the same samples -> a scrubber over both (chapter "paths").

A page carries every field at a few checkpoints, with eight bits per value: all that is shown, nothing else.
"""

from typing import Any

import numpy as np
import traitlets
from jaxtyping import Float
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from fts import files
from fts.data.problems import problem
from fts.equations.equation import Equation
from fts.explorers.explorer import Explorer, count
from fts.explorers.models import Payload, term_values, true_places
from fts.explorers.payload import field_key
from fts.params import SHORT_NAMES
from fts.paths.support_path import SupportPath
from fts.plots.paths import f1_line
from fts.plots.style import WIDTH, use_style
from fts.studies.path_tables import support_f1, true_field

# Shares of the training that the slider stops at, from its beginning to its end.
CHECKPOINTS = 30
_LEVELS = 255.0


class PathPair(Payload):
    """A joint training and that of a frozen field on the same samples, as bytes for a page."""

    def __init__(self, joint: SupportPath, frozen: SupportPath) -> None:
        for name in ("problem", "protocol", "seed"):
            if joint.about[name] != frozen.about[name]:
                raise ValueError(
                    f"{name} {joint.about[name]!r} beside {frozen.about[name]!r}: give two trainings on the "
                    "same samples"
                )
        self.joint, self.frozen = joint, frozen
        entry = problem(joint.about["problem"])
        self.library = entry.library
        truth = true_field(joint)
        low, high = float(truth.min()), float(truth.max())
        arrays = {
            "truth": levels(truth[None], np.array([[low, high]])),
            "true_xi": entry.equation.on(entry.library),
        }
        arrays |= _side("joint", joint) | _side("frozen", frozen)
        data = files.pack_arrays("scrubber", {}, arrays)
        domain = entry.domain
        info = {
            "key": field_key(data),
            "label": _label(joint),
            "method": joint.about["row"],
            "dimension": domain.dimension,
            "shape": list(truth.shape),
            "low": [*domain.low, domain.t0],
            "high": [*domain.high, domain.t1],
            "lowest": low,
            "highest": high,
            "library": [term_values(term) for term in entry.library],
            "truth": true_places(entry.equation, entry.library),
        }
        super().__init__(data=data, info=info)


class FreezeAgainstJoint(Explorer):
    """Both trainings at the same share: field, coefficients, F1 and equation."""

    caption = "Freeze against joint"
    order = ("checkpoint",)
    view = traitlets.Unicode("scrubber").tag(sync=True)
    checkpoint = count(CHECKPOINTS - 1, 0, CHECKPOINTS - 1, "Training")

    @property
    def joint(self) -> Equation:
        """What the joint method would have reported, stopped here."""
        return equation_at(self.source.joint, self.checkpoint)

    @property
    def frozen(self) -> Equation:
        """What SVWS says of the field frozen here."""
        return equation_at(self.source.frozen, self.checkpoint)

    def still(self) -> Figure:
        """Both fields at the chosen checkpoint beside the truth, and F1 along both trainings."""
        use_style()
        pair, k = self.source, self.checkpoint
        figure = plt.figure(figsize=(WIDTH, 0.75 * WIDTH))
        grid = figure.add_gridspec(3, 3, height_ratios=[2, 1, 1])
        truth = true_field(pair.joint)
        rows = {
            "the truth": truth,
            pair.info["method"]: pair.joint.fields[_places(pair.joint)[k]],
            "adapter": pair.frozen.fields[_places(pair.frozen)[k]],
        }
        for column, (name, values) in enumerate(rows.items()):
            ax = figure.add_subplot(grid[0, column])
            shown = values if values.ndim == 2 else values[..., -1]
            ax.imshow(shown.T, origin="lower", aspect="auto", vmin=truth.min(), vmax=truth.max())
            ax.set(title=name, xticks=[], yticks=[])
        for row, path in enumerate((pair.joint, pair.frozen), start=1):
            ax = figure.add_subplot(grid[row, :])
            f1_line(ax, path, label=True)
            ax.axvline(k / (CHECKPOINTS - 1), linestyle=":", color="gray")
            ax.set_ylabel("$F_1$")
            ax.set_title(path.about["row"])
        return figure


def equation_at(path: SupportPath, checkpoint: int) -> Equation:
    """The equation in force at one of the slider's stops."""
    library = problem(path.about["problem"]).library
    step = int(path.field_steps[_places(path)[checkpoint]])
    chosen = np.flatnonzero(path.support_at(step))
    return Equation(tuple(library[int(j)] for j in chosen), _coefficients(path, [step])[0][chosen])


def _side(name: str, path: SupportPath) -> dict[str, np.ndarray]:
    places = _places(path)
    steps, fields = path.field_steps[places], path.fields[places]
    flat = fields.reshape(len(fields), -1)
    ranges = np.stack([flat.min(axis=1), flat.max(axis=1)], axis=1)
    since, f1 = support_f1(path)
    at = np.searchsorted(since, steps, side="right") - 1
    return {
        f"{name}_steps": steps.astype(np.int32),
        f"{name}_fields": levels(fields, ranges),
        f"{name}_ranges": ranges.astype(np.float32),
        f"{name}_xi": _coefficients(path, steps.tolist()),
        f"{name}_f1": f1[at],
        f"{name}_since": since.astype(np.int32),
        f"{name}_since_f1": f1.astype(np.float32),
    }


def _places(path: SupportPath) -> np.ndarray:
    """The kept fields nearest to even shares of the training."""
    shares = np.linspace(0, path.end, CHECKPOINTS)
    return np.abs(path.field_steps[None, :] - shares[:, None]).argmin(axis=1)


def _coefficients(path: SupportPath, steps: list[int]) -> Float[np.ndarray, "m J"]:
    """Coefficients of the support, zero elsewhere; fields are kept at checks, which have them."""
    rows = np.searchsorted(path.steps, steps)
    support = np.stack([path.support_at(step) for step in steps])
    return np.where(support, path.xi[rows].astype(float), 0.0)


def levels(values: np.ndarray, ranges: np.ndarray) -> np.ndarray:
    """Values in eight bits, each array between the two ends of its row of `ranges`."""
    low, high = (side.reshape(-1, *[1] * (values.ndim - 1)) for side in ranges.T)
    return np.rint((values - low) / np.where(high > low, high - low, 1.0) * _LEVELS).astype(np.uint8)


def _label(path: SupportPath) -> str:
    about: Any = path.about
    return f"{about['row']}, {SHORT_NAMES[about['problem']]}-{about['protocol']}, seed {about['seed']}"
