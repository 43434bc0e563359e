"""COMMOD within strata and against several adversaries, on tables with Simpson's paradox."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit

from commod import COMMOD, ScoreColumn
from commod.constraints import (
    AccuracyParity,
    DemographicParity,
    EqualizedOdds,
    MinimumRate,
    PredictiveParity,
    TruePositiveRateParity,
)
from commod.exceptions import InputError
from commod.updates._trained import adversary_of

PARITY = DemographicParity(difference=...)
WITHIN = PARITY.within("dept", min_rows=20)


def applicants(favour=0.0, n=1200):
    """Women apply where few are admitted. `favour` raises their scores within each department.

    The hobby tells the group, and nothing about merit.
    """
    rng = np.random.default_rng(1)
    woman = rng.random(n) < 0.5
    dept = rng.binomial(2, np.where(woman, 0.75, 0.25))
    hobby, merit = woman + 0.7 * rng.normal(size=n), rng.normal(size=n)
    logit = 1.2 * merit + 1.5 * (1 - dept)
    X = pd.DataFrame(
        {
            "dept": np.array(["A", "B", "C"])[dept],
            "hobby": hobby,
            "merit": merit,
            "score": expit(logit + favour * woman),
        }
    )
    y = (rng.random(n) < expit(logit)).astype(int)
    return X, y, np.where(woman, "woman", "man")


def fit(constraints, rows, **params):
    X, y, s = rows
    params = {"lambda_fair": 2, "epochs": 60, "random_state": 0, **params}
    update = COMMOD(ScoreColumn("score"), constraints=constraints, **params)
    return update.fit(X, y, sensitive_features=s)


def gaps(rows, decisions):
    """The gap over all people, and the largest gap of a department."""
    X, _, s = rows

    def gap(kept):
        rates = [decisions[kept & (s == group)].mean() for group in ("woman", "man")]
        return abs(rates[0] - rates[1])

    everybody = np.ones(len(s), dtype=bool)
    return gap(everybody), max(gap((X["dept"] == d).to_numpy()) for d in "ABC")


# -- parity within a column ---------------------------------------------------------------------


def test_a_model_that_is_fair_within_strata_stays_as_it_is():
    rows = applicants()
    overall, within = gaps(rows, rows[0]["score"] > 0.5)
    assert overall > 0.4, "women are admitted half as often"
    assert within < 0.1
    assert fit(WITHIN, rows).change_rate_ < 0.01


def test_parity_within_strata_moves_against_parity_of_all():
    rows = applicants(favour=0.8)
    overall, within = gaps(rows, rows[0]["score"] > 0.5)
    update = fit(WITHIN, rows)
    overall_after, within_after = gaps(rows, update.predict(rows[0]))
    assert within_after < 0.6 * within
    assert overall_after > overall + 0.03
    assert 0 < update.change_rate_ < 0.15
    assert update.base_fairness_ == pytest.approx(within)
    assert update.fairness_ == pytest.approx(within_after)


# -- several constraints -------------------------------------------------------------------------


def test_two_adversaries_lower_both_gaps_and_each_has_a_history():
    X, _, s = applicants(favour=-1.0)
    slope = np.where(s == "woman", -0.5, 2.0)  # the score says little about women
    y = (np.random.default_rng(2).random(len(s)) < expit(slope * logit(X["score"]))).astype(int)
    rows = X, y, s
    _, within = gaps(rows, X["score"] > 0.5)
    update = fit(AccuracyParity() & WITHIN, rows)
    _, within_after = gaps(rows, update.predict(X))
    assert within > 0.3
    assert within_after < 0.6 * within
    losses = [name for name in update.history_ if name.startswith("adversary")]
    assert losses == ["adversary_1", "adversary_2"]
    assert f"{within:.3f} → {within_after:.3f}" in update.status_
    is_right = update.predict(X) == y
    accuracy_gap = abs(is_right[s == "woman"].mean() - is_right[s == "man"].mean())
    assert update.fairness_ == pytest.approx(accuracy_gap)
    assert update.base_fairness_ > 0.5
    assert update.fairness_ < 0.4 * update.base_fairness_


# -- what an adversary reads, and who counts -----------------------------------------------------


def read_adversary(constraints, X, y, s):
    update = COMMOD(ScoreColumn("score"), constraints=constraints)
    update._record_params()
    rows = update._read_fit_rows(X, y, s, None)
    (asked,) = update._stated().constraints
    return adversary_of(asked, rows.strata_of(asked), rows, rows.label * 1.0, rows.weight)


def test_rows_of_strata_groups_and_labels_that_are_not_compared_weigh_nothing():
    X, y, s = applicants(n=300)
    X.loc[:9, "dept"] = "D"  # too small to be compared
    adversary = read_adversary(TruePositiveRateParity().within("dept", min_rows=5), X, y, s)
    sizes = pd.crosstab([X["dept"], s], y)[1]  # people whom the rate counts
    compared = [dept for dept in X["dept"].unique() if (sizes[dept] >= 5).sum() == 2]
    assert "D" not in compared
    expected = X["dept"].isin(compared).to_numpy() & (y == 1)
    assert np.array_equal(adversary.weight > 0, expected)
    assert adversary.n_strata == len(compared)
    assert not adversary.sees_label


@pytest.mark.parametrize(
    ("constraint", "sees_label", "reads_rightness"),
    [
        ("demographic_parity", False, False),
        ("equalized_odds", True, False),
        (EqualizedOdds(largest=...), True, False),
        ("true_positive_rate_parity", False, False),
        (AccuracyParity(), False, True),
    ],
)
def test_the_adversary_reads_what_its_constraint_compares(constraint, sees_label, reads_rightness):
    adversary = read_adversary(constraint, *applicants(n=300))
    assert (adversary.sees_label, adversary.reads_rightness) == (sees_label, reads_rightness)
    assert adversary.stratum is None


# -- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("constraint", "reason"),
    [
        (MinimumRate(), "compares groups"),
        (PredictiveParity(), "precision"),
        (DemographicParity(ratio=0.8), "demographic parity >= 0.8.*lambda_fair"),
        (EqualizedOdds() & DemographicParity(ratio=0.8), "demographic parity >= 0.8"),
        ("minimum_rate", "compares groups"),
    ],
)
def test_constraints_without_an_adversary_are_refused_with_a_way_out(constraint, reason):
    with pytest.raises(InputError, match=f"(?s){reason}.*ControlledDebiaser") as error:
        fit(constraint, applicants(n=200))
    assert error.value.parameter == "constraints"


def test_labels_are_needed_where_any_constraint_needs_them():
    X, _, s = applicants(n=200)
    update = COMMOD(ScoreColumn("score"), constraints=PARITY & EqualizedOdds())
    with pytest.raises(InputError, match="errors need labels"):
        update.fit(X, sensitive_features=s)
