"""`fit_frame` counts in the engine and searches on a sample; figures are those of all rows."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from commod import ControlledDebiaser, ScoreColumn
from commod.constraints import DemographicParity, MinimumRate
from commod.exceptions import CommodError, InputError
from commod.metrics import p_rule
from commod.updates import _sample
from commod.updates._frames import fit as frame_fit
from commod.updates._frames import sample as frame_sample
from commod.updates._frames.draws import draws_of, read_seeds

FEATURES = ["size", "skill", "branch"]


def people(n=6000, seed=0):
    """Two groups that a column tells apart, and a score that prefers one of them."""
    random = np.random.default_rng(seed)
    group = random.choice(["f", "m"], n, p=[0.4, 0.6])
    label = random.random(n) < 0.5
    size = (random.normal(size=n) + 1.6 * (group == "m")).round(3)
    skill = (random.normal(size=n) + 0.8 * label).round(3)
    return pd.DataFrame(
        {
            "id": random.permutation(n),
            "size": size,
            "skill": skill,
            "branch": random.choice(["north", "south"], n),
            "f": 1 / (1 + np.exp(0.4 - skill - 1.2 * (size - 0.8))),
            "g": group,
            "y": label.astype(int),
            "w": random.uniform(0.5, 2.0, n),
        }
    )


TABLE = people()
ENGINES = {
    "duckdb": lambda frame: duckdb.from_df(frame),
    "polars": lambda frame: pl.from_pandas(frame).lazy(),
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}


@pytest.fixture(autouse=True, scope="module")
def small_samples():
    """Let a table of 6,000 rows be sampled, as one of a million is."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_sample, "MIN_ROWS", 1500)
        patched.setattr(_sample, "MIN_CHANGED_ROWS", 150)
        patched.setattr(frame_sample, "MIN_CELL_ROWS", 300)
        yield


@pytest.fixture(scope="module")
def fitted(small_samples):
    return fit()


@pytest.fixture(scope="module")
def on_fit_rows(small_samples):
    return fit(target_on="fit_rows")


def fit(frame=TABLE, engine="duckdb", key="id", columns=None, **params):
    update = ControlledDebiaser(ScoreColumn("f"), **{"target": 0.8, **params})
    named = {"sensitive_features": "g", "y_true": "y", "features": FEATURES, **(columns or {})}
    return update.fit_frame(ENGINES[engine](frame), key=key, **named)


def decisions(update, frame=TABLE):
    return update.predict(frame[[*FEATURES, "f"]])


def changed(update, frame=TABLE):
    return decisions(update, frame) != (frame["f"] > 0.5)


# ---------------------------------------------------------------------------------------------
# The same update everywhere, and figures of all rows


EQUALIZED_ODDS = {
    "constraints": "equalized_odds",
    "target": 0.4,
    "target_on": "fit_rows",
    "direction": "gains_only",
    "numeric": "unit",
}


@pytest.mark.parametrize("params", [{}, EQUALIZED_ODDS])
def test_engines_find_the_same_update(params):
    first, *others = (fit(engine=engine, **params) for engine in ENGINES)
    assert first.n_search_rows_ < len(TABLE)
    for other in others:
        assert other.n_search_rows_ == first.n_search_rows_
        np.testing.assert_allclose(other.scorecard_.points, first.scorecard_.points, atol=1e-9)
        assert (decisions(other) == decisions(first)).all()
        assert other.limit_ == first.limit_


def test_spark_finds_the_same_update(spark, fitted):
    known = fitted
    frame = spark.createDataFrame(ENGINES["pyarrow"](TABLE)).repartition(3)
    update = ControlledDebiaser(ScoreColumn("f"), target=0.8).fit_frame(
        frame, sensitive_features="g", y_true="y", features=FEATURES, key="id"
    )
    np.testing.assert_allclose(update.scorecard_.points, known.scorecard_.points, atol=1e-9)
    assert (decisions(update) == decisions(known)).all()
    assert "Spark counted" in update.status_


@pytest.mark.parametrize("of", ["on_fit_rows", "fitted"])
def test_figures_are_those_of_all_rows(of, request):
    update = request.getfixturevalue(of)
    after = decisions(update)
    assert update.n_rows_ == len(TABLE)
    assert update.change_rate_ == changed(update).mean()
    value = p_rule(None, after, sensitive_features=TABLE["g"])
    assert update.fairness_ == pytest.approx(value, abs=1e-12)
    assert value >= 0.8
    assert update.accuracy_ == pytest.approx((after == TABLE["y"]).mean(), abs=1e-12)
    gains = changed(update) & (after == 1)
    assert (update.n_gains_, update.n_losses_) == (gains.sum(), 0)
    distance = abs(TABLE["f"] - 0.5)[changed(update)].sum() / len(TABLE)
    assert update.cost_ == pytest.approx(distance, rel=1e-9)


