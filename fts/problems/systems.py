"""Problems beyond one field, first order in time: systems, waves, known forces, varying media.

    trajectory = simulate_system("fitzhugh_nagumo", seed=1301)    # .values["u"], .values["v"] on .axes x .t
    samples = observe_system(trajectory, share=0.2, noise=0.05, seed=1)    # {"u": Observations, "v": ...}
    runs = simulate_runs("fitzhugh_nagumo", count=6, seed=1301)    # short records from six initial states

A new problem is a new entry. Every term of its equations has to matter: the tests measure each one's share.
"""

import difflib
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from fts import validation
from fts.domain import Domain, grid_points
from fts.observations import LEAST_POINTS, Observations
from fts.problems.pseudospectral import SystemProblem, SystemTrajectory, Torus, Values, solve_system

# Draws for choosing settings, and draws for measuring: apart, so that choices are measured elsewhere.
DEVELOPMENT_SEEDS, TEST_SEEDS = tuple(range(100, 120)), tuple(range(1301, 1321))
_STATE, _SENSORS, _NOISE = 11, 12, 13
# A short record is this part of the problem's own.
_SHORT = 0.3


def system_problem(name: str) -> SystemProblem:
    """The problem called `name`; a misspelt name is answered with the nearest one."""
    table = {entry.name: entry for entry in _entries()}
    validation.require_type(str, name, "problem", f"give one of {', '.join(map(repr, table))}")
    if name not in table:
        near = difflib.get_close_matches(name.lower(), table, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ValueError(f"unknown system {name!r}: {hint}Known are {', '.join(table)}.")
    return table[name]


def system_names() -> tuple[str, ...]:
    """The names of all problems of this module."""
    return tuple(entry.name for entry in _entries())


def simulate_system(name: str, seed: int) -> SystemTrajectory:
    """The solution from the random smooth state of this seed."""
    return solve_system(system_problem(name), np.random.default_rng([seed, _STATE]))


def simulate_runs(name: str, count: int = 6, *, seed: int) -> list[SystemTrajectory]:
    """Several short records of one problem, each from another random state."""
    entry = system_problem(name)
    if count < 1:
        raise ValueError(f"{count} runs: give one or more")
    domain, steps = entry.domain, round(_SHORT * (entry.shape[-1] - 1))
    end = domain.t0 + (domain.t1 - domain.t0) * steps / (entry.shape[-1] - 1)
    short = replace(entry, domain=replace(domain, t1=end), shape=(*entry.shape[:-1], steps + 1))
    return [solve_system(short, np.random.default_rng([seed, _STATE, run])) for run in range(count)]


def observe_system(
    trajectory: SystemTrajectory,
    share: float = 0.2,
    noise: float = 0.0,
    *,
    seed: int,
    same_sensors: bool = True,
) -> dict[str, Observations]:
    """Samples of every component and input at random grid points in all frames.

    Noise is Gaussian, `noise` times the clean field's own standard deviation. A larger share contains the
    samples of a smaller one. Without `same_sensors` every field has sensors of its own.
    """
    points, frames = grid_points(trajectory.axes), trajectory.t.size
    count = round(share * len(points))
    if not (LEAST_POINTS <= count <= len(points) and np.isfinite(noise) and noise >= 0):
        raise ValueError(
            f"share {share!r} of {len(points)} sensors with noise {noise!r}: give at least {LEAST_POINTS} "
            "sensors and at most all of them, and noise as a fraction of the deviation such as 0.1"
        )
    samples = {}
    for index, (name, array) in enumerate({**trajectory.values, **trajectory.inputs}.items()):
        order = np.random.default_rng([seed, _SENSORS, 0 if same_sensors else index]).permutation(len(points))
        sensors = np.sort(order[:count])
        y = array.reshape(len(points), frames)[sensors]
        if noise > 0:
            # Drawn on the whole grid, so that a larger share contains the smaller one's very samples.
            draws = np.random.default_rng([seed, _NOISE, index]).standard_normal((len(points), frames))
            y = y + noise * array.std() * draws[sensors]
        samples[name] = Observations(
            x=np.repeat(points[sensors], frames, axis=0),
            t=np.tile(trajectory.t, count),
            y=y.reshape(-1),
            domain=trajectory.domain,
            seed=seed,
            noise=float(noise),
            source=f"generated {trajectory.problem}",
        )
    return samples


_REACTIONS = ("1", "u", "v", "u^2", "u*v", "v^2", "u^3", "u^2*v", "u*v^2", "v^3")
_TRANSPORT = ("u_x", "v_x", "u*u_x", "v*v_x", "D_x(u*v)", "D_x(u*v_x)", "D_x(v*u_x)")
_TWO_FIELDS = (*_REACTIONS, *_TRANSPORT, "u_xx", "v_xx", "D_xx(u^2)", "D_xx(v^2)", "u_xxx", "v_xxx")
_ONE_FIELD = (
    *("1", "u", "u^2", "u^3", "u_x", "u*u_x", "u^2*u_x", "u_x^2"),
    *("u_xx", "D_xx(u^2)", "D_xx(u^3)", "u_xxx", "u_xxxx"),
)
_ONE_WAVE = (*_ONE_FIELD, "u_t", "u_xxt")
_CIRCLE = 2 * np.pi


def _line(length: float, duration: float, *, periodic: bool = True) -> Domain:
    return Domain((0.0,), (length,), 0.0, duration, (periodic,))


def _square(length: float, duration: float, *, periodic: bool = True) -> Domain:
    return Domain((0.0, 0.0), (length, length), 0.0, duration, (periodic, periodic))


def _entries() -> tuple[SystemProblem, ...]:
    return (*_systems(), *_oscillations(), *_single_fields(), *_driven())


def _systems() -> tuple[SystemProblem, ...]:
    reactions = {"u": "u - u^3 - u*v^2 + u^2*v + v^3", "v": "v - u^2*v - v^3 - u^3 - u*v^2"}
    return (
        SystemProblem(
            "lambda_omega",
            "Lambda-omega, reaction-diffusion",
            {name: f"{name}_t = 0.2*{name}_xx + {text}" for name, text in reactions.items()},
            _line(20.0, 8.0),
            (192, 161),
            _TWO_FIELDS,
            lambda waves: {"u": 0.7 * waves(5), "v": 0.7 * waves(5)},
        ),
        SystemProblem(
            "lambda_omega_2d",
            "Lambda-omega in the plane, reaction-diffusion",
            {name: f"{name}_t = 0.6*{name}_xx + 0.6*{name}_yy + {text}" for name, text in reactions.items()},
            _square(20.0, 4.0),
            (64, 64, 61),
            (
                *_REACTIONS,
                *("u_x", "u_y", "v_x", "v_y", "u_xx", "u_xy", "u_yy", "v_xx", "v_xy", "v_yy"),
            ),
            lambda waves: {"u": 0.7 * waves(3), "v": 0.7 * waves(3)},
        ),
        SystemProblem(
            "fitzhugh_nagumo",
            "FitzHugh-Nagumo",
            {"u": "u_t = 0.2*u_xx + u - u^3 - v", "v": "v_t = 0.3*u - 0.2*v + 0.1"},
            _line(20.0, 8.0),
            (192, 161),
            _TWO_FIELDS,
            lambda waves: {"u": 0.8 * waves(4), "v": 0.3 * waves(3)},
        ),
        SystemProblem(
            "gray_scott",
            "Gray-Scott",
            {
                "u": "u_t = 0.5*u_xx - u*v^2 - 0.04*u + 0.04",
                "v": "v_t = 0.25*v_xx + u*v^2 - 0.1*v",
            },
            _line(50.0, 60.0),
            (192, 161),
            _TWO_FIELDS,
            lambda waves: {"u": 0.6 + 0.12 * waves(4), "v": 0.25 + 0.08 * waves(4)},
        ),
        SystemProblem(
            "keller_segel",
            "Keller-Segel",
            {"u": "u_t = 0.6*u_xx - 1.5*D_x(u*v_x)", "v": "v_t = 0.5*v_xx + u - v"},
            _line(20.0, 3.0),
            (192, 121),
            _TWO_FIELDS,
            lambda waves: {"u": 1 + 0.25 * waves(4), "v": 0.4 + 0.12 * waves(4)},
        ),
        SystemProblem(
            "coupled_burgers",
            "Coupled Burgers",
            {
                "u": "u_t = 0.15*u_xx - u*u_x - 0.6*D_x(u*v)",
                "v": "v_t = 0.2*v_xx - v*v_x - 0.4*D_x(u*v)",
            },
            _line(_CIRCLE, 2.0),
            (192, 121),
            _TWO_FIELDS,
            lambda waves: {"u": 0.3 + 0.6 * waves(3), "v": 0.6 * waves(3)},
        ),
        SystemProblem(
            "shallow_water",
            "Shallow water, u the velocity and v the height",
            {"u": "u_t = -u*u_x - v_x + 0.1*u_xx", "v": "v_t = -D_x(u*v)"},
            _line(_CIRCLE, 4.0),
            (192, 161),
            _TWO_FIELDS,
            lambda waves: {"u": 0.25 * waves(3), "v": 1 + 0.15 * waves(3)},
        ),
        SystemProblem(
            "schroedinger",
            "Nonlinear Schroedinger, u and v the real and the imaginary part",
            {"u": "u_t = -0.5*v_xx - u^2*v - v^3", "v": "v_t = 0.5*u_xx + u^3 + u*v^2"},
            _line(12.0, 3.0),
            (192, 151),
            _TWO_FIELDS,
            lambda waves: {"u": 0.6 + 0.3 * waves(3), "v": 0.3 * waves(3)},
        ),
        SystemProblem(
            "vorticity",
            "Vorticity of Navier-Stokes, in a measured velocity (a, b)",
            {"w": "w_t = -a*w_x - b*w_y + 0.06*w_xx + 0.06*w_yy"},
            _square(_CIRCLE, 3.0),
            (64, 64, 61),
            (
                *("1", "w", "w^2", "w^3", "a", "b", "a*w", "b*w", "w_x", "w_y", "a*w_x", "a*w_y"),
                *("b*w_x", "b*w_y", "w_xx", "w_xy", "w_yy", "D_xx(w^2)", "D_yy(w^2)"),
            ),
            lambda waves: {"w": 2 * waves(3)},
            inputs={"a": lambda *known: _velocity(*known)[0], "b": lambda *known: _velocity(*known)[1]},
        ),
    )


def _velocity(torus: Torus, t: float, state: Mapping[str, Values]) -> tuple[Values, Values]:
    """The velocity of a vorticity without mean: (psi_y, -psi_x) with psi_xx + psi_yy = -w."""
    laplacian = torus.symbol("xx") + torus.symbol("yy")
    inverse = np.where(laplacian == 0, 0.0, -1 / np.where(laplacian == 0, 1.0, laplacian))
    parts = torus.symbol("y") * inverse, -torus.symbol("x") * inverse
    u, v = (torus.multiplied(state["w"], part) for part in parts)
    return u, v


def _oscillations() -> tuple[SystemProblem, ...]:
    def wave(
        name: str, title: str, right: str, domain: Domain, highest: int, size: float = 1.0, speed: float = 1.0
    ) -> SystemProblem:
        return SystemProblem(
            name,
            title,
            {"u": f"u_tt = {right}"},
            domain,
            (160, 161),
            # Where u is small, sin(u) is u.
            _ONE_WAVE if size < 1 else (*_ONE_WAVE, "sin(u)"),
            lambda waves: {"u": size * waves(highest), "u_t": speed * waves(highest)},
        )

    return (
        wave("wave", "Wave", "1.44*u_xx", _line(_CIRCLE, 4.0), 4),
        wave("damped_wave", "Damped wave", "1.44*u_xx - 0.6*u_t", _line(_CIRCLE, 4.0), 4),
        wave("telegraph", "Telegraph", "u_xx - 0.8*u_t - 0.9*u", _line(8.0, 5.0), 3),
        wave("klein_gordon", "Klein-Gordon", "0.8*u_xx - 1.5*u", _line(8.0, 5.0), 3),
        wave("cubic_klein_gordon", "Cubic Klein-Gordon", "u_xx - u - 0.8*u^3", _line(10.0, 6.0), 3),
        wave("sine_gordon", "Sine-Gordon", "u_xx - sin(u)", _line(16.0, 8.0), 3, 1.8),
        wave("boussinesq", "Boussinesq", "u_xx + 1.5*D_xx(u^2) - u_xxxx", _line(30.0, 12.0), 5, 0.1, 0.03),
        wave("beam", "Euler-Bernoulli beam", "-0.02*u_xxxx", _line(_CIRCLE, 5.0), 4, speed=0.5),
    )


def _single_fields() -> tuple[SystemProblem, ...]:
    """One field, first order in time, whose terms are of another kind: mixed, not conservative, varying."""
    return (
        SystemProblem(
            "advection",
            "Advection",
            {"u": "u_t = -0.8*u_x"},
            _line(_CIRCLE, 4.0),
            (128, 161),
            _ONE_FIELD,
            lambda waves: {"u": waves(4)},
        ),
        SystemProblem(
            "bbm",
            "Benjamin-Bona-Mahony",
            {"u": "u_t = -u_x - u*u_x + u_xxt"},
            _line(20.0, 10.0),
            (128, 161),
            (*_ONE_FIELD, "u_xt", "u_xxt"),
            lambda waves: {"u": 0.3 + 0.5 * waves(5)},
        ),
        SystemProblem(
            "kpz",
            "Kardar-Parisi-Zhang without noise",
            {"u": "u_t = 0.4*u_xx + 0.8*u_x^2"},
            _line(12.0, 3.0),
            (192, 121),
            _ONE_FIELD,
            lambda waves: {"u": 0.8 * waves(3)},
        ),
        SystemProblem(
            "varying_heat",
            "Heat in layers, of conductivity k(x), no flux through the ends",
            {"u": "u_t = D_x(k*u_x)"},
            _line(4.0, 3.0, periodic=False),
            (97, 121),
            (*_ONE_FIELD, "D_x(k*u_x)"),
            lambda waves: {"u": waves(4)},
            # Even about both ends.
            functions={"k": lambda x, t: 0.3 + 0.15 * np.cos(np.pi * x / 4) - 0.08 * np.cos(np.pi * x / 2)},
            reflected=True,
        ),
        SystemProblem(
            "varying_advection",
            "Advection at the speed c(x)",
            {"u": "u_t = -c*u_x"},
            _line(_CIRCLE, 4.0),
            (128, 161),
            (*_ONE_FIELD, "c*u_x"),
            lambda waves: {"u": waves(4)},
            functions={"c": lambda x, t: 1 + 0.3 * np.sin(x) + 0.1 * np.cos(2 * x)},
        ),
    )


def _driven() -> tuple[SystemProblem, ...]:
    """Known forces, sources and boundaries."""
    return (
        SystemProblem(
            "forced_burgers",
            "Burgers with a known force",
            {"u": "u_t = -u*u_x + 0.15*u_xx + 0.8*sin(x)*cos(t)"},
            _line(_CIRCLE, 4.0),
            (192, 161),
            (*_ONE_FIELD, "sin(x)*cos(t)", "cos(x)*sin(t)", "sin(t)", "cos(t)", "sin(x)", "cos(x)"),
            lambda waves: {"u": 0.7 * waves(3)},
        ),
        SystemProblem(
            "pulsed_burgers",
            "Burgers with a known pulse",
            {"u": "u_t = -u*u_x + 0.15*u_xx + 0.6*sin(3*t)"},
            _line(_CIRCLE, 4.0),
            (192, 161),
            (*_ONE_FIELD, "sin(3*t)", "cos(3*t)", "sin(x)", "cos(x)"),
            lambda waves: {"u": 0.7 * waves(3)},
        ),
        SystemProblem(
            "moving_source",
            "Heat from a moving source, measured as s, in the plane",
            {"u": "u_t = 0.1*u_xx + 0.1*u_yy + s"},
            _square(_CIRCLE, 4.0),
            (48, 48, 81),
            (
                *("1", "u", "u^2", "u^3", "s", "s^2", "u*s", "u_x", "u_y", "s_x", "s_y"),
                "u_xx",
                "u_xy",
                "u_yy",
            ),
            lambda waves: {"u": 0.5 * waves(3)},
            inputs={"s": _moving_source},
        ),
        _daily_heat(1, (97,)),
        _daily_heat(2, (33, 33)),
        _daily_heat(3, (21, 21, 21)),
        SystemProblem(
            "channel_flow",
            "Channel flow, between two walls under a constant gradient of pressure",
            {"u": "u_t = 0.5 + 0.1*u_xx"},
            _line(2.0, 6.0, periodic=False),
            (97, 121),
            ("1", "u", "u^2", "u^3", "u_x", "u*u_x", "u^2*u_x", "u_xx", "D_xx(u^2)", "u_xxx", "u_xxxx"),
            exact=_channel_flow,
        ),
    )


def _moving_source(torus: Torus, t: float, state: Mapping[str, Values]) -> Values:
    """A smooth bump on a closed path."""
    x, y = np.meshgrid(*(_CIRCLE * np.arange(n) / n for n in torus.shape), indexing="ij")
    along = np.cos(x - np.pi - 1.5 * np.cos(t)) + np.cos(y - np.pi - 1.5 * np.sin(t))
    return np.exp(2.5 * (along - 2))


def _channel_flow(entry: SystemProblem, rng: np.random.Generator) -> dict[str, Values]:
    """The parabola of the steady flow and decaying sines that vanish at the walls."""
    (x,), t, (width,) = entry.axes, entry.frames, entry.domain.high
    modes = np.arange(1, 7)
    amplitudes = rng.standard_normal(modes.size) / (1 + (modes / 3) ** 2)
    sines = np.sin(np.pi / width * np.outer(x, modes)) * amplitudes
    decay = np.exp(-0.1 * np.outer((np.pi / width * modes) ** 2, t))
    return {"u": 2.5 * (x * (width - x))[:, None] + sines @ decay}


def _daily_heat(dimension: int, points: tuple[int, ...]) -> SystemProblem:
    letters = "xyz"[:dimension]
    second = tuple(f"u_{a}{b}" for i, a in enumerate(letters) for b in letters[i:])
    return SystemProblem(
        f"daily_heat_{dimension}d",
        f"Daily heat in {dimension}D, below a surface whose temperature changes, no flux through other ends",
        {"u": "u_t = " + " + ".join(f"{_DIFFUSIVITY}*u_{letter}{letter}" for letter in letters)},
        Domain((0.0,) * dimension, (1.0,) * dimension, 0.0, 2.0, (False,) * dimension),
        (*points, 81),
        ("1", "u", "u^2", "u^3", *(f"u_{letter}" for letter in letters), *second),
        exact=_daily_modes,
    )


_DIFFUSIVITY = 0.1


def _daily_modes(entry: SystemProblem, rng: np.random.Generator) -> dict[str, Values]:
    """Cosines along the surface; into depth x a damped wave of period one and decaying sines for each."""
    x, *along = entry.axes
    t, total = entry.frames, np.zeros(entry.shape)
    for indices in np.ndindex((3,) * len(along)):
        square = np.pi**2 * sum(m**2 for m in indices)
        root = np.sqrt(square + 2j * np.pi / _DIFFUSIVITY)
        phase = np.exp(2j * np.pi * (t + rng.random()))
        profile = (np.cosh(root * (1 - x)) / np.cosh(root))[:, None] * phase
        part = rng.normal() * profile.real
        for depth in np.pi * (np.arange(3) + 0.5):
            decay = np.exp(-_DIFFUSIVITY * (square + depth**2) * t)
            part += rng.normal() * np.outer(np.sin(depth * x), decay)
        # Written (x, t); the cosines of the other axes go between.
        part = part.reshape(x.size, *(1,) * len(along), t.size)
        for axis, (m, points) in enumerate(zip(indices, along, strict=True), start=1):
            shape = [1] * part.ndim
            shape[axis] = points.size
            part = part * np.cos(np.pi * m * points).reshape(shape)
        total += part / (1 + sum(indices))
    return {"u": total}
