"""Training the field adapter: what factorization saves, how much of the machine it uses, seconds a field."""

import importlib.util
import multiprocessing
import os
import time
from itertools import pairwise

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import torch  # noqa: E402
from _timing import cpu, line  # noqa: E402

import fts  # noqa: E402
from fts.adapter import networks, paper, projected, samples  # noqa: E402
from fts.params.paper import PAPER  # noqa: E402
from fts.params.types import AdapterParams, changed  # noqa: E402

# A development seed; an update with full penalties, as most updates are.
SEED, EARLY, UPDATE = 42, 500, 3000


def main() -> None:
    """One line per figure."""
    torch.set_num_threads(1)
    params = PAPER["ks"].adapter
    observations = fts.observe(fts.simulate("ks"), "S20", seed=SEED)
    prepared = samples.prepare(observations, torch.device("cpu"))
    model = networks.Structured(prepared, observations.domain, params, torch.Generator().manual_seed(SEED))
    objective = networks.Reconstruction(model, prepared, params)
    with torch.no_grad():
        model.C.normal_(generator=model.rng)
    factorized = cpu(lambda: objective(UPDATE), times=200)
    pointwise = cpu(lambda: _pointwise(model, prepared, params).backward(), times=40)
    monitored = cpu(lambda: _pointwise_error(model, prepared), times=5)
    line(
        "KS-S20 update with the error of all observations",
        factorized,
        pointwise + monitored,
        "point by point",
    )
    line("  the same against an update that takes no error", factorized, pointwise, "point by point")
    early = cpu(lambda: objective(EARLY), times=200)
    pointwise = cpu(lambda: _pointwise_loss(model, prepared, params).backward(), times=40)
    line("  the same before the penalties: no Gram points", early, pointwise, "point by point")
    _network_rate(model, objective, params)
    _full_budget(observations, params)
    _two_at_once(observations, params)
    _deepymod(factorized)


def _pointwise_loss(
    model: networks.Structured, prepared: samples.Samples, params: AdapterParams
) -> torch.Tensor:
    """The observation loss with the network called at every sample of the 32 frames."""
    frames = prepared.draw_frames(params.training.frames_per_update, model.rng)
    chosen = prepared.of_frames(frames)
    outputs = model.network(model.network.encoding(prepared.positions[prepared.row[chosen]]))
    time_part = (model.C @ model.basis).T[prepared.column[chosen]]
    return (outputs[:, 0] + (outputs[:, 1:] * time_part).sum(1) - prepared.y[chosen]).square().mean()


def _pointwise(model: networks.Structured, prepared: samples.Samples, params: AdapterParams) -> torch.Tensor:
    """The same with both penalties."""
    gram = model.network(model.network.encoding(model.gram_points()))[:, 1:]
    deviation = gram.T @ gram / len(gram) - torch.eye(params.model.rank)
    curvature = torch.sum((model.C @ model.curvature) * model.C)
    weights = params.penalties
    penalties = weights.lam_phi * deviation.square().sum() + weights.lam_t * curvature
    return _pointwise_loss(model, prepared, params) + penalties


def _pointwise_error(model: networks.Structured, prepared: samples.Samples) -> torch.Tensor:
    """The error over all observations that every factorized update gives away, at every sample."""
    total = torch.zeros(())
    with torch.no_grad():
        for row, column, y in zip(
            *(a.split(8192) for a in (prepared.row, prepared.column, prepared.y)), strict=True
        ):
            outputs = model.network(model.network.encoding(prepared.positions[row]))
            time_part = (model.C @ model.basis).T[column]
            total += (outputs[:, 0] + (outputs[:, 1:] * time_part).sum(1) - y).square().sum()
    return total / len(prepared.y)


def _network_rate(
    model: networks.Structured, objective: networks.Reconstruction, params: AdapterParams
) -> None:
    network, shape = model.network, params.model
    inputs = torch.cat([objective.encoded, network.encoding(model.gram_points())])
    upstream = torch.ones(len(inputs), shape.rank + 1)
    seconds = cpu(lambda: network(inputs).backward(upstream), times=200)
    sizes = [network.encoding.outputs, *[shape.width] * shape.depth, shape.rank + 1]
    layers = [a * b for a, b in pairwise(sizes)]
    # Forward, weight gradients, and the gradients passed down, which the first layer need not form.
    operations = 2 * len(inputs) * (3 * sum(layers) - layers[0])
    a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
    own = operations / seconds
    peak = 2 * 1024**3 / cpu(lambda: a @ b, times=10)
    name = "network part, forward and backward"
    print(
        f"{name:<52} {own / 1e9:10.1f} GFLOP/s  sgemm 1024 {peak / 1e9:6.1f} GFLOP/s  ratio {own / peak:6.2f}"
    )


def _full_budget(observations: fts.Observations, params: AdapterParams) -> None:
    # CPU seconds of the budget, from a tenth of it with the same share of every phase.
    tenth = changed(
        params,
        epochs=params.training.epochs // 10,
        background_epochs=params.training.background_epochs // 10,
        ramp_start=params.penalties.ramp_start // 10,
        ramp_length=params.penalties.ramp_length // 10,
    )
    theirs = 10 * cpu(lambda: paper.fit(observations, tenth, progress=False), times=1)
    ours = cpu(lambda: projected.fit(observations, progress=False), times=1)
    line("KS-S20 field, projected", ours, theirs, "paper's recipe")


def _two_at_once(observations: fts.Observations, params: AdapterParams) -> None:
    context = multiprocessing.get_context("spawn")
    seconds = []
    for count in (1, 2):
        with context.Pool(count) as pool:
            pool.map(_short_fit, [(observations, params, 20)] * count)  # imports, caches
            began = time.perf_counter()
            pool.map(_short_fit, [(observations, params, 600)] * count, chunksize=1)
            seconds.append(time.perf_counter() - began)
    line("two seeds on two processes, wall clock", seconds[1], seconds[0], "one seed")


def _short_fit(job: tuple[fts.Observations, AdapterParams, int]) -> None:
    observations, params, epochs = job
    paper.fit(observations, changed(params, epochs=epochs, patience=0), progress=False)


def _deepymod(update: float) -> None:
    name = "one update beside one DeePyMoD iteration"
    if importlib.util.find_spec("deepymod") is None:
        print(f"{name:<52} {update * 1e3:10.2f} ms  deepymod==2.2.0 and setuptools<81 missing")
        return
    line(name, update, _deepymod_iteration(), "deepymod 2.2.0")


def _deepymod_iteration() -> float:
    """Seconds of one DeePyMoD iteration on 2,000 samples: network, library to fourth order, constraint."""
    from deepymod.model.constraint import LeastSquares
    from deepymod.model.func_approx import NN
    from deepymod.model.library import Library1D

    network, library = NN(2, [30, 30, 30, 30], 1), Library1D(poly_order=3, diff_order=4)
    constraint = LeastSquares()
    inputs, target = torch.rand(2000, 2), torch.rand(2000, 1)

    def iteration() -> None:
        prediction, coordinates = network(inputs)
        derivatives, thetas = library((prediction, coordinates))
        constraint.sparsity_masks = [torch.ones(thetas[0].shape[1], dtype=torch.bool)]
        constraint((derivatives, thetas))
        residual = derivatives[0] - thetas[0] @ constraint.coeff_vectors[0]
        (torch.mean((prediction - target) ** 2) + torch.mean(residual**2)).backward()

    return cpu(iteration, times=10)


if __name__ == "__main__":
    main()
