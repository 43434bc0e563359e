"""Define the content of a patch file: scorecard, gate, labels, request, figures and origin.

The classes are the schema `commod.patch/3`. Their fields are the keys of the file. `file.py` says
which of them earlier versions lack; they are None in a patch that was loaded from such a file.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Literal

import numpy as np

from commod._data.encoding import (
    BinTerms,
    CategoryTerms,
    ColumnTerms,
    Encoding,
    NumericTerms,
)
from commod._record.audit import FurtherConstraint
from commod._record.edits import EditFigures, EditRecord
from commod._record.explanation import ScoreMap, Value
from commod._record.plain import ADDED_LATER
from commod.scorecard import MARGIN_COLUMN, EvidenceRule, Scorecard

SCHEMA = "commod.patch/3"


@dataclass(frozen=True)
class TermPoints:
    """The points of one term in r, and its points in each concept before the concept's weight."""

    points: float
    concepts: tuple[float, ...]


@dataclass(frozen=True)
class NumberColumn:
    """A numeric column: `points` × (value − `centre`).

    A missing number counts as `if_missing`. It also gets the points of `missing`, if that is given.
    """

    name: str
    reads: Literal["number"]
    points: float
    concepts: tuple[float, ...]
    if_missing: float
    missing: TermPoints | None
    centre: float = field(default=0.0, metadata=ADDED_LATER)


@dataclass(frozen=True)
class Bin:
    """Numbers from the previous edge (included) to `below` (excluded); None is no upper edge."""

    below: float | None
    points: float
    concepts: tuple[float, ...]


class _Binned:
    bins: tuple[Bin, ...]

    @property
    def edges(self) -> list[float]:
        """Return the increasing edges between the bins."""
        return [b.below for b in self.bins if b.below is not None]

    @property
    def bin_points(self) -> list[float]:
        """Return the points of each bin."""
        return [b.points for b in self.bins]


@dataclass(frozen=True)
class BinColumn(_Binned):
    """A numeric column in bins. A missing number is in no bin and gets the points of `missing`."""

    name: str
    reads: Literal["bins"]
    bins: tuple[Bin, ...]
    missing: TermPoints | None


@dataclass(frozen=True)
class Category:
    """One value of a column, typed: 1 is not "1"."""

    value: Value
    points: float
    concepts: tuple[float, ...]


@dataclass(frozen=True)
class CategoryColumn:
    """A column of categories.

    Any other value gets `unseen` points, which are 0. A missing value gets those of `missing`.
    """

    name: str
    reads: Literal["category"]
    categories: tuple[Category, ...]
    missing: TermPoints | None
    unseen: float


@dataclass(frozen=True)
class UnitColumn:
    """A number that the score determines: points per unit.

    It is the margin, logit(score) − logit(threshold), or the distance, |score − threshold|.
    """

    name: str
    reads: Literal["margin", "distance"]
    points: float
    concepts: tuple[float, ...]


@dataclass(frozen=True)
class DistanceBinColumn(_Binned):
    """The distance of the score from the threshold, |score − threshold|, in bins."""

    name: str
    reads: Literal["distance_bins"]
    bins: tuple[Bin, ...]


ColumnOfScore = UnitColumn | DistanceBinColumn  # a frame has no such column
BinnedColumn = BinColumn | DistanceBinColumn
FrameColumn = NumberColumn | BinColumn | CategoryColumn
Column = FrameColumn | ColumnOfScore


@dataclass(frozen=True)
class PatchEvidence:
    """How the sum of the points becomes r; `EvidenceRule` has the formula and the same names."""

    cut: float
    nearness: float
    mean_distance: float


