"""Why decisions change: `explain` puts points, concepts, segments and people's reasons together."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_scalar, get_tags

from commod._data.base_model import ScoreColumn
from commod._data.codes import plain
from commod._data.columns import Column
from commod._data.labels import check_length
from commod._data.tables import index_of, take_rows
from commod._record import Card, Request, Segments
from commod._record.explanation import Direction, Value
from commod._reporting.explain.as_text import card_in_lines, segments_in_lines
from commod._reporting.explain.cards import push_of
from commod._reporting.explain.decisions import (
    check_labels,
    chunks,
    of_labels,
    of_update,
    request_of,
    settings_of,
)
from commod._reporting.explain.edited import edited_rows
from commod._reporting.explain.person import Decision, Person, explain_person
from commod._reporting.explain.reasons import strongest
from commod._reporting.explain.segments import find_segments
from commod._reporting.explain.source import Table
from commod.exceptions import InputError
from commod.scorecard import MARGIN_COLUMN, Scorecard

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Index = NDArray[np.intp]


def explain(
    update: Any,
    X: Any,
    *,
    sensitive_features: Any = None,
    y_before: Any = None,
    y_after: Any = None,
    pos_label: Any = None,
    favorable_label: Any = None,
    level: float = 0.95,
    max_segments: int = 4,
    max_conditions: int = 3,
    random_state: Any = 0,
) -> Explanation:
    """Return who changes and why: segments, and for a scorecard its points, concepts and people.

    Parameters
    ----------
    update : fitted update, or None
        A COMMOD or ControlledDebiaser gives everything; a rival, or a COMMOD with
        architecture="mlp", has no scorecard, so that its decisions alone are described. None: any
        two models, given by `y_before` and `y_after`.
    X : table of shape (n, n_features)
        The people to explain. It is not copied: person and reasons look into it again.
    sensitive_features : array-like of shape (n,) or (n, n_sensitive), default=None
        For rivals that decide by group.
    y_before, y_after : array-like of shape (n,), default=None
        Decisions of any two models; with `update=None` only.
    pos_label : label, default=None
        With `update=None`: the label that counts as positive; 1 if it occurs.
    favorable_label : label, default=None
        With `update=None`: the label that is good for the person; `pos_label` if None.
    level : float, default=0.95
        Of all intervals, two-sided.
    max_segments, max_conditions : int
        Most rules in each direction, and most conditions of a rule.
    random_state : int, Generator or None, default=0
        Draws the sample on which rules are sought where there are many rows.

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
        raise InputError(f"level={level!r} must lie between 0.5 and 1, such as 0.95.")
    check_scalar(max_segments, "max_segments", (int, np.integer), min_val=1)
    check_scalar(max_conditions, "max_conditions", (int, np.integer), min_val=1)
    if update is None:
        known = of_labels(X, y_before, y_after, pos_label, favorable_label)
    else:
        if y_before is not None or y_after is not None:
            raise InputError(
                "y_before and y_after are for update=None: the decisions of an update are its own."
            )
        check_labels(update, pos_label, favorable_label)
        known = of_update(update, X, sensitive_features, level)
    raised, lowered = ~known.before & known.after, known.before & ~known.after
    gain_raises = known.favorable_label == known.pos_label
    gain, loss = (raised, lowered) if gain_raises else (lowered, raised)
    segments, segment_of = find_segments(
        X,
        gain,
        loss,
        known.before == gain_raises,
        level=level,
        max_segments=max_segments,
        max_conditions=max_conditions,
        random_state=random_state,
        skip=known.skip,
    )
    return Explanation(
        n=len(gain),
        before=known.before,
        after=known.after,
        gain=gain,
        loss=loss,
        y_before=known.y_before,
        y_after=known.y_after,
        pos_label=plain(known.pos_label),
        negative_label=plain(known.negative_label),
        favorable_label=plain(known.favorable_label),
        level=level,
        request=request_of(update, known),
        method=None if update is None else type(update).__name__,
        settings=settings_of(update),
        scores_before=known.scores_before,
        scores_after=known.scores_after,
        ratio=known.ratio,
        raw_ratio=known.raw_ratio,
        card=known.card,
        segments=segments,
        segment_of=segment_of,
        _update=update,
        _X=X,
    )


