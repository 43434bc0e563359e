"""Calibrated equalized odds: the authors' mixing rates, equal costs, and scores that stay true."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commod import ScoreColumn
from commod.datasets import make_biased
from commod.exceptions import InputError, TargetWarning
from commod.rivals import CalibratedEqualizedOdds, check_rival, fit_strengths, lineup
from commod.rivals.calibrated_equalized_odds import (
    COST_NAMES,
    feasible_rates,
    group_costs,
    required_rates,
)

# made rows have one score in each cell, as if the base model knew the labels
pytestmark = pytest.mark.filterwarnings("ignore::commod.exceptions.BaseModelWarning")

FIXTURE = json.loads((Path(__file__).parent / "fixtures/withholding.json").read_text())
FEASIBLE = {("income", "fpr"): 0.1179, ("health", "weighted"): 0.1668,
            ("criminal_recidivism", "weighted"): 0.3185}  # fmt: skip


def made(update, table, **how):
    """Fit on a table with the columns score, label and group."""
    X = table[["score"]].assign(row=np.arange(float(len(table))))
    update.fit(X, table["label"], sensitive_features=table["group"], **how)
    return update, X


def from_cells(*cells):
    """Return rows from (group, label, number of rows, score)."""
    parts = [
        pd.DataFrame({"group": group, "label": label, "score": score}, index=range(n))
        for group, label, n, score in cells
    ]
    return pd.concat(parts, ignore_index=True)


# Costs 0.20 and 0.35 by "fnr", base rates 0.5: half of the scores of group 0 must be withheld.
HAND = from_cells((0, 1, 50, 0.80), (0, 0, 50, 0.2), (1, 1, 50, 0.65), (1, 0, 50, 0.35))


@pytest.fixture
def population():
    """Rows of three groups with calibrated scores: labels are drawn with the score."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, 6000)
    margin = rng.normal(size=6000) * (1 + group) - 0.3 * group
    score = 1 / (1 + np.exp(-margin))
    label = (rng.uniform(size=6000) < score).astype(int)
    return pd.DataFrame({"score": score, "label": label, "group": group})


def fitted(table, **how):
    return made(CalibratedEqualizedOdds(ScoreColumn("score"), **how), table)


# ---------------------------------------------------------------------------------------------
# The rates


def test_the_hand_example_withholds_half_of_the_better_group():
    update, X = fitted(HAND, constraints="true_positive_rate_parity")
    assert update.cost_ == "fnr"
    assert update.costs_ == pytest.approx([0.20, 0.35])
    assert update.trivial_costs_ == pytest.approx([0.5, 0.5])
    assert update.mixing_rates_ == pytest.approx([0.5, 0.0])
    probability = update.decision_proba(X, sensitive_features=HAND["group"])
    # the base rate is not above the threshold: a withheld row is decided negatively
    positives = (HAND["score"] > 0.5).to_numpy()
    assert probability[positives & (HAND["group"] == 0)] == pytest.approx(0.5)
    assert probability[~positives] == pytest.approx(0)


def test_a_withheld_row_is_positive_only_above_the_threshold():
    for threshold, expected in [(0.5, 0.0), (0.49, 1.0)]:
        table = HAND.assign(score=np.where(HAND["group"] == 0, 0.5, HAND["score"]))
        table.loc[:49, "score"], table.loc[50:99, "score"] = 0.9, 0.1
        update, X = fitted(
            table, constraints="true_positive_rate_parity", threshold=threshold, strength=1
        )
        probability = update.decision_proba(X, sensitive_features=table["group"])
        rate = update.mixing_rates_[0]
        assert 0 < rate < 1
        assert probability[:50] == pytest.approx(1 - rate * (1 - expected))


def test_mixing_rates_are_those_of_the_authors_code():
    for name in FIXTURE:
        for cost in COST_NAMES:
            group, label, size, score = map(np.array, zip(*FIXTURE[name]["cells"], strict=True))
            weight = size.astype(float)
            costs, trivial, _ = group_costs(score, label == 1, group, weight, n_groups=2, cost=cost)
            rates = required_rates(costs, trivial)
            assert rates == pytest.approx(FIXTURE[name]["mixing_rates"][cost], abs=1e-9)
            if (name, cost) in FEASIBLE:
                assert rates.max() == pytest.approx(FEASIBLE[name, cost], abs=1e-4)
            else:
                assert rates.max() > 1


def test_the_class_finds_the_authors_rate_on_rows():
    table = from_cells(*FIXTURE["health"]["cells"])
    update, _ = fitted(table)
    assert update.cost_ == "weighted"
    assert update.mixing_rates_ == pytest.approx([0.1668, 0], abs=1e-4)


def test_equal_costs_change_nothing():
    table = pd.concat([HAND[:100], HAND[:100].assign(group=1)], ignore_index=True)
    update, _ = fitted(table, constraints="true_positive_rate_parity")
    assert update.mixing_rates_.tolist() == [0, 0]
    assert update.change_rate_ == 0


