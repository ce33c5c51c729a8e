"""A chapter is executed again when what it computes with changed; a call is traced through the folders."""

import importlib.util
import json
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

from fts.lab import layout

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(f"book/{path.stem}" for path in (ROOT / "book").glob("*.ipynb"))
LAYOUT = layout.read_layout()


@pytest.fixture(scope="module")
def extension() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fts_book", ROOT / "book" / "_ext" / "fts_book.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package and the notebooks, to be edited."""
    root = tmp_path_factory.mktemp("book")
    shutil.copytree(ROOT / "fts", root / "fts", ignore=shutil.ignore_patterns("__pycache__"))
    for name in NAMES:
        (root / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / f"{name}.ipynb", root / f"{name}.ipynb")
    (root / "book" / "records").mkdir()
    (root / "book" / "records" / "study.jsonl").write_text("{}\n")
    (root / "requirements.lock").write_text("numpy==2.4.6\n")
    return root


@pytest.fixture(scope="module")
def last(extension: ModuleType, book: Path) -> dict[str, str]:
    """The keys before the next edit."""
    return extension.notebook_keys(book, NAMES)


ALL = {name.removeprefix("book/") for name in NAMES}


@pytest.mark.parametrize(
    ("path", "pages"),
    [
        ("fts/lab/figures/symbolic.py", {"symbolic", "layout"}),  # the layout page reads every source
        ("fts/lab/figures/weak.py", {"weak", "layout"}),
        ("fts/equations/terms.py", ALL),
        ("fts/__init__.py", ALL),
        ("fts/explorers/js/weak.js", ALL),
        ("book/records/study.jsonl", ALL),
        ("requirements.lock", ALL),
    ],
)
def test_an_edit_changes_the_keys_of_what_imports_it(
    extension: ModuleType, book: Path, last: dict[str, str], path: str, pages: set[str]
) -> None:
    with (book / path).open("a") as file:
        file.write("\n")
    after = extension.notebook_keys(book, NAMES)
    assert {name.removeprefix("book/") for name in NAMES if after[name] != last[name]} == pages
    last.update(after)


@pytest.mark.parametrize(
    ("cells", "needed", "idle"),
    [
        (["import fts", "fts.load_field('ks')"], "fts.fields.frozen", "fts.discovery.discover"),
        (["import fts", "fts.discover('a.csv')"], "fts.trajectory.integration", "fts.lab.layout"),
        (["from fts import Term"], "fts.equations.terms", "fts.fields.frozen"),
        (["from fts import plotting"], "fts.plotting", "fts.discovery.discover"),
        (["import fts.lab.figures.weak"], "fts.lab", "fts.lab.figures.symbolic"),
    ],
)
def test_public_names_lead_to_their_modules(cells: list[str], needed: str, idle: str) -> None:
    files = layout.needed_by(LAYOUT, cells)
    assert needed in files
    assert idle not in files


@pytest.mark.parametrize(
    "cells",
    [["import fts", "getattr(fts, name)"], ["import fts", "fts.anything()"], ["%run chapter.py"]],
)
def test_what_cannot_be_resolved_counts_as_everything(cells: list[str]) -> None:
    assert layout.needed_by(LAYOUT, cells) == set(LAYOUT.files)


def test_the_build_finds_outdated_pages_and_keys_their_cache(extension: ModuleType, book: Path) -> None:
    class Environment:
        found_docs = (*NAMES, "book/notation")

        def doc2path(self, name: str) -> str:
            return f"{name}.ipynb" if name in NAMES else f"{name}.md"

    class Application:
        srcdir, env = str(book), Environment()

    assert set(extension._find_outdated(Application, Application.env)) == set(NAMES)
    assert extension._find_outdated(Application, Application.env) == []
    name, source = NAMES[0], [(book / f"{NAMES[0]}.ipynb").read_text()]
    extension._key_cache(Application, name, source)
    kernel = json.loads(source[0])["metadata"]["kernelspec"]
    assert kernel["computes_with"] == Application.env.notebook_keys[name]
    assert kernel["name"] == "python3"


def test_a_trace_tells_the_folders_apart() -> None:
    from fts.equations.terms import Library

    trace = layout.traced(lambda: Library.parse(["u*u_x", "u_xx"]))
    assert trace.intervals[0][0] == "equations"
    assert trace.calls["equations"] > 1
    assert "kernel" not in trace.calls
    lines = {line for line, *_ in trace.intervals}
    assert sum(trace.share(line) for line in lines) == pytest.approx(1.0)
    for (_, _, stop), (_, start, _) in zip(trace.intervals, trace.intervals[1:], strict=False):
        assert start == stop
    assert sys.getprofile() is None
