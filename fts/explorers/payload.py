"""A frozen field -> the bytes a page carries: every spatial half as a series, all that a browser evaluates.

The features of a network are analytic, so few Chebyshev coefficients hold them: the shipped fields take 32 to
146 KB with float32 series, 85 KB in the mean, where they take 76 to 89 KB with weights, 84 KB in the mean.
Features then agree to 4e-7 of their largest values and columns of weak systems to 1e-7.
"""

import hashlib
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from fts.fields.frozen import FrozenField
from fts.fields.series import as_series

# Relative to a feature's largest coefficient; float32 resolves 6e-8.
_TOLERANCE = 5e-8


def field_bytes(field: FrozenField) -> bytes:
    """The field's file, with series in place of a network."""
    if field.space.kind != "series":
        series = as_series(field.space, field.domain, _TOLERANCE)
        single = replace(series, coefficients=series.coefficients.astype(np.float32))
        field = replace(field, space=single)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "field.fts"
        field.save(path)
        return path.read_bytes()


def field_key(data: bytes) -> str:
    """Sixteen hex digits that name a field by its content."""
    return hashlib.sha256(data).hexdigest()[:16]
