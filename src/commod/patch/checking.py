"""Refuse a patch whose parts contradict each other.

Types are checked before, on reading.
"""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from commod._data.columns import LARGEST
from commod._record.audit import FurtherConstraint
from commod._record.explanation import ScoreMap, Value
from commod._text import label_text, shorten
from commod.exceptions import InputError
from commod.metrics._constraint import Constraint, get_constraint
from commod.metrics._people import read_target
from commod.patch.content import (
    SCHEMA,
    BinnedColumn,
    CategoryColumn,
    Column,
    ColumnOfScore,
    Content,
    FurtherReached,
    Labels,
    NumberColumn,
    TermPoints,
    before_last_edit,
    figures_of_edit,
    term_points_of,
)
from commod.scorecard import SCORE_CLIP

ROUNDING = 1e-9  # of a share: a sum of weights may exceed 1 by this much
FIGURE_ROUNDING = 1e-5  # of a measured figure, which has six digits
FEW_CHANGES = 4  # the limit is computed for a rounded figure, so it may exceed the changes by these
MOST_KNOTS = 100
STEEPEST = 1e4  # so that scores that agree to 1e-13 give probabilities that agree to 1e-9
CAPS = ("max_changes", "max_accuracy_loss", "max_volume_change", "confidence")


def check_content(content: Content) -> None:
    """Refuse a content that contradicts itself, for example after an edit by hand."""
    _check_labels(content.labels, content.base.threshold)
    _check_constraints(content)
    _check_gate(content)
    _check_ranges(content)
    _check_origin(content)
    _check_ratio(content)
    _check_counts(content)
    _check_claims(content)
    _check_unchanged(content)
    if content.calibration is not None:
        _check_calibration(content.calibration, content)
    _check_history(content)


def _check_labels(labels: Labels, threshold: float) -> None:
    if not SCORE_CLIP < threshold < 1 - SCORE_CLIP:
        raise InputError(f"The patch has threshold {threshold!r}; it must lie between 0 and 1.")
    negative, positive, favorable = map(
        _typed, (labels.negative, labels.positive, labels.favorable)
    )
    if labels.negative == labels.positive:
        raise InputError(f"The patch has the label {labels.positive!r} twice.")
    if negative[0] != positive[0]:
        raise InputError(
            f"The patch mixes labels of different types, {labels.negative!r} and "
            f"{labels.positive!r}; a column of decisions has one type."
        )
    if any(type(label) is int and abs(label) >= 2**63 for label in vars(labels).values()):
        raise InputError("The patch has a label that does not fit into 64 bits.")
    if favorable not in (negative, positive):
        raise InputError(
            f"The patch has the favourable label {labels.favorable!r}, which is neither "
            f"{labels.negative!r} nor {labels.positive!r}."
        )


def _typed(label: Value) -> tuple[str, Value]:
    return "number" if type(label) in (int, float) else type(label).__name__, label


def stated_in(content: Content) -> list[tuple[Constraint, float | None]]:
    """Return all constraints of a patch with their bounds, the first one first."""
    asked = content.asked
    first = FurtherConstraint(asked.constraints, asked.target)
    return [(get_constraint(one.constraints), one.bound) for one in (first, *asked.further)]


def reached_in(content: Content) -> list[FurtherReached]:
    """Return the metric of each constraint before and after, in the order of `stated_in`."""
    reached = content.reached
    return [FurtherReached(reached.fairness_before, reached.fairness_after), *reached.further]


def _check_constraints(content: Content) -> None:
    """Refuse names that are not constraints, bounds out of range, and missing figures."""
    stated, asked, reached = stated_in(content), content.asked, content.reached
    for constraint, bound in stated:
        if bound is not None:
            read_target(constraint, bound)
    if len({constraint.name for constraint, _ in stated}) < len(stated):
        raise InputError("The patch states the same constraint twice.")
    if len(asked.further) != len(reached.further):
        raise InputError(
            f"The patch states {len(asked.further)} further constraints, but has figures of "
            f"{len(reached.further)}."
        )
    if reached.metric != stated[0][0].metric:
        raise InputError(f"The patch has the metric {reached.metric!r} for {asked.constraints!r}.")


def _check_gate(content: Content) -> None:
    asked, ratio, raising_is_gain = content.asked, content.ratio, content.labels.favorable_above
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
    points = ratio.term_points
    halves = [ratio.intercept - 0.5] if ratio.evidence is None else []
    are_whole = not any(points) or all(float(value).is_integer() for value in (*halves, *points))
    if asked.points is not None and not are_whole:
        raise InputError(
            "The patch says that points are whole numbers, but they are not, or its intercept does "
            "not lie halfway between two. Save the update again."
        )


# ---------------------------------------------------------------------------------------------
# Numbers, counts, digests and dates


