"""Write docs/benchmarks.md: what was measured, when and where, and which bars hold."""

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
    MeasuredFigure,
    evaluate,
    spread,
)
from benchmarks.harness.results import every_round, failures
from benchmarks.harness.sections import SECTIONS, Section

PICTURE = "images/benchmarks-rows.png"
CHANGES = "images/benchmarks-changes.png"


def page(
    parts: dict[str, Any],
    figures: Sequence[Figure],
    *,
    picture: bool = True,
    paper: dict[str, Any] | None = None,
) -> str:
    """Return the page of stored parts; the page says which parts were never measured.

    `paper` describes the run of `make paper` whose tables the picture of changes shows.
    """
    measured = [evaluate(figure, parts) for figure in figures]
    pictures = _pictures(parts.get("rows") if picture else None, paper)
    blocks = ["# Benchmarks", *pictures, *_head(), _summary(parts, measured)]
    for section in SECTIONS:
        of_section = [m for m in measured if m.figure.part == section.part]
        blocks += _section(section, parts.get(section.part), of_section)
    return "\n\n".join([*blocks, *_foot(parts)]) + "\n"


def _pictures(rows: dict[str, Any] | None, paper: dict[str, Any] | None) -> list[str]:
    blocks = []
    if rows is not None:
        blocks += [
            "**How fast?** Microseconds per row against the number of rows: calls of commod, and "
            "beside them a fit of scikit-learn's LogisticRegression and a copy of the table. "
            f"[Many rows](#many-rows) has the numbers. {_provenance(rows)}",
            f"![Microseconds per row against rows, ours and the others']({PICTURE})",
        ]
    if paper is not None:
        splits = ", ".join(
            f"{n} of {name.removesuffix(', demographic_parity')}"
            for name, n in paper["splits"].items()
            if name.endswith("demographic_parity")
        )
        blocks += [
            "**How few changes?** The smallest share of changed decisions with which each method "
            "reaches a P-rule, on test rows, at any accuracy. Means over splits "
            f"({splits}), measured by `make paper`, commit {paper['commit']}. No method can be "
            "below the black bars. [The paper, reproduced](paper.md) has the numbers and the other "
            "tables.",
            f"![Changes against the P-rule on three tables, with the exact limit]({CHANGES})",
        ]
    return blocks


def _head() -> list[str]:
    return [
        "`make bench` writes this page. It runs every benchmark of `benchmarks/speed` with "
        "pytest-benchmark, each in fresh processes. Programs that are compared take turns. A time "
        "is the median over all rounds, with the lowest and the highest in brackets. A ratio is "
        "computed turn by turn, and its median is compared with the bar. A bar has to hold, and "
        "**MISSED** marks a bar that does not. A goal is what we aim for; a missed goal does not "
        "fail a run. A process reuses nothing that an earlier process compiled, unless its name "
        "says so.",
        "`python -m benchmarks.bench --only rows` measures one part again. "
        "`python -m benchmarks.bench --write-docs` writes this page from the stored results.",
    ]


def _summary(parts: dict[str, Any], measured: Iterable[MeasuredFigure]) -> str:
    judged = [m for m in measured if m.figure.is_judged]
    bars = [m for m in judged if m.figure.bar is not None]
    goals = [m for m in judged if m.figure.goal is not None]
    missed = [m for m in judged if m.verdict in (MISSED, GOAL_MISSED, HOLDS_BUT)]
    unknown = [m for m in judged if m.verdict == UNKNOWN]
    n_bars = sum(m.verdict not in (MISSED, UNKNOWN) for m in bars)
    n_goals = sum(m.verdict == HOLDS for m in goals)
    lines = [f"{n_bars} of {len(bars)} bars hold, and {n_goals} of {len(goals)} goals are reached."]
    lines += [f"- {_missed_text(m)}" for m in missed]
    lines += [f"- {m.figure.name}: {UNKNOWN}" for m in unknown]
    lines += [f"- {part}: {b['group']}, {b['name']} failed" for part, b in failures(parts)]
    return "\n".join([lines[0], *([""] if lines[1:] else []), *lines[1:]])


def _missed_text(measured: MeasuredFigure) -> str:
    figure, values = measured.figure, spread(measured.values)
    return f"{figure.name}: {values}, bar {figure.bar_text}: **{measured.verdict}**"


def _section(
    section: Section, part: dict[str, Any] | None, measured: list[MeasuredFigure]
) -> list[str]:
    title = f"## {section.title}"
    if part is None:
        return [title, "Not measured."]
    blocks = [title, f"{section.description} {_provenance(part)}", _times(section, part)]
    if measured:
        blocks.append(_verdicts(measured))
    failed = [b for b in part["benchmarks"] if "failed" in b]
    return blocks + [_failure(benchmark) for benchmark in failed]


def _provenance(part: dict[str, Any]) -> str:
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
    header = ["rows", "action", *(column.header for column in columns), "processes / rounds"]
    return table(header, lines)


def _verdicts(measured: list[MeasuredFigure]) -> str:
    judged_first = sorted(measured, key=lambda m: not m.figure.is_judged)
    lines = [
        [m.figure.name, spread(m.values), m.figure.bar_text, _emphasised(m.verdict)]
        for m in judged_first
    ]
    return table(["figure", "median (lowest to highest)", "bar", "verdict"], lines)


def _emphasised(verdict: str) -> str:
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
        [name, used["python"], ", ".join(f"{p} {v}" for p, v in used["packages"].items())]
        for name, used in environments(parts).items()
    ]
    return [
        "## How this page was made",
        "`make bench` ran all parts on one machine. The load is the number of processes that "
        "wanted to run in the minute before a part began.",
        table(header, lines),
        table(["environment", "Python", "packages"], versions),
    ]


def environments(parts: dict[str, Any]) -> dict[str, Any]:
    """Return the versions of each environment, as the last part that used it reports them."""
    return {name: used for part in parts.values() for name, used in part["environments"].items()}


def table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    rows = [list(header), ["---"] * len(header), *map(list, lines)]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows)
