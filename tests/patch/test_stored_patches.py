"""Patch files of earlier versions: they load and decide as before."""

from pathlib import Path

import numpy as np
import pytest

from commod import Patch
from commod.datasets import make_biased

STORED = sorted((Path(__file__).parent / "stored").glob("*.json"))
N_CHANGES = {"commod": 0, "demographic_parity": 34, "equalized_odds": 1}


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_a_stored_patch_decides_as_when_it_was_written(path):
    patch = Patch.load(path)
    assert Patch.from_json(patch.to_json()) == patch
    rows = make_biased(400, bias=1.5, n_categories=6, random_state=9).data
    scores = 1 / (1 + np.exp(-rows["x0"] - rows["x1"]))
    edited = patch.apply(rows.assign(score=scores))
    assert int(edited["commod_changed"].sum()) == N_CHANGES[path.stem]


def test_there_are_stored_patches():
    assert {path.stem for path in STORED} == set(N_CHANGES)
