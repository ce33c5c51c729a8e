"""Runs in a page's worker: a question in JSON -> the package's answer in JSON; nothing is computed elsewhere.

Samples are read by the command line's own words, so that the page, a shell and a notebook do the same.
"""

import base64
import contextlib
import io
import json
import math
import os
import shlex
import sys
import traceback
import types
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tqdm
import tqdm.auto

# Samples that fit into a page's memory and a reader's patience; a shell takes more.
MOST_SAMPLES = 60_000
_GRID, _DOTS = 160, 4000  # points per axis of a drawn field, and samples drawn over it
_FRAMES, _POINTS, _STEPS = 121, 256, 24  # of an equation carried forward
_say: Callable[[str], object] = lambda _: None  # noqa: E731 - set by the page


class Bar(tqdm.std.tqdm):
    """A progress bar whose state goes to the page; it is there before the package imports tqdm's own."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options | {"delay": 0, "mininterval": 0.2, "file": io.StringIO()})

    def display(self, *_: Any, **__: Any) -> None:
        """Tell the page how far it is."""
        fraction = self.n / self.total if self.total else None
        _say(json.dumps({"stage": self.desc.strip(": "), "steps": self.n, "fraction": fraction}))


def listen(say: Callable[[str], object]) -> None:
    """Send progress to the page, and load what answers it."""
    global _say
    _say = say
    tqdm.tqdm.monitor_interval = 0  # no thread can be started
    tqdm.auto.tqdm = Bar
    sys.stdout = sys.stderr = io.StringIO()
    os.environ |= {"FTS_FIELDS": "/home/pyodide/fields", "MPLBACKEND": "agg"}
    import fts.cli
    import fts.discovery.systems  # noqa: F401


def answer(task: str, question: str) -> str:
    """The answer to a task, or what it refuses, in the command line's words."""
    from fts import cli

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            result = _TASKS[task](**json.loads(question))
        except (ValueError, OSError) as error:
            result = {"refused": f"fts: {cli.in_one_line(str(error))}"}
        except MemoryError:
            result = {"refused": "fts: the samples do not fit into memory: thin them out"}
    notes = [cli.in_one_line(str(w.message)) for w in caught if issubclass(w.category, UserWarning)]
    return json.dumps(result | {"warnings": list(dict.fromkeys(notes))})


# Samples ------------------------------------------------------------------------------------


def _options(arguments: list[str]) -> Namespace:
    from fts import cli

    return cli.parse(["discover", *arguments])


def _look(arguments: list[str]) -> dict[str, Any]:
    """What a file holds: its headings, and the samples where it says which they are."""
    from fts import cli

    options = _options(arguments)
    looked: dict[str, Any] = {"headings": _headings(Path(options.samples))}
    try:
        record = _record(cli.read_observations(options))
    except (ValueError, OSError) as error:
        return looked | {"refused": f"fts: {cli.in_one_line(str(error))}"}
    observations, count = next(iter(record.values())), sum(map(len, record.values()))
    domain = observations.domain
    axes = zip("xyz", domain.low, domain.high, domain.periodic, strict=False)
    return looked | {
        "samples": count,
        "grid": observations.grid is not None,
        "axes": [
            {"name": name, "low": low, "high": high, "closed": closed} for name, low, high, closed in axes
        ],
        "time": [domain.t0, domain.t1],
        "values": [float(observations.y.min()), float(observations.y.max())],
        "refused": _too_many(count, arguments),
    }


def _record(samples: Any) -> dict[str, Any]:
    """The observations of the file by component; a scalar field is u."""
    return samples[0] if isinstance(samples, list) else {"u": samples}


def _headings(path: Path) -> list[str]:
    """The words of the first line, for the page to offer; the reader decides what they mean."""
    if path.suffix.lower() not in (".csv", ".tsv", ".txt", ".dat"):
        return []
    with path.open("rb") as stream:
        line = stream.readline(4096).decode("utf-8-sig", "replace").strip().lstrip("#%")
    words = [word.strip().strip('"') for word in line.replace(";", ",").replace("\t", ",").split(",")]
    return words if len(words) < 40 and not any(map(_is_number, words)) else []


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _too_many(count: int, arguments: list[str]) -> str | None:
    if count <= MOST_SAMPLES:
        return None
    return (
        f"{count:,} samples: a page takes {MOST_SAMPLES:,}. In a shell there is no such bound: "
        f"fts {shlex.join(['discover', *arguments])}"
    )


_latest: dict[str, Any] = {}  # the discovery that was made last, and the arguments that led to it


