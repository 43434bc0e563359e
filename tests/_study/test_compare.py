"""Comparing methods: one base model, the same rows, nothing below the limit, nobody left unsaid."""

import pickle
from time import perf_counter

import matplotlib
import numpy as np
import pandas as pd
import pytest
from fairlearn.postprocessing import ThresholdOptimizer as FairlearnOptimizer
from fairlearn.reductions import DemographicParity, ExponentiatedGradient
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from commod import COMMOD, ScoreColumn, compare, frontier
from commod._study.pictures import unbeaten
from commod.datasets import make_biased
from commod.exceptions import DataWarning, InputError
from commod.metrics import fairness_value
from commod.rivals import BayesPlugIn, MinimalFlip, RejectOption, ThresholdOptimizer
from commod.updates import _candidates
from quick_updates import quick_control

matplotlib.use("Agg")
pytestmark = pytest.mark.usefixtures("quick_compilation")

BEGIN = perf_counter()
FRAME = [
    "method",
    "strength",
    "fairness",
    "accuracy",
    "change_rate",
    "n_changes",
    "n_gains",
    "n_losses",
    "limit",
    "accuracy_loss",
    "outscoring",
    "outscoring_losses",
    "needs_sensitive_features",
    "randomised",
    "collapsed",
    "fit_seconds",
]


