"""Records of why decisions change and of what scores say: points, segments, curves, calibration."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from commod._record.plain import ADDED_LATER, IF_SET

Value = str | bool | int | float
Direction = Literal["gain", "loss"]


@dataclass(frozen=True)
class Estimate:
    """A figure and the two ends of its interval; None if undefined or not known."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Condition:
    """One condition on a raw column: a range low ≤ x < high, or one of several values.

    `low` or `high` is None if the range is open; `values` is None for a range. `missing` says
    whether a missing value satisfies the condition. If `negated`, x must be none of `values`.
    """

    column: str
    low: float | None
    high: float | None
    values: tuple[Value, ...] | None
    missing: bool
    negated: bool
    text: str


@dataclass(frozen=True)
class Segment:
    """A rule on raw columns that describes people whose decision changes in one direction.

    `size` people satisfy all conditions and have the base decision that can change in this
    direction. `n_changed` of them change; this share is `precision`, and it is above one half.
    `coverage` is n_changed over all changes in this direction. `n_new` counts the changes that no
    earlier segment describes.
    """

    direction: Direction
    conditions: tuple[Condition, ...]
    text: str
    size: int
    n_changed: int
    n_new: int
    precision: Estimate
    coverage: float


@dataclass(frozen=True)
class Segments:
    """A few rules that describe the changed people: gains before losses, best rule first.

    `n_described_gains` of `n_gains` gains satisfy at least one rule for gains. The same holds for
    losses.
    """

    segments: tuple[Segment, ...]
    n_rows: int
    n_gains: int
    n_losses: int
    n_described_gains: int
    n_described_losses: int


@dataclass(frozen=True)
class CardLine:
    """One term of a scorecard and the points that it adds to the sum.

    `unit` is "per unit" for a number, "" otherwise. `counted` is what points per unit are
    multiplied by, such as "age − 45"; "" for other terms, or if it is not known. `spread` is the
    standard deviation, over the explained people, of what the term adds to the sum; None if not
    measured. `concept` is the number of the concept that the term belongs to; None if several
    share it. `exact` is the category that the term reads, with its type, or the number that a
    missing one counts as; None for other terms, and in audits of earlier versions.
    """

    term: str
    column: str
    unit: str
    points: float
    spread: float | None
    concept: int | None
    counted: str = field(default="", metadata=ADDED_LATER)
    exact: Value | None = field(default=None, metadata=IF_SET)

    @property
    def text(self) -> str:
        """Return what the points count, as people read it."""
        return self.counted or self.term


@dataclass(frozen=True)
class Concept:
    """One concept and its points.

    If the sum of the card is r, the points of a concept are on −r: positive points push towards
    a change. If the sum is evidence, they are points on the evidence, as those of the card.

    A concept is active for a person where it adds more to −r than its mean on the fit rows.
    `change_if_active` and `change_if_inactive` are shares of the explained people who change.
    `contribution` is the factor with which the concept enters the sum; `lines`, its terms, include
    it already and are ordered strongest first.
    """

    number: int
    name: str
    contribution: float
    n_active: int
    n_inactive: int
    change_if_active: Estimate
    change_if_inactive: Estimate
    lines: tuple[CardLine, ...]


@dataclass(frozen=True)
class CardRule:
    """How the sum of a card's points decides where it is evidence; see `EvidenceRule`.

    `sentences` say the rule in plain words.
    """

    cut: float
    nearness: float
    mean_distance: float
    favorable_above: bool
    may_gain: bool
    may_lose: bool
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class Card:
    """The total scorecard, intercept + points, and the concepts that it is split into.

    The sum is r where `rule` is None: points below 0 push towards a change. With a rule the sum is
    evidence: positive points push towards the favourable decision, negative ones towards the other.
    """

    intercept: float
    lines: tuple[CardLine, ...]
    concepts: tuple[Concept, ...]
    rule: CardRule | None = field(default=None, metadata=ADDED_LATER)


def is_evidence(card: Card | None) -> bool:
    """Return whether the points of a card are evidence: it is known and has a rule."""
    return card is not None and card.rule is not None


# ---------------------------------------------------------------------------------------------
# Records of a trade-off: updates along a frontier, each with its segments and points


@dataclass(frozen=True)
class Step:
    """One update of a frontier; no other update on it is as fair with fewer changes.

    `limit` is the fewest changes, as a share of the rows, that reach the same fairness in the same
    directions. A randomised update has expected counts, with fractions, and no segments. `card` is
    None for an update that is not a scorecard. `outscoring` is the share of pairs of the same group
    in which a person who gains has a higher base score than one who stays rejected;
    `outscoring_losses` that in which a person who loses has a lower one than one who does not.
    Expected figures are those on as many new people as were fitted; None if not known.
    `blind_limit` estimates the share of changes that the same fairness needs without reading the
    group; None if it was not estimated, or is out of reach.
    """

    target: float | None
    fairness: float
    accuracy: float | None
    change_rate: float
    n_changes: float
    n_gains: float
    n_losses: float
    limit: float | None
    settings: dict[str, float | str | None]
    segments: Segments | None
    card: Card | None
    outscoring: float | None = field(default=None, metadata=ADDED_LATER)
    outscoring_losses: float | None = field(default=None, metadata=ADDED_LATER)
    expected_fairness: float | None = field(default=None, metadata=ADDED_LATER)
    expected_change_rate: float | None = field(default=None, metadata=ADDED_LATER)
    expected_accuracy: float | None = field(default=None, metadata=ADDED_LATER)
    blind_limit: Estimate | None = field(default=None, metadata=ADDED_LATER)


