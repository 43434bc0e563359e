"""docs/benchmarks.md: what was measured, when, where, and which bars hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.harness.figures import (
    GOAL_MISSED,
    HOLDS,
    HOLDS_BUT,
    MISSED,
    UNKNOWN,
    Figure,
    Found,
    evaluate,
    spread,
)
from benchmarks.harness.results import every_round, failures
from benchmarks.harness.sections import SECTIONS, Section

PICTURE = "images/benchmarks-rows.png"


def page(parts: dict[str, Any], figures: Sequence[Figure], *, picture: bool = True) -> str:
    """Return the page of stored parts; a part that was never measured is named as such."""
    found = [evaluate(figure, parts) for figure in figures]
    blocks = [*_head(), _summary(parts, found)]
    for section in SECTIONS:
        mine = [one for one in found if one.figure.part == section.part]
        blocks += _section(section, parts.get(section.part), mine, picture)
    return "\n\n".join([*blocks, *_foot(parts)]) + "\n"


def _head() -> list[str]:
    return [
        "# How fast it is",
        "This page is written by `make bench`, which runs every benchmark of `benchmarks/speed` "
        "with pytest-benchmark in fresh processes of its own; programs that are compared take "
        "turns. A time is the median over all rounds, with the least and the most in brackets. A "
        "ratio is taken turn by turn, and its median is held against the bar: a bar that is "
        "missed says **MISSED**. Nothing compiled in an earlier process is found unless it says "
        "so. `python -m benchmarks.bench --only rows` measures one part again, "
        "`python -m benchmarks.bench --write-docs` writes this page from what is stored.",
    ]


def _summary(parts: dict[str, Any], found: Iterable[Found]) -> str:
    found = list(found)
    judged = [one for one in found if one.figure.is_judged]
    bars = [one for one in judged if one.figure.bar is not None]
    goals = [one for one in judged if one.figure.goal is not None]
    missed = [one for one in judged if one.verdict in (MISSED, GOAL_MISSED, HOLDS_BUT)]
    unknown = [one for one in judged if one.verdict == UNKNOWN]
    n_bars = sum(one.verdict not in (MISSED, UNKNOWN) for one in bars)
    n_goals = sum(one.verdict == HOLDS for one in goals)
    lines = [f"{n_bars} of {len(bars)} bars hold, and {n_goals} of {len(goals)} goals are reached."]
    lines += [f"- {_in_words(one)}" for one in missed]
    lines += [f"- {one.figure.words}: {UNKNOWN}" for one in unknown]
    lines += [f"- {part}: {b['group']}, {b['name']} failed" for part, b in failures(parts)]
    return "\n".join([lines[0], *([""] if lines[1:] else []), *lines[1:]])


def _in_words(one: Found) -> str:
    figure = one.figure
    return f"{figure.words}: {spread(one.values)}, bar {figure.bar_in_words}: **{one.verdict}**"


def _section(
    section: Section, part: dict[str, Any] | None, found: list[Found], picture: bool
) -> list[str]:
    title = f"## {section.title}"
    if part is None:
        return [title, "Not measured."]
    blocks = [title, f"{section.words} {_when(part)}", _times(section, part)]
    if found:
        blocks.append(_verdicts(found))
    if section.part == "rows" and picture:
        blocks.append(f"![Seconds per row against rows]({PICTURE})")
    failed = [b for b in part["benchmarks"] if "failed" in b]
    return blocks + [_failure(benchmark) for benchmark in failed]


def _when(part: dict[str, Any]) -> str:
    return (
        f"Measured {part['measured']}, commit {part['commit']}, in {part['seconds'] / 60:.1f} min."
    )


def _times(section: Section, part: dict[str, Any]) -> str:
    columns = [
        column
        for column in section.columns
        if any(every_round(b, column.quantity) for b in part["benchmarks"])
    ]
    lines = []
    for benchmark in part["benchmarks"]:
        cells = [spread(every_round(benchmark, column.quantity)) for column in columns]
        if "failed" in benchmark:
            cells[0] = "failed"
        n = len(every_round(benchmark, "seconds"))
        lines.append(
            [benchmark["group"], benchmark["name"], *cells, f"{len(benchmark['turns'])} / {n}"]
        )
    header = ["rows", "what", *(column.header for column in columns), "processes / rounds"]
    return table(header, lines)


def _verdicts(found: list[Found]) -> str:
    judged_first = sorted(found, key=lambda one: not one.figure.is_judged)
    lines = [
        [one.figure.words, spread(one.values), one.figure.bar_in_words, _loud(one.verdict)]
        for one in judged_first
    ]
    return table(["figure", "median (least to most)", "bar", "verdict"], lines)


def _loud(verdict: str) -> str:
    return f"**{verdict}**" if verdict in (MISSED, GOAL_MISSED) else verdict


def _failure(benchmark: dict[str, Any]) -> str:
    last = benchmark["failed"].strip().splitlines()[-1:]
    return f"{benchmark['group']}, {benchmark['name']} failed: `{''.join(last)}`"


def _foot(parts: dict[str, Any]) -> list[str]:
    shown = {s.part: parts[s.part] for s in SECTIONS if s.part in parts}
    lines = [
        [
            name,
            part["measured"],
            part["commit"],
            f"{part['processor']}, {part['cores']} cores, {part['memory_gb']} GB, {part['system']}",
            part["threads"] or "not set",
            f"{part['load']:g}",
        ]
        for name, part in shown.items()
    ]
    header = ["part", "measured", "commit", "machine", "OMP_NUM_THREADS", "load before"]
    versions = [
        [name, told["python"], ", ".join(f"{p} {v}" for p, v in told["packages"].items())]
        for name, told in environments(parts).items()
    ]
    return [
        "## How this page was made",
        "`make bench`, all on one machine; the load is the number of processes that wanted to run "
        "in the minute before a part began.",
        table(header, lines),
        table(["environment", "Python", "packages"], versions),
    ]


def environments(parts: dict[str, Any]) -> dict[str, Any]:
    """Return the versions in each environment; the last part that used one tells them."""
    return {name: told for part in parts.values() for name, told in part["environments"].items()}


def table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    rows = [list(header), ["---"] * len(header), *map(list, lines)]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows)
