"""Refits of a selected support over the rows of all systems: pooled least squares and Tukey's biweight.

On a frozen field the residuals of the right equation have heavy tails: a few patches lie where the field is
badly reconstructed. Reweighting takes those rows out. No truth enters; held-out rows decide which refit is
preferred.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float

from fts import sparse
from fts.params import SVWSParams
from fts.selection import Refit, Selection
from fts.weak import WeakSystem

# Tukey's constant: 95 % efficiency where the residuals are Gaussian after all.
_TUNING = 4.685
# A Gaussian's standard deviation is this multiple of its median absolute value.
_MAD = 1.4826
_ITERATIONS = 30
# Coefficients that move by less than this fraction have settled.
_SETTLED = 1e-12


def refits(
    selection: Selection,
    training: Sequence[WeakSystem],
    validation: Sequence[WeakSystem],
    params: SVWSParams,
) -> Selection:
    """The selection with its refits beside the paper's ridge, the one of lowest held-out risk in front.

    Each is fitted on the generation and fit rows and scored on the validation rows; the reported coefficients
    of the pooled and robust fits then use the rows of all systems.
    """
    support = selection.xi != 0
    singles = (*training, *validation)
    by_system = np.array([sparse.refit(one.A, one.b, support, params.ridge) for one in singles])
    held = stack(validation)
    found = {"ridge": Refit(selection.xi, risk(*held, selection.xi))}
    some, every = stack(training), stack(singles)
    for name, fit in (("pooled", pooled), ("robust", tukey)):
        found[name] = Refit(fit(*every, support), risk(*held, fit(*some, support)))
    preferred = min(found, key=lambda name: found[name].risk)
    return replace(selection, xi=found[preferred].xi, refits=found, preferred=preferred, by_system=by_system)


def stack(systems: Sequence[WeakSystem]) -> tuple[Float[np.ndarray, "m J"], Float[np.ndarray, " m"]]:
    """The rows of all systems as one."""
    return np.concatenate([one.A for one in systems]), np.concatenate([one.b for one in systems])


def pooled(
    A: Float[np.ndarray, "m J"], b: Float[np.ndarray, " m"], support: Bool[np.ndarray, " J"]
) -> Float[np.ndarray, " J"]:
    """Ordinary least squares on the support."""
    return sparse.refit(A, b, support, 0.0)


def tukey(
    A: Float[np.ndarray, "m J"], b: Float[np.ndarray, " m"], support: Bool[np.ndarray, " J"]
) -> Float[np.ndarray, " J"]:
    """Iteratively reweighted least squares on the support, w = (1 - (r / c s)^2)^2 within c s and 0 beyond.

    The scale s is 1.4826 times the median absolute residual; a fit that meets half of the rows is final.
    """
    xi = np.zeros(len(support))
    columns, everything = A[:, support], np.ones(int(support.sum()), dtype=bool)
    x = pooled(columns, b, everything)
    for _ in range(_ITERATIONS if support.any() else 0):
        weights = biweights(columns @ x - b)
        if weights is None:
            break
        root = np.sqrt(weights)
        x, before = pooled(columns * root[:, None], b * root, everything), x
        if np.abs(x - before).max() <= _SETTLED * np.abs(x).max():
            break
    xi[support] = x
    return xi


def biweights(residual: Float[np.ndarray, " m"]) -> Float[np.ndarray, " m"] | None:
    """Tukey's weights of the rows, or None when the typical residual is zero."""
    limit = _TUNING * _MAD * float(np.median(np.abs(residual)))
    if limit <= np.finfo(float).tiny:
        return None
    inside = np.clip(np.abs(residual) / limit, 0.0, 1.0)
    return (1.0 - inside**2) ** 2


def risk(A: Float[np.ndarray, "m J"], b: Float[np.ndarray, " m"], xi: Float[np.ndarray, " J"]) -> float:
    """median |A xi - b| / median |b|: squared risks would be decided by the very outliers."""
    size = float(np.median(np.abs(b)))
    typical = float(np.median(np.abs(A @ xi - b)))
    return typical / size if size > 0 else typical
