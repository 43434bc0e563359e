"""COMMOD(architecture="mlp"): a ratio that bends, on people whose bias no half-space describes."""

import math
import pickle
from types import SimpleNamespace

import joblib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import commod
from commod import COMMOD, ScoreColumn
from commod.exceptions import InputError, TrainingWarning
from commod.metrics import p_rule
from commod.updates.commod import fit_grid
from quick_updates import quick_control

N = 600  # one size for nearly all tests: one compilation
QUICK = {
    "architecture": "mlp",
    "epochs": 60,
    "lambda_fair": 0.3,
    "lambda_ratio": 0.02,
    "random_state": 0,
}


def crossed(seed, n=N):
    """People at four corners: at two opposite ones the model turns down whom it should not.

    Most of them are of group b. x2, which misses values, and town are noise.
    """
    rng = np.random.default_rng(seed)
    corner = rng.choice([-1.0, 1.0], size=(n, 2))
    is_turned_down = corner[:, 0] == corner[:, 1]
    place = corner + rng.normal(scale=0.3, size=(n, 2))
    margin = rng.normal(np.where(is_turned_down, -1.0, 1.0), 0.6)
    X = pd.DataFrame(
        {
            "x0": place[:, 0],
            "x1": place[:, 1],
            "x2": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "town": rng.choice(["Oslo", "Rome", "Bern"], n),
            "score": expit(margin),
        }
    )
    group = np.where(is_turned_down ^ (rng.random(n) < 0.1), "b", "a")
    return X, (rng.random(n) < 0.85).astype(int), group


def fit(rows, update=None, **changes):
    X, y, group = rows
    update = COMMOD(ScoreColumn("score"), **{**QUICK, **changes}) if update is None else update
    return update.fit(X, y, sensitive_features=group)


@pytest.fixture(scope="module")
def rows():
    return crossed(0)


@pytest.fixture(scope="module")
def fitted(rows):
    return fit(rows)


# -- what it does ---------------------------------------------------------------------------------


def best_half_plane(X, y, group, floor):
    """The best accuracy of any half-plane of (x0, x1) to invert that brings the P-rule to a floor.

    Half-planes of 360 directions, every cut of each.
    """
    before = (X["score"] > 0.5).to_numpy()
    best = 0.0
    for angle in np.linspace(0, 2 * np.pi, 360, endpoint=False):
        order = np.argsort(X["x0"] * np.cos(angle) + X["x1"] * np.sin(angle)).to_numpy()
        moves = np.where(before, -1, 1)[order]
        rates = [
            (before[of].sum() + np.cumsum(moves * of[order])) / of.sum()
            for of in (group == "a", group == "b")
        ]
        right = before == y
        accuracy = (right.sum() + np.cumsum(np.where(right, -1, 1)[order])) / len(y)
        reached = np.minimum(*rates) / np.maximum(*rates) >= floor
        best = max(best, accuracy[reached].max())
    return best


def test_it_does_what_no_linear_ratio_can(rows, fitted):
    X, y, group = rows
    assert fitted.base_fairness_ < 0.2
    assert fitted.fairness_ > 0.9
    assert fitted.accuracy_ > best_half_plane(X, y, group, 0.8) + 0.1
    new, _, new_group = crossed(1)
    assert p_rule(None, fitted.predict(new), sensitive_features=new_group) > 0.8


def test_decisions_change_exactly_where_r_is_negative(rows, fitted):
    X = rows[0]
    before, ratio, changes = X["score"] > 0.5, fitted.ratio(X), fitted.changes(X)
    changed = fitted.predict(X) != before
    assert 0.2 < changed.mean() < 0.6
    assert np.array_equal(changed, ratio < 0)
    assert np.array_equal(changes.changed, ratio < 0)
    assert np.array_equal(fitted.raw_ratio(X), ratio)
    assert (changes.n_gains, changes.n_losses) == (fitted.n_gains_, fitted.n_losses_)
    assert f"decisions change ({fitted.change_rate_:.1%})" in fitted.status_
    assert fitted.fairness_ == p_rule(None, fitted.predict(X), sensitive_features=rows[2])


