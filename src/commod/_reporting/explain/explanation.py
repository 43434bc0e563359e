"""Explain why decisions change: by points, concepts, segments, and reasons for each person."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import get_tags

from commod._data.arrays import Floats, Mask
from commod._data.base_model import ScoreColumn
from commod._data.columns import Column, plain
from commod._data.labels import check_label_parameter, check_length
from commod._data.parameters import check_numbers
from commod._data.tables import check_same_rows, index_of, take_rows
from commod._record.audit import ExpectedOnNewPeople, Request
from commod._record.edits import EditRecord
from commod._record.explanation import Card, CardLine, Concept, Segments, Value
from commod._reporting.explain.decisions import (
    CardMaker,
    check_labels,
    decisions_of_labels,
    decisions_of_update,
    push_of,
    row_chunks,
    settings_of,
)
from commod._reporting.explain.person import Person, edited_rows, explain_person
from commod._reporting.explain.reasons import (
    RatioParts,
    distance_column,
    reads_distance,
    strongest_reasons,
)
from commod._reporting.explain.segments import FrameColumns, find_segments
from commod._text import (
    Table,
    capitalised,
    count,
    first_rows,
    n_of,
    percent,
    points,
    shorten,
    shown,
    snippet,
    visible,
)
from commod._words.shared import EVIDENCE
from commod.exceptions import InputError
from commod.scorecard import Scorecard, is_within
from commod.updates.base import BaseUpdate

if TYPE_CHECKING:
    import pandas as pd

Index = NDArray[np.intp]


def explain(
    update: BaseUpdate | None,
    X: Any,
    *,
    sensitive_features: Any = None,
    y_before: Any = None,
    y_after: Any = None,
    pos_label: Any = None,
    favorable_label: Any = None,
    level: float = 0.95,
    n_concepts: int | None = None,
) -> Explanation:
    """Return who changes and why: segments and, from a scorecard, points, concepts and reasons.

    Parameters
    ----------
    update : fitted update, or None
        A COMMOD or ControlledDebiaser gives everything. A rival, or a COMMOD with
        architecture="mlp", has no scorecard, so only its decisions are described. None stands for
        any two models, given by `y_before` and `y_after`.
    X : table of shape (n, n_features)
        The people to explain. X is not copied: `person` and `reasons` read it again.
    sensitive_features : array-like of shape (n,) or (n, n_sensitive), default=None
        For rivals that decide by group.
    y_before, y_after : array-like of shape (n,), default=None
        Decisions of any two models; with `update=None` only.
    pos_label : label, default=None
        With `update=None`: the label that counts as positive. None means 1, if 1 occurs.
    favorable_label : label, default=None
        With `update=None`: the label that is good for the person. None means `pos_label`.
    level : float, default=0.95
        Confidence level of all two-sided intervals.
    n_concepts : int, default=None
        Split the scorecard into so many concepts. None: those of the update, two for a
        ControlledDebiaser. The points stay the same; columns that vary together share a concept.

    Returns
    -------
    Explanation

    Examples
    --------
    >>> from commod import ControlledDebiaser
    >>> from commod import explain
    >>> from commod.datasets import make_biased
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> update = ControlledDebiaser(model, target=0.8)
    >>> update = update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    >>> why = explain(update, data.data)
    >>> int(why.gain.sum() + why.loss.sum()) == update.changes(data.data).n_changes
    True
    >>> len(why.segments.segments) > 0, len(why.card.concepts)
    (True, 2)
    """
    if not isinstance(level, float) or not 0.5 < level < 1:
        raise InputError(
            f"level={shown(level)} must lie between 0.5 and 1, such as 0.95.", parameter="level"
        )
    rows = {"X": X, "sensitive_features": sensitive_features}
    check_same_rows({**rows, "y_before": y_before, "y_after": y_after})
    check_label_parameter(pos_label, "pos_label")
    check_label_parameter(favorable_label, "favorable_label")
    if n_concepts is not None:
        check_numbers("count", n_concepts=n_concepts)
    if update is None:
        decisions = decisions_of_labels(X, y_before, y_after, pos_label, favorable_label)
    else:
        if y_before is not None or y_after is not None:
            raise InputError(
                "y_before and y_after are for update=None: the decisions of an update are its own."
            )
        check_labels(update, pos_label, favorable_label)
        decisions = decisions_of_update(update, X, sensitive_features, level, n_concepts)
    before, after = decisions["before"], decisions["after"]
    gain_raises = decisions["favorable_label"] == decisions["pos_label"]
    favorable_before = before == gain_raises
    gain, loss = (before != after) & ~favorable_before, (before != after) & favorable_before
    segments, segment_of = find_segments(
        X,
        gain,
        loss,
        favorable_before,
        level=level,
        skip=decisions["unread_columns"],
        added=_added_columns(update, decisions),
    )
    return Explanation(
        **decisions,
        gain=gain,
        loss=loss,
        level=level,
        method=None if update is None else type(update).__name__,
        settings=settings_of(update),
        segments=segments,
        segment_of=segment_of,
        _update=update,
        X=X,
    )


def _added_columns(update: BaseUpdate | None, decisions: dict[str, Any]) -> list[Column]:
    """Return the distance from the threshold where r reads it; segments may then use it, too."""
    if update is None or decisions["card"] is None or not reads_distance(update.scorecard_):
        return []
    return [distance_column(decisions["scores_before"], update._fitted_param("threshold"))]


@dataclass(frozen=True, eq=False, kw_only=True)
class Explanation:
    """Who changes and why, for n people; made by `explain`.

    Attributes
    ----------
    n : int
        How many people are explained.
    before, after : ndarray of bool, shape (n,)
        Whether the base decision, and the new one, is `pos_label`.
    gain, loss : ndarray of bool, shape (n,)
        Who gains and who loses the favourable outcome.
    y_before, y_after : ndarray of shape (n,)
        The decisions as labels.
    pos_label, negative_label, favorable_label : label
    level : float
        Confidence level of all intervals.
    request : Request
        What was asked of the update. For two models given by their decisions: the labels only.
    method : str or None
        The update's class.
    settings : dict of str to str
        The update's parameters as short texts, without the base model.
    scores_before, scores_after : ndarray of shape (n,), or None
        Scores in [0, 1] of the label that the base score predicts.
    scores_calibrated : ndarray of shape (n,), or None
        The edited scores as calibrated probabilities; None if the update has none.
    ratio, raw_ratio : ndarray of shape (n,), or None
        The r that acts on each person, and the sum of the points. The sum is r before it is held at
        1 if a decision must not change. If the scorecard has a rule, the sum is evidence.
    card : Card or None
        The total scorecard and its concepts; None without a scorecard.
    scorecard : Scorecard or None
        The same as the object that computes points.
    segments : Segments
        A few rules that describe who changes.
    segment_of : ndarray of shape (n,)
        For a changed person the first segment that describes them; −1 elsewhere.
    unread_columns : frozenset of str
        Columns that the update never uses; they are in no segment.
    X : table
        The explained people, as they were given.

    Examples
    --------
    >>> from commod import explain
    >>> why = explain(
    ...     None, [[age] for age in range(20, 60)],
    ...     y_before=[0] * 40, y_after=[int(age < 45) for age in range(20, 60)],
    ... )
    >>> why
    25 of 40 people change: 25 gains, 0 losses of the favourable outcome (1).
    Who changes:
      gain  x0 < 45  25 of 25 change
      Together they describe 25 of 25 changes.
    """

    before: Mask
    after: Mask
    y_before: NDArray[Any]
    y_after: NDArray[Any]
    pos_label: Any
    negative_label: Any
    favorable_label: Any
    scores_before: Floats | None = None
    scores_after: Floats | None = None
    scores_calibrated: Floats | None = None
    ratio: Floats | None = None
    raw_ratio: Floats | None = None
    card: Card | None = None
    scorecard: Scorecard | None = field(default=None, repr=False)
    request: Request
    unread_columns: frozenset[str] = field(default=frozenset(), repr=False)
    gain: Mask
    loss: Mask
    level: float
    method: str | None
    settings: dict[str, str]
    segments: Segments
    segment_of: Index
    _update: Any = field(repr=False)  # None if only the decisions are known
    X: Any = field(repr=False)
    _ranges: dict[str, tuple[float, float]] = field(default_factory=dict, repr=False)

    @property
    def n(self) -> int:
        """Return how many people are explained."""
        return len(self.before)

    @property
    def changed(self) -> Mask:
        """Return whose decision changes, shape (n,)."""
        return self.gain | self.loss

    @property
    def needs_sensitive_features(self) -> bool | None:
        """Return whether the update reads each person's group to decide; None if not known."""
        return None if self._update is None else get_tags(self._update).needs_sensitive_features

    @property
    def randomised(self) -> bool | None:
        """Return whether the update uses random draws; None if not known."""
        return None if self._update is None else get_tags(self._update).randomised

    @property
    def expected(self) -> ExpectedOnNewPeople | None:
        """Return what the fit expects on new people; None if it has no expectation."""
        return expected_of(self._update)

    @property
    def edits(self) -> tuple[EditRecord, ...]:
        """Return the edits of the update by hand, oldest first."""
        return getattr(self._update, "edits_", ())

    @property
    def index(self) -> Any:
        """Return the index of X where it is a pandas frame, None otherwise."""
        return index_of(self.X)

    def check_type(self, column: Column) -> None:
        """Refuse a column of another table that has not the type that the update knows."""
        if self._update is not None:
            self._update._as_fitted(column)

    def card_of(self, rows: Any) -> Card | None:
        """Return the card with figures of the given rows only; None without a scorecard."""
        if self.card is None:
            return None
        rows = self._positions(rows)
        scorecard = self._scorecard()
        maker = CardMaker(scorecard, self._update._allowed_changes().max_margin)
        for part in row_chunks(len(rows)):
            terms = scorecard.encoding.encode(self._columns(rows[part]), len(rows[part]))
            maker.add(terms, self.changed[rows[part]], self._favorable[rows[part]])
        return maker.card(self.level)

    def concept_of(self, rows: Any) -> Index:
        """Return the concept that pushed each given row most towards its change, shape (m,).

        The result is −1 if the decision does not change, where no concept pushes towards the
        change, and where there is no scorecard.
        """
        rows = self._positions(rows)
        concepts = np.full(len(rows), -1, dtype=np.intp)
        if self.card is None or not self.card.concepts:
            return concepts
        scorecard = self._scorecard()
        used = np.array([concept.number for concept in self.card.concepts])
        for part in row_chunks(len(rows)):
            terms = scorecard.encoding.encode(self._columns(rows[part]), len(rows[part]))
            favorable = self._favorable[rows[part]]
            pushes = np.column_stack(
                [push_of(scorecard, j, terms, favorable) for j in used.tolist()]
            )
            pushed = self.changed[rows[part]] & (pushes.max(axis=1) > 0)
            concepts[part] = np.where(pushed, used[pushes.argmax(axis=1)], -1)
        return concepts

    def reasons(self, rows: Any, most: int = 3, skip: Collection[str] = ()) -> list[str]:
        """Return the strongest `most` reasons of each given row, as short texts.

        For people whose decision changes, the reasons are columns that lower r, which pushes
        towards a change. For the others they are columns that raise r. What a column adds to r is
        counted from its mean over the fit rows, as in `person`. Columns in `skip` are left out.
        Texts are empty without a scorecard.
        """
        rows = self._positions(rows)
        if self.card is None:
            return [""] * len(rows)
        texts: list[str] = []
        for part in row_chunks(len(rows)):
            sign = np.where(self.changed[rows[part]], -1.0, 1.0)
            parts, columns = self._ratio_parts(rows[part]), self._columns(rows[part])
            texts += strongest_reasons(parts, columns, sign, most, skip)
        return texts

    def person(self, row: int | None = None, *, id: Any = None) -> Person:
        """Return why one decision changed or stayed.

        Parameters
        ----------
        row : int
            The row, counted from 0.
        id : label, default=None
            The label of the row in the index of X, instead of `row`. Ledgers of audits have it.

        Examples
        --------
        >>> import pandas as pd
        >>> from commod import ControlledDebiaser, ScoreColumn, explain
        >>> X = pd.DataFrame(
        ...     {"score": [0.4, 0.6] * 100, "age": range(200)}, index=[f"P{i}" for i in range(200)]
        ... )
        >>> update = ControlledDebiaser(ScoreColumn("score"), target=0.9, target_on="fit_rows")
        >>> update = update.fit(X, sensitive_features=(X["age"] < 100) & (X["score"] < 0.5))
        >>> why = explain(update, X)
        >>> why.person(4) == why.person(id="P4")
        True
        """
        self._scorecard()  # refuses if there is none
        (row,) = self._positions([self._row_of(row, id)]).tolist()
        assert self.ratio is not None and self.raw_ratio is not None
        assert self.scores_before is not None and self.scores_after is not None
        direction = "gain" if self.gain[row] else "loss"
        known: dict[str, Any] = {
            "row": row,
            "id": self._id_of(row),
            "before": plain(self.y_before[row]),
            "after": plain(self.y_after[row]),
            "direction": direction if self.changed[row] else None,
            "ratio": float(self.ratio[row]),
            "raw_ratio": float(self.raw_ratio[row]),
            "score_before": float(self.scores_before[row]),
            "score_after": float(self.scores_after[row]),
            "closed": self._why_closed(row),
        }
        columns = self._columns(np.array([row]))
        is_given = isinstance(self._update._base_model, ScoreColumn)
        return explain_person(
            known,
            self._ratio_parts(np.array([row])),
            columns,
            self._range_of,
            fixed=[c.name for c in self._update._score_columns(self.scores_before[:0])],
            trial=None if is_given else partial(self._try, row),
        )

    def frame(self) -> pd.DataFrame:
        """Return a pandas frame with one row per segment."""
        import pandas as pd

        return pd.DataFrame(
            {
                "direction": s.direction,
                "rule": s.text,
                "size": s.size,
                "n_changed": s.n_changed,
                "n_new": s.n_new,
                "precision": s.precision.value,
                "precision_low": s.precision.low,
                "precision_high": s.precision.high,
                "coverage": s.coverage,
            }
            for s in self.segments.segments
        )

    def __repr__(self) -> str:
        lines = [*segment_lines(self.segments), *card_lines(self.card)]
        return "\n".join([self._changes_text(), *lines])

    def _repr_html_(self) -> str:
        tables = [*segment_tables(self.segments), *card_tables(self.card)]
        sentences = [self._changes_text()]
        if not self.segments.segments:
            sentences += segment_lines(self.segments)
        if self.card is not None and self.card.rule is not None:
            sentences += map(capitalised, rule_lines(self.card))
        title = f"Explanation of {self.method}" if self.method else "Explanation"
        return snippet(title, sentences, tables)

    def _changes_text(self) -> str:
        n_gains, n_losses = self.segments.n_gains, self.segments.n_losses
        return (
            f"{n_gains + n_losses:,} of {n_of(self.n, 'person')} change: {n_of(n_gains, 'gain')}, "
            f"{n_of(n_losses, 'loss')} of the favourable outcome ({visible(self.favorable_label)})."
        )

    # -- rows of X --------------------------------------------------------------------------------

    def _positions(self, rows: Any) -> Index:
        rows = np.asarray(rows)
        if rows.dtype == np.bool_:
            check_length(rows, "rows", self.n)
            return np.flatnonzero(rows)
        if not rows.size:
            return np.zeros(0, dtype=np.intp)
        is_whole = rows.ndim == 1 and rows.dtype.kind in "iu"
        if not is_whole or rows.min() < 0 or rows.max() >= self.n:
            raise InputError(
                f"rows must be positions from 0 to {self.n - 1}, or a mask; got "
                f"{rows.ravel()[:3].tolist()}."
            )
        return rows.astype(np.intp)

    def _row_of(self, row: int | None, label: Any) -> Any:
        """Return the requested position, or the position of a label in the index of X."""
        if (row is None) == (label is None):
            raise InputError("Pass either the row, counted from 0, or its label as id=.")
        if label is None:
            return row
        if self.index is None:
            raise InputError(
                f"id={label!r} is a label in the index of a pandas frame, but X is "
                f"{type(self.X).__name__} and has none. Pass the row, counted from 0.",
                parameter="id",
            )
        try:
            position = self.index.get_loc(label)
        except (KeyError, TypeError):
            raise InputError(
                f"id={label!r} is not in the index of X (the first labels are "
                f"{', '.join(repr(plain(i)) for i in self.index[:3])}).",
                parameter="id",
            ) from None
        if not isinstance(position, int | np.integer):
            n = int(np.size(np.arange(self.n)[position]))
            raise InputError(
                f"id={label!r} is the label of {n} rows of X, so it is not clear which is meant. "
                "Pass the row, counted from 0.",
                parameter="id",
            )
        return int(position)

    def _id_of(self, row: int) -> Any:
        """Return the label of a row in the index of X; None if the index counts from 0."""
        index = self.index
        if index is None or np.array_equal(index, np.arange(self.n)):
            return None
        label = plain(index[row])
        return label if isinstance(label, str | bool | int | float) else str(label)

    def _try(self, row: int, edits: Sequence[tuple[str, Value]]) -> list[tuple[float, bool]] | None:
        """Return r and whether the decision differs, for each edit; None if not known."""
        update = self._update
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a base model may warn about unseen values
                rows = update._read_rows(edited_rows(self.X, row, edits))
        except Exception:  # a base model may raise any error
            return None
        evaluation = update._evaluate_rows(rows)
        ratio, decided = evaluation.ratio, evaluation.after
        assert ratio is not None
        if decided[0] != self.after[row]:  # X has changed since it was explained
            return None
        return list(zip(ratio[1:].tolist(), (decided[1:] != decided[0]).tolist(), strict=True))

    def _scorecard(self) -> Scorecard:
        if self.scorecard is None:
            raise InputError(
                f"{self.method or 'A pair of models'} has no scorecard, so nobody's points are "
                'known. Explain a ControlledDebiaser or a COMMOD(architecture="concepts"), '
                "or use segments."
            )
        return self.scorecard

    def _ratio_parts(self, rows: Index) -> RatioParts:
        assert self.scores_before is not None
        threshold = float(self._update._fitted_param("threshold"))
        # the fitted concepts know more about means than those of `n_concepts`
        return RatioParts(self._update.scorecard_, self.scores_before[rows], threshold)

    @property
    def _favorable(self) -> Mask:
        """Return whose base decision is the favourable one, shape (n,)."""
        return self.before == (self.pos_label == self.favorable_label)

    def _why_closed(self, row: int) -> str | None:
        """Return why a decision could not change; None if it could."""
        assert self.scores_before is not None
        allowed, rule = self._update._allowed_changes(), self._scorecard().rule
        is_favorable = self._favorable[row]
        may_change = allowed.may_lower if self.before[row] else allowed.may_raise
        if rule is not None:
            may_change &= rule.may_lose if is_favorable else rule.may_gain
        if not may_change:
            label, only = ("favourable", "gains") if is_favorable else ("unfavourable", "losses")
            return f"this update makes {only} only, and the decision is already the {label} one"
        score, threshold = (
            self.scores_before[row : row + 1],
            self._update._fitted_param("threshold"),
        )
        if not is_within(score, threshold, allowed.max_margin).all():
            return (
                "a change is not allowed, because its score is further than "
                f"{allowed.max_margin:g} from the threshold"
            )
        if score[0] == threshold:
            return "its score equals the threshold, and such a decision never changes"
        return None

    def _range_of(self, name: str) -> tuple[float, float]:
        """Return the lowest and the highest value of a numeric column among all rows of X."""
        if name not in self._ranges:
            column = next(FrameColumns(self.X).read_columns({name}), None)
            values = np.zeros(0) if column is None else column.values[~column.is_missing()]
            ends = (float(values.min()), float(values.max())) if len(values) else (np.inf, -np.inf)
            self._ranges[name] = ends
        return self._ranges[name]

    def _columns(self, rows: Index) -> list[Column]:
        """Return the columns that the scorecard reads, for the given rows."""
        assert self.scores_before is not None
        return self._update._ratio_columns(take_rows(self.X, rows), self.scores_before[rows])


