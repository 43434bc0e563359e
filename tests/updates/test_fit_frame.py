"""`fit_frame` is the same fit as `fit`: one patch from every engine and every order of rows."""

from copy import deepcopy
from functools import cache
from types import SimpleNamespace

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from commod import ControlledDebiaser, ScoreColumn
from commod._data.draws import key_hashes
from commod._record.plain import to_plain
from commod.constraints import DemographicParity, MinimumRate
from commod.exceptions import CommodError, DataWarning, InputError
from commod.metrics import fairness_value, p_rule
from commod.scorecard import distances
from commod.updates import _fit_rows
from commod.updates import _frame_fit as frame_cut
from commod.updates._targeted import find_asked

FEATURES = ["size", "skill", "branch"]


def people(n=1600, seed=0):
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
            "three": np.where(random.random(n) < 0.2, "x", group),
            "y": label.astype(int),
            "w": random.uniform(0.5, 2.0, n),
        }
    )


TABLE = people()
ENGINES = {
    "duckdb": lambda frame: duckdb.from_arrow(arrow(frame)),
    "polars": lambda frame: pl.from_pandas(frame).lazy(),
    "pyarrow": lambda frame: arrow(frame),
    "pandas": lambda frame: frame,
}
FEW_ROWS = 500  # that points come from, where all rows do not
QUICK = {"borderline": 0, "max_lines": None, "target_on": "fit_rows"}  # few cuts to ask for


def arrow(frame):
    return pa.Table.from_pandas(frame, preserve_index=False)


@pytest.fixture
def few_point_rows(monkeypatch):
    """Let points come from a part of the table, as on more than a million rows."""
    monkeypatch.setattr(_fit_rows, "MAX_POINT_ROWS", FEW_ROWS)


def fit(frame=TABLE, engine="duckdb", key="id", columns=None, **params):
    update = ControlledDebiaser(ScoreColumn("f"), **{"target": 0.8, **params})
    named = {"sensitive_features": "g", "y_true": "y", "features": FEATURES, **(columns or {})}
    native = ENGINES[engine](frame) if isinstance(engine, str) else engine(frame)
    return update.fit_frame(native, key=key, **named)


def fit_in_memory(table=TABLE, key="id", columns=None, **params):
    """Fit rows in memory, by the hash of a key if there is one; `fit` itself takes no key."""
    update = ControlledDebiaser(ScoreColumn("f"), **{"target": 0.8, **params})
    named = {"sensitive_features": "g", "sample_weight": None, **(columns or {})}
    X, groups = table[[*FEATURES, "f"]], table[named["sensitive_features"]]
    weight = None if named["sample_weight"] is None else table[named["sample_weight"]]
    if key is None:
        return update.fit(X, table["y"], sensitive_features=groups, sample_weight=weight)
    hashes = key_hashes(table[key].to_numpy())
    problem = update._prepare(X, table["y"], groups, weight, hashes=hashes)
    update._store_fit(*find_asked(problem))
    return update


def content(update):
    """Return the patch as plain values, but for the time and the versions."""
    plain = to_plain(update.to_patch().content)
    return {name: plain[name] for name in plain if name not in ("created", "library", "versions")}


def decisions(update, frame=TABLE):
    return update.predict(frame[[*FEATURES, "f"]])


def changed(update, frame=TABLE):
    return decisions(update, frame) != (frame["f"] > 0.5)


def shuffled(table, order):
    return table.sample(frac=1, random_state=order, ignore_index=True) if order else table


# ---------------------------------------------------------------------------------------------
# The same update everywhere


@pytest.fixture(scope="module")
def fitted():
    """Return what fits the table once: of many rows or not, and with few cuts to ask for or not."""

    @cache
    def fit_once(bound, is_quick=False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_fit_rows, "MAX_POINT_ROWS", bound)
            return fit(**QUICK) if is_quick else fit()

    return fit_once


@pytest.mark.parametrize(
    ("key", "engines"), [("id", ("duckdb", "pandas")), (None, ("polars", "pyarrow"))]
)
def test_every_engine_and_order_gives_the_same_patch(key, engines):
    """Of rows that fit in memory; `tests/updates/test_same_update.py` has other requests."""
    known = content(fit_in_memory(shuffled(TABLE, 5), key, **QUICK))
    for order, engine in enumerate(engines, 1):
        assert content(fit(shuffled(TABLE, order), engine, key, **QUICK)) == known


@pytest.mark.usefixtures("few_point_rows")
def test_a_large_table_gives_the_same_patch_in_every_engine():
    known = content(fit_in_memory(**QUICK))
    assert known["seen"]["n_rows"] == known["reached"]["n_rows"] == len(TABLE)
    for order, engine in enumerate(ENGINES, 1):
        assert content(fit(shuffled(TABLE, order), engine, **QUICK)) == known


