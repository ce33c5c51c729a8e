"""Random problems are well posed and repeatable, and their trajectories solve what they say."""

import numpy as np
import pytest

from fts.equations.equation import Equation
from fts.equations.integration import evolve
from fts.params.paper import DEFAULT_LIBRARIES
from fts.problems import development

LIBRARY = DEFAULT_LIBRARIES[1]


def test_a_seed_is_one_problem():
    first, again = (development.draw(7, LIBRARY) for _ in range(2))
    np.testing.assert_array_equal(first.observations.y, again.observations.y)
    assert first.truth == again.truth


def test_every_kind_is_drawn_and_is_what_it_says():
    problems = [development.draw(seed, LIBRARY) for seed in range(200, 216)]
    assert {entry.kind for entry in problems} == {"complete", "missing term", "little content"}
    assert {entry.layout for entry in problems} == {"sensors", "frames", "scattered"}
    for problem in problems:
        offered = {str(term) for term in problem.truth.terms} <= set(problem.library)
        assert offered == (problem.kind != "missing term")


def test_the_integrator_is_of_fourth_order():
    x = 2 * np.pi * np.arange(64) / 64
    u, burgers = np.sin(x), Equation.parse("u_t = -u*u_x + 0.1 u_xx")
    exact = evolve(burgers, u, 2 * np.pi, 2, 0.5, 256)[:, -1]
    errors = [np.abs(evolve(burgers, u, 2 * np.pi, 2, 0.5, n)[:, -1] - exact).max() for n in (4, 8, 16)]
    assert np.log2(errors[0] / errors[1]) > 3.5
    assert np.log2(errors[1] / errors[2]) > 3.5


@pytest.mark.parametrize("text", ["u_t = 0.5 u_x + 0.1 u_xx", "u_t = -0.3 u_xxx - 0.01 u_xxxx + 0.2 u"])
def test_linear_equations_are_carried_exactly(text):
    x, k = 2 * np.pi * np.arange(32) / 32, 3
    equation = Equation.parse(text)
    orders = {term: c * (1j * k) ** term.order for term, c in equation.physical().items()}
    wave = np.exp(1j * k * x + 0.7 * sum(orders.values()))
    evolved = evolve(equation, np.cos(k * x), 2 * np.pi, 2, 0.7, 1)[:, -1]
    np.testing.assert_allclose(evolved, wave.real, atol=1e-12)


def test_units_change_the_coefficients_and_nothing_else():
    rng = np.random.default_rng(0)
    truth, u, duration = development.transient(rng, "Burgers", 4)
    other, v, length, spent = development.in_units(rng, truth, u, 2 * np.pi, duration)
    again = evolve(other, v[:, 0], length, v.shape[1], spent, 10)
    np.testing.assert_allclose(again, v, atol=1e-9 * np.abs(v).max())