# ---------------------------------------------------------------------------------------------
# Write an explanation as lines of text, and as tables: segments, points and concepts

LONGEST_NAME = 60  # characters
LONGEST_RULE = 120
MAX_TERMS = 8
MAX_SHOWN = 20  # terms of a table in a notebook


def segment_lines(segments: Segments) -> list[str]:
    """Return one line per segment, then the number of changes that no segment describes."""
    n_changes = segments.n_gains + segments.n_losses
    if not segments.segments:
        return ["No short rule describes who changes." if n_changes else "Nobody changes."]
    lines = [
        f"  {s.direction}  {shorten(s.text, LONGEST_RULE)}  "
        f"{count(s.n_changed)} of {count(s.size)} change"
        for s in segments.segments
    ]
    n_described = segments.n_described_gains + segments.n_described_losses
    lines.append(f"  Together they describe {count(n_described)} of {n_of(n_changes, 'change')}.")
    for noun, n, n_described in (
        ("gain", segments.n_gains, segments.n_described_gains),
        ("loss", segments.n_losses, segments.n_described_losses),
    ):
        if n and not n_described:
            lines.append(f"  No short rule describes the {n_of(n, noun)}.")
    return ["Who changes:", *lines]


def card_lines(card: Card | None) -> list[str]:
    """Return the points and the concepts; an empty list without a scorecard."""
    if card is None:
        return []
    first, *others = rule_lines(card)
    lines = [f"Why: {first}", *others, *_term_lines(card.lines)]
    for concept in card.concepts:
        lines += [f"{_concept_line(card, concept)}:", *_term_lines(concept.lines)]
    return lines


