"""Show a progress bar on standard error that disappears when the work is done."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

_open_bars: list[str] = []  # a fit inside a study shows none: the bar of the study counts fits


@contextmanager
def progress_bar(
    label: str, show: bool | None, unit: str = "epochs"
) -> Iterator[Callable[[int, int], None] | None]:
    """Yield a function `report(done, total)`, or None where nothing is shown.

    `show=None` shows progress on a terminal only, and not inside another bar, shown or not.
    """
    if show is None:
        show = sys.stderr.isatty() and not _open_bars
    _open_bars.append(label)
    try:
        with _bar(label, unit) if show else nullcontext() as report:
            yield report
    finally:
        _open_bars.pop()


@contextmanager
def _bar(label: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function that shows progress."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):  # a log file gets lines only
        yield lambda done, total: console.print(f"{label}: {done} of {total} {unit}")
        return
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task(label, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
