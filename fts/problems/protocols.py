"""A protocol's text -> which samples it takes, and what a probe reads between grid points (A.1).

    S20     20 % of the sensors, at all frames          R20     20 % of all points (x, t), at random
    T20     20 % of the frames, at all sensors          N500    500 points at random
    S20-30  the same with 30 % of its samples missing   D20     20 % as many probes as sensors, drifting

For one seed a larger amount contains the smaller one's samples, and fewer gaps contain those of more gaps.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.interpolate import make_interp_spline

from fts import validation
from fts.domain import Domain
from fts.observations import LEAST_POINTS

_WRITE = (
    "write S20 (20 % of the sensors), T20 (of the frames), R20 (of all points, at random), "
    "N500 (500 points), D20 (drifting probes), or S20-30 (30 % of the samples missing)"
)
# Streams of the seeded generators: choices of different kinds, and noise, never share draws.
_SENSORS, _FRAMES, NOISE, _POINTS, _GAPS, _PROBES = 1, 2, 3, 4, 5, 6
# A probe drifts by at most this share of an axis while the record lasts.
_DRIFT = 0.1
# Of the splines that read between grid points; their error tests/problems/test_data.py measures.
_DEGREE = 7


@dataclass(frozen=True)
class Protocol:
    """What is taken: its kind, a fraction (for N a number of samples), and the share that is missing."""

    text: str
    kind: str
    amount: float
    missing: float


def parse_protocol(text: str) -> Protocol:
    """The protocol a text means; an unknown one is answered with those that are known."""
    validation.require_type(str, text, "protocol", _WRITE)
    match = re.fullmatch(r"([STRD])(\d+(?:\.\d+)?)(?:-(\d+(?:\.\d+)?))?|(N)(\d+)", text)
    if not match:
        raise ValueError(f"unknown protocol {text!r}: {_WRITE}")
    if match[4]:
        return Protocol(text, "N", float(match[5]), 0.0)
    percent, missing = float(match[2]), float(match[3] or 0)
    if not (0 < percent <= 100 and missing < 100) or (missing and match[1] == "R"):
        raise ValueError(f"unknown protocol {text!r}: {_WRITE}")
    return Protocol(text, match[1], percent / 100, missing / 100)


def sampled_indices(
    protocol: Protocol, points: int, frames: int, seed: int
) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"]]:
    """Which of the spatial points (or probes) are sampled, and in which frames: one pair per sample."""
    if protocol.kind in "RN":
        every = points * frames
        count = int(protocol.amount) if protocol.kind == "N" else sampled_count(protocol, every)
        if not LEAST_POINTS <= count <= every:
            raise ValueError(
                f"{protocol.text} asks for {count} of {every} points: take {LEAST_POINTS} to all of them"
            )
        chosen = np.sort(np.random.default_rng([seed, _POINTS]).permutation(every)[:count])
        return np.divmod(chosen, frames)
    rows, columns = np.arange(points), np.arange(frames)
    if protocol.kind == "S":
        order = np.random.default_rng([seed, _SENSORS]).permutation(rows)
        rows = np.sort(order[: sampled_count(protocol, points)])
    elif protocol.kind == "D":
        rows = rows[: sampled_count(protocol, points)]
    else:
        later = np.random.default_rng([seed, _FRAMES]).permutation(columns[1:])
        columns = np.sort(np.concatenate([[0], later[: sampled_count(protocol, frames) - 1]]))
    row, column = np.repeat(rows, columns.size), np.tile(columns, rows.size)
    if protocol.missing:
        # Drawn on the whole grid, as the noise is, so that a denser subset has the sparser one's gaps.
        kept = np.random.default_rng([seed, _GAPS]).random((points, frames))[row, column] >= protocol.missing
        row, column = row[kept], column[kept]
    return row, column


def probe_positions(
    domain: Domain, t: Float[np.ndarray, " nt"], probes: int, seed: int
) -> Float[np.ndarray, "probes nt d"]:
    """Where probes are: each starts anywhere and moves steadily, at most a tenth of an axis in the record.

    An axis that closes on itself is gone round; at an end a probe turns back.
    """
    rng = np.random.default_rng([seed, _PROBES])
    # One row per probe, so that the first probes of many are the probes of few.
    drawn = rng.random((probes, 2, domain.dimension))
    elapsed = (t - domain.t0) / domain.extents[-1]
    unit = drawn[:, None, 0] + _DRIFT * (2 * drawn[:, None, 1] - 1) * elapsed[:, None]
    turned = 1 - np.abs(1 - unit % 2)
    unit = np.where(domain.periodic, unit % 1, turned)
    return np.array(domain.low) + np.array(domain.extents[:-1]) * unit


def sampled_count(protocol: Protocol, n: int) -> int:
    """How many of n points or frames a protocol keeps."""
    # floor, on a product rounded first: 0.29 * 100 is 28.999999999999996.
    count = int(np.floor(round(protocol.amount * n, 9)))
    if count < LEAST_POINTS:
        raise ValueError(
            f"{protocol.text} keeps {count} of {n}: at least {LEAST_POINTS} are needed, "
            "take a larger fraction"
        )
    return count


def interpolate(
    axes: Sequence[np.ndarray],
    periods: Sequence[float | None],
    u: Float[np.ndarray, "..."],
    x: Float[np.ndarray, "n d"],
    frame: Int[np.ndarray, " n"],
) -> Float[np.ndarray, " n"]:
    """u(x_i) in frame_i; `u` is shaped (nx, [ny, [nz,]] nt), a period is None where an axis has ends."""
    interpolants = [_rows(axis, period) for axis, period in zip(axes, periods, strict=True)]
    values = np.empty(len(x))
    order = np.argsort(frame, kind="stable")
    # Frame by frame: rows for every sample at once would be as long as the samples times the grid.
    for chosen in np.split(order, np.flatnonzero(np.diff(frame[order])) + 1):
        first, *rest = (rows(points) for rows, points in zip(interpolants, x[chosen].T, strict=True))
        part = np.tensordot(first, u[..., frame[chosen[0]]], 1)
        for row in rest:
            part = np.einsum("nk,nk...->n...", row, part)
        values[chosen] = part
    return values


def _rows(axis: np.ndarray, period: float | None) -> Callable[[np.ndarray], np.ndarray]:
    """Points -> the weights of the grid's values at each of them."""
    if period is not None:
        return lambda points: _trigonometric(axis, period, points)
    return make_interp_spline(axis, np.eye(axis.size), min(_DEGREE, (axis.size - 2) | 1))


def _trigonometric(axis: np.ndarray, period: float, points: np.ndarray) -> np.ndarray:
    """Barycentric weights (-1)^j cot or csc of half the angle to grid point j, which add up to one."""
    # Sines and cosines of differences from those of the points: a hundredth as many to compute.
    at, of = np.pi / period * points[:, None], np.pi / period * axis
    sine = np.sin(at) * np.cos(of) - np.cos(at) * np.sin(of)
    hit = np.abs(sine) < 1e-14
    even = axis.size % 2 == 0
    factor = np.cos(at) * np.cos(of) + np.sin(at) * np.sin(of) if even else 1.0
    weights = np.where(np.arange(axis.size) % 2, -1.0, 1.0) * factor / np.where(hit, 1.0, sine)
    weights /= weights.sum(axis=1, keepdims=True)
    on_grid = hit.any(axis=1)
    weights[on_grid] = hit[on_grid]
    return weights
