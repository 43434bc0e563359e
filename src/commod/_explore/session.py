"""Hold the state of an exploration: drafts with undo and redo, and a kept draft.

Every public method answers one request of the page. Methods may be called from several threads.
A request that changes something names the version it has seen: where another tab was faster, the
request is refused and nothing changes.
"""

from __future__ import annotations

import inspect
import re
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from commod import constraints
from commod._data.columns import plain
from commod._explore import views
from commod._explore.draft import Draft, FittedBase, OutdatedError
from commod._explore.edits import FittedRows, PeopleOfFit, build, without_warnings
from commod._record import Audit, EditRecord
from commod._reporting.audit import audit as make_audit
from commod._reporting.render import report
from commod._text import list_names, n_of, shown
from commod.edit import find_terms, read_edits
from commod.exceptions import CommodError, InputError
from commod.metrics._constraint import CONSTRAINTS
from commod.patch import Patch
from commod.updates._edit import EditPlan
from commod.updates._interface import listening
from commod.updates._targeted import CHOICES as CONTROLLED
from commod.updates.controlled import ControlledDebiaser

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
        self,
        update: ControlledDebiaser,
        people: PeopleOfFit,
        label_names: Mapping[Any, str] | None = None,
    ) -> None:
        self._people, self._label_names = people, label_names
        self._lock = threading.RLock()
        self._has_moved = False  # since a slower part began
        self._drafts = [self._base(update).first("the fitted update")]
        self._place = 0
        self._kept: Draft | None = None
        self._previewed: Draft | None = None  # the last edit, and the last request, that was shown
        self._tried: Draft | None = None
        self._version = 1
        self._step: str | None = None  # of a fit that runs

    def _base(self, update: ControlledDebiaser) -> FittedBase:
        return FittedBase(FittedRows(update, self._people), self._label_names, self._pause)

    def _pause(self, draft: Draft) -> None:
        """Give up a part of a draft if somebody moves on: what they ask for goes first."""
        if self._has_moved or self.draft is not draft:
            raise OutdatedError

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
            kept, step = self._kept, self._step
        small = {
            "version": version,
            "step": step,
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

    def preview(
        self, edits: Any = None, offset: Any = "target", request: Any = None
    ) -> dict[str, Any]:
        """Return the first screen and the card after edits, or of a request, that are not kept."""
        self._has_moved = True
        with without_warnings():
            if request is None:
                draft = self._edited(_plan(edits, offset))
            else:
                draft = self._requested(request)
            return {"screen": views.screen_view(draft), "card": views.terms_view(draft)}

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
        self._has_moved = True
        with self._lock:
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
                "Another tab, or an edit, has changed the update meanwhile. The page now shows the "
                "new state; repeat the change if it is still wanted."
            )

    # -- fits --------------------------------------------------------------------------------------

    def fit(self, version: Any, request: Any) -> dict[str, Any]:
        """Fit another update, with a target, caps or locked columns changed."""
        return self._fitted(version, lambda: self._requested(request))

    def _requested(self, request: Any) -> Draft:
        """Return the fit of a request, or the present draft for its own; one tried last is known.

        Rows are read again only where the request asks for other terms or other rates.
        """
        present, tried = self.draft, self._tried
        base, params = present.base, changed_parameters(present, request)
        changes = changed_words(base.params, params)
        if not changes:
            return present
        if tried is None or changed_words(tried.base.params, params):
            tried = self._fit_of(base, params, changes)
        self._tried = tried
        return tried.told(words=changes)

    def _fit_of(self, base: FittedBase, params: dict[str, Any], words: str) -> Draft:
        """Return the fit of other parameters, with its first screen."""
        known = base.refitted(params)
        if known is None:
            X, y, groups = self._people
            update = type(base.update)(**params)
            known = self._base(update.fit(X, y, sensitive_features=groups))
        draft = known.first(words)
        draft.audit  # noqa: B018 - counted here, where nobody else has to wait for it
        return draft

    def refit(self, version: Any, by: Any = None, note: Any = None) -> dict[str, Any]:
        """Fit all terms again that were not edited; edited ones keep their points."""
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

        def fitted() -> Draft:
            base = self._base(build(draft.update, draft.base.fitted, plan))
            return base.first("fitted the other terms again")

        return self._fitted(version, fitted)

    def _fitted(self, version: Any, fit: Callable[[], Draft]) -> dict[str, Any]:
        """Make the result of a fit the present draft, unless another change came meanwhile."""
        with self._lock:
            self._check_version(version)
        self._has_moved = True
        with self._told_steps(), without_warnings():  # the page has the status
            draft = fit()
        with self._lock:
            self._check_version(version)
            if draft.base is not self.draft.base:
                self._append(draft)
            return self.state()

    @contextmanager
    def _told_steps(self) -> Iterator[None]:
        """Tell the page each step of a fit."""

        def hear(step: str) -> None:
            self._step = step

        hear("reading the rows")
        try:
            with listening(hear):
                yield
        finally:
            self._step = None

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

    def wishes(self) -> dict[str, Any]:
        """Return what each wish of the request costs in changes: one fit without it."""
        return self._slower_part(lambda draft: views.wishes_view(*self._costs(draft)))

    def _costs(self, draft: Draft) -> tuple[int, list[tuple[str, Draft | CommodError]]]:
        """Return the changes of the request, and the fit without each of its wishes."""
        base = draft.base
        others: list[tuple[str, Draft | CommodError]] = []
        params = {**base.params, "locked_features": tuple(draft.locked)}
        with without_warnings():
            asked = self._fit_of(base, params, "") if draft.plans else draft
            for words, without in wishes_of(params, is_budget=base.update._is_budget):
                self._pause(draft)
                try:
                    others.append((words, self._fit_of(base, without, words)))
                except CommodError as error:  # such as a column that cannot be read
                    others.append((words, error))
        return asked.audit.changes.n_changes, others

    def _slower_part(self, view: Callable[[Draft], dict[str, Any]]) -> dict[str, Any]:
        """Return a view of the present draft, or that another draft has taken its place."""
        with self._lock:
            version, draft = self._version, self.draft
        self._has_moved = False
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


