"""Tie a patch to an audit: what must agree between them, and what a report says about the patch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from commod._record import Audit, FurtherConstraint, Gap, Shipped
from commod._text import label_text, shorten
from commod.exceptions import InputError
from commod.patch.checking import reached_in, stated_in
from commod.patch.content import Content, term_points_of

CAPS = ("max_changes", "max_accuracy_loss", "max_volume_change", "confidence")
SAME = 1e-5  # figures that are closer than this are the same: those of a patch have six digits


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


def check_audit(audit: Any) -> Audit:
    """Return the audit; refuse anything else."""
    if not isinstance(audit, Audit):
        raise InputError(
            f"A patch needs an Audit to be tied to; got {type(audit).__name__}. Make one with "
            "commod.audit(y_before, y_after, sensitive_features=…).",
            parameter="audit",
        )
    return audit


def contradictions(content: Content, audit: Audit) -> Iterator[Difference]:
    """Yield where an audit is not one of this update: request, labels, threshold, scorecard.

    What an audit does not state (a cap, a direction, the threshold) contradicts nothing. A target
    of the patch must be the target of the audit.
    """
    asked, request = content.asked, audit.request
    pairs: list[tuple[str, Any, Any]] = [
        ("constraints", asked.constraints, request.constraints),
        ("positive_label", content.labels.compared, request.pos_label),
        ("favorable_label", content.labels.favorable, request.favorable_label),
    ]
    if asked.target is not None:
        pairs.append(("target", asked.target, request.target))
    if asked.further != request.further:
        own, audited = map(further_text, (asked.further, request.further))
        pairs.append(("further constraints", own, audited))
    if request.direction != "any":
        pairs.append(("direction", asked.direction, request.direction))
    if request.threshold is not None:
        pairs.append(("threshold", content.base.threshold, request.threshold))
    own_forms = {
        "score_edit": content.score_edit,
        "points": asked.points,
        "max_margin": content.ratio.max_margin,
    }
    forms = ((name, own, getattr(request, name)) for name, own in own_forms.items())
    pairs += [form for form in forms if form[2] is not None]
    stated = ((name, getattr(request, name)) for name in CAPS)
    pairs += [(name, getattr(asked, name), cap) for name, cap in stated if cap is not None]
    for name, ours, theirs in pairs:
        if ours != theirs:
            yield Difference(name, value_text(ours), value_text(theirs))
    if audit.card is not None and _points(audit) != _patch_points(content):
        yield Difference("scorecard", *map(_points_text, (_patch_points(content), _points(audit))))


def _points(audit: Audit) -> list[float]:
    """Return the intercept and, in ascending order, the points of the audited scorecard."""
    card = audit.card
    return [] if card is None else [card.intercept, *sorted(line.points for line in card.lines)]


def _patch_points(content: Content) -> list[float]:
    points = (term.points for column in content.ratio.columns for term in term_points_of(column))
    return [content.ratio.intercept, *sorted(p for p in points if p)]


def _points_text(points: list[float]) -> str:
    return f"intercept {points[0]!r} and {len(points) - 1} terms with points"


# ---------------------------------------------------------------------------------------------
# What a report says about the patch


def shipped_of(content: Content, sha256: str, audit: Audit) -> Shipped:
    """Return what a report states about a patch with this SHA-256, beside this audit."""
    base, labels, asked, left_out = content.base, content.labels, content.asked, content.left_out
    gaps = tuple(_gaps(content, audit))
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
        same_figures=audit.n == content.reached.n_rows and _are_same(gaps),
        gaps=gaps,
        n_groups_left_out=None if left_out is None else left_out.n_groups,
        n_people_left_out=None if left_out is None else left_out.n_people,
        versions=content.versions,
        promised=content.reached.promised,
        score_is_for=labels.positive,
        further=asked.further,
    )


def _gaps(content: Content, audit: Audit) -> Iterator[Gap]:
    reached = content.reached
    counted = label_text(None, content.labels.compared)
    accuracy = None if audit.quality is None else audit.quality.accuracy_after.value
    for (constraint, _), figures in zip(stated_in(content), reached_in(content), strict=True):
        measured = (f for f in audit.fairness if f.constraints == constraint.name)
        fairness = next((f.after.value for f in measured), None)
        yield _gap(constraint.metric_of(counted), "number", figures.after, fairness)
    yield _gap("accuracy", "percent", reached.accuracy_after, accuracy)
    yield _gap("changed decisions", "percent", reached.change_rate, audit.changes.rate.value)


def _gap(name: str, kind: Any, fit: float | None, test: float | None) -> Gap:
    difference = None if fit is None or test is None else test - fit
    return Gap(name, kind, fit, test, difference)


def _are_same(gaps: tuple[Gap, ...]) -> bool:
    differences = [gap.difference for gap in gaps if gap.difference is not None]
    return bool(differences) and all(math.isclose(d, 0, abs_tol=SAME) for d in differences)
