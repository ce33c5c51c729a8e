"""A symbolic run on a frozen field on one core, beside the promised minute and Operon's way to the same risk.

Prints one line per figure: name, ours, peer, ratio. CPU seconds; `make bench` sets one thread.
"""

import time
from dataclasses import replace

import numpy as np
from _timing import cpu, line

from fts.kernel import closed_form
from fts.params.paper import DEVELOPMENT_SEEDS
from fts.problems.trajectories import observe, simulate
from fts.symbolic.discover import THAW, thaw
from fts.symbolic.rivals import OPERON, TARGET, operon_front, spline_target
from fts.symbolic.search import SYMBOLIC
from fts.symbolic.select import run_systems, select_function

SEED, NOISE, PROMISED_SECONDS = DEVELOPMENT_SEEDS[0], 0.05, 60.0
# Operon's generations, doubled up to its whole search; a risk within one percent is the same.
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
    reached = operon_risks(field)
    best = min(risk for risk, _ in reached)
    aim = max(best, found.chosen.risk)
    taken = next(seconds for risk, seconds in reached if risk <= SAME * aim)
    way = "Operon, to the same" if best <= SAME * found.chosen.risk else "Operon, to its own lowest"
    line("symbolic: seconds to the held-out risk below", ours, taken, way)
    risk_line("symbolic: held-out risk", found.chosen.risk, best, "Operon's lowest")


def operon_risks(field) -> list[tuple[float, float]]:
    """Per length of Operon's search: the least held-out risk in its front, and the seconds it took."""
    systems = run_systems(field, SYMBOLIC, np.random.default_rng(SEED))
    reached = []
    for generations in GENERATIONS:
        began = time.process_time()
        front = operon_front(spline_target(field, TARGET), replace(OPERON, generations=generations), SEED)
        taken = time.process_time() - began
        reached.append((min(held_out_risk(one.q, systems) for one in front), taken))
    return reached


def held_out_risk(q, systems) -> float:
    """The mean risk on the held-out systems; infinite where q has no value on some of their states."""
    try:
        values = q(systems.refit.states)
    except ValueError:
        return float("inf")
    return float(np.mean([system.risk(values) for system in systems.validation]))


def risk_line(name: str, ours: float, peer: float, peer_name: str) -> None:
    """One figure without a unit: name, ours, peer, ratio."""
    print(f"{name:<52} {ours:10.5f}     {peer_name} {peer:10.5f}     ratio {peer / ours:8.2f}")


if __name__ == "__main__":
    main()
