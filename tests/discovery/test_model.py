"""A discovery as a model: simulated, evaluated, drawn, saved and loaded."""

import dataclasses
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot as plt
from scipy.integrate import solve_ivp

import fts
from fts import containers, fitting
from fts.discovery.model import simulate
from fts.discovery.systems import Experiment, SystemDiscovery
from fts.discovery.verdict import Rival, Verdict
from fts.equations.equation import Equation
from fts.equations.integration import evolve
from fts.equations.terms import Library
from fts.fields.varying import Curve, SplineBasis
from fts.problems.pseudospectral import SystemTrajectory, Waves, solve_system
from fts.problems.systems import observe_system, system_problem
from fts.selection.selection import Refit, Selection

SEED = 100
RING = fts.Domain((0.0,), (2 * np.pi,), 0.0, 2.0, (True,))


@cache
def trajectory_of(name: str) -> SystemTrajectory:
    """A short record on a coarse grid."""
    problem = system_problem(name)
    domain = dataclasses.replace(problem.domain, t1=0.25 * problem.domain.t1)
    short = dataclasses.replace(problem, domain=domain, shape=(160, 21))
    return solve_system(short, np.random.default_rng(SEED))


@cache
def made(name: str) -> SystemDiscovery:
    """The true equations with the fields of some of the sensors, as a discovery would hold them."""
    problem, trajectory = system_problem(name), trajectory_of(name)
    samples = observe_system(trajectory, share=0.15, seed=SEED)
    fits = {key: fitting.fit_posterior(each, progress=False) for key, each in samples.items()}
    components = {}
    for key, text in problem.truth.items():
        equation = Equation.parse(text, (*samples, *problem.functions))
        refit = Refit(equation.coefficients, 0.01 * np.abs(equation.coefficients), 1e-4)
        library, words = Library(equation.terms), {"target": equation.target, "preferred": "pooled"}
        selection = Selection(library, refit.xi, "support search", refits={"pooled": refit}, **words)
        selection = dataclasses.replace(selection, field=fits[key].field)
        verdict = Verdict("ambiguous", ("one reason",), (Rival(equation, 0.5),), 0.1, "u_t", margin=0.5)
        components[key] = fts.Discovery(samples[key], fits[key].field, selection, verdict, fits[key])
    return SystemDiscovery((Experiment(fits),), components, dict.fromkeys(components, (0.1, 0.2)))


@cache
def channel() -> fts.Discovery:
    """A scalar equation from twenty sensors."""
    equation = Equation.parse("u_t = -0.6*u*u_x + 0.08*u_xx")
    grid = 2 * np.pi * np.arange(60) / 60
    u = evolve(equation, np.cos(grid) + 0.6 * np.sin(2 * grid + 1), 2 * np.pi, 41, 2.0, 10)
    x, t = np.meshgrid(grid[::3], np.linspace(0, 2, 41), indexing="ij")
    observations = fts.Observations(x.reshape(-1, 1), t.ravel(), u[::3].ravel(), RING)
    return fts.discover(observations, ["u_x", "u*u_x", "u_xx", "u_xxx"], progress=False)


def test_a_true_system_gives_the_solution_of_the_problems_own_solver() -> None:
    trajectory = trajectory_of("fitzhugh_nagumo")
    start = {name: values[..., 0] for name, values in trajectory.values.items()}
    solution = made("fitzhugh_nagumo").simulate(start, trajectory.t[::5])
    for name, values in trajectory.values.items():
        assert solution[name].shape == values[..., ::5].shape
        assert np.abs(solution[name] - values[..., ::5]).max() < 1e-5 * values.std()


def test_waves_start_from_a_state_and_its_rate() -> None:
    result, problem, trajectory = made("wave"), system_problem("wave"), trajectory_of("wave")
    waves = Waves(trajectory.axes, problem.domain.extents[:-1], np.random.default_rng(SEED))
    assert problem.start is not None
    solution = result.simulate(problem.start(waves), trajectory.t)["u"]
    assert np.abs(solution - trajectory.values["u"]).max() < 1e-6
    with pytest.raises(ValueError, match="initial state lacks u_t: give u, u_t"):
        result.simulate({"u": trajectory.values["u"][..., 0]}, trajectory.t)


