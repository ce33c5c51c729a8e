"""Symbolic selection: integrals over states, the search and its limits, refit, choice, and the thaw."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import fts
from fts.domain import Domain
from fts.equations.equation import Equation
from fts.equations.terms import Library, Term
from fts.fields.frozen import CallableField
from fts.lab.explorers.recorded import PoolExplorer, PoolRuns
from fts.lab.figures import symbolic as figures
from fts.lab.studies import published, symbolic, verify
from fts.lab.studies.records import RunRecord, read_study
from fts.params.types import FieldParams
from fts.problems import metrics
from fts.symbolic import discover as thawing
from fts.symbolic.discover import (
    THAW,
    WEIGH,
    SymbolicRunParams,
    discover_function,
    generalized_least_squares,
    power_law,
    whitening,
)
from fts.symbolic.families import POWER_LAW, canonical
from fts.symbolic.occupation import state_systems
from fts.symbolic.search import SYMBOLIC, search
from fts.symbolic.select import choose, merge, refit, run_systems, select_function
from fts.symbolic.trees import crossover, mutate, random_tree, read, within_limits
from fts.weak.assembly import assemble

KAPPA, M = 0.1, 1.73
PATCHES = SYMBOLIC.patches
# A short search: every call is checked here, which takes ten times as long as the call.
SHORT = replace(SYMBOLIC, evolution=replace(SYMBOLIC.evolution, population=24, generations=4))


def travelling_wave(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    """u^(m-1) = k (c t - x + x0) solves u_t = kappa (u^m)_xx exactly when kappa k m = c (m - 1)."""
    c, x0 = 0.164, 1.6
    k = c * (M - 1) / (KAPPA * M)
    return (k * (c * t - x + x0)) ** (1 / (M - 1))


@pytest.fixture(scope="module")
def wave() -> CallableField:
    return CallableField(travelling_wave, Domain((0.0,), (1.0,), 0.0, 0.3, (False,)))


@pytest.fixture(scope="module")
def field():
    return fts.load_field("diffusion", seed=1301)


def test_integrals_over_states_are_those_over_nodes(field, rng):
    texts = ["u^1.73", "D_x(u^1.73)", "D_xx(u^1.73)", "D_xx(u^0.5)", "D_xx(1/(1 + u))"]
    functions = [(0, "u^1.73"), (1, "u^1.73"), (2, "u^1.73"), (2, "u^0.5"), (2, "1/(1 + u)")]
    phase = rng.random(2)
    (system,) = state_systems(field, [(PATCHES.judging, phase)], PATCHES.states, (0, 1, 2))
    expected = assemble(field, Library.parse(texts), PATCHES.judging, phase)
    np.testing.assert_allclose(system.b, expected.b, rtol=1e-12, atol=1e-15)
    for j, (order, text) in enumerate(functions):
        q = canonical(read(text)).values(system.states)
        column = expected.A[:, j]
        # Derivatives are given q - q(middle): what differs is the quadrature of a constant.
        np.testing.assert_allclose(
            system.column(q, order), column, atol=(2e-4 if order else 1e-12) * np.abs(column).max()
        )


def test_finer_states_converge_at_fourth_order(field, rng):
    phase = rng.random(2)
    columns = []
    for count in (17, 33, 65, 2049):
        (system,) = state_systems(field, [(PATCHES.proposal, phase)], count)
        columns.append(system.column(np.sin(6 * system.states) - np.sin(6 * system.states[count // 2])))
    errors = [np.abs(column - columns[-1]).max() for column in columns[:-1]]
    assert errors[0] > 12 * errors[1] > 144 * errors[2]


def test_constants_are_annihilated(field, rng):
    (system,) = state_systems(field, [(PATCHES.refit, rng.random(2))], PATCHES.states, (0, 1, 2))
    for order in (1, 2):
        column = system.column(np.full(PATCHES.states, 7.0), order)
        assert np.abs(column).max() < 1e-10 * np.abs(system.column(system.states, order)).max()
    assert np.abs(system.column(np.full(PATCHES.states, 7.0), 0)).min() > 0


def test_variations_keep_the_limits_and_reach_every_operator(rng):
    made = [random_tree(SYMBOLIC.trees, rng) for _ in range(300)]
    for _ in range(600):
        first, other = (made[int(i)] for i in rng.integers(len(made), size=2))
        made += [mutate(first, SYMBOLIC.trees, rng), crossover(first, other, SYMBOLIC.trees, rng)]
    assert all(within_limits(tree, SYMBOLIC.trees) for tree in made)
    assert {tree.op for tree in made} == {"u", "c", "u^", "+", "-", "*", "/"}
    assert max(tree.nodes for tree in made) == SYMBOLIC.trees.max_nodes
    assert M not in SYMBOLIC.trees.exponents


def test_a_search_never_loses_its_best_and_keeps_one_tree_per_family(field, rng):
    systems = run_systems(field, SYMBOLIC, rng)
    outcome = search(systems.searches[0], SHORT, rng)
    fitness = [generation.best_risk for generation in outcome.history]
    penalty = SYMBOLIC.evolution.search_penalty * SYMBOLIC.trees.max_nodes
    assert all(after <= before + penalty for before, after in pairwise(fitness))
    assert len(outcome.history) == SHORT.evolution.generations + 1
    families = [entry.form.family for entry in outcome.representatives.values()]
    assert families == list(outcome.representatives)
    risks = [entry.proposal_risk for entry in outcome.representatives.values()]
    assert risks == sorted(risks)


def test_the_same_seed_gives_the_same_run_and_another_seed_another(field):
    first, same, other = (select_function(field, SHORT, np.random.default_rng(seed)) for seed in (3, 3, 4))
    assert first.pool == same.pool
    assert first.searches == same.searches
    assert first.searches != other.searches


def test_the_power_law_is_recovered_from_an_exact_field(wave):
    selection = select_function(wave, SHORT, np.random.default_rng(0))
    assert selection.chosen.form.family == POWER_LAW
    kappa, m = power_law(selection.chosen.form)
    assert kappa == pytest.approx(KAPPA, rel=1e-4)
    assert m == pytest.approx(M, rel=1e-4)
    assert selection.chosen.risk < 1e-8


def test_the_refit_leaves_the_grid_and_stays_within_bounds(wave, rng):
    systems = run_systems(wave, SYMBOLIC, rng)
    moved = refit(canonical(read("0.1 * u^1.6")), systems.refit, SYMBOLIC)
    assert power_law(moved) == (pytest.approx(KAPPA, rel=1e-4), pytest.approx(M, rel=1e-4))
    narrow = replace(SYMBOLIC, continuous=replace(SYMBOLIC.continuous, exponent_bounds=(0.2, 1.5)))
    assert power_law(refit(canonical(read("0.1 * u^1.4")), systems.refit, narrow))[1] <= 1.5
    assert refit(canonical(read("1 / (u - 0.7)")), systems.refit, SYMBOLIC) is None


def test_the_pool_is_limited_and_ordered_by_the_penalized_risk(field, rng):
    selection = select_function(field, SHORT, rng)
    limits = SYMBOLIC.continuous
    assert 2 < len(selection.pool) <= limits.candidates
    assert all(candidate.form.parameters.size <= limits.max_parameters for candidate in selection.pool)
    assert len({candidate.form.family for candidate in selection.pool}) == len(selection.pool)
    scores = [candidate.score(limits.penalty) for candidate in selection.pool]
    assert scores == sorted(scores)
    assert all(len(candidate.risks) == limits.validations for candidate in selection.pool)


def test_a_penalty_of_zero_prefers_the_lowest_risk(field, rng):
    systems = run_systems(field, SYMBOLIC, rng)
    pool = merge(tuple(search(entry, SHORT, rng) for entry in systems.searches), SYMBOLIC)
    free = replace(SYMBOLIC, continuous=replace(SYMBOLIC.continuous, penalty=0.0))
    risks = [entry.risk for entry in choose(pool, systems, free)]
    assert risks == sorted(risks)
    assert (
        choose(pool, systems, SYMBOLIC)[0].form.complexity <= choose(pool, systems, free)[0].form.complexity
    )


def test_a_constant_field_is_refused():
    flat = CallableField(
        lambda x, t: np.ones(np.broadcast(x, t).shape), Domain((0.0,), (1.0,), 0.0, 0.3, (True,))
    )
    with pytest.raises(ValueError, match="no function to be found"):
        select_function(flat, SYMBOLIC, np.random.default_rng(0))


@pytest.fixture(scope="module")
def noisy():
    return fts.observe(fts.simulate("diffusion"), "S20", seed=42, noise=0.05)


@pytest.mark.slow
def test_tangents_are_derivatives_of_the_solution(noisy):
    field = fts.fit(noisy, "kernel", progress=False)
    short = replace(THAW, points=15, waves=2)
    task, amplitudes = thawing._prepare(canonical(read("0.1 * u^1.6")), field, noisy, short)
    at = np.concatenate([task.form.parameters, amplitudes])
    _, tangents = thawing._linearize(task, at)
    for k in range(at.size):
        step = np.zeros_like(at)
        step[k] = 1e-5
        change = thawing._linearize(task, at - step)[0] - thawing._linearize(task, at + step)[0]
        np.testing.assert_allclose(tangents[:, k], change / 2e-5, atol=1e-6 * np.abs(tangents).max())


@pytest.mark.slow
def test_a_thawed_law_lies_within_its_errors_and_leaves_the_noise(noisy):
    params = SymbolicRunParams(FieldParams("kernel"), SHORT, THAW)
    selection = discover_function(noisy, params, np.random.default_rng(42))
    error = np.array(selection.power_law) - (KAPPA, M)
    assert (np.abs(error) < 3 * selection.thawed.deviations).all()
    noise = 0.05 * fts.simulate("diffusion").u.std()
    assert selection.thawed.misfit == pytest.approx(noise, rel=0.05)
    assert selection.equation.terms[0].q.degree == selection.power_law[1]


def test_thawing_needs_a_periodic_axis(wave, noisy):
    bounded = replace(noisy, domain=Domain((0.0,), (1.0,), 0.0, 0.3, (False,)))
    with pytest.raises(ValueError, match="periodic"):
        thawing.thaw(canonical(read("u^1.7")), wave, bounded, THAW)


def test_whitened_rows_have_unit_covariance_and_a_floor_counts_them_alike(rng):
    rows = rng.standard_normal((400, 6)) @ rng.standard_normal((6, 6))
    metric = whitening(rows, 0.0)
    np.testing.assert_allclose(np.cov((rows @ metric).T), np.eye(6), atol=1e-9)
    even = whitening(rows, 1e9)
    np.testing.assert_allclose(even / even[0, 0], np.eye(6), atol=1e-6)


def test_weighting_finds_an_exact_law_whatever_the_field_may_miss(wave, rng):
    # Errors that are large where the field is: rows there count less, and the law is the same.
    bumps = [(0.02 * rng.standard_normal(), rng.random()) for _ in range(140)]
    draws = [
        CallableField(
            lambda x, t, a=a, s=s: travelling_wave(x, t) + a * np.cos(2 * np.pi * (3 * x + s)), wave.domain
        )
        for a, s in bumps
    ]
    start = canonical(read("0.12 * u^1.6"))
    refitted = generalized_least_squares(start, wave, draws, SYMBOLIC, WEIGH, rng)
    assert power_law(refitted) == pytest.approx((KAPPA, M), rel=2e-3)
    with pytest.raises(ValueError, match="no covariance"):
        generalized_least_squares(start, wave, draws[:1], SYMBOLIC, WEIGH, rng)


def test_a_function_scores_by_its_family_and_its_distance():
    truth, states = Equation.parse("u_t = 0.1 D_xx(u^1.73)"), (0.3, 1.2)
    exact = metrics.score_function(truth, truth, states)
    assert (exact["exact"], exact["e_xi"], exact["kappa"], exact["m"]) == (True, 0.0, 0.1, 1.73)
    near = metrics.score_function(Equation.parse("u_t = 0.1 D_xx(u^1.8)"), truth, states)
    assert near["exact"]
    assert 0 < near["e_xi"] < 0.1
    other = symbolic.score_law({"D_xx(0.04*u + 0.06*u^2)": 1.0})
    assert (other["exact"], other["kappa"], other["m"]) == (False, None, None)
    with pytest.raises(ValueError, match="D_xx"):
        metrics.score_function(Equation.parse("u_t = u_x"), truth, states)
    # An answer without a value on part of the range is wrong, not missing, though its family may be right.
    for text in ("D_xx((2*u - 1)^1.19)", "D_xx(log(u - 1))", "D_xx((u - 0.75)^-1)"):
        partial = metrics.score_function(Equation.parse(f"u_t = 0.1 {text}"), truth, states)
        assert (partial["exact"], partial["f1"], partial["m"]) == (False, 0.0, None)
        assert partial["e_xi"] == pytest.approx(1.0)


def test_table_cells_are_means_over_recovered_runs():
    def record(seed: int, exact: bool, m: float | None) -> RunRecord:
        score = {"exact": exact, "kappa": m, "m": m}
        return RunRecord("symbolic", "diffusion", "S20", "paper", "symbolic", seed, 0.0, {}, "", score=score)

    (cell,) = symbolic.laws([record(1, True, 1.7), record(2, True, 1.9), record(3, False, None)]).values()
    assert (cell.runs, cell.recovered, cell.m) == (3, 2, pytest.approx(1.8))
    assert cell.m_deviation == pytest.approx(0.2 / np.sqrt(2))


def test_every_function_that_the_study_records_reads_back():
    for text in ("u^1.7", "u + u^2", "1 / (1 + u)", "(u + 0.2 * u^1.3) / (1 + 0.5 * u^0.7)"):
        form = canonical(read(text))
        terms = symbolic.terms_of(Equation((Term((2,), 1.0, form.expression),), [1.0]))
        assert symbolic.score_law(terms)["exact"] == (form.family == POWER_LAW)


def test_the_plan_runs_every_noise_of_the_paper():
    tasks = list(symbolic.symbolic((1, 2)))
    assert {task.noise for task in tasks} == published.symbolic().keys() == published.pysr().keys()
    assert len({task.key for task in tasks}) == len(tasks) == 3 * 2 * len(symbolic.ROWS)
    assert {task.row for task in tasks} == set(symbolic.ROWS)


def test_a_changed_exponent_is_noticed():
    terms = {"D_xx(u^1.7)": 0.1}
    score = symbolic.score_law(terms)
    record = RunRecord(
        "symbolic", "diffusion", "S20", "paper", "symbolic", 1, 0.0, {}, "", terms=terms, score=score
    )
    assert list(verify.check_record(record)) == []
    assert len(list(verify.check_record(replace(record, terms={"D_xx(u^1.75)": 0.1})))) == 2


def _pool_runs() -> PoolRuns:
    def entry(family: str, complexity: int, risk: float, powers: list[list[float]]) -> dict:
        shape = {"family": family, "complexity": complexity, "numerator": powers, "denominator": []}
        return shape | {"risks": [risk, risk]}

    pool = [
        entry("c*u^p", 1, 0.02, [[1.7, 0.1]]),
        entry("c*u^p + c*u^p", 5, 0.015, [[1.0, 0.04], [2.0, 0.06]]),
    ]
    record = RunRecord("symbolic", "diffusion", "S20", "paper", "symbolic", 7, 0.05, {}, "")
    return PoolRuns([replace(record, extra={"pool": pool})])


def test_the_explorer_chooses_again_as_the_penalty_changes():
    explorer = PoolExplorer([_pool_runs()])
    assert explorer.chosen["family"] == "c*u^p + c*u^p"
    explorer.penalty = 2e-3
    assert explorer.chosen["family"] == "c*u^p"
    explorer.run = 5  # there is one run; the page stops at it too
    assert explorer.chosen["family"] == "c*u^p"
    assert len(explorer.still().axes) == 2


def test_an_explorer_without_finished_runs_is_refused():
    with pytest.raises(ValueError, match="finished run"):
        PoolRuns([])


def test_the_chapters_table_holds_our_rows_and_the_published_ones():
    runs = read_study("symbolic")
    rows = figures.table_3(runs).rows
    assert {row[0] for row in rows} == {*symbolic.ROWS, "published", "PySR, published, not rerun"}
    assert ("published", "5%", "5", "0.0976 ± 0.0026", "1.682 ± 0.116") in rows
    assert len(figures.functions(runs).axes) == 6
    assert len(figures.curves(runs).axes) == len(figures.exponents_by_refit(runs).axes) == 3
    started, ended = np.array(figures.refitted_exponents(run for run in runs if run.row == "paper")).T
    assert started.size == 15
    assert np.abs(ended - M).mean() < np.abs(started - M).mean()
