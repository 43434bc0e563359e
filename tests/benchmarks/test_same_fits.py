"""Stored results: what users get and read stays the same until it is changed on purpose."""

import warnings

import pytest
from benchmarks.same_cases import CASES
from benchmarks.same_fits import differences, stored_results

STORED = stored_results()


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("Training")])
def test_a_result_is_the_stored_one(name):
    """If it changed on purpose: `python -m benchmarks.same_fits --write "part of the name"`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert differences(STORED[name], CASES[name]()) == []


def test_every_case_is_stored():
    assert STORED.keys() == CASES.keys()
