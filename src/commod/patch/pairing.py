"""Compare a patch with an audit, and say what a report states about both."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple

from commod._data.encoding import NumericTerms
from commod._record.audit import Audit, FurtherConstraint, Gap, Shipped
from commod._record.edits import EditFigures, EditRecord
from commod._record.explanation import Card
from commod._record.plain import to_plain
from commod._text import label_text, n_of, shorten
from commod.patch.checking import CAPS, reached_in, stated_in
from commod.patch.content import (
    ColumnOfScore,
    Content,
    rule_of,
    term_points_of,
    terms_of,
)

SAME = 1e-5  # figures that are closer than this are the same: those of a patch have six digits
FIGURE_DIGITS = 6  # of measured figures in a patch


class Difference(NamedTuple):
    """A field that differs between a patch and a report, with both values as text.

    `in_patch` is empty for a field that only a report has.
    """

    field: str
    in_patch: str
    in_report: str

    def __str__(self) -> str:
        if not self.in_patch:
            return f"{self.field}: {self.in_report}."
        return f"{self.field}: {self.in_patch} in the patch, {self.in_report} in the report."


def value_text(value: Any) -> str:
    """Return a value of a patch or of an audit as text.

    Examples
    --------
    >>> value_text(None), value_text(0.8), value_text("yes")
    ('none', '0.8', 'yes')
    """
    return "none" if value is None else shorten(value, 100)


def further_text(further: Sequence[FurtherConstraint]) -> str:
    """Return further constraints with their bounds as text.

    Examples
    --------
    >>> further_text([FurtherConstraint("minimum_rate", 0.3)])
    'minimum_rate 0.3'
    """
    return "; ".join(f"{one.constraints} {value_text(one.bound)}" for one in further) or "none"


def leaf_differences(ours: Any, theirs: Any, name: str = "") -> Iterator[Difference]:
    """Yield the values that differ between plain objects, by dotted names; a gap by its own name.

    Examples
    --------
    >>> [str(one) for one in leaf_differences({"a": {"b": 1}}, {"a": {"b": True}})]
    ['a.b: 1 in the patch, True in the report.']
    """
    one, other = (dict(_leaves(tree, name)) for tree in (ours, theirs))
    for leaf in dict.fromkeys([*one, *other]):
        is_in_both = leaf in one and leaf in other
        if not is_in_both or _typed(one[leaf]) != _typed(other[leaf]):
            texts = (value_text(side[leaf]) if leaf in side else "absent" for side in (one, other))
            yield Difference(leaf, *texts)


def _typed(leaf: Any) -> tuple[type, str]:
    return type(leaf), repr(leaf)  # 1 is not True, and 0.0 is not -0.0


def _leaves(tree: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield the values of nested objects with their names; an empty object is a value."""
    if isinstance(tree, dict) and tree:
        for key, value in tree.items():
            yield from _leaves(value, f"{name}.{key}" if name else key)
    elif isinstance(tree, list) and tree:
        labels = [
            item.get("name", i) if isinstance(item, dict) else i for i, item in enumerate(tree)
        ]
        is_named = len(set(map(str, labels))) == len(labels)
        for i, item in enumerate(tree):
            yield from _leaves(item, f"{name}.{labels[i] if is_named else i}")
    else:
        yield name, tree


