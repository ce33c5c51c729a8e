"""Coefficients that are unknown functions of one coordinate: known answers, flat ones, bands, refusals."""

import json
from dataclasses import replace

import numpy as np
import pytest

import fts
from fts.discovery.systems import SystemDiscovery
from fts.equations.grammar import TermError
from fts.fields.varying import Curve, SplineBasis
from fts.observations import Observations
from fts.problems.systems import DEVELOPMENT_SEEDS, observe_system, simulate_system, system_problem

SEED = DEVELOPMENT_SEEDS[0]


def samples_of(name: str, noise: float, share: float = 0.2, seed: int = SEED) -> Observations:
    return observe_system(simulate_system(name, seed), share, noise, seed=seed)["u"]


def discovered(samples: Observations, library: list[str]) -> SystemDiscovery:
    result = fts.discover(samples, library, progress=False)
    assert isinstance(result, SystemDiscovery)
    return result


def truth_of(name: str, points: np.ndarray) -> np.ndarray:
    (function,) = system_problem(name).functions.values()
    return function(points, 0.0)


def test_a_speed_that_varies_is_found_with_its_band() -> None:
    """Advection on a ring, among constant terms and a wrong varying one."""
    library = ["u", "u^2", "u_x", "u*u_x", "u_xx", "c(x)*u", "c(x)*u_x"]
    result = discovered(samples_of("varying_advection", 0.05), library)
    assert [str(term) for term in result.equation.terms] == ["c(x)*u_x"]
    assert str(result.equation) == "u_t = c(x)*u_x"
    assert not any("only travels" in reason for reason in result.components["u"].verdict.reasons)
    curve = result.coefficient("c(x)*u_x")
    error = curve.values + truth_of("varying_advection", curve.points)
    assert np.mean(np.abs(error) < 2 * curve.errors) > 0.8
    assert np.median(curve.errors) < 0.05
    assert np.ptp(curve.values[[0, -1]]) < 1e-12
    assert "along x, ± " in str(result)
    record = json.loads(json.dumps(result.as_dict()))["components"]["u"]["terms"]["c(x)*u_x"]
    assert record["curve"]["values"] == curve.values.tolist()


def test_a_conductivity_that_varies_is_found_in_the_right_form() -> None:
    """D_x(k u_x), not k u_xx, where no noise hides the difference."""
    samples = samples_of("varying_heat", 0.0)
    result = discovered(samples, ["u", "u_x", "u*u_x", "u_xx", "c(x)*u_xx", "D_x(c(x)*u_x)"])
    assert result.equation.support() == fts.Equation.parse("u_t = D_x(c(x)*u_x)").support()
    curve = result.coefficient("D_x(c(x)*u_x)")
    inside = (curve.points > 0.4) & (curve.points < 3.6)
    error = curve.values - truth_of("varying_heat", curve.points)
    assert np.abs(error[inside]).max() < 0.01
    assert np.median(curve.errors) < 1e-3


def test_a_constant_coefficient_gives_a_flat_curve_and_is_preferred_to_one() -> None:
    samples = samples_of("kpz", 0.002)
    result = discovered(samples, ["c(x)*u_xx", "u_x^2"])
    curve = result.coefficient("c(x)*u_xx")
    assert np.mean(np.abs(curve.values - 0.4) < 2 * curve.errors) > 0.8
    assert np.std(curve.values[15:-15]) < 0.02  # patches do not reach across the ends of the ring
    both = discovered(samples, ["c(x)*u_xx", "u_xx", "u_x^2"])
    assert both.equation.support() == fts.Equation.parse("u_t = u_xx + u_x^2").support()
    with pytest.raises(ValueError, match="has no curve"):
        both.coefficient("u_xx")


def test_constant_terms_beside_a_curve_keep_their_sign() -> None:
    """u_t = c(t) u_xx - 0.5 u_x on a ring, from exact modes."""
    x, t = np.linspace(0, 2 * np.pi, 40, endpoint=False), np.linspace(0, 2, 61)
    along, depth = np.meshgrid(x, t, indexing="ij")
    integral, moved = 0.2 * depth + 0.05 * np.sin(2 * depth), along - 0.5 * depth
    waves = ((1.0, 1, 0.3), (0.8, 2, 1.0), (0.6, 3, 2.0), (0.4, 4, 1.5))
    u = sum(a * np.cos(m * moved + p) * np.exp(-(m**2) * integral) for a, m, p in waves)
    ring = fts.Domain((0.0,), (2 * np.pi,), 0.0, 2.0, (True,))
    samples = Observations(along.reshape(-1, 1), depth.ravel(), u.ravel(), ring)
    result = discovered(samples, ["u", "u_x", "c(t)*u_xx", "u*u_x", "f(t)"])
    assert result.equation.support() == fts.Equation.parse("u_t = u_x + c(t)*u_xx").support()
    assert result.components["u"].selection.coefficients["u_x"] == pytest.approx(-0.5, abs=0.005)
    curve = result.coefficient("c(t)*u_xx")
    np.testing.assert_allclose(curve.values[10:-10], 0.2 + 0.1 * np.cos(2 * curve.points[10:-10]), atol=0.01)


