"""Every generated solution satisfies the text of its equation, and every term moves it."""

import re
from dataclasses import replace
from functools import cache
from math import factorial

import numpy as np
import pytest
from scipy.interpolate import make_interp_spline

from fts.problems import pseudospectral, systems
from fts.problems.pseudospectral import solve_system
from fts.problems.systems import observe_system, simulate_runs, simulate_system, system_problem

QUICK = ("fitzhugh_nagumo", "wave", "telegraph", "bbm", "daily_heat_2d", "channel_flow")
EVERY = [
    pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in systems.system_names()
]
solution = cache(simulate_system)
# Frames on either side that a time derivative takes.
REACH = 4
# Of the splines along an axis with ends.
DEGREE = 9


class Calculus:
    """Derivatives of a trajectory's fields: by Fourier series or splines in space, by differences in time."""

    def __init__(self, trajectory):
        self.trajectory = trajectory
        self.t = trajectory.t[REACH:-REACH]
        self.fields = {**trajectory.values, **trajectory.inputs}

    def __getitem__(self, name):
        return self.fields[name][..., REACH:-REACH]

    def along(self, array, letters):
        for letter in letters:
            axis = "xyz".index(letter)
            line, periodic = self.trajectory.axes[axis], self.trajectory.domain.periodic[axis]
            if periodic:
                array = fourier(array, axis, line.size * (line[1] - line[0]))
            else:
                spline = make_interp_spline(line, array, DEGREE, axis=axis)
                array = spline.derivative()(line)
        return array

    def in_time(self, name, order):
        array, t = self.fields[name], self.trajectory.t
        shifts = np.arange(-REACH, REACH + 1)
        powers = np.vander(shifts.astype(float), increasing=True).T
        weights = np.linalg.solve(powers, np.eye(shifts.size)[order] * factorial(order))
        frames = np.arange(REACH, t.size - REACH)
        total = sum(w * array[..., frames + shift] for w, shift in zip(weights, shifts, strict=True))
        return total / (t[1] - t[0]) ** order


