"""What the studies of rivals and of two terms record and score: identities and faults."""

from dataclasses import replace

import numpy as np
import pytest

import fts
from fts.equations.equation import Equation
from fts.lab.figures import symbolic as figures
from fts.lab.studies import records, symbolic, verify
from fts.lab.studies.records import RunRecord
from fts.params.paper import TEST_SEEDS
from fts.params.types import named
from fts.problems import metrics
from fts.symbolic.composed import COMPOSED
from fts.symbolic.families import Form
from fts.symbolic.select import Summand

STATES = (0.2, 1.8)
SATURATING = Summand(1, Form(((0.0, 1.0),), ((2.0, 1.0),)))
DIFFUSION = Summand(2, Form(((1.0, 0.02),), ()))


@pytest.mark.parametrize("name", ["decay", "fisher", "saturation"])
def test_the_truth_scores_itself(name: str):
    truth = fts.problem(name).equation
    assert metrics.score_parts(truth, truth, STATES) == {"exact": True, "f1": 1.0, "e_xi": 0.0}


def test_a_saturating_flux_is_known_up_to_its_constant():
    terms = symbolic.terms_of_parts((SATURATING, DIFFUSION))
    score = symbolic.score_composed(terms, "saturation")
    assert score["exact"]
    assert score["e_xi"] < 1e-12  # 1/(1 + u^2) is 1 - u^2/(1 + u^2)


def test_wrong_families_missing_and_additional_operators_are_seen():
    truth = fts.problem("decay").equation
    near = Equation.parse("u_t = 0.1 D_xx(u^1.7) - 0.33 u")
    score = metrics.score_parts(near, truth, STATES)
    assert score["exact"]
    assert score["e_xi"] == pytest.approx(0.1, abs=1e-9)  # of the decay, the larger error
    two = metrics.score_parts(Equation.parse("u_t = 0.1 D_xx(u^1.73) - 0.3 u + 0.1 u^2"), truth, STATES)
    assert (two["exact"], two["f1"]) == (False, 0.5)
    missing = metrics.score_parts(Equation.parse("u_t = 0.1 D_xx(u^1.73)"), truth, STATES)
    assert missing["e_xi"] == 1.0
    assert not missing["exact"]
    further = metrics.score_parts(Equation.parse("u_t = 0.1 D_xx(u^1.73) - 0.3 u + u_x"), truth, STATES)
    assert not further["exact"]
    assert further["f1"] == pytest.approx(0.8)


def test_pairs_from_samples_need_the_whole_grid():
    trajectory = fts.simulate("diffusion")
    whole = fts.observe(trajectory, "S100", seed=42, noise=0.05)
    field = symbolic.read_field(whole, None)
    np.testing.assert_allclose(field.on_grid(*trajectory.axes, trajectory.t), whole.grid.values, atol=1e-10)
    with pytest.raises(ValueError, match="take S100"):
        symbolic.read_field(replace(whole, x=whole.x[1:], t=whole.t[1:], y=whole.y[1:]), None)


def test_the_plans_name_every_run_once_and_their_settings_without_clashes():
    for plan, count in ((symbolic.symbolic_rivals, 45), (symbolic.symbolic_composed, 30)):
        tasks = list(plan(TEST_SEEDS))
        assert len({task.key for task in tasks}) == len(tasks) == count
    assert named(COMPOSED)["joint_evaluations"] == COMPOSED.joint_evaluations


def test_records_follow_from_their_terms_and_fill_the_tables():
    rivals = records.read_study("symbolic_rivals")
    composed = records.read_study("symbolic_composed")
    assert rivals
    assert composed
    assert [line for entry in (rivals[0], composed[0]) for line in verify.check_record(entry)] == []
    laws = symbolic.rule_laws(rivals)
    assert {row.rsplit(", ", 1)[1] for row, _ in laws} == {"best", "score"}
    forged = RunRecord(**{**vars(composed[0]), "terms": {"u": 1.0}})
    assert list(verify.check_record(forged))
    for made in (figures.rivals_recovered(rivals), figures.rivals_exponents(rivals)):
        assert "published, not rerun" in str(made)
    for made in (figures.composed_recovered(composed), figures.composed_errors(composed)):
        assert "Saturating" in str(made) or "decay" in str(made)
