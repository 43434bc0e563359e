"""Refuse figures of a patch that contradict each other or the request.

A validator reads them, and the digest of a file only says that nobody damaged it by accident.
"""

from __future__ import annotations

from commod._text import label_text
from commod.exceptions import InputError
from commod.patch.constraints_check import reached_in, stated_in
from commod.patch.content import ColumnOfScore, Content

ROUNDING = 1e-9  # of a share: a sum of weights may exceed 1 by this much
FIGURE_ROUNDING = 1e-5  # of a measured figure, which has six digits
FEW_CHANGES = 4  # the limit is computed for a rounded figure, so it may exceed the changes by these


def check_figures(content: Content) -> None:
    """Refuse what no fitted update can have written."""
    _check_counts(content)
    _check_direction(content)
    _check_target(content)
    _check_promise(content)
    _check_unchanged(content)


def _check_counts(content: Content) -> None:
    reached, seen = content.reached, content.seen
    n_read = sum(not isinstance(column, ColumnOfScore) for column in content.ratio.columns)
    if not n_read <= seen.n_columns < 2**31:
        raise InputError(
            f"The patch reads {n_read} columns, but says that the fit rows had "
            f"{str(seen.n_columns)[:24]}."
        )
    for name in ("n_gains", "n_losses", "change_rate", "limit"):
        value = getattr(reached, name)
        if value is not None and value < 0:
            raise InputError(f"reached.{name} of the patch is {value!r}; expected 0 or more.")
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
    limit = reached.limit
    slack = FEW_CHANGES / reached.n_rows
    if limit is not None and rate is not None and limit > rate + slack:
        raise InputError(
            f"The patch has limit {limit!r}, the fewest changes that reach its fairness, but it "
            f"changes {rate!r} of the decisions, which is less."
        )


def _check_direction(content: Content) -> None:
    forbidden = {"gains_only": "n_losses", "losses_only": "n_gains"}.get(content.asked.direction)
    count = None if forbidden is None else getattr(content.reached, forbidden)
    if count:
        raise InputError(
            f"The patch has direction {content.asked.direction!r}, but {count:g} "
            f"{str(forbidden).removeprefix('n_')}; expected none."
        )


def _check_target(content: Content) -> None:
    """Refuse a target that is called met or promised where the fairness misses it.

    An update with evidence may be expected to meet its target on new people, and miss it on the fit
    rows by chance. Then only a promise is compared with its rows.
    """
    asked, reached = content.asked, content.reached
    claims = {"target_met": reached.target_met, "promised": reached.promised}
    if content.ratio.evidence is not None:
        del claims["target_met"]
    claimed = [name for name, is_claimed in claims.items() if is_claimed]
    if asked.target is None or not claimed:
        return
    for (constraint, bound), figures in zip(stated_in(content), reached_in(content), strict=True):
        fairness = figures.after
        if bound is not None and (
            fairness is None or constraint.shortfall(fairness, bound) > FIGURE_ROUNDING
        ):
            shown = "not known" if fairness is None else repr(fairness)
            metric = constraint.metric_of(label_text(None, content.labels.compared))
            raise InputError(
                f"The patch has {claimed[0]} = true for {metric} {constraint.sign} "
                f"{bound:g}, but its fairness_after is {shown}."
            )


def _check_promise(content: Content) -> None:
    asked, reached = content.asked, content.reached
    if reached.promised is None:
        return
    if asked.confidence is None:
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
    pairs = [
        (name, *(getattr(reached, f"{name}_{when}") for when in ("before", "after")))
        for name in ("fairness", "accuracy")
    ]
    pairs += [("fairness", figures.before, figures.after) for figures in reached.further]
    for name, before, after in pairs:
        is_same = before is None or after is None or abs(before - after) <= ROUNDING
        if not is_same or (before is None) != (after is None):
            raise InputError(
                f"The patch has {name} {before!r} before and {after!r} after, but no decision "
                "changed."
            )
