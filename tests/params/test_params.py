"""Settings by name: keys follow values, not classes; unknown and doubled names are refused."""

from dataclasses import dataclass

import pytest

from fts.params.paper import PAPER, PROJECTED
from fts.params.types import AdapterParams, FieldParams, changed, named


def test_names_do_not_show_how_settings_are_grouped():
    @dataclass(frozen=True)
    class Regrouped:
        training: object
        rest: object

    @dataclass(frozen=True)
    class Rest:
        penalties: object
        model: object

    params = PAPER["ks"].adapter
    assert named(Regrouped(params.training, Rest(params.penalties, params.model))) == named(params)
    assert named(params)["rank"] == 24
    assert len(named(params)) == 24


def test_a_name_may_stand_once():
    @dataclass(frozen=True)
    class Both:
        first: object
        second: object

    with pytest.raises(ValueError, match="twice"):
        named(Both(PAPER["ks"].weak, PAPER["kdv"].weak))


def test_what_is_not_set_has_no_name():
    assert named(FieldParams("kernel")) == {"recipe": "kernel"}
    assert named(FieldParams("projected", PROJECTED)).keys() > {"recipe", "rank", "coefficient_ridge"}


def test_changed_finds_the_group_of_a_name():
    params = PAPER["ks"].adapter
    other = changed(params, rank=3, lam_t=0.0, epochs=7)
    assert isinstance(other, AdapterParams)
    assert (other.model.rank, other.penalties.lam_t, other.training.epochs) == (3, 0.0, 7)
    assert changed(other, rank=24, lam_t=params.penalties.lam_t, epochs=params.training.epochs) == params
    with pytest.raises(ValueError, match=r"unknown settings \['ranc'\]"):
        changed(params, ranc=3)
