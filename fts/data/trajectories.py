"""Problem -> Trajectory -> Observations: reference fields and the sparse samples taken of them (A.1)."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import platformdirs
from jaxtyping import Float

from fts import asked, files
from fts.data import protocols, solvers
from fts.data.between import between
from fts.data.problems import Problem, problem
from fts.domain import Domain, grid_points
from fts.observations import Observations, refuse_nonfinite

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
        shape = (*(axis.size for axis in self.axes), self.t.size)
        if self.u.shape != shape:
            raise ValueError(f"u has shape {self.u.shape} but the axes say {shape}: order it (x, [y], t)")
        refuse_nonfinite("u", self.u)
        _refuse_disorder(self.t)

    @property
    def points(self) -> Float[np.ndarray, "n d"]:
        """All spatial grid points in C order."""
        return grid_points(self.axes)


@asked.helpful
def simulate(name: str, *, cache: bool = True) -> Trajectory:
    """The reference trajectory of a benchmark, generated once and then read from the user's cache."""
    entry = problem(name)
    path = _cache_path(entry)
    if cache and path.is_file():
        try:
            _, arrays = files.load_arrays(path, "trajectory", "it is generated anew")
            return _trajectory(entry, arrays["u"])
        except (ValueError, KeyError, OSError):  # FileError is a ValueError; so is a grid of another shape
            files.discarded(path)
    u = solvers.solve(entry)
    if cache:
        files.cached(path, lambda path: files.save_arrays(path, "trajectory", {"problem": name}, {"u": u}))
    return _trajectory(entry, u)


@asked.helpful
def observe(trajectory: Trajectory, protocol: str, *, seed: int, noise: float = 0.0) -> Observations:
    """What a protocol takes: "S20" 20 % of the sensors at all frames, "T20" frame 0 among 20 % of the frames.

    "R20" is 20 % of all points at random, "N500" 500 of them, "D20" probes that drift, as many as S20 has
    sensors; "S20-30" is S20 with 30 % of its samples missing. Amounts are nested for one seed. Noise is
    Gaussian, `noise` times the clean field's standard deviation.
    """
    asked.refuse_unless(Trajectory, trajectory, "trajectory", "give what fts.simulate('ks') returns")
    asked.refuse_unless(int, seed, "seed", "give a whole number, so that the draw can be repeated")
    asked.refuse_unless((int, float), noise, "noise", "give 0.1 for 10 % of the field's deviation")
    if seed < 0:
        raise ValueError(f"seed {seed}: give zero or a positive number")
    kept = protocols.parse(protocol)
    if not (np.isfinite(noise) and noise >= 0):
        raise ValueError(f"noise {noise!r} is not a fraction of the field's deviation: give 0.1 for 10 %")
    points = trajectory.points
    row, frame = protocols.places(kept, len(points), trajectory.t.size, seed)
    if kept.kind == "D":
        x, y = _probed(trajectory, row, frame, seed)
    else:
        x, y = points[row], trajectory.u.reshape(len(points), -1)[row, frame]
    if noise > 0:
        # Drawn on the whole grid, so that a denser subset contains the sparser one's very samples.
        draws = np.random.default_rng([seed, protocols.NOISE]).standard_normal(
            (len(points), trajectory.t.size)
        )
        y = y + noise * trajectory.u.std() * draws[row, frame]
    return Observations(
        x=x,
        t=trajectory.t[frame],
        y=y,
        domain=trajectory.domain,
        problem=trajectory.problem,
        protocol=protocol,
        seed=seed,
        noise=float(noise),
        source=trajectory.source,
    )


def _probed(
    trajectory: Trajectory, probe: np.ndarray, frame: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Positions of drifting probes, and what the trajectory is there, between the points of its grid."""
    domain = trajectory.domain
    x = protocols.drift(domain, trajectory.t, int(probe.max()) + 1, seed)[probe, frame]
    periods = [
        extent if closed else None
        for extent, closed in zip(domain.extents[:-1], domain.periodic, strict=True)
    ]
    return x, between(trajectory.axes, periods, trajectory.u, x, frame)


def _trajectory(entry: Problem, u: np.ndarray) -> Trajectory:
    return Trajectory(entry.axes, entry.frames, u, entry.domain, entry.name, "generated")


def _cache_path(entry: Problem) -> Path:
    key = files.content_key(
        [entry.name, entry.domain.as_dict(), entry.shape, entry.truth, _GENERATOR_VERSION]
    )
    return Path(platformdirs.user_cache_dir("fts")) / "trajectories" / f"{entry.name}-{key}.fts"


def _refuse_disorder(t: np.ndarray) -> None:
    wrong = np.flatnonzero(np.diff(t) <= 0)
    if wrong.size:
        i = int(wrong[0])
        raise ValueError(
            f"times go from {t[i]} to {t[i + 1]} at frame {i + 1}: sort the frames, one per time"
        )
