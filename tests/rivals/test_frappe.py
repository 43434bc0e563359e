"""FRAPPE: its losses and steps against plain NumPy, its promises against the base model."""

from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from commod import ScoreColumn
from commod._solvers.problem import Penalties, Schedule, TrainingRows
from commod._solvers.training import loop as training
from commod._solvers.training.networks import Architecture
from commod.datasets import make_biased
from commod.exceptions import DataWarning, InputError, TrainingWarning
from commod.rivals import FRAPPE, fit_strengths
from commod.rivals import _jax_training as solver

pytestmark = pytest.mark.usefixtures("quick_compilation")

N = 480
QUICK = {"epochs": 10, "batch_size": 128, "random_state": 0, "progress": False}


@pytest.fixture(scope="module")
def data():
    """Numbers with gaps, a category, three groups of which the last is small."""
    data = make_biased(N, group_shares=(0.6, 0.32, 0.08), bias=2.0, n_categories=3, random_state=1)
    X = data.data[["category", "x0", "x1", "x2", "x3"]].assign(score=data.proba_target)
    X = X.assign(x0=20 + 5 * X["x0"], x2=3 * X["x2"] - 7)
    X.loc[np.random.default_rng(0).random(N) < 0.2, "x3"] = np.nan
    return X, np.asarray(data.target), np.asarray(data.sensitive_features)


@pytest.fixture(scope="module")
def rows(data):
    """The same with two groups."""
    X, y, group = data
    return X, y, np.where(group == "g0", "a", "b")


def fit(rows, update=None, sample_weight=None, **params):
    X, y, group = rows
    update = update or FRAPPE(ScoreColumn("score"), **{**QUICK, **params})
    return update.fit(X, y, sensitive_features=group, sample_weight=sample_weight)


@pytest.fixture(scope="module")
def plain(rows):
    """What is learned with the quick settings and nothing else."""
    return fit(rows)


# -- losses, by hand and by plain NumPy -----------------------------------------------------------


def mmd(scores, weight, one, other, length=0.1):
    """The biased estimator, written out over all pairs."""
    kernel = np.exp(-((scores[:, None] - scores) ** 2) / length**2)
    share = weight * one / (weight @ one) - weight * other / (weight @ other)
    return share @ kernel @ share


def numpy_discrepancy(problem, scores):
    weight = problem.fairness_weight.astype(float)
    line, group = np.divmod(problem.cell, problem.n_groups)
    return sum(
        np.mean(
            [
                mmd(
                    scores,
                    weight,
                    (line == k) & (group == g),
                    (line == k) & (group != g),
                    problem.kernel_length,
                )
                for g in range(problem.n_groups)
            ]
        )
        for k in range(problem.n_rate_rows)
    )


def make_problem(n=90, n_groups=2, n_rate_rows=1, length=0.1, seed=0):
    rng = np.random.default_rng(seed)
    cell = rng.integers(n_groups * n_rate_rows, size=n)
    numeric = rng.normal(size=(n, 3)) + (cell % n_groups)[:, None] * [1.0, 0.0, -1.0]
    single = np.float32
    return SimpleNamespace(
        numeric=((numeric - numeric.mean(axis=0)) / numeric.std(axis=0)).astype(single),
        codes=np.zeros((n, 0), np.int32),
        code_mean=np.zeros(0, single),
        code_scale=np.zeros(0, single),
        margin=(numeric[:, 0] + 0.5 * rng.normal(size=n)).astype(single),
        cell=cell.astype(np.int32),
        weight=rng.uniform(0.5, 2, n).astype(single),
        fairness_weight=rng.uniform(0.5, 2, n).astype(single),
        n_rate_rows=n_rate_rows,
        n_groups=n_groups,
        kernel_length=length,
    )


def shape_of(problem, hidden=()):
    return solver.AdditiveSpec(
        Architecture(0, (3, *hidden, 1)), problem.n_rate_rows, problem.n_groups
    )


