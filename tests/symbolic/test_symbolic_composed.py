"""Operators and functions searched together: projection, joint refit, recovery with a known answer."""

from dataclasses import replace

import numpy as np
import pytest

import fts
from fts.domain import Domain
from fts.fields.frozen import CallableField
from fts.problems.problems import names, problem, solve
from fts.symbolic.composed import COMPOSED, Composed, on_domain, project_out, select_terms
from fts.symbolic.families import Form
from fts.symbolic.occupation import state_systems
from fts.symbolic.select import Summand, fit_numbers

SYMBOLIC = COMPOSED.symbolic
DOMAIN = Domain((0.0,), (1.0,), 0.0, 0.3, (True,))


def decaying(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Solves u_t = 0.1 u_xx - 0.7 u, and stays positive."""
    k = 2 * np.pi
    waves = 0.3 * np.exp(-0.1 * k**2 * t) * np.sin(k * x) + 0.1 * np.exp(-0.4 * k**2 * t) * np.cos(2 * k * x)
    return np.exp(-0.7 * t) * (0.8 + waves)


FIELD = CallableField(decaying, DOMAIN)
LINE = Form(((1.0, 1.0),), ())


def system():
    (made,) = state_systems(FIELD, [(SYMBOLIC.patches.judging, np.array([0.3, 0.6]))], 1024, (0, 1, 2))
    return made


def test_columns_of_both_operators_make_up_the_left_hand_side():
    weak_system = system()
    right = 0.1 * weak_system.column(weak_system.states, 2) - 0.7 * weak_system.column(weak_system.states, 0)
    np.testing.assert_allclose(
        right, weak_system.b, atol=1e-5 * np.abs(weak_system.b).max()
    )  # of the quadrature


def test_projecting_the_other_function_out_leaves_an_equation_with_one():
    weak_system = system()
    alone = project_out(weak_system, 2, [0], COMPOSED.stand_in)
    # u itself lies in the splines, so what is left of b is explained by 0.1 u behind D_xx and nothing else.
    assert alone.scale(weak_system.states) == pytest.approx(0.1, rel=1e-4)
    assert alone.risk(0.1 * weak_system.states) < 1e-8
    # Without the projection the same column explains less and its factor is wrong.
    blind = project_out(weak_system, 2, [], COMPOSED.stand_in)
    assert abs(blind.scale(weak_system.states) - 0.1) > 1e-3
    # Nothing of the other function's columns is left in the system.
    stand_in = weak_system.column(np.cos(weak_system.states), 0)
    assert np.abs(stand_in @ alone.b) < 1e-4 * np.linalg.norm(stand_in) * np.linalg.norm(weak_system.b)


def test_the_joint_fit_finds_all_numbers_from_a_poor_start():
    start = (Summand(0, Form(((1.4, -0.3),), ())), Summand(2, Form(((0.7, 0.2),), ())))
    reaction, diffusion = fit_numbers(start, system(), SYMBOLIC, evaluations=COMPOSED.joint_evaluations)
    assert reaction.form.parameters == pytest.approx([-0.7, 1.0], abs=1e-3)
    assert diffusion.form.parameters == pytest.approx([0.1, 1.0], abs=1e-3)


def test_a_pole_among_the_states_is_no_candidate():
    pole = Form(((0.0, 1.0),), ((1.0, -1.5),))
    assert fit_numbers((Summand(2, pole),), system(), SYMBOLIC, evaluations=20) is None


def test_the_score_counts_numbers():
    saturating, ambiguous = Form(((0.0, 1.0),), ((2.0, 1.0),)), Form(((2.0, 1.0),), ((2.0, 1.0),))
    small, large = (
        Composed((Summand(1, form), Summand(2, LINE)), (0.01, 0.03)) for form in (saturating, ambiguous)
    )
    assert (small.numbers, large.numbers) == (5, 6)
    assert small.score(1e-3) == pytest.approx(0.025)
    assert small.score(1e-3) < large.score(1e-3)


def test_patches_keep_their_proportion_to_the_domain():
    wide = on_domain(SYMBOLIC.patches, COMPOSED, Domain((0.0,), (2.0,), 0.0, 0.9, (True,)))
    assert wide.search_half_widths == pytest.approx((0.21, 0.09))
    assert on_domain(SYMBOLIC.patches, COMPOSED, DOMAIN) == SYMBOLIC.patches


@pytest.mark.parametrize("name", names("further"))
def test_further_problems_converge_and_stay_positive(name: str):
    entry = problem(name)
    u = fts.simulate(name).u
    assert u.min() > 0.05  # powers of u need it
    finer = solve(replace(entry, shape=(2 * entry.shape[0], entry.shape[1])))
    np.testing.assert_allclose(finer[::2], u, atol=1e-8)
    assert fts.Equation.parse(str(entry.equation)) == entry.equation


def test_the_mean_of_a_conserved_state_stays_and_a_decaying_one_decays():
    u, t = fts.simulate("saturation").u, fts.simulate("decay").t
    np.testing.assert_allclose(u.mean(axis=0), u[:, 0].mean(), rtol=1e-8)
    mean = fts.simulate("decay").u.mean(axis=0)
    np.testing.assert_allclose(mean, mean[0] * np.exp(-0.3 * t), rtol=1e-6)


@pytest.mark.slow
def test_operators_and_functions_of_an_exact_field_are_found_again_by_seed():
    # The field is exact: a short search finds what the full one does.
    evolution = replace(SYMBOLIC.evolution, population=32, generations=6)
    small = replace(COMPOSED, partners=2, symbolic=replace(SYMBOLIC, evolution=evolution))
    first = select_terms(FIELD, small, np.random.default_rng(1))
    assert [(part.order, part.form.family) for part in first.chosen.parts] == [(0, "c*u^p"), (2, "c*u^p")]
    reaction, diffusion = first.chosen.parts
    assert reaction.form.parameters == pytest.approx([-0.7, 1.0], abs=1e-2)
    assert diffusion.form.parameters == pytest.approx([0.1, 1.0], abs=1e-2)
    assert select_terms(FIELD, small, np.random.default_rng(1)).chosen == first.chosen
