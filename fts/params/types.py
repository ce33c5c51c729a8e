"""What every number means: settings as frozen dataclasses; variants are made with `dataclasses.replace`.

A setting that makes no sense is refused where it is made, not where it fails: the type of a field says what
it may be.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from numbers import Integral, Real
from typing import Annotated, Any, Literal, get_args, get_origin


@dataclass(frozen=True)
class Bounds:
    """What a number may be."""

    text: str
    kind: type
    allows: Callable[[float], bool]


Count = Annotated[int, Bounds("a whole number, one or more", Integral, lambda n: n >= 1)]
Natural = Annotated[int, Bounds("a whole number, zero or more", Integral, lambda n: n >= 0)]
Positive = Annotated[float, Bounds("a number above zero", Real, lambda x: x > 0)]
NotNegative = Annotated[float, Bounds("a number, zero or above", Real, lambda x: x >= 0)]
Fraction = Annotated[float, Bounds("a number from zero to one", Real, lambda x: 0 <= x <= 1)]


@dataclass(frozen=True)
class Checked:
    """Settings whose fields keep the bounds their types state; in a tuple every entry does."""

    def __post_init__(self) -> None:
        for entry in fields(self):
            kind = get_args(entry.type)[0] if get_origin(entry.type) is tuple else entry.type
            value = getattr(self, entry.name)
            numbers = value if isinstance(value, tuple) else (value,)
            for bounds in getattr(kind, "__metadata__", ()):
                if not numbers or not all(_within(number, bounds) for number in numbers):
                    raise ValueError(f"{type(self).__name__}.{entry.name} is {value!r}: give {bounds.text}")


def _within(value: Any, bounds: Bounds) -> bool:
    if isinstance(value, bool) or not isinstance(value, bounds.kind):
        return False
    return math.isfinite(value) and bounds.allows(value)


Rule = Literal["midpoint", "gauss"]
# Which coefficients are reported: the paper's ridge refit, the refit that held-out regions prefer, or the one
# they prefer of those whose rows are weighted by a kernel field's posterior variance.
Reported = Literal["ridge", "preferred", "weighted"]


@dataclass(frozen=True)
class ModelParams(Checked):
    """The structured model: a network for the spatial features, splines for their coefficients (A.3)."""

    rank: Count  # R spatial features
    width: Count  # hidden units per layer
    depth: Count  # hidden layers
    knots: Natural  # K internal knots; M = K + 4 splines
    fourier_rows: Natural  # rows of B, each giving a sine and a cosine; 0 feeds the raw coordinates
    coordinate_scale: Positive  # x-tilde = coordinate_scale * x before the encoding
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
    """The optimizer and its budget; all that the training loop depends on."""

    epochs: Count
    learning_rate: Positive
    weight_decay: NotNegative
    clip: Positive  # global gradient norm
    frames_per_update: Count
    background_epochs: Natural  # C stays zero so long
    patience: Natural  # updates without a decrease before stopping; 0 trains the budget out
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

    rank: Count
    width: Count
    knots: Natural
    updates: Count
    learning_rate: Positive
    weight_decay: NotNegative
    coefficient_ridge: NotNegative  # rho of the solve for C, per unit variance of the data
    smoothness: NotNegative  # mu of that solve, with time in units of the record


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

    half_widths: tuple[Positive, ...]
    patches: tuple[Count, ...]
    nodes: tuple[Count, ...]  # per patch and axis
    power: Count  # p of the test function (1 - s^2)^p
    rule: Rule = "midpoint"  # the paper's, or Gauss-Legendre

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes = {len(self.half_widths), len(self.patches), len(self.nodes)}
        if len(sizes) > 1 or sizes == {1}:
            raise ValueError(
                f"{self}: give half widths, patches and nodes for each spatial axis and for time"
            )
        if self.rule not in ("midpoint", "gauss"):
            raise ValueError(f"WeakParams.rule is {self.rule!r}: choose 'midpoint' or 'gauss'")


@dataclass(frozen=True)
class SVWSParams(Checked):
    """Stability-validated weak selection (Algorithm S1)."""

    generation: Count  # R_g
    validation: Count  # R_v
    lam0: Positive
    multipliers: tuple[Positive, ...]
    tau: Fraction
    ridge: NotNegative
    max_iterations: Count
    epsilon: NotNegative
    phase_seed: Natural


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
