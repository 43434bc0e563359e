"""The solver: its losses against plain NumPy, its training against what each term asks for."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit, log_softmax

from commod._solvers.problem import AdversaryProblem, Penalties, RatioSchedule, TrainingRows
from commod._solvers.training import adversarial
from commod._solvers.training.adversarial import AdversarySpec, RatioSpec
from commod._solvers.training.loop import Clock, rows_on_device
from commod._solvers.training.networks import Architecture

pytestmark = pytest.mark.usefixtures("quick_compilation")


def make_problem(n=96, p=3, n_groups=2, sees_label=False, seed=0, n_strata=0, rightness=False):
    rng = np.random.default_rng(seed)
    group = rng.integers(n_groups, size=n)
    numeric = rng.normal(size=(n, p)) + group[:, None] * [1.0, 0.0, -1.0]
    codes = np.column_stack([rng.integers(3, size=n), 2 + rng.integers(2, size=n)])
    mean = np.array([(codes == c).any(axis=1).mean() for c in range(3)])
    margin = numeric[:, 0] + 0.5 * rng.normal(size=n)
    single = np.float32
    return SimpleNamespace(
        numeric=((numeric - numeric.mean(axis=0)) / numeric.std(axis=0)).astype(single),
        codes=codes.astype(np.int32),
        code_mean=mean.astype(single),
        code_scale=(1 / np.sqrt(mean * (1 - mean))).astype(single),
        margin=margin.astype(single),
        label=(rng.random(n) < expit(margin)).astype(single),
        group=group.astype(np.int32),
        weight=rng.uniform(0.5, 2, n).astype(single),
        adversaries=(
            AdversaryProblem(
                weight=rng.uniform(0, 2, n).astype(single),
                sees_label=sees_label,
                stratum=rng.integers(-1, n_strata, n).astype(np.int32) if n_strata else None,
                n_strata=n_strata,
                reads_rightness=rightness,
            ),
        ),
        ratio_weight=rng.uniform(0.5, 2, n).astype(single),
        offset=-0.4,
        n_groups=n_groups,
        n_terms=p + 3,
    )


def changed(problem, **fields):
    return SimpleNamespace(**{**vars(problem), **fields})


def training_rows(problem):
    by_row = ("numeric", "codes", "margin", "label", "group", "weight", "ratio_weight")
    shared = ("code_mean", "code_scale", "offset")
    return TrainingRows.of(
        {name: getattr(problem, name) for name in by_row},
        **{name: getattr(problem, name) for name in shared},
    )


def device_rows(problem):
    return rows_on_device(adversarial.with_adversaries(training_rows(problem), problem.adversaries))


def make_spec(problem, *layers, n_concepts=2):
    """What the solver is compiled for, with adversaries of 4 hidden units."""
    adversaries = (AdversarySpec.of(a, (4,), problem.n_groups) for a in problem.adversaries)
    return RatioSpec(Architecture(n_concepts, (problem.n_terms, *layers)), tuple(adversaries))


def schedule(**changes):
    return RatioSchedule(
        **{
            "n_concepts": 2,
            "hidden": (5,),
            "epochs": 12,
            "batch_size": 32,
            "warmup_epochs": 1,
            "ramp_epochs": 3,
            "learning_rate": 0.05,
            "adversary_hidden": (4,),
            "adversary_steps": 2,
            "adversary_learning_rate": 0.01,
            "adaptive_fairness": True,
            **changes,
        }
    )


def penalties(fair=1.0, ratio=0.1, sparsity=0.0, diversity=0.0):
    columns = np.broadcast_arrays(*np.atleast_1d(fair, ratio, sparsity, diversity))
    return Penalties(*(c.astype(np.float32) for c in columns))


def train(problem, seeds=(0,), progress=None, weights=None, **changes):
    told = training_rows(problem), problem.adversaries, problem.n_groups
    plan = schedule(**changes)
    return adversarial.train_ratio(*told, weights or penalties(), np.array(seeds), plan, progress)


def weights_of(solution):
    """W of all models, shape (m, k, d)."""
    return np.stack([solution.concepts(i).weights for i in range(len(solution.layers[0][0]))])


def penalties_of(fair, *others):
    """The weights of one model in one step, with one weight of fairness per adversary."""
    return Penalties((fair,), *others)


# compiled whole: one by one, its operations would be compiled for each shape
@partial(jax.jit, static_argnames="spec")
def ratio_loss(ratio, adversaries, rows, weights, spec):
    return adversarial._ratio_loss(ratio, adversaries, rows.as_batch(), weights, spec)


def dense_terms(problem):
    """The standardised design matrix that the solver never builds."""
    n, c = len(problem.margin), len(problem.code_mean)
    one_hot = np.zeros((n, c + 1))
    for codes in problem.codes.T:
        one_hot[np.arange(n), codes] += 1
    return np.hstack([problem.numeric, (one_hot[:, :c] - problem.code_mean) * problem.code_scale])


def test_every_loss_term_equals_plain_numpy():
    """Of two adversaries: one reads the edited margin alone, the other all that it can."""
    k, n_strata = 3, 4
    problem = make_problem(n_groups=3, sees_label=True, n_strata=n_strata, rightness=True)
    (wide,) = problem.adversaries
    narrow = AdversaryProblem(weight=wide.weight[::-1].copy(), sees_label=False)
    problem = changed(problem, adversaries=(narrow, wide))
    spec = make_spec(problem, n_concepts=k)
    assert spec.figures[1:3] == ("adversary_1", "adversary_2")
    rng = np.random.default_rng(1)
    d = problem.n_terms
    W, v, b = rng.normal(size=(k, d)), rng.normal(size=k), 0.7

    r = b + dense_terms(problem) @ (v @ W)
    edited = r * problem.margin
    mean = lambda values, weight: np.average(values, weights=weight)  # noqa: E731
    centre = mean(problem.margin, problem.weight)
    spread = np.sqrt(mean((problem.margin - centre) ** 2, problem.weight))
    scaled = edited / spread
    right = scaled * np.where(problem.label == 1, 1, -1)
    strata = [wide.stratum == stratum for stratum in range(n_strata)]
    adversaries, of_adversaries = [], []
    for one, inputs in (
        (narrow, scaled[:, None]),
        (wide, np.column_stack([right, problem.label, *strata])),
    ):
        first, second = rng.normal(size=(inputs.shape[1], 4)), rng.normal(size=(4, 3))
        bias = rng.normal(size=4), rng.normal(size=3)
        log_proba = log_softmax(np.maximum(inputs @ first + bias[0], 0) @ second + bias[1], axis=1)
        of_adversaries.append(mean(-log_proba[np.arange(96), problem.group], one.weight))
        adversaries.append(jnp.concatenate([first.T.ravel(), bias[0], second.T.ravel(), bias[1]]))
    unit = W / np.linalg.norm(W, axis=1, keepdims=True)
    cosines = (unit @ unit.T)[np.triu_indices(k, 1)]
    expected = [
        mean(np.logaddexp(0, edited - 0.4) - problem.label * (edited - 0.4), problem.weight),
        *of_adversaries,
        mean((r - 1) ** 2, problem.ratio_weight),
        np.abs(v) @ np.abs(W).sum(axis=1),
        np.mean(cosines**2),
        mean(r < 0, problem.weight),
    ]
    ratio = jnp.concatenate([W.ravel(), v, jnp.array([b])])
    weights = Penalties((2.0, 3.0), 0.3, 0.2, 0.1)
    loss, parts = ratio_loss(ratio, adversaries, device_rows(problem), weights, spec)
    np.testing.assert_allclose(parts, expected, rtol=2e-5)
    total = np.array([1, -2.0, -3.0, 0.3, 0.2, 0.1, 0]) @ expected
    assert float(loss) == pytest.approx(total, rel=1e-4)


def test_the_loss_of_layers_has_no_penalty_on_concepts():
    problem = make_problem()
    spec = make_spec(problem, 5, 1, n_concepts=0)
    rng = np.random.default_rng(1)
    A, a, B, b = rng.normal(size=(problem.n_terms, 5)), rng.normal(size=5), rng.normal(size=5), 0.7
    r = np.maximum(dense_terms(problem) @ A + a, 0) @ B + b
    ratio = jnp.concatenate([A.ravel(), a, B, jnp.array([b])])
    adversary = jnp.asarray(rng.normal(size=4 + 4 + 8 + 2))
    weights = penalties_of(2.0, 0.3, 5.0, 5.0)
    loss, parts = ratio_loss(ratio, [adversary], device_rows(problem), weights, spec)
    label, group, distance, changed = parts.tolist()
    edited = r * problem.margin - 0.4
    errors = np.logaddexp(0, edited) - problem.label * edited
    assert label == pytest.approx(np.average(errors, weights=problem.weight), rel=2e-5)
    assert distance == pytest.approx(
        np.average((r - 1) ** 2, weights=problem.ratio_weight), rel=1e-4
    )
    assert changed == pytest.approx(np.average(r < 0, weights=problem.weight), rel=1e-5)
    assert float(loss) == pytest.approx(label - 2 * group + 0.3 * distance, rel=1e-5)


def test_the_gradient_of_the_ratio_loss_equals_finite_differences():
    problem = make_problem()
    spec = make_spec(problem)
    with jax.enable_x64(True):
        rows = device_rows(problem)
        rows = jax.tree.map(lambda a: a.astype(jnp.float64) if a.dtype == jnp.float32 else a, rows)
        rng = np.random.default_rng(2)
        ratio = jnp.asarray(rng.normal(size=2 * problem.n_terms + 3))
        adversary = jnp.asarray(rng.normal(size=4 + 4 + 8 + 2))
        weights = penalties_of(2.0, 0.3, 0.0, 0.1)  # the L1 has its own step

        @jax.jit
        @jax.value_and_grad
        def loss_and_slope(x):
            return adversarial._ratio_loss(x, [adversary], rows.as_batch(), weights, spec)[0]

        slope = np.asarray(loss_and_slope(ratio)[1])
        for direction in rng.normal(size=(5, len(ratio))):
            step = 1e-6 * direction
            rise = float(loss_and_slope(ratio + step)[0]) - float(loss_and_slope(ratio - step)[0])
            assert rise / 2e-6 == pytest.approx(slope @ direction, rel=1e-5, abs=1e-6)


def test_an_adversary_of_one_step_takes_the_step_that_a_loop_would():
    problem = make_problem()
    spec = make_spec(problem)
    state = adversarial._initial_state(0, spec)
    settings = adversarial._settings(schedule(adversary_steps=1))
    assert settings.adversary_steps == 1
    clock = Clock(np.int32(0), np.float32(0.5))

    @jax.jit
    def by_a_loop_and_without(state, rows):
        kinds = (spec, spec._replace(single_step=True))
        batch = rows.as_batch()
        return [adversarial._train_adversaries(state, batch, settings, clock, k)[0] for k in kinds]

    found = by_a_loop_and_without(state, device_rows(problem))
    looped, single = found
    np.testing.assert_allclose(single.values, looped.values, rtol=1e-5)
    assert int(looped.n_steps) == int(single.n_steps) == 1
    moves = np.abs(single.values - state[1][0].layers.values)
    assert moves.max() == pytest.approx(0.5 * 0.01, rel=1e-3)  # Adam's first step is its rate


def test_no_epochs_leave_the_ratio_at_exactly_one():
    solution = train(make_problem(), epochs=0)
    assert solution.epochs_done == 0
    concepts = solution.concepts(0)
    assert not concepts.contributions.any()
    assert concepts.intercept == 1.0
    assert concepts.weights.any(), "a ratio that starts with W = 0 could never move"


def test_the_same_seed_gives_the_same_bits_and_another_does_not():
    problem = make_problem()
    first, again, other = (train(problem, seeds=(seed,)) for seed in (3, 3, 4))
    assert np.array_equal(weights_of(first), weights_of(again))
    assert not np.array_equal(weights_of(first), weights_of(other))


def test_a_batch_of_models_equals_models_trained_alone():
    problem = make_problem()
    weights = penalties(fair=[0.5, 2.0, 2.0], ratio=[0.1, 0.1, 0.5])
    together = train(problem, seeds=(0, 1, 2), weights=weights)
    for i, (fair, ratio) in enumerate([(0.5, 0.1), (2.0, 0.1), (2.0, 0.5)]):
        alone = train(problem, seeds=(i,), weights=penalties(fair, ratio))
        np.testing.assert_allclose(
            together.concepts(i).weights, alone.concepts(0).weights, rtol=1e-4, atol=1e-5
        )


def test_rows_without_weight_do_not_matter():
    problem = make_problem()
    half = np.arange(96) < 48
    off = {name: getattr(problem, name) * half for name in ("weight", "ratio_weight")}
    off["adversaries"] = tuple(replace(a, weight=a.weight * half) for a in problem.adversaries)
    silent = changed(problem, **off)
    garbled = changed(silent, label=np.where(half, problem.label, 1 - problem.label))
    one, other = (train(p) for p in (silent, garbled))
    assert not np.array_equal(silent.label, garbled.label)
    assert np.array_equal(weights_of(one), weights_of(other))


def test_the_first_warm_up_epochs_train_the_adversary_alone():
    solution = train(make_problem(), epochs=1, warmup_epochs=9, learning_rate=1e-9)
    assert solution.history["ratio"].shape == (1, 1)
    quick = train(make_problem(), epochs=1, warmup_epochs=0, learning_rate=1e-9)
    assert solution.history["adversary"] < quick.history["adversary"]


def test_a_strong_sparsity_penalty_gives_exact_zeros():
    dense = train(make_problem(), epochs=40)
    sparse = train(make_problem(), epochs=40, weights=penalties(sparsity=0.3))
    assert weights_of(dense).all()
    # a concept that has lost its contribution is not shrunk any further: r does not read it
    concepts = sparse.concepts(0)
    in_use = np.abs(concepts.contributions) > 0.01
    assert np.count_nonzero(concepts.weights[in_use]) < concepts.weights.size / 2


def test_diversity_drives_concepts_apart():
    def cosine(diversity):
        W = train(make_problem(), epochs=40, weights=penalties(diversity=diversity))
        W = W.concepts(0).weights
        return abs(W[0] @ W[1]) / np.linalg.norm(W[0]) / np.linalg.norm(W[1])

    assert cosine(5.0) < 0.05 < cosine(0.0)


def test_an_interrupt_keeps_what_was_learned(monkeypatch):
    reports = []

    def interrupt(done, total):
        reports.append((done, total))
        if done >= 20:
            raise KeyboardInterrupt

    solution = train(make_problem(), progress=interrupt, epochs=50)
    assert reports == [(10, 51), (20, 51)]
    assert solution.interrupted
    assert solution.epochs_done == 19
    assert solution.concepts(0).contributions.any()
    assert solution.history["label"].shape == (1, 19)


def test_the_weight_of_fairness_falls_with_the_advantage_of_the_adversary():
    problem = make_problem()
    spec = make_spec(problem)
    _, (state,) = adversarial._initial_state(0, spec)

    def weight(now, highest, adaptive=True):
        settings = adversarial._settings(schedule(adaptive_fairness=adaptive))
        known = state._replace(advantage=jnp.float32(now), highest_advantage=jnp.float32(highest))
        return float(adversarial._fairness_factor(known, settings))

    assert weight(0.04, 0.04) == pytest.approx(5)
    assert weight(0.01, 0.04) == pytest.approx(2)
    assert weight(-0.01, 0.04) == 1
    assert weight(1e-4, 1e-4) < 2, "where the score does not predict the group"
    assert weight(0.01, 0.04, adaptive=False) == 1


def test_the_blind_loss_is_the_entropy_of_the_group():
    for sees_label, n_strata in [(False, 0), (True, 0), (True, 2), (False, 2)]:
        problem = make_problem(n_groups=3, sees_label=sees_label, n_strata=n_strata)
        (adversary,) = problem.adversaries
        weight = adversary.weight.astype(float)
        blind = np.average(adversarial._surprise(training_rows(problem), adversary), weights=weight)
        labels = problem.label if sees_label else np.zeros(96)
        if n_strata:
            labels = labels + 10 * adversary.stratum
        entropy = 0.0
        for label in np.unique(labels):
            for group in range(3):
                cell = weight[(labels == label) & (problem.group == group)].sum()
                share = cell / weight[labels == label].sum()
                entropy -= cell / weight.sum() * np.log(share) if cell else 0.0
        assert blind == pytest.approx(entropy, rel=1e-5)
