"""A symbolic run on a frozen field on one core, beside the promised minute and Operon's way to the same risk.

Prints one line per figure: name, ours, peer, ratio. CPU seconds; `make bench` sets one thread.
"""

import time
from dataclasses import replace

import numpy as np
from _timing import cpu, line

from fts.data.trajectories import observe, simulate
from fts.kernel import closed_form
from fts.params import DEVELOPMENT_SEEDS, SYMBOLIC, THAW
from fts.params.rivals import OPERON, TARGET
from fts.symbolic.operon import operon_front
from fts.symbolic.select import run_systems, select_function
from fts.symbolic.targets import spline_target
from fts.symbolic.thaw import thaw

SEED, NOISE, PROMISED_SECONDS = DEVELOPMENT_SEEDS[0], 0.05, 60.0
# Operon's generations, doubled until its best function is as good; a risk within one percent is the same.
GENERATIONS, SAME = (1, 2, 4, 8, 16, 32, 64, 100), 1.01


def main() -> None:
    """All figures."""
    observations = observe(simulate("diffusion"), "S20", seed=SEED, noise=NOISE)
    field = closed_form.fit(observations, progress=False)
    found = select_function(field, SYMBOLIC, np.random.default_rng(SEED))
    ours = cpu(lambda: select_function(field, SYMBOLIC, np.random.default_rng(SEED)), times=3)
    line("symbolic: two searches, refit, validation", ours, PROMISED_SECONDS, "promised")
    thawing = cpu(lambda: thaw(found.chosen.form, field, observations, THAW), times=1)
    line("symbolic: the same and the thaw", ours + thawing, PROMISED_SECONDS, "promised")
    peer = operon_seconds(field, found.chosen.risk)
    line("symbolic: a function of the same held-out risk", ours, peer, "Operon (inf: never)")


def operon_seconds(field, risk: float) -> float:
    """Seconds until the best function of Operon's front has this held-out risk; infinite if it never has."""
    systems = run_systems(field, SYMBOLIC, np.random.default_rng(SEED))
    for generations in GENERATIONS:
        began = time.process_time()
        front = operon_front(spline_target(field, TARGET), replace(OPERON, generations=generations), SEED)
        taken = time.process_time() - began
        values = [one.q(systems.refit.states) for one in front]
        best = min(np.mean([system.risk(q) for system in systems.validation]) for q in values)
        if best <= SAME * risk:
            return taken
    return float("inf")


if __name__ == "__main__":
    main()
