"""Say what COMMOD's adversary of a constraint reads, and refuse constraints that have none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commod._solvers.problem import AdversaryProblem
from commod.exceptions import InputError
from commod.metrics._cells import Strata
from commod.metrics._constraint import Constraint, missing_labels
from commod.metrics._measures import MEASURES
from commod.updates._fit_rows import FitRows

Floats = NDArray[np.float64]


def check_trainable(constraints: Sequence[Constraint]) -> None:
    """Refuse constraints that no adversary stands for.

    Where an adversary fails, a score is independent of the group, among people who are chosen
    before anything is decided. So an adversary stands for rates that are equal among such people.
    It knows no minimum, and no rate among people whom the decisions choose, such as the precision.
    """
    for constraint in constraints:
        if reason := _obstacle(constraint):
            raise InputError(
                f"COMMOD cannot train against {constraint.name!r}: {reason}. Use "
                "ControlledDebiaser, which takes this constraint, or one of demographic parity, "
                "equalized odds, parity of true or false positive rates, and accuracy parity.",
                parameter="constraints",
            )


def _obstacle(constraint: Constraint) -> str:
    """Return why no adversary stands for a constraint; "" where one does."""
    if constraint.min_groups < 2:
        return "it bounds the rate of every group, and an adversary compares groups"
    for measure in constraint.measures:
        if not measure.is_linear:
            return (
                f"the decisions choose the people whom its {measure.name} counts, and an adversary "
                "needs people who are chosen before"
            )
        if measure.needs_labels and measure.label is None and measure != MEASURES["accuracy"]:
            return f"no adversary is known for its {measure.name}"
    return ""


def adversary_of(
    constraint: Constraint, strata: Strata, rows: FitRows, label: Floats, weight: Floats
) -> AdversaryProblem:
    """Return what the adversary of a constraint reads, and the weight of each row for it.

    `label` (n,) are the labels of the training and `weight` (n,) the weights of rows. A row that
    the constraint does not count has weight 0: one of a label, a group or a stratum that is not
    compared.
    """
    if constraint.needs_labels and rows.label is None:
        raise missing_labels(constraint, "y")
    group, _ = rows.large_groups
    is_compared = (group >= 0) & (strata.codes >= 0) & strata.is_compared[strata.codes, group]
    weight = weight * is_compared
    labels = {measure.label for measure in constraint.measures}
    if len(labels) == 1 and None not in labels:
        weight = weight * (label if labels.pop() else 1 - label)
    is_conditional = constraint.within is not None
    return AdversaryProblem(
        weight=weight.astype(np.float32),
        sees_label=len(labels) > 1,
        stratum=strata.codes.astype(np.int32) if is_conditional else None,
        n_strata=len(strata.labels) if is_conditional else 0,
        reads_rightness=constraint.measure == MEASURES["accuracy"],
    )
