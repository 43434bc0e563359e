"""Say whom an update changes: people who score near the other decision, or far from it."""

from __future__ import annotations

from collections.abc import Mapping

from commod._text import outscoring_text
from commod.metrics._outscoring import Change, PairShare
from commod.metrics._pairs import change_shares
from commod.updates._fit_rows import FitRows
from commod.updates._interface import Decisions

DIRECTIONS: tuple[Change, ...] = ("gain", "loss")
FIGURES = ("value", "low", "high", "true_share_changed", "true_share_others")
WholeFigures = dict[str, dict[str, float]]


def outscoring_figures(rows: FitRows, positive: Decisions, raising_is_a_gain: bool) -> WholeFigures:
    """Return, for gains and for losses, how those who change score beside those who do not.

    Each entry has the `value`, `low` and `high` of `commod.metrics.outscoring_probability` within
    the groups of the constraint, and the shares of both sides whose true label is favourable.
    `positive` (n,) holds the new decisions, or probabilities of a positive one.
    """
    if rows.people is not None:  # scores of single people are not known
        return {change: dict.fromkeys(FIGURES, float("nan")) for change in DIRECTIONS}
    changed = change_shares(rows.base.decisions, positive)
    sides = rows.sides if raising_is_a_gain else rows.sides.turned()
    label = rows.label if raising_is_a_gain or rows.label is None else ~rows.label
    figures: WholeFigures = {}
    for change in DIRECTIONS:
        measured = sides.outscoring(changed, change, is_truly_favorable=label)
        figures[change] = {
            "value": measured.value,
            "low": measured.low,
            "high": measured.high,
            "true_share_changed": measured.true_share_changed,
            "true_share_others": measured.true_share_others,
        }
    return figures


def outscoring_sentences(figures: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Return a sentence for gains and one for losses; none for what does not occur."""
    texts = (
        outscoring_text(change, PairShare(own["value"], own["low"], own["high"]))
        for change, own in figures.items()
    )
    return list(filter(None, texts))
