"""Observations -> FrozenField by the paper's recipe (Section "Structured field adapter", Supplement A.3).

u_hat = b(x) + Phi(x)^T C (beta(t) - mean): a Swish network on fixed Fourier features gives background and
features at the distinct positions, splines the coefficients; both are descended on jointly, then frozen.
"""

import time
from collections.abc import Callable
from dataclasses import replace

from fts.adapter.batches import prepare
from fts.adapter.device import device, one_thread
from fts.adapter.setup import centered, deviation, generator, periods, refuse_misfit, settings
from fts.adapter.structured import Reconstruction, Structured
from fts.adapter.training import train
from fts.fields.frozen import FrozenField
from fts.fields.provenance import Provenance, describe
from fts.observations import Observations
from fts.params import AdapterParams, named

# (update, mean squared error over all observations, the field as it then stands)
Watcher = Callable[[int, float, Callable[[], FrozenField]], None]


def fit(
    observations: Observations,
    params: AdapterParams | None = None,
    *,
    seed: int | None = None,
    progress: bool = True,
    recipe: str = "paper",
    watch: Watcher | None = None,
) -> FrozenField:
    """The adapter trained on the observations and frozen.

    `params` are the paper's for the problem and `seed` is the observations' own unless they are given;
    `recipe` is what the field says of itself. Whoever watches the training cannot change it.
    """
    params = params or settings(observations)
    refuse_misfit(observations, params.model)
    began = time.perf_counter()
    # Softplus does not commute with a change of units: positive fields are trained in their own.
    unit = 1.0 if params.model.positive else deviation(observations)
    near, origin = centered(observations, positive=params.model.positive)
    with one_thread():
        samples = prepare(replace(near, y=near.y / unit), device())
        model = Structured(samples, near.domain, params, generator(observations, seed), periods(observations))

        def frozen(made: Provenance) -> FrozenField:
            return model.freeze(made, unit, observations.domain, origin)

        def told(update: int, error: float) -> None:
            if watch is not None:
                watch(update, error * unit**2, lambda: frozen(Provenance()))

        history = train(
            Reconstruction(model, samples, params),
            model.parameters,
            params.training,
            samples.variance,
            progress,
            told,
        )
        seconds = time.perf_counter() - began
        where, values = str(device()), named(params)
        made = describe(
            observations, recipe, values, seconds=seconds, device=where, seed=seed, history=history
        )
        return frozen(made)
