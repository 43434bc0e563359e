"""An audit counted inside a dataframe engine equals that of its rows; no row leaves the engine."""

from __future__ import annotations

import re
import warnings

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commod import Audit, audit, report
from commod._reporting.audit import audit_frame, entry_frame
from commod.exceptions import DataWarning, InputError, InputTypeError
from tables_of_cases import every_line

ENGINES = {
    "pandas": lambda data: data,
    "polars": pl.from_pandas,
    "polars lazy": lambda data: pl.from_pandas(data).lazy(),
    "pyarrow": lambda data: pa.Table.from_pandas(data, preserve_index=False),
    "duckdb": lambda data: duckdb.from_arrow(pa.Table.from_pandas(data, preserve_index=False)),
}
COLUMNS = {"before": "old", "after": "new", "sensitive_features": "race"}
SCORED = {**COLUMNS, "y_true": "truth", "scores_before": "score", "scores_after": "edited"}


@pytest.fixture(params=ENGINES)
def engine(request):
    return ENGINES[request.param]


def people(seed=0, n=600, n_groups=3):
    rng = np.random.default_rng(seed)
    race = rng.integers(n_groups, size=n)
    truth = rng.random(n) < 0.3 + 0.1 * race
    score = np.clip(0.3 * truth + 0.1 * race + rng.normal(0.3, 0.2, n), 0, 1).round(2)
    edited = np.where(rng.random(n) < 0.5, score, np.clip(score + rng.normal(0, 0.2, n), 0, 1))
    return pd.DataFrame(
        {
            "race": np.array(["white", "black", "other", "few"])[race],
            "sex": rng.choice(["f", "m"], n),
            "truth": truth.astype(int),
            "score": score,
            "edited": edited,
            "old": (score > 0.5).astype(int),
            "new": (edited > 0.5).astype(int),
        }
    )


def of_arrays(data, **options):
    """The audit of the same rows as arrays; names of columns become their values."""
    arrays = {name: data[options.pop(name)] for name in SCORED if name in options}
    return audit(arrays.pop("before"), arrays.pop("after"), **arrays, created="now", **options)


def of_frame(native, **options):
    return audit_frame(native, created="now", **options)


SUMS_OF_SCORES = ("mean_score_before", "mean_score_after", "score_gap_before", "score_gap_after")


def split(result):
    """Return the figures of counts, and those of sums of scores, which round differently."""
    plain = result.to_dict()
    for name in ("not_known", "provenance", "calibration", "outscoring", "roc"):
        del plain[name]
    of_rows = (
        "CM302",
        "CM307",
        "CM308",
        "CM401",
        "CM402",
    )  # scores of single rows are part of these answers
    plain["checks"] = [c for c in plain["checks"] if c["code"] not in of_rows]
    plain["answer"] = [text for text in plain["answer"] if "pairs of the same group" not in text]
    if plain["quality"] is not None:
        plain["quality"] |= {"auc_before": None, "auc_after": None, "auc_loss": None}
    plain["proxies"] = [
        proxy | {"base_score": None, "difference": None} for proxy in plain["proxies"]
    ]
    agreement = plain.pop("agreement") or {}
    agreement.pop("rank_correlation", None)
    sums = dict(agreement)
    for i, group in enumerate(plain["groups"]):
        for name in SUMS_OF_SCORES:
            sums[f"{i} {name}"] = group.pop(name)
    return plain, {name: np.nan if v is None else v for name, v in sums.items()}


def assert_same(result, expected):
    (plain, sums), (plain_expected, sums_expected) = split(result), split(expected)
    assert plain == plain_expected
    assert sums == pytest.approx(sums_expected, rel=1e-9, abs=1e-12, nan_ok=True)


# -- the same as commod.audit ---------------------------------------------------------------------


ASKED = {
    "decisions": {**COLUMNS},
    "scores": {**SCORED, "request": {"target": 0.8, "threshold": 0.5, "max_changes": 0.2}},
    "errors": {**SCORED, "request": {"constraints": "equalized_odds", "target": 0.1}},
    "risk": {
        **SCORED,
        "pos_label": 1,
        "favorable_label": 0,
        "label_names": {0: "low risk", 1: "high risk"},
    },
    "small groups": {**COLUMNS, "scores_after": "edited", "level": 0.9, "min_group_size": 190},
    "intersections": {**COLUMNS, "sensitive_features": ["race", "sex"], "y_true": "truth"},
    "no change": {**COLUMNS, "after": "old", "min_subgroup_size": 10, "rows": "x", "title": "T"},
}


