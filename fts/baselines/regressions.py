"""Regressions on a frozen field: strong STLSQ and STRidge, PDE-FIND and WSINDy (Supplement C).

Strong STLSQ and STRidge read a field of any recipe at random points; its derivatives are analytic, so the
strong form suffers from the field's own errors only. PDE-FIND and WSINDy read the spectral reconstruction:
derivatives on a fixed dense grid away from the ends of time, or weak systems, by thresholded ridge at a
tolerance chosen per problem.
"""

import math
import time
from dataclasses import dataclass, replace

import numpy as np

from fts.baselines.registry import register
from fts.baselines.spectral import SPECTRAL, SpectralParams, reconstruct
from fts.baselines.stridge import (
    STRidgeParams,
    StrongRegressionParams,
    WeakRegressionParams,
    select_strong,
    select_weak,
    strong_system,
)
from fts.equations.terms import Library
from fts.fields.frozen import Field, FrozenField
from fts.fitting import obtain_frozen
from fts.observations import Observations
from fts.params.paper import PAPER, REFINED, RELATIVE_THRESHOLD
from fts.params.types import FieldParams, WeakParams
from fts.selection import sparse
from fts.selection.selection import Selection


@dataclass(frozen=True)
class StrongSTLSQParams:
    """STLSQ on derivatives of a field at points."""

    field: FieldParams
    points: int
    threshold: float  # relative to ||u_t||, on unit columns
    ridge: float
    max_iterations: int


@dataclass(frozen=True)
class StrongSTRidgeParams:
    """STRidge on derivatives of a field at points, its threshold searched on held-out rows."""

    field: FieldParams
    points: int
    ridge: float
    step: float  # of the threshold, relative to ||u_t||
    rounds: int


@dataclass(frozen=True)
class PDEFindParams:
    """PDE-FIND on the spectral reconstruction."""

    spectral: SpectralParams
    regression: StrongRegressionParams


@dataclass(frozen=True)
class WSINDyParams:
    """WSINDy on the spectral reconstruction."""

    spectral: SpectralParams
    regression: WeakRegressionParams


# On the paper's fields: as many points as a dozen weak systems have patches.
STRONG_STLSQ = StrongSTLSQParams(
    FieldParams("paper"), points=4000, threshold=RELATIVE_THRESHOLD, ridge=1e-4, max_iterations=20
)
STRONG_STRIDGE = StrongSTRidgeParams(FieldParams("paper"), points=4000, ridge=1e-5, step=0.02, rounds=25)


def _stridge(threshold: float) -> STRidgeParams:
    return STRidgeParams(threshold=threshold, ridge=1e-5, max_iterations=20, refit_ridge=1e-4)


def _pde_find(grid: tuple[int, ...], threshold: float) -> PDEFindParams:
    return PDEFindParams(SPECTRAL, StrongRegressionParams(grid, 0.05, _stridge(threshold)))


def _wsindy(weak: WeakParams, threshold: float) -> WSINDyParams:
    return WSINDyParams(SPECTRAL, WeakRegressionParams(weak, 0.05, _stridge(threshold)))


# The values the paper tried for both PDE-FIND and WSINDy.
THRESHOLDS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 2.0, 5.0)
# The patches WSINDy may take: those of our own weak systems, or wide ones, a tenth of space and a sixth of
# time to either side (a fifth each in 2D).
_WIDE = {
    "kdv": WeakParams(half_widths=(6.0, 20 / 6), patches=(20, 15), nodes=(64, 64), power=8),
    "ks": WeakParams(half_widths=(3.2 * math.pi, 100 / 6), patches=(20, 15), nodes=(64, 128), power=8),
    "ad": WeakParams(half_widths=(2.0, 2.0, 1.2), patches=(8, 8, 5), nodes=(24, 24, 16), power=8),
}
PATCHES: dict[str, dict[str, WeakParams]] = {
    name: {"ours": REFINED.get(name, PAPER[name].weak), "wide": wide} for name, wide in _WIDE.items()
}
# Thresholds and patches as chosen on the development seeds: book/records/candidates.json. WSINDy's margin was
# compared with none on the same seeds before that (27 exact recoveries of 30 on our patches, 26 without); the
# record does not repeat it. PDE-FIND's margin was not varied.
PDE_FIND: dict[str, PDEFindParams] = {
    "kdv": _pde_find((256, 100), 0.4),
    "ks": _pde_find((256, 100), 2.0),
    "ad": _pde_find((32, 32, 24), 5.0),
}
WSINDY: dict[str, WSINDyParams] = {
    "kdv": _wsindy(PATCHES["kdv"]["wide"], 0.05),
    "ks": _wsindy(PATCHES["ks"]["ours"], 1.0),
    "ad": _wsindy(PATCHES["ad"]["ours"], 0.4),
}


