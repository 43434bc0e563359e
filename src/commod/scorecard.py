"""Define the scorecard, which turns raw columns into the ratio r(x), and the decision rule.

A `Scorecard` is the explanation, the artefact and the definition of an update. It holds no
rows and no sensitive values. Everything here is NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from commod._data.arrays import Mask
from commod._data.columns import Column
from commod._data.encoding import (
    Encoding,
    TermTable,
)
from commod._text import Table, first_rows, number, snippet, visible
from commod._text import points as signed_points

__all__ = ["Scorecard"]

if TYPE_CHECKING:
    from commod._data.base_model import BaseScores

MARGIN_COLUMN = "base margin"  # column of the margin, for COMMOD with `reads_score`
DISTANCE_COLUMN = "distance from the threshold"  # column of |score − threshold|
UNREACHED_CUT = 1e12  # of an edited scorecard that has points, but changes nobody
SCORE_EDITS = ("changed_only", "all")  # which scores an update edits
CROSSING_WIDTH = 0.01  # share of the room beyond the threshold that changed scores are put into
SCORE_CLIP = 1e-15  # keeps the logit of a score of 0 or 1 finite
MAX_SHOWN = 60  # terms of a table in a notebook
ADD_POINTS = "Add the points."
MAX_EXPONENT = 30.0  # sigmoid(30) is 1 - 1e-13; some SQL engines refuse exp of large numbers


class Operations:
    """The operations that the decision rule is written in, for NumPy: values are arrays (n,).

    The rule is written once, below, with these operations and with those of Python. A subclass
    computes it in another engine, so all engines agree.

    Examples
    --------
    >>> NUMPY.minimum(np.array([0.2, 0.7]), 0.5)
    array([0.2, 0.5])
    """

    def number(self, value: float) -> Any:
        """Return a number that several steps of the rule use."""
        return value

    def kept(self, value: Any) -> Any:
        """Return a value that is computed once, although the rule reads it several times."""
        return value

    def where(self, condition: Any, value: Any, other: Any) -> Any:
        """Return the value where the condition holds, elsewhere the other value."""
        return np.where(condition, value, other)

    def minimum(self, value: Any, bound: float) -> Any:
        """Return the smaller of a value and a number."""
        return np.minimum(value, bound)

    def maximum(self, value: Any, bound: float) -> Any:
        """Return the larger of a value and a number."""
        return np.maximum(value, bound)

    def clip(self, value: Any, low: Any, high: Any) -> Any:
        """Return the value, or the nearer end of a range if it lies outside."""
        return np.clip(value, low, high)

    def logit(self, share: Any, threshold: float) -> Any:
        """Return logit(share) − logit(threshold)."""
        return scipy.special.logit(share) - logit_of(threshold)

    def sigmoid(self, value: Any, one: Any) -> Any:
        """Return 1 / (1 + exp(−value))."""
        return scipy.special.expit(value)


NUMPY = Operations()


@dataclass(frozen=True)
class EvidenceRule:
    """How the sum v of a scorecard's points becomes a ratio: r = cost − side · v / cut.

    The side is +1 for people with the unfavourable base decision, whom a high v lets gain. It is −1
    for people with the favourable one, whom a low v lets lose. A change costs
    ``1 − nearness + nearness · |score − threshold| / mean_distance``. So with nearness 0 every
    change costs 1, and a decision changes where side · v > cut.

    Parameters
    ----------
    cut : float
        κ > 0, in the unit of the points.
    nearness : float
        t in [0, 1]: how much a change costs more, the farther the score is from the threshold.
    mean_distance : float
        m > 0, in the unit of the score.
    favorable_above : bool
        Whether a score above the threshold is the favourable decision.
    may_gain, may_lose : bool
        The directions in which decisions may change. r is held at 1 where they may not.

    Examples
    --------
    >>> import numpy as np
    >>> rule = EvidenceRule(cut=0.5)
    >>> rule.ratio(np.array([0.75, -0.75]), np.array([0.4, 0.6]), threshold=0.5)
    array([-0.5, -0.5])
    """

    cut: float
    nearness: float = 0.0
    mean_distance: float = 1.0
    favorable_above: bool = True
    may_gain: bool = True
    may_lose: bool = True

    @property
    def may_raise(self) -> bool:
        """Return whether a score may be raised above the threshold."""
        return self.may_gain if self.favorable_above else self.may_lose

    @property
    def may_lower(self) -> bool:
        """Return whether a score may be lowered to the threshold or below."""
        return self.may_lose if self.favorable_above else self.may_gain

    @property
    def fixed_cost(self) -> float:
        """Return what a change costs at the threshold."""
        return 1.0 - self.nearness

    @property
    def cost_per_distance(self) -> float:
        """Return what a change costs more per unit of the distance from the threshold."""
        return self.nearness / self.mean_distance

    @property
    def pull_above(self) -> float:
        """Return side / cut of a score above the threshold; it is −side / cut below."""
        return (-1.0 if self.favorable_above else 1.0) / self.cut

    def costs(self, distance: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what a change costs at each distance of the score from the threshold, (n,)."""
        return np.asarray(self.fixed_cost + self.cost_per_distance * distance)

    def is_favorable(self, scores: NDArray[np.float64], threshold: float) -> NDArray[np.bool_]:
        """Return whether each base decision is the favourable one, shape (n,)."""
        return np.asarray((scores > threshold) == self.favorable_above)

    def ratio(
        self, total: NDArray[np.float64], scores: NDArray[np.float64], threshold: float
    ) -> NDArray[np.float64]:
        """Return r of each row, shape (n,), from the sum of its points; 1 if it may not change."""
        is_above = scores > threshold
        r = self.ratio_in(NUMPY, total, distances(scores, threshold), is_above)
        return np.where(np.where(is_above, self.may_lower, self.may_raise), r, 1.0)

    def ratio_in(self, engine: Operations, total: Any, distance: Any, is_above: Any) -> Any:
        """Return r before any gate, from values of an engine.

        It is cost − v · pull in this order, so that all engines agree bit by bit. None divides v by
        the cut: polars would multiply by a reciprocal.
        """
        pull = engine.where(is_above, self.pull_above, -self.pull_above)
        cost = distance * self.cost_per_distance + self.fixed_cost
        return cost - total * pull

    def sentences(
        self,
        unfavorable: str = "unfavourable",
        favorable: str = "favourable",
        max_margin: float | None = None,
    ) -> list[str]:
        """Return in words when a decision changes: a sentence for each direction that is allowed.

        The first two parameters are names of the decisions. `max_margin` is the largest distance
        from the threshold at which a decision may change.

        Examples
        --------
        >>> EvidenceRule(cut=0.42, may_lose=False).sentences("“no”", "“yes”")
        ['If the base decision is “no” and the sum is above 0.42, the decision becomes “yes”.']
        """
        if self.cut >= UNREACHED_CUT:
            return ["No decision changes."]
        start, slope = (f"{self.cut * x:.6g}" for x in (self.fixed_cost, self.cost_per_distance))
        farther = "the farther the score is from the threshold"
        minus = "−" if self.fixed_cost else ""
        sides = (
            (self.may_gain, unfavorable, favorable, f"above {start}", "more", "plus"),
            (self.may_lose, favorable, unfavorable, f"below {minus}{start}", "less", "minus"),
        )
        sentences = []
        for is_allowed, before, after, beyond, more, plus in sides:
            if is_allowed:
                if self.nearness:
                    beyond += f" ({more}, {farther}: {plus} {slope} × the distance)"
                condition = f"If the base decision is {before} and the sum is {beyond}"
                sentences.append(f"{condition}, the decision becomes {after}.")
        if sentences and max_margin is not None:
            far = f"the score is more than {max_margin:g} from the threshold"
            sentences.append(f"No decision changes if {far}.")
        return sentences or ["No decision changes."]