@pytest.mark.parametrize(
    ("engine", "asked"),
    [
        ("pandas", "scores"),
        ("pandas", "no change"),
        ("polars", "errors"),
        ("polars lazy", "decisions"),
        ("pyarrow", "risk"),
        ("duckdb", "small groups"),
        ("duckdb", "intersections"),
    ],
    indirect=["engine"],
)
def test_every_figure_of_counts_is_that_of_the_rows(engine, asked):
    data = people()
    assert_same(of_frame(engine(data), **ASKED[asked]), of_arrays(data, **ASKED[asked]))


row = st.tuples(
    st.sampled_from(["a", "b", "c"]),
    st.booleans(),
    st.integers(0, 1),
    st.integers(0, 1),
    st.integers(0, 1),
    st.integers(0, 8),
    st.integers(0, 8),
)


@settings(max_examples=6)
@given(
    rows=st.lists(row, min_size=1, max_size=40),
    engine=st.sampled_from(["pandas", "polars", "duckdb"]),
    favorable=st.sampled_from([None, 0, 1]),
    sensitive=st.sampled_from(["g", ["g", "h"]]),
    size=st.integers(1, 6),
    threshold=st.sampled_from([None, 0.5, 0.3]),
)
def test_small_tables_of_any_kind(rows, engine, favorable, sensitive, size, threshold):
    names = ["g", "h", "truth", "old", "new", "score", "edited"]
    data = pd.DataFrame(rows, columns=names)
    data[["score", "edited"]] /= 8
    options = {
        **SCORED,
        "sensitive_features": sensitive,
        "favorable_label": favorable,
        "min_group_size": size,
        "min_subgroup_size": size,
        "pos_label": 1,
        "request": {"threshold": threshold},
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        assert_same(of_frame(ENGINES[engine](data), **options), of_arrays(data, **options))


@pytest.mark.parametrize(
    ("engine", "kind"),
    [
        ("pyarrow", "category"),
        ("duckdb", "text"),
        ("polars lazy", "boolean"),
        ("pandas", "float"),
    ],
    indirect=["engine"],
)
def test_labels_and_groups_of_any_kind(engine, kind):
    data = people(1)
    decided = ["old", "new", "truth"]
    labels = {"pos_label": None}
    if kind == "text":
        data[decided] = np.where(data[decided] == 1, "yes", "no")
        labels = {"pos_label": "yes"}
    elif kind == "boolean":
        data[decided] = data[decided].astype(bool)
        data["race"] = data.race == "white"
    elif kind == "category":
        data["race"] = data.race.astype("category").cat.add_categories(["unused"])
    else:
        data[decided] = data[decided].astype(float)
        data["race"] = data.race.map({"white": 10.0, "black": 2.0, "other": np.inf})
    result = of_frame(engine(data), **SCORED, **labels)
    assert_same(result, of_arrays(data, **SCORED, **labels))


@every_line("kind, same", [("DECIMAL(3, 1)", float), ("HUGEINT", int)])
def test_decimal_and_huge_integers_of_sql_are_read(kind, same):
    data = people(1)
    native = ENGINES["duckdb"](data).select(
        f"race, old::{kind} AS old, new::{kind} AS new, truth, score::DECIMAL(5, 2) AS score, "
        "edited"
    )
    result = of_frame(native, **SCORED)
    assert_same(result, of_arrays(data.astype({"old": same, "new": same}), **SCORED))
    assert Audit.from_json(result.to_json()) == result


def test_a_group_that_fares_worse_than_everybody_else_is_counted_by_hand():
    cells = [  # group, truth, before, after, people; label 0 is the favourable one
        ("a", 0, 1, 0, 50),
        ("a", 0, 0, 0, 150),
        ("a", 1, 0, 0, 70),
        ("b", 0, 0, 1, 120),
        ("b", 0, 0, 0, 80),
        ("b", 1, 1, 1, 90),
    ]
    rows = [line[:4] for line in cells for _ in range(line[4])]
    data = pd.DataFrame(rows, columns=["race", "truth", "old", "new"])
    asked = {"constraints": "false_positive_rate_parity", "pos_label": 1, "favorable_label": 0}
    (worst,) = of_frame(data, **COLUMNS, y_true="truth", request=asked).subgroups.listed
    assert (worst.name, worst.n, worst.rate.value, worst.rate_before) == ("b", 200, 80 / 200, 1.0)
    assert (worst.n_others, worst.others) == (200, 1.0)


@pytest.mark.parametrize("engine", ["polars lazy", "duckdb"], indirect=True)
def test_scores_that_hardly_vary_keep_their_correlation(engine):
    rng = np.random.default_rng(0)
    data = people()
    data["score"] = 0.5 + 1e-9 * rng.random(600)
    data["edited"] = data.score + 1e-9 * rng.random(600)
    options = {**COLUMNS, "scores_before": "score", "scores_after": "edited"}
    data["old"] = data["new"] = 1  # so that scores of another label are no question
    result, expected = of_frame(engine(data), **options), of_arrays(data, **options)
    assert result.agreement.correlation == pytest.approx(expected.agreement.correlation, abs=1e-6)
    data["edited"] = 0.5
    assert of_frame(engine(data), **options).agreement.correlation is None


def test_spark_counts_the_same(spark):
    data = people().astype({"old": float})
    options = {**SCORED, "sensitive_features": ["race", "sex"], "request": {"threshold": 0.5}}
    expected = of_arrays(data, **options)
    scored = pl.from_pandas(data)
    lacks = [pl.lit(None).alias(name) for name in ("new", "score")]
    lacks += [pl.lit(float("nan")).alias(name) for name in ("old", "edited")]
    unscored = scored[:3].with_columns(lacks).cast(scored.schema)
    native = spark.createDataFrame(pl.concat([scored, unscored]).to_arrow())
    result = of_frame(native, **options)
    assert_same(result, expected)
    assert any("3 rows without a decision" in text for text in result.not_known)


# -- missing values -------------------------------------------------------------------------------


def holes(data, column, rows, *, as_nan):
    """Return a polars frame whose column is null, or NaN, in some rows."""
    lacks = pl.Series(np.isin(np.arange(len(data)), rows))
    hole = pl.lit(float("nan") if as_nan else None)
    filled = pl.when(lacks).then(hole).otherwise(pl.col(column).cast(pl.Float64))
    return pl.from_pandas(data).with_columns(filled.alias(column))


KINDS = {
    "pandas": lambda table: pd.DataFrame(table.to_dict(as_series=False)),
    "polars": lambda table: table.lazy(),
    "pyarrow": lambda table: table.to_arrow(),
    "duckdb": lambda table: duckdb.from_arrow(table.to_arrow()),
}


@pytest.mark.parametrize(
    ("kind", "as_nan"),
    [("polars", True), ("pyarrow", False), ("duckdb", True)],
)
def test_rows_without_any_decision_are_left_out_and_counted(kind, as_nan):
    data = people()
    table = data
    for column in ("old", "new", "score", "edited"):
        table = holes(table, column, [3, 5, 8], as_nan=as_nan).to_pandas()
    table = pl.from_pandas(table, nan_to_null=not as_nan)
    result = of_frame(KINDS[kind](table), **SCORED)
    kept = data.drop([3, 5, 8]).astype({"old": float, "new": float})
    assert_same(result, of_arrays(kept, **SCORED))
    assert any("3 rows without a decision before and after" in text for text in result.not_known)
    assert result.n == 597


@every_line(
    "column, message, of_nan, of_null",  # two kinds of frames: one with NaN, one with null
    [
        (
            "old",
            "before: column 'old' is missing (NaN or null) in 2 rows that have a decision",
            "polars",
            "duckdb",
        ),
        ("new", "after: column 'new' is missing (NaN or null) in 2 rows", "pandas", "pyarrow"),
        ("truth", "y_true: column 'truth' is missing (NaN or null) in 2 rows", "duckdb", "polars"),
        (
            "score",
            "scores_before: column 'score' is missing (NaN or null) in 2 rows",
            "pyarrow",
            "duckdb",
        ),
        ("code", "sensitive_features has 2 missing values in 600 rows", "duckdb", "pandas"),
    ],
)
def test_other_missing_values_are_counted_and_refused(column, message, of_nan, of_null):
    data = people().assign(code=lambda d: (d.race == "white").astype(int))
    for kind, as_nan in ((of_nan, True), (of_null, False)):
        native = KINDS[kind](holes(data, column, [0, 7], as_nan=as_nan))
        with pytest.raises(InputError, match=re.escape(message)) as raised:
            of_frame(native, **{**SCORED, "sensitive_features": "code"})
        assert "rop those rows" in str(raised.value)


# -- what comes out -------------------------------------------------------------------------------


@pytest.fixture
def brought(monkeypatch):
    """How many lines each table has that leaves an engine."""
    lines = []
    collect = nw.LazyFrame.collect

    def counted(self, *arguments, **options):
        table = collect(self, *arguments, **options)
        lines.append(len(table))
        return table

    monkeypatch.setattr(nw.LazyFrame, "collect", counted)
    return lines


@pytest.mark.parametrize("engine", ["polars lazy", "duckdb"], indirect=True)
def test_only_group_tables_leave_the_engine(engine, brought):
    result = of_frame(engine(people(n=5000)), **{**SCORED, "sensitive_features": ["race", "sex"]})
    assert result.n == 5000
    assert len(brought) == 4  # the last two count bins of both scores
    assert brought[0] <= 8 and brought[1] <= 8 * 6
    assert max(brought) <= 5000 / 20


def test_a_lazy_frame_is_never_collected_row_by_row():
    longest = []

    def seen(table):
        longest.append(len(table))
        return table

    tables = []
    original = pl.LazyFrame.collect

    def collect(self, *arguments, **options):
        tables.append(original(self, *arguments, **options))
        return tables[-1]

    lazy = pl.from_pandas(people(n=5000)).lazy().map_batches(seen)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pl.LazyFrame, "collect", collect)
        of_frame(lazy, **SCORED)
    assert longest == [5000] * 4  # the engine went through the rows twice, and once per score
    assert tables and max(map(len, tables)) <= 5000 / 20