def test_no_other_offset_is_cheaper():
    """The offset is exact on all rows: one person fewer, and the target is missed."""
    update = fit(target_on="fit_rows", direction="gains_only")
    frame = TABLE[[*FEATURES, "f"]]
    ratio, base = update.raw_ratio(frame), TABLE["f"].to_numpy() > 0.5
    order = [i for i in np.argsort(ratio) if not base[i]]
    n_changed = int(changed(update).sum())
    assert set(order[:n_changed]) == set(np.flatnonzero(changed(update)))
    last_value = ratio[order[n_changed - 1]]
    fewer = base | ((ratio < last_value - 1e-9) & ~base)
    assert p_rule(None, fewer, sensitive_features=TABLE["g"]) < 0.8


def test_it_needs_hardly_more_changes_than_a_fit_in_memory():
    table = people(12_000, seed=3)
    X = table[[*FEATURES, "f"]]
    whole = ControlledDebiaser(ScoreColumn("f"), target=0.8, target_on="fit_rows")
    whole.fit(X, table["y"], sensitive_features=table["g"])
    update = fit(table, target_on="fit_rows")
    assert update.n_search_rows_ < 4000
    assert update.change_rate_ <= 1.1 * whole.change_rate_
    assert update.base_fairness_ == pytest.approx(whole.base_fairness_)


def test_limit_is_exact(on_fit_rows):
    update = on_fit_rows
    X = TABLE[[*FEATURES, "f"]]
    whole = ControlledDebiaser(ScoreColumn("f"), target=update.fairness_, target_on="fit_rows")
    whole.fit(X, TABLE["y"], sensitive_features=TABLE["g"])
    assert update.limit_ <= whole.limit_ <= update.change_rate_


def test_weights_count_in_rates_and_people_in_changes():
    update = fit(target_on="fit_rows", columns={"sample_weight": "w"})
    after = decisions(update)
    value = p_rule(None, after, sensitive_features=TABLE["g"], sample_weight=TABLE["w"])
    assert update.fairness_ == pytest.approx(value, abs=1e-9)
    assert value >= 0.8
    assert update.change_rate_ == changed(update).mean()
    assert np.isnan(update.limit_)


def test_conditions_and_several_constraints_hold_on_all_rows():
    stated = DemographicParity(ratio=0.8).within("branch") & MinimumRate(0.45)
    update = fit(constraints=stated, target=None, target_on="fit_rows")
    after = pd.Series(decisions(update))
    rates = after.groupby([TABLE["branch"], TABLE["g"]]).mean().unstack()
    assert (rates.min(axis=1) / rates.max(axis=1) >= 0.8 - 1e-12).all()
    assert after.groupby(TABLE["g"]).mean().min() >= 0.45 - 1e-12


def test_caps_and_margins_are_kept():
    update = fit(max_changes=0.05, target=None, target_on="fit_rows", direction="gains_only")
    assert changed(update).mean() <= 0.05
    assert update.fairness_ > update.base_fairness_
    gated = fit(max_margin=0.2, target=0.5, target_on="fit_rows", direction="gains_only")
    assert (abs(TABLE["f"] - 0.5)[changed(gated)] <= 0.2).all()


def test_a_promise_is_tested_on_rows_with_an_odd_draw():
    table = people(14_000, seed=5)
    update = fit(table, confidence=0.9, target=0.7, random_state=4)
    seeds = read_seeds(np.random.RandomState(4))
    held_out = draws_of(table["id"].to_numpy(), seeds) % 2 == 1
    assert update.promised_
    assert update.n_search_rows_ < update.n_rows_ == held_out.sum()
    after = decisions(update, table)[held_out]
    value = p_rule(None, after, sensitive_features=table["g"][held_out])
    assert update.fairness_ == pytest.approx(value, abs=1e-12)
    assert update.change_rate_ == changed(update, table)[held_out].mean()
    assert "is promised for new people with confidence 0.9" in update.status_


def test_standing_bounds_are_expected_on_new_rows():
    stated = DemographicParity(ratio=0.75) & MinimumRate(0.45)
    update = fit(constraints=stated, target=None)
    assert update.reached_
    (_, standing) = update.expected_values_.values()
    assert standing >= 0.45


@pytest.mark.parametrize("direction", ["gains_only", "any"])
def test_expectation_with_a_margin_counts_rows_that_may_change(direction):
    update = fit(target=0.5, max_margin=0.25, direction=direction)
    assert update.expected_change_rate_ == pytest.approx(update.change_rate_, rel=0.2)


