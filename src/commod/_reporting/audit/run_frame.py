"""The same audit where the data is: counts made inside a dataframe engine → the same record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from commod._record import Audit
from commod._reporting.audit.coding import (
    check_labels_known,
    check_settings,
    named_request,
    read_request,
    warn_about_scores,
)
from commod._reporting.audit.frame import read_decisions, read_names, read_rows, tally
from commod._reporting.audit.measure import measure, names_of_large, record_of
from commod._reporting.audit.provenance import CountDigest, provenance_of
from commod._reporting.audit.scores import NO_AREAS, change_areas, proxies_of
from commod._reporting.audit.subgroups import SubgroupSearch, everybody_of

__all__ = ["audit_frame"]


def audit_frame(
    frame: Any,
    *,
    before: str,
    after: str,
    sensitive_features: str | Sequence[str],
    y_true: str | None = None,
    scores_before: str | None = None,
    scores_after: str | None = None,
    request: Any = None,
    pos_label: Any = None,
    favorable_label: Any = None,
    label_names: Mapping[Any, str] | None = None,
    rows: str = "audited rows",
    title: str | None = None,
    level: float = 0.95,
    min_group_size: int = 30,
    min_subgroup_size: int = 100,
    created: str | None = None,
) -> Audit:
    """Return the audit of two columns of decisions, counted inside the frame's own engine.

    Two queries bring back tables of groups; rows stay where they are. All figures that counts and
    sums give equal those of `commod.audit` on the same rows.

    Parameters
    ----------
    frame : pandas, polars or pyarrow table, polars lazy frame, DuckDB relation, PySpark frame
        One row per person; columns that are not named are not read.
    before, after : str
        Columns of the decisions of the base model and of the update, as labels. Rows where both
        are missing (NaN or null) are left out, and `not_known` counts them.
    sensitive_features : str or list of str
        Column of the group of each row; several mean their intersections.
    y_true : str, default=None
        Column of the true labels.
    scores_before, scores_after : str, default=None
        Columns of the scores of `pos_label` in [0, 1].
    request : Request or mapping, default=None
        What was asked, such as ``{"target": 0.8, "direction": "gains_only"}``.
    pos_label : label, default=None
        The label whose rates count; that of the request, or 1, if None.
    favorable_label : label, default=None
        The label that is good for the person; that of the request, or `pos_label`, if None.
    label_names : mapping of label to str, default=None
        What the labels mean, for sentences: ``{0: "low risk", 1: "high risk"}``.
    rows : str, default="audited rows"
        What rows these are ("decisions of 2025"); every figure names them.
    title : str, default=None
        Heading of the report.
    level : float, default=0.95
        Level of the two-sided intervals, in (0.5, 1).
    min_group_size : int, default=30
        Smaller groups are named, and compared with nothing.
    min_subgroup_size : int, default=100
        The same for subgroups.
    created : str, default=None
        Date and time to write down; now, in UTC, if None.

    Returns
    -------
    Audit
        Frozen, as that of `commod.audit`. What needs rows is None or empty: areas under the curve,
        calibration, rank correlation, segments, scorecard, subgroups within columns; `ledger` is
        None. `provenance.data_digest` is of the counts by group, true label and decisions and of
        the ends of the scores: the same in every engine, but not that of `commod.audit`.

    Notes
    -----
    A missing value in one decision only, in y_true, in a score or in a sensitive column is an
    error that says how many there are. Sums of scores round as the engine adds them.

    Examples
    --------
    >>> import pandas as pd
    >>> from commod import audit_frame
    >>> decided = pd.DataFrame(
    ...     {"old": [0, 0, 1, 1] * 50, "new": [0, 1, 1, 1] * 50, "sex": ["f", "m"] * 100}
    ... )
    >>> found = audit_frame(decided, before="old", after="new", sensitive_features="sex")
    >>> found.changes.n_changes, found.changes.n_gains
    (50, 50)
    >>> [(group.name, group.selected_after.value) for group in found.groups]
    [('f', 0.5), ('m', 1.0)]
    """
    check_settings(level, min_group_size, min_subgroup_size)
    asked = read_request(request, None)
    check_labels_known(asked, y_true is not None)
    labels = (
        asked.pos_label if pos_label is None else pos_label,
        asked.favorable_label if favorable_label is None else favorable_label,
    )
    names = read_names(
        {
            "before": before,
            "after": after,
            "y_true": y_true,
            "scores_before": scores_before,
            "scores_after": scores_after,
        },
        sensitive_features,
    )
    table = read_rows(frame, names)
    decisions = read_decisions(table, names, labels)
    found = tally(table, names, decisions, asked.threshold)
    coding, counts = found.coding, found.counts
    warn_about_scores(coding, decisions.by_decision)
    asked = named_request(asked, coding, label_names or {})
    large = counts.sizes >= min_group_size
    search = SubgroupSearch.of(
        coding, large, asked.constraints, counts.has_labels, min_subgroup_size, level
    )
    evidence = measure(
        coding,
        counts,
        asked,
        large,
        rows=rows,
        level=level,
        min_group_size=min_group_size,
        mean_scores=found.mean_scores,
        areas=NO_AREAS,
        agreement=found.agreement,
        calibration=None,
        proxies=proxies_of(
            names_of_large(coding, large), change_areas(counts, large, level), None, by_ratio=False
        ),
        subgroups=search.found(everybody_of(counts, coding, asked.constraints)),
        unread=(),
        reads_group=None,
        draws_lots=None,
        segments=None,
        stability=None,
        n_unlike=found.n_unlike,
        n_undecided=decisions.n_undecided,
        has_rows=False,
    )
    digest = CountDigest(coding, counts, decisions.ends).hexdigest()
    provenance = provenance_of(digest, None, explanation=None, reads_group=None, created=created)
    return record_of(evidence, None, title, None, provenance)
