"""Derivatives carried through a composition: truncated Taylor series in several variables.

A jet maps each multi-index beta <= alpha to the Taylor coefficient D^beta f / beta!. Products are Cauchy
products, and a function with w' = v(w) is composed by its differential equation, beta_i w_beta = sum
gamma_i z_gamma v_{beta-gamma}.
"""

from itertools import product
from math import factorial, prod

import numpy as np
from scipy.special import expit

Index = tuple[int, ...]
Jet = dict[Index, np.ndarray]


def indices_below(alpha: Index) -> list[Index]:
    """All multi-indices beta <= alpha, lower total order first."""
    return sorted(product(*(range(a + 1) for a in alpha)), key=sum)


def derivative(jet: Jet, alpha: Index) -> np.ndarray:
    """D^alpha f = alpha! times its Taylor coefficient."""
    return factorials(alpha) * jet[alpha]


def factorials(alpha: Index) -> int:
    """alpha!, the product of the factorials of its entries."""
    return prod(factorial(a) for a in alpha)


def multiply(f: Jet, g: Jet) -> Jet:
    """The jet of the product f g."""
    return {beta: _convolve(beta, f, g) for beta in f}


def sigmoid(z: Jet) -> Jet:
    """The jet of 1 / (1 + exp(-z)), from w' = w (1 - w)."""
    w: Jet = {}
    v: Jet = {}
    for beta in z:
        w[beta] = expit(z[beta]) if sum(beta) == 0 else _step(beta, z, v)
        v[beta] = w[beta] - _convolve(beta, w, w)
    return w


def swish(z: Jet) -> Jet:
    """The jet of z sigmoid(z)."""
    return multiply(z, sigmoid(z))


def softplus(z: Jet) -> Jet:
    """The jet of log(1 + exp(z)), whose derivative is the sigmoid."""
    s = sigmoid(z)
    return {beta: np.logaddexp(0.0, z[beta]) if sum(beta) == 0 else _step(beta, z, s) for beta in z}


def _step(beta: Index, z: Jet, v: Jet) -> np.ndarray:
    """w_beta from beta_i w_beta = sum over gamma with gamma_i >= 1 of gamma_i z_gamma v_{beta - gamma}."""
    i = next(axis for axis, order in enumerate(beta) if order)
    weighted = {gamma: gamma[i] / beta[i] * z[gamma] for gamma in indices_below(beta) if gamma[i]}
    return _convolve(beta, weighted, v)


def _convolve(beta: Index, f: Jet, g: Jet) -> np.ndarray:
    """Coefficient beta of the product, over the gamma that f holds."""
    terms = [f[gamma] * g[_minus(beta, gamma)] for gamma in indices_below(beta) if gamma in f]
    return np.sum(terms, axis=0)


def _minus(beta: Index, gamma: Index) -> Index:
    return tuple(b - g for b, g in zip(beta, gamma, strict=True))
