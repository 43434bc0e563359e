"""What an update costs is read first: rates before and after, and errors beside an alternative."""

import json
import re
from html import unescape

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from commod import audit_frame, report


@pytest.mark.parametrize("frame", ["pandas", "polars", "pyarrow"])
def test_a_report_begins_with_the_rate_before_and_after_of_all_people_and_by_group(frame, tmp_path):
    rng = np.random.default_rng(5)
    group = np.repeat(["north", "south", "west"], [90, 140, 60])
    old = np.where(rng.random(290) < 0.4, "late", "on time")
    new = np.where(rng.random(290) < 0.2, "late", old)
    table = pd.DataFrame({"old": old, "new": new, "group": group})
    made = {"pandas": table, "polars": pl.from_pandas(table), "pyarrow": pa.table(table)}[frame]
    labels = {"pos_label": "late", "favorable_label": "on time"}
    columns = {"before": "old", "after": "new", "sensitive_features": "group"}
    result = audit_frame(made, **columns, **labels)
    shares = (table[["old", "new"]] == "late").groupby(table["group"]).mean()
    parts = [f"{name} {row.old:.1%} → {row.new:.1%}" for name, row in shares.iterrows()]
    rates = (old == "late").mean(), (new == "late").mean()
    sentence = (
        f"The rate of label late goes from {rates[0]:.1%} to {rates[1]:.1%} ({', '.join(parts)})."
    )
    assert sentence in result.answer
    told = json.loads(report(result, tmp_path / "r.json").read_text("utf-8"))
    changes = told["changes"] if "changes" in told else told["audit"]["changes"]
    assert [changes[f"selected_{when}"]["value"] for when in ("before", "after")] == list(rates)
    page = report(result, tmp_path / "r.html").read_text("utf-8").split('id="who"')[0]
    page = unescape(re.sub("<[^>]*>", "", page))
    assert sentence in page and "Rate of label late: " in page
    text = report(result, tmp_path / "r.md").read_text("utf-8").split("## Who changes")[0]
    assert f"{rates[0]:.1%} to {rates[1]:.1%}" in text