@pytest.mark.parametrize("engine", ["duckdb"], indirect=True)
def test_a_value_per_person_is_refused_and_stays_inside(engine, brought, monkeypatch):
    data = people().assign(id=range(600))
    monkeypatch.setattr(entry_frame, "MAX_CELLS", 500)
    with pytest.raises(InputError, match="more than 500 combinations of groups"):
        of_frame(engine(data), **{**COLUMNS, "sensitive_features": "id"})
    assert max(brought) == 501
    brought.clear()
    with pytest.raises(InputError, match="more than two different values"):
        of_frame(engine(data), **{**COLUMNS, "before": "id"})
    assert max(brought) <= 28


@pytest.mark.parametrize("engine", ["duckdb"], indirect=True)
def test_what_needs_rows_is_said_to_be_unknown(engine):
    result = of_frame(engine(people()), **SCORED)
    assert result.quality.auc_before is result.quality.auc_loss is result.calibration is None
    assert (
        result.agreement.rank_correlation is result.segments is result.card is result.ledger is None
    )
    said = [text for text in result.not_known if "inside the dataframe engine" in text]
    assert len(said) == 1 and "change ledger" in said[0]
    assert not any("Raw columns were not given" in text for text in result.not_known)
    assert not any("left out of every figure" in text for text in result.not_known)
    assert (result.provenance.ledger_lines, result.provenance.ledger_digest) == (0, "not made")
    assert Audit.from_json(result.to_json()) == result


