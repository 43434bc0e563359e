"""Write a patch as one SELECT: the rule of `commod.scorecard`, in stages that people can read.

The stages are base score, points, ratio, decision and edited score. Databases treat NaN
differently. In all of them NaN, NULL and infinity lie outside a finite range, so numbers are
compared with a range first.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from scipy.special import logit

from commod._data.columns import LARGEST
from commod._data.parameters import check_choice
from commod._record import Value
from commod._statistics.score_map import pieces_of
from commod.exceptions import InputError
from commod.patch.content import (
    BinColumn,
    CategoryColumn,
    ColumnOfScore,
    Content,
    DistanceBinColumn,
    MarginColumn,
    NumberColumn,
    rule_of,
)
from commod.patch.file import content_digest
from commod.patch.frames import CALIBRATED
from commod.patch.query import DIALECTS, Query
from commod.scorecard import ADD_POINTS, MAX_EXPONENT, SCORE_CLIP, crossing_at, margins

MAX_BRANCHES = 50  # categories in one CASE; more of them become a joined table
MAX_COLUMNS_PER_EXPRESSION = 50  # engines overflow on deep expressions
FINITE = sys.float_info.max
NEGLIGIBLE = 1e-200  # a ratio this near to 0 moves no edited score; above it r·z cannot underflow

Node = Any


def write_sql(
    content: Content,
    dialect: str,
    table: str,
    score: str,
    prefix: str,
    columns: Mapping[str, str] | None = None,
    *,
    calibrated: bool = False,
) -> str:
    """Return one SELECT with all columns of a table and those that a patch adds.

    Parameters
    ----------
    content : Content
        The patch.
    dialect : str
        One of `DIALECTS`.
    table : str
        A name as the dialect writes it, quoted and dotted where needed.
    score : str
        The column of the base scores.
    prefix : str
        Before the names of the new columns.
    columns : mapping of str to str, default=None
        The table's names for columns of the patch, where they differ. All names are quoted, so
        a database such as Snowflake distinguishes "AGE" from "age".
    calibrated : bool, default=False
        Whether to add the calibrated probability, too.

    Notes
    -----
    A column must have the type that it had when the update was fitted. On another type the query
    fails in DuckDB, PostgreSQL and BigQuery, and in Spark except for text in place of numbers. It
    never reads text as numbers on purpose.

    Examples
    --------
    >>> from commod import ControlledDebiaser
    >>> from commod.datasets import make_biased
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> update = ControlledDebiaser(model, target=0.8)
    >>> update = update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    >>> text = write_sql(update.to_patch().content, "bigquery", "people", "score", "commod_")
    >>> print(text)
    -- A commod patch: base decisions (score > 0.5) and scores, edited.
    -- Add the points.
    -- If the base decision is unfavourable and the sum is above ... becomes favourable.
    -- Written and parsed for bigquery, not run.
    -- Digest of its content: ...
    WITH `_commod_stage_1` AS (
    ...
    """
    check_choice(dialect, "dialect", DIALECTS)
    names = _names(content, columns)
    query = Query(dialect, table, [score, prefix, *names.values()])
    query.stage({"score": _base_score(query, score), **_values(query, content, names)})
    scored = {"margin": _margin(query, content), "distance": _distance(query, content)}
    points = _points(query, content)
    query.stage({**scored, **points})
    _add_ratio(query, content, points)
    query.stage({"changed": _changed(query, content), "exponent": _exponent(query)})
    query.stage({"decided": _decided(query, content), "edited": _edited(query, content)})
    outputs = _outputs(query, content, prefix)
    if calibrated:
        query.stage({"final": outputs[prefix + "score"]})
        outputs[prefix + "score"] = query.work("final")
        outputs[prefix + CALIBRATED] = _calibrated(query, content)
    return _header(content, dialect) + query.text_of(outputs) + "\n"


def _header(content: Content, dialect: str) -> str:
    lines = [
        f"A commod patch: base decisions (score > {content.base.threshold!r}) and scores, edited.",
        *_rule_in_words(content),
        *([] if DIALECTS[dialect].is_run else [f"Written and parsed for {dialect}, not run."]),
        f"Digest of its content: {content_digest(content)}",
    ]
    return "".join(f"-- {line}\n" for line in lines)


def _rule_in_words(content: Content) -> list[str]:
    """Return how a sum of evidence changes decisions, in ASCII: not every database has a − or a ×.

    Labels are not named, because a line break in one would end the comment.
    """
    rule = rule_of(content)
    if rule is None:
        return []
    lines = [ADD_POINTS, *rule.sentences(max_margin=content.ratio.max_margin)]
    return [line.replace("−", "-").replace("×", "*") for line in lines]


def _names(content: Content, columns: Mapping[str, str] | None) -> dict[str, str]:
    """Return the table's name for each column of the patch."""
    names = {c.name: c.name for c in content.ratio.columns if not isinstance(c, ColumnOfScore)}
    given = {} if columns is None else columns
    if not isinstance(given, Mapping):
        raise InputError(
            f"columns={given!r} must map names of the patch to names of the table, as a dict.",
            parameter="columns",
        )
    for name, other in given.items():
        if name not in names:
            raise InputError(
                f"columns has {name!r}, which the patch does not read (it reads "
                f"{', '.join(map(repr, names)) or 'no column'})."
            )
        if not isinstance(other, str) or not other:
            raise InputError(
                f"columns[{name!r}]={other!r} must be the name of a column, as text.",
                parameter="columns",
            )
    return {**names, **given}


# ---------------------------------------------------------------------------------------------
# First stage: values as doubles or text, NULL where missing


def _base_score(query: Query, score: str) -> Node:
    return _in_range(query, query.raw(score), 0.0, 1.0)


def _in_range(query: Query, column: Node, low: float, high: float) -> Node:
    """Return a column as double, NULL outside the range."""
    value = column * query.number(1.0)  # a cast would read text as numbers
    return query.case((value.between(query.number(low), query.number(high)), value))


def _values(query: Query, content: Content, names: Mapping[str, str]) -> dict[str, Node]:
    """Return what each column of the patch reads, as `value_i`."""
    nodes = {}
    for i, column in enumerate(content.ratio.columns):
        if isinstance(column, ColumnOfScore):
            continue
        raw = query.raw(names[column.name])
        kind = _kind(column) if isinstance(column, CategoryColumn) else float
        if kind is float:
            raw = _in_range(query, raw, -FINITE, FINITE)
        elif kind is str:
            raw = query.binary_text(raw)
        nodes[f"value_{i}"] = raw
    return nodes


def _kind(column: CategoryColumn) -> type:
    """Return the type of the categories; NoneType where "missing" is the only one."""
    kinds = {float if type(c.value) is int else type(c.value) for c in column.categories}
    if len(kinds) > 1:
        raise InputError(
            f"Column {column.name!r} of the patch has categories of several types "
            f"({', '.join(sorted(kind.__name__ for kind in kinds))}), but a column of a database "
            "has one. Fit the update on a column of one type."
        )
    return kinds.pop() if kinds else type(None)


# ---------------------------------------------------------------------------------------------
# Second stage: margin and points


def _margin(query: Query, content: Content) -> Node:
    """Return the margin: 0 at the threshold; scores of 0 and 1 are clipped."""
    threshold, score = content.base.threshold, query.work("score")
    low, high = margins(np.array([0.0, 1.0]), threshold).tolist()
    odds = query.quotient(score, query.number(1.0) - score)
    return query.case(
        (score.eq(query.number(threshold)), query.number(0.0)),
        (score < query.number(SCORE_CLIP), query.number(low)),
        (score > query.number(1 - SCORE_CLIP), query.number(high)),
        default=query.call("ln", odds) - query.number(float(logit(threshold))),
    )


def _distance(query: Query, content: Content) -> Node:
    return query.call("abs", query.work("score") - query.number(content.base.threshold))


def _points(query: Query, content: Content) -> dict[str, Node]:
    """Return the points of each column as `points_i`, those of a missing number as `missing_i`."""
    nodes: dict[str, Node] = {}
    for i, column in enumerate(content.ratio.columns):
        if isinstance(column, ColumnOfScore):
            continue
        value = query.work(f"value_{i}")
        if isinstance(column, NumberColumn):
            nodes.update(_number_points(query, column, value, i))
        elif isinstance(column, BinColumn):
            nodes[f"points_{i}"] = _bin_points(query, column, value)
        else:
            nodes[f"points_{i}"] = _category_points(query, column, value, i)
    return nodes


def _number_points(query: Query, column: NumberColumn, value: Node, i: int) -> dict[str, Node]:
    nodes = {}
    if column.points:
        missing, most, least = (
            query.number((number - column.centre) * column.points)
            for number in (column.if_missing, LARGEST, -LARGEST)
        )
        centred = value - query.number(column.centre) if column.centre else value
        nodes[f"points_{i}"] = query.case(
            (query.is_null(value), missing),
            (value > query.number(LARGEST), most),
            (value < query.number(-LARGEST), least),
            *_underflow(query, centred, _vanishing(column.points)),
            default=centred * query.number(column.points),
        )
    if column.missing is not None and column.missing.points:
        points = query.number(column.missing.points)
        nodes[f"missing_{i}"] = query.case(
            (query.is_null(value), points), default=query.number(0.0)
        )
    return nodes


def _underflow(query: Query, value: Node, smallest: float) -> list[tuple[Node, Node]]:
    """Return a branch that gives 0 near 0, for a database that refuses tiny products."""
    if not query.traits.refuses_underflow or not smallest:
        return []
    return [(query.call("abs", value) <= query.number(smallest), query.number(0.0))]


def _vanishing(factor: float) -> float:
    """Return the largest number whose product with a factor rounds to 0.

    Examples
    --------
    >>> smallest = _vanishing(1e-200)
    >>> smallest * 1e-200, math.nextafter(smallest, 1) * 1e-200
    (0.0, 5e-324)
    """
    largest = math.ulp(0.0) / abs(factor) / 2
    while largest * abs(factor):
        largest = math.nextafter(largest, 0.0)
    while not math.nextafter(largest, 1.0) * abs(factor):
        largest = math.nextafter(largest, 1.0)
    return largest


def _bin_points(query: Query, column: BinColumn | DistanceBinColumn, value: Node) -> Node:
    branches = [
        (value < query.number(b.below), query.number(b.points))
        for b in column.bins
        if b.below is not None
    ]
    if isinstance(column, BinColumn):
        missing = 0.0 if column.missing is None else column.missing.points
        branches.insert(0, (query.is_null(value), query.number(missing)))
    return query.case(*branches, default=query.number(column.bins[-1].points))


def _category_points(query: Query, column: CategoryColumn, value: Node, i: int) -> Node:
    missing = 0.0 if column.missing is None else column.missing.points
    rows = [(_key(query, c.value), c.points) for c in column.categories]
    is_missing = (query.is_null(value), query.number(missing))
    if not rows:
        return query.case(is_missing, default=query.number(0.0))
    if len(rows) > MAX_BRANCHES:
        joined = query.joined(f"category_{i}", value, rows, is_text=_kind(column) is str)
        is_unseen = (query.is_null(joined), query.number(0.0))
        return query.case(is_missing, is_unseen, default=joined)
    branches = [(key, query.number(points)) for key, points in rows]
    known = query.case(*branches, default=query.number(0.0), of=value)
    return query.case(is_missing, default=known) if missing else known


def _key(query: Query, value: Value) -> Node:
    if isinstance(value, str):
        return query.key(value)
    return query.truth(value) if isinstance(value, bool) else query.number(value)


# ---------------------------------------------------------------------------------------------
# Third stage: r


def _add_ratio(query: Query, content: Content, points: Collection[str]) -> None:
    """Add the ratio in the order of the file, a few columns at a time."""
    parts = _parts(query, content, points)
    total = query.number(content.ratio.intercept)
    while len(parts) > MAX_COLUMNS_PER_EXPRESSION:
        now, parts = parts[:MAX_COLUMNS_PER_EXPRESSION], parts[MAX_COLUMNS_PER_EXPRESSION:]
        name = f"sum_before_{len(parts)}"
        query.stage({name: query.total([total, *now])})
        total = query.work(name)
    total = query.total([total, *parts])
    if content.ratio.evidence is not None:
        query.stage({"evidence": total})
        total = _ratio_of_evidence(query, content)
    query.stage({"ratio": _gated(query, content, total)})


def _parts(query: Query, content: Content, points: Collection[str]) -> list[Node]:
    """Return what is added to the intercept; `points` are the work columns that exist."""
    parts = []
    for i, column in enumerate(content.ratio.columns):
        if isinstance(column, ColumnOfScore):
            parts += _score_points(query, column)
        else:
            parts += [query.work(n) for n in (f"points_{i}", f"missing_{i}") if n in points]
    return parts


def _score_points(query: Query, column: ColumnOfScore) -> list[Node]:
    """Return the points of the margin or of the distance; none where they are 0."""
    if isinstance(column, DistanceBinColumn):
        return [_bin_points(query, column, query.work("distance"))]
    if not column.points:
        return []
    value = query.work("margin" if isinstance(column, MarginColumn) else "distance")
    return [_product(query, value, column.points)]


def _product(query: Query, value: Node, factor: float) -> Node:
    """Return a product, 0 where a database would refuse it because it rounds to 0."""
    product = value * query.number(factor)
    vanishing = _underflow(query, value, _vanishing(factor))
    return query.case(*vanishing, default=product) if vanishing else product


def _ratio_of_evidence(query: Query, content: Content) -> Node:
    """Return r as `EvidenceRule.ratio` computes it, before any gate."""
    rule, total = rule_of(content), query.work("evidence")
    assert rule is not None
    above = rule.pull_above
    is_above = query.work("score") > query.number(content.base.threshold)
    pull = query.case(
        *_underflow(query, total, _vanishing(above)),
        (is_above, total * query.number(above)),
        default=total * query.number(-above),
    )
    cost = query.number(rule.fixed_cost)
    if rule.cost_per_distance:
        cost = cost + _product(query, query.work("distance"), rule.cost_per_distance)
    return cost - pull


def _gated(query: Query, content: Content, total: Node) -> Node:
    """Return the ratio, held at 1 where direction or `max_margin` forbid a change."""
    score, threshold = query.work("score"), query.number(content.base.threshold)
    held = []
    if content.ratio.max_margin is not None:
        is_far = query.work("distance") > query.number(content.ratio.max_margin)
        held.append((is_far, query.number(1.0)))
    if not content.ratio.may_raise:
        held.append((score <= threshold, query.number(1.0)))
    if not content.ratio.may_lower:
        held.append((score > threshold, query.number(1.0)))
    return query.case(*held, default=total) if held else total


# ---------------------------------------------------------------------------------------------
# Decisions and edited scores


def _changed(query: Query, content: Content) -> Node:
    score, threshold = query.work("score"), query.number(content.base.threshold)
    flips = (query.work("ratio") < query.number(0.0)).and_(score.neq(threshold))
    return query.case((flips, query.integer(1)), default=query.integer(0))


def _exponent(query: Query) -> Node:
    """Return ratio times margin, bounded, because some databases refuse exp of large numbers."""
    ratio = query.work("ratio")
    product = ratio * query.work("margin")
    low, high = query.number(-MAX_EXPONENT), query.number(MAX_EXPONENT)
    return query.case(
        *_underflow(query, ratio, NEGLIGIBLE),
        (product > high, high),
        (product < low, low),
        default=product,
    )


def _decided(query: Query, content: Content) -> Node:
    """Return 1, 0, or NULL where there is no score."""
    score, changed = query.work("score"), query.work("changed")
    threshold = query.number(content.base.threshold)
    return query.case(
        (score > threshold, query.integer(1) - changed), (score <= threshold, changed)
    )


def _edited(query: Query, content: Content) -> Node:
    """Return the edited score before it is moved to its decision's side."""
    one = query.number(1.0)
    if content.score_edit == "changed_only":
        is_changed = query.work("changed").eq(query.integer(1))
        return query.case((is_changed, _crossed(query, content)), default=query.work("score"))
    start = query.number(float(logit(content.base.threshold)))
    odds = query.call("exp", -(query.work("exponent") + start))
    keeps = (query.work("ratio").eq(one), query.work("score"))
    return query.case(keeps, default=query.quotient(one, one + odds))


def _crossed(query: Query, content: Content) -> Node:
    """Return the score on the other side of the threshold, as `crossing_at` places it."""
    line, score = crossing_at(content.base.threshold), query.work("score")
    raised = _product(query, score, line.up_slope) + query.number(line.up_start)
    room = query.number(1.0) - score
    lowered = query.number(line.down_start) - room * query.number(line.down_slope)
    above, below = query.number(line.just_above), query.number(line.just_below)
    return query.case(
        (
            score <= query.number(line.threshold),
            query.case((raised > above, raised), default=above),
        ),
        default=query.case((lowered < below, lowered), default=below),
    )


def _outputs(query: Query, content: Content, prefix: str) -> dict[str, Node]:
    """Return the four new columns; all but `changed` are NULL in a row without a score."""
    decided, changed = query.work("decided"), query.work("changed").eq(query.integer(1))
    yes, no = decided.eq(query.integer(1)), decided.eq(query.integer(0))
    labels = content.labels
    up, down = ("gain", "loss") if labels.favorable_above else ("loss", "gain")
    return {
        prefix + "score": _on_side_of_decision(query, content.base.threshold, yes, no),
        prefix + "decision": query.case(
            (yes, _label(query, content, labels.positive)),
            (no, _label(query, content, labels.negative)),
        ),
        prefix + "changed": (
            changed if query.traits.has_booleans else query.cast(query.work("changed"), "bit")
        ),
        prefix + "direction": query.case(
            (changed.and_(yes), query.text(up)),
            (changed.and_(no), query.text(down)),
            (yes.or_(no), query.text("kept")),
        ),
    }


def _on_side_of_decision(query: Query, threshold: float, yes: Node, no: Node) -> Node:
    edited, cut = query.work("edited"), query.number(threshold)
    return query.case(
        (yes.and_(edited > cut), edited),
        (yes, query.number(math.nextafter(threshold, 1.0))),
        (no.and_(edited > cut), cut),
        (no, edited),
    )


def _calibrated(query: Query, content: Content) -> Node:
    """Return the calibrated probability of the edited score; NULL where there is none."""
    assert content.calibration is not None
    threshold = content.base.threshold
    score, cut = query.work("final"), query.number(threshold)
    branches = [(score.eq(cut), cut)]
    for piece in pieces_of(content.calibration):
        product = _product(query, score - query.number(piece.start), piece.slope)
        value = product + query.number(piece.value)
        if piece.end == threshold:  # only next to the threshold can rounding reach it
            below = query.number(math.nextafter(threshold, 0.0))
            value = query.case((value < cut, value), default=below)
        elif piece.start == threshold:
            above = query.number(math.nextafter(threshold, 1.0))
            value = query.case((value > cut, value), default=above)
        end = query.number(piece.end)
        branches.append((score <= end if piece.end == 1.0 else score < end, value))
    return query.case(*branches)


def _label(query: Query, content: Content, label: Value) -> Node:
    """Return a label in the common type of both labels."""
    kinds = {type(content.labels.positive), type(content.labels.negative)}
    if isinstance(label, str):
        return query.text(label)
    if kinds == {bool}:
        truth = query.truth(bool(label))
        return truth if query.traits.has_booleans else query.cast(truth, "bit")
    if kinds <= {int, bool}:
        return query.cast(query.integer(int(label)), "bigint")
    return query.number(float(label))
