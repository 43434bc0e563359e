"""Describe a patch in words: the scorecard on one page, and the differences of two patches."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from commod._data.encoding import Encoding
from commod._record.audit import FurtherConstraint
from commod._record.edits import record_words
from commod._record.explanation import ScoreMap, Value
from commod._text import count, label_text, n_of, number, plain, visible
from commod.metrics._constraint import get_constraint
from commod.patch.content import (
    BinnedColumn,
    CategoryColumn,
    Column,
    Content,
    FurtherReached,
    Labels,
    NumberColumn,
    TermPoints,
    UnitColumn,
    rule_of,
    term_points_of,
    terms_of,
)
from commod.scorecard import ADD_POINTS, Crossing, crossing_at, points_text

MAX_TERMS = 12  # of one column on the page; the file has all of them
WIDTH = 44
MARGIN_TEXT = "margin of the base model"
KINDS = {
    "number": "points per unit",
    "bins": "bins",
    "category": "categories",
    "margin": "the base model's margin",
    "distance": "the distance of the score from the threshold",
    "distance_bins": "the distance of the score from the threshold, in bins",
}
IS_SUM = " r is the sum below."

DIRECTIONS = {
    (True, True): "in either direction",
    (True, False): "from {negative} to {positive} only",
    (False, True): "from {positive} to {negative} only",
    (False, False): "in no direction: the gate allows no change",
}


# ---------------------------------------------------------------------------------------------
# One page


def page_text(content: Content, digest: str, *, every_term: bool = False) -> str:
    """Return the patch as text on one page, or longer with `every_term`."""
    ratio = content.ratio
    title = (
        f"Patch of {plain(content.base.model)}, by {plain(content.method)} "
        f"({plain(content.library)}, {plain(content.created)})"
    )
    lines = [title, "", *_rule(content), ""]
    start = f"{'r =' if ratio.evidence is None else 'The sum is'} {ratio.intercept:+.4g}"
    lines.append(start + (", plus points:" if ratio.columns else ""))
    for column in ratio.columns:
        lines += _column_text(column, len(term_points_of(column)) if every_term else MAX_TERMS)
    lines += ["", *_missing_text(content), *_asked_text(content)]
    lines += calibration_lines(content)
    lines += _origin_text(content)
    return "\n".join([*lines, f"Content digest (SHA-256): {digest}"])


def _rule(content: Content) -> list[str]:
    labels, base = content.labels, content.base
    return [
        f"The base decision is {_label(labels.positive)} if the score is above "
        f"{base.threshold:g}, otherwise {_label(labels.negative)}. The label "
        f"{_label(labels.favorable)} is favourable.",
        _change_text(content),
        _edit_text(content),
    ]


def _change_text(content: Content) -> str:
    """Return when a decision changes."""
    rule, ratio, labels = rule_of(content), content.ratio, content.labels
    if rule is not None:
        return " ".join([ADD_POINTS, *rule.sentences(*_sides(labels), ratio.max_margin)])
    gate = DIRECTIONS[ratio.may_raise, ratio.may_lower].format(
        positive=_label(labels.positive), negative=_label(labels.negative)
    )
    margin = ratio.max_margin
    near = "" if margin is None else f", if the score is at most {margin:g} from the threshold"
    return f"A decision changes where r < 0, {gate}{near}."


def _sides(labels: Labels) -> tuple[str, str]:
    """Return the unfavourable and the favourable label in quotes."""
    other = labels.negative if labels.favorable_above else labels.positive
    return f"“{_label(other)}”", f"“{_label(labels.favorable)}”"


def _edit_text(content: Content) -> str:
    threshold = content.base.threshold
    if content.score_edit == "changed_only":
        line = crossing_at(threshold)
        raised = _ends(line, 0.0, threshold)
        lowered = _ends(line, math.nextafter(threshold, 1.0), 1.0)
        return (
            "The edited score is the base score where the decision stays. Where it changes, the "
            f"score goes just beyond the threshold, in the order of the base scores: to {raised} "
            f"above, to {lowered} below.{'' if content.ratio.evidence else IS_SUM}"
        )
    return (
        f"The edited score is sigmoid(r · (logit(score) − logit({threshold:g})) + "
        f"logit({threshold:g})). Where r is 1, it is the base score.{_ratio_text(content)}"
    )


def _ratio_text(content: Content) -> str:
    """Return how the sum becomes r."""
    rule = rule_of(content)
    if rule is None:
        return IS_SUM
    cost = f"{rule.fixed_cost:.6g}"
    if rule.nearness:
        cost += f" + {rule.cost_per_distance:.6g} · |score − {content.base.threshold:g}|"
    gain, lose = (f"{cost} {sign} sum / {rule.cut:.6g}" for sign in "−+")
    unfavorable, favorable = _sides(content.labels)
    return f" r is {gain} if the base decision is {unfavorable}, and {lose} if it is {favorable}."


def _ends(line: Crossing, low: float, high: float) -> str:
    """Return where changed scores from `low` to `high` go, as a range."""
    ends = line.place(np.array([low, high])).tolist()
    return " to ".join(f"{end:.6g}" for end in ends)


def _label(label: Value) -> str:
    return plain(str(label))


def _column_text(column: Column, most: int) -> list[str]:
    counted = Encoding((terms_of(column),)).counted_names
    names = _names(column)
    if isinstance(column, NumberColumn):
        names[0] = plain(counted[column.name])
    pairs = list(zip(names, term_points_of(column), strict=True))
    unit = " per unit" if isinstance(column, NumberColumn | UnitColumn) else ""
    shown = [pair for pair in pairs if pair[1].points]
    n_hidden = len(shown) - most
    if n_hidden > 0:  # show the largest points of either sign
        ranked = sorted(shown, key=lambda pair: pair[1].points)
        kept = {name for name, _ in (*ranked[: most // 2], *ranked[-(most // 2) :])}
        shown = [pair for pair in shown if pair[0] in kept]
    text = []
    for i, (name, term) in enumerate(shown):
        line = f"  {name:<{WIDTH}} {points_text(term.points):>10}{unit if i == 0 else ''}"
        concepts = [str(k) for k, points in enumerate(term.concepts) if points]  # counted from 0
        text.append(f"{line}  concept {' and '.join(concepts)}" if len(term.concepts) > 1 else line)
    more = f"  and {n_hidden:,} more terms of {plain(column.name)}, between these: see the file"
    return [*text, more] if n_hidden > 0 else text


def _names(column: Column) -> list[str]:
    """Return the names of a column's terms; unusual categories are quoted."""
    if column.reads == "margin":
        return [MARGIN_TEXT]
    if not isinstance(column, CategoryColumn):
        return [plain(name) for name in terms_of(column).term_names]
    names = [f"{plain(column.name)} = {_shown(c.value)}" for c in column.categories]
    return [*names, f"{plain(column.name)} is missing"] if column.missing else names