def test_scores_and_margins_agree_with_decisions(rows, fitted):
    X = rows[0]
    positive = fitted.predict(X) == 1
    assert np.array_equal(fitted.decision_function(X) > 0, positive)
    assert np.array_equal(fitted.predict_proba(X)[:, 1] > 0.5, positive)
    assert np.array_equal(fitted.decision_proba(X), positive)


def test_without_epochs_r_is_exactly_one(rows):
    X = rows[0]
    update = fit(rows, epochs=0)
    assert (update.ratio(X) == 1).all()
    assert update.changes(X).n_changes == update.n_iter_ == 0
    assert np.array_equal(update.predict_proba(X)[:, 1], X["score"])
    assert update.network_.layers[0][0].any(), "layers of zeros could never move"


def test_numpy_runs_what_was_trained(rows, monkeypatch):
    from commod._solvers.training import adversarial, networks

    seen = []
    original = adversarial.train_ratio

    def spy(problem, *others):
        seen.append((problem, original(problem, *others)))
        return seen[0][1]

    monkeypatch.setattr(adversarial, "train_ratio", spy)
    update = fit(rows)
    [(problem, trained)] = seen
    batch = SimpleNamespace(**problem.by_row, **problem.shared)
    parts = [part[0].ravel() for layer in trained.layers for part in layer]
    architecture = networks.Architecture(0, (problem.n_terms, 64, 1))
    on_device = architecture.apply(np.concatenate(parts).astype(np.float32), batch)
    ratio = update.ratio(rows[0])
    assert ratio.std() > 0.5
    np.testing.assert_allclose(ratio, on_device, atol=1e-5)


def test_the_history_has_the_losses_there_are(fitted):
    assert list(fitted.history_) == ["label", "adversary", "ratio", "change_rate"]
    assert fitted.n_iter_ == 60
    assert {len(values) for values in fitted.history_.values()} == {60}
    assert fitted.history_["change_rate"][-1] == pytest.approx(fitted.change_rate_, abs=0.02)


def test_seeds_decide_and_weights_of_concepts_do_not(rows, fitted):
    ratio = fitted.ratio(rows[0])
    of_concepts = {"lambda_sparsity": 1, "lambda_diversity": 1, "n_concepts": 5}
    assert np.array_equal(fit(rows, **of_concepts).ratio(rows[0]), ratio)
    assert not np.array_equal(fit(rows, random_state=1).ratio(rows[0]), ratio)


def test_a_grid_equals_fits_made_one_by_one(rows, fitted):
    X, y, group = rows
    settings = [{"lambda_fair": 0.3}, {"lambda_fair": 3, "lambda_sparsity": 1}]
    same, other = fit_grid(clone(fitted), settings, X, y, sensitive_features=group)
    assert np.array_equal(same.ratio(X), fitted.ratio(X))
    assert np.array_equal(other.ratio(X), fit(rows, lambda_fair=3).ratio(X))
    assert not np.array_equal(other.ratio(X), same.ratio(X))


def test_it_takes_what_the_linear_one_takes():
    """Weights, a locked column, the margin as a column of r."""
    X, y, group = crossed(2)
    # seven terms, four of them numbers: the program that `fitted` has compiled
    X = X.assign(x3=np.random.default_rng(3).normal(size=N))
    with_score = {**QUICK, "training": {"reads_score": True}}
    update = COMMOD(ScoreColumn("score"), **with_score, locked_features=["x2"])
    weight = np.linspace(0.5, 1.5, N)
    update.fit(X, y, sensitive_features=group, sample_weight=weight)
    terms = {"x0", "x1", "x3", "town = Bern", "town = Oslo", "town = Rome", "base margin"}
    assert set(update.term_names_) == terms
    assert [matrix.shape for matrix, _ in update.network_.layers] == [(7, 64), (64, 1)]
    assert update.fairness_ > update.base_fairness_ + 0.1
    assert update.fairness_ == pytest.approx(
        p_rule(None, update.predict(X), sensitive_features=group, sample_weight=weight)
    )
    moved = X.assign(score=1 - X["score"])
    assert not np.allclose(update.ratio(X), update.ratio(moved)), "r reads the margin"
    elsewhere = X.assign(x2=7.0)
    assert np.array_equal(update.ratio(X), update.ratio(elsewhere))


