"""A patch without edits is written as it was before patches could hold edits.

The stored files were written by the commit before, with the fits of this file. They keep their
bytes when they are loaded and written again in the same version of the schema. A new fit is
compared by the fields of its file and by the values that were requested: points and figures differ
between processors.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from commod import ControlledDebiaser, Patch, ScoreColumn
from commod._record.plain import to_plain
from commod.datasets import make_biased
from commod.patch.file import as_version, content_digest

FOLDER = Path(__file__).parent / "before_edits"
FITS = {
    "demographic_parity": {"target": 0.8},
    "gains_only": {
        "target": 0.7,
        "direction": "gains_only",
        "target_on": "fit_rows",
        "locked_features": ["x2"],
    },
}
DATA = make_biased(400, bias=1.5, n_categories=6, random_state=9)
# Calibration is apart: whether and how it is stored depends on the fit.
PARTS = ("base", "labels", "asked", "reached", "seen", "ratio", "left_out")
REQUESTED = ("schema", "method", "labels", "asked", "seen", "left_out", "audit", "score_edit")


def as_version_2(content):
    return {**as_version(to_plain(content), 2), "digest": content_digest(content, 2)}


def keys_of(content):
    return {"file": set(content)} | {part: set(content[part]) for part in PARTS}


@pytest.mark.parametrize("name", FITS)
def test_a_patch_from_before_edits_keeps_its_bytes(name):
    stored = (FOLDER / f"{name}.json").read_bytes()
    plain = as_version_2(Patch.load(FOLDER / f"{name}.json").content)
    assert (json.dumps(plain, indent=1, ensure_ascii=False) + "\n").encode() == stored


@pytest.mark.parametrize("name", FITS)
def test_a_new_patch_without_edits_has_the_fields_that_it_had_before(name):
    stored = json.loads((FOLDER / f"{name}.json").read_bytes())
    scores = (1 / (1 + np.exp(-DATA.data["x0"] - DATA.data["x1"]))).round(3)
    update = ControlledDebiaser(ScoreColumn("score"), **FITS[name])
    update.fit(
        DATA.data.assign(score=scores), DATA.target, sensitive_features=DATA.sensitive_features
    )
    written = as_version_2(update.to_patch().content)
    assert keys_of(written) == keys_of(stored)
    assert {part: written[part] for part in REQUESTED} == {part: stored[part] for part in REQUESTED}