@dataclass(frozen=True, eq=False)
class Scorecard:
    """A table of points on raw columns whose sum is r(x), split over k concepts.

    The sum is intercept + Σ_t points_t · term_t(x), with points = contributions @ concept_points.
    Each concept is itself a table of points. Terms are added in the order of `encoding`. With a
    `rule`, the sum is not r but the evidence v, and the rule turns v into r.

    Parameters
    ----------
    encoding : Encoding
        Which raw column each of the d terms reads.
    intercept : float
        The sum before any points are added.
    contributions : ndarray of shape (k,)
        Weight of each concept in the sum; 0 for a concept that is not used.
    concept_points : ndarray of shape (k, d)
        Points of each concept in raw units, exactly zero where a term is not used.
    concept_intercepts : ndarray of shape (k,)
        Value of each concept before any points are added.
    rule : EvidenceRule, default=None
        How the sum of the points becomes r; None where the sum is r.

    Examples
    --------
    >>> from commod import COMMOD
    >>> from commod.datasets import make_biased
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(400, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> update = COMMOD(model, epochs=0, random_state=0)
    >>> update.fit(data.data, data.target, sensitive_features=data.sensitive_features).scorecard_
    r = 1, no points: no decision changes.
    """

    encoding: Encoding
    intercept: float
    contributions: NDArray[np.float64]
    concept_points: NDArray[np.float64]
    concept_intercepts: NDArray[np.float64]
    rule: EvidenceRule | None = None
    points: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        points = np.zeros(self.concept_points.shape[1])
        for weight, table in zip(self.contributions, self.concept_points, strict=True):
            points += (
                weight * table
            )  # in this order, because the rounding of a matrix product depends on BLAS
        object.__setattr__(self, "points", points)

    def ratio(self, columns: Sequence[Column]) -> NDArray[np.float64]:
        """Return r(x) of each row, shape (n,); with a `rule`, the evidence v(x)."""
        return self.evaluate(self.encoding.encode(columns))

    def evaluate(self, terms: TermTable) -> NDArray[np.float64]:
        """Return what `ratio` returns, shape (n,), from rows that are encoded already."""
        return terms.total(self.points, self.intercept)

    def concepts(self, columns: Sequence[Column]) -> NDArray[np.float64]:
        """Return the value of each concept on each row, shape (n, k)."""
        terms = self.encoding.encode(columns)
        tables = zip(self.concept_points, self.concept_intercepts, strict=True)
        return np.column_stack([terms.total(points, float(start)) for points, start in tables])

    @property
    def n_terms_used(self) -> int:
        """Return the number of terms with points."""
        return int(np.count_nonzero(self.points))

    @property
    def columns_used(self) -> list[str]:
        """Return the raw columns that have points, in order."""
        names = np.array(self.encoding.term_columns, dtype=object)
        return list(dict.fromkeys(names[self.points != 0]))

    @property
    def is_whole(self) -> bool:
        """Return whether all points are whole numbers; without a rule, the intercept is halfway."""
        halves = [self.intercept - 0.5] if self.rule is None else []
        values = [*halves, *self.points.tolist()]
        return bool(self.points.any()) and all(float(value).is_integer() for value in values)

    def _heading(self, start: str, form: str) -> list[str]:
        """Return how points become a decision; `form` puts r, its start and the rule together."""
        if self.rule is not None:
            first = f"Start at {start} and add the points." if self.intercept else ADD_POINTS
            return [first, *self.rule.sentences()]
        rule = "a decision changes where r < 0"
        if self.is_whole:
            total = math.floor(-self.intercept)
            rule = f"a decision changes where the points add up to {total:d} or less"
        return [form.format(start=start, rule=rule)]

    @property
    def _sum(self) -> str:
        return "r" if self.rule is None else "the sum"

    def in_use(self, *, concepts: bool = False) -> Scorecard:
        """Return a scorecard with the same r that reads only columns with points.

        With `concepts`, a column is kept if any concept has points for it, even a concept without
        weight in r. Then the values of all concepts stay the same, too.
        """
        has_points = self.concept_points.any(axis=0) if concepts else self.points != 0
        names = self.encoding.term_columns
        used = {names[t] for t in np.flatnonzero(has_points)}
        kept = np.array([name in used for name in names], dtype=bool)
        return replace(
            self,
            encoding=Encoding(tuple(c for c in self.encoding.columns if c.name in used)),
            concept_points=self.concept_points[:, kept],
        )

    def rows(self, concept: int | None = None) -> list[tuple[str, float]]:
        """Return (term name, points) for each term with points, in the order of the columns.

        These are the points of r by default, and those of one concept where `concept` is given.
        """
        points = self.points if concept is None else self.concept_points[concept]
        terms = zip(self.encoding.term_names, points.tolist(), strict=True)
        return [term for term in terms if term[1]]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Scorecard):
            return False
        return all(np.array_equal(value, vars(other)[name]) for name, value in vars(self).items())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if not self.n_terms_used:
            return self._without_points()
        concepts_used = np.flatnonzero(self.contributions).tolist()
        return "\n".join(map(self._table, [None, *concepts_used]))

    def _repr_html_(self) -> str:
        if not self.n_terms_used:
            return snippet("Scorecard", [self._without_points()])
        form = "r = {start} and the points of each term; {rule}."
        heading = self._heading(number(self.intercept, 3), form)
        concepts_used = np.flatnonzero(self.contributions).tolist()
        tables = [self._notebook_table(concept) for concept in [None, *concepts_used]]
        return snippet("Scorecard", heading, tables)

    def _without_points(self) -> str:
        if self.rule is None:
            changes = "no decision changes" if self.intercept >= 0 else "every decision changes"
            return f"r = {self.intercept:.4g}, no points: {changes}."
        if abs(self.intercept) <= self.rule.cut * self.rule.fixed_cost:
            return "No points: no decision changes."
        alike = f"No points: the sum is {self.intercept:.4g} for everybody."
        return " ".join([alike, *self.rule.sentences()])

    def _notebook_table(self, concept: int | None) -> Table:
        caption = f"Points in {self._sum}"
        if concept is not None:
            weight = signed_points(self.contributions[concept])
            start = number(self.concept_intercepts[concept], 3)
            caption = f"Concept {concept}: {start} and points, weight {weight} in {self._sum}"
        counted = self.encoding.counted_names
        rows = [
            (
                counted.get(name, name),
                signed_points(value),
                "per unit" if name in counted else "if it applies",
            )
            for name, value in self.rows(concept)
        ]
        header = ("term", "points", "counted")
        return first_rows(caption, header, rows, most=MAX_SHOWN, all_in="rows()")

    def _table(self, concept: int | None) -> str:
        if concept is None:
            form = "r(x) = {start} and points ({rule})"
            heading = self._heading(f"{self.intercept:+.4g}", form)
        else:
            start, weight = self.concept_intercepts[concept], self.contributions[concept]
            of = f"concept {concept}, weight {weight:+.4g} in {self._sum}"
            heading = [f"{of}: {start:+.4g} and points"]
        counted = self.encoding.counted_names
        rows = [
            (visible(counted.get(name, name)), points, " per unit" if name in counted else "")
            for name, points in self.rows(concept)
        ]
        width = max((len(name) for name, *_ in rows), default=0)
        are_whole = self.is_whole and all(points.is_integer() for _, points, _ in rows)
        texts = [f"{points:+.0f}" if are_whole else points_text(points) for _, points, _ in rows]
        pairs = zip(rows, texts, strict=True)
        lines = [f"  {name:<{width}}  {text:>10}{unit}" for (name, _, unit), text in pairs]
        return "\n".join([*heading, *lines])


