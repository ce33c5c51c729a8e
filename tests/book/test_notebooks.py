"""Chapters: no outputs, short cells; figures and tables are captioned, referred to, and hide their code."""

import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "book").glob("*.ipynb"))
LONGEST = 40
# The front page leads in, and the last notebook is about the code.
CHAPTERS = [path for path in NOTEBOOKS if path.stem not in ("intro", "layout", "paper")]


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
def test_assertions_are_folded(path: Path) -> None:
    solving, shown = False, []
    for cell in json.loads(path.read_text())["cells"]:
        text = "".join(cell["source"])
        solving = (solving or "{solution-start}" in text) and "{solution-end}" not in text
        if cell["cell_type"] == "code" and re.search(r"^\s*assert\b", text, re.M) and not solving:
            shown += [] if "checked" in cell["metadata"].get("tags", []) else [cell["id"]]
    assert shown == [], "move what keeps prose true into a cell of its own, tagged checked"


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_chapters_say_what_they_teach(path: Path) -> None:
    cells = ["".join(cell["source"]) for cell in _cells(path, "markdown")]
    aims = next(text for text in cells if "{admonition} In this chapter you learn" in text)
    assert len(re.findall(r"^- ", aims, re.M)) == 3
    takeaways = next(text for text in cells if text.startswith("## Three things to remember"))
    assert len(re.findall(r"^1\. ", takeaways, re.M)) == 3
    text = "\n".join(cells)
    asked, solved = (re.findall(rf"```\{{{kind}}}.*", text) for kind in ("exercise", "solution(?:-start)?"))
    assert len(asked) == len(solved) >= 2


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_running_text_has_few_tables(path: Path) -> None:
    count = 0
    for cell in json.loads(path.read_text())["cells"]:
        text = "".join(cell["source"])
        if text.startswith("## Appendix"):
            break
        count += len(_NAMED.findall(text) if cell["cell_type"] == "code" else re.findall(":::{table}", text))
    assert count <= 8, "move tables behind a figure to the appendix of the chapter"


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


_NAMED = re.compile(r'\.titled\(\s*["\']([\w-]+)["\']')
# Formulas on lines of their own, with what stands behind them.
_DISPLAYED = re.compile(r"^\$\$.*?\$\$[^\n]*", re.S | re.M)
WORDS = ("library", "support", "STLSQ", "ridge", "nugget", "jackknife")


def _prose(page: str) -> str:
    path = ROOT / f"{page}.md"
    if path.is_file():
        return path.read_text()
    return "\n\n".join("".join(cell["source"]) for cell in _cells(ROOT / f"{page}.ipynb", "markdown"))


def _pages() -> list[str]:
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    return [toc["root"], *(chapter["file"] for part in toc["parts"] for chapter in part["chapters"])]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_figures_and_tables_hide_their_code(path: Path) -> None:
    shown = [
        cell["id"]
        for cell in _cells(path, "code")
        if ("figure" in cell["metadata"].get("mystnb", {}) or _NAMED.search("".join(cell["source"])))
        and "hide-input" not in cell["metadata"].get("tags", [])
    ]
    assert shown == [], "tag the cell hide-input, and keep code that is the point in a cell of its own"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_table_has_a_name_and_a_caption(path: Path) -> None:
    for cell in _cells(path, "code"):
        text = "".join(cell["source"])
        # What makes a table and ends a cell without a title would stand there without a number.
        assert not re.search(r"^style\.table\((?![\s\S]*\.titled\()", text, re.M), cell["id"]


def test_every_figure_and_table_is_referred_to() -> None:
    prose = "\n".join(map(_prose, _pages()))
    names = re.findall(r"^:name: (tab-[\w-]+)", prose, re.M)
    for path in NOTEBOOKS:
        for cell in _cells(path, "code"):
            names += _NAMED.findall("".join(cell["source"]))
            figure = cell["metadata"].get("mystnb", {}).get("figure")
            names += [figure["name"]] if figure else []
    assert len(names) == len(set(names)) > 50
    # The tables of symbols stand one after another; the first and the last are named.
    unsaid = [name for name in names if f"{{numref}}`{name}`" not in prose and "symbols" not in name]
    assert unsaid == []


@pytest.mark.parametrize("page", _pages())
def test_displayed_formulas_are_numbered(page: str) -> None:
    unnumbered = [
        match for match in _DISPLAYED.findall(_prose(page)) if not re.search(r"\$\$ \(eq-[\w-]+\)$", match)
    ]
    assert unnumbered == []


@pytest.mark.parametrize("page", _pages())
def test_code_named_in_prose_exists(page: str) -> None:
    for name in re.findall(r"`(fts(?:\.\w+)+)`", _prose(page)):
        parts = name.split(".")
        value: Any = importlib.import_module("fts")
        for index, part in enumerate(parts[1:], start=2):
            try:
                value = getattr(value, part)
            except AttributeError:
                value = importlib.import_module(".".join(parts[:index]))


def test_words_are_explained_where_they_first_stand() -> None:
    for word in WORDS:
        page = next(page for page in _pages() if re.search(rf"\b{word}\b", _prose(page)))
        # Emphasis introduces a word; so does an entry of a list of definitions.
        assert re.search(rf"\*{word}\*|^{word}\n: ", _prose(page), re.M), f"{word} on {page}"
