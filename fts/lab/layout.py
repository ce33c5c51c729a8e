"""The package's import graph -> its reading order, what breaks it, what a notebook needs; and a traced call.

The order is the docstring of the package; the graph is read from the files, and nothing is imported.
"""

import ast
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from types import FrameType
from typing import Any

HERE = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Line:
    """One line of the reading order: a module, or a folder with everything in it."""

    name: str
    folder: bool
    says: str
    truth: bool  # stands below the dashed line

    def __str__(self) -> str:
        return self.name + "/" * self.folder


@dataclass(frozen=True)
class File:
    """One file: dotted name, syntax tree, and what it imports, anywhere and when it is itself imported."""

    name: str
    path: Path
    tree: ast.Module
    length: int
    anywhere: frozenset[str]
    at_import: frozenset[str]

    @property
    def line(self) -> str:
        """Name of the line it belongs to."""
        return self.name.split(".")[1]

    @property
    def classes(self) -> list[str]:
        """Public classes it defines."""
        defined = [node.name for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef)]
        return [name for name in defined if not name.startswith("_")]


@dataclass(frozen=True)
class Layout:
    """Lines in reading order, files by dotted name without the package's own `__init__`, and public names."""

    package: str
    lines: tuple[Line, ...]
    files: dict[str, File]
    public: dict[str, str]  # name -> the file it is loaded from

    def of(self, line: str) -> list[File]:
        """The files of a line."""
        return [file for file in self.files.values() if file.line == line]

    def imports(self, line: str) -> set[str]:
        """Other lines that a line imports, inside functions too."""
        names = {name for file in self.of(line) for name in file.anywhere}
        return {name.split(".")[1] for name in names if name in self.files} - {line}


def read_layout(root: Path = HERE) -> Layout:
    """The layout of the package in the folder `root`."""
    modules = ((path.relative_to(root.parent).with_suffix(""), path) for path in sorted(root.rglob("*.py")))
    paths = {".".join(module.parts).removesuffix(".__init__"): path for module, path in modules}
    inner = frozenset(paths) - {root.name}
    files = {name: _file(name, paths[name], inner, root.name) for name in sorted(inner)}
    tree = ast.parse((root / "__init__.py").read_text())
    sources = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module in inner]
    public = {alias.name: str(node.module) for node in sources for alias in node.names}
    return Layout(root.name, _lines(ast.get_docstring(tree) or ""), files, public)


def missing_lines(layout: Layout) -> list[str]:
    """Modules and folders without a line, and lines without a module or folder."""
    listed = [str(line) for line in layout.lines]
    files = layout.files.values()
    folders = {file.line for file in files if file.name.count(".") > 1 or file.path.name == "__init__.py"}
    present = {file.line + "/" * (file.line in folders) for file in files}
    faults = [f"{name} stands in the order, but not on disk" for name in listed if name not in present]
    faults += [f"{name} has no line in the order" for name in sorted(present - set(listed))]
    return faults + [f"{name} has two lines" for name in sorted(set(listed)) if listed.count(name) > 1]


def upward_imports(layout: Layout) -> list[str]:
    """Imports of a line that stands below the importing one, or of the package itself, which reaches all."""
    rank = {line.name: i for i, line in enumerate(layout.lines)}
    faults = []
    for file in layout.files.values():
        for name in sorted(file.anywhere):
            if name == layout.package:
                faults.append(f"{file.name} imports {name} itself: import the module that has the name")
            elif name in layout.files and rank.get(name.split(".")[1], -1) > rank.get(file.line, -1):
                faults.append(f"{file.name} imports {name}, which stands below it")
    return faults


def cycles(layout: Layout) -> list[str]:
    """Files that import each other in a circle: no order in which a reader could take them."""
    circles = [name for name in layout.files if name in _reached(layout, [name], "anywhere")]
    return [f"{name} is part of a circle of imports" for name in circles]


def entangled_methods(layout: Layout) -> list[str]:
    """Methods of `baselines` that import each other; a method is a file that registers itself."""
    methods = {file.name: file for file in layout.of("baselines") if _registers(file.tree)}
    pairs = [
        (file.name, other) for file in methods.values() for other in sorted(file.anywhere & set(methods))
    ]
    return [f"{name} imports {other}, another method" for name, other in pairs]


