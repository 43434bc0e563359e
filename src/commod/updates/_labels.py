"""Read which label an update counts, which is favourable, and where true labels are counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.labels import distinct_labels, is_label_in
from commod._text import did_you_mean, label_text, list_names, shorten, shown
from commod.exceptions import InputError
from commod.metrics._constraint import Constraint


@dataclass(frozen=True)
class ComparedText:
    """What an update compares, in words: each rate with the label that it counts.

    Examples
    --------
    >>> from commod.metrics._constraint import get_constraint
    >>> text = ComparedText(get_constraint("false_positive_rate_parity"), 1, 0)
    >>> text.metric, text.spelled
    ('FPR gap of label 1', ' The rate is how often people are decided 1 among those whose ...')
    """

    constraint: Constraint
    label: Any
    other_label: Any

    @property
    def metric(self) -> str:
        """Return the metric with the label that it counts."""
        return self.metric_of(self.constraint)

    def metric_of(self, constraint: Constraint) -> str:
        """Return the metric of another constraint with the label that it counts."""
        return constraint.metric_of(label_text(None, self.label))

    @property
    def other_metric(self) -> str:
        """Return the same metric of the other label."""
        return self.constraint.metric_of(label_text(None, self.other_label))

    @property
    def spelled(self) -> str:
        """Return a sentence on the rates among true labels; empty where everybody counts."""
        if not self.constraint.needs_labels:
            return ""
        text = self.constraint.meaning(*map(shorten, (self.label, self.other_label)))
        measure = self.constraint.measure
        rates = "The rate is" if len(self.constraint.measures) == 1 else "The rates are"
        return f" {rates if measure is None else f'The {measure.name} is'} {text}."


def counted_labels(pos_label: Any, favorable_label: Any, classes: NDArray[Any]) -> tuple[Any, Any]:
    """Return the label whose rates are compared, and the label that is good for the person.

    Either of the two parameters stands for both where the other is None. Where both are None, both
    labels are `classes[1]`.

    Examples
    --------
    >>> classes = np.array(["denied", "granted"])
    >>> counted_labels(None, "denied", classes)
    ('denied', 'denied')
    >>> counted_labels("granted", "denied", classes)
    ('granted', 'denied')
    """
    known = classes.tolist()
    named = {"pos_label": pos_label, "favorable_label": favorable_label}
    for parameter, label in named.items():
        if label is not None and not is_label_in(label, known):
            raise InputError(
                f"{parameter}={shown(label)} is not a label of the base model: {known}."
                f"{did_you_mean(label, known)}",
                parameter=parameter,
            )
    stated = [label for label in (pos_label, favorable_label) if label is not None]
    default = stated[0] if stated else classes[1]
    return (
        default if pos_label is None else pos_label,
        default if favorable_label is None else favorable_label,
    )


def outcomes_of(
    labels: NDArray[Any] | None,
    classes: NDArray[Any],
    pos_label: Any,
    constraints: Sequence[Constraint],
) -> NDArray[np.bool_] | None:
    """Return where true labels are `pos_label`, shape (n,); None without labels."""
    if labels is None:
        needing = next((one for one in constraints if one.needs_labels), None)
        if needing is not None:
            raise InputError(
                f"This estimator requires y to be passed, but the target y is None: "
                f"constraints={needing.name!r} compares errors, and errors need labels. "
                "Only rates of all people, as in demographic_parity, can do without."
            )
        return None
    known = classes.tolist()
    unknown = [v for v in distinct_labels(labels) if v not in known]
    if unknown:
        raise InputError(
            f"y holds [{list_names([repr(v) for v in unknown], 3)}], which the base model does "
            f"not know; its labels are {known}.{did_you_mean(unknown[0], known)}",
            parameter="y",
        )
    label = np.asarray(labels == pos_label, dtype=bool)
    if label.all() or not label.any():
        raise InputError(
            f"y holds one class only ({labels[:1].tolist()[0]!r}); telling errors from right "
            "decisions needs both."
        )
    return label
