"""The command `fts`: discover an equation in a file of samples, or list the benchmarks."""

import argparse
import re
import sys
from dataclasses import replace

from fts.data.problems import names, problem
from fts.domain import Domain


def main(arguments: list[str] | None = None) -> int:
    """Run one command; 0 when an equation was identified, 1 when it was not, 2 for bad input."""
    parser = argparse.ArgumentParser(prog="fts", description="The equation behind sparse measurements.")
    commands = parser.add_subparsers(dest="command", required=True)
    find = commands.add_parser(
        "discover", help="find the equation behind a .csv, .npz or .fts file of samples"
    )
    find.add_argument("samples", help="columns x, [y, [z,]] t, u")
    find.add_argument("--library", nargs="+", metavar="TERM", help="candidate terms, e.g. u 'u*u_x' u_xx")
    find.add_argument(
        "--axis",
        action="append",
        default=[],
        metavar="x=LOW:HIGH[:periodic]",
        help="extent of an axis (x, y, z or t) where it is more than the samples span, or closes on itself",
    )
    find.add_argument("--recipe", default="auto", choices=["auto", "kernel", "projected", "paper"])
    find.add_argument("--quiet", action="store_true", help="no progress bars")
    commands.add_parser("problems", help="list the benchmark problems")
    options = parser.parse_args(arguments)
    try:
        return _problems() if options.command == "problems" else _discover(options)
    except ValueError as error:
        print(f"fts: {error}", file=sys.stderr)
        return 2


def _problems() -> int:
    for name in names():
        print(f"{name:10} {problem(name).title:26} {problem(name).equation}")
    return 0


def _discover(options: argparse.Namespace) -> int:
    # Imported here: listing problems or asking for help should not wait for the solvers.
    from fts.discovery import discover
    from fts.readers import read_samples

    observations = read_samples(options.samples)
    if options.axis:
        domain = _with_axes(observations.domain, options.axis)
        observations = replace(observations, domain=domain)
    progress = not options.quiet
    result = discover(observations, options.library, recipe=options.recipe, progress=progress)
    print(result)
    return 0 if result.identified else 1


def _with_axes(domain: Domain, texts: list[str]) -> Domain:
    low, high, periodic = [*domain.low, domain.t0], [*domain.high, domain.t1], [*domain.periodic, False]
    letters = [*"xyz"[: domain.dimension], "t"]
    for text in texts:
        match = re.fullmatch(r"([xyzt])=([^:]+):([^:]+)(:periodic)?", text)
        if not match or match[1] not in letters or (match[1] == "t" and match[4]):
            raise ValueError(
                f"--axis {text!r}: write x=LOW:HIGH or x=LOW:HIGH:periodic, for {', '.join(letters)}"
            )
        place = letters.index(match[1])
        low[place], high[place], periodic[place] = float(match[2]), float(match[3]), bool(match[4])
    return Domain(tuple(low[:-1]), tuple(high[:-1]), low[-1], high[-1], tuple(periodic[:-1]))


if __name__ == "__main__":
    sys.exit(main())
