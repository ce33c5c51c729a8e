"""Classical selectors on a frozen field: strong STLSQ and STRidge, PySINDy's optimizers and weak library.

The field is differentiated analytically, so the strong form here suffers from the field's own errors only.
PySINDy is an optional extra (`pip install 'fts[peers]'`); nothing else in the package needs it.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from fts import sparse
from fts.frozen import Field, FrozenField
from fts.params import RELATIVE_THRESHOLD, SVWSParams, WeakParams
from fts.selection import Selection
from fts.strong import strong
from fts.terms import Library, TermError, parse_term

# PySINDy numbers the spatial axes.
_AXES = str.maketrans("123", "xyz")


@runtime_checkable
class Optimizer(Protocol):
    """What PySINDy's optimizers share: fit(A, b), which leaves coef_ with one row per target."""

    def fit(self, A: np.ndarray, b: np.ndarray) -> Any: ...


def strong_system(
    field: FrozenField, library: Library, points: Float[np.ndarray, "n d1"]
) -> tuple[Float[np.ndarray, "n J"], Float[np.ndarray, " n"]]:
    """A_ij = Theta_j(u_hat) and b_i = d_t u_hat at the points (x, [y,] t), from analytic derivatives."""
    library.check_dimension(field.domain.dimension)
    known: dict[tuple[int, ...], np.ndarray] = {}

    def partial(alpha: tuple[int, int, int]) -> np.ndarray:
        index = alpha[: field.domain.dimension]
        if index not in known:
            known[index] = field.derivative(points, index)
        return known[index]

    A = np.column_stack([strong(term, partial) for term in library])
    return A, field.derivative(points, (0,) * field.domain.dimension, 1)


def interior(field: Field, n: int, rng: np.random.Generator, margin: float = 0.02) -> np.ndarray:
    """n uniform points, `margin` of every extent away from the ends, where a field is least known."""
    domain = field.domain
    low = np.array((*domain.low, domain.t0))
    extents = np.array(domain.extents)
    return low + extents * (margin + (1 - 2 * margin) * rng.random((n, len(extents))))


def select_strong(
    field: FrozenField, library: Library, params: SVWSParams, rng: np.random.Generator, n: int = 4000
) -> Selection:
    """STLSQ on the strong form at a threshold relative to ||b||."""
    A, b = strong_system(field, library, interior(field, n, rng))
    size = float(np.linalg.norm(b)) or 1.0
    normal = sparse.normalize(A, b / size)
    x = sparse.stlsq(normal, RELATIVE_THRESHOLD, params.ridge, params.max_iterations)
    return Selection(library, normal.physical(x) * size, "strong STLSQ")


def select_stridge(
    field: FrozenField, library: Library, rng: np.random.Generator, n: int = 4000
) -> Selection:
    """PDE-FIND's STRidge with its own threshold search on the strong form."""
    A, b = strong_system(field, library, interior(field, n, rng))
    size = float(np.linalg.norm(b)) or 1.0
    normal = sparse.normalize(A, b / size)
    x = sparse.train_stridge(normal, 1e-5, 0.02, 25, rng)
    return Selection(library, normal.physical(x) * size, "strong STRidge")


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
        weak = pysindy.WeakPDELibrary(
            pysindy.PolynomialLibrary(degree=degree, include_bias=False),
            derivative_order=max(library.order, 1),
            spatiotemporal_grid=np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1),
            include_bias=True,
            K=int(np.prod(params.patches)),
            H_xt=list(params.half_widths),
            p=params.power,
        )
        weak.fit([u])
    theta = np.asarray(weak.transform([u])[0])
    b = np.ravel(np.asarray(weak.convert_u_dot_integral(u)))
    return _columns(theta, weak.get_feature_names(), library), b


def _columns(theta: np.ndarray, names: list[str], library: Library) -> np.ndarray:
    """PySINDy's columns in our order and scaling; its names look like x0^2x0_11."""
    found = {}
    for column, name in zip(theta.T, names, strict=True):
        text = re.sub(r"_(\d+)", lambda m: "_" + m[1].translate(_AXES), name.replace("x0", "u"))
        text = re.sub(r"(?<=[\d\w])u(?=_)", "*u", text)
        try:
            term = parse_term(text)
        except TermError:  # u*u_xx and its like have no weak form of ours
            continue
        found[term] = column
    missing = [str(term) for term in library if term not in found]
    if missing:
        raise ValueError(f"PySINDy's weak library has no column for {', '.join(missing)}: drop these terms")
    return np.column_stack([found[term] for term in library])


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
