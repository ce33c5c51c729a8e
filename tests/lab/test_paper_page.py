"""The page of the paper: no item without a row, rows that lead somewhere, marks that follow from numbers."""

import importlib
import re
from pathlib import Path

import pytest

from fts.lab.figures import paper
from fts.lab.figures.paper import Value

BOOK = Path(__file__).resolve().parents[2] / "book"


def test_every_table_and_figure_of_the_paper_has_a_row():
    numbers = [re.sub(r"\(\w\)", "", item.number) for item in paper.items()]
    # Counted in the paper: three figures and three tables, then two figures, an algorithm and 14 tables.
    expected = [f"Figure {n}" for n in ("1", "2", "3", "S1", "S2")] + ["Algorithm S1"]
    expected += [f"Table {n}" for n in ("1", "2", "3", *(f"S{k}" for k in range(1, 15)))]
    assert sorted(set(numbers)) == sorted(expected)
    assert len({item.label for item in paper.items()}) == len(expected)


@pytest.mark.parametrize("item", paper.items(), ids=lambda item: item.number)
def test_a_row_leads_to_chapter_function_records_and_figure(item):
    chapter = (BOOK / f"{item.chapter}.ipynb").read_text()
    assert item.see in chapter
    if item.record:
        assert (BOOK / "records" / f"{item.record}.jsonl").is_file()
    if item.function.endswith(".html"):
        assert (BOOK.parent / item.function).is_file()
        return
    module, _, name = item.function.rpartition(".")
    target = importlib.import_module(module)
    assert hasattr(target, name) or importlib.import_module(item.function)


def test_marks_follow_from_two_numbers():
    def mark(ours, theirs, better=0):
        return Value("", "", ours, theirs, better).mark

    assert mark(None, 5) == "not run"
    assert (mark(5, 5, 1), mark(4, 5, 1), mark(5, 4, 1)) == ("matches", "differs", "better")
    assert (mark(0.0824, 0.082, -1), mark(0.0841, 0.082, -1), mark(0.07, 0.082, -1)) == (
        "matches",
        "differs",
        "better",
    )
    assert (mark(0, 0), mark(2, 0), mark(1e-12, 1e-12), mark(1e-11, 1e-12)) == (
        "matches",
        "differs",
        "matches",
        "differs",
    )


def test_the_tables_hold_every_published_number():
    tables = paper.read_tables()
    values = [value for item in paper.items() if item.values for value in item.values(tables)]
    assert len(paper.all_values(tables).rows) == len(values)
    assert len(paper.differences(tables).rows) == sum(value.mark == "differs" for value in values)
    assert {value.mark for value in values} == {"matches", "better", "differs", "not run"}
    counted = sum(int(n) for row in paper.summary(tables).rows for n in row[3:7] if n != "–")
    assert counted == len(values)
    assert len(paper.origins().rows) == len(paper.items())