def truth_leaks(layout: Layout) -> list[str]:
    """Files above the dashed line from which imports, however many, lead below it."""
    below = {line.name for line in layout.lines if line.truth}
    faults = []
    for file in (file for file in layout.files.values() if file.line not in below):
        reached = sorted(_reached(layout, [file.name], "anywhere"))
        faults += [f"{file.name} reaches {n}, the truth" for n in reached if n.split(".")[1] in below]
    return faults


def importers(layout: Layout, library: str) -> set[str]:
    """Files whose import imports the library, `torch` say, themselves or through other files."""
    files = layout.files.items()
    direct = {name for name, file in files if library in {other.split(".")[0] for other in file.at_import}}
    return {name for name in layout.files if ({name} | _reached(layout, [name], "at_import")) & direct}


def makers(layout: Layout, given: Iterable[str], made: str) -> list[str]:
    """Lines, in reading order, with a public function or method from one of the types `given` to `made`."""
    wanted = set(given)

    def makes(file: File) -> bool:
        return any(made in back and wanted & taken for taken, back in _signatures(file.tree))

    return [line.name for line in layout.lines if any(map(makes, layout.of(line.name)))]


def needed_by(layout: Layout, cells: Iterable[str]) -> set[str]:
    """Files that a notebook with these cells can run: those it imports, and all they import, late or not.

    Where the cells do not say which (`getattr(fts, name)`, a magic command) every file counts, and so it does
    for the page that draws the package itself.
    """
    try:
        tree = ast.parse("\n".join(cells))
    except SyntaxError:
        return set(layout.files)
    package, names = layout.package, set(_names(ast.walk(tree), "", set(layout.files)))
    nodes, used = list(ast.walk(tree)), set[str]()
    bare = sum(isinstance(node, ast.Name) and node.id == package for node in nodes)
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == package:
            used.add(node.attr)
            bare -= 1
        elif isinstance(node, ast.ImportFrom) and node.module == package:
            used |= {alias.name for alias in node.names}
    whole = {f"{package}.{name}" for name in used} & set(layout.files)
    unknown = used - set(layout.public) - {name.rpartition(".")[2] for name in whole}
    names |= whole | {layout.public[name] for name in used & set(layout.public)}
    if bare or unknown or f"{package}.lab.layout" in names:
        return set(layout.files)
    reached = names & set(layout.files)
    reached |= _reached(layout, reached, "anywhere")
    parts = [name.split(".") for name in reached]
    folders = {".".join(part[:end]) for part in parts for end in range(2, len(part))}
    return reached | folders & set(layout.files)


@dataclass(frozen=True)
class CallTrace:
    """One call seen from outside: which line of the reading order worked when, and calls by line."""

    intervals: tuple[tuple[str, float, float], ...]  # line, from, to in seconds, without gaps
    calls: Counter[str]
    seconds: float

    def share(self, line: str) -> float:
        """The part of the time that the line's own functions took, with all outside the package they call."""
        return sum(stop - start for name, start, stop in self.intervals if name == line) / self.seconds


def traced(call: Callable[[], Any], root: Path = HERE) -> CallTrace:
    """The trace of a call; time counts for the innermost function of the package."""
    open_lines: list[str] = []
    switches: list[tuple[str, float]] = []
    calls: Counter[str] = Counter()

    @cache
    def line_of(path: str) -> str | None:
        inside = path.startswith(f"{root}{os.sep}")
        line = Path(path).relative_to(root).parts[0].removesuffix(".py") if inside else "__init__"
        return None if line == "__init__" else line

    def notice(frame: FrameType, event: str, _: Any) -> None:
        if event not in ("call", "return") or (line := line_of(frame.f_code.co_filename)) is None:
            return
        if event == "call":
            open_lines.append(line)
            calls[line] += not frame.f_code.co_name.startswith("<")  # neither modules nor comprehensions
        elif open_lines:
            open_lines.pop()
        if open_lines and (not switches or switches[-1][0] != open_lines[-1]):
            switches.append((open_lines[-1], time.perf_counter()))

    sys.setprofile(notice)
    try:
        call()
    finally:
        sys.setprofile(None)
    stops = [start for _, start in switches[1:]] + [time.perf_counter()]
    began = switches[0][1]
    pairs = zip(switches, stops, strict=True)
    intervals = tuple((line, start - began, stop - began) for (line, start), stop in pairs)
    return CallTrace(intervals, calls, stops[-1] - began)