def points_text(points: float) -> str:
    """Return points as text; points that are small but not 0 never look like 0."""
    return f"{points:+.4f}" if abs(points) >= 0.001 else f"{points:+.3g}"


def logit_of(threshold: float) -> float:
    """Return the logit of one number, with the bits of `scipy.special`, which takes long to load.

    Examples
    --------
    >>> logit_of(0.5), logit_of(0.8)
    (0.0, 1.3862943611198908)
    """
    if 0.3 <= threshold <= 0.65:  # where the odds are near 1, their logarithm loses digits
        twice = 2.0 * (threshold - 0.5)
        return math.log1p(twice) - math.log1p(-twice)
    return math.log(threshold / (1.0 - threshold))


def margins(scores: NDArray[np.float64], threshold: float) -> NDArray[np.float64]:
    """Return z = logit(score) − logit(threshold), zero at the decision boundary, shape (n,).

    Examples
    --------
    >>> import numpy as np
    >>> margins(np.array([0.2, 0.5, 0.8]), 0.5).round(3)
    array([-1.386,  0.   ,  1.386])
    """
    return np.asarray(margins_in(NUMPY, scores, scores == threshold, threshold), dtype=np.float64)


def margins_in(engine: Operations, scores: Any, is_at_threshold: Any, threshold: float) -> Any:
    """Return margins from scores of an engine.

    They are exactly 0 at the threshold, so that a large ratio amplifies no rounding.
    """
    clipped = engine.kept(engine.clip(scores, SCORE_CLIP, 1 - SCORE_CLIP))
    return engine.where(is_at_threshold, 0.0, engine.logit(clipped, threshold))


