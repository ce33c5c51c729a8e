"""Every table, figure and claim of the paper: where it is here, what made it, and ours beside the published.

Values come from `tables.json`, which follows from the records, and from the settings in `fts.params`.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import isclose, prod
from typing import Any

from fts.lab.studies import published, records
from fts.lab.studies.published import Cell, Published
from fts.lab.studies.records import cell_label
from fts.params.paper import PAPER, SHORT_NAMES
from fts.params.types import named
from fts.plotting import Table, table
from fts.problems import protocols
from fts.problems.problems import problem

Tables = Mapping[str, Mapping[str, Any]]
# Two values agree within this fraction, or where they round to the digits the paper prints.
_AGREE = 0.02
_TITLES = {"exact": "exact", "e_xi": r"$E_\xi$", "e_u": "$E_u$", "e_u_max": "largest $E_u$"}
_RUN = "python -m fts.lab.studies "


@dataclass(frozen=True)
class Value:
    """One published number beside ours."""

    cell: str
    name: str
    ours: float | int | None  # None where nothing was run
    theirs: float | int
    better: int = 0  # the sign of a difference that is an improvement; 0 where none is

    @property
    def mark(self) -> str:
        """How ours compares."""
        if self.ours is None:
            return "not run"
        digits = len(f"{self.theirs:g}".partition(".")[2])
        if any(isclose(ours, self.theirs, rel_tol=_AGREE) for ours in (self.ours, round(self.ours, digits))):
            return "matches"
        return "better" if (self.ours - self.theirs) * self.better > 0 else "differs"


@dataclass(frozen=True)
class Item:
    """One table, figure, algorithm or claim of the paper."""

    number: str
    label: str  # in the paper's source
    subject: str
    chapter: str
    function: str  # what makes it here
    record: str = ""  # study whose records it is read from; none for settings and drawings
    values: Callable[[Tables], Iterator[Value]] | None = None
    see: str = ""  # table or figure of the book that shows it

    @property
    def command(self) -> str:
        """What makes the records, or what draws it."""
        return f"{_RUN}{self.record}" if self.record else "make book"


def read_tables() -> Tables:
    """The cells that follow from the committed records."""
    return json.loads((records.records_folder() / "tables.json").read_text())


def items() -> tuple[Item, ...]:
    """The paper from its first figure to its last table."""
    figures = "fts.lab.figures."
    beside = figures + "baselines.beside_paper"
    threshold = partial(_cells, published.thresholds, ("thresholds, selectors",))
    ks = ("ks",)
    return (
        Item("Figure 1", "fig:overview", "the method", "intro", "book/method.html"),
        Item("Figure 2", "fig:adapter_architecture", "the adapter", "adapter", figures + "adapter.features",
            see="fig-adapter-features",
        ),
        Item(
            "Table 1", "tab:fixed_library_main", "seven methods, six regimes", "results", beside,
            "baselines", partial(_cells, published.methods, ("main", "baselines")), "tab-methods",
        ),
        Item(
            "Table 2(a)", "tab:structure_ablation_main", "adapters on KS", "results", beside, "ablations",
            partial(_cells, published.adapters, ("main", "ablations"), problems=ks), "tab-adapters",
        ),
        Item(
            "Table 2(b)", "tab:structure_ablation_main", "three thresholds", "results", beside, "thresholds",
            partial(threshold, rows=("svws", "stlsq 0.25", "stlsq 1", "stlsq 2")), "tab-thresholds",
        ),
        Item(
            "Figure 3", "fig:joint_mechanism", "three trainings", "paths", figures + "paths.behaviors",
            "paths", partial(_paths, names=("ever", "terminal")), "fig-behaviors",
        ),
        Item(
            "Table 3", "tab:openform_capability", "the power law", "symbolic",
            figures + "symbolic.table_3", "symbolic", _laws, "tab-power-laws",
        ),
        Item(
            "Table S1", "tab:benchmark_protocols", "grids and samples", "data", "fts.problems.protocols",
            values=_grids, see="tab-counts",
        ),
        Item(
            "Table S2", "tab:adapter_configs", "the adapter's settings", "adapter", "fts.params.paper",
            values=_adapters,
        ),
        Item(
            "Table S3", "tab:weak_system_configs", "weak systems", "weak", "fts.params.paper", values=_weak,
            see="tab-geometry",
        ),
        Item("Algorithm S1", "alg:svws", "SVWS", "svws", "fts.svws.rule", values=_rule, see="fig-proposals"),
        Item(
            "Table S4", "tab:baseline_implementation", "methods", "baselines", "fts.methods",
            see="tab-other-methods",
        ),
        Item(
            "Table S5", "tab:development_settings", "thresholds of methods", "baselines",
            figures + "baselines.choices", values=_thresholds, see="tab-choices",
        ),
        Item(
            "Table S6", "tab:adapter_crossbenchmark_supp", "adapters, six regimes", "results", beside,
            "ablations", partial(_cells, published.adapters, ("main", "ablations")), "tab-adapters-field",
        ),
        Item(
            "Table S7", "tab:adapter_large_control_supp", "capacity on KS", "results", beside, "ablations",
            partial(_cells, published.capacity, ("main", "ablations")), "tab-capacity",
        ),
        Item(
            "Table S8(a)", "tab:selector_analysis_supp", "seven thresholds", "results", beside, "thresholds",
            threshold, "tab-thresholds",
        ),
        Item(
            "Table S8(b)", "tab:selector_analysis_supp", "selectors under noise", "results", beside, "noise",
            partial(_cells, published.selectors, ("noise, selectors",), noise=0.1), "tab-parts",
        ),
        Item(
            "Table S9", "tab:adapter_objective_ablation", "the adapter's objective", "results", beside,
            "ablations", partial(_cells, published.objective, ("main", "ablations")), "tab-objective",
        ),
        Item(
            "Table S10", "tab:joint_mechanism_summary", "supports along trainings", "paths",
            figures + "paths.visits", "paths", partial(_paths, names=("ever", "held_out", "terminal")),
            "tab-paths",
        ),
        Item(
            "Figure S1", "fig:joint_mechanism_all_seeds", "all seeds", "paths", figures + "paths.all_seeds",
            "paths", see="fig-all-seeds",
        ),
        Item(
            "Table S11", "tab:openform_pysr_failures", "expressions of PySR", "symbolic",
            figures + "symbolic.rivals_recovered", "symbolic_rivals", see="tab-rivals",
        ),
        Item(
            "Table S12", "tab:openform_svws_settings", "reconstruction, proposals", "symbolic",
            "fts.symbolic.search.SYMBOLIC", values=_symbolic,
        ),
        Item(
            "Table S13", "tab:openform_search_settings", "search, PySR", "symbolic",
            "fts.symbolic.rivals.PYSR", values=_pysr,
        ),
        Item(
            "Figure S2", "fig:observation_sweep", "sensor densities", "results",
            figures + "results.density", "density", _density, "fig-density",
        ),
        Item(
            "Table S14", "tab:supp_noise_robustness", "10 % noise", "results", beside, "noise", _noise,
            "tab-noise-error",
        ),
    )  # fmt: skip


def summary(tables: Tables) -> Table:
    """One row per item: chapter, where it is shown, how many values match, are better, differ."""
    rows = []
    for item in items():
        marks = [value.mark for value in item.values(tables)] if item.values else []
        kinds = ("matches", "better", "differs", "not run")
        counts = [str(marks.count(kind) or "–") for kind in kinds] if marks else ["–"] * 4
        shown = f"{{numref}}`{item.see}`" if item.see else "–"
        rows.append((f"{item.number}\n{item.subject}", item.chapter, shown, *counts, verdict(marks)))
    header = ("in the paper", "chapter", "shown in", "match", "better", "differ", "not run", "mark")
    return table(header, rows)


def verdict(marks: list[str]) -> str:
    """One word for all values of an item."""
    if not marks:
        return "no numbers"
    if "differs" in marks:
        return "differs"
    if set(marks) == {"not run"}:
        return "not run"
    return "better" if "better" in marks else "matches"


def origins() -> Table:
    """What makes each item: function, record file, command."""
    rows = [
        (
            item.number,
            f"{item.function.removeprefix('fts.')}\n{item.label}",
            f"{item.record}.jsonl\n{item.command.removeprefix(_RUN)}" if item.record else "–",
        )
        for item in items()
    ]
    return table(("in the paper", "function, label", "record file, study"), rows)


def differences(tables: Tables) -> Table:
    """The published values that ours differ from, each with both."""
    rows = []
    for item in items():
        for value in item.values(tables) if item.values else ():
            if value.mark == "differs":
                ours, theirs = (f"{number:.3g}" for number in (value.ours or 0.0, value.theirs))
                rows.append((item.number, value.cell, _TITLES.get(value.name, value.name), ours, theirs))
    return table(("in the paper", "where", "value", "ours", "published"), rows)


def all_values(tables: Tables) -> Table:
    """Every published number beside ours."""
    rows = []
    for item in items():
        for v in item.values(tables) if item.values else ():
            ours = "–" if v.ours is None else f"{v.ours:.3g}"
            rows.append((item.number, v.cell, _TITLES.get(v.name, v.name), ours, f"{v.theirs:.3g}", v.mark))
    return table(("in the paper", "where", "value", "ours", "published", "mark"), rows)


def _cells(
    theirs: Callable[[], Published],
    names: tuple[str, ...],
    tables: Tables,
    *,
    rows: tuple[str, ...] = (),
    problems: tuple[str, ...] = (),
    noise: float = 0.0,
) -> Iterator[Value]:
    """The cells of a published table beside those of the studies named."""
    for (row, name, protocol), cell in theirs().cells.items():
        if (not rows or row in rows) and (not problems or name in problems):
            yield from _cell(tables, names, row, (name, protocol, noise), cell)


def _cell(
    tables: Tables, names: tuple[str, ...], row: str, regime: tuple[str, str, float], cell: Cell
) -> Iterator[Value]:
    label = cell_label(("paper" if row == "structured" else row, *regime))
    ours = next((tables[name][label] for name in names if label in tables[name]), {})
    where = f"{row}, {SHORT_NAMES[regime[0]]}-{regime[1]}" + (f", {regime[2]:.0%} noise" if regime[2] else "")
    for name, sign in (("exact", 1), ("e_xi", -1), ("e_u", -1), ("e_u_max", -1)):
        value = getattr(cell, name)
        if value is not None:
            yield Value(where, name, ours.get(name), value, sign)


def _noise(tables: Tables) -> Iterator[Value]:
    for (row, name, protocol), cell in published.noise().cells.items():
        level = 0.0 if row == "clean" else 0.1
        yield from _cell(tables, ("main", "noise"), "structured", (name, protocol, level), cell)


def _density(tables: Tables) -> Iterator[Value]:
    for theirs in (published.density, published.density_of_others):
        yield from _cells(theirs, ("density", "main", "baselines", "paths"), tables)


def _paths(tables: Tables, names: tuple[str, ...]) -> Iterator[Value]:
    for (row, name, protocol), cell in published.paths().items():
        ours = tables["paths, supports"][f"{row} | {name}-{protocol}"]
        for each in names:
            value = cell[each]
            if value is not None:
                yield Value(
                    f"{row}, {SHORT_NAMES[name]}-{protocol}", each.replace("_", " "), ours[each], value
                )


def _laws(tables: Tables) -> Iterator[Value]:
    for noise, (recovered, kappa, m) in published.symbolic().items():
        ours = tables["symbolic, power laws"][cell_label(("paper", "diffusion", "S20", noise))]
        where = f"SVWS, {noise:.0%} noise"
        yield Value(where, "recovered", ours["recovered"], recovered, 1)
        for name, spread, truth in (("kappa", kappa, 0.1), ("m", m, 1.73)):
            mean = spread[0]
            nearer = 1 if abs(ours[name] - truth) < abs(mean - truth) else -1
            yield Value(where, name, ours[name], mean, nearer * (1 if ours[name] > mean else -1))
    for noise, (recovered, *_) in published.pysr().items():
        yield Value(f"PySR, {noise:.0%} noise", "recovered", None, recovered, 1)


def _settings(theirs: Mapping[str, float | int], ours: Mapping[str, Any], where: str) -> Iterator[Value]:
    for name, value in theirs.items():
        yield Value(where, name.replace("_", " "), ours[name], value)


def _grids(tables: Tables) -> Iterator[Value]:
    for name, theirs in published.grids().items():
        *space, frames = problem(name).shape
        points = prod(space)
        sensors, times = (
            protocols.sampled_count(protocols.parse_protocol(text), size)
            for text, size in (("S20", points), ("T20", frames))
        )
        ours = dict(zip(theirs, (points, frames, sensors, times), strict=True))
        yield from _settings(theirs, ours, SHORT_NAMES[name])


def _adapters(tables: Tables) -> Iterator[Value]:
    from fts.adapter.paper import parameter_count  # imports torch

    for name, theirs in published.adapter_settings().items():
        model = PAPER[name].adapter.model
        counts = {"parameters": parameter_count("structured", model, problem(name).domain.dimension)}
        ours = named(PAPER[name].adapter) | counts | {"splines": model.splines}
        yield from _settings(theirs, ours, SHORT_NAMES[name])


def _weak(tables: Tables) -> Iterator[Value]:
    for name, theirs in published.weak_settings().items():
        weak = PAPER[name].weak
        sizes = (prod(weak.patches), prod(weak.nodes), weak.half_widths[0], weak.half_widths[-1], weak.power)
        yield from _settings(theirs, dict(zip(theirs, sizes, strict=True)), SHORT_NAMES[name])


def _rule(tables: Tables) -> Iterator[Value]:
    for name in ("kdv", "ks", "ad"):
        yield from _settings(published.rule_settings(), named(PAPER[name].svws), SHORT_NAMES[name])


def _thresholds(tables: Tables) -> Iterator[Value]:
    chosen = json.loads((records.records_folder() / "candidates.json").read_text())
    for method, theirs in published.CHOSEN.items():
        for name, threshold in theirs.items():
            ours = chosen[method][name]["winner"]["threshold"]
            yield Value(f"{method}, {SHORT_NAMES[name]}", "threshold", ours, threshold)


def _symbolic(tables: Tables) -> Iterator[Value]:
    from fts.symbolic.search import SYMBOLIC

    ours = named(PAPER["diffusion"].adapter) | named(SYMBOLIC)
    yield from _settings(published.symbolic_settings(), ours, "SVWS")


def _pysr(tables: Tables) -> Iterator[Value]:
    from fts.symbolic.rivals import PYSR, TARGET

    yield from _settings(published.pysr_settings(), named(TARGET) | named(PYSR), "PySR")
