"""Audit a frame where its data is: `audit_frame` counts people inside the dataframe engine.

Two queries run. Each brings back a table with one line per combination of values:

1. by decisions and true label, to check missing values and to learn the range of the scores;
2. by group, decisions, true label and the columns that constraints are within, for all counts.

Each line is then read like a row that stands for several people, as `commod.audit` reads rows.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Floats
from commod._data.disclosure import MIN_CATEGORY_SIZE
from commod._data.frames import (
    GroupTable,
    as_lazy,
    as_number,
    engine_errors,
    fetch,
    no_column,
    number_column,
    numbers,
    objects,
    read_names,
    with_copies,
)
from commod._data.groups import read_groups, read_stratum_column, refuse_missing
from commod._data.tables import FreeNames
from commod._record.audit import Agreement, Audit, Request
from commod._reporting.audit.assembly import (
    digest_counts,
    make_audit,
    measure,
    provenance_of,
    title_of,
)
from commod._reporting.audit.figures import losses_of, proxies_of
from commod._reporting.audit.people import AuditedPeople, ShownPeople, count_people, read_people
from commod._reporting.audit.request import (
    check_settings,
    check_texts,
    condition_columns,
    is_same_target,
    named_labels,
    read_request,
    read_value,
)
from commod._reporting.audit.scores import RankedGroups, listed_groups, roc_of
from commod._reporting.audit.subgroups import find_subgroups
from commod._reporting.explain.decisions import settings_of
from commod._reporting.explain.explanation import expected_of
from commod._text import n_of, verb
from commod.exceptions import InputError
from commod.metrics._roc import ScoreCells
from commod.updates.base import BaseUpdate, check_update

DECISIONS = ("before", "after", "y_true")
SCORES = ("scores_before", "scores_after")
CONSTANT = 1e-12  # product of two variances below which one score is constant
MAX_DECISIONS = 27  # two values or none, of before, after and y_true
MAX_CELLS = 100_000  # a longer table holds single rows instead of groups
MOST_BINS = 1000


def audit_frame(
    frame: Any,
    *,
    before: str,
    after: str,
    sensitive_features: str | Sequence[str],
    y_true: str | None = None,
    scores_before: str | None = None,
    scores_after: str | None = None,
    update: BaseUpdate | None = None,
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
    value: Any = None,
    created: str | None = None,
) -> Audit:
    """Return the audit of two columns of decisions, counted inside the frame's own engine.

    Two queries bring back tables of groups; rows stay where they are. With true labels, one more
    query for each score counts people by group and bins of the score. All figures that follow from
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
    value : pair of numbers, default=None
        The worth of a right acceptance and the cost of a wrong one, such as ``(100, 500)``, each
        from 0. The audit then says what errors cost before and after. An acceptance is a decision
        for the favourable label. Needs y_true.
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
    labels = named_labels(pos_label, favorable_label, score_is_for)
    check_texts({"rows": rows, "title": title, "created": created}, labels, label_names)
    if update is not None:
        check_update(update, "audit_frame", "For other decisions leave update out.")
    own = None if update is None else update.request()
    request = read_request(request, own, labels, has_labels=y_true is not None)
    worth = read_value(value, has_labels=y_true is not None)
    columns = {
        "before": before,
        "after": after,
        "y_true": y_true,
        "scores_before": scores_before,
        "scores_after": scores_after,
    }
    roles = read_roles(columns, sensitive_features)
    roles |= {f"within_{i}": name for i, name in enumerate(condition_columns(request))}
    with engine_errors(frame):
        selected = select_roles(frame, roles)
        n_undecided, scores = summarise_decisions(selected, roles)
        named = request, group_names, unknown_groups
        everybody, table = count_frame(selected, roles, scores, named)
    counted = count_people(
        everybody, request, label_names, rows=rows, level=level, min_group_size=min_group_size
    )
    counted.people.warn_of_mix_ups(("before", "after", "y_true"), stacklevel=3)
    shown = {name: list(compress(v, counted.is_shown)) for name, v in table.items()}
    with engine_errors(frame):
        ranked = rank_frame(selected, roles, shown, counted)
    digest = digest_counts(counted, {role: ends for role, (_, *ends) in scores.items()})
    method = None if update is None else type(update).__name__
    is_own = own is not None and is_same_target(own, request)
    measured = measure(
        counted,
        losses=losses_of(counted, worth),
        title=title or title_of(method),
        agreement=_agreement(shown, scores),
        n_contradictions=_n_contradictions(shown, counted.people),
        n_undecided=n_undecided,
        proxies=proxies_of(counted),
        subgroups=find_subgroups(counted, (), min_size=min_subgroup_size),
        roc=roc_of(ranked, everybody.group_names, level),
        expected=expected_of(update) if is_own else None,
        provenance=provenance_of(
            counted, digest, None, created, method=method, settings=settings_of(update)
        ),
    )
    return make_audit(measured)


