"""Show a progress bar on standard error that disappears when the work is done."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(
    label: str, show: bool | None, unit: str = "epochs"
) -> Iterator[Callable[[int, int], None] | None]:
    """Yield a function `report(done, total)`, or None where nothing is shown.

    `show=None` shows progress on a terminal only.
    """
    if not (sys.stderr.isatty() if show is None else show):
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):  # a log file gets lines only
        yield lambda done, total: console.print(f"{label}: {done} of {total} {unit}")
        return
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task(label, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
