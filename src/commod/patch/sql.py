"""Write a patch as one SELECT: the rule of `commod.scorecard`, in stages that people can read.

The stages are base score, points, ratio, decision and edited score. Databases treat NaN
differently. In all of them NaN, NULL and infinity lie outside a finite range, so numbers are
compared with a range first.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Mapping

from commod._data.columns import LARGEST
from commod._data.parameters import check_choice
from commod._record.explanation import Value
from commod._statistics.score_map import pieces_of
from commod.exceptions import InputError
from commod.patch.content import (
    BinColumn,
    BinnedColumn,
    CategoryColumn,
    ColumnOfScore,
    Content,
    DistanceBinColumn,
    FrameColumn,
    NumberColumn,
    missing_points_of,
    rule_of,
)
from commod.patch.file import content_digest
from commod.patch.frames import CALIBRATED
from commod.patch.query import DIALECTS, Node, Query
from commod.scorecard import ADD_POINTS, MAX_EXPONENT, SCORE_CLIP, crossing_at, logit_of

MAX_BRANCHES = 50  # categories in one CASE; more of them become a joined table
MAX_COLUMNS_PER_EXPRESSION = 50  # engines overflow on deep expressions
FINITE = sys.float_info.max
NEGLIGIBLE = 1e-200  # a ratio this near to 0 moves no edited score; above it r·z cannot underflow


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
    threshold = content.base.threshold
    query.stage(
        {"score": _in_range(query, query.raw(score), 0.0, 1.0), **_values(query, content, names)}
    )
    points = _points(query, content)
    query.stage({"margin": _margin(threshold), "distance": f"abs(score - {threshold!r})", **points})
    _add_ratio(query, content, points)
    flips = f"ratio < 0.0 AND score <> {threshold!r}"
    query.stage({"changed": f"CASE WHEN {flips} THEN 1 ELSE 0 END", "exponent": _exponent(query)})
    decided = (
        f"WHEN score > {threshold!r} THEN 1 - changed WHEN score <= {threshold!r} THEN changed"
    )
    query.stage({"decided": f"CASE {decided} END", "edited": _edited(query, content)})
    outputs = _outputs(query, content, prefix)
    if calibrated:
        query.stage({"final": outputs[prefix + "score"]})
        outputs[prefix + "score"] = query.work("final")
        outputs[prefix + CALIBRATED] = query.parsed(_calibrated(query, content))
    return _header(content, dialect) + query.text_of(outputs) + "\n"


def _header(content: Content, dialect: str) -> str:
    rule, words = rule_of(content), []
    if rule is not None:  # labels are not named: a line break in one would end the comment
        words = [ADD_POINTS, *rule.sentences(max_margin=content.ratio.max_margin)]
    lines = [
        f"A commod patch: base decisions (score > {content.base.threshold!r}) and scores, edited.",
        # in ASCII: not every database has a − or a ×
        *(line.replace("−", "-").replace("×", "*") for line in words),
        *([] if DIALECTS[dialect].is_run else [f"Written and parsed for {dialect}, not run."]),
        f"Digest of its content: {content_digest(content)}",
    ]
    return "".join(f"-- {line}\n" for line in lines)


def _names(content: Content, columns: Mapping[str, str] | None) -> dict[str, str]:
    """Return the table's name for each column of the patch."""
    names = {column.name: column.name for column in content.ratio.frame_columns}
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


def _in_range(query: Query, column: Node, low: float, high: float) -> Node:
    """Return a column as double, NULL outside the range."""
    value = "raw * 1.0"  # a cast would read text as numbers
    return query.parsed(
        f"CASE WHEN {value} BETWEEN {low!r} AND {high!r} THEN {value} END", raw=column
    )


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
# Second stage: margin, distance and points