REQUESTS = {
    "odds": {"engine": "polars", "constraints": "equalized_odds", "target": 0.4},
    "three groups and whole numbers": {
        "engine": "pyarrow",
        "target_on": "fit_rows",
        "points": "integers",
        "columns": {"sensitive_features": "three"},
    },
    "weights and the other label": {"columns": {"sample_weight": "w"}, "pos_label": 0},
    "budget and losses": {"target": None, "max_changes": 0.05, "direction": "losses_only"},
    "caps and a margin": {
        "max_accuracy_loss": 0.01,
        "max_volume_change": 0.1,
        "max_margin": 0.25,
        "target": 0.55,
    },
    "conditions": {
        "constraints": DemographicParity(ratio=0.8).within("branch") & MinimumRate(0.45),
        "target": None,
    },
    "promise": {"confidence": 0.9, "target": 0.5},
}


@pytest.mark.filterwarnings("ignore::commod.exceptions.TargetWarning")
@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.usefixtures("few_point_rows")
def test_every_request_gives_the_same_patch_on_a_large_table(name):
    asked = dict(REQUESTS[name])
    engine = asked.pop("engine", "duckdb")
    update = fit(engine=engine, **asked)
    check_figures(update, **asked)
    assert content(update) == content(fit_in_memory(**asked))


def check_figures(update, constraints="demographic_parity", columns=None, pos_label=1, **asked):
    """Measure an update again, from its decisions on all rows."""
    if "confidence" in asked:  # the promise rests on the rows with the smallest hash
        draws = key_hashes(TABLE["id"].to_numpy()) >> np.uint64(33)
        n_drawn = (draws < _fit_rows.hash_bound(len(TABLE))).sum()
        assert update.n_rows_ == n_drawn // 2 < FEW_ROWS and update.promised_
        return
    after, is_changed, names = decisions(update), changed(update), columns or {}
    given = {"sensitive_features": TABLE[names.get("sensitive_features", "g")]}
    if "sample_weight" in names:
        given["sample_weight"] = TABLE[names["sample_weight"]]
    if isinstance(constraints, str):
        values = [fairness_value(constraints, TABLE["y"], after, pos_label=pos_label, **given)]
    else:
        values = constraints.value(TABLE["y"], after, control_features=TABLE["branch"], **given)
    assert list(update.values_.values()) == pytest.approx(list(values), abs=1e-9)
    assert update.change_rate_ == is_changed.mean() > 0
    assert update.change_rate_ <= asked.get("max_changes", 1)
    assert (abs(TABLE["f"] - 0.5)[is_changed] <= asked.get("max_margin", 1)).all()
    base = TABLE["f"] > 0.5
    lost = (base == TABLE["y"]).mean() - (after == TABLE["y"]).mean()
    assert lost <= asked.get("max_accuracy_loss", 1) + 1e-12
    assert abs(after.mean() - base.mean()) <= asked.get("max_volume_change", 1) + 1e-12


@pytest.mark.usefixtures("few_point_rows")
def test_bins_lead_to_the_cut_of_single_values(fitted, monkeypatch):
    """The cut of single values is that of `fit`."""
    known = content(fitted(FEW_ROWS))
    monkeypatch.setattr(frame_cut, "MAX_SINGLE", 2)
    monkeypatch.setattr(frame_cut, "N_FINE", 32)
    monkeypatch.setattr(frame_cut, "N_COARSE", 4)
    counted = []
    count = frame_cut.EvidenceQuery.count_between
    monkeypatch.setattr(
        frame_cut.EvidenceQuery,
        "count_between",
        lambda *given: counted.append(given[1:]) or count(*given),
    )
    assert content(fit()) == known
    assert counted


@pytest.mark.parametrize(("max_single", "seed"), [(100_000, 0), (2, 1)])
def test_the_cut_of_a_large_table_is_that_of_brute_force(seed, max_single, monkeypatch):
    """Of all cuts along the points, the first at which the target holds on all 300 rows."""
    monkeypatch.setattr(_fit_rows, "MAX_POINT_ROWS", 100)
    monkeypatch.setattr(frame_cut, "MAX_SINGLE", max_single)
    table = people(300, seed)
    update = fit(table, target=0.7, target_on="fit_rows", direction="gains_only", max_lines=None)
    rule, base = update.scorecard_.rule, table["f"].to_numpy() > 0.5
    v = update.scorecard_.evaluate(update._read_rows(table[[*FEATURES, "f"]]).terms)
    evidence = np.where(base, -np.inf, v / rule.costs(distances(table["f"].to_numpy(), 0.5)))
    values = np.unique(evidence[evidence > 0])[::-1]
    after = [base | (evidence >= value) for value in values]
    reached = [p_rule(None, one, sensitive_features=table["g"]) >= 0.7 for one in after]
    best = reached.index(True)
    assert (decisions(update, table) == after[best]).all()
    assert values[best] > rule.cut >= np.append(values, 0)[best + 1]


