"""Test functions on patches: where they lie, their nodes and their quadrature weights (Supplement B.1).

The test function rho_p(s) = (1 - s^2)^p and its first p - 1 derivatives vanish at s = +-1, so integrating by
parts leaves no boundary term. Patches lie on a regular grid and share their half-widths, so the nodes of all
patches form one tensor grid and the weights along an axis are the same for every patch.
"""

from collections.abc import Sequence
from functools import cache
from math import comb, perm

import numpy as np
from jaxtyping import Float

from fts.domain import Domain
from fts.equations.terms import Library
from fts.params.types import Rule, WeakParams

Phase = Float[np.ndarray, " d1"]  # of a patch grid, in spacings: space, then time


def phases(rng: np.random.Generator, n: int, d: int) -> Float[np.ndarray, "n d1"]:
    """n independent phases, uniform in [0, 1) for each of d spatial axes and time."""
    return rng.random((n, d + 1))


def patch_centers(domain: Domain, params: WeakParams, phase: Phase) -> list[Float[np.ndarray, " n"]]:
    """Centers per axis: low + h + (i + phase) * spacing, spacing = (extent - 2 h) / n, all inside."""
    if len(phase) != domain.dimension + 1 or not ((phase >= 0) & (phase < 1)).all():
        raise ValueError(f"phase {phase}: give {domain.dimension + 1} fractions in [0, 1), one per axis")
    axes = zip(domain.axes, params.half_widths, params.patches, phase, strict=True)
    return [low + h + (np.arange(n) + s) * (high - low - 2 * h) / n for (low, high, _), h, n, s in axes]


def patch_nodes(centers: Sequence[Float[np.ndarray, " _"]], params: WeakParams) -> list[np.ndarray]:
    """All quadrature nodes of the patches with these centers, axis by axis, patch after patch."""
    axes = zip(centers, params.half_widths, params.nodes, strict=True)
    return [(center[:, None] + h * quadrature(n, params.rule)[0]).ravel() for center, h, n in axes]


@cache
def quadrature(nodes: int, rule: Rule = "midpoint") -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on [-1, 1]; the midpoint rule takes `nodes` equal cells."""
    if rule == "gauss":
        s, w = np.polynomial.legendre.leggauss(nodes)
    elif rule == "midpoint":
        s, w = (2 * np.arange(nodes) + 1) / nodes - 1, np.full(nodes, 2.0 / nodes)
    else:
        raise ValueError(f"unknown quadrature rule {rule!r}: choose 'midpoint' or 'gauss'")
    s.setflags(write=False)  # every caller gets these two arrays
    w.setflags(write=False)
    return s, w


def bump(s: Float[np.ndarray, "..."], p: int, order: int = 0) -> Float[np.ndarray, "..."]:
    """The derivative of the given order of rho_p(s) = (1 - s^2)^p, zero outside (-1, 1)."""
    # Leibniz on (1 - s)^p (1 + s)^p: every summand keeps factors that vanish at the ends, where the expanded
    # polynomial would cancel.
    total = np.zeros_like(s)
    for k in range(order + 1):
        factor = comb(order, k) * (-1) ** k * perm(p, k) * perm(p, order - k)
        if factor:
            total = total + factor * (1 - s) ** (p - k) * (1 + s) ** (p - order + k)
    return np.where(np.abs(s) < 1, total, 0.0)


def weights(
    half_width: float, nodes: int, p: int, order: int, rule: Rule = "midpoint"
) -> Float[np.ndarray, " nodes"]:
    """Weights of a derivative of the test function on an axis: sum_i w_i f_i ~ int f psi^(order)."""
    s, w = quadrature(nodes, rule)
    return bump(s, p, order) * w * half_width ** (1 - order)


def check_geometry(domain: Domain, library: Library, params: WeakParams) -> None:
    """Refuse terms on missing axes, a test function too rough, and patches that do not fit."""
    library.check_dimension(domain.dimension)
    lengths = {len(params.half_widths), len(params.patches), len(params.nodes)}
    if lengths != {domain.dimension + 1}:
        d = domain.dimension
        raise ValueError(f"{params}: give half_widths, patches and nodes for {d} spatial axes and time")
    if params.power <= max(library.order, 1):
        raise ValueError(
            f"power p = {params.power} must exceed the highest derivative order, "
            f"{max(library.order, 1)}: the test function's derivatives must vanish at the edge of a patch"
        )
    axes = zip(domain.extents, params.half_widths, params.patches, params.nodes, strict=True)
    for extent, h, n, nodes in axes:
        if not 0 < 2 * h < extent or n < 1 or nodes < 2:
            raise ValueError(
                f"half-width {h}, {n} patches, {nodes} nodes on an axis of length {extent:.6g}: use "
                "0 < 2 h < length, at least one patch and two nodes"
            )