@given(st.data())
def test_mixed_costs_are_equal_where_every_rate_is_feasible(data):
    """An independent check: the cost of each group's mixture is the highest cost."""
    n_groups = data.draw(st.integers(2, 5))
    fractions = st.lists(st.floats(0, 1), min_size=n_groups, max_size=n_groups)
    trivial, share = (np.array(data.draw(fractions)) for _ in range(2))
    costs = trivial * share
    required = required_rates(costs, trivial)
    rates = feasible_rates(required)
    mixed = (1 - rates) * costs + rates * trivial
    assert ((rates >= 0) & (rates <= 1)).all()
    assert rates[costs.argmax()] == 0
    assert mixed[required <= 1] == pytest.approx(costs.max(), abs=1e-9)
    assert (mixed <= costs.max() + 1e-9).all()


@pytest.mark.parametrize("cost", COST_NAMES)
def test_three_groups_reach_the_highest_cost_and_stay_calibrated(cost, population):
    """A mixture has the mean cost of its parts; its mean score stays the base rate."""
    update, X = fitted(population, cost=cost)
    assert (update.required_rates_ < 1).all()
    mixed = update.mixed_scores(X, sensitive_features=population["group"])
    rows = population["label"] == 1, population["group"], np.ones(len(X))
    costs, _, _ = group_costs(mixed, *map(np.asarray, rows), n_groups=3, cost=cost)
    assert np.ptp(update.costs_) > 0.08
    assert costs == pytest.approx(update.costs_.max(), abs=0.02)
    for group in range(3):
        inside = population["group"] == group
        assert mixed[inside].mean() == pytest.approx(population["label"][inside].mean(), abs=0.02)
    decided = update.predict(X, sensitive_features=population["group"])
    assert (decided == (mixed > 0.5)).all()


# ---------------------------------------------------------------------------------------------
# What cannot be done


def test_an_infeasible_rate_is_clipped_with_a_warning():
    table = from_cells(*FIXTURE["income"]["cells"])
    update = CalibratedEqualizedOdds(ScoreColumn("score"), cost="fnr")
    with pytest.warns(TargetWarning, match=r"group 1 \(it needs the mixing rate 3.50: rate 1\)"):
        made(update, table)
    assert update.mixing_rates_.tolist() == [0, 1]
    assert "cannot become equal" in update.status_


def test_scores_worse_than_the_base_rate_are_never_withheld():
    """The authors' formula gives a negative rate, and their slice then takes nearly all rows."""
    table = from_cells((0, 1, 60, 0.4), (0, 0, 40, 0.6), (1, 1, 10, 0.3), (1, 0, 90, 0.2))
    update = CalibratedEqualizedOdds(ScoreColumn("score"), cost="fnr")
    with pytest.warns(TargetWarning, match="group 0 .*does not raise its cost: rate 0"):
        made(update, table)
    assert update.required_rates_.tolist() == [np.inf, 0]
    assert update.change_rate_ == 0


def test_strength_zero_and_small_strengths_of_a_sweep():
    table = HAND.assign(row=np.arange(200.0))
    X = table[["score", "row"]]
    update = CalibratedEqualizedOdds(ScoreColumn("score"), cost="fnr")
    models = fit_strengths(
        update, [0, 0.5, 1], X, table["label"], sensitive_features=table["group"]
    )
    assert [model.mixing_rates_[0] for model in models] == pytest.approx([0, 0.25, 0.5])
    assert [model.change_rate_ for model in models] == pytest.approx([0, 50 / 800, 50 / 400])


def test_a_group_without_a_true_positive_changes_nothing_and_says_so():
    table = HAND.assign(label=np.where(HAND["group"] == 0, HAND["label"], 0))
    update, _ = fitted(table, cost="fnr")
    assert update.change_rate_ == 0
    assert "no row to measure the false negative cost on" in update.status_


def test_weights_count_as_repeated_rows(population):
    weight = np.arange(len(population)) % 3
    weighted, _ = made(
        CalibratedEqualizedOdds(ScoreColumn("score")), population, sample_weight=weight
    )
    repeated = population.loc[np.repeat(population.index, weight)].reset_index(drop=True)
    alone, _ = fitted(repeated)
    assert weighted.mixing_rates_ == pytest.approx(alone.mixing_rates_, abs=1e-12)
    assert weighted.fairness_ == pytest.approx(alone.fairness_)


def test_a_cost_that_the_constraint_does_not_measure_is_refused():
    with pytest.raises(InputError, match=r"does not go with .*Pass cost='fnr'") as error:
        fitted(HAND, constraints="true_positive_rate_parity", cost="fpr")
    assert error.value.parameter == "cost"
    with pytest.raises(InputError, match="choose one of fnr, fpr, weighted"):
        fitted(HAND, cost="tpr")


def test_parity_is_refused_and_the_lineup_names_the_reason():
    reason = lineup(ScoreColumn("score")).left_out["CalibratedEqualizedOdds"]
    assert "knows 'equalized_odds'" in reason
    found = lineup(ScoreColumn("score"), constraints="false_positive_rate_parity")
    assert found["CalibratedEqualizedOdds"]._measured_cost() == "fpr"


@pytest.mark.filterwarnings("ignore::commod.exceptions.TargetWarning")
def test_the_contract_holds_on_mixed_columns_and_three_groups():
    data = make_biased(900, group_shares=(0.5, 0.3, 0.2), bias=1.5, n_categories=3, random_state=0)
    X = data.data.assign(score=data.proba_target)
    X["x3"] = X["x3"].where(np.arange(len(X)) % 5 > 0)
    update = CalibratedEqualizedOdds(ScoreColumn("score"))
    check_rival(update, X, data.target, sensitive_features=data.sensitive_features)
