"""Settings of selection by two fields, and the large libraries it is meant for."""

from dataclasses import dataclass

from fts.params.paper import PAPER
from fts.params.types import SVWSParams, WeakParams


@dataclass(frozen=True)
class TwoFieldsParams:
    """Selection by the cross products of two fields, fitted to disjoint halves of the samples."""

    weak: WeakParams | None  # patches; from the field itself where there are none
    svws: SVWSParams  # the rule it falls back to, and whose phases and ridge it shares
    relative: bool  # lam0 is RELATIVE_THRESHOLD of ||b||, as for problems the paper has no threshold for
    splits: int  # ways of halving the samples, whose moments are averaged
    phases: int  # weak systems per field
    smoothing: float  # nugget of the halves in units of the one that reconstructs best
    negligible: float  # variance of the field, in units of the samples', up to which patches count alike
    most_terms: int  # of a proposal
    width: int  # supports of each size that the search for proposals keeps
    draws: int  # times the regions are halved at random, to propose on one half and compare on the other
    tolerance: float  # differences of cross risk, in units of b^2, that may be the fields' shared error
    shared: float  # the same in units of the lowest risk, which that error is part of
    reliability: float  # least share of a combination of columns that both fields must agree on
    size: float  # least size of a term, in units of ||b||
    chance: float  # that any term of the library that is none of the equation seems significant
    disagreement: float  # standard errors up to which a refit on the whole field is preferred
    unresolved: float  # error at left-out slices, beyond the noise, from which the field is not resolved
    split_seed: int


def _powers(orders: tuple[str, ...], highest: int) -> tuple[str, ...]:
    """1, and D(u^p) for every derivative, "" being none, and 1 <= p <= highest."""
    terms = ["1"]
    for letters in orders:
        for p in range(1, highest + 1):
            power = "u" if p == 1 else f"u^{p}"
            terms.append(power if not letters else f"u_{letters}" if p == 1 else f"D_{letters}({power})")
    return tuple(terms)


# 43 terms each: on a line all derivatives up to the sixth of all powers up to the sixth; on a plane those up
# to the second, and six higher derivatives of u itself.
LARGE_LIBRARIES: dict[str, tuple[str, ...]] = {
    "powers": _powers(tuple("x" * k for k in range(7)), 6),
    "powers 2D": (
        *_powers(("", "x", "y", "xx", "xy", "yy"), 6),
        *("u_xxx", "u_xxy", "u_xyy", "u_yyy", "u_xxxx", "u_yyyy"),
    ),
}


# Chosen on the problems of `fts.data.development`; what other values of a setting recover there is in the
# record that `python -m fts.studies settle` writes.
TWO_FIELDS = TwoFieldsParams(
    weak=None,
    svws=PAPER["kdv"].svws,
    relative=True,
    splits=3,
    phases=4,
    smoothing=0.03,
    negligible=0.0005,
    most_terms=6,
    width=32,
    draws=12,
    tolerance=0.002,
    shared=0.25,
    reliability=0.1,
    size=0.02,
    chance=0.05,
    disagreement=1.0,
    unresolved=0.1,
    split_seed=20271,
)
