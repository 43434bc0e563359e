"""What was measured: put together, kept whole or not at all, and found again by name.

A part is everything one file of benchmarks measures. It is replaced as a whole, so that what is
compared was measured together.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.harness.running import Step

from commod._io.files import write_whole

Turn = dict[str, Any]


class Value(NamedTuple):
    """Where one quantity is found: a benchmark of a group, and what of it."""

    group: str
    name: str
    quantity: str = "seconds"


def gather(measured: Iterable[tuple[Step, Turn]]) -> dict[str, dict[str, Any]]:
    """Return the parts of a run; every benchmark has its turns in order.

    A turn that fills a cache is dropped, unless it failed.
    """
    parts: dict[str, dict[str, Any]] = {}
    for (case, _), turn in sorted(measured, key=lambda pair: pair[1]["turn"]):
        part = parts.setdefault(case.part, {"benchmarks": [], "environments": {}})
        found = _find(part, case.group, case.name)
        if found is None:
            found = {
                "group": case.group,
                "name": case.name,
                "environment": case.environment,
                "turns": [],
            }
            part["benchmarks"].append(found)
        if "failed" in turn:
            found["failed"] = turn["failed"]
        elif turn["turn"] >= 0:
            versions = turn.pop("versions")
            part["environments"][case.environment] = versions
            found["turns"].append(turn)
    return parts


def in_order(parts: dict[str, dict[str, Any]], names: Iterable[tuple[str, str, str]]) -> None:
    """Put the benchmarks of each part in the order of (part, group, name)."""
    places = {name: place for place, name in enumerate(names)}
    for part, content in parts.items():
        content["benchmarks"].sort(key=lambda b: places.get((part, b["group"], b["name"]), 0))


def merged(stored: dict[str, Any], parts: dict[str, Any]) -> dict[str, Any]:
    """Return the stored parts with those of this run in their places."""
    return {**stored, **parts}


def read(path: Path) -> dict[str, Any]:
    """Return the stored parts; none where nothing was stored."""
    return json.loads(path.read_text()) if path.exists() else {}


def keep(parts: dict[str, Any], path: Path) -> None:
    """Write the parts, whole or not at all."""
    path.parent.mkdir(exist_ok=True)
    write_whole(path, (json.dumps(parts, indent=1) + "\n").encode())


def quantities(part: dict[str, Any] | None, value: Value) -> dict[int, float]:
    """Return a quantity of every turn that has it."""
    found = _find(part or {"benchmarks": []}, value.group, value.name)
    answers = {} if found is None else {t["turn"]: _of(t, value.quantity) for t in found["turns"]}
    return {turn: answer for turn, answer in answers.items() if answer is not None}


def every_round(benchmark: dict[str, Any], quantity: str) -> list[float]:
    """Return all that is known of a quantity: of seconds every round, of others every turn."""
    if quantity == "seconds":
        return [seconds for turn in benchmark["turns"] for seconds in turn["rounds"]]
    found = (_of(turn, quantity) for turn in benchmark["turns"])
    return [answer for answer in found if answer is not None]


def failures(parts: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the benchmarks that failed, with their part."""
    return [(name, b) for name, part in parts.items() for b in part["benchmarks"] if "failed" in b]


def _find(part: dict[str, Any], group: str, name: str) -> dict[str, Any] | None:
    names = (b for b in part["benchmarks"] if (b["group"], b["name"]) == (group, name))
    return next(names, None)


def _of(turn: Turn, quantity: str) -> float | None:
    return turn["seconds"] if quantity == "seconds" else turn["extra"].get(quantity)
