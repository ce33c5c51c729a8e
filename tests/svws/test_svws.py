"""Algorithm S1 step by step on made systems, its variants, its edge cases, and the whole on a known field."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fts.domain import Domain
from fts.equations.terms import Library
from fts.fields.frozen import CallableField, load_field
from fts.params.paper import PAPER, REFINED
from fts.selection.selection import Candidates, Selection, standard_error
from fts.svws import rule, select
from fts.svws.select import prepare, problem_of
from fts.weak.assembly import WeakSystem

LIBRARY = Library.parse(["1", "u", "u^2", "u^3", "u*u_x", "u_xx", "u_xxx", "u_xxxx"])
PARAMS = PAPER["ks"].svws
XI = np.array([0, 0, 0, 0, -1.0, -1.0, 0, -1.0])


def system(seed: int, xi=XI, noise: float = 0.02, m: int = 120) -> WeakSystem:
    """A random system with correlated columns of different size, a planted solution and noise."""
    rng = np.random.default_rng(seed)
    mixing = np.eye(8) + 0.3 * np.random.default_rng(0).standard_normal((8, 8))
    A = rng.standard_normal((m, 8)) @ mixing * np.logspace(-1, 1, 8)
    b = A @ xi
    b = b + noise * np.abs(b).mean() * rng.standard_normal(m)
    return WeakSystem(A, b, LIBRARY, rng.random((m, 2)), rng.random(2))


def systems(params=PARAMS, **kinds) -> list[WeakSystem]:
    return [system(seed, **kinds) for seed in range(params.generation + 1 + params.validation)]


def by_hand(*supports: tuple[int, ...], counts: tuple[int, ...]) -> Candidates:
    """A pool whose supports were proposed `counts` times each."""
    proposals = np.repeat(np.arange(len(supports)), counts)[None, :]
    return Candidates(LIBRARY, supports, proposals, tuple(np.linspace(0.1, 1, proposals.size)))


def test_a_planted_equation_is_selected_with_its_trace():
    selection = rule.select_from(systems(), PARAMS)
    assert selection.support == ("u*u_x", "u_xx", "u_xxxx")
    np.testing.assert_allclose(selection.xi, XI, atol=0.02)
    trace = selection.trace
    assert trace.candidates.proposals.shape == (12, 7)
    assert sum(trace.candidates.counts) == 84
    assert trace.risks.shape == (len(trace.eligible), 7)
    assert set(selection.recurrence) == set(LIBRARY.names)
    assert selection.recurrence["u_xx"] == 1.0
    np.testing.assert_allclose(selection.risks, trace.risks[trace.winner])
    assert "one standard error above the lowest" in trace.reason
    assert abs(selection.coefficients["u_xx"] + 1) < 3 * selection.deviations["u_xx"]
    assert str(selection).startswith("u_t = -")
    assert selection._repr_latex_().startswith("$u_t = -")


def test_recurrence_is_the_frequency_over_all_proposals():
    pool = by_hand((4, 5), (4, 5, 7), (), counts=(3, 5, 2))
    np.testing.assert_allclose(pool.pi, [0, 0, 0, 0, 0.8, 0.8, 0, 0.5])
    stable, eligible, fallback = rule.filter_stable(pool, 0.5)
    assert (stable, eligible, fallback) == ((4, 5, 7), (0, 1, 2), False), "a frequency of tau is stable"
    stable, eligible, _ = rule.filter_stable(pool, 0.51)
    assert (stable, eligible) == ((4, 5), (0, 2))


def test_without_a_stable_support_all_are_eligible():
    pool = by_hand((1,), (2,), (3,), counts=(1, 1, 1))
    assert rule.filter_stable(pool, 0.5) == ((), (0, 1, 2), True)
    fit, *validation = systems()[:8]
    selection = rule.choose(pool, fit, validation, PARAMS)
    assert selection.trace.fallback
    assert selection.trace.reason.startswith("no support was stable")


def test_one_standard_error_by_hand():
    # mu = 1.0, se = 0.1 for the lowest: 1.1 is admitted, 1.1 + 1e-9 is not.
    spread = 0.1 * np.sqrt(7)
    base = np.array([-1, -1, -1, 0, 1, 1, 1.0])
    lowest = 1.0 + base * spread / base.std(ddof=1)
    assert standard_error(lowest[None])[0] == pytest.approx(0.1)
    risks = np.stack([np.full(7, 1.1 - 1e-9), lowest, np.full(7, 1.1 + 1e-9), np.full(7, 5.0)])
    assert rule.one_standard_error(risks) == (0, 1)


def _choose(monkeypatch, pool: Candidates, risks: np.ndarray) -> Selection:
    """The rule on given risks: the refits are real, the risks are by hand."""
    monkeypatch.setattr(rule, "validate", lambda xi, validation, epsilon: risks)
    fit, *validation = systems()[:8]
    return rule.choose(pool, fit, validation, replace(PARAMS, tau=0.0))


def test_the_lexicographic_rule_prefers_small_then_low_then_frequent(monkeypatch):
    lowest = np.array([0.7, 1.3] * 3 + [1.0])
    flat = np.ones(7)
    pool = by_hand((4, 5, 7), (4, 5), (4, 6), (5,), counts=(9, 1, 5, 1))
    selection = _choose(monkeypatch, pool, np.stack([lowest, 1.05 * flat, 1.04 * flat, 3 * flat]))
    assert selection.trace.admissible == (0, 1, 2)
    assert selection.trace.winner == 2, "of the two small ones the lower risk wins"
    tied = _choose(monkeypatch, pool, np.stack([lowest, 1.04 * flat, 1.04 * flat, 3 * flat]))
    assert tied.trace.winner == 2, "at equal size and risk the more frequent wins"
    assert "generated most often" in tied.trace.reason
    even = by_hand((4, 5, 7), (4, 5), (4, 6), (5,), counts=(9, 5, 5, 1))
    first = _choose(monkeypatch, even, np.stack([lowest, 1.04 * flat, 1.04 * flat, 3 * flat]))
    assert first.trace.winner == 1, "a full tie goes to the first proposed"


def test_refits_and_risks_are_the_formulas():
    fit, *validation = systems()[:8]
    pool = by_hand((4, 5, 7), (1, 4), counts=(1, 1))
    xi = rule.refit_all(pool, (0, 1), fit, 1e-4)
    D = np.linalg.norm(fit.A, axis=0)
    unit = (fit.A / D)[:, [1, 4]]
    expected = np.linalg.solve(unit.T @ unit + 1e-4 * np.eye(2), unit.T @ fit.b) / D[[1, 4]]
    np.testing.assert_allclose(xi[1][[1, 4]], expected, rtol=1e-10)
    risks = rule.validate(xi, validation, 1e-12)
    for row, coefficients in enumerate(xi):
        for s, index in enumerate(validation):
            by_definition = np.sum((index.A @ coefficients - index.b) ** 2) / (np.sum(index.b**2) + 1e-12)
            assert risks[row, s] == pytest.approx(by_definition)


def test_no_system_has_two_roles():
    made = systems()
    generation, fit, validation = rule.roles(made, PARAMS)
    assert (len(generation), len(validation)) == (12, 7)
    assert [*generation, fit, *validation] == made
    with pytest.raises(ValueError, match="same phase"):
        rule.roles([*made[:-1], made[0]], PARAMS)
    with pytest.raises(ValueError, match="19 systems for 20 roles"):
        rule.roles(made[:-1], PARAMS)


def test_a_field_at_rest_has_the_empty_equation():
    quiet = [replace(entry, b=np.zeros_like(entry.b)) for entry in systems()]
    selection = rule.select_from(quiet, PARAMS)
    assert selection.support == ()
    assert str(selection) == "u_t = 0"
    assert selection.trace.candidates.supports == ((),)
    assert (selection.risks == 0).all()


def test_zero_and_dependent_columns_are_survived():
    def spoil(system: WeakSystem) -> WeakSystem:
        A = system.A.copy()
        A[:, 0] = 0.0
        A[:, 2] = A[:, 1]
        return replace(system, A=A)

    selection = rule.select_from([spoil(entry) for entry in systems()], PARAMS)
    assert selection.support == ("u*u_x", "u_xx", "u_xxxx")
    assert selection.recurrence["1"] == 0.0


@given(seed=st.integers(0, 200))
@settings(deadline=None, max_examples=4)
def test_the_support_ignores_units_and_row_order(seed):
    rng = np.random.default_rng(seed)
    scales = 10.0 ** rng.uniform(-4, 4, 8)
    made = systems()
    moved = []
    for record in made:
        rows = rng.permutation(len(record))
        moved.append(
            replace(record, A=(record.A * scales)[rows], b=record.b[rows], centers=record.centers[rows])
        )
    before, after = rule.select_from(made, PARAMS), rule.select_from(moved, PARAMS)
    assert before.support == after.support
    assert before.trace.candidates.counts == after.trace.candidates.counts
    np.testing.assert_allclose(after.xi * scales, before.xi, rtol=1e-6)


def test_variants_share_the_pool_and_differ_in_the_rule():
    made = systems(noise=0.5)
    generation, fit, validation = rule.roles(made, PARAMS)
    pool = rule.generate(generation, PARAMS)
    lowest = rule.minimum_risk(pool, fit, validation, PARAMS)
    assert lowest.trace.mu[lowest.trace.winner] == lowest.trace.mu.min()
    assert len(lowest.trace.eligible) == len(pool.supports)
    free = rule.without_filter(pool, fit, validation, PARAMS)
    assert len(free.trace.eligible) == len(pool.supports)
    vote = rule.majority(pool, fit, PARAMS)
    assert set(vote.support) == {name for name, pi in zip(LIBRARY.names, pool.pi, strict=True) if pi > 0.5}
    selection = rule.single(generation[0], 2.0, PARAMS)
    assert selection.method == "stlsq 2"
    assert set(selection.support) == {LIBRARY.names[j] for j in pool.supports[pool.proposals[0, -1]]}


# Two waves with u_t = -2 u_x exactly; u_xx stays independent of u because the wave numbers differ.
WAVES = CallableField(
    lambda x, t: np.sin(x - 2 * t) + 0.5 * np.cos(2 * (x - 2 * t)) + 0.2 * np.sin(3 * (x - 2 * t)),
    Domain((0.0,), (2 * np.pi,), 0.0, 3.0, (True,)),
)


def test_select_reads_the_equation_off_a_known_field():
    selection = select.select(WAVES, ["1", "u", "u^2", "u_x", "u_xx"])
    assert selection.support == ("u_x",)
    assert selection.coefficients["u_x"] == pytest.approx(-2, abs=1e-3)
    other = select.select(WAVES, ["1", "u", "u^2", "u_x", "u_xx"], seed=7)
    assert other.support == selection.support
    assert other.xi[3] != selection.xi[3], "another seed draws other phases"


def test_select_refuses_what_it_cannot_read():
    with pytest.raises(ValueError, match="unknown library 'boussinesq'"):
        select.select(WAVES, "boussinesq")
    with pytest.raises(ValueError, match="needs 2 spatial axes"):
        select.select(WAVES, ["u", "u_yy"])


def test_a_selection_without_a_trace_says_so():
    plain = Selection(LIBRARY, XI, "by hand")
    with pytest.raises(ValueError, match="no trace"):
        plain.recurrence
    with pytest.raises(ValueError, match="no refits"):
        plain.deviations
    with pytest.raises(ValueError, match="no refit 'robust'"):
        plain.with_refit("robust")


def test_a_librarys_name_is_only_a_list_of_terms():
    """KS's patches are wider than this domain: the name of its library must not bring them along."""
    ready = prepare(WAVES, "ks")
    assert ready.library.names == PAPER_LIBRARY
    assert ready.weak != PAPER["ks"].weak
    assert max(ready.weak.half_widths) < 1.5
    assert ready.params.lam0 != PAPER["ks"].svws.lam0
    assert select.select(WAVES, "ks").library.names == PAPER_LIBRARY


def test_the_papers_settings_belong_to_fields_of_its_problems():
    field = load_field("ks", "S20", seed=1301)
    assert problem_of(field) == "ks"
    for library in ("ks", "kdv", ["u*u_x", "u_xx"]):
        ready = prepare(field, library)
        assert (ready.weak, ready.params) == (PAPER["ks"].weak, PAPER["ks"].svws)
    stranger = replace(field, made=replace(field.made, problem=None))
    assert problem_of(stranger) is None
    assert prepare(stranger, "ks").weak != PAPER["ks"].weak


PAPER_LIBRARY = ("1", "u", "u^2", "u^3", "u*u_x", "u_xx", "u_xxx", "u_xxxx")


def test_quadrature_follows_the_recipe_of_the_field():
    papers, kernels = (load_field("ad", "S20", recipe=recipe) for recipe in ("paper", "kernel"))
    assert prepare(papers, "ad").weak == PAPER["ad"].weak
    assert prepare(kernels, "ad").weak == REFINED["ad"]
