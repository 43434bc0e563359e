"""Hold one draft of an exploration: a fitted update, and edits whose figures are not all built."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from itertools import takewhile
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Floats, Mask
from commod._data.columns import Column
from commod._data.tables import take_rows
from commod._explore.edits import (
    FittedRows,
    PointsWithCut,
    build,
    edited_points,
    fitted_points,
    points_at_targets,
    points_with_cut,
)
from commod._record.audit import Audit
from commod._record.edits import Lock, SetPoints, edit_words
from commod._record.explanation import Segments, Step, TradeOff
from commod._reporting.audit.assembly import first_screen
from commod._reporting.audit.people import (
    ShownPeople,
    add_label_names,
    count_people,
    read_people,
    with_conditions,
)
from commod._reporting.explain import Explanation, SegmentFinder, explain
from commod._reporting.explain.reasons import distance_column
from commod._reporting.explain.segments import FrameColumns
from commod._text import list_names
from commod.exceptions import InputError
from commod.updates._edit import EditPlan, EditRows, set_by_hand
from commod.updates.controlled import ControlledDebiaser

N_TARGETS = 10  # of the trade-off
ROWS = "rows of this page"
PAUSE = timedelta(minutes=10)  # after which points that are set begin another recorded edit
LEVEL = 0.95  # of all intervals


@dataclass(frozen=True, eq=False)
class FittedBase(FittedRows):
    """A fitted update with its rows, and people whom the first screen counts.

    `pause` is called between the steps of slower parts, with their draft.
    """

    label_names: Mapping[Any, str] | None = None
    pause: Callable[[Draft], None] = lambda _: None
    _built: list[tuple[EditPlan, Any]] = field(default_factory=list, init=False)
    _lock: threading.RLock = field(default_factory=threading.RLock, init=False)

    @property
    def pins(self) -> dict[str, float]:
        """Return the points of terms that people have set, and that further fits keep, by name."""
        card, is_set = self.update.scorecard_, set_by_hand(self.update)
        named = zip(card.encoding.term_names, card.points.tolist(), is_set, strict=True)
        return {name: points for name, points, is_pinned in named if is_pinned}

    def pins_outside(self, locked: Collection[str], pins: Mapping[str, float]) -> dict[str, float]:
        """Return pins without those of locked columns."""
        encoding = self.encoding
        column_of = dict(zip(encoding.term_names, encoding.term_columns, strict=True))
        return {name: to for name, to in pins.items() if column_of.get(name) not in locked}

    @property
    def asked(self) -> dict[str, Any]:
        """Return what the fit asked for: its parameters, and points that it had to keep."""
        return {**self.update._fitted_params(), "pins": self.pins}

    @cached_property
    def screen(self) -> ShownPeople:
        """Return the people for the first screen, read once."""
        update, people = self.update, self.people
        before, request = update._labels_of(self.before), update.request()
        labels = {"y_before": before, "y_after": before, "y_true": people.y}
        unknown_groups = update._fitted_param("unknown_groups", "error")
        groups = people.sensitive_features
        everybody = read_people(labels, {}, groups, request, unknown_groups=unknown_groups)
        return count_people(
            with_conditions(everybody, request, people.X),
            request,
            self.label_names,
            rows=ROWS,
            level=LEVEL,
            min_group_size=update._fitted_param("min_group_size"),
        )

    def _with(self, update: ControlledDebiaser, rows: EditRows, **known: Any) -> Self:
        base = super()._with(update, rows, **known)
        asked = add_label_names(update.request(), self.screen.people, self.label_names)
        vars(base)["screen"] = replace(self.screen, request=asked)
        return base

    @property
    def shown(self) -> Mask:
        """Return who is in no hidden group, (n,)."""
        return self.screen.is_shown

    def first(self, words: str, **told: str | None) -> Draft:
        """Return the fitted update as a draft without edits; `told` are by, note and when."""
        return Draft(self, (), fitted_points(self), words, **told)

    def built(self, plans: tuple[EditPlan, ...]) -> Any:
        """Return the update after edits; those that it shares with the last one are kept."""
        with self._lock:
            pairs = zip(self._built, plans, strict=False)
            del self._built[sum(1 for _ in takewhile(lambda pair: pair[0][0] is pair[1], pairs)) :]
            for plan in plans[len(self._built) :]:
                update = self._built[-1][1] if self._built else self.update
                self._built.append((plan, build(update, self, plan)))
            return self._built[-1][1] if self._built else self.update


@dataclass(frozen=True, eq=False)
class Draft:
    """A fitted update and edits of it. Figures are computed on first use.

    `words` say what was done last; `by`, `note` and `when` say who did it, why and at which time.
    """

    base: FittedBase
    plans: tuple[EditPlan, ...]
    now: PointsWithCut
    words: str
    by: str | None = None
    note: str | None = None
    when: str | None = None

    def edited(self, plan: EditPlan) -> Draft:
        """Return the draft after one more edit."""
        edited = edited_points(self.base, self.now.points, plan.edits)
        self._check_locks(plan, edited.is_edited)
        now = points_with_cut(self.base, self.now, edited, plan, self._locked_by_edits)
        words = ", ".join(map(edit_words, plan.edits))
        return Draft(self.base, self.plans_with(plan), now, words)

    def plans_with(self, plan: EditPlan) -> tuple[EditPlan, ...]:
        """Return the recorded edits after one more.

        Points that one person sets for one reason, without a pause, are one edit: its points, its
        cut and its figures are those of the last stop. An update that was built stays as it is,
        because somebody may have signed it.
        """
        last = self.plans[-1] if self.plans and "update" not in vars(self) else None
        if last is None or not _are_one_edit(last, plan):
            return (*self.plans, plan)
        names = {edit.name for edit in plan.edits if isinstance(edit, SetPoints)}
        kept = [one for one in last.edits if isinstance(one, SetPoints) and one.name not in names]
        return (*self.plans[:-1], plan._replace(edits=(*kept, *plan.edits)))

    def _check_locks(self, plan: EditPlan, is_edited: Mask) -> None:
        """Refuse edits of locked columns, and to lock the last one: no term would be left."""
        columns = np.array(self.base.encoding.term_columns)[is_edited]
        if gone := set(columns) & set(self._locked_by_edits):
            raise InputError(
                f"edits names terms of {list_names(sorted(gone))}, which an earlier edit has "
                "locked. Return to a step before the lock.",
                parameter="edits",
            )
        named = [edit.name for edit in plan.edits if isinstance(edit, Lock)]
        if named and set(self.base.encoding.term_columns) <= {*self.locked, *named}:
            raise InputError(
                "edits locks every column of the scorecard, so no term would be left. Drop them "
                "instead, or keep a column.",
                parameter="edits",
            )

    def told(self, **fields: Any) -> Draft:
        """Return the draft in other words: the same points, and the same first screen."""
        draft = replace(self, **fields)
        vars(draft)["audit"] = self.audit
        return draft

    def replaces(self, earlier: Draft) -> bool:
        """Return whether the last recorded edit of an earlier draft was one of fewer stops."""
        return self.base is earlier.base and len(self.plans) == len(earlier.plans)

    def points_of(self, names: Collection[str]) -> Floats:
        """Return the points of terms by their names; 0 for a term that is not on the scorecard."""
        known = dict(zip(self.base.encoding.term_names, self.now.points, strict=True))
        return np.array([known.get(name, 0.0) for name in names])

    @property
    def asked(self) -> dict[str, Any]:
        """Return what a fit like this one asks for, with locks and points of edits."""
        return {
            **self.base.asked,
            "locked_features": tuple(self.locked),
            "pins": self.base.pins_outside(self.locked, self._points_at(self.base.pins)),
        }

    @property
    def set_points(self) -> dict[str, float]:
        """Return the points of terms that were pinned or edited, by name; without locked ones."""
        names = np.array(self.base.encoding.term_names)
        is_edited = self.now.points != self.base.update.scorecard_.points
        points = self._points_at([*self.base.pins, *names[is_edited].tolist()])
        return self.base.pins_outside(self.locked, points)

    def _points_at(self, names: Collection[str]) -> dict[str, float]:
        return dict(zip(names, self.points_of(names).tolist(), strict=True))

    @property
    def locked(self) -> list[str]:
        """Return the columns that the update must not read: those of its fit and of edits."""
        fitted = [str(name) for name in self.base.update._fitted_param("locked_features")]
        return list(dict.fromkeys([*fitted, *self._locked_by_edits]))

    @property
    def _locked_by_edits(self) -> tuple[str, ...]:
        named = [edit.name for plan in self.plans for edit in plan.edits if isinstance(edit, Lock)]
        return tuple(dict.fromkeys(named))

    @cached_property
    def prices(self) -> dict[str, Any]:
        """Return the prices of wishes that are known so far; the page fills them in."""
        return {}

    @cached_property
    def audit(self) -> Audit:
        """Return the figures of the first screen."""
        return first_screen(self.base.screen, self.now.after, self.now.expected)

    @cached_property
    def update(self) -> Any:
        """Return the edited update with all figures; built on first use."""
        return self.base.built(self.plans)

    @cached_property
    def explanation(self) -> Explanation:
        """Return the explanation of the built update on the rows."""
        return explain(self.update, self.base.people.X)

    def favorable(self, decisions: Mask) -> Mask:
        """Return who has the favourable one of decisions (n,), outside hidden groups."""
        update = self.base.update
        return decisions[self.base.shown] == bool(update._pos_label == update._favorable_label)

    @cached_property
    def segments(self) -> Segments:
        """Return rules that describe who changes; people of hidden groups are in none."""
        return self.segments_after(self.base.before)

    def differing(self, kept: Draft) -> Iterator[tuple[str, list[int]]]:
        """Yield each group and how many of its people another draft decides differently.

        The counts are: people, decided differently, gains with the other draft only, with this one
        only, and the same for losses.
        """
        people = self.base.screen.people
        decisions = self.base.before, self.now.after, kept.now.after
        before, ours, theirs = map(self.favorable, decisions)
        one_only = theirs & ~ours, ours & ~theirs
        kinds = [np.ones_like(ours), ours != theirs, *(only & ~before for only in one_only)]
        kinds += [only & before for only in reversed(one_only)]
        for code, name in enumerate(people.group_names):
            is_here = people.groups.codes == code
            if is_here.any():
                yield name, [int(kind[is_here].sum()) for kind in kinds]

    def segments_after(self, before: Mask) -> Segments:
        """Return rules that tell whose decision differs from an earlier one, `before` (n,)."""
        update, shown, fitted = self.base.update, self.base.shown, self.base
        before, after = self.favorable(before), self.favorable(self.now.after)
        scores = fitted.as_given(fitted.problem.rows.base.deployed.scores)[shown]
        distance = distance_column(scores, float(update._fitted_param("threshold")))
        X = self.base.people.X
        source = PausedColumns(
            X if shown.all() else take_rows(X, np.flatnonzero(shown)),
            skip=update._unread_columns(),
            added=[distance] if self.now.rule.nearness else [],
            pause=self._pause,
        )
        segments, _ = SegmentFinder(source, before).find(~before & after, before & ~after)
        return segments

    def _pause(self) -> None:
        self.base.pause(self)

    @cached_property
    def trade_off(self) -> tuple[TradeOff, int]:
        """Return these points with cuts for other targets, and the place of the draft itself."""
        fitted = self.base
        problem, rows = fitted.problem, fitted.problem.rows
        steps = []
        for target, after in points_at_targets(fitted, self.now, N_TARGETS):
            self._pause()
            steps.append(self._step(after, target))
        own = self._step(fitted.as_in_problem(self.now.after))
        others = [step for step in steps if step.n_changes != own.n_changes]
        higher = problem.constraint.higher_is_fairer
        listed = sorted([*others, own], key=lambda s: s.fairness if higher else -s.fairness)
        accuracy = rows.accuracy(rows.base.decisions)
        curve = TradeOff(
            constraints=self.base.screen.request.constraints,
            metric=problem.constraint.metric,
            method="this scorecard",
            rows=ROWS,
            n_rows=int(self.base.shown.sum()),
            base_fairness=problem.base_fairness,
            base_accuracy=None if np.isnan(accuracy) else accuracy,
            steps=tuple(listed),
            higher_is_fairer=higher,
        )
        return curve, listed.index(own)

    def _step(self, after: Mask, target: float | None = None) -> Step:
        """Return decisions (n,) as a step of the trade-off; hidden groups are not counted.

        The decisions are in the order of the problem. The draft itself has no target.
        """
        fitted = self.base
        problem, rows = fitted.problem, fitted.problem.rows
        before, shown = rows.base.decisions, fitted.as_in_problem(self.base.shown)
        fairness = rows.fairness(problem.constraint, after)
        raised, lowered = int((after & ~before)[shown].sum()), int((~after & before)[shown].sum())
        gains, losses = (raised, lowered) if problem.asked.raising_is_a_gain else (lowered, raised)
        share = (gains + losses) / max(int(shown.sum()), 1)
        known = rows.accuracy(after), problem.limit(fairness)
        accuracy, limit = (value if np.isfinite(value) else None for value in known)
        counts = gains + losses, gains, losses
        return Step(target, fairness, accuracy, share, *counts, limit, {}, None, None)


def _are_one_edit(last: EditPlan, plan: EditPlan) -> bool:
    """Return whether one person has set points for one reason, without a long pause."""
    told = {(one.by, one.note, one.offset) for one in (last, plan)}
    is_set = all(isinstance(edit, SetPoints) for edit in (*last.edits, *plan.edits))
    if len(told) > 1 or not is_set or last.when is None or plan.when is None:
        return False
    return datetime.fromisoformat(plan.when) - datetime.fromisoformat(last.when) <= PAUSE


# ---------------------------------------------------------------------------------------------
# Give up slower parts of the page when the hand moves


class OutdatedError(Exception):
    """Another draft than that of a slower part is shown by now, or soon will be."""


@dataclass(frozen=True)
class PausedColumns(FrameColumns):
    """The columns of a table; `pause` is called between them."""

    pause: Callable[[], None] = lambda: None

    def read_rows(self, rows: NDArray[np.intp]) -> list[Column]:
        """Return all readable columns with the given rows only."""
        self.pause()
        return super().read_rows(rows)

    def read_columns(self, names: Collection[str]) -> Iterator[Column]:
        """Yield the named columns with all rows, one after the other."""
        for column in super().read_columns(names):
            self.pause()
            yield column
