"""Say in `status_` that an update was edited by hand, and what the edit reaches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from commod._record import EditRecord
from commod._text import list_names, n_of, plain


def edit_texts(update: Any, goal: str, *, is_missed: bool, groups: str) -> Iterator[str]:
    """Yield how an update was edited and, where the fit rows miss the goal, what they reach.

    `goal` is such as "P-rule of label 1 ≥ 0.8"; `groups` names the groups that are compared, where
    others are left out.
    """
    last: EditRecord = update.edits_[-1]
    by = "" if last.by is None else f", the last time by {plain(last.by)}"
    times = "once" if len(update.edits_) == 1 else f"{len(update.edits_)} times"
    yield f"The scorecard was edited by hand {times}{by}."
    if last.pinned:
        n_terms = n_of(len(last.pinned), "term")
        yield f"The edit pinned {n_terms}: {list_names([plain(name) for name in last.pinned])}."
    if last.refit:
        yield "All terms that were neither edited nor pinned were fitted again."
    rows = f"on the fit rows {groups}".rstrip()
    if last.offset == "keep":
        is_reached = "is not reached" if is_missed else "is reached"
        yield f"The cut of the earlier update was kept; {goal} {is_reached} {rows}."
    elif is_missed and not (update.reached_ or update._is_budget):
        yield (
            f"{goal} cannot be reached {rows} with these points: the closest value that a cut "
            f"reaches is {update.fairness_:.3f}."
        )


def why_missed(update: Any) -> str:
    """Return why the last edit misses a goal; empty for an update without edits."""
    if not update.edits_:
        return ""
    if update.edits_[-1].offset == "keep":
        return "the cut was kept by hand"
    return "no cut of the edited points reaches it"
