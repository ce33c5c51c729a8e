"""What each study of the book runs: seeds -> tasks, one function per study, in the rows of its tables."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

from fts.lab.studies.published import JOINT_SETTINGS, REGIMES, SELECTOR_REGIMES
from fts.lab.studies.runs import GENERAL, Task, discover_task, paper_task, refined_task, study, weighted_task
from fts.params.paper import PAPER, REFINED
from fts.params.types import FieldParams
from fts.problems.problems import names

Seeds = Iterable[int]
Tasks = Iterator[Task]

NOISE_LEVELS = (0.1, 0.2, 0.3, 0.5)
# Sensor densities in percent: the paper's, and below them until recovery breaks.
_DENSITIES = {
    "kdv": (2, 3, 4, 5, 10, 15, 20),
    "ks": (5, 8, 10, 15, 20, 50, 80, 100),
    "ad": (0.5, 0.7, 1, 2, 5, 10, 20, 50, 80, 100),
}
PAPER_DENSITIES = {"kdv": (5, 10, 15, 20), "ks": (20, 50, 80, 100), "ad": (20, 50, 80, 100)}
# Joint methods the paper follows over densities, the cheaper one first.
JOINT_DENSITIES = ("DeepMoD", "PINN-SR")
# The method beside every selector it is compared with.
_COMPARED = "freeze, then compare"
# Rows of the ablation tables, cheap ones first, and the adapter variant that makes each.
_VARIANTS = {
    "no penalties": "unpenalized",
    "structured, no Fourier": "structured-raw",
    "coordinate": "coordinate-fourier",
    "coordinate, no Fourier": "coordinate-raw",
}
# What the coordinate network with Fourier features is compared with on KS alone: more capacity, slower time.
_CONTROLS = {"coordinate, width 128": "coordinate-wide", "coordinate, slow time": "coordinate-slow"}
_LAYOUTS_PER_SEED = 5
# Samples that fill no sensor x frame grid: points at random, drifting probes, gaps.
_ANY_SAMPLES = ("R20", "D20", "S20-30")
# Where mesh-free SINDy was measured: 5,000 samples under heavy noise, 100 under little.
_PEER_SETTINGS = (("N5000", 0.75), ("N100", 0.01))
# Fewer and fewer sensors of one layout, as the explorer of sensors takes them away.
SWEEP = ("S20", "S10", "S5", "S3", "S2")
# Fixed sensors in percent, few enough that waves pass between them unseen, and the kernels they are given.
_FEW_SENSORS = {"kdv": (20, 5, 3, 2), "ad": (1, 0.5)}
_FIXED_FIELDS = (("separable", "kernel"), ("travelling", "travelling"))
# Rows beside the others: a single split of the samples instead of the average over several, and draws of
# sensors and noise that were first seen when the rule was finished.
ONE_SPLIT, FRESH = ", one split", ", fresh draws"
_FRESH_SEED = 10_000  # from a seed to a fresh one
_HEAVY_NOISE = (0.2, 0.5, 1.0)
# A verdict is wanted on so many layouts per seed and noise level, and with 43 terms on full grids.
_BURGERS_NOISE, _BURGERS_LAYOUTS = (0.0, 0.05, 0.1, 0.2), 4
_LARGE_NOISE = (0.1, 0.2, 0.5)


@study(recorded=False)
def fields(seeds: Seeds) -> Tasks:
    """The frozen fields that ship with the book: the paper's, clean and noisy, and kernel fields."""
    first, *_ = seeds
    for protocol, (_, recipe) in product(SWEEP, _FIXED_FIELDS):
        if (protocol, recipe) != ("S20", "kernel"):  # ships with every seed
            yield refined_task("fields", "kdv", protocol, first, recipe)
    for seed in seeds:
        for regime in REGIMES:
            yield paper_task("fields", *regime, seed)
            yield refined_task("fields", *regime, seed, "kernel")
        for regime in SELECTOR_REGIMES:
            yield replace(paper_task("fields", *regime, seed), noise=0.1)
        for level in (0.0, 0.05, 0.1):
            yield replace(paper_task("fields", "diffusion", "S20", seed), noise=level)