def _discover(arguments: list[str]) -> dict[str, Any]:
    """What `fts discover` finds with these arguments."""
    from fts import cli
    from fts.discovery.discover import refusal
    from fts.discovery.systems import SystemDiscovery, discover
    from fts.observations import InsufficientData

    _latest.clear()
    options = _options(arguments)
    _stage("read")
    try:
        samples = cli.read_observations(options)
    except InsufficientData as error:
        samples, result = None, refusal(error)
    else:
        if too_many := _too_many(sum(map(len, _record(samples).values())), arguments):
            raise ValueError(too_many)
        _stage("fit")
        equations = {"library": cli.read_library(options), "inputs": options.inputs, "target": options.target}
        result = discover(samples, **equations, recipe=options.recipe)
    _latest.update(result=result, arguments=arguments, samples=samples)
    _stage("draw")
    parts = result.components if isinstance(result, SystemDiscovery) else {"u": result}
    doubtful = [part.verdict.status for part in parts.values() if not part.identified]
    return {
        "status": doubtful[0] if doubtful else "identified",
        "parts": [_part(name, part) for name, part in parts.items()],
        "text": str(result),
        "json": cli.answer_json(result),
        "forward": _cannot_go_forward(result),
    }


def _part(name: str, result: Any) -> dict[str, Any]:
    """One equation, with its verdict and the field it was read off."""
    errors, selection, verdict = result.standard_errors, result.selection, result.verdict
    values = {} if selection is None else selection.coefficients
    terms = {term: f"{value:.5g} ± {errors[term]:.2g}" for term, value in values.items()}
    terms |= {term: str(curve) for term, curve in ({} if selection is None else selection.curves).items()}
    return {
        "name": name,
        "status": verdict.status,
        "identified": result.identified,
        "equation": str(result.equation) if selection else "",
        "terms": [{"name": term, "text": text} for term, text in terms.items()],
        "reasons": list(verdict.reasons),
        "rivals": [{"equation": str(each.equation), "leaves": f"{each.risk:.2g}"} for each in verdict.rivals],
        "leaves": verdict.of,
        "picture": _picture(result),
    }


def _stage(name: str) -> None:
    _say(json.dumps({"stage": name, "steps": 0, "fraction": None}))