def test_a_scalar_equation_is_simulated_and_predicted() -> None:
    result = channel()
    grid, times = 2 * np.pi * np.arange(60) / 60, np.linspace(0, 1.5, 4)
    state = np.cos(2 * grid) + 0.3
    expected = evolve(result.equation, state, 2 * np.pi, 4, 1.5, 100)
    assert np.abs(result.simulate(state, times) - expected).max() < 1e-4
    assert result.field is not None
    points = np.array([[0.1, 0.2], [3.0, 1.9]])
    assert np.array_equal(result.predict(points), result.field(points))
    assert result.observations is not None
    assert result.residuals == pytest.approx(
        result.observations.y
        - result.predict(np.column_stack([result.observations.x, result.observations.t]))
    )
    assert float(np.std(result.residuals)) < 0.03 * float(np.std(result.observations.y))
    assert result.to_latex() == result.equation.latex
    assert str(result.to_sympy().lhs) == "Derivative(u(x, t), t)"


def test_what_cannot_be_simulated_is_said() -> None:
    result, state = channel(), np.cos(2 * np.pi * np.arange(12) / 12)
    for reason, start, times in (
        ("two or more that ascend", state, [1.0, 0.5]),
        ("four or more along each of 1 axes", state[:3], [0.0, 1.0]),
        ("initial state lacks u", {"v": state}, [0.0, 1.0]),
        (r"drop the sample|not a number|is nan", np.where(state > 0.9, np.nan, state), [0.0, 1.0]),
    ):
        with pytest.raises(ValueError, match=reason):
            result.simulate(start, np.array(times))
    with pytest.raises(ValueError, match="integrate the equation with simulate"):
        result.predict(np.array([[0.0, 5.0]]))
    with pytest.raises(ValueError, match="whose axes are periodic"):
        simulate(
            [result.equation],
            fts.Domain((0.0,), (1.0,), 0.0, 1.0, (False,)),
            {"u": state},
            np.array([0.0, 1.0]),
            {},
            [{}],
        )
    with pytest.raises(ValueError, match="grows without bound"):
        simulate([Equation.parse("u_t = u^3")], RING, {"u": 3 + state}, np.array([0.0, 9.0]), {}, [{}])
    with pytest.raises(ValueError, match="needs v"):
        simulate([Equation.parse("u_t = v", ("u", "v"))], RING, {"u": state}, np.array([0.0, 1.0]), {}, [{}])


def _moving(term: str) -> SystemDiscovery:
    """Waves that move by speed one, and a term that may say so."""
    x, t = (a.ravel() for a in np.meshgrid(2 * np.pi * np.arange(16) / 16, np.arange(12) / 11, indexing="ij"))
    waves = np.sin(x - t) + 0.5 * np.cos(2 * (x - t))
    samples = {
        "u": fts.Observations(x[:, None], t, waves, fts.Domain((0.0,), (2 * np.pi,), 0.0, 1.0, (True,)))
    }
    result = fts.discover(samples, [term], progress=False)
    assert isinstance(result, SystemDiscovery)
    return result


def test_coefficients_that_vary_in_time_are_simulated_within_the_record() -> None:
    grid = 2 * np.pi * np.arange(16) / 16
    result = _moving("c(t)*u_x")
    solution = result.simulate({"u": np.sin(grid)}, np.array([0.0, 0.9]))["u"]
    assert np.abs(solution[:, 1] - np.sin(grid - 0.9)).max() < 1e-3
    with pytest.raises(ValueError, match=r"hold t = .*: the coefficient is known from 0 to 1"):
        result.simulate({"u": np.sin(grid)}, np.array([0.0, 3.0]))


def test_an_equation_without_inputs_is_simulated_beyond_the_record() -> None:
    grid = 2 * np.pi * np.arange(16) / 16
    solution = _moving("u_x").simulate({"u": np.sin(grid)}, np.array([0.0, 3.0]))["u"]
    assert np.abs(solution[:, 1] - np.sin(grid - 3)).max() < 1e-3


