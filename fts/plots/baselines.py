"""Choices and fields of the competing methods -> the tables of their chapter."""

from collections.abc import Mapping
from typing import Any

from fts.params import SHORT_NAMES
from fts.plots.style import Table, table
from fts.studies.published import CHOSEN

# What the methods call the stages of their training.
_STAGES = (
    *("steps", "max_iterations", "adam_steps", "lbfgs_iterations", "cycles", "cycle_steps"),
    *("burn_in", "sparsification"),
)


def choices(record: Mapping[str, Mapping[str, Any]]) -> Table:
    """Which threshold each method got per problem, how often it recovers there, and what the paper took."""
    lines = []
    for method, problems in record.items():
        for name, choice in problems.items():
            winner = choice["winner"]
            exact = next(one["exact"] for one in choice["candidates"] if _same(one, winner))
            runs = len(choice["seeds"]) * len(choice["protocols"])
            label = f"{winner['threshold']:g}" + (f", {winner['patches']}" if winner["patches"] else "")
            theirs = f"{CHOSEN[method][name]:g}" if method in CHOSEN else "–"
            tried = str(len(choice["candidates"]))
            lines.append((method, SHORT_NAMES[name], tried, label, f"{exact}/{runs}", theirs))
    header = ["method", "problem", "candidates", "chosen", "exact there", "the paper's"]
    return table(header, lines)


def budgets(settings: Mapping[str, Mapping[str, Any]]) -> Table:
    """Network and longest training of each method that trains, from its settings by name."""
    lines = []
    for method, values in settings.items():
        stages = [f"{name.replace('_', ' ')} {values[name]:,}" for name in _STAGES if name in values]
        lines.append((method, f"{values['depth']} × {values['width']}", "; ".join(stages)))
    return table(["method", "hidden layers × units", "at most"], lines)


def _same(one: Mapping[str, Any], winner: Mapping[str, Any]) -> bool:
    return all(one[name] == value for name, value in winner.items())
