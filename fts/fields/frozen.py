"""Fields as frozen values: plain arrays, evaluated and saved without torch, with what made them (eq. 4).

u_hat(x, t) = F(x) G(t), with F the spatial features (background first) and G the temporal coefficients (the
constant one first). Whoever made it, network or kernel, what follows sees values on points or grids and
nothing it could train. A `CoordinateField` u_hat(x, t) = f(gamma(s (x, t))) is what the ablation compares it
with; a `TabulatedField` or a `CallableField` was not fitted at all. The fields that ship with the book are
named by problem, protocol, seed, noise and recipe.
"""

import difflib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from scipy.interpolate import BSpline, make_interp_spline

from fts import containers, validation
from fts.domain import Domain, grid_points
from fts.fields import network
from fts.fields.network import NetworkFeatures, SplineCoefficients
from fts.fields.series import Coefficients, Features, SeriesCoefficients, SeriesFeatures
from fts.observations import LEAST_POINTS, Observations, require_finite
from fts.params.paper import RECIPE_VERSIONS

_SPACE = {"network": NetworkFeatures, "series": SeriesFeatures}
_TIME = {"splines": SplineCoefficients, "series": SeriesCoefficients}
_KIND = "field"
_REMEDY = "fit it again with fts.fit and save it there"
# Points evaluated at once: a factorized field of any size stays within some 100 MB, a network's layers near
# the processor.
_CHUNK, _NETWORK_CHUNK = 1 << 16, 1 << 13
# Set to read and write frozen fields somewhere else than beside the book.
_FOLDER_VARIABLE = "FTS_FIELDS"
# What a header says of a field's origin and training, by name.
_PROVENANCE: dict[str, tuple[type, ...]] = {
    "recipe": (str,),
    "version": (int,),
    "parameters": (dict,),
    "problem": (str, type(None)),
    "protocol": (str, type(None)),
    "seed": (int, type(None)),
    "noise": (float,),
    "seconds": (float,),
    "device": (str,),
    "history": (dict, type(None)),
}
_HISTORY = {"updates": (int,), "kept": (int,), "error": (float,), "losses": (list, tuple)}


@runtime_checkable
class Field(Protocol):
    """What weak systems need: values on tensor grids, and the box they are valid on."""

    @property
    def domain(self) -> Domain: ...
    def on_grid(self, *axes: np.ndarray) -> Float[np.ndarray, "..."]: ...


@dataclass(frozen=True)
class History:
    """How a training went."""

    updates: int  # updates made
    kept: int  # the iterate that is frozen
    error: float  # its MSE over all observations
    losses: tuple[tuple[int, float], ...]  # (update, MSE over all observations)


@dataclass(frozen=True)
class Provenance:
    """What made a field; empty for one that somebody composed by hand."""

    recipe: str = ""  # or the variant of the adapter
    version: int = 0  # of the recipe
    parameters: Mapping[str, Any] = field(default_factory=dict)  # settings by name, or what a search chose
    problem: str | None = None
    protocol: str | None = None
    seed: int | None = None
    noise: float = 0.0
    seconds: float = 0.0
    device: str = ""
    history: History | None = None  # of a trained field

    @property
    def noise_estimate(self) -> float:
        """Standard deviation of the noise, as the recipe estimated it; zero where it does not."""
        return float(self.parameters.get("noise_estimate", 0.0))

    def as_dict(self) -> dict[str, Any]:
        """JSON form, for the field's header."""
        return asdict(self)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> "Provenance":
        """What a header says."""
        containers.require_entries(values, _PROVENANCE)
        history = values["history"]
        if history is not None:
            containers.require_entries(history, _HISTORY)
            losses = tuple((int(update), float(error)) for update, error in history["losses"])
            history = History(**{**history, "losses": losses})
        return Provenance(**{**values, "history": history})


