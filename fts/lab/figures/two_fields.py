"""Records and measurements of selection by two fields -> figures and tables of chapter "cross".

Blue is two fields, orange is one. What noise does to a regression on either is measured here as well.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from fts.equations.terms import Library, parse_term
from fts.kernel.separable import condition_grid
from fts.lab.studies import published
from fts.lab.studies.published import Cell
from fts.lab.studies.records import CellKey, Cells, RunRecord, Summary, count_of_five, grouped
from fts.params.paper import SHORT_NAMES
from fts.plotting import INK, PALETTE, WIDTH, Table, canvas, table
from fts.problems.problems import problem
from fts.problems.trajectories import observe, simulate
from fts.selection import instrumental
from fts.selection.instrumental import TWO_FIELDS, TwoFieldsParams
from fts.selection.moments import CrossMoments
from fts.svws.split_sample import measure
from fts.weak.geometry import automatic

_TWO, _ONE = PALETTE[0], PALETTE[1]
_MARKERS = "osD^"
_FIELDS = ("one field", "two fields")
_RULES = ("one field (SVWS)", "two fields")


@dataclass(frozen=True)
class Attenuation:
    """Coefficients over true ones, and unexplained shares of u_t, by noise level, one field and two."""

    noise: tuple[float, ...]
    terms: tuple[str, ...]  # of the true equation
    one_field: Float[np.ndarray, "n terms"]
    two_fields: Float[np.ndarray, "n terms"]
    right: Float[np.ndarray, "n 4"]  # share and standard error by two fields, then by one
    wrong: Float[np.ndarray, "n 4"]


def attenuation(
    name: str, wrong: Sequence[str], levels: Sequence[float], seed: int, params: TwoFieldsParams
) -> Attenuation:
    """A problem's true equation and a wrong one, fitted at every noise level to the same noise draw."""
    entry = problem(name)
    true = entry.equation.terms
    library = Library((*true, *(term for term in map(parse_term, wrong) if term not in true)))
    inside, other = tuple(range(len(true))), tuple(library.index(text) for text in wrong)
    slopes, risks = [], []
    for split in noise_levels(name, library, levels, seed, params).values():
        single = CrossMoments(library, split.within, split.within, split.norms)
        both = (single, split)
        fits = [each.physical(inside, instrumental.fit(each.cross, inside)) for each in both]
        slopes.append([fit[list(inside)] for fit in fits])
        shares = (
            (instrumental.unexplained(each, terms) for each in (split, single)) for terms in (inside, other)
        )
        risks.append([[*first, *second] for first, second in shares])
    table, shares = np.array(slopes) / np.asarray(entry.equation.coefficients), np.array(risks)
    names = tuple(f"${term.latex}$" for term in true)
    return Attenuation(tuple(levels), names, table[:, 0], table[:, 1], shares[:, 0], shares[:, 1])


def noise_levels(
    name: str, library: Library, levels: Sequence[float], seed: int, params: TwoFieldsParams
) -> dict[float, CrossMoments]:
    """Cross moments of a problem's full grid at every noise level, with the same noise draw."""
    trajectory, moments = simulate(name), {}
    for level in levels:
        observations = observe(trajectory, "S100", seed=seed, noise=level)
        posterior = condition_grid(observations, progress=False)
        phases = np.random.default_rng(params.svws.phase_seed).random((params.phases, 2))
        pairs = posterior.split(params.splits, params.smoothing, np.random.default_rng(params.split_seed))
        moments[level] = measure(pairs, library, automatic(posterior, library), phases)
    return moments


def slopes(measured: Attenuation) -> Figure:
    """Coefficients over their true values against the noise, from one field and from two."""
    figure, ax = canvas(0.6)
    for values, color, label in (
        (measured.one_field, _ONE, _FIELDS[0]),
        (measured.two_fields, _TWO, _FIELDS[1]),
    ):
        for j, term in enumerate(measured.terms):
            ax.plot(measured.noise, values[:, j], color=color, marker=_MARKERS[j], label=f"{label}, {term}")
    ax.axhline(1.0, color=INK, linestyle=":")
    ax.set(xlabel="noise, in deviations of the field", ylabel="coefficient / true")
    ax.legend(fontsize=9)
    return figure


def risks(measured: Attenuation) -> Figure:
    """Unexplained share of u_t against the noise, for the right and a wrong equation."""
    figure, panels = plt.subplots(2, 1, figsize=(WIDTH, 0.9 * WIDTH), sharex=True)
    equations = ((measured.wrong, "s--", "wrong equation"), (measured.right, "o-", "right equation"))
    for ax, color, first, label in zip(panels, (_ONE, _TWO), (2, 0), _FIELDS, strict=True):
        for values, style, name in equations:
            risk, deviation = values[:, first], values[:, first + 1]
            ax.errorbar(measured.noise, risk, deviation, fmt=style, capsize=3, color=color, label=name)
        ax.axhline(0.0, color=INK, linestyle=":")
        ax.set(ylabel="unexplained share", title=label)
        ax.legend(fontsize=9)
    panels[-1].set_xlabel("noise, in deviations of the field")
    return figure


def recoveries(cells: Cells, single: Cells) -> Table:
    """Exact recoveries of the heavy-noise table: one field, two fields, and the peer."""
    return _beside_peer(cells, single, lambda cell: count_of_five(cell.exact or 0, getattr(cell, "runs", 5)))