def rule_lines(card: Card) -> list[str]:
    """Return how the points add up, and when a decision changes."""
    start = points(card.intercept)
    if card.rule is not None:
        add = f"start at {start} and add the points" if card.lines else f"the sum is {start}"
        return [f"{add}.", *card.rule.sentences, EVIDENCE]
    if card.lines:
        return [f"r = {card.intercept:+.4g} and points; a decision changes where r < 0:"]
    return [f"r = {card.intercept:.4g} for everybody; a decision changes where r < 0."]


def _term_lines(terms: Sequence[CardLine]) -> list[str]:
    lines = [
        f"  {points(t.points):>10} {t.unit + ' ' if t.unit else ''}{shorten(t.text, LONGEST_NAME)}"
        for t in terms[:MAX_TERMS]
    ]
    n_more = len(terms) - MAX_TERMS
    return [*lines, f"  and {n_of(n_more, 'weaker term')}"] if n_more > 0 else lines


def _concept_line(card: Card, concept: Concept) -> str:
    active, inactive = (
        "nobody" if estimate.value is None else percent(estimate.value)
        for estimate in (concept.change_if_active, concept.change_if_inactive)
    )
    name = shorten(concept.name, LONGEST_NAME)
    towards = "towards a change" if card.rule is None else "in the sum"
    where = "it is active" if card.rule is None else "it pushes towards a change"
    return (
        f"Concept {concept.number} ({name}), points {towards}; where {where} {active} change, "
        f"elsewhere {inactive}"
    )