def _registers(tree: ast.Module) -> bool:
    """Whether a file calls `register` or `register_training`, as a decorator or by itself."""
    calls = (_called(node) for node in ast.walk(tree) if isinstance(node, ast.Call))
    return any(call in ("register", "register_training") for call in calls)


def _called(call: ast.Call) -> str:
    """The last part of the name of what is called."""
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def _signatures(tree: ast.Module) -> Iterator[tuple[set[str], set[str]]]:
    """Names of types that each public function takes and gives back; a method takes its class."""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    for home, body in [("", tree.body), *((node.name, node.body) for node in classes)]:
        for node in body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                taken = [argument.annotation for argument in (*node.args.args, *node.args.kwonlyargs)]
                yield {home}.union(*map(_types, taken)), _types(node.returns)


def _types(annotation: ast.expr | None) -> set[str]:
    return {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)} if annotation else set()


def _lines(docstring: str) -> tuple[Line, ...]:
    parts = re.split(r"^ {4}-----.*", docstring, maxsplit=1, flags=re.MULTILINE)
    rows = ((row, i > 0) for i, part in enumerate(parts) for row in part.splitlines())
    matches = ((re.fullmatch(r" {4}(\w+)(/?) {2,}(\S.*)", row), truth) for row, truth in rows)
    return tuple(Line(match[1], bool(match[2]), match[3], truth) for match, truth in matches if match)


def _file(name: str, path: Path, inner: frozenset[str], package: str) -> File:
    text = path.read_text()
    home, known = name if path.name == "__init__.py" else name.rpartition(".")[0], inner | {package}
    tree, nodes, outside = _parsed(text)
    anywhere, at_import = frozenset(_names(nodes, home, known)), frozenset(_names(outside, home, known))
    # Importing a file runs the `__init__` of its folder, and of the folders of what it imports.
    folders = {other.rpartition(".")[0] for other in at_import | {name}} & inner
    return File(name, path, tree, len(text.splitlines()), anywhere, at_import | folders - {name})


@lru_cache(maxsize=512)  # after an edit only the edited file is parsed again
def _parsed(text: str) -> tuple[ast.Module, tuple[ast.AST, ...], tuple[ast.AST, ...]]:
    """Syntax tree, and the nodes that may import: anywhere and outside of functions."""
    tree, kinds = ast.parse(text), (ast.Import, ast.ImportFrom, ast.Call)
    anywhere = tuple(node for node in ast.walk(tree) if isinstance(node, kinds))
    return tree, anywhere, tuple(node for node in _outside_functions(tree) if isinstance(node, kinds))


def _names(nodes: Iterable[ast.AST], home: str, known: Set[str]) -> Iterator[str]:
    """Dotted names of imported modules; `from fts.lab import layout` is fts.lab.layout."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = ".".join(home.split(".")[: len(home.split(".")) + 1 - node.level]) if node.level else ""
            base = ".".join(part for part in (above, node.module) if part)
            whole = {f"{base}.{alias.name}" for alias in node.names}
            yield from whole & known
            if whole - known:
                yield base
        elif isinstance(node, ast.Call) and _called(node) == "import_module":
            yield from _computed(node.args[0], home.split(".")[0], known)


def _computed(name: ast.expr, package: str, known: Set[str]) -> Iterator[str]:
    """What `import_module` may import: f"fts.baselines.{name}" is any file of that folder."""
    if isinstance(name, ast.Constant):
        yield str(name.value)
        return
    parts = name.values if isinstance(name, ast.JoinedStr) else [name]
    head = str(parts[0].value) if isinstance(parts[0], ast.Constant) else ""
    if head.count(".") > 1 and head.endswith("."):
        yield from (module for module in known if module.rpartition(".")[0] == head[:-1])
    else:  # it may be any module: as if the package itself were imported
        yield package


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    guarded = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    if not guarded and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        yield node
        for child in ast.iter_child_nodes(node):
            yield from _outside_functions(child)


def _reached(layout: Layout, starts: Iterable[str], when: str) -> set[str]:
    """Files that imports lead to from these; one of them only when a circle leads back."""
    seen: set[str] = set()
    waiting = list(starts)
    while waiting:
        for name in (getattr(layout.files[waiting.pop()], when) & layout.files.keys()) - seen:
            seen.add(name)
            waiting.append(name)
    return seen