def _shown(value: Value) -> str:
    if not isinstance(value, str):
        return str(value)
    is_clear = value == value.strip() and value[:1].isalpha() and value not in ("True", "False")
    return plain(value) if is_clear else f"'{plain(value) if value.strip() else visible(value)}'"


def _missing_text(content: Content) -> list[str]:
    filled = [
        f"{plain(c.name)} as {c.if_missing:.6g}"
        for c in content.ratio.columns
        if isinstance(c, NumberColumn)
    ]
    text = "A category that is not in the file has 0 points. So has a missing value without a term."
    if filled:
        text += f" A missing number counts as follows: {', '.join(filled)}."
    return [text, "A row without a score between 0 and 1 gets no decision."]


def _asked_text(content: Content) -> list[str]:
    asked, reached = content.asked, content.reached
    sign = get_constraint(asked.constraints).sign
    limits = [
        f"{name.replace('_', ' ')} {value:g}"
        for name, value in vars(asked).items()
        if isinstance(value, float) and name != "target"
    ]
    if asked.points is not None:
        limits.append("points in whole numbers")
    goal = "no target" if asked.target is None else f"at {sign} {asked.target:g}"
    conditions = "; ".join([goal, f"direction {asked.direction.replace('_', ' ')}", *limits])
    counted = label_text(None, content.labels.compared)
    metric = get_constraint(asked.constraints).metric_of(counted)
    lines = [f"Requested: {plain(metric)}, {conditions}."]
    if asked.further:
        lines.append(f"Requested at the same time: {'; '.join(_further_texts(content))}.")
    return [*lines, plain(reached.in_words)]


def _further_texts(content: Content) -> Iterator[str]:
    """Yield each further constraint with its bound, and its metric before and after."""
    counted = label_text(None, content.labels.compared)
    for one, reached in zip(content.asked.further, content.reached.further, strict=True):
        constraint = get_constraint(one.constraints)
        bound = "no bound" if one.bound is None else f"at {constraint.sign} {one.bound:g}"
        figures = " → ".join(number(value, 3) for value in (reached.before, reached.after))
        yield f"{plain(constraint.metric_of(counted))}, {bound} ({figures})"


