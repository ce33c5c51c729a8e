"""One iteration of DeepMoD beside the authors' release on the same samples, checks included, one thread.

The release needs an environment of its own (see `fts/baselines/training/deepymod_reference.py`); where it is
missing the peer is left out.
"""

import importlib.util
import os
from dataclasses import replace

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # read once, when NumPy and torch load

import numpy as np  # noqa: E402
from _timing import cpu, line  # noqa: E402

import fts  # noqa: E402
from fts.adapter.samples import one_thread  # noqa: E402
from fts.baselines.deepmod import DEEPMOD  # noqa: E402
from fts.baselines.training.deepmod import DeepMoDTraining  # noqa: E402
from fts.baselines.training.deepymod_reference import deepymod_reference  # noqa: E402

SEED = 42
ITERATIONS = 100


def main() -> None:
    """Print the figures."""
    here = importlib.util.find_spec("deepymod") is not None
    for name in ("kdv", "ad"):
        observations = fts.observe(fts.simulate(name), "S20", seed=SEED)
        library, params = fts.problem(name).library, DEEPMOD[name]
        with one_thread():
            training = DeepMoDTraining(
                observations,
                library,
                params,
                np.random.default_rng(SEED),
                calls=params.max_iterations,
            )

            def iterate(training: DeepMoDTraining = training) -> None:
                for _ in range(ITERATIONS):
                    training.step()

            ours = cpu(iterate, times=3) / ITERATIONS
        peer = None
        if here:
            short = replace(params, max_iterations=ITERATIONS)

            def release(observations=observations, library=library, short=short) -> None:
                deepymod_reference(observations, library, short, np.random.default_rng(SEED))

            peer = cpu(release, times=2) / ITERATIONS
        line(f"DeepMoD iteration, {name}, {params.samples} samples", ours, peer, "deepymod 2.2.0")


if __name__ == "__main__":
    main()