# ---------------------------------------------------------------------------------------------
# Make what a user takes away from the page: the patch and the report that belongs to it

FIT_ROWS = "rows the update was fitted on"


def audit_of(draft: Draft) -> Audit:
    """Return the whole audit of the present update on the rows."""
    explanation, people, update = draft.explanation, draft.base.people, draft.update
    return make_audit(
        explanation.y_before,
        explanation.y_after,
        sensitive_features=people.sensitive_features,
        y_true=people.y,
        X=people.X,
        explanation=explanation,
        label_names=draft.base.label_names,
        rows=FIT_ROWS,
        min_group_size=update._fitted_param("min_group_size"),
        unknown_groups=update._fitted_param("unknown_groups", "error"),
    )


def signed(draft: Draft) -> tuple[Patch, Audit]:
    """Return the patch with the figures of its audit, and the audit; both made once."""
    known = vars(draft).get("_signed")
    if known is None:
        audit = audit_of(draft)
        made = draft.update.to_patch(audit=audit), audit
        # The report and the patch must state the same digests, also where both are asked for at
        # once: the first of two threads decides.
        known = vars(draft).setdefault("_signed", made)
    return known


def patch_bytes(draft: Draft) -> dict[str, Any]:
    """Return the patch file as text, and its SHA-256."""
    patch, _ = signed(draft)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "patch.json"
        patch.save(path)
        return _file(path, patch)


def report_bytes(draft: Draft) -> dict[str, Any]:
    """Return the report as the text of one HTML page."""
    patch, audit = signed(draft)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        report(audit, path, patch=patch)
        return _file(path, patch)


def _file(path: Path, patch: Patch) -> dict[str, Any]:
    edits = n_of(len(patch.history), "recorded edit")
    text = path.read_text("utf-8")
    return {"name": path.name, "text": text, "sha256": patch.sha256, "edits": edits}


# ---------------------------------------------------------------------------------------------
# Write an exploration as Python: the fit, and every edit after it


