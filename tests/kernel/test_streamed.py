"""A stream's posterior is that of its samples in memory: mean, draws, halves, on any number of workers."""

import os
import signal
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fts
from fts.fitting import Fit, fit_posterior
from fts.io import streams
from fts.kernel import streamed
from fts.kernel.normal_equations import FourierSums
from fts.kernel.separable import solve_with_nugget
from fts.kernel.streamed import StreamedPosterior

BOX = fts.Domain((0.0,), (1.0,), 0.0, 2.0, (False,))
AXES = np.linspace(0, 1, 23), np.linspace(0, 2, 17)


def _wave(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    return np.sin(2 * np.pi * (x - t)) * np.exp(-x)


def _samples(layout: str, rng: np.random.Generator, count: int = 4000) -> fts.Observations:
    """Anywhere; of sensors with clocks of their own; of probes that are read at the same times."""
    x, t = rng.random(count), 2 * rng.random(count)
    if layout == "sensors":
        x = rng.choice(rng.random(30), count)
    if layout == "frames":
        t = rng.choice(np.linspace(0, 2, 25), count)
    y = 3 + _wave(x, t) + 0.05 * rng.standard_normal(count)
    return fts.Observations(x[:, None], t, y, BOX)


def _cut(observations: fts.Observations, sizes: tuple[int, ...] = (1, 999, 2000, 1000)) -> list[Any]:
    ends = np.cumsum((0, *sizes))
    x, t, u = observations.x[:, 0], observations.t, observations.y
    return [{"x": x[i:j], "t": t[i:j], "u": u[i:j]} for i, j in pairwise(ends)]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks and a reservoir of some hundred samples."""
    monkeypatch.setattr(streams, "BLOCK", 700)
    monkeypatch.setattr(streams, "RESERVOIR", 600)


@pytest.fixture
def calm(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short search: what it chooses does not matter where two fits are compared."""
    monkeypatch.setattr("fts.kernel.search._WHOLE", fts.kernel.search.Effort(6, 2, 1.0))


def _posterior(fit: Fit) -> StreamedPosterior:
    assert isinstance(fit.posterior, StreamedPosterior)
    return fit.posterior


@pytest.mark.usefixtures("small", "calm")
@pytest.mark.parametrize("layout", ["", "sensors", "frames"])
def test_a_stream_gives_the_field_of_samples_in_memory(layout: str, rng: np.random.Generator) -> None:
    observations = _samples(layout, rng)
    posterior = _posterior(fit_posterior(observations, progress=False))
    assert posterior.system.layout.grouping == layout
    assert posterior.count == 4000
    stream = fts.stream_samples(_cut(observations), BOX)
    cut = _posterior(fit_posterior(stream, progress=False))
    assert cut.choice == posterior.choice
    assert np.abs(cut.on_grid(*AXES) - posterior.on_grid(*AXES)).max() < 1e-10
    # The same solve from all samples at once.
    values = (observations.y - posterior.mean) / posterior.scale
    sums = FourierSums(observations.x, observations.t, values, BOX, layout)
    choice, system, solution = solve_with_nugget(sums, posterior.choice)
    assert choice == posterior.choice
    mean = streamed.mean_function(system, solution.z)
    assert np.abs(mean.on_grid(*AXES) - posterior.standardized(*AXES)).max() < 1e-8
    residuals = posterior.mean + posterior.scale * mean.at(observations.x, observations.t) - observations.y
    assert posterior.noise == pytest.approx(np.sqrt(np.sum(residuals**2) / (4000 - system.freedom)), rel=1e-6)


def test_a_small_stream_is_fitted_as_samples_in_memory(rng: np.random.Generator) -> None:
    observations = _samples("", rng, 300)
    expected = fts.fit(observations, progress=False)
    field = fts.fit(fts.stream_samples(_cut(observations, (100, 150, 50)), BOX), progress=False)
    assert np.array_equal(field.on_grid(*AXES), expected.on_grid(*AXES))


@pytest.mark.slow
def test_a_million_samples_from_a_file_give_the_field_of_samples_in_memory(
    rng: np.random.Generator, tmp_path: Path
) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    observations = _samples("", rng, 1_000_000)
    table = pa.table({"x": observations.x[:, 0], "t": observations.t, "u": observations.y})
    parquet.write_table(table, tmp_path / "samples.parquet", row_group_size=300_000)
    (tmp_path / "part").mkdir()
    for i, start in enumerate(range(0, 1_000_000, 230_000)):
        parquet.write_table(table.slice(start, 230_000), tmp_path / "part" / f"{i}.parquet")
    posterior = _posterior(fit_posterior(observations, progress=False))
    for source in ("samples.parquet", "part"):
        stream = fts.stream_samples(tmp_path / source, BOX, kept=tmp_path / "kept")
        from_file = _posterior(fit_posterior(stream, progress=False))
        assert from_file.count == 1_000_000
        assert from_file.choice == posterior.choice
        assert np.abs(from_file.on_grid(*AXES) - posterior.on_grid(*AXES)).max() < 1e-10
    # The same solve from the sums of all samples at once.
    values = (observations.y - posterior.mean) / posterior.scale
    sums = FourierSums(observations.x, observations.t, values, BOX, "")
    _, system, solution = solve_with_nugget(sums, posterior.choice)
    whole = streamed.mean_function(system, solution.z).on_grid(*AXES)
    assert np.abs(whole - posterior.standardized(*AXES)).max() < 1e-10


@pytest.mark.usefixtures("small", "calm")
@pytest.mark.parametrize("layout", ["", "sensors"])
def test_draws_have_the_covariance_of_the_posterior(layout: str, rng: np.random.Generator) -> None:
    system = _posterior(fit_posterior(_samples(layout, rng), progress=False)).system
    shape = system.diagonal.shape
    matrix = np.array([system.apply(row.reshape(shape)).ravel() for row in np.eye(system.diagonal.size)])
    root = np.sqrt(system.diagonal.ravel())
    values, vectors = np.linalg.eigh(matrix / np.outer(root, root))
    white = np.random.default_rng(5).standard_normal(shape).ravel()
    expected = np.sqrt(system.nugget) * (vectors @ ((vectors.T @ white) / np.sqrt(values))) / root
    drawn = streamed.draw_coefficients(system, np.random.default_rng(5)).ravel()
    assert np.linalg.norm(drawn - expected) < 5e-3 * np.linalg.norm(expected)


@pytest.mark.usefixtures("small", "calm")
@pytest.mark.parametrize("layout", ["", "sensors", "frames"])
def test_errors_are_as_large_as_those_drawn_at_the_samples(
    layout: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    observations = _samples(layout, rng, 900)
    posterior = _posterior(fit_posterior(observations, progress=False))
    monkeypatch.setattr(streams, "RESERVOIR", 1000)
    # As exact as ours are, for which a solve may not stop early.
    monkeypatch.setattr("fts.kernel.normal_equations._DRAW_TOLERANCE", 1e-7)
    monkeypatch.setattr("fts.kernel.normal_equations._DRAW_STEPS", 3000)
    monkeypatch.setattr(
        "fts.kernel.separable.search_scattered",
        lambda *_: (posterior.choice, lambda: 1.0),
    )
    whole = fit_posterior(observations, progress=False).posterior
    assert whole is not None
    ours, theirs = (
        np.mean([p.draw_error(AXES, rng) ** 2 for _ in range(60)], axis=0)
        for p in (fts.kernel.streamed.replace(posterior, calibrate=lambda: 1.0), whole)
    )
    assert np.median(ours / theirs) == pytest.approx(1, abs=0.25)
    assert ours.mean() == pytest.approx(theirs.mean(), rel=0.3)


@pytest.mark.usefixtures("small", "calm")
def test_halves_are_fields_of_disjoint_samples(rng: np.random.Generator) -> None:
    observations = _samples("", rng)
    fit = fit_posterior(observations, progress=False)
    posterior = _posterior(fit)
    pairs = posterior.split(5, 1.0, rng)
    assert len(pairs) == 3
    codes = streams.row_codes((observations.x[:, 0], observations.t))
    values = (observations.y - posterior.mean) / posterior.scale
    for (first, second), parts in zip(pairs, ((0, 1), (0, 2), (0, 3)), strict=True):
        assert first.system.layout.count + second.system.layout.count == 4000
        for half, inside in ((first, np.isin(codes % 4, parts)), (second, ~np.isin(codes % 4, parts))):
            assert half.system.layout.count == inside.sum()
            sums = FourierSums(observations.x[inside], observations.t[inside], values[inside], BOX, "")
            _, system, solution = solve_with_nugget(sums, half.choice)
            expected = streamed.mean_function(system, solution.z).on_grid(*AXES)
            assert np.abs(half.standardized(*AXES) - expected).max() < 1e-6
    assert len(fit.halves(2, 1.0, rng)) == 2


@pytest.mark.usefixtures("small", "calm")
def test_where_parts_would_take_too_much_there_are_no_halves(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = _posterior(fit_posterior(_samples("", rng), progress=False))
    monkeypatch.setattr(streamed, "_LARGEST_SUMS", 1)
    posterior = _posterior(fit_posterior(_samples("", np.random.default_rng(20270)), progress=False))
    assert posterior.split(3, 1.0, rng) == ()
    assert np.abs(posterior.on_grid(*AXES) - expected.on_grid(*AXES)).max() < 1e-9


@pytest.mark.usefixtures("small", "calm")
def test_waves_beyond_the_limit_are_named(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fts.kernel.normal_equations._MOST_MODES", 60)
    with pytest.warns(
        UserWarning, match="samples resolve waves up to .* are fitted: fit parts of the domain"
    ):
        fit_posterior(_samples("", rng), progress=False)


@pytest.mark.usefixtures("small", "calm")
def test_waves_shorter_than_the_distances_of_the_reservoir_are_doubted(rng: np.random.Generator) -> None:
    x, t = rng.random(4000), 2 * rng.random(4000)
    y = np.sin(2 * np.pi * (41 * x - 37 * t)) + np.cos(2 * np.pi * (35 * x + 39 * t))
    with pytest.warns(UserWarning, match="of 4,000 samples, .* hardly predict each other: .*fit parts"):
        fit_posterior(fts.Observations(x[:, None], t, y, BOX), progress=False)


@pytest.mark.usefixtures("small")
def test_an_equation_is_discovered_in_a_stream(rng: np.random.Generator, tmp_path: Path) -> None:
    x, t = 2 * np.pi * rng.random(3000), rng.random(3000)
    u = np.exp(-t) * np.sin(x - t) + np.exp(-4 * t) * np.cos(2 * (x - t))
    box = fts.Domain((0.0,), (2 * np.pi,), 0.0, 1.0, (True,))
    stream = fts.stream_samples(partial(_tables, x, t, u))
    result = fts.discover(stream, ["u", "u_x", "u_xx", "u*u_x"], domain=box, progress=False)
    assert {str(term) for term in result.selection.support} == {"u_x", "u_xx"}
    assert result.selection.coefficients["u_xx"] == pytest.approx(1, abs=0.02)
    assert result.fit.count == 3000
    assert len(result.observations) == 600
    with pytest.raises(ValueError, match="lies outside"):
        fts.discover(stream, domain=BOX, progress=False)


def _tables(*columns: np.ndarray) -> Iterator[dict[str, np.ndarray]]:
    for i in range(0, len(columns[0]), 800):
        yield dict(zip("xtu", (c[i : i + 800] for c in columns), strict=True))


def _slowly(path: Path, tables: list[Any], kill: bool) -> list[Any]:
    """The tables; in the first of several workers that read them its process is killed."""
    if kill and not path.exists():
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return tables


@pytest.mark.slow
def test_workers_give_the_same_field_when_one_is_killed(rng: np.random.Generator, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    from dataclasses import replace

    from fts.lab.studies.workers import workers

    observations = _samples("", rng, 400_000)
    expected = _posterior(fit_posterior(observations, progress=False))
    stream = fts.stream_samples(_cut(observations, (50_000,) * 8), BOX)
    chunks = list(stream.chunks)
    chunks[5] = replace(chunks[5], tables=partial(_slowly, tmp_path / "killed", chunks[5].tables(), True))
    with workers(None, 2) as client:
        addresses = [*client.scheduler_info()["workers"], client.scheduler.address]
        assert all("://127.0.0.1:" in address for address in addresses)
        fitted = fit_posterior(replace(stream, chunks=chunks), client=client, progress=False)
        assert (tmp_path / "killed").exists()
        posterior = _posterior(fitted)
        assert posterior.count == 400_000
        assert posterior.choice == expected.choice
        assert np.abs(posterior.on_grid(*AXES) - expected.on_grid(*AXES)).max() < 1e-10
        array = pytest.importorskip("dask.array")
        table = np.column_stack([observations.x, observations.t, observations.y])
        collection = fts.stream_samples(array.from_array(table, chunks=(90_000, 3)), BOX)
        same = _posterior(fit_posterior(collection, client=client, progress=False))
        assert np.abs(same.on_grid(*AXES) - expected.on_grid(*AXES)).max() < 1e-10
        # Samples in memory, and a chunk that is wrong.
        shared = _posterior(fit_posterior(observations, client=client, progress=False))
        assert np.abs(shared.on_grid(*AXES) - expected.on_grid(*AXES)).max() < 1e-10
        chunks[3] = replace(
            chunks[3], tables=partial(list, [{"x": np.ones(2), "t": np.ones(2), "u": np.ones(3)}])
        )
        with pytest.raises(ValueError, match="chunk 3 holds arrays of shapes"):
            fit_posterior(replace(stream, chunks=chunks), client=client, progress=False)
        # A partition that the collection's own tasks cannot make.
        parts = [array.from_array(table[:9000], chunks=(1000, 3)), _unmade(array)]
        broken = fts.stream_samples(array.concatenate(parts), BOX)
        with pytest.raises(ValueError, match=r"partition 9 of the Dask Array is damaged .*OSError: gone"):
            fit_posterior(broken, client=client, progress=False)


def _unmade(array: Any) -> Any:
    from dask import delayed

    return array.from_delayed(delayed(_gone)(), shape=(1000, 3), dtype=float)


def _gone() -> None:
    raise OSError("gone")
