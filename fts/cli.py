"""The command `fts`: discover an equation in a file of samples, or list the benchmarks.

It ends with 0 when an equation was identified, 1 when it was not, 2 for bad input or an output that cannot be
written, 3 for a fault of its own.
"""

import argparse
import json
import os
import re
import sys
import traceback
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from fts.domain import Domain
from fts.params.paper import LIBRARIES
from fts.problems.problems import names, problem

if TYPE_CHECKING:
    from fts.discovery.discover import Discovery

IDENTIFIED, NOT_IDENTIFIED, BAD_INPUT, FAULT, INTERRUPTED = 0, 1, 2, 3, 130
_CODES = "exit code: 0 identified, 1 not identified, 2 bad input, 3 a fault of fts itself"


class _Parser(argparse.ArgumentParser):
    """argparse, with its errors in one line like all others."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message}; {self.prog} --help lists what can be given")


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code, as above."""
    try:
        options = _parser().parse_args(arguments)
        code = _problems() if options.command == "problems" else _discover(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # What is still buffered must not be tried again when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _refuse("the answer's reader went away: write it to a file with --output FILE")
    except (ValueError, OSError) as error:
        return _refuse(str(error))
    except MemoryError:
        return _refuse("the samples do not fit into memory: thin them out")
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception:  # the code 1 is a verdict, which a fault must not give
        traceback.print_exc()
        return FAULT


def _refuse(message: str) -> int:
    line = " ".join(message.split())
    print(f"fts: {line if len(line) <= 600 else line[:300] + ' ... ' + line[-295:]}", file=sys.stderr)
    return BAD_INPUT


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="fts", description="The equation behind sparse measurements.", epilog=_CODES)
    parser.add_argument("--version", action="version", version=f"fts {_version()}")
    commands = parser.add_subparsers(dest="command", required=True)
    find = commands.add_parser("discover", help="find the equation behind a file of samples", epilog=_CODES)
    add = find.add_argument
    add("samples", help="columns x, [y, [z,]] t, u: .csv .tsv .txt .npz .mat .nc .parquet .fts")
    add("--library", nargs="+", metavar="TERM", help="candidate terms, e.g. u 'u*u_x' u_xx, or a name: ks")
    add(
        "--axis",
        action="append",
        default=[],
        metavar="x=LOW:HIGH[:periodic]",
        help="extent of an axis (x, y, z or t) where it is more than the samples span, or closes on itself",
    )
    add("--columns", nargs="+", metavar="x=HEADING", help="which column is which; without '=', all in order")
    add("--decimal", default=".", help="decimal sign of a text file; '.' unless given")
    add("--missing", nargs="+", default=[], metavar="TEXT", help="beside blank cells, what marks no value")
    add("--recipe", default="auto", choices=["auto", "kernel", "travelling", "projected", "paper"])
    add("--json", action="store_true", help="the answer as one JSON object")
    add("--output", type=Path, metavar="FILE", help="write the answer there instead of printing it")
    add("--report", type=Path, metavar="FILE.html", help="write a page with everything behind the answer")
    add("--quiet", action="store_true", help="no progress bars")
    commands.add_parser("problems", help="list the benchmark problems")
    return parser


def _version() -> str:
    try:
        return metadata.version("fts")
    except metadata.PackageNotFoundError:
        return "(not installed)"


def _problems() -> int:
    for name in names():
        print(f"{name:10} {problem(name).title:26} {problem(name).equation}")
    return 0


def _discover(options: argparse.Namespace) -> int:
    # Imported here: listing problems or asking for help should not wait for the solvers.
    from fts import containers, validation
    from fts.discovery.discover import discover, refusal
    from fts.io.readers import read_samples
    from fts.observations import InsufficientData

    for path in (options.output, options.report):
        _refuse_unwritable(path)
    if options.report:
        with validation.require_extra("plots", "--report draws and"):
            from fts.discovery import report
    library = options.library
    if library and len(library) == 1 and library[0] in LIBRARIES:
        (library,) = library
    try:
        observations = read_samples(
            options.samples,
            columns=_columns(options.columns),
            decimal=options.decimal,
            missing=options.missing,
        )
    except InsufficientData as error:
        result = refusal(error)
    else:
        if options.axis:
            observations = replace(observations, domain=_with_axes(observations.domain, options.axis))
        result = discover(observations, library, recipe=options.recipe, progress=not options.quiet)
    text = json.dumps(_as_dict(result), indent=2) if options.json else str(result)
    if options.report and result.field is not None:
        from fts.discovery import report

        containers.write_atomic(options.report, report.page(result).encode())
    if options.output:
        containers.write_atomic(options.output, (text + "\n").encode())
    else:
        print(text)
    return IDENTIFIED if result.identified else NOT_IDENTIFIED


def _as_dict(result: "Discovery") -> dict[str, Any]:
    """The answer in JSON form: numbers in full, nothing that `str` says left out."""
    answer = {"identified": result.identified, "doubts": list(result.doubts), "version": _version()}
    answer |= result.as_dict() | {"equation": result.equation.text(digits=None)}
    selection = result.selection
    if selection is None or result.field is None or result.observations is None:
        return answer
    return answer | {
        "coefficients": selection.coefficients,
        "deviations": selection.deviations,
        "recurrence": selection.recurrence,
        "library": list(selection.library.names),
        "samples": len(result.observations),
        "source": result.observations.source,
        "domain": result.observations.domain.as_dict(),
        "recipe": result.field.made.recipe,
    }


def _refuse_unwritable(path: Path | None) -> None:
    """Before the fit: an answer that cannot be written should not be waited for."""
    if path is None:
        return
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise ValueError(f"{path} cannot be written: name a file in a folder that is there and yours")


def _columns(texts: list[str] | None) -> dict[str, str] | list[str] | None:
    if texts is None:
        return None
    pairs = [text.partition("=") for text in texts]
    if all(sign for _, sign, _ in pairs):
        if len({role for role, _, _ in pairs}) < len(pairs):
            raise ValueError(f"--columns {' '.join(texts)}: name each of x, y, z, t and u once")
        return {role: heading for role, _, heading in pairs}
    if any(sign for _, sign, _ in pairs):
        raise ValueError(f"--columns {' '.join(texts)}: write x=HEADING for each, or all names in order")
    return texts


def _with_axes(domain: Domain, texts: list[str]) -> Domain:
    low, high, periodic = [*domain.low, domain.t0], [*domain.high, domain.t1], [*domain.periodic, False]
    letters = [*"xyz"[: domain.dimension], "t"]
    for text in texts:
        match = re.fullmatch(r"([xyzt])=([^:]+):([^:]+)(:periodic)?", text)
        try:
            ends = (float(match[2]), float(match[3])) if match else None
        except ValueError:
            ends = None
        if not match or ends is None or match[1] not in letters or (match[1] == "t" and match[4]):
            raise ValueError(
                f"--axis {text!r}: write x=LOW:HIGH or x=LOW:HIGH:periodic, for {', '.join(letters)}"
            )
        axis = letters.index(match[1])
        (low[axis], high[axis]), periodic[axis] = ends, bool(match[4])
    return Domain(tuple(low[:-1]), tuple(high[:-1]), low[-1], high[-1], tuple(periodic[:-1]))


if __name__ == "__main__":
    sys.exit(main())