@study()
def main(seeds: Seeds) -> Tasks:
    """Table 1, row "Ours": the paper's recipe; projected and kernel fields as rows of their own."""
    for regime, seed in product(REGIMES, seeds):
        yield paper_task("main", *regime, seed)
        for recipe in ("projected", "kernel"):
            yield refined_task("main", *regime, seed, recipe)
        yield weighted_task("main", *regime, seed)


@study()
def noise(seeds: Seeds) -> Tasks:
    """Supplement G.2 and D.2(b): 10 % noise with the paper's recipe, up to 50 % with kernel fields."""
    for regime, seed in product(SELECTOR_REGIMES, seeds):
        yield replace(paper_task("noise", *regime, seed), noise=0.1, method=_COMPARED)
    for level, regime, seed in product(NOISE_LEVELS, REGIMES, seeds):
        yield replace(refined_task("noise", *regime, seed, "kernel"), noise=level)
        yield replace(weighted_task("noise", *regime, seed), noise=level)


@study()
def thresholds(seeds: Seeds) -> Tasks:
    """Table 2(b) and D.2(a): SVWS, single thresholds and selector variants on the clean fields."""
    for regime, seed in product(SELECTOR_REGIMES, seeds):
        yield replace(paper_task("thresholds", *regime, seed), method=_COMPARED)


@study()
def density(seeds: Seeds) -> Tasks:
    """Supplement G.1: nested fixed-sensor densities, and below the paper's until recovery breaks."""
    for problem, percents in _DENSITIES.items():
        for percent, seed in product(percents, seeds):
            yield paper_task("density", problem, f"S{percent:g}", seed)
            yield refined_task("density", problem, f"S{percent:g}", seed, "kernel")
    # Those that train come last; what Table 1 or the paths record of them is not trained again.
    recorded = {*JOINT_SETTINGS, *((row, *regime) for row, regime in product(JOINT_DENSITIES, REGIMES))}
    methods = ("PDE-FIND", "WSINDy", *JOINT_DENSITIES)
    for row, (problem, percents) in product(methods, PAPER_DENSITIES.items()):
        for percent, seed in product(percents, seeds):
            if (row, problem, f"S{percent}") not in recorded:
                yield baseline_task("density", row, problem, f"S{percent}", seed)


@study()
def ablations(seeds: Seeds) -> Tasks:
    """Table 2(a), D.1, D.3 and the controls: the adapter's variants, KS first."""
    for regime in sorted(REGIMES, key=lambda regime: regime[0] != "ks"):
        rows = _VARIANTS | _CONTROLS if regime[0] == "ks" else _VARIANTS
        for (row, variant), seed in product(rows.items(), seeds):
            yield replace(paper_task("ablations", *regime, seed, variant), row=row)


@study()
def layouts(seeds: Seeds) -> Tasks:
    """Where Table 1 is missed: five further sensor layouts per seed, to tell the recipe from the draw."""
    for problem, seed, further in product(("kdv", "ks"), seeds, range(1, 1 + _LAYOUTS_PER_SEED)):
        yield paper_task("layouts", problem, "S20", seed + further)


@study()
def baselines(seeds: Seeds) -> Tasks:
    """Table 1, the methods ours is compared with, each with one configuration per problem."""
    from fts.methods import METHODS, configurations

    for row, regime, seed in product(METHODS, REGIMES, seeds):
        if regime[0] in configurations(row):
            yield baseline_task("baselines", row, *regime, seed)


def baseline_task(study: str, row: str, problem: str, protocol: str, seed: int) -> Task:
    """A competing method with its configuration for the problem."""
    from fts.methods import configurations

    return Task(study, problem, protocol, seed, 0.0, row, row, configurations(row)[problem])


