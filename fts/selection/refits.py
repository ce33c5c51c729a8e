"""Refits of a selected support over the rows of all systems: pooled least squares and Tukey's biweight.

On a frozen field the residuals of the right equation have heavy tails: a few patches lie where the field is
badly reconstructed. Reweighting takes those rows out; a field with a posterior variance says
beforehand which rows they are. No truth enters; held-out regions decide which refit is preferred.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from jaxtyping import Bool, Float

from fts.equations.terms import Library
from fts.fields.frozen import Field
from fts.params.types import SVWSParams, WeakParams
from fts.selection import sparse
from fts.selection.moments import jackknife, regions
from fts.selection.selection import Refit, Selection
from fts.weak.assembly import WeakSystem, assemble

# Tukey's constant: 95 % efficiency where the residuals are Gaussian after all.
_TUNING = 4.685
# A Gaussian's standard deviation is this multiple of its median absolute value.
_MAD = 1.4826
_ITERATIONS, _RESTARTED = 30, 5
# Coefficients that move by less than this fraction have settled.
_SETTLED = 1e-12
# A variance varies with the distance to samples, far slower than a field: fewer nodes per axis do.
_COARSER, _COARSEST = 4, 6
_FLOOR = 1e-3


def with_refits(
    selection: Selection,
    training: Sequence[WeakSystem],
    validation: Sequence[WeakSystem],
    params: SVWSParams,
    variances: Float[np.ndarray, " m"] | None = None,
) -> Selection:
    """The selection with its refits beside the paper's ridge; the one that depends least on any region leads.

    Pooled and robust coefficients use the rows of all systems. Which of them is preferred is decided by what
    happens to each when a region of space-time is left out (`jackknife`); the median residual on the
    validation rows, of coefficients fitted without them, is reported beside it. With the rows' `variances`
    (`row_variances`) both are also fitted to weighted rows, and one of these leads.
    """
    support, systems, held_out = selection.xi != 0, (*training, *validation), stack(validation)
    by_system = np.array([sparse.refit(system.A, system.b, support, params.ridge) for system in systems])
    A, b = stack(systems)
    blocks = regions(np.concatenate([system.centers for system in systems]))
    spread = by_system.std(axis=0, ddof=1) if len(systems) > 1 else np.zeros(len(support))
    fits = {"ridge": Refit(selection.xi, spread, risk(*held_out, selection.xi))}
    cut = len(b) - len(held_out[1])
    roots = {"": np.ones(len(b))}
    weighted = root_weights(len(b), variances)
    if variances is not None and np.median(variances) > 0:
        roots["weighted "] = weighted
    for prefix, root in roots.items():
        rows, values = A * root[:, None], b * root
        for name, fit in ((f"{prefix}pooled", pooled), (f"{prefix}robust", tukey)):
            xi = fit(rows, values, support)
            again = pooled if fit is pooled else partial(tukey, start=xi[support])
            deviation = _jackknife_of_rows(rows, values, support, blocks, again)
            fits[name] = Refit(xi, deviation, risk(*held_out, fit(rows[:cut], values[:cut], support)))
    # Weighted rows lead where their variances are known. Compared in units of the columns, so that no
    # coefficient's physical unit decides.
    leading, norms = list(roots)[-1], np.linalg.norm(A, axis=0)
    names = (f"{leading}pooled", f"{leading}robust")
    preferred = min(names, key=lambda name: float(np.linalg.norm(fits[name].deviation * norms)))
    return replace(selection, xi=fits[preferred].xi, refits=fits, preferred=preferred)


def _jackknife_of_rows(
    A: np.ndarray, b: np.ndarray, support: np.ndarray, blocks: np.ndarray, fit: Callable[..., np.ndarray]
) -> Float[np.ndarray, " J"]:
    names, deviation = np.unique(blocks), np.zeros(len(support))
    if len(names) < 2 or not support.any():
        return deviation
    columns, every = A[:, support], np.ones(int(support.sum()), dtype=bool)
    deviation[support] = jackknife(
        np.array([fit(columns[blocks != k], b[blocks != k], every) for k in names])
    )
    return deviation


def row_variances(
    variance: Field, params: WeakParams, systems: Sequence[WeakSystem]
) -> Float[np.ndarray, " m"]:
    """The field's variance under the test function of each row of all systems, on a coarser quadrature."""
    coarse, only = replace(params, nodes=coarser(params)), Library.parse(["u"])
    return np.concatenate([assemble(variance, only, coarse, system.phase).A[:, 0] for system in systems])


def coarser(params: WeakParams) -> tuple[int, ...]:
    """Nodes per axis that integrate a variance under the test functions."""
    return tuple(max(_COARSEST, n // _COARSER) for n in params.nodes)


def root_weights(count: int, variances: Float[np.ndarray, " m"] | None) -> Float[np.ndarray, " m"]:
    """Square roots of the rows' weights: 1 / variance, or one where variances are unknown or mostly zero."""
    if variances is None:
        return np.ones(count)
    if variances.shape != (count,) or not (variances >= 0).all():
        raise ValueError(f"variances {variances.shape} for {count} rows: give one, not negative, for each")
    typical = float(np.median(variances))
    if typical == 0:
        return np.ones(count)
    # Rows far better than the typical one are limited by quadrature and freezing, not by their variance.
    return np.sqrt(typical / (variances + _FLOOR * typical))


def stack(systems: Sequence[WeakSystem]) -> tuple[Float[np.ndarray, "m J"], Float[np.ndarray, " m"]]:
    """The rows of all systems as one."""
    return np.concatenate([each.A for each in systems]), np.concatenate([each.b for each in systems])


def pooled(
    A: Float[np.ndarray, "m J"], b: Float[np.ndarray, " m"], support: Bool[np.ndarray, " J"]
) -> Float[np.ndarray, " J"]:
    """Ordinary least squares on the support."""
    return sparse.refit(A, b, support, 0.0)


def tukey(
    A: Float[np.ndarray, "m J"],
    b: Float[np.ndarray, " m"],
    support: Bool[np.ndarray, " J"],
    start: Float[np.ndarray, " J"] | None = None,
) -> Float[np.ndarray, " J"]:
    """Iteratively reweighted least squares on the support, w = (1 - (r / c s)^2)^2 within c s and 0 beyond.

    The scale s is 1.4826 times the median absolute residual; a fit that meets half of the rows is final. From
    a `start` close to the solution, as in the jackknife, a few iterations suffice.
    """
    xi = np.zeros(len(support))
    if not support.any():
        return xi
    normal = sparse.normalize(A[:, support], b)
    everything = np.ones(int(support.sum()), dtype=bool)
    x = sparse.solve(normal, everything, 0.0) if start is None else start[support] * normal.norms
    for _ in range(_ITERATIONS if start is None else _RESTARTED):
        weights = biweights(normal.A @ x - b)
        if weights is None:
            break
        root, before = np.sqrt(weights), x
        # Unit columns lose some of their length to the weights, not their order of magnitude: they are kept.
        rows = sparse.NormalSystem(normal.A * root[:, None], normal.b * root, normal.norms)
        x = sparse.solve(rows, everything, 0.0)
        if np.abs(x - before).max() <= _SETTLED * np.abs(x).max():
            break
    xi[support] = normal.physical(x)
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
