"""One call of `fts.discover` makes nothing twice: no column of a weak system, and no fit."""

from collections import Counter

import numpy as np
import pytest

import fts
from fts.discovery import discover as discovery
from fts.discovery import evidence
from fts.kernel import closed_form
from fts.params.paper import LARGE_LIBRARIES
from fts.selection import moments, refits
from fts.svws import rule, select
from fts.weak import assembly, geometry

_MODULES = (assembly, geometry, rule, evidence, refits, moments)


def _ks():
    return fts.observe(fts.simulate("ks"), "S20", seed=1301, noise=0.05), None


def _large_library():
    return fts.observe(fts.simulate("transport"), "S20", seed=42, noise=0.3), LARGE_LIBRARIES["powers"][:14]


def _open_axis():
    """Heat on a line that does not close, with a library that the general one adds terms to."""
    x, t = np.meshgrid(np.linspace(0, np.pi, 30), np.linspace(0, 1, 25), indexing="ij")
    u = sum(a * np.exp(-0.3 * k**2 * t) * np.cos(k * x + k) for k, a in {1: 1.0, 2: 0.7, 3: -0.5}.items())
    domain = fts.Domain((0.0,), (np.pi,), 0.0, 1.0, (False,))
    return fts.Observations(x.reshape(-1, 1), t.ravel(), u.ravel(), domain), ["u", "u_x", "u_xx", "u_xxxx"]


@pytest.mark.parametrize("case", [_ks, _large_library, _open_axis])
def test_no_column_is_assembled_twice_and_no_field_fitted_twice(case, monkeypatch):
    observations, library = case()
    columns, calls, fields = Counter(), Counter(), []
    assemble = assembly.assemble

    def count_calls(module, name):
        function = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *a, **k: calls.update([name]) or function(*a, **k))

    def counted(field, library, weak, phase, *target):
        fields.append(field)  # kept, so that no other field gets its identity
        # What remembers a field's values is that field, and a draw is its error.
        evaluated = field.field if isinstance(field, assembly.LastValues) else getattr(field, "series", field)
        columns.update((id(evaluated), phase.tobytes(), weak, term) for term in library)
        return assemble(field, library, weak, phase, *target)

    for module in _MODULES:
        if hasattr(module, "assemble"):
            monkeypatch.setattr(module, "assemble", counted)
    count_calls(closed_form, "condition")
    count_calls(discovery, "judge_by_evidence")
    count_calls(discovery, "select_prepared")
    result = fts.discover(observations, library, progress=False)
    assert len(columns) > 20
    assert not [key for key, count in columns.items() if count > 1]
    # The open axis is asked for terms of the general library as well, a large one chosen by two fields.
    expected = {"condition": 1, "judge_by_evidence": 2 if case is _open_axis else 1}
    assert calls == expected | ({"select_prepared": 1} if case is _large_library else {})
    assert result.fit is not None
    assert result.fit.field is result.field


def test_what_was_made_on_the_way_is_kept():
    result = fts.discover(*_open_axis(), progress=False)
    assert result.prepared.library.names == ("u", "u_x", "u_xx", "u_xxxx")
    assert result.evidence.library == result.prepared.library
    assert result.fit.variance is result.fit.variance


def test_thawing_returns_the_fit_that_decided_the_verdict(monkeypatch):
    x, t = np.meshgrid(2 * np.pi * np.arange(24) / 24, np.linspace(0, 1, 21), indexing="ij")
    u = np.exp(-0.3 * t) * np.sin(x + 0.5 * t) + 0.7 * np.exp(-1.2 * t) * np.sin(2 * (x + 0.5 * t) + 2)
    domain = fts.Domain((0.0,), (2 * np.pi,), 0.0, 1.0, (True,))
    result = fts.discover(fts.Observations(x.reshape(-1, 1), t.ravel(), u.ravel(), domain), progress=False)
    monkeypatch.setattr(discovery, "thaw_equation", lambda *_: pytest.fail("fitted again"))
    thawed = result.thaw()
    assert thawed.equation.terms == result.equation.terms
    if result.selection.method == "thawed":
        assert thawed.equation.coefficients == pytest.approx(result.equation.coefficients, rel=1e-12)


def test_a_larger_library_adds_columns_to_systems_it_shares():
    observations, library = _open_axis()
    field = fts.fit(observations, progress=False)
    ready = select.prepare(field, library)
    wider = select.extend(ready, field, None, fts.Library.parse([*library, "u*u_x"]))
    again = select.prepare(field, [*library, "u*u_x"], weak=wider.weak)
    for first, other in zip(wider.systems, again.systems, strict=True):
        np.testing.assert_allclose(first.A, other.A, rtol=1e-12, atol=1e-14 * np.abs(other.A).max())


def test_a_domain_beside_observations_is_refused(tmp_path):
    observations, library = _open_axis()
    with pytest.raises(ValueError, match="these observations have one"):
        fts.discover(observations, library, domain=observations.domain, progress=False)
    observations.save(tmp_path / "saved.fts")
    with pytest.raises(ValueError, match="leave domain= out"):
        fts.discover(tmp_path / "saved.fts", library, domain=observations.domain, progress=False)
