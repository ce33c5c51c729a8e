"""Strong-form selectors: STLSQ and STRidge on derivatives of a field at points.

The field is differentiated analytically, so the strong form here suffers from the field's own errors only.

PDE-FIND: thresholded ridge on derivatives of the spectral reconstruction (Supplement C).

Rows are the points of a fixed dense grid away from the ends of time, columns have unit length and u_t is
taken as it is; what survives the tolerance is refit by ridge on the same rows.

WSINDy: thresholded ridge on a weak system of the spectral reconstruction (Supplement C).

Integrals are plain, the test function's peak is one; columns have unit length. The terms that survive the
tolerance on one system get their coefficients by ridge on a second one, whose patches lie elsewhere.
"""

import time
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from fts.baselines.spectral import reconstruct
from fts.baselines.stridge import select_strong, select_weak
from fts.equations.equation import strong
from fts.equations.terms import Library
from fts.fields.frozen import Field, FrozenField
from fts.fitting import obtain_frozen
from fts.observations import Observations
from fts.params.types import PDEFindParams, StrongSTLSQParams, StrongSTRidgeParams, WSINDyParams
from fts.selection import sparse
from fts.selection.selection import Selection


def strong_system(
    field: FrozenField, library: Library, points: Float[np.ndarray, "n d1"]
) -> tuple[Float[np.ndarray, "n J"], Float[np.ndarray, " n"]]:
    """A_ij = Theta_j(u_hat) and b_i = d_t u_hat at the points (x, [y,] t), from analytic derivatives."""
    library.check_dimension(field.domain.dimension)
    known: dict[tuple[int, ...], np.ndarray] = {}

    def partial(alpha: tuple[int, int, int]) -> np.ndarray:
        index = alpha[: field.domain.dimension]
        if index not in known:
            known[index] = field.derivative(points, index)
        return known[index]

    A = np.column_stack([strong(term, partial) for term in library])
    return A, field.derivative(points, (0,) * field.domain.dimension, 1)


def interior(field: Field, n: int, rng: np.random.Generator, margin: float = 0.02) -> np.ndarray:
    """n uniform points, `margin` of every extent away from the ends, where a field is least known."""
    domain = field.domain
    low = np.array((*domain.low, domain.t0))
    extents = np.array(domain.extents)
    return low + extents * (margin + (1 - 2 * margin) * rng.random((n, len(extents))))


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


def strong_stlsq(
    observations: Observations, library: Library, params: StrongSTLSQParams, rng: np.random.Generator
) -> Selection:
    """A frozen field, then STLSQ on its derivatives."""
    return select_stlsq(obtain_frozen(observations, params.field), library, params, rng)


def strong_stridge(
    observations: Observations, library: Library, params: StrongSTRidgeParams, rng: np.random.Generator
) -> Selection:
    """A frozen field, then STRidge on its derivatives."""
    return select_stridge(obtain_frozen(observations, params.field), library, params, rng)


def _unit_system(
    field: FrozenField, library: Library, points: int, rng: np.random.Generator
) -> tuple[sparse.NormalSystem, float]:
    """The strong system with unit columns and b of length one, and the length b had."""
    A, b = strong_system(field, library, interior(field, points, rng))
    size = float(np.linalg.norm(b)) or 1.0
    return sparse.normalize(A, b / size), size


def pde_find(
    observations: Observations, library: Library, params: PDEFindParams, rng: np.random.Generator
) -> Selection:
    """The equation thresholded ridge reads off the reconstruction's derivatives; `rng` is not used."""
    field = reconstruct(observations, params.spectral)
    began = time.process_time()
    found = select_strong(field, library, params.regression)
    seconds = {"fit": field.made.seconds, "select": round(time.process_time() - began, 4)}
    return replace(found, method="PDE-FIND", seconds=seconds)


def wsindy(
    observations: Observations, library: Library, params: WSINDyParams, rng: np.random.Generator
) -> Selection:
    """The equation thresholded ridge reads off weak systems of the reconstruction; `rng` draws the phases."""
    field = reconstruct(observations, params.spectral)
    began = time.process_time()
    found = select_weak(field, library, params.regression, rng)
    seconds = {"fit": field.made.seconds, "select": round(time.process_time() - began, 4)}
    return replace(found, method="WSINDy", seconds=seconds)