@dataclass(frozen=True)
class Ratio:
    """The sum is intercept + points, added in the order of the file.

    The sum is r, unless `evidence` says how it becomes r. `concept_weights` (k,) are the weights of
    the concepts in the sum. `concept_intercepts` (k,) are the values of the concepts without any
    points. `may_raise` and `may_lower` are the gate of an update
    with one direction: r is held at 1 if a decision may not change. So it is where
    |score − threshold| > `max_margin`, unless that is None.
    """

    intercept: float
    may_raise: bool
    may_lower: bool
    concept_weights: tuple[float, ...]
    concept_intercepts: tuple[float, ...]
    columns: tuple[Column, ...]
    max_margin: float | None = field(default=None, metadata=ADDED_LATER)
    evidence: PatchEvidence | None = field(default=None, metadata=ADDED_LATER)

    @property
    def frame_columns(self) -> list[FrameColumn]:
        """Return the columns that a frame has; the score determines the others."""
        return [column for column in self.columns if not isinstance(column, ColumnOfScore)]

    @property
    def term_points(self) -> list[float]:
        """Return the points of every term, in the order of the file."""
        return [term.points for column in self.columns for term in term_points_of(column)]


@dataclass(frozen=True)
class Base:
    """The base model: its class, and its digest where one could be computed.

    `score` is the column of its scores, None if the model itself computed them.
    `scores_digest` is the SHA-256 of its scores on the fit rows.
    """

    model: str
    digest: str | None
    score: str | None
    threshold: float
    scores_digest: str | None = None


@dataclass(frozen=True)
class Labels:
    """The two labels, and which of them is good for the person.

    `positive` is the label that the score predicts: the base decision where score > threshold.
    `counted` is the label whose rates the constraint compares; None if that is `positive`.
    """

    negative: Value
    positive: Value
    favorable: Value
    counted: Value | None = field(default=None, metadata=ADDED_LATER)

    @property
    def favorable_above(self) -> bool:
        """Return whether a score above the threshold is the favourable decision."""
        return self.favorable == self.positive

    @property
    def compared(self) -> Value:
        """Return the label whose rates the constraint compares."""
        return self.positive if self.counted is None else self.counted

    @property
    def other(self) -> Value:
        """Return the other label."""
        return self.negative if self.compared == self.positive else self.positive


@dataclass(frozen=True)
class PatchRequest:
    """The request behind the update; None for a part that was not requested.

    `constraints` is the name of the first constraint, with its condition, and `target` its bound.
    `points` is "integers" where points had to be whole numbers.
    """

    constraints: str
    target: float | None
    direction: str
    max_changes: float | None
    max_accuracy_loss: float | None
    max_volume_change: float | None
    confidence: float | None
    further: tuple[FurtherConstraint, ...] = field(default=(), metadata=ADDED_LATER)
    points: Literal["integers"] | None = field(default=None, metadata=ADDED_LATER)


@dataclass(frozen=True)
class FurtherReached:
    """The metric of a further constraint before and after; None if it is unknown."""

    before: float | None
    after: float | None


@dataclass(frozen=True)
class Reached:
    """The figures of the update on the rows that `rows` names; None for an unknown figure.

    `metric` and `fairness_*` are those of the first constraint; `further` has the others in the
    order of the request. `target_met` says whether all constraints hold.
    """

    rows: str
    n_rows: int
    metric: str
    fairness_before: float | None
    fairness_after: float | None
    accuracy_before: float | None
    accuracy_after: float | None
    change_rate: float | None
    n_gains: float | None
    n_losses: float | None
    limit: float | None
    target_met: bool | None
    promised: bool | None
    in_words: str
    further: tuple[FurtherReached, ...] = field(default=(), metadata=ADDED_LATER)


@dataclass(frozen=True)
class Seen:
    """The fit rows: how many columns, a digest of their names, and how many rows.

    The figures of `Reached` may be of a part of these rows, the held-out ones.
    """

    n_columns: int
    digest: str
    n_rows: int | None = None


@dataclass(frozen=True)
class LeftOut:
    """The groups that were too small for the constraint: how many, and how many people."""

    n_groups: int
    n_people: int


@dataclass(frozen=True)
class EarlierVersion:
    """The parts of a patch that an edit by hand may change, as they were before the edit."""

    base: Base
    asked: PatchRequest
    reached: Reached
    seen: Seen
    ratio: Ratio
    left_out: LeftOut | None
    calibration: ScoreMap | None


