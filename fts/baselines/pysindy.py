"""PySINDy's optimizers and weak library on the systems and fields of this package.

PySINDy is an optional extra (`pip install 'fts[peers]'`); nothing else in the package needs it.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from fts import fitting
from fts.baselines.registry import register
from fts.equations.grammar import TermError
from fts.equations.terms import Library, parse_term
from fts.fields.frozen import Field
from fts.observations import Observations
from fts.params.types import FieldParams, WeakParams
from fts.selection import sparse
from fts.selection.selection import Selection

# PySINDy numbers the spatial axes.
_AXES = str.maketrans("123", "xyz")


@dataclass(frozen=True)
class PySINDyParams:
    """PySINDy's weak library on a field tabulated on a grid, and its STLSQ."""

    field: FieldParams
    weak: WeakParams
    grid: tuple[int, ...]
    threshold: float  # relative to ||b||, on unit columns
    ridge: float


@dataclass(frozen=True)
class PySINDyGridParams:
    """PySINDy as its examples use it: its own weak library on the samples of a full grid, and STLSQ."""

    degree: int  # of products of the components
    order: int  # of derivatives
    domains: int
    half_width: float  # of a domain, in extents of the axes
    power: int
    threshold: float  # relative to ||b||, on unit columns
    ridge: float


def _grid_params(half_width: float, threshold: float) -> PySINDyGridParams:
    return PySINDyGridParams(3, 2, 400, half_width, 4, threshold, 1e-8)


# Where its library holds the equations: first order in time, products with one derivative at most. Widths and
# thresholds are the best ones of 18 on development seeds, clean and with 5 % noise, for each problem.
GRIDS = {
    "fitzhugh_nagumo": _grid_params(0.1, 0.05),
    "gray_scott": _grid_params(0.1, 0.05),
    "coupled_burgers": _grid_params(0.1, 0.1),
    "shallow_water": _grid_params(0.15, 0.05),
    "schroedinger": _grid_params(0.1, 0.1),
}


@runtime_checkable
class Optimizer(Protocol):
    """What PySINDy's optimizers share: fit(A, b), which leaves coef_ with one row per target."""

    def fit(self, A: np.ndarray, b: np.ndarray) -> Any: ...


def select_with(
    A: Float[np.ndarray, "m J"], b: Float[np.ndarray, " m"], library: Library, optimizer: Optimizer
) -> Selection:
    """Any optimizer of PySINDy's interface on a system of ours, weak or strong."""
    fitted: Any = optimizer.fit(A, b[:, None])
    return Selection(library, np.ravel(fitted.coef_).astype(float), type(optimizer).__name__)


def pysindy_weak_system(
    field: Field, library: Library, params: WeakParams, shape: tuple[int, ...], seed: int
) -> tuple[Float[np.ndarray, "m J"], Float[np.ndarray, " m"]]:
    """The same library through PySINDy's own WeakPDELibrary, on the field over a grid of `shape`."""
    pysindy = _pysindy()
    axes = _grid(field, shape)
    degree = max(int(term.q.degree or 1) for term in library)
    u = field.on_grid(*axes)[..., None]
    with _legacy_seed(seed):
        grid, order = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1), max(library.order, 1)
        patches = {"K": int(np.prod(params.patches)), "H_xt": list(params.half_widths), "p": params.power}
        powers = pysindy.PolynomialLibrary(degree=degree, include_bias=False)
        weak = pysindy.WeakPDELibrary(
            powers, derivative_order=order, spatiotemporal_grid=grid, include_bias=True, **patches
        )
        weak.fit([u])
    theta = np.asarray(weak.transform([u])[0])
    b = np.ravel(np.asarray(weak.convert_u_dot_integral(u)))
    return _columns(theta, weak.get_feature_names(), library), b


