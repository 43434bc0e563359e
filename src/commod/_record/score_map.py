"""Record of the map from edited scores to calibrated probabilities, and of what it does."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ScoreKnot:
    """An edited score, and the calibrated probability that it is mapped to."""

    score: float
    probability: float


@dataclass(frozen=True)
class ScoreMap:
    """A rising line through `knots`, from edited scores to calibrated probabilities.

    Both are of the label that the score predicts. Scores and probabilities of the knots rise
    strictly. The scores begin at 0 and end at 1. One knot maps the threshold to itself, so that
    score > threshold exactly where probability > threshold.

    The figures are of the `n_rows` fit rows that the map was learned on. Those of the calibrated
    probabilities are out-of-fold: each row has the value of a map that was learned without it.
    A Brier score is the mean squared difference of score and true label. An error is the mean
    distance between score and observed share in ten bins. `before` is the base score, `after` the
    edited score.

    Examples
    --------
    >>> knots = ScoreKnot(0.0, 0.1), ScoreKnot(0.5, 0.5), ScoreKnot(1.0, 0.8)
    >>> ScoreMap(knots, 100, 0.2, 0.21, 0.19, 0.05, 0.06, 0.02).threshold_knot(0.5)
    1
    """

    knots: tuple[ScoreKnot, ...]
    n_rows: int
    brier_before: float
    brier_after: float
    brier_calibrated: float
    error_before: float
    error_after: float
    error_calibrated: float

    def threshold_knot(self, threshold: float) -> int | None:
        """Return the position of the knot that maps the threshold to itself; None without one."""
        positions = [i for i, knot in enumerate(self.knots) if knot.score == threshold]
        is_kept = bool(positions) and self.knots[positions[0]].probability == threshold
        return positions[0] if is_kept else None