@dataclass(frozen=True)
class PatchEdit:
    """One edit by hand, and the version of the patch before it."""

    record: EditRecord
    earlier: EarlierVersion


@dataclass(frozen=True)
class Content:
    """The content of a patch. A file adds the digest of this content.

    `audit` is the digest of the audit that belongs to the patch. `versions` are those of Python and
    of packages. Both are None if not known, and so is `left_out`. `score_edit` says which scores
    the patch edits: those of changed decisions only, or all. `calibration` maps edited scores to
    calibrated probabilities; None if true labels were not known. `history` has the edits by
    hand, oldest first. `by` is who saved the patch.
    """

    schema: str
    library: str
    created: str
    method: str
    base: Base
    labels: Labels
    asked: PatchRequest
    reached: Reached
    seen: Seen
    ratio: Ratio
    left_out: LeftOut | None = None
    audit: str | None = None
    versions: dict[str, str] | None = None
    score_edit: Literal["changed_only", "all"] = field(default="all", metadata=ADDED_LATER)
    calibration: ScoreMap | None = field(default=None, metadata=ADDED_LATER)
    history: tuple[PatchEdit, ...] = field(default=(), metadata=ADDED_LATER)
    by: str | None = field(default=None, metadata=ADDED_LATER)


def editable_parts(content: Content) -> EarlierVersion:
    """Return the parts of a content that an edit by hand may change."""
    names = [part.name for part in fields(EarlierVersion)]
    return EarlierVersion(**{name: getattr(content, name) for name in names})


def figures_of_edit(reached: Reached) -> EditFigures:
    """Return the figures of a version as the history of edits states them."""
    return EditFigures(
        reached.fairness_after,
        reached.change_rate,
        reached.n_gains,
        reached.n_losses,
        reached.target_met,
    )


def before_last_edit(content: Content) -> Content:
    """Return the content of the patch before its last edit; nobody saved or audited that."""
    *history, last = content.history
    before = vars(last.earlier)
    return replace(content, **before, history=tuple(history), audit=None, by=None)


# ---------------------------------------------------------------------------------------------
# From a scorecard, and back


def ratio_of(
    scorecard: Scorecard,
    *,
    may_raise: bool,
    may_lower: bool,
    max_margin: float | None = None,
    score_columns: Collection[str] = (),
) -> Ratio:
    """Return a scorecard as columns of a patch; terms without any points are left out.

    `score_columns` are the columns that the score determines: the margin or the distance. A change
    that the rule of the scorecard forbids is forbidden in the patch, too.
    """
    rule, evidence = scorecard.rule, None
    if rule is not None:
        evidence = PatchEvidence(rule.cut, rule.nearness, rule.mean_distance)
        may_raise, may_lower = may_raise and rule.may_raise, may_lower and rule.may_lower
    points, concepts = scorecard.points.tolist(), scorecard.concept_points.T.tolist()
    terms = [TermPoints(p, tuple(c)) for p, c in zip(points, concepts, strict=True)]
    start = 0
    columns: list[Column] = []
    for spec in scorecard.encoding.columns:
        own = terms[start : start + spec.n_terms]
        start += spec.n_terms
        if any(map(_is_used, own)):
            of_score = spec.name in score_columns
            columns.append((_of_score if of_score else _column)(spec, own))
    return Ratio(
        intercept=float(scorecard.intercept),
        may_raise=may_raise,
        may_lower=may_lower,
        concept_weights=tuple(scorecard.contributions.tolist()),
        concept_intercepts=tuple(scorecard.concept_intercepts.tolist()),
        columns=tuple(columns),
        max_margin=max_margin,
        evidence=evidence,
    )


def _is_used(term: TermPoints) -> bool:
    return bool(term.points) or any(term.concepts)


