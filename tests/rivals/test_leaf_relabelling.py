"""Leaf relabelling: the hand example, brute force over all subsets of leaves, and the contract."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags

from commod import ScoreColumn, frontier
from commod.datasets import make_biased
from commod.exceptions import CommodWarning, InputError
from commod.rivals import LeafRelabelling, check_rival, fit_strengths, lineup
from commod.rivals import leaf_relabelling as cover
from commod.rivals.leaf_relabelling import cheapest_cover, greedy_cover

pytestmark = pytest.mark.filterwarnings("ignore::commod.exceptions.CommodWarning")


def leaf_table(*leaves):
    """Return X (the leaf), labels and groups from (favoured, deprived, positive) of each leaf."""
    leaf = np.repeat(np.arange(len(leaves)), [f + b for f, b, _ in leaves])
    group = np.concatenate([["F"] * f + ["B"] * b for f, b, _ in leaves])
    label = np.concatenate([[1] * p + [0] * (f + b - p) for f, b, p in leaves])
    return leaf[:, None].astype(float), label, group


HAND = leaf_table((5, 1, 5), (2, 5, 3), (3, 4, 1))  # the tree decides +, −, −


def fitted_tree(X, y, **parameters):
    return DecisionTreeClassifier(random_state=0, **parameters).fit(X, y)


def relabelling(model, rows, **parameters):
    X, y, group = rows
    update = LeafRelabelling(model, min_group_size=1, **parameters)
    return update.fit(X, y, sensitive_features=group)


@pytest.fixture(scope="module")
def mixed():
    """Return rows with text and gaps, and a pipeline that ends with a tree of 40 leaves."""
    data = make_biased(1000, bias=1.5, n_categories=3, random_state=0)
    X = data.data.assign(x3=data.data["x3"].where(np.arange(1000) % 5 > 0))
    numbers = list(X.select_dtypes("number").columns)
    texts = [name for name in X.columns if name not in numbers]
    encoder = make_column_transformer(
        (SimpleImputer(), numbers), (OneHotEncoder(handle_unknown="ignore"), texts)
    )
    model = make_pipeline(encoder, DecisionTreeClassifier(max_leaf_nodes=40, random_state=0))
    half = slice(0, 500)
    model.fit(X.iloc[half], data.target[half])
    return model, (X.iloc[500:], data.target[500:], np.asarray(data.sensitive_features)[500:])


# ---------------------------------------------------------------------------------------------
# The mathematics


def test_the_hand_example_relabels_one_leaf():
    for solver in ["greedy", "exact"]:
        tree = fitted_tree(*HAND[:2])
        update = relabelling(tree, HAND, strength=0.75, solver=solver)  # 0.4 becomes 0.1
        assert update.relabelled_.tolist() == [tree.apply([[1.0]])[0]]
        assert update.discrimination_ == pytest.approx(0.1)
        assert update.n_gains_ + update.n_losses_ == 7
        assert (update.base_accuracy_, update.accuracy_) == (0.75, 0.70)
        assert update.is_optimal_ == (solver == "exact")


def test_greedy_follows_the_ratios_and_goes_below_zero():
    """The ratios of the leaves are 2, 6 and 0.4, so the second leaf comes first."""
    tree = fitted_tree(*HAND[:2])
    leaves = tree.apply([[0.0], [1.0], [2.0]]).tolist()
    update = relabelling(tree, HAND, strength=1.0)
    assert sorted(update.relabelled_.tolist()) == sorted(leaves[:2])
    assert update.discrimination_ == pytest.approx(-0.3)
    assert "has the higher one now" in update._sentence()
    exact = relabelling(tree, HAND, strength=1.0, solver="exact")
    assert exact.relabelled_.tolist() == [leaves[0]]
    assert exact.discrimination_ == pytest.approx(0)
    assert (update.accuracy_, exact.accuracy_) == (0.5, 0.55)
    fewest = relabelling(tree, HAND, strength=1.0, solver="exact", objective="changes")
    assert fewest.relabelled_.tolist() == [leaves[0]]
    assert fewest.n_gains_ + fewest.n_losses_ == 6


items = st.integers(1, 9).flatmap(
    lambda m: st.tuples(
        st.lists(st.integers(1, 20), min_size=m, max_size=m),
        st.lists(st.integers(0, 12), min_size=m, max_size=m),
        st.lists(st.integers(1, 9), min_size=m, max_size=m),
    )
)

# In thousandths: a needed gain equals a sum of gains up to rounding, or differs by far more.
shares = st.integers(0, 1_000).map(lambda thousandths: thousandths / 1_000)


def best_of_all(gain, cost, size, needed):
    """Return the smallest cost, then size, of all subsets that gain enough."""
    subsets = np.array(list(itertools.product([0, 1], repeat=len(gain))))
    enough = subsets @ gain >= needed - 1e-9
    return min(zip(subsets[enough] @ cost, subsets[enough] @ size, strict=True))


@given(items=items, share=shares)
@settings(max_examples=60, deadline=None)
def test_the_cheapest_cover_is_that_of_brute_force(items, share):
    gain, cost, size = (np.array(values, dtype=float) for values in items)
    gain = gain / 40
    needed = share * gain.sum()
    best = best_of_all(gain, cost, size, needed)
    chosen, _ = cheapest_cover(gain, cost, size, needed)
    assert (cost @ chosen, size @ chosen) == best
    assert gain @ chosen >= needed - 1e-9
    greedy = greedy_cover(gain, cost, size, needed)
    assert gain @ greedy >= needed - 1e-9
    assert cost @ greedy >= best[0]


@given(items=items, share=shares.filter(bool))
@settings(max_examples=15, deadline=None)
def test_a_part_of_the_sets_gives_a_cover_that_is_not_called_optimal(items, share):
    gain, cost, size = (np.array(values, dtype=float) for values in items)
    needed = share * gain.sum()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cover, "MAX_ENTRIES", 2 * len(gain))
        chosen, is_optimal = cheapest_cover(gain, cost, size, needed)
    best, greedy = best_of_all(gain, cost, size, needed), greedy_cover(gain, cost, size, needed)
    assert best[0] <= cost @ chosen <= cost @ greedy
    assert gain @ chosen >= needed - 1e-9
    assert (cost @ chosen == best[0]) or not is_optimal


def test_many_items_are_covered_at_the_cost_that_an_integer_programme_finds():
    rng = np.random.default_rng(0)
    gain, size = rng.uniform(0.1, 1, 80), rng.integers(1, 50, 80).astype(float)
    cost = rng.integers(0, 40, 80).astype(float)
    chosen, is_optimal = cheapest_cover(gain, cost, size, gain.sum() / 3)
    limits = LinearConstraint(gain[None], lb=gain.sum() / 3)
    best = milp(cost, integrality=np.ones(80), bounds=Bounds(0, 1), constraints=limits)
    assert is_optimal
    assert cost @ chosen == pytest.approx(best.fun)


@given(seed=st.integers(0, 10_000), strength=st.floats(0.01, 1))
@settings(max_examples=8, deadline=None)
def test_a_tree_equals_brute_force_over_all_subsets_of_its_leaves(seed, strength):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 2))
    group = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    y = (X.sum(axis=1) + rng.normal(size=60) > 0).astype(int)
    tree = fitted_tree(X, y, max_leaf_nodes=7)
    leaf, base = tree.apply(X), tree.predict(X)

    def gap(decided):
        return decided[group == favoured].mean() - decided[group != favoured].mean()

    favoured = int(base[group == 1].mean() > base[group == 0].mean())
    best = {"accuracy": [], "changes": []}
    leaves = np.unique(leaf)
    for subset in itertools.product([False, True], repeat=len(leaves)):
        decided = np.where(np.isin(leaf, leaves[list(subset)]), 1 - base, base)
        if gap(decided) <= (1 - strength) * gap(base) + 1e-9:
            best["accuracy"].append((decided != y).mean())
            best["changes"].append((decided != base).mean())
    for objective, losses in best.items():
        args = {"solver": "exact", "objective": objective, "strength": strength}
        update = relabelling(tree, (X, y, group), **args)
        decided = update.predict(X)
        reached = (decided != (y if objective == "accuracy" else base)).mean()
        assert reached == pytest.approx(min(losses), abs=1e-12)
        assert gap(decided) <= (1 - strength) * gap(base) + 1e-9


def test_a_leaf_that_costs_nothing_comes_first_and_rounding_is_no_gain():
    gain, cost, size = np.array([0.1, 0.3, 0.2]), np.array([1.0, 0.0, 0.0]), np.array([1, 9, 5.0])
    assert greedy_cover(gain, cost, size, 0.1).tolist() == [False, False, True]
    assert greedy_cover(gain, cost, size, 0.3).tolist() == [False, True, True]
    assert not greedy_cover(gain, cost, size, 0.0).any()
    # The first leaf holds 3 of 10 in each group, and relabelling it would cost nothing.
    even = leaf_table((3, 3, 3), (5, 1, 5), (2, 6, 1))
    tree = fitted_tree(*even[:2])
    update = relabelling(tree, even, strength=1.0)
    assert tree.apply([[0.0]])[0] not in update.relabelled_


# ---------------------------------------------------------------------------------------------
# The update


def test_the_contract_holds_for_a_pipeline_with_text_and_gaps(mixed):
    model, (X, y, group) = mixed
    before = model[-1].tree_.value.copy()
    check_rival(LeafRelabelling(model, solver="exact"), X, y, sensitive_features=group)
    update = relabelling(model, (X, y, group), solver="exact")
    assert (model[-1].tree_.value == before).all()
    inputs = model[:-1].transform(X)
    alone = relabelling(model[-1], (inputs, y, group), solver="exact")
    assert (alone.predict(inputs) == update.predict(X)).all()
    proba = update.predict_proba(X)[:, 1]
    assert ((proba > 0.5) == (update.predict(X) == 1)).all()


def test_more_strength_leaves_less_discrimination_within_the_limit(mixed):
    model, (X, y, group) = mixed
    for solver, objective in itertools.product(["greedy", "exact"], ["accuracy", "changes"]):
        update = LeafRelabelling(model, solver=solver, objective=objective)
        models = fit_strengths(
            update, update.default_strengths[::3], X, y, sensitive_features=group
        )
        bounds = [(1 - m.strength) * models[0].discrimination_ for m in models]
        assert models[0].change_rate_ == 0
        assert all(m.discrimination_ <= b + 1e-9 for m, b in zip(models, bounds, strict=True))
        assert max(m.fairness_ for m in models) > models[0].fairness_ + 0.15
        assert all(len(m.relabelled_) > 0 for m in models[1:])
    assert all(m.is_optimal_ for m in models)
    curve = frontier(update, X, y, sensitive_features=group).frame()
    assert not (curve["change_rate"] < curve["limit"] - 1e-9).any()


def test_the_smallest_cost_is_never_above_that_of_the_greedy_choice(mixed):
    model, rows = mixed
    for strength in (0.3, 0.7, 1.0):
        args = {"objective": "changes", "strength": strength}
        greedy, exact = (relabelling(model, rows, solver=s, **args) for s in ("greedy", "exact"))
        assert exact.change_rate_ <= greedy.change_rate_


def test_no_labels_are_needed_to_count_changes(mixed):
    model, (X, y, group) = mixed
    with pytest.raises(InputError, match=r'needs y.*objective="changes"'):
        LeafRelabelling(model).fit(X, sensitive_features=group)
    update = LeafRelabelling(model, objective="changes")
    without = clone(update).fit(X, sensitive_features=group)
    assert (without.predict(X) == update.fit(X, y, sensitive_features=group).predict(X)).all()
    assert get_tags(LeafRelabelling(model)).needs_labels
    assert not get_tags(update).needs_labels
    assert get_tags(update).needs_tree


def test_whole_weights_mean_repetition():
    weight = np.random.default_rng(0).integers(1, 4, len(HAND[1]))
    times = np.repeat(np.arange(len(HAND[1])), weight)
    X, y, group = HAND
    tree = fitted_tree(X, y)
    update = LeafRelabelling(tree, strength=0.5, min_group_size=1, solver="exact")
    weighed = clone(update).fit(X, y, sensitive_features=group, sample_weight=weight)
    repeated = clone(update).fit(X[times], y[times], sensitive_features=group[times])
    assert (weighed.relabelled_ == repeated.relabelled_).all()
    assert weighed.discrimination_ == pytest.approx(repeated.discrimination_)


def test_any_threshold_and_a_rejecting_label(mixed):
    model, (X, y, group) = mixed
    for parameters in ({"threshold": 0.3}, {"pos_label": 0}):
        update = relabelling(model, (X, y, group), strength=0.8, **parameters)
        assert update.fairness_ > update.base_fairness_
        leaf = model[-1].apply(model[:-1].transform(X))
        assert (np.isin(leaf, update.relabelled_) == update.changes(X).changed).all()


def test_a_leaf_without_fit_rows_keeps_its_decision(mixed):
    model, (X, y, group) = mixed
    update = relabelling(model, (X[:60], y[:60], group[:60]))
    leaf = model[-1].apply(model[:-1].transform(X))
    unseen = ~np.isin(leaf, leaf[:60])
    assert unseen.any()
    assert not update.changes(X).changed[unseen].any()


def test_a_small_group_counts_in_no_rate(mixed):
    model, (X, y, group) = mixed
    group = np.where(np.arange(len(X)) < 8, 9, group)
    update = LeafRelabelling(model, strength=0.6).fit(X, y, sensitive_features=group)
    alone = LeafRelabelling(model, strength=0.6, objective="changes")
    assert update.fairness_ > update.base_fairness_
    assert alone.fit(X, sensitive_features=group).change_rate_ > 0


def test_hostile_tables_give_no_warning():
    for seed in range(6):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(12, 60))
        X = np.column_stack([rng.choice([0.0, 1e30, -1e30], n), rng.integers(0, 3, n), np.ones(n)])
        y = rng.integers(0, 2, n) if seed % 3 else np.arange(n) % 7 % 2
        tree = fitted_tree(X, y, max_depth=seed % 6 + 1)
        group = rng.choice(["a", "b"], n)
        weight = rng.choice([0.0, 1.0, 7.5], n)
        group[:2], weight[:2] = ["a", "b"], 1.0
        update = LeafRelabelling(
            tree,
            min_group_size=1,
            solver=("greedy", "exact")[seed % 2],
            threshold=(0.5, 0.2)[seed % 2],
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", CommodWarning)
            try:
                update.fit(X, y, sensitive_features=group, sample_weight=weight)
            except InputError as error:  # nobody is above the threshold
                assert error.parameter == "threshold"
                continue
            update.predict_proba(X)


def test_a_base_model_without_a_tree_is_refused():
    for model in [ScoreColumn("score"), LogisticRegression(), make_pipeline(LogisticRegression())]:
        with pytest.raises(
            InputError, match=r"(?s)leaves of a decision tree.*ControlledDebiaser"
        ) as e:
            LeafRelabelling(model).fit(*HAND[:2], sensitive_features=HAND[2])
        assert e.value.parameter == "estimator"
        assert "decision tree" in lineup(model).left_out["LeafRelabelling"]


def test_the_lineup_of_a_tree_has_leaf_relabelling(mixed):
    assert isinstance(lineup(mixed[0])["LeafRelabelling"], LeafRelabelling)
    assert "LeafRelabelling" in lineup(mixed[0], constraints="equalized_odds").left_out


def test_three_groups_are_refused(mixed):
    model, (X, y, _) = mixed
    with pytest.raises(InputError, match="compares two groups; got 3"):
        LeafRelabelling(model).fit(X, y, sensitive_features=np.arange(len(X)) % 3)


def test_parameters_without_meaning_are_refused(mixed):
    for wrong in [{"solver": "fast"}, {"objective": "loss"}, {"strength": 2}]:
        with pytest.raises(InputError, match=next(iter(wrong))):
            relabelling(*mixed, **wrong)
