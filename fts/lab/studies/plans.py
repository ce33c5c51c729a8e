"""The plan of two fields: 43 terms under heavy noise and on sparse samples, the paper's under noise.

What a user is told: seeds -> tasks that ask `fts.discover` for a verdict on known problems.

What each study runs: seeds -> tasks, one function per study, in the rows of the paper's tables.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

from fts.baselines.crossed import CrossedParams, WeakRuleParams
from fts.baselines.regressions import PDE_FIND, WSINDY
from fts.baselines.spectral import SPECTRAL, SpectralParams
from fts.lab.studies.published import JOINT_SETTINGS, REGIMES, SELECTOR_REGIMES
from fts.lab.studies.runs import GENERAL, OURS, Task, discover_task, paper_task, refined_task, weighted_task
from fts.methods import METHODS, configurations
from fts.params.paper import PAPER, REFINED
from fts.params.types import FieldParams
from fts.problems.problems import names
from fts.selection.instrumental import TWO_FIELDS
from fts.symbolic.composed import COMPOSED, ComposedRunParams
from fts.symbolic.discover import THAW, WEIGH, SymbolicRunParams
from fts.symbolic.rivals import OPERON, TARGET, RivalRunParams
from fts.symbolic.search import SYMBOLIC

# Rows beside the others: a single split of the samples instead of the average over several, and draws of
# sensors and noise that were first seen when the rule was finished.
ONE_SPLIT, FRESH = ", one split", ", fresh draws"
_FURTHER = 10_000  # from a seed to a fresh one
NOISE_LEVELS = (0.1, 0.2, 0.3, 0.5)
_HEAVY_NOISE = (0.2, 0.5, 1.0)


def cross(seeds: tuple[int, ...]) -> Iterator[Task]:
    """Two fields: 43 terms under heavy noise and on sparse samples, and the paper's libraries under noise."""
    further = tuple(seed + _FURTHER for seed in seeds)
    kinds = {"": (seeds, TWO_FIELDS), ONE_SPLIT: (seeds, replace(TWO_FIELDS, splits=1))}
    kinds |= {FRESH: (further, TWO_FIELDS)}
    for kind, (own, params) in kinds.items():
        for (row, problem, protocol, level, library), seed in product(_crossings(), own):
            yield Task("cross", problem, protocol, seed, level, row + kind, "two fields", params, library)


def _crossings() -> Iterator[tuple[str, str, str, float, str]]:
    """Row, problem, protocol, noise and library."""
    for level, problem in product(_HEAVY_NOISE, names("noisy")):
        yield "43 terms", problem, "S100", level, ""
    for level, regime in product(NOISE_LEVELS[::-1], REGIMES):
        yield "paper's terms", *regime, level, ""
    for problem, protocol in REGIMES:
        yield "43 terms", problem, protocol, 0.0, "powers 2D" if problem == "ad" else "powers"
    for level, protocol, problem in product((0.1, 0.2), ("S20", "T20"), names("noisy")):
        yield "43 terms", problem, protocol, level, ""


# A verdict is asked for on so many layouts per seed and noise level, and with 43 terms on full grids.
_BURGERS_NOISE, _BURGERS_LAYOUTS = (0.0, 0.05, 0.1, 0.2), 4
_LARGE_NOISE = (0.1, 0.2, 0.5)


def verdicts(seeds: tuple[int, ...]) -> Iterator[Task]:
    """What `fts.discover` says: defaults on the paper's regimes, Burgers again and again, 43 terms."""
    for level, (problem, protocol), seed in product((0.0, 0.1), REGIMES, seeds):
        yield replace(
            discover_task("verdicts", problem, protocol, seed, level), row="defaults", library=GENERAL
        )
    for level, seed, further in product(_BURGERS_NOISE, seeds, range(_BURGERS_LAYOUTS)):
        yield replace(discover_task("verdicts", "burgers", "S20", seed + further, level), row="defaults")
    for level, problem, seed in product(_LARGE_NOISE, names("noisy"), seeds):
        yield replace(discover_task("verdicts", problem, "S100", seed, level), row="43 terms")


# The method beside every selector it is compared with.
_COMPARED = "freeze, then compare"