def changed(problem, **fields):
    return SimpleNamespace(**{**vars(problem), **fields})


def rows_of(problem):
    by_row = ("numeric", "codes", "margin", "cell", "weight", "fairness_weight")
    return TrainingRows.of(
        {name: getattr(problem, name) for name in by_row},
        code_mean=problem.code_mean,
        code_scale=problem.code_scale,
    )


@partial(jax.jit, static_argnames="spec")
def discrepancy(scores, rows, settings, spec):
    return solver.discrepancy(scores, rows.as_batch(), settings, spec)


def found_discrepancy(problem, scores):
    rows, shape = rows_of(problem), shape_of(problem)
    settings = solver.additive_settings(rows, shape, 0.1, problem.kernel_length)
    padded = training.padded(scores.astype(np.float32))
    return float(discrepancy(padded, training.rows_on_device(rows), settings, shape))


def test_the_discrepancy_is_that_of_the_library_the_authors_used():
    for (
        logits,
        weight,
        value,
    ) in [  # of the tests of TensorFlow's model remediation: no factor 2, diagonal included
        ([0.3, 0.1, 0.86, 0.06, 0.75], np.ones(5), 1.083264),
        ([0.12, 0.7, 0.2, 0.86, 0.32], np.ones(5), 1.464054),
        ([0.3, 0.1, 0.86, 0.06, 0.75], np.array([1.0, 2.0, 2.5, 1.2, 0.9]), 1.293555),
    ]:
        member = np.array([1, 0, 1, 0, 1])
        assert mmd(expit(logits), weight, member == 1, member == 0) == pytest.approx(
            value, abs=1e-6
        )
        problem = changed(make_problem(5), cell=member, fairness_weight=weight)
        assert found_discrepancy(problem, expit(logits)) == pytest.approx(value, abs=1e-5)


def test_a_whole_table_has_the_biased_discrepancy():
    problem = make_problem(n_groups=3, n_rate_rows=2, length=0.03)
    scores = expit(problem.margin.astype(float))
    scores[:2] = 0.0, 1.0  # as far apart as scores can be
    expected = numpy_discrepancy(problem, scores)
    assert found_discrepancy(problem, scores) == pytest.approx(expected, rel=1e-4)


def test_batches_estimate_the_discrepancy_of_the_whole_table():
    """Mean over many batches of 12 rows, of which about 2 are of the small group."""
    problem = make_problem(200, seed=3)
    cell = (np.arange(200) % 6 == 0).astype(int)
    problem = changed(problem, cell=cell, fairness_weight=np.ones(200))
    scores = expit(problem.margin.astype(float))
    shape = shape_of(problem)
    settings = solver.additive_settings(rows_of(problem), shape, 0.1, 0.1)
    rng = np.random.default_rng(0)
    picked = np.stack([rng.choice(200, 12, replace=False) for _ in range(2000)])

    def of_batch(index):
        batch = SimpleNamespace(cell=jnp.asarray(cell)[index], fairness_weight=jnp.ones(12))
        return solver.discrepancy(jnp.asarray(scores, jnp.float32)[index], batch, settings, shape)

    found = np.asarray(jax.jit(jax.vmap(of_batch))(picked))
    counted = (problem.cell[picked].sum(axis=1) >= 2) & (problem.cell[picked].sum(axis=1) <= 10)
    assert (found[~counted] == 0).all()
    spread = found[counted].std() / np.sqrt(counted.sum())
    whole = numpy_discrepancy(problem, scores)
    assert abs(found[counted].mean() - whole) < 4 * spread
    naive = np.mean([mmd(scores[i], np.ones(12), problem.cell[i] == 1, problem.cell[i] == 0)
                     for i in picked[counted][:300]])  # fmt: skip
    assert naive > whole + 0.2, "a batch's own diagonal would be most of its discrepancy"


