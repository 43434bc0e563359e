"""Hold the state of an exploration: drafts with undo and redo, and a kept draft.

Every public method answers one request of the page. Methods may be called from several threads.
A request that changes something names the version it has seen: where another tab was faster, the
request is refused and nothing changes.
"""

from __future__ import annotations

import base64
import inspect
import io
import re
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from commod import constraints
from commod._explore import views
from commod._explore.draft import Draft, FittedBase, OutdatedError
from commod._explore.edits import (
    PeopleOfFit,
    build,
    params_before_edits,
    recorded_plan,
    without_warnings,
)
from commod._record.edits import MAX_NOTE, SetPoints
from commod._record.plain import utc_now
from commod._reporting.audit import audit as make_audit
from commod._reporting.render.page import report
from commod._text import list_names, n_of, plain, shown
from commod.edit import find_terms
from commod.exceptions import CommodError, InputError
from commod.metrics._constraint import CONSTRAINTS
from commod.updates._edit import EditPlan, read_plan
from commod.updates._interface import listening
from commod.updates._targeted import CHOICES as CONTROLLED
from commod.updates._targeted import set_target
from commod.updates.controlled import ControlledDebiaser

MAX_DRAFTS = 200  # steps that somebody can return to
MAX_TEXT = 500  # characters of a name or a search


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
        self._lock, self._one_fit = threading.RLock(), threading.Lock()
        self._has_moved = False  # since a slower part began
        self._drafts = [self._base(update).first("the fitted update")]
        self._place = 0
        self._kept: Draft | None = None
        self._earlier: Draft | None = None  # what was shown before the present draft
        # The last edit that was shown, beside the draft before it, and the last request.
        self._previewed: tuple[Draft, EditPlan, Draft] | None = None
        self._tried: Draft | None = None
        self._version = 1
        self._step: str | None = None  # of a fit that runs

    def _base(self, update: ControlledDebiaser) -> FittedBase:
        return FittedBase(update, self._people, label_names=self._label_names, pause=self._pause)

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
        """Return all that the page shows at once; only the step of a fit where nothing is new."""
        with self._lock:
            drafts, place, version = self._drafts, self._place, self._version
            kept, earlier, step = self._kept, self._earlier, self._step
        draft = drafts[place]
        if seen == version:
            return {"version": version, "step": step}
        return {
            "version": version,
            "step": step,
            "words": plain(draft.words),
            "bar": {"place": place, "is_last": place + 1 == len(drafts)},
            "history": {"steps": views.history_lines(drafts), "place": place},
            "screen": views.screen_view(draft),
            "card": views.terms_view(draft, earlier),
            "request": request_view(draft),
            "compared": views.compared_view(kept, draft),
        }

    # -- edits ------------------------------------------------------------------------------------

    def preview(
        self, edits: Any = None, offset: Any = "target", request: Any = None
    ) -> dict[str, Any]:
        """Return the first screen and the card after edits, or of a request, that are not kept."""
        self._has_moved, present = True, self.draft
        with without_warnings():
            if request is None:
                draft = self._edited(_plan(edits, offset=offset))
                if np.array_equal(draft.now.points, present.now.points):
                    draft = present  # the hand has come back
            else:
                draft = self._requested(request)
            return {
                "screen": views.screen_view(draft, is_preview=draft is not present),
                "card": views.terms_view(draft, present),
            }

    def _edited(self, plan: EditPlan) -> Draft:
        """Return the present draft after an edit; one that was previewed last is known."""
        with self._lock:
            present, known = self.draft, self._previewed
        asked = plan.edits, plan.offset
        if known is None or known[0] is not present or (known[1].edits, known[1].offset) != asked:
            known = present, plan, present.edited(plan)
        with self._lock:
            self._previewed = known
        told = {"by": plan.by, "note": plan.note, "when": plan.when}
        return known[2].told(plans=present.plans_with(plan), **told)

    def edit(
        self, version: Any, edits: Any, offset: Any = "target", by: Any = None, note: Any = None
    ) -> dict[str, Any]:
        """Keep edits as the next draft."""
        plan = _plan(edits, offset=offset, **_told(by, note))
        self._has_moved = True
        with self._lock:
            self._check_version(version)
            draft = self._edited(plan)
            draft.base.built(draft.plans[:-1])  # saving need not wait for edits that are complete
            self._append(draft)
            return self.state()

    def go(self, version: Any, place: Any) -> dict[str, Any]:
        """Return to a step of the history, by its place from 0; later steps stay in it."""
        with self._lock:
            self._check_version(version)
            if type(place) is not int or not 0 <= place < len(self._drafts):
                raise InputError(f"place={shown(place)} is no step of the history.")
            self._show(self._drafts, place)
            return self.state()

    def _append(self, draft: Draft) -> None:
        """Make a draft the present one; those that were undone are dropped.

        Of too many steps, stops that later ones have replaced in the recorded edits go first.
        """
        drafts = [*self._drafts[: self._place + 1], draft]
        if len(drafts) > MAX_DRAFTS:
            steps = enumerate(pairwise(drafts[1:]), start=1)
            del drafts[next((i for i, (one, two) in steps if two.replaces(one)), 1)]
        self._show(drafts, len(drafts) - 1)

    def _show(self, drafts: list[Draft], place: int) -> None:
        self._earlier = self.draft
        self._drafts, self._place = drafts, place
        self._version += 1

    def _check_version(self, version: Any) -> None:
        if version != self._version:
            raise VersionConflictError(
                "Another tab, or an edit, has changed the update meanwhile. The page now shows the "
                "new state; repeat the change if it is still wanted."
            )

    # -- fits --------------------------------------------------------------------------------------

    def fit(self, version: Any, request: Any, by: Any = None, note: Any = None) -> dict[str, Any]:
        """Fit another update, with a target, caps or locked columns changed."""
        told = _told(by, note)
        return self._fitted(version, lambda: self._requested(request, **told))

    def _requested(self, request: Any, **told: Any) -> Draft:
        """Return the fit of a request, or the present draft for its own; one tried last is known.

        Rows are read again only where the request asks for other terms or other rates. An update
        with pins has a record of who pinned them, so that it is fitted for them.
        """
        with self._one_fit:  # a fit often asks for what a preview is just searching
            present, tried = self.draft, self._tried
            asked = changed_request(present, request)
            words = changed_words(present.base.asked, asked)
            if not words:
                return present
            if tried is None or changed_words(tried.base.asked, asked) or (told and asked["pins"]):
                tried = self._fit_of(present.base, asked, words, **told)
            self._tried = tried
        return tried.told(words=words, **told)

    def _fit_of(self, base: FittedBase, asked: Mapping[str, Any], words: str, **told: Any) -> Draft:
        """Return the fit of what is asked for, with its first screen."""
        params, pins = {**asked}, asked["pins"]
        del params["pins"]
        tried = None if self._tried is None else self._tried.base
        known = base.refitted(params) or (tried and tried.refitted(params))
        if known is None:
            X, y, groups = self._people
            update = type(base.update)(**params)
            known = self._base(update.fit(X, y, sensitive_features=groups))
        if pins:
            edits = [SetPoints(name, points) for name, points in pins.items()]
            others = set(known.encoding.term_names) - pins.keys()
            known = known.pinned(read_plan(edits, refit=bool(others), **told))
        draft = known.first(words)
        draft.audit  # noqa: B018 - counted here, where nobody else has to wait for it
        return draft

    def refit(self, version: Any, by: Any = None, note: Any = None) -> dict[str, Any]:
        """Fit all terms again that were not edited; edited ones keep their points, as pins."""
        draft, told = self.draft, _told(by, note)
        pin = tuple(draft.set_points)
        if not pin and not draft.plans:
            raise InputError("No term was edited, so there is nothing to fit the others beside.")
        for name in pin:
            find_terms(draft.base.encoding, name, parameter="pin")
        plan = read_plan((), refit=True, pin=pin, **told)

        words = "fitted the other terms again"
        built = partial(build, draft.update, draft.base, plan)
        return self._fitted(version, lambda: self._base(built()).first(words, **told))

    def _fitted(self, version: Any, fit: Callable[[], Draft]) -> dict[str, Any]:
        """Make the result of a fit the present draft, unless another change came meanwhile."""
        with self._lock:
            self._check_version(version)
        self._has_moved = True
        try:
            with listening(self._hear), without_warnings():  # the page has the status
                self._hear("reading the rows")
                draft = fit()
                draft.base.measure()
        finally:
            self._step = None
        with self._lock:
            self._check_version(version)
            if draft.base is not self.draft.base:
                self._append(draft)
            return self.state()

    def _hear(self, step: str) -> None:
        """Keep the present step of a fit, which the page asks for."""
        self._step = step

    # -- further views -------------------------------------------------------------------------

    def terms(self, search: Any = "") -> dict[str, Any]:
        """Return the terms of the scorecard whose name contains some text."""
        return {"card": views.terms_view(self.draft, self._earlier, _text(search, "search") or "")}

    def segments(self) -> dict[str, Any]:
        """Return rules that describe who changes."""
        return self._slower_part("segments", views.segments_view)

    def differences(self) -> dict[str, Any]:
        """Return rules that describe whom the present draft and the kept one decide differently."""
        return self._slower_part("differences", partial(views.differences_view, self._kept))

    def trade_off(self) -> dict[str, Any]:
        """Return changes against fairness with the present point."""
        return self._slower_part("trade_off", lambda draft: draft.trade_off)

    def wishes(self) -> dict[str, Any]:
        """Return what the wishes of the request cost in changes; each call fits without one more.

        `left` is how many prices are still to be asked for.
        """
        answer = self._slower_part("wishes", self._priced)
        return {**answer, "left": answer["wishes"]["left"]} if "wishes" in answer else answer

    def _priced(self, draft: Draft) -> dict[str, Any]:
        known = draft.prices
        wishes = list(wishes_of(draft.asked, draft.base.update))
        asked = [("", draft.asked), *wishes] if wishes else []  # the request itself comes first
        for words, without in asked[len(known) : max(2, len(known) + 1)]:
            self._pause(draft)
            known[words] = self._price(draft, without, words)
        return {**views.wishes_view(known), "left": len(asked) - len(known)}

    def _price(self, draft: Draft, asked: Mapping[str, Any], words: str) -> views.Price:
        try:
            with without_warnings():
                is_own = not words and not draft.plans
                fitted = draft if is_own else self._fit_of(draft.base, asked, words)
        except CommodError as error:  # such as a column that cannot be read
            if not words:
                raise
            return str(error)
        return fitted.audit.changes.n_changes, fitted.now.is_reached

    def _slower_part(self, name: str, view: Callable[[Draft], Any]) -> dict[str, Any]:
        """Return a view of the present draft, or that another draft has taken its place."""
        with self._lock:
            version, draft = self._version, self.draft
        self._has_moved = False
        try:
            return {"version": version, "outdated": False, name: view(draft)}
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
        return {"person": explanation.person(row, id=id)}

    def keep(self, version: Any = None) -> dict[str, Any]:
        """Keep the present draft, to compare others with it."""
        with self._lock:
            if version is not None:
                self._check_version(version)
            self._kept = self.draft
            self._version += 1
        return self.state()

    # -- taking it away -------------------------------------------------------------------------

    def save(self, by: Any = None) -> dict[str, Any]:
        """Return patch, report and history of the present update, packed, with the SHA-256."""
        with self._lock:
            steps = self._drafts[: self._place + 1]
        return packed(steps, _text(by, "by"))

    def python(self, by: Any = None) -> dict[str, Any]:
        """Return the history as Python that makes patch and report of this moment."""
        with self._lock:
            steps = self._drafts[: self._place + 1]
        return {"text": python_text(steps, _text(by, "by"), utc_now())}


