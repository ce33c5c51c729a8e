"""A user's file gives the equation behind it, or an honest refusal where there is none."""

import numpy as np
import pytest

import fts
from fts import cli

TERMS = ["u", "u^2", "u*u_x", "u_x", "u_xx", "u_xxx"]
BOX = fts.Domain((0.0,), (2 * np.pi,), 0.0, 1.0, (True,))


def _heat(x, t):
    # u_t = 0.3 u_xx + 0.5 u_x, three modes.
    modes = {1: 1.0, 2: 0.7, 3: -0.5}
    return sum(a * np.exp(-0.3 * k**2 * t) * np.sin(k * (x + 0.5 * t) + k) for k, a in modes.items())


def _samples(rng, value, sensors=40, frames=30):
    x = np.sort(rng.uniform(0, 2 * np.pi, sensors))
    t = np.linspace(0, 1, frames)
    x, t = (array.ravel() for array in np.meshgrid(x, t, indexing="ij"))
    return np.column_stack([x, t, value(x, t)])


def _write(path, rows):
    np.savetxt(path, rows, delimiter=",", header="x,t,u", comments="", fmt="%.17g")
    return path


def test_known_equation_comes_out_of_a_file(tmp_path, rng):
    path = _write(tmp_path / "heat.csv", _samples(rng, _heat))
    result = fts.discover(path, TERMS, domain=BOX, progress=False)
    assert result.identified, result.doubts
    assert result.selection.support == ("u_x", "u_xx")
    coefficients = result.selection.coefficients
    assert coefficients["u_x"] == pytest.approx(0.5, rel=0.01)
    assert coefficients["u_xx"] == pytest.approx(0.3, rel=0.01)
    assert "u_xx" in str(result)


def test_the_verdict_does_not_depend_on_the_units(tmp_path, rng):
    rows = _samples(rng, _heat)
    path = _write(tmp_path / "scaled.csv", rows * [1, 1, 1000.0])
    result = fts.discover(path, ["u", "u_x", "u_xx", "u_xxx"], domain=BOX, progress=False)
    assert result.selection.support == ("u_x", "u_xx")


def test_pure_noise_is_not_identifiable(tmp_path, rng):
    path = _write(tmp_path / "noise.csv", _samples(rng, lambda x, t: rng.standard_normal(x.size)))
    result = fts.discover(path, TERMS, domain=BOX, progress=False)
    assert not result.identified
    assert "not identifiable" in str(result)
    assert "Not identifiable" in result._repr_markdown_()


def test_the_command_says_what_it_found(tmp_path, rng, capsys):
    path = _write(tmp_path / "heat.csv", _samples(rng, _heat))
    axis = f"x=0:{2 * np.pi}:periodic"
    assert cli.main(["discover", str(path), "--axis", axis, "--library", *TERMS, "--quiet"]) == 0
    assert "u_t = 0.5" in capsys.readouterr().out
    assert cli.main(["problems"]) == 0
    assert "u_t = -6 u*u_x - u_xxx" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["discover", "nothing.csv"], "no file at"),
        (["discover", "FILE", "--axis", "y=0:1"], "write x=LOW:HIGH"),
        (["discover", "FILE", "--axis", "t=0:1:periodic"], "write x=LOW:HIGH"),
        (["discover", "FILE", "--library", "u_x^2", "--quiet"], "u_x"),
    ],
)
def test_bad_commands_are_answered_with_a_remedy(tmp_path, rng, capsys, arguments, message):
    path = _write(tmp_path / "heat.csv", _samples(rng, _heat, sensors=8, frames=8))
    assert cli.main([str(path) if word == "FILE" else word for word in arguments]) == 2
    assert message in capsys.readouterr().err