def test_the_divergence_is_that_of_bernoulli_trials():
    found = float(solver.divergence(jnp.float32(logit(0.8)), jnp.float32(logit(0.6))))
    assert found == pytest.approx(0.8 * np.log(0.8 / 0.6) + 0.2 * np.log(0.2 / 0.4), abs=1e-6)
    assert found == pytest.approx(0.09152, abs=5e-6)


def numpy_descent(problem, strength, epochs, rate):
    """Linear T by full-batch Adam, gradients written out; returns w and b."""
    x = np.column_stack([problem.numeric.astype(float), np.ones(len(problem.margin))])
    z, weight = problem.margin.astype(float), problem.weight.astype(float)
    fair = problem.fairness_weight.astype(float)
    ones, f = problem.cell == 1, expit(z)
    share = fair * ones / (fair @ ones) - fair * ~ones / (fair @ ~ones)
    theta, m, v = np.zeros(4), np.zeros(4), np.zeros(4)
    for t in range(1, epochs + 1):
        q = expit(z + x @ theta)
        gap = q[:, None] - q
        slope = -2 * gap / 0.1**2 * np.exp(-(gap**2) / 0.1**2)
        by_score = 2 * share * (slope @ share)
        by_logit = weight / weight.sum() * (q - f) + strength * by_score * q * (1 - q)
        g = x.T @ by_logit
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        decay = 0.5 * (1 + np.cos(np.pi * (t - 1) / epochs))
        theta -= rate * decay * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return theta


def test_training_takes_the_steps_that_numpy_takes():
    problem = make_problem()
    strengths = np.array([0.5, 4.0], np.float32)
    none = np.zeros(2, np.float32)
    penalties = Penalties(strengths, None, none, none)
    told = rows_of(problem), (1, 2), problem.kernel_length, penalties
    found = solver.train_additive_term(*told, np.arange(2), Schedule(12, 90, 0, 0.05))
    for i, strength in enumerate(strengths):
        expected = numpy_descent(problem, strength, 12, 0.05)
        matrix, bias = found.layers[0]
        np.testing.assert_allclose([*matrix[i][:, 0], *bias[i]], expected, atol=2e-4)


# -- no strength, no change -----------------------------------------------------------------------


def test_strength_zero_is_the_base_model_bit_for_bit(rows):
    for architecture, constraints in [
        ("linear", "demographic_parity"),
        ("mlp", "equalized_odds"),
        ("concepts", "demographic_parity"),
    ]:
        update = fit(
            rows, strength=0, architecture=architecture, constraints=constraints, threshold=0.3
        )
        X = rows[0]
        assert update.change_rate_ == 0
        assert (update.term(X) == 0).all()
        assert (update.predict_proba(X)[:, 1] == X["score"]).all()
        assert (update.predict_proba(X)[:, 0] == 1 - X["score"]).all()
        assert update.n_iter_ == 0
        assert update.history_ == {}


def test_no_epochs_change_nothing_either(rows):
    for architecture in ["linear", "mlp", "concepts"]:
        update = fit(rows, strength=3, epochs=0, architecture=architecture)
        assert (update.term(rows[0]) == 0).all()
        assert update.change_rate_ == 0


def test_a_score_that_equals_the_threshold_can_be_raised_but_is_negative_untouched(rows):
    X, y, group = rows
    X = X.assign(score=np.where(np.arange(N) < 10, 0.5, X["score"]))
    update = fit((X, y, group), strength=4, epochs=30)
    decided = update.predict(X)[:10] == 1
    assert (decided == (update.term(X)[:10] > 0)).all()
    assert len(set(decided)) == 2
    none = fit((X, y, group), strength=0)
    assert not none.predict(X)[:10].any()


# -- what strength buys ---------------------------------------------------------------------------


def check_order(found):
    """Check that each strength gives more of everything than the one before, the first nothing."""
    fairness = [model.fairness_ for model in found]
    changes = [model.change_rate_ for model in found]
    assert fairness == sorted(fairness)
    assert changes == sorted(changes)
    divergence = [model.history_["divergence"][-1] for model in found[1:]]
    assert divergence == sorted(divergence)