def _plan(edits: Any, **told: Any) -> EditPlan:
    plan = read_plan(edits, **told)
    if not plan.edits:
        raise InputError("edits is empty; name a term and its points.")
    return plan


def _told(by: Any, note: Any) -> dict[str, Any]:
    """Return who does something and why, as the page sent it, and the present time."""
    return {"by": _text(by, "by"), "note": _text(note, "note", MAX_NOTE), "when": utc_now()}


def _text(value: Any, name: str, most: int = MAX_TEXT) -> str | None:
    """Return a text that the page sent, without spaces around it; None where it is empty."""
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > most:
        raise InputError(f"{name} must be text of at most {most} characters.")
    return value.strip() or None


# ---------------------------------------------------------------------------------------------
# Make what a user takes away from the page: the patch, the report that belongs to it, the history

FIT_ROWS = "rows the update was fitted on"


def packed(steps: Sequence[Draft], by: str | None) -> dict[str, Any]:
    """Return patch.json, report.html and history.py in one archive; the last step is saved."""
    draft, created = steps[-1], utc_now()
    update, people = draft.update, draft.base.people
    explanation = draft.explanation
    asked = audit_settings(draft, created)
    audit = make_audit(
        explanation.y_before,
        explanation.y_after,
        sensitive_features=people.sensitive_features,
        y_true=people.y,
        X=people.X,
        explanation=explanation,
        **asked,
    )
    patch = update.to_patch(audit, by=by, created=created)
    archive = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(archive, "w") as files:
        path = report(audit, Path(folder) / "report.html", patch=patch)
        files.writestr("patch.json", patch.to_json())
        files.write(path, path.name)
        files.writestr("history.py", python_text(steps, by, created))
    return {
        "name": "update.zip",
        "base64": base64.b64encode(archive.getvalue()).decode(),
        "sha256": patch.sha256,
        "edits": n_of(len(patch.history), "recorded edit"),
    }


