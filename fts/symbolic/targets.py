"""Field -> pairs (u, q_hat(u)): a spline in u that solves u_t = D_xx q(u) weakly (Section F).

Symbolic regression fits values, so a rival needs values of q first. q_hat is a sum of centered cubic
B-splines whose coefficients solve one weak system in least squares, with penalties on their second
differences and on their sum, to which D_xx is blind.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.interpolate import BSpline

from fts.fields.frozen import Field
from fts.params.rivals import TargetParams
from fts.symbolic.occupation import StateSystem, state_systems

_DEGREE = 3
_MIDDLE = np.zeros(2)  # the phase of the one system


@dataclass(frozen=True)
class Target:
    """States and the estimated function on them, known up to a constant; and the system they came from."""

    u: Float[np.ndarray, " n"]
    q: Float[np.ndarray, " n"]
    system: StateSystem


def spline_target(field: Field, params: TargetParams) -> Target:
    """q_hat(u) at equally spaced states between the outermost knots."""
    (system,) = state_systems(field, [(params.weak, _MIDDLE)], params.grid_states)
    low, high = _range(field, params)
    basis = spline_basis(low, high, params.basis)
    u = np.linspace(low, high, params.pairs)
    values = basis(u)
    q = (values - values.mean(axis=0)) @ _coefficients(system, basis(system.states), params)
    return Target(u, q, system)


def spline_basis(low: float, high: float, count: int) -> BSpline:
    """Clamped cubic B-splines on [low, high]; beyond, the end polynomials go on."""
    inner = np.linspace(low, high, count - _DEGREE + 1)
    knots = np.concatenate([[low] * _DEGREE, inner, [high] * _DEGREE])
    return BSpline(knots, np.eye(count), _DEGREE)


def _coefficients(system: StateSystem, basis: np.ndarray, params: TargetParams) -> np.ndarray:
    """Penalized least squares; the system is scaled to unit norm, so the penalties have no dimension."""
    A = system.on_states[2] @ basis
    size = np.linalg.norm(A)
    second = np.diff(np.eye(params.basis), 2, axis=0)
    rows = [
        A / size,
        np.sqrt(params.curvature_penalty) * second,
        np.full((1, params.basis), np.sqrt(params.offset_penalty)),
    ]
    right = np.concatenate([system.b / size, np.zeros(len(second) + 1)])
    return np.linalg.lstsq(np.concatenate(rows), right, rcond=None)[0]


def _range(field: Field, params: TargetParams) -> tuple[float, float]:
    """The states between which the field spends all but the trimmed share of its time, on an even grid."""
    counts = [m * n for m, n in zip(params.weak.patches, params.weak.nodes, strict=True)]
    ends = zip((*field.domain.low, field.domain.t0), field.domain.extents, counts, strict=True)
    axes = [low + extent * (np.arange(n) + 0.5) / n for low, extent, n in ends]
    low, high = np.quantile(field.on_grid(*axes), [params.trim, 1 - params.trim])
    return float(low), float(high)
