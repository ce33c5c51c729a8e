"""What records were made by, and what was committed with them: hashes of code, of files, of published values.

A run's code is that of the modules it imports, late or not, without comments and docstrings: a record whose
code differs from the present one is stale. The digests say which bytes were committed, so that no record,
field or published value changes unnoticed, even where checksums and tables were made to agree with it.
"""

import ast
import hashlib
import inspect
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from fts import containers
from fts.fields.frozen import fields_folder
from fts.lab.layout import needed_by, read_layout
from fts.lab.studies import published

_FILE = "digests.json"
# Written with the digests, and compared value by value.
_DERIVED = (_FILE, "tables.json")
# What every run imports: the samples and the scores.
_COMMON = ("fts.problems.trajectories", "fts.problems.metrics")


@cache
def code_version(*modules: str) -> str:
    """A hash of the code that a run of these modules imports, outside the laboratory and in these."""
    layout = _package()
    needed = needed_by(layout, [f"import {name}" for name in (*_COMMON, *modules)])
    names = sorted(name for name in needed if not name.startswith("fts.lab.") or name in modules)
    return containers.content_key([(name, _code(layout.files[name].path)) for name in names])


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 by name: files of records and recorded paths, shipped fields, published values."""
    recorded = [path for path in folder.glob("*.json*") if path.name not in _DERIVED]
    files = {f"records/{path.name}": path for path in recorded}
    files |= {f"records/paths/{path.name}": path for path in (folder / "paths").glob("*.fts")}
    files |= {f"fields/{path.name}": path for path in fields_folder().glob("*.fts")}
    values = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    tables = inspect.getmembers(published, inspect.isfunction)
    values |= {
        f"published/{name}": hashlib.sha256(repr(table()).encode()).hexdigest()
        for name, table in tables
        if not name.startswith("_") and table.__module__ == published.__name__
    }
    return dict(sorted(values.items()))


def write(folder: Path) -> None:
    """Writes the digests of what is there, to be committed with it."""
    containers.write_atomic(folder / _FILE, json.dumps(digests(folder), indent=1).encode() + b"\n")


def check(folder: Path) -> Iterator[str]:
    """Files and published values that are not those that were committed together."""
    path = folder / _FILE
    if not path.is_file():
        yield f"{path} is missing: write it with python -m fts.lab.studies tables"
        return
    committed, present = json.loads(path.read_text()), digests(folder)
    for name in sorted(committed.keys() | present.keys()):
        if name not in present:
            yield f"{name} is missing: restore it from version control"
        elif committed.get(name) != present[name]:
            word = "was changed" if name in committed else "is new"
            yield f"{name} {word}: restore it, or accept it with python -m fts.lab.studies tables"


_package = cache(read_layout)


@cache
def _code(path: Path) -> str:
    """A file's code without comments, docstrings and layout."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)
