"""The built book: every chapter is there and executed, and no page needs another host."""

import json
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
HTML = ROOT / "_build" / "html"

pytestmark = pytest.mark.book


def _pages() -> list[str]:
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    chapters = [chapter["file"] for part in toc["parts"] for chapter in part["chapters"]]
    return [toc["root"], *chapters]


def _text(page: str) -> str:
    path = HTML / f"{page}.html"
    assert path.is_file(), f"{path.name} is not built: run make book"
    return path.read_text()


@pytest.mark.parametrize("page", _pages())
def test_page_loads_nothing_from_elsewhere(page: str) -> None:
    loads = r"""<(?:script|img|link|iframe|source)\b[^>]*?\b(?:src|href)=["']((?:https?:)?//[^"']+)"""
    found = [url for url in re.findall(loads, _text(page)) if not url.startswith("//")]
    assert found == []


@pytest.mark.parametrize("page", _pages())
def test_page_shows_no_error_and_no_placeholder(page: str) -> None:
    text = _text(page)
    assert "Traceback (most recent call last)" not in text
    assert 'class="system-message' not in text
    assert not re.search(r"\b(TODO|TBD|FIXME|lorem ipsum)\b", text)


@pytest.mark.parametrize("page", [page for page in _pages() if (ROOT / f"{page}.ipynb").exists()])
def test_every_figure_of_a_chapter_is_drawn(page: str) -> None:
    cells = json.loads((ROOT / f"{page}.ipynb").read_text())["cells"]
    shown = [cell["metadata"].get("mystnb", {}).get("figure") for cell in cells]
    names = [figure["name"] for figure in shown if figure]
    text = _text(page)
    missing = [name for name in names if not re.search(rf'<figure[^>]*id="{name}"', text)]
    assert missing == [], "the cell ran but drew nothing"


def test_every_chapter_on_disk_is_in_the_contents() -> None:
    on_disk = {
        f"book/{path.stem}" for pattern in ("*.md", "*.ipynb") for path in (ROOT / "book").glob(pattern)
    }
    assert on_disk == set(_pages())


def test_every_entry_of_the_bibliography_is_listed() -> None:
    keys = re.findall(r"^@\w+\{([^,]+),", (ROOT / "book" / "references.bib").read_text(), re.M)
    text = _text("book/references")
    assert len(keys) == len(set(keys))
    assert text.count('<div class="citation"') == len(keys)


def test_mathjax_is_local() -> None:
    assert (HTML / "_static" / "mathjax" / "tex-chtml.js").is_file()
    assert "_static/mathjax/tex-chtml.js" in _text("book/notation")


def test_the_execution_cache_is_keyed_by_the_package() -> None:
    folders = [path.name for path in (ROOT / "_build" / ".jupyter_cache").iterdir()]
    assert folders, "no execution cache"
    assert all(re.fullmatch(r"[0-9a-f]{16}", name) for name in folders)


def test_the_front_page_leads_into_the_book() -> None:
    assert "book/intro.html" in (HTML / "index.html").read_text()
