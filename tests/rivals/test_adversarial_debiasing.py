"""Adversarial debiasing: its gradients and steps against plain NumPy, and the contract."""

from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import expit, log_softmax
from sklearn.base import clone

from commod import ScoreColumn
from commod._solvers.problem import Schedule, TrainingRows
from commod._solvers.training import loop as training
from commod._solvers.training.networks import layer_lengths
from commod.datasets import make_biased
from commod.exceptions import DataWarning, InputError, TrainingWarning
from commod.rivals import AdversarialDebiasing, fit_strengths
from commod.rivals import _jax_training as solver
from commod.rivals._jax_training import combine_gradients

pytestmark = pytest.mark.usefixtures("quick_compilation")

N = 480
QUICK = {
    "epochs": 20,
    "hidden": (16,),
    "learning_rate": 0.005,
    "random_state": 0,
    "progress": False,
}


@pytest.fixture(scope="module")
def data():
    """Numbers with gaps, a category, three groups."""
    data = make_biased(N, group_shares=(0.5, 0.3, 0.2), bias=2.5, n_categories=3, random_state=1)
    X = data.data[["category", "x0", "x1", "x2", "x3"]].assign(score=data.proba_target)
    X = X.assign(x0=20 + 5 * X["x0"], x2=3 * X["x2"] - 7)
    X.loc[np.random.default_rng(0).random(N) < 0.2, "x3"] = np.nan
    return X, np.asarray(data.target), np.asarray(data.sensitive_features)


@pytest.fixture(scope="module")
def rows(data):
    X, y, group = data
    return X, y, np.where(group == "g0", "a", "b")


def fit(rows, update=None, sample_weight=None, **params):
    X, y, group = rows
    update = update or AdversarialDebiasing(ScoreColumn("score"), **{**QUICK, **params})
    return update.fit(X, y, sensitive_features=group, sample_weight=sample_weight)


@pytest.fixture(scope="module")
def plain(rows):
    """What is learned with the quick settings and nothing else."""
    return fit(rows)


# -- the gradient the predictor follows -----------------------------------------------------------

combined = jax.jit(combine_gradients, static_argnums=3)  # one compilation, not one per operation


def test_gradients_combine_as_by_hand():
    of_label, of_adversary = jnp.array([3.0, 4.0]), jnp.array([1.0, 0.0])
    assert combined(of_label, of_adversary, 0.5, (2,)).tolist() == [-0.5, 4.0]
    assert combined(of_label, of_adversary, 0.5, (1, 1)).tolist() == [-0.5, 4.0]
    assert combined(of_label, jnp.ones(2), 0.0, (2,)).tolist() == [-0.5, 0.5]
    assert combined(of_label, jnp.ones(2), 0.0, (1, 1)).tolist() == [0.0, 0.0]


numbers = st.floats(-4, 4, width=32).map(lambda x: round(x, 3))
vectors = arrays(np.float64, 6, elements=numbers)


@settings(deadline=None)  # the first example compiles
@given(vectors, vectors, st.floats(0, 10))
def test_the_update_moves_against_the_adversary_by_the_strength(of_label, of_adversary, strength):
    with jax.enable_x64(True):
        found = np.asarray(combined(of_label, of_adversary, strength, (6,)))
    length = of_adversary @ of_adversary
    assert found @ of_adversary == pytest.approx(-strength * length, abs=1e-6 * (1 + strength))
    if not of_adversary.any():
        assert (found == of_label).all()
    elif length > 1e-2:
        projected = of_label - (of_label @ of_adversary) / length * of_adversary
        np.testing.assert_allclose(found, projected - strength * of_adversary, atol=1e-6)


@settings(deadline=None)
@given(vectors, vectors)
def test_tensors_are_projected_each_by_itself(of_label, of_adversary):
    with jax.enable_x64(True):
        a, b = of_label, of_adversary
        found = combined(a, b, 0.3, (2, 4))
        parts = [combined(a[i], b[i], 0.3, (n,)) for i, n in ((slice(2), 2), (slice(2, 6), 4))]
        assert np.asarray(found).tolist() == np.concatenate(parts).tolist()


