"""WSINDy: thresholded ridge on a weak system of the spectral reconstruction (Supplement C).

Integrals are plain, the test function's peak is one; columns have unit length. The terms that survive the
tolerance on one system get their coefficients by ridge on a second one, whose patches lie elsewhere.
"""

import time
from dataclasses import replace

import numpy as np

from fts.baselines.spectral import reconstruct
from fts.baselines.stridge import select_weak
from fts.equations.terms import Library
from fts.observations import Observations
from fts.params import WSINDyParams
from fts.svws.selection import Selection


def wsindy(
    observations: Observations, library: Library, params: WSINDyParams, rng: np.random.Generator
) -> Selection:
    """The equation thresholded ridge reads off weak systems of the reconstruction; `rng` draws the phases."""
    field = reconstruct(observations, params.spectral)
    began = time.process_time()
    found = select_weak(field, library, params.regression, rng)
    seconds = {"fit": field.made.seconds, "select": round(time.process_time() - began, 4)}
    return replace(found, method="WSINDy", seconds=seconds)
