"""The public face: every name is there, is what it says, and stays so after its module is imported."""

import types

import pytest

import fts


def test_every_public_name_resolves_to_itself_twice():
    for name in fts.__all__:
        first, second = getattr(fts, name), getattr(fts, name)
        assert first is second
        # A module of the same name would shadow the function after its first import.
        assert not isinstance(first, types.ModuleType), name
        assert first.__doc__, f"fts.{name} has no docstring"


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(AttributeError, match="select"):
        fts.selct
