"""FrozenField: a fitted field as plain arrays, evaluated and saved without torch (paper, eq. 4).

u_hat(x, t) = F(x) G(t), with F the spatial features (background first) and G the temporal coefficients (the
constant one first). Whoever made it, network or kernel, what follows sees values on points or grids and
nothing it could train.

The frozen fields that ship with the book, by what made them: problem, protocol, seed, noise, recipe.
"""

import difflib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from fts import containers, validation
from fts.domain import Domain
from fts.fields import network
from fts.fields.network import Coefficients, CoordinateField, Features, NetworkFeatures, SplineCoefficients
from fts.fields.provenance import Provenance
from fts.fields.series import SeriesCoefficients, SeriesFeatures

_SPACE = {"network": NetworkFeatures, "series": SeriesFeatures}
_TIME = {"splines": SplineCoefficients, "series": SeriesCoefficients}
_KIND = "field"
_REMEDY = "fit it again with fts.fit and save it there"
# Values evaluated at once; a scattered evaluation of any size stays within some 100 MB.
_CHUNK = 1 << 16


@runtime_checkable
class Field(Protocol):
    """What weak systems need: values on tensor grids, and the box they are valid on."""

    @property
    def domain(self) -> Domain: ...
    def on_grid(self, *axes: np.ndarray) -> Float[np.ndarray, "..."]: ...


@dataclass(frozen=True)
class FrozenField:
    """A factorized field; immutable, and with no way back to training."""

    space: Features
    time: Coefficients
    domain: Domain
    made: Provenance
    positive: bool = False  # Softplus output

    def __post_init__(self) -> None:
        if self.space.dimension != self.domain.dimension or self.space.rank != self.time.rank:
            raise ValueError(
                f"{self.space.rank} features of {self.space.dimension} coordinates with {self.time.rank} "
                f"coefficients on {self.domain.dimension} axes: make them agree"
            )

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
        points = np.asarray(points, dtype=float)
        chunks = [points[i : i + _CHUNK] for i in range(0, len(points), _CHUNK)] or [points]
        return np.concatenate([self._scattered(chunk, alpha, order) for chunk in chunks])

    def on_grid(
        self, *axes: np.ndarray, alpha: tuple[int, ...] | None = None, order: int = 0
    ) -> Float[np.ndarray, "..."]:
        """u_hat, or its derivative, on the tensor grid of the axes (x, [y,] t), shaped like a trajectory."""
        *space, t = axes
        alpha = alpha or (0,) * self.domain.dimension

        def product(beta: tuple[int, ...], k: int) -> np.ndarray:
            return self.space.on_axes(tuple(space), beta) @ self.time.at(t, k)

        return self._output(product, alpha, order).reshape(*(axis.size for axis in axes))

    def save(self, path: str | Path) -> None:
        """Write the field to one small file, atomically."""
        space = {f"space.{name}": array for name, array in self.space.arrays().items()}
        time = {f"time.{name}": array for name, array in self.time.arrays().items()}
        header = {
            "space": self.space.kind,
            "time": self.time.kind,
            "domain": self.domain.as_dict(),
            "positive": self.positive,
            "made": self.made.as_dict(),
        }
        containers.save_arrays(Path(path), _KIND, header, space | time)

    @staticmethod
    def load(path: str | Path) -> "FrozenField":
        """The field saved at `path`, every byte verified."""
        header, arrays = _read(path)
        with containers.described(Path(path), _REMEDY):
            return FrozenField.from_file(header, arrays)

    @staticmethod
    def from_file(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> "FrozenField":
        """The field a file's header and arrays describe."""
        kinds = {"space": (str,), "time": (str,), "domain": (dict,), "positive": (bool,), "made": (dict,)}
        containers.expect(header, kinds)
        parts = {
            half: {
                name.removeprefix(f"{half}."): a for name, a in arrays.items() if name.startswith(f"{half}.")
            }
            for half in ("space", "time")
        }
        field = FrozenField(
            space=_SPACE[header["space"]].from_arrays(parts["space"]),
            time=_TIME[header["time"]].from_arrays(parts["time"]),
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
        inner = {
            beta: product(beta[:-1], beta[-1]) / network.factorials(beta)
            for beta in network.indices_below(index)
        }
        return network.derivative(network.softplus(inner), index)


def load(path: str | Path) -> FrozenField | CoordinateField:
    """The field saved at `path`, whichever form it has."""
    header, arrays = _read(path)
    form = CoordinateField if "form" in header else FrozenField
    with containers.described(Path(path), _REMEDY):
        return form.from_file(header, arrays)


def _read(path: str | Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    return containers.load_arrays(Path(path), _KIND, _REMEDY)


# Set to read and write frozen fields somewhere else than beside the book.
_FOLDER_VARIABLE = "FTS_FIELDS"


def fields_folder() -> Path:
    """Where shipped fields live: book/fields of this checkout, or the folder FTS_FIELDS names."""
    named = os.environ.get(_FOLDER_VARIABLE)
    return Path(named) if named else Path(__file__).resolve().parents[2] / "book" / "fields"


def field_path(problem: str, protocol: str, seed: int, noise: float = 0.0, recipe: str = "paper") -> Path:
    """The file of one field: ks-S20-1301-paper.fts, or ks-S20-1301-n10-paper.fts with 10 % noise."""
    percent = f"-n{round(100 * noise):02d}" if noise else ""
    return fields_folder() / f"{problem}-{protocol}-{seed}{percent}-{recipe}.fts"


@validation.helpful
def load_field(
    problem: str, protocol: str = "S20", *, seed: int = 1301, noise: float = 0.0, recipe: str = "paper"
) -> FrozenField:
    """A frozen field that ships with the book; an error names those that do."""
    for name, value in {"problem": problem, "protocol": protocol, "recipe": recipe}.items():
        validation.refuse_unless(
            str, value, name, "give a text, like load_field('ks', 'S20', recipe='paper')"
        )
    validation.refuse_unless(int, seed, "seed", "give the whole number the samples were drawn with")
    validation.refuse_unless((int, float), noise, "noise", "give 0.1 for 10 %")
    path = field_path(problem, protocol, seed, noise, recipe)
    if not fields_folder().is_dir():
        raise ValueError(
            f"no frozen fields at {fields_folder()}: they ship with the book's repository, set "
            f"{_FOLDER_VARIABLE} to its book/fields, or fit one with fts.fit(observations, {recipe!r})"
        )
    if not path.is_file():
        known = sorted(other.stem for other in fields_folder().glob(f"{problem}-*.fts"))
        near = difflib.get_close_matches(path.stem, known, n=3, cutoff=0.0)
        listing = f"{len(known)}, such as {', '.join(near)}" if known else "none for this problem"
        raise ValueError(
            f"no frozen field {path.stem!r} in {fields_folder()} (there: {listing}): "
            f"fit one with fts.fit(observations, {recipe!r})"
        )
    return FrozenField.load(path)
