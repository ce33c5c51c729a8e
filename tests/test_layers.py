"""The package reads from top to bottom, as its docstring says: no truth above its line, torch in training."""

import ast
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import fts
from fts.lab import layout

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "fts"
LAYOUT = layout.read_layout(PACKAGE)
# Importing these folders may import torch; importing anything else must not.
TRAINS = {"adapter", "baselines"}
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "sympify", "parse_expr"}
# Private words for what has a name in numerical analysis, statistics or machine learning.
DIALECT = {
    *("asked", "told", "foretell", "foretold", "came_out", "lowered", "unlikely", "likelier", "settle"),
    "honesty",
}
FILES = [pytest.param(file, id=file.name) for file in LAYOUT.files.values()]
CHECKS = (
    layout.missing_lines,
    layout.upward_imports,
    layout.cycles,
    layout.entangled_methods,
    layout.truth_leaks,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_package_keeps_the_order_of_its_docstring(check: Callable[[layout.Layout], list[str]]) -> None:
    assert check(LAYOUT) == []


def test_the_docstring_is_what_is_read() -> None:
    names = [line.name for line in LAYOUT.lines]
    assert all(f"    {line}" in fts.__doc__ and line.says in fts.__doc__ for line in LAYOUT.lines)
    above = {line.name for line in LAYOUT.lines if not line.truth}
    assert {"kernel", "adapter", "weak", "selection", "svws", "baselines", "methods", "discovery"} <= above
    assert {"problems", "lab"} <= set(names) - above


def test_torch_is_imported_where_training_is() -> None:
    outside = {name for name in layout.importers(LAYOUT, "torch") if LAYOUT.files[name].line not in TRAINS}
    assert outside == set(), f"only {sorted(TRAINS)} import torch with themselves: import it in the function"


@pytest.mark.parametrize("modules", ["fts", "fts.kernel.search, fts.fitting", "fts.methods, fts.discovery"])
def test_selection_and_closed_forms_run_without_torch(modules: str) -> None:
    code = f"import sys, {modules}; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_no_line_takes_the_name_of_a_public_function() -> None:
    # The function would be hidden behind the module once that is imported.
    assert {line.name for line in LAYOUT.lines} & set(fts.__all__) == set()


def test_one_word_is_one_class() -> None:
    classes = [name for file in LAYOUT.files.values() for name in file.classes]
    assert [name for name, count in Counter(classes).items() if count > 1] == []


@pytest.mark.parametrize("file", FILES)
def test_names_are_words_of_the_field(file: layout.File) -> None:
    assert set(file.name.split(".")) & DIALECT == set()
    fields = ("name", "asname", "id", "attr", "arg")
    named = {getattr(node, field, None) for node in ast.walk(file.tree) for field in fields}
    assert {name for name in named if isinstance(name, str) and name.strip("_") in DIALECT} == set()


@pytest.mark.parametrize("file", FILES)
def test_nothing_runs_code_from_data(file: layout.File) -> None:
    assert {name.split(".")[0] for name in file.anywhere} & FORBIDDEN_MODULES == set()
    for node in ast.walk(file.tree):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        assert called not in FORBIDDEN_CALLS, f"line {node.lineno}: {called}"
        assert called != "torch.load", f"line {node.lineno}: torch.load unpickles"
        pickles = [k for k in node.keywords if k.arg == "allow_pickle" and ast.unparse(k.value) != "False"]
        assert pickles == [], f"line {node.lineno}: allow_pickle"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the sources, to be broken."""
    return shutil.copytree(PACKAGE, tmp_path / "fts", ignore=shutil.ignore_patterns("__pycache__", "js"))


TRUTH = "from fts.problems.problems import problem"
LAZY = "def late():\n    from fts.problems import problems\n    return problems"
# Upward into selection; into the truth at once, late, by a relative path, through the package, by a name.
BROKEN = [
    ("kernel/search.py", "from fts.svws.rule import choose", "upward_imports", "fts.svws.rule, which stands"),
    ("kernel/search.py", TRUTH, "upward_imports", "imports fts.problems.problems, which stands below"),
    (
        "kernel/search.py",
        TRUTH,
        "truth_leaks",
        "fts.kernel.closed_form reaches fts.problems.problems, the truth",
    ),
    ("kernel/search.py", TRUTH, "truth_leaks", "fts.fitting reaches fts.problems.problems, the truth"),
    ("kernel/search.py", LAZY, "truth_leaks", "fts.kernel.search reaches fts.problems.problems, the truth"),
    (
        "kernel/search.py",
        "from ..problems.problems import problem",
        "truth_leaks",
        "reaches fts.problems.problems",
    ),
    ("kernel/search.py", "import fts", "upward_imports", "imports fts itself"),
    ("kernel/search.py", "from fts import problem", "upward_imports", "imports fts itself"),
    ("kernel/search.py", "import_module(f'fts.{where}')", "upward_imports", "imports fts itself"),
    (
        "kernel/search.py",
        "import_module('fts.problems.problems')",
        "truth_leaks",
        "reaches fts.problems.problems",
    ),
    ("kernel/covariance.py", "from fts.kernel import closed_form", "cycles", "fts.kernel.covariance is part"),
    ("baselines/regressions.py", "from fts.baselines import pysindy", "entangled_methods", "another method"),
    ("novelty/first.py", "", "missing_lines", "novelty/ has no line in the order"),
    ("novelty.py", "", "missing_lines", "novelty has no line in the order"),
]


@pytest.mark.parametrize(("path", "code", "check", "report"), BROKEN)
def test_what_breaks_the_order_is_reported(
    package: Path, path: str, code: str, check: str, report: str
) -> None:
    checker = getattr(layout, check)
    assert not any(report in entry for entry in checker(LAYOUT))
    (package / path).parent.mkdir(exist_ok=True)
    with (package / path).open("a") as file:
        file.write(f"\n{code}\n")
    assert any(report in entry for entry in checker(layout.read_layout(package)))


def test_a_line_without_a_module_is_reported(package: Path) -> None:
    (package / "fitting.py").unlink()
    assert "fitting stands in the order, but not on disk" in layout.missing_lines(layout.read_layout(package))


@pytest.mark.parametrize("code", ["import torch", "from fts.adapter import networks"])
def test_torch_above_its_place_is_reported(package: Path, code: str) -> None:
    with (package / "kernel" / "search.py").open("a") as file:
        file.write(f"\n{code}\n")
    reached = layout.importers(layout.read_layout(package), "torch")
    assert {"fts.kernel.search", "fts.kernel.closed_form"} <= reached


def test_torch_inside_a_function_is_no_import(package: Path) -> None:
    before = layout.importers(layout.read_layout(package), "torch")
    with (package / "kernel" / "search.py").open("a") as file:
        file.write("\ndef late():\n    import torch\n    return torch\n")
    assert layout.importers(layout.read_layout(package), "torch") == before
