"""Our method's configurations as tasks: the paper's own, better fields, rows weighted by their variance."""

from dataclasses import replace

from fts.params import CLOSED_FORM, PAPER, PROJECTED, REFINED, VERDICT, FieldParams, FreezeThenSelectParams
from fts.studies.runs import DISCOVER, Task

OURS = "freeze, then select"


def paper_task(study: str, problem: str, protocol: str, seed: int, recipe: str = "paper") -> Task:
    """The paper's own configuration, or a variant of its adapter, with its ridge refit."""
    used = PAPER[problem]
    params = FreezeThenSelectParams(FieldParams(recipe, used.adapter), used.weak, used.svws, "ridge")
    return Task(study, problem, protocol, seed, 0.0, recipe, OURS, params)


def refined_task(study: str, problem: str, protocol: str, seed: int, recipe: str) -> Task:
    """A better field, with quadrature that does not limit it and the refit that held-out rows prefer."""
    used = PAPER[problem]
    weak = REFINED.get(problem, used.weak) if recipe in CLOSED_FORM else used.weak
    field = FieldParams(recipe, PROJECTED if recipe == "projected" else None)
    params = FreezeThenSelectParams(field, weak, used.svws, "preferred")
    return Task(study, problem, protocol, seed, 0.0, recipe, OURS, params)


def weighted_task(study: str, problem: str, protocol: str, seed: int) -> Task:
    """The kernel field again, with rows weighted by its posterior variance."""
    base = refined_task(study, problem, protocol, seed, "kernel")
    return replace(base, row="kernel, weighted", params=replace(base.params, refit="weighted"))


def discover_task(study: str, problem: str, protocol: str, seed: int, noise: float) -> Task:
    """What a user gets who says nothing: `fts.discover` on the samples."""
    return Task(study, problem, protocol, seed, noise, DISCOVER, DISCOVER, VERDICT)