def test_a_key_is_documented():
    """The rule of docs/frames.md, in Python's whole numbers."""
    P, key = 2147483579, 1_000_003
    h = (1103515245 * (key % P) + 1274126177) % P
    for _ in range(3):
        h = (h**3 + key % 2147483549 + 668265263) % P
    assert int(key_hashes(np.array([key]))[0]) >> 33 == h


# ---------------------------------------------------------------------------------------------
# Figures of all rows


@pytest.mark.parametrize("bound", [10_000, FEW_ROWS])
def test_figures_are_those_of_all_rows(bound, fitted):
    update = fitted(bound)
    after = decisions(update)
    assert update.n_rows_ == len(TABLE)
    assert update.change_rate_ == changed(update).mean()
    value = p_rule(None, after, sensitive_features=TABLE["g"])
    assert update.fairness_ == pytest.approx(value, abs=1e-12)
    assert update.accuracy_ == pytest.approx((after == TABLE["y"]).mean(), abs=1e-12)
    gains = changed(update) & (after == 1)
    assert (update.n_gains_, update.n_losses_) == (gains.sum(), 0)
    assert 0 < update.limit_ <= update.change_rate_
    assert 0 < update.outscoring_["gain"]["value"] < 1
    assert "DuckDB" not in update.status_
    applied = update.to_patch().apply(TABLE, score="f")
    assert (applied["commod_decision"].to_numpy() == after).all()


# ---------------------------------------------------------------------------------------------
# Hostile tables


@pytest.mark.usefixtures("few_point_rows")
def test_a_group_of_forty_counts_and_one_of_ten_does_not():
    table = TABLE.copy()
    table.loc[:39, "g"] = "rare"
    table.loc[40:49, "g"] = "few"
    with pytest.warns(DataWarning, match="few"):
        update = fit(table, target=0.6, target_on="fit_rows")
    assert [(group.name, group.n) for group in update.groups_left_out_] == [("few", 10)]
    kept = table["g"] != "few"
    value = p_rule(None, decisions(update, table)[kept], sensitive_features=table["g"][kept])
    assert update.fairness_ == pytest.approx(value, abs=1e-12)


@pytest.mark.filterwarnings("ignore:Column 'size'")
@pytest.mark.usefixtures("few_point_rows")
def test_a_group_of_one_decision_only():
    table = TABLE[(TABLE["g"] == "m") | (TABLE["f"] <= 0.5)].reset_index(drop=True)
    update = fit(table, target=0.5, target_on="fit_rows")
    assert update.base_fairness_ == 0.0
    value = p_rule(None, decisions(update, table), sensitive_features=table["g"])
    assert update.fairness_ == pytest.approx(value, abs=1e-12)


REFUSED = [
    ("g", None, "sensitive_features: 1 missing value"),
    ("y", None, "y_true: 1 missing value"),
    ("f", float("nan"), "no score in \\[0, 1\\] in 1 of"),
    ("f", 1.5, "no score in \\[0, 1\\] in 1 of"),
    ("w", -1.0, "sample_weight: column 'w' is missing, negative"),
    ("id", None, "key: column 'id' is missing in 1 row"),
]


@pytest.mark.parametrize(
    ("engine", "bound"),
    [("duckdb", FEW_ROWS), ("polars", 10_000), ("pyarrow", FEW_ROWS), ("pandas", 10_000)],
)
def test_missing_and_invalid_values_are_refused(engine, bound, monkeypatch):
    monkeypatch.setattr(_fit_rows, "MAX_POINT_ROWS", bound)
    for column, value, message in REFUSED:
        table = TABLE.copy()
        if value is None and table[column].dtype.kind == "i":
            table[column] = table[column].astype("Int64")
        table.loc[3, column] = value
        with pytest.raises(CommodError, match=message):
            fit(table, engine, columns={"sample_weight": "w"})
    table = TABLE.assign(g=(TABLE["g"] == "f").astype(float))  # NaN is missing too
    table.loc[:2, "g"] = np.nan
    with pytest.raises(InputError, match="3 missing values"):
        fit(table, engine)


