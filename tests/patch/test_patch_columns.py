"""`Patch.apply(columns=...)`: only the columns that are named, with the values of a full apply."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from patches import as_arrow, category, content_of, margin, number, reference

from commod import Patch
from commod._record.explanation import ScoreKnot, ScoreMap
from commod.exceptions import InputError
from tables_of_cases import every_line

MAP = ScoreMap((ScoreKnot(0.0, 0.0), ScoreKnot(0.5, 0.5), ScoreKnot(1.0, 1.0)), 100, *[0.2] * 6)
NAMES = [
    f"commod_{name}" for name in ("score", "decision", "changed", "direction", "calibrated", "r")
]


def patch_of(**options):
    columns = number("age", -0.05, 40.0), category("town", {"x": 0.75, "y": -1.5}, 0.25)
    content = content_of(*columns, margin(0.3), intercept=2.0, **options)
    return Patch(content.__class__(**{**vars(content), "calibration": MAP}))


def people():
    return as_arrow(
        {
            "id": list(range(8)),
            "score": [0.1, 0.5, 0.9, None, 0.4, 0.6, 2.0, 0.45],
            "age": [30.0, 50.0, 60.0, 41.0, None, 70.0, 20.0, 65.0],
            "town": ["x", "y", "y", "y", "z", None, "x", "y"],
        }
    )


ENGINES = {
    "pandas": lambda table, apply: pa.Table.from_pandas(apply(table.to_pandas())),
    "polars": lambda table, apply: apply(pl.from_arrow(table)).to_arrow(),
    "lazy polars": lambda table, apply: apply(pl.from_arrow(table).lazy()).collect().to_arrow(),
    "pyarrow": lambda table, apply: apply(table),
    "DuckDB": lambda table, apply: apply(duckdb.from_arrow(table)).to_arrow_table(),
}
ASKED = [
    (["commod_r"], {}),
    (["commod_calibrated", "commod_decision"], {"may_lower": False}),
    (["commod_changed", "commod_score"], {"may_raise": False}),
    (["commod_direction"], {"max_margin": 0.2}),
    (NAMES[::-1], {"max_margin": 0.2, "score_edit": "changed_only"}),
]


# every engine gives all columns, and each of them some columns alone
SHARED = [(e, *ASKED[i]) for i, e in enumerate(ENGINES)] + [(e, *ASKED[-1]) for e in ENGINES][:-1]


@pytest.mark.parametrize(("engine", "names", "gate"), SHARED, ids=range(len(SHARED)))
def test_named_columns_come_alone_and_as_in_a_full_apply(engine, names, gate):
    patch, table = patch_of(**gate), people()
    found = ENGINES[engine](table, lambda frame: patch.apply(frame, columns=names))
    assert found.column_names == [*table.column_names, *names]
    found, full = found.sort_by("id"), patch.apply(table, columns=NAMES)
    for name in names:
        if name in ("commod_decision", "commod_changed", "commod_direction"):
            one, other = (pd.Series(t[name].to_pylist(), dtype=object) for t in (found, full))
            pd.testing.assert_series_equal(one, other)
        else:
            one, other = (np.array(t[name].to_pylist(), dtype=float) for t in (found, full))
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)
    if "commod_r" in names:
        r = np.array(found["commod_r"].to_pylist(), dtype=float)
        np.testing.assert_allclose(r, reference(patch.content, table).ratio, rtol=0, atol=1e-9)


def test_r_in_spark_is_r_in_memory(spark, tmp_path):
    import pyarrow.parquet as pq

    pq.write_table(people(), tmp_path / "people.parquet")
    frame = spark.read.parquet(str(tmp_path / "people.parquet"))
    patch = patch_of(may_lower=False, max_margin=0.2)
    found = patch.apply(frame, columns=["commod_r"])
    assert found.columns == [*people().column_names, "commod_r"]
    r = [row.commod_r for row in sorted(found.collect(), key=lambda row: row.id)]
    expected = reference(patch.content, people()).ratio
    np.testing.assert_allclose(np.array(r, dtype=float), expected, rtol=0, atol=1e-9)


def test_by_default_the_four_columns_come():
    edited = patch_of().apply(people())
    assert edited.column_names[4:] == NAMES[:4]


def test_calibrated_adds_its_column_once():
    patch, table = patch_of(), people()
    for names in (["commod_r"], ["commod_calibrated", "commod_r"]):
        edited = patch.apply(table, columns=names, calibrated=True)
        expected = names if "commod_calibrated" in names else [*names, "commod_calibrated"]
        assert edited.column_names[4:] == expected


def test_one_name_and_another_prefix():
    edited = patch_of().apply(people(), columns="new_r", prefix="new_")
    assert edited.column_names[4:] == ["new_r"]
    assert patch_of().revert(edited, prefix="new_").column_names == people().column_names


def test_columns_of_an_earlier_apply_stay_in_nobodys_way():
    patch = patch_of()
    edited = patch.apply(patch.apply(people()), columns=["commod_r"])
    assert edited.column_names[4:] == [*NAMES[:4], "commod_r"]


@every_line(
    "columns, message",
    [
        (["commod_scores"], "commod_score"),
        (["r"], "it can add"),
        ([3], "it can add"),
        ([], "at least one"),
        (7, "list of names"),
        (["commod_r", "commod_r"], "twice"),
    ],
)
def test_unknown_names_are_refused(columns, message):
    with pytest.raises(InputError, match=message) as raised:
        patch_of().apply(people(), columns=columns)
    assert raised.value.parameter == "columns"


def test_a_patch_without_a_map_has_no_calibrated_column():
    patch = Patch(content_of(number("age", -0.05)))
    with pytest.raises(InputError, match="no calibration map"):
        patch.apply(people(), columns=["commod_calibrated"])


def test_only_what_is_needed_is_computed(monkeypatch):
    def fail(*args):
        raise AssertionError("nobody asked for it")

    for name in ("decisions_of", "edited_in"):
        monkeypatch.setattr(f"commod.patch.frames.{name}", fail)
    assert patch_of().apply(people(), columns=["commod_r"]).num_rows == 8