def _column(spec: ColumnTerms, own: Sequence[TermPoints]) -> Column:
    """Return a column with its own terms, those of a missing value last."""
    if isinstance(spec, CategoryTerms):
        by_value = dict(zip(spec.categories, own, strict=True))
        missing = by_value.pop(None, None)
        categories = tuple(
            Category(value, **vars(term))
            for value, term in by_value.items()
            if value is not None and _is_used(term)
        )
        return CategoryColumn(spec.name, "category", categories, _if_used(missing), unseen=0.0)
    missing = _if_used(own[-1]) if spec.has_missing_term else None
    if isinstance(spec, BinTerms):
        pairs = zip([*spec.edges, None], own, strict=False)
        bins = tuple(Bin(edge, **vars(term)) for edge, term in pairs)
        return BinColumn(spec.name, "bins", bins, missing)
    return NumberColumn(
        spec.name,
        "number",
        **vars(own[0]),
        if_missing=spec.fill,
        missing=missing,
        centre=spec.centre,
    )


def _if_used(term: TermPoints | None) -> TermPoints | None:
    return term if term is not None and _is_used(term) else None


def _of_score(spec: ColumnTerms, own: Sequence[TermPoints]) -> Column:
    """Return a column that the score determines; such a column has no missing value."""
    column = _column(spec, own)
    if isinstance(column, BinColumn):
        return DistanceBinColumn(spec.name, "distance_bins", column.bins)
    reads: Literal["margin", "distance"] = "margin" if spec.name == MARGIN_COLUMN else "distance"
    return UnitColumn(spec.name, reads, **vars(own[0]))


def rule_of(content: Content) -> EvidenceRule | None:
    """Return how the sum of the points becomes r; None if the sum is r."""
    ratio, above = content.ratio, content.labels.favorable_above
    if ratio.evidence is None:
        return None
    return EvidenceRule(
        **vars(ratio.evidence),
        favorable_above=above,
        may_gain=ratio.may_raise if above else ratio.may_lower,
        may_lose=ratio.may_lower if above else ratio.may_raise,
    )


def scorecard_of(content: Content) -> Scorecard:
    """Return the scorecard of a patch; it decides as the scorecard that the patch was made from."""
    ratio = content.ratio
    terms = [term for column in ratio.columns for term in term_points_of(column)]
    k = len(ratio.concept_weights)
    points = np.array([term.concepts for term in terms], dtype=np.float64).reshape(len(terms), k)
    return Scorecard(
        encoding=Encoding(tuple(map(terms_of, ratio.columns))),
        intercept=ratio.intercept,
        contributions=np.array(ratio.concept_weights, dtype=np.float64),
        concept_points=np.ascontiguousarray(points.T),
        concept_intercepts=np.array(ratio.concept_intercepts, dtype=np.float64),
        rule=rule_of(content),
    )


def term_points_of(column: Column) -> list[TermPoints]:
    """Return the points of each term of a column, those of a missing value last."""
    if isinstance(column, CategoryColumn):
        terms = [TermPoints(c.points, c.concepts) for c in column.categories]
    elif isinstance(column, BinnedColumn):
        terms = [TermPoints(b.points, b.concepts) for b in column.bins]
    else:
        terms = [TermPoints(column.points, column.concepts)]
    missing = None if isinstance(column, ColumnOfScore) else column.missing
    return terms if missing is None else [*terms, missing]


def missing_points_of(column: FrameColumn) -> float:
    """Return the points of a missing value."""
    return 0.0 if column.missing is None else column.missing.points


def terms_of(column: Column) -> ColumnTerms:
    """Return what the terms of a column read, in the order of `term_points_of`."""
    if isinstance(column, CategoryColumn):
        values: list[Value | None] = [c.value for c in column.categories]
        return CategoryTerms(column.name, (*values, *([None] if column.missing else [])))
    has_missing_term = not isinstance(column, ColumnOfScore) and column.missing is not None
    if isinstance(column, BinnedColumn):
        return BinTerms(column.name, tuple(column.edges), has_missing_term)
    if isinstance(column, UnitColumn):
        return NumericTerms(column.name, 0.0, has_missing_term)
    return NumericTerms(column.name, column.if_missing, has_missing_term, column.centre)