def audit_settings(draft: Draft, created: str) -> dict[str, Any]:
    """Return the settings of the audit that belongs to the saved patch."""
    names = draft.base.label_names
    return {
        "label_names": None if names is None else dict(names),
        "rows": FIT_ROWS,
        "min_group_size": draft.base.update._fitted_param("min_group_size"),
        "unknown_groups": draft.base.update._fitted_param("unknown_groups", "error"),
        "created": created,
    }


# ---------------------------------------------------------------------------------------------
# Write an exploration as Python: the fit, and every edit after it

OTHER_FIT = """\
# This code cannot repeat the fit: on X, y and groups alone, a fit gives another update. The update
# was fitted on other rows, with sample weights, or from a table in an engine. So it begins with
# `update`, the fitted update that was opened. X, y and groups are the rows of this exploration."""


def python_text(steps: Sequence[Draft], by: str | None, created: str) -> str:
    """Return code that makes the patch and the report of the last step, byte for byte.

    `model`, `X`, `y` and `groups` are what the user passed. All steps are in comments. Where a fit
    on these rows is not the fitted update, the code begins with it, and says so.
    """
    draft = steps[-1]
    update, rows = draft.base.update, "X, y, sensitive_features=groups"
    records = update.edits_
    if is_repeated := draft.base.is_repeated:
        given = "# model, X, y and groups are the base model and the rows of this exploration."
        begin = _fit_lines(update, rows)
    else:
        given, begin, records = OTHER_FIT, [], records[len(steps[0].base.update.edits_) :]
    lines = [
        f"{given} Its steps:",
        *(
            f"# {i}. {'; '.join(filter(None, line))}"
            for i, line in enumerate(views.history_lines(steps), start=1)
        ),
        "import commod",
        *_constraint_import(update._fitted_params()["constraints"] if is_repeated else ""),
        "from commod.edit import Cap, Drop, Lock, Merge, Round, SetPoints",
        "",
        *begin,
    ]
    for plan in (*map(recorded_plan, records), *draft.plans):
        lines += _edit_lines(plan, rows)
    lines += [
        "explanation = commod.explain(update, X)",
        "audit = commod.audit(",
        "    explanation.y_before, explanation.y_after, sensitive_features=groups, y_true=y, X=X,",
        "    explanation=explanation,",
        *(f"    {name}={value!r}," for name, value in audit_settings(draft, created).items()),
        ")",
        f"patch = update.to_patch(audit, by={by!r}, created={created!r})",
        'patch.save("patch.json")',
        'commod.report(audit, "report.html", patch=patch)',
        "print(update.status_)",
    ]
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
    given = params_before_edits(update)
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


