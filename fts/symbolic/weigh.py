"""A chosen function, refitted with rows that count by what the field's posterior knows of them.

The true field is the posterior mean plus an error e that the mean does not depend on. So the rows of
u_t = d_xx q(u) on the mean have, for the true q and to first order in e, mean zero and the covariance of the
same rows over fields drawn from the posterior. Least squares in that metric is not drawn to a smaller
exponent by the noise a field has kept, as plain least squares is. No equation enters the field. Not in the
paper.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from fts.fields.frozen import Field
from fts.params.symbolic import SymbolicParams, WeighParams
from fts.symbolic.families import Form
from fts.symbolic.occupation import residual, state_systems
from fts.symbolic.refit import fit_numbers, positive_states


def weigh(
    form: Form,
    field: Field,
    draws: Sequence[Field],
    symbolic: SymbolicParams,
    params: WeighParams,
    rng: np.random.Generator,
) -> Form:
    """The form with the numbers that fit a new weak system best, its rows weighted by the drawn fields."""
    if len(draws) < 2:
        raise ValueError(f"{len(draws)} drawn fields have no covariance: take a kernel field, and more draws")
    geometry, phase, floor = symbolic.patches.refit, rng.random(2), symbolic.protection.power_floor
    (system,) = state_systems(field, [(geometry, phase)], symbolic.patches.states)
    rows = [residual(one, geometry, phase, lambda u: form.values(np.maximum(u, floor))) for one in draws]
    metric = whitening(np.array(rows), params.floor)
    metric /= np.linalg.norm(metric @ system.b)
    u = positive_states(system, symbolic)
    found = fit_numbers(
        form,
        lambda one: metric @ (system.column(one.values(u)) - system.b),
        lambda one: metric @ (system.on_states[2] @ one.jacobian(u)),
        u,
        symbolic,
    )
    return form if found is None else found


def whitening(rows: Float[np.ndarray, "draws m"], floor: float) -> Float[np.ndarray, "m m"]:
    """W with W C W = 1 for the covariance C of the rows, its diagonal raised by a share of its mean."""
    covariance = np.cov(rows.T)
    covariance[np.diag_indices_from(covariance)] += floor * np.trace(covariance) / len(covariance)
    sizes, vectors = np.linalg.eigh(covariance)
    return (vectors / np.sqrt(sizes)) @ vectors.T
