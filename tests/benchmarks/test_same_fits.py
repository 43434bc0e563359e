"""Stored results: what users get and read stays the same until it is changed on purpose.

`make same` compares all of them. Here are those of each kind that cost little. SQL of all dialects
is compiled from one tree, so each case writes one dialect, in turn.
"""

import warnings
from itertools import cycle

import pytest
from benchmarks.same_cases import CASES, DIALECTS
from benchmarks.same_fits import differences, stored_results

from benchmarks import same_cases

STORED = stored_results()
LEFT_OUT = {
    # JAX rounds differently on another processor.
    *(name for name in CASES if name.startswith("Training")),
    # Large tables and many fits; other cases ask for the same with fewer.
    "ControlledDebiaser: many rows",
    "ControlledDebiaser: caps",
    "ControlledDebiaser: demographic parity",
    "ControlledDebiaser: three groups, equalized odds",
    "ControlledDebiaser: true positive rates",
    "ControlledDebiaser: false positive rates",
    "ControlledDebiaser: three groups",
    "ControlledDebiaser: intersections",
    "ControlledDebiaser: weights, equalized odds",
    "ControlledDebiaser: another threshold",
    "ControlledDebiaser: odds as a sum",
    "ControlledDebiaser: accuracy parity",
    "Engine: polars",
    "Engine: polars, lazy, three-digit points",
    "Engine: DuckDB",
    "Engine: DuckDB, an audit",
    "Study: the default frontier",
    "Study: a frontier of odds",
    "Study: a frontier of MinimalFlip",
    "Study: a comparison",
    "Study: an audit of three groups",
    "Study: an audit of stated constraints",
    "Method: FCGP",
    # Reports, notebooks, pictures and commands are read word by word in their own tests.
    *(name for name in CASES if name.startswith("Output")),
} - {"Output: a report with all parts", "Output: a page"}
DIALECT_OF = dict(zip(CASES, cycle(DIALECTS)))  # more cases than dialects


@pytest.mark.parametrize("name", [name for name in CASES if name not in LEFT_OUT])
def test_a_result_is_the_stored_one(name, monkeypatch):
    """If it changed on purpose: `python -m benchmarks.same_fits --write "part of the name"`."""
    monkeypatch.setattr(same_cases, "DIALECTS", (DIALECT_OF[name],))
    others = {f"SQL {dialect}" for dialect in DIALECTS if dialect != DIALECT_OF[name]}
    kept = {part: d for part, d in STORED[name]["bytes"].items() if part not in others}
    stored = {**STORED[name], "bytes": kept}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert differences(stored, CASES[name]()) == []


def test_every_case_is_stored():
    assert STORED.keys() == CASES.keys() >= LEFT_OUT
