"""Say which studies can use probabilities of groups in place of the groups."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import has_fit_parameter

from commod.exceptions import InputError
from commod.updates._controlled_parameters import given_groups

NAME = "sensitive_probabilities"


def read_fit_groups(
    update: Any, X: Any, sensitive_features: Any, sensitive_probabilities: Any, X_eval: Any
) -> Any:
    """Return the sensitive features, or groups with probabilities, for the fits of a frontier.

    Updates are measured on people whose group is known, so probabilities need other rows for that.
    """
    if sensitive_probabilities is None:
        return sensitive_features
    if not has_fit_parameter(update, NAME):
        raise InputError(
            f"{type(update).__name__} needs the group of each person, not {NAME}. Pass "
            "sensitive_features of people whose group is known, or use ControlledDebiaser.",
            parameter=NAME,
        )
    if X_eval is None:
        raise InputError(
            f"With {NAME}, a frontier needs people whose group is known to measure on. Pass them "
            "as X_eval, y_eval and sensitive_features_eval.",
            parameter=NAME,
        )
    return given_groups(update, X, sensitive_features, sensitive_probabilities)


def refuse_probabilities(sensitive_probabilities: Any, reason: str) -> None:
    """Refuse probabilities of groups; `reason` says why, and what to do instead."""
    if sensitive_probabilities is not None:
        raise InputError(f"{NAME} cannot be used here: {reason}", parameter=NAME)