def fourier(array, axis, length):
    n = array.shape[axis]
    k = 2j * np.pi / length * np.fft.fftfreq(n, 1 / n)
    k[n // 2] = 0.0
    k = np.expand_dims(k, [i for i in range(array.ndim) if i != axis])
    return np.fft.ifft(k * np.fft.fft(array, axis=axis), axis=axis).real


def polynomial(text):
    """u^2*v and the like, by hand: powers of fields, multiplied."""

    def evaluate(c):
        product = 1.0
        for factor in text.split("*"):
            name, _, exponent = factor.partition("^")
            product = product * c[name] ** int(exponent or 1)
        return product

    return evaluate


def layers(x):
    return 0.3 + 0.15 * np.cos(np.pi * x / 4) - 0.08 * np.cos(np.pi * x / 2)


def speed(x):
    return 1 + 0.3 * np.sin(x) + 0.1 * np.cos(2 * x)


TERMS = {
    "1": lambda c: np.ones_like(c["u"]),
    "u*u_x": lambda c: c["u"] * c.along(c["u"], "x"),
    "v*v_x": lambda c: c["v"] * c.along(c["v"], "x"),
    "a*w_x": lambda c: c["a"] * c.along(c["w"], "x"),
    "b*w_y": lambda c: c["b"] * c.along(c["w"], "y"),
    "D_x(u*v)": lambda c: c["u"] * c.along(c["v"], "x") + c["v"] * c.along(c["u"], "x"),
    "D_x(u*v_x)": lambda c: c["u"] * c.along(c["v"], "xx") + c.along(c["u"], "x") * c.along(c["v"], "x"),
    "D_xx(u^2)": lambda c: 2 * c["u"] * c.along(c["u"], "xx") + 2 * c.along(c["u"], "x") ** 2,
    "u_x^2": lambda c: c.along(c["u"], "x") ** 2,
    "u_t": lambda c: c.in_time("u", 1),
    "s": lambda c: c["s"],
    "sin(x)*cos(t)": lambda c: np.outer(np.sin(c.trajectory.axes[0]), np.cos(c.t)),
    "sin(3*t)": lambda c: np.broadcast_to(np.sin(3 * c.t), c["u"].shape),
    "D_x(k*u_x)": lambda c: c.along(layers(c.trajectory.axes[0])[:, None] * c.along(c["u"], "x"), "x"),
    "c*u_x": lambda c: speed(c.trajectory.axes[0])[:, None] * c.along(c["u"], "x"),
    "u_xxt": lambda c: c.along(c.in_time("u", 1), "xx"),
    "sin(u)": lambda c: np.sin(c["u"]),
}


def term_of(text):
    """A term's values, by the table or by what a plain derivative or a product of powers means."""
    if text in TERMS:
        return TERMS[text]
    derivative = re.fullmatch(r"([uvw])_([xyz]+)", text)
    if derivative:
        return lambda c: c.along(c[derivative[1]], derivative[2])
    assert re.fullmatch(r"[uvw](\^\d)?(\*[uvw](\^\d)?)*", text), f"no way to evaluate {text}"
    return polynomial(text)


def parts_of(text):
    """The right-hand side as coefficients and terms: "-u_x + 0.5*u" -> [(-1.0, "u_x"), (0.5, "u")]."""
    right = text.partition(" = ")[2]
    pieces = re.split(r" ([+-]) ", right)
    signs = [1.0, *(-1.0 if sign == "-" else 1.0 for sign in pieces[1::2])]
    parts = []
    for sign, piece in zip(signs, pieces[::2], strict=True):
        minus, number, term = re.fullmatch(r"(-?)(?:([0-9.]+)(?:\*|$))?(.*)", piece).groups()
        parts.append(((-sign if minus else sign) * float(number or 1), term or "1"))
    return parts


@pytest.mark.parametrize("name", EVERY)
def test_a_solution_satisfies_its_equation_and_every_term_moves_it(name):
    problem, trajectory = system_problem(name), solution(name, 1301)
    calculus = Calculus(trajectory)
    for component, text in problem.truth.items():
        left = calculus.in_time(component, problem.order)
        terms = {term: c * term_of(term)(calculus) for c, term in parts_of(text)}
        sizes = {term: np.linalg.norm(values) for term, values in terms.items()}
        residual = np.linalg.norm(left - sum(terms.values())) / max(sizes.values())
        shares = {term: size / np.linalg.norm(left) for term, size in sizes.items()}
        table = ", ".join(f"{term} {share:.2f}" for term, share in shares.items())
        print(f"{name:20} {component}: residual {residual:.1e}; {table}")
        assert residual < (1e-4 if problem.domain.dimension == 1 else 1e-3)
        assert min(shares.values()) >= 0.03


@pytest.mark.parametrize("name", systems.system_names())
def test_a_library_holds_the_truth_and_more(name):
    problem = system_problem(name)
    true = {term for text in problem.truth.values() for _, term in parts_of(text)}
    assert true <= set(problem.library)
    assert len(set(problem.library)) == len(problem.library) > 2 * len(true) / len(problem.truth)
    assert set(problem.targets.values()) == {f"{c}_{'t' * problem.order}" for c in problem.components}


def test_a_seed_is_one_solution_and_another_is_another():
    first, again, other = (simulate_system("bbm", seed) for seed in (1301, 1301, 1302))
    np.testing.assert_array_equal(first.values["u"], again.values["u"])
    assert np.abs(first.values["u"] - other.values["u"]).max() > 0.1
    assert not set(systems.DEVELOPMENT_SEEDS) & set(systems.TEST_SEEDS)


def test_runs_start_apart_and_are_short():
    whole, runs = solution("fitzhugh_nagumo", 1301), simulate_runs("fitzhugh_nagumo", 6, seed=1301)
    assert len(runs) == 6
    starts = np.array([run.values["u"][:, 0] for run in runs])
    correlations = np.corrcoef(starts) - np.eye(6)
    assert np.abs(correlations).max() < 0.95
    for run in runs:
        assert run.domain.t1 == run.t[-1] < 0.4 * whole.t[-1]
        np.testing.assert_allclose(np.diff(run.t), whole.t[1] - whole.t[0])


@pytest.mark.slow
def test_a_finer_grid_gives_the_same_solution():
    problem, coarse = system_problem("shallow_water"), simulate_system("shallow_water", 100)
    finer = replace(problem, shape=(2 * problem.shape[0], problem.shape[1]))
    fine = solve_system(finer, np.random.default_rng([100, systems._STATE]))
    for name, values in coarse.values.items():
        assert np.abs(fine.values[name][::2] - values).max() < 1e-6 * values.std()


def test_a_wave_keeps_its_energy():
    calculus = Calculus(solution("wave", 1301))
    rate, slope = calculus.in_time("u", 1), calculus.along(calculus["u"], "x")
    energy = (rate**2 + 1.44 * slope**2).mean(axis=0)
    np.testing.assert_allclose(energy, energy[0], rtol=1e-6)


@pytest.mark.slow
def test_schroedinger_keeps_its_mass():
    mass = sum(values**2 for values in solution("schroedinger", 1301).values.values()).mean(axis=0)
    np.testing.assert_allclose(mass, mass[0], rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["keller_segel", "shallow_water"])
def test_what_flows_is_neither_made_nor_lost(name):
    mass = solution(name, 1301).values["u" if name == "keller_segel" else "v"].mean(axis=0)
    np.testing.assert_allclose(mass, mass[0], rtol=1e-9)


def test_the_velocity_of_the_vorticity_is_its_own_and_free_of_divergence():
    trajectory = simulate_runs("vorticity", 1, seed=1301)[0]
    calculus = Calculus(trajectory)
    curl = calculus.along(calculus["b"], "x") - calculus.along(calculus["a"], "y")
    divergence = calculus.along(calculus["a"], "x") + calculus.along(calculus["b"], "y")
    np.testing.assert_allclose(curl, calculus["w"], atol=1e-3 * np.abs(curl).max())
    assert np.abs(divergence).max() < 1e-10


def test_samples_are_those_of_the_grid_and_nested():
    trajectory = simulate_runs("fitzhugh_nagumo", 1, seed=1301)[0]
    few, more = (observe_system(trajectory, share, 0.1, seed=3) for share in (0.1, 0.3))
    clean = observe_system(trajectory, 0.3, seed=3)
    for name, values in trajectory.values.items():
        samples = {(x, t): y for x, t, y in zip(more[name].x[:, 0], more[name].t, more[name].y, strict=True)}
        assert all(
            samples[x, t] == y for x, t, y in zip(few[name].x[:, 0], few[name].t, few[name].y, strict=True)
        )
        assert clean[name].grid is not None
        rows = np.searchsorted(trajectory.axes[0], clean[name].grid.sensors[:, 0])
        np.testing.assert_array_equal(clean[name].grid.values, values[rows])
        deviation = (more[name].y - clean[name].y).std()
        assert abs(deviation / (0.1 * values.std()) - 1) < 0.1
    np.testing.assert_array_equal(few["u"].x, few["v"].x)


def test_fields_may_have_sensors_of_their_own():
    trajectory = simulate_runs("fitzhugh_nagumo", 1, seed=1301)[0]
    apart = observe_system(trajectory, seed=3, same_sensors=False)
    assert set(apart["u"].x[:, 0]) != set(apart["v"].x[:, 0])
    assert len(apart["u"]) == len(apart["v"])


def test_inputs_are_sampled_with_the_rest():
    trajectory = simulate_runs("moving_source", 1, seed=1301)[0]
    assert set(observe_system(trajectory, 0.1, seed=1)) == {"u", "s"}


def test_mistakes_are_answered():
    with pytest.raises(ValueError, match="did you mean 'gray_scott'"):
        system_problem("grayscott")
    with pytest.raises(ValueError, match="0 runs"):
        simulate_runs("wave", 0, seed=1)
    trajectory = simulate_runs("wave", 1, seed=1)[0]
    with pytest.raises(ValueError, match="at least 4 sensors"):
        observe_system(trajectory, 0.001, seed=1)


def test_rates_under_a_derivative_are_solved_for():
    def parts(text):
        return [pseudospectral._mixed(term) for term in pseudospectral.summands(f"u_t = {text}")]

    assert parts("-0.5*u_xxt - u_x + u_xxt - 2*u_xt") == [(-0.5, "xx"), None, (1.0, "xx"), (-2.0, "x")]
    assert parts("-u_xxt + u_xxx") == [(-1.0, "xx"), None]


def test_an_unknown_name_in_an_equation_is_refused():
    wrong = replace(system_problem("wave"), truth={"u": "u_tt = q_xx"})
    with pytest.raises(ValueError, match="'q_xx' in an equation of 'wave'"):
        solve_system(wrong, np.random.default_rng(0))
