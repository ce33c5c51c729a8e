"""What each study runs: seeds -> tasks, one function per study, in the rows of the paper's tables."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise

from fts.paper_tables import REGIMES, SELECTOR_REGIMES
from fts.params import PAPER, REFINED, AdapterParams
from fts.runs import BEST_REFIT, PAPER_REFIT, Task

Plan = Callable[[tuple[int, ...]], Iterator[Task]]

# Sensor densities in percent: the paper's, and below them until recovery breaks.
_DENSITIES = {
    "kdv": (2, 3, 4, 5, 10, 15, 20),
    "ks": (5, 8, 10, 15, 20, 50, 80, 100),
    "ad": (1, 2, 5, 10, 20, 50, 80, 100),
}
_NOISE_LEVELS = (0.1, 0.2, 0.3, 0.5)


def main(seeds: tuple[int, ...]) -> Iterator[Task]:
    """Table 1, row "Ours": the paper's recipe; projected and kernel fields as rows of their own."""
    for problem, protocol in REGIMES:
        for seed in seeds:
            yield paper_task("main", problem, protocol, seed)
            for recipe in ("projected", "kernel"):
                yield refined_task("main", problem, protocol, seed, recipe)


def noise(seeds: tuple[int, ...]) -> Iterator[Task]:
    """Supplement G.2 and D.2(b): 10 % noise with the paper's recipe, up to 50 % with kernel fields."""
    for problem, protocol in SELECTOR_REGIMES:
        for seed in seeds:
            yield replace(paper_task("noise", problem, protocol, seed), noise=0.1, selectors=True)
    for level in _NOISE_LEVELS:
        for problem, protocol in REGIMES:
            for seed in seeds:
                yield replace(refined_task("noise", problem, protocol, seed, "kernel"), noise=level)


def thresholds(seeds: tuple[int, ...]) -> Iterator[Task]:
    """Table 2(b) and D.2(a): SVWS, single thresholds and selector variants on the clean fields."""
    for problem, protocol in SELECTOR_REGIMES:
        for seed in seeds:
            yield replace(paper_task("thresholds", problem, protocol, seed), selectors=True)


def density(seeds: tuple[int, ...]) -> Iterator[Task]:
    """Supplement G.1: nested fixed-sensor densities, and below the paper's until recovery breaks."""
    for problem, percents in _DENSITIES.items():
        for percent in percents:
            for seed in seeds:
                yield paper_task("density", problem, f"S{percent}", seed)
                yield refined_task("density", problem, f"S{percent}", seed, "kernel")


def ablations(seeds: tuple[int, ...]) -> Iterator[Task]:
    """Table 2(a), D.1, the capacity control and D.3: the adapter's variants, KS first."""
    regimes = sorted(REGIMES, key=lambda regime: regime[0] != "ks")
    for problem, protocol in regimes:
        for method, recipe, adapter in _variants(problem):
            for seed in seeds:
                base = paper_task("ablations", problem, protocol, seed)
                yield replace(base, method=method, recipe=recipe, adapter=adapter)


def fields(seeds: tuple[int, ...]) -> Iterator[Task]:
    """The frozen fields that ship with the book: the paper's recipe on clean observations."""
    for problem, protocol in REGIMES:
        for seed in seeds:
            yield paper_task("fields", problem, protocol, seed)


STUDIES: dict[str, Plan] = {
    "fields": fields,
    "main": main,
    "noise": noise,
    "thresholds": thresholds,
    "density": density,
    "ablations": ablations,
}


def paper_task(study: str, problem: str, protocol: str, seed: int) -> Task:
    """The paper's own configuration, with its ridge refit."""
    used = PAPER[problem]
    return Task(
        study, problem, protocol, seed, 0.0, "paper", "paper", used.adapter, used.weak, used.svws, PAPER_REFIT
    )


def refined_task(study: str, problem: str, protocol: str, seed: int, recipe: str) -> Task:
    """A better field, with quadrature that does not limit it and the refit that held-out rows prefer."""
    base = paper_task(study, problem, protocol, seed)
    weak = REFINED.get(problem, base.weak) if recipe == "kernel" else base.weak
    return replace(base, method=recipe, recipe=recipe, adapter=None, weak=weak, refit=BEST_REFIT)


def _variants(problem: str) -> Iterator[tuple[str, str, AdapterParams]]:
    """Row, recipe and parameters of the ablated adapters; widths match the structured one's size."""
    base = PAPER[problem].adapter
    dimension = 2 if problem == "ad" else 1
    target = _structured_size(base, dimension)
    plain = replace(base, fourier_rows=0)
    yield "no penalties", "paper", replace(base, lam_phi=0.0, lam_t=0.0)
    yield "structured, no Fourier", "paper", _matched(plain, target, lambda p: _structured_size(p, dimension))
    coordinate = _matched(base, target, lambda p: _coordinate_size(p, dimension))
    yield "coordinate", "coordinate", coordinate
    yield (
        "coordinate, no Fourier",
        "coordinate",
        _matched(plain, target, lambda p: _coordinate_size(p, dimension)),
    )
    if problem == "ks":
        yield "coordinate, width 128", "coordinate", replace(base, width=128)


def _matched(params: AdapterParams, target: int, size: Callable[[AdapterParams], int]) -> AdapterParams:
    """The width whose parameter count is nearest to the target."""
    return min((replace(params, width=width) for width in range(8, 257)), key=lambda p: abs(size(p) - target))


def _structured_size(params: AdapterParams, dimension: int) -> int:
    inputs = 2 * params.fourier_rows or dimension
    return _network_size(params, inputs, params.rank + 1) + params.rank * params.splines


def _coordinate_size(params: AdapterParams, dimension: int) -> int:
    inputs = 2 * params.fourier_rows or dimension + 1
    return _network_size(params, inputs, 1)


def _network_size(params: AdapterParams, inputs: int, outputs: int) -> int:
    sizes = [inputs, *[params.width] * params.depth, outputs]
    return sum((a + 1) * b for a, b in pairwise(sizes))