def _check_ranges(content: Content) -> None:
    """Refuse a number that lies outside its range; None is not known."""
    reached, stated = content.reached, stated_in(content)
    n_rows, largest = reached.n_rows, stated[0][0].largest
    if not 1 <= n_rows < 2**63:
        raise InputError(f"The patch was fitted on {str(n_rows)[:24]} rows; expected 1 or more.")
    ends = {"fairness_before": largest, "fairness_after": largest}
    ends |= dict.fromkeys(("accuracy_before", "accuracy_after", "change_rate", "limit"), 1.0)
    ends |= dict.fromkeys(("n_gains", "n_losses"), float(n_rows))
    for name in CAPS:
        _check_share(f"asked.{name}", getattr(content.asked, name))
    for name, most in ends.items():
        _check_share(f"reached.{name}", getattr(reached, name), most)
    for (constraint, _), figures in zip(stated[1:], reached.further, strict=True):
        for when, value in vars(figures).items():
            _check_share(f"The {constraint.metric} {when}", value, constraint.largest)


def _check_share(name: str, value: float | None, most: float = 1.0) -> None:
    if value is not None and not 0 <= value <= most + ROUNDING:
        raise InputError(f"{name} of the patch is {value!r}; it must lie between 0 and {most:g}.")


def _check_numbers(name: str, numbers: Iterable[float]) -> None:
    for number in numbers:
        if not abs(number) <= LARGEST:
            raise InputError(
                f"{name!r} in the patch holds {repr(number)[:24]}; expected a number "
                f"within ±{LARGEST:g}."
            )


def _check_origin(content: Content) -> None:
    """Check where a patch comes from; None if a file does not know it."""
    digests = {
        "columns": content.seen.digest,
        "an audit": content.audit,
        "scores": content.base.scores_digest,
    }
    for of, digest in digests.items():
        if digest is not None and not re.fullmatch("[0-9a-f]{64}", digest):
            raise InputError(f"The patch has {digest[:80]!r} where a digest of {of} is expected.")
    _check_date("created", content.created)
    if content.schema != SCHEMA:
        raise InputError(f"The patch has schema {content.schema[:80]!r}; expected {SCHEMA!r}.")
    n_rows, left_out = content.seen.n_rows, content.left_out
    if n_rows is not None and not content.reached.n_rows <= n_rows < 2**63:
        raise InputError(
            f"The patch was fitted on {str(n_rows)[:24]} rows, but its figures are of "
            f"{content.reached.n_rows} rows."
        )
    if left_out is not None and (
        not 0 <= left_out.n_groups < 2**31
        or not 0 <= left_out.n_people < 2**63
        or (left_out.n_people > 0 and not left_out.n_groups)
    ):
        raise InputError(
            f"The patch says that {str(left_out.n_groups)[:24]} groups with "
            f"{str(left_out.n_people)[:24]} people were left out; expected two counts."
        )


def _check_date(what: str, text: str) -> None:
    try:
        datetime.datetime.fromisoformat(text)
    except ValueError as error:
        raise InputError(f"The patch was {what} at {text[:40]!r}, which is not a date.") from error


# ---------------------------------------------------------------------------------------------
# The rule


def _check_ratio(content: Content) -> None:
    ratio = content.ratio
    _check_evidence(content)
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


def _check_evidence(content: Content) -> None:
    """Refuse a rule that no sum can become r by, and one that counts the distance twice."""
    evidence = content.ratio.evidence
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
    of_score = [c.name for c in content.ratio.columns if isinstance(c, ColumnOfScore)]
    if of_score:
        raise InputError(
            f"The patch has an evidence rule, which counts the distance from the threshold, and a "
            f"column {of_score[0]!r} that reads the score; expected one of the two."
        )


def _check_column(column: Column) -> None:
    if not column.name:
        raise InputError("The patch has a column without a name. Name the column and fit again.")
    if isinstance(column, CategoryColumn):
        _check_categories(column)
    elif isinstance(column, NumberColumn):
        _check_numbers(column.name, [column.if_missing, column.centre])
    elif isinstance(column, BinnedColumn):
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


def _check_calibration(score_map: ScoreMap, content: Content) -> None:
    """Refuse a map that does not rise, does not keep decisions or has wrong figures."""
    knots, threshold = score_map.knots, content.base.threshold
    if not 3 <= len(knots) <= MOST_KNOTS:
        raise InputError(
            f"The calibration map of the patch has {len(knots)} knots; expected 3 to {MOST_KNOTS}."
        )
    if (knots[0].score, knots[-1].score) != (0.0, 1.0):
        raise InputError("The scores of the calibration map of the patch must go from 0 to 1.")
    if not (knots[0].probability >= 0 and knots[-1].probability <= 1):
        raise InputError("The calibration map of the patch has a probability outside [0, 1].")
    _check_rise(score_map)
    if score_map.threshold_knot(threshold) is None:
        raise InputError(
            f"The calibration map of the patch does not map the threshold {threshold!r} to "
            "itself, so it would change decisions."
        )
    n_seen = content.seen.n_rows
    if not 1 <= score_map.n_rows < 2**63 or (n_seen is not None and score_map.n_rows > n_seen):
        known = "" if n_seen is None else f" and at most {n_seen}, the fit rows"
        raise InputError(
            f"calibration.n_rows of the patch is {str(score_map.n_rows)[:24]}; expected 1 or "
            f"more{known}."
        )
    for name, value in vars(score_map).items():
        if isinstance(value, float):
            _check_share(f"calibration.{name}", value)