# ---------------------------------------------------------------------------------------------
# The first query: decisions and true labels


def _total(table: GroupTable, name: str) -> float:
    return float(numbers(table, name).sum())


Known = Mapping[str, tuple[float, float, float]]  # mean, lowest and highest of each given score


def summarise_decisions(
    frame: nw.LazyFrame[Any], roles: Mapping[str, Hashable]
) -> tuple[int, Known]:
    """Return how many people have no decision, and the mean and the ends of each given score.

    Missing values and wrong scores are refused.
    """
    keys, scores = [role for role in DECISIONS if role in roles], scores_in(roles)
    flags: dict[str, nw.Expr] = {}
    for role in scores:
        score = nw.col(role)
        flags[f"{role}_missing"] = as_number(score.is_null())
        flags[f"{role}_outside"] = as_number((score < 0) | (score > 1))
    table = _count(frame, keys, scores, flags, MAX_DECISIONS)
    if table is None:
        raise InputError(
            "Decisions and true labels hold more than two different values. Use the same two "
            "labels in all columns; compare scores with the threshold first."
        )
    decided, n_undecided = _decided(table)
    n = numbers(decided, "n")
    for role in keys:
        _check_not_missing(roles, role, int(n[[v is None for v in decided[role]]].sum()))
    for role in scores:
        _check_not_missing(roles, role, int(_total(decided, f"{role}_missing")))
        n_outside = int(_total(decided, f"{role}_outside"))
        if n_outside:
            raise InputError(
                f"{role} has {n_of(n_outside, 'value')} outside [0, 1] in column {roles[role]!r}; "
                "pass probabilities. Margins become scores through the sigmoid 1 / (1 + exp(-z))."
            )
    means = {role: float(_total(decided, role) / n.sum()) for role in scores}
    return n_undecided, {role: (means[role], *_ends(decided, role)) for role in scores}


def _count(
    frame: nw.LazyFrame[Any],
    keys: Sequence[str],
    scores: Sequence[str],
    sums: Mapping[str, nw.Expr],
    max_lines: int,
) -> GroupTable | None:
    """Return people by some columns, with the sums and the ends of their scores and other sums."""
    if sums:
        frame = frame.with_columns(**sums)
    figures = [nw.col(name).sum() for name in (*scores, *sums)]
    for role in scores:
        figures.append(nw.col(role).min().alias(f"{role}_low"))
        figures.append(nw.col(role).max().alias(f"{role}_high"))
    counted = frame.group_by(*keys).agg(nw.len().alias("n"), *figures)
    return fetch(counted, max_lines)


def _ends(table: GroupTable, role: str) -> tuple[float, float]:
    """Return the lowest and the highest of a score."""
    return min(table[f"{role}_low"]), max(table[f"{role}_high"])


def _decided(table: GroupTable) -> tuple[GroupTable, int]:
    """Return the lines with a decision before or after, and the number of people without either."""
    pairs = zip(table["before"], table["after"], strict=True)
    is_decided = [before is not None or after is not None for before, after in pairs]
    decided = {
        name: [v for v, kept in zip(values, is_decided, strict=True) if kept]
        for name, values in table.items()
    }
    n, n_decided = int(_total(table, "n")), int(_total(decided, "n"))
    if not n:
        raise InputError("frame has 0 rows; at least 1 is needed.")
    if not n_decided:
        raise InputError(
            f"before and after are missing in all {n:,} rows. Pass the columns of the decisions."
        )
    return decided, n - n_decided


def _check_not_missing(roles: Mapping[str, Hashable], role: str, n: int) -> None:
    if not n:
        return
    way_out = "Drop those rows first: decisions and true labels must be known."
    if role in SCORES:
        way_out = "Drop those rows first, or leave the scores out."
    elif role != "y_true":
        way_out += " Rows without either decision are left out."
    raise InputError(
        f"{role}: column {roles[role]!r} is missing (NaN or null) in {n_of(n, 'row')} that "
        f"{verb(n, 'have')} a decision. {way_out}"
    )


