"""Files of others as fts values: released trajectories (PDE-FIND, DeepMoD, MDBench) and a user's own samples.

A released file, where a user has one, replaces the regenerated trajectory; `source` then names it with its
sha256, and every record carries that source.
"""

import csv
import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from jaxtyping import Float
from scipy.io import loadmat

from fts.data import Observations, Trajectory
from fts.domain import Domain
from fts.problems import Problem, problem

# Names under which the released files store the field, the axes and the times.
_FIELD = ("usol", "uu", "u", "Expression1")
_TIME = ("t", "tt")
_COORDINATES = ("x", "y", "z")
# A text file of samples larger than this is not read into memory at once without asking.
_LARGEST_TEXT = 1 << 29


def read_trajectory(path: str | Path, name: str) -> Trajectory:
    """The released trajectory of benchmark `name`: a PDE-FIND or DeepMoD `.mat`, or an MDBench `.npz`."""
    path, entry = Path(path), problem(name)
    if not path.is_file():
        raise ValueError(
            f"no file at {path}: use fts.simulate({name!r}) to regenerate the trajectory instead"
        )
    if path.suffix == ".mat":
        arrays = {key: value for key, value in loadmat(path).items() if not key.startswith("_")}
    elif path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as stored:
            arrays = dict(stored)
    else:
        raise ValueError(
            f"{path.name} is neither .mat nor .npz: give a released file, or use fts.simulate({name!r})"
        )
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    t, u = _times(arrays, path), _field(arrays, entry, path)
    return Trajectory(
        _axes(arrays, entry),
        t - t[0] + entry.domain.t0,
        u,
        entry.domain,
        name,
        f"{path.name} sha256:{digest}",
    )


def read_samples(path: str | Path, domain: Domain | None = None) -> Observations:
    """A user's samples: an observation record, or a table with columns x, [y, [z,]] t, u in `.csv` or `.npz`.

    Without a `domain` the samples' bounding box is taken and no axis is periodic: a period is not in samples.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(
            f"no file at {path}: give a .csv or .npz with columns x, [y,] t, u, or a saved record"
        )
    if path.suffix == ".fts":
        return Observations.load(path)
    if path.suffix not in (".csv", ".npz"):
        raise ValueError(
            f"{path.name} has an unknown ending: save the samples as .csv or .npz (x, [y,] t, u)"
        )
    columns = _csv_columns(path) if path.suffix == ".csv" else _npz_columns(path)
    spatial = [axis for axis in _COORDINATES if axis in columns]
    missing = {"x", "t", "u"} - set(columns)
    if missing:
        raise ValueError(
            f"{path.name} has columns {sorted(columns)}: {', '.join(sorted(missing))} missing, rename them"
        )
    x = np.column_stack([columns[axis] for axis in spatial])
    t, y = columns["t"], columns["u"]
    if domain is None:
        domain = bounding_box(x, t)
    return Observations(x, t, y, domain, source=path.name)


def _times(arrays: Mapping[str, np.ndarray], path: Path) -> np.ndarray:
    for key in _TIME:
        if key in arrays:
            t = np.asarray(arrays[key], dtype=float)
            # The 2D AD file stores a meshgrid (x, y, t); its times vary along the last axis alone.
            return t.reshape(-1) if max(t.shape) == t.size else t[(0,) * (t.ndim - 1)]
    raise ValueError(
        f"{path.name} has no times ({' or '.join(_TIME)}), only {sorted(arrays)}: is it a released file?"
    )


def _field(arrays: Mapping[str, np.ndarray], entry: Problem, path: Path) -> np.ndarray:
    for key in _FIELD:
        if key not in arrays:
            continue
        u = np.real(arrays[key]).astype(float)
        if u.ndim == len(entry.shape) + 1:
            u = u[..., 0]  # MDBench stores one component per state, and the benchmark's is the first
        if u.shape == entry.shape:
            return u
        raise ValueError(
            f"{key} in {path.name} has shape {u.shape}, {entry.name!r} has {entry.shape}: wrong problem?"
        )
    raise ValueError(
        f"{path.name} has no field ({', '.join(_FIELD)}), only {sorted(arrays)}: is it a released file?"
    )


def _axes(arrays: Mapping[str, np.ndarray], entry: Problem) -> tuple[np.ndarray, ...]:
    axes = []
    for i, (name, regenerated) in enumerate(zip(_COORDINATES, entry.axes, strict=False)):
        stored = arrays.get(name)
        if stored is None:
            axes.append(regenerated)
            continue
        stored = np.asarray(stored, dtype=float)
        if max(stored.shape) != stored.size:
            stored = np.moveaxis(stored, i, 0)[(slice(None), *(0,) * (stored.ndim - 1))]
        axes.append(stored.reshape(-1))
    return tuple(axes)


def _csv_columns(path: Path) -> dict[str, np.ndarray]:
    if path.stat().st_size > _LARGEST_TEXT:
        raise ValueError(f"{path.name} is larger than {_LARGEST_TEXT >> 20} MB: store it as .npz")
    with path.open(newline="", encoding="utf-8-sig") as stream:
        rows = csv.reader(stream)
        names = [name.strip().lower() for name in next(rows, [])]
        table: list[list[float]] = []
        for number, row in enumerate(rows, start=2):
            if not row:
                continue
            if len(row) != len(names):
                raise ValueError(
                    f"line {number} of {path.name} has {len(row)} values for {len(names)} columns: mend it"
                )
            try:
                table.append([float(value) for value in row])
            except ValueError:
                raise ValueError(
                    f"line {number} of {path.name} holds {row}: every value must be a number"
                ) from None
    if not table:
        raise ValueError(f"{path.name} holds no samples below its heading: write columns x, [y,] t, u")
    return dict(zip(names, np.array(table).T.copy(), strict=True))


def _npz_columns(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as stored:
        columns = {name: np.asarray(stored[name], dtype=float) for name in stored.files}
    wanted = {name: values for name, values in columns.items() if name in (*_COORDINATES, "t", "u")}
    sizes = {name: values.shape for name, values in wanted.items()}
    if any(len(shape) != 1 for shape in sizes.values()) or len(set(sizes.values())) > 1:
        raise ValueError(
            f"{path.name} holds {sizes}: give one flat array of equal length per column x, [y,] t, u"
        )
    return wanted


def bounding_box(x: Float[np.ndarray, "n d"], t: Float[np.ndarray, " n"]) -> Domain:
    """The smallest domain that holds the samples, no axis periodic."""
    return Domain(
        tuple(float(v) for v in x.min(axis=0)),
        tuple(float(v) for v in x.max(axis=0)),
        float(t.min()),
        float(t.max()),
        (False,) * x.shape[1],
    )