def _picture(result: Any) -> dict[str, Any] | None:
    """The field over x and t, or over x and y in the middle of the record, and the samples."""
    field, observations = result.field, result.observations
    if field is None:
        return None
    domain = field.domain
    axes = [np.linspace(low, high, _GRID) for low, high in zip(domain.low, domain.high, strict=True)]
    axes.append(np.linspace(domain.t0, domain.t1, _GRID))
    for axis in range(2, len(axes)):
        axes[axis] = axes[axis][_GRID // 2 : _GRID // 2 + 1]
    values = field.on_grid(*axes).reshape(_GRID, _GRID)
    every = -(-len(observations) // _DOTS)
    across = observations.x[::every, 0]
    along = observations.t[::every] if domain.dimension == 1 else observations.x[::every, 1]
    return {
        "x": [domain.low[0], domain.high[0]],
        "y": [domain.t0, domain.t1] if domain.dimension == 1 else [domain.low[1], domain.high[1]],
        "names": ["x", "t" if domain.dimension == 1 else "y"],
        "at": None if domain.dimension == 1 else f"t = {axes[-1][0]:.3g}",
        "shape": [_GRID, _GRID],
        "values": _packed(values),
        "dots": [_packed(across), _packed(along), _packed(observations.y[::every])],
    }


def _packed(values: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f4").tobytes()).decode()


def _cannot_go_forward(result: Any) -> str | None:
    """Why an equation is not integrated, or nothing."""
    from fts.discovery.systems import SystemDiscovery

    if isinstance(result, SystemDiscovery):
        return "Here only a single equation for u_t with constant coefficients is integrated."
    if result.selection is None or not len(result.equation.terms):
        return "There is no equation to integrate."
    domain = result.field.domain
    if domain.dimension > 1 or not domain.periodic[0]:
        return "An equation is integrated along one axis that closes on itself: say that x is periodic."
    return None


def _forward() -> dict[str, Any]:
    """The equation fitted to the samples by integrating it, and its solution from the field's first state."""
    from fts.equations.integration import evolve

    result = _latest["result"]
    _stage("integrate")
    thawed = result.thaw()
    domain = result.field.domain
    (length, duration), low = domain.extents, domain.low[0]
    x, t = low + length * np.arange(_POINTS) / _POINTS, np.linspace(domain.t0, domain.t1, _FRAMES)
    _stage("forward")
    with np.errstate(all="ignore"):
        u = evolve(thawed.equation, result.field.on_grid(x, t[:1])[:, 0], length, _FRAMES, duration, _STEPS)
    field = result.field.on_grid(x, t)
    bounded = bool(np.isfinite(u).all())
    away = float(np.sqrt(np.mean((u - field) ** 2)) / field.std()) if bounded else math.inf
    return {
        "text": str(thawed),
        "bounded": bounded,
        "away": f"{away:.2g}",
        "picture": {
            "x": [low, low + length],
            "y": [domain.t0, domain.t1],
            "names": ["x", "t"],
            "at": None,
            "shape": [_POINTS, _FRAMES],
            "values": _packed(u if bounded else field),
            "dots": None,
        },
    }


def _report() -> dict[str, Any]:
    """The report of `fts discover --report`."""
    _stage("report")
    from fts.discovery import report

    return {"text": report.page(_latest["result"])}


def _notebook() -> dict[str, Any]:
    """A notebook that does the same with the same file beside it."""
    lines = _lines(_options(_latest["arguments"]))
    after = ["result", "result.standard_errors", "result.doubts"]
    if _cannot_go_forward(_latest["result"]) is None:
        after.append("print(result.thaw())")
    cells = [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": f"cell-{i}",
            "metadata": {},
            "outputs": [],
            "source": text,
        }
        for i, text in enumerate(["\n".join(lines), *after])
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    book = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return {"text": json.dumps(book, indent=1) + "\n"}


def _lines(options: Namespace) -> list[str]:
    """The command's options as calls of the package."""
    from fts import cli

    samples, columns = _latest["samples"], cli.read_columns(options.columns)
    given = {}
    if samples is not None and (options.axis or isinstance(samples, list)):
        d = next(iter(_record(samples).values())).domain
        given["domain"] = f"fts.Domain({d.low!r}, {d.high!r}, {d.t0!r}, {d.t1!r}, {d.periodic!r})"
    if columns and not isinstance(samples, list):
        given["columns"] = repr(columns)
    if options.decimal != ".":
        given["decimal"] = repr(options.decimal)
    if options.missing:
        given["missing"] = repr(options.missing)

    def read(**more: str) -> str:
        arguments = (f"{name}={value}" for name, value in (given | more).items())
        return f"fts.read_samples({', '.join([repr(options.samples), *arguments])})"

    if isinstance(samples, list):
        assert columns is None or isinstance(columns, dict)
        named = columns or {}
        axes = {role: name for role, name in named.items() if role in "xyzt"}
        lines = ["samples = {"]
        for name in _record(samples):
            lines.append(f"    {name!r}: {read(columns=repr({**axes, 'u': named.get(name, name)}))},")
        lines.append("}")
    else:
        lines = [f"samples = {read()}"]
    library = cli.read_library(options)
    terms = [] if library is None else [repr(library)]
    settings = [f"inputs={options.inputs!r}"] if options.inputs else []
    settings += [f"target={options.target!r}"] if options.target else []
    settings += [] if options.recipe == "auto" else [f"recipe={options.recipe!r}"]
    return [
        "import fts",
        "",
        *lines,
        f"result = fts.discover({', '.join(['samples', *terms, *settings])})",
        "print(result)",
    ]


# Cells of a chapter ------------------------------------------------------------------------------------

_names: dict[str, Any] = {"__name__": "__main__", "__builtins__": __builtins__}


def _run(code: str) -> dict[str, Any]:
    """What a cell prints and shows, one after the other, and its error if it ends in one."""
    from pyodide.code import eval_code

    shown: list[dict[str, str]] = []
    _say(json.dumps({"stage": "run", "steps": 0, "fraction": None}))
    with _printed(shown), warnings.catch_warnings():
        warnings.simplefilter("default")
        try:
            value = eval_code(code, _names)
            if value is not None:
                shown.append(_shown(value))
        except BaseException as error:  # whatever a reader's code raises is theirs to see
            shown.append({"error": _explained(error)})
    return {"shown": shown + _figures()}


@contextlib.contextmanager
def _printed(shown: list[dict[str, str]]) -> Iterator[None]:
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
        yield
    if text := stream.getvalue():
        shown.insert(0, {"text": text})


def _shown(value: Any) -> dict[str, str]:
    return {"text": repr(value)}


def _explained(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f"{error.name} is not in this page: run this chapter in a notebook at home (make lab)."
    lines = traceback.format_exception_only(error)
    frame = [entry for entry in traceback.extract_tb(error.__traceback__) if entry.filename == "<exec>"]
    return (f"line {frame[-1].lineno}: " if frame else "") + "".join(lines).strip()


def _figures() -> list[dict[str, str]]:
    """The figures that a cell drew."""
    if not isinstance(plots := sys.modules.get("matplotlib.pyplot"), types.ModuleType):
        return []
    shown = []
    for number in plots.get_fignums():
        stream = io.BytesIO()
        plots.figure(number).savefig(stream, format="png", dpi=120, bbox_inches="tight")
        shown.append({"png": base64.b64encode(stream.getvalue()).decode()})
    plots.close("all")
    return shown


_TASKS: dict[str, Callable[..., dict[str, Any]]] = {
    "look": _look,
    "discover": _discover,
    "forward": _forward,
    "report": _report,
    "notebook": _notebook,
    "run": _run,
}
