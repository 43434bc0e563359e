"""Audit a frame where its data is: `audit_frame` counts people inside the dataframe engine."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np

from commod._data.disclosure import MIN_CATEGORY_SIZE
from commod._data.frames import fetch, numbers, objects
from commod._data.groups import read_groups
from commod._data.strata import read_stratum_column, refuse_missing
from commod._record import Audit
from commod._reporting.audit.assembly import UpdateFacts, digest_counts, make_audit
from commod._reporting.audit.evidence import Evidence
from commod._reporting.audit.frame_counts import (
    MAX_CELLS,
    SCORES,
    count_frame,
    is_group,
    of_decided,
    read_roles,
    select_roles,
    summarise_decisions,
)
from commod._reporting.audit.people import read_people
from commod._reporting.audit.request import (
    add_label_names,
    check_settings,
    check_texts,
    is_same_target,
    named_labels,
    read_request,
)
from commod._reporting.audit.roc import RankedGroups, listed_groups
from commod._reporting.audit.stated import ConditionCounts, condition_columns, stated_constraints
from commod._reporting.explain.decisions import settings_of
from commod._reporting.explain.explanation import expected_of
from commod.exceptions import InputError
from commod.metrics._roc import ScoreCells
from commod.updates.base import check_update


def audit_frame(
    frame: Any,
    *,
    before: str,
    after: str,
    sensitive_features: str | Sequence[str],
    y_true: str | None = None,
    scores_before: str | None = None,
    scores_after: str | None = None,
    update: Any = None,
    request: Any = None,
    pos_label: Any = None,
    favorable_label: Any = None,
    score_is_for: Any = None,
    label_names: Mapping[Any, str] | None = None,
    group_names: Mapping[Any, Any] | None = None,
    rows: str = "audited rows",
    title: str | None = None,
    level: float = 0.95,
    min_group_size: int = 30,
    min_subgroup_size: int = 100,
    unknown_groups: str = "error",
    created: str | None = None,
) -> Audit:
    """Return the audit of two columns of decisions, counted inside the frame's own engine.

    Two queries bring back tables of groups; rows stay where they are. With true labels, one more
    query for each score counts people by group and bins of the score. With a constraint within
    columns, one more query counts people by these columns. All figures that follow from
    counts and sums equal those of `commod.audit` on the same rows.

    Parameters
    ----------
    frame : pandas, polars or pyarrow table, polars lazy frame, DuckDB relation, PySpark frame
        One row per person. Columns that are not named are not read.
    before, after : str
        Columns with the decisions of the base model and of the update, as labels. Rows where both
        are missing (NaN or null) are left out, and `not_known` counts them.
    sensitive_features : str or list of str
        Column with the group of each row. Several columns mean their intersections.
    y_true : str, default=None
        Column with the true labels.
    scores_before, scores_after : str, default=None
        Columns with the scores of the label `score_is_for`, in [0, 1].
    update : fitted update, default=None
        The update that made the decisions in `after`. The audit then states its request, its
        settings and what its fit expects on new people, as `commod.audit` does.
    request : Request or mapping, default=None
        What was requested of the update, such as ``{"target": 0.8, "direction": "gains_only"}``.
        The entry "constraints" may be an object of `commod.constraints` or a text, with bounds; the
        column that it is within is read from the frame.
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
        What these rows are ("decisions of 2025"). Every figure names them.
    title : str, default=None
        Heading of the report.
    level : float, default=0.95
        Level of the two-sided intervals, in (0.5, 1).
    min_group_size : int, default=30
        Smaller groups are named, but not compared.
    min_subgroup_size : int, default=100
        Smaller subgroups are counted, but not compared.
    unknown_groups : str, default="error"
        What to do with people whose group is missing; see `commod.audit`.
    created : str, default=None
        Date and time of the audit. If None, the present time in UTC.

    Returns
    -------
    Audit
        Frozen, as that of `commod.audit`. The areas of `roc` come from bins of the scores: their
        intervals include the largest error that the bins can make. Figures that need rows are None
        or empty: areas under the curve of all people, calibration, rank correlation, `outscoring`,
        segments, scorecard, subgroups within columns, and the `ledger`. `provenance.data_digest` is
        the digest of the counts by group, true label, decisions and columns that constraints are
        within, and of the lowest and highest scores. It is the same in every engine, but differs
        from that of `commod.audit`.

    Notes
    -----
    A missing value in only one decision, in y_true, in a score or in a sensitive column is an
    error, which says how many there are. `unknown_groups` may allow it in sensitive columns. Sums
    of scores are rounded as the engine adds them.

    Examples
    --------
    >>> import pandas as pd
    >>> from commod import audit_frame
    >>> decided = pd.DataFrame(
    ...     {"old": [0, 0, 1, 1] * 50, "new": [0, 1, 1, 1] * 50, "sex": ["f", "m"] * 100}
    ... )
    >>> result = audit_frame(decided, before="old", after="new", sensitive_features="sex")
    >>> result.changes.n_changes, result.changes.n_gains
    (50, 50)
    >>> [(group.name, group.selected_after.value) for group in result.groups]
    [('f', 0.5), ('m', 1.0)]
    """
    check_settings(level, min_group_size, min_subgroup_size, unknown_groups)
    texts = {"rows": rows, "title": title, "created": created}
    labels = named_labels(pos_label, favorable_label, score_is_for)
    check_texts(texts, labels, label_names, optional=("title", "created"))
    if hasattr(sensitive_features, "tolist"):  # names in an array
        sensitive_features = sensitive_features.tolist()
    if update is not None:
        check_update(update, "audit_frame", "For other decisions leave update out.")
    own = None if update is None else update.request()
    request = read_request(request, own, labels, has_labels=y_true is not None)
    columns = {
        "before": before,
        "after": after,
        "y_true": y_true,
        "scores_before": scores_before,
        "scores_after": scores_after,
    }
    roles = read_roles(columns, sensitive_features)
    selected = select_roles(frame, roles)
    summary = summarise_decisions(selected, roles)
    counted = count_frame(
        selected, roles, summary, request, min_group_size, group_names, unknown_groups
    )
    evidence = Evidence(
        coding=counted.coding,
        counts=counted.counts,
        request=add_label_names(request, counted.coding, label_names),
        rows=rows,
        level=level,
        min_group_size=min_group_size,
        min_subgroup_size=min_subgroup_size,
        scores=counted.scores,
        n_undecided=summary.n_undecided,
        n_hidden=counted.n_hidden,
        unknown=counted.unknown,
        n_unknown_hidden=counted.n_unknown_hidden,
    )
    evidence = replace(evidence, ranked=rank_frame(selected, roles, counted.score_ranges, evidence))
    evidence = replace(evidence, conditions=count_conditions(frame, roles, evidence))
    if own is not None and is_same_target(own, request):
        evidence = replace(evidence, expected=expected_of(update))
    counts = evidence.everybody, summary.score_ranges, evidence.conditions
    digest = digest_counts(counted.coding, *counts)
    facts = None if update is None else UpdateFacts(type(update).__name__, settings_of(update))
    return make_audit(evidence, digest=digest, title=title, created=created, explanation=facts)


# ---------------------------------------------------------------------------------------------
# Count the people of a frame by the columns that constraints are within, inside its engine


def count_conditions(
    frame: Any, roles: Mapping[str, Hashable], evidence: Evidence
) -> ConditionCounts | None:
    """Return the people by group, decisions and conditions; None where there is no condition.

    People of hidden groups are left out, as they are in `evidence`. `roles` are those of the other
    columns.
    """
    stated = [one.constraint for one in stated_constraints(evidence.request)]
    names = condition_columns(stated)
    if not names:
        return None
    keys = {role: column for role, column in roles.items() if role not in SCORES}
    within: dict[str, Hashable] = {f"within_{i}": name for i, name in enumerate(names)}
    selected = select_roles(frame, {**keys, **within})
    counted = of_decided(selected).group_by(*keys, *within).agg(nw.len().alias("n"))
    table = fetch(counted, MAX_CELLS)
    if table is None:
        raise InputError(
            f"The columns that constraints are within ({', '.join(names)}) make more than "
            f"{MAX_CELLS:,} combinations with groups and decisions. Put numbers into bins, or "
            "merge values.",
            parameter="request",
        )
    n = numbers(table, "n")
    for role, name in within.items():
        n_missing = int(n[[value is None for value in table[role]]].sum())
        refuse_missing(n_missing, int(n.sum()), f"Column {name!r}", "request")
    columns = {
        str(name): read_stratum_column(objects(table[role]), len(n), str(name), "request")
        for role, name in within.items()
    }
    groups = {roles[role]: objects(table[role]) for role in keys if is_group(role)}
    decisions = {role: table.get(role) for role in ("before", "after", "y_true")}
    # people of unknown groups were refused before, or they are in no comparison
    people = read_people(decisions, {}, groups, evidence.request, None, "ignore")
    lines = ConditionCounts.of_people(people, columns, n.astype(np.int64))
    return lines.shown(evidence.n_hidden, evidence.n_unknown_hidden)


# ---------------------------------------------------------------------------------------------
# Count the people of a frame by group, true label and bins of their score, inside its engine

MOST_BINS = 1000


def rank_frame(
    frame: nw.LazyFrame[Any],
    roles: Mapping[str, Hashable],
    score_ranges: Mapping[str, tuple[float, float]],
    evidence: Evidence,
) -> RankedGroups | None:
    """Return the people of each group by bins of their score.

    `score_ranges` are those of people outside hidden groups: nothing depends on the others.
    None without true labels, without scores, and where there are too few people for two bins.
    """
    n_groups = len(evidence.sizes)
    n_bins = min(evidence.n // MIN_CATEGORY_SIZE, MAX_CELLS) // (2 * n_groups)
    scores = [role for role in SCORES if role in roles]
    if "y_true" not in roles or not scores or n_bins < 2 or not evidence.is_compared.any():
        return None
    n_bins = min(n_bins, MOST_BINS)
    listed, n_left_out = listed_groups(evidence.sizes, evidence.is_compared)
    cells = {
        role: _bin_scores(frame, role, roles, score_ranges[role], n_bins, evidence)
        for role in scores
    }
    before, after = (
        tuple(cells[role][i] for i in listed) if role in cells else None for role in SCORES
    )
    return RankedGroups(listed, n_left_out, before, after, n_bins=n_bins)


def _bin_scores(
    frame: nw.LazyFrame[Any],
    role: str,
    roles: Mapping[str, Hashable],
    score_range: tuple[float, float],
    n_bins: int,
    evidence: Evidence,
) -> list[ScoreCells]:
    """Return the people of each group by bin, highest scores first."""
    low, high = score_range
    place = (nw.col(role) - low) * (n_bins / (high - low or 1.0))
    keys = [name for name in roles if is_group(name)]
    query = (
        of_decided(frame)
        .with_columns(score_bin=place.floor())
        .group_by(*keys, "y_true", "score_bin")
        .agg(nw.len().alias("n"))
    )
    table = fetch(query, MAX_CELLS)
    if table is None:
        raise AssertionError("bins make more lines than they can: a bug in commod")
    coding, n_groups = evidence.coding, len(evidence.sizes)
    is_positive = np.array([value == coding.positive_label for value in table["y_true"]])
    is_scored = is_positive == coding.score_is_for_positive
    # the groups are those of the counts, so they have the same numbers
    columns = {name: objects(table[name]) for name in keys}
    groups = read_groups(columns, len(is_scored), "ignore")  # refused already, if they are to be
    # the highest score, and scores of hidden people, may be beyond the bins
    score_bin = np.clip(numbers(table, "score_bin"), 0, n_bins - 1).astype(np.intp)
    people = np.zeros((n_groups + 1, 2, n_bins))  # the code −1 of unknown groups: the last entry
    place_of = groups.codes, is_scored.astype(np.intp), n_bins - 1 - score_bin
    np.add.at(people, place_of, numbers(table, "n"))
    return [ScoreCells.of_counts(own[1], own[0]) for own in people[:-1]]
