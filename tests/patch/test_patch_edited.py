"""Patches of edited updates and of whole-number points decide as the update itself.

A patch does not say how its points came about, so two engines are enough here: what all of them do
with any points is in `test_patch_engines`.
"""

import warnings

import numpy as np
import pyarrow as pa
import pytest
from engines import Case, check_engine
from sklearn.linear_model import LogisticRegression

from commod import ControlledDebiaser, Patch, ScoreColumn
from commod.datasets import make_biased
from commod.edit import Cap, Merge, Round
from commod.exceptions import TargetWarning

DATA = make_biased(500, n_categories=5, bias=1.5, random_state=3)
GROUPS = {"sensitive_features": DATA.sensitive_features}
VALUES = sorted(DATA.data["category"].unique())[:2]
MODEL = LogisticRegression().fit(DATA.data[["x0", "x1"]], DATA.target)
SCORED = DATA.data.assign(score=MODEL.predict_proba(DATA.data[["x0", "x1"]])[:, 1])
FREE, WHOLE = {"max_lines": None}, {"points": "integers", "max_lines": 6, "borderline": 0}
CHANGED = {
    "points on a grid": (FREE, Round(0.25), {}),
    "a merge and a cap": (FREE, [Merge("category", VALUES), Cap(-0.5, 0.5)], {}),
    "the offset kept": (FREE, Round(1), {"offset": "keep"}),
    "a refit": (FREE, {"category": "drop"}, {"refit": True}),
    "edited whole numbers": (WHOLE, Cap(-2, 2), {}),
}
FITTED = {}


def fitted(parameters):
    """Return the update with these parameters; each is fitted once."""
    key = repr(parameters)
    if key not in FITTED:
        update = ControlledDebiaser(
            ScoreColumn("score"), target=0.8, target_on="fit_rows", **parameters
        )
        FITTED[key] = update.fit(SCORED, DATA.target, **GROUPS)
    return FITTED[key]


def case_of(name):
    """Return the stored and loaded patch, the rows and what is expected of them."""
    parameters, edits, options = CHANGED[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TargetWarning)
        update = fitted(parameters)
        if edits is not None:
            update = update.edit(edits, SCORED, DATA.target, **GROUPS, **options)
    patch = Patch.from_json(update.to_patch().to_json())
    rows = SCORED.assign(id=np.arange(len(SCORED)))
    return update, Case(patch.content, pa.Table.from_pandas(rows, preserve_index=False))


@pytest.mark.parametrize("name", CHANGED)
def test_an_edited_patch_decides_as_the_update(name, request):
    update, case = case_of(name)
    assert case.expected.decision == update.predict(SCORED).tolist()
    assert 0 < case.expected.changed.sum() == update.n_gains_ + update.n_losses_
    if "whole numbers" in name:
        points = [points for _, points in update.scorecard_.rows()]
        assert all(value.is_integer() for value in points)
        assert (case.expected.ratio != 0).all()  # no total lies on the threshold
    for engine in ("pandas", "SQL in DuckDB"):
        check_engine(case, engine, request)
