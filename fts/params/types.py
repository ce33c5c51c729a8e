"""What settings may be: a setting that makes no sense is refused where it is made, not where it fails.

What every number means: settings as frozen dataclasses; variants are made with `dataclasses.replace`.
"""

import math
from dataclasses import dataclass, fields, is_dataclass, replace
from numbers import Integral, Real
from typing import Any, Literal

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


Rule = Literal["midpoint", "gauss"]
# Which coefficients are reported: the paper's ridge refit, the refit that held-out regions prefer, or the one
# they prefer of those whose rows are weighted by a kernel field's posterior variance.
Reported = Literal["ridge", "preferred", "weighted"]


@dataclass(frozen=True)
class ModelParams(Checked):
    """The structured model: a network for the spatial features, splines for their coefficients (A.3)."""

    rank: int  # R spatial features
    width: int  # hidden units per layer
    depth: int  # hidden layers
    knots: int  # K internal knots; M = K + 4 splines
    fourier_rows: int  # rows of B, each giving a sine and a cosine; 0 feeds the raw coordinates
    coordinate_scale: float  # x-tilde = coordinate_scale * x before the encoding
    positive: bool  # Softplus output, for fields that are positive by nature

    @property
    def splines(self) -> int:
        """M, the size of the clamped cubic basis."""
        return self.knots + 4


@dataclass(frozen=True)
class PenaltyParams:
    """What is added to the observation loss: the Gram penalty R_phi and the curvature penalty R_t (A.3)."""

    ramp_start: int  # first update with penalties
    ramp_length: int  # updates over which they grow to their targets
    lam_phi: float
    lam_t: float
    cap_phi: float  # weighted penalty at most this fraction of the observation loss
    cap_t: float
    gram_points: int  # N_g
    curvature_points: int  # time grid of the curvature integral


@dataclass(frozen=True)
class TrainingParams(Checked):
    """The optimizer and its budget; all that the training loop knows."""

    epochs: int
    learning_rate: float
    weight_decay: float
    clip: float  # global gradient norm
    frames_per_update: int
    background_epochs: int  # C stays zero so long
    patience: int  # updates without a decrease before stopping; 0 trains the budget out
    min_decrease: float  # what counts as a decrease, in units of the observations' variance
    keep: Literal["best", "terminal"]  # which iterate is frozen


@dataclass(frozen=True)
class AdapterParams:
    """The structured field adapter and its training (Supplement A.3)."""

    model: ModelParams
    penalties: PenaltyParams
    training: TrainingParams


@dataclass(frozen=True)
class ProjectedParams(Checked):
    """The adapter's network with C solved at every update; one setting for all data."""

    rank: int
    width: int
    knots: int
    updates: int
    learning_rate: float
    weight_decay: float
    coefficient_ridge: float  # rho of the solve for C, per unit variance of the data
    smoothness: float  # mu of that solve, with time in units of the record


@dataclass(frozen=True)
class FieldParams:
    """How a field is made: a recipe, or a variant of the adapter, and its settings.

    Without settings a recipe takes its own for the observations; the kernel has none.
    """

    recipe: str
    settings: AdapterParams | ProjectedParams | None = None


@dataclass(frozen=True)
class WeakParams(Checked):
    """Geometry of one weak system; tuples run over the spatial axes, then time (Supplement B.1)."""

    half_widths: tuple[float, ...]
    patches: tuple[int, ...]
    nodes: tuple[int, ...]  # per patch and axis
    power: int  # p of the test function (1 - s^2)^p
    rule: Rule = "midpoint"  # the paper's, or Gauss-Legendre


@dataclass(frozen=True)
class SVWSParams(Checked):
    """Stability-validated weak selection (Algorithm S1)."""

    generation: int  # R_g
    validation: int  # R_v
    lam0: float
    multipliers: tuple[float, ...]
    tau: float
    ridge: float
    max_iterations: int
    epsilon: float
    phase_seed: int


@dataclass(frozen=True)
class FreezeThenSelectParams:
    """Our method whole: the field, the weak systems read off it, the rule, and the coefficients reported."""

    field: FieldParams
    weak: WeakParams
    svws: SVWSParams
    refit: Reported


@dataclass(frozen=True)
class Settings:
    """What the paper used for one problem."""

    adapter: AdapterParams
    weak: WeakParams
    svws: SVWSParams


def named(params: Any) -> dict[str, Any]:
    """The values of a settings dataclass by name, in JSON form; how they are grouped does not show.

    Runs and fields are known by these, so regrouping a class renames none of them.
    """
    values: dict[str, Any] = {}
    for entry in fields(params):
        value = getattr(params, entry.name)
        if value is None:  # a recipe without settings
            continue
        part = named(value) if is_dataclass(value) else {entry.name: _jsonable(value)}
        if values.keys() & part.keys():
            raise ValueError(f"{type(params).__name__} names {values.keys() & part.keys()} twice: rename one")
        values |= part
    return values


def changed(params: AdapterParams, **values: Any) -> AdapterParams:
    """The settings with values replaced in whichever group holds their names."""
    groups = {}
    for entry in fields(params):
        group = getattr(params, entry.name)
        mine = {name: values.pop(name) for name in named(group) if name in values}
        groups[entry.name] = replace(group, **mine)
    if values:
        raise ValueError(f"unknown settings {sorted(values)}: known are {sorted(named(params))}")
    return AdapterParams(**groups)


def _jsonable(value: Any) -> Any:
    return [_jsonable(entry) for entry in value] if isinstance(value, (tuple, list)) else value
