"""Refuse a calibration map that does not rise, does not keep decisions or has wrong figures."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise

from commod._record import ScoreMap
from commod.exceptions import InputError
from commod.patch.content import Content

MOST_KNOTS = 100
STEEPEST = 1e4  # so that scores that agree to 1e-13 give probabilities that agree to 1e-9


def check_calibration(content: Content) -> None:
    """Refuse what no fitted update can have written; a patch without a map passes."""
    score_map = content.calibration
    if score_map is None:
        return
    _check_knots(score_map, content.base.threshold)
    n_rows, n_seen = score_map.n_rows, content.seen.n_rows
    if not 1 <= n_rows < 2**63 or (n_seen is not None and n_rows > n_seen):
        known = "" if n_seen is None else f" and at most {n_seen}, the fit rows"
        raise InputError(
            f"calibration.n_rows of the patch is {str(n_rows)[:24]}; expected 1 or more{known}."
        )
    for field in fields(score_map):
        value = getattr(score_map, field.name)
        if isinstance(value, float) and not 0 <= value <= 1:
            raise InputError(
                f"calibration.{field.name} of the patch is {value!r}; it must lie between 0 and 1."
            )


def _check_knots(score_map: ScoreMap, threshold: float) -> None:
    knots = score_map.knots
    if not 3 <= len(knots) <= MOST_KNOTS:
        raise InputError(
            f"The calibration map of the patch has {len(knots)} knots; expected 3 to {MOST_KNOTS}."
        )
    if (knots[0].score, knots[-1].score) != (0.0, 1.0):
        raise InputError("The scores of the calibration map of the patch must go from 0 to 1.")
    if not (knots[0].probability >= 0 and knots[-1].probability <= 1):
        raise InputError("The calibration map of the patch has a probability outside [0, 1].")
    for left, right in pairwise(knots):
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
    if score_map.threshold_knot(threshold) is None:
        raise InputError(
            f"The calibration map of the patch does not map the threshold {threshold!r} to "
            "itself, so it would change decisions."
        )
