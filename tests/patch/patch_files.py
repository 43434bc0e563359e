"""Patches with any field changed, and mutations of their files."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import replace
from random import Random
from typing import Any

from patches import bins, category, number

from commod import Patch
from commod._record.plain import from_plain
from commod.patch.content import (
    SCHEMA,
    Base,
    Content,
    Labels,
    LeftOut,
    PatchEvidence,
    PatchRequest,
    Ratio,
    Reached,
    Seen,
    UnitColumn,
)
from commod.patch.file import content_digest
from commod.patch.fingerprint import columns_digest


def content_of(*columns: Any, **changes: Any) -> Content:
    """Return a content with one concept; `changes` are fields of its parts."""
    names = [c.name for c in columns if not isinstance(c, UnitColumn)]
    one_way = {
        "gains_only": {"n_gains": 50.0, "n_losses": 0.0},
        "losses_only": {"n_gains": 0.0, "n_losses": 50.0},
    }
    changes = {**one_way.get(changes.get("direction", "any"), {}), **changes}
    content = Content(
        schema=SCHEMA,
        library="commod-debiasing 0.1.0",
        created="2026-01-01T00:00:00+00:00",
        method="ControlledDebiaser",
        base=Base("LogisticRegression", None, None, 0.5, "5" * 64),
        labels=Labels(0, 1, 1),
        asked=PatchRequest("demographic_parity", 0.8, "any", None, None, None, None),
        reached=Reached(
            rows="fit rows",
            n_rows=1000,
            metric="P-rule",
            fairness_before=0.5,
            fairness_after=0.81,
            accuracy_before=0.8,
            accuracy_after=0.79,
            change_rate=0.05,
            n_gains=40.0,
            n_losses=10.0,
            limit=0.04,
            target_met=True,
            promised=None,
            in_words="P-rule ≥ 0.8 is reached on the fit rows.",
        ),
        seen=Seen(len(names), columns_digest(names), 1000),
        ratio=Ratio(1.0, True, True, (1.0,), (0.0,), columns),
        left_out=LeftOut(1, 12),
        audit="a" * 64,
        versions={"python": "3.13.1", "numpy": "3.4.5"},
    )
    for name, value in changes.items():
        part = next(p for p in ("base", "labels", "asked", "reached", "ratio")
                    if name in vars(getattr(content, p)))  # fmt: skip
        content = replace(content, **{part: replace(getattr(content, part), **{name: value})})
    return content


def mixed_patch(*, centre: float = 0.0, **changes: Any) -> Patch:
    """Return a patch with a column of each kind."""
    return Patch(
        content_of(
            number("income", -0.25, if_missing=2.0, missing=0.5, centre=centre),
            bins("age", [25.0, 40.5], [-1.5, 0.25, 0.5], missing=-0.75),
            category("job", {"clerk": -2.0, "nurse": 0.5, "": 0.125}, missing=-0.5),
            category("member", {True: -0.5, False: 0.25}),
            **changes,
        )
    )


def evidence_patch(**changes: Any) -> Patch:
    """Return a patch with a column of each kind, whose sum is evidence."""
    return mixed_patch(centre=3.5, evidence=PatchEvidence(0.75, 0.5, 0.25), **changes)


# ---------------------------------------------------------------------------------------------
# Mutations of a parsed file

ODD = [
    *[None, True, False, 0, 1, -1, 2, 10**400, -(10**30), 0.5, -0.0, 1e308, 1e101, 5e-324],
    *["", "1", "number", "bins", "category", "margin", "x" * 500, "\x00", "b" * 64],
    *(f"commod.patch/{version}" for version in range(1, 5)),
    *["é", "\ud800", "NaN", [], {}, [[]], {"": None}, [None], [0.5], {"points": 1}],
]
HOW = ["replace", "delete", "nudge", "rename", "repeat", "swap", "add"]


def paths(tree: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value of a parsed file, the whole apart."""
    items: Any = ()
    if isinstance(tree, dict):
        items = tree.items()
    elif isinstance(tree, list):
        items = enumerate(tree)
    return [p for key, value in items for p in [(*here, key), *paths(value, (*here, key))]]


def mutated(random: Random, text: str) -> Any:
    """Return a parsed patch file with one to three of its values changed, moved or lost."""
    tree = json.loads(text)
    for _ in range(random.randint(1, 3)):
        every = paths(tree)
        if not every:
            break
        path = random.choice(every)
        holder = tree
        for key in path[:-1]:
            holder = holder[key]
        _mutate(random, holder, path[-1])
    return tree


def _mutate(random: Random, holder: Any, key: Any) -> None:
    how, value = random.choice(HOW), holder[key]
    if how == "replace":
        holder[key] = copy.deepcopy(random.choice(ODD))
    elif how == "delete":
        del holder[key]
    elif how == "nudge":
        holder[key] = _nudged(random, value)
    elif how == "rename" and isinstance(holder, dict):
        holder[f"{key}{random.choice(['', '_', 's'])}"] = holder.pop(key)
    elif how == "repeat" and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(value))
    elif how == "swap":
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        other = random.choice(keys)
        holder[key], holder[other] = holder[other], value
    elif isinstance(holder, dict):
        added = random.choice(["extra", "Points", "__class__", "digest"])
        holder[added] = copy.deepcopy(random.choice(ODD))


def _nudged(random: Random, value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        near = value if abs(value) > 1e300 else math.nextafter(value, math.inf)
        return random.choice([-value, value + 1, near, 0])
    if isinstance(value, str):
        return random.choice([value[:-1], value + " ", value.upper(), value[::-1]])
    return [] if isinstance(value, list) else {}


def sealed(tree: Any) -> Any:
    """Return the tree with the digest that its content would have, where it is a content."""
    if not isinstance(tree, dict):
        return tree
    bare = {name: value for name, value in tree.items() if name != "digest"}
    try:
        return {**bare, "digest": content_digest(from_plain(Content, bare))}
    except Exception:  # whatever is wrong with it, `Patch` is to say so
        return tree
