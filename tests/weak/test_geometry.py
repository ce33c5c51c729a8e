"""Automatic patches: they follow the field's lengths, resolve the integrals, and recover equations."""

from dataclasses import replace
from math import prod

import numpy as np
import pytest

from fts.domain import Domain
from fts.equations.terms import Library
from fts.fields.frozen import CallableField, TabulatedField
from fts.params.paper import PAPER
from fts.problems.problems import problem
from fts.problems.trajectories import simulate
from fts.svws import rule
from fts.weak import geometry
from fts.weak.assembly import assemble

LIBRARY = Library.parse(["1", "u", "u*u_x", "u_xx"])


def waves(length: float, highest: int, period: float = 3.0) -> CallableField:
    """Equal amplitudes up to the wavenumber `highest`, nothing above, on an axis of the given length."""
    modes = 2 * np.pi * np.arange(1, highest + 1) / length

    def u(x: np.ndarray, t: np.ndarray) -> np.ndarray:
        return sum(np.sin(k * x + 0.7 * i + 2 * np.pi * i * t / period) for i, k in enumerate(modes, 1))

    return CallableField(u, Domain((0.0,), (length,), 0.0, 10.0, (True,)))


@pytest.mark.parametrize("highest", [4, 10, 25])
def test_the_corner_is_where_the_spectrum_ends(highest: int) -> None:
    k, _ = geometry.corners(waves(5.0, highest))
    assert k == pytest.approx(2 * np.pi * highest / 5.0, rel=0.3)


def test_half_widths_scale_with_the_units_of_length() -> None:
    small, large = (geometry.automatic(waves(length, 12), LIBRARY) for length in (1.0, 100.0))
    assert large.half_widths[0] == pytest.approx(100 * small.half_widths[0], rel=1e-9)
    assert large.half_widths[1] == pytest.approx(small.half_widths[1], rel=1e-9)
    assert large.patches == small.patches
    assert prod(small.patches) == pytest.approx(300, rel=0.2)


def test_rougher_fields_get_narrower_patches() -> None:
    rough, smooth = (geometry.automatic(waves(5.0, highest), LIBRARY) for highest in (30, 10))
    assert rough.half_widths[0] < smooth.half_widths[0]


def test_the_power_exceeds_every_derivative() -> None:
    for texts, power in ((["u"], 6), (["u_xx"], 6), (["u_xxx"], 6), (["u_xxxx"], 8), (["u_xxxxxx"], 12)):
        assert geometry.automatic(waves(5.0, 4), Library.parse(texts)).power == power


def test_quadrature_does_not_limit() -> None:
    field = waves(5.0, 6)
    params = geometry.automatic(field, LIBRARY)
    finer = replace(params, nodes=tuple(2 * n for n in params.nodes))
    ours, theirs = (assemble(field, LIBRARY, each, np.array([0.3, 0.6])) for each in (params, finer))
    change = np.linalg.norm(ours.A - theirs.A, axis=0) / np.linalg.norm(theirs.A, axis=0)
    assert change.max() < 1e-4


def test_a_field_that_does_not_vary_is_refused() -> None:
    still = CallableField(lambda x, t: np.sin(x) + 0.0 * t, Domain((0.0,), (6.0,), 0.0, 1.0, (False,)))
    with pytest.raises(ValueError, match="does not vary along t"):
        geometry.automatic(still, LIBRARY)


@pytest.mark.parametrize("name", ["kdv", "ks", pytest.param("ad", marks=pytest.mark.slow)])
def test_the_papers_equations_are_recoverable(name: str) -> None:
    """No number of the paper enters: patches, nodes, power and threshold come from the field."""
    trajectory, truth = simulate(name), problem(name)
    field = TabulatedField((*trajectory.axes, trajectory.t), trajectory.u, trajectory.domain)
    params = geometry.automatic(field, truth.library)
    system = assemble(field, truth.library, params, np.full(len(params.nodes), 0.3))
    xi = np.linalg.lstsq(system.A, system.b, rcond=None)[0]
    np.testing.assert_allclose(xi, truth.equation.on(truth.library), atol=2e-3)
    assert np.linalg.cond(system.A / np.linalg.norm(system.A, axis=0)) < 300
    params_of_rule = PAPER[name].svws
    systems = rule.build(field, truth.library, params, params_of_rule)
    relative = replace(params_of_rule, lam0=rule.relative_threshold(systems))
    assert rule.select_from(systems, relative).equation.support() == truth.equation.support()