def segment_tables(segments: Segments) -> list[Table]:
    """Return the segments as a table of a notebook; an empty list if there are none."""
    if not segments.segments:
        return []
    rows = [
        (s.direction, s.text, f"{count(s.n_changed)} of {count(s.size)}", percent(s.coverage, 0))
        for s in segments.segments
    ]
    n_changes = segments.n_gains + segments.n_losses
    n_described = segments.n_described_gains + segments.n_described_losses
    caption = f"Who changes: rules that describe {count(n_described)} of {count(n_changes)} changes"
    return [(caption, ("direction", "rule", "change", "of all in this direction"), rows)]


def card_tables(card: Card | None) -> list[Table]:
    """Return the points and each concept as tables of a notebook; empty without a scorecard."""
    if card is None or not card.lines:
        return []
    start = f"r = {points(card.intercept)}" if card.rule is None else points(card.intercept)
    changed = "; changed where r < 0" if card.rule is None else ""
    caption = f"Points: {start} and points{changed}"
    tables = [_term_table(caption, card.lines)]
    for concept in card.concepts:
        tables.append(_term_table(_concept_line(card, concept), concept.lines))
    return tables


def _term_table(caption: str, terms: Sequence[CardLine]) -> Table:
    rows = [(t.text, points(t.points), t.unit or "if it applies") for t in terms]
    header = ("term", "points", "counted")
    return first_rows(caption, header, rows, most=MAX_SHOWN, all_in="card")


# ---------------------------------------------------------------------------------------------
# Read what the fit of an update expects of it on new people


def expected_of(update: BaseUpdate | None) -> ExpectedOnNewPeople | None:
    """Return the figures that are expected on new people; None if the update has none.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> expected_of(SimpleNamespace()) is None
    True
    """
    return expected_figures(getattr(update, "expected_", None))


def expected_figures(expected: Any) -> ExpectedOnNewPeople | None:
    """Return an expectation as a record; None where nothing can be expected."""
    if expected is None or not expected.is_known:
        return None
    low, high = map(plain, expected.interval)
    return ExpectedOnNewPeople(
        fairness=float(expected.fairness),
        change_rate=float(expected.change_rate),
        accuracy=plain(expected.accuracy),
        low=low,
        high=high,
        base_fairness=plain(expected.base_fairness),
    )
