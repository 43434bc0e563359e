"""The same rows give the same update: in every order, as every frame, and on every BLAS kernel."""

from __future__ import annotations

import json
import os
import pickle
import platform
import subprocess
import sys
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression

from commod import ControlledDebiaser, ScoreColumn
from commod.datasets import make_biased

BASE = ScoreColumn("score")
REQUESTS = {
    "parity": ({"target": 0.8}, 2),
    "odds": ({"constraints": "equalized_odds", "target": 0.2}, 2),
    "three groups": ({"target": 0.8, "points": "per bin"}, 3),
}
KERNELS = {
    "x86_64": ("Nehalem", "Haswell", "SkylakeX"),
    "AMD64": ("Nehalem", "Haswell", "SkylakeX"),
    "aarch64": ("ARMV8", "NEOVERSEN1", "NEOVERSEV1"),
    "arm64": ("ARMV8", "NEOVERSEN1", "NEOVERSEV1"),
}


@cache
def table(n_groups):
    """Return X with scores, numbers, text, gaps and equal rows; y; and groups."""
    shares = (0.5, 0.5) if n_groups == 2 else (0.5, 0.3, 0.2)
    data = make_biased(600, bias=1.5, n_categories=5, group_shares=shares, random_state=0)
    numbers, random = data.data.select_dtypes("number"), np.random.default_rng(0)
    model = LogisticRegression().fit(numbers[:300], data.target[:300])
    X = data.data.assign(score=model.predict_proba(numbers)[:, 1], n=random.poisson(3, 600))
    X.loc[random.random(600) < 0.1, "x1"] = np.nan
    rows = np.r_[np.arange(600), np.arange(0, 600, 7)]
    X = X.iloc[rows].reset_index(drop=True)
    return X, np.asarray(data.target)[rows], np.asarray(data.sensitive_features)[rows]


def patch(request, X, y, groups):
    """Return the patch of a fit, without the time of the fit."""
    update = ControlledDebiaser(BASE, **REQUESTS[request][0])
    written = json.loads(update.fit(X, y, sensitive_features=groups).to_patch().to_json())
    return {name: part for name, part in written.items() if name not in ("created", "digest")}


@cache
def first_patch(name):
    """Return the patch of a request on its rows as they are."""
    return patch(name, *table(REQUESTS[name][1]))


@pytest.fixture(scope="module", params=REQUESTS)
def fitted(request):
    found = first_patch(request.param)
    assert found["reached"]["change_rate"] > 0.02
    return request.param, table(REQUESTS[request.param][1]), found


def test_the_order_of_the_rows_and_the_kind_of_frame_do_not_matter(fitted):
    name, (X, y, groups), found = fitted
    kind = {
        "parity": pd.DataFrame,
        "odds": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
        "three groups": pl.from_pandas,
    }
    order = np.random.default_rng(0).permutation(len(X))
    assert patch(name, kind[name](X.iloc[order]), y[order], groups[order]) == found


# The scores are in the table: a base model's own fit may depend on the kernel.
CHILD = """
import json, pickle, sys
from threadpoolctl import threadpool_info
import scipy.linalg
from test_same_update import BASE, REQUESTS, patch
from commod import ControlledDebiaser, frontier
tables = pickle.load(open(sys.argv[1], "rb"))
kernels = sorted({one["architecture"] for one in threadpool_info() if "architecture" in one})
patches = {name: patch(name, *tables[n]) for name, (_, n) in REQUESTS.items()}
X, y, groups = (rows[:300] for rows in tables[2])
update = ControlledDebiaser(BASE).fit(X, y, sensitive_features=groups)
update.predict(X)
frontier(update, X, y, targets=[0.7], sensitive_features=groups)
jax = [name for name in sys.modules if name.partition(".")[0] in ("jax", "jaxlib")]
print(json.dumps([kernels, patches, jax]))
"""


@pytest.fixture(scope="module")
def child(tmp_path_factory):
    """Return a kernel unlike ours, those that another process used, its patches and its JAX."""
    threadpoolctl = pytest.importorskip("threadpoolctl")
    known = KERNELS.get(platform.machine(), ("unknown",))
    ours = {one.get("architecture") for one in threadpoolctl.threadpool_info()}
    kernel = next((one for one in known if one not in ours), known[0])  # newer ones know the first
    stored = tmp_path_factory.mktemp("rows") / "tables.pickle"
    stored.write_bytes(pickle.dumps({n: table(n) for _, n in REQUESTS.values()}))
    path = os.pathsep.join([os.path.dirname(__file__), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(stored)],
        env={**os.environ, "OPENBLAS_CORETYPE": kernel, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode < 0:
        pytest.skip(f"the processor does not know an instruction of the kernel {kernel}")
    assert done.returncode == 0, done.stderr
    return kernel, *json.loads(done.stdout)


def test_the_blas_kernel_does_not_matter(child):
    """Sums of products differ in their last bits between kernels."""
    kernel, used, patches, _ = child
    if used != [kernel]:
        pytest.skip(f"the library has no kernel {kernel}: it took {used}")
    assert patches == {name: first_patch(name) for name in REQUESTS}


def test_fits_and_frontiers_load_no_jax(child):
    *_, jax = child
    assert jax == []


def test_rows_that_differ_give_another_update():
    """The comparison above is not an empty one."""
    X, y, groups = table(2)
    other = patch("parity", X[50:], y[50:], groups[50:])
    assert other["ratio"] != first_patch("parity")["ratio"]