def _assert_same(first: fts.Discovery, second: fts.Discovery) -> None:
    assert first.as_dict() == second.as_dict()
    assert str(first) == str(second)
    assert first.equation == second.equation
    assert first.field is not None
    assert second.field is not None
    assert first.field.packed() == second.field.packed()
    assert np.array_equal(first.residuals, second.residuals)


def test_saved_and_loaded_it_is_the_same(tmp_path: Path) -> None:
    channel().save(tmp_path / "channel.fts")
    _assert_same(channel(), fts.Discovery.load(tmp_path / "channel.fts"))
    result = made("fitzhugh_nagumo")
    result.save(tmp_path / "waves.fts")
    again = SystemDiscovery.load(tmp_path / "waves.fts")
    assert again.as_dict() == result.as_dict()
    for name in ("u", "v"):
        _assert_same(result.components[name], again.components[name])
    start = {
        name: fit.field.on_grid(np.arange(0, 20, 0.5), np.array([0.0]))[:, 0]
        for name, fit in result.experiments[0].fits.items()
    }
    times = np.array([0.0, 1.0])
    assert np.array_equal(result.simulate(start, times)["v"], again.simulate(start, times)["v"])


def test_curves_and_refusals_are_saved_too(tmp_path: Path) -> None:
    """Advection at the speed 1 + 0.3 sin(x), whose characteristics are known."""
    basis = SplineBasis("x", 0.0, 2 * np.pi, True, 12)
    where = np.linspace(0, 2 * np.pi, 200)
    weights = np.linalg.lstsq(basis(where), -1 - 0.3 * np.sin(where), rcond=None)[0]
    curve = Curve(basis, weights, 1e-6 * np.eye(12))
    result = channel()
    assert result.selection is not None
    library, name = Library.parse(["c(x)*u_x"]), "c(x)*u_x"
    refit = Refit(np.ones(1), np.full(1, 1e-3), 0.1)
    varying = Selection(
        library, refit.xi, "support search", None, {"pooled": refit}, "pooled", curves={name: curve}
    )
    dataclasses.replace(result, selection=varying).save(tmp_path / "medium.fts")
    again = fts.Discovery.load(tmp_path / "medium.fts")
    assert np.array_equal(again.coefficient(name).errors, curve.errors)
    grid, times = 2 * np.pi * np.arange(64) / 64, np.array([0.0, 0.5, 1.0])
    solution = again.simulate(np.cos(grid), times)
    characteristic = solve_ivp(lambda _, x: -1 - 0.3 * np.sin(x), (0, 1), grid, rtol=1e-9, atol=1e-9).y[:, -1]
    assert np.abs(solution[:, -1] - np.cos(characteristic)).max() < 1e-3
    observations = (
        dataclasses.replace(result.observations, y=0 * result.observations.y) if result.observations else None
    )
    flat = fts.discover(observations, progress=False)
    flat.save(tmp_path / "flat.fts")
    assert fts.Discovery.load(tmp_path / "flat.fts").doubts == flat.doubts
    with pytest.raises(ValueError, match="nothing was selected"):
        flat.predict(np.zeros((1, 2)))


def test_a_damaged_or_foreign_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "channel.fts"
    channel().save(path)
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(data)
    with pytest.raises(containers.FileError, match="damaged"):
        fts.Discovery.load(path)
    channel().save(path)
    with pytest.raises(containers.FileError, match="holds 'discovery', not 'system'"):
        SystemDiscovery.load(path)


def test_figures_have_a_row_for_every_component() -> None:
    for result, count in ((channel(), 1), (made("fitzhugh_nagumo"), 2)):
        figure = result.plot()
        assert len(figure.axes) == 4 * count  # with bars of colors
        plt.close(figure)
    assert made("fitzhugh_nagumo").to_latex().count("&=") == 2
    assert set(made("fitzhugh_nagumo").to_sympy()) == {"u", "v"}