# ---------------------------------------------------------------------------------------------
# The second query: groups


def of_decided(frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Return the rows that have a decision, before or after."""
    return frame.filter(~(nw.col("before").is_null() & nw.col("after").is_null()))


def count_frame(
    frame: nw.LazyFrame[Any],
    roles: Mapping[str, Hashable],
    scores: Known,
    named: tuple[Request, Mapping[Any, Any] | None, str],
) -> tuple[AuditedPeople, GroupTable]:
    """Return the people, and the table of their figures, one line each.

    `named` are the request, the names of groups, and what to do with unknown groups.
    """
    keys = [role for role in roles if role not in SCORES]
    request, _, unknown_groups = named
    table = _count(of_decided(frame), keys, [*scores], _sums(scores, request), MAX_CELLS)
    within = {str(roles[role]): role for role in keys if role.startswith("within_")}
    if table is None and within:
        raise InputError(
            f"The columns that constraints are within ({', '.join(within)}) make more than "
            f"{MAX_CELLS:,} combinations with groups and decisions. Put numbers into bins, or "
            "merge values.",
            parameter="request",
        )
    if table is None:
        raise InputError(
            f"sensitive_features make more than {MAX_CELLS:,} combinations of groups and "
            "decisions, too many to be compared. Put numbers into bins, or name fewer columns."
        )
    n = numbers(table, "n")
    groups = {roles[role]: objects(table[role]) for role in keys if is_group(role)}
    if unknown_groups != "ignore":
        _check_groups(groups.values(), n)
    conditions = {}
    for name, role in within.items():
        n_missing = int(n[[value is None for value in table[role]]].sum())
        refuse_missing(n_missing, int(n.sum()), f"Column {name!r}", "request")
        conditions[name] = read_stratum_column(objects(table[role]), len(n), name, "request")
    people = read_people({role: table.get(role) for role in DECISIONS}, {}, groups, *named)
    sums: dict[str, Any] = {role: numbers(table, role) for role in scores}
    sums["squares"] = {role: numbers(table, f"{role}_square") for role in scores}
    return replace(people, n=n.astype(np.int64), conditions=conditions, **sums), table


def _sums(scores: Known, request: Request) -> dict[str, nw.Expr]:
    """Return what is added up beside the scores."""
    sums = {f"{role}_square": nw.col(role) * nw.col(role) for role in scores}
    if request.threshold is not None and "scores_after" in scores:
        sums["above"] = as_number(nw.col("scores_after") > request.threshold)
    if len(scores) == 2:
        before, after = (nw.col(role) for role in scores)
        # scores minus their mean, divided by their range, so that sums lose no digits
        first, second = (
            (nw.col(role) - mean) / (high - low or 1.0)
            for role, (mean, low, high) in scores.items()
        )
        sums |= {
            "identical": as_number(before == after),
            "distance": (before - after).abs(),
            "before_squared": first * first,
            "after_squared": second * second,
            "product": first * second,
        }
    return sums


def _check_groups(columns: Iterable[NDArray[Any]], n: Floats) -> None:
    is_missing = np.any([[value is None for value in column] for column in columns], axis=0)
    n_missing = int(n[is_missing].sum())
    if n_missing:
        raise InputError(
            f"sensitive_features has {n_of(n_missing, 'missing value')} in {int(n.sum()):,} rows. "
            "Drop those rows, or give them a group of their own, e.g. with fill_null('unknown')."
        )


def _agreement(table: GroupTable, scores: Known) -> Agreement | None:
    """Return how close the scores are; the rank correlation, which needs rows, is None."""
    if len(scores) < 2:
        return None
    n = _total(table, "n")
    # the means are those of all people; hidden ones are not in the table
    first, second = (
        (_total(table, role) - n * mean) / (high - low or 1.0)
        for role, (mean, low, high) in scores.items()
    )
    correlation = None
    squares = (_total(table, "before_squared") - first**2 / n) * (
        _total(table, "after_squared") - second**2 / n
    )
    # Sums of equal scores differ by rounding.
    if squares > CONSTANT * n**2 and all(low < high for _, low, high in scores.values()):
        product = _total(table, "product") - first * second / n
        correlation = min(max(product / math.sqrt(squares), -1.0), 1.0)
    return Agreement(
        mean_absolute_difference=_total(table, "distance") / n,
        correlation=correlation,
        rank_correlation=None,
        share_identical=_total(table, "identical") / n,
    )


def _n_contradictions(table: GroupTable, people: AuditedPeople) -> int | None:
    """Return how many decisions differ from score > threshold; None where one is not given."""
    if "above" not in table:
        return None
    n, above = numbers(table, "n"), numbers(table, "above")
    return int(np.where(people.after == people.score_is_for_positive, n - above, above).sum())


# ---------------------------------------------------------------------------------------------
# Count the people of a frame by group, true label and bins of their score, inside its engine


def rank_frame(
    frame: nw.LazyFrame[Any],
    roles: Mapping[str, Hashable],
    table: GroupTable,
    counted: ShownPeople,
) -> RankedGroups | None:
    """Return the people of each group by bins of their score.

    Bins are between the ends of people outside hidden groups, which the `table` has: nothing
    depends on the others.
    None without true labels, without scores, and where there are too few people for two bins.
    """
    n_groups = len(counted.sizes)
    n_bins = min(counted.everybody.n // MIN_CATEGORY_SIZE, MAX_CELLS) // (2 * n_groups)
    scores = scores_in(roles)
    if "y_true" not in roles or not scores or n_bins < 2 or not counted.is_compared.any():
        return None
    n_bins = min(n_bins, MOST_BINS)
    listed, n_left_out = listed_groups(counted.sizes, counted.is_compared)
    cells = {
        role: _bin_scores(frame, role, roles, _ends(table, role), n_bins, counted.people)
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
    audited: AuditedPeople,
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
    is_positive = np.array([value == audited.positive_label for value in table["y_true"]])
    is_scored = is_positive == audited.score_is_for_positive
    # the groups are those of the counts, so they have the same numbers
    columns = {name: objects(table[name]) for name in keys}
    groups = read_groups(columns, len(is_scored), "ignore")  # refused already, if they are to be
    # the highest score, and scores of hidden people, may be beyond the bins
    score_bin = np.clip(numbers(table, "score_bin"), 0, n_bins - 1).astype(np.intp)
    # the code −1 of unknown groups: the last entry
    people = np.zeros((len(audited.group_names) + 1, 2, n_bins))
    place_of = groups.codes, is_scored.astype(np.intp), n_bins - 1 - score_bin
    np.add.at(people, place_of, numbers(table, "n"))
    return [ScoreCells.of_counts(own[1], own[0]) for own in people[:-1]]


# ---------------------------------------------------------------------------------------------
# Read the columns of an audit from a frame of any dataframe engine, lazily


def is_group(role: str) -> bool:
    """Return whether the role is a sensitive feature."""
    return role.startswith("group_")


def scores_in(roles: Iterable[str]) -> list[str]:
    """Return the roles that are scores."""
    return [role for role in SCORES if role in roles]


def read_roles(columns: Mapping[str, Any], sensitive_features: Any) -> dict[str, Hashable]:
    """Return the name of the column in each role.

    `columns` maps each parameter that names one column to that name, None where it is not given.
    """
    for role in ("before", "after"):
        if columns[role] is None:
            raise InputError(f"{role} is None; pass the name of the column of decisions.")
    named = read_names(
        {**columns, "sensitive_features": sensitive_features},
        "Use commod.audit for arrays.",
        why=": an audit compares groups",
        kinds=str | int,
    )
    sensitive = named.pop("sensitive_features")
    single = {role: column for role, (column,) in named.items()}
    return {**single, **{f"group_{i}": column for i, column in enumerate(sensitive)}}


def select_roles(frame: Any, roles: Mapping[str, Hashable]) -> nw.LazyFrame[Any]:
    """Return the columns under the names of their roles, lazily.

    NaN becomes null and scores become float64.
    """
    lazy = as_lazy(frame, "Use commod.audit for arrays.")
    schema: Mapping[Any, Any] = lazy.collect_schema()
    for role, column in roles.items():
        if column not in schema:
            raise no_column("sensitive_features" if is_group(role) else role, column, schema)
    free = FreeNames(schema)
    copies = {role: free.take(f"_commod_{role}") for role in roles if role not in SCORES}
    exact = [copy for role, copy in copies.items() if is_group(role)]
    lazy = with_copies(lazy, {copy: roles[role] for role, copy in copies.items()}, exact)
    columns: dict[str, Any] = {role: nw.col(copy) for role, copy in copies.items()}
    columns |= {r: number_column(r, roles[r], schema[roles[r]]) for r in scores_in(roles)}
    return lazy.select(*(value.alias(role) for role, value in columns.items()))
