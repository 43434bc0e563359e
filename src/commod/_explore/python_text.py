"""Write an exploration as Python: the fit, and every edit after it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from commod import constraints
from commod._explore.draft import Draft
from commod._explore.edits import EditPlan
from commod._record import EditRecord


def python_text(draft: Draft) -> str:
    """Return code that fits and edits as the page did.

    `model`, `X`, `y` and `groups` are what the user passed.
    """
    update = draft.base.update
    rows = "X, y, sensitive_features=groups"
    lines = [
        "import commod",
        *_constraint_import(update.fitted_params()["constraints"]),
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


def _fit_lines(update: Any, rows: str) -> list[str]:
    """Return the call of the class with the parameters that differ from their defaults."""
    defaults = inspect.signature(type(update).__init__).parameters
    given = update.fitted_params()
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
