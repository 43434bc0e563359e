"""Audit a frame where its data is: `audit_frame` counts people inside the dataframe engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from commod._record import Audit
from commod._reporting.audit.assembly import make_audit
from commod._reporting.audit.evidence import Evidence
from commod._reporting.audit.frame_columns import read_roles, select_roles
from commod._reporting.audit.frame_conditions import count_conditions
from commod._reporting.audit.frame_counts import count_frame, summarise_decisions
from commod._reporting.audit.frame_ranks import rank_frame
from commod._reporting.audit.provenance import UpdateFacts, digest_counts
from commod._reporting.audit.request import (
    add_label_names,
    check_settings,
    check_texts,
    is_same_target,
    named_labels,
    read_request,
)
from commod._reporting.explain.decisions import settings_of
from commod._reporting.explain.expected import expected_of
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
