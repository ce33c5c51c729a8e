"""The command `fts`: discover an equation in a file of samples, or list the benchmarks.

It ends with 0 when an equation was identified, 1 when it was not, 2 for bad input or an output that cannot be
written, 3 for a fault of its own, 130 when it was interrupted. What takes long to import is imported in
functions, so that an interruption meanwhile is answered too.
"""

import argparse
import contextlib
import errno
import io
import json
import os
import re
import sys
import traceback
import unicodedata
import warnings
from dataclasses import replace
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fts.discovery.discover import Discovery
    from fts.discovery.systems import SystemDiscovery
    from fts.domain import Domain
    from fts.io.streams import SampleStream
    from fts.observations import Observations

IDENTIFIED, NOT_IDENTIFIED, BAD_INPUT, FAULT, INTERRUPTED = 0, 1, 2, 3, 130
_CODES = "exit code: 0 identified, 1 not identified, 2 bad input, 3 a fault of fts itself, 130 interrupted"

_SAMPLES = (
    "columns x, [y, [z,]] t, u: .csv .tsv .txt .dat, also packed as .gz, .npz .mat .nc .parquet .fts; "
    "times in text may be ISO dates, read as seconds since the first; .npy .arrow .zarr, a folder of Parquet "
    "or Arrow files, and what is too large for memory are read in chunks"
)
_AXIS = "extent of an axis (x, y, z or t) where it is more than the samples span, or closes on itself"
_TO_A_FILE = "write it to a file with --output FILE"


class _Parser(argparse.ArgumentParser):
    """argparse, with its errors in one line like all others."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message}; {self.prog} --help lists what can be given")

    def _print_message(self, message: str, file: Any = None) -> None:
        _print(message.removesuffix("\n"))  # argparse would hide that it failed


class _Once(argparse.Action):
    """Keeps an option's value, and refuses a second one, of which argparse would take the last."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: str | None = None) -> None:
        given = vars(namespace).setdefault("given", set())
        if self.dest in given:
            parser.error(f"{option} is given twice: give it once")
        given.add(self.dest)
        setattr(namespace, self.dest, values)


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code, as above."""
    try:
        _open_missing_streams()
        options = parse(arguments)
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = _show_warning
            return _problems() if options.command == "problems" else _discover(options)
    except (ValueError, OSError) as error:
        return _refuse(str(error))
    except MemoryError:
        return _refuse("the samples do not fit into memory: thin them out")
    except KeyboardInterrupt:
        print("fts: interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception:  # the code 1 is a verdict, which a fault must not give
        print(_printable(traceback.format_exc()), end="", file=sys.stderr)
        return FAULT


def _open_missing_streams() -> None:
    """Fill closed descriptors: the next file opened would take their place, and get what is printed."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_WRONLY if descriptor == 2 else os.O_RDONLY)
    # Into the former nothing can be written, which is then said like of a full disk.
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115
    # What an encoding lacks is spelled out.
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors in ("strict", "surrogateescape"):
        sys.stdout.reconfigure(errors="backslashreplace")


def _print(text: str) -> None:
    try:
        print(text, flush=True)
    except OSError as error:
        # What is still buffered must not be tried again when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise ValueError(f"the answer's reader went away: {_TO_A_FILE}") from None
        raise ValueError(f"the answer cannot be printed ({error.strerror}): {_TO_A_FILE}") from None


def _show_warning(message: Warning | str, *_: Any) -> None:
    print(f"fts: warning: {_printable(' '.join(str(message).split()))}", file=sys.stderr)


def _refuse(message: str) -> int:
    print(f"fts: {in_one_line(message)}", file=sys.stderr)
    return BAD_INPUT


def in_one_line(message: str) -> str:
    """An error's or a warning's text as the command prints it."""
    line = _printable(" ".join(message.split()))
    return line if len(line) <= 600 else line[:300] + " ... " + line[-295:]