def test_expectation_is_that_of_rows_outside_the_sample():
    update = fit(target=0.75)
    assert update.expected_fairness_ == pytest.approx(0.75, abs=0.02)
    assert "rows outside the search sample" in update.status_
    assert update.expected_change_rate_ == pytest.approx(update.change_rate_, abs=0.02)


def test_status_says_what_is_counted_and_what_is_sampled(fitted):
    status = fitted.status_
    assert "DuckDB counted groups, rates, the limit, the offset and all figures" in status
    assert f"rest on the {fitted.n_search_rows_:,} rows of the sample" in status
    assert "drawn by their number" not in status
    assert "drawn by their number" in fit(key=None, target_on="fit_rows").status_


def test_a_seed_draws_another_sample():
    settings = {"target_on": "fit_rows", "borderline": 0, "sparsity": 0}  # the quickest search
    first, again, other = (fit(random_state=s, **settings) for s in (1, 1, 2))
    assert (first.scorecard_.points == again.scorecard_.points).all()
    assert not np.array_equal(first.scorecard_.points, other.scorecard_.points)


def test_a_patch_of_a_frame_decides_alike(fitted):
    update = fitted
    applied = update.to_patch().apply(TABLE, score="f")
    assert (applied["commod_decision"].to_numpy() == decisions(update)).all()


def test_small_tables_come_whole():
    small = TABLE.head(1000)
    update = fit(small)
    assert update.n_search_rows_ == update.n_rows_ == 1000


def test_the_sample_grows_where_all_rows_disagree(monkeypatch):
    sizes = []
    monkeypatch.setattr(frame_fit, "agrees_with_sample", lambda comparison: False)
    monkeypatch.setattr(frame_fit.Attempt, "is_better_than", lambda *_: True)
    monkeypatch.setattr(frame_fit, "fit_in_memory", lambda *_: sizes.append("all"))
    monkeypatch.setattr(frame_fit, "store_fit", lambda *_: None)
    read = frame_fit.read_sample
    monkeypatch.setattr(
        frame_fit, "read_sample", lambda *a: sizes.append(len(rows := read(*a))) or rows
    )
    table = people(13_000)
    with pytest.raises(AttributeError):  # nothing was stored
        fit(table)
    assert sizes[1] > 3 * sizes[0]
    assert sizes[-1] == "all"


def test_a_larger_sample_that_finds_nothing_better_is_the_last(monkeypatch):
    table, sizes = people(13_000), []
    monkeypatch.setattr(frame_fit, "agrees_with_sample", lambda comparison: True)
    first = fit(table)
    count = frame_fit.FrameCut.violation_and_changes

    def count_by_sample(cut):  # a larger sample changes more people
        sizes.append(len(cut.kept.problem.rows))
        return count(cut)[0], sizes[-1]

    monkeypatch.setattr(frame_fit, "agrees_with_sample", lambda comparison: False)
    monkeypatch.setattr(frame_fit.FrameCut, "violation_and_changes", count_by_sample)
    update = fit(table)
    larger, smaller = sizes
    assert larger > 3 * smaller
    assert update.n_search_rows_ == first.n_search_rows_ == smaller
    assert update._scores_digest == first._scores_digest
    assert (decisions(update, table) == decisions(first, table)).all()
    assert f"a sample of {larger:,} rows found no better update" in update.status_


def test_of_two_samples_the_update_with_fewer_changes_is_kept(monkeypatch):
    found = []
    monkeypatch.setattr(frame_fit, "agrees_with_sample", lambda comparison: False)
    search = frame_fit.fit_on_sample

    def search_and_note(*arguments, **how):
        found.append(search(*arguments, **how))
        return found[-1]

    monkeypatch.setattr(frame_fit, "fit_on_sample", search_and_note)
    update = fit(people(13_000), sample="auto")
    tried = {len(one.kept.problem.rows): one.cut.violation_and_changes() for one in found}
    if update.n_search_rows_ in tried:  # otherwise all rows were searched
        assert tried[update.n_search_rows_] == min(tried.values())


# ---------------------------------------------------------------------------------------------
# Hostile tables


def test_a_group_of_forty_counts_and_one_of_ten_does_not():
    table = TABLE.copy()
    table.loc[:39, "g"] = "rare"
    table.loc[40:49, "g"] = "few"
    with pytest.warns(match="few"):
        update = fit(table, target=0.6, target_on="fit_rows")
    assert [(group.name, group.n) for group in update.groups_left_out_] == [("few", 10)]
    kept = table["g"] != "few"
    value = p_rule(None, decisions(update, table)[kept], sensitive_features=table["g"][kept])
    assert update.fairness_ == pytest.approx(value, abs=1e-12)