def test_equalized_odds_come_closer_for_three_groups(data):
    update = fit(data, strength=8, constraints="equalized_odds", epochs=100)
    assert update.fairness_ < 0.6 * update.base_fairness_


def test_labels_are_in_no_loss_of_demographic_parity(data):
    X, y, group = data
    with_labels, without = fit(data), fit((X, None, group))
    assert with_labels.scorecard_ == without.scorecard_
    others = fit((X, np.roll(y, 1), group), constraints="equalized_odds")
    assert others.scorecard_ != fit(data, constraints="equalized_odds").scorecard_


def test_one_error_rate_looks_at_the_groups_of_its_label_alone(rows):
    X, y, group = rows
    rng = np.random.default_rng(0)
    shuffled = group.copy()
    shuffled[y == 0] = rng.permutation(group[y == 0])
    constraints = "true_positive_rate_parity"
    usual, other = (fit((X, y, g), constraints=constraints) for g in (group, shuffled))
    assert usual.scorecard_ == other.scorecard_
    mixed = fit((X, y, rng.permutation(group)), constraints=constraints)
    assert mixed.scorecard_ != usual.scorecard_


def test_only_rows_of_the_constraint_are_compared(data, monkeypatch):
    for constraints, counted in [
        ("demographic_parity", (0, 1)),
        ("equalized_odds", (0, 1)),
        ("true_positive_rate_parity", (1,)),
        ("false_positive_rate_parity", (0,)),
    ]:

        class SeenError(Exception):
            pass

        def look(*given, **_):
            raise SeenError(given)

        monkeypatch.setattr(solver, "train_additive_term", look)
        _, y, group = data
        with pytest.warns(DataWarning, match="left out"), pytest.raises(SeenError) as seen:
            fit(data, constraints=constraints, min_group_size=60)
        rows, shape, _, penalties, *_ = seen.value.args[0]
        inside = np.isin(y, counted) & (group != "g2")
        assert (rows.by_row["fairness_weight"] == inside).all()
        assert (rows.by_row["weight"] == 1).all()
        assert penalties.fair.tolist() == [1.0]
        cell = (group == "g1") * 1
        if constraints == "equalized_odds":
            cell = cell + 2 * (y == 0)
        assert (rows.by_row["cell"][inside] == cell[inside]).all()
        assert shape[0] == 1 + (constraints == "equalized_odds")


def test_a_group_left_out_trains_the_divergence_alone(data):
    X, y, group = data
    with pytest.warns(DataWarning, match="1 group.* left out"):
        usual = fit(data, min_group_size=60)
    swapped = np.where(group == "g2", "rare", group)
    with pytest.warns(DataWarning, match="left out"):
        assert fit((X, y, swapped), min_group_size=60).scorecard_ == usual.scorecard_
    assert fit(data).scorecard_ != usual.scorecard_


# -- what is learned ------------------------------------------------------------------------------


def test_the_scores_are_the_sigmoid_of_margin_and_term(rows):
    X = rows[0]
    update = fit(rows, strength=2, threshold=0.4)
    expected = expit(np.clip(logit(X["score"]) - logit(0.4), -10, 10) + update.term(X) + logit(0.4))
    np.testing.assert_allclose(update.predict_proba(X)[:, 1], expected, rtol=1e-12)
    assert ((update.predict_proba(X)[:, 1] > 0.4) == (update.predict(X) == 1)).all()


def test_a_linear_term_is_a_table_of_points(rows):
    X = rows[0]
    update = fit(rows, strength=2)
    assert update.concept_weights_.shape == (1, len(update.term_names_))
    assert "x3 is missing" in update.term_names_
    assert "category = c1" in update.term_names_
    assert update.concepts(X).shape == (N, 1)
    assert update.term(X).mean() == pytest.approx(update.intercept_, abs=1e-6)
    np.testing.assert_allclose(
        update.intercept_ + update.concepts(X) @ update.concept_contributions_, update.term(X)
    )