def contradictions(content: Content, audit: Audit) -> Iterator[Difference]:
    """Yield where an audit is not one of this update: request, labels, scorecard, edits by hand.

    What an audit does not state (a cap, a direction, the threshold) contradicts nothing. A target
    of the patch must be the target of the audit. An audit of decisions alone has neither scorecard
    nor edits to compare; see `compared_with`.
    """
    asked, request = content.asked, audit.request
    fields = {
        "constraints": (asked.constraints, request.constraints),
        "positive_label": (content.labels.compared, request.pos_label),
        "favorable_label": (content.labels.favorable, request.favorable_label),
    }
    if asked.target is not None:
        fields["target"] = asked.target, request.target
    fields["further constraints"] = further_text(asked.further), further_text(request.further)
    if request.direction != "any":
        fields["direction"] = asked.direction, request.direction
    optional = {
        "threshold": content.base.threshold,
        "other_label": content.labels.other,
        "score_is_for": content.labels.positive,
        "score_edit": content.score_edit,
        "points": asked.points,
        "max_margin": content.ratio.max_margin,
        **{name: getattr(asked, name) for name in CAPS},
    }
    stated = {name: (own, getattr(request, name)) for name, own in optional.items()}
    fields |= {name: pair for name, pair in stated.items() if pair[1] is not None}
    for name, (ours, theirs) in fields.items():
        if ours != theirs:
            yield Difference(name, value_text(ours), value_text(theirs))
    if audit.card is not None:
        yield from _of_scorecards(content, audit.card)
    if knows_update(audit):
        yield from _of_edits([edit.record for edit in content.history], audit.edits)


def knows_update(audit: Audit) -> bool:
    """Return whether an audit is of an explained update, and not of decisions alone."""
    return audit.card is not None or bool(audit.edits)


def compared_with(audit: Audit) -> tuple[str, ...]:
    """Return what `contradictions` compares of a patch and this audit."""
    request = "labels, threshold and request"
    if audit.card is None:
        return (request, *["the edits by hand"] * knows_update(audit))
    points = "the points of each term by name, with edges, categories, cut and gates"
    return request, points, "the edits by hand"


def _of_scorecards(content: Content, card: Card) -> Iterator[Difference]:
    """Yield where the points, or the rule, of a patch are not those of the audited scorecard."""
    yield from leaf_differences(
        {"intercept": content.ratio.intercept}, {"intercept": card.intercept}, "scorecard"
    )
    own, audited = (
        {} if rule is None else {k: v for k, v in asdict(rule).items() if k != "sentences"}
        for rule in (rule_of(content), card.rule)
    )
    yield from leaf_differences(own, audited, "scorecard.rule")
    # Audits of earlier versions do not state what a term counts, or reads exactly.
    has_exact = any(line.exact is not None for line in card.lines)
    has_counted = any(line.counted for line in card.lines)
    ours, theirs = _terms_of(content, has_exact, has_counted), []
    of_score = {c.name for c in content.ratio.columns if isinstance(c, ColumnOfScore)}
    for line in card.lines:
        exact = line.exact if line.column not in of_score else None
        parts = line.points, line.column, line.counted if has_counted else "", exact
        theirs.append((line.term, *parts))
    named = [_by_name(terms) for terms in (ours, theirs)]
    for name in dict.fromkeys([*named[0], *named[1]]):
        pair = [terms.get(name) for terms in named]
        if _typed(pair[0]) != _typed(pair[1]):
            yield Difference(f"scorecard.{name}", *map(_term_text, pair))


def _terms_of(content: Content, has_exact: bool, has_counted: bool) -> list[tuple[Any, ...]]:
    """Return name, points, column, what is counted, and what is read exactly, of each term."""
    terms = []
    for column in content.ratio.columns:
        spec = terms_of(column)
        counted = {spec.name: spec.counted_text} if isinstance(spec, NumericTerms) else {}
        is_exact = has_exact and not isinstance(column, ColumnOfScore)
        for name, term, exact in zip(
            spec.term_names, term_points_of(column), spec.exact_values, strict=True
        ):
            text = counted.get(name, "") if has_counted else ""
            if term.points:
                terms.append((name, term.points, spec.name, text, exact if is_exact else None))
    return terms


def _by_name(terms: list[tuple[Any, ...]]) -> dict[str, list[tuple[Any, ...]]]:
    """Return the terms by name: 1 and "1" of one column share a name."""
    named: dict[str, list[tuple[Any, ...]]] = {}
    for name, *parts in sorted(terms, key=repr):
        named.setdefault(name, []).append(tuple(parts))
    return named


