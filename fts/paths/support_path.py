"""SupportPath: a recorded training as arrays, and as one file (Supplement E).

Supports are kept whenever they change, losses and coefficients at every check, the field at a few of them on
a coarse grid. What the truth has to say about them is not known here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from fts import files

_KIND = "path"
_LEVELS = 255.0


@dataclass(frozen=True)
class SupportPath:
    """One training: `about` says which; the support is `supports[k]` from step `since[k]` on."""

    about: Mapping[str, Any]
    terms: tuple[str, ...]
    steps: Int[np.ndarray, " n"]
    losses: Mapping[str, Float[np.ndarray, " n"]]
    xi: Float[np.ndarray, "n J"]
    since: Int[np.ndarray, " k"]
    supports: Bool[np.ndarray, "k J"]
    field_steps: Int[np.ndarray, " m"]
    fields: Float[np.ndarray, "m ..."]  # on even grids over the box, (x, [y,] t)

    def __post_init__(self) -> None:
        if not len(self.steps) or self.since[0] > self.steps[0] or self.since[-1] > self.steps[-1]:
            raise ValueError(
                f"supports from step {self.since[:1]} to {self.since[-1:]} do not belong to checks from "
                f"{self.steps[:1]} to {self.steps[-1:]}: record both from the first step to the last"
            )

    @property
    def end(self) -> int:
        """The last step."""
        return int(self.steps[-1])

    def support_at(self, step: int) -> Bool[np.ndarray, " J"]:
        """The terms in force at a step."""
        place = int(np.searchsorted(self.since, step, side="right")) - 1
        return self.supports[max(place, 0)]

    def names_at(self, step: int) -> tuple[str, ...]:
        """The same as words."""
        return tuple(name for name, used in zip(self.terms, self.support_at(step), strict=True) if used)

    def save(self, path: Path) -> None:
        """Write the path to a file, atomically; fields with 8 bits between each one's extremes."""
        flat = self.fields.reshape(len(self.fields), -1)
        low, high = flat.min(axis=1), flat.max(axis=1)
        scale = np.where(high > low, high - low, 1.0) / _LEVELS
        levels = np.rint((flat - low[:, None]) / scale[:, None]).astype(np.uint8)
        arrays = {
            "steps": self.steps.astype(np.int32),
            "losses": np.stack(list(self.losses.values()), axis=1).astype(np.float32),
            "xi": self.xi.astype(np.float32),
            "since": self.since.astype(np.int32),
            "supports": self.supports.astype(np.uint8),
            "field_steps": self.field_steps.astype(np.int32),
            "ranges": np.stack([low, low + scale * _LEVELS], axis=1).astype(np.float32),
            "fields": levels.reshape(self.fields.shape),
        }
        header = {"about": dict(self.about), "terms": list(self.terms), "losses": list(self.losses)}
        files.save_arrays(path, _KIND, header, arrays)


def load_path(path: Path) -> SupportPath:
    """The path in a file, every byte verified; FileError if it is damaged."""
    header, arrays = files.load_arrays(
        path, _KIND, "restore it from version control, or record it again: python -m fts.studies paths"
    )
    levels = arrays["fields"].astype(float)
    low, high = (side.reshape(-1, *[1] * (levels.ndim - 1)) for side in arrays["ranges"].astype(float).T)
    return SupportPath(
        about=header["about"],
        terms=tuple(header["terms"]),
        steps=arrays["steps"],
        losses=dict(zip(header["losses"], arrays["losses"].T, strict=True)),
        xi=arrays["xi"],
        since=arrays["since"],
        supports=arrays["supports"].astype(bool),
        field_steps=arrays["field_steps"],
        fields=low + (high - low) * levels / _LEVELS,
    )