def test_concepts_are_sparse_and_share_no_column(rows):
    X = rows[0]
    update = fit(rows, strength=2, architecture="concepts", lambda_sparsity=0.02, epochs=100)
    W = update.concept_weights_
    assert W.shape == (2, len(update.term_names_))
    assert update.fairness_ > 0.7 > 0.6 > update.base_fairness_
    assert (W == 0).any(axis=0).all(), "a column belongs to one concept"
    assert (W == 0).all(axis=0).any(), "some terms are used by none"
    assert np.linalg.norm(W, axis=1) == pytest.approx(1)
    np.testing.assert_allclose(
        update.intercept_ + update.concepts(X) @ update.concept_contributions_, update.term(X)
    )
    assert {"sparsity", "diversity"} < set(update.history_)
    dense = fit(rows, strength=2, architecture="concepts", lambda_sparsity=0, epochs=100)
    assert update.scorecard_.n_terms_used < dense.scorecard_.n_terms_used


def test_an_mlp_is_not_linear_and_has_no_concepts(rows):
    X = rows[0]
    update = fit(rows, strength=2, architecture="mlp")
    assert [m.shape for m, _ in update.network_.layers] == [
        (update.network_.encoding.n_terms, 64),
        (64, 1),
    ]
    assert update.scorecard_ is None
    middle = X.assign(**{c: X[c].mean() for c in ("x1", "x2")}).iloc[:3]
    line = middle.assign(x0=[10.0, 20.0, 30.0], x3=0.0, category="c0")
    low, half, high = update.term(line)
    assert abs(half - (low + high) / 2) > 1e-3
    with pytest.raises(InputError, match=r"mlp.* has no concepts"):
        update.concepts(X)
    assert "Scorecard" not in update._repr_html_()


@pytest.mark.parametrize("architecture", ["mlp", "concepts"])  # linear: the steps of NumPy
def test_what_was_learned_on_the_device_is_what_decides(rows, architecture):
    """The last epoch's figures, taken while steps are nearly 0, are those of the fitted update."""
    update = fit(rows, strength=1, architecture=architecture, epochs=60)
    f, q = rows[0]["score"], update.predict_proba(rows[0])[:, 1]
    divergence = np.mean(f * np.log(f / q) + (1 - f) * np.log((1 - f) / (1 - q)))
    assert update.history_["divergence"][-1] == pytest.approx(divergence, rel=0.01)
    assert update.history_["change_rate"][-1] == pytest.approx(update.change_rate_, abs=0.01)
    assert update.n_iter_ == len(update.history_["divergence"]) == 60


# -- seeds, weights, columns ----------------------------------------------------------------------


def test_a_batch_of_strengths_equals_each_alone(rows):
    """With concepts; that of all rivals tries a linear term."""
    X, y, group = rows
    update = FRAPPE(ScoreColumn("score"), **{**QUICK, "architecture": "concepts"})
    weak, none, strong = fit_strengths(update, [0.5, 0, 4], X, y, sensitive_features=group)
    assert (none.term(X) == 0).all()
    for model in (weak, strong):
        alone = fit(rows, clone(update).set_params(strength=model.strength))
        assert (alone.term(X) == model.term(X)).all()


def test_the_same_seed_gives_the_same_bits_and_another_does_not(rows, plain):
    assert fit(rows).scorecard_ == plain.scorecard_
    assert fit(rows, random_state=1).scorecard_ != plain.scorecard_


def test_rows_without_weight_do_not_matter(rows, plain):
    X, y, group = rows
    half = np.arange(N) < N // 2
    garbled = X.assign(
        x0=np.where(half, X["x0"], 99.0),
        category=np.where(half, X["category"], "new"),
        score=np.where(half, X["score"], 0.999),
    )
    other_group = np.where(half, group, "a")
    usual = fit(rows, sample_weight=half * 1.0)
    other = fit((garbled, y, other_group), sample_weight=half * 1.0)
    assert usual.scorecard_ == other.scorecard_
    assert usual.scorecard_ != plain.scorecard_