@pytest.fixture(autouse=True, scope="module")
def few_targets():
    """Let our updates have a line for each of a few targets."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_candidates, "N_TARGETS", 12)
        yield


@pytest.fixture(scope="module")
def model():
    data = make_biased(600, bias=1.5, random_state=9)
    return LogisticRegression().fit(data.data, data.target)


@pytest.fixture(scope="module")
def rows():
    data = make_biased(600, bias=1.5, random_state=0)
    return data.data, data.target, data.sensitive_features


@pytest.fixture(scope="module")
def few(rows):
    """Return a part of the rows, for methods whose figures do not matter."""
    return tuple(part[:200] for part in rows)


@pytest.fixture(scope="module")
def new():
    data = make_biased(500, bias=1.5, random_state=1)
    return data.data, data.target, data.sensitive_features


def run(methods, rows, new=None, **how):
    X, y, group = rows
    if new is not None:
        how.update(zip(("X_eval", "y_eval", "sensitive_features_eval"), new, strict=True))
    return compare(methods, X, y, sensitive_features=group, **how)


@pytest.fixture(scope="module")
def comparison(model, rows, new):
    methods = {
        "ours": quick_control(model),
        "flip": MinimalFlip(model),
        "thresholds": ThresholdOptimizer(model),
        "tree": DecisionTreeClassifier(max_depth=2, random_state=0),
        "base": model,
        "nobody": Constant(0),
    }
    return run(methods, rows, new)


class Constant(ClassifierMixin, BaseEstimator):
    """Decide the same for everybody."""

    def __init__(self, label=0):
        self.label = label

    def __sklearn_is_fitted__(self):
        return True

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.full(len(X), self.label)


def test_one_line_for_each_update_of_each_method(comparison):
    frame = comparison.frame()
    assert list(frame.columns) == FRAME
    assert list(frame["method"].unique()) == [
        "ours",
        "flip",
        "thresholds",
        "tree",
        "base",
        "nobody",
    ]
    assert not (frame["change_rate"] < frame["limit"] - 1e-9).any()
    assert frame.groupby("method")["needs_sensitive_features"].first().to_dict() == {
        "base": False,
        "flip": True,
        "nobody": False,
        "ours": False,
        "thresholds": True,
        "tree": False,
    }
    assert frame["fit_seconds"].between(0, perf_counter() - BEGIN).all()


def test_a_methods_lines_are_those_of_its_frontier(comparison, model, rows, new):
    X, y, group = rows
    alone = frontier(
        MinimalFlip(model), X, y, sensitive_features=group,
        **dict(zip(("X_eval", "y_eval", "sensitive_features_eval"), new, strict=True)),
    ).frame()  # fmt: skip
    lines = comparison.frame().query("method == 'flip'").reset_index()
    for column in ("strength", "fairness", "accuracy", "change_rate", "limit"):
        assert lines[column].tolist() == pytest.approx(alone[column].tolist())


def test_any_classifier_is_measured_by_its_decisions(comparison, rows, new, model):
    X, y, group = rows
    tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    line = comparison.frame().query("method == 'tree'").iloc[0]
    X, y, group = new
    assert line["accuracy"] == pytest.approx(tree.score(X, y))
    assert line["change_rate"] == pytest.approx(np.mean(tree.predict(X) != model.predict(X)))
    assert line["fairness"] == fairness_value(
        "demographic_parity", y, tree.predict(X), sensitive_features=group
    )
    base = comparison.frame().query("method == 'base'").iloc[0]
    assert base["n_changes"] == 0
    assert base["fairness"] == comparison.base_fairness


def test_a_collapsed_model_is_counted_as_such_and_never_fair(comparison):
    assert comparison.frame().query("method == 'nobody'")["collapsed"].all()
    assert np.isnan(comparison.changes_needed([0.5]).loc["nobody", 0.5])
    table = comparison.changes_needed([0.7], max_accuracy_loss=-0.5)  # nobody has this accuracy
    assert table[0.7].drop(["exact limit", "limit with random draws"]).isna().all()


def test_the_fewest_changes_that_reach_a_level(comparison):
    frame = comparison.frame()
    table = comparison.changes_needed([0.7, 0.9], max_accuracy_loss=comparison.base_accuracy - 0.6)
    for name in ("ours", "flip", "thresholds"):
        lines = frame[frame["method"] == name]
        for level in (0.7, 0.9):
            good = (lines["fairness"] >= level) & (lines["accuracy"] >= 0.6)
            wanted = lines["change_rate"][good].min()
            assert table.loc[name, level] == pytest.approx(wanted, nan_ok=True)
    assert table.columns[0] == "needs group"
    shares = table.drop(columns="needs group")
    assert (shares.loc[["ours", "flip"]].min() >= shares.loc["exact limit"]).all()
    assert (shares.loc["exact limit"] >= shares.loc["limit with random draws"]).all()
    assert (shares.loc["thresholds"] >= shares.loc["limit with random draws"]).all()


def test_a_level_that_the_base_model_reaches_costs_an_update_nothing(comparison):
    level = comparison.base_fairness
    table = comparison.changes_needed([level])
    assert table.loc[["ours", "flip", "thresholds"], level].tolist() == [0, 0, 0]
    assert table.loc["exact limit", level] == 0


def test_disparities_are_ceilings(model, few):
    comparison = run([MinimalFlip(model, constraints="equalized_odds")], few)
    table = comparison.changes_needed()
    levels = list(table.columns[1:])
    assert levels == sorted(levels, reverse=True)
    assert max(levels) < comparison.base_fairness
    needed = table.loc["MinimalFlip", levels].tolist()
    assert needed == sorted(needed)
    assert "disparate" in repr(comparison)


def test_the_picture_has_a_column_for_each_kind_of_method(comparison, model, few):
    figure = comparison.plot()
    assert len(figure.axes) == 4
    edge = 0.04 * (1 - comparison.base_fairness)  # from the base model to parity, with a margin
    shown = comparison.base_fairness - edge, 1 + edge
    assert figure.axes[0].get_xlim() == pytest.approx(shown)
    names = {text.get_text() for ax in figure.axes[:2] for text in ax.get_legend().get_texts()}
    assert {" ours", " flip", "fewest possible changes", " nobody (1 collapsed)"} <= names
    (legend,) = figure.legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert texts == ["one update", "updates that no other of its method beats", "base model"]
    assert len(run([Constant(1)], few, estimator=model).plot().axes) == 2
    matplotlib.pyplot.close("all")


def test_the_line_that_no_update_beats():
    fairness, cost = np.array([0.5, 0.9, 0.7, 0.9]), np.array([0.1, 0.3, 0.4, 0.2])
    assert unbeaten(fairness, cost).tolist() == [3, 0]


def test_updates_of_different_models_or_constraints_are_not_compared(model, rows):
    other = LogisticRegression(C=0.001).fit(*rows[:2])
    with pytest.raises(InputError, match="another estimator"):
        run([MinimalFlip(model), RejectOption(other)], rows)
    with pytest.raises(InputError, match=r"threshold=0\.4 .* threshold=0\.5"):
        run([MinimalFlip(model), RejectOption(model, threshold=0.4)], rows)
    with pytest.raises(InputError, match="constraints='equalized_odds'"):
        run([MinimalFlip(model), RejectOption(model, constraints="equalized_odds")], rows)


def test_classifiers_alone_need_a_base_model(model, rows):
    with pytest.raises(InputError, match="estimator=model"):
        run([DecisionTreeClassifier()], rows)
    found = run([Constant(1)], rows, estimator=model)
    assert found.frame()["fairness"].tolist() == [1.0]


def test_a_classifier_that_takes_groups_is_given_them(model, rows, new):
    theirs = FairlearnOptimizer(estimator=model, prefit=True, predict_method="predict_proba")
    found = run({"Fairlearn": theirs}, rows, new, estimator=model)
    assert found.frontiers["Fairlearn"].needs_sensitive_features
    assert found.frame()["fairness"][0] > found.base_fairness


class Faulty(Constant):
    """A classifier that fails, or has chances that are none."""

    def __init__(self, label=0, error=None, chances=None):
        self.label, self.error, self.chances = label, error, chances
        if chances is not None:
            self.decision_proba = lambda X: np.resize(chances, len(X) + (len(chances) > 2))

    def predict(self, X):
        if self.error is not None:
            raise self.error
        return super().predict(X)


def test_methods_that_fail_are_named_and_the_others_go_on(model, few):
    no_chances = "decision_proba of Faulty must return"
    methods = {
        "no label": (Faulty("maybe"), "predict of Faulty returned 'maybe'"),
        "above 1": (Faulty(chances=(1.5, 0.2)), no_chances),
        "NaN": (Faulty(chances=(np.nan,)), no_chances),
        "below 0": (Faulty(chances=(-0.1,)), no_chances),
        "one too many": (Faulty(chances=(0.5,) * 3), no_chances),
        "key": (Faulty(error=KeyError("k")), "'k'"),
        "memory": (Faulty(error=RuntimeError("no memory")), "no memory"),
        "zero": (Faulty(error=ZeroDivisionError()), "ZeroDivisionError"),
    }
    with pytest.warns(DataWarning) as caught:
        found = run(
            {name: one for name, (one, _) in methods.items()} | {"all": Constant(1)},
            few,
            estimator=model,
        )
    assert list(found.frontiers) == ["all"]
    said = [str(one.message) for one in caught if "is left out: " in str(one.message)]
    for name, (_, words) in methods.items():
        assert words in found.failures[name]
        assert sum(text.startswith(f"{name} is left out: ") for text in said) == 1
    assert len(found.failures) == len(said) == len(methods)
    with pytest.raises(InputError, match="No method"), pytest.warns(DataWarning):
        run({"no label": Faulty("maybe")}, few, estimator=model)


def test_names_come_from_classes_and_what_holds_for_all_methods_is_said_once(model, few):
    X, y, group = few
    groups = np.where(np.arange(len(X)) < 5, "seldom", np.asarray(group))
    methods = [
        BayesPlugIn(model),
        BayesPlugIn(model, aware=True),
        BayesPlugIn(model, lambda_ratio=0.1),
    ]
    with pytest.warns(DataWarning, match="seldom") as caught:
        found = run(methods, (X, y, groups))
    assert list(found.frontiers) == ["BayesPlugIn", "BayesPlugIn (aware)", "BayesPlugIn #2"]
    assert sum("left out of the constraint" in str(w.message) for w in caught) == 1
    note = "1 group (5 rows) left out of the fairness figures: too few fit rows"
    assert note in repr(found) and note in found._repr_html_()


def test_what_is_no_method_is_refused(model, rows):
    for method in (object(), DecisionTreeClassifier):
        with pytest.raises(InputError, match="no object with predict"):
            run([method], rows, estimator=model)
    with pytest.raises(InputError, match="methods is empty"):
        run([], rows, estimator=model)


def test_evaluated_rows_need_their_groups(model, rows, new):
    X, y, group = rows
    with pytest.raises(InputError, match="sensitive_features_eval"):
        compare([MinimalFlip(model)], X, y, sensitive_features=group, X_eval=new[0])
    with pytest.raises(InputError, match="belong to X_eval"):
        compare([MinimalFlip(model)], X, y, sensitive_features=group, y_eval=new[1])


def test_without_labels_accuracy_is_unknown_and_the_rest_is_there(model, few):
    X, _, group = few
    found = compare([MinimalFlip(model)], X, sensitive_features=group)
    assert found.frame()["accuracy"].isna().all()
    with pytest.raises(InputError, match="max_accuracy_loss needs true labels"):
        found.changes_needed([0.8], max_accuracy_loss=0.1)
    found.plot()
    matplotlib.pyplot.close("all")


def test_a_grid_of_commod_models_is_a_method_too(model, few, monkeypatch):
    monkeypatch.setattr("commod.updates.commod.DEFAULT_GRID", {"lambda_fair": (0.0, 4.0)})
    found = run([COMMOD(model, epochs=0, random_state=0)], few)
    assert found.frame()["strength"].tolist() == [0.0, 4.0]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # pandas 3 about Fairlearn
def test_fairlearns_reductions_are_fitted_and_counted_in_expectation(model, few, new):
    theirs = ExponentiatedGradient(LogisticRegression(), DemographicParity(), max_iter=5)
    found = run({"reductions": theirs}, few, new, estimator=model)
    fitted = found.frontiers["reductions"].select(max_changes=1)
    chances = fitted._pmf_predict(new[0])[:, 1]
    expected = np.where(model.predict(new[0]) == 1, 1 - chances, chances).mean()
    assert found.frame()["change_rate"][0] == pytest.approx(expected)
    assert found.frame()["randomised"][0]


def test_what_was_asked_of_compare_must_be_what_the_updates_do(model, rows):
    with pytest.raises(InputError, match="compare has constraints='equalized_odds'"):
        run([MinimalFlip(model)], rows, constraints="equalized_odds")
    asked = {"constraints": "equalized_odds", "min_group_size": 10}
    assert run([Constant(1)], rows, estimator=model, **asked).constraints == "equalized_odds"


def test_one_method_needs_no_list_and_a_name_of_the_table_is_refused(model, rows):
    forest = RandomForestClassifier(3, random_state=0)
    assert list(run(forest, rows, estimator=model).frontiers) == ["RandomForestClassifier"]
    assert list(run(forest.fit(*rows[:2]), rows, estimator=model).frontiers) == [
        "RandomForestClassifier"
    ]
    for methods in ("LPP", [MinimalFlip], None):
        with pytest.raises(InputError, match="no object with predict"):
            run(methods, rows, estimator=model)
    with pytest.raises(InputError, match="'exact limit' names a line"):
        run({"exact limit": forest}, rows, estimator=model)


def test_levels_without_meaning_are_refused(comparison):
    for levels in (0.8, ["a"], [None], [1.2], [-1], [np.nan]):
        with pytest.raises(InputError, match="levels must be a list of numbers from 0 to 1"):
            comparison.changes_needed(levels)


def test_no_method_is_below_the_curve_of_the_limit(comparison):
    levels, limits = comparison.limit_curve()
    for line in comparison.frame().itertuples():
        if line.fairness >= comparison.base_fairness:
            assert line.change_rate >= np.interp(line.fairness, levels, limits) - 1e-3
    assert limits[-1] < 0.5


def test_a_comparison_can_be_kept_in_a_file(comparison, new):
    again = pickle.loads(pickle.dumps(comparison))
    assert again.frame().equals(comparison.frame())
    kept = again.frontiers["ours"].select(target=0.8)
    update = comparison.frontiers["ours"].select(target=0.8)
    assert (kept.predict(new[0]) == update.predict(new[0])).all()


def test_an_already_fair_model_can_be_drawn(few):
    X, y, _ = few
    twice = pd.concat([X, X], ignore_index=True)
    group, y = np.repeat(["a", "b"], len(X)), np.concatenate([y, y])
    model = LogisticRegression().fit(X, y[: len(X)])
    for constraints in ("demographic_parity", "equalized_odds"):
        found = run([MinimalFlip(model, constraints=constraints)], (twice, y, group))
        assert found.changes_needed().columns.is_unique
        found.plot()
    matplotlib.pyplot.close("all")


def test_a_column_of_scores_and_another_favourable_label(few, model):
    X, y, group = few
    X = X.assign(score=model.predict_proba(X)[:, 1])
    base = ScoreColumn("score")
    found = run([MinimalFlip(base, pos_label=1, favorable_label=0), Constant(1)], (X, y, group))
    frame = found.frame()
    assert frame.query("method == 'Constant'")["n_losses"].item() == (X["score"] <= 0.5).sum()
    assert isinstance(found.frame(), pd.DataFrame)


def test_changes_needed_count_updates_that_keep_all_constraints():
    data = make_biased(300, random_state=0)
    model = LogisticRegression().fit(data.data, data.target)
    update = quick_control(model, constraints="demographic parity >= 0.8 and minimum rate >= 0.5")
    found = compare([update], data.data, data.target, sensitive_features=data.sensitive_features)
    figures = found.frontiers["ControlledDebiaser"].frame()
    needed = found.changes_needed([0.1])[0.1]  # the base model reaches it, but not the other bound
    assert found.base_fairness > 0.1
    is_kept = figures["minimum_rate"] >= 0.5
    assert needed.iloc[0] == figures[is_kept]["change_rate"].min()
    assert needed.iloc[0] >= needed["exact limit"] > 0
