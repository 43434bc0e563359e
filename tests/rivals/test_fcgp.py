"""FCGP: the authors' labels, a direct implementation, weights, and what smoothing can do."""

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import LogisticRegression

from commod import ScoreColumn
from commod.datasets import make_biased
from commod.exceptions import CommodWarning, InputError
from commod.rivals import FCGP, fit_strengths
from commod.rivals.fcgp import (
    SMALLEST_NOISE,
    balanced_choice,
    directions,
    fit_kernel,
    kernel_matrix,
    noise_coefficients,
)

pytestmark = pytest.mark.filterwarnings("ignore::commod.exceptions.CommodWarning")

NOISES = np.linspace(SMALLEST_NOISE, 0.5, 50)
FIXTURE = json.loads((Path(__file__).parent / "fixtures" / "fcgp.json").read_text())


def table(seed, n=40, d=3):
    """Return a small table of standardised numbers with a rough score, and its groups."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    group = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    scores = 1 / (1 + np.exp(-X @ rng.normal(size=d) - np.sin(4 * X[:, 0])))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(d)]).assign(score=scores), group


def fcgp(**parameters):
    return FCGP(ScoreColumn("score"), **{"min_group_size": 1, "random_state": 0, **parameters})


# ---------------------------------------------------------------------------------------------
# The mathematics


def test_one_point_shrinks_towards_zero_with_the_noise():
    point = np.ones((1, 1)), np.array([0.6]), np.ones(1)
    vectors, values, projected = directions(*point)
    noises = np.array([SMALLEST_NOISE, 0.5])
    found = vectors @ (projected[:, None] / (values[:, None] + noises))
    np.testing.assert_allclose(found, [[0.6, 0.4]], atol=1e-5)
    np.testing.assert_allclose(noise_coefficients(*point, noises), [[0.0, -0.2]], atol=1e-5)


@pytest.mark.parametrize(("split", "attribute"), [(0, "age"), (1, "sex"), (2, "age"), (3, "sex")])
def test_the_labels_are_those_of_the_authors_on_german_credit(attribute, split):
    parts = FIXTURE[split]
    fit, new = (_rows(parts[part], attribute) for part in ("fit", "new"))
    X, scores, labels = fit
    kernel = fit_kernel(X, scores, np.ones(len(X)))
    matrix = kernel_matrix(X, X, *kernel)
    vectors, values, projected = directions(matrix, scores, np.ones(len(X)))
    coefficients = vectors @ (projected[:, None] / (values[:, None] + NOISES))
    decided = matrix @ coefficients > 0.5
    gaps = np.abs(decided[X[:, -1] == 1].mean(axis=0) - decided[X[:, -1] == 0].mean(axis=0))
    changed = (decided != (scores > 0.5)[:, None]).mean(axis=0)
    best = balanced_choice(gaps, np.where(changed > 0, changed, 1.0), strength=0.5)
    assert (decided[:, best] == labels).all()
    assert ((kernel_matrix(new[0], X, *kernel) @ coefficients[:, best] > 0.5) == new[2]).all()


def _rows(part, attribute):
    """Return the encoded rows, scores and labels of a stored run."""
    run = part["runs"][attribute]
    bits = [_bits(text) for text in (*part["bits"], run["group"])]
    X = np.column_stack([*part["numbers"], *bits])
    return X, np.array(run["scores"]), _bits(run["labels"]).astype(bool)


def _bits(text):
    return np.array([int(digit) for digit in text])


@pytest.mark.parametrize("seed", range(4))  # both variants and priors
def test_decisions_equal_a_direct_implementation(seed):
    """Each noise solves its own equations here, and every balance is computed anew."""
    X, group = table(seed)
    new, _ = table(seed + 100)
    variant, prior = ("labels", "scores")[seed % 2], (0.0, 0.5)[seed // 2 % 2]
    update = fcgp(variant=variant, prior_mean=prior, strength=0.7).fit(X, sensitive_features=group)
    (Z, scores), (new_Z, new_scores) = (
        (part.drop(columns="score").to_numpy(), part["score"].to_numpy()) for part in (X, new)
    )
    kernel = ConstantKernel(update.kernel_variance_) * RBF(update.kernel_length_)

    def smoothed(rows, noise):
        solved = np.linalg.solve(kernel(Z) + noise * np.eye(len(Z)), scores - prior)
        return kernel(rows, Z) @ solved

    balances, decisions = [], []
    for noise in NOISES:
        change = smoothed(Z, noise) - smoothed(Z, SMALLEST_NOISE)
        decided = scores + change > 0.5
        changed = (decided != (scores > 0.5)).mean()
        difference = (changed or 1) if variant == "labels" else np.abs(change).mean()
        gap = abs(decided[group == 1].mean() - decided[group == 0].mean())
        balances.append(0.7 * (1 - gap) + 0.3 * (1 - difference) if decided.any() else 0)
        decisions.append(decided)
    chosen = int(np.argmin(np.abs(NOISES - update.noise_)))
    assert balances[chosen] == pytest.approx(max(balances), abs=1e-6)
    assert (update.predict(X) == decisions[chosen]).all()
    change = smoothed(new_Z, update.noise_) - smoothed(new_Z, SMALLEST_NOISE)
    assert (update.predict(new) == (new_scores + change > 0.5)).all()
    edited = np.clip(new_scores + change, 0, 1)
    assert update.predict_proba(new)[:, 1] == pytest.approx(edited, abs=1e-6)


def test_the_kernel_is_as_likely_as_that_of_scikit_learn():
    for seed in range(2):
        X, _ = table(seed)
        Z, residual = X.drop(columns="score").to_numpy(), X["score"].to_numpy() - 0.5
        variance, length = fit_kernel(Z, residual, np.ones(len(Z)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the optimiser of scikit-learn may end at a bound
            other = GaussianProcessRegressor(1.0 * RBF(1.0), alpha=SMALLEST_NOISE).fit(Z, residual)
        ours = other.log_marginal_likelihood(np.log([variance, length]))
        assert ours > other.log_marginal_likelihood_value_ - 1e-6


def test_whole_weights_mean_repetition():
    X, group = table(3, n=60)
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    times = np.repeat(np.arange(len(X)), weight)
    update = fcgp(strength=0.8)
    weighed = clone(update).fit(X, sensitive_features=group, sample_weight=weight)
    repeated = clone(update).fit(X.iloc[times], sensitive_features=group[times])
    assert weighed.noise_ == repeated.noise_
    assert weighed.kernel_length_ == pytest.approx(repeated.kernel_length_, rel=1e-3)
    np.testing.assert_allclose(weighed.predict_proba(X), repeated.predict_proba(X), atol=1e-3)
    light = clone(update).fit(X, sensitive_features=group, sample_weight=np.full(len(X), 1e-6))
    even = clone(update).fit(X, sensitive_features=group)
    np.testing.assert_allclose(light.predict_proba(X), even.predict_proba(X), atol=1e-6)


def test_equal_points_with_different_scores_have_a_kernel():
    kernel = fit_kernel(np.zeros((4, 2)), np.array([0.1, -0.1, 0.2, 0.0]), np.ones(4))
    assert np.isfinite(kernel).all()


def test_the_kernel_of_far_points_is_zero():
    assert kernel_matrix(np.zeros((1, 2)), np.full((1, 2), 1e6), 1.0, 1.0).tolist() == [[0.0]]


# ---------------------------------------------------------------------------------------------
# The update


def test_smoothing_removes_a_rough_pattern_that_harms_a_group():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=300)
    wave = np.sin(30 * x)
    group = (wave + 0.5 * rng.normal(size=300) > 0).astype(int)
    X = pd.DataFrame({"x": x, "score": 0.6 + 0.15 * wave})
    update = fcgp()
    models = fit_strengths(update, update.default_strengths, X, sensitive_features=group)
    assert models[0].change_rate_ == 0
    assert models[0].base_fairness_ < 0.7
    assert models[-1].fairness_ > 0.95
    gaps = [abs(m.predict(X)[group == 1].mean() - m.predict(X)[group == 0].mean()) for m in models]
    assert (np.diff(gaps[1:]) <= 1e-12).all()


def test_a_large_table_is_sampled_and_every_row_decided_alike():
    data = make_biased(500, bias=1.5, n_categories=3, random_state=0)
    numbers = data.data.select_dtypes("number")
    model = LogisticRegression().fit(numbers, data.target)
    X = data.data.assign(score=model.predict_proba(numbers)[:, 1])
    update = fcgp(max_rows=100).fit(X, sensitive_features=data.sensitive_features)
    assert update.n_points_ == 100
    assert update.change_rate_ > 0
    again = clone(update).fit(X, sensitive_features=data.sensitive_features)
    assert (again.predict(X) == update.predict(X)).all()
    whole = update.predict_proba(X)
    np.testing.assert_allclose(update.predict_proba(X.iloc[7:9]), whole[7:9], atol=1e-9)


def test_a_locked_column_is_not_read():
    X, group = table(1)
    update = fcgp(strength=1.0, locked_features=["x1"]).fit(X, sensitive_features=group)
    other = X.assign(x1=-X["x1"])
    assert (update.predict_proba(other) == update.predict_proba(X)).all()


def test_strength_zero_changes_nothing_on_new_rows():
    X, group = table(2)
    update = fcgp(strength=0, threshold=0.3).fit(X, sensitive_features=group)
    new, _ = table(5)
    assert (update.predict_proba(new)[:, 1] == new["score"]).all()
    assert update.noise_ == SMALLEST_NOISE


def test_rejecting_everybody_is_not_fair():
    """The prior mean 0 and a large noise give nobody the positive decision."""
    X, group = table(0)
    update = fcgp(strength=1.0, prior_mean=0.0, largest_noise=1e4).fit(X, sensitive_features=group)
    assert update.predict(X).any()


HOSTILE = {
    "extreme": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "constant": lambda rng, n: np.full(n, 0.7),
    "all positive": lambda rng, n: rng.uniform(0.6, 1.0, n),
    "few positive": lambda rng, n: np.where(np.arange(n) < 6, 0.6, 0.4),
    "near the threshold": lambda rng, n: 0.5 + 1e-12 * rng.normal(size=n),
    "any": lambda rng, n: rng.uniform(size=n),
}


def test_hostile_tables_give_no_warning_and_keep_the_rules():
    for seed, scores in enumerate(HOSTILE):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(12, 40))
        X = pd.DataFrame(
            {
                "large": rng.choice([0.0, 1e99, -1e200, np.nan], n),
                "tiny": 1e-200 * rng.normal(size=n),
                "text": rng.choice(["a", "b", None], n),
                "same": 1.0,
                "number": rng.normal(size=n) ** 5,
                "score": HOSTILE[scores](rng, n),
            }
        )
        group = rng.choice(["a", "b", "c"][: 2 + seed % 2], n)
        weight = rng.choice([0.0, 1.0, 7.5], n)
        weight[:2] = 1.0
        group[:3] = ["a", "b", "a"]
        update = fcgp(
            strength=1.0, variant=("labels", "scores")[seed % 2], min_category_size=2, threshold=0.5
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", CommodWarning)
            update.fit(X, sensitive_features=group, sample_weight=weight)
            proba = update.predict_proba(X)[:, 1]
        assert ((proba >= 0) & (proba <= 1)).all()
        assert ((proba > 0.5) == update.predict(X)).all()


def test_parameters_without_meaning_are_refused():
    for wrong, message in [
        ({"variant": "label"}, "choose one of labels, scores"),
        ({"prior_mean": 2}, "prior_mean"),
        ({"largest_noise": 0}, "largest_noise"),
        ({"n_noises": 1}, "n_noises"),
        ({"max_rows": 0}, "max_rows"),
        ({"strength": 1.5}, "strength"),
        ({"constraints": "equalized_odds"}, "FCGP knows 'demographic_parity'"),
    ]:
        X, group = table(0)
        with pytest.raises(InputError, match=message) as error:
            fcgp(**wrong).fit(X, (X["score"] > 0.4).astype(int), sensitive_features=group)
        assert error.value.parameter in wrong