def test_hidden_layers_have_the_sizes_asked_for(rows):
    update = fit(rows, training={"hidden": (8, 3)}, epochs=0)
    assert [matrix.shape for matrix, _ in update.network_.layers] == [(7, 8), (8, 3), (3, 1)]


def test_unseen_categories_and_missing_values_are_read(rows, fitted):
    X = rows[0].head(3).assign(town=["Paris", None, "Oslo"], x2=math.nan)
    r = fitted.ratio(X)
    assert np.isfinite(r).all()
    absent = fitted.ratio(X.assign(town="Nowhere"))
    assert np.array_equal(r[:2], absent[:2])
    assert r[2] != absent[2]


def test_one_sided_constraints_are_trained_too(rows, fitted):
    update = fit(rows, constraints="true_positive_rate_parity")
    assert update.fairness_ < update.base_fairness_
    assert not np.array_equal(update.ratio(rows[0]), fitted.ratio(rows[0]))


# -- what it is -----------------------------------------------------------------------------------


def test_it_has_layers_and_no_scorecard(rows, fitted):
    assert fitted.scorecard_ is None
    for name in ("concept_weights_", "concept_contributions_", "intercept_"):
        assert not hasattr(fitted, name)
    assert fitted.term_names_ == [
        *("x0", "x1", "x2", "x2 is missing", "town = Bern", "town = Oslo", "town = Rome")
    ]
    with pytest.raises(
        InputError, match=r"architecture='mlp' has no concepts.*architecture=\"concepts\""
    ):
        fitted.concepts(rows[0])


def test_layers_are_no_patch(fitted):
    with pytest.raises(
        InputError, match=r"architecture='mlp' has no scorecard.*linear ratio.*ControlledDebiaser"
    ):
        fitted.to_patch()
    renamed = pickle.loads(pickle.dumps(fitted)).set_params(architecture="concepts")
    with pytest.raises(InputError, match="has no scorecard"):
        renamed.to_patch()  # what was fitted counts, until it is fitted again


def test_the_architecture_is_a_parameter_and_a_refit_may_change_it(rows, fitted):
    assert fitted.architecture == clone(fitted).get_params()["architecture"] == "mlp"
    assert "architecture='mlp'" in repr(fitted)
    other = fit(rows, clone(fitted).set_params(architecture="concepts", epochs=0))
    assert other.network_ is None
    assert other.to_patch().content.ratio.columns == ()
    assert other.concepts(rows[0]).shape == (N, 2)
    again = fit(rows, other.set_params(architecture="mlp"))
    assert again.scorecard_ is None
    assert not hasattr(again, "concept_weights_"), "nothing is left of the first fit"


@pytest.mark.parametrize(
    ("params", "words"),
    [
        (
            {"architecture": "tree"},
            r"architecture='tree' is not known; choose one of concepts, mlp",
        ),
        ({"architecture": None}, r"architecture=None is not known"),
        ({"training": {"hidden": 5}}, r"hidden=5 must be a tuple or list of the sizes"),
        ({"training": {"hidden": (8, 0)}}, r"hidden=\(8, 0\) must be a tuple or list"),
        ({"training": {"hidden": np.array([8])}}, r"must be a tuple or list"),
        ({"training": {"hidden": (10**12,)}}, r"asks for a layer of over 10,000 units"),
        (
            {"architecture": np.array(["mlp", "concepts"])},
            r"is not known; choose one of concepts, mlp",
        ),
    ],
)
def test_bad_parameters_are_refused_in_words(rows, params, words):
    with pytest.raises(InputError, match=words):
        fit(rows, **params)


def test_it_is_not_fitted_before_it_is(rows):
    for method in ("ratio", "concepts", "predict", "changes"):
        with pytest.raises(NotFittedError):
            getattr(COMMOD(ScoreColumn("score"), architecture="mlp"), method)(rows[0])


