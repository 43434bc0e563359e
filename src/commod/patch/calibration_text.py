"""Describe the calibration map of a patch in words, and how it differs from another one."""

from __future__ import annotations

from collections.abc import Iterator

from commod._record import ScoreMap
from commod._text import count, plain
from commod.patch.content import Content


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
    if ours == theirs:
        return
    if ours is None or theirs is None:
        state = "lost" if theirs is None else "got"
        yield f"The patch {state} its calibration map."
        return
    if ours.knots != theirs.knots:
        yield f"Calibration map: {_knots_text(ours)} became {_knots_text(theirs)}."
    else:
        yield "The figures of the calibration map differ."
