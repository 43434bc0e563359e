"""COMMOD through its public contract: what it promises, on rows it was and was not fitted on."""

import ast
import datetime
import math
import pickle
import re
import subprocess
import sys
import textwrap
from dataclasses import replace

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from commod import COMMOD, ScoreColumn, explain
from commod._data.columns import read_columns
from commod.datasets import make_biased
from commod.exceptions import DataWarning, InputError, TrainingWarning
from commod.metrics import change_rate, disparate_mistreatment, p_rule
from commod.updates._trained import TRAINING
from commod.updates.commod import fit_grid

DETAIL = re.compile(r'- ``("\w+")`` \((.+?)\):')  # of the training, with its default
N = 600  # one size for nearly all tests: one compilation


def test_details_of_the_training_have_the_documented_defaults():
    details = DETAIL.findall(COMMOD.__doc__)
    assert {ast.literal_eval(key): ast.literal_eval(value) for key, value in details} == TRAINING


@pytest.fixture(scope="module")
def biased():
    return make_biased(2 * N, bias=1.5, random_state=0)


@pytest.fixture(scope="module")
def rows(biased):
    """Rows new to the model, as a frame with labels and groups."""
    return biased.data.iloc[N:], biased.target[N:], biased.sensitive_features[N:]


@pytest.fixture(scope="module")
def model(biased):
    return LogisticRegression().fit(biased.data.iloc[:N], biased.target[:N])


@pytest.fixture(scope="module")
def fitted(model, rows):
    X, y, s = rows
    return COMMOD(model, lambda_fair=4, random_state=0).fit(X, y, sensitive_features=s)


# -- what it does ---------------------------------------------------------------------------------


def test_it_makes_the_model_fairer_on_new_rows(model, fitted):
    new = make_biased(5000, bias=1.5, random_state=1)
    before, after = model.predict(new.data), fitted.predict(new.data)
    groups = {"sensitive_features": new.sensitive_features}
    assert p_rule(None, after, **groups) > p_rule(None, before, **groups) + 0.1
    assert 0 < change_rate(before, after) < 0.25


def test_decisions_change_exactly_where_r_is_negative(model, fitted, rows):
    X = rows[0]
    changed = fitted.predict(X) != model.predict(X)
    assert changed.any()
    assert np.array_equal(changed, fitted.ratio(X) < 0)
    assert np.array_equal(changed, fitted.changes(X).changed)
    assert np.mean((fitted.ratio(X) - 1) ** 2) >= changed.mean()


def test_no_epochs_change_no_decision_and_no_bit_of_the_scores(model, rows):
    X, y, s = rows
    update = COMMOD(model, epochs=0).fit(X, y, sensitive_features=s)
    assert np.array_equal(update.predict(X), model.predict(X))
    assert np.array_equal(update.predict_proba(X), model.predict_proba(X))
    assert (update.ratio(X) == 1).all()
    assert update.change_rate_ == 0


@pytest.mark.filterwarnings("ignore:The base model's own predict")
def test_no_decision_changes_at_r_one_whatever_the_threshold(model, rows):
    X, y, s = rows
    scores = model.predict_proba(X)[:, 1]
    for threshold in (0.01, 0.3, 0.99):
        update = COMMOD(model, epochs=0, threshold=threshold).fit(X, y, sensitive_features=s)
        assert np.array_equal(update.predict(X), (scores > threshold).astype(int))
        assert not update.changes(X).changed.any()


@pytest.mark.parametrize("threshold", [0.1, 0.5])
@pytest.mark.filterwarnings("ignore:The base model's own predict")
def test_training_has_nothing_to_do_where_nothing_is_asked_for(model, rows, threshold):
    X, _, s = rows
    update = COMMOD(
        model, threshold=threshold, lambda_fair=0, lambda_sparsity=0, epochs=60, random_state=0
    ).fit(X, sensitive_features=s)  # without y the labels are the scores themselves
    np.testing.assert_allclose(update.ratio(X), 1, atol=0.3)  # the random start leaves a little
    assert update.change_rate_ == 0