# -- losses and steps, by plain NumPy -------------------------------------------------------------


ADVERSARY_RATE = 0.1


def make_problem(n=90, n_groups=2, sees_label=False, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(n_groups, size=n)
    numeric = rng.normal(size=(n, 3)) + group[:, None] * [1.0, 0.0, -1.0]
    single = np.float32
    return SimpleNamespace(
        numeric=((numeric - numeric.mean(axis=0)) / numeric.std(axis=0)).astype(single),
        codes=np.zeros((n, 0), np.int32),
        code_mean=np.zeros(0, single),
        code_scale=np.zeros(0, single),
        label=(rng.random(n) < expit(numeric[:, 0])).astype(single),
        group=group.astype(np.int32),
        decision=numeric[:, 0] > 0,
        weight=rng.uniform(0.5, 2, n).astype(single),
        adversary_weight=rng.uniform(0, 2, n).astype(single),
        offset=0.3,
        n_groups=n_groups,
        adversary_sees_label=sees_label,
    )


def training_rows(problem):
    by_row = ("numeric", "codes", "label", "group", "decision", "weight", "adversary_weight")
    shared = ("code_mean", "code_scale", "offset")
    return TrainingRows.of(
        {name: getattr(problem, name) for name in by_row},
        **{name: getattr(problem, name) for name in shared},
    )


def schedule(**changes):
    plan = {"epochs": 6, "batch_size": 90, "warmup_epochs": 2, "learning_rate": 0.05}
    return Schedule(**{**plan, **changes})


def trained(problem, strengths, seeds, plan, *, whole=True):
    return solver.train_predictor(
        training_rows(problem),
        problem.n_groups,
        np.array(strengths, np.float32),
        np.array(seeds),
        plan,
        hidden=(),
        adversary_hidden=(),
        adversary_rate=ADVERSARY_RATE,
        sees_label=problem.adversary_sees_label,
        projects_whole=whole,
    )


def shape_of(problem, hidden=(), pieces=None):
    sizes = (3, *hidden, 1)
    inputs = 3 if problem.adversary_sees_label else 1
    pieces = pieces or (sum(layer_lengths(sizes)),)
    return solver.DebiasingSpec(
        sizes, (inputs, problem.n_groups), problem.adversary_sees_label, pieces
    )


def adversary_inputs(problem, t):
    y = problem.label.astype(float)
    return np.column_stack([t, t * y, t * (1 - y)] if problem.adversary_sees_label else [t])


@partial(jax.jit, static_argnums=3)
def adversary_loss(adversary, logit, rows, spec):
    return solver.adversary_loss(adversary, logit, rows.as_batch(), spec)


@pytest.mark.parametrize("sees_label", [False, True])
def test_the_adversary_reads_the_sharpened_score_and_the_label_for_equalized_odds(sees_label):
    problem = make_problem(n_groups=3, sees_label=sees_label)
    rng = np.random.default_rng(1)
    logit = rng.normal(size=90)
    inputs = 3 if sees_label else 1
    c, A, a = -0.7, rng.normal(size=(inputs, 3)), rng.normal(size=3)
    guess = log_softmax(adversary_inputs(problem, expit(1.7 * logit)) @ A + a, axis=1)
    expected = np.average(-guess[np.arange(90), problem.group], weights=problem.adversary_weight)

    flat = jnp.concatenate([jnp.array([c]), A.ravel(), a])
    padded = training.padded(logit.astype(np.float32))

    def loss(rows):
        return float(adversary_loss(flat, padded, training.rows_on_device(rows), shape_of(problem)))

    rows = training_rows(problem)
    assert loss(rows) == pytest.approx(expected, rel=1e-5)
    turned = rows.add({"label": 1 - problem.label})
    assert (loss(turned) == loss(rows)) == (not sees_label)


def adam(theta, gradient, memory, t, rate):
    m, v = memory
    m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
    step = (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return theta - rate * step, (m, v)


def numpy_training(problem, start, strength, plan, pieces):
    """Linear predictor and linear adversary, full batches, every gradient written out."""
    x = np.column_stack([problem.numeric.astype(float), np.ones(90)])
    y, weight = problem.label.astype(float), problem.weight.astype(float)
    fair = problem.adversary_weight.astype(float)
    fair, weight = fair / fair.sum(), weight / weight.sum()
    one_hot = np.eye(problem.n_groups)[problem.group]
    theta, phi = (np.asarray(part.values, dtype=float) for part in start)
    memory, other_memory = (0.0, 0.0), (0.0, 0.0)
    inputs = 3 if problem.adversary_sees_label else 1
    for epoch in range(plan.epochs + plan.warmup_epochs):
        age = epoch - plan.warmup_epochs
        decay = 0.5 * (1 + np.cos(np.pi * max(age, 0) / plan.epochs))
        logit = x @ theta

        def backward(phi, logit=logit):
            """Return L_A's gradients by the adversary and by the logit."""
            A = phi[1 : 1 + inputs * problem.n_groups].reshape(inputs, -1)
            t = expit((1 + abs(phi[0])) * logit)
            features = adversary_inputs(problem, t)
            guess = np.exp(log_softmax(features @ A + phi[1 + A.size :], axis=1))
            by_guess = fair[:, None] * (guess - one_hot)
            per_t = adversary_inputs(problem, np.ones(90))
            by_exponent = (by_guess @ A.T * per_t).sum(axis=1) * t * (1 - t)
            by_c = np.sign(phi[0]) * (by_exponent @ logit)
            by_phi = np.concatenate([[by_c], (features.T @ by_guess).ravel(), by_guess.sum(axis=0)])
            return by_phi, by_exponent * (1 + abs(phi[0]))

        rate = decay * ADVERSARY_RATE
        phi, other_memory = adam(phi, backward(phi)[0], other_memory, epoch + 1, rate)
        of_label = x.T @ (weight * (expit(logit) - y))
        of_adversary = x.T @ backward(phi)[1]
        step = of_label
        if age >= 0:
            parts = []
            for p, a in zip(
                np.split(of_label, pieces), np.split(of_adversary, pieces), strict=True
            ):
                parts.append(p - (p @ a) / (a @ a) * a - strength * a)
            step = np.concatenate(parts)
        theta, memory = adam(theta, step, memory, epoch + 1, decay * plan.learning_rate)
    return theta


@pytest.mark.parametrize(("sees_label", "whole"), [(False, True), (True, False)])
def test_training_takes_the_steps_that_numpy_takes(sees_label, whole):
    problem = make_problem(sees_label=sees_label)
    plan, strengths = schedule(), (0.2, 2.0)
    found = trained(problem, strengths, (5, 6), plan, whole=whole)
    spec = shape_of(problem, pieces=None if whole else (3, 1))
    for i, strength in enumerate(strengths):
        start = solver.initial_debiasing(5 + i, spec)
        expected = numpy_training(problem, start, strength, plan, [] if whole else [3])
        matrix, bias = found.layers[0]
        np.testing.assert_allclose([*matrix[i][:, 0], *bias[i]], expected, atol=5e-4)


def test_while_warming_up_the_predictor_sees_labels_only():
    problem = make_problem()
    found = trained(problem, (0.1, 50.0), (0, 0), schedule(epochs=1, warmup_epochs=9))
    matrix, _ = found.layers[0]
    assert 0 < abs(matrix[0] - matrix[1]).max() < 0.12, "nine epochs of ten are the same"


# -- no strength, no change -----------------------------------------------------------------------


def test_strength_zero_keeps_the_base_model_bit_for_bit(rows):
    update = fit(rows, strength=0, threshold=0.3)
    X = rows[0]
    assert update.network_ is None
    assert update.n_iter_ == update.change_rate_ == 0
    assert (update.predict_proba(X)[:, 1] == X["score"]).all()
    assert (update.predict(X) == (X["score"] > 0.3)).all()


def test_no_epochs_keep_the_base_model(rows):
    assert fit(rows, strength=1, epochs=0).change_rate_ == 0


def test_labels_are_needed(rows):
    X, _, group = rows
    with pytest.raises(InputError, match=r"requires y .* trains a new model of the labels"):
        fit((X, None, group))


# -- what strength buys ---------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Column 'x2' of X nearly determines")
def test_equalized_odds_come_closer_for_three_groups(data):
    odds = {"constraints": "equalized_odds", "strength": 0.3}
    update = fit(data, **odds, epochs=160, learning_rate=0.002)
    assert update.fairness_ < 0.6 * update.base_fairness_


def test_one_error_rate_looks_at_the_groups_of_its_label_alone(rows, plain):
    X, y, group = rows
    shuffled = group.copy()
    shuffled[y == 1] = np.random.default_rng(0).permutation(group[y == 1])
    constraints = "false_positive_rate_parity"
    usual, other = (fit((X, y, g), constraints=constraints) for g in (group, shuffled))
    assert same(usual, other, X)
    assert not same(usual, plain, X)


def same(one, other, X):
    return (one.predict_proba(X) == other.predict_proba(X)).all()


@pytest.mark.filterwarnings("ignore:Column 'x2' of X nearly determines")
def test_a_group_left_out_trains_the_labels_alone(data):
    X, y, group = data
    with pytest.warns(DataWarning, match=r"1 group.* left out"):
        usual = fit(data, min_group_size=120)
    with pytest.warns(DataWarning, match="left out"):
        other = fit((X, y, np.where(group == "g2", "rare", group)), min_group_size=120)
    assert same(usual, other, X)


@pytest.mark.filterwarnings("ignore:Column 'x2' of X nearly determines")
def test_the_adversary_sees_only_rows_of_the_constraint(data, monkeypatch):
    for constraints, counted in [
        ("demographic_parity", (0, 1)),
        ("equalized_odds", (0, 1)),
        ("true_positive_rate_parity", (1,)),
        ("false_positive_rate_parity", (0,)),
    ]:

        class SeenError(Exception):
            pass

        def look(*given, **named):
            raise SeenError(given, named)

        monkeypatch.setattr(solver, "train_predictor", look)
        _, y, group = data
        with pytest.warns(DataWarning, match="left out"), pytest.raises(SeenError) as seen:
            fit(data, constraints=constraints, min_group_size=120, adversary_hidden=[4])
        (rows, _, strengths, *_), named = seen.value.args
        inside = np.isin(y, counted) & (group != "g2")
        assert (rows.by_row["adversary_weight"] == inside).all()
        assert (rows.by_row["weight"] == 1).all()
        assert (rows.by_row["group"][inside] == (group[inside] == "g1")).all()
        assert named["sees_label"] == (constraints == "equalized_odds")
        assert strengths.tolist() == [1.0]
        assert named["adversary_hidden"] == (4,)


# -- what is learned ------------------------------------------------------------------------------


def test_what_was_learned_on_the_device_is_what_decides(rows):
    """The change rate of the last epoch, whose steps are nearly 0, is that of the fitted update."""
    update = fit(rows, epochs=40)
    assert update.history_["change_rate"][-1] == pytest.approx(update.change_rate_, abs=0.01)
    assert update.n_iter_ == len(update.history_["label"]) == 40
    assert [m.shape[1] for m, _ in update.network_.layers] == [16, 1]


def test_the_layers_in_raw_units_by_hand(rows):
    """The network's output, from X written out as one-hot columns."""
    X = rows[0]
    update = fit(rows, strength=0.5)
    encoding = update.network_.encoding
    columns = []
    for name in encoding.term_names:
        if " = " in name:
            columns.append(X["category"] == name.partition(" = ")[2])
        elif name.endswith("is missing"):
            columns.append(X["x3"].isna())
        else:
            fill = next(c.fill for c in encoding.columns if c.name == name)
            columns.append(X[name].fillna(fill))
    (A, a), (B, b) = update.network_.layers
    logits = np.maximum(np.column_stack(columns).astype(float) @ A + a, 0) @ B[:, 0] + b
    np.testing.assert_allclose(update.predict_proba(X)[:, 1], expit(logits), rtol=1e-9)


def test_collapse_to_one_decision_is_said_aloud(rows):
    X, y, group = rows
    score = X["score"].where(np.arange(len(X)) >= 10, 0.9999999)  # the base model has positives
    rows = X.assign(score=score), y, group
    with pytest.warns(TrainingWarning, match=r"strength=1 .* one decision for all rows, 0"):
        update = fit(rows, threshold=0.999999)
    assert update.status_.startswith("At strength=1 training ended with one decision")
    assert not update.predict(rows[0]).any()


# -- seeds, weights, columns ----------------------------------------------------------------------


def test_a_batch_of_strengths_equals_each_alone(rows):
    X, y, group = rows
    update = AdversarialDebiasing(ScoreColumn("score"), **QUICK)
    strengths = [0.1, 0, 2]
    weak, none, strong = fit_strengths(update, strengths, X, y, sensitive_features=group)
    assert none.network_ is None
    for model in (weak, strong):
        assert same(fit(rows, clone(update).set_params(strength=model.strength)), model, X)


def test_the_same_seed_gives_the_same_bits_and_another_does_not(rows, plain):
    again, other = (fit(rows, random_state=seed) for seed in (0, 4))
    assert same(plain, again, rows[0])
    assert not same(plain, other, rows[0])


def test_rows_without_weight_do_not_matter(rows, plain):
    X, y, group = rows
    half = np.arange(N) < N // 2
    garbled = X.assign(x0=np.where(half, X["x0"], 99.0), score=np.where(half, X["score"], 0.999))
    labels, groups = np.where(half, y, 1 - y), np.where(half, group, "a")
    usual = fit(rows, sample_weight=half * 1.0)
    assert same(usual, fit((garbled, labels, groups), sample_weight=half * 1.0), X)
    assert not same(usual, plain, X)


# -- the rest of the contract ---------------------------------------------------------------------


@pytest.mark.parametrize(("calls_allowed", "done"), [(2, 10), (1, 0)])
def test_an_interrupt_keeps_what_was_learned(rows, monkeypatch, calls_allowed, done):
    """Ten epochs warm up: with one chunk of ten no adversary was met, and the base model stays."""
    advance, calls = training._advance, []

    def interrupted(*args):
        calls.append(args)
        if len(calls) > calls_allowed:
            raise KeyboardInterrupt
        return advance(*args)

    monkeypatch.setattr(training, "_advance", interrupted)
    with pytest.warns(TrainingWarning, match=f"interrupted after {done} of 20 epochs"):
        update = fit(rows)
    assert update.n_iter_ == done
    assert (update.network_ is None) == (done == 0)
    assert "Training was interrupted" in update.status_


def test_progress_is_shown_where_wanted(rows, capsys):
    fit(rows, progress=True, epochs=1)
    assert "AdversarialDebiasing" in capsys.readouterr().err


def test_parameters_without_meaning_are_refused(rows):
    for params, words in [
        ({"projection": "none"}, "projection='none' is not known; choose one of whole, tensor"),
        ({"hidden": (1.5,)}, r"hidden=\(1.5,\) must be a tuple or list of the sizes"),
        ({"adversary_hidden": 3}, "adversary_hidden=3 must be a tuple or list of the sizes"),
        ({"warmup_epochs": -1}, "warmup_epochs=-1"),
        ({"adversary_learning_rate": 0}, "adversary_learning_rate=0"),
    ]:
        with pytest.raises(InputError, match=words):
            fit(rows, **params)


def test_a_clone_has_the_same_parameters_and_is_not_fitted(rows):
    update = fit(rows, projection="tensor", adversary_hidden=(3,), epochs=0)
    copy = clone(update)
    assert copy.get_params() == update.get_params()
    assert not hasattr(copy, "network_")
