"""The work for a patch grows with its length, also where somebody made the file to be slow."""

import sys
from dataclasses import replace
from functools import partial

import narwhals as nw
import numpy as np
import pandas as pd
import pytest
from patch_files import content_of
from patches import bins, category, number

from commod import Patch
from commod.exceptions import InputError
from commod.patch.checking import check_content
from counted_text import Counted


def test_names_of_columns_are_compared_in_one_pass():
    content = content_of(*(number(Counted(f"x{i}"), 1.0) for i in range(400)))
    Counted.n_compared = 0
    check_content(content)
    twice = (*content.ratio.columns, content.ratio.columns[-1])
    with pytest.raises(InputError, match="several columns named 'x399'"):
        check_content(replace(content, ratio=replace(content.ratio, columns=twice)))
    assert Counted.n_compared < 10 * 400


def n_calls(work):
    """Return how many functions the work calls, those of other packages included."""
    n = 0

    def count(frame, event, arg):
        nonlocal n
        n += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return n


def wide(n):
    """Return a patch of n columns of three kinds, and rows for it."""
    columns, values = [], {}
    for i in range(0, n, 3):
        columns.append(number(f"x{i}", 0.5, if_missing=1.0, missing=0.25))
        columns.append(bins(f"x{i + 1}", [0.5], [0.5, 1.0], missing=0.25))
        columns.append(category(f"x{i + 2}", {"a": 0.5, "b": -0.5}))
        values[f"x{i}"] = values[f"x{i + 1}"] = [0.25, 0.75, np.nan]
        values[f"x{i + 2}"] = pd.Series(["a", "b", None], dtype=object)
    return Patch(content_of(*columns)), pd.DataFrame(values)


USES = {
    "load": lambda patch, X: Patch.from_json(patch.to_json()),
    "show": lambda patch, X: (patch.to_text(every_term=True), patch.diff(patch), repr(patch)),
    "verify": lambda patch, X: patch.verify(X, ["r", "r", "s"]),
    "onnx": lambda patch, X: (patch.to_onnx(), patch.onnx_inputs(X.assign(score=0.25))),
}


@pytest.mark.parametrize("use", USES)
def test_twice_the_columns_are_twice_the_work(use):
    USES[use](*wide(3))  # imports what it needs
    few, more, most = (n_calls(partial(USES[use], *wide(n))) for n in (24, 48, 96))
    assert most - more < 2.5 * (more - few)  # the growth: a constant part does not hide it


def test_a_wide_table_in_memory_is_not_copied_for_every_few_columns(monkeypatch):
    with_columns, copied = nw.DataFrame.with_columns, []

    def counted(table, *expressions, **named):
        copied.append(len(table.columns))
        return with_columns(table, *expressions, **named)

    monkeypatch.setattr(nw.DataFrame, "with_columns", counted)
    monkeypatch.setattr("commod.patch.frames.MAX_COLUMNS_PER_EXPRESSION", 5)

    def n_copied(n):
        copied.clear()
        columns = [bins(f"x{i}", [0.5], [1.0, 1.0]) for i in range(n)]
        rows = pd.DataFrame({"score": [0.5], **{f"x{i}": [1.0] for i in range(n)}})
        Patch(content_of(*columns)).apply(rows)
        return sum(copied)

    assert n_copied(60) < 2.2 * n_copied(30)