def test_the_ratio_is_the_sum_of_its_concepts_and_of_its_points(fitted, rows):
    X = rows[0]
    r = fitted.ratio(X)
    concepts = fitted.concepts(X)
    assert concepts.shape == (N, 2)
    np.testing.assert_allclose(concepts.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(
        r, fitted.intercept_ + concepts @ fitted.concept_contributions_, atol=1e-9
    )
    card = fitted.scorecard_
    by_hand = card.intercept + sum(X[name] * points for name, points in card.rows())
    np.testing.assert_allclose(r, by_hand, atol=1e-9)


def test_concepts_have_norm_one_exact_zeros_and_share_no_column(fitted):
    W = fitted.concept_weights_
    assert W.shape == (2, len(fitted.term_names_))
    np.testing.assert_allclose(np.linalg.norm(W, axis=1), 1)
    assert not (W[0] * W[1]).any()
    sizes = np.abs(fitted.concept_contributions_)
    assert sizes[0] >= sizes[1] > 0


def test_scores_and_margins_agree_with_decisions(fitted, rows):
    X = rows[0]
    decisions = fitted.predict(X)
    proba = fitted.predict_proba(X)
    assert np.array_equal(proba[:, 1] > 0.5, decisions == 1)
    assert np.array_equal(fitted.decision_function(X) > 0, decisions == 1)
    np.testing.assert_allclose(proba.sum(axis=1), 1)


def test_what_fit_reports_is_what_the_fit_rows_show(model, fitted, rows):
    X, y, s = rows
    before, after = model.predict(X), fitted.predict(X)
    assert fitted.fairness_ == p_rule(None, after, sensitive_features=s)
    assert fitted.base_fairness_ == p_rule(None, before, sensitive_features=s)
    assert fitted.accuracy_ == accuracy_score(y, after)
    assert fitted.n_gains_ == ((after == 1) & (before == 0)).sum()
    assert fitted.n_losses_ == ((after == 0) & (before == 1)).sum()
    assert f"{fitted.fairness_:.3f}" in fitted.status_
    assert "600 fit rows" in fitted.status_


def test_the_history_has_every_loss_term_per_epoch(fitted):
    assert set(fitted.history_) == {
        "label",
        "adversary",
        "ratio",
        "sparsity",
        "diversity",
        "change_rate",
    }
    assert {len(values) for values in fitted.history_.values()} == {fitted.epochs}
    assert all(math.isfinite(v) for values in fitted.history_.values() for v in values)


# -- every parameter matters ----------------------------------------------------------------------


def small(model, rows, fit=None, **params):
    X, y, s = rows
    update = COMMOD(model, **{"epochs": 30, "lambda_fair": 4, "random_state": 0, **params})
    return update.fit(X, y, sensitive_features=s, **(fit or {}))


@pytest.fixture(scope="module")
def reference(model, rows):
    return small(model, rows)


@pytest.fixture(scope="module")
def longer(model, rows):
    return small(model, rows, epochs=100)


@pytest.mark.parametrize(
    "change",
    [
        {"lambda_ratio": 0.5},
        {"lambda_sparsity": 0.2},
        {"lambda_diversity": 3.0},
        {"epochs": 12},
        {"training": {"learning_rate": 0.02}},
        {"training": {"adversary_learning_rate": 0.03}},
        {"training": {"adaptive_fairness": False}},
        {"training": {"warmup_epochs": 1}},
        {"training": {"ramp_epochs": 1}},
        {"random_state": 1},
        {"constraints": "true_positive_rate_parity"},
    ],
    ids=str,
)
def test_the_parameter_changes_the_update(model, rows, reference, change):
    assert not np.array_equal(small(model, rows, **change).ratio(rows[0]), reference.ratio(rows[0]))


@pytest.mark.parametrize(
    ("change", "compiled"),
    [
        ({}, {}),
        ({"training": {"batch_size": 100}}, {"batch": 100}),
        ({"training": {"adversary_hidden": (8, 4)}}, {"adversary": (1, 8, 4, 2)}),
        ({"training": {"adversary_steps": 1}}, {"single step": True}),
        ({"n_concepts": 3}, {"concepts": 3}),
        ({"locked_features": ("x0", "x2")}, {"terms": 2}),
        ({"constraints": "equalized_odds"}, {"adversary": (2, 32, 2), "sees labels": True}),
    ],
    ids=str,
)
def test_the_parameter_reaches_the_program_that_is_compiled(
    model, rows, monkeypatch, change, compiled
):
    from commod._solvers.training import loop as training

    seen = {}

    def read(*arguments):
        *_, method, size = arguments
        (adversary,) = method.spec.adversaries
        architecture = method.spec.architecture
        seen.update({"batch": size, "terms": architecture.sizes[0]})
        seen.update({"concepts": architecture.n_concepts, "single step": method.spec.single_step})
        seen.update({"adversary": adversary.sizes, "sees labels": adversary.sees_label})
        raise KeyboardInterrupt  # nothing is compiled

    monkeypatch.setattr(training, "_advance", read)
    with pytest.warns(TrainingWarning, match="interrupted after 0 of 30 epochs"):
        update = small(model, rows, **change)
    usual = {"batch": 512, "terms": 4, "concepts": 2, "single step": False}
    assert seen == usual | {"adversary": (1, 32, 2), "sees labels": False} | compiled
    locked = change.get("locked_features", ())
    assert update.term_names_ == [name for name in rows[0].columns if name not in locked]


def test_a_locked_column_may_hold_anything(model, rows):
    X, y, s = rows
    table = X.assign(score=model.predict_proba(X)[:, 1], when=pd.Timestamp("2020-01-01"))
    with pytest.raises(InputError, match="locked_features if only the base model reads it"):
        COMMOD(ScoreColumn("score")).fit(table, y, sensitive_features=s)
    update = COMMOD(ScoreColumn("score"), locked_features=["when"], epochs=0)
    assert update.fit(table, y, sensitive_features=s).predict(table).shape == (N,)


def test_weights_that_make_every_change_free_are_refused(model, rows):
    half = (np.arange(N) < N // 2).astype(float)
    with pytest.raises(InputError, match="no change would cost anything"):
        small(model, rows, fit={"sample_weight": half, "ratio_weight": 1 - half})
    with pytest.raises(InputError, match="ratio_weight contains negative"):
        small(model, rows, fit={"ratio_weight": -half})


def test_an_undefined_metric_is_explained(model, rows):
    X, y, s = rows
    labels = np.where(s == "g1", 0, y)  # nobody of one group can be a true positive
    update = COMMOD(model, constraints="true_positive_rate_parity", epochs=0)
    status = update.fit(X, labels, sensitive_features=s).status_
    assert "of the base model is undefined on these rows" in status


def test_a_message_does_not_list_everybody(model, rows):
    X, y, _ = rows
    with pytest.raises(InputError, match=r"and 594 more\), but fairness compares at least 2"):
        COMMOD(model).fit(X, y, sensitive_features=np.arange(N))


def test_conditioning_on_the_logit_adds_one_term_for_the_margin(model, rows):
    training = {"reads_score": True, "concepts_by_column": False}
    update = small(model, rows, training=training, locked_features=["x0"])
    assert update.term_names_ == ["x1", "x2", "x3", "base margin"]
    assert update.scorecard_.points[-1], "it has a say"
    assert (update.concept_weights_[0] * update.concept_weights_[1]).any()  # concepts as trained
    np.testing.assert_allclose(
        update.ratio(rows[0]),
        update.intercept_ + update.concepts(rows[0]) @ update.concept_contributions_,
    )


def test_a_heavy_ratio_weight_protects_rows_from_changes(model, rows):
    X = rows[0]
    strict = {"epochs": 100, "lambda_fair": 2, "lambda_ratio": 0.5}
    changed = small(model, rows, **strict).changes(X).changed
    weight = np.where(changed, 50.0, 1.0)
    weighted = small(model, rows, fit={"ratio_weight": weight}, **strict)
    assert changed.sum() > 20
    assert weighted.changes(X).changed[changed].sum() < 0.5 * changed.sum()


def test_sample_weights_decide_which_rows_count(model, rows, longer):
    X, _, s = rows
    only = small(model, rows, fit={"sample_weight": np.where(X["x1"] > 0, 1.0, 1e-9)}, epochs=100)
    assert not np.array_equal(longer.ratio(X), only.ratio(X))
    some = (X["x1"] > 0).to_numpy()
    value = p_rule(None, only.predict(X)[some], sensitive_features=s[some])
    assert only.fairness_ == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize(
    ("constraints", "metric"),
    [("equalized_odds", disparate_mistreatment), ("false_positive_rate_parity", None)],
)
def test_the_gap_of_the_constraint_shrinks(constraints, metric):
    # errors are compared between three groups: two are in nearly every other test
    shares = (0.5, 0.3, 0.2) if constraints == "equalized_odds" else (0.5, 0.5)
    data = make_biased(N, group_shares=shares, bias=1.5, random_state=3)
    model = LogisticRegression().fit(data.data, data.target)
    update = COMMOD(
        model, constraints=constraints, lambda_fair=8, lambda_ratio=0.05, random_state=0
    ).fit(data.data, data.target, sensitive_features=data.sensitive_features)
    assert update.fairness_ < 0.8 * update.base_fairness_
    if metric is not None:
        value = metric(
            data.target, update.predict(data.data), sensitive_features=data.sensitive_features
        )
        assert update.fairness_ == value


def test_a_grid_equals_fits_made_one_by_one(model, rows):
    X, y, s = rows
    settings = [{"lambda_fair": 1}, {"lambda_fair": 4, "lambda_ratio": 0.3, "random_state": 5}]
    models = fit_grid(
        COMMOD(model, epochs=30, random_state=0), settings, X, y, sensitive_features=s
    )
    for setting, from_grid in zip(settings, models, strict=True):
        alone = small(model, rows, **setting)
        np.testing.assert_allclose(from_grid.ratio(X), alone.ratio(X), atol=1e-4)
        assert from_grid.lambda_fair == setting["lambda_fair"]
        assert list(from_grid.feature_names_in_) == list(X.columns)


# -- people ---------------------------------------------------------------------------------------


def test_the_favourable_label_names_gains_and_losses(model, rows, longer):
    X = rows[0]
    mirrored = small(model, rows, epochs=100, pos_label=1, favorable_label=0)
    assert longer.n_gains_ > 0
    assert (longer.n_gains_, longer.n_losses_) == (mirrored.n_losses_, mirrored.n_gains_)
    assert np.array_equal(longer.changes(X).gain, mirrored.changes(X).loss)
    texts = {u.n_losses_ > u.n_gains_: u.status_ for u in (longer, mirrored)}
    assert "Most of the changes are losses" in texts[True]
    assert "Most of the changes are losses" not in texts[False]


def test_small_groups_are_reported_and_left_out(model, rows):
    X, y, s = rows
    s = np.array(s, dtype=object)
    s[:5] = "tiny"
    with pytest.warns(DataWarning, match=r"1 group with fewer than min_group_size=30.*tiny"):
        update = COMMOD(model, epochs=0).fit(X, y, sensitive_features=s)
    kept = s != "tiny"
    expected = p_rule(None, model.predict(X)[kept], sensitive_features=s[kept])
    assert update.fairness_ == expected


def test_a_group_without_weight_counts_as_small(model, rows):
    X, y, s = rows
    s = np.array(s, dtype=object)
    s[:50] = "silent"
    with pytest.warns(DataWarning, match=r"silent \(0 rows\)"):
        update = COMMOD(model, epochs=0).fit(
            X, y, sensitive_features=s, sample_weight=(s != "silent").astype(float)
        )
    assert not math.isnan(update.fairness_)


def test_a_column_named_like_the_margin_is_refused(model, rows):
    X, y, s = rows
    table = X.assign(score=model.predict_proba(X)[:, 1]).rename(columns={"x3": "base margin"})
    with pytest.raises(InputError, match="X has a column 'base margin'"):
        COMMOD(ScoreColumn("score"), training={"reads_score": True}).fit(
            table, y, sensitive_features=s
        )


def test_warnings_point_at_the_line_that_fits(model, rows):
    X, y, s = rows
    s = np.array(s, dtype=object)
    s[:5] = "tiny"
    with pytest.warns(DataWarning) as caught:
        COMMOD(model, epochs=0).fit(X, y, sensitive_features=s)
    assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.parametrize(
    "spell",
    [
        lambda is_first, i: np.where(is_first, 7, 3),
        lambda is_first, i: np.where(is_first, "f", "m"),
        lambda is_first, i: np.where(is_first, np.nan, i % 2),
        lambda is_first, i: np.where(is_first, None, np.where(i % 2, "a", "b")),
    ],
    ids=["numbers", "text", "missing numbers", "missing text"],
)
def test_a_column_that_is_the_group_is_refused(model, rows, spell):
    X, y, s = rows
    X = X.assign(code=spell(s == s.iloc[0], np.arange(len(X))))
    scores = X.assign(score=model.predict_proba(X.drop(columns="code"))[:, 1])
    both = pd.DataFrame({"race": s, "older": np.arange(len(X)) % 2})
    for groups in (s, both):
        with pytest.raises(InputError, match=r"'code' of X determines the sensitive") as refused:
            COMMOD(ScoreColumn("score"), epochs=0).fit(scores, y, sensitive_features=groups)
        assert refused.value.parameter == "locked_features"
    COMMOD(ScoreColumn("score"), epochs=0, locked_features=["code"]).fit(
        scores, y, sensitive_features=s
    )


def test_a_column_that_differs_from_the_group_in_one_row_is_pointed_out_with_its_area(model, rows):
    X, y, s = rows
    code = np.where(s == s.iloc[0], "f", "m")
    code[0] = "m"
    table = X.assign(score=model.predict_proba(X)[:, 1], code=code)
    with pytest.warns(DataWarning, match=r"Column 'code' .* nearly determines .* 0\.99\d"):
        COMMOD(ScoreColumn("score"), epochs=0).fit(table, y, sensitive_features=s)
    COMMOD(ScoreColumn("score"), epochs=0, locked_features=["code"]).fit(
        table, y, sensitive_features=s
    )


# -- scikit-learn ---------------------------------------------------------------------------------


def test_clone_keeps_the_base_model_fitted(model, fitted):
    copy = clone(fitted)
    assert copy.estimator is model
    assert copy.lambda_fair == fitted.lambda_fair
    with pytest.raises(NotFittedError):
        copy.predict(np.zeros((1, 4)))


def test_a_frozen_model_is_accepted_and_survives_clone(model, rows):
    X, y, s = rows
    update = clone(COMMOD(FrozenEstimator(model), epochs=0)).fit(X, y, sensitive_features=s)
    assert np.array_equal(update.predict_proba(X), model.predict_proba(X))


def test_parameters_of_the_base_model_cannot_be_set(model):
    with pytest.raises(InputError, match=r"estimator__C would change the base model"):
        COMMOD(model).set_params(estimator__C=3)
    assert not any(name.startswith("estimator__") for name in COMMOD(model).get_params())


def test_it_can_stand_at_the_end_of_a_pipeline(biased, rows):
    X, y, s = rows
    scaler = StandardScaler().fit(biased.data.iloc[:N])
    model = LogisticRegression().fit(scaler.transform(biased.data.iloc[:N]), biased.target[:N])
    pipeline = Pipeline([("scale", scaler), ("update", COMMOD(model, epochs=0))])
    pipeline.fit(X, y, update__sensitive_features=s)
    assert np.array_equal(pipeline.predict(X), model.predict(scaler.transform(X)))


def test_grid_search_routes_the_sensitive_features(model, rows):
    X, y, s = rows
    with sklearn.config_context(enable_metadata_routing=True):
        update = COMMOD(model, epochs=2, random_state=0).set_fit_request(sensitive_features=True)
        search = GridSearchCV(
            update,
            {"lambda_fair": [0.0, 1.0]},
            cv=[(np.arange(N), np.arange(N // 2)), (np.arange(N), np.arange(N // 2, N))],
            scoring=make_scorer(accuracy_score),
            error_score="raise",
        ).fit(X, y, sensitive_features=s)
    assert search.best_estimator_.estimator is model
    assert len(search.cv_results_["params"]) == 2


def test_a_saved_update_predicts_alike(fitted, rows, tmp_path):
    joblib.dump(fitted, tmp_path / "update.joblib")
    loaded = joblib.load(tmp_path / "update.joblib")
    assert np.array_equal(loaded.predict_proba(rows[0]), fitted.predict_proba(rows[0]))


def test_polars_pandas_and_numpy_give_the_same_update(biased, rows):
    X, y, s = rows
    model = LogisticRegression().fit(biased.data.iloc[:N].to_numpy(), biased.target[:N])
    ratios = []
    for table in (X.to_numpy(), X.to_numpy().tolist()):
        update = small(model, (table, y, s), epochs=5)
        ratios.append(update.ratio(table))
    score = model.predict_proba(X.to_numpy())[:, 1]
    for table in (X.assign(score=score), pl.from_pandas(X.assign(score=score))):
        update = small(ScoreColumn("score"), (table, y, s), epochs=5)
        ratios.append(update.ratio(table))
    for other in ratios[1:]:
        assert np.array_equal(ratios[0], other)


# -- promises about privacy, speed of import, interrupts ------------------------------------------


def test_the_pickled_update_holds_no_row_and_no_group(tmp_path):
    n = 577  # a length that nothing else has
    rng = np.random.default_rng(0)
    secrets = rng.normal(size=(4, n)) * 1e3
    names = np.array([f"person-{i}-only" for i in range(n)], dtype=object)
    X = pd.DataFrame(
        {
            "score": rng.uniform(0.01, 0.99, n),
            **{f"secret {i}": values for i, values in enumerate(secrets)},
            "name": names,
            "city": rng.choice(["north", "south", "west"], n),
        }
    )
    s = np.where(rng.random(n) < 0.4, "sentinel-group-A", "sentinel-group-B")
    y = rng.integers(2, size=n)
    update = COMMOD(ScoreColumn("score"), epochs=2, lambda_fair=5, random_state=0)
    update.fit(X, y, sensitive_features=s)
    assert "city = north" in update.term_names_
    data = pickle.dumps(update)
    assert b"sentinel-group" not in data
    assert not any(name.encode() in data for name in names)
    for value in [*secrets.ravel(), *X["score"]]:
        assert np.float64(value).tobytes() not in data
        assert np.float64(value).tobytes()[::-1] not in data  # pickle's floats are big-endian
        assert np.float32(value).tobytes() not in data
    assert not [a for a in _arrays(vars(update)) if n in np.shape(a)]


def _arrays(thing):
    if isinstance(thing, np.ndarray | list | tuple) and not isinstance(thing, str):
        yield thing
        if not isinstance(thing, np.ndarray):
            for item in thing:
                yield from _arrays(item)
    elif isinstance(thing, dict):
        for item in thing.values():
            yield from _arrays(item)
    elif hasattr(thing, "__dict__") and not isinstance(thing, type):
        yield from _arrays(vars(thing))


def run_python(code):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )


def test_importing_is_light_and_stored_updates_predict_without_jax(fitted, rows, model, tmp_path):
    X, y, s = rows
    bent = COMMOD(model, architecture="mlp", epochs=0).fit(X, y, sensitive_features=s)
    rng = np.random.default_rng(0)  # layers that bend, as after training
    layers = [(rng.normal(size=W.shape), rng.normal(size=b.shape)) for W, b in bent.network_.layers]
    bent.network_ = replace(bent.network_, layers=tuple(layers))
    updates = (fitted, bent)
    expected = [(u.ratio(X), u.predict(X), u.predict_proba(X)) for u in updates]
    assert 0 < (expected[1][0] < 0).mean() < 1
    (tmp_path / "u.pkl").write_bytes(pickle.dumps((updates, X, expected)))
    done = run_python(f"""
        import sys
        import commod
        heavy = {{"jax", "sklearn", "pandas", "matplotlib"}} & set(sys.modules)
        assert not heavy, heavy
        from commod import COMMOD
        assert "jax" not in sys.modules
        sys.modules["jax"] = None  # importing it raises
        import pickle
        updates, X, expected = pickle.load(open({str(tmp_path / "u.pkl")!r}, "rb"))
        for update, (ratio, decisions, proba) in zip(updates, expected, strict=True):
            assert (update.ratio(X) == ratio).all()
            assert (update.predict(X) == decisions).all()
            assert (update.predict_proba(X) == proba).all()
            update.changes(X)
        updates[0].concepts(X), repr(updates[0].scorecard_)
    """)
    assert done.returncode == 0, done.stderr


def test_an_interrupt_leaves_a_usable_update(model, rows, monkeypatch):
    from commod._solvers.training import loop as training

    X, y, s = rows
    advance, calls = training._advance, []

    def interrupted(*args):
        calls.append(args)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return advance(*args)

    monkeypatch.setattr(training, "_advance", interrupted)
    update = COMMOD(model, lambda_fair=4, random_state=0)
    with pytest.warns(TrainingWarning, match="interrupted after 20 of 150 epochs"):
        update.fit(X, y, sensitive_features=s)
    assert update.n_iter_ == 20
    assert update.predict(X).shape == (N,)
    assert update.status_.startswith("Training was interrupted")


def test_the_progress_bar_can_be_switched_on_and_off(model, rows, capsys):
    for show, expected in [(True, True), (False, False), (None, False)]:
        small(model, rows, epochs=2, training={"progress": show})
        out, err = capsys.readouterr()
        assert out == ""
        assert ("COMMOD" in err) == expected


# -- bad input ------------------------------------------------------------------------------------


BAD_PARAMETERS = [
    ({"lambda_fair": -1}, r"lambda_fair=-1 must be a finite number >= 0"),
    ({"lambda_ratio": math.nan}, r"lambda_ratio=nan must be a finite number"),
    ({"epochs": -1}, r"epochs=-1 must be"),
    ({"n_concepts": 0}, r"n_concepts=0 must be a finite number >= 1"),
    ({"training": {"batch_size": 0}}, r"batch_size=0"),
    ({"training": {"learning_rate": 0}}, r"learning_rate=0 must be a finite number > 0"),
    ({"training": {"adversary_hidden": 5}}, r"adversary_hidden=5 must be a tuple or list"),
    (
        {"training": {"adversary_hidden": (0,)}},
        r"adversary_hidden=\(0,\) must be a tuple or list",
    ),
    (
        {"constraints": "fairness"},
        r"constraints='fairness' is not known; choose one of demographic_parity",
    ),
    ({"threshold": 1.0}, r"threshold == 1.0, must be < 1"),
    ({"pos_label": "yes"}, r"pos_label='yes' is not a label of the base model: \[0, 1\]"),
    ({"favorable_label": 2}, r"favorable_label=2 is not a label"),
    ({"locked_features": "x0"}, r"locked_features='x0' is text; pass a list"),
    (
        {"locked_features": ["nope"]},
        r"locked_features=\['nope'\] names columns that X does not",
    ),
]


def test_bad_parameters_are_refused_in_words(model, rows):
    for params, words in BAD_PARAMETERS:
        X, y, s = rows
        with pytest.raises(ValueError, match=words):
            COMMOD(model, **params).fit(X, y, sensitive_features=s)


BAD_ROWS = [
    (lambda X, y, s: (X, y[:-1], s), r"y has 599 rows, but 600 were expected"),
    (lambda X, y, s: (X, y, s[:-1]), r"sensitive_features has 599 rows, but 600"),
    (lambda X, y, s: (X, y, None), r"sensitive_features is missing"),
    (lambda X, y, s: (X, y * 0, s), r"y holds one class only"),
    (lambda X, y, s: (X, y, ["a"] * N), r"1 groups? of at least min_group_size=30"),
    (lambda X, y, s: (X, y, ["a"] * (N - 3) + ["b"] * 3), r"'b': 3.*Merge groups"),
    (
        lambda X, y, s: (X, y, ["a", None] * (N // 2)),
        r"sensitive_features has 300 missing values in 600 rows. Drop those rows",
    ),
    (lambda X, y, s: (X, y + 5, s), r"which the base model does not know"),
    (lambda X, y, s: (X.assign(x1=np.inf), y, s), r"'x1' contains 600 infinite value"),
    (lambda X, y, s: (X.iloc[:0], y[:0], s[:0]), r"0 sample\(s\)"),
]


def test_bad_rows_are_refused_in_words(model, rows):
    for change, words in BAD_ROWS:
        X, y, s = change(*rows)
        with pytest.raises(ValueError, match=words):
            COMMOD(model, epochs=0).fit(X, y, sensitive_features=s)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X: X[X.columns[::-1]], "Feature names must be in the same order"),
        (lambda X: X.drop(columns="x1"), "x1"),
        (lambda X: X.to_numpy()[:, :-1], "X has 3 features, but COMMOD is expecting 4"),
    ],
)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_other_columns_at_predict_time_are_refused(fitted, rows, change, words):
    with pytest.raises(ValueError, match=words):
        fitted.predict(change(rows[0]))


READERS = (
    "predict",
    "predict_proba",
    "decision_function",
    "decision_proba",
    "ratio",
    "raw_ratio",
    "concepts",
)


def without_points(update, *columns, concept=slice(None)):
    """Take all points of some columns away, or those of one concept; `update` is changed."""
    card = update.scorecard_
    gone = np.isin(card.encoding.term_columns, columns)
    points = card.concept_points.copy()
    points[concept, gone] = 0.0
    update.scorecard_ = replace(card, concept_points=points)
    return update


def holding(X, column, values):
    """The same table with other values in one column."""
    if isinstance(X, np.ndarray):
        changed = X.astype(object if any(type(v) is not float for v in values) else X.dtype)
        changed[:, int(column.removeprefix("x"))] = objects(values)
        return changed
    frame = {name: X[name].to_list() for name in X.columns} | {column: values}
    return type(X)(frame)


def objects(values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


@pytest.mark.parametrize("kind", ["pandas", "array"])
def test_a_column_without_points_is_looked_at_by_no_method(model, rows, kind):
    X, y, s = (values.reset_index(drop=True) for values in rows)
    scored = X.assign(score=model.predict_proba(X)[:, 1])
    position = scored.columns.get_loc("score")
    tables = {
        "pandas": (scored, "score"),
        "array": (scored.to_numpy(), position),
    }
    table, column = tables[kind]
    update = COMMOD(ScoreColumn(column), epochs=3, lambda_sparsity=0, random_state=0)
    update.fit(table, y, sensitive_features=s)
    values = (math.inf, "much", datetime.date(2020, 1, 1), [1, 2])
    odd_tables = {str(held): holding(table, "x1", [held] * N) for held in values}
    for odd in odd_tables.values():
        with pytest.raises(InputError):
            update.predict(odd)
    without_points(update, "x1")
    expected = {name: getattr(update, name)(table) for name in READERS}
    changed = update.changes(table).changed
    for held, odd in odd_tables.items():
        for name in READERS:
            found = getattr(update, name)(odd)
            np.testing.assert_array_equal(found, expected[name], err_msg=f"{name}, {held}")
        np.testing.assert_array_equal(update.changes(odd).changed, changed, err_msg=held)
        with pytest.raises(InputError):  # segments speak of every column: explaining reads all
            explain(update, odd)
    if kind != "array":
        with pytest.raises(ValueError, match="x1"):
            update.predict(table.drop(columns="x1"))


def test_a_concept_without_weight_still_has_its_columns_read(model, rows):
    X, y, s = rows
    score = X.assign(score=model.predict_proba(X)[:, 1])
    update = COMMOD(
        ScoreColumn("score"),
        epochs=3,
        lambda_sparsity=0,
        training={"concepts_by_column": False},
        random_state=0,
    ).fit(score, y, sensitive_features=s)
    without_points(update, "x1", concept=0)
    update.scorecard_ = replace(update.scorecard_, contributions=np.array([1.0, 0.0]))
    odd = score.assign(x1=np.inf)
    np.testing.assert_array_equal(update.ratio(odd), update.ratio(score))
    with pytest.raises(InputError, match="Column 'x1' contains 600 infinite"):
        update.concepts(odd)
    columns = read_columns(score)
    np.testing.assert_array_equal(update.concepts(score), update.scorecard_.concepts(columns))


def test_a_locked_column_of_an_array_may_hold_anything(model, rows):
    X, y, s = rows
    table = np.column_stack([X, model.predict_proba(X)[:, 1], np.full(N, np.inf)])
    update = COMMOD(ScoreColumn(X.shape[1]), epochs=0)
    with pytest.raises(InputError, match="infinite"):
        update.fit(table, y, sensitive_features=s)
    update.set_params(locked_features=[f"x{X.shape[1] + 1}"])
    assert update.fit(table, y, sensitive_features=s).predict(table).shape == (N,)


def test_unseen_categories_get_no_points(model, rows):
    X, y, s = rows
    rng = np.random.default_rng(0)
    table = X.assign(
        score=model.predict_proba(X)[:, 1], city=rng.choice(["north", "south", "west"], N)
    )
    update = COMMOD(ScoreColumn("score"), epochs=3, lambda_sparsity=0, random_state=0)
    update.fit(table, y, sensitive_features=s)
    card = update.scorecard_
    numbers = sum(table[name] * points for name, points in card.rows() if name in X.columns)
    np.testing.assert_allclose(
        update.ratio(table.assign(city="atlantis")), card.intercept + numbers, atol=1e-9
    )


def test_an_unfitted_update_says_so(model, rows):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        COMMOD(model).predict(rows[0])
