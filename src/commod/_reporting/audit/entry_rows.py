"""Audit arrays: `audit` turns decisions before and after into one frozen record."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.columns import iter_columns
from commod._data.labels import check_length, is_label_in
from commod._data.parameters import check_flag
from commod._data.proxies import NEAR_COPY_AREA, ProxyTest
from commod._data.tables import check_same_rows, index_of, n_rows_of, take_rows
from commod._record.audit import Audit, Proxy, Request, StabilitySummary
from commod._record.explanation import Card, CardLine, Estimate, Segments, is_evidence
from commod._reporting.audit.assembly import (
    DataDigest,
    make_audit,
    measure,
    provenance_of,
    title_of,
)
from commod._reporting.audit.checks import SmallCellPoints
from commod._reporting.audit.figures import MeasuredAudit, allowed_moves, losses_of, proxies_of
from commod._reporting.audit.ledger import make_ledger
from commod._reporting.audit.people import (
    SCORES,
    UNDEFINED,
    AuditedPeople,
    ShownPeople,
    count_people,
    finite_or_none,
    read_people,
    with_conditions,
)
from commod._reporting.audit.request import (
    check_settings,
    check_texts,
    is_same_target,
    named_labels,
    read_request,
    read_value,
    stated_constraints,
)
from commod._reporting.audit.scores import (
    figures_of_scores,
    group_area_differences,
    group_areas,
)
from commod._reporting.audit.subgroups import Slice, SliceCounter, find_subgroups
from commod._reporting.explain import Explanation, find_segments
from commod._text import shown
from commod.bounds._blind import BlindPeople
from commod.bounds._limits import check_simple
from commod.exceptions import DataWarning, InputError, InputTypeError
from commod.metrics._people import People


def audit(
    y_before: Any,
    y_after: Any,
    *,
    sensitive_features: Any = None,
    sensitive_probabilities: Any = None,
    y_true: Any = None,
    scores_before: Any = None,
    scores_after: Any = None,
    scores_calibrated: Any = None,
    X: Any = None,
    control_features: Any = None,
    explanation: Explanation | None = None,
    request: Any = None,
    stability: Any = None,
    pos_label: Any = None,
    favorable_label: Any = None,
    score_is_for: Any = None,
    label_names: Mapping[Any, str] | None = None,
    group_names: Mapping[Any, Any] | None = None,
    rows: str = "audited rows",
    row_ids: Sequence[Any] | None = None,
    title: str | None = None,
    level: float | None = None,
    min_group_size: int = 30,
    min_subgroup_size: int = 100,
    unknown_groups: str = "error",
    sensitive_in_ledger: bool = False,
    blind_limit: bool = False,
    value: Any = None,
    created: str | None = None,
) -> Audit:
    """Return who changes, who gains and who loses, at what cost, and what is not known.

    The function takes arrays, not models. It can audit any update, or any pair of models.

    Parameters
    ----------
    y_before, y_after : array-like of shape (n,)
        Decisions of the base model and of the update, as labels.
    sensitive_features : array-like of shape (n,) or (n, n_sensitive)
        The group of each row. Several columns mean their intersections.
    sensitive_probabilities : default=None
        Refused: an audit counts the people of each group. Pass `sensitive_features`, missing where
        the group is not known, and ``unknown_groups="ignore"``.
    y_true : array-like of shape (n,), default=None
        True labels. Without them, errors are not counted.
    scores_before, scores_after : array-like of shape (n,), default=None
        Scores of the label `score_is_for`, in [0, 1]. If None, those of the explanation.
    scores_calibrated : array-like of shape (n,), default=None
        The edited scores as calibrated probabilities of the same label, such as
        `update.calibrated_proba` returns. If None, those of the explanation.
    X : table of shape (n, n_features), default=None
        Raw columns, to describe who changes and which subgroups are badly served. Columns that are
        neither numbers nor categories, such as dates, are left out.
    control_features : array-like of shape (n,), frame or dict, default=None
        The columns that constraints of the request are within, by name. If None, they are read from
        X.
    explanation : Explanation, default=None
        From `commod.explain` on the same rows. It adds the scorecard, the concepts, their part in
        each change, and the request.
    request : Request or mapping, default=None
        What was requested of the update, such as ``{"target": 0.8, "direction": "gains_only"}``.
        The entry "constraints" may be an object of `commod.constraints` or a text, with bounds.
        Entries that a mapping leaves out come from the explanation; all of them do if None.
    stability : Stability, default=None
        From `commod.stability`.
    pos_label : label, default=None
        The label whose rates are compared. If None, that of the request, or `favorable_label`, or
        1.
    favorable_label : label, default=None
        The label that is good for the person. If None, that of the request, or `pos_label`.
    score_is_for : label, default=None
        The label that a high score predicts. If None, that of the request, or the larger label.
    label_names : mapping of label to str, default=None
        What the labels mean, for use in sentences: ``{0: "low risk", 1: "high risk"}``.
    group_names : mapping, default=None
        What the groups are called: ``{1: "women", 2: "men"}``. For several sensitive columns, the
        names of each column: ``{"sex": {1: "women"}, "age": {0: "under 30"}}``.
    rows : str, default="audited rows"
        What these rows are ("held-out rows of 2025"). Every figure names them.
    row_ids : sequence of length n, default=None
        The id of each row in the ledger. If None, the pandas index of X, or else of y_after, where
        no index label repeats; 0, 1, 2, ... otherwise.
    title : str, default=None
        Heading of the report.
    level : float, default=None
        Level of the two-sided intervals, in (0.5, 1). If None, that of the explanation, or 0.95.
    min_group_size : int, default=30
        Smaller groups are named, but not compared.
    min_subgroup_size : int, default=100
        Smaller subgroups are counted, but not compared.
    unknown_groups : str, default="error"
        What to do with people whose group is missing. "error": refuse them. "ignore": rates and
        comparisons count people of known groups, changes and accuracy count everybody. The audit
        says how fair the decisions could be, whatever the unknown groups are.
    sensitive_in_ledger : bool, default=False
        Whether the ledger names the group of each changed person. If not, its rules and reasons
        also leave out columns of X that determine the group or nearly do.
    blind_limit : bool, default=False
        Whether to estimate the fewest changes of a rule that does not read the group: see
        `commod.bounds.blind_changes`. It needs X, of which it leaves out columns that determine the
        group, and one simple constraint. It is counted on the people whose groups are compared, for
        the fairness that was reached. It takes seconds: five models are fitted.
    value : pair of numbers, default=None
        The worth of a right acceptance and the cost of a wrong one, such as ``(100, 500)``, each
        from 0. The audit then says what errors cost before and after. An acceptance is a decision
        for the favourable label. Needs y_true.
    created : str, default=None
        Date and time of the audit. If None, the present time in UTC.

    Returns
    -------
    Audit
        Frozen, with `to_json` and `from_json`. Its `ledger` has one line per changed decision.

    Notes
    -----
    Each person counts once: there are no sample weights. On large tables segments are searched for
    on a sample and counted on all rows.

    Examples
    --------
    >>> from commod import ControlledDebiaser, audit, explain
    >>> from commod.datasets import make_biased
    >>> from sklearn.linear_model import LogisticRegression
    >>> old, new = make_biased(2000, random_state=0), make_biased(2000, random_state=1)
    >>> model = LogisticRegression().fit(old.data, old.target)
    >>> update = ControlledDebiaser(model, target=0.8)
    >>> update = update.fit(old.data, old.target, sensitive_features=old.sensitive_features)
    >>> result = audit(
    ...     model.predict(new.data),
    ...     update.predict(new.data),
    ...     sensitive_features=new.sensitive_features,
    ...     y_true=new.target,
    ...     X=new.data,
    ...     explanation=explain(update, new.data),
    ...     rows="new rows",
    ... )
    >>> result.changes.n_changes == len(result.ledger)
    True
    >>> [check.code for check in result.checks][:3]
    ['CM101', 'CM102', 'CM103']
    """
    _refuse_probabilities(sensitive_probabilities)
    level = _read_level(level, explanation)
    check_settings(level, min_group_size, min_subgroup_size, unknown_groups)
    labels = named_labels(pos_label, favorable_label, score_is_for)
    check_texts({"rows": rows, "title": title, "created": created}, labels, label_names)
    check_flag(sensitive_in_ledger, "sensitive_in_ledger")
    decisions = {"y_before": y_before, "y_after": y_after, "y_true": y_true}
    scores = dict(zip(SCORES, (scores_before, scores_after, scores_calibrated), strict=True))
    explained = None if explanation is None else explanation.X
    tables = {"X": X, "explanation.X": explained, "sensitive_features": sensitive_features}
    others = {"row_ids": row_ids, "control_features": control_features}
    check_same_rows({**tables, **decisions, **scores, **others})
    defaults, X, scores = _with_explained(explanation, X, scores)
    request = read_request(request, defaults, labels, has_labels=y_true is not None)
    _check_blind_limit(blind_limit, request, X)
    worth = read_value(value, has_labels=y_true is not None)
    named = request, group_names, unknown_groups
    everybody = read_people(decisions, scores, sensitive_features, *named)
    _check_explained_rows(everybody, explanation, X)
    everybody.warn_of_mix_ups(("y_before", "y_after", "y_true"), stacklevel=3)
    row_ids = _read_row_ids(row_ids, index_of(y_after if X is None else X), len(everybody))
    everybody = with_conditions(everybody, request, X, control_features)
    counted = count_people(
        everybody, request, label_names, rows=rows, level=level, min_group_size=min_group_size
    )
    stability = _read_stability(stability)
    cells = SmallCellPoints(_card_lines(explanation), len(counted.people))
    digest = DataDigest(everybody)
    columns = _read_columns(counted, X, cells, explanation, digest)
    segments, segment_of = _read_segments(counted, X, explanation, columns.near_copies)
    ledger = make_ledger(
        everybody,
        row_ids,
        segments,
        segment_of,
        explanation,
        hidden_columns=() if sensitive_in_ledger else columns.near_copies,
        with_group=sensitive_in_ledger,
    )
    known, origin = _known_of_update(counted, columns, explanation)
    measured = measure(
        counted,
        losses=losses_of(counted, worth),
        has_rows=True,
        title=title or title_of(origin["method"]),
        proxies=_proxies(counted, explanation, known.get("card")),
        subgroups=find_subgroups(counted, columns.slices, min_size=min_subgroup_size),
        segments=segments,
        stability=stability,
        small_cell_areas=cells.group_areas(counted.people.groups.codes, counted.is_compared, level),
        n_in_small_cells=int(cells.is_inside.sum()),
        unread_columns=columns.unread_columns,
        provenance=provenance_of(counted, digest.hexdigest(), ledger, created, **origin),
        ledger=ledger,
        **figures_of_scores(counted),
        **known,
    )
    if blind_limit:
        measured = _with_blind_limit(measured, X, columns.group_columns)
    return make_audit(measured)


# ---------------------------------------------------------------------------------------------
# Checking the inputs


def _refuse_probabilities(sensitive_probabilities: Any) -> None:
    if sensitive_probabilities is not None:
        raise InputError(
            "sensitive_probabilities cannot be used here: an audit counts the people of each "
            "group, and probabilities do not say who these people are. Pass sensitive_features, "
            "None where the group is not known, with unknown_groups='ignore'. The status_ of the "
            "update has the expected rates.",
            parameter="sensitive_probabilities",
        )


def _check_blind_limit(blind_limit: bool, request: Request, X: Any) -> None:
    """Refuse to estimate the blind limit where it is asked for and not known."""
    check_flag(blind_limit, "blind_limit")
    if not blind_limit:
        return
    check_simple([one.constraint for one in stated_constraints(request)], "The blind limit")
    if X is None:
        raise InputError(
            "blind_limit=True needs X, the columns that a rule may read, but X is None. Pass X, or "
            "an explanation of these rows.",
            parameter="X",
        )


def _read_level(level: float | None, explanation: Explanation | None) -> float:
    if explanation is not None and not isinstance(explanation, Explanation):
        raise InputError(
            "explanation must come from commod.explain(update, X); got "
            f"{type(explanation).__name__}."
        )
    if explanation is None:
        return 0.95 if level is None else level
    if level is not None and not is_label_in(level, [explanation.level]):
        raise InputError(
            f"level={shown(level)}, but the explanation has intervals of level "
            f"{explanation.level:g}: make it with explain(..., level={shown(level)}).",
            parameter="level",
        )
    return explanation.level


def _with_explained(
    explanation: Explanation | None, X: Any, scores: dict[str, Any]
) -> tuple[Request | None, Any, dict[str, Any]]:
    """Return the request of the explanation, X and the scores; its own where none are given."""
    if explanation is None:
        return None, X, scores
    known = {name: getattr(explanation, name) for name in scores}
    scores = {name: known[name] if s is None else s for name, s in scores.items()}
    return explanation.request, explanation.X if X is None else X, scores


def _check_explained_rows(people: AuditedPeople, explanation: Explanation | None, X: Any) -> None:
    """Refuse X and an explanation of other rows, labels or decisions."""
    n = len(people)
    if X is not None and n_rows_of(X) != n:
        raise InputError(f"X has {n_rows_of(X):,} rows and y_before {n:,}.")
    if explanation is None:
        return
    if explanation.n != n:
        raise InputError(
            f"explanation has {explanation.n:,} rows and y_before {n:,}: explain the audited rows."
        )
    for name, here, explained in (
        ("pos_label", people.positive_label, explanation.pos_label),
        ("favorable_label", people.favorable_label, explanation.favorable_label),
    ):
        if here != explained:
            raise InputError(
                f"{name} is {here!r} here and {explained!r} in the explanation, so gains and "
                "losses contradict each other. Leave it out, or explain with the same label."
            )
    differs = (explanation.before != people.before) | (explanation.after != people.after)
    if differs.any():
        raise InputError(
            f"explanation has other decisions than y_before and y_after in {differs.sum():,} of "
            f"{n:,} rows: explain the audited update on the audited rows."
        )


def _read_stability(stability: Any) -> StabilitySummary | None:
    if stability is None or isinstance(stability, StabilitySummary):
        return stability
    if not hasattr(stability, "summary"):
        raise InputError(
            f"stability must come from commod.stability; got {type(stability).__name__}."
        )
    return stability.summary()


def _read_row_ids(row_ids: Sequence[Any] | None, index: Any, n: int) -> Sequence[Any] | None:
    if row_ids is not None:
        is_list = isinstance(row_ids, Iterable) and not isinstance(row_ids, str | bytes)
        if not is_list or getattr(row_ids, "ndim", 1) != 1:
            raise InputTypeError(
                f"row_ids={shown(row_ids)} must name each row: pass one value per row.",
                parameter="row_ids",
            )
        ids = list(row_ids)
        check_length(ids, "row_ids", n)
        return ids
    if index is None or index.is_unique:
        return index
    warnings.warn(
        "Labels of the pandas index repeat, so the ledger numbers the rows 0, 1, 2, ... Pass "
        "row_ids= to name them.",
        DataWarning,
        stacklevel=3,
    )
    return None


# ---------------------------------------------------------------------------------------------
# Measuring what needs rows


@dataclass(frozen=True)
class _ColumnFacts:
    """What one pass over the raw columns finds.

    `group_columns` determine the group. `areas` says how well each column alone predicts the group.
    """

    slices: Sequence[Slice]
    group_columns: tuple[str, ...]
    areas: Mapping[str, float]
    unread_columns: tuple[str, ...]

    @property
    def near_copies(self) -> list[str]:
        """Return the columns that determine the group or nearly do."""
        near = [name for name, area in self.areas.items() if area >= NEAR_COPY_AREA]
        return list(dict.fromkeys([*self.group_columns, *near]))


def _read_columns(
    counted: ShownPeople,
    X: Any,
    cells: SmallCellPoints,
    explanation: Explanation | None,
    digest: DataDigest,
) -> _ColumnFacts:
    """Read the raw columns once, one at a time; refuse those whose type is not the update's.

    The columns of everybody are added to the `digest`. All else is of the people who are shown.
    """
    known, is_known = counted.known, counted.is_known
    counter = SliceCounter(known, counted.constraint)
    test = ProxyTest(known.groups.codings)
    group_columns: list[str] = []
    areas: dict[str, float] = {}
    unread: list[str] = []
    for column in iter_columns(X, unread=unread) if X is not None else ():
        if explanation is not None and column.name not in unread:
            explanation.check_type(column)
        digest.add_column(column)
        if not counted.is_complete:
            column = column.take(counted.is_shown)
        cells.add(column)
        if not is_known.all():
            column = column.take(is_known)
        counter.add(column)
        if test.determines(column):
            group_columns.append(column.name)
        areas[column.name] = test.predict(column).area
    return _ColumnFacts(counter.slices, tuple(group_columns), areas, tuple(unread))


def _read_segments(
    counted: ShownPeople,
    X: Any,
    explanation: Explanation | None,
    group_columns: Sequence[str],
) -> tuple[Segments | None, NDArray[Any]]:
    """Return the segments and the segment of each row (n,), −1 where there is none.

    The segments of an explanation count everybody. Where people are hidden, they are found again.
    """
    people, is_shown, level = counted.people, counted.is_shown, counted.level
    if explanation is not None and (counted.is_complete or explanation.segments is None):
        return explanation.segments, explanation.segment_of
    segment_of = np.full(len(is_shown), -1)
    if X is None:
        return None, segment_of
    favorable_before = people.favorable(people.before)
    rows = X if counted.is_complete else take_rows(X, np.flatnonzero(is_shown))
    segments, segment_of[is_shown] = find_segments(
        rows, people.gain, people.loss, favorable_before, level=level, skip=group_columns
    )
    return segments, segment_of


def _known_of_update(
    counted: ShownPeople, columns: _ColumnFacts, explanation: Explanation | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what an explanation says about the update, by field of the audit and of its origin.

    Where people are hidden, the figures of the card are of the others alone. Expectations are
    those of the same request.
    """
    if explanation is None:
        return {}, {"method": None, "settings": {}}
    reads_group = explanation.needs_sensitive_features
    read = {line.column for line in _card_lines(explanation)}
    has_group = not read.isdisjoint(columns.group_columns)
    areas = [(name, columns.areas[name]) for name in sorted(read & columns.areas.keys())]
    card = explanation.card
    if not counted.is_complete:
        card = explanation.card_of(np.flatnonzero(counted.is_shown))
    is_same = is_same_target(explanation.request, counted.request)
    figures = {
        "card": card,
        "strongest_column": max(areas, key=lambda area: area[1], default=None),
        "expected": explanation.expected if is_same else None,
        "edits": explanation.edits,
    }
    return figures, {
        "method": explanation.method,
        "settings": explanation.settings,
        "reads_group": None if reads_group is None else reads_group or has_group,
        "is_randomised": explanation.randomised,
    }


