"""Draw shares of groups as bars of text, legible without colour and in ASCII."""

from __future__ import annotations

from dataclasses import dataclass

WIDTH = 40  # characters of a share of 1
NAME_WIDTH = 18


@dataclass(frozen=True)
class GroupBar:
    """The share of one group before the update and, where it is known, after it."""

    name: str
    before: float
    after: float | None = None


@dataclass(frozen=True)
class Marks:
    """The characters of a picture: a kept, a gained and a lost part of a share, and the target."""

    kept: str = "█"
    gained: str = "▒"
    lost: str = "·"
    target: str = "┆"
    arrow: str = "→"


ASCII = Marks("#", "+", ".", "|", "->")


def bar_line(bar: GroupBar, target: float | None, marks: Marks) -> tuple[str, str, str]:
    """Return name, bar and figures of one group; the bar always has WIDTH characters.

    Examples
    --------
    >>> bar_line(GroupBar("women", 0.25, 0.5), 0.6, ASCII)
    ('women             ', '##########++++++++++    |               ', '25.0% -> 50.0%')
    """
    after = bar.before if bar.after is None else bar.after
    ends = [round(WIDTH * share) for share in (min(bar.before, after), max(bar.before, after))]
    moved = marks.gained if after > bar.before else marks.lost
    cells = list((marks.kept * ends[0] + moved * (ends[1] - ends[0])).ljust(WIDTH))
    if target is not None:
        position = min(round(WIDTH * target), WIDTH - 1)
        if cells[position] == " ":  # a longer bar covers the mark
            cells[position] = marks.target
    figures = f"{bar.before:.1%}"
    if bar.after is not None:
        figures += f" {marks.arrow} {bar.after:.1%}"
    name = bar.name if len(bar.name) <= NAME_WIDTH else bar.name[: NAME_WIDTH - 1] + "…"
    return name.ljust(NAME_WIDTH), "".join(cells), figures
