"""Decisions before and after → everything a validator asks, as one frozen record."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.columns import iter_columns
from commod._data.labels import check_length
from commod._data.tables import index_of, n_rows_of
from commod._record import Audit, Proxy, Segment, Segments, StabilitySummary
from commod._reporting.audit.coding import (
    check_labels_known,
    check_settings,
    named_request,
    read_request,
    warn_about_scores,
)
from commod._reporting.audit.counts import Counts, count_people
from commod._reporting.audit.ledger import make_ledger
from commod._reporting.audit.measure import measure, names_of_large, record_of
from commod._reporting.audit.people import People, read_people
from commod._reporting.audit.provenance import DataDigest, provenance_of
from commod._reporting.audit.scores import (
    agreement_of,
    areas_of,
    calibration_of,
    change_areas,
    group_areas,
    mean_scores_of,
    n_unlike_of,
    proxies_of,
)
from commod._reporting.audit.subgroups import Slices, SubgroupSearch, everybody_of
from commod._reporting.explain import Explanation, find_segments
from commod.exceptions import DataWarning, InputError
from commod.updates.base import determines_group

__all__ = ["audit"]

BoolArray = NDArray[np.bool_]


def audit(
    y_before: Any,
    y_after: Any,
    *,
    sensitive_features: Any,
    y_true: Any = None,
    scores_before: Any = None,
    scores_after: Any = None,
    X: Any = None,
    explanation: Explanation | None = None,
    request: Any = None,
    stability: Any = None,
    pos_label: Any = None,
    favorable_label: Any = None,
    label_names: Mapping[Any, str] | None = None,
    rows: str = "audited rows",
    row_ids: Sequence[Any] | None = None,
    title: str | None = None,
    level: float | None = None,
    min_group_size: int = 30,
    min_subgroup_size: int = 100,
    sensitive_in_ledger: bool = False,
    created: str | None = None,
) -> Audit:
    """Return who changed, how, for better or worse, at what cost, and what is not known.

    It takes arrays, not models: any update, or any pair of models, can be audited.

    Parameters
    ----------
    y_before, y_after : array-like of shape (n,)
        Decisions of the base model and of the update, as labels.
    sensitive_features : array-like of shape (n,) or (n, n_sensitive)
        The group of each row; several columns mean their intersections.
    y_true : array-like of shape (n,), default=None
        True labels, where they are known: without them nothing is said about errors.
    scores_before, scores_after : array-like of shape (n,), default=None
        Scores of `pos_label` in [0, 1]; those of the explanation if None.
    X : table of shape (n, n_features), default=None
        Raw columns, to say who changes and who remains badly served. Columns that are neither
        numbers nor categories (dates, say) are left out.
    explanation : Explanation, default=None
        From `commod.explain` on the same rows: adds the scorecard, the concepts, their part in
        each change, and what was asked.
    request : Request or mapping, default=None
        What was asked, such as ``{"target": 0.8, "direction": "gains_only"}``; what a mapping
        leaves out, or all of it if None, is that of the explanation.
    stability : Stability, default=None
        From `commod.stability`.
    pos_label : label, default=None
        The label whose rates count; that of the request, or 1, if None.
    favorable_label : label, default=None
        The label that is good for the person; that of the request, or `pos_label`, if None.
    label_names : mapping of label to str, default=None
        What the labels mean, for sentences: ``{0: "low risk", 1: "high risk"}``.
    rows : str, default="audited rows"
        What rows these are ("held-out rows of 2025"); every figure names them.
    row_ids : sequence of length n, default=None
        How the ledger calls a row: the index of X, or else of y_after, where it is pandas and no
        label repeats; 0, 1, 2, ... otherwise.
    title : str, default=None
        Heading of the report.
    level : float, default=None
        Level of the two-sided intervals, in (0.5, 1); the explanation's, or 0.95, if None.
    min_group_size : int, default=30
        Smaller groups are named, and compared with nothing.
    min_subgroup_size : int, default=100
        The same for subgroups.
    sensitive_in_ledger : bool, default=False
        Whether the ledger names each changed person's group. If not, its rules and reasons leave
        out columns of X that tell the group exactly.
    created : str, default=None
        Date and time to write down; now, in UTC, if None.

    Returns
    -------
    Audit
        Frozen; `to_json`, `from_json`; its `ledger` has one line per changed decision.

    Notes
    -----
    People are counted, each once: there are no sample weights. Segments of many rows are found on
    a sample of them and counted on all.

    Examples
    --------
    >>> from commod import ControlledDebiaser, audit, explain
    >>> from commod.datasets import make_biased
    >>> from sklearn.linear_model import LogisticRegression
    >>> old, new = make_biased(2000, random_state=0), make_biased(2000, random_state=1)
    >>> model = LogisticRegression().fit(old.data, old.target)
    >>> update = ControlledDebiaser(model, target=0.8)
    >>> update = update.fit(old.data, old.target, sensitive_features=old.sensitive_features)
    >>> found = audit(
    ...     model.predict(new.data),
    ...     update.predict(new.data),
    ...     sensitive_features=new.sensitive_features,
    ...     y_true=new.target,
    ...     X=new.data,
    ...     explanation=explain(update, new.data),
    ...     rows="new rows",
    ... )
    >>> found.changes.n_changes == len(found.ledger)
    True
    >>> [check.code for check in found.checks][:3]
    ['CM101', 'CM102', 'CM103']
    """
    _check_explanation(explanation)
    X = explanation.X if X is None and explanation is not None else X
    level = _level(level, explanation)
    check_settings(level, min_group_size, min_subgroup_size)
    tables = X, y_before, y_after, y_true, scores_before, scores_after, sensitive_features
    _check_order([*map(index_of, tables), explanation and explanation.index])
    asked = read_request(request, explanation)
    labels = (
        asked.pos_label if pos_label is None else pos_label,
        asked.favorable_label if favorable_label is None else favorable_label,
    )
    scores = _scores(explanation, scores_before, scores_after)
    people = read_people(y_before, y_after, y_true, scores, sensitive_features, labels)
    _check_same_rows(people, explanation, X)
    coding, has_labels = people.coding, people.label is not None
    warn_about_scores(coding, _mean_scores_by_decision(people))
    asked = named_request(asked, coding, label_names or {})
    check_labels_known(asked, has_labels)
    counts = count_people(
        people.groups.codes, len(coding.group_names), people.before, people.after, people.label
    )
    large = counts.sizes >= min_group_size
    slices = Slices(people, asked.constraints)
    columns = _read_columns(people, X, slices)
    search = SubgroupSearch.of(
        coding, large, asked.constraints, has_labels, min_subgroup_size, level
    )
    segments, segment_of = _segments(people, X, explanation, level, columns.telling)
    reads_group = _reads_group(explanation, columns.telling)
    found = measure(
        coding,
        counts,
        asked,
        large,
        rows=rows,
        level=level,
        min_group_size=min_group_size,
        mean_scores=mean_scores_of(people),
        areas=areas_of(people, level),
        agreement=agreement_of(people),
        calibration=calibration_of(people, level),
        proxies=_proxies(people, counts, explanation, large, level),
        subgroups=search.found(everybody_of(counts, coding, asked.constraints), slices.found),
        unread=columns.unread,
        reads_group=reads_group,
        draws_lots=explanation and explanation.randomised,
        segments=segments,
        stability=_summary(stability),
        n_unlike=n_unlike_of(people, asked.threshold),
    )
    hidden = () if sensitive_in_ledger else columns.telling
    rules = [] if segments is None else [_rule(segment, hidden) for segment in segments.segments]
    ids = _row_ids(row_ids, index_of(X) if X is not None else index_of(y_after), len(people))
    ledger = make_ledger(
        people, ids, (rules, segment_of), explanation, hidden, with_group=sensitive_in_ledger
    )
    provenance = provenance_of(
        columns.digest, ledger, explanation=explanation, reads_group=reads_group, created=created
    )
    return record_of(found, explanation, title, ledger, provenance)


# ---------------------------------------------------------------------------------------------
# Checking


def _check_explanation(explanation: Any) -> None:
    if explanation is not None and not isinstance(explanation, Explanation):
        raise InputError(
            "explanation must come from commod.explain(update, X); got "
            f"{type(explanation).__name__}."
        )


def _level(level: float | None, explanation: Explanation | None) -> float:
    if explanation is None:
        return 0.95 if level is None else level
    if level not in (None, explanation.level):
        raise InputError(
            f"level={level!r}, but the explanation has intervals of level {explanation.level:g}: "
            f"make it with explain(..., level={level!r})."
        )
    return explanation.level


def _check_order(indexes: Sequence[Any]) -> None:
    """Refuse pandas tables of the same people in another order: their rows would be mixed up."""
    first, *others = [i for i in indexes if i is not None and i.is_unique] or [None]
    for index in others:
        if len(index) == len(first) and not index.equals(first) and index.isin(first).all():
            raise InputError(
                "Two of the pandas tables hold the same index labels in different orders, so their "
                "rows do not belong together. Bring them into one order: X.loc[y.index]."
            )


def _check_same_rows(people: People, explanation: Explanation | None, X: Any) -> None:
    if X is not None and n_rows_of(X) != len(people):
        raise InputError(f"X has {n_rows_of(X):,} rows and y_before {len(people):,}.")
    if explanation is None:
        return
    if explanation.n != len(people):
        raise InputError(
            f"explanation is of {explanation.n:,} rows and y_before has {len(people):,}: explain "
            "the rows that are audited."
        )
    coding = people.coding
    for name, ours, theirs in (
        ("pos_label", coding.positive_label, explanation.pos_label),
        ("favorable_label", coding.favorable_label, explanation.favorable_label),
    ):
        if ours != theirs:
            raise InputError(
                f"{name} is {ours!r} here and {theirs!r} in the explanation, so that gains and "
                "losses contradict each other. Leave it out, or explain with the same one."
            )
    n_unlike = int(
        ((explanation.before != people.before) | (explanation.after != people.after)).sum()
    )
    if n_unlike:
        raise InputError(
            f"explanation has other decisions than y_before and y_after in {n_unlike:,} of "
            f"{len(people):,} rows: explain the update and the rows that are audited."
        )


def _scores(explanation: Explanation | None, before: Any, after: Any) -> tuple[Any, Any]:
    """Return the scores as given, else those of the explanation."""
    if explanation is None:
        return before, after
    return (
        explanation.scores_before if before is None else before,
        explanation.scores_after if after is None else after,
    )


def _summary(stability: Any) -> StabilitySummary | None:
    if stability is None or isinstance(stability, StabilitySummary):
        return stability
    if not hasattr(stability, "summary"):
        raise InputError(
            f"stability must come from commod.stability; got {type(stability).__name__}."
        )
    return stability.summary()


def _row_ids(row_ids: Sequence[Any] | None, index: Any, n: int) -> Sequence[Any] | None:
    if row_ids is None:
        if index is None or index.is_unique:
            return index
        warnings.warn(
            "Labels of the pandas index repeat, so the ledger calls the rows 0, 1, 2, ... Pass "
            "row_ids= to name them otherwise.",
            DataWarning,
            stacklevel=3,
        )
        return None
    ids = list(row_ids)
    check_length(ids, "row_ids", n)
    return ids


# ---------------------------------------------------------------------------------------------
# Measuring


def _mean_scores_by_decision(people: People) -> dict[str, tuple[float, float] | None]:
    """Return the mean score of negative and of positive decisions; None where one is not made."""
    given = {
        "scores_before": (people.scores_before, people.before),
        "scores_after": (people.scores_after, people.after),
    }
    return {
        name: None
        if scores is None or decided.all() or not decided.any()
        else (float(scores[~decided].mean()), float(scores[decided].mean()))
        for name, (scores, decided) in given.items()
    }


def _proxies(
    people: People,
    counts: Counts,
    explanation: Explanation | None,
    large: BoolArray,
    level: float,
) -> tuple[Proxy, ...]:
    """Return how well −r, or the change itself where r is not known, tells each group."""
    names, codes, scores = names_of_large(people.coding, large), people.groups.codes, None
    if people.scores_before is not None:
        scores = group_areas(people.scores_before, codes, large, level)
    ratio = None if explanation is None else explanation.raw_ratio
    if ratio is None:
        return proxies_of(names, change_areas(counts, large, level), scores, by_ratio=False)
    pushes = group_areas(-np.asarray(ratio), codes, large, level)
    return proxies_of(names, pushes, scores, by_ratio=True)


def _segments(
    people: People, X: Any, explanation: Explanation | None, level: float, telling: Sequence[str]
) -> tuple[Segments | None, NDArray[Any]]:
    if explanation is not None:
        return explanation.segments, explanation.segment_of
    if X is None:
        return None, np.full(len(people), -1)
    return find_segments(
        X, people.gain, people.loss, people.favorable(people.before), level=level, skip=telling
    )


def _reads_group(explanation: Explanation | None, telling: Sequence[str]) -> bool | None:
    if explanation is None or explanation.needs_sensitive_features is None:
        return None
    lines = () if explanation.card is None else explanation.card.lines
    return explanation.needs_sensitive_features or any(line.column in telling for line in lines)


def _rule(segment: Segment, hidden: Sequence[str]) -> str:
    """Return a rule for the ledger: empty where it would tell the person's group."""
    tells = any(condition.column in hidden for condition in segment.conditions)
    return "" if tells else segment.text


@dataclass(frozen=True)
class _Columns:
    """The digest of the data, the columns that tell a group exactly, those that cannot be read."""

    digest: str
    telling: tuple[str, ...]
    unread: tuple[str, ...]


def _read_columns(people: People, X: Any, slices: Slices) -> _Columns:
    """Go once through the raw columns, one at a time, and count the slices of each."""
    digest = DataDigest(people)
    sensitive = (people.groups.codes, *people.groups.parts)
    telling: list[str] = []
    unread: list[str] = []
    for column in iter_columns(X, unread=unread) if X is not None else ():
        digest.add(column)
        slices.add(column)
        if any(determines_group(column, codes) for codes in sensitive):
            telling.append(column.name)
    return _Columns(digest.hexdigest(), tuple(telling), tuple(unread))
