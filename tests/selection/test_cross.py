"""Two fields of disjoint halves: unbiased moments, an honest risk, proposals that noise does not earn."""

import time
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import fts
from fts.domain import Domain
from fts.equations.terms import Library
from fts.kernel.closed_form import condition
from fts.kernel.posterior import Posterior, interleaved_halves
from fts.kernel.separable import condition_grid
from fts.lab.studies import tuning
from fts.methods import method
from fts.observations import Observations
from fts.params.paper import LARGE_LIBRARIES
from fts.problems import metrics
from fts.problems.development import candidate_library, development, development_names
from fts.problems.problems import names, problem
from fts.selection import instrumental, moments, refits, support_search
from fts.selection.instrumental import TWO_FIELDS, TwoFieldsParams
from fts.selection.moments import regions
from fts.selection.selection import standard_error
from fts.svws.rule import build
from fts.svws.split_sample import measure, row_weights, two_fields, unresolved
from fts.weak.assembly import assemble
from fts.weak.geometry import automatic
from fts.weak.test_functions import patch_centers

_TERMS = Library.parse(["u", "u^2", "u_x", "u_xx", "u_xxx"])
_REGIONS = 16


def _split(posterior: Posterior, params: TwoFieldsParams = TWO_FIELDS) -> tuple[tuple, ...]:
    return posterior.split(params.splits, params.smoothing, np.random.default_rng(params.split_seed))