def python_text(draft: Draft) -> str:
    """Return code that fits and edits as the page did.

    `model`, `X`, `y` and `groups` are what the user passed.
    """
    update = draft.base.update
    rows = "X, y, sensitive_features=groups"
    lines = [
        "import commod",
        *_constraint_import(update._fitted_params()["constraints"]),
        "from commod.edit import Cap, Drop, Lock, Merge, Round, SetPoints",
        "",
        *_fit_lines(update, rows),
    ]
    for record in update.edits_:
        lines += _edit_lines(record, record.pinned, rows)
    for plan in draft.plans:
        lines += _edit_lines(plan, plan.pin, rows)
    lines += ["print(update.status_)", 'update.to_patch().save("patch.json")']
    return "\n".join(lines) + "\n"


def _constraint_import(stated: Any) -> list[str]:
    """Return the import of the constraints that an object is made of; none for a text."""
    if isinstance(stated, str):
        return []
    names = [name for name in constraints.__all__ if re.search(rf"\b{name}\(", repr(stated))]
    return [f"from commod.constraints import {', '.join(names)}"]


def _fit_lines(update: ControlledDebiaser, rows: str) -> list[str]:
    """Return the call of the class with the parameters that differ from their defaults."""
    defaults = inspect.signature(type(update).__init__).parameters
    given = update._fitted_params()
    locked = {edit.name for record in update.edits_ for edit in record.edits if edit.edit == "lock"}
    given["locked_features"] = tuple(n for n in given["locked_features"] if n not in locked)
    changed = [
        f"    {name}={value.item() if isinstance(value, np.generic) else value!r},"
        for name, value in given.items()
        if name != "estimator" and _differs(value, defaults[name].default)
    ]
    head = ["update = commod.ControlledDebiaser(", "    model,", *changed, ")"]
    return [*head, f"update.fit({rows})"]


def _differs(value: Any, default: Any) -> bool:
    if isinstance(value, list | tuple | set | frozenset):
        return list(value) != list(default or ())
    return value is not default and not (type(value) is type(default) and value == default)


def _edit_lines(step: EditPlan | EditRecord, pin: Sequence[str], rows: str) -> list[str]:
    """Return the call of `edit` with one edit per line."""
    settings = {name: getattr(step, name) for name in ("offset", "refit", "by", "note")}
    settings["pin"] = list(pin)
    usual = {"offset": "target", "refit": False, "pin": [], "by": None, "note": None}
    more = [f"{name}={value!r}" for name, value in settings.items() if value != usual[name]]
    listed = [f"        {_edit_text(edit)}," for edit in step.edits]
    return [
        "update = update.edit(",
        *(["    [", *listed, "    ],"] if listed else ["    [],"]),
        f"    {', '.join([rows, *more])},",
        ")",
    ]


def _edit_text(edit: Any) -> str:
    values = {name: value for name, value in vars(edit).items() if name != "edit"}
    return f"{type(edit).__name__}({', '.join(f'{n}={v!r}' for n, v in values.items())})"


# ---------------------------------------------------------------------------------------------
# Read and show what an update is asked for: target, caps, direction, constraint, locks

CHOICES = {
    "direction": CONTROLLED["direction"],
    "points": CONTROLLED["points"],
    "constraints": tuple(CONSTRAINTS),
}
LARGEST = 1_000_000  # number of a request
NUMBERS = ("target", "borderline", "max_margin", "max_changes", "max_accuracy_loss")
LIVE_ROWS = 100_000  # with more rows, a slider fits when it is released


def request_view(draft: Draft) -> dict[str, Any]:
    """Return the request of a draft for the form of the page.

    `constraints` is None where the user stated an object or a text with bounds: the page keeps it.
    """
    update = draft.base.update
    given = update._fitted_params()
    constraints = given["constraints"]
    is_name = isinstance(constraints, str) and constraints in CONSTRAINTS
    numbers = {name: None if given[name] is None else float(given[name]) for name in NUMBERS}
    if given["target"] is None and not update._is_budget and is_name:
        numbers["target"] = float(update.target_)
    unread = [name for name in draft.locked if name not in update._columns_seen]
    n_people = len(draft.now.after)
    return {
        **numbers,
        "live": n_people <= LIVE_ROWS,
        "targets": _target_range(update),
        "direction": given["direction"],
        "points": given["points"],
        "max_lines": given["max_lines"],
        "constraints": constraints if is_name else None,
        "choices": list(CHOICES["constraints"]),
        "locked": draft.locked,
        "columns": [*update._columns_seen, *unread],
    }