@pytest.mark.parametrize("bound", [10_000, FEW_ROWS])
def test_a_key_that_many_rows_share_is_refused(bound, monkeypatch):
    monkeypatch.setattr(_fit_rows, "MAX_POINT_ROWS", bound)
    with pytest.raises(InputError, match="Too many rows share a key"):
        fit(TABLE.assign(id=TABLE["id"] % 3))


def test_rows_that_share_a_key_may_come_in_any_order():
    table = TABLE.assign(id=TABLE["id"] // 2)
    known = fit(table, **QUICK)
    assert known.change_rate_ == changed(known, table).mean()
    assert content(fit(shuffled(table, 1), **QUICK)) == content(known)
    asked = {**QUICK, "confidence": 0.9, "target": 0.5}
    promised = [fit(one, **asked) for one in (table, shuffled(table, 1))]
    assert content(promised[0]) == content(promised[1])


def test_unknown_groups_are_those_of_fit_and_refused_on_a_large_table(monkeypatch):
    table = TABLE.assign(g=TABLE["g"].where(TABLE["id"] % 4 > 0, None))
    asked = {**QUICK, "unknown_groups": "ignore", "key": None}
    assert content(fit(table, **asked)) == content(fit_in_memory(table, **asked))
    monkeypatch.setattr(_fit_rows, "MAX_POINT_ROWS", FEW_ROWS)
    with pytest.raises(InputError) as refused:
        fit(table, **asked)
    assert refused.value.parameter == "unknown_groups"


def test_a_failing_fit_leaves_the_earlier_one(fitted):
    update = deepcopy(fitted(FEW_ROWS, is_quick=True))
    before = decisions(update)
    with pytest.raises(InputError, match="no column 'nowhere'"):
        update.fit_frame(ENGINES["duckdb"](TABLE), sensitive_features="nowhere")
    assert (decisions(update) == before).all()


@pytest.mark.usefixtures("few_point_rows")
def test_an_interrupted_fit_leaves_nothing_in_the_database(monkeypatch):
    connection = duckdb.connect()
    relation = connection.from_df(TABLE)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(frame_cut.PeopleOfFrame, "count", interrupted)
    update = ControlledDebiaser(ScoreColumn("f"), target=0.8)
    with pytest.raises(KeyboardInterrupt):
        update.fit_frame(relation, sensitive_features="g", features=FEATURES, key="id")
    for kind in ("duckdb_tables()", "duckdb_views() WHERE NOT internal"):
        assert connection.sql(f"SELECT count(*) FROM {kind}").fetchall() == [(0,)]
    assert not hasattr(update, "scorecard_")


def test_an_object_that_is_no_model_is_refused_with_a_way_out():
    with pytest.raises(InputError, match="ScoreColumn"):
        ControlledDebiaser(object()).fit_frame(TABLE, sensitive_features="g")


# ---------------------------------------------------------------------------------------------
# Files and datasets


@pytest.mark.usefixtures("few_point_rows")
def test_parquet_folders_and_datasets_are_read_where_they_are(tmp_path, fitted):
    dataset = pytest.importorskip("pyarrow.dataset")
    TABLE.iloc[:900].to_parquet(tmp_path / "a.parquet")
    TABLE.iloc[900:].to_parquet(tmp_path / "b.parquet")
    known = content(fitted(FEW_ROWS, is_quick=True))
    for frame in (tmp_path, f"{tmp_path}/*.parquet", dataset.dataset(tmp_path)):
        assert content(fit(engine=lambda _, frame=frame: frame, **QUICK)) == known
    with pytest.raises(InputError, match="no such file or folder"):
        ControlledDebiaser(ScoreColumn("f")).fit_frame("nowhere", sensitive_features="g")


@example(nearness=1.0, mean=0.4717)  # the mean distance itself costs a little less
@example(nearness=0.7, mean=0.332)
@given(nearness=st.sampled_from([0.1, 0.3, 0.7]), mean=st.floats(1e-3, 5.0))
def test_a_change_at_the_unit_distance_costs_one_wherever_some_distance_does(nearness, mean):
    distance = frame_cut._unit_distance(SimpleNamespace(nearness=nearness, mean_distance=mean))
    cost = lambda d: (1.0 - nearness) + nearness / mean * d  # noqa: E731
    near = mean * (1 + np.arange(-3, 4) * np.finfo(float).eps)  # a few units of the last digit
    assert cost(distance) == 1.0 or not (cost(near) == 1.0).any()


@pytest.mark.usefixtures("few_point_rows")
def test_more_counts_than_memory_holds_are_refused(monkeypatch):
    monkeypatch.setattr(frame_cut, "MAX_COUNTS", 5)
    with pytest.raises(InputError, match="have more than 5 lines"):
        fit(engine="polars", **QUICK)
