"""Constraint: values, inequalities and cells agree with brute force; new ones fit in."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from commod import audit, bounds, frontier, report
from commod._record.audit import Request
from commod.datasets import make_biased
from commod.exceptions import InputError
from commod.metrics import fairness_value
from commod.metrics._cells import comparisons, worst_value
from commod.metrics._constraint import (
    CONSTRAINTS,
    FALSE_POSITIVE_RATE,
    FORMS,
    SELECTION_RATE,
    TRUE_POSITIVE_RATE,
    Constraint,
    get_constraint,
)
from commod.metrics._people import People
from quick_updates import quick_control
from tables_of_cases import every_line

EVERY = every_line("constraint", CONSTRAINTS.values())
people = st.lists(
    st.tuples(st.sampled_from("abc"), st.booleans(), st.booleans()), min_size=12, max_size=60
)


def arrays(rows):
    group, label, decision = (np.array(part) for part in zip(*rows, strict=True))
    codes = np.searchsorted(np.unique(group), group)
    return codes, len(np.unique(group)), label, decision


def table_of(constraint, codes, n_groups, label, decisions):
    cells = People((constraint,), codes, n_groups, label).index
    shape = (len(constraint.rate_rows), n_groups)
    sizes = np.bincount(cells[cells >= 0], minlength=shape[0] * n_groups)
    positives = np.bincount(cells[(cells >= 0) & decisions], minlength=shape[0] * n_groups)
    return sizes.reshape(shape), positives.reshape(shape)


@given(constraint=st.sampled_from(list(CONSTRAINTS.values())), rows=people)
def test_cells_count_every_row_once_and_give_the_value_of_the_rows(constraint, rows):
    codes, n_groups, label, decisions = arrays(rows)
    sizes, positives = table_of(constraint, codes, n_groups, label, decisions)
    value = fairness_value(
        constraint, label * 1, decisions * 1, sensitive_features=codes, pos_label=1
    )
    if n_groups < 2 or not sizes.all():
        assert np.isnan(value)
    else:
        exact = constraint.value_from_counts(sizes, positives)
        assert np.isnan(value) if exact is None else value == float(exact)
    by_label = np.zeros((2, n_groups), dtype=int)
    np.add.at(by_label, (label.astype(int), codes), decisions)
    assert constraint.by_rate_row(by_label).tolist() == positives.tolist()
    assert constraint.by_rate_row(by_label.T, axis=1).tolist() == positives.T.tolist()
    codes[0] = -1  # a group that is left out
    cells = People((constraint,), codes, n_groups, label).index
    for cell, code, true_label in zip(cells, codes, label, strict=True):
        counted = [
            i * n_groups + code
            for i, row in enumerate(constraint.rate_rows)
            if code >= 0 and row.label in (None, true_label)
        ]
        assert [cell] == (counted or [-1])


LINEAR = [name for name in FORMS if all(m.is_linear for m in get_constraint(name).measures)]


@settings(max_examples=4 * len(LINEAR))
@given(name=st.sampled_from(LINEAR), seed=st.integers(0, 2**32 - 1))
def test_linear_inequalities_hold_exactly_where_the_bound_is_met(name, seed):
    constraint, rng = get_constraint(name), np.random.default_rng(seed)
    labels = [-1 if row.label is None else int(row.label) for row in constraint.rate_rows]
    cells = np.zeros(len(labels), int), np.array(labels)
    n_groups = int(rng.integers(2, 5))
    sizes = rng.integers(1, 10, (len(constraint.rate_rows), n_groups))
    positives = rng.integers(1, sizes + 1).ravel().astype(float)
    compared = comparisons(constraint, *cells, sizes * 1.0, np.ones((1, n_groups), dtype=bool))
    bound = rng.integers(1, 20) / 20 * constraint.largest + 1e-6  # no value is next to it
    forms = (one.linear_form(bound, np.zeros_like(positives)) for one in compared)
    excesses = [(matrix @ positives - limit).max() for matrix, limit in forms]
    value = worst_value(constraint, compared, positives)
    assume(not np.isnan(value))  # a ratio of rates that are all 0 is not defined
    assert (max(excesses) <= 0) == constraint.is_met(value, bound)


@EVERY
def test_the_fairest_and_the_least_fair_value(constraint):
    assert constraint.is_met(constraint.ideal, constraint.near_ideal)
    assert constraint.is_met(constraint.near_ideal, constraint.least_fair)
    assert {constraint.ideal, constraint.least_fair} == {0.0, constraint.largest}
    assert constraint.towards_ideal(0.4, 1.0) == constraint.ideal
    assert constraint.towards_ideal(0.4, 0.0) == 0.4


def test_positive_labels_come_first_in_the_one_order_of_rate_rows():
    for name in ("equalized_odds", "accuracy_parity"):
        assert [row.label for row in get_constraint(name).rate_rows] == [True, False]
    assert [row.label for row in get_constraint("minimum_rate").rate_rows] == [None]
    assert [row.label for row in get_constraint("false_negative_rate_parity").rate_rows] == [True]


@every_line("constraints", ["parity", None, 1, ["demographic_parity"]])
def test_an_unknown_constraint_is_refused_with_the_known_ones(constraints):
    with pytest.raises(InputError, match="is not known; choose one of demographic_parity"):
        get_constraint(constraints)


@every_line(
    "rate_rows, comparison",
    [
        ((FALSE_POSITIVE_RATE, TRUE_POSITIVE_RATE), "difference"),
        ((TRUE_POSITIVE_RATE, FALSE_POSITIVE_RATE), "ratio"),
        ((SELECTION_RATE, TRUE_POSITIVE_RATE), "difference"),
        ((), "difference"),
        ((SELECTION_RATE,), "product"),
    ],
)
def test_a_shape_that_the_library_cannot_handle_is_refused(rate_rows, comparison):
    with pytest.raises(InputError, match="A ratio has one rate row"):
        Constraint("toy", "toy", rate_rows, comparison)


# ---------------------------------------------------------------------------------------------
# A constraint from outside the library


@pytest.fixture(scope="module")
def rows():
    rows = make_biased(1200, bias=1.5, random_state=0)
    model = LogisticRegression().fit(rows.data[:300], rows.target[:300])
    return model, rows.data[300:], rows.target[300:], rows.sensitive_features[300:]


TOYS = {
    "selection_rate_difference": Constraint(
        "selection_rate_difference", "selection rate gap", (SELECTION_RATE,), "difference"
    ),
    "true_positive_rate_ratio": Constraint(
        "true_positive_rate_ratio", "TPR ratio", (TRUE_POSITIVE_RATE,), "ratio"
    ),
}
TARGETS = {
    "selection_rate_difference": 0.1,
    "true_positive_rate_ratio": 0.9,
}


def value_by_hand(name, y, decisions, groups):
    rates = {
        label: [
            decisions[(groups == g) & ((y == label) | (label is None))].mean()
            for g in np.unique(groups)
        ]
        for label in (None, 1)
    }
    if name == "selection_rate_difference":
        return max(rates[None]) - min(rates[None])
    return min(rates[1]) / max(rates[1])


@pytest.mark.parametrize("name", TOYS)
def test_a_constraint_from_outside_works_everywhere(name, rows, monkeypatch, tmp_path):
    toy, target = TOYS[name], TARGETS[name]
    monkeypatch.setitem(CONSTRAINTS, name, toy)
    model, X, y, groups = rows
    shared = {"sensitive_features": groups}
    update = quick_control(model, constraints=name, target=target).fit(X, y, **shared)
    after = update.predict(X)
    by_hand = value_by_hand(name, np.asarray(y), after, np.asarray(groups))
    assert update.fairness_ == pytest.approx(by_hand)
    assert update.reached_ and toy.is_met(by_hand, target + 1e-12)
    assert toy.metric in update.status_

    limit = bounds.minimal_changes(
        model.predict(X), y_true=y, target=target, constraints=name, **shared
    )
    assert 0 < limit.n_changes <= update.n_gains_ + update.n_losses_
    assert bounds.best_fairness(
        model.predict(X), y_true=y, max_changes=limit.n_changes, constraints=name, **shared
    ).fairness == pytest.approx(by_hand, abs=0.1)

    curve = frontier(update, X, y, targets=[target], **shared)
    assert curve.frame()["fairness"].iloc[0] == pytest.approx(by_hand, abs=0.05)

    made = audit(
        model.predict(X),
        after,
        y_true=y,
        request=Request(constraints=name, target=target),
        **shared,
    )
    asked = next(fairness for fairness in made.fairness if fairness.asked)
    assert (asked.metric, asked.higher_is_fairer) == (toy.metric, toy.higher_is_fairer)
    assert asked.after.value == pytest.approx(by_hand)
    assert toy.metric in report(made, tmp_path / "report.html").read_text("utf-8")

    update.to_patch().save(tmp_path / "patch.json")
    assert name in (tmp_path / "patch.json").read_text("utf-8")


def test_a_constraint_object_needs_no_name(rows):
    model, X, y, groups = rows
    toy = TOYS["selection_rate_difference"]
    update = quick_control(model, constraints=toy, target=0.1)
    update.fit(X, y, sensitive_features=groups)
    decisions = update.predict(X)
    value = fairness_value(toy, y, decisions, sensitive_features=groups)
    assert update.fairness_ == value <= 0.1
