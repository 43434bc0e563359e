"""A patch without edits has the bytes that it had before patches could hold edits.

The stored files were written by the commit before, with the fits of this file. Creation time and
versions are apart. So is rounding: a number within a billionth of the stored one counts as equal,
because other processors add in another order. A search may then end at another update. Where it
does, the keys of the file are compared. Older versions of the libraries below fit another update,
so the comparison is skipped there.
"""

import json
import math
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from packaging.version import Version

from commod import ControlledDebiaser, Patch, ScoreColumn
from commod._record import from_plain, to_plain
from commod.datasets import make_biased
from commod.patch.content import Content
from commod.patch.file import content_digest
from commod.patch.schema import as_version

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


def older_libraries(versions):
    """Return the libraries of the search that are older here than in the stored versions."""
    searching = ("numpy", "scipy", "scikit-learn")
    return [name for name in searching if Version(version(name)) < Version(versions[name])]


def rounded_as(value, stored):
    """Return a tree of plain values with the numbers of the stored one where these are close."""
    if isinstance(value, dict) and isinstance(stored, dict):
        return {name: rounded_as(one, stored.get(name)) for name, one in value.items()}
    if isinstance(value, list) and isinstance(stored, list) and len(value) == len(stored):
        return [rounded_as(one, other) for one, other in zip(value, stored, strict=True)]
    if type(value) is type(stored) is float and math.isclose(value, stored, rel_tol=1e-9):
        return stored
    return value


def keys_of(value, path=()):
    """Return the paths of all keys of a tree of plain values, but for those inside of lists."""
    if not isinstance(value, dict):
        return {path}
    return {path}.union(*(keys_of(one, (*path, name)) for name, one in value.items()))


def bytes_of_version_2(content):
    """Return the file that version 2 of the schema, which had no edits, has for a content."""
    plain = {**as_version(to_plain(content), 2), "digest": content_digest(content, 2)}
    return (json.dumps(plain, indent=1, ensure_ascii=False) + "\n").encode()


@pytest.mark.parametrize("name", FITS)
def test_a_patch_from_before_edits_keeps_its_bytes(name):
    stored = (FOLDER / f"{name}.json").read_bytes()
    assert bytes_of_version_2(Patch.load(FOLDER / f"{name}.json").content) == stored


@pytest.mark.parametrize("name", FITS)
def test_a_patch_without_edits_has_the_bytes_that_it_had_before(name):
    stored = (FOLDER / f"{name}.json").read_bytes()
    if older := older_libraries(json.loads(stored)["versions"]):
        pytest.skip(f"older than at the stored fit: {', '.join(older)}")
    earlier = Patch.load(FOLDER / f"{name}.json").content
    scores = (1 / (1 + np.exp(-DATA.data["x0"] - DATA.data["x1"]))).round(3)
    update = ControlledDebiaser(ScoreColumn("score"), random_state=0, **FITS[name])
    update.fit(
        DATA.data.assign(score=scores), DATA.target, sensitive_features=DATA.sensitive_features
    )
    content = update.to_patch().content
    apart = {part: getattr(earlier, part) for part in ("created", "library", "versions")}
    plain = rounded_as(to_plain(replace(content, **apart)), json.loads(stored))
    written = bytes_of_version_2(from_plain(Content, plain))
    if json.loads(written)["ratio"] == json.loads(stored)["ratio"]:
        assert written == stored
    else:  # another update, on another processor
        assert keys_of(json.loads(written)) == keys_of(json.loads(stored))