@register("strong STLSQ", StrongSTLSQParams)
def strong_stlsq(
    observations: Observations, library: Library, params: StrongSTLSQParams, rng: np.random.Generator
) -> Selection:
    """A frozen field, then STLSQ on its derivatives."""
    return select_stlsq(obtain_frozen(observations, params.field), library, params, rng)


@register("strong STRidge", StrongSTRidgeParams)
def strong_stridge(
    observations: Observations, library: Library, params: StrongSTRidgeParams, rng: np.random.Generator
) -> Selection:
    """A frozen field, then STRidge on its derivatives."""
    return select_stridge(obtain_frozen(observations, params.field), library, params, rng)


def select_stlsq(
    field: FrozenField, library: Library, params: StrongSTLSQParams, rng: np.random.Generator
) -> Selection:
    """STLSQ on the strong form at a threshold relative to ||b||."""
    normal, size = _unit_system(field, library, params.points, rng)
    x = sparse.stlsq(normal, params.threshold, params.ridge, params.max_iterations)
    return Selection(library, normal.physical(x) * size, "strong STLSQ", field=field)


def select_stridge(
    field: FrozenField, library: Library, params: StrongSTRidgeParams, rng: np.random.Generator
) -> Selection:
    """PDE-FIND's STRidge with its own threshold search on the strong form."""
    normal, size = _unit_system(field, library, params.points, rng)
    x = sparse.train_stridge(normal, params.ridge, params.step, params.rounds, rng)
    return Selection(library, normal.physical(x) * size, "strong STRidge", field=field)


@register("PDE-FIND", PDEFindParams, PDE_FIND)
def pde_find(
    observations: Observations, library: Library, params: PDEFindParams, rng: np.random.Generator
) -> Selection:
    """The equation thresholded ridge reads off the reconstruction's derivatives; `rng` is not used."""
    field = reconstruct(observations, params.spectral)
    began = time.process_time()
    return _timed(select_strong(field, library, params.regression), "PDE-FIND", field, began)


@register("WSINDy", WSINDyParams, WSINDY)
def wsindy(
    observations: Observations, library: Library, params: WSINDyParams, rng: np.random.Generator
) -> Selection:
    """The equation thresholded ridge reads off weak systems of the reconstruction; `rng` draws the phases.

    Integrals are plain, the test function's peak is one. The terms that survive the tolerance on one system
    get their coefficients by ridge on a second one, whose patches lie elsewhere.
    """
    field = reconstruct(observations, params.spectral)
    began = time.process_time()
    return _timed(select_weak(field, library, params.regression, rng), "WSINDy", field, began)


def interior(field: Field, n: int, rng: np.random.Generator, margin: float = 0.02) -> np.ndarray:
    """n uniform points, `margin` of every extent away from the ends, where a field is least known."""
    low = np.array((*field.domain.low, field.domain.t0))
    extents = np.array(field.domain.extents)
    return low + extents * (margin + (1 - 2 * margin) * rng.random((n, len(extents))))


def _unit_system(
    field: FrozenField, library: Library, points: int, rng: np.random.Generator
) -> tuple[sparse.NormalSystem, float]:
    """The strong system with unit columns and b of length one, and the length b had."""
    A, b = strong_system(field, library, interior(field, points, rng))
    size = float(np.linalg.norm(b)) or 1.0
    return sparse.normalize(A, b / size), size


def _timed(selection: Selection, method: str, field: FrozenField, began: float) -> Selection:
    seconds = {"fit": field.made.seconds, "select": round(time.process_time() - began, 4)}
    return replace(selection, method=method, seconds=seconds)
