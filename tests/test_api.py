"""The public face: every name is there, is what it says, and stays so after its module is imported."""

import os
import subprocess
import sys
import types

import pytest

import fts
from fts import validation


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


def test_two_hundred_calls_that_make_no_sense_are_answered_by_a_sentence(root):
    """In a process of its own: here beartype would answer before the package does."""
    command = [sys.executable, "-W", "error", str(root / "tests" / "bad_calls.py")]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=root, env=os.environ | {"PYTHONPATH": str(root)}
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr[-2000:]


def test_a_misspelt_keyword_is_answered_with_the_nearest():
    with pytest.raises(TypeError, match=r"fts\.fit: .*did you mean 'recipe'\? It takes observations, recipe"):
        fts.fit(fts.observe(fts.simulate("kdv"), "S5", seed=1), recepie="kernel")


def test_a_missing_package_is_asked_for_by_its_extra():
    def missing():
        with validation.require_extra("adapter", "training"):
            import no_such_package  # noqa: F401

    with pytest.raises(ValueError, match=r"training needs no_such_package.*fts\[adapter\]"):
        missing()
