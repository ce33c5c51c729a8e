"""Released trajectories (PDE-FIND, DeepMoD, MDBench) in place of regenerated ones, for whoever has the files.

`source` then names the file with its sha256, and every record carries that source.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from scipy.io import loadmat

from fts.io.formats import COORDINATES
from fts.problems.problems import Problem, problem
from fts.problems.trajectories import Trajectory

# Names under which the released files store the field, the axes and the times.
_FIELD = ("usol", "uu", "u", "Expression1")
_TIME = ("t", "tt")


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
    for i, (name, regenerated) in enumerate(zip(COORDINATES, entry.axes, strict=False)):
        stored = arrays.get(name)
        if stored is None:
            axes.append(regenerated)
            continue
        stored = np.asarray(stored, dtype=float)
        if max(stored.shape) != stored.size:
            stored = np.moveaxis(stored, i, 0)[(slice(None), *(0,) * (stored.ndim - 1))]
        axes.append(stored.reshape(-1))
    return tuple(axes)
