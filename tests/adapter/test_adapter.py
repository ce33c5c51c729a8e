"""Training: the paper's counts, gradients, schedules and stops; what is frozen is what was trained."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from fts.adapter import networks, paper, samples, training
from fts.adapter.networks import Encoding, Network
from fts.adapter.samples import Origin, device, one_thread
from fts.domain import Domain
from fts.fields import frozen
from fts.fields.frozen import CoordinateField, FrozenField, Provenance
from fts.fields.network import spline_basis
from fts.observations import Observations
from fts.params.paper import PAPER
from fts.params.types import AdapterParams, changed
from fts.problems.trajectories import observe, simulate

DOMAIN = Domain((0.0,), (2 * np.pi,), 0.0, 2.0, (True,))


def wave(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    return 1.5 + np.sin(x - t) + 0.3 * np.cos(2 * x + t)


def grid_observations(sensors: int = 30, frames: int = 20, factor: float = 1.0) -> Observations:
    x = np.linspace(0, 2 * np.pi, sensors, endpoint=False)
    t = np.linspace(0, 2, frames)
    X, T = (a.ravel() for a in np.meshgrid(x, t, indexing="ij"))
    return Observations(X[:, None], T, factor * wave(X, T), DOMAIN, seed=7)


def scattered_observations(n: int = 600) -> Observations:
    rng = np.random.default_rng(4)
    x, t = rng.uniform(0, 2 * np.pi, n), rng.uniform(0, 2, n)
    return Observations(x[:, None], t, wave(x, t), DOMAIN, seed=7)


def small(**changes: object) -> AdapterParams:
    base = changed(
        PAPER["ks"].adapter,
        rank=6,
        width=24,
        knots=4,
        epochs=400,
        learning_rate=5e-3,
        background_epochs=40,
        ramp_start=60,
        ramp_length=100,
        gram_points=64,
    )
    return changed(base, **changes)


def relative_error(field: FrozenField | CoordinateField) -> float:
    x, t = np.linspace(0, 2 * np.pi, 50), np.linspace(0, 2, 41)
    want = wave(x[:, None], t[None, :])
    return float(np.linalg.norm(field.on_grid(x, t) - want) / np.linalg.norm(want))


def build(
    observations: Observations, params: AdapterParams
) -> tuple[networks.Structured, networks.Reconstruction]:
    prepared = samples.prepare(observations, torch.device("cpu"))
    model = networks.Structured(prepared, observations.domain, params, torch.Generator().manual_seed(1))
    return model, networks.Reconstruction(model, prepared, params)


@pytest.mark.parametrize(("problem", "count"), [("kdv", 17_853), ("ks", 19_833), ("ad", 21_201)])
def test_parameter_counts_are_the_papers(problem, count) -> None:
    observations = observe(simulate(problem), "T20", seed=42)
    model, _ = build(observations, PAPER[problem].adapter)
    assert model.size == count
    dimension = observations.domain.dimension
    assert paper.parameter_count("structured", PAPER[problem].adapter.model, dimension) == count


def test_variant_widths_are_the_papers_on_ks() -> None:
    got = {}
    for variant in ("coordinate-fourier", "coordinate-raw", "coordinate-wide"):
        model = paper.variant_params(variant, PAPER["ks"].adapter, 1).model
        got[variant] = (model.width, paper.parameter_count(variant, model, 1))
    assert got == {
        "coordinate-fourier": (72, 19_873),
        "coordinate-raw": (98, 19_797),
        "coordinate-wide": (128, 49_665),
    }


@pytest.mark.parametrize("make", [grid_observations, scattered_observations])
def test_field_is_learned(make) -> None:
    field = paper.fit(make(), small(), progress=False)
    assert relative_error(field) < 0.03


def test_grid_and_scattered_code_give_the_same_gradient() -> None:
    observations = grid_observations()
    params = small(frames_per_update=20)
    model, objective = build(observations, params)
    hidden = replace(observations)
    hidden.__dict__["grid"] = None  # the same samples, with their grid forgotten
    other, scattered = build(hidden, params)
    for m in (model, other):
        with torch.no_grad():
            m.C.copy_(torch.linspace(-1, 1, m.C.numel()).view(m.C.shape))
    first, second = objective(50), scattered(50)
    assert first is not None
    assert second is not None
    assert first.item() == pytest.approx(second.item(), rel=1e-5)
    for left, two in zip(model.parameters, other.parameters, strict=True):
        torch.testing.assert_close(left.grad, two.grad, rtol=1e-4, atol=1e-6)


def test_monitored_error_is_that_of_all_observations() -> None:
    observations = grid_observations(frames=50)
    model, objective = build(observations, small())
    with torch.no_grad():
        model.C.normal_(generator=model.rng)
    error = objective(200)
    assert error is not None
    field = model.freeze(Provenance(), 1.0, observations.domain, Origin((0.0,), 0.0))
    prediction = field(np.column_stack([observations.x, observations.t]))
    assert error.item() == pytest.approx(np.mean((prediction - observations.y) ** 2), rel=1e-4)


def test_background_phase_leaves_c_at_zero() -> None:
    field = paper.fit(grid_observations(), small(epochs=40, keep="terminal"), progress=False)
    assert not field.time.C.any()
    mean = wave(np.linspace(0, 6, 9)[:, None], np.linspace(0, 2, 20)[None, :]).mean(axis=1)
    # Only the background moved, towards the mean over the observed times.
    before = paper.fit(grid_observations(), small(epochs=1, keep="terminal"), progress=False)
    x, t = np.linspace(0, 6, 9), np.array([1.0])
    errors = [np.linalg.norm(f.on_grid(x, t)[:, 0] - mean) for f in (before, field)]
    assert errors[1] < errors[0] / 4


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("make", [grid_observations, scattered_observations])
def test_gradient_is_that_of_the_papers_objective(make, positive) -> None:
    params = small(
        frames_per_update=10**6, positive=positive, lam_phi=0.3, lam_t=0.2, cap_phi=0.15, cap_t=0.25
    )
    observations, update = make(), 110  # half way up the ramp
    model, objective = build(observations, params)
    with torch.no_grad():
        model.C.normal_(generator=model.rng)
    state = model.rng.get_state()
    objective(update)
    # The paper's formula, sample by sample, on the Gram points that were drawn.
    model.rng.set_state(state)
    samples_, network = objective.samples, model.network
    outputs = network(network.encoding(samples_.positions))
    features = network(network.encoding(model.gram_points()))[:, 1:]
    C = model.C.detach().clone().requires_grad_()
    prediction = outputs[samples_.row, 0] + (
        outputs[samples_.row, 1:] * (C @ model.basis).T[samples_.column]
    ).sum(1)
    if positive:
        prediction = torch.nn.functional.softplus(prediction)
    loss = (prediction - samples_.y).square().mean()
    observed = loss.item()
    gram = (features.T @ features / len(features) - torch.eye(params.model.rank)).square().sum()
    curvature = torch.trace(C @ model.curvature @ C.T)
    for penalty, cap in (
        (0.5 * params.penalties.lam_phi * gram, params.penalties.cap_phi),
        (0.5 * params.penalties.lam_t * curvature, params.penalties.cap_t),
    ):
        loss = loss + penalty * min(1.0, cap * observed / penalty.item())
    wanted = torch.autograd.grad(loss, [*network.parameters, C])
    got = [part.grad for part in model.parameters]
    for ours, theirs in zip(got, wanted, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-6)


def test_units_that_fill_up_a_layer_stay_at_zero() -> None:
    """Twenty-one units are stored as twenty-four; after training three are still nothing."""
    field = paper.fit_variant(grid_observations(), "coordinate-raw", small(epochs=60), progress=False)
    assert field.network.weights[1].shape == (field.made.parameters["width"],) * 2
    rng = torch.Generator().manual_seed(3)
    network = Network(Encoding(torch.randn(4, 2, generator=rng), 1.0), 21, 2, 1, rng)
    optimizer = torch.optim.AdamW(network.parameters, lr=0.1, weight_decay=0.1)
    x = torch.randn(50, 8, generator=rng)
    for _ in range(5):
        optimizer.zero_grad()
        network(x).square().sum().backward()
        optimizer.step()
    assert network.size == 8 * 21 + 21 + 21 * 21 + 21 + 21 + 1
    assert sum(int((part != 0).sum()) for part in network.parameters) == network.size
    z = x
    for weight, bias in network.layers[:-1]:
        z = torch.nn.functional.silu(z @ weight.T + bias)
    alone = z @ network.layers[-1][0].T + network.layers[-1][1]
    torch.testing.assert_close(network(x).detach(), alone)


@pytest.mark.parametrize(("value", "limit", "pull"), [(9.0, 0.9, 0.1), (9.0, 100.0, 1.0), (0.0, 0.0, 0.0)])
def test_capped_penalty_keeps_pulling(value, limit, pull) -> None:
    penalty = torch.tensor(value, requires_grad=True)
    capped = networks.capped(penalty, torch.tensor(limit))
    assert capped.item() == pytest.approx(min(value, limit))
    assert torch.autograd.grad(capped, penalty)[0].item() == pytest.approx(pull)


def test_penalties_ramp_linearly() -> None:
    params = small()
    start, length = params.penalties.ramp_start, params.penalties.ramp_length
    _, objective = build(grid_observations(), params)
    assert objective._ramp(start) == 0.0
    assert objective._ramp(start + length // 2) == 0.5
    assert objective._ramp(start + 10 * length) == 1.0
    _, unpenalized = build(grid_observations(), changed(params, lam_phi=0.0, lam_t=0.0))
    assert unpenalized._ramp(10**6) == 0.0


def test_curvature_gram_integrates_the_second_derivative() -> None:
    params = small(curvature_points=4000)
    gram = networks.curvature_gram(params, (0.0, 2.0))
    t = np.linspace(0, 2, 60)
    basis = spline_basis(t, params.model.splines, (0.0, 2.0))
    c, *_ = np.linalg.lstsq(basis, t**3, rcond=None)
    # integral of (6 t)^2 over [0, 2] is 96
    assert c @ gram @ c == pytest.approx(96.0, rel=1e-2)


def test_same_seed_same_field_other_seed_other_field() -> None:
    observations, params = grid_observations(), small(epochs=60)
    first, second = (paper.fit(observations, params, progress=False) for _ in range(2))
    other = paper.fit(observations, params, seed=8, progress=False)
    for left, two in zip(first.space.weights, second.space.weights, strict=True):
        np.testing.assert_array_equal(left, two)
    np.testing.assert_array_equal(first.time.C, second.time.C)
    assert not np.array_equal(first.space.frequencies, other.space.frequencies)


def test_units_do_not_matter() -> None:
    params = small(epochs=60)
    fitted = paper.fit(grid_observations(), params, progress=False)
    thousand = paper.fit(grid_observations(factor=1000.0), params, progress=False)
    axes = (np.linspace(0, 6, 20), np.linspace(0, 2, 15))
    np.testing.assert_allclose(1000 * fitted.on_grid(*axes), thousand.on_grid(*axes), rtol=2e-3, atol=1.0)


def test_best_iterate_is_kept_and_terminal_is_the_last() -> None:
    observations = grid_observations()
    # A learning rate that overshoots: the last iterate is not the best one.
    params = small(epochs=150, learning_rate=0.1, frames_per_update=4)
    best = paper.fit(observations, params, progress=False)
    last = paper.fit(observations, changed(params, keep="terminal"), progress=False)
    assert last.made.history.kept == 150
    assert best.made.history.error <= last.made.history.error
    points = np.column_stack([observations.x, observations.t])
    variance = observations.y.var()
    for field in (best, last):
        error = np.mean((field(points) - observations.y) ** 2) / variance
        assert error == pytest.approx(field.made.history.error, rel=1e-3)


def test_patience_stops_a_run_that_no_longer_improves() -> None:
    params = small(patience=30, min_decrease=10.0, background_epochs=50)
    field = paper.fit(grid_observations(), params, progress=False)
    assert field.made.history.updates == 80
    assert (
        paper.fit(
            grid_observations(), changed(params, patience=0, epochs=90), progress=False
        ).made.history.updates
        == 90
    )


class _Line:
    """An objective that is no field: a line through three points; `idle` is not part of its loss."""

    def __init__(self) -> None:
        self.module = torch.nn.Linear(1, 1)
        self.idle = torch.ones(3, requires_grad=True)
        self.x = torch.tensor([[0.0], [1.0], [2.0]])

    def __call__(self, update: int) -> torch.Tensor:
        loss = self._loss()
        loss.backward()
        return loss.detach()

    def observation_error(self) -> torch.Tensor:
        return self._loss().detach()

    def _loss(self) -> torch.Tensor:
        return (self.module(self.x) - (2 * self.x - 1)).square().mean()


def test_loop_trains_any_module_and_leaves_idle_parameters_alone() -> None:
    line = _Line()
    params = replace(
        small().training, epochs=800, learning_rate=0.1, weight_decay=0.01, clip=10.0, background_epochs=0
    )
    history = training.train(line, [*line.module.parameters(), line.idle], params, 1.0, False)
    assert line.module.weight.item() == pytest.approx(2.0, abs=0.02)
    assert line.module.bias.item() == pytest.approx(-1.0, abs=0.02)
    assert history.error == line.observation_error().item()
    assert line.idle.tolist() == [1.0, 1.0, 1.0]


def test_divergence_names_the_update_and_the_cause() -> None:
    with pytest.raises(ValueError, match=r"at update \d+.*learning_rate"):
        paper.fit(grid_observations(), small(learning_rate=1e30, clip=1e30), progress=False)


def test_interruption_passes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: networks.Reconstruction, update: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(networks.Reconstruction, "__call__", interrupted)
    before = torch.get_num_threads()
    with pytest.raises(KeyboardInterrupt):
        paper.fit(grid_observations(), small(), progress=False)
    assert torch.get_num_threads() == before


def test_too_few_data_are_refused() -> None:
    with pytest.raises(ValueError, match="5 positions cannot carry 6"):
        paper.fit(grid_observations(sensors=5), small(), progress=False)
    constant = replace(grid_observations(), y=np.full(600, 2.0))
    with pytest.raises(ValueError, match="no field to fit"):
        paper.fit(constant, small(), progress=False)


def test_positive_field_stays_positive(tmp_path: Path) -> None:
    field = paper.fit(grid_observations(), small(positive=True), progress=False)
    assert relative_error(field) < 0.05
    assert field.on_grid(np.linspace(-9, 9, 200), np.linspace(0, 2, 30)).min() > 0


def test_user_data_get_settings_scaled_to_their_domain() -> None:
    observations = observe(simulate("ks"), "S20", seed=42)
    assert samples.settings(observations) == PAPER["ks"].adapter
    # Without a name the same data are given nearly the scale the paper gives them.
    anonymous = samples.settings(replace(observations, problem=None))
    assert 0.5 <= anonymous.model.coordinate_scale / PAPER["ks"].adapter.model.coordinate_scale <= 2
    trajectory = simulate("ks")
    chosen = np.random.default_rng(0).choice(trajectory.u.size, 8000, replace=False)
    i, j = np.unravel_index(chosen, trajectory.u.shape)
    x, t, y = trajectory.axes[0][i][:, None], trajectory.t[j], trajectory.u[i, j]
    scattered = samples.settings(Observations(x, t, y, trajectory.domain))
    assert 0.5 <= scattered.model.coordinate_scale / PAPER["ks"].adapter.model.coordinate_scale <= 2
    # A longer unit of length is a smaller scale.
    kilo = Domain((0.0,), (2000 * np.pi,), 0.0, 2.0, (True,))
    for make in (grid_observations, scattered_observations):
        near = make()
        far = replace(near, x=1000 * near.x, domain=kilo)
        ratio = samples.settings(near).model.coordinate_scale / samples.settings(far).model.coordinate_scale
        assert ratio == pytest.approx(1000)


@pytest.mark.parametrize("variant", paper.VARIANTS)
def test_variants_train_freeze_and_load(variant, tmp_path: Path) -> None:
    params = small(epochs=150, frames_per_update=10)
    field = paper.fit_variant(grid_observations(), variant, params, progress=False)
    assert field.made.recipe == variant
    assert field.made.history.error < field.made.history.losses[0][1] / 4
    field.save(tmp_path / "field.fts")
    again = frozen.load(tmp_path / "field.fts")
    assert type(again) is type(field)
    axes = (np.linspace(0, 6, 11), np.linspace(0, 2, 7))
    np.testing.assert_array_equal(again.on_grid(*axes), field.on_grid(*axes))


def test_slow_features_differ_in_time_alone() -> None:
    params = small(epochs=1, background_epochs=0, fourier_rows=8)
    even, slow = (
        paper.fit_variant(grid_observations(), variant, params, progress=False).network.frequencies
        for variant in ("coordinate-fourier", "coordinate-slow")
    )
    np.testing.assert_array_equal(slow[:, 0], even[:, 0])
    ratio = slow[:, 1] / even[:, 1]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-6)
    assert ratio[0] < 0.5


@cache
def _benchmark(problem: str) -> Observations:
    return observe(simulate(problem), "S20", seed=42)


@pytest.mark.slow
@pytest.mark.parametrize("problem", ["kdv", "ks", "ad"])
@pytest.mark.parametrize("variant", paper.VARIANTS)
def test_variants_learn_the_benchmarks(problem, variant) -> None:
    observations = _benchmark(problem)
    schedule = {"epochs": 40, "background_epochs": 7, "ramp_start": 10, "ramp_length": 13}
    params = changed(PAPER[problem].adapter, learning_rate=3e-3, **schedule)
    field = paper.fit_variant(observations, variant, params, progress=False)
    assert field.made.history.error < field.made.history.losses[0][1]
    count = paper.parameter_count(
        variant,
        paper.variant_params(variant, params, observations.domain.dimension).model,
        observations.domain.dimension,
    )
    full = paper.parameter_count("structured", params.model, observations.domain.dimension)
    assert variant == "coordinate-wide" or abs(count - full) < 0.02 * full


def test_unknown_variant_is_refused() -> None:
    with pytest.raises(ValueError, match="choose one of"):
        paper.fit_variant.__wrapped__(grid_observations(), "deep")  # type: ignore[attr-defined]


def test_coordinate_field_differentiates() -> None:
    params = small(epochs=30)
    field = paper.fit_variant(grid_observations(), "coordinate-fourier", params, progress=False)
    assert isinstance(field, CoordinateField)
    points = np.random.default_rng(0).uniform((0, 0.1), (6, 1.9), size=(30, 2))
    h = 1e-4
    for axis, (alpha, order) in enumerate([((1,), 0), ((0,), 1)]):
        step = h * np.eye(2)[axis]
        slope = (field(points + step) - field(points - step)) / (2 * h)
        np.testing.assert_allclose(field.derivative(points, alpha, order), slope, rtol=1e-5, atol=1e-7)


def test_coordinate_field_on_a_grid_is_the_field_at_its_points() -> None:
    params = small(epochs=30)
    for variant in ("coordinate-fourier", "coordinate-raw"):
        field = paper.fit_variant(grid_observations(), variant, params, progress=False)
        x, t = np.linspace(0, 6, 37), np.linspace(0.1, 1.9, 29)
        points = np.stack(np.meshgrid(x, t, indexing="ij"), axis=-1).reshape(-1, 2)
        values = field(points)
        np.testing.assert_allclose(field.on_grid(x, t).ravel(), values, atol=1e-5 * np.abs(values).max())
        assert isinstance(field, CoordinateField)
        double = field.network.on_axes((x, t), (0, 0))[:, 0]
        np.testing.assert_allclose(double, values, rtol=1e-11, atol=1e-12)


def test_threads_and_device_are_the_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_num_threads()
    with one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
    monkeypatch.setenv("FTS_DEVICE", "cpu")
    assert device().type == "cpu"
    monkeypatch.setenv("FTS_DEVICE", "abacus")
    with pytest.raises(ValueError, match="set it to cpu"):
        device()


def test_progress_is_silent_when_told(capfd: pytest.CaptureFixture[str]) -> None:
    paper.fit(grid_observations(), small(epochs=30), progress=False)
    paper.fit(grid_observations(), small(epochs=30), progress=True)  # over before a bar would be drawn
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err.strip() == ""


def test_bar_shows_loss_when_a_run_is_long(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "_BAR_DELAY", 0.0)
    paper.fit(grid_observations(), small(epochs=120), progress=True)
    assert "loss=" in capfd.readouterr().err


def test_offsets_do_not_matter() -> None:
    """The mean is taken off and coordinates are centered before anything is rounded to single precision."""
    observations, shift, origin = grid_observations(), 300.0, 1e6
    domain = observations.domain
    moved = replace(domain, low=(domain.low[0] + origin,), high=(domain.high[0] + origin,))
    far = replace(observations, x=observations.x + origin, y=observations.y + shift, domain=moved)
    near, there = (paper.fit(o, small(), progress=False) for o in (observations, far))
    x, t = np.linspace(0.1, 6, 20), np.linspace(domain.t0, domain.t1, 15)
    np.testing.assert_allclose(there.on_grid(x + origin, t) - shift, near.on_grid(x, t), atol=0.05)