def _term_text(terms: list[tuple[Any, ...]] | None) -> str:
    """Return the points of terms with one name, and what they read, as text."""
    if terms is None:
        return "absent"
    return " and ".join(
        f"{points!r} points of {shorten(counted or column, 60)}"
        + ("" if exact is None else f" ({shorten(repr(exact), 60)})")
        for points, column, counted, exact in terms
    )


def _of_edits(ours: Sequence[EditRecord], theirs: Sequence[EditRecord]) -> Iterator[Difference]:
    """Yield where the edits by hand in a patch are not those that were audited."""
    if len(ours) != len(theirs):
        yield Difference("history", n_of(len(ours), "edit"), n_of(len(theirs), "edit"))
    for number, (own, audited) in enumerate(zip(ours, theirs, strict=False), start=1):
        before, after = (_stored(own, audited, side) for side in ("before", "after"))
        rounded = replace(audited, before=before, after=after)
        yield from leaf_differences(to_plain(own), to_plain(rounded), f"history.{number}")


def _stored(own: EditRecord, audited: EditRecord, side: str) -> EditFigures:
    """Return the audited figures; those of the patch where they are the same at its six digits."""
    stated, figures = (asdict(getattr(record, side)) for record in (own, audited))
    for name, value in figures.items():
        if isinstance(value, float) and float(f"{value:.{FIGURE_DIGITS}g}") == stated[name]:
            figures[name] = stated[name]
    if stated["reached"] is False:  # a patch asks for more: its own figures keep the target, too
        figures["reached"] = False
    return EditFigures(**figures)


def shipped_of(content: Content, sha256: str, audit: Audit) -> Shipped:
    """Return what a report states about a patch with this SHA-256, beside this audit."""
    base, labels, asked, left_out = content.base, content.labels, content.asked, content.left_out
    gaps = tuple(_gaps(content, audit))
    differences = [gap.difference for gap in gaps if gap.difference is not None]
    are_same = bool(differences) and all(math.isclose(d, 0, abs_tol=SAME) for d in differences)
    return Shipped(
        patch_sha256=sha256,
        audit_digest=content.audit,
        created=content.created,
        method=content.method,
        base_model=base.model,
        base_digest=base.digest,
        score_column=base.score,
        scores_digest=base.scores_digest,
        threshold=base.threshold,
        negative_label=labels.other,
        positive_label=labels.compared,
        favorable_label=labels.favorable,
        constraints=asked.constraints,
        target=asked.target,
        direction=asked.direction,
        fit_rows=content.reached.rows,
        n_fit_rows=content.seen.n_rows,
        n_figure_rows=content.reached.n_rows,
        n_test_rows=audit.n,
        same_figures=audit.n == content.reached.n_rows and are_same,
        gaps=gaps,
        n_groups_left_out=None if left_out is None else left_out.n_groups,
        n_people_left_out=None if left_out is None else left_out.n_people,
        versions=content.versions,
        promised=content.reached.promised,
        score_is_for=labels.positive,
        further=asked.further,
        by=content.by,
    )


def _gaps(content: Content, audit: Audit) -> Iterator[Gap]:
    """Yield the figures of the update on the rows of the fit and on the audited rows."""
    reached, quality = content.reached, audit.quality
    counted = label_text(None, content.labels.compared)
    measured = {f.constraints: f.after.value for f in reversed(audit.fairness)}
    accuracy = None if quality is None else quality.accuracy_after.value
    figures: list[tuple[str, Any, float | None, float | None]] = [
        (one.metric_of(counted), "number", figures.after, measured.get(one.name))
        for (one, _), figures in zip(stated_in(content), reached_in(content), strict=True)
    ]
    figures.append(("accuracy", "percent", reached.accuracy_after, accuracy))
    changes = audit.changes.rate.value
    figures.append(("changed decisions", "percent", reached.change_rate, changes))
    for name, kind, fit, test in figures:
        difference = None if fit is None or test is None else test - fit
        yield Gap(name, kind, fit, test, difference)
