"""From samples to a verdict on one core: what `fts.discover` takes on the paper's problems with 5 % noise.

Prints one line per figure: name, ours, peer, ratio; the peer is the fit of the field, which every verdict
needs. CPU seconds, the least of several runs in this process; `make bench` sets one thread.
"""

from _timing import cpu, line

import fts
from fts.fitting import fit_posterior
from fts.params.paper import DEVELOPMENT_SEEDS

NOISE, SEED = 0.05, DEVELOPMENT_SEEDS[0]


def main() -> None:
    """All figures."""
    for problem in ("ks", "kdv", "ad"):
        samples = fts.observe(fts.simulate(problem), "S20", seed=SEED, noise=NOISE)
        whole = cpu(lambda samples=samples: fts.discover(samples, progress=False), times=3)
        field = cpu(lambda samples=samples: fit_posterior(samples, progress=False), times=3)
        line(f"discover: {problem}-S20, {NOISE:.0%} noise", whole, field, "the fit alone")


if __name__ == "__main__":
    main()
