"""Patch files of versions 0.1 and 0.2: they load, decide as before, and say who wrote them."""

import re
from pathlib import Path

import numpy as np
import pytest

from commod import Patch
from commod.datasets import make_biased

FOLDER = Path(__file__).parent
N_CHANGES = {  # as counted by the version that wrote the file
    ("0.1.0", "stored/commod"): 0,
    ("0.1.0", "stored/demographic_parity"): 34,
    ("0.1.0", "stored/equalized_odds"): 1,
    ("0.2.0.dev0", "stored/edited"): 74,
    ("0.2.0.dev0", "before_edits/demographic_parity"): 50,
    ("0.2.0.dev0", "before_edits/gains_only"): 44,
}


@pytest.mark.parametrize(("version", "name"), N_CHANGES)
def test_a_stored_patch_decides_as_when_it_was_written(version, name):
    patch = Patch.load(FOLDER / f"{name}.json")
    assert Patch.from_json(patch.to_json()) == patch
    assert re.search(rf"\(commod-debiasing {re.escape(version)}, \d{{4}}-", str(patch))
    rows = make_biased(400, bias=1.5, n_categories=6, random_state=9).data
    scores = 1 / (1 + np.exp(-rows["x0"] - rows["x1"]))
    edited = patch.apply(rows.assign(score=scores))
    assert int(edited["commod_changed"].sum()) == N_CHANGES[version, name]


def test_a_patch_that_version_0_2_edited_keeps_its_history():
    patch = Patch.load(FOLDER / "stored" / "edited.json")
    (step,) = patch.history
    assert (step.by, step.note) == ("Ann", "half points")
    assert patch.undo().history == ()