@dataclass(frozen=True)
class TradeOff:
    """The efficient updates of a frontier, ordered from the base model's fairness to the fairest.

    `higher_is_fairer` says whether higher values of `metric` are fairer.
    """

    constraints: str
    metric: str
    method: str
    rows: str
    n_rows: int
    base_fairness: float | None
    base_accuracy: float | None
    steps: tuple[Step, ...]
    higher_is_fairer: bool = field(default=True, metadata=ADDED_LATER)


# ---------------------------------------------------------------------------------------------
# ROC curves of groups, and who outscores whom


@dataclass(frozen=True)
class AreaBetween:
    """The area between two ROC curves (ABROCA), and what chance alone would give.

    If the true curves were equal, the area would be `chance` on average on as many people. With
    the probability (1 + level) / 2 it would be at most `chance_high`.
    """

    area: Estimate
    chance: float
    chance_high: float

    @property
    def may_be_chance(self) -> bool:
        """Return whether the area is no larger than chance alone often gives."""
        return self.area.value is None or self.area.value <= self.chance_high


@dataclass(frozen=True)
class LargestGap:
    """The pair of groups with the largest area between their ROC curves."""

    first: str
    second: str
    gap: AreaBetween


@dataclass(frozen=True)
class GroupRoc:
    """The ROC curve of one group before and after the update.

    `n_positive` people have the label that the score predicts, `n_negative` do not. `auc_before`
    and `auc_after` are the areas under the curve, `auc_loss` the first minus the second, with the
    interval of paired areas. `gap_before` and `gap_after` are the areas between the curve and that
    of the reference group.

    `curve_before` and `curve_after` are points (false positive rate, true positive rate) of the
    curve, for a picture. At least five people lie between two points.

    A figure is None, and a curve is empty, where scores were not given. `why_unknown` says why a
    group has no figures at all; it is empty for the others.

    Examples
    --------
    >>> area = Estimate(0.8, 0.7, 0.9)
    >>> GroupRoc("a", 40, 60, area, area).auc_before.value
    0.8
    """

    name: str
    n_positive: int
    n_negative: int
    auc_before: Estimate | None = None
    auc_after: Estimate | None = None
    auc_loss: Estimate | None = None
    gap_before: AreaBetween | None = None
    gap_after: AreaBetween | None = None
    curve_before: tuple[tuple[float, float], ...] = ()
    curve_after: tuple[tuple[float, float], ...] = ()
    why_unknown: str = ""

    @property
    def areas(self) -> tuple[Estimate | None, Estimate | None]:
        """Return the areas under the curve before and after."""
        return self.auc_before, self.auc_after

    @property
    def n(self) -> int:
        """Return the number of people."""
        return self.n_positive + self.n_negative


@dataclass(frozen=True)
class RocFigures:
    """How well scores rank the people of each compared group.

    `reference` is the group whose curve the others are compared with: the largest group that has a
    curve, because the curve of a small group is uncertain. `largest_before` and `largest_after` are
    the largest areas over all pairs of groups; their intervals and `chance_high` hold for all pairs
    together. `n_left_out` groups are compared, but smaller than those that are listed.

    `n_bins` is the number of bins that scores were counted in, None if they were not: the
    intervals of areas then include the largest error that the bins can make.
    """

    reference: str | None
    groups: tuple[GroupRoc, ...]
    largest_before: LargestGap | None
    largest_after: LargestGap | None
    n_left_out: int = 0
    n_bins: int | None = None


@dataclass(frozen=True)
class GroupOutscoring:
    """The probability among the pairs of one group; see `Outscoring`.

    The probability is undefined with fewer than five people on one side.
    """

    name: str
    n_changed: int
    n_others: int
    probability: Estimate


@dataclass(frozen=True)
class Outscoring:
    """How the base scores of people who change compare with those of people who do not.

    A pair is a person who changes and another one with the same base decision who does not. Scores
    are those of the favourable label. `same_group` is the share of pairs of the same group in which
    a gainer has the higher score, or a loser the lower one; ties count half. Below 0.5, the update
    passes over people who are nearer to the other decision. `overall` is the share of all pairs.

    The `n_changed` and `n_others` people are those of the compared groups. `true_share_changed` and
    `true_share_others` are the shares of them whose true label is favourable, None without labels.

    Examples
    --------
    >>> half = Estimate(0.5, 0.4, 0.6)
    >>> Outscoring("gain", 20, 90, half, half, None, None, ()).n_changed
    20
    """

    change: Direction
    n_changed: int
    n_others: int
    same_group: Estimate
    overall: Estimate
    true_share_changed: Estimate | None
    true_share_others: Estimate | None
    groups: tuple[GroupOutscoring, ...]


# ---------------------------------------------------------------------------------------------
# The map from edited scores to calibrated probabilities, and what it does


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