Plan = Callable[[tuple[int, ...]], Iterator[Task]]

# Sensor densities in percent: the paper's, and below them until recovery breaks.
_DENSITIES = {
    "kdv": (2, 3, 4, 5, 10, 15, 20),
    "ks": (5, 8, 10, 15, 20, 50, 80, 100),
    "ad": (0.5, 0.7, 1, 2, 5, 10, 20, 50, 80, 100),
}
PAPER_DENSITIES = {"kdv": (5, 10, 15, 20), "ks": (20, 50, 80, 100), "ad": (20, 50, 80, 100)}
# Joint methods the paper follows over densities, the cheaper one first.
JOINT_DENSITIES = ("DeepMoD", "PINN-SR")
# Rows of the ablation tables, cheap ones first, and the adapter variant that makes each.
_VARIANTS = {
    "no penalties": "unpenalized",
    "structured, no Fourier": "structured-raw",
    "coordinate": "coordinate-fourier",
    "coordinate, no Fourier": "coordinate-raw",
}
# What the coordinate network with Fourier features is compared with on KS alone: more capacity, slower time.
_CONTROLS = {
    "coordinate, width 128": "coordinate-wide",
    "coordinate, slow time": "coordinate-slow",
}
# Samples that fill no sensor x frame grid: points at random, drifting probes, gaps.
_ANY_SAMPLES = ("R20", "D20", "S20-30")
# Where mesh-free SINDy was measured: 5,000 samples under heavy noise, 100 under little.
_PEER_SETTINGS = (("N5000", 0.75), ("N100", 0.01))
# Fewer and fewer sensors of one layout, as the explorer of sensors takes them away.
SWEEP = ("S20", "S10", "S5", "S3", "S2")
# Fixed sensors in percent, few enough that waves pass between them unseen, and the kernels they are given.
_FEW_SENSORS = {"kdv": (20, 5, 3, 2), "ad": (1, 0.5)}
_FIXED_FIELDS = (("separable", "kernel"), ("travelling", "travelling"))
# Noise of the symbolic benchmark's fields.
_SYMBOLIC_NOISE = (0.0, 0.05, 0.1)
_COMPOSED_NOISE = (0.0, 0.05)
_LAYOUT_PROBLEMS = ("kdv", "ks")
_LAYOUTS_PER_SEED = 5


def main(seeds: tuple[int, ...]) -> Iterator[Task]:
    """Table 1, row "Ours": the paper's recipe; projected and kernel fields as rows of their own."""
    for problem, protocol in REGIMES:
        for seed in seeds:
            yield paper_task("main", problem, protocol, seed)
            for recipe in ("projected", "kernel"):
                yield refined_task("main", problem, protocol, seed, recipe)
            yield weighted_task("main", problem, protocol, seed)


def noise(seeds: tuple[int, ...]) -> Iterator[Task]:
    """Supplement G.2 and D.2(b): 10 % noise with the paper's recipe, up to 50 % with kernel fields."""
    for problem, protocol in SELECTOR_REGIMES:
        for seed in seeds:
            yield replace(paper_task("noise", problem, protocol, seed), noise=0.1, method=_COMPARED)
    for level in NOISE_LEVELS:
        for problem, protocol in REGIMES:
            for seed in seeds:
                yield replace(refined_task("noise", problem, protocol, seed, "kernel"), noise=level)
                yield replace(weighted_task("noise", problem, protocol, seed), noise=level)


def thresholds(seeds: tuple[int, ...]) -> Iterator[Task]:
    """Table 2(b) and D.2(a): SVWS, single thresholds and selector variants on the clean fields."""
    for problem, protocol in SELECTOR_REGIMES:
        for seed in seeds:
            yield replace(paper_task("thresholds", problem, protocol, seed), method=_COMPARED)


