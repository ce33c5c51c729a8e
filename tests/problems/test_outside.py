"""Problems beyond the library solve what they say, and instruments err as they say."""

import re

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from fts.params.paper import DEFAULT_LIBRARIES
from fts.problems import outside
from fts.problems.outside import CLASSES, DEFECTS

_FAST = ("Gardner", "forcing")
_RING = [
    pytest.param(kind, id=kind.name, marks=() if kind.name in _FAST else pytest.mark.slow)
    for kind in CLASSES
    if kind.axes == 1 and kind.missing not in ("radial", "telegraph")
]


def _differentiated(u, letters):
    """By Fourier transforms of its own, one axis after the other."""
    for letter in letters:
        axis = "xy".index(letter)
        n = u.shape[axis]
        k = np.fft.fftfreq(n, 1 / n)
        k[n // 2] = 0
        shape = [1] * u.ndim
        shape[axis] = n
        u = np.fft.ifft(1j * k.reshape(shape) * np.fft.fft(u, axis=axis), axis=axis).real
    return u


def _right_hand_side(text, state, rate, x, t):
    """What a text says on one state, by Python's own arithmetic."""
    n = x.size
    k = np.abs(np.fft.fftfreq(n, 1 / n))
    names = {"sin": np.sin, "cos": np.cos, "x": x, "t": t, **state}
    names |= {"D_x": lambda q: _differentiated(q, "x"), "D_xx": lambda q: _differentiated(q, "xx")}
    names["fractional"] = lambda q, power: np.fft.ifft(k**power * np.fft.fft(q)).real
    names["hilbert"] = lambda q: np.fft.ifft(-1j * np.sign(np.fft.fftfreq(n)) * np.fft.fft(q)).real
    for name, letters in set(re.findall(r"\b([uv])_([xt]+)\b", text)):
        source = rate if letters.endswith("t") else state[name]
        names[f"{name}_{letters}"] = _differentiated(source, letters.rstrip("t"))
    return eval(text.partition("=")[2].replace("^", "**"), {"__builtins__": {}}, names)


@pytest.mark.parametrize("kind", _RING)
def test_a_solution_solves_its_own_text(kind):
    rng = np.random.default_rng(7)
    with np.errstate(all="ignore"):
        solutions = (outside.solve_class(rng, kind, DEFAULT_LIBRARIES[1]) for _ in range(200))
        solution = next(each for each in solutions if each is not None)
    trajectory, (x,) = solution.trajectory, solution.trajectory.axes
    u, t = trajectory.values["u"], trajectory.t
    middle = t.size // 2
    state = {name: values[:, middle] for name, values in trajectory.values.items()}
    rate = CubicSpline(t, u, axis=1)(t[middle], 1)
    right = _right_hand_side(solution.truth["u"], state, rate, x, t[middle])
    assert np.linalg.norm(right - rate) < 1e-3 * np.linalg.norm(rate)
    assert np.linalg.norm(solution.rate[:, middle] - rate) < 1e-3 * np.linalg.norm(rate)


@pytest.mark.parametrize(
    "name", ["radial", *(pytest.param(each, marks=pytest.mark.slow) for each in ("telegraph", "shear"))]
)
def test_other_solutions_move_at_the_rate_they_state(name):
    kind = next(each for each in CLASSES if each.name == name)
    solution = outside.solve_class(np.random.default_rng(3), kind, DEFAULT_LIBRARIES[kind.axes])
    u, t = solution.trajectory.values["u"], solution.trajectory.t
    rate = CubicSpline(t, u, axis=-1)(t, 1)[..., 5:-5]
    assert np.linalg.norm(solution.rate[..., 5:-5] - rate) < 3e-3 * np.linalg.norm(rate)


def test_the_disc_obeys_the_equation_of_the_disc():
    kind = next(each for each in CLASSES if each.name == "radial")
    solution = outside.solve_class(np.random.default_rng(3), kind, DEFAULT_LIBRARIES[1])
    (r,) = solution.trajectory.axes
    radial = solution.columns["u_xx"] + solution.columns["u_x"] / r[:, None]
    np.testing.assert_allclose(solution.known["u_xx"] * radial, solution.rate, rtol=1e-9, atol=1e-9)
    slope = CubicSpline(r, solution.trajectory.values["u"])(r, 1)
    np.testing.assert_allclose(slope[5:-5], solution.columns["u_x"][5:-5], atol=1e-4)


@pytest.mark.slow
def test_a_seed_is_one_problem_and_its_missing_part_is_measured():
    kind = next(each for each in CLASSES if each.name == "KPZ")
    first, again = (outside.draw_outside(4, kind, DEFAULT_LIBRARIES[1]) for _ in range(2))
    np.testing.assert_array_equal(first.observations.y, again.observations.y)
    assert 0 < first.unexplained <= first.share
    assert not first.complete


def test_what_the_library_states_is_not_missing():
    decay = next(each for each in CLASSES if each.name == "small decay")
    problem = outside.draw_outside(4, decay, DEFAULT_LIBRARIES[1])
    assert problem.complete
    assert problem.unexplained < 1e-6 < problem.share


def test_every_defect_leaves_its_mark_and_nothing_else():
    rng = np.random.default_rng(0)

    def field(x, t):
        return np.sin(x[:, None] - t)

    x, t = np.linspace(0, 6, 40), np.linspace(0, 3, 60)
    reading = outside.Reading(rng, field, x, t, 2 * np.pi, 0.7, 0.05)
    misses = {name: DEFECTS[name](reading) - reading.clean for name in DEFECTS}
    assert 0.05 < misses["offsets"].mean(axis=1).std() < 0.1
    assert 0.003 < (np.abs(misses["spikes"]) > 3).mean() < 0.02
    assert np.ptp(misses["common drift"].mean(axis=0)) > 0.08
    lagged = misses["correlated noise"]
    assert np.corrcoef(lagged[:, 1:].ravel(), lagged[:, :-1].ravel())[0, 1] > 0.7
    assert (np.abs(misses["bad sensor"]).mean(axis=1) > 0.2).sum() in (1, 2)
    for name in ("period", "clock", "lag", "positions", "gains", "quantization", "uneven noise", "outliers"):
        assert 0.02 < misses[name].std() < 0.2, name
