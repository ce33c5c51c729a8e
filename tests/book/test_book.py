"""The built book: every chapter is there and executed, and no page needs another host."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
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


_FOREIGN = re.compile(r"(?:https?:|wss?:)?//\S")
_IN_STYLES = re.compile(r"""(?:@import\s+["']?|url\(\s*["']?)([^"')\s]+)""")
_IN_SCRIPTS = re.compile(r"""\b(?:from|import|fetch|importScripts)\b[\s(]*["'`]([^"'`]+)""")
# What a browser fetches by itself; an <a> is followed, and a <link> of these relations only names a page.
_LOADS = {"src", "srcset", "poster", "data", "background"}
_NAMES = {"alternate", "author", "canonical", "license", "next", "prev", "search"}


class _Loads(HTMLParser):
    """Collects the addresses that a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside = tag if tag in ("script", "style") else ""
        values = {name: value or "" for name, value in attrs}
        for name in _LOADS & set(values):
            pieces = values[name].split(",") if name == "srcset" else [values[name]]
            self.found += [piece.split()[0] for piece in pieces if piece.split()]
        self.found += _IN_STYLES.findall(values.get("style", ""))
        named = _NAMES & set(values.get("rel", "").lower().split())
        if (tag == "link" and not named) or tag in ("image", "use"):
            self.found += [values.get("href", ""), values.get("xlink:href", "")]

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        pattern = {"script": _IN_SCRIPTS, "style": _IN_STYLES}.get(self.inside)
        self.found += pattern.findall(data) if pattern else []


def _foreign(text: str) -> list[str]:
    """Addresses on other hosts that a page with this HTML loads."""
    parser = _Loads()
    parser.feed(text)
    return [address for address in parser.found if _FOREIGN.match(address)]


@pytest.mark.parametrize("page", _pages())
def test_page_loads_nothing_from_elsewhere(page: str) -> None:
    assert _foreign(_text(page)) == []


def test_styles_load_nothing_from_elsewhere() -> None:
    sheets = list(HTML.rglob("*.css"))
    assert sheets, "no style sheets are built: run make book"
    result = [(path.name, address) for path in sheets for address in _IN_STYLES.findall(path.read_text())]
    assert [(name, address) for name, address in result if _FOREIGN.match(address)] == []


@pytest.mark.parametrize(
    "load",
    [
        '<script src="https://cdn.example.org/a.js"></script>',
        "<script async src='//cdn.example.org/a.js'></script>",
        '<script type="module">import { a } from "https://cdn.example.org/a.js"</script>',
        '<link rel="stylesheet" href="//fonts.example.org/css">',
        '<link href="https://fonts.example.org" rel="preconnect">',
        '<img alt="" src="http://example.org/a.png">',
        '<img srcset="a.png 1x, https://example.org/a.png 2x">',
        '<iframe src="//example.org"></iframe>',
        "<style>@import 'https://fonts.example.org/css';</style>",
        '<p style="background: url(https://example.org/a.png)">',
    ],
)
def test_a_load_from_elsewhere_is_found(load: str) -> None:
    allowed = """<script src="_static/a.js?v=1"></script><link rel="stylesheet" href="../_static/a.css">
    <link rel="canonical" href="https://example.org/a.html"><a href="https://doi.org/10/abc">paper</a>
    <img src="data:image/png;base64,AA//"><script>const schema = "https://example.org/schema"</script>"""
    assert _foreign(allowed) == []
    assert len(_foreign(allowed + load)) == 1


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


@pytest.mark.parametrize("page", _pages())
def test_every_table_has_a_number_and_every_heading_a_word(page: str) -> None:
    tables = re.findall(r"<table\b.*?</table>", _text(page), re.S)
    unnumbered = [
        table[:200]
        for table in tables
        if not re.search(r"<caption><span class=\"caption-number\">Table", table)
    ]
    assert unnumbered == []
    headings = [
        re.sub(r"<[^>]+>", "", cell).strip() for cell in re.findall(r"<th\b.*?</th>", "".join(tables), re.S)
    ]
    assert "" not in headings
    assert "row" not in headings


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


_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)"')


@pytest.mark.parametrize("page", [*_pages(), "genindex", "search"])
def test_page_runs_only_the_books_own_scripts(page: str) -> None:
    """The book's files, the theme's few inline scripts by their hashes, workers for explorers and Python."""
    text = _text(page)
    (content,) = _POLICY.findall(text)
    assert text.index("Content-Security-Policy") < text.index("<script")
    policy = {directive: sources for directive, *sources in map(str.split, content.split(";"))}
    assert policy["default-src"] == policy["base-uri"] == ["'none'"]
    allowed, *hashes = policy["script-src"]
    assert allowed == "'self'"
    python = "_static/live/engine.js" in text
    if python:
        *hashes, blob, compiled = hashes
        assert (blob, compiled) == ("blob:", "'wasm-unsafe-eval'")
    assert all(source.startswith("'sha256-") for source in hashes)
    assert len(hashes) <= 10
    explorers = "widget-view+json" in text
    assert {*policy.get("worker-src", [])} == ({"blob:"} if explorers or python else set())
    assert ("connect-src" in policy) == (page == "search")
    code = re.findall(r'"script": "(fts-explorers-\w+\.js)"', text)
    assert len(code) == explorers
    assert all((HTML / "_static" / name).is_file() for name in code)


def test_mathjax_is_local() -> None:
    assert (HTML / "_static" / "mathjax" / "tex-chtml.js").is_file()
    assert "_static/mathjax/tex-chtml.js" in _text("book/notation")


def test_the_execution_cache_is_keyed_by_what_chapters_compute_with() -> None:
    cached = (ROOT / "_build" / ".jupyter_cache" / "executed").glob("*/base.ipynb")
    kernels = [json.loads(path.read_text())["metadata"]["kernelspec"] for path in cached]
    assert kernels, "no execution cache"
    assert all(re.fullmatch(r"[0-9a-f]{16}", kernel["computes_with"]) for kernel in kernels)


def test_the_front_page_leads_into_the_book() -> None:
    assert "book/intro.html" in (HTML / "index.html").read_text()
