"""Define `Measure`: a number of one group as a ratio of sums of its confusion counts."""

from __future__ import annotations

from typing import NamedTuple


class Weights(NamedTuple):
    """The weight of true positives, false positives, false negatives and true negatives."""

    tp: float = 0.0
    fp: float = 0.0
    fn: float = 0.0
    tn: float = 0.0


EVERYBODY = Weights(1, 1, 1, 1)


class Measure(NamedTuple):
    """A number of one group: a weighted sum of its confusion counts, divided by another one.

    Where decisions do not move the denominator, the measure is linear in the numbers of positive
    decisions. Otherwise both parts of the ratio move with the decisions.

    Examples
    --------
    >>> MEASURES["precision"].is_linear, MEASURES["true positive rate"].is_linear
    (False, True)
    >>> MEASURES["selection rate"].needs_labels, MEASURES["accuracy"].counts_one_label
    (False, False)
    """

    name: str
    numerator: Weights
    denominator: Weights

    @property
    def is_linear(self) -> bool:
        """Return whether the denominator is the same whatever is decided."""
        return self.denominator.tp == self.denominator.fn and (
            self.denominator.fp == self.denominator.tn
        )

    @property
    def needs_labels(self) -> bool:
        """Return whether the measure depends on true labels."""
        return any(part.tp != part.fp or part.fn != part.tn for part in self[1:])

    @property
    def counts_one_label(self) -> bool:
        """Return whether the measure changes where the two labels swap their roles."""
        parts: tuple[Weights, ...] = (self.numerator, self.denominator)
        return any((part.tp, part.fp) != (part.tn, part.fn) for part in parts)

    @property
    def label(self) -> bool | None:
        """Return the true label of the people who count; None where both labels do."""
        parts: tuple[Weights, ...] = (self.numerator, self.denominator)
        if not any(part.fp or part.tn for part in parts):
            return True
        if not any(part.tp or part.fn for part in parts):
            return False
        return None


MEASURES = {
    measure.name: measure
    for measure in (
        Measure("selection rate", Weights(tp=1, fp=1), EVERYBODY),
        Measure("true positive rate", Weights(tp=1), Weights(tp=1, fn=1)),
        Measure("false positive rate", Weights(fp=1), Weights(fp=1, tn=1)),
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
