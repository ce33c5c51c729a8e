"""The package reads from top to bottom: one order of imports, no truth for selection, torch in training."""

import ast
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "fts"

# The reading order: a module imports only modules above it. A package counts as one entry.
ORDER = (
    # values on disk, settings, words of an equation
    "files", "params", "paper_tables", "grammar", "expressions", "calculus", "conservative", "terms",
    # the truth and what is seen of it
    "domain", "problems", "solvers", "data", "readers",
    # frozen fields, without torch
    "jets", "features", "radial", "coordinate", "frozen", "shipped", "network", "kronecker", "kernel",
    # training, with torch
    "bandwidth", "device", "networks", "samples", "training",
    "structured", "adapter", "variants", "projected", "recipes",
    # selection
    "weak", "continuity", "geometry", "sparse", "selection", "robust", "svws", "strong", "classical",
    # other methods
    "baselines", "paths", "symbolic",
    # scores, records, studies
    "discovery", "metrics", "records", "tables", "runs", "plans", "verify", "studies",
    # what a reader sees
    "plots", "plots_adapter", "plots_svws", "plots_weak", "scripts", "sources", "stills",
    "widgets", "explorers", "cli",
)  # fmt: skip

SELECTION = ("weak", "continuity", "geometry", "sparse", "selection", "robust", "svws", "strong", "classical")
TRUTH = {"problems", "solvers", "data", "readers", "metrics"}
# Importing these may import torch; importing anything else must not.
TRAINS = {
    "device",
    "networks",
    "samples",
    "training",
    "structured",
    "adapter",
    "projected",
    "variants",
    "baselines",
    "paths",
}
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "sympify", "parse_expr"}
FILES = sorted(PACKAGE.glob("**/*.py"))


def _name(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=str(path))


def _imports(path: Path, *, at_import_time: bool) -> set[str]:
    """Dotted names a file imports, anywhere or only where importing the file runs them."""
    nodes = _outside_functions(_tree(path)) if at_import_time else ast.walk(_tree(path))
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            found |= {f"{base}.{alias.name}" for alias in node.names} | {base}
    return found


def _outside_functions(node: ast.AST) -> list[ast.AST]:
    inside = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    guarded = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    if isinstance(node, inside) or guarded:
        return []
    return [node, *(deeper for child in ast.iter_child_nodes(node) for deeper in _outside_functions(child))]


def _neighbors(name: str, *, at_import_time: bool) -> set[str]:
    paths = [path for path in FILES if _name(path) == name]
    dotted = {entry for path in paths for entry in _imports(path, at_import_time=at_import_time)}
    return {entry.split(".")[1] for entry in dotted if entry.startswith("fts.")} & set(ORDER)


def _reaches(name: str, *, at_import_time: bool) -> set[str]:
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        for other in _neighbors(waiting.pop(), at_import_time=at_import_time) - seen:
            seen.add(other)
            waiting.append(other)
    return seen


MODULES = sorted({_name(path) for path in FILES} - {"__init__", "__main__"})


@pytest.mark.parametrize("name", MODULES)
def test_module_has_a_place_and_imports_only_what_stands_above_it(name: str) -> None:
    assert name in ORDER, f"fts/{name}.py has no place yet: add it to ORDER in tests/test_layers.py"
    above = set(ORDER[: ORDER.index(name)])
    below = _neighbors(name, at_import_time=False) - above - {name}
    assert below == set(), f"fts/{name}.py imports {sorted(below)}, which stand below it"


@pytest.mark.parametrize("name", [name for name in SELECTION if name in MODULES])
def test_selection_cannot_see_the_truth(name: str) -> None:
    assert _reaches(name, at_import_time=False) & TRUTH == set()


@pytest.mark.parametrize("name", [name for name in MODULES if name not in TRAINS])
def test_torch_stays_where_training_is(name: str) -> None:
    paths = [path for path in FILES if _name(path) == name]
    named = {entry.split(".")[0] for path in paths for entry in _imports(path, at_import_time=True)}
    assert "torch" not in named, f"fts/{name}.py imports torch: only {sorted(TRAINS)} may"
    trained = _neighbors(name, at_import_time=True) & TRAINS
    assert trained == set(), (
        f"fts/{name}.py imports {sorted(trained)} and with it torch: import inside the function"
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_nothing_runs_code_from_data(path: Path) -> None:
    roots = {entry.split(".")[0] for entry in _imports(path, at_import_time=False)}
    assert roots & FORBIDDEN_MODULES == set()
    for node in ast.walk(_tree(path)):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        assert called not in FORBIDDEN_CALLS, f"line {node.lineno}: {called}"
        assert called != "torch.load", f"line {node.lineno}: torch.load unpickles"
        pickles = [k for k in node.keywords if k.arg == "allow_pickle" and ast.unparse(k.value) != "False"]
        assert pickles == [], f"line {node.lineno}: allow_pickle"


def test_the_checks_themselves_see(tmp_path: Path) -> None:
    path = tmp_path / "sample.py"
    path.write_text("import torch\nfrom fts.data import observe\ndef f():\n    import pickle\n")
    assert _imports(path, at_import_time=True) == {"torch", "fts.data", "fts.data.observe"}
    assert "pickle" in _imports(path, at_import_time=False)
