"""PDE-FIND: thresholded ridge on derivatives of the spectral reconstruction (Supplement C).

Rows are the points of a fixed dense grid away from the ends of time, columns have unit length and u_t is
taken as it is; what survives the tolerance is refit by ridge on the same rows.
"""

import time
from dataclasses import replace

import numpy as np

from fts.baselines.spectral import reconstruct
from fts.baselines.stridge import select_strong
from fts.equations.terms import Library
from fts.observations import Observations
from fts.params import PDEFindParams
from fts.svws.selection import Selection


def pde_find(
    observations: Observations, library: Library, params: PDEFindParams, rng: np.random.Generator
) -> Selection:
    """The equation thresholded ridge reads off the reconstruction's derivatives; `rng` is not used."""
    field = reconstruct(observations, params.spectral)
    began = time.process_time()
    found = select_strong(field, library, params.regression)
    seconds = {"fit": field.made.seconds, "select": round(time.process_time() - began, 4)}
    return replace(found, method="PDE-FIND", seconds=seconds)
