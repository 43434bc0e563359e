"""Draw the pictures of docs/benchmarks.md: time against rows, and changes against the P-rule."""

from __future__ import annotations

import io
import statistics
from pathlib import Path
from typing import Any

import matplotlib as mpl
from benchmarks.harness.results import Value, quantities
from benchmarks.speed.names import rows_of
from benchmarks.speed.settings import Settings
from matplotlib.figure import Figure

OURS = {
    "fit": "#1f6f8b",
    "fit, odds": "#0b3c49",
    "predict": "#5fa8d3",
    "apply": "#62b6cb",
    "audit": "#c44536",
}
OTHERS = {"copy": "#9aa5b1", "LogisticRegression": "#5c677d"}
MARKS = "osv^D"


def draw_rows(parts: dict[str, Any], settings: Settings) -> bytes | None:
    """Return the picture as PNG, or None if fewer than two sizes were measured."""
    lines = {name: line_of(parts, settings, name) for name in (*OURS, *OTHERS)}
    if all(len(line) < 2 for line in lines.values()):
        return None
    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import NullFormatter, NullLocator

    figure, axes = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
    for (name, colour), mark in zip(OURS.items(), MARKS, strict=True):
        axes.plot(*zip(*lines[name], strict=True), color=colour, marker=mark, label=name)
    for (name, colour), style in zip(OTHERS.items(), (":", "--"), strict=True):
        axes.plot(*zip(*lines[name], strict=True), color=colour, linestyle=style, label=name)
    axes.set(xscale="log", yscale="log", xlabel="rows", ylabel="microseconds per row")
    axes.set_xticks(settings.rows, [f"{n:,}" for n in settings.rows])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_title("20 columns; ours with marks, others without", fontsize=10)
    axes.grid(alpha=0.3)
    figure.legend(loc="outside right upper", frameon=False)
    plt.close(figure)
    return _as_png(figure)


def draw_changes(results: Path) -> bytes:
    """Return the picture of changes against the P-rule as PNG, from the tables of `make paper`."""
    from experiments.frames import read_frames
    from experiments.pictures.changes import draw_changes as draw

    return _as_png(draw(read_frames(results)))


def _as_png(figure: Figure) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, dpi=110, metadata={"Software": None})
    return file.getvalue()


def line_of(parts: dict[str, Any], settings: Settings, name: str) -> list[tuple[int, float]]:
    """Return (rows, microseconds per row) for every measured size."""
    line = []
    for n in settings.rows:
        seconds = quantities(parts.get("rows"), Value(rows_of(n, "category"), name))
        if seconds:
            line.append((n, 1e6 * statistics.median(seconds.values()) / n))
    return line
