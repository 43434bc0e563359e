"""Print figures beside their bars, with a verdict, and keep them for the page of figures."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """One figure as it was printed: its name, value, bar and verdict."""

    figure: str
    value: str
    bar: str
    verdict: str


shown: list[Row] = []  # since the part began


def show(figure: str, value: str, bar: str = "", holds: bool | None = None) -> None:
    """Print one figure beside its bar."""
    verdict = "" if holds is None else ("holds" if holds else "MISSED")
    shown.append(Row(figure, value, bar, verdict))
    print(f"{figure:<58} {value:<28} {bar:<22} {verdict}", flush=True)


def show_at_most(figure: str, value: float, most: float, note: str = "") -> None:
    """Print a figure that must not exceed its bar, with `note` after it."""
    show(figure, f"{value:.3f} {note}".rstrip(), f"<= {most:g}", bool(value <= most))