def _edit_lines(plan: EditPlan, rows: str) -> list[str]:
    """Return the call of `edit` with one edit per line."""
    settings, usual = plan._asdict(), EditPlan(())._asdict()
    listed = [f"        {_edit_text(edit)}," for edit in settings.pop("edits")]
    more = [f"{name}={value!r}" for name, value in settings.items() if value != usual[name]]
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
CAPS = ("max_margin", "max_changes", "max_accuracy_loss", "max_volume_change")
NUMBERS = ("target", "borderline", *CAPS)
LIVE_ROWS = 100_000  # with more rows, a slider fits when it is released


def request_view(draft: Draft) -> dict[str, Any]:
    """Return the request of a draft for the form of the page.

    `constraints` is None where the user stated an object or a text with bounds: the page keeps it.
    """
    update = draft.base.update
    given = update._fitted_params()
    stated = given["constraints"]
    is_name = isinstance(stated, str) and stated in CONSTRAINTS
    numbers = {name: None if given[name] is None else float(given[name]) for name in NUMBERS}
    if given["target"] is None and not update._is_budget:
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
        "constraints": stated if is_name else None,
        "is_floor": update._constraint.higher_is_fairer,
        "choices": {name: one.higher_is_fairer for name, one in CONSTRAINTS.items()},
        "locked": draft.locked,
        "columns": [*update._columns_seen, *unread],
        "pins": draft.asked["pins"],
    }