@pytest.mark.filterwarnings("ignore:Column 'size'")
def test_a_stratum_of_one_decision_only():
    table = TABLE[(TABLE["g"] == "m") | (TABLE["f"] <= 0.5)].reset_index(drop=True)
    update = fit(table, target=0.5, target_on="fit_rows")
    assert update.base_fairness_ == 0.0
    value = p_rule(None, decisions(update, table), sensitive_features=table["g"])
    assert update.fairness_ == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("g", None, "sensitive_features: 1 missing value"),
        ("y", None, "y_true: 1 missing value"),
        ("f", float("nan"), "no score in \\[0, 1\\] in 1 of"),
        ("f", 1.5, "no score in \\[0, 1\\] in 1 of"),
        ("w", -1.0, "sample_weight: column 'w' is missing, negative"),
        ("id", None, "key: column 'id' is missing in 1 row"),
    ],
)
def test_missing_and_invalid_values_are_counted_and_refused(engine, column, value, message):
    table = TABLE.head(2000).copy()
    if value is None and table[column].dtype.kind == "i":
        table[column] = table[column].astype("Int64")
    table.loc[3, column] = value
    with pytest.raises(CommodError, match=message):
        fit(table, engine=engine, columns={"sample_weight": "w"})


def test_nan_groups_are_missing():
    table = TABLE.assign(g=(TABLE["g"] == "f").astype(float))
    table.loc[:2, "g"] = np.nan
    for engine in ENGINES:
        with pytest.raises(InputError, match="3 missing values"):
            fit(table, engine=engine)


def test_a_key_that_rows_share_is_refused():
    with pytest.raises(InputError, match="Too many rows share a key"):
        fit(TABLE.assign(id=TABLE["id"] % 3))


def test_a_key_that_some_rows_share_is_right():
    table = TABLE.assign(id=TABLE["id"] // 2)
    update = fit(table)
    assert update.change_rate_ == changed(update, table).mean()


def test_a_failing_fit_leaves_the_earlier_one(on_fit_rows):
    update = on_fit_rows
    before = decisions(update)
    with pytest.raises(InputError, match="no column 'nowhere'"):
        update.fit_frame(ENGINES["duckdb"](TABLE), sensitive_features="nowhere")
    assert (decisions(update) == before).all()


def test_an_interrupted_fit_leaves_nothing_in_the_database(monkeypatch):
    connection = duckdb.connect()
    relation = connection.from_df(TABLE)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(frame_fit, "search_direction", interrupted)
    update = ControlledDebiaser(ScoreColumn("f"), target=0.8)
    with pytest.raises(KeyboardInterrupt):
        update.fit_frame(relation, sensitive_features="g", features=FEATURES, key="id")
    for kind in ("duckdb_tables()", "duckdb_views() WHERE NOT internal"):
        assert connection.sql(f"SELECT count(*) FROM {kind}").fetchall() == [(0,)]
    assert not hasattr(update, "scorecard_")


def test_unknown_groups_are_refused():
    with pytest.raises(InputError) as refused:
        fit(unknown_groups="ignore")
    assert refused.value.parameter == "unknown_groups"


def test_all_rows_come_where_the_search_must_see_them(monkeypatch):
    update = fit(sample="all", target_on="fit_rows")
    assert update.n_search_rows_ == update.n_rows_ == len(TABLE)
    monkeypatch.setattr(frame_fit, "MAX_PULLED_ROWS", 5000)
    with pytest.raises(InputError, match="at most 5,000 come") as refused:
        fit(sample="all")
    assert refused.value.parameter == "sample"


def test_a_model_is_refused_with_a_way_out():
    with pytest.raises(InputError, match="ScoreColumn"):
        ControlledDebiaser(object()).fit_frame(TABLE, sensitive_features="g")


# ---------------------------------------------------------------------------------------------
# Files and datasets


def test_parquet_folders_and_datasets_are_read_where_they_are(tmp_path, fitted):
    dataset = pytest.importorskip("pyarrow.dataset")
    TABLE.iloc[:3000].to_parquet(tmp_path / "a.parquet")
    TABLE.iloc[3000:].to_parquet(tmp_path / "b.parquet")
    known = fitted
    for frame in (tmp_path, f"{tmp_path}/*.parquet", dataset.dataset(tmp_path)):
        update = ControlledDebiaser(ScoreColumn("f"), target=0.8).fit_frame(
            frame, sensitive_features="g", y_true="y", features=FEATURES, key="id"
        )
        assert (update.scorecard_.points == known.scorecard_.points).all()
    with pytest.raises(InputError, match="no such file or folder"):
        ControlledDebiaser(ScoreColumn("f")).fit_frame("nowhere", sensitive_features="g")
