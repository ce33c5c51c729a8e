"""Evidence -> the equation it speaks for, and every other that explains the samples as well.

A support is *plausible* when it leaves no more unexplained than the field's uncertainty allows, or not
clearly more than the best support in regions left out. Among plausible supports whose terms all stand out of
their standard errors the smallest is chosen; what else is plausible is a rival. Every test is a ratio that is
at least one when passed, so that the least of them, the margin, says how far the verdict is from turning.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from fts.discovery.evidence import FLOOR, Evidence, Weighed, cosine, judge, worse
from fts.params import VerdictParams

# Libraries up to this size are searched completely, larger ones by adding to and exchanging in the best.
_COMPLETE, _BEAM = 10, 12


@dataclass(frozen=True)
class Finding:
    """The support chosen, its rivals, and how every test came out."""

    chosen: Weighed
    rivals: tuple[Weighed, ...]  # as plausible, and not the chosen terms with more added
    additions: tuple[Weighed, ...]  # the chosen terms and one more, that cannot be excluded
    leaders: tuple[Weighed, ...]  # of every number of terms the support that leaves least in regions left out
    surprise: float  # least risk over expected risk of any support; nan without a posterior
    margins: dict[str, float]  # by test, at least one where it was passed

    @property
    def margin(self) -> float:
        """The least margin: at least one when nothing speaks against the equation."""
        return min(self.margins.values())


def find(evidence: Evidence, also: Sequence[int], params: VerdictParams) -> Finding:
    """The support the evidence speaks for; `also` is one to look at in any case, as a selector chose it."""
    everything = search(evidence, also, params.most_terms)
    best = min(everything, key=lambda one: one.left_out.sum())
    surprise = _surprise(everything)
    scale = _scale(everything, surprise, params)

    def excess(one: Weighed, leeway: float = params.leeway) -> float:
        """At most one for a plausible support."""
        return min(one.risk / (leeway * scale * _expected(one, best)), worse(one, best) / params.worse)

    plausible = [one for one in everything if excess(one) <= 1]
    sound = [one for one in plausible if (one.significant >= params.significance).all()] or plausible
    size = min(len(one.support) for one in sound)
    chosen = min((one for one in sound if len(one.support) == size), key=lambda one: one.left_out.sum())
    others = [
        one
        for one in everything
        if one is not chosen
        and len(one.support) <= size + 1
        and not set(chosen.support) <= set(one.support)
        and (one.significant >= params.significance).all()
    ]

    def against(one: Weighed) -> float:
        """At most one for a rival; with a term more it has to explain at least as much as the chosen one."""
        if len(one.support) <= size:
            return min(excess(one), _unlike(evidence, chosen, one, params))
        return max(one.risk, FLOOR) / (params.leeway_larger * max(chosen.risk, FLOOR))

    margins = {
        "significance": float((chosen.significant / params.significance).min(initial=np.inf))
        if size
        else 0.0,
        "rivals": min((against(one) for one in others), default=np.inf),
        "risk": params.risk / max(chosen.risk, FLOOR),
    }
    if np.isfinite(surprise):
        # A posterior may be too sure by a factor: a residual that is small as well is forgiven it.
        factor = params.surprise / max(surprise, FLOOR)
        small = params.small / max(best.risk, FLOOR)
        margins["expectation"] = max(factor, min(small, params.too_sure * factor))
    added = _additions(evidence, chosen)
    bounds = {one.support: _bound(one, chosen, params) for one in added}
    margins["completeness"] = 1 / max(max(bounds.values(), default=0.0), FLOOR)
    rivals = sorted((one for one in others if against(one) <= 1), key=lambda one: one.left_out.sum())
    open_ones = tuple(one for one in added if bounds[one.support] > 1)
    return Finding(chosen, tuple(rivals), open_ones, _leaders(everything), surprise, margins)


def _leaders(found: Sequence[Weighed]) -> tuple[Weighed, ...]:
    best: dict[int, Weighed] = {}
    for one in sorted(found, key=lambda one: one.left_out.sum()):
        best.setdefault(len(one.support), one)
    return tuple(best[size] for size in sorted(best) if size)


def search(evidence: Evidence, also: Sequence[int], most: int) -> list[Weighed]:
    """All supports of a small library up to `most` terms; of a larger one those around the best."""
    usable = [j for j, norm in enumerate(evidence.norms) if np.isfinite(norm)]
    most = min(most, len(usable))
    found = judge(evidence, np.empty((1, 0), dtype=int))
    if len(usable) <= _COMPLETE:
        for size in range(1, most + 1):
            found += judge(evidence, np.array(list(combinations(usable, size))))
        return found + _extra(evidence, found, [tuple(also)])
    for size in (1, 2):
        found += judge(evidence, np.array(list(combinations(usable, size))))
    for size in range(2, most + 1):
        if size > 2:
            found += _extra(evidence, found, _grown(_leading(found, size - 1), usable))
        # Twice: an exchange may open the way to another.
        for _ in range(2):
            found += _extra(evidence, found, _exchanged(_leading(found, size), usable))
    subsets = (
        [part for size in range(1, len(also) + 1) for part in combinations(also, size)]
        if len(also) <= 8
        else []
    )
    return found + _extra(evidence, found, subsets)


def _leading(found: list[Weighed], size: int) -> list[tuple[int, ...]]:
    ranked = sorted((one for one in found if len(one.support) == size), key=lambda one: one.risk)
    return [one.support for one in ranked[:_BEAM]]


def _grown(supports: Sequence[tuple[int, ...]], usable: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for support in supports:
        yield from (tuple(sorted((*support, j))) for j in usable if j not in support)


def _exchanged(supports: Sequence[tuple[int, ...]], usable: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for support in supports:
        for gone in support:
            yield from _grown([tuple(j for j in support if j != gone)], usable)


def _extra(evidence: Evidence, found: list[Weighed], supports: Sequence | Iterator) -> list[Weighed]:
    """Those of `supports` that were not judged yet."""
    known = {one.support for one in found}
    new = sorted({support for support in supports if support and support not in known})
    sizes = sorted({len(support) for support in new})
    return [one for size in sizes for one in judge(evidence, np.array([s for s in new if len(s) == size]))]


def _additions(evidence: Evidence, chosen: Weighed) -> list[Weighed]:
    usable = [j for j, norm in enumerate(evidence.norms) if np.isfinite(norm)]
    return _extra(evidence, [], _grown([chosen.support], usable))


def _bound(one: Weighed, chosen: Weighed, params: VerdictParams) -> float:
    """The largest share of u_t the term added to `chosen` may have, |share| + 2 se, over what is allowed.

    Less is allowed where the estimate itself points away from zero.
    """
    (place,) = (i for i, j in enumerate(one.support) if j not in chosen.support)
    allowed = params.suggested if one.significant[place] >= params.suggestive else params.open
    return float(abs(one.share[place]) + 2 * one.se[place]) / allowed


def _unlike(evidence: Evidence, chosen: Weighed, other: Weighed, params: VerdictParams) -> float:
    """How far the columns are from parallel that one exchange swaps, over how far they must be.

    On a field of one wavenumber derivatives differ by what each makes of the noise, which decides nothing.
    """
    gone, new = set(chosen.support) - set(other.support), set(other.support) - set(chosen.support)
    if len(gone) != 1 or len(new) != 1:
        return float("inf")
    (i,), (j,) = gone, new
    if evidence.orders[i] == evidence.orders[j]:
        return float("inf")
    return (1 - abs(cosine(evidence, i, j))) / (1 - params.alike)


def _surprise(found: Sequence[Weighed]) -> float:
    if np.isnan(found[0].expected):
        return float("nan")
    return min(one.risk / max(one.expected, FLOOR) for one in found)


def _expected(one: Weighed, best: Weighed) -> float:
    """What the posterior expects; without one, what the best support leaves: an error nothing explains."""
    return max(best.risk if np.isnan(one.expected) else one.expected, FLOOR)


def _scale(found: Sequence[Weighed], surprise: float, params: VerdictParams) -> float:
    """The posterior's errors, corrected by the least surprising support: larger errors than it expects count
    in full, smaller ones down to a limit."""
    return 1.0 if np.isnan(surprise) else max(surprise, params.least_scale)
