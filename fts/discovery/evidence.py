"""Weak systems and possible fields -> what the samples say about any support: coefficients, errors, risks.

Rows are weighted by the field's posterior variance and gathered by region of space-time. After that every
support costs a few small solves: its fit, the fits without one region (jackknife) and the fits on fields
drawn from the posterior. Units: columns and u_t have weighted norm one, so a coefficient is a share of u_t.

    se^2 = (n - 1)/n sum_k (x_-k - mean)^2  +  mean_d (x(field_d) - x(field))^2,
    expected risk = mean_d ||(A_d - A) x - (b_d - b)||^2 / ||b||^2,

the second being what the true equation leaves on this field, if the posterior is right.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from fts.fields.frozen import Field
from fts.svws import refits
from fts.svws.settings import Prepared
from fts.weak.assembly import assemble
from fts.weak.patches import phases

# Added to the diagonal of Gram matrices of unit columns: dependent columns get large coefficients, no error.
_RIDGE = 1e-13
# Risks below this are rounding, freezing and quadrature, whatever the posterior expects.
FLOOR = 1e-9


@dataclass(frozen=True)
class Moments:
    """Weighted products of unit columns and of u_t: A^T A, A^T b, b^T b, along a first axis."""

    gram: Float[np.ndarray, "n J J"]
    moment: Float[np.ndarray, "n J"]
    square: Float[np.ndarray, " n"]


@dataclass(frozen=True)
class Evidence:
    """Everything the search over supports needs, and nothing that grows with the number of rows."""

    names: tuple[str, ...]
    orders: tuple[int, ...]  # of the terms' derivatives
    norms: Float[np.ndarray, " J"]  # physical coefficient = share / norm
    regions: Moments
    # Draw by draw, on rows of their own: of the field, of the drawn field, and of the difference.
    fields: Moments | None
    drawn: Moments | None
    difference: Moments | None


@dataclass(frozen=True)
class Weighed:
    """What the evidence says of one support."""

    support: tuple[int, ...]
    share: Float[np.ndarray, " m"]  # coefficients of unit columns
    se: Float[np.ndarray, " m"]
    shift: Float[np.ndarray, " m"]  # the part of se that comes from the field's own uncertainty
    risk: float  # unexplained part of u_t, squared
    expected: float  # the same, as the posterior expects of the true equation; nan without a posterior
    left_out: Float[np.ndarray, " regions"]  # unexplained in each region by coefficients fitted without it

    @property
    def significant(self) -> Float[np.ndarray, " m"]:
        """|coefficient| / se, term by term."""
        return np.abs(self.share) / np.maximum(self.se, np.finfo(float).tiny)


def gather(
    ready: Prepared, field: Field, variance: Field | None, possible: Sequence[Field], rng: np.random.Generator
) -> Evidence:
    """The evidence in prepared systems and in fields drawn from the posterior, `possible`."""
    A, b = refits.stack(ready.systems)
    variances = None if variance is None else refits.row_variances(variance, ready.weak, ready.systems)
    root = refits.row_root(len(b), variances)
    blocks = refits.regions(np.concatenate([one.centers for one in ready.systems]))
    rows, target = A * root[:, None], b * root
    size = float(np.linalg.norm(target)) or 1.0
    norms = np.linalg.norm(rows, axis=0)
    scale = np.where(norms > 0, size / np.where(norms > 0, norms, 1.0), 0.0)
    parts = [blocks == k for k in np.unique(blocks)]
    regions = _stack([_moments(rows[part] * scale / size, target[part] / size) for part in parts])
    samples = [
        _sample(ready, field, variance, one, scale, phase) for one, phase in _placed(ready, possible, rng)
    ]
    groups = [_stack(list(group)) for group in zip(*samples, strict=True)] if samples else [None] * 3
    orders = tuple(term.order for term in ready.library)
    return Evidence(ready.library.names, orders, np.where(norms > 0, norms, np.inf) / size, regions, *groups)


def judge(evidence: Evidence, supports: Int[np.ndarray, "n m"]) -> list[Weighed]:
    """Every one of `supports`, all of the same size."""
    total = Moments(*(part.sum(axis=0, keepdims=True) for part in _parts(evidence.regions)))
    share = _solve(total, supports)[:, 0]
    others = Moments(*(t - r for t, r in zip(_parts(total), _parts(evidence.regions), strict=True)))
    left = _solve(others, supports)
    jackknife = (left.shape[1] - 1) * left.var(axis=1)
    left_out = _risk(evidence.regions, supports, left)
    risk = _risk(total, supports, share[:, None])[:, 0]
    expected, shift = np.full(len(supports), np.nan), np.zeros(share.shape)
    if evidence.difference is not None and evidence.fields is not None and evidence.drawn is not None:
        size = evidence.fields.square
        repeated = np.repeat(share[:, None], len(size), axis=1)
        expected = (_risk(evidence.difference, supports, repeated) / size).mean(axis=1)
        moved = _solve(evidence.drawn, supports) - _solve(evidence.fields, supports)
        shift = np.sqrt((moved**2).mean(axis=1))
    se = np.sqrt(jackknife + shift**2)
    return [
        Weighed(tuple(int(j) for j in supports[i]), share[i], se[i], shift[i], *scalars, left_out[i])
        for i, scalars in enumerate(zip(risk.tolist(), expected.tolist(), strict=True))
    ]


def worse(one: Weighed, other: Weighed) -> float:
    """By how many standard errors, over regions left out, `one` leaves more unexplained than `other`."""
    difference = one.left_out - other.left_out
    spread = float(difference.std(ddof=1)) * np.sqrt(len(difference))
    return float(difference.sum() / max(spread, np.finfo(float).tiny))


def cosine(evidence: Evidence, i: int, j: int) -> float:
    """Between two columns of the weighted systems; one in size where they are proportional."""
    gram = evidence.regions.gram.sum(axis=0)
    return float(gram[i, j] / np.sqrt(gram[i, i] * gram[j, j]))


def _placed(ready: Prepared, possible: Sequence[Field], rng: np.random.Generator):
    """Each possible field with the phase of the coarser patch grid it is looked at on."""
    return zip(possible, phases(rng, len(possible), len(ready.weak.nodes) - 1), strict=True)


def _sample(
    ready: Prepared, field: Field, variance: Field | None, drawn: Field, scale: np.ndarray, phase: np.ndarray
) -> tuple[Moments, Moments, Moments]:
    # A quarter of the rows: one draw differs from the field everywhere, and there are several.
    coarse = replace(ready.weak, patches=tuple(max(3, n // 2) for n in ready.weak.patches))
    one, other = (assemble(each, ready.library, coarse, phase) for each in (field, drawn))
    variances = None if variance is None else refits.row_variances(variance, coarse, [one])
    root = refits.row_root(len(one), variances)
    rows = [(each.A * root[:, None] * scale, each.b * root) for each in (one, other)]
    difference = tuple(b - a for a, b in zip(*rows, strict=True))
    return _moments(*rows[0]), _moments(*rows[1]), _moments(*difference)


def _moments(A: np.ndarray, b: np.ndarray) -> Moments:
    return Moments((A.T @ A)[None], (A.T @ b)[None], np.array([b @ b]))


def _stack(moments: Sequence[Moments]) -> Moments:
    return Moments(*(np.concatenate(parts) for parts in zip(*map(_parts, moments), strict=True)))


def _parts(moments: Moments) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return moments.gram, moments.moment, moments.square


def _solve(moments: Moments, supports: np.ndarray) -> Float[np.ndarray, "supports n m"]:
    """Coefficients of every support for every entry of the moments."""
    gram, moment = _restricted(moments, supports)
    # Relative to the entry's own size: draws and regions have other norms than the whole.
    size = np.trace(gram, axis1=2, axis2=3)[..., None, None] / max(supports.shape[1], 1)
    ridge = (_RIDGE * size + np.finfo(float).tiny) * np.eye(supports.shape[1])
    return np.linalg.solve(gram + ridge, moment[..., None])[..., 0]


def _risk(moments: Moments, supports: np.ndarray, share: np.ndarray) -> Float[np.ndarray, "supports n"]:
    """b^T b - 2 x^T A^T b + x^T A^T A x, never less than nothing."""
    gram, moment = _restricted(moments, supports)
    values = (
        moments.square
        - 2 * np.einsum("snm,snm->sn", share, moment)
        + np.einsum("snm,snmk,snk->sn", share, gram, share)
    )
    return np.maximum(values, 0.0)


def _restricted(moments: Moments, supports: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    gram = moments.gram[:, supports[:, :, None], supports[:, None, :]]
    return np.moveaxis(gram, 0, 1), np.moveaxis(moments.moment[:, supports], 0, 1)