def changed_request(draft: Draft, request: Any) -> dict[str, Any]:
    """Return what a draft asks for with what the page changes; values are checked.

    A target follows the constraint that it is stated with: another constraint of the same sense
    keeps it, and one of the other sense has its own default.
    """
    if not isinstance(request, dict):
        raise InputError("request must be an object with target, direction and so on.")
    for name in request:
        if name not in READERS:
            expected = ", ".join(sorted(READERS))
            raise InputError(f"request has {shown(name)}; expected {expected}.")
    read = {name: READERS[name](value, name) for name, value in request.items()}
    asked, present = draft.asked, request_view(draft)
    target, name = read.pop("target", present["target"]), read.pop("constraints", None)
    if name not in (None, present["constraints"]):
        asked["constraints"] = name
        is_same_sense = CONSTRAINTS[name].higher_is_fairer == present["is_floor"]
        asked["target"] = target if "target" in request or is_same_sense else None
    elif target != present["target"]:
        asked = _with_target(asked, target)
    locked = read.pop("locked", draft.locked)
    if set(locked) != set(draft.locked):
        asked["locked_features"] = locked
    asked |= {key: value for key, value in read.items() if value != present[key]}
    return {**asked, "pins": draft.base.pins_outside(asked["locked_features"], asked["pins"])}


def _with_target(asked: Mapping[str, Any], target: float | None) -> dict[str, Any]:
    """Return what is asked for with another target; a stated bound takes it."""
    params = {name: value for name, value in asked.items() if name != "pins"}
    if target is None:
        return {**asked, "target": None}
    return {**asked, **set_target(ControlledDebiaser(**params), target).get_params(deep=False)}


