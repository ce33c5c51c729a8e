"""The verdict of an integrated equation, held against a wide class of others and against its own residuals.

An equation is called identified among the equations of a class, and down to a size. The class is that of
fts.trajectory.audit; which terms of it would be too small to be seen is said beside the verdict.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fts.discovery.evidence import VerdictParams
from fts.discovery.verdict import MORE_WAVES, SHOWN, Rival, Verdict, with_reasons
from fts.equations.equation import Equation
from fts.equations.terms import Library
from fts.trajectory.audit import AUDIT, Audit, audit
from fts.trajectory.comparison import Comparison, compare_wider
from fts.trajectory.fit import TrajectoryFit

# Departures named in a reason, and terms named as too small to be seen.
_NAMED, _UNSEEN = 3, 3
# Cosine of two moves of the state beyond which they are one: samples whose mean is 70 times their deviation.
_PROPORTIONAL = 1 - 1e-4


@dataclass(frozen=True)
class _Wider:
    """An equation with terms beyond the library, and by how much it follows the samples worse."""

    equation: Equation
    fit: TrajectoryFit
    beyond: tuple[str, ...]
    gap: float  # in squared noise units


def audited(
    verdict: Verdict,
    comparison: Comparison,
    fit: TrajectoryFit,
    params: VerdictParams,
    step: Callable[[], object] = lambda: None,
) -> tuple[Verdict, Audit | None]:
    """The verdict on `fit` with what score tests and residuals have against it, and the class it holds in.

    Where the tests want something, equations of the larger library are searched for what it may be.
    """
    record = comparison.record
    made = audit(record, comparison.library, fit, AUDIT)
    if made is None:
        return verdict, None
    names = [test.departure.name for test in made.wanted]
    # Where nothing follows the samples, the next best equation says little.
    wider = _wider(comparison, made, fit, step) if verdict.status != "not identifiable" else []
    if names:
        better = next((each for each in wider if each.gap <= -record.params.per_term), None)
        reasons, rivals = [_wanted(made)], [better] if better else []
        if better and (again := audit(record, made.library, better.fit, AUDIT)) and not again.wanted:
            names = [*better.beyond, *(name for name in names if name not in better.beyond)]
            reasons = [f"{better.equation} follows the samples better: add {' and '.join(better.beyond)}"]
    else:
        rivals = [each for each in wider if _as_good(each, comparison, params)]
        reasons = [
            f"beyond the library {each.equation} follows the samples as well; {MORE_WAVES}"
            for each in rivals[:1]
        ]
    verdict = with_reasons(verdict, (*reasons, *_correlated(made)))
    shown = tuple(Rival(each.equation, _risk(comparison, each.fit)) for each in rivals)
    rivals = (*shown, *verdict.rivals)[:SHOWN]
    return replace(verdict, wanted=tuple(names), scope=_scope(made), rivals=rivals), made


def _wider(
    comparison: Comparison, made: Audit, fit: TrajectoryFit, step: Callable[[], object]
) -> list[_Wider]:
    """Equations with a term beyond the library, the one that follows the samples best first."""
    around, library = made.around(fit), made.library
    fits = compare_wider(comparison, around, library, step, incomplete=bool(made.wanted))
    noise = max(fit.misfit, comparison.record.params.least_noise * comparison.record.scale)
    result = []
    for each in fits:
        if _same(around, each):
            continue
        gap = (each.square - fit.square) / noise**2 + each.prior - fit.prior
        beyond = tuple(library.names[j] for j in each.support if j >= len(comparison.library))
        result.append(_Wider(_equation(library, each), each, beyond, gap))
    return sorted(result, key=lambda each: each.gap)


def _same(around: TrajectoryFit, fit: TrajectoryFit) -> bool:
    """True for an equation whose new term moves the state as the one in its stead does.

    Far from zero u^2 is a multiple of u up to a constant: which of the two it is, depends on the origin of u.
    """
    size = np.sqrt(np.maximum(np.diag(around.information), np.finfo(float).tiny))
    gone = [i for i in around.support if i not in fit.support]
    new = [j for j in fit.support if j not in around.support]
    if len(gone) != len(new):
        return False
    cosines = np.abs(around.information[np.ix_(gone, new)]) / np.outer(size[gone], size[new])
    return bool((cosines.max(axis=0) > _PROPORTIONAL).all())


def _as_good(wider: _Wider, comparison: Comparison, params: VerdictParams) -> bool:
    """True for an equation that is no worse, as one is not that follows all but a negligible part."""
    negligible = params.forecast.negligible * comparison.record.scale
    return wider.gap < params.rival_gap or wider.fit.misfit < negligible


def _equation(library: Library, fit: TrajectoryFit) -> Equation:
    return Equation(tuple(library[j] for j in fit.support), fit.xi[list(fit.support)])


def _risk(comparison: Comparison, fit: TrajectoryFit) -> float:
    return fit.square / (comparison.record.samples * comparison.record.scale**2)


def _wanted(made: Audit) -> str:
    """The departures that are significant, in one sentence."""
    shares = [
        f"{test.departure.name} ({test.share:.0%} of the change of state, p = {_chance(test.log_p)})"
        for test in made.wanted[:_NAMED]
    ]
    return f"integrated, the equation lacks something: the samples ask for {', then for '.join(shares)}"


def _chance(log_p: float) -> str:
    """A chance that may be too small for a float."""
    exponent = int(np.floor(log_p / np.log(10)))
    return f"1e{exponent:+03d}"


def _correlated(made: Audit) -> list[str]:
    """The sentence about residuals that are alike where samples are neighbours."""
    correlations = made.residuals.correlations
    if all(abs(each.z) <= AUDIT.alike for each in correlations.values()):
        return []
    return [f"{made.residuals.sentence} A term is missing, or the noise is not independent; add terms"]


def _scope(made: Audit) -> str:
    """Within which class an equation was tested, and which terms are too small to be seen."""
    single = [test for test in made.tests if test.departure.columns[0] < len(made.library)]
    # Derivatives of a single wave differ by rounding, which must not decide their order.
    seen = sorted(
        (test for test in single if test.freedom), key=lambda test: -float(f"{test.unseen_share:.4g}")
    )
    unseen = ", ".join(f"{test.least:.2g} {test.departure.name}" for test in seen[:_UNSEEN])
    return (
        f"tested against {len(made.tests)} departures: further terms, coefficients that vary, forcing, mixed "
        "and second derivatives in time, fractional powers, a hidden component; terms that would not be "
        f"seen: up to {unseen}"
    )
