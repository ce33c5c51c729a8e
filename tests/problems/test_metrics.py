"""Scores by hand: exact support, F1, E_xi in the physical basis, E_u on the full grid."""

import numpy as np
import pytest

from fts.domain import Domain
from fts.equations.equation import Equation
from fts.equations.terms import Library
from fts.fields.frozen import CallableField
from fts.problems import metrics
from fts.problems.problems import problem
from fts.problems.trajectories import Trajectory
from fts.selection.selection import Selection

KS = problem("ks").equation


def selected(names, coefficients) -> Selection:
    return Selection(Library.parse(names), np.array(coefficients, dtype=float), "by hand")


def test_the_true_equation_scores_perfectly_in_any_scaling():
    same = selected(["1", "D_x(u^2)", "u_xx", "u_xxxx"], [0, -0.5, -1, -1])
    score = metrics.score(same, KS)
    assert score == metrics.Score(True, 1.0, 0.0, (), ())
    doubled = metrics.score(selected(["D_x(u^2)", "u_xx", "u_xxxx"], [-1, -1, -1]), KS)
    assert doubled.exact
    assert doubled.e_xi == pytest.approx(1 / np.sqrt(3))


def test_missing_and_extra_terms_count():
    score = metrics.score(selected(["u", "u*u_x", "u_xx", "u_xxxx"], [0.3, -1, -1, 0]), KS)
    assert not score.exact
    assert score.f1 == pytest.approx(2 * 2 / (3 + 3))
    assert score.e_xi == pytest.approx(np.sqrt(0.3**2 + 1) / np.sqrt(3))
    assert (score.missing, score.extra) == (("u_xxxx",), ("u",))
    assert score.as_dict()["missing"] == ["u_xxxx"]


def test_the_empty_equation_has_a_score():
    nothing = metrics.score(selected(["u", "u_xx"], [0, 0]), KS)
    assert (nothing.exact, nothing.f1) == (False, 0.0)
    assert nothing.e_xi == pytest.approx(1.0)
    zero = Equation((), [])
    assert metrics.score(zero, zero).f1 == 1.0


def test_field_error_is_relative_and_over_all_frames():
    domain = Domain((0.0,), (1.0,), 0.0, 2.0, (False,))
    x, t = np.linspace(0, 1, 11), np.linspace(0, 2, 7)
    u = np.add.outer(1 + x, t)
    truth = Trajectory((x,), t, u, domain, "made", "made")
    assert metrics.field_error(CallableField(lambda x, t: 1 + x + t, domain), truth) == pytest.approx(
        0, abs=1e-15
    )
    assert metrics.field_error(CallableField(lambda x, t: 1.1 * (1 + x + t), domain), truth) == pytest.approx(
        0.1
    )
    flat = Trajectory((x,), t, 0 * u, domain, "made", "made")
    with pytest.raises(ValueError, match="zero everywhere"):
        metrics.field_error(CallableField(lambda x, t: x + t, domain), flat)
