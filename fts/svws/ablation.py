"""The rule with one part taken away: single thresholds, no filter, lowest risk, majority vote (D.2)."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fts.params import SVWSParams
from fts.svws import rule, sparse
from fts.svws.selection import Candidates, Selection
from fts.weak.assembly import WeakSystem


def single(system: WeakSystem, multiplier: float, params: SVWSParams) -> Selection:
    """Ablation: STLSQ at one threshold on one system, coefficients as STLSQ leaves them."""
    normal = sparse.normalize(system.A, system.b)
    x = sparse.stlsq(normal, multiplier * params.lam0, params.ridge, params.max_iterations)
    return Selection(system.library, normal.physical(x), f"stlsq {multiplier:g}")


def without_filter(
    candidates: Candidates, fit: WeakSystem, validation: Sequence[WeakSystem], params: SVWSParams
) -> Selection:
    """Ablation: every proposed support is eligible (tau = 0), then the rule as it is."""
    chosen = rule.choose(candidates, fit, validation, replace(params, tau=0.0))
    return replace(chosen, method="without stability filter")


def minimum_risk(
    candidates: Candidates, fit: WeakSystem, validation: Sequence[WeakSystem], params: SVWSParams
) -> Selection:
    """Ablation: the support of lowest mean validation risk over the whole pool."""
    trace = without_filter(candidates, fit, validation, params)._traced()
    winner = int(np.argmin(trace.mu))
    reason = f"lowest mean validation risk, {trace.mu[winner]:.3g}"
    return Selection(
        candidates.library, trace.xi[winner], "minimum risk", replace(trace, winner=winner, reason=reason)
    )


def majority(candidates: Candidates, fit: WeakSystem, params: SVWSParams) -> Selection:
    """Ablation: the terms that more than half of the proposals contain, refit on the fit system."""
    vote = candidates.pi > 0.5
    xi = sparse.refit(fit.A, fit.b, vote, params.ridge)
    return Selection(candidates.library, xi, "majority vote")


def variants(systems: Sequence[WeakSystem], params: SVWSParams) -> dict[str, Selection]:
    """What the rule and everything it is compared with select on the same systems, by name."""
    generation, fit, validation = rule.roles(systems, params)
    pool = rule.generate(generation, params)
    every = [
        rule.choose(pool, fit, validation, params),
        *(single(generation[0], multiplier, params) for multiplier in params.multipliers),
        without_filter(pool, fit, validation, params),
        minimum_risk(pool, fit, validation, params),
        majority(pool, fit, params),
    ]
    return {one.method: one for one in every}