def _rows(
    rng: np.random.Generator, clean: np.ndarray, noise: float, count: int = 1
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """The same columns [b, A] seen twice with independent noise, spread over regions."""
    region = np.arange(len(clean)) % _REGIONS
    first, two = (clean + noise * rng.standard_normal((count, *clean.shape)) for _ in range(2))
    return [(a, b, region) for a, b in zip(first, two, strict=True)]


def _clean(rng: np.random.Generator, m: int, columns: int, xi: dict[int, float]) -> np.ndarray:
    A = rng.standard_normal((m, columns))
    b = sum(value * A[:, j] for j, value in xi.items())
    return np.column_stack([b, A])


def _library(size: int) -> Library:
    orders = [f"D_{'x' * k}(u^{p})" if k else f"u^{p}" for p in range(2, 52) for k in range(4)]
    return Library.parse(orders[:size])


def _totals(measured: moments.CrossMoments) -> tuple[np.ndarray, np.ndarray]:
    return measured.cross.total.products[0], measured.within.total.products[0]


def _risk(measured: moments.CrossMoments, support: tuple[int, ...]) -> float:
    total = measured.cross.total.on(support)
    return float(total.risk(total.minimum_norm())[0])


@pytest.mark.parametrize("noise", [0.2, 0.5, 1.0])
def test_the_cross_estimate_is_unbiased_where_least_squares_is_not(noise: float) -> None:
    rng = np.random.default_rng(3)
    one_field, two = [], []
    for _ in range(60):
        clean = _clean(rng, 400, 2, {0: 2.0, 1: -1.0})
        rows = _rows(rng, clean, noise)
        measured = moments.cross_moments(_library(2), rows)
        two.append(measured.physical((0, 1), instrumental.fit(measured.cross, (0, 1))))
        one_field.append(np.linalg.lstsq(rows[0][0][:, 1:], rows[0][0][:, 0], rcond=None)[0])
    truth = np.array([2.0, -1.0])
    error = np.std(two, axis=0, ddof=1) / np.sqrt(len(two))
    assert (np.abs(np.mean(two, axis=0) - truth) < 4 * error).all()
    # Independent columns of unit variance: least squares shrinks every slope by 1 / (1 + noise^2).
    np.testing.assert_allclose(np.mean(one_field, axis=0), truth / (1 + noise**2), rtol=0.03)
    assert (np.abs(np.mean(one_field, axis=0) - truth) > 6 * error).any()


def test_jackknife_errors_tell_how_far_the_estimate_is_off() -> None:
    rng = np.random.default_rng(5)
    distances = []
    for _ in range(100):
        measured = moments.cross_moments(_library(2), _rows(rng, _clean(rng, 320, 2, {0: 2.0, 1: -1.0}), 0.5))
        xi, deviation = (
            measured.physical((0, 1), estimate(measured.cross, (0, 1)))
            for estimate in (instrumental.fit, instrumental.standard_errors)
        )
        distances += list((xi - [2.0, -1.0]) / deviation)
    assert 0.8 < np.std(distances) < 1.25


@pytest.mark.parametrize("noise", [0.0, 0.2, 0.5, 1.0])
def test_the_cross_risk_has_no_noise_floor(noise: float) -> None:
    observations = fts.observe(fts.simulate("transport"), "S50", seed=42, noise=noise)
    posterior = condition_grid(observations, progress=False)
    pairs = _split(posterior)
    phases = np.random.default_rng(1).random((TWO_FIELDS.phases, 2))
    measured = measure(pairs, _TERMS, automatic(posterior, _TERMS), phases)
    right, error = instrumental.unexplained(measured, (_TERMS.index("u_x"), _TERMS.index("u_xx")))
    # Without noise what is left is quadrature and interpolation.
    assert abs(right) < 3 * error + 1e-6
    wrong, error = instrumental.unexplained(measured, (_TERMS.index("u_x"), _TERMS.index("u_xxx")))
    assert wrong > 0.1
    assert wrong > 3 * error


def test_a_term_that_only_explains_noise_is_proposed_no_more_than_chance() -> None:
    rng, true, count, draws = np.random.default_rng(7), 2, 12, 150
    single, crossed = np.zeros(count), np.zeros(count)
    for _ in range(draws):
        clean = _clean(rng, 320, count, {0: 1.0, 1: -1.0})
        first, two, region = _rows(rng, clean, 0.3)[0]
        # The last column holds the noise of b in its own field, as a term does that explains nothing else.
        for seen in (first, two):
            seen[:, -1] = seen[:, 0] - clean[:, 0] + clean[:, -1]
        measured = moments.cross_moments(_library(count), [(first, two, region)])
        pair = _totals(measured)
        within = (pair[1], pair[1])
        crossed[list(support_search.beam_search(*pair, true + 1, 0.0, 8)[-1])] += 1
        single[list(support_search.beam_search(*within, true + 1, 0.0, 8)[-1])] += 1
    chance = draws / (count - true)
    assert single[-1] > 0.9 * draws
    assert crossed[-1] < chance + 3 * np.sqrt(chance)
    assert (crossed[:true] == draws).all()


def test_one_field_twice_gives_least_squares() -> None:
    rng = np.random.default_rng(11)
    rows = _rows(rng, _clean(rng, 200, 4, {0: 1.0, 2: 3.0}), 0.3)[0][0]
    measured = moments.cross_moments(_library(4), [(rows, rows, np.arange(200) % _REGIONS)])
    np.testing.assert_allclose(measured.cross.products, measured.within.products)
    np.testing.assert_allclose(measured.reliability, 1.0)
    support = np.array([True, False, True, False])
    expected = refits.pooled(rows[:, 1:], rows[:, 0], support)
    np.testing.assert_allclose(
        measured.physical((0, 2), instrumental.fit(measured.cross, (0, 2))), expected, rtol=1e-9
    )


def test_risks_by_schur_complement_are_those_of_a_solve() -> None:
    rng = np.random.default_rng(13)
    measured = moments.cross_moments(_library(6), _rows(rng, _clean(rng, 300, 6, {0: 1.0, 3: 2.0}), 0.2))
    total, within = _totals(measured)
    for supports in ([[]], [[0], [4]], [[0, 3], [1, 2]]):
        table = np.array(supports, dtype=np.int64).reshape(len(supports), -1)
        risks = support_search.extension_risks(total, within, table, 0.0)
        for row, support in zip(risks, supports, strict=True):
            others = [j for j in range(6) if j not in support]
            direct = [_risk(measured, (*support, j)) for j in others]
            np.testing.assert_allclose(row[others], direct, rtol=1e-9, atol=1e-12)
            assert np.isinf(row[support]).all()


def test_a_beam_finds_what_greedy_selection_misses() -> None:
    # Column 2 is nearly the sum of the true columns, so a greedy search begins with it.
    rng = np.random.default_rng(17)
    A = rng.standard_normal((400, 4))
    A[:, 2] = A[:, 0] + A[:, 1] + 0.3 * rng.standard_normal(400)
    columns = np.column_stack([A[:, 0] + A[:, 1], A])
    measured = moments.cross_moments(_library(4), _rows(rng, columns, 0.05))
    total, within = _totals(measured)
    assert support_search.beam_search(total, within, 2, 0.1, 8) == [(2,), (0, 1)]
    assert 2 in support_search.beam_search(total, within, 2, 0.1, 1)[1]


def test_proposals_are_the_best_subsets() -> None:
    # Columns alike, as derivatives of powers are; every support of three is tried.
    rng = np.random.default_rng(29)
    A = rng.standard_normal((500, 12)) + 2 * rng.standard_normal((500, 1))
    columns = np.column_stack([A[:, 1] - A[:, 5] + 0.5 * A[:, 9], A])
    measured = moments.cross_moments(_library(12), _rows(rng, columns, 0.2))
    best = min(
        combinations(range(12), 3),
        key=lambda support: _risk(measured, support),
    )
    assert support_search.beam_search(*_totals(measured), 3, 0.0, 32)[-1] == best


def test_more_folds_of_the_same_regions_are_no_more_evidence() -> None:
    differences = np.random.default_rng(23).standard_normal((3, 24))
    often = np.tile(differences, 100)
    np.testing.assert_allclose(instrumental.overlapping_error(often), often.std(axis=1), rtol=1e-3)
    assert (standard_error(often) < 0.05 * instrumental.overlapping_error(often)).all()


def test_a_large_library_without_an_equation_seems_significant_as_often_as_chance_allows() -> None:
    rng = np.random.default_rng(29)
    terms, draws = 43, 2000
    measured = moments.cross_moments(_library(terms), _rows(rng, _clean(rng, 320, terms, {0: 1.0}), 0.01))
    asked = instrumental.significant(measured, TWO_FIELDS)
    values = rng.standard_normal((draws, terms, len(measured.cross.products)))
    errors = values.std(axis=2, ddof=1) / np.sqrt(values.shape[2])
    seeming = (np.abs(values.mean(axis=2)) > asked * errors).any(axis=1)
    assert seeming.mean() == pytest.approx(TWO_FIELDS.chance, abs=0.015)
    fewer = moments.cross_moments(_library(8), _rows(rng, _clean(rng, 320, 8, {0: 1.0}), 0.01))
    assert instrumental.significant(fewer, TWO_FIELDS) < asked


def test_terms_that_explain_one_region_are_dropped_together() -> None:
    # Columns 2 and 3 nearly cancel; their difference is in b, but only in one region, as a local error is.
    rng = np.random.default_rng(31)
    A = rng.standard_normal((960, 5))
    A[:, 3] = A[:, 2] + 0.2 * rng.standard_normal(960)
    local = np.where(np.arange(960) % _REGIONS == 0, 4.0, 0.0) * (A[:, 3] - A[:, 2])
    columns = np.column_stack([A[:, 0] - A[:, 1] + 0.1 * A[:, 4] + local, A])
    measured = moments.cross_moments(_library(5), _rows(rng, columns, 0.01))
    folds = instrumental.region_halves(_REGIONS, TWO_FIELDS)
    assert instrumental.weak(measured, (0, 1, 2, 3, 4), TWO_FIELDS) == (2, 3)
    # The small term that is seen everywhere stays.
    assert instrumental.prune(measured, (0, 1, 2, 3, 4), folds, 0.0, TWO_FIELDS) == (0, 1, 4)
    assert instrumental.prune(measured, (), folds, 0.0, TWO_FIELDS) == ()


def test_one_field_is_agreed_with_where_it_takes_fewer_terms() -> None:
    assert instrumental.agreed((1, 4, 6), (1, 6)) == (1, 6)
    for other in ((), (1, 4, 6), (1, 2), (1, 4, 6, 7)):
        assert instrumental.agreed((1, 4, 6), other) == (1, 4, 6)
    rng = np.random.default_rng(37)
    measured = moments.cross_moments(
        _library(4), _rows(rng, _clean(rng, 320, 4, {0: 1.0, 1: -1.0, 2: 0.5}), 0.01)
    )
    chosen = instrumental.choose(measured, TWO_FIELDS, (0, 1))
    assert np.flatnonzero(chosen.xi).tolist() == [0, 1]
    assert chosen.trace is not None
    assert chosen.trace.candidates.supports[chosen.trace.winner] == (0, 1)


def test_two_hundred_terms_take_seconds() -> None:
    rng = np.random.default_rng(19)
    A = rng.standard_normal((600, 200)) + rng.standard_normal((600, 1))
    columns = np.column_stack([A[:, [3, 70, 150]] @ [1.0, -2.0, 1.5], A])
    measured = moments.cross_moments(_library(200), _rows(rng, columns, 0.3, 4))
    began = time.process_time()
    chosen = instrumental.choose(measured, TWO_FIELDS)
    assert time.process_time() - began < 20
    assert np.flatnonzero(chosen.xi).tolist() == [3, 70, 150]
    assert chosen.trace is not None
    assert chosen.trace.risks.shape[1] == 2 * TWO_FIELDS.draws


@pytest.mark.parametrize("shape", [(41, 1), (40, 2)])
def test_halves_are_disjoint_and_interleaved(shape: tuple[int, int], rng: np.random.Generator) -> None:
    points = np.sort(rng.random(shape), axis=0) if shape[1] == 1 else rng.random(shape)
    ways = list(interleaved_halves(points, 4, np.random.default_rng(0)))
    assert len({way.tobytes() for way in ways}) == 4
    for first in ways:
        assert abs(int(first.sum()) - int((~first).sum())) <= 1
        if shape[1] == 1:
            # One of every two neighbours: no gap is wider than three spacings.
            assert all(first[i] != first[i + 1] for i in range(0, shape[0] - 1, 2))


def _waves(rng: np.random.Generator, noise: float, amplitude: float = 1.0) -> Observations:
    """A decaying wave, or nothing but noise, on 24 sensors and 20 frames."""
    x, t = (axis.ravel() for axis in np.meshgrid(np.arange(24.0), np.arange(20.0), indexing="ij"))
    y = amplitude * np.sin(np.pi / 6 * x - 0.1 * t) * np.exp(-t / 20) + noise * rng.standard_normal(x.size)
    return Observations(x[:, None], t, y, Domain((0.0,), (24.0,), 0.0, 19.0, (True,)))


def test_a_half_is_the_field_of_its_own_samples(rng: np.random.Generator) -> None:
    observations = _waves(rng, 0.1)
    posterior = condition_grid(observations, progress=False)
    first, second = _split(posterior, replace(TWO_FIELDS, smoothing=1.0))[0]
    axis = 0
    assert len(first.parts[axis].points) < len(posterior.parts[axis].points)
    points = posterior.parts[axis].points[:, 0]
    kept, other = (set(half.parts[axis].points[:, 0]) for half in (first, second))
    assert kept | other == set(points)
    assert not kept & other
    # Solved from scratch: k (K + s)^-1 y on half of the samples.
    grid = observations.grid
    assert grid is not None
    values = np.compress(np.isin(points, list(kept)), (grid.values - posterior.mean) / posterior.scale, axis)
    space, duration = (
        part.cross(part.points, kernel)
        for part, kernel in zip(first.parts, posterior.choice.kernels, strict=True)
    )
    matrix = np.einsum("ij,kl->ikjl", space, duration).reshape(values.size, values.size)
    solution = np.linalg.solve(matrix + posterior.choice.nugget * np.eye(values.size), values.ravel())
    expected = posterior.mean + posterior.scale * (matrix @ solution).reshape(values.shape)
    axes = (part.points[:, 0] for part in first.parts)
    np.testing.assert_allclose(first.on_grid(*axes), expected, atol=1e-8)


def test_noise_alone_falls_back_to_one_field_and_says_so(rng: np.random.Generator) -> None:
    observations = _waves(rng, 1.0, amplitude=0.0)
    chosen = two_fields(observations, _TERMS, TWO_FIELDS, rng)
    assert chosen.notes["fields"] == 1
    assert "too little" in chosen.notes["said"]
    assert chosen.coefficients == chosen.variants["svws"].coefficients


def test_the_method_recovers_what_one_field_does_not() -> None:
    entry = problem("transport")
    observations = fts.observe(fts.simulate("transport"), "S100", seed=42, noise=0.5)
    chosen = method("two fields")(observations, entry.library, TWO_FIELDS, np.random.default_rng(0))
    assert len(entry.library) == 43
    assert chosen.notes["fields"] == 2
    assert metrics.score(chosen, entry.equation).exact
    assert not metrics.score(chosen.variants["svws"], entry.equation).exact
    assert set(chosen.refits) == {"pooled", "robust", "weighted pooled", "weighted robust", "cross"}
    # Cost: at most three times what one field takes, its kernels' search included.
    whole = chosen.seconds["fit"] + chosen.seconds["select"]
    assert whole < 3 * (chosen.seconds["fit"] + chosen.seconds["one_field"]) + 1


@pytest.mark.parametrize("name", names("noisy"))
def test_further_problems_satisfy_their_equation(name: str) -> None:
    entry, trajectory = problem(name), fts.simulate(name)
    terms = Library(entry.equation.terms)
    field = fts.TabulatedField((*trajectory.axes, trajectory.t), trajectory.u, entry.domain)
    weak = automatic(field, terms)
    system = build(field, terms, weak, TWO_FIELDS.svws)[0]
    estimate = np.linalg.lstsq(system.A, system.b, rcond=None)[0]
    np.testing.assert_allclose(estimate, entry.equation.coefficients, rtol=2e-3)


def test_large_libraries_have_43_terms() -> None:
    assert {len(Library.parse(terms)) for terms in LARGE_LIBRARIES.values()} == {43}


def test_regions_are_needed() -> None:
    with pytest.raises(ValueError, match="at least four"):
        instrumental.region_halves(3, TWO_FIELDS)
    with pytest.raises(ValueError, match="at least one pair"):
        moments.cross_moments(_TERMS, [])
    assert len(np.unique(regions(np.random.default_rng(0).random((400, 2))))) == _REGIONS


@pytest.mark.slow
def test_discover_takes_two_fields_for_a_large_library_and_says_so() -> None:
    observations = fts.observe(fts.simulate("transport"), "S100", seed=42, noise=0.5)
    result = fts.discover(observations, list(LARGE_LIBRARIES["powers"]), progress=False)
    assert result.selection is not None
    assert result.selection.method == "two fields"
    assert result.selection.support == ("u_x", "u_xx")
    assert "two fields" in str(result)
    small = fts.discover(observations, ["u", "u_x", "u_xx"], progress=False)
    assert small.selection is not None
    assert small.selection.method != "two fields"


def test_a_field_that_its_samples_do_not_resolve_is_doubted() -> None:
    # 51 of 256 sensors are too few for waves of this length, and halves of the frames share the error.
    observations = fts.observe(fts.simulate("ks sines"), "S20", seed=42, noise=0.1)
    posterior = condition_grid(observations, progress=False)
    gap = unresolved(posterior)
    assert gap.axis == "x"
    assert gap.error > TWO_FIELDS.unresolved
    chosen = two_fields(observations, _TERMS, TWO_FIELDS, np.random.default_rng(0))
    assert "more densely along x" in chosen.notes["doubt"]
    resolved = condition_grid(
        fts.observe(fts.simulate("transport"), "S100", seed=42, noise=0.5), progress=False
    )
    assert unresolved(resolved).error < TWO_FIELDS.unresolved


def test_patches_count_less_where_the_field_is_a_guess() -> None:
    trajectory = fts.simulate("transport")
    late = trajectory.t / trajectory.t[-1]
    seen = (late < 0.3) | (late > 0.6)
    gappy = replace(trajectory, t=trajectory.t[seen], u=trajectory.u[:, seen])
    posterior = condition_grid(fts.observe(gappy, "S100", seed=42, noise=0.1), progress=False)
    weak, phase = automatic(posterior, _TERMS), np.zeros(2)
    system = assemble(posterior, Library.parse(["u"]), weak, phase)
    variances = refits.row_variances(posterior.variance(), weak, [system])
    weights = row_weights(variances, weak, posterior.scale, TWO_FIELDS.negligible)
    when = patch_centers(trajectory.domain, weak, phase)[-1] / trajectory.t[-1]
    by_time = weights.reshape(-1, len(when)).mean(axis=0)
    assert by_time[(when > 0.4) & (when < 0.5)].max() < 0.5 * by_time[(when < 0.2) | (when > 0.7)].min()
    # Without an error to speak of all patches count alike.
    assert row_weights(variances, weak, posterior.scale, 1e6).min() > 1 - 1e-6


def test_scattered_points_are_halved_too(rng: np.random.Generator) -> None:
    observations = fts.observe(fts.simulate("transport"), "N3000", seed=42, noise=0.3)
    posterior = condition(observations, progress=False)
    first, second = _split(posterior)[0]
    counts = [half.sums.layout.count for half in (first, second)]
    assert sum(counts) == len(observations)
    assert abs(counts[0] - counts[1]) <= 1
    chosen = two_fields(observations, _TERMS, TWO_FIELDS, rng)
    assert chosen.notes["fields"] == 2
    assert chosen.support == ("u_x", "u_xx")


@pytest.mark.parametrize("name", development_names())
def test_development_problems_satisfy_their_equation_and_are_none_of_the_tables(name: str) -> None:
    entry, trajectory = development(name)
    assert name not in (*names("noisy"), *names(), *names("further"))
    terms = Library(entry.equation.terms)
    field = fts.TabulatedField((*trajectory.axes, trajectory.t), trajectory.u, entry.domain)
    system = build(field, terms, automatic(field, terms), TWO_FIELDS.svws)[0]
    estimate = np.linalg.lstsq(system.A, system.b, rcond=None)[0]
    np.testing.assert_allclose(estimate, entry.equation.coefficients, rtol=2e-3)
    assert {(term.alpha, term.q) for term in terms} <= {
        (term.alpha, term.q) for term in candidate_library(entry)
    }


def test_the_settings_taken_are_among_those_recorded() -> None:
    record = tuning.read_two_fields()
    for setting in {entry["setting"] for entry in record["outcomes"]} - {"rule"}:
        tried = [entry["value"] for entry in record["outcomes"] if entry["setting"] == setting]
        assert getattr(TWO_FIELDS, setting) in tried
    assert sum(record["cells"].values()) == len(list(tuning.cells()))
