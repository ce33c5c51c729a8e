"""A system (X, y) -> the lasso with its penalty chosen by cross-validation, exact to rounding.

argmin ||y - X w||^2 / (2 n) + alpha ||w||_1 is piecewise linear in alpha. For the few columns of a library
the pieces are followed one by one (homotopy): a small linear solve each, where descent to a tolerance creeps
along collinear columns and stops before the optimum.
"""

import numpy as np
from jaxtyping import Float

# A column that the active ones explain up to this fraction of its square does not join them.
_DEPENDENT = 1e-12
# Two kinks nearer than this, relative to alpha, are one.
_SAME = 1e-12
# Pieces per column; a path has about two.
_MOST = 50


def lasso_cv(
    X: Float[np.ndarray, "n J"], y: Float[np.ndarray, " n"], folds: int, alphas: int, ratio: float
) -> Float[np.ndarray, " J"]:
    """The lasso on all rows at the alpha of lowest mean squared error over unshuffled folds, no intercept.

    The grid runs from the smallest alpha that selects nothing down to `ratio` of it.
    """
    n = len(y)
    if n < folds or folds < 2:
        raise ValueError(f"{n} rows in {folds} folds: give at least two folds and a row in each")
    gram, moment = X.T @ X, X.T @ y
    largest = float(np.abs(moment).max()) / n
    if largest == 0.0:
        return np.zeros(X.shape[1])
    grid = np.geomspace(largest, ratio * largest, alphas)
    errors = np.zeros((folds, alphas))
    for fold, rows in enumerate(np.array_split(np.arange(n), folds)):
        out, target = X[rows], y[rows]
        m = n - len(rows)
        W = lasso_path((gram - out.T @ out) / m, (moment - out.T @ target) / m, grid)
        errors[fold] = ((target[:, None] - out @ W.T) ** 2).mean(axis=0)
    best = grid[int(np.argmin(errors.mean(axis=0)))]
    return lasso_path(gram / n, moment / n, np.array([best]))[0]


def lasso_path(
    G: Float[np.ndarray, "J J"], q: Float[np.ndarray, " J"], alphas: Float[np.ndarray, " A"]
) -> Float[np.ndarray, "A J"]:
    """argmin w^T G w / 2 - q^T w + alpha |w|_1 at every one of the descending alphas."""
    W = np.zeros((len(alphas), len(q)))
    alpha = float(np.abs(q).max())
    signs = np.zeros(len(q))
    done = int(np.searchsorted(-alphas, -alpha, side="right"))  # above the first kink nothing is selected
    changed = int(np.argmax(np.abs(q)))
    signs[changed] = np.sign(q[changed])
    for _ in range(_MOST * len(q)):
        active = np.flatnonzero(signs)
        # w = start - alpha * rate on the active columns, q - G w = rest + alpha * slope on the others.
        start, rate = np.linalg.solve(G[np.ix_(active, active)], np.stack([q[active], signs[active]], 1)).T
        following, event = _next_kink(G, q, signs, (start, rate), alpha, changed)
        upto = int(np.searchsorted(-alphas, -following, side="right")) if event is not None else len(alphas)
        W[done:upto, active] = start - alphas[done:upto, None] * rate
        done = max(done, upto)
        if event is None or done == len(alphas):
            return W
        alpha = following
        changed, signs[event[0]] = event
    raise ValueError(f"a lasso path over {len(q)} columns has no end: drop dependent columns")


def _next_kink(
    G: np.ndarray,
    q: np.ndarray,
    signs: np.ndarray,
    line: tuple[np.ndarray, np.ndarray],
    alpha: float,
    changed: int,
) -> tuple[float, tuple[int, float] | None]:
    """The largest smaller alpha at which a column leaves (sign 0) or joins (its sign), and which one."""
    start, rate = line
    active = np.flatnonzero(signs)
    kinks: list[tuple[float, tuple[int, float]]] = []
    for j, a, b in zip(active, start, rate, strict=True):
        # The column that joined last is zero at the present alpha already.
        if j != changed and b != 0.0 and a / b > 0.0:
            kinks.append((a / b, (int(j), 0.0)))
    rest, slope = q - G[:, active] @ start, G[:, active] @ rate
    for j in np.flatnonzero(signs == 0):
        column = G[active, j]
        left = (
            G[j, j] - column @ np.linalg.solve(G[np.ix_(active, active)], column) if len(active) else G[j, j]
        )
        if left <= _DEPENDENT * G[j, j]:
            continue
        for sign in (1.0, -1.0):
            if j == changed and sign * (rest[j] + alpha * slope[j]) > 0:
                continue  # it left here a moment ago
            if sign - slope[j] != 0.0:
                kinks.append((rest[j] / (sign - slope[j]), (int(j), sign)))
    kinks = [kink for kink in kinks if 0.0 < kink[0] <= alpha * (1.0 + _SAME)]
    return max(kinks, default=(0.0, None), key=lambda kink: kink[0])
