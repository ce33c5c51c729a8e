"""What every method owes the comparison: the same samples in, the same kind of selection out."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fts import methods
from fts.baselines.deepmod import DEEPMOD
from fts.baselines.dl_pde import DL_PDE
from fts.baselines.pinn_sr import PINN_SR
from fts.baselines.training.loop import Checkpoint
from fts.baselines.weak_pde_learn import WEAK_PDE_LEARN
from fts.domain import Domain
from fts.equations.terms import Library
from fts.lab.studies import plans, runs
from fts.lab.studies.runs import Task
from fts.lab.studies.workers import run_study
from fts.observations import Observations
from fts.params.paper import TEST_SEEDS
from fts.selection.selection import Selection

LIBRARY = Library.parse(["1", "u", "u_x", "u*u_x", "u_xx"])
# Networks and budgets that take a second: what is tested needs no good fit.
TRAINED: dict[str, Any] = {
    "DeepMoD": replace(DEEPMOD["kdv"], width=8, depth=2, samples=200, max_iterations=40),
    "DL-PDE": replace(
        DL_PDE["kdv"], surrogate=replace(DL_PDE["kdv"].surrogate, width=8, depth=2, steps=40), grid=(20, 12)
    ),
    "PINN-SR": replace(
        PINN_SR["kdv"],
        width=8,
        depth=2,
        collocation=100,
        residual_samples=100,
        adam_steps=20,
        lbfgs_iterations=5,
        cycles=2,
        cycle_steps=5,
    ),
    "Weak-PDE-LEARN": replace(
        WEAK_PDE_LEARN["kdv"],
        width=8,
        depth=2,
        batch=200,
        burn_in=20,
        sparsification=10,
        weak=replace(WEAK_PDE_LEARN["kdv"].weak, quadrature=(32, 24), functions=20, held_out_functions=8),
    ),
}
# A threshold or a penalty that leaves nothing, per method.
NOTHING: dict[str, Callable[[Any], Any]] = {
    "DeepMoD": lambda params: replace(params, threshold=1e6, patience=1, min_decrease=1e6, check_every=5),
    "DL-PDE": lambda params: replace(params, stridge=replace(params.stridge, threshold=1e9)),
    "PINN-SR": lambda params: replace(params, sparsity=1e-7, tolerance_step=1e9),
    "Weak-PDE-LEARN": lambda params: replace(params, threshold=1e3),
}


class Here:
    """A client with one worker, this process."""

    def submit(self, run: Callable[[Task], Any], task: Task, **_: Any) -> Any:
        record = run(task)

        class Done:
            def exception(self) -> None: ...
            def result(self) -> Any:
                return record

            def release(self) -> None: ...

        return Done()


def waves(n: int = 240) -> Observations:
    """Scattered samples of two decaying waves."""
    rng = np.random.default_rng(0)
    x, t = rng.uniform(0, 2 * np.pi, n), rng.uniform(0, 1, n)
    y = np.exp(-t) * np.sin(x) + 0.7 * np.exp(-4 * t) * np.cos(2 * x)
    return Observations(x[:, None], t, y, Domain((0.0,), (2 * np.pi,), 0.0, 1.0, (True,)))


def solve(name: str, library: Library = LIBRARY, params: Any = None, seed: int = 2) -> Selection:
    params = TRAINED[name] if params is None else params
    return methods.method(name)(waves(), library, params, np.random.default_rng(seed))


@pytest.mark.parametrize("name", TRAINED)
def test_methods_that_train_are_deterministic_and_the_generator_decides(name: str) -> None:
    first, again, other = solve(name), solve(name), solve(name, seed=3)
    np.testing.assert_array_equal(first.xi, again.xi)
    axes = np.linspace(0, 6, 7), np.linspace(0, 1, 5)
    np.testing.assert_array_equal(first.field.on_grid(*axes), again.field.on_grid(*axes))
    assert (first.field.on_grid(*axes) != other.field.on_grid(*axes)).any()


@pytest.mark.parametrize("name", TRAINED)
def test_the_order_of_the_library_does_not_matter_to_methods_that_train(name: str) -> None:
    turned = Library(tuple(reversed(LIBRARY.terms)))
    first, other = solve(name).coefficients, solve(name, turned).coefficients
    # Sums of single precision in another order.
    assert other == pytest.approx(first, rel=2e-2, abs=1e-4)


@pytest.mark.parametrize("name", TRAINED)
def test_only_a_network_that_never_sees_an_equation_is_indifferent_to_the_unit_of_length(name: str) -> None:
    """x in quarters of its unit: DL-PDE's network has the box for its unit, and each column its length.

    The others weigh a residual in physical units against the samples, or have the coordinates raw.
    """
    samples, (params, length) = waves(), (TRAINED[name], 4.0)
    box = samples.domain
    wide = replace(box, low=(length * box.low[0],), high=(length * box.high[0],))
    stretched = replace(samples, x=length * samples.x, domain=wide)
    first, other = (
        methods.method(name)(entry, LIBRARY, params, np.random.default_rng(2))
        for entry in (samples, stretched)
    )
    expected = first.xi * length ** np.array([term.order for term in LIBRARY])
    x, t = np.linspace(0, 6, 7), np.linspace(0, 1, 5)
    same = np.allclose(other.field.on_grid(length * x, t), first.field.on_grid(x, t), rtol=1e-3)
    assert (same and np.allclose(other.xi, expected, rtol=1e-3)) == (name == "DL-PDE")
    assert first.xi.any() or name != "DL-PDE"


@pytest.mark.parametrize("name", TRAINED)
def test_methods_that_train_may_keep_no_term(name: str) -> None:
    selection = solve(name, params=NOTHING[name](TRAINED[name]))
    assert selection.support == ()
    assert str(selection.equation) == "u_t = 0"


@pytest.mark.parametrize("name", TRAINED)
def test_budgets_are_recorded(name: str) -> None:
    selection = solve(name)
    assert selection.seconds["fit"] > 0
    spent = selection.notes["iterations"]
    assert (sum(spent.values()) if isinstance(spent, dict) else spent) > 0


def _digest(observations: Observations) -> str:
    parts = (observations.x, observations.t, observations.y)
    return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()


def test_every_method_is_handed_the_same_bytes_for_a_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[tuple[str, str], set[str]] = {}
    indices: list[tuple[str, str]] = []

    def spy(name: str) -> methods.Method:
        def method(
            observations: Observations, library: Library, params: Any, rng: np.random.Generator
        ) -> Selection:
            drawn = rng.bit_generator.state["state"]["state"]
            seen.setdefault(indices[-1], set()).add(f"{_digest(observations)} {library} {drawn}")
            return Selection(library, np.zeros(len(library)), name)

        return method

    spies = {name: replace(entry, function=spy(name), training="") for name, entry in methods.METHODS.items()}
    monkeypatch.setattr(methods, "METHODS", spies)
    tasks = [*plans.main(TEST_SEEDS[:1]), *plans.baselines(TEST_SEEDS[:1])]
    for task in tasks:
        indices.append((task.problem, task.protocol))
        assert not runs.run(task).error
    assert {task.row for task in tasks} >= {"paper", "PDE-FIND", "WSINDy", *TRAINED}
    assert len(seen) == 6
    assert {len(each) for each in seen.values()} == {1}


@pytest.mark.parametrize("name", TRAINED)
def test_samples_are_read_and_not_changed(name: str) -> None:
    samples = waves()
    before = _digest(samples)
    methods.method(name)(samples, LIBRARY, TRAINED[name], np.random.default_rng(2))
    assert _digest(samples) == before


@pytest.mark.parametrize("name", TRAINED)
def test_a_killed_training_of_a_study_goes_on_to_the_same_record(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A study is killed while it trains; started again, it records what an undisturbed one does."""
    client = pytest.importorskip("distributed", reason="Dask is not installed (extra `studies`)")
    monkeypatch.setattr(client, "as_completed", list)
    monkeypatch.setattr("fts.baselines.training.deepmod.DeepMoDTraining.save_every", 10)
    params = TRAINED[name]
    if name == "DL-PDE":
        params = replace(params, surrogate=replace(params.surrogate, check_every=10))
    task = Task("baselines", "kdv", "S20", TEST_SEEDS[0], 0.0, name, name, params)
    (whole,) = run_study([task], tmp_path / "whole.jsonl", Here())
    assert not whole.error
    state = runs.training_file(tmp_path, task)
    killed = _killed_after(Checkpoint.save, 2)
    with monkeypatch.context() as patched:
        patched.setattr(Checkpoint, "save", killed)
        with pytest.raises(KeyboardInterrupt):
            run_study([task], tmp_path / "baselines.jsonl", Here())
    assert state.is_file(), "the state outlives the study"
    assert not (tmp_path / "baselines.jsonl").exists()
    loaded: list[Any] = []
    monkeypatch.setattr(Checkpoint, "load", _noting(Checkpoint.load, loaded))
    (resumed,) = run_study([task], tmp_path / "baselines.jsonl", Here())
    assert loaded[0] is not None, "it did not begin anew"
    assert (resumed.terms, resumed.score) == (whole.terms, whole.score)
    assert resumed.extra["notes"] == whole.extra["notes"]
    assert not state.exists(), "a recorded run needs no state"


def _killed_after(save: Callable[..., None], times: int) -> Callable[..., None]:
    calls = iter(range(times))

    def killed(*arguments: Any) -> None:
        save(*arguments)
        if next(calls, None) is None:
            raise KeyboardInterrupt

    return killed


def _noting(load: Callable[..., Any], loaded: list[Any]) -> Callable[..., Any]:
    def noting(*arguments: Any) -> Any:
        loaded.append(load(*arguments))
        return loaded[-1]

    return noting
