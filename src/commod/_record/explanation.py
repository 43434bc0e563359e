"""Records of why decisions change: points, concepts and segments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from commod._record.plain import ADDED_LATER

Value = str | bool | int | float
Direction = Literal["gain", "loss"]


@dataclass(frozen=True)
class Estimate:
    """A figure and the two ends of its interval; None where undefined or not known."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Condition:
    """One condition on a raw column: a range low ≤ x < high, or one of several values.

    `low` or `high` is None where the range is open; `values` is None for a range. `missing` says
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
    multiplied by, such as "age − 45"; "" for other terms, or where it is not known. `spread` is the
    standard deviation, over the explained people, of what the term adds to the sum; None where not
    measured. `concept` is the number of the concept that the term belongs to; None where several
    share it.
    """

    term: str
    column: str
    unit: str
    points: float
    spread: float | None
    concept: int | None
    counted: str = field(default="", metadata=ADDED_LATER)

    @property
    def text(self) -> str:
        """Return what the points count, as people read it."""
        return self.counted or self.term


@dataclass(frozen=True)
class Concept:
    """One concept and its points.

    Where the sum of the card is r, the points of a concept are on −r: positive points push towards
    a change. Where the sum is evidence, they are points on the evidence, as those of the card.

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
    Expected figures are those on as many new people as were fitted; None where not known.
    `blind_limit` estimates the share of changes that the same fairness needs without reading the
    group; None where it was not estimated, or is out of reach.
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
