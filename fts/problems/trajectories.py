"""Problem -> Trajectory -> Observations: reference fields and the sparse samples taken of them (A.1).

A reference is computed once and kept in the user's cache. Released trajectories (PDE-FIND, DeepMoD, MDBench)
stand in for it where somebody has the files: `source` then names the file with its sha256.
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import platformdirs
from jaxtyping import Float
from scipy.io import loadmat

from fts import containers, validation
from fts.domain import Domain, grid_points
from fts.io.formats import COORDINATES
from fts.observations import Observations, require_finite
from fts.problems.problems import Problem, problem, solve
from fts.problems.protocols import NOISE, interpolate, parse_protocol, probe_positions, sampled_indices

# Names under which the released files store the field and the times.
_FIELD = ("usol", "uu", "u", "Expression1")
_TIME = ("t", "tt")
# Change when a generator changes, so that cached trajectories of the old one are not used.
_GENERATOR_VERSION = 1


@dataclass(frozen=True)
class Trajectory:
    """A reference field on its grid; truth, for scoring and plots only."""

    axes: tuple[np.ndarray, ...]
    t: Float[np.ndarray, " nt"]
    u: Float[np.ndarray, "..."]  # (nx, [ny], nt)
    domain: Domain
    problem: str
    source: str  # "generated", or the released file's name and sha256

    def __post_init__(self) -> None:
        remedy = "give an array per spatial axis, times and values on their grid, as fts.simulate does"
        validation.require_type((tuple, list), self.axes, "axes", remedy)
        arrays = {f"axis {i}": axis for i, axis in enumerate(self.axes)} | {"t": self.t, "u": self.u}
        for name, array in arrays.items():
            validation.require_type(np.ndarray, array, name, remedy)
            validation.real_array(name, array)
        validation.require_type(Domain, self.domain, "domain", "give an fts.Domain")
        for name in ("problem", "source"):
            validation.require_type(str, getattr(self, name), name, "give a text")
        shape = (*(axis.size for axis in self.axes), self.t.size)
        if self.u.shape != shape:
            raise ValueError(f"u has shape {self.u.shape} but the axes say {shape}: order it (x, [y], t)")
        require_finite("u", self.u)
        wrong = np.flatnonzero(np.diff(self.t) <= 0)
        if wrong.size:
            i, t = int(wrong[0]), self.t
            raise ValueError(
                f"times go from {t[i]} to {t[i + 1]} at frame {i + 1}: sort the frames, one per time"
            )

    def __repr__(self) -> str:
        size = " x ".join(map(str, self.u.shape))
        text = f"{self.problem}, {size} values on {self.domain.as_text()}, {self.source}"
        return f"<Trajectory: {validation.shortened(text)}>"

    @property
    def points(self) -> Float[np.ndarray, "n d"]:
        """All spatial grid points in C order."""
        return grid_points(self.axes)


@validation.explain_signature_errors
def simulate(name: str, *, cache: bool = True) -> Trajectory:
    """The reference trajectory of a benchmark, generated once and then read from the user's cache."""
    entry = problem(name)
    validation.require_type(bool, cache, "cache", "give True or False")
    path = _cache_path(entry)
    if cache and path.is_file():
        try:
            _, arrays = containers.load_arrays(path, "trajectory", "it is generated anew")
            return _on_grid(entry, arrays["u"])
        except (ValueError, KeyError, OSError):  # FileError is a ValueError; so is a grid of another shape
            containers.remove_from_cache(path)
    trajectory = reference(entry)
    if cache:
        content = {"problem": name}, {"u": trajectory.u}
        containers.write_to_cache(path, lambda path: containers.save_arrays(path, "trajectory", *content))
    return trajectory


def reference(entry: Problem) -> Trajectory:
    """The reference trajectory of any problem, computed now."""
    return _on_grid(entry, solve(entry))


@validation.explain_signature_errors
def observe(trajectory: Trajectory, protocol: str, *, seed: int, noise: float = 0.0) -> Observations:
    """What a protocol takes: "S20" 20 % of the sensors at all frames, "T20" frame 0 among 20 % of the frames.

    "R20" is 20 % of all points at random, "N500" 500 of them, "D20" probes that drift, as many as S20 has
    sensors; "S20-30" is S20 with 30 % of its samples missing. Amounts are nested for one seed. Noise is
    Gaussian, `noise` times the clean field's standard deviation.
    """
    validation.require_type(Trajectory, trajectory, "trajectory", "give what fts.simulate('ks') returns")
    validation.require_type(int, seed, "seed", "give a whole number, so that the draw can be repeated")
    noise = validation.finite_float(noise, "noise", "give 0.1 for 10 % of the field's deviation")
    if seed < 0:
        raise ValueError(f"seed {seed}: give zero or a positive number")
    kept = parse_protocol(protocol)
    if noise < 0:
        raise ValueError(f"noise {noise!r} is not a fraction of the field's deviation: give 0.1 for 10 %")
    points = trajectory.points
    row, frame = sampled_indices(kept, len(points), trajectory.t.size, seed)
    if kept.kind == "D":
        x, y = _probed(trajectory, row, frame, seed)
    else:
        x, y = points[row], trajectory.u.reshape(len(points), -1)[row, frame]
    if noise > 0:
        # Drawn on the whole grid, so that a denser subset contains the sparser one's very samples.
        draws = np.random.default_rng([seed, NOISE]).standard_normal((len(points), trajectory.t.size))
        y = y + noise * trajectory.u.std() * draws[row, frame]
    origin = trajectory.problem, protocol, seed, float(noise), trajectory.source
    return Observations(x, trajectory.t[frame], y, trajectory.domain, *origin)


def _probed(
    trajectory: Trajectory, probe: np.ndarray, frame: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Positions of drifting probes, and what the trajectory is there, between the points of its grid."""
    domain = trajectory.domain
    x = probe_positions(domain, trajectory.t, int(probe.max()) + 1, seed)[probe, frame]
    periods = [e if closed else None for e, closed in zip(domain.extents[:-1], domain.periodic, strict=True)]
    return x, interpolate(trajectory.axes, periods, trajectory.u, x, frame)


def _on_grid(entry: Problem, u: np.ndarray) -> Trajectory:
    return Trajectory(entry.axes, entry.frames, u, entry.domain, entry.name, "generated")


def _cache_path(entry: Problem) -> Path:
    content = [entry.name, entry.domain.as_dict(), entry.shape, entry.truth, _GENERATOR_VERSION]
    key = containers.content_key(content)
    return Path(platformdirs.user_cache_dir("fts")) / "trajectories" / f"{entry.name}-{key}.fts"


def read_trajectory(path: str | Path, name: str) -> Trajectory:
    """The released trajectory of benchmark `name`: a PDE-FIND or DeepMoD `.mat`, or an MDBench `.npz`."""
    validation.require_type((str, Path), path, "path", "give the name of a released file")
    path, entry = Path(path), problem(name)
    if not os.path.isfile(path):  # also of a name that no file system takes
        raise ValueError(
            f"no file at {validation.shortened(str(path))}: "
            f"use fts.simulate({name!r}) to regenerate the trajectory instead"
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
    t, source = t - t[0] + entry.domain.t0, f"{path.name} sha256:{digest}"
    return Trajectory(_axes(arrays, entry), t, u, entry.domain, name, source)


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