def _margin(threshold: float) -> str:
    """Return the margin: 0 at the threshold; scores of 0 and 1 are clipped."""
    middle = logit_of(threshold)
    low, high = logit_of(SCORE_CLIP) - middle, logit_of(1 - SCORE_CLIP) - middle
    return (
        f"CASE WHEN score = {threshold!r} THEN 0.0 WHEN score < {SCORE_CLIP!r} THEN {low!r} "
        f"WHEN score > {1 - SCORE_CLIP!r} THEN {high!r} "
        f"ELSE ln(score / (1.0 - score)) - {middle!r} END"
    )


def _points(query: Query, content: Content) -> dict[str, str | Node]:
    """Return the points of each column as `points_i`, those of a missing number as `missing_i`."""
    nodes: dict[str, str | Node] = {}
    for i, column in enumerate(content.ratio.columns):
        if isinstance(column, NumberColumn):
            if column.points:
                nodes[f"points_{i}"] = _number_points(query, column, f"value_{i}")
            if missing_points_of(column):
                nodes[f"missing_{i}"] = f"CASE {_if_missing(column, f'value_{i}')} ELSE 0.0 END"
        elif isinstance(column, BinColumn):
            nodes[f"points_{i}"] = _bin_points(column, f"value_{i}")
        elif isinstance(column, CategoryColumn):
            nodes[f"points_{i}"] = _category_points(query, column, i)
    return nodes


def _number_points(query: Query, column: NumberColumn, value: str) -> str:
    missing, most, least = (
        (number - column.centre) * column.points
        for number in (column.if_missing, LARGEST, -LARGEST)
    )
    centred = f"{value} - {column.centre!r}" if column.centre else value
    return (
        f"CASE WHEN {value} IS NULL THEN {missing!r} WHEN {value} > {LARGEST!r} THEN {most!r} "
        f"WHEN {value} < {-LARGEST!r} THEN {least!r} "
        f"{_if_vanishing(query, centred, _vanishing(column.points))}"
        f"ELSE {_in_brackets(centred)} * {column.points!r} END"
    )


def _bin_points(column: BinnedColumn, value: str) -> str:
    branches = [f"WHEN {value} < {b.below!r} THEN {b.points!r}" for b in column.bins[:-1]]
    if isinstance(column, BinColumn):
        branches.insert(0, _if_missing(column, value))
    return f"CASE {' '.join(branches)} ELSE {column.bins[-1].points!r} END"


def _if_missing(column: FrameColumn, value: str) -> str:
    return f"WHEN {value} IS NULL THEN {missing_points_of(column)!r}"


def _category_points(query: Query, column: CategoryColumn, i: int) -> str | Node:
    value, if_missing = f"value_{i}", _if_missing(column, f"value_{i}")
    keys = {f"key_{n}": _key(query, c.value) for n, c in enumerate(column.categories)}
    points = [c.points for c in column.categories]
    if not keys:
        return f"CASE {if_missing} ELSE 0.0 END"
    if len(keys) > MAX_BRANCHES:
        rows = list(zip(keys.values(), points, strict=True))
        joined = query.joined(f"category_{i}", value, rows, is_text=_kind(column) is str)
        if_unseen = "WHEN joined IS NULL THEN 0.0"
        return query.parsed(f"CASE {if_missing} {if_unseen} ELSE joined END", joined=joined)
    branches = [f"WHEN {key} THEN {p!r}" for key, p in zip(keys, points, strict=True)]
    known = f"CASE {value} {' '.join(branches)} ELSE 0.0 END"
    has_missing = bool(missing_points_of(column))
    return query.parsed(f"CASE {if_missing} ELSE {known} END" if has_missing else known, **keys)


def _key(query: Query, value: Value) -> Node:
    if isinstance(value, str):
        return query.key(value)
    return query.truth(value) if isinstance(value, bool) else query.number(value)


# ---------------------------------------------------------------------------------------------
# Products that a database refuses because they round to 0


def _if_vanishing(query: Query, value: str, smallest: float) -> str:
    """Return a branch that gives 0 near 0, for a database that refuses tiny products."""
    if not query.traits.refuses_underflow or not smallest:
        return ""
    return f"WHEN abs({value}) <= {smallest!r} THEN 0.0 "


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