def density(seeds: tuple[int, ...]) -> Iterator[Task]:
    """Supplement G.1: nested fixed-sensor densities, and below the paper's until recovery breaks."""
    for problem, percents in _DENSITIES.items():
        for percent in percents:
            for seed in seeds:
                yield paper_task("density", problem, f"S{percent:g}", seed)
                yield refined_task("density", problem, f"S{percent:g}", seed, "kernel")
    # Those that train come last; what Table 1 or the paths record of them is not trained again.
    recorded = {*JOINT_SETTINGS, *((row, *regime) for row, regime in product(JOINT_DENSITIES, REGIMES))}
    methods = ("PDE-FIND", "WSINDy", *JOINT_DENSITIES)
    for row, (problem, percents) in product(methods, PAPER_DENSITIES.items()):
        for percent, seed in product(percents, seeds):
            if (row, problem, f"S{percent}") not in recorded:
                params = configurations(row)[problem]
                yield Task("density", problem, f"S{percent}", seed, 0.0, row, row, params)


def ablations(seeds: tuple[int, ...]) -> Iterator[Task]:
    """Table 2(a), D.1, D.3 and the controls: the adapter's variants, KS first."""
    regimes = sorted(REGIMES, key=lambda regime: regime[0] != "ks")
    for problem, protocol in regimes:
        rows = _VARIANTS | _CONTROLS if problem == "ks" else _VARIANTS
        for row, variant in rows.items():
            for seed in seeds:
                yield replace(paper_task("ablations", problem, protocol, seed, variant), row=row)


def layouts(seeds: tuple[int, ...]) -> Iterator[Task]:
    """Where Table 1 is missed: five further sensor layouts per seed, to tell the recipe from the draw."""
    for problem in _LAYOUT_PROBLEMS:
        for seed in seeds:
            for further in range(1, 1 + _LAYOUTS_PER_SEED):
                yield paper_task("layouts", problem, "S20", seed + further)


def baselines(seeds: tuple[int, ...]) -> Iterator[Task]:
    """Table 1, the methods ours is compared with, each with one configuration per problem."""
    for row in METHODS:
        for problem, protocol in REGIMES:
            if problem in configurations(row):
                for seed in seeds:
                    params = configurations(row)[problem]
                    yield Task("baselines", problem, protocol, seed, 0.0, row, row, params)


def paths(seeds: tuple[int, ...]) -> Iterator[Task]:
    """Supplement E: trainings of the joint methods, recorded, and of our field, read at every stage."""
    for row, problem, protocol in JOINT_SETTINGS:
        # Where Table 1 has the run, the recorded one is that run.
        study = "baselines" if (problem, protocol) in REGIMES else "paths"
        for seed in seeds:
            yield Task(study, problem, protocol, seed, 0.0, row, row, configurations(row)[problem])
    for problem, protocol in dict.fromkeys(setting[1:] for setting in JOINT_SETTINGS):
        for seed in seeds:
            yield replace(paper_task("paths", problem, protocol, seed), row=OURS)


def crossed(seeds: tuple[int, ...]) -> Iterator[Task]:
    """Which half wins? Three fields, each with four selectors, clean and with 10 % noise."""
    for level, (problem, protocol) in product((0.0, 0.1), REGIMES):
        for (field, made), (selector, settings) in product(_crossed_fields(problem), _selectors(problem)):
            params = CrossedParams(*made, selector, settings)
            for seed in seeds:
                row = f"{field}, {selector}"
                yield Task("crossed", problem, protocol, seed, level, row, "crossed", params)


def _crossed_fields(problem: str) -> list[tuple[str, tuple[SpectralParams | None, FieldParams | None]]]:
    return [
        ("spectral", (SPECTRAL, None)),
        ("paper", (None, FieldParams("paper", PAPER[problem].adapter))),
        ("kernel", (None, FieldParams("kernel"))),
    ]


def _selectors(problem: str) -> list[tuple[Any, Any]]:
    """The selectors with their settings; quadrature limits none of the fields."""
    used = PAPER[problem]
    rule = WeakRuleParams(REFINED.get(problem, used.weak), used.svws)
    return [
        ("strong STRidge", PDE_FIND[problem].regression),
        ("weak STRidge", WSINDY[problem].regression),
        ("single weak STLSQ", rule),
        ("SVWS", rule),
    ]


