"""Figures of a patch agree with each other; whatever an update writes can be read."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from patch_files import content_of, mixed_patch, sealed
from patches import number
from sklearn.linear_model import LogisticRegression

from commod import COMMOD, Patch, ScoreColumn
from commod.datasets import make_biased
from commod.exceptions import CommodWarning, InputError
from commod.metrics._constraint import get_constraint
from quick_updates import quick_control
from tables_of_cases import every_line

ODDS = {"constraints": "equalized_odds", "metric": get_constraint("equalized_odds").metric}


@every_line(
    "changes, message",
    [
        ({"fairness_after": 0.1}, r"target_met = true for P-rule of label \w+ ≥ 0.8, but .* 0.1"),
        ({"fairness_after": None}, "target_met = true .* not known"),
        ({"accuracy_before": 1.5}, r"accuracy_before of the patch is 1.5; it must lie between 0"),
        ({"accuracy_after": -0.5}, r"accuracy_after of the patch is -0.5; it must lie"),
        ({**ODDS, "target": 0.1}, "target_met = true"),
        ({"n_losses": -10.0, "n_gains": 60.0}, "0"),
        ({"n_gains": -0.5, "n_losses": 50.5}, "0"),
        ({"change_rate": 0.5}, "change_rate 0.5, but 40 gains and 10 losses of 1000 rows are 0.05"),
        ({"change_rate": 0.0}, "change_rate 0.0, but 40 gains"),
        ({"n_gains": 900.0, "n_losses": 900.0}, "more than its 1000 rows"),
        ({"limit": 0.06}, "limit 0.06, the fewest changes"),
        ({"promised": True}, "promised = true, but no confidence"),
        ({"promised": False}, "promised = false, but no confidence"),
        (
            {"promised": True, "confidence": 0.9, "fairness_after": 0.1, "target_met": False},
            "promised = true for P-rule",
        ),
        ({"promised": True, "confidence": 0.9, "target": None}, "no target"),
        ({"change_rate": 0.0, "n_gains": 0.0, "n_losses": 0.0, "limit": 0.0}, "no decision change"),
        (
            {"direction": "gains_only", "may_lower": False, "n_gains": 50.0, "n_losses": 500.0,
             "change_rate": 0.55},
            "direction 'gains_only', but 500 losses; expected none",
        ),
        (
            {"direction": "losses_only", "may_raise": False, "n_gains": 40.0, "n_losses": 10.0},
            "direction 'losses_only', but 40 gains",
        ),
    ],
)  # fmt: skip
def test_figures_that_contradict_each_other_are_refused(changes, message):
    with pytest.raises(InputError, match=message):
        Patch(content_of(number("income", -0.25), **changes))


def test_counts_of_columns_are_no_smaller_than_the_columns():
    content = content_of(number("income", -0.25))
    for n_columns in (-1, 0, 2**40):
        with pytest.raises(InputError, match="reads 1 columns, but says that the fit rows had"):
            Patch(replace(content, seen=replace(content.seen, n_columns=n_columns)))


def test_a_new_digest_does_not_help():
    tree = json.loads(mixed_patch().to_json())
    tree["reached"]["fairness_after"] = 0.1
    with pytest.raises(InputError, match=r"cannot be used as a patch.*target_met = true"):
        Patch.from_json(json.dumps(sealed(tree)))


@every_line(
    "changes",
    [
        {"fairness_after": 0.1, "target_met": False},
        {"fairness_after": 0.9, "target_met": False},  # too many decisions change, for example
        {"target": None, "fairness_after": 0.1},  # a budget
        {"n_gains": 25.5, "n_losses": 24.5},
        {"promised": True, "confidence": 0.9, "rows": "held-out rows"},
        {"promised": False, "confidence": 0.9, "fairness_after": 0.1, "target_met": False},
        {"fairness_after": 0.8 - 1e-12},
        {"limit": None, "change_rate": None, "n_gains": None, "n_losses": None},
    ],
)
def test_figures_that_agree_are_read(changes):
    patch = Patch(content_of(number("income", -0.25), **changes))
    assert Patch.from_json(patch.to_json()) == patch


def check_written(update, data, **fitted):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CommodWarning)
        update.fit(data.data, data.target, sensitive_features=data.sensitive_features, **fitted)
    patch = update.to_patch()
    assert Patch.from_json(patch.to_json()) == patch
    reached = patch.content.reached
    assert reached.change_rate == (reached.n_gains + reached.n_losses) / reached.n_rows


REQUESTS = st.fixed_dictionaries(
    {
        "constraints": st.sampled_from(["demographic_parity", "equalized_odds"]),
        "direction": st.sampled_from(["any", "gains_only", "losses_only"]),
        "favorable_label": st.sampled_from([0, 1]),
        "points": st.sampled_from(["per unit", "per bin"]),
        "borderline": st.sampled_from([0, 0.1]),
    }
)
GOALS = st.one_of(
    st.fixed_dictionaries({"target": st.sampled_from([0.05, 0.3, 0.8, 0.95])}),
    st.fixed_dictionaries({"max_changes": st.sampled_from([0.0, 0.01, 0.1]), "target": st.none()}),
    st.fixed_dictionaries(
        {"target": st.sampled_from([0.2, 0.8]), "confidence": st.sampled_from([0.6, 0.95])}
    ),
    st.fixed_dictionaries(
        {"target": st.just(0.8), "max_volume_change": st.sampled_from([0.0, 0.05])}
    ),
)


@settings(max_examples=4, suppress_health_check=[HealthCheck.too_slow])
@given(REQUESTS, GOALS, st.booleans(), st.integers(0, 50))
def test_every_patch_of_a_fitted_update_can_be_read(request, goal, is_weighted, seed):
    data = make_biased(400, n_categories=4, random_state=seed)
    model = LogisticRegression().fit(data.data.select_dtypes("number"), data.target)
    scores = model.predict_proba(data.data.select_dtypes("number"))[:, 1]
    data.data = data.data.assign(score=scores)
    weight = np.random.default_rng(seed).uniform(0.5, 2.0, 400)
    is_weighted = is_weighted and "confidence" not in goal
    update = quick_control(ScoreColumn("score"), **request, **goal)
    check_written(update, data, **({"sample_weight": weight} if is_weighted else {}))


@pytest.mark.usefixtures("quick_compilation")
@pytest.mark.parametrize("lambda_fair", [0.0, 0.5])
def test_every_patch_of_commod_can_be_read(lambda_fair):
    data = make_biased(300, random_state=1)
    model = LogisticRegression().fit(data.data, data.target)
    update = COMMOD(model, lambda_fair=lambda_fair, epochs=3, random_state=0)
    check_written(update, data)