def test_axes_with_few_sensors_are_refused_in_a_line() -> None:
    samples = samples_of("varying_advection", 0.0)
    few = np.isin(samples.x[:, 0], np.unique(samples.x)[::4])
    sparse = replace(samples, x=samples.x[few], t=samples.t[few], y=samples.y[few])
    grid = np.meshgrid(np.linspace(0, 1, 8), [0.0, 0.5, 1.0], np.linspace(0, 1, 9), indexing="ij")
    x, y, t = map(np.ravel, grid)
    box = fts.Domain((0.0, 0.0), (1.0, 1.0), 0.0, 1.0, (False, False))
    plane = Observations(np.column_stack([x, y]), t, np.sin(x + y - t), box)
    for given, term, count in ((sparse, "c(x)*u_x", 7), (plane, "c(y)*u_yy", 3)):
        with pytest.raises(TermError, match=f"{count} positions along . were measured: measure at") as error:
            fts.discover(given, [term, "u"], progress=False)
        assert "\n" not in str(error.value)
    with pytest.raises(TermError, match="needs 2 spatial axes"):
        fts.discover(samples, ["c(y)*u_x"], progress=False)
    with pytest.raises(ValueError, match="is an unknown function: take"):
        fts.select(fts.CallableField(lambda x, t: x + t, samples.domain), ["c(x)*u_x", "u"])


@pytest.mark.parametrize("periodic", [False, True])
def test_splines_add_up_to_one_and_close_where_the_axis_does(periodic: bool) -> None:
    basis = SplineBasis("x", -1.0, 3.0, periodic, 9)
    points = np.linspace(-1, 3, 41)
    np.testing.assert_allclose(basis(points).sum(axis=1), 1.0, atol=1e-12)
    step = 1e-6
    slope = (basis(points[1:-1] + step) - basis(points[1:-1] - step)) / (2 * step)
    np.testing.assert_allclose(basis(points[1:-1], 1), slope, atol=1e-6)
    if periodic:
        np.testing.assert_allclose(basis(points[:1], 2), basis(points[-1:], 2), atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "term", "noise", "share"),
    [("varying_advection", "c(x)*u_x", 0.05, 0.2), ("varying_heat", "D_x(c(x)*u_x)", 0.01, 0.5)],
)
def test_bands_contain_the_truth_as_often_as_they_say(
    name: str, term: str, noise: float, share: float
) -> None:
    inside = []
    for seed in DEVELOPMENT_SEEDS[:12]:
        curve = discovered(samples_of(name, noise, share, seed), [term]).coefficient(term)
        sign = -1 if name == "varying_advection" else 1
        error = sign * curve.values - truth_of(name, curve.points)
        inside.append(np.mean(np.abs(error) < 1.96 * curve.errors))
    assert 0.9 < np.mean(inside) <= 1.0, inside


def test_a_curve_is_known_on_its_axis_alone() -> None:
    basis = SplineBasis("x", 0.0, 2.0, False, 8)
    curve = Curve(basis, np.ones(8), np.eye(8))
    assert curve([0.0, 1.0, 2.0 + 1e-12]) == pytest.approx(1.0)
    assert curve(1.0, 10**20) == 0
    for points in (2.1, [-0.5], np.nan):
        for call in (curve, curve.error):
            with pytest.raises(ValueError, match=r"hold x = .*: the coefficient is known from 0 to 2"):
                call(points)
    for points in ("a", [[1], [1, 2]], 1j, object()):
        with pytest.raises(ValueError, match=r"points is .*: give"):
            curve(points)
    with pytest.raises(ValueError, match="order is -1: give 0"):
        curve(1.0, -1)
    ring = Curve(SplineBasis("x", 0.0, 2.0, True, 8), np.arange(8.0), np.eye(8))
    assert ring(-0.5) == pytest.approx(ring(1.5))


def test_a_wave_that_only_travels_is_not_identified() -> None:
    x, t = (array.ravel() for array in np.meshgrid(np.arange(16) / 16, np.linspace(0, 1, 12), indexing="ij"))
    ring = fts.Domain((0.0,), (1.0,), 0.0, 1.0, (True,))
    samples = Observations(x[:, None], t, np.sin(2 * np.pi * (x - 0.5 * t)), ring)
    verdict = discovered(samples, ["c(x)*u_x"]).components["u"].verdict
    assert verdict.status == "ambiguous"
    assert any("only travels" in reason for reason in verdict.reasons)
    assert any("192 samples" in reason for reason in verdict.reasons)
