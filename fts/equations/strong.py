"""Terms pointwise, from derivatives of the field: the strong form that classical selectors use (Section 4).

The weak form needs values of u only; this needs every derivative the term names, which is where noise enters.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from fts.equations.calculus import derivative
from fts.equations.conservative import IDENTITY
from fts.equations.terms import Term


def strong(
    term: Term, partial: Callable[[tuple[int, int, int]], Float[np.ndarray, "*grid"]]
) -> Float[np.ndarray, "*grid"]:
    """The term pointwise, from partial(alpha) = D_alpha u: D_xx q = q'' u_x^2 + q' u_xx."""
    products: dict[tuple, int] = {(): 1}  # factors D_beta u beside the derivative of q of order len(factors)
    for axis, order in enumerate(term.alpha):
        for _ in range(order):
            products = _differentiate(products, axis)
    u = partial(IDENTITY)
    outer = [term.q]
    for _ in range(term.order):
        outer.append(derivative(outer[-1]))
    total = np.zeros_like(u)
    for factors, count in products.items():
        if outer[len(factors)].monomials:
            value = term.scale * count * outer[len(factors)](u)
            for beta in factors:
                value = value * partial(beta)
            total = total + value
    return total


def spectral_partials(
    u: Float[np.ndarray, "nx nt"], length: float
) -> Callable[[tuple[int, int, int]], Float[np.ndarray, "nx nt"]]:
    """D_alpha u of a field tabulated on a periodic axis of the given length: multiply by (i k)^alpha."""
    k = 2j * np.pi * np.fft.rfftfreq(len(u), d=length / len(u))[:, None]
    spectrum = np.fft.rfft(u, axis=0)

    def partial(alpha: tuple[int, int, int]) -> np.ndarray:
        if any(alpha[1:]):
            raise ValueError(f"multi-index {alpha}: a table over x alone has no derivative along y or z")
        return np.fft.irfft(k ** alpha[0] * spectrum, n=len(u), axis=0)

    return partial


def _differentiate(products: dict[tuple, int], axis: int) -> dict[tuple, int]:
    """Product rule for q^(k)(u) * D_beta1 u * ... * D_betak u along one axis."""
    unit = tuple(int(other == axis) for other in range(3))
    result: dict[tuple, int] = {}
    for factors, count in products.items():
        grown = [tuple(sorted((*factors, unit)))]
        for i, beta in enumerate(factors):
            raised = tuple(a + b for a, b in zip(beta, unit, strict=True))
            grown.append(tuple(sorted((*factors[:i], raised, *factors[i + 1 :]))))
        for key in grown:
            result[key] = result.get(key, 0) + count
    return result