@register("PySINDy weak", PySINDyParams)
def pysindy_weak(
    observations: Observations, library: Library, params: PySINDyParams, rng: np.random.Generator
) -> Selection:
    """A frozen field, then PySINDy's weak library and its STLSQ on it, both in units of ||b||."""
    field = fitting.obtain(observations, params.field)
    seed = int(rng.integers(1 << 31))
    A, b = pysindy_weak_system(field, library, params.weak, params.grid, seed)
    size = float(np.linalg.norm(b)) or 1.0
    normal = sparse.normalize(A, b / size)
    optimizer = _pysindy().STLSQ(threshold=params.threshold, alpha=params.ridge)
    chosen = select_with(normal.A, normal.b, library, optimizer)
    return Selection(library, normal.physical(chosen.xi) * size, "PySINDy weak STLSQ", field=field)


def pysindy_weak_terms(
    trajectories: Sequence[Float[np.ndarray, "..."]],
    axes: Sequence[Float[np.ndarray, " _"]],
    components: Sequence[str],
    params: PySINDyGridParams,
    seed: int,
) -> dict[str, dict[str, float]]:
    """The terms that PySINDy finds for every component: arrays (x, [y,] t, component), all on one grid."""
    pysindy, grid = _pysindy(), np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    half_widths = [params.half_width * float(axis[-1] - axis[0]) for axis in axes]
    powers = pysindy.PolynomialLibrary(degree=params.degree, include_bias=False)
    with _legacy_seed(seed):
        weak = pysindy.WeakPDELibrary(
            powers,
            derivative_order=params.order,
            spatiotemporal_grid=grid,
            include_bias=True,
            K=params.domains,
            H_xt=half_widths,
            p=params.power,
        )
        weak.fit(list(trajectories))
    A = np.concatenate([np.asarray(part) for part in weak.transform(list(trajectories))])
    b = np.concatenate([np.asarray(weak.convert_u_dot_integral(u)) for u in trajectories])
    texts, terms = [_as_text(name, components) for name in weak.get_feature_names()], {}
    for name, target in zip(components, b.T, strict=True):
        size = float(np.linalg.norm(target)) or 1.0
        normal = sparse.normalize(A, target / size)
        fitted = pysindy.STLSQ(threshold=params.threshold, alpha=params.ridge).fit(
            normal.A, normal.b[:, None]
        )
        xi = normal.physical(np.ravel(fitted.coef_)) * size
        terms[name] = {text: float(c) for text, c in zip(texts, xi, strict=True) if c != 0}
    return terms


def _as_text(name: str, components: Sequence[str]) -> str:
    """x0^2x1_11 as u^2*v_xx."""
    factors = re.findall(r"x(\d+)(\^\d+)?(?:_(\d+))?", name)
    texts = [
        components[int(index)] + power + ("_" + letters.translate(_AXES) if letters else "")
        for index, power, letters in factors
    ]
    return "*".join(texts) or "1"


def _columns(theta: np.ndarray, names: list[str], library: Library) -> np.ndarray:
    """PySINDy's columns in our order and scaling; its names look like x0^2x0_11."""
    columns = {}
    for column, name in zip(theta.T, names, strict=True):
        text = re.sub(r"_(\d+)", lambda m: "_" + m[1].translate(_AXES), name.replace("x0", "u"))
        text = re.sub(r"(?<=[\d\w])u(?=_)", "*u", text)
        try:
            term = parse_term(text)
        except TermError:  # u*u_xx and its like have no weak form of ours
            continue
        columns[term] = column
    missing = [str(term) for term in library if term not in columns]
    if missing:
        raise ValueError(f"PySINDy's weak library has no column for {', '.join(missing)}: drop these terms")
    return np.column_stack([columns[term] for term in library])


def _grid(field: Field, shape: tuple[int, ...]) -> list[np.ndarray]:
    domain = field.domain
    ends = zip((*domain.low, domain.t0), (*domain.high, domain.t1), shape, strict=True)
    return [np.linspace(low, high, n) for low, high, n in ends]


@contextmanager
def _legacy_seed(seed: int) -> Iterator[None]:
    """PySINDy places its subdomains by NumPy's global generator; its state is restored afterwards."""
    before = np.random.get_state()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(before)  # noqa: NPY002


def _pysindy() -> Any:
    try:
        import pysindy
    except ImportError:
        raise ValueError("PySINDy is not installed: pip install 'fts[peers]'") from None
    return pysindy