def distances(scores: NDArray[np.float64], threshold: float) -> NDArray[np.float64]:
    """Return the distance of each score from the threshold, shape (n,), in the unit of the score.

    Examples
    --------
    >>> import numpy as np
    >>> distances(np.array([0.25, 0.5]), 0.5)
    array([0.25, 0.  ])
    """
    return np.abs(scores - threshold)


def is_within(
    scores: NDArray[np.float64], threshold: float, max_margin: float | None
) -> NDArray[np.bool_]:
    """Return which scores are at most `max_margin` from the threshold, shape (n,); None: all.

    Examples
    --------
    >>> import numpy as np
    >>> is_within(np.array([0.25, 0.5]), 0.5, 0.125)
    array([False,  True])
    """
    if max_margin is None:
        return np.ones(len(scores), dtype=bool)
    return np.asarray(distances(scores, threshold) <= max_margin)


def decide(
    scores: NDArray[np.float64], ratio: NDArray[np.float64], threshold: float
) -> NDArray[np.bool_]:
    """Return the new decisions, shape (n,), by the rule that every engine uses.

    The base decision (score > threshold) is kept where r ≥ 0 or the score equals the threshold, and
    is inverted elsewhere.

    Examples
    --------
    >>> import numpy as np
    >>> decide(np.array([0.2, 0.5, 0.9]), np.array([-0.1, -1.0, 0.0]), threshold=0.5)
    array([ True, False,  True])
    """
    return np.asarray((scores > threshold) ^ is_changed(ratio, scores == threshold))