def test_the_digest_is_of_the_counts_whatever_the_engine_and_the_order():
    data = people()
    digests = {
        of_frame(make(table), **SCORED).provenance.data_digest
        for i, make in enumerate([ENGINES["pandas"], ENGINES["polars lazy"], ENGINES["duckdb"]])
        for table in [data.iloc[::-1] if i % 2 else data]
    }
    assert len(digests) == 1
    data.loc[0, "old"] = 1 - data.old[0]
    digests.add(of_frame(data, **SCORED).provenance.data_digest)
    digests.add(of_frame(data, **COLUMNS).provenance.data_digest)
    data.loc[0, "edited"] = 0.123
    data.loc[data.edited == 1, "edited"] = 0.999
    digests.add(of_frame(data, **SCORED).provenance.data_digest)
    assert len(digests) == 4


def test_reports_are_written(tmp_path):
    for options, name in ((COLUMNS, "report.html"), (SCORED, "report.md"), (SCORED, "report.json")):
        text = report(of_frame(people(), **options), tmp_path / name).read_text()
        assert "not made" in text and "inside the dataframe engine" in text


# -- what comes in --------------------------------------------------------------------------------


@every_line(
    "options, message",
    [
        ({"before": "odl"}, "before: no column 'odl' in the frame (columns: race, sex, truth"),
        ({"before": "odl"}, "Did you mean 'old'?"),
        ({"sensitive_features": ["race", "town"]}, "sensitive_features: no column 'town'"),
        ({"sensitive_features": ["race", "race"]}, "names 'race' twice"),
        ({"sensitive_features": []}, "sensitive_features is missing"),
        ({"sensitive_features": None}, "sensitive_features is missing"),
        ({"after": None}, "after is None"),
        ({"before": [0, 1]}, "before must be the name of a column of the frame; got list"),
        ({"before": "race"}, "5 different values"),
        ({"before": "edited"}, "compare scores with the threshold first"),
        ({"y_true": "sex"}, "4 different values"),
        ({"scores_after": "race"}, "must hold numbers; column 'race' is String. Cast it"),
        ({"scores_after": "points"}, "scores_after has 600 values outside [0, 1]"),
        ({"pos_label": 7}, "pos_label=7"),
        ({"favorable_label": 3}, "favorable_label=3"),
        ({"label_names": {5: "x"}}, "label_names"),
        ({"request": {"goal": 1}}, "unknown entry 'goal'"),
        ({"request": {"constraints": "equalized_odds"}}, "y_true is None"),
        ({"level": 1.5}, "level"),
        ({"min_group_size": 0}, "min_group_size"),
        ({"sensitive_features": "list"}, "holds values of type List"),
    ],
)
def test_what_cannot_be_audited_is_refused_with_a_way_out(options, message):
    data = pl.from_pandas(people().assign(points=[-3.0, 3.0] * 300, list=[[1]] * 600))
    with pytest.raises(ValueError, match=re.escape(message)):
        of_frame(data, **{**COLUMNS, **options})


