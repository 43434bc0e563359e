"""Keep the figures of `make figures`, and write docs/figures.md from them."""

from __future__ import annotations

import os
from typing import Any

from benchmarks.environments import ROOT
from benchmarks.harness import results
from commod._io.files import write_whole

STORED = ROOT / "docs" / "measured" / "figures.json"
PAGE = ROOT / "docs" / "figures.md"
CHANGES = ("SEEDS", "SETTINGS", "TABLES", "ONLY", "OLD", "REPEATS")
HEAD = """# Every promised figure

`make figures` measures these figures of quality, each beside its bar, and writes this page.
[How fast commod is](benchmarks.md) has speed and memory. Each part names its commit, processor and
seconds. A bar that is missed says so.
"""


def is_changed() -> bool:
    """Return whether the environment changes what is measured: such figures are only printed."""
    return any(os.environ.get(name) for name in CHANGES)


def keep(name: str, part: dict[str, Any], order: list[str]) -> None:
    """Store one part, and write the page anew."""
    stored = {**results.read(STORED), name: part}
    parts = {one: stored[one] for one in order if one in stored}
    results.keep(parts, STORED)
    write_whole(PAGE, page(parts).encode())


def page(parts: dict[str, Any]) -> str:
    """Return the page: what is missed first, then a table for each part."""
    rows = [(name, row) for name, part in parts.items() for row in part["rows"]]
    judged = [one for one in rows if one[1][3]]
    missed = [one for one in judged if one[1][3] == "MISSED"]
    summary = f"{len(judged) - len(missed)} of {len(judged)} bars hold."
    listed = [f"- {name}: {figure}: {value}, bar {bar}" for name, (figure, value, bar, _) in missed]
    blocks = [HEAD, "\n".join([summary, *(["", "Missed:", "", *listed] if listed else [])])]
    return "\n".join([*blocks, *(_section(name, part) for name, part in parts.items())])


def _section(name: str, part: dict[str, Any]) -> str:
    where = f"commit {part['commit']}, {part['processor']}, {part['cores']} cores"
    head = f"`make figures FIGURES={name}`: {part['measured']}, {where}, {part['seconds']} s."
    table = ["| figure | value | bar | verdict |", "| --- | --- | --- | --- |"]
    table += ["| " + " | ".join(map(_cell, row)) + " |" for row in part["rows"]]
    return "\n".join([f"\n## {name}\n", head, "", *table])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