def _printable(text: str) -> str:
    """The text with control characters, which names of files and columns may hold, spelled out."""
    steering = {s for s in text if s != "\n" and unicodedata.category(s) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
    return "".join(repr(sign)[1:-1] if sign in steering else sign for sign in text)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The options of a command line; ValueError where it is none."""
    return _parser().parse_args(arguments)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="fts", description="The equation behind sparse measurements.", epilog=_CODES)
    parser.add_argument("--version", action="version", version=f"fts {_version()}")
    commands = parser.add_subparsers(dest="command", required=True)
    find = commands.add_parser("discover", help="find the equation behind a file of samples", epilog=_CODES)
    find.register("action", None, _Once)
    add = find.add_argument
    add("samples", help=_SAMPLES)
    add("more", nargs="*", help="files of further experiments that obey the same equations")
    add("--library", nargs="+", metavar="TERM", help="candidate terms, e.g. u 'u*u_x' u_xx, or a name: ks")
    add("--axis", action="append", default=[], metavar="x=LOW:HIGH[:periodic]", help=_AXIS)
    names = "which column is which, components as v=HEADING too; without '=', all in order"
    add("--columns", nargs="+", metavar="x=HEADING", help=names)
    add("--inputs", nargs="+", default=[], metavar="NAME", help="measured, but with no equation of their own")
    add("--target", metavar="u_tt", help="the left-hand side; the first derivative in time unless given")
    add("--decimal", default=".", help="decimal sign of a text file; '.' unless given")
    missing = "beside blank cells, what marks no value: -999"
    add("--missing", nargs="+", default=[], metavar="TEXT", help=missing)
    add("--recipe", default="auto", choices=["auto", "kernel", "travelling", "projected", "paper"])
    add("--json", action="store_true", help="the answer as one JSON object")
    add("--output", metavar="FILE", help="write the answer there, to a new file, instead of printing it")
    add("--report", metavar="FILE.html", help="write a page with everything behind the answer, to a new file")
    add("--force", action="store_true", help="let --output and --report replace files (never the samples)")
    scheduler = "a Dask scheduler, as tcp://HOST:PORT, whose workers read what is read in chunks"
    add("--scheduler", metavar="ADDRESS", help=scheduler)
    add("--quiet", action="store_true", help="no progress bars")
    commands.add_parser("problems", help="list the benchmark problems")
    return parser


def _version() -> str:
    try:
        return metadata.version("fts")
    except metadata.PackageNotFoundError:
        return "(not installed)"


def _problems() -> int:
    from fts.problems.problems import names, problem

    for name in names():
        _print(f"{name:10} {problem(name).title:26} {problem(name).equation}")
    return 0


def _discover(options: argparse.Namespace) -> int:
    # Imported here: listing problems or asking for help should not wait for the solvers.
    from fts import validation
    from fts.discovery.discover import refusal
    from fts.discovery.systems import discover
    from fts.observations import InsufficientData

    _check_outputs(options)
    if options.report is not None:
        with validation.require_extra("plots", "--report draws and"):
            from fts.discovery import report
    try:
        samples = read_observations(options)
    except InsufficientData as error:
        result = refusal(error)
    else:
        equations = {"library": read_library(options), "inputs": options.inputs, "target": options.target}
        settings = {"recipe": options.recipe, "progress": not options.quiet}
        with _client(options.scheduler) as client:
            result = discover(samples, **equations, client=client, **settings)
    text = answer_json(result) if options.json else _printable(str(result))
    _write_answer(options.output, text)
    if options.report is not None:
        from fts.discovery import report

        _write(options.report, report.page(result))
    return IDENTIFIED if result.identified else NOT_IDENTIFIED


@contextlib.contextmanager
def _client(address: str | None) -> "Iterator[Any]":
    """A Dask client of the scheduler at this address, or none."""
    if address is None:
        yield None
        return
    from fts import validation

    with validation.require_extra("studies", "--scheduler"):
        from distributed import Client
    try:
        client = Client(address, timeout=10)
    except (OSError, ValueError) as error:
        remedy = "start one with `dask scheduler`, or leave --scheduler out"
        raise ValueError(
            f"no Dask scheduler answers at {address} ({type(error).__name__}): {remedy}"
        ) from None
    with client:
        yield client


def read_observations(
    options: argparse.Namespace,
) -> "Observations | SampleStream | list[dict[str, Observations]]":
    """The samples of a command line, on the axes it gives; of a system by component, for each experiment.

    What is large is read later, in chunks.
    """
    from fts.io.readers import read_components, read_samples
    from fts.io.sources import is_large, stream_samples

    columns = read_columns(options.columns)
    large = [path for path in (options.samples, *options.more) if is_large(path)]
    if large and _is_system(options, columns):
        raise ValueError(
            f"{large[0]} is read in chunks, which gives one equation in u, without inputs or further "
            "experiments: give one file of fewer samples each"
        )
    if large:
        for option, given in (("--missing", options.missing), ("--decimal", options.decimal != ".")):
            if given:
                raise ValueError(
                    f"{option} does not hold for {options.samples}, read in chunks: change the file instead"
                )
        stream = stream_samples(options.samples, columns=columns)
        axes = partial(_with_axes, texts=options.axis) if options.axis else None
        return replace(stream, domain=axes)
    if options.scheduler is not None:
        raise ValueError(f"{options.samples} is not read in chunks: leave --scheduler out")
    reading = {"decimal": options.decimal, "missing": options.missing}
    if not _is_system(options, columns):
        return _on_axes(read_samples(options.samples, columns=columns, **reading), options.axis)
    if isinstance(columns, list):
        raise ValueError(
            f"--columns {' '.join(columns)}: several components are named, as u=HEADING v=HEADING"
        )
    return [
        {name: _on_axes(each, options.axis) for name, each in record.items()}
        for path in (options.samples, *options.more)
        for record in (read_components(path, columns or {}, options.inputs, **reading),)
    ]


def _is_system(options: argparse.Namespace, columns: dict[str, str] | list[str] | None) -> bool:
    named = columns.keys() - {*"xyztu"} if isinstance(columns, dict) else ()
    return bool(options.more or options.inputs or named)


def _on_axes(observations: "Observations", axes: list[str]) -> "Observations":
    return replace(observations, domain=_with_axes(observations.domain, axes)) if axes else observations


def read_library(options: argparse.Namespace) -> str | list[str] | None:
    """The candidate terms of a command line: a library's name, a list, or None for the general ones."""
    from fts.params.paper import LIBRARIES

    terms = options.library
    return terms[0] if terms and len(terms) == 1 and terms[0] in LIBRARIES else terms


def answer_json(result: "Discovery | SystemDiscovery") -> str:
    """The answer as --json prints it."""
    return json.dumps(_as_dict(result), indent=2)


def _as_dict(result: "Discovery | SystemDiscovery") -> dict[str, Any]:
    """The answer in JSON form: numbers in full, nothing that `str` says left out."""
    from fts.discovery.systems import SystemDiscovery

    if isinstance(result, SystemDiscovery):
        parts = {name: _as_dict(each) for name, each in result.components.items()}
        answer = {"identified": result.identified, "version": _version()}
        return answer | result.as_dict() | {"components": parts}
    answer = {"identified": result.identified, "doubts": list(result.doubts), "version": _version()}
    answer |= result.as_dict() | {"equation": result.equation.text(digits=None)}
    selection = result.selection
    if selection is None or result.field is None or result.observations is None:
        return answer
    return answer | {
        "coefficients": selection.coefficients,
        "deviations": selection.deviations,
        "recurrence": {} if selection.trace is None else selection.recurrence,
        "library": list(selection.library.names),
        "samples": len(result.observations) if result.fit is None else result.fit.count,
        "source": result.observations.source,
        "domain": result.observations.domain.as_dict(),
        "recipe": result.field.made.recipe,
    }


def _check_outputs(options: argparse.Namespace) -> None:
    """Before the fit: an answer that cannot be written, or only over data, should not be waited for."""
    if options.output is None and sys.__stdout__ is None:
        raise ValueError(f"the answer cannot be printed (there is no output): {_TO_A_FILE}")
    outputs = {"--output": options.output, "--report": options.report}
    taken = [("a file of samples", name) for name in (options.samples, *options.more)]
    for option, name in outputs.items():
        if name is None:
            continue
        for what, other in taken:
            if Path(os.path.realpath(other)) in Path(os.path.realpath(name)).parents:
                raise ValueError(f"{option} {name} is in {other}, a folder of samples: name a file elsewhere")
            if _same_file(name, other):
                raise ValueError(f"{option} {name} is {what}, which it would destroy: name another file")
        try:
            _check_output(name, options.force)
        except OSError as error:
            fault, remedy = error.strerror or error, "name a file in a folder that is there and yours"
            raise ValueError(f"{option} {name} cannot be written ({fault}): {remedy}") from None
        taken.append((f"the file of {option}", name))


def _check_output(name: str, force: bool) -> None:
    from fts import containers

    path = Path(os.path.realpath(name))
    if not name or name.endswith(os.sep) or path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    if os.path.lexists(path) and not path.is_file():
        raise OSError(errno.EINVAL, "it is no regular file")
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, "it is protected")
    containers.require_writable(path.parent)
    if path.exists() and not force:
        raise ValueError(f"{name} is there already: name another file, or replace it with --force")


