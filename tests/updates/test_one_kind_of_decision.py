"""A base model whose decisions are nearly all of one kind gets a clear answer."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from commod import COMMOD, ScoreColumn, compare, frontier, stability
from commod.exceptions import BaseModelWarning, InputError
from commod.rivals import MinimalFlip, RejectOption
from quick_updates import quick_control

N = 800
GROUPS = np.where(np.arange(N) % 5 < 2, "a", "b")
LABELS = np.arange(N) // 2 % 2


def table(n_positive, positive=0.9, other=0.3):
    """Return rows of which the first `n_positive` have a score above the threshold."""
    random = np.random.default_rng(0)
    score = np.where(np.arange(N) < n_positive, positive, other) + random.uniform(0, 0.05, N)
    return pd.DataFrame({"x": random.normal(size=N), "z": random.normal(size=N), "score": score})


WAY_OUT = r"{} of the 800 base decisions (is|are) 1 at threshold=0.5.*Check the threshold"


def test_a_handful_of_positive_decisions_is_refused_with_the_way_out():
    for n_positive, share in [(0, "None"), (1, "Only 1"), (4, "Only 4")]:
        update = quick_control(ScoreColumn("score"), target=0.8)
        with pytest.raises(InputError, match=WAY_OUT.format(share)) as caught:
            update.fit(table(n_positive), LABELS, sensitive_features=GROUPS)
        assert caught.value.parameter == "threshold"
        assert not hasattr(update, "scorecard_")


def test_every_update_refuses_it():
    for update in [COMMOD, RejectOption, MinimalFlip]:
        with pytest.raises(InputError, match=WAY_OUT.format("None")):
            update(ScoreColumn("score")).fit(table(0), LABELS, sensitive_features=GROUPS)


def test_studies_refuse_it():
    update = quick_control(ScoreColumn("score"))
    for study, given in ((frontier, update), (stability, update), (compare, [update])):
        with pytest.raises(InputError, match=r"None of the \d+ base decisions"):
            study(given, table(0), LABELS, sensitive_features=GROUPS)


def test_a_wrong_threshold_is_named():
    update = quick_control(ScoreColumn("score"), threshold=0.999)
    with pytest.raises(InputError, match=r"at threshold=0\.999"):
        update.fit(table(400), LABELS, sensitive_features=GROUPS)


def test_rare_but_enough_is_accepted():
    for n_positive in [5, 8, 400]:
        update = quick_control(ScoreColumn("score"), target=0.2)
        with warnings.catch_warnings():
            warnings.simplefilter("error", BaseModelWarning)
            update.fit(table(n_positive), LABELS, sensitive_features=GROUPS)
        assert not np.isnan(update.base_fairness_)


def test_a_small_table_needs_no_five():
    rows = table(3).iloc[:100]
    update = quick_control(ScoreColumn("score"), target=0.1)
    update.fit(rows, LABELS[:100], sensitive_features=GROUPS[:100])
    assert update.base_fairness_ >= 0


def test_nearly_everybody_positive_is_fair_with_a_warning():
    update = quick_control(ScoreColumn("score"), target=0.8)
    with pytest.warns(BaseModelWarning, match=r"Only 2 of the 800 base decisions are 0.*threshold"):
        update.fit(table(N - 2), LABELS, sensitive_features=GROUPS)
    assert update.reached_ and update.change_rate_ == 0


def test_a_gap_of_nobody_positive_is_zero_with_a_warning():
    update = quick_control(ScoreColumn("score"), constraints="equalized_odds")
    with pytest.warns(BaseModelWarning, match=r"None of the 800 base decisions are 1"):
        update.fit(table(0), LABELS, sensitive_features=GROUPS)
    assert update.reached_ and update.change_rate_ == 0


def test_groups_that_are_left_out_do_not_count():
    groups = np.where(np.arange(N) < 20, "few", GROUPS)
    update = quick_control(ScoreColumn("score"))
    with (
        pytest.warns(match="left out of the constraint"),
        pytest.raises(InputError, match="None of the 780 base decisions"),
    ):
        update.fit(table(20), LABELS, sensitive_features=groups)