def _product(query: Query, value: str, factor: float) -> str:
    """Return a product, 0 where a database would refuse it because it rounds to 0."""
    product = f"{_in_brackets(value)} * {factor!r}"
    branch = _if_vanishing(query, value, _vanishing(factor))
    return f"CASE {branch}ELSE {product} END" if branch else product


def _in_brackets(formula: str) -> str:
    """Return a formula as a part of another one; a name and a CASE need no brackets."""
    return f"({formula})" if " " in formula and not formula.startswith("CASE") else formula


# ---------------------------------------------------------------------------------------------
# Third stage: r


def _add_ratio(query: Query, content: Content, points: Collection[str]) -> None:
    """Add the ratio in the order of the file, a few columns at a time."""
    parts = _parts(query, content, points)
    total = repr(content.ratio.intercept)
    while len(parts) > MAX_COLUMNS_PER_EXPRESSION:
        now, parts = parts[:MAX_COLUMNS_PER_EXPRESSION], parts[MAX_COLUMNS_PER_EXPRESSION:]
        name = f"sum_before_{len(parts)}"
        query.stage({name: " + ".join([total, *now])})
        total = name
    total = " + ".join([total, *parts])
    if content.ratio.evidence is not None:
        query.stage({"evidence": total})
        total = _ratio_of_evidence(query, content)
    held = _forbidden_changes(content)
    query.stage({"ratio": f"CASE {' '.join(held)} ELSE {total} END" if held else total})


def _parts(query: Query, content: Content, points: Collection[str]) -> list[str]:
    """Return what is added to the intercept; `points` are the work columns that exist."""
    parts = []
    for i, column in enumerate(content.ratio.columns):
        if isinstance(column, DistanceBinColumn):
            parts.append(_bin_points(column, "distance"))
        elif not isinstance(column, ColumnOfScore):
            parts += [name for name in (f"points_{i}", f"missing_{i}") if name in points]
        elif column.points:
            parts.append(_product(query, column.reads, column.points))
    return parts


def _ratio_of_evidence(query: Query, content: Content) -> str:
    """Return r as `EvidenceRule.ratio` computes it, before any gate."""
    rule = rule_of(content)
    assert rule is not None
    above = rule.pull_above
    pull = (
        f"CASE {_if_vanishing(query, 'evidence', _vanishing(above))}"
        f"WHEN score > {content.base.threshold!r} THEN evidence * {above!r} "
        f"ELSE evidence * {-above!r} END"
    )
    cost = repr(rule.fixed_cost)
    if rule.cost_per_distance:
        farther = _in_brackets(_product(query, "distance", rule.cost_per_distance))
        cost = f"({cost} + {farther})"
    return f"{cost} - {pull}"


def _forbidden_changes(content: Content) -> list[str]:
    """Return branches that hold the ratio at 1: direction or `max_margin` forbid a change."""
    gate, threshold = content.ratio, content.base.threshold
    forbidden = {
        f"distance > {gate.max_margin!r}": gate.max_margin is not None,
        f"score <= {threshold!r}": not gate.may_raise,
        f"score > {threshold!r}": not gate.may_lower,
    }
    return [f"WHEN {where} THEN 1.0" for where, is_forbidden in forbidden.items() if is_forbidden]


# ---------------------------------------------------------------------------------------------
# Decisions and edited scores


def _exponent(query: Query) -> str:
    """Return ratio times margin, bounded, because some databases refuse exp of large numbers."""
    low, high, product = repr(-MAX_EXPONENT), repr(MAX_EXPONENT), "ratio * margin"
    return (
        f"CASE {_if_vanishing(query, 'ratio', NEGLIGIBLE)}WHEN ({product}) > {high} THEN {high} "
        f"WHEN ({product}) < {low} THEN {low} ELSE {product} END"
    )


