"""A patch in words: the scorecard on one page, and what differs between two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from commod._record import Value
from commod._text import plain
from commod.metrics._constraint import get_constraint
from commod.patch.content import (
    BinColumn,
    CategoryColumn,
    Column,
    Content,
    Line,
    MarginColumn,
    NumberColumn,
    lines_of,
    terms_of,
)

__all__ = ["card_text", "differences"]

MOST_LINES = 12  # of one column on the page; the file has them all
WIDTH = 44
MARGIN_TEXT = "margin of the base model"

DIRECTIONS = {
    (True, True): "in either direction",
    (True, False): "from {negative} to {positive} only",
    (False, True): "from {positive} to {negative} only",
    (False, False): "never: the gate is shut in both directions",
}


# ---------------------------------------------------------------------------------------------
# One page


def card_text(content: Content, digest: str, *, every_line: bool = False) -> str:
    """Return the patch as text for people: a page, unless every line is asked for."""
    ratio = content.ratio
    title = (
        f"Patch of {plain(content.base.model)}, by {plain(content.method)} "
        f"({plain(content.library)}, {plain(content.created)})"
    )
    lines = [title, "", *_rule(content), ""]
    lines.append(f"r = {ratio.intercept:+.4g}" + (", plus points:" if ratio.columns else ""))
    for column in ratio.columns:
        lines += _column_text(column, len(lines_of(column)) if every_line else MOST_LINES)
    lines += ["", *_missing_text(content), *_asked_text(content)]
    return "\n".join([*lines, f"Content digest (SHA-256): {digest}"])


def _rule(content: Content) -> list[str]:
    labels, base = content.labels, content.base
    gate = DIRECTIONS[content.ratio.may_raise, content.ratio.may_lower].format(
        positive=_label(labels.positive), negative=_label(labels.negative)
    )
    return [
        f"The base decision is {_label(labels.positive)} where the score is above "
        f"{base.threshold:g}, else {_label(labels.negative)}; {_label(labels.favorable)} is "
        "favourable.",
        f"A decision changes where r < 0, {gate}.",
        f"The edited score is sigmoid(r · (logit(score) − logit({base.threshold:g})) + "
        f"logit({base.threshold:g})): where r is 1 it is the base score. r is the sum below.",
    ]


def _label(label: Value) -> str:
    return plain(str(label))


def _column_text(column: Column, most: int) -> list[str]:
    pairs = list(zip(_names(column), lines_of(column), strict=True))
    unit = " per unit" if isinstance(column, NumberColumn | MarginColumn) else ""
    shown = [pair for pair in pairs if pair[1].points]
    rest = len(shown) - most
    if rest > 0:  # the strongest in either direction
        ranked = sorted(shown, key=lambda pair: pair[1].points)
        kept = {name for name, _ in (*ranked[: most // 2], *ranked[-(most // 2) :])}
        shown = [pair for pair in shown if pair[0] in kept]
    text = [
        f"  {name:<{WIDTH}} {_points(line):>10}{unit if i == 0 else ''}{_concepts(line)}"
        for i, (name, line) in enumerate(shown)
    ]
    more = f"  and {rest:,} more lines of {plain(column.name)}, between these: see the file"
    return [*text, more] if rest > 0 else text


def _names(column: Column) -> list[str]:
    """Return what the lines of a column are called; odd categories are in quotes."""
    if isinstance(column, MarginColumn):
        return [MARGIN_TEXT]
    if not isinstance(column, CategoryColumn):
        return [plain(name) for name in terms_of(column).term_names]
    names = [f"{plain(column.name)} = {_shown(c.value)}" for c in column.categories]
    return [*names, f"{plain(column.name)} is missing"] if column.missing else names


def _shown(value: Value) -> str:
    if not isinstance(value, str):
        return str(value)
    is_clear = value == value.strip() and value[:1].isalpha() and value not in ("True", "False")
    return plain(value) if is_clear else f"'{plain(value) if value.strip() else value}'"


def _concepts(line: Line) -> str:
    """Return the concepts that a line is part of, from 0 as everywhere, where there are several."""
    parts = [str(i) for i, points in enumerate(line.concepts) if points]
    return f"  concept {' and '.join(parts)}" if len(line.concepts) > 1 else ""


def _points(line: Line) -> str:
    return f"{line.points:+.4f}" if abs(line.points) >= 0.001 else f"{line.points:+.3g}"


def _missing_text(content: Content) -> list[str]:
    filled = [
        f"{plain(c.name)} as {c.if_missing:.6g}"
        for c in content.ratio.columns
        if isinstance(c, NumberColumn)
    ]
    text = "A category that is not in the file, and a missing value without a line, has 0 points."
    if filled:
        text += f" A missing number counts: {', '.join(filled)}."
    return [text, "Without a score between 0 and 1 there is no decision."]


def _asked_text(content: Content) -> list[str]:
    asked, reached = content.asked, content.reached
    sign = get_constraint(asked.constraints).sign
    limits = [
        f"{name.replace('_', ' ')} {value:g}"
        for name, value in vars(asked).items()
        if isinstance(value, float) and name != "target"
    ]
    goal = "no target" if asked.target is None else f"at {sign} {asked.target:g}"
    rest = "; ".join([goal, f"direction {asked.direction.replace('_', ' ')}", *limits])
    return [f"Asked: {plain(reached.metric)}, {rest}.", plain(reached.in_words)]


# ---------------------------------------------------------------------------------------------
# Two patches


def differences(one: Content, other: Content) -> list[str]:
    """Return what differs in the other patch, in words; the date apart."""
    return [
        *_facts(one, other),
        *_ratio_differences(one, other),
        *_named(one.asked, other.asked, "asked for"),
        *_named(one.reached, other.reached, "reached"),
    ]


def _facts(one: Content, other: Content) -> Iterator[str]:
    for name in ("method", "library"):
        yield from _change(name, getattr(one, name), getattr(other, name))
    yield from _change("base model", one.base.model, other.base.model)
    if one.base.model == other.base.model and one.base.digest != other.base.digest:
        yield "The base model is another one of the same class (its fingerprint differs)."
    yield from _change("score column", one.base.score, other.base.score)
    yield from _change("threshold", one.base.threshold, other.base.threshold)
    for name in ("negative", "positive", "favorable"):
        yield from _change(f"{name} label", getattr(one.labels, name), getattr(other.labels, name))
    if one.seen != other.seen:
        yield "The fit rows had other columns."


def _ratio_differences(one: Content, other: Content) -> Iterator[str]:
    for name, words in (
        ("may_raise", "may make decisions positive"),
        ("may_lower", "may make decisions negative"),
        ("intercept", "intercept of r"),
        ("concept_weights", "weights of the concepts"),
        ("concept_intercepts", "starts of the concepts"),
    ):
        yield from _change(words, getattr(one.ratio, name), getattr(other.ratio, name))
    ours, theirs = ({c.name: c for c in content.ratio.columns} for content in (one, other))
    for name in ours:
        if name not in theirs:
            yield f"Column {plain(name)} is no longer read."
    for name, column in theirs.items():
        yield from _column_differences(ours.get(name), column)
    common = [[name for name in a if name in b] for a, b in ((ours, theirs), (theirs, ours))]
    if common[0] != common[1]:
        yield "Columns are added in another order."


def _column_differences(one: Column | None, other: Column) -> Iterator[str]:
    name = plain(other.name)
    if one is None:
        yield f"Column {name} is new ({_kind(other)}, {len(lines_of(other))} lines)."
        return
    if one.reads != other.reads:
        yield f"Column {name} is read as {_kind(other)}, no longer as {_kind(one)}."
        return
    if isinstance(one, BinColumn) and isinstance(other, BinColumn) and one.edges != other.edges:
        yield f"Column {name} has other bins: {_edges(one)} → {_edges(other)}."
        return
    if isinstance(one, NumberColumn) and isinstance(other, NumberColumn):
        yield from _change(f"{name} if missing", one.if_missing, other.if_missing)
    lines = _lines_by_name(one), _lines_by_name(other)
    yield from _line_differences(*lines)
    common = [[key for key in a if key in b] for a, b in (lines, lines[::-1])]
    if common[0] != common[1]:
        yield f"Column {name} lists its lines in another order."


def _lines_by_name(column: Column) -> dict[str, Line]:
    return dict(zip(_names(column), lines_of(column), strict=True))


def _line_differences(one: Mapping[str, Line], other: Mapping[str, Line]) -> Iterator[str]:
    for name in dict.fromkeys([*one, *other]):
        before, after = one.get(name), other.get(name)
        a, b = ("no line" if line is None else _points(line) for line in (before, after))
        if before is None or after is None or before.points != after.points:
            exact = "" if a != b or before is None or after is None else _exactly(before, after)
            yield f"{name}: {a} → {b}{exact}."
        elif before != after:
            yield f"{name}: the same points, otherwise split over the concepts."


def _exactly(before: Line, after: Line) -> str:
    return f" (exactly {before.points!r} → {after.points!r})"


def _kind(column: Column) -> str:
    return {
        "number": "points per unit",
        "bins": "bins",
        "category": "categories",
        "margin": "the base model's margin",
    }[column.reads]


def _edges(column: BinColumn) -> str:
    return ", ".join(f"{edge:g}" for edge in column.edges)


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
        return ", ".join(map(_value, value))
    return "none" if value is None else plain(str(value))