@study()
def crossed(seeds: Seeds) -> Tasks:
    """Which half wins? Three fields, each with four selectors, clean and with 10 % noise."""
    from fts.baselines.crossed import CrossedParams, WeakRuleParams
    from fts.baselines.regressions import PDE_FIND, WSINDY
    from fts.baselines.spectral import SPECTRAL

    for level, (problem, protocol) in product((0.0, 0.1), REGIMES):
        used = PAPER[problem]
        fields: dict[str, tuple[Any, Any]] = {"spectral": (SPECTRAL, None)}
        made = {"paper": FieldParams("paper", used.adapter), "kernel": FieldParams("kernel")}
        fields |= {name: (None, params) for name, params in made.items()}
        rule = WeakRuleParams(REFINED.get(problem, used.weak), used.svws)  # quadrature limits none of them
        ridge = {"strong STRidge": PDE_FIND[problem].regression, "weak STRidge": WSINDY[problem].regression}
        selectors: dict[Any, Any] = {**ridge, "single weak STLSQ": rule, "SVWS": rule}
        for (field, made), (selector, settings), seed in product(fields.items(), selectors.items(), seeds):
            params = CrossedParams(*made, selector, settings)
            yield Task("crossed", problem, protocol, seed, level, f"{field}, {selector}", "crossed", params)


@study("cross")
def split_sample(seeds: Seeds) -> Tasks:
    """Two fields: 43 terms under heavy noise and on sparse samples, and the paper's libraries under noise."""
    from fts.selection.instrumental import TWO_FIELDS

    kinds: dict[str, tuple[Seeds, Any]] = {
        "": (seeds, TWO_FIELDS),
        ONE_SPLIT: (seeds, replace(TWO_FIELDS, splits=1)),
        FRESH: ([seed + _FRESH_SEED for seed in seeds], TWO_FIELDS),
    }
    cells: list[tuple[str, str, str, float, str]] = [
        *(("43 terms", name, "S100", level, "") for level, name in product(_HEAVY_NOISE, names("noisy"))),
        *(("paper's terms", *regime, level, "") for level, regime in product(NOISE_LEVELS[::-1], REGIMES)),
        *(("43 terms", *regime, 0.0, "powers 2D" if regime[0] == "ad" else "powers") for regime in REGIMES),
    ]
    sparse = product((0.1, 0.2), ("S20", "T20"), names("noisy"))
    cells += [("43 terms", name, protocol, level, "") for level, protocol, name in sparse]
    for kind, (draws, params) in kinds.items():
        for (row, problem, protocol, level, library), seed in product(cells, draws):
            yield Task("cross", problem, protocol, seed, level, row + kind, "two fields", params, library)


@study()
def samples(seeds: Seeds) -> Tasks:
    """Any samples: points at random, drifting probes, gaps; few fixed sensors; Burgers beside its peer."""
    for protocol, level, problem, seed in product(_ANY_SAMPLES, (0.0, 0.1), PAPER_DENSITIES, seeds):
        yield replace(refined_task("samples", problem, protocol, seed, "kernel"), noise=level)
    for (protocol, level), seed in product(_PEER_SETTINGS, seeds):
        yield discover_task("samples", "burgers", protocol, seed, level)
    for problem, percents in _FEW_SENSORS.items():
        protocols = [f"S{percent:g}" for percent in percents]
        for protocol, (row, recipe), seed in product(protocols, _FIXED_FIELDS, seeds):
            yield replace(refined_task("samples", problem, protocol, seed, recipe), row=row)


@study()
def verdicts(seeds: Seeds) -> Tasks:
    """What `fts.discover` says: defaults on the paper's regimes, Burgers again and again, 43 terms."""
    for level, regime, seed in product((0.0, 0.1), REGIMES, seeds):
        yield replace(discover_task("verdicts", *regime, seed, level), row="defaults", library=GENERAL)
    for level, seed, further in product(_BURGERS_NOISE, seeds, range(_BURGERS_LAYOUTS)):
        yield replace(discover_task("verdicts", "burgers", "S20", seed + further, level), row="defaults")
    for level, problem, seed in product(_LARGE_NOISE, names("noisy"), seeds):
        yield replace(discover_task("verdicts", problem, "S100", seed, level), row="43 terms")
