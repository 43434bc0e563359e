"""Stored results: collect the turns of a run, write them, and look values up by name.

A part is everything that one file of benchmarks measures. A part is replaced as a whole, so that
values that are compared were measured together.
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
    """The address of a value: group and name of a benchmark, and a quantity."""

    group: str
    name: str
    quantity: str = "seconds"


def gather(measured: Iterable[tuple[Step, Turn]]) -> dict[str, dict[str, Any]]:
    """Return the parts of a run, with the turns of every benchmark in order.

    A turn that fills a cache is dropped, unless it failed.
    """
    parts: dict[str, dict[str, Any]] = {}
    for (case, _), turn in sorted(measured, key=lambda pair: pair[1]["turn"]):
        part = parts.setdefault(case.part, {"benchmarks": [], "environments": {}})
        benchmark = _find(part, case.group, case.name)
        if benchmark is None:
            benchmark = {
                "group": case.group,
                "name": case.name,
                "environment": case.environment,
                "turns": [],
            }
            part["benchmarks"].append(benchmark)
        if "failed" in turn:
            benchmark["failed"] = turn["failed"]
        elif turn["turn"] >= 0:
            versions = turn.pop("versions")
            part["environments"][case.environment] = versions
            benchmark["turns"].append(turn)
    return parts


def in_order(parts: dict[str, dict[str, Any]], names: Iterable[tuple[str, str, str]]) -> None:
    """Put the benchmarks of each part in the order of (part, group, name)."""
    places = {name: place for place, name in enumerate(names)}
    for part, content in parts.items():
        content["benchmarks"].sort(key=lambda b: places.get((part, b["group"], b["name"]), 0))


def merged(stored: dict[str, Any], parts: dict[str, Any]) -> dict[str, Any]:
    """Return the stored parts, replaced by the parts of this run where it has them."""
    return {**stored, **parts}


def read(path: Path) -> dict[str, Any]:
    """Return the stored parts, or none if the file does not exist."""
    return json.loads(path.read_text()) if path.exists() else {}


def keep(parts: dict[str, Any], path: Path) -> None:
    """Write the parts; if writing fails, the earlier file stays."""
    path.parent.mkdir(exist_ok=True)
    write_whole(path, (json.dumps(parts, indent=1) + "\n").encode())


def quantities(part: dict[str, Any] | None, value: Value) -> dict[int, float]:
    """Return a quantity by turn, for every turn that has it."""
    benchmark = _find(part or {"benchmarks": []}, value.group, value.name)
    turns = [] if benchmark is None else benchmark["turns"]
    by_turn = {turn["turn"]: _quantity(turn, value.quantity) for turn in turns}
    return {turn: number for turn, number in by_turn.items() if number is not None}


def every_round(benchmark: dict[str, Any], quantity: str) -> list[float]:
    """Return all values of a quantity: seconds of every round, other quantities of every turn."""
    if quantity == "seconds":
        return [seconds for turn in benchmark["turns"] for seconds in turn["rounds"]]
    values = (_quantity(turn, quantity) for turn in benchmark["turns"])
    return [value for value in values if value is not None]


def failures(parts: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the benchmarks that failed, with their part."""
    return [(name, b) for name, part in parts.items() for b in part["benchmarks"] if "failed" in b]


def _find(part: dict[str, Any], group: str, name: str) -> dict[str, Any] | None:
    names = (b for b in part["benchmarks"] if (b["group"], b["name"]) == (group, name))
    return next(names, None)


def _quantity(turn: Turn, quantity: str) -> float | None:
    return turn["seconds"] if quantity == "seconds" else turn["extra"].get(quantity)