def _origin_text(content: Content) -> list[str]:
    """Return the edits by hand, who was left out of the fit, and which audit belongs to it."""
    lines, left_out = [], content.left_out
    if content.by is not None:
        lines.append(f"Saved by {plain(content.by)}.")
    if content.history:
        lines.append(f"Edited by hand ({n_of(len(content.history), 'edit')}):")
        lines += [f"  {record_words(edit.record)}" for edit in content.history]
    if left_out is not None and left_out.n_groups:
        people = f"{n_of(left_out.n_groups, 'group')} with {n_of(left_out.n_people, 'person')}"
        lines.append(f"Left out of the constraint, because they are small: {people}.")
    if content.audit is not None:
        lines.append(f"Audit (SHA-256): {content.audit}")
    return lines


# ---------------------------------------------------------------------------------------------
# Two patches


def differences(one: Content, other: Content) -> list[str]:
    """Return the differences of two patches in words; the date is ignored."""
    return [
        *_facts(one, other),
        *_ratio_differences(one, other),
        *calibration_differences(one, other),
        *_named(one.asked, other.asked, "requested"),
        *_named(one.reached, other.reached, "reached"),
    ]


ORIGIN = (  # what is stated about a patch, and where its content has it
    ("number of fit rows", "seen.n_rows"),
    ("digest of the scores on the fit rows", "base.scores_digest"),
    ("digest of the audit", "audit"),
    ("saved by", "by"),
)
RULE = (
    ("may make decisions positive", "ratio.may_raise"),
    ("may make decisions negative", "ratio.may_lower"),
    ("largest distance from the threshold at which a decision may change", "ratio.max_margin"),
    ("intercept of {total}", "ratio.intercept"),
    ("weights of the concepts", "ratio.concept_weights"),
    ("intercepts of the concepts", "ratio.concept_intercepts"),
    ("sum that changes a decision", "ratio.evidence.cut"),
    (
        "part of its cost that grows with the distance from the threshold",
        "ratio.evidence.nearness",
    ),
    ("mean distance from the threshold", "ratio.evidence.mean_distance"),
)
MODEL = (
    ("score column", "base.score"),
    ("threshold", "base.threshold"),
    ("edited scores", "score_edit"),
    ("negative label", "labels.negative"),
    ("positive label", "labels.positive"),
    ("favorable label", "labels.favorable"),
)


