"""Patches written by hand, and what each should do, in plain Python that shares no code.

The reference follows the sentence in the docs: r is the intercept and the points of each column,
added in order; a decision turns into its opposite where r < 0; and so on.
"""

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from commod.patch.content import (
    SCHEMA,
    Base,
    Bin,
    BinColumn,
    Category,
    CategoryColumn,
    Content,
    DistanceBinColumn,
    Labels,
    NumberColumn,
    PatchEvidence,
    PatchRequest,
    Ratio,
    Reached,
    Seen,
    TermPoints,
    UnitColumn,
)

LARGEST = 1e100
OUTPUTS = ("score", "decision", "changed", "direction")


def number(name, points, if_missing=0.0, missing=None, centre=0.0):
    return NumberColumn(name, "number", points, (points,), if_missing, _line(missing), centre)


def bins(name, edges, points, missing=None):
    cells = zip([*edges, None], points, strict=True)
    return BinColumn(name, "bins", tuple(Bin(e, p, (p,)) for e, p in cells), _line(missing))


def category(name, points, missing=None):
    values = tuple(Category(value, p, (p,)) for value, p in points.items())
    return CategoryColumn(name, "category", values, _line(missing), 0.0)


def margin(points):
    return UnitColumn("base margin", "margin", points, (points,))


def distance(points):
    return UnitColumn("distance from the threshold", "distance", points, (points,))


def distance_bins(edges, points):
    cells = bins("", edges, points).bins
    return DistanceBinColumn("distance from the threshold", "distance_bins", cells)


def _line(points):
    return None if points is None else TermPoints(points, (points,))


def content_of(
    *columns,
    intercept=1.0,
    threshold=0.5,
    may_raise=True,
    may_lower=True,
    max_margin=None,
    score_edit="all",
    labels=(0, 1, 1),
    evidence=None,
):
    gates = {
        (True, True): "any",
        (labels[2] == labels[1], labels[2] == labels[0]): "gains_only",
        (labels[2] == labels[0], labels[2] == labels[1]): "losses_only",
    }
    return Content(
        schema=SCHEMA,
        library="0",
        created="2026-01-01T00:00:00+00:00",
        method="by hand",
        base=Base("somebody's model", None, "score", threshold),
        labels=Labels(*labels),
        asked=PatchRequest(
            "demographic_parity", 0.8, gates[may_raise, may_lower], None, None, None, None
        ),
        reached=Reached("fit", 10, "P-rule", *[None] * 10, "by hand"),
        seen=Seen(len(columns), "0" * 64),
        ratio=Ratio(
            intercept,
            may_raise,
            may_lower,
            (1.0,),
            (intercept,),
            tuple(columns),
            max_margin,
            None if evidence is None else PatchEvidence(*evidence),
        ),
        score_edit=score_edit,
    )


# ---------------------------------------------------------------------------------------------
# The reference


@dataclass
class Expected:
    """What a patch should make of each row; NaN and None where there is no base score."""

    ratio: np.ndarray
    score: np.ndarray
    decision: list
    changed: np.ndarray
    direction: list


def reference(content, table):
    """Return what the patch should do, row by row, in plain Python."""
    points = {
        column.name: {_typed(c.value): c.points for c in column.categories}
        for column in content.ratio.columns
        if column.reads == "category"
    }
    done = [_edited(content, points, row) for row in table.to_pylist()]
    ratio, score, decision, changed, direction = (list(c) for c in zip(*done, strict=True))
    return Expected(
        np.array(ratio), np.array(score), decision, np.array(changed, dtype=bool), direction
    )


