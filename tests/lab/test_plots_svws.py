"""Figures and tables of the selection chapter: drawn from made selections and made records."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from test_svws import PARAMS, systems

from fts.domain import Domain
from fts.equations.equation import Equation
from fts.fields.frozen import CallableField
from fts.lab.figures import baselines, results, svws
from fts.lab.studies import published, records, runs
from fts.lab.studies.records import RunRecord
from fts.problems.trajectories import observe, simulate
from fts.selection import refits
from fts.svws import rule


@pytest.fixture(scope="module")
def selection():
    return rule.select_from(systems(noise=0.3), PARAMS)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def texts(figure: Figure) -> str:
    """All text of a figure."""
    return " ".join(item.get_text() for item in figure.findobj(plt.Text))


def test_the_steps_of_the_rule_are_drawn(selection):
    pool = selection.trace.candidates
    drawn = svws.proposals(pool)
    drawn.canvas.draw()
    assert f"{max(pool.counts)}: " in texts(drawn), "the legend counts the proposals"
    bars = svws.recurrence(pool, 0.5).axes[0].patches
    np.testing.assert_allclose([bar.get_height() for bar in bars], pool.pi)
    risks = svws.risks(selection.trace)
    risks.canvas.draw()
    lines = [line.get_xdata()[0] for line in risks.axes[0].lines if len(set(line.get_xdata())) == 1]
    assert selection.trace.bound in lines, "the rule's line stands at the bound"


def test_risks_and_refits_are_tabled(selection):
    rows = svws.validation(selection.trace).rows
    assert len(rows) == len(selection.trace.eligible)
    assert [row[-1] for row in rows].count("chosen") == 1
    truth = Equation.parse("u_t = -u*u_x - u_xx - u_xxxx")
    made = svws.refits(selection)
    assert [row[0].split(",")[0] for row in made.rows] == ["ridge", "pooled", "robust"]
    assert sum("preferred" in row[0] for row in made.rows) == 1
    assert len(made.header) == len(selection.support) + 1
    errors = svws.refit_errors({"once": selection, "twice": selection}, truth)
    assert errors.header == ("refit", "once", "twice")
    assert all(row[1] == row[2] == f"{float(row[1]):.2g}" for row in errors.rows)


def test_residuals_and_weights_are_drawn(selection):
    rng = np.random.default_rng(0)
    svws.residual_tails(rng.standard_t(2, 500)).canvas.draw()
    x, t = np.linspace(0, 1, 20), np.linspace(0, 1, 10)
    field = CallableField(lambda x, t: x + t, Domain((0.0,), (1.0,), 0.0, 1.0, (False,)))
    weights = refits.biweights(rng.standard_normal(50))
    figure = svws.where_rows_fail(field, np.zeros((20, 10)), (x, t), rng.random((50, 2)), weights)
    figure.canvas.draw()
    assert len(figure.axes) == 4


def cell(**changes) -> records.Summary:
    values = {"runs": 5, "exact": 5, "f1": 1.0, "e_xi": 0.02, "e_u": 0.05, "e_u_max": 0.1}
    quartiles = {"e_u_quartiles": (0.04, 0.06)}
    return records.Summary(**(values | quartiles | changes))


def test_cells_stand_beside_the_papers_with_a_mark():
    ours = {
        ("paper", "ks", "S20", 0.0): cell(e_xi=0.0350),
        ("paper", "ks", "T20", 0.0): cell(e_xi=0.5, exact=4),
        ("paper", "ad", "S20", 0.0): cell(e_xi=0.001),
    }
    counts, errors = (
        baselines.beside_paper(ours, published.main(), {"structured": ("paper", 0.0)}, measure)
        for measure in ("exact", "e_xi")
    )
    exact, error = (dict(zip(made.header, made.rows[0], strict=True)) for made in (counts, errors))
    assert (exact["KS-S20"], error["KS-S20"]) == ("5\u00a0=\n5", "0.035\u00a0=\n0.035")
    assert (exact["KS-T20"], error["KS-T20"]) == ("4\u00a0▼\n5", "0.5\u00a0▼\n0.055")
    assert (exact["2D AD-S20"], error["2D AD-S20"]) == ("5\u00a0=\n5", "0.001\u00a0▲\n0.01")
    assert (exact["KdV-S20"], error["KdV-S20"]) == ("not run\n5", "not run\n0.036")
    assert dict(counts.flipped("regime").rows)["KS-T20"] == exact["KS-T20"]


def test_rows_of_our_own_say_when_they_were_not_run():
    result, rows = {("kernel", "ks", "S20", 0.0): cell()}, {"kernel": ("kernel", 0.0)}
    for measure, text in (("exact", "5"), ("e_xi", "0.02"), ("e_u", "0.05")):
        made = baselines.only_ours(result, rows, measure)
        row = dict(zip(made.header, made.rows[0], strict=True))
        assert row["KS-S20"] == text
    assert row["KdV-S20"] == "not run"


def test_densities_are_curves_over_percent():
    result = {
        ("paper", problem, f"S{percent}", 0.0): cell(exact=n, e_u=0.1 / percent)
        for problem in ("kdv", "ks", "ad")
        for percent, n in ((5, 1), (10, 4), (20, 5))
    }
    figure = results.density(result, {"the paper's recipe": "paper", "kernel field": "kernel"})
    figure.canvas.draw()
    np.testing.assert_allclose(figure.axes[0].lines[0].get_xdata(), [5, 10, 20])
    np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), [0.2, 0.8, 1.0])
    gapped = result | {("paper", "ks", "S15", 0.0): cell(exact=5), ("paper", "ad", "S20", 0.0): cell(exact=4)}
    reached = baselines.lowest_densities(gapped, {"the paper's recipe": "paper"})
    assert reached.rows == (("the paper's recipe", "20 %", "15 %", "none"),)
    # The paper has four densities of each: 5, 10, 15, 20 of KdV, and from 20 on of the others.
    made = baselines.density_runs(gapped, {"the paper's recipe": "paper", "kernel field": "kernel"})
    assert made.rows == (
        ("the paper's recipe", "15 of 20", "5 of 20", "5 of 20"),
        ("kernel field", *["0 of 20"] * 3),
    )
    empty = results.density({}, {"the paper's recipe": "paper"})
    empty.canvas.draw()
    assert texts(empty).count("not run") == 3


def runs_on_layouts(errors: dict[int, float]) -> list[RunRecord]:
    made = []
    for seed, error in errors.items():
        task = runs.paper_task("layouts", "kdv", "S20", seed)
        score = {"exact": True, "e_xi": error, "e_u": 0.1, "f1": 1.0}
        made.append(replace(runs.record(task), score=score))
    return made


def test_layouts_stand_over_their_gaps_beside_the_papers_median():
    tested, further = runs_on_layouts({1301: 0.1}), runs_on_layouts({7: 0.03, 8: 0.37})
    figure = results.layouts(tested, further, published.main())
    figure.canvas.draw()
    first, rest, line = figure.axes[0].lines
    gap = observe(simulate("kdv"), "S20", seed=1301).grid.widest_gap
    assert (list(first.get_xdata()), list(first.get_ydata())) == ([gap], [0.1])
    assert sorted(rest.get_ydata()) == [0.03, 0.37]
    assert set(line.get_ydata()) == {0.036}
    made = baselines.layout_medians(tested, further, published.main())
    assert made.rows == (("KdV", "0.1", "0.2", "0.036", "2", "50%"),)


def test_the_chance_of_a_median_is_that_of_all_outcomes():
    for share in (0.0, 0.3, 0.5, 1.0):
        outcomes = product((True, False), repeat=5)
        counted = sum(
            np.prod([share if low else 1 - share for low in outcome])
            for outcome in outcomes
            if sum(outcome) >= 3
        )
        assert records.chance_of_median(share) == pytest.approx(counted)


def test_residuals_are_drawn_over_their_variances():
    rng = np.random.default_rng(0)
    variances = 10 ** rng.uniform(-6, 0, 400)
    figure = svws.residuals_by_variance(variances, np.sqrt(variances) * rng.standard_normal(400))
    figure.canvas.draw()
    medians = figure.axes[0].lines[1].get_ydata()
    assert medians[-1] > 100 * medians[0]


def test_coefficients_keep_the_digits_their_deviation_allows():
    assert svws.plus_minus(-0.99998, 0.00005) == r"$-0.999980 \pm 0.000050$"
    assert svws.plus_minus(1.25, 0.2) == r"$1.25 \pm 0.20$"
    assert svws.plus_minus(1.25, 0.0) == r"$1.250 \pm 0.000$"