def errors(cells: Cells, single: Cells) -> Table:
    """Median coefficient errors of the same cells."""
    return _beside_peer(cells, single, lambda cell: f"{cell.e_xi:.2g}")


def _beside_peer(cells: Cells, single: Cells, text: Callable[[Summary | Cell], str]) -> Table:
    rows = []
    for key, cell, peer in _heavy(cells):
        texts = map(text, (single["svws", *key[1:]], cell, peer))
        rows.append((problem(key[1]).title, f"{key[3]:.0%}", *texts))
    return table(("problem", "noise", *_RULES, "WeakIdent, measured before"), rows)


def sparse_recoveries(cells: Cells, single: Cells, runs: Iterable[RunRecord]) -> Table:
    """Recoveries with 43 terms from a fifth of the samples, and how many runs say that it is too little."""
    doubts = Counter((run.problem, run.protocol, run.noise) for run in runs if "doubt" in run.extra["notes"])
    rows = []
    for (row, name, protocol, noise), cell in _sorted(cells):
        if row == "43 terms" and protocol != "S100":
            pooled, doubted = single["svws", name, protocol, noise], doubts[name, protocol, noise]
            texts = _exact(pooled), _exact(cell), count_of_five(doubted, cell.runs)
            rows.append((*_samples(name, protocol, noise), *texts))
    return table(("samples", "noise", *_RULES, "doubted"), rows)


def part_of_study(run: RunRecord) -> str:
    """The part of the study that a run belongs to."""
    if run.row != "43 terms":
        return "the paper's terms, 10 to 50 %"
    if run.protocol == "S100":
        return "43 terms, full grids, 20 to 100 %"
    return "43 terms, a fifth of the samples, " + ("10 and 20 %" if run.noise else "clean")


def fresh_draws(runs: Iterable[RunRecord], unseen: Iterable[RunRecord]) -> Table:
    """Recoveries on the test seeds, and on draws that were first seen when the rule was finished."""
    tested = Counter(part_of_study(run) for run in runs if run.score["exact"])
    rows = []
    for part, drawn in grouped((part_of_study(run), run) for run in unseen).items():
        alone = sum(run.extra["selectors"]["svws"]["exact"] for run in drawn)
        rows.append((part, tested[part], sum(run.score["exact"] for run in drawn), alone, len(drawn)))
    return table(("terms, samples, noise", "test seeds", "fresh draws", "one field, fresh draws", "of"), rows)


def tuning(record: Mapping[str, Any]) -> Table:
    """What every setting tried recovered on the development problems; the rules themselves first."""
    total = sum(record["cells"].values())
    rows = []
    for outcome in record["outcomes"]:
        setting, value, exact = outcome["setting"], outcome["value"], sum(outcome["exact"].values())
        text = f"{value} *" if value == getattr(TWO_FIELDS, setting, None) else f"{value}"
        rows.append((setting, text, str(exact), f"{outcome['e_xi']:.2g}"))
    return table(("setting", "value (* taken)", f"exact of {total}", "mean error"), rows)


def groups(record: Mapping[str, Any]) -> Table:
    """Recoveries of both rules on every group of development cells."""
    exact = {each["value"]: each["exact"] for each in record["outcomes"] if each["setting"] == "rule"}
    cells = record["cells"].items()
    rows = [(name, count, *(exact[rule][name] for rule in _FIELDS)) for name, count in cells]
    return table(("cells", "runs", *_RULES), rows)


def paper_libraries(cells: Cells, before: Cells) -> Table:
    """Recoveries and median errors with the paper's libraries, beside those of one kernel field."""
    rows = []
    for (row, name, protocol, noise), cell in _sorted(cells):
        if row == "paper's terms":
            pair = before["kernel", name, protocol, noise], cell
            texts = (f"{_exact(summary)}, {summary.e_xi:.2g}" for summary in pair)
            rows.append((*_samples(name, protocol, noise), *texts))
    return table(("samples", "noise", *_RULES), rows)


def below_peer(cells: Cells) -> list[str]:
    """Cells of the heavy-noise table that recover less often than the peer."""
    return [
        f"{problem(name).title} at {noise:.0%}: {cell.exact} of {cell.runs}, the peer {peer.exact}"
        for (_, name, _, noise), cell, peer in _heavy(cells)
        if cell.exact < (peer.exact or 0)
    ]


def half_the_error(cells: Cells) -> int:
    """Cells whose median error is at most half of the peer's."""
    return sum(peer.e_xi is not None and cell.e_xi <= peer.e_xi / 2 for _, cell, peer in _heavy(cells))


def _heavy(cells: Cells) -> list[tuple[CellKey, Summary, Cell]]:
    """The cells of the heavy-noise table with the peer's."""
    peer, keys = published.weak_ident().cells, [key for key in cells if key[::2] == ("43 terms", "S100")]
    return [(key, cells[key], peer[f"{key[3]:.0%}", key[1], key[2]]) for key in keys]


def _sorted(cells: Cells) -> list[tuple[CellKey, Summary]]:
    return sorted(cells.items(), key=lambda item: item[0][1:])


def _exact(cell: Summary) -> str:
    return count_of_five(cell.exact, cell.runs)


def _samples(name: str, protocol: str, noise: float) -> tuple[str, str]:
    return f"{SHORT_NAMES.get(name) or problem(name).title} {protocol}", f"{noise:.0%}"
