"""Check the parameters of a `ControlledDebiaser`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from commod._data.groups import UNKNOWN_GROUPS, read_group_probabilities
from commod._data.parameters import check_choice, check_number
from commod._data.tables import check_same_rows
from commod.bounds._counts import DIRECTIONS
from commod.exceptions import InputError
from commod.scorecard import SCORE_EDITS
from commod.updates._removed import refuse_removed_value
from commod.updates._targeted import TargetedUpdate

CHOICES = {
    "points": ("auto", "per unit", "per bin", "integers"),
    "direction": DIRECTIONS,
    "score_edit": SCORE_EDITS,
    "target_on": ("new_rows", "fit_rows"),
    "unknown_groups": UNKNOWN_GROUPS,
}


def check_controlled_parameters(update: TargetedUpdate) -> None:
    """Raise InputError for a parameter that cannot be used."""
    for name in ("max_changes", "max_accuracy_loss", "max_volume_change"):
        if getattr(update, name) is not None:
            check_number(update, name, low=0.0, high=1.0, is_share=True)
    if update.max_margin is not None:
        check_number(update, "max_margin", low=0.0)
    check_number(update, "borderline", low=0.0)
    check_number(update, "min_category_size", low=1, whole=True)
    if update.target is not None:
        check_number(update, "target", low=0.0, high=update._constraint.largest, is_share=True)
    for name, known in CHOICES.items():
        refuse_removed_value(name, getattr(update, name))
        check_choice(getattr(update, name), name, known)
    _check_confidence(update)
    _check_lines(update)
    _check_version(update)
    if update.monotone is not None and not isinstance(update.monotone, Mapping):
        raise InputError(
            f"monotone={update.monotone!r} must map columns to 1 or -1, such as "
            "{'age': 1}: a larger age may only help.",
            parameter="monotone",
        )


def _check_confidence(update: TargetedUpdate) -> None:
    if update.confidence is None:
        return
    check_number(update, "confidence", low=0.5, high=0.9999, include="right", is_share=True)
    if update._is_budget:
        raise InputError(
            "confidence promises a target, but target is None and max_changes alone names none. "
            "Pass target= as well.",
            parameter="confidence",
        )
    stated = update._stated().constraints
    if len(stated) > 1 or not stated[0].is_simple:
        names = " and ".join(one.name for one in stated)
        raise InputError(
            f"confidence promises one ratio or difference of rates of all people, but constraints "
            f"is {names}. Its test is not known for conditions, floors, ceilings, moving "
            "denominators and several constraints. Leave confidence out; expected_values_ says "
            "what is expected on new people.",
            parameter="confidence",
        )


def _check_lines(update: TargetedUpdate) -> None:
    """Check `max_lines`, and refuse parameters that whole-number points cannot serve."""
    if update.max_lines is not None:
        check_number(update, "max_lines", low=1, whole=True)
    if update.points != "integers":
        return
    if update.score_edit == "all":
        raise InputError(
            "score_edit='all' multiplies scores by r, and with points='integers' r is a number of "
            "points. Use score_edit='changed_only', or points='per bin'.",
            parameter="score_edit",
        )
    if update.confidence is not None:
        raise InputError(
            "confidence tests a path of updates, and points='integers' fits a single one. Leave "
            "confidence out; expected_fairness_ says what is expected on new people.",
            parameter="confidence",
        )


def _check_version(update: TargetedUpdate) -> None:
    """Refuse to fit an update of version 0.2 again whose signs of columns had another meaning."""
    if "sparsity" in vars(update) and update.monotone:
        raise InputError(
            f"monotone={update.monotone!r} was stated for version 0.2, where it held r: a column "
            "with -1 could only help. From version 0.3 on it holds the evidence: -1 means that a "
            "larger value must not help. Make a new ControlledDebiaser with the signs reversed.",
            parameter="monotone",
        )


def check_no_weighted_promise(update: TargetedUpdate, sample_weight: Any) -> None:
    """Raise InputError for `confidence` with sample weights."""
    if update.confidence is not None and sample_weight is not None:
        raise InputError(
            "confidence and sample_weight cannot be used together: the promise counts "
            "independent people, and a weighted rate has another error. Leave one out."
        )


def check_labels_given(update: TargetedUpdate, is_given: bool) -> None:
    """Raise InputError where a parameter compares decisions with labels that were not given."""
    if update.max_accuracy_loss is not None and not is_given:
        raise InputError("max_accuracy_loss compares decisions with labels, but y is None. Pass y.")


def given_groups(
    update: TargetedUpdate, X: Any, sensitive_features: Any, sensitive_probabilities: Any
) -> Any:
    """Return the sensitive features, or the groups with the probabilities given in their place."""
    if sensitive_probabilities is None:
        return sensitive_features
    if sensitive_features is not None:
        raise InputError(
            "sensitive_features and sensitive_probabilities were both given. Pass one of them. "
            "Where the group of some people is known, give it the probability 1.",
            parameter="sensitive_probabilities",
        )
    if update.confidence is not None:
        raise InputError(
            "confidence and sensitive_probabilities cannot be used together: the promise counts "
            "people of each group, and probabilities do not say who these people are. Leave "
            "confidence out, or pass sensitive_features of people whose group is known.",
            parameter="confidence",
        )
    check_same_rows({"X": X, "sensitive_probabilities": sensitive_probabilities})
    return read_group_probabilities(sensitive_probabilities)
