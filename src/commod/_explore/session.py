"""Hold the state of an exploration: drafts with undo and redo, a kept draft, and a running fit.

Every public method answers one request of the page. Methods may be called from several threads.
A request that changes something names the version it has seen: where another tab was faster, the
request is refused and nothing changes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from commod._data.codes import plain
from commod._explore import views
from commod._explore.draft import Draft, FittedBase
from commod._explore.edits import EditPlan, FittedRows, PeopleOfFit, find_terms, read_edits
from commod._explore.job import FitJob
from commod._explore.python_text import python_text
from commod._explore.request import changed_parameters, request_view
from commod._explore.saving import patch_bytes, report_bytes
from commod._explore.turns import OutdatedError, Turns
from commod._explore.worker import Worker
from commod._text import shown
from commod.exceptions import CommodError, InputError

MAX_DRAFTS = 200  # that undo can return to
MAX_TEXT = 500  # characters of a name, a note or a search


class VersionConflictError(CommodError):
    """Another tab has changed the exploration since the page last looked."""


class Session:
    """One exploration of a fitted update.

    Parameters
    ----------
    update : fitted ControlledDebiaser
        Where the exploration begins. It is never changed.
    people : PeopleOfFit
        The rows; they never leave this object.
    label_names : mapping of label to str, default=None
        What the labels mean.
    """

    def __init__(
        self, update: Any, people: PeopleOfFit, label_names: Mapping[Any, str] | None = None
    ) -> None:
        self._people, self._label_names = people, label_names
        self._lock = threading.RLock()
        self._turns = Turns()
        self._drafts = [self._base(update).first("the fitted update")]
        self._place = 0
        self._kept: Draft | None = None
        self._previewed: Draft | None = None
        self._version = 1
        self._worker = Worker(people, update.estimator_)
        self._job: FitJob | None = None

    def _base(self, update: Any) -> FittedBase:
        return FittedBase(FittedRows(update, self._people), self._label_names, self._pause)

    def _pause(self, draft: Draft) -> None:
        """Let edits go first, and give up a part of a draft that is not the present one."""
        self._turns.give_way()
        if self.draft is not draft:
            raise OutdatedError

    def warm_up(self) -> None:
        """Start the process that fits; the first fit then needs not wait for it."""
        self._worker.warm_up()

    def close(self) -> None:
        """Stop a running fit and its process."""
        with self._lock:
            if self._job is not None:
                self._job.stop()
        self._worker.stop()

    @property
    def draft(self) -> Draft:
        """Return the present draft."""
        with self._lock:
            return self._drafts[self._place]

    @property
    def update(self) -> Any:
        """Return the present update with all its figures."""
        return self.draft.update

    # -- the whole state ------------------------------------------------------------------------

    def state(self, seen: int | None = None) -> dict[str, Any]:
        """Return all that the page shows at once; without a draft where its version was `seen`."""
        with self._lock:
            draft, place, version = self.draft, self._place, self._version
            history = [one.words for one in self._drafts]
            kept, job = self._kept, self._job
        small = {
            "version": version,
            "job": None if job is None else job.view(),
            "place": place,
            "history": [plain(words) for words in history[-MAX_DRAFTS:]],
            "can_undo": place > 0,
            "can_redo": place + 1 < len(history),
        }
        if seen == version:
            return small
        return {
            **small,
            "screen": views.screen_view(draft),
            "card": views.terms_view(draft),
            "request": request_view(draft),
            "compared": None if kept is None else views.compared_view(kept, draft),
        }

    # -- edits ------------------------------------------------------------------------------------

    def preview(self, edits: Any, offset: Any = "target") -> dict[str, Any]:
        """Return the first screen after edits that are not kept."""
        with self._turns.edit():
            return {"screen": views.screen_view(self._edited(_plan(edits, offset)))}

    def _edited(self, plan: EditPlan) -> Draft:
        """Return the present draft after an edit; one that was previewed last is known."""
        with self._lock:
            present, previewed = self.draft, self._previewed
        if previewed is None or previewed.parent is not present or not _is_same(previewed, plan):
            previewed = present.edited(plan)
        with self._lock:
            self._previewed = previewed
        return previewed.recorded(plan)

    def edit(
        self, version: Any, edits: Any, offset: Any = "target", by: Any = None, note: Any = None
    ) -> dict[str, Any]:
        """Keep edits as the next draft."""
        plan = _plan(edits, offset, _text(by, "by"), _text(note, "note"))
        with self._turns.edit(), self._lock:
            self._check_version(version)
            self._append(self._edited(plan))
            return self.state()

    def undo(self, version: Any) -> dict[str, Any]:
        """Go back to the draft before the present one."""
        return self._move(version, -1)

    def redo(self, version: Any) -> dict[str, Any]:
        """Go on to the draft after the present one."""
        return self._move(version, 1)

    def _move(self, version: Any, step: int) -> dict[str, Any]:
        with self._lock:
            self._check_version(version)
            if not 0 <= self._place + step < len(self._drafts):
                raise InputError("There is nothing to undo." if step < 0 else "Nothing to redo.")
            self._place += step
            self._version += 1
        return self.state()

    def _append(self, draft: Draft) -> None:
        """Make a draft the present one; those that were undone are dropped."""
        self._drafts = [*self._drafts[: self._place + 1], draft][-MAX_DRAFTS:]
        self._place = len(self._drafts) - 1
        self._version += 1

    def _check_version(self, version: Any) -> None:
        if version != self._version:
            raise VersionConflictError(
                "Another tab has changed the update meanwhile. The page now shows the new state; "
                "repeat the change where it is still wanted."
            )

    # -- fits --------------------------------------------------------------------------------------

    def fit(self, version: Any, request: Any) -> dict[str, Any]:
        """Begin to search for another update, with a target, caps or locked columns changed."""
        draft = self.draft
        update = type(draft.base.update)(**changed_parameters(draft, request))
        return self._begin(version, ("fit", update), "fitted again")

    def refit(self, version: Any, by: Any = None, note: Any = None) -> dict[str, Any]:
        """Begin to fit all terms again that were not edited; edited ones keep their points."""
        draft = self.draft
        names = draft.base.fitted.encoding.term_names
        pinned = [name for name, edited in zip(names, draft.is_edited, strict=True) if edited]
        if not pinned:
            raise InputError("No term was edited, so there is nothing to fit the others beside.")
        columns = draft.base.fitted.encoding.term_columns
        column_of = dict(zip(names, columns, strict=True))
        pin = tuple(name for name in pinned if column_of[name] not in draft.locked)
        for name in pin:
            find_terms(draft.base.fitted.encoding, name, parameter="pin")
        plan = EditPlan((), pin, "target", True, _text(by, "by"), _text(note, "note"))
        return self._begin(version, ("edit", (draft, plan)), "fitted the other terms again")

    def _begin(self, version: Any, task: tuple[str, Any], words: str) -> dict[str, Any]:
        with self._lock:
            self._check_version(version)
            if self._job is not None and self._job.is_running:
                raise InputError("A fit is running already. Wait for it, or stop it first.")
            self._job = FitJob(self._worker, task, words, self._take)
            self._job.start()
        return self.state(self._version)

    def _take(self, job: FitJob, update: Any) -> None:
        """Make the result of a fit the present draft, unless the fit was stopped."""
        draft = self._base(update).first(job.words)
        draft.audit  # noqa: B018 - counted here, so that the page need not wait for it
        with self._lock:
            if self._job is job and not job.is_stopped:
                self._append(draft)

    def stop(self) -> dict[str, Any]:
        """Stop the running fit; nothing changes."""
        with self._lock:
            if self._job is not None:
                self._job.stop()
            return self.state(self._version)

    # -- further views -------------------------------------------------------------------------

    def terms(self, search: Any = "") -> dict[str, Any]:
        """Return the terms of the scorecard whose name contains some text."""
        return views.terms_view(self.draft, _text(search, "search") or "")

    def segments(self) -> dict[str, Any]:
        """Return rules that describe who changes."""
        return self._slower_part(views.segments_view)

    def trade_off(self) -> dict[str, Any]:
        """Return changes against fairness with the present point."""
        return self._slower_part(views.trade_off_view)

    def _slower_part(self, view: Callable[[Draft], dict[str, Any]]) -> dict[str, Any]:
        """Return a view of the present draft, or that another draft has taken its place."""
        with self._lock:
            version, draft = self._version, self.draft
        try:
            return {"version": version, "outdated": False, **view(draft)}
        except OutdatedError:
            return {"version": version, "outdated": True}

    def person(self, row: Any = None, id: Any = None) -> dict[str, Any]:
        """Return why the decision of one person changed or stayed; asked for explicitly."""
        if row is not None and (not isinstance(row, int) or isinstance(row, bool)):
            raise InputError(f"row={shown(row)} must be a whole number, counted from 0.")
        if id is not None and (not isinstance(id, str | int | float) or len(str(id)) > MAX_TEXT):
            raise InputError(f"id must be text or a number of at most {MAX_TEXT} characters.")
        explanation = self.draft.explanation
        if id is not None and explanation.index is not None:
            id = next((one for one in explanation.index if str(one) == str(id)), id)
        return views.person_view(explanation.person(row, id=id))

    def keep(self) -> dict[str, Any]:
        """Keep the present draft, to compare others with it."""
        with self._lock:
            self._kept = self.draft
            self._version += 1
        return self.state()

    # -- taking it away -------------------------------------------------------------------------

    def save_patch(self) -> dict[str, Any]:
        """Return the patch of the present update as text, with its SHA-256."""
        return patch_bytes(self.draft)

    def save_report(self) -> dict[str, Any]:
        """Return the report of the present update as one HTML page."""
        return report_bytes(self.draft)

    def python(self) -> dict[str, Any]:
        """Return the exploration as Python that repeats it."""
        return {"text": python_text(self.draft)}


def _plan(edits: Any, offset: Any, by: str | None = None, note: str | None = None) -> EditPlan:
    if offset not in ("target", "keep"):
        raise InputError(f"offset={shown(offset)}; expected 'target' or 'keep'.")
    read = read_edits(edits)
    if not read:
        raise InputError("edits is empty; name a term and its points.")
    return EditPlan(read, (), offset, False, by, note)


def _is_same(draft: Draft, plan: EditPlan) -> bool:
    """Return whether a draft has the edits and the offset of a plan."""
    return draft.plans[-1].edits == plan.edits and draft.plans[-1].offset == plan.offset


def _text(value: Any, name: str) -> str | None:
    """Return a text that the page sent, without spaces around it; None where it is empty."""
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise InputError(f"{name} must be text of at most {MAX_TEXT} characters.")
    return value.strip() or None
