"""Refuse a patch whose parts contradict each other. Types are checked before, on reading."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from commod._data.columns import LARGEST
from commod._record import Value
from commod._text import shorten
from commod.exceptions import InputError
from commod.metrics._constraint import get_constraint
from commod.patch.calibration_check import check_calibration
from commod.patch.constraints_check import check_constraints
from commod.patch.content import (
    SCHEMA,
    BinColumn,
    CategoryColumn,
    Column,
    ColumnOfScore,
    Content,
    DistanceBinColumn,
    NumberColumn,
    Ratio,
    TermPoints,
    before_last_edit,
    figures_of_edit,
    term_points_of,
)
from commod.patch.figures_check import ROUNDING, check_figures
from commod.scorecard import SCORE_CLIP


def check_content(content: Content) -> None:
    """Refuse a content that contradicts itself, for example after an edit by hand."""
    _check_base(content)
    _check_asked(content)
    _check_reached(content)
    _check_origin(content)
    ratio = content.ratio
    _check_evidence(ratio)
    if len(ratio.concept_weights) != len(ratio.concept_intercepts):
        raise InputError(
            f"The patch has {len(ratio.concept_weights)} concept_weights and "
            f"{len(ratio.concept_intercepts)} concept_intercepts; expected one of each per concept."
        )
    _check_numbers("ratio", [ratio.intercept, *ratio.concept_weights, *ratio.concept_intercepts])
    repeated = [n for n, count in Counter(c.name for c in ratio.columns).items() if count > 1]
    if repeated:
        raise InputError(f"The patch has several columns named {min(repeated)!r}; one is allowed.")
    if ratio.max_margin is not None and not 0 <= ratio.max_margin <= LARGEST:
        raise InputError(f"The patch has max_margin {ratio.max_margin!r}; expected 0 or more.")
    for column in ratio.columns:
        _check_column(column)
        for term in term_points_of(column):
            _check_term(column.name, term, ratio.concept_weights)
    check_figures(content)
    check_calibration(content)
    if content.history:
        check_history(content)


def _check_base(content: Content) -> None:
    threshold, labels = content.base.threshold, content.labels
    if not SCORE_CLIP < threshold < 1 - SCORE_CLIP:
        raise InputError(f"The patch has threshold {threshold!r}; it must lie between 0 and 1.")
    if labels.negative == labels.positive:
        raise InputError(f"The patch has the label {labels.positive!r} twice.")
    if _kind(labels.negative) != _kind(labels.positive):
        raise InputError(
            f"The patch mixes labels of different types, {labels.negative!r} and "
            f"{labels.positive!r}; a column of decisions has one type."
        )
    for label in vars(labels).values():
        if type(label) is int and abs(label) >= 2**63:
            raise InputError("The patch has a label that does not fit into 64 bits.")
    if (_kind(labels.favorable), labels.favorable) not in (
        (_kind(labels.negative), labels.negative),
        (_kind(labels.positive), labels.positive),
    ):
        raise InputError(
            f"The patch has the favourable label {labels.favorable!r}, which is neither "
            f"{labels.negative!r} nor {labels.positive!r}."
        )


def _kind(label: Value) -> str:
    return "number" if type(label) in (int, float) else type(label).__name__


def _check_whole(ratio: Ratio) -> None:
    """Refuse points that are no whole numbers where the request asks for such points."""
    points = [term.points for column in ratio.columns for term in term_points_of(column)]
    halves = [ratio.intercept - 0.5] if ratio.evidence is None else []
    if any(points) and not all(float(value).is_integer() for value in (*halves, *points)):
        raise InputError(
            "The patch says that points are whole numbers, but they are not, or its intercept does "
            "not lie halfway between two. Save the update again."
        )


def _check_evidence(ratio: Ratio) -> None:
    """Refuse a rule that no sum can become r by, and one that counts the distance twice."""
    evidence = ratio.evidence
    if evidence is None:
        return
    # Within these bounds no engine overflows. Scores differ by 1 at most.
    bounds = {
        "cut": (1 / LARGEST, LARGEST),
        "nearness": (0.0, 1.0),
        "mean_distance": (1 / LARGEST, 1.0),
    }
    for name, (low, high) in bounds.items():
        value = getattr(evidence, name)
        if not low <= value <= high:
            raise InputError(
                f"ratio.evidence.{name} of the patch is {value!r}; it must lie between {low:g} and "
                f"{high:g}."
            )
    of_score = [column.name for column in ratio.columns if isinstance(column, ColumnOfScore)]
    if of_score:
        raise InputError(
            f"The patch has an evidence rule, which counts the distance from the threshold, and a "
            f"column {of_score[0]!r} that reads the score; expected one of the two."
        )


def _check_asked(content: Content) -> None:
    asked, ratio = content.asked, content.ratio
    check_constraints(content)
    raising_is_gain = content.labels.favorable_above
    gates = {
        "any": (True, True),
        "gains_only": (raising_is_gain, not raising_is_gain),
        "losses_only": (not raising_is_gain, raising_is_gain),
    }
    gate = ratio.may_raise, ratio.may_lower
    # A fit with direction "any" may keep a gate of one direction, where that changes no more.
    is_part = asked.direction == "any" and any(gate)
    if gates.get(asked.direction) != gate and not is_part:
        raise InputError(
            f"The patch has direction {asked.direction!r}, but its gate has may_raise = "
            f"{ratio.may_raise} and may_lower = {ratio.may_lower}."
        )
    if asked.points is not None:
        _check_whole(ratio)
    for name in ("max_changes", "max_accuracy_loss", "max_volume_change", "confidence"):
        _check_share(f"asked.{name}", getattr(asked, name))


def _check_reached(content: Content) -> None:
    reached, asked = content.reached, content.asked
    constraint = get_constraint(asked.constraints)
    if reached.metric != constraint.metric:
        raise InputError(f"The patch has the metric {reached.metric!r} for {asked.constraints!r}.")
    if not 1 <= reached.n_rows < 2**63:
        shown = str(reached.n_rows)[:24]
        raise InputError(f"The patch was fitted on {shown} rows; expected 1 or more.")
    for name in ("fairness_before", "fairness_after"):
        _check_share(f"reached.{name}", getattr(reached, name), constraint.largest)
    for name in ("accuracy_before", "accuracy_after", "change_rate", "limit"):
        _check_share(f"reached.{name}", getattr(reached, name))
    for name in ("n_gains", "n_losses"):
        _check_share(f"reached.{name}", getattr(reached, name), float(reached.n_rows))
    if not re.fullmatch("[0-9a-f]{64}", content.seen.digest):
        raise InputError(
            f"The patch has {content.seen.digest[:80]!r} where a digest of columns is expected."
        )
    try:
        datetime.datetime.fromisoformat(content.created)
    except ValueError as error:
        raise InputError(
            f"The patch was created at {content.created[:40]!r}, which is not a date."
        ) from error


def _check_origin(content: Content) -> None:
    """Check what version 2 of the schema added; None where a file does not know it."""
    if content.schema != SCHEMA:
        raise InputError(f"The patch has schema {content.schema[:80]!r}; expected {SCHEMA!r}.")
    for name, digest in (("an audit", content.audit), ("scores", content.base.scores_digest)):
        if digest is not None and not re.fullmatch("[0-9a-f]{64}", digest):
            raise InputError(f"The patch has {digest[:80]!r} where a digest of {name} is expected.")
    n_rows = content.seen.n_rows
    if n_rows is not None and not content.reached.n_rows <= n_rows < 2**63:
        raise InputError(
            f"The patch was fitted on {str(n_rows)[:24]} rows, but its figures are of "
            f"{content.reached.n_rows} rows."
        )
    left_out = content.left_out
    if left_out is not None and (
        not 0 <= left_out.n_groups < 2**31
        or not 0 <= left_out.n_people < 2**63
        or (left_out.n_people > 0 and not left_out.n_groups)
    ):
        raise InputError(
            f"The patch says that {str(left_out.n_groups)[:24]} groups with "
            f"{str(left_out.n_people)[:24]} people were left out; expected two counts."
        )


def _check_share(name: str, value: float | None, most: float = 1.0) -> None:
    if value is not None and not -ROUNDING <= value <= most + ROUNDING:
        raise InputError(f"{name} of the patch is {value!r}; it must lie between 0 and {most:g}.")


def _check_column(column: Column) -> None:
    if not column.name:
        raise InputError("The patch has a column without a name. Name the column and fit again.")
    if isinstance(column, BinColumn | DistanceBinColumn):
        _check_bins(column)
    elif isinstance(column, CategoryColumn):
        _check_categories(column)
    elif isinstance(column, NumberColumn):
        _check_numbers(column.name, [column.if_missing, column.centre])


def _check_bins(column: BinColumn | DistanceBinColumn) -> None:
    edges = column.edges
    _check_numbers(column.name, edges)
    ends_open = bool(column.bins) and column.bins[-1].below is None
    if not ends_open or not edges or len(edges) != len(column.bins) - 1:
        raise InputError(
            f"Column {column.name!r} of the patch must have two bins or more, the last of them "
            "(and no other) with below = null."
        )
    if any(a >= b for a, b in pairwise(edges)):
        raise InputError(f"Column {column.name!r} of the patch has edges that do not rise.")


def _check_categories(column: CategoryColumn) -> None:
    values = [c.value for c in column.categories]
    numbers = [v for v in values if isinstance(v, int | float)]
    _check_numbers(column.name, numbers)
    if len(set(values)) < len(values) or len(set(map(float, numbers))) < len(numbers):
        raise InputError(
            f"Column {column.name!r} of the patch has the same category twice; numbers are "
            "compared in double precision."
        )
    if column.unseen != 0:
        raise InputError(
            f"Column {column.name!r} of the patch has {column.unseen!r} points for an unseen "
            "category; expected 0."
        )
    if not values and column.missing is None:
        raise InputError(f"Column {column.name!r} of the patch has no term.")


def _check_term(name: str, term: TermPoints, weights: tuple[float, ...]) -> None:
    """Refuse points that are not the sum over the concepts, rounded as a scorecard rounds."""
    if len(term.concepts) != len(weights):
        raise InputError(
            f"Column {name!r} of the patch has a term with {len(term.concepts)} entries in "
            f"concepts; expected {len(weights)}, one per concept."
        )
    _check_numbers(name, [term.points, *term.concepts])
    total = 0.0
    for weight, points in zip(weights, term.concepts, strict=True):
        total += weight * points
    if total != term.points:
        raise InputError(
            f"Column {name!r} of the patch has a term with points {term.points!r}, but its "
            f"concepts add up to {total!r}."
        )


def _check_numbers(name: str, numbers: Iterable[float]) -> None:
    for number in numbers:
        if not abs(number) <= LARGEST:
            raise InputError(
                f"{name!r} in the patch holds {repr(number)[:24]}; expected a number "
                f"within ±{LARGEST:g}."
            )


def check_history(content: Content) -> None:
    """Refuse a history whose versions contradict themselves, or its own figures."""
    reached = content.reached
    while content.history:
        record = content.history[-1].record
        try:
            datetime.datetime.fromisoformat(record.when)
        except ValueError as error:
            raise InputError(
                f"The patch was edited at {record.when[:40]!r}, which is not a date."
            ) from error
        content = before_last_edit(content)
        check_content(replace(content, history=()))
        pairs = (("before", record.before, content.reached), ("after", record.after, reached))
        for name, figures, stated in pairs:
            if figures != figures_of_edit(stated):
                raise InputError(
                    f"The history of the patch says that figures {name} an edit are "
                    f"{shorten(str(figures))}, but the version {name} it has others."
                )
        reached = content.reached
