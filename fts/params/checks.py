"""What settings may be: a setting that makes no sense is refused where it is made, not where it fails."""

import math
from numbers import Integral, Real
from typing import Any

_WORDS = {
    "count": "a whole number, one or more",
    "natural": "a whole number, zero or more",
    "positive": "a number above zero",
    "not negative": "a number, zero or above",
    "fraction": "a number from zero to one",
}
# Rule by class and field; in a tuple every entry follows it.
_RULES: dict[str, dict[str, str]] = {
    "ModelParams": dict.fromkeys(("rank", "width", "depth"), "count")
    | dict.fromkeys(("knots", "fourier_rows"), "natural")
    | {"coordinate_scale": "positive"},
    "TrainingParams": dict.fromkeys(("epochs", "frames_per_update"), "count")
    | dict.fromkeys(("background_epochs", "patience"), "natural")
    | dict.fromkeys(("learning_rate", "clip"), "positive")
    | {"weight_decay": "not negative"},
    "ProjectedParams": dict.fromkeys(("rank", "width", "updates"), "count")
    | {"knots": "natural", "learning_rate": "positive"}
    | dict.fromkeys(("weight_decay", "coefficient_ridge", "smoothness"), "not negative"),
    "WeakParams": dict.fromkeys(("patches", "nodes", "power"), "count") | {"half_widths": "positive"},
    "SVWSParams": dict.fromkeys(("generation", "validation", "max_iterations"), "count")
    | dict.fromkeys(("lam0", "multipliers"), "positive")
    | dict.fromkeys(("ridge", "epsilon"), "not negative")
    | {"tau": "fraction", "phase_seed": "natural"},
}


class Checked:
    """Settings whose fields follow the rules of their class."""

    def __post_init__(self) -> None:
        name = type(self).__name__
        for field, rule in _RULES[name].items():
            value = getattr(self, field)
            entries = value if isinstance(value, tuple) else (value,)
            if not entries or not all(_follows(entry, rule) for entry in entries):
                raise ValueError(f"{name}.{field} is {value!r}: give {_WORDS[rule]}")
        if name == "WeakParams":
            _refuse_geometry(self)


def _refuse_geometry(weak: Any) -> None:
    sizes = {len(weak.half_widths), len(weak.patches), len(weak.nodes)}
    if len(sizes) > 1 or sizes == {1}:
        raise ValueError(f"{weak}: give half widths, patches and nodes for each spatial axis and for time")
    if weak.rule not in ("midpoint", "gauss"):
        raise ValueError(f"WeakParams.rule is {weak.rule!r}: choose 'midpoint' or 'gauss'")


def _follows(value: Any, rule: str) -> bool:
    kind = Integral if rule in ("count", "natural") else Real
    if isinstance(value, bool) or not isinstance(value, kind):
        return False
    number = float(value)
    within = {
        "count": number >= 1,
        "natural": number >= 0,
        "positive": number > 0,
        "not negative": number >= 0,
        "fraction": 0 <= number <= 1,
    }
    return math.isfinite(number) and within[rule]
