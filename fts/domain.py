"""The space-time box a field lives on: the one thing about a problem that both truth and method may know."""

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from jaxtyping import Float

# Extents within these powers of ten: beyond them derivatives of the highest order leave float64.
_SHORTEST, _LONGEST = 1e-20, 1e20
# An extent below this fraction of its ends is lost in their rounding.
_RESOLVED = 1e-12


@dataclass(frozen=True)
class Domain:
    """The box [low, high] x [t0, t1] the field lives on, and which spatial axes close on themselves."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    t0: float
    t1: float
    periodic: tuple[bool, ...]

    def __post_init__(self) -> None:
        for name in ("low", "high", "periodic"):
            entries = getattr(self, name)
            if not isinstance(entries, (tuple, list)) and getattr(entries, "ndim", 0) != 1:
                raise ValueError(
                    f"{name} is {_in_short(entries)}: give a tuple with one entry per spatial axis, as in "
                    "fts.Domain((0.0,), (1.0,), 0.0, 1.0, (False,))"
                )
            object.__setattr__(self, name, tuple(entries))
        if not len(self.low) == len(self.high) == len(self.periodic) in (1, 2, 3):
            raise ValueError(
                f"low {_in_short(self.low)}, high {_in_short(self.high)} and periodic "
                f"{_in_short(self.periodic)} differ: "
                "give one entry per spatial axis, one to three of them"
            )
        if not all(isinstance(closed, (bool, np.bool_)) for closed in self.periodic):
            raise ValueError(
                f"periodic {_in_short(self.periodic)}: give True or False for every spatial axis"
            )
        ends = (*self.low, *self.high, self.t0, self.t1)
        if not all(isinstance(end, Real) and not isinstance(end, bool) for end in ends):
            raise ValueError(f"ends {_in_short(ends)}: give numbers")
        # Plain values, whatever numbers were given: files and messages hold them as they are.
        object.__setattr__(self, "periodic", tuple(map(bool, self.periodic)))
        object.__setattr__(self, "low", tuple(map(_as_float, self.low)))
        object.__setattr__(self, "high", tuple(map(_as_float, self.high)))
        object.__setattr__(self, "t0", _as_float(self.t0))
        object.__setattr__(self, "t1", _as_float(self.t1))
        for low, high, _ in self.axes:
            if not (np.isfinite(low) and np.isfinite(high) and low < high):
                raise ValueError(f"the interval [{low}, {high}] is empty or infinite: give low < high")
            shortest = max(_SHORTEST, _RESOLVED * max(abs(low), abs(high)))
            if not shortest <= high - low <= _LONGEST:
                raise ValueError(
                    f"the interval [{low}, {high}] is {high - low:.3g} long, beyond what float64 resolves: "
                    "change the unit or the origin of that axis"
                )

    @property
    def dimension(self) -> int:
        """Number of spatial axes."""
        return len(self.low)

    @property
    def axes(self) -> tuple[tuple[float, float, bool], ...]:
        """Ends of every axis, and whether it closes on itself: space, then time."""
        space = zip(self.low, self.high, self.periodic, strict=True)
        return (*space, (self.t0, self.t1, False))

    @property
    def names(self) -> tuple[str, ...]:
        """Letters of the axes: x, y and z as far as there are any, then t."""
        return (*"xyz"[: self.dimension], "t")

    @property
    def extents(self) -> tuple[float, ...]:
        """Lengths of the spatial axes, then of time."""
        return tuple(high - low for low, high, _ in self.axes)

    def as_text(self) -> str:
        """The box as messages show it."""
        return " x ".join(f"[{low:g}, {high:g}]" for low, high, _ in self.axes)

    def as_dict(self) -> dict[str, Any]:
        """JSON form, for file headers."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in vars(self).items()}

    @staticmethod
    def from_dict(value: dict[str, Any]) -> "Domain":
        """The domain a header describes."""
        low, high, periodic = (tuple(value[name]) for name in ("low", "high", "periodic"))
        return Domain(low, high, value["t0"], value["t1"], periodic)


def _in_short(value: Any) -> str:
    return " ".join(repr(value).split())[:60]


def _as_float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf")


def grid_points(axes: tuple[np.ndarray, ...]) -> Float[np.ndarray, "n d"]:
    """All points of the tensor grid of `axes`, in C order."""
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def cosine_and_sine(phase: Float[np.ndarray, "..."]) -> tuple[np.ndarray, np.ndarray]:
    """Both from the tangent of half the phase, which NumPy computes several times as fast as either."""
    tangent = np.tan(phase / 2)
    factor = tangent**2
    factor += 1
    np.divide(2, factor, out=factor)
    tangent *= factor
    factor -= 1
    return factor, tangent