@every_line("native", [np.ones((3, 3)), {"old": [1]}, None, pd.Series([1]), "file"])
def test_what_is_no_frame_is_refused(native):
    with pytest.raises(InputTypeError, match=f"frame must be .*; got {type(native).__name__}"):
        of_frame(native, **COLUMNS)


@pytest.mark.parametrize("engine", ["polars lazy", "duckdb"], indirect=True)
def test_frames_without_rows_decisions_or_clear_names_are_refused(engine):
    data = people()
    with pytest.raises(InputError, match="frame has 0 rows"):
        of_frame(engine(data[:0]), **COLUMNS)
    with pytest.raises(InputError, match="missing in all 600 rows"):
        of_frame(engine(data.assign(old=np.nan, new=np.nan)), **COLUMNS)
    twice = pd.concat([data, data[["old"]]], axis=1)
    with pytest.raises(InputError, match=re.escape("same name ('old')")):
        of_frame(twice, **COLUMNS)


@pytest.mark.parametrize("engine", ["polars"], indirect=True)
def test_one_group_is_compared_with_nobody(engine):
    data = people().assign(race="all")
    assert_same(of_frame(engine(data), **COLUMNS), of_arrays(data, **COLUMNS))


@pytest.mark.parametrize("engine", ["duckdb"], indirect=True)
def test_scores_of_the_other_label_are_noticed(engine):
    data = people().assign(score=lambda d: 1 - d.score)
    with pytest.warns(DataWarning, match="scores_before are read as scores of the label 1, but"):
        of_frame(engine(data), **COLUMNS, scores_before="score")


def test_an_engine_without_pyarrow_says_what_to_install(monkeypatch):
    def collect(self):
        raise ModuleNotFoundError("No module named 'pyarrow'")

    monkeypatch.setattr(nw.LazyFrame, "collect", collect)
    with pytest.raises(InputError, match=re.escape("commod-debiasing[parquet]")):
        of_frame(people(), **COLUMNS)
