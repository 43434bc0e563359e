"""IndividualGroupDebiasing: the score of the same person in the privileged group."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from commod import ScoreColumn, frontier
from commod.datasets import make_biased
from commod.exceptions import InputError
from commod.rivals import IndividualGroupDebiasing, check_rival, fit_strengths, lineup
from commod.rivals.individual_group_debiasing import value_at, with_constant

pytestmark = pytest.mark.filterwarnings("ignore::commod.exceptions.CommodWarning")


class TwoScores:
    """A base model with a score for each value of the column `s`: "a" or "b"."""

    classes_ = np.array([0, 1])

    def predict_proba(self, X):
        score = np.where(X["s"] == "a", X["in a"], X["in b"])
        return np.column_stack([1 - score, score])


def people(in_a, in_b, s):
    return pd.DataFrame({"in a": in_a, "in b": in_b, "s": s})


def fitted(X, **parameters):
    """Return an update of TwoScores; "b" is privileged unless stated."""
    update = IndividualGroupDebiasing(
        TwoScores(), **{"group_column": "s", "min_group_size": 1, "privileged": "b"} | parameters
    )
    return update.fit(X, sensitive_features=X["s"])


EXAMPLE = people([0.40, 0.48, 0.55, 0.20, 0.1], [0.60, 0.52, 0.56, 0.25, 0.9], list("aaaab"))


# ---------------------------------------------------------------------------------------------
# The rule


def test_only_the_first_of_four_rows_flips_at_a_tau_of_one_tenth():
    update = fitted(EXAMPLE, strength=0.9)
    changes = update.changes(EXAMPLE, sensitive_features=EXAMPLE["s"])
    assert changes.gain.tolist() == [True, False, False, False, False]
    assert not changes.loss.any()
    proba = update.predict_proba(EXAMPLE, sensitive_features=EXAMPLE["s"])[:, 1]
    assert proba.tolist() == [0.60, 0.48, 0.55, 0.20, 0.9]
    assert update.biased_share_ == 0.25


@given(seed=st.integers(0, 10**6), strength=st.floats(0, 1), n_groups=st.integers(2, 4))
@settings(max_examples=12, deadline=None)
def test_every_other_group_is_compared_with_the_privileged_one(seed, strength, n_groups):
    rng = np.random.default_rng(seed)
    names = np.array(list("abcd")[:n_groups])
    s = np.append(names, rng.choice(names, 40))
    scores = pd.DataFrame(rng.random((len(s), n_groups)).round(2), columns=names)

    class Model(TwoScores):
        def predict_proba(self, X):
            score = np.choose(np.searchsorted(names, X["s"]), [X[name] for name in names])
            return np.column_stack([1 - score, score])

    X = scores.assign(s=s)
    update = IndividualGroupDebiasing(
        Model(), group_column="s", min_group_size=1, strength=strength
    ).fit(X, sensitive_features=s)
    base = Model().predict_proba(X)[:, 1]
    rates = pd.Series(base > 0.5).groupby(s).mean()
    assert rates[update.privileged_] == rates.max()
    best = scores[update.privileged_].to_numpy()
    replaced = (s != update.privileged_) & (best - base > 1 - strength)
    expected = np.where(replaced, best, base)
    assert (update.predict_proba(X, sensitive_features=s)[:, 1] == expected).all()
    assert (update.predict(X, sensitive_features=s) == (expected > 0.5)).all()


def test_decisions_only_rise_along_the_sweep_and_strength_zero_is_neutral():
    rng = np.random.default_rng(0)
    X = people(*rng.random((2, 200)), np.where(rng.random(200) < 0.5, "a", "b"))
    update = IndividualGroupDebiasing(TwoScores(), group_column="s")
    strengths = update.default_strengths[::6]
    updates = fit_strengths(update, strengths, X, sensitive_features=X["s"])
    decided = np.array([u.predict(X, sensitive_features=X["s"]) for u in updates])
    base = TwoScores().predict_proba(X)[:, 1]
    assert (decided[0] == (base > 0.5)).all()
    assert (updates[0].predict_proba(X, sensitive_features=X["s"])[:, 1] == base).all()
    assert (np.diff(decided, axis=0) >= 0).all()
    assert decided[-1].sum() > decided[0].sum()


def test_a_bias_equal_to_tau_changes_nothing():
    X = people([0.25, 0.25], [0.75, 0.75], ["a", "b"])
    assert fitted(X, strength=0.5).change_rate_ == 0
    assert fitted(X, strength=0.51).change_rate_ == 0.5


def test_a_sweep_asks_the_base_model_no_more_than_one_fit():
    rng = np.random.default_rng(0)
    X = people(*rng.random((2, 100)), list("ab") * 50)

    class Counted(TwoScores):
        n_calls = 0

        def predict_proba(self, X):
            Counted.n_calls += 1
            return super().predict_proba(X)

    update = IndividualGroupDebiasing(Counted(), group_column="s")
    update.fit(X, sensitive_features=X["s"])
    alone, Counted.n_calls = Counted.n_calls, 0
    fit_strengths(update, [0, 0.5, 0.9, 1], X, sensitive_features=X["s"])
    assert Counted.n_calls == alone


def test_a_model_that_does_not_read_the_group_changes_nothing_and_the_status_says_so():
    X = people([0.4, 0.6] * 20, [0.4, 0.6] * 20, list("aabb") * 10)
    for detector in (None, "logistic"):
        update = fitted(X, strength=1.0, detector=detector)
        assert update.change_rate_ == 0
        assert "the base model does not read this column" in update.status_


def test_score_and_threshold_may_be_shifted_together():
    rng = np.random.default_rng(1)
    X = people(*rng.uniform(0.05, 0.95, (2, 100)), list("ab") * 50)
    half = fitted(X, strength=0.8).predict(X, sensitive_features=X["s"])
    shifted = X.assign(**{n: expit(logit(X[n]) + logit(0.8)) for n in ("in a", "in b")})
    other = fitted(shifted, strength=0.8, threshold=0.8)
    assert (other.predict(shifted, sensitive_features=X["s"]) == half).all()
    assert (half != (X["in a"].where(X["s"] == "a", X["in b"]) > 0.5)).any()


# ---------------------------------------------------------------------------------------------
# The detector of the paper


def test_a_detector_decides_from_x_which_rows_are_biased():
    """The bias depends on age alone, so a tree on age finds it, also on new rows."""
    age = np.arange(200) % 50
    s = np.where(np.arange(200) < 100, "a", "b")
    X = people(np.full(200, 0.4), np.where(age > 25, 0.7, 0.45), s).assign(age=age)

    class Tree(DecisionTreeClassifier):
        def fit(self, X, y, sample_weight=None):
            return super().fit(X[["age"]], y)

        def predict_proba(self, X):
            return super().predict_proba(X[["age"]])

    for detector in (Tree(), "logistic"):
        update = fitted(X, strength=0.9, detector=detector)
        decided = update.predict(X, sensitive_features=s)
        assert (decided[s == "a"] == (age > 25)[s == "a"]).mean() > 0.95
        assert (decided[s == "b"] == (X["in b"] > 0.5)[s == "b"]).all()
    # The own bias of this new row is small, but it looks like rows with a large one.
    new = X.iloc[[40]].assign(**{"in a": 0.48, "in b": 0.49})
    update = fitted(X, strength=0.9, detector=Tree())
    assert update.predict_proba(new, sensitive_features=new["s"])[0, 1] == 0.49


def test_rows_all_on_one_side_need_no_detector():
    for strength, expected in ((1.0, 1.0), (0.1, 0.0)):
        X = people([0.4] * 40, [0.6] * 40, list("ab") * 20)
        update = fitted(X, strength=strength, detector="logistic")
        assert update.detector_ is None
        assert update.predict(X, sensitive_features=X["s"])[::2].mean() == expected


def test_weights_count_as_repeated_rows():
    for detector in [None, "logistic"]:
        rng = np.random.default_rng(3)
        X = people(*rng.random((2, 120)), np.where(rng.random(120) < 0.5, "a", "b"))
        n_times = rng.integers(1, 4, len(X))
        index = np.repeat(np.arange(len(X)), n_times)
        repeated = X.iloc[index].reset_index(drop=True)
        how = {"strength": 0.9, "detector": detector, "privileged": None, "min_category_size": 1}
        update = IndividualGroupDebiasing(TwoScores(), group_column="s").set_params(**how)
        weighted = update.fit(X, sensitive_features=X["s"], sample_weight=n_times)
        other = fitted(repeated, **how)
        assert weighted.privileged_ == other.privileged_
        assert weighted.biased_share_ == pytest.approx(other.biased_share_)
        one, two = (u.predict(X, sensitive_features=X["s"]) for u in (weighted, other))
        assert (one == two).mean() > 0.98  # bins of the detector count people


# ---------------------------------------------------------------------------------------------
# Tables of any kind


TABLES = {
    "pandas": lambda X: X,
    "category": lambda X: X.astype({"s": "category"}),
    "ordered": lambda X: X.astype({"s": pd.CategoricalDtype(["c", "b", "a"], ordered=True)}),
    "string": lambda X: X.astype({"s": "string"}),
    "object": lambda X: X.astype({"s": object}),
    "number": lambda X: X.assign(s=(X["s"] == "b").astype("int8")),
    "boolean": lambda X: X.assign(s=X["s"] == "b"),
    "nullable": lambda X: X.assign(s=(X["s"] == "b").astype("boolean")),
    "polars": pl.from_pandas,
    "polars category": lambda X: pl.from_pandas(X).with_columns(pl.col("s").cast(pl.Categorical)),
    "polars enum": lambda X: pl.from_pandas(X).with_columns(pl.col("s").cast(pl.Enum(["b", "a"]))),
    "pyarrow": pa.Table.from_pandas,
    "array": lambda X: X.to_numpy(),
    "numbers": lambda X: X.assign(s=(X["s"] == "b") * 1.0).to_numpy(dtype=np.float32),
    "text": lambda X: X[["s"]].to_numpy(dtype=str),
    "lists": lambda X: X.to_numpy().tolist(),
}


@pytest.mark.parametrize("kind", TABLES)
def test_one_column_becomes_constant_and_the_table_keeps_its_kind_and_types(kind):
    frame = pd.DataFrame({"in a": [0.1, 0.2], "in b": [0.3, 0.4], "s": ["a", "b"]}, index=[5, 3])
    X = TABLES[kind](frame)
    column = "s" if hasattr(X, "columns") else (0 if kind == "text" else 2)
    value = value_at(X, 1, column)
    alike = TABLES[kind](frame.assign(s="b"))
    changed = with_constant(X, column, value)
    if isinstance(X, pd.DataFrame):
        if kind == "category":
            alike["s"] = alike["s"].cat.set_categories(["a", "b"])
        pd.testing.assert_frame_equal(changed, alike)
        assert X["s"].nunique() == 2  # the user's table stays as it was
    elif isinstance(X, pl.DataFrame):
        assert changed.equals(alike) and changed.schema == X.schema
    elif isinstance(X, pa.Table):
        assert changed.to_pandas().equals(alike.to_pandas())
    else:
        assert changed.tolist() == np.asarray(alike, dtype=changed.dtype).tolist()
        assert kind == "lists" or changed.dtype == X.dtype


def test_new_rows_without_the_privileged_category_are_scored_as_that_category():
    """A frame of one group may have no category, and text no room, for the other group."""
    only = pd.DataFrame({"s": pd.Categorical(["a", "a"])})
    changed = with_constant(only, "s", "long name")["s"]
    assert changed.tolist() == ["long name"] * 2
    assert changed.cat.categories.tolist() == ["a", "long name"]
    assert with_constant(np.array([["a"]]), 0, "long name").tolist() == [["long name"]]
    assert with_constant(np.array([[1]]), "x0", 0.5).tolist() == [[0.5]]
    with pytest.raises(InputError, match="which cannot hold 'b'"):
        enum = pl.DataFrame({"s": pl.Series(["a"], dtype=pl.Enum(["a"]))})
        with_constant(enum, "s", "b")


@pytest.fixture(scope="module")
def data():
    data = make_biased(600, bias=1.5, n_categories=3, group_shares=(0.5, 0.3, 0.2), random_state=0)
    group = data.sensitive_features.astype(str).to_numpy()
    X = data.data.assign(race=pd.Categorical(group))
    X.loc[::5, "x3"] = np.nan
    X["category"] = X["category"].astype("category")
    noise = np.random.default_rng(0).normal(size=len(X))
    label = X["x0"] + 1.5 * (group == "g1") + noise > 0.6  # so that a model reads the group
    return X, label.to_numpy().astype(int), group


@pytest.fixture(scope="module")
def boosted(data):
    X, y, _ = data
    return HistGradientBoostingClassifier(
        max_iter=20, categorical_features="from_dtype", random_state=0
    ).fit(X, y)


def test_a_boosted_model_with_categories_three_groups_and_missing_values(data, boosted):
    X, y, group = data
    for detector in (None, "logistic"):
        update = IndividualGroupDebiasing(boosted, group_column="race", detector=detector)
        check_rival(update, X, y, sensitive_features=group)
    update = update.set_params(strength=1.0, detector=None).fit(X, y, sensitive_features=group)
    assert update.fairness_ > update.base_fairness_
    one_group = X[group != update.privileged_].iloc[:20]
    alone = one_group.assign(race=one_group["race"].cat.remove_unused_categories())
    groups = group[group != update.privileged_][:20]
    decided = update.predict(X, sensitive_features=group)[group != update.privileged_][:20]
    assert (update.predict(alone, sensitive_features=groups) == decided).all()


def test_polars_pandas_and_arrays_give_the_same_decisions(data):
    X, y, group = data
    frame = pd.DataFrame({"x": X["x0"], "race": group})
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    coarse = frame.assign(x=frame["x"].round(1))
    decided = {}
    for name, table, column in (
        ("pandas", coarse, "race"),
        ("polars", pl.from_pandas(coarse), "race"),
        ("array", coarse.to_numpy(), 1),
    ):
        fitted_model = make_pipeline(*(step for _, step in model.steps)).fit(table, y)
        update = IndividualGroupDebiasing(fitted_model, group_column=column, strength=1.0)
        update = update.fit(table, sensitive_features=group)
        decided[name] = update.predict(table, sensitive_features=group)
    assert (decided["pandas"] == decided["polars"]).all()
    assert (decided["pandas"] == decided["array"]).all()


# ---------------------------------------------------------------------------------------------
# Refusals and the lineup


def test_a_base_model_that_cannot_be_asked_is_refused_with_the_way_out():
    X = EXAMPLE.assign(score=0.5)
    with pytest.raises(InputError, match=r"got group_column=None\. Pass group_column=") as error:
        fitted(X, group_column=None)
    assert error.value.parameter == "group_column"
    update = IndividualGroupDebiasing(ScoreColumn("score"), group_column="s")
    with pytest.raises(InputError, match="is a column of scores and cannot be asked"):
        update.fit(X, sensitive_features=X["s"])


def test_a_parameter_without_meaning_is_refused():
    for parameter, value, message in [
        ("group_column", "t", r"'t' is not a column of X \(columns: in a, in b, s"),
        ("group_column", "in a", "holds more than one value, or none, in the group 'a'"),
        ("group_column", "same", "holds the same value in several groups"),
        ("group_column", 1.5, "group_column=1.5 is no column"),
        ("privileged", "c", "privileged='c' is not one of the groups: 'a', 'b'"),
        ("detector", "tree", "detector='tree' is no classifier"),
        ("detector", DecisionTreeClassifier, "is no classifier"),
        ("constraints", "equalized_odds", "knows 'demographic_parity'"),
        ("strength", 1.1, "strength=1.1"),
    ]:
        with pytest.raises(InputError, match=message) as error:
            fitted(EXAMPLE.assign(same="x"), **{parameter: value})
        assert error.value.parameter == parameter


def test_the_lineup_has_the_method_where_the_group_column_is_named(data, boosted):
    X, y, group = data
    assert "got group_column=None" in lineup(boosted).left_out["IndividualGroupDebiasing"]
    scored = lineup(ScoreColumn("score"), group_column="race").left_out
    assert "cannot be asked" in scored["IndividualGroupDebiasing"]
    name = "IndividualGroupDebiasing"
    update = lineup(boosted, group_column="race")[name]
    curve = frontier(update, X, y, sensitive_features=group, grid={"strength": [0, 0.9, 1]})
    assert curve.needs_sensitive_features
    assert (curve.frame()["change_rate"] >= curve.frame()["limit"] - 1e-9).all()