def _check_rise(score_map: ScoreMap) -> None:
    for left, right in pairwise(score_map.knots):
        if left.score >= right.score or left.probability >= right.probability:
            raise InputError(
                f"The calibration map of the patch does not rise from the knot at "
                f"{left.score!r} to the next one."
            )
        if right.probability - left.probability > STEEPEST * (right.score - left.score):
            raise InputError(
                f"The calibration map of the patch is steeper than {STEEPEST:g} at the knot "
                f"{left.score!r}, so engines could disagree."
            )


# ---------------------------------------------------------------------------------------------
# Figures that contradict each other or the request


def _check_counts(content: Content) -> None:
    reached, seen = content.reached, content.seen
    n_read = len(content.ratio.frame_columns)
    if not n_read <= seen.n_columns < 2**31:
        raise InputError(
            f"The patch reads {n_read} columns, but says that the fit rows had "
            f"{str(seen.n_columns)[:24]}."
        )
    gains, losses, rate = reached.n_gains, reached.n_losses, reached.change_rate
    if gains is not None and losses is not None:
        expected = (gains + losses) / reached.n_rows
        if expected > 1 + ROUNDING:
            raise InputError(
                f"The patch has {gains:g} gains and {losses:g} losses, more than its "
                f"{reached.n_rows} rows."
            )
        if rate is not None and abs(rate - expected) > ROUNDING:
            raise InputError(
                f"The patch has change_rate {rate!r}, but {gains:g} gains and {losses:g} losses "
                f"of {reached.n_rows} rows are {expected:g}."
            )
    limit, slack = reached.limit, FEW_CHANGES / reached.n_rows
    if limit is not None and rate is not None and limit > rate + slack:
        raise InputError(
            f"The patch has limit {limit!r}, the fewest changes that reach its fairness, but it "
            f"changes {rate!r} of the decisions, which is less."
        )


def _check_claims(content: Content) -> None:
    """Refuse changes in a direction that was excluded, and a target or promise that is not kept.

    An update with evidence may be expected to meet its target on new people, and miss it on the fit
    rows by chance. Then only a promise is compared with its rows.
    """
    asked, reached = content.asked, content.reached
    forbidden = {"gains_only": "losses", "losses_only": "gains"}.get(asked.direction)
    count = getattr(reached, f"n_{forbidden}", None)
    if count:
        raise InputError(
            f"The patch has direction {asked.direction!r}, but {count:g} {forbidden}; expected "
            "none."
        )
    claims = {"target_met": reached.target_met, "promised": reached.promised}
    if content.ratio.evidence is not None:
        del claims["target_met"]
    claimed = next((name for name, is_claimed in claims.items() if is_claimed), None)
    for (constraint, bound), figures in zip(stated_in(content), reached_in(content), strict=True):
        if asked.target is None or claimed is None or bound is None:
            continue
        fairness = figures.after
        if fairness is None or constraint.shortfall(fairness, bound) > FIGURE_ROUNDING:
            shown = "not known" if fairness is None else repr(fairness)
            metric = constraint.metric_of(label_text(None, content.labels.compared))
            raise InputError(
                f"The patch has {claimed} = true for {metric} {constraint.sign} "
                f"{bound:g}, but its fairness_after is {shown}."
            )
    if reached.promised is not None and asked.confidence is None:
        raise InputError(
            f"The patch has promised = {str(reached.promised).lower()}, but no confidence was "
            "requested; a promise has a confidence."
        )
    if reached.promised and asked.target is None:
        raise InputError("The patch has promised = true, but no target that could be promised.")


def _check_unchanged(content: Content) -> None:
    """Refuse figures that differ before and after although no decision changed."""
    reached = content.reached
    if reached.change_rate != 0 and (reached.n_gains, reached.n_losses) != (0, 0):
        return
    accuracy = FurtherReached(reached.accuracy_before, reached.accuracy_after)
    first, *further = reached_in(content)
    named = [("fairness", first), ("accuracy", accuracy), *(("fairness", one) for one in further)]
    for name, (before, after) in ((name, vars(figures).values()) for name, figures in named):
        is_same = before is None or after is None or abs(before - after) <= ROUNDING
        if not is_same or (before is None) != (after is None):
            raise InputError(
                f"The patch has {name} {before!r} before and {after!r} after, but no decision "
                "changed."
            )


def _check_history(content: Content) -> None:
    """Refuse a history whose versions contradict themselves, or its own figures."""
    reached = content.reached
    while content.history:
        record = content.history[-1].record
        _check_date("edited", record.when)
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