def test_an_interrupt_leaves_a_usable_update(rows, monkeypatch):
    from commod._solvers.training import loop as training

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "_advance", interrupted)
    with pytest.warns(TrainingWarning, match="interrupted after 0 of 60 epochs"):
        update = fit(rows)
    assert (update.ratio(rows[0]) == 1).all()


def test_a_saved_update_predicts_alike(rows, fitted, tmp_path):
    joblib.dump(fitted, tmp_path / "update.joblib")
    loaded = joblib.load(tmp_path / "update.joblib")
    assert np.array_equal(loaded.ratio(rows[0]), fitted.ratio(rows[0]))


# -- through the house ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def curve(rows, fitted):
    X, y, group = rows
    grid = {"lambda_fair": [0.3, 3]}
    return commod.frontier(clone(fitted), X, y, sensitive_features=group, grid=grid)


@pytest.fixture(scope="module")
def why(rows, fitted):
    return commod.explain(fitted, rows[0])


def test_a_frontier_measures_the_network_and_has_segments_but_no_card(rows, fitted, curve):
    frame = curve.frame()
    assert "n_terms" not in frame
    assert frame["n_changes"][0] == fitted.changes(rows[0]).n_changes
    assert frame["fairness"][0] == fitted.fairness_
    assert np.array_equal(curve.select(target=0.5).ratio(rows[0]), fitted.ratio(rows[0]))
    steps = curve.trade_off().steps
    assert steps
    assert all(step.card is None and step.segments.segments for step in steps)


def test_an_explanation_describes_its_decisions(rows, fitted, why):
    assert why.card is None
    assert np.array_equal(why.ratio, fitted.ratio(rows[0]))
    assert np.array_equal(why.changed, fitted.changes(rows[0]).changed)
    assert np.array_equal(why.scores_after, fitted.predict_proba(rows[0])[:, 1])
    assert why.segments.segments
    assert why.settings["architecture"] == "mlp"
    assert why.concept_of([0]).tolist() == [-1]
    assert why.reasons([0]) == [""]
    with pytest.raises(InputError, match=r"COMMOD has no scorecard.*architecture=\"concepts\""):
        why.person(0)


def test_audit_and_report_are_made(rows, why, curve, tmp_path):
    found = commod.audit(
        why.y_before, why.y_after, sensitive_features=rows[2], y_true=rows[1], explanation=why
    )
    assert found.changes.n_changes == why.changed.sum()
    assert found.proxies[0].by_ratio, "r is known, though not as points"
    path = commod.report(found, tmp_path / "report.html", frontier=curve)
    assert "COMMOD" in path.read_text()


def test_compare_puts_it_beside_a_straight_one(rows, fitted, monkeypatch):
    X, y, group = rows
    monkeypatch.setattr("commod.updates.commod.DEFAULT_GRID", {"lambda_fair": (0.3, 3.0)})
    methods = {"bent": clone(fitted), "straight": quick_control(ScoreColumn("score"))}
    frame = commod.compare(methods, X, y, sensitive_features=group).frame()
    bent = frame[frame["method"] == "bent"]
    assert fitted.fairness_ in bent["fairness"].to_list()
    assert set(frame["method"]) == {"bent", "straight"}


def test_pictures_and_notebooks_do_without_points(rows, fitted, why, curve):
    X, y, group = rows
    with pytest.raises(InputError, match="This COMMOD has no scorecard, hence no concepts"):
        commod.ConceptDisplay.from_estimator(fitted, X)
    with pytest.raises(InputError, match="without one"):
        commod.ConceptDisplay.from_explanation(why)
    commod.ChangeDisplay.from_estimator(fitted, X, sensitive_features=group)
    commod.CalibrationDisplay.from_estimator(fitted, X, y)
    commod.FrontierDisplay.from_frontier(curve)
    curve.plot()
    plt.close("all")
    shown = fitted._repr_html_()
    assert "people who gain" in shown
    assert "Scorecard" not in shown