def _edited(query: Query, content: Content) -> str:
    """Return the edited score before it is moved to its decision's side."""
    if content.score_edit == "changed_only":
        return f"CASE WHEN changed = 1 THEN {_crossed(query, content)} ELSE score END"
    odds = f"exp(-(exponent + {logit_of(content.base.threshold)!r}))"
    return f"CASE WHEN ratio = 1.0 THEN score ELSE 1.0 / (1.0 + {odds}) END"


def _crossed(query: Query, content: Content) -> str:
    """Return the score on the other side of the threshold, as `crossing_at` places it."""
    line = crossing_at(content.base.threshold)
    raised = f"{_in_brackets(_product(query, 'score', line.up_slope))} + {line.up_start!r}"
    lowered = f"{line.down_start!r} - ((1.0 - score) * {line.down_slope!r})"
    raised = _bounded(raised, ">", line.just_above, line.just_above)
    lowered = _bounded(lowered, "<", line.just_below, line.just_below)
    return f"CASE WHEN score <= {line.threshold!r} THEN {raised} ELSE {lowered} END"


def _bounded(formula: str, sign: str, bound: float, other: float) -> str:
    """Return a number, or another one where the number is not on its side of a bound."""
    return f"CASE WHEN ({formula}) {sign} {bound!r} THEN {formula} ELSE {other!r} END"


def _outputs(query: Query, content: Content, prefix: str) -> dict[str, Node]:
    """Return the four new columns; all but `changed` are NULL in a row without a score."""
    labels, cut = content.labels, content.base.threshold
    above = math.nextafter(cut, 1.0)
    up, down = ("gain", "loss") if labels.favorable_above else ("loss", "gain")
    formulas = {
        "score": f"CASE WHEN decided = 1 AND edited > {cut!r} THEN edited "
        f"WHEN decided = 1 THEN {above!r} WHEN decided = 0 AND edited > {cut!r} THEN {cut!r} "
        "WHEN decided = 0 THEN edited END",
        "decision": "CASE WHEN decided = 1 THEN positive WHEN decided = 0 THEN negative END",
        "changed": "changed = 1" if query.traits.has_booleans else "CAST(changed AS BIT)",
        "direction": "CASE WHEN changed = 1 AND decided = 1 THEN up "
        "WHEN changed = 1 AND decided = 0 THEN down WHEN decided = 1 OR decided = 0 THEN kept END",
    }
    nodes = {
        "positive": _label(query, content, labels.positive),
        "negative": _label(query, content, labels.negative),
        **{name: query.text(word) for name, word in (("up", up), ("down", down), ("kept", "kept"))},
    }
    return {prefix + name: query.parsed(text, **nodes) for name, text in formulas.items()}


def _calibrated(query: Query, content: Content) -> str:
    """Return the calibrated probability of the edited score; NULL where there is none."""
    assert content.calibration is not None
    cut = content.base.threshold
    branches = [f"WHEN final = {cut!r} THEN {cut!r}"]
    for piece in pieces_of(content.calibration):
        product = _product(query, f"final - {piece.start!r}", piece.slope)
        value = f"{_in_brackets(product)} + {piece.value!r}"
        if piece.end == cut:  # only next to the threshold can rounding reach it
            value = _bounded(value, "<", cut, math.nextafter(cut, 0.0))
        elif piece.start == cut:
            value = _bounded(value, ">", cut, math.nextafter(cut, 1.0))
        sign = "<=" if piece.end == 1.0 else "<"
        branches.append(f"WHEN final {sign} {piece.end!r} THEN {value}")
    return f"CASE {' '.join(branches)} END"


def _label(query: Query, content: Content, label: Value) -> Node:
    """Return a label in the common type of both labels."""
    kinds = {type(content.labels.positive), type(content.labels.negative)}
    if isinstance(label, str):
        return query.text(label)
    if kinds == {bool}:
        truth = query.truth(bool(label))
        has_booleans = query.traits.has_booleans
        return truth if has_booleans else query.parsed("CAST(truth AS BIT)", truth=truth)
    if kinds <= {int, bool}:
        return query.parsed("CAST(label AS BIGINT)", label=query.integer(int(label)))
    return query.number(float(label))
