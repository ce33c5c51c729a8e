"""Records and measurements of selection by two fields -> figures and tables of chapter "cross".

Blue is two fields, orange is one, in every figure.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from fts.lab.studies import published
from fts.lab.studies.attenuation import Attenuation
from fts.lab.studies.records import CellKey, RunRecord, Summary
from fts.params.paper import SHORT_NAMES
from fts.plotting import INK, PALETTE, WIDTH, Table, table
from fts.problems.problems import problem
from fts.selection.instrumental import TWO_FIELDS

_TWO, _ONE = PALETTE[0], PALETTE[1]
_MARKERS = "osD^"


def slopes(found: Attenuation) -> Figure:
    """Coefficients over their true values against the noise, from one field and from two."""
    figure, ax = plt.subplots(figsize=(WIDTH, 0.6 * WIDTH))
    for values, color, label in ((found.one, _ONE, "one field"), (found.two, _TWO, "two fields")):
        for j, term in enumerate(found.terms):
            ax.plot(found.noise, values[:, j], color=color, marker=_MARKERS[j], label=f"{label}, {term}")
    ax.axhline(1.0, color=INK, linestyle=":")
    ax.set(xlabel="noise, in deviations of the field", ylabel="coefficient / true")
    ax.legend(fontsize=9)
    return figure


def risks(found: Attenuation) -> Figure:
    """Unexplained share of u_t against the noise, for the right and a wrong equation."""
    figure, panels = plt.subplots(2, 1, figsize=(WIDTH, 0.9 * WIDTH), sharex=True)
    for ax, color, first, label in zip(
        panels, (_ONE, _TWO), (2, 0), ("one field", "two fields"), strict=True
    ):
        for values, marker, name in (
            (found.wrong, "s", "wrong equation"),
            (found.right, "o", "right equation"),
        ):
            bars = {"yerr": values[:, first + 1], "capsize": 3, "marker": marker, "color": color}
            ax.errorbar(
                found.noise, values[:, first], linestyle="-" if marker == "o" else "--", label=name, **bars
            )
        ax.axhline(0.0, color=INK, linestyle=":")
        ax.set(ylabel="unexplained share", title=label)
        ax.legend(fontsize=9)
    panels[-1].set_xlabel("noise, in deviations of the field")
    return figure


def recoveries(found: Mapping[CellKey, Summary], single: Mapping[CellKey, Summary]) -> Table:
    """Exact recoveries of the heavy-noise table: one field, two fields, and the peer."""
    peer = published.weak_ident().cells
    rows = []
    for place, cell in _heavy(found):
        _, name, protocol, noise = place
        other = peer[f"{noise:.0%}", name, protocol]
        one = single["svws", name, protocol, noise]
        rows.append(
            (
                problem(name).title,
                f"{noise:.0%}",
                f"{one.exact}/{one.runs}",
                f"{cell.exact}/{cell.runs}",
                f"{other.exact}/5",
            )
        )
    return table(("problem", "noise", "one field (SVWS)", "two fields", "WeakIdent, measured before"), rows)


def errors(found: Mapping[CellKey, Summary], single: Mapping[CellKey, Summary]) -> Table:
    """Median coefficient errors of the same cells."""
    peer = published.weak_ident().cells
    rows = []
    for place, cell in _heavy(found):
        _, name, protocol, noise = place
        one, other = single["svws", name, protocol, noise], peer[f"{noise:.0%}", name, protocol]
        rows.append(
            (problem(name).title, f"{noise:.0%}", f"{one.e_xi:.2g}", f"{cell.e_xi:.2g}", f"{other.e_xi:.2g}")
        )
    return table(("problem", "noise", "one field (SVWS)", "two fields", "WeakIdent, measured before"), rows)


def sparse(
    found: Mapping[CellKey, Summary], single: Mapping[CellKey, Summary], runs: Iterable[RunRecord]
) -> Table:
    """Recoveries with 43 terms from a fifth of the samples, and how many runs say that it is too little."""
    doubts = Counter((run.problem, run.protocol, run.noise) for run in runs if "doubt" in run.extra["notes"])
    rows = []
    for place, cell in sorted(found.items(), key=lambda item: (item[0][1], item[0][2], item[0][3])):
        row, name, protocol, noise = place
        if row == "43 terms" and protocol != "S100":
            one = single["svws", name, protocol, noise]
            title = SHORT_NAMES.get(name, problem(name).title)
            rows.append(
                (
                    f"{title} {protocol}",
                    f"{noise:.0%}",
                    f"{one.exact}/{one.runs}",
                    f"{cell.exact}/{cell.runs}",
                    f"{doubts[name, protocol, noise]}/{cell.runs}",
                )
            )
    return table(("samples", "noise", "one field (SVWS)", "two fields", "doubted"), rows)


def kind(run: RunRecord) -> str:
    """The part of the study that a run belongs to."""
    if run.row != "43 terms":
        return "the paper's terms, 10 to 50 %"
    if run.protocol == "S100":
        return "43 terms, full grids, 20 to 100 %"
    return "43 terms, a fifth of the samples, " + ("10 and 20 %" if run.noise else "clean")


def fresh(runs: Iterable[RunRecord], unseen: Iterable[RunRecord]) -> Table:
    """Recoveries on the test seeds, and on draws that were first seen when the rule was finished."""
    tested, blind, made, alone = Counter(), Counter(), Counter(), Counter()
    for run in runs:
        tested[kind(run)] += run.score["exact"]
    for run in unseen:
        made[kind(run)] += 1
        blind[kind(run)] += run.score["exact"]
        alone[kind(run)] += run.extra["selectors"]["svws"]["exact"]
    rows = [(name, tested[name], blind[name], alone[name], count) for name, count in made.items()]
    return table(("terms, samples, noise", "test seeds", "fresh draws", "one field, fresh draws", "of"), rows)


def settled(record: Mapping[str, Any]) -> Table:
    """What every setting tried recovered on the development problems; the rules themselves first."""
    total = sum(record["cells"].values())
    rows = [
        (
            one["setting"],
            f"{one['value']}" + (" *" if _taken(one) else ""),
            f"{sum(one['exact'].values())}/{total}",
            f"{one['e_xi']:.2g}",
        )
        for one in record["outcomes"]
    ]
    return table(("setting", "value (* taken)", "exact", "mean error"), rows)


def groups(record: Mapping[str, Any]) -> Table:
    """Recoveries of both rules on every group of development cells."""
    rules = {one["value"]: one["exact"] for one in record["outcomes"] if one["setting"] == "rule"}
    rows = [
        (name, *(f"{rules[rule][name]}/{count}" for rule in ("one field", "two fields")))
        for name, count in record["cells"].items()
    ]
    return table(("cells", "one field (SVWS)", "two fields"), rows)


def _taken(one: Mapping[str, Any]) -> bool:
    return one["setting"] != "rule" and one["value"] == getattr(TWO_FIELDS, one["setting"])


def small(found: Mapping[CellKey, Summary], before: Mapping[CellKey, Summary]) -> Table:
    """Recoveries and median errors with the paper's libraries, beside those of one kernel field."""
    rows = []
    for place, cell in sorted(found.items(), key=lambda item: (item[0][1], item[0][2], item[0][3])):
        row, name, protocol, noise = place
        if row == "paper's terms":
            one = before["kernel", name, protocol, noise]
            rows.append(
                (
                    f"{SHORT_NAMES[name]} {protocol}",
                    f"{noise:.0%}",
                    f"{one.exact}/{one.runs}, {one.e_xi:.2g}",
                    f"{cell.exact}/{cell.runs}, {cell.e_xi:.2g}",
                )
            )
    return table(("samples", "noise", "one field (SVWS)", "two fields"), rows)


def behind(found: Mapping[CellKey, Summary]) -> list[str]:
    """Cells of the heavy-noise table that recover less often than the peer."""
    peer = published.weak_ident().cells
    return [
        f"{problem(place[1]).title} at {place[3]:.0%}: {cell.exact} of {cell.runs}, the peer {other.exact}"
        for place, cell in _heavy(found)
        if cell.exact < ((other := peer[f"{place[3]:.0%}", place[1], place[2]]).exact or 0)
    ]


def halved(found: Mapping[CellKey, Summary]) -> int:
    """Cells whose median error is at most half of the peer's."""
    peer = published.weak_ident().cells
    pairs = [(cell.e_xi, peer[f"{place[3]:.0%}", place[1], place[2]].e_xi) for place, cell in _heavy(found)]
    return int(np.sum([mine <= theirs / 2 for mine, theirs in pairs if theirs is not None]))


def _heavy(found: Mapping[CellKey, Summary]) -> Iterable[tuple[CellKey, Summary]]:
    return [(place, cell) for place, cell in found.items() if place[0] == "43 terms" and place[2] == "S100"]