@dataclass(frozen=True, eq=False)
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
        Of all intervals.
    request : Request
        What was asked of the update; for two models given by their decisions the labels alone.
    method : str or None
        The update's class.
    settings : dict of str to str
        The update's parameters, shortened; the base model is not among them.
    scores_before, scores_after : ndarray of shape (n,), or None
        Scores of `pos_label` in [0, 1].
    ratio, raw_ratio : ndarray of shape (n,), or None
        The r that acts on each person, and the one learned, where a direction holds r at 1.
    card : Card or None
        The total scorecard beside its concepts; None without a scorecard.
    segments : Segments
        The few rules that describe who changes.
    segment_of : ndarray of shape (n,)
        For a changed person the first segment that describes them; −1 elsewhere.

    Examples
    --------
    >>> from commod import explain
    >>> why = explain(
    ...     None, [[age] for age in range(20, 60)],
    ...     y_before=[0] * 40, y_after=[int(age < 30) for age in range(20, 60)],
    ... )
    >>> why
    10 of 40 people change: 10 gains, 0 losses of the favourable outcome (1).
    Who changes:
      gain  x0 < 30  10 of 10 change
      Together they describe 10 of 10 changes.
    """

    n: int
    before: Mask
    after: Mask
    gain: Mask
    loss: Mask
    y_before: NDArray[Any]
    y_after: NDArray[Any]
    pos_label: Any
    negative_label: Any
    favorable_label: Any
    level: float
    request: Request
    method: str | None
    settings: dict[str, str]
    scores_before: Floats | None
    scores_after: Floats | None
    ratio: Floats | None
    raw_ratio: Floats | None
    card: Card | None
    segments: Segments
    segment_of: Index
    _update: Any = field(repr=False)
    _X: Any = field(repr=False)
    _ranges: dict[str, tuple[float, float]] = field(default_factory=dict, repr=False)

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
        """Return whether the update draws lots; None if not known."""
        return None if self._update is None else get_tags(self._update).randomised

    @property
    def X(self) -> Any:  # noqa: N802
        """Return the table of the explained people, as it was given."""
        return self._X

    @property
    def index(self) -> Any:
        """Return the index of X where it is a pandas frame, None otherwise."""
        return index_of(self._X)

    def concept_of(self, rows: Any) -> Index:
        """Return the concept that pushed each of some rows most towards its change, shape (m,).

        −1 where the decision does not change, where no concept pushes towards it or where there is
        no scorecard.
        """
        rows = self._positions(rows)
        found = np.full(len(rows), -1, dtype=np.intp)
        if self.card is None or not self.card.concepts:
            return found
        scorecard = self._scorecard()
        used = np.array([concept.number for concept in self.card.concepts])
        for part in chunks(len(rows)):
            terms = scorecard.encoding.encode(self._columns(rows[part]))
            pushes = np.column_stack([push_of(scorecard, j, terms) for j in used.tolist()])
            pushed = self.changed[rows[part]] & (pushes.max(axis=1) > 0)
            found[part] = np.where(pushed, used[pushes.argmax(axis=1)], -1)
        return found

    def reasons(self, rows: Any, most: int = 3, skip: Collection[str] = ()) -> list[str]:
        """Return the strongest pushes of each of some rows, as short texts.

        Points below 0 push towards a change: they are listed for people whose decision changes,
        and those that kept it for the others. A column counts by its distance from what it adds on
        average over the fit rows, as in `person`. Empty without a scorecard. Columns in `skip` are
        not named.
        """
        rows = self._positions(rows)
        if self.card is None:
            return [""] * len(rows)
        scorecard = self._scorecard()
        texts: list[str] = []
        for part in chunks(len(rows)):
            towards = np.where(self.changed[rows[part]], -1.0, 1.0)
            texts += strongest(scorecard, self._columns(rows[part]), towards, most, skip)
        return texts

    def person(self, row: int | None = None, *, id: Any = None) -> Person:
        """Return why one decision changed or stayed.

        Parameters
        ----------
        row : int
            The row, counted from 0.
        id : label, default=None
            Instead of the row: its label in the index of X, as the ledger of an audit has it.

        Examples
        --------
        >>> import pandas as pd
        >>> from commod import ControlledDebiaser, ScoreColumn, explain
        >>> X = pd.DataFrame(
        ...     {"score": [0.4, 0.6] * 100, "age": range(200)}, index=[f"P{i}" for i in range(200)]
        ... )
        >>> update = ControlledDebiaser(ScoreColumn("score"), target=0.9)
        >>> update = update.fit(X, sensitive_features=(X["age"] < 100) & (X["score"] < 0.5))
        >>> why = explain(update, X)
        >>> why.person(4) == why.person(id="P4")
        True
        """
        scorecard = self._scorecard()
        (row,) = self._positions([self._row_of(row, id)]).tolist()
        assert self.ratio is not None and self.raw_ratio is not None
        assert self.scores_before is not None and self.scores_after is not None
        direction: Direction | None = "gain" if self.gain[row] else "loss"
        decision = Decision(
            row=row,
            id=self._id_of(row),
            before=plain(self.y_before[row]),
            after=plain(self.y_after[row]),
            direction=direction if self.changed[row] else None,
            ratio=float(self.ratio[row]),
            raw_ratio=float(self.raw_ratio[row]),
            score_before=float(self.scores_before[row]),
            score_after=float(self.scores_after[row]),
            closed=self._why_closed(row),
        )
        columns = self._columns(np.array([row]))
        is_given = isinstance(self._update.estimator, ScoreColumn)
        return explain_person(
            decision,
            scorecard,
            columns,
            self._range_of,
            fixed=(MARGIN_COLUMN,),
            trial=None if is_given else partial(self._try, row),
        )

    def frame(self) -> pd.DataFrame:
        """Return one line per segment as a pandas frame."""
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
        n_gains, n_losses = self.segments.n_gains, self.segments.n_losses
        head = (
            f"{n_gains + n_losses:,} of {self.n:,} people change: {n_gains:,} gains, {n_losses:,} "
            f"losses of the favourable outcome ({self.favorable_label})."
        )
        return "\n".join([head, *segments_in_lines(self.segments), *card_in_lines(self.card)])

    # -- looking into rows again ------------------------------------------------------------------

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
        """Return the position that was asked for, or that of a label in the index of X."""
        if (row is None) == (label is None):
            raise InputError("Pass either the row, counted from 0, or its label as id=.")
        if label is None:
            return row
        if self.index is None:
            raise InputError(
                f"id={label!r} is a label in the index of a pandas frame, but X is "
                f"{type(self._X).__name__} and has none. Pass the row, counted from 0."
            )
        try:
            found = self.index.get_loc(label)
        except (KeyError, TypeError):
            raise InputError(
                f"id={label!r} is not in the index of X (the first labels are "
                f"{', '.join(repr(plain(i)) for i in self.index[:3])})."
            ) from None
        if not isinstance(found, int | np.integer):
            n = int(np.size(np.arange(self.n)[found]))
            raise InputError(
                f"id={label!r} is the label of {n} rows of X, so it is not clear which is meant. "
                "Pass the row, counted from 0."
            )
        return int(found)

    def _id_of(self, row: int) -> Any:
        """Return the label of a row in the index of X, None where that counts from 0."""
        index = self.index
        if index is None or np.array_equal(index, np.arange(self.n)):
            return None
        label = plain(index[row])
        return label if isinstance(label, str | bool | int | float) else str(label)

    def _try(self, row: int, edits: Sequence[tuple[str, Value]]) -> list[tuple[float, bool]] | None:
        """Return r, and whether the decision is another, with each edit; None if not known."""
        update = self._update
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a base model, about values it never saw
                rows = update.read_rows(edited_rows(self._X, row, edits))
        except Exception:  # a base model may refuse a row in any way it likes
            return None
        evaluation = update.evaluate_rows(rows)
        raw, decided = evaluation.raw_ratio, evaluation.after
        if decided[0] != self.after[row]:  # X is no longer what was explained
            return None
        return list(zip(raw[1:].tolist(), (decided[1:] != decided[0]).tolist(), strict=True))

    def _scorecard(self) -> Scorecard:
        if self.card is None:
            raise InputError(
                f"{self.method or 'A pair of models'} has no scorecard, so nobody's points are "
                'known. Explain a ControlledDebiaser or a COMMOD(architecture="concepts"), or '
                "look at segments."
            )
        return self._update.scorecard_

    def _why_closed(self, row: int) -> str | None:
        """Return why a decision could not change, None where it could."""
        assert self.scores_before is not None
        may_raise, may_lower = self._update.allowed_changes()
        if not (may_lower if self.before[row] else may_raise):
            is_good = self.y_before[row] == self.favorable_label
            word, verb = ("favourable", "gains") if is_good else ("unfavourable", "losses")
            return (
                f"it was not open to change, for this update makes {verb} only and the decision is "
                f"the {word} one already"
            )
        if self.scores_before[row] == self._update.threshold:
            return "its score equals the threshold, and such decisions always stay"
        return None

    def _range_of(self, name: str) -> tuple[float, float]:
        """Return the lowest and the highest value of a number among the explained people."""
        if name not in self._ranges:
            column = next(Table(self._X).whole({name}), None)
            values = np.zeros(0) if column is None else column.values[~column.is_missing()]
            ends = (float(values.min()), float(values.max())) if len(values) else (np.inf, -np.inf)
            self._ranges[name] = ends
        return self._ranges[name]

    def _columns(self, rows: Index) -> list[Column]:
        """Return what the scorecard reads of some rows."""
        assert self.scores_before is not None
        return self._update.ratio_columns(take_rows(self._X, rows), self.scores_before[rows])