def _stated(one: Content, other: Content, facts: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield the facts that differ; a fact of a part that is None is None."""
    for words, path in facts:
        values: list[Any] = [one, other]
        for name in path.split("."):
            values = [getattr(value, name, None) for value in values]
        yield from _change(words, *values)


def _facts(one: Content, other: Content) -> Iterator[str]:
    names = (("method", "method"), ("library", "library"), ("base model", "base.model"))
    yield from _stated(one, other, names)
    if one.base.model == other.base.model and one.base.digest != other.base.digest:
        yield "The base model is another one of the same class (its fingerprint differs)."
    yield from _stated(one, other, MODEL)
    if (one.seen.n_columns, one.seen.digest) != (other.seen.n_columns, other.seen.digest):
        yield "The fit rows had other columns."
    yield from _stated(one, other, ORIGIN)
    edits = ("; ".join(record_words(edit.record) for edit in c.history) for c in (one, other))
    yield from _change("edits by hand", *(words or None for words in edits))
    counts = [
        (f"left out: number of {what}", f"left_out.n_{what}") for what in ("groups", "people")
    ]
    yield from _stated(one, other, counts)
    versions = one.versions or {}, other.versions or {}
    for name in dict.fromkeys([*versions[0], *versions[1]]):
        yield from _change(f"version of {plain(name)}", *(known.get(name) for known in versions))
    if (one.versions is None) != (other.versions is None) and not any(versions):
        yield "Only one of the patches says that it knows its versions."


def _ratio_differences(one: Content, other: Content) -> Iterator[str]:
    total = "r" if other.ratio.evidence is None else "the sum"
    rule = [(words.format(total=total), path) for words, path in RULE]
    yield from _stated(one, other, rule)
    ours, theirs = ({c.name: c for c in content.ratio.columns} for content in (one, other))
    for name in ours:
        if name not in theirs:
            yield f"Column {plain(name)} is no longer read."
    for name, column in theirs.items():
        yield from _column_differences(ours.get(name), column)
    if _have_another_order(ours, theirs):
        yield "Columns are added in another order."


def _have_another_order(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return [key for key in one if key in other] != [key for key in other if key in one]


def _column_differences(one: Column | None, other: Column) -> Iterator[str]:
    name = plain(other.name)
    if one is None:
        yield f"Column {name} is new ({KINDS[other.reads]}, {len(term_points_of(other))} terms)."
        return
    if one.reads != other.reads:
        yield f"Column {name} is read as {KINDS[other.reads]}, no longer as {KINDS[one.reads]}."
        return
    edges = [c.edges if isinstance(c, BinnedColumn) else [] for c in (one, other)]
    if edges[0] != edges[1]:
        before, after = (", ".join(f"{edge:g}" for edge in some) for some in edges)
        yield f"Column {name} has other bins: {before} → {after}."
        return
    if isinstance(one, NumberColumn) and isinstance(other, NumberColumn):
        yield from _change(f"{name} if missing", one.if_missing, other.if_missing)
        yield from _change(f"centre of {name}", one.centre, other.centre)
    terms = [dict(zip(_names(c), term_points_of(c), strict=True)) for c in (one, other)]
    yield from _term_differences(*terms)
    if _have_another_order(*terms):
        yield f"Column {name} lists its terms in another order."


def _term_differences(
    one: Mapping[str, TermPoints], other: Mapping[str, TermPoints]
) -> Iterator[str]:
    for name in dict.fromkeys([*one, *other]):
        before, after = one.get(name), other.get(name)
        a, b = ("no term" if term is None else points_text(term.points) for term in (before, after))
        if before is None or after is None or before.points != after.points:
            exact = ""
            if before is not None and after is not None and a == b:
                exact = f" (exactly {before.points!r} → {after.points!r})"
            yield f"{name}: {a} → {b}{exact}."
        elif before != after:
            yield f"{name}: the same points, split differently over the concepts."


def _named(one: Any, other: Any, words: str) -> Iterator[str]:
    for name, value in vars(one).items():
        yield from _change(f"{words}: {name.replace('_', ' ')}", value, getattr(other, name))


def _change(name: str, before: Any, after: Any) -> Iterator[str]:
    if before != after or type(before) is not type(after):
        yield f"{name[:1].upper()}{name[1:]}: {_value(before)} → {_value(after)}."


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple):
        return ", ".join(map(_value, value)) or "none"
    if isinstance(value, FurtherConstraint | FurtherReached):
        return " ".join(_value(part) for part in vars(value).values())
    return "none" if value is None else plain(str(value))


# ---------------------------------------------------------------------------------------------
# Describe the calibration map of a patch in words, and how it differs from another one


def calibration_lines(content: Content) -> list[str]:
    """Return what the map does and its figures; no line without a map."""
    score_map = content.calibration
    if score_map is None:
        return []
    label = plain(str(content.labels.positive))
    return [
        "",
        "On request, one more column: the edited score as a calibrated probability of label "
        f"{label}. It keeps every decision. It is a line through these knots (edited score → "
        f"probability): {_knots_text(score_map)}.",
        f"Learned on {count(score_map.n_rows)} fit rows. Brier score: {score_map.brier_before:.4f} "
        f"of the base score, {score_map.brier_after:.4f} of the edited score, "
        f"{score_map.brier_calibrated:.4f} of the probability (out-of-fold). Mean distance from "
        f"the observed share: {score_map.error_before:.4f}, {score_map.error_after:.4f} and "
        f"{score_map.error_calibrated:.4f}.",
    ]


def _knots_text(score_map: ScoreMap) -> str:
    return ", ".join(f"{knot.score:.6g} → {knot.probability:.4f}" for knot in score_map.knots)


def calibration_differences(one: Content, other: Content) -> Iterator[str]:
    """Yield the differences of two maps in words."""
    ours, theirs = one.calibration, other.calibration
    if ours is None and theirs is not None:
        yield "The patch got its calibration map."
    elif ours is not None and theirs is None:
        yield "The patch lost its calibration map."
    elif ours is not None and theirs is not None and ours.knots != theirs.knots:
        yield f"Calibration map: {_knots_text(ours)} became {_knots_text(theirs)}."
    elif ours != theirs:
        yield "The figures of the calibration map differ."