def is_changed(ratio: Any, is_at_threshold: Any) -> Any:
    """Return whether a decision changes, from values of any engine."""
    return (ratio < 0.0) & ~is_at_threshold


def new_decisions(base: BaseScores, ratio: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return whether each new decision is `pos_label`, shape (n,), whatever the score's label.

    Examples
    --------
    >>> import numpy as np
    >>> from commod._data.base_model import BaseScores
    >>> base = BaseScores(np.array([[0.8, 0.2], [0.5, 0.5]]), 0.5, is_for_positive=False)
    >>> base.decisions, new_decisions(base, np.array([-1.0, -1.0]))
    (array([ True,  True]), array([False,  True]))
    """
    return decide(base.scores, ratio, base.threshold) == base.is_for_positive


class AllowedChanges(NamedTuple):
    """Whether an update may make decisions positive (raise), and negative (lower).

    `max_margin` is the largest |score − threshold| at which a decision may change; None: any.
    """

    may_raise: bool = True
    may_lower: bool = True
    max_margin: float | None = None

    def mask(self, base: BaseScores) -> Mask:
        """Return the rows whose decision may change, shape (n,); none with score = threshold."""
        return np.asarray(self.is_open(base) & ~base.at_threshold)

    def is_open(self, base: BaseScores) -> Mask:
        """Return the rows on which r acts, shape (n,); elsewhere it is held at 1."""
        allowed = np.where(base.decisions, self.may_lower, self.may_raise)
        return np.asarray(allowed & is_within(base.scores, base.threshold, self.max_margin))


def edited_scores(
    scores: NDArray[np.float64],
    ratio: NDArray[np.float64],
    threshold: float,
    score_edit: str = "all",
) -> NDArray[np.float64]:
    """Return the edited scores in [0, 1], shape (n,).

    - "all": g = sigmoid(r·z + logit(threshold)). Where r is exactly 1, the edited score equals the
      base score bit for bit. Elsewhere rounding could put a score on the wrong side of the
      threshold, so `on_their_side` corrects it.
    - "changed_only": the base score bit for bit where the decision stays. Where it changes,
      `crossing_at` places the score just beyond the threshold.

    Examples
    --------
    >>> import numpy as np
    >>> edited_scores(np.array([0.2, 0.9]), np.array([-1.0, 1.0]), threshold=0.5)
    array([0.8, 0.9])
    >>> edited_scores(np.array([0.2, 0.9]), np.array([-1.0, 0.3]), 0.5, "changed_only")
    array([0.5035, 0.9   ])
    """
    changed = is_changed(ratio, scores == threshold)
    decisions, margin = (scores > threshold) ^ changed, margins(scores, threshold)
    edited = edited_in(NUMPY, scores, ratio, margin, changed, decisions, threshold, score_edit)
    return np.asarray(edited)


def edited_in(
    engine: Operations,
    scores: Any,
    ratio: Any,
    margin: Any,
    changed: Any,
    decisions: Any,
    threshold: float,
    score_edit: str,
) -> Any:
    """Return the edited scores from values of an engine."""
    if score_edit == "changed_only":
        return engine.where(changed, crossing_at(threshold).place(scores, engine), scores)
    ends = threshold, 1.0, -MAX_EXPONENT, MAX_EXPONENT
    cut, one, low, high = map(engine.number, ends)
    exponent = engine.clip(ratio * margin, low, high)
    edited = engine.sigmoid(exponent + logit_of(threshold), one)
    edited = engine.kept(engine.where(ratio == one, scores, edited))
    return on_their_side_in(engine, edited, decisions, cut, threshold)


class Crossing(NamedTuple):
    """Where a score goes whose decision changes: two rising lines, one on each side.

    - A raised score is the larger of up_start + up_slope · score and `just_above`.
    - A lowered score is the smaller of down_start − down_slope · (1 − score) and `just_below`.

    `just_above` and `just_below` are the numbers next to the threshold. They act only where a
    threshold is so near to 0 or 1 that rounding would put a score onto it.

    Examples
    --------
    >>> import numpy as np
    >>> crossing = crossing_at(0.5)
    >>> crossing.place(np.array([0.4, 0.6]))  # one is raised, one is lowered
    array([0.5045, 0.4955])
    >>> crossing.threshold, round(crossing.up_start, 4)
    (0.5, 0.5025)
    """

    threshold: float
    up_start: float
    up_slope: float
    down_start: float
    down_slope: float
    just_above: float
    just_below: float

    def place(self, scores: Any, engine: Operations = NUMPY) -> Any:
        """Return each score on the other side of the threshold, shape (n,)."""
        raised = scores * self.up_slope + self.up_start
        lowered = self.down_start - (1.0 - scores) * self.down_slope
        is_above = scores > self.threshold
        lowered = engine.minimum(lowered, self.just_below)
        return engine.where(is_above, lowered, engine.maximum(raised, self.just_above))


def crossing_at(threshold: float) -> Crossing:
    """Return the rule by which changed scores cross this threshold t.

    With w = `CROSSING_WIDTH`, a raised score is t + (1 − t)·w·(1 + score/t)/2, and a lowered score
    is t − t·w·(1 + (1 − score)/(1 − t))/2. So people who gain keep their order, as do people who
    lose, and all of them stay near the threshold. Every engine computes the same products and sums.

    Examples
    --------
    >>> import numpy as np
    >>> crossing_at(0.5).place(np.array([0.0, 0.4, 0.6, 1.0]))
    array([0.5025, 0.5045, 0.4955, 0.4975])
    """
    room_above, room_below = (1 - threshold) * CROSSING_WIDTH, threshold * CROSSING_WIDTH
    return Crossing(
        threshold=threshold,
        up_start=threshold + room_above / 2,
        up_slope=room_above / (2 * threshold),
        down_start=threshold - room_below / 2,
        down_slope=room_below / (2 * (1 - threshold)),
        just_above=math.nextafter(threshold, 1.0),
        just_below=math.nextafter(threshold, 0.0),
    )


def crossing_ends(threshold: float) -> tuple[float, float]:
    """Return the ends of the band below and above the threshold that changed scores are put into.

    Examples
    --------
    >>> crossing_ends(0.5)
    (0.495, 0.505)
    """
    return threshold - threshold * CROSSING_WIDTH, threshold + (1 - threshold) * CROSSING_WIDTH


def on_their_side(
    scores: NDArray[np.float64], decisions: NDArray[np.bool_], threshold: float
) -> NDArray[np.float64]:
    """Return scores, shape (n,), moved to the side of the threshold that fits their decisions.

    A score on the wrong side becomes the nearest number on the right side.

    Examples
    --------
    >>> import numpy as np
    >>> on_their_side(np.array([0.7, 0.6]), np.array([True, False]), threshold=0.5)
    array([0.7, 0.5])
    """
    return np.asarray(on_their_side_in(NUMPY, scores, decisions, threshold, threshold))


def on_their_side_in(
    engine: Operations, scores: Any, decisions: Any, cut: Any, threshold: float
) -> Any:
    """Return scores on the side of their decisions, from values of an engine; `cut` is one, too."""
    is_above = scores > cut
    raised = engine.where(is_above, scores, math.nextafter(threshold, 1.0))
    lowered = engine.where(is_above, cut, scores)
    return engine.where(decisions, raised, lowered)
