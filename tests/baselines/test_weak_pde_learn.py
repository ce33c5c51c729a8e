"""Weak-PDE-LEARN: its weak system is made of integrals, its training can be watched and resumed."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from scipy.integrate import quad

from fts.baselines.training import weak_pde_learn as weak_training
from fts.baselines.training.loop import Checkpoint, train
from fts.baselines.training.weak_pde_learn import (
    Bumps,
    RationalField,
    RationalNetwork,
    WeakTraining,
    weak_pde_learn,
)
from fts.baselines.weak_pde_learn import WeakFormParams, WeakPDELearnParams
from fts.domain import Domain
from fts.equations.terms import Library
from fts.observations import Observations

DOMAIN = Domain((-1.0,), (2.0,), 0.0, 2.0, (False,))
LIBRARY = Library.parse(["1", "u", "u^2", "u*u_x", "u_x", "u_xx"])
TINY = WeakPDELearnParams(
    width=8,
    depth=2,
    batch=100,
    weak=WeakFormParams(
        quadrature=(24, 20),
        functions=30,
        held_out_functions=10,
        refresh=5,
        radius="shortest",
        fractions=(0.2, 0.3),
        margin=5e-4,
        steepness=5.0,
        deviations=3.0,
    ),
    learning_rate=1e-3,
    data_weight=1.0,
    weak_weight=1.0,
    penalty_weight=2e-4,
    penalty_power=0.1,
    penalty_floor=1e-7,
    size_weight=5e-6,
    burn_in=23,
    sparsification=17,
    threshold=1e-3,
    watch_every=3,
)
WIDE = replace(TINY.weak, radius="per axis")


def travelling(n: int = 400, speed: float = 1.0) -> Observations:
    """Samples of sin(x - speed t), which solves u_t = -speed u_x."""
    rng = np.random.default_rng(1)
    x, t = rng.uniform(-1, 2, (n, 1)), rng.uniform(0, 2, n)
    return Observations(x, t, np.sin(x[:, 0] - speed * t), DOMAIN)


@pytest.mark.parametrize("order", range(5))
def test_derivatives_of_a_bump_are_derivatives(order: int) -> None:
    s = np.linspace(-0.95, 0.95, 41)
    h = 1e-5
    exact = weak_training.bump_derivatives(s, 5.0, order + 1)
    low, high = (weak_training.bump_derivatives(s + step, 5.0, order)[order] for step in (-h, h))
    np.testing.assert_allclose((high - low) / (2 * h), exact[order + 1], rtol=1e-5, atol=1e-5)
    assert exact[0].max() == weak_training.bump_derivatives(np.zeros(1), 5.0, 0)[0, 0] == 1.0
    assert not weak_training.bump_derivatives(np.array([-1.0, 1.0, 1.5]), 5.0, 4).any()


@pytest.mark.parametrize("radius", ["shortest", "per axis"])
def test_supports_lie_in_the_box(radius: Literal["shortest", "per axis"], rng: np.random.Generator) -> None:
    domain = Domain((0.0, -3.0), (10.0, 3.0), 1.0, 3.0, (True, False))
    bumps = weak_training.draw_bumps(domain, 500, replace(TINY.weak, radius=radius), rng)
    low, high = np.array([0.0, -3.0, 1.0]), np.array([10.0, 3.0, 3.0])
    assert (bumps.centers - bumps.radii >= low + 5e-4 - 1e-12).all()
    assert (bumps.centers + bumps.radii <= high - 5e-4 + 1e-12).all()
    sides = np.full(3, 2.0) if radius == "shortest" else high - low
    assert ((bumps.radii / sides >= 0.2) & (bumps.radii / sides <= 0.3)).all()


def test_the_weak_system_is_made_of_integrals(rng: np.random.Generator) -> None:
    bumps = weak_training.draw_bumps(DOMAIN, 3, WIDE, rng)
    axes = weak_training.quadrature_axes(DOMAIN, (192, 128))
    x, t = np.meshgrid(*axes, indexing="ij")
    u = torch.from_numpy((np.exp(0.3 * x) * np.cos(t)).astype(np.float32))
    parts = weak_training.factors(bumps, axes, weak_training.highest_orders(LIBRARY, 1), 5.0)
    A, b = weak_training.weak_system(u, parts, weak_training.plan(LIBRARY, 1))
    space = [
        lambda x: 1.0,
        lambda x: np.exp(0.3 * x),
        lambda x: np.exp(0.6 * x),
        lambda x: 0.6 * np.exp(0.6 * x),
    ]
    space += [lambda x: 0.3 * np.exp(0.3 * x), lambda x: 0.09 * np.exp(0.3 * x)]
    in_time = [lambda t: 1.0, np.cos, lambda t: np.cos(t) ** 2, lambda t: np.cos(t) ** 2, np.cos, np.cos]
    for row in range(3):
        for column, (first, other) in enumerate(zip(space, in_time, strict=True)):
            wanted = _integral(bumps, row, 0, first) * _integral(bumps, row, 1, other)
            assert float(A[row, column]) == pytest.approx(wanted, rel=1e-3, abs=1e-5)
        wanted = _integral(bumps, row, 0, space[1]) * _integral(bumps, row, 1, lambda t: -np.sin(t))
        assert float(b[row]) == pytest.approx(wanted, rel=1e-3, abs=1e-5)


def _integral(bumps: Bumps, row: int, axis: int, function) -> float:
    c, r = bumps.centers[row, axis], bumps.radii[row, axis]

    def inner(z: float) -> float:
        return function(z) * weak_training.bump_derivatives(np.array((z - c) / r), 5.0, 0)[0]

    return quad(inner, c - r, c + r)[0]


def test_the_weak_system_in_the_plane_is_the_products_of_lines(rng: np.random.Generator) -> None:
    domain = Domain((-1.0, 0.0), (2.0, 2.0), 0.0, 2.0, (False, False))
    library = Library.parse(["u_x", "u_yy", "u^2"])
    bumps = weak_training.draw_bumps(domain, 4, WIDE, rng)
    axes = weak_training.quadrature_axes(domain, (20, 22, 18))
    f, g, h = (rng.standard_normal(axis.size) for axis in axes)
    u = torch.from_numpy(np.einsum("i,j,k->ijk", f, g, h).astype(np.float32))
    parts = weak_training.factors(bumps, axes, weak_training.highest_orders(library, 2), 5.0)
    A, b = weak_training.weak_system(u, parts, weak_training.plan(library, 2))
    x, y, t = (part.numpy().astype(float) for part in parts)
    np.testing.assert_allclose(A[:, 0], -(f @ x[1]) * (g @ y[0]) * (h @ t[0]), rtol=2e-4, atol=1e-4)
    np.testing.assert_allclose(A[:, 1], (f @ x[0]) * (g @ y[2]) * (h @ t[0]), rtol=2e-4, atol=2e-3)
    np.testing.assert_allclose(A[:, 2], (f**2 @ x[0]) * (g**2 @ y[0]) * (h**2 @ t[0]), rtol=2e-4, atol=1e-4)
    np.testing.assert_allclose(b, -(f @ x[0]) * (g @ y[0]) * (h @ t[1]), rtol=2e-4, atol=1e-4)


def test_functions_that_are_no_polynomials_are_refused() -> None:
    with pytest.raises(ValueError, match="no polynomial"):
        weak_training.plan(Library.parse(["sin(u)"]), 1)


def test_a_field_is_the_network_it_was_frozen_from(rng: np.random.Generator) -> None:
    network = RationalNetwork(2, 8, 2)
    theta = network.draw(rng)
    field = RationalField(network, theta, DOMAIN)
    axes = np.linspace(-1, 2, 7), np.linspace(0, 2, 5)
    points = np.array([[t, x] for x in axes[0] for t in axes[1]])
    values = network.values(torch.from_numpy(theta), torch.from_numpy(points)).numpy().reshape(7, 5)
    np.testing.assert_allclose(field.on_grid(*axes), values, rtol=1e-12)
    # The activations start near max(z, 0).
    a, b = theta[:4], theta[8:11]
    z = np.linspace(-1, 1, 50)
    assert np.abs(np.polyval(a[::-1], z) / np.polyval(b[::-1], z) - np.maximum(z, 0)).max() < 0.03


def final(
    params: WeakPDELearnParams = TINY,
    checkpoint: Checkpoint | None = None,
    callback=None,
    library=LIBRARY,
    seed: int = 5,
) -> WeakTraining:
    def make(rng: np.random.Generator) -> WeakTraining:
        return WeakTraining(travelling(), library, params, rng, callback)

    return train(make, np.random.default_rng(seed), checkpoint)[0]


def same(first: WeakTraining, other: WeakTraining) -> bool:
    pairs = [(first.physical(), other.physical()), (first.alive, other.alive)]
    pairs += [(first.freeze().theta, other.freeze().theta), (first.refit, other.refit)]
    return all((a == b).all() for a, b in pairs) and first.losses == other.losses


def test_watching_changes_nothing() -> None:
    seen: list[tuple[int, Mapping[str, float], np.ndarray, np.ndarray, RationalField]] = []
    watched = final(callback=lambda *what: seen.append(what))
    assert same(watched, final())
    assert [epoch for epoch, *_ in seen] == [*range(1, 41)]
    assert all({"loss", "data", "weak"} <= losses.keys() for _, losses, *_ in seen)
    np.testing.assert_array_equal(seen[-1][2], watched.physical())
    np.testing.assert_array_equal(seen[-1][4].theta, watched.freeze().theta)
    assert seen[0][3].all()
    # Held-out test functions are the epoch's own, not those of training.
    held_out = {epoch: losses["held_out"] for epoch, losses, *_ in seen if "held_out" in losses}
    assert list(held_out) == [*range(3, 40, 3), 40]
    assert len(set(held_out.values())) == len(held_out)


def test_another_seed_gives_another_run() -> None:
    assert not same(final(), final(seed=6))


class _Stop(Exception):
    pass


@pytest.mark.parametrize("when", [9, 24, 39])
def test_a_resumed_training_ends_in_the_same_bits(tmp_path: Path, when: int) -> None:
    kept = Checkpoint(tmp_path / "state.fts", "run")

    def stop(epoch: int, *_: object) -> None:
        if epoch == when:
            raise _Stop

    with pytest.raises(_Stop):
        final(checkpoint=kept, callback=stop)
    assert same(final(checkpoint=kept), final())
    # A finished training is read back whole.
    assert same(final(checkpoint=kept), final())


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.fts"
    shorter = replace(TINY, burn_in=3, sparsification=2)
    rng = np.random.default_rng(0)
    weak_pde_learn(travelling(), LIBRARY, shorter, rng, checkpoint=path)
    with pytest.raises(ValueError, match="another run"):
        weak_pde_learn(travelling(), LIBRARY, TINY, rng, checkpoint=path)


def test_carried_functions_fit_into_the_padding() -> None:
    training = weak_training.WeakTraining(travelling(), LIBRARY, TINY, np.random.default_rng(0))
    for _ in range(30):
        training.step()
        count = len(training.present)
        assert TINY.weak.functions <= count <= TINY.weak.functions + 3
        fresh = weak_training.factors(training.present, training.axes, training.orders, 5.0)
        for part, wanted in zip(training.parts, fresh, strict=True):
            np.testing.assert_array_equal(part[..., :count], wanted)
            assert not part[..., count:].any()


def test_terms_leave_for_good_when_the_penalty_begins() -> None:
    # Adam's steps have the size of its rate: after burn_in steps no coefficient is beyond burn_in * rate.
    strict = replace(TINY, threshold=1.5 * TINY.burn_in * TINY.learning_rate)
    seen = {}
    final(strict, callback=lambda epoch, losses, xi, alive, field: seen.update({epoch: (xi, alive)}))
    alive = seen[21][1], seen[24][1]
    assert alive[0].all()
    assert not alive[1][[0, 1, 2, 4, 5]].any()
    assert not seen[40][0][~alive[1]].any()
    selection = weak_pde_learn(
        travelling(), LIBRARY, replace(strict, threshold=1.0), np.random.default_rng(0)
    )
    assert selection.support == ()


def test_the_scale_of_a_term_is_not_part_of_its_column() -> None:
    doubled = Library.parse(["1", "u", "u^2", "D_x(u^2)", "u_x", "u_xx"])
    first, other = final(), final(library=doubled)
    first, other = first.physical(), other.physical()
    np.testing.assert_allclose(first[3], 2 * other[3], rtol=1e-12)
    np.testing.assert_array_equal(np.delete(first, 3), np.delete(other, 3))


def test_a_network_that_diverges_is_drawn_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = []

    def draw(self: RationalNetwork, rng: np.random.Generator) -> np.ndarray:
        draws.append(original(self, rng))
        return draws[-1] * (np.nan if len(draws) == 1 else 1.0)

    original = RationalNetwork.draw
    monkeypatch.setattr(RationalNetwork, "draw", draw)
    short = replace(TINY, burn_in=2, sparsification=1)
    selection = weak_pde_learn(travelling(), LIBRARY, short, np.random.default_rng(0))
    assert "epoch 0" in selection.notes["reseeded"]
    assert len(draws) == 2
    assert (draws[0] != draws[1]).any()


@pytest.mark.slow
def test_a_wave_is_recovered() -> None:
    params = replace(TINY, width=20, depth=3, batch=400, burn_in=2500, sparsification=1000)
    library = Library.parse(["u", "u^2", "u_x", "u_xx"])
    rng = np.random.default_rng(3)
    selection = weak_pde_learn(travelling(speed=0.5), library, params, rng)
    assert selection.coefficients["u_x"] == pytest.approx(-0.5, abs=0.1)