def symbolic(seeds: tuple[int, ...]) -> Iterator[Task]:
    """Table 3: a function beyond any library, on the paper's fields and on kernel fields, and thawed."""
    made = {"paper": FieldParams("paper", PAPER["diffusion"].adapter), "kernel": FieldParams("kernel")}
    for level, seed, recipe in product(_SYMBOLIC_NOISE, seeds, made):
        for row, thaw in ((recipe, None), (f"{recipe}, thawed", THAW)):
            params = SymbolicRunParams(made[recipe], SYMBOLIC, thaw)
            yield Task("symbolic", "diffusion", "S20", seed, level, row, "symbolic", params)
    for level, seed in product(_SYMBOLIC_NOISE, seeds):
        params = SymbolicRunParams(made["kernel"], SYMBOLIC, None, WEIGH)
        yield Task("symbolic", "diffusion", "S20", seed, level, "kernel, weighted", "symbolic", params)


def symbolic_rivals(seeds: tuple[int, ...]) -> Iterator[Task]:
    """Table 3, a rival measured: Operon on pairs from the full noisy grid, the paper's and kernel fields."""
    paper = FieldParams("paper", PAPER["diffusion"].adapter)
    rows = (
        ("Operon, full grid", "S100", None),
        ("Operon, paper", "S20", paper),
        ("Operon, kernel", "S20", FieldParams("kernel")),
    )
    for level, seed, (row, protocol, field) in product(_SYMBOLIC_NOISE, seeds, rows):
        params = RivalRunParams(field, TARGET, OPERON)
        yield Task("symbolic_rivals", "diffusion", protocol, seed, level, row, "Operon", params)


def symbolic_composed(seeds: tuple[int, ...]) -> Iterator[Task]:
    """Beyond the paper: operators and two functions searched together, clean and with 5 % noise."""
    params = ComposedRunParams(FieldParams("kernel"), COMPOSED)
    for level, problem, seed in product(_COMPOSED_NOISE, names("further"), seeds):
        yield Task("symbolic_composed", problem, "S20", seed, level, "kernel", "composed", params)


def samples(seeds: tuple[int, ...]) -> Iterator[Task]:
    """Any samples: points at random, drifting probes, gaps; few fixed sensors; Burgers beside its peer."""
    for protocol, level, problem, seed in product(_ANY_SAMPLES, (0.0, 0.1), PAPER_DENSITIES, seeds):
        yield replace(refined_task("samples", problem, protocol, seed, "kernel"), noise=level)
    for (protocol, level), seed in product(_PEER_SETTINGS, seeds):
        yield discover_task("samples", "burgers", protocol, seed, level)
    for problem, percents in _FEW_SENSORS.items():
        for percent, (row, recipe) in product(percents, _FIXED_FIELDS):
            for seed in seeds:
                yield replace(refined_task("samples", problem, f"S{percent:g}", seed, recipe), row=row)


def fields(seeds: tuple[int, ...]) -> Iterator[Task]:
    """The frozen fields that ship with the book: the paper's, clean and noisy, and kernel fields."""
    for protocol, (_, recipe) in product(SWEEP, _FIXED_FIELDS):
        if (protocol, recipe) != ("S20", "kernel"):  # ships with every seed
            yield refined_task("fields", "kdv", protocol, seeds[0], recipe)
    for seed in seeds:
        for problem, protocol in REGIMES:
            yield paper_task("fields", problem, protocol, seed)
            yield refined_task("fields", problem, protocol, seed, "kernel")
        for problem, protocol in SELECTOR_REGIMES:
            yield replace(paper_task("fields", problem, protocol, seed), noise=0.1)
        for level in _SYMBOLIC_NOISE:
            yield replace(paper_task("fields", "diffusion", "S20", seed), noise=level)


# The studies that leave records, and so are verified.
RECORDED: dict[str, Plan] = {
    "main": main,
    "noise": noise,
    "thresholds": thresholds,
    "density": density,
    "ablations": ablations,
    "layouts": layouts,
    "baselines": baselines,
    "crossed": crossed,
    "paths": paths,
    "symbolic": symbolic,
    "symbolic_rivals": symbolic_rivals,
    "symbolic_composed": symbolic_composed,
    "cross": cross,
    "samples": samples,
    "verdicts": verdicts,
}
STUDIES: dict[str, Plan] = {"fields": fields, **RECORDED}
