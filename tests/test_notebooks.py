"""Chapters are committed without outputs, with short cells, and every figure says what it shows."""

import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "book").glob("*.ipynb"))
LONGEST = 12


def _cells(path: Path, kind: str) -> list[dict[str, Any]]:
    return [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == kind]


def test_there_are_chapters() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_outputs(path: Path) -> None:
    kept = [cell["id"] for cell in _cells(path, "code") if cell["outputs"] or cell["execution_count"]]
    assert kept == [], "clear the outputs: jupyter nbconvert --clear-output --inplace"
    assert "widgets" not in json.loads(path.read_text())["metadata"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_are_short(path: Path) -> None:
    long = {cell["id"]: len(cell["source"]) for cell in _cells(path, "code") if len(cell["source"]) > LONGEST}
    assert long == {}, f"more than {LONGEST} lines: move the plumbing into fts"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_prose_comes_before_code(path: Path) -> None:
    first, *_ = json.loads(path.read_text())["cells"]
    assert first["cell_type"] == "markdown"
    assert first["source"][0].startswith("# ")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_figures_have_captions_and_alternative_text(path: Path) -> None:
    for cell in _cells(path, "code"):
        shown = cell["metadata"].get("mystnb", {})
        if "figure" in shown:
            assert shown["figure"].get("caption"), cell["id"]
            assert shown["figure"].get("name"), cell["id"]
            assert shown.get("image", {}).get("alt"), cell["id"]