def _edited(content, points, row):
    score, threshold = row["score"], content.base.threshold
    if score is None or not 0 <= score <= 1:
        return math.nan, math.nan, None, False, None
    clipped = min(max(score, 1e-15), 1 - 1e-15)
    z = math.log(clipped / (1 - clipped)) - math.log(threshold / (1 - threshold))
    z = 0.0 if score == threshold else z
    was = score > threshold
    r = _ratio(content, points, row, z)
    if content.ratio.evidence is not None:
        rule = content.ratio.evidence
        cost = 1 - rule.nearness + rule.nearness / rule.mean_distance * abs(score - threshold)
        is_favorable = was == (content.labels.favorable == content.labels.positive)
        r = cost + r * (1 / rule.cut) if is_favorable else cost - r * (1 / rule.cut)
    if (was and not content.ratio.may_lower) or (not was and not content.ratio.may_raise):
        r = 1.0
    if content.ratio.max_margin is not None and abs(score - threshold) > content.ratio.max_margin:
        r = 1.0
    changed = r < 0 and score != threshold
    decided = was != changed
    edited = score
    if content.score_edit == "changed_only":
        edited = _crossed(score, threshold) if changed else score
    elif r != 1:
        exponent = min(max(r * z, -30.0), 30.0) + math.log(threshold / (1 - threshold))
        edited = 1 / (1 + math.exp(-exponent))
    if decided and edited <= threshold:
        edited = math.nextafter(threshold, 1)
    if not decided and edited > threshold:
        edited = threshold
    labels = content.labels
    label = labels.positive if decided else labels.negative
    moved = "gain" if label == labels.favorable else "loss"
    return r, edited, label, changed, moved if changed else "kept"


def _crossed(score, threshold):
    """Return a changed score: in a band of a hundredth beyond the threshold, in the old order."""
    if score > threshold:
        part = (1 + (1 - score) / (1 - threshold)) / 2
        return min(threshold - threshold * 0.01 * part, math.nextafter(threshold, 0))
    part = (1 + score / threshold) / 2
    return max(threshold + (1 - threshold) * 0.01 * part, math.nextafter(threshold, 1))


def _ratio(content, points, row, z):
    r = content.ratio.intercept
    for column in content.ratio.columns:
        if column.reads == "margin":
            r += column.points * z
            continue
        if column.reads.startswith("distance"):
            far = abs(row["score"] - content.base.threshold)
            is_unit = column.reads == "distance"
            r += column.points * far if is_unit else _bin_points(column, far)
            continue
        value = row[column.name]
        if isinstance(value, float) and not math.isfinite(value):
            value = None
        missing = column.missing.points if column.missing else 0.0
        if column.reads == "number":
            counted = column.if_missing if value is None else min(max(value, -LARGEST), LARGEST)
            r += column.points * (counted - column.centre)
            r += missing if value is None else 0.0
        elif value is None:
            r += missing
        elif column.reads == "bins":
            r += _bin_points(column, value)
        else:
            r += points[column.name].get(_typed(value), 0.0)
    return r


def _bin_points(column, value):
    return next(b.points for b in column.bins if b.below is None or value < b.below)


def _typed(value):
    """Return a key for a category: True is not 1, though Python says that they are equal."""
    return isinstance(value, bool), value


# ---------------------------------------------------------------------------------------------
# Comparing


def check_rows(content, expected, found, prefix="commod_"):
    """Compare a table of results, in the order of the rows, with what was expected."""
    score, decision, changed, direction = (found[prefix + name] for name in OUTPUTS)
    assert list(decision) == expected.decision
    assert list(direction) == expected.direction
    np.testing.assert_array_equal(np.array(changed, dtype=bool), expected.changed)
    check_scores(content, expected, np.array([np.nan if s is None else s for s in score], float))


def check_scores(content, expected, score):
    np.testing.assert_allclose(score, expected.score, rtol=0, atol=1e-9)
    known = ~np.isnan(expected.score)
    is_positive = np.array([d == content.labels.positive for d in expected.decision])[known]
    np.testing.assert_array_equal(score[known] > content.base.threshold, is_positive)


def in_order(table, prefix="commod_"):
    """Return the new columns of an arrow table as lists, its rows sorted by `id`."""
    table = table.sort_by("id")
    columns = {prefix + name: table[prefix + name].to_pylist() for name in OUTPUTS}
    nothing = [None if v is not None and v != v else v for v in columns[prefix + "decision"]]
    return {**columns, prefix + "decision": nothing}


def as_arrow(columns, **types):
    """Return columns as an arrow table in which NaN and NULL stay different."""
    arrays = {
        name: pa.array(values, types.get(name), from_pandas=False)
        for name, values in columns.items()
    }
    return pa.table(arrays)