@dataclass(frozen=True)
class FrozenField:
    """A factorized field; immutable, and without the state of a training."""

    space: Features
    time: Coefficients
    domain: Domain
    made: Provenance
    positive: bool = False  # Softplus output

    def __post_init__(self) -> None:
        _require_domain(self.domain)
        kinds = {"space": Features, "time": Coefficients, "made": Provenance, "positive": bool}
        for name, kind in kinds.items():
            remedy = "take a field from fts.fit or fts.load_field, and change it by dataclasses.replace"
            validation.require_type(kind, getattr(self, name), name, remedy)
        if self.space.dimension != self.domain.dimension or self.space.rank != self.time.rank:
            raise ValueError(
                f"{self.space.rank} features of {self.space.dimension} coordinates with {self.time.rank} "
                f"coefficients on {self.domain.dimension} axes: make them agree"
            )

    def __repr__(self) -> str:
        made = self.made
        origin = [made.problem, made.protocol, made.seed if made.seed is None else f"seed {made.seed}"]
        parts = [f"rank {self.rank} on {self.domain.as_text()}", made.recipe, *origin]
        return f"<FrozenField: {validation.shortened(', '.join(str(part) for part in parts if part))}>"

    @property
    def rank(self) -> int:
        """R, the number of spatial features."""
        return self.space.rank

    def __call__(self, points: Float[np.ndarray, "n d1"]) -> Float[np.ndarray, " n"]:
        """u_hat at the points (x, [y,] t)."""
        return self.derivative(points, (0,) * self.domain.dimension, 0)

    def derivative(
        self, points: Float[np.ndarray, "n d1"], alpha: tuple[int, ...], order: int = 0
    ) -> Float[np.ndarray, " n"]:
        """D^alpha in space and the order-th derivative in time, at the points (x, [y,] t)."""
        _require_orders(alpha, order, self.domain.dimension)
        points = _as_points(points, self.domain.dimension)
        return _in_chunks(points, _CHUNK, lambda chunk: self._scattered(chunk, alpha, order))

    def on_grid(
        self, *axes: np.ndarray, alpha: tuple[int, ...] | None = None, order: int = 0
    ) -> Float[np.ndarray, "..."]:
        """u_hat, or its derivative, on the tensor grid of the axes (x, [y,] t), shaped like a trajectory."""
        alpha = (0,) * self.domain.dimension if alpha is None else alpha
        _require_orders(alpha, order, self.domain.dimension)
        *space, t = axes = _as_axes(axes, self.domain.dimension)

        def product(beta: tuple[int, ...], k: int) -> np.ndarray:
            return self.space.on_axes(tuple(space), beta) @ self.time.at(t, k)

        return self._output(product, alpha, order).reshape(*(axis.size for axis in axes))

    def at_sensors(
        self, sensors: Float[np.ndarray, "S d"], frames: Float[np.ndarray, " F"]
    ) -> Float[np.ndarray, "S F"]:
        """u_hat at every sensor for every frame."""

        def product(beta: tuple[int, ...], k: int) -> np.ndarray:
            return self.space.at(sensors, beta) @ self.time.at(frames, k)

        return self._output(product, (0,) * self.domain.dimension, 0)

    def save(self, path: str | Path) -> None:
        """Write the field to one small file, atomically."""
        containers.write_atomic(Path(path), self.packed())

    def packed(self) -> bytes:
        """The field as its file holds it."""
        space = {f"space.{name}": array for name, array in self.space.arrays().items()}
        time = {f"time.{name}": array for name, array in self.time.arrays().items()}
        header = {
            "space": self.space.kind,
            "time": self.time.kind,
            "domain": self.domain.as_dict(),
            "positive": self.positive,
            "made": self.made.as_dict(),
        }
        return containers.pack_arrays(_KIND, header, space | time)

    @staticmethod
    def load(path: str | Path) -> "FrozenField":
        """The field saved at `path`, every byte verified."""
        header, arrays = _read(path)
        with containers.file_errors(Path(path), _REMEDY):
            return FrozenField.from_file(header, arrays)

    @staticmethod
    def from_file(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> "FrozenField":
        """The field a file's header and arrays describe."""
        kinds = {"space": (str,), "time": (str,), "domain": (dict,), "positive": (bool,), "made": (dict,)}
        containers.require_entries(header, kinds)
        space, time = (
            {name.removeprefix(half): array for name, array in arrays.items() if name.startswith(half)}
            for half in ("space.", "time.")
        )
        field = FrozenField(
            space=_SPACE[header["space"]].from_arrays(space),
            time=_TIME[header["time"]].from_arrays(time),
            domain=Domain.from_dict(header["domain"]),
            made=Provenance.from_dict(header["made"]),
            positive=header["positive"],
        )
        known = len(field.space.arrays()) + len(field.time.arrays())
        if known != len(arrays):
            raise containers.FileError(f"holds {len(arrays)} arrays, {known} of which are a field's")
        return field

    def _scattered(self, points: np.ndarray, alpha: tuple[int, ...], order: int) -> np.ndarray:
        x, t = points[:, :-1], points[:, -1]

        def product(beta: tuple[int, ...], k: int) -> np.ndarray:
            return np.einsum("nr,rn->n", self.space.at(x, beta), self.time.at(t, k))

        return self._output(product, alpha, order)

    def _output(
        self, product: Callable[[tuple[int, ...], int], np.ndarray], alpha: tuple[int, ...], order: int
    ) -> np.ndarray:
        if not self.positive:
            return product(alpha, order)
        index = (*alpha, order)
        below = network.indices_below(index)
        inner = {beta: product(beta[:-1], beta[-1]) / network.factorials(beta) for beta in below}
        return network.derivative(network.softplus(inner), index)


@dataclass(frozen=True)
class CoordinateField:
    """A frozen network of (x, t) together, point by point; evaluated and saved like a FrozenField.

    Values on a grid come in single precision, as in training; derivatives, which amplify rounding, in double.
    """

    network: NetworkFeatures  # d + 1 coordinates in, one column out
    domain: Domain
    made: Provenance

    def __post_init__(self) -> None:
        if self.network.dimension != self.domain.dimension + 1:
            raise ValueError(
                f"a network of {self.network.dimension} coordinates cannot describe a domain with "
                f"{self.domain.dimension} spatial axes: it takes one more, the time"
            )

    def __call__(self, points: Float[np.ndarray, "n d1"]) -> Float[np.ndarray, " n"]:
        """u_hat at the points (x, [y,] t)."""
        return self.derivative(points, (0,) * self.domain.dimension, 0)

    def derivative(
        self, points: Float[np.ndarray, "n d1"], alpha: tuple[int, ...], order: int = 0
    ) -> Float[np.ndarray, " n"]:
        """D^alpha in space and the order-th derivative in time, at the points (x, [y,] t)."""
        evaluate = self.network.at
        return _in_chunks(points, _NETWORK_CHUNK, lambda chunk: evaluate(chunk, (*alpha, order))[:, 0])

    def on_grid(
        self, *axes: np.ndarray, alpha: tuple[int, ...] | None = None, order: int = 0
    ) -> Float[np.ndarray, "..."]:
        """u_hat, or its derivative, on the tensor grid of the axes (x, [y,] t), shaped like a trajectory."""
        alpha = alpha or (0,) * self.domain.dimension
        if any(alpha) or order:
            values = self.derivative(grid_points(axes), alpha, order)
        else:
            values = self.network.on_axes(axes, (*alpha, 0), np.float32)[:, 0]
        return values.reshape(*(axis.size for axis in axes))

    def save(self, path: str | Path) -> None:
        """Write the field to one small file, atomically."""
        header = {"form": "coordinate", "domain": self.domain.as_dict(), "made": self.made.as_dict()}
        containers.save_arrays(Path(path), _KIND, header, self.network.arrays())

    @staticmethod
    def from_file(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> "CoordinateField":
        """The field whose file holds this header and these arrays."""
        containers.require_entries(header, {"form": (str,), "domain": (dict,), "made": (dict,)})
        if header["form"] != "coordinate":
            raise containers.FileError(f"holds a field of the unknown form {header['form'][:60]!r}")
        domain, made = Domain.from_dict(header["domain"]), Provenance.from_dict(header["made"])
        network = NetworkFeatures.from_arrays(arrays)
        if set(network.arrays()) != set(arrays) or network.rank != 0:
            raise containers.FileError(f"holds the arrays {sorted(arrays)[:8]}, which are not one network's")
        return CoordinateField(network, domain, made)


def load(path: str | Path) -> FrozenField | CoordinateField:
    """The field saved at `path`, whichever form it has."""
    header, arrays = _read(path)
    form = CoordinateField if "form" in header else FrozenField
    with containers.file_errors(Path(path), _REMEDY):
        return form.from_file(header, arrays)


def provenance_of(
    observations: Observations,
    recipe: str,
    parameters: Mapping[str, Any],
    *,
    seconds: float,
    device: str,
    seed: int | None = None,
    history: History | None = None,
) -> Provenance:
    """The provenance of a field that a recipe has just made of these observations."""
    return Provenance(
        recipe=recipe,
        version=recipe_version(recipe),
        parameters=parameters,
        problem=observations.problem,
        protocol=observations.protocol,
        seed=observations.seed if seed is None else seed,
        noise=observations.noise,
        seconds=round(seconds, 2),
        device=device,
        history=history,
    )


def recipe_version(recipe: str) -> int:
    """The present version of a recipe; variants of the adapter share the paper's."""
    return RECIPE_VERSIONS.get(recipe, RECIPE_VERSIONS["paper"])


def fields_folder() -> Path:
    """Where shipped fields live: book/fields of this checkout, or the folder FTS_FIELDS names."""
    named = os.environ.get(_FOLDER_VARIABLE)
    return Path(named) if named else Path(__file__).resolve().parents[2] / "book" / "fields"


def field_path(problem: str, protocol: str, seed: int, noise: float = 0.0, recipe: str = "paper") -> Path:
    """The file of one field: ks-S20-1301-paper.fts, or ks-S20-1301-n10-paper.fts with 10 % noise."""
    percent = f"-n{round(100 * noise):02d}" if noise else ""
    return fields_folder() / f"{problem}-{protocol}-{seed}{percent}-{recipe}.fts"


@validation.explain_signature_errors
def load_field(
    problem: str, protocol: str = "S20", *, seed: int = 1301, noise: float = 0.0, recipe: str = "paper"
) -> FrozenField:
    """A frozen field that ships with the book; an error names those that do."""
    for name, value in {"problem": problem, "protocol": protocol, "recipe": recipe}.items():
        validation.require_type(str, value, name, "give a text, like load_field('ks', 'S20', recipe='paper')")
        if not re.fullmatch(r"[\w-]+", value):
            raise ValueError(f"{name} {value[:60]!r}: a name is of letters, digits and '-', as in 'S20-30'")
    validation.require_whole(seed, "seed", "give the whole number the samples were drawn with")
    noise = validation.finite_float(noise, "noise", "give 0.1 for 10 %")
    path = field_path(problem, protocol, seed, noise, recipe)
    if not fields_folder().is_dir():
        raise ValueError(
            f"no frozen fields at {fields_folder()}: they ship with the book's repository, set "
            f"{_FOLDER_VARIABLE} to its book/fields, or fit one with fts.fit(observations, {recipe!r})"
        )
    if not os.path.isfile(path):  # also of a name that no file system takes
        known = sorted(other.stem for other in fields_folder().glob(f"{problem}-*.fts"))
        near = difflib.get_close_matches(path.stem, known, n=3, cutoff=0.0)
        listing = f"{len(known)}, such as {', '.join(near)}" if known else "none for this problem"
        raise ValueError(
            f"no frozen field {validation.shortened(path.stem)!r} in {fields_folder()} (there: {listing}): "
            f"fit one with fts.fit(observations, {recipe[:60]!r})"
        )
    return FrozenField.load(path)


def _in_chunks(
    points: Float[np.ndarray, "n d1"], size: int, evaluate: Callable[[np.ndarray], np.ndarray]
) -> Float[np.ndarray, " n"]:
    points = np.asarray(points, dtype=float)
    chunks = [points[i : i + size] for i in range(0, len(points), size)] or [points]
    return np.concatenate([evaluate(chunk) for chunk in chunks])


def _as_points(points: Any, dimension: int) -> Float[np.ndarray, "n d1"]:
    array = validation.real_array("points", points)
    if array.ndim != 2 or array.shape[1] != dimension + 1:
        raise ValueError(
            f"points have shape {array.shape}: give a row ({', '.join((*'xyz'[:dimension], 't'))}) for each"
        )
    return array


def _as_axes(axes: tuple[Any, ...], dimension: int) -> tuple[np.ndarray, ...]:
    names = (*"xyz"[:dimension], "t")
    if len(axes) != len(names):
        raise ValueError(f"{len(axes)} axes for a domain with {', '.join(names)}: give one of each")
    arrays = []
    for name, axis in zip(names, axes, strict=True):
        array = validation.real_array(f"axis {name}", axis)
        if array.ndim != 1 or not array.size:
            raise ValueError(f"axis {name} has shape {array.shape}: give its points in one dimension")
        require_finite(f"axis {name}", array)
        arrays.append(array)
    return tuple(arrays)


def _require_orders(alpha: Any, order: Any, dimension: int) -> None:
    remedy = f"give {dimension} whole numbers, an order of derivative along each axis, as alpha=(2,)"
    validation.require_type((tuple, list), alpha, "alpha", remedy)
    if len(alpha) != dimension:
        raise ValueError(f"alpha has {len(alpha)} entries: {remedy}")
    for each in alpha:
        validation.require_whole(each, "an entry of alpha", remedy)
    validation.require_whole(order, "order", "give the order of the derivative in time, 0 for none")


def _read(path: str | Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    validation.require_type((str, Path), path, "path", "give the name of a field's file")
    return containers.load_arrays(Path(path), _KIND, _REMEDY)


@dataclass(frozen=True)
class TabulatedField:
    """Values on a grid, read between its points by quintic splines, periodic where the axis is."""

    axes: tuple[np.ndarray, ...]  # spatial axes, then time
    u: Float[np.ndarray, "..."]
    domain: Domain

    def __post_init__(self) -> None:
        _require_domain(self.domain)
        names = self.domain.names
        validation.require_type((tuple, list), self.axes, "axes", f"give a tuple ({', '.join(names)})")
        if len(self.axes) != len(names):
            raise ValueError(f"{len(self.axes)} axes for a domain with {', '.join(names)}: give one of each")
        axes = tuple(validation.real_array(f"axis {n}", a) for n, a in zip(names, self.axes, strict=True))
        u = validation.real_array("u", self.u)
        for name, axis in zip(names, axes, strict=True):
            if axis.ndim != 1 or axis.size < LEAST_POINTS:
                raise ValueError(f"axis {name} has shape {axis.shape}: give {LEAST_POINTS} or more in a row")
            require_finite(name, axis)
            if not np.all(axis[1:] > axis[:-1]):
                raise ValueError(f"axis {name} does not ascend: sort it, and u with it, and drop repetitions")
        sizes = tuple(axis.size for axis in axes)
        if u.shape != sizes:
            raise ValueError(f"u has shape {u.shape}, its axes have {sizes}: make them agree")
        require_finite("u", u)
        for name, axis, (low, high, closed) in zip(names, axes, self.domain.axes, strict=True):
            if closed and axis[-1] - axis[0] >= high - low:
                period = high - low
                raise ValueError(f"axis {name} is as long as its period {period:g}: leave out the last point")
        object.__setattr__(self, "axes", axes)
        object.__setattr__(self, "u", u)

    def __repr__(self) -> str:
        return f"<TabulatedField: {' x '.join(map(str, self.u.shape))} values on {self.domain.as_text()}>"

    def on_grid(self, *axes: np.ndarray) -> Float[np.ndarray, "..."]:
        """The interpolant on the tensor grid of the axes (x, [y,] t)."""
        axes = _as_axes(axes, self.domain.dimension)
        knots, values = self._splines
        for axis, (where, (low, high, closed)) in enumerate(zip(axes, self.domain.axes, strict=True)):
            start = self.axes[axis][0]
            if closed:
                where = start + np.mod(where - start, high - low)
            elif where.size and not (start <= where.min() and where.max() <= self.axes[axis][-1]):
                raise ValueError(
                    f"points from {where.min():g} to {where.max():g} lie outside the values, given from "
                    f"{start:g} to {self.axes[axis][-1]:g}: tabulate the whole domain, or make it smaller"
                )
            degree = len(knots[axis]) - values.shape[axis] - 1
            basis = BSpline.design_matrix(where, knots[axis], degree)
            moved = np.moveaxis(values, axis, 0)
            product = basis @ moved.reshape(len(moved), -1)
            values = np.moveaxis(product.reshape(len(where), *moved.shape[1:]), 0, axis)
        return values

    @cached_property
    def _splines(self) -> tuple[list[np.ndarray], np.ndarray]:
        """Knots per axis and the tensor of B-spline coefficients, solved for once."""
        knots, values = [], self.u
        for axis, (where, (low, high, periodic)) in enumerate(zip(self.axes, self.domain.axes, strict=True)):
            moved = np.moveaxis(values, axis, 0)
            if periodic:
                where, moved = np.append(where, where[0] + (high - low)), np.concatenate([moved, moved[:1]])
            degree = 5 if len(where) > 5 else 3
            boundary = "periodic" if periodic else None
            spline = make_interp_spline(where, moved, k=degree, bc_type=boundary)
            knots.append(spline.t)
            values = np.moveaxis(spline.c, 0, axis)
        return knots, values


@dataclass(frozen=True)
class CallableField:
    """A plain function f(x, [y,] t) of broadcast arrays, seen as a field."""

    function: Callable[..., np.ndarray]
    domain: Domain

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ValueError(f"function is a {type(self.function).__name__}: give a function of x, [y,] t")
        _require_domain(self.domain)

    def on_grid(self, *axes: np.ndarray) -> Float[np.ndarray, "..."]:
        """The function's values on the tensor grid of the axes (x, [y,] t)."""
        axes = _as_axes(axes, self.domain.dimension)
        try:
            values = self.function(*np.meshgrid(*axes, indexing="ij", sparse=True))
        except Exception as error:  # whatever a caller's function raises
            letters = ", ".join(("x", "y", "z")[: len(axes) - 1])
            raise ValueError(
                f"the function fails ({type(error).__name__}: {error}): give one of {letters}, t that takes "
                "whole arrays"
            ) from error
        shape = tuple(axis.size for axis in axes)
        values = validation.real_array("what the function returns", values)
        try:
            values = np.broadcast_to(values, shape)
        except ValueError:
            raise ValueError(
                f"the function returns shape {values.shape} where its arguments broadcast to {shape}: "
                "compute with whole arrays, as np.sin(x - t) does"
            ) from None
        bad = ~np.isfinite(values)
        if bad.any():
            index = tuple(int(i) for i in np.argwhere(bad)[0])
            point = [float(axis[i]) for axis, i in zip(axes, index, strict=True)]
            raise ValueError(
                f"the function is not finite, it is {values[index]} at {point}: "
                "give one that is finite on the domain"
            )
        return values


def _require_domain(domain: Any) -> None:
    remedy = "give fts.Domain((0.0,), (1.0,), t0, t1, periodic=(False,))"
    validation.require_type(Domain, domain, "domain", remedy)
