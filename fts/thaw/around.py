"""A fitted support -> what its information says of coefficients, and of other supports to second order.

Around a fit chi^2 is a quadratic form of all coefficients, those of terms left out too: what a support gains
is a small solve, and no integration.
"""

from collections.abc import Iterable
from itertools import combinations

import numpy as np
from jaxtyping import Float

from fts.params import ForecastParams
from fts.thaw.fit import Following

Support = tuple[int, ...]
# Directions the samples say nothing about, relative to those they know best.
_UNSEEN = 1e-10
# All supports of up to so many terms are looked at in libraries up to that size.
_LARGEST_SUPPORT, _LARGEST_LIBRARY = 5, 14


def deviations(fit: Following) -> Float[np.ndarray, " J"]:
    """Standard errors of the coefficients in the support."""
    inside, result = list(fit.support), np.zeros(len(fit.xi))
    covariance = np.linalg.pinv(fit.information[np.ix_(inside, inside)], hermitian=True)
    result[inside] = np.sqrt(np.maximum(np.diag(covariance), 0))
    return result


def excluded(fit: Following) -> dict[int, tuple[float, float]]:
    """For every term left out its coefficient if it were added, and the standard error of that."""
    inside, found = list(fit.support), {}
    for j in range(len(fit.xi)):
        if j in inside:
            continue
        column = fit.information[inside, j]
        share = np.linalg.lstsq(fit.information[np.ix_(inside, inside)], column, rcond=None)[0]
        own = fit.information[j, j] - column @ share
        if own > _UNSEEN * fit.information[j, j]:
            found[j] = (float((fit.score[j] - fit.score[inside] @ share) / own), float(own**-0.5))
        else:
            found[j] = (0.0, float("inf"))
    return found


def promising(best: Following, params: ForecastParams) -> list[Support]:
    """Other supports that may cost less than the best or little more, cheapest first."""
    scaled, target, _ = _quadratic(best)

    def cost(support: Support) -> float:
        return params.per_term * len(support) - _gain(scaled, target, support)

    own = cost(best.support)
    costs = sorted((cost(one) - own, one) for one in _around(best))
    return [support for more, support in costs if more < params.promising]


def others(best: Following, params: ForecastParams) -> list[Support]:
    """Supports without one of the best one's terms that may leave as little, one more term allowed."""
    scaled, target, _ = _quadratic(best)
    most = _gain(scaled, target, best.support)
    lost = [(most - _gain(scaled, target, s), s) for s in _around(best) if not set(best.support) <= set(s)]
    # To second order only: exact samples make a tiny error of the state look like a large gap.
    limit = max(params.hopeless, params.unexplained * most)
    return [support for gap, support in sorted(lost) if gap < limit]


def coefficients(best: Following, support: Support) -> Float[np.ndarray, " J"]:
    """Where a fit of another support begins."""
    scaled, target, units = _quadratic(best)
    xi = np.zeros(len(target))
    xi[list(support)] = _solved(scaled, target, support) / units[list(support)]
    return xi


def _around(best: Following) -> Iterable[Support]:
    """All supports of up to one term more; in a large library those that differ by a term or two."""
    J, most = len(best.xi), min(len(best.support) + 1, _LARGEST_SUPPORT)
    if J > _LARGEST_LIBRARY:
        return _neighbours(best.support, J)
    return (support for m in range(1, most + 1) for support in combinations(range(J), m))


def _neighbours(support: Support, J: int) -> set[Support]:
    """The support with a term removed, added or exchanged."""
    fewer = [tuple(j for j in support if j != gone) for gone in support]
    more = {tuple(sorted((*part, j))) for part in (support, *fewer) for j in range(J) if j not in part}
    return {part for part in (*fewer, *more) if part}


def _quadratic(fit: Following) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Information in unit diagonal, the linear part of chi^2 around zero, and the units."""
    units = np.sqrt(np.maximum(np.diag(fit.information), np.finfo(float).tiny))
    scaled = fit.information / np.outer(units, units)
    return scaled, scaled @ (fit.xi * units) + fit.score / units, units


def _gain(scaled: np.ndarray, target: np.ndarray, support: Support) -> float:
    return float(target[list(support)] @ _solved(scaled, target, support))


def _solved(scaled: np.ndarray, target: np.ndarray, support: Support) -> np.ndarray:
    inside = list(support)
    return np.linalg.solve(scaled[np.ix_(inside, inside)] + _UNSEEN * np.eye(len(inside)), target[inside])