def _proxies(
    counted: ShownPeople, explanation: Explanation | None, card: Card | None
) -> tuple[Proxy, ...]:
    """Return how well −r, or the evidence, predicts each group; the change where r is not known."""
    known = counted.known
    compared = known.groups.codes, counted.is_compared, counted.level
    base, push = known.scores_before, None
    if explanation is not None and explanation.raw_ratio is not None:
        sign = 1.0 if is_evidence(card) else -1.0
        push = sign * np.asarray(explanation.raw_ratio)[counted.is_shown][counted.is_known]
    of_push = None if push is None else group_areas(push, *compared)
    if base is None:
        return proxies_of(counted, of_push)
    moved = known.changed.astype(np.float64) if push is None else push
    differences = group_area_differences(moved, base, *compared)
    return proxies_of(counted, of_push, group_areas(base, *compared), differences)


def _with_blind_limit(
    measured: MeasuredAudit, X: Any, group_columns: Sequence[str]
) -> MeasuredAudit:
    """Return the audit with the blind limit of the fairness reached, on compared groups.

    Columns that determine the group, and those that cannot be read, are left out.
    """
    counted, reached = measured.counted, measured.fairness[0].after.value
    changes = UNDEFINED
    if reached is not None:
        known, unread = counted.known, [*group_columns]
        is_compared = counted.is_compared[known.groups.codes]
        rows = np.flatnonzero(counted.is_shown)[counted.is_known][is_compared]
        columns = [column.take(rows) for column in iter_columns(X, unread=unread)]
        columns = [column for column in columns if column.name not in unread]
        if not columns:
            raise InputError(
                "blind_limit=True needs a column that does not determine the group, but X has "
                "none. Pass the columns that a rule may read.",
                parameter="X",
            )
        people = known.take(is_compared)
        group, n_groups = counted.number[people.groups.codes], len(counted.compared_names)
        compared = People((counted.constraint,), group, n_groups, people.label)
        blind = BlindPeople.of(columns, compared, people.before)
        moves = allowed_moves(counted, counted.request.direction)
        found = blind.fewest(reached, **moves, level=counted.level)
        changes = Estimate(*map(finite_or_none, (found.n_changes, *found.interval)))
    return replace(measured, limit=replace(measured.limit, blind=changes))


def _card_lines(explanation: Explanation | None) -> Sequence[CardLine]:
    return () if explanation is None or explanation.card is None else explanation.card.lines
