"""Several components, inputs and experiments: the right equations on reference problems, and refusals."""

import dataclasses
from functools import cache

import numpy as np
import pytest

import fts
from fts.discovery.systems import SystemDiscovery, default_library, discover
from fts.equations.equation import Equation
from fts.equations.grammar import TermError
from fts.equations.terms import Library
from fts.fields.frozen import CallableField
from fts.fields.system import FieldSystem
from fts.problems.systems import (
    DEVELOPMENT_SEEDS,
    observe_system,
    simulate_runs,
    simulate_system,
    system_problem,
)

SEED = DEVELOPMENT_SEEDS[0]


@cache
def discovered(name: str, noise: float) -> tuple[SystemDiscovery, dict[str, Equation]]:
    """What is discovered on a fifth of the sensors, and the truth."""
    problem = system_problem(name)
    samples = observe_system(simulate_system(name, SEED), noise=noise, seed=SEED)
    states = (*samples, *problem.functions)
    truth = {c: Equation.parse(text, states) for c, text in problem.truth.items()}
    inputs = problem.functions or tuple(problem.inputs)
    target = problem.target if len(problem.components) == 1 else None
    result = discover(samples, problem.library, inputs=inputs, target=target, progress=False)
    assert isinstance(result, SystemDiscovery)
    return result, truth


@pytest.mark.parametrize(
    ("name", "noise", "within"),
    [("schroedinger", 0.0, 0.01), ("wave", 0.05, 0.02), ("kpz", 0.05, 0.05), ("pulsed_burgers", 0.0, 0.01)],
)
def test_equations_beyond_one_scalar_field_are_found(name: str, noise: float, within: float) -> None:
    result, truth = discovered(name, noise)
    for component, equation in result.equations.items():
        right = truth[component].physical()
        assert equation.physical().keys() == right.keys()
        assert equation.target == truth[component].target
        for term, value in equation.physical().items():
            assert value == pytest.approx(right[term], rel=within)
    assert len(str(result).splitlines()) >= len(truth)
    assert set(result.as_dict()["components"]) == set(truth)


def test_a_table_with_named_columns_gives_one_equation_each() -> None:
    samples = observe_system(simulate_system("schroedinger", SEED), seed=SEED)
    u, v = samples["u"], samples["v"]
    table = {"place": u.x[:, 0], "t": u.t, "height": u.y, "speed": v.y}
    columns = {"u": "height", "v": "speed", "x": "place"}
    library = system_problem("schroedinger").library
    result = fts.discover(table, library, columns=columns, domain=u.domain, progress=False)
    same, _ = discovered("schroedinger", 0.0)
    assert {name: str(equation) for name, equation in result.equations.items()} == {
        name: str(equation) for name, equation in same.equations.items()
    }
    with pytest.raises(ValueError, match=r"take result.equations\['u'\]"):
        _ = result.equation


def test_several_short_runs_give_the_equation_that_one_does_not() -> None:
    problem = system_problem("telegraph")
    runs = [
        observe_system(run, share=15 / 160, noise=0.02, seed=number)
        for number, run in enumerate(simulate_runs("telegraph", 6, seed=SEED))
    ]
    result = discover(runs, problem.library, target="u_tt", progress=False)
    truth = Equation.parse(problem.truth["u"])
    assert result.equation.support() == truth.support()
    assert len(result.left_out["u"]) == 6
    assert "experiments left out" in str(result)
    alone = discover(runs[:1], problem.library, target="u_tt", progress=False)
    assert alone.equation.support() != truth.support() or not alone.identified


def test_the_default_libraries_read_and_stay_small() -> None:
    for components, inputs, dimension, order, most in (
        (("u",), (), 1, 2, 14),
        (("u", "v"), (), 1, 1, 22),
        (("u", "v", "w"), (), 1, 1, 32),
        (("w",), ("a", "b"), 2, 1, 20),
        (("u", "v"), (), 3, 1, 32),
    ):
        texts = default_library(components, inputs, dimension, order)
        library = Library.parse(texts, (*components, *inputs))
        library.check_dimension(dimension)
        assert len(library) <= most


def test_general_terms_of_a_scalar_equation_and_empty_records() -> None:
    problem = system_problem("kpz")
    samples = observe_system(simulate_system("kpz", SEED), seed=SEED)["u"]
    result = fts.discover(samples, problem.library, progress=False)
    assert isinstance(result, SystemDiscovery)
    assert result.equation.support() == Equation.parse(problem.truth["u"]).support()
    flat = discover({"u": dataclasses.replace(samples, y=0 * samples.y + 1)}, progress=False)
    assert flat.components["u"].verdict.status == "not identifiable"
    assert "all samples equal" in flat.doubts[0]
    assert not flat.identified


