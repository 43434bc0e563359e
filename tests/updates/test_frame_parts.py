"""People outside a sample are the counted ones without those of the sample."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from commod.updates._frames.cut import SAMPLE_PART, EtaCounts, in_parts
from commod.updates._frames.sample import PulledRows

N_LINES, N_ACTING = 4, 3  # the people of the last line may not change


def counts_of(rows: pd.DataFrame) -> EtaCounts:
    """Count people by line and bin, as an engine does."""
    bins = np.where(rows.line < N_ACTING, np.floor(rows.eta * 5), -1.0)
    table = rows.assign(bin=bins, one=1.0, w2=rows.weight**2)
    ends = table.groupby("bin").eta.agg(["min", "max"])
    counted = table.groupby(["line", "bin"], as_index=False)[["one", "weight", "w2"]].sum()
    ends = ends.loc[counted.bin]
    columns = counted.line, np.full(len(counted), -2), counted.one, counted.weight, counted.w2
    every = *columns, 2 * counted.one, ends["min"], ends["max"]
    return EtaCounts(*(np.asarray(column) for column in every))


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.booleans())
def test_the_parts_of_counts_are_the_people_outside_the_sample(seed, has_weights):
    rng = np.random.default_rng(seed)
    n = 300
    rows = pd.DataFrame({"line": rng.integers(0, N_LINES, n), "eta": rng.random(n).round(2)})
    rows["weight"] = rng.integers(1, 4, n) if has_weights else 1.0
    counts = counts_of(rows)
    drawn = rng.random(n) < 0.3
    sample = rows[drawn]
    pulled = PulledRows(
        X=None,
        line=sample.line.to_numpy(),
        weight=sample.weight.to_numpy(float),
        cost=None,
        draw=np.zeros(len(sample), dtype=np.int64),
    )
    last_digit = rng.choice([-1e-16, 0.0, 1e-16], len(sample))
    parts = in_parts(counts, counts.line < N_ACTING, pulled, sample.eta.to_numpy() + last_digit)
    expected = counts_of(rows[~drawn])
    outside = parts.take(parts.part > SAMPLE_PART)
    for amount in ("people", "weight", "squares"):
        one = pd.Series(getattr(outside, amount)).groupby([outside.line, outside.low]).sum()
        # ends of bins are those of all rows
        bins = np.floor(np.where(expected.line < N_ACTING, expected.low * 5, -1)).astype(int)
        other = pd.Series(getattr(expected, amount)).groupby([expected.line, bins]).sum()
        np.testing.assert_allclose(one[one > 0].to_numpy(), other.to_numpy())
        np.testing.assert_allclose(getattr(parts, amount).sum(), getattr(counts, amount).sum())
    np.testing.assert_allclose(parts.cost.sum(), counts.cost.sum())
    assert set(outside.part) <= set(range(5))