def changed_parameters(draft: Draft, request: Any) -> dict[str, Any]:
    """Return the parameters of a draft with those that the page changes; values are checked."""
    if not isinstance(request, dict):
        raise InputError("request must be an object with target, direction and so on.")
    params = {**draft.base.params, "locked_features": tuple(draft.locked)}
    present = request_view(draft)
    for name, value in request.items():
        if name not in READERS:
            expected = ", ".join(sorted(READERS))
            raise InputError(f"request has {shown(name)}; expected {expected}.")
        read = READERS[name](value, name)
        if name == "locked":
            if set(read) != set(draft.locked):
                params["locked_features"] = read
        elif read != present[name] and (read is not None or name != "constraints"):
            params[name] = read  # the page may show a default, or no name for stated constraints
    return params


CAPS = ("max_margin", "max_changes", "max_accuracy_loss", "max_volume_change", "max_lines")
FREE = {"direction": "any", **dict.fromkeys(CAPS)}  # wishes, and what leaves them out


def wishes_of(
    params: Mapping[str, Any], *, is_budget: bool
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each wish of a request in words, with the parameters without it.

    A budget is no wish but the question itself.
    """
    for name, free in FREE.items():
        if params[name] != free and not (is_budget and name == "max_changes"):
            yield f"{name} {_written(params[name])}", {**params, name: free}
    if params["points"] == "integers":
        yield "whole numbers", {**params, "points": "per bin"}
    locked, monotone = params["locked_features"], params["monotone"] or {}
    for column in locked:
        left = tuple(name for name in locked if name != column)
        yield f"{column} locked", {**params, "locked_features": left}
    for column in monotone:
        others = {name: sign for name, sign in monotone.items() if name != column}
        yield f"{column} monotone", {**params, "monotone": others or None}


def _target_range(update: ControlledDebiaser) -> tuple[float, float]:
    """Return the ends of the slider of targets: the fairness of the base model, and parity."""
    ideal = update._constraint.ideal
    ends = sorted((update.base_fairness_, update.target_, ideal))
    return float(np.floor(200 * ends[0])) / 200, float(ends[-1])  # the slider has steps of 0.005


def changed_words(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Return the parameters that differ, with both values; "" for none."""
    names = [name for name, value in after.items() if _differs(value, before[name])]
    return ", ".join(f"{name} {_written(before[name])} → {_written(after[name])}" for name in names)


def _written(value: Any) -> str:
    if isinstance(value, list | tuple | set | frozenset):
        return list_names(sorted(map(str, value))) if value else "none"
    return "none" if value is None else str(value)


def _choice(value: Any, name: str) -> str | None:
    if value is None and name == "constraints":
        return None
    if value not in CHOICES[name]:
        raise InputError(f"{name}={shown(value)} is not known.")
    return str(value)


def _number(value: Any, name: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{name}={shown(value)} must be a number, or empty.")
    if not abs(value) <= LARGEST:
        raise InputError(f"{name}={shown(value)} is too large; expected at most {LARGEST:,d}.")
    return float(value)


def _whole_number(value: Any, name: str) -> int | None:
    number = _number(value, name)
    if number is None:
        return None
    if not number.is_integer() or number < 1:
        raise InputError(f"{name}={shown(value)} must be a whole number from 1, or empty.")
    return int(number)


def _columns(names: Any, name: str) -> tuple[str, ...]:
    if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
        raise InputError(f"{name} must be a list of columns.")
    return tuple(dict.fromkeys(names))


READERS: dict[str, Callable[[Any, str], Any]] = {
    **dict.fromkeys(NUMBERS, _number),
    **dict.fromkeys(CHOICES, _choice),
    "max_lines": _whole_number,
    "locked": _columns,
}