def test_a_component_may_have_any_name() -> None:
    problem = system_problem("daily_heat_1d")
    samples = observe_system(simulate_system("daily_heat_1d", SEED), seed=SEED)["u"]
    result = discover({"w": samples}, ["w", "w_x", "w_xx"], progress=False)
    assert str(result.equation).replace("w", "u").split() == ["u_t", "=", "0.1", "u_xx"]
    assert problem.truth["u"] == "u_t = 0.1*u_xx"


def test_refusals_name_a_remedy() -> None:
    samples = observe_system(simulate_system("wave", SEED), seed=SEED)
    u = samples["u"]
    other = dataclasses.replace(u, domain=dataclasses.replace(u.domain, t1=u.domain.t1 + 1))
    for reason, given, options in (
        ("equations are of first or second order", u, {"target": "u_ttt"}),
        ("equations are of first or second order", u, {"target": "v_t"}),
        ("give the same components", [samples, {"v": u}], {}),
        ("fit all components on one domain", {"u": u, "v": other}, {}),
        ("cannot name a component", {"x": u, "u": u}, {}),
        ("unknown name 'w_x'", {"u": u, "v": u}, {"library": ["w_x"]}),
        ("same units", [u, dataclasses.replace(u, y=1e6 * u.y)], {}),
        ("u_t is the left-hand side", u, {"library": ["u_t", "u"]}),
        ("repeats the samples of another", [samples, samples], {}),
        ("columns= is for samples in a file", u, {"columns": {"u": "height"}}),
        ("domain= is for samples in a file", samples, {"domain": u.domain, "target": "u_tt"}),
        ("inputs name 'w', the samples are of u", u, {"inputs": ["w"]}),
        ("all of u are inputs", u, {"inputs": ["u"]}),
        ("of first or second order", {"u": u, "w": u}, {"inputs": ["w"], "target": "w_t"}),
        (
            "'height' is given to u, v",
            {"x": [0.0], "t": [0.0], "height": [0.0]},
            {"columns": {"u": "height", "v": "height"}},
        ),
    ):
        with pytest.raises(ValueError, match=reason):
            discover(given, progress=False, **options)


@pytest.mark.parametrize(
    ("target", "term"),
    [
        ("u_t", "c(x)*u_t"),
        ("u_t", "D_t(c(t)*u)"),
        ("u_t", "2*u_t + 0*x*u"),
        ("u_tt", "c(x)*u_tt"),
        ("u_tt", "D_t(c(t)*u_t)"),
        ("u_tt", "3*u_tt"),
    ],
)
def test_the_left_hand_side_explains_itself_in_no_form(target: str, term: str) -> None:
    x, t = (a.ravel() for a in np.meshgrid(np.linspace(0, 1, 12), np.linspace(0, 1, 12), indexing="ij"))
    table = {"x": x, "t": t, "u": np.sin(3 * x - t), "w": np.cos(x + t)}
    with pytest.raises(TermError, match=f"is {target}, the left-hand side.*: leave it out"):
        fts.discover(table, [term, "u_xx", "x*u_x"], target=target, progress=False)


def test_the_left_hand_side_of_one_equation_may_stand_in_another() -> None:
    x, t = (a.ravel() for a in np.meshgrid(np.linspace(0, 1, 12), np.linspace(0, 1, 12), indexing="ij"))
    table = {"x": x, "t": t, "u": np.sin(3 * x - t), "v": np.cos(x + t)}
    columns = {"u": "u", "v": "v"}
    result = fts.discover(table, ["c(x)*u_t", "u_x", "v_x"], columns=columns, progress=False)
    libraries = [each.selection.library.names for each in result.components.values()]
    assert libraries == [("u_x", "v_x"), ("D_t(u*c(x))", "u_x", "v_x")]


def test_fields_of_a_system_share_their_domain_and_names() -> None:
    domain = fts.Domain((0.0,), (1.0,), 0.0, 1.0, (False,))
    field = CallableField(lambda x, t: x + t, domain)
    longer = CallableField(lambda x, t: x + t, dataclasses.replace(domain, t1=2.0))
    with pytest.raises(ValueError, match="one domain"):
        FieldSystem({"u": field, "v": longer})
    with pytest.raises(ValueError, match="cannot name a component"):
        FieldSystem({"sin": field})
    with pytest.raises(ValueError, match="needs v"):
        fts.select(field, Library.parse(["v", "u"], ("u", "v")))
    with pytest.raises(ValueError, match="which a CallableField does not give"):
        fts.select(field, ["u_x^2", "u"])