def test_the_unit_of_the_weights_does_not_matter(rows):
    weight = np.random.default_rng(0).uniform(0.5, 2, N)
    one, other = (fit(rows, sample_weight=w).term(rows[0]) for w in (weight, 1e-25 * weight))
    np.testing.assert_allclose(one, other, atol=1e-4)


def test_locked_columns_are_not_read(rows):
    update = fit(rows, locked_features=["x0", "category"], epochs=0)
    assert update.term_names_ == ["x1", "x2", "x3", "x3 is missing"]
    with pytest.raises(InputError, match="locked_features"):
        fit(rows, locked_features=["x9"])


def test_locked_columns_of_an_array_are_not_read_either(rows):
    X, y, group = rows
    numbers = X[["x0", "x1"]].to_numpy()
    model = LogisticRegression().fit(numbers, y)
    update = FRAPPE(model, **{**QUICK, "epochs": 0}, locked_features=["x0"])
    assert fit((numbers, y, group), update).term_names_ == ["x1"]


def test_a_column_that_tells_the_group_is_refused(rows):
    X, y, group = rows
    with pytest.raises(InputError, match="'sex' of X determines the sensitive group"):
        fit((X.assign(sex=group), y, group), epochs=0)
    fit((X.assign(sex=group), y, group), locked_features=["sex"], epochs=0)


# -- the rest of the contract ---------------------------------------------------------------------


def test_an_interrupt_keeps_what_was_learned(rows, monkeypatch):
    advance, calls = training._advance, []

    def interrupted(*args):
        calls.append(args)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return advance(*args)

    monkeypatch.setattr(training, "_advance", interrupted)
    with pytest.warns(TrainingWarning, match="interrupted after 20 of 30 epochs"):
        update = fit(rows, epochs=30)
    assert update.n_iter_ == 20
    assert update.status_.startswith("Training was interrupted after 20 of 30 epochs.")
    assert update.term(rows[0]).any()


def test_progress_is_shown_where_wanted(rows, capsys):
    fit(rows, progress=True, epochs=1)
    assert "FRAPPE" in capsys.readouterr().err


def test_refitting_with_another_architecture_leaves_nothing_behind(rows, plain):
    update = fit(rows, architecture="mlp", epochs=1)
    update.set_params(architecture="linear", epochs=QUICK["epochs"])
    fit(rows, update)
    assert update.network_ is None
    assert (update.term(rows[0]) == plain.term(rows[0])).all()


def test_parameters_without_meaning_are_refused(rows):
    for params, words in [
        ({"architecture": "tree"}, "architecture='tree' is not known; choose one of linear, mlp"),
        ({"hidden": (0,)}, r"hidden=\(0,\) must be a tuple or list of the sizes"),
        ({"kernel_length": 0}, "kernel_length=0 must be a finite number > 0"),
        ({"n_concepts": 0}, "n_concepts=0"),
        ({"epochs": -1}, "epochs=-1"),
        ({"learning_rate": 0}, "learning_rate=0"),
        ({"lambda_sparsity": -1}, "lambda_sparsity=-1"),
        ({"batch_size": 0}, "batch_size=0"),
    ]:
        with pytest.raises(InputError, match=words):
            fit(rows, **params)


def test_the_default_sweep_goes_from_hardly_a_change_to_near_parity(rows):
    update = FRAPPE(ScoreColumn("score"), **{**QUICK, "epochs": 100})
    first, last = update.default_strengths[1], update.default_strengths[-1]
    X, y, group = rows
    found = fit_strengths(update, [0, first, 1, last], X, y, sensitive_features=group)
    check_order([found[0], *found[2:]])
    assert found[1].change_rate_ < 0.05
    assert found[-1].fairness_ > 0.9 > 0.6 > found[0].fairness_