def _same_file(name: str, other: str) -> bool:
    """Whether both are one file, by any spelling or link, or would be."""
    if os.path.realpath(name) == os.path.realpath(other):
        return True
    return os.path.exists(name) and os.path.exists(other) and os.path.samefile(name, other)


def _write_answer(name: str | None, text: str) -> None:
    if name is None:
        _print(text)
        return
    try:
        _write(name, text + "\n")
    except OSError:  # the disk is full by now, say
        _print(text)
        raise


def _write(name: str, text: str) -> None:
    from fts import containers

    containers.write_atomic(Path(name), text.encode(errors="backslashreplace"))


def read_columns(texts: list[str] | None) -> dict[str, str] | list[str] | None:
    """What --columns says: a heading for each role, all names in order, or nothing."""
    if texts is None:
        return None
    pairs = dict(text.split("=", 1) for text in texts if "=" in text)
    named = sum("=" in text for text in texts)
    if 0 < named < len(texts):
        raise ValueError(f"--columns {' '.join(texts)}: write x=HEADING for each, or all names in order")
    if len(pairs) < named:
        raise ValueError(f"--columns {' '.join(texts)}: name each of x, y, z, t, u and others once")
    return pairs or texts


def _with_axes(domain: "Domain", texts: list[str]) -> "Domain":
    from fts.domain import Domain

    low, high, periodic = [*domain.low, domain.t0], [*domain.high, domain.t1], [*domain.periodic, False]
    letters, given = [*"xyz"[: domain.dimension], "t"], set()
    for text in texts:
        match = re.fullmatch(r"([xyzt])=([^:]+):([^:]+)(:periodic)?", text)
        try:
            ends = (float(match[2]), float(match[3])) if match else None
        except ValueError:
            ends = None
        if not match or ends is None or match[1] not in letters or (match[1] == "t" and match[4]):
            remedy = f"write x=LOW:HIGH or x=LOW:HIGH:periodic, for {', '.join(letters)}"
            raise ValueError(f"--axis {text!r}: {remedy}")
        if match[1] in given:
            raise ValueError(f"--axis {text!r}: {match[1]} is given twice: give each axis once")
        given.add(match[1])
        axis = letters.index(match[1])
        (low[axis], high[axis]), periodic[axis] = ends, bool(match[4])
    return Domain(tuple(low[:-1]), tuple(high[:-1]), low[-1], high[-1], tuple(periodic[:-1]))


if __name__ == "__main__":
    sys.exit(main())
