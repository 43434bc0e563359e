"""Define what a constraint compares, and among whom.

A `Measure` is a number of one group: a ratio of sums of its confusion counts. `Within` is the
condition: people are compared with people of the same stratum.
"""

from __future__ import annotations

from typing import Literal, NamedTuple


class Weights(NamedTuple):
    """The weight of true positives, false positives, false negatives and true negatives."""

    tp: float = 0.0
    fp: float = 0.0
    fn: float = 0.0
    tn: float = 0.0


EVERYBODY = Weights(1, 1, 1, 1)


class Measure(NamedTuple):
    """A number of one group: a weighted sum of its confusion counts, divided by another one.

    If decisions do not move the denominator, the measure is linear in the numbers of positive
    decisions. Otherwise both parts of the ratio move with the decisions.

    Examples
    --------
    >>> MEASURES["precision"].is_linear, MEASURES["true positive rate"].is_linear
    (False, True)
    >>> MEASURES["selection rate"].needs_labels, MEASURES["accuracy"].counts_one_label
    (False, False)
    >>> MEASURES["precision"].meaning("1", "0")
    'the share of those decided 1 whose true label is 1'
    """

    name: str
    numerator: Weights
    denominator: Weights

    @property
    def parts(self) -> tuple[Weights, Weights]:
        """Return numerator and denominator."""
        return self.numerator, self.denominator

    @property
    def is_linear(self) -> bool:
        """Return whether the denominator is the same whatever is decided."""
        below = self.denominator
        return below.tp == below.fn and below.fp == below.tn

    @property
    def needs_labels(self) -> bool:
        """Return whether the measure depends on true labels."""
        return any(part.tp != part.fp or part.fn != part.tn for part in self.parts)

    @property
    def counts_one_label(self) -> bool:
        """Return whether the measure changes where the two labels swap their roles."""
        return any((part.tp, part.fp) != (part.tn, part.fn) for part in self.parts)

    @property
    def label(self) -> bool | None:
        """Return the true label of the people who count; None if both labels do."""
        if not any(part.fp or part.tn for part in self.parts):
            return True
        if not any(part.tp or part.fn for part in self.parts):
            return False
        return None

    @property
    def plural(self) -> str:
        """Return the name of the numbers of several groups."""
        return PLURALS.get(self.name, f"{self.name}s")

    def meaning(self, outcome: str, other: str) -> str:
        """Return what the number is; `outcome` is the label that it counts, `other` the other."""
        return MEANINGS[self.name].format(outcome, other)


SELECTION_RATE = Measure("selection rate", Weights(tp=1, fp=1), EVERYBODY)
TRUE_POSITIVE_RATE = Measure("true positive rate", Weights(tp=1), Weights(tp=1, fn=1))
FALSE_POSITIVE_RATE = Measure("false positive rate", Weights(fp=1), Weights(fp=1, tn=1))
RATES = (SELECTION_RATE, TRUE_POSITIVE_RATE, FALSE_POSITIVE_RATE)

MEASURES = {
    measure.name: measure
    for measure in (
        *RATES,
        Measure("false negative rate", Weights(fn=1), Weights(tp=1, fn=1)),
        Measure("true negative rate", Weights(tn=1), Weights(fp=1, tn=1)),
        Measure("accuracy", Weights(tp=1, tn=1), EVERYBODY),
        Measure("precision", Weights(tp=1), Weights(tp=1, fp=1)),
        Measure("negative predictive value", Weights(tn=1), Weights(fn=1, tn=1)),
        Measure("F1 score", Weights(tp=2), Weights(tp=2, fp=1, fn=1)),
        Measure("error ratio", Weights(fp=1), Weights(fn=1)),
        Measure("labels per selection", Weights(tp=1, fn=1), Weights(tp=1, fp=1)),
    )
}
PLURALS = {"accuracy": "accuracies", "labels per selection": "labels per selection"}

# What the number is: {0} stands for the label that it counts, {1} for the other label.
MEANINGS = {
    "selection rate": "how often people are decided {0}",
    "true positive rate": "how often people are decided {0} among those whose true label is {0}",
    "false positive rate": "how often people are decided {0} among those whose true label is {1}",
    "false negative rate": "how often people are decided {1} among those whose true label is {0}",
    "true negative rate": "how often people are decided {1} among those whose true label is {1}",
    "accuracy": "the share of decisions that equal the true label",
    "precision": "the share of those decided {0} whose true label is {0}",
    "negative predictive value": "the share of those decided {1} whose true label is {1}",
    "F1 score": "the harmonic mean of precision and true positive rate of {0}",
    "error ratio": "how many are wrongly decided {0} for each one wrongly {1}",
    "labels per selection": "how many have the true label {0} for each one decided {0}",
}


class Within(NamedTuple):
    """The condition of a constraint: people are compared with people of the same stratum.

    A stratum is a value of `column`. A group is compared in a stratum where every number that is
    compared counts at least `min_rows` of its rows. `over`: "every" stratum keeps the constraint,
    or the "average" over the strata does.
    """

    column: str
    min_rows: int = 50
    over: Literal["every", "average"] = "every"

    @property
    def text(self) -> str:
        """Return the condition as it follows the name of a constraint.

        Examples
        --------
        >>> Within("pay band", 30, "average").text
        "within 'pay band' average min_rows=30"
        """
        over = " average" if self.over == "average" else ""
        is_default = self.min_rows == Within._field_defaults["min_rows"]
        rows = "" if is_default else f" min_rows={self.min_rows}"
        return f"within {self.column!r}{over}{rows}"