TITLES = {"borderline": "nearness", "max_changes": "budget", "max_lines": "number of terms"}
FREE = {"direction": "any", "borderline": 0.0, **dict.fromkeys((*CAPS, "max_lines"))}


def wishes_of(
    asked: Mapping[str, Any], update: ControlledDebiaser
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each wish of a request in words, with the request without it.

    A budget is no wish but the question itself, and so is the first constraint.
    """
    for name, free in FREE.items():
        if asked[name] != free and not (update._is_budget and name == "max_changes"):
            yield f"{_title(name)} {_written(asked[name])}", {**asked, name: free}
    parts = update._stated().parts
    for one in parts[1:]:
        kept = [part for part in parts if part is not one]
        without = kept[0] if len(kept) == 1 else constraints.AllOf(kept)
        yield one.text, {**asked, "constraints": without}
    if asked["points"] == "integers":
        yield "whole numbers", {**asked, "points": "per bin"}
    for column in asked["locked_features"]:
        left = tuple(name for name in asked["locked_features"] if name != column)
        yield f"{column} locked", {**asked, "locked_features": left}
    for column in asked["monotone"] or ():
        others = {name: sign for name, sign in asked["monotone"].items() if name != column}
        yield f"{column} monotone", {**asked, "monotone": others or None}
    for term in asked["pins"]:
        others = {name: points for name, points in asked["pins"].items() if name != term}
        yield f"{term} pinned", {**asked, "pins": others}


def _target_range(update: ControlledDebiaser) -> tuple[float, float]:
    """Return the ends of the slider of targets: the fairness of the base model, and parity."""
    ideal = update._constraint.ideal
    ends = sorted((update.base_fairness_, update.target_, ideal))
    return float(np.floor(200 * ends[0])) / 200, float(ends[-1])  # the slider has steps of 0.005


def changed_words(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Return the parameters that differ, with both values; "" for none."""
    names = [name for name, value in after.items() if _differs(value, before[name])]
    return ", ".join(
        f"{_title(name)} {_written(before[name])} → {_written(after[name])}" for name in names
    )


def _title(name: str) -> str:
    """Return what the page calls a parameter."""
    return TITLES.get(name, name.removeprefix("max_").replace("_features", " columns"))


def _written(value: Any) -> str:
    if isinstance(value, dict):
        value = [f"{name} {number:+g}" for name, number in value.items()]
    if isinstance(value, list | tuple | set | frozenset):
        return list_names(sorted(map(str, value))) if value else "none"
    return "none" if value is None else str(value)


def _choice(value: Any, name: str) -> Any:
    if value not in CHOICES[name] and (value is not None or name != "constraints"):
        raise InputError(f"{name}={shown(value)} is not known.")
    return value


def _number(value: Any, name: str) -> float | None:
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not abs(value) <= LARGEST:
        raise InputError(f"{name}={shown(value)} must be a number up to {LARGEST:,d}, or empty.")
    return float(value)


def _whole_number(value: Any, name: str) -> int | None:
    number = _number(value, name)
    if number is not None and (not number.is_integer() or number < 1):
        raise InputError(f"{name}={shown(value)} must be a whole number from 1, or empty.")
    return None if number is None else int(number)


def _columns(names: Any, name: str) -> tuple[str, ...]:
    if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
        raise InputError(f"{name} must be a list of columns.")
    return tuple(dict.fromkeys(names))


def _pins(points: Any, name: str) -> dict[str, float]:
    if not isinstance(points, dict) or None in points.values():
        raise InputError(f"{name} must be an object with the points of terms.")
    return {term: float(_number(value, name) or 0.0) for term, value in points.items()}


READERS: dict[str, Callable[[Any, str], Any]] = {
    **dict.fromkeys(NUMBERS, _number),
    **dict.fromkeys(CHOICES, _choice),
    "max_lines": _whole_number,
    "locked": _columns,
    "pins": _pins,
}
