"""Tables and figures of the results: what differs is listed, what is not complete is refused."""

import re
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from fts.lab.figures import baselines, results
from fts.lab.studies import published, records, tuning
from fts.lab.studies.records import Summary
from fts.params.paper import TEST_SEEDS
from fts.plotting import SMALLEST_TEXT
from fts.problems.problems import problem

ROOT = Path(__file__).resolve().parents[2]

FIELDS, SELECTORS = ("spectral", "kernel"), ("strong STRidge", "SVWS")


def cell(exact: int, e_xi: float = 0.1) -> Summary:
    return Summary(5, exact, 1.0, e_xi, 0.05, 0.1, (0.04, 0.06))


def crossing(exact: int = 4) -> dict:
    return {
        (f"{field}, {selector}", *regime, noise): cell(exact)
        for field in FIELDS
        for selector in SELECTORS
        for regime in published.REGIMES
        for noise in (0.0, 0.1)
    }


def test_recoveries_add_up_over_regimes():
    totals = results.recovery_counts(crossing(), FIELDS, SELECTORS)
    assert totals.keys() == {0.0, 0.1}
    np.testing.assert_array_equal(totals[0.1], np.full((2, 2), 4 * len(published.REGIMES)))
    figure = results.recovery_matrix(crossing(), FIELDS, SELECTORS)
    figure.canvas.draw()
    side = plt.rcParams["axes.titlelocation"]  # whichever style an earlier test left behind
    assert [ax.get_title(side) for ax in figure.axes] == ["clean", "10% noise"]


def test_a_crossing_with_a_hole_is_refused():
    counts = crossing()
    del counts["kernel, SVWS", "ks", "S20", 0.1]
    with pytest.raises(ValueError, match="kernel, SVWS at 10% noise is not complete"):
        results.recovery_counts(counts, FIELDS, SELECTORS)
    made = baselines.crossed_table(counts, FIELDS, SELECTORS, 0.1, "e_xi")
    assert sum(text == "not run" for row in made.rows for text in row) == 1


def test_only_cells_more_than_one_run_apart_are_listed():
    theirs = published.methods()
    rows = {"WSINDy": ("WSINDy", 0.0)}
    result = {("WSINDy", *regime, 0.0): cell(4) for regime in published.REGIMES}
    listed = {row[1] for row in baselines.differences(result, theirs, rows).rows}
    # The paper's WSINDy: 5, 4, 1, 1, 0, 5.
    assert listed == {"KS-S20", "KS-T20", "2D AD-S20"}


def test_every_row_of_table_one_has_its_six_regimes():
    cells = published.methods().cells
    assert {row for row, *_ in cells} >= {"structured", "PDE-FIND", "WSINDy", "DeepMoD", "PINN-SR", "DL-PDE"}
    assert len(cells) == 7 * len(published.REGIMES)
    assert cells["structured", "ks", "S20"] == published.main().cells["structured", "ks", "S20"]


def test_the_choice_of_a_threshold_is_shown_with_the_papers():
    record = tuning.read_baselines()
    rows = {row[:2]: row for row in baselines.choices(record).rows}
    assert rows["WSINDy", "KS"][-1] == "2"
    winner = record["PDE-FIND"]["kdv"]["winner"]["threshold"]
    assert rows["PDE-FIND", "KdV"][3] == f"{winner:g}"


def test_shares_of_true_coefficients_stand_where_the_records_say():
    truth = problem("ks").equation
    (run,) = [
        record
        for record in records.read_study("baselines")
        if (record.row, record.problem, record.protocol, record.seed)
        == ("PDE-FIND", "ks", "S20", TEST_SEEDS[0])
    ]
    far = replace(run, terms={"u*u_x": -9.0}, score=run.score | {"extra": []})
    figure = baselines.coefficient_shares({"as it was": [run], "far": [far]}, truth)
    figure.canvas.draw()
    for ax, (term, xi) in zip(figure.axes, truth.physical().items(), strict=True):
        was, moved = (dots.get_offsets()[0, 0] for dots in ax.collections)
        assert was == pytest.approx(run.terms[str(term)] / xi)
        assert moved == (ax.get_xlim()[1] if str(term) == "u*u_x" else 0.0)
        opaque = [dots.get_facecolor()[0, 3] for dots in ax.collections]
        assert run.score["extra"]
        assert opaque == [0.0, 1.0]


@pytest.mark.parametrize("row", ["PDE-FIND", "WSINDy"])
def test_the_classical_rows_are_complete(row):
    summary = records.summarize(records.read_study("baselines"))
    for regime in published.REGIMES:
        assert summary[row, *regime, 0.0].runs == len(TEST_SEEDS)


def test_a_run_took_what_its_stages_took():
    (record,) = records.read_study("baselines")[:1]
    assert results.processor_seconds(record) == pytest.approx(
        record.extra["fit_seconds"] + record.extra["select_seconds"]
    )
    figure = results.against_seconds({"WSINDy": records.read_study("baselines")})
    figure.canvas.draw()
    assert len(figure.axes) == 3


def test_no_text_in_figures_is_too_small_to_read() -> None:
    sources = [*ROOT.glob("fts/lab/**/*.py"), ROOT / "fts/plotting.py", ROOT / "fts/explorers/stills.py"]
    sizes = [
        float(size)
        for path in sources
        for size in re.findall(
            r"(?:fontsize|labelsize|titlesize)\"?[=:] ?([\d.]+)", path.read_text(encoding="utf-8")
        )
    ]
    assert len(sizes) > 20
    assert min(sizes) >= SMALLEST_TEXT
