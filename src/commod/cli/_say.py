"""What a command says, and how: sentences for people, one JSON object for machines, or nothing."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from commod.cli._options import in_options

if TYPE_CHECKING:
    from commod import Audit

__all__ = ["AsJson", "Quiet", "Say", "audit_lines", "is_met"]

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of sentences.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]

MOST_ROWS = 30  # of a table on the screen; files have them all


class Say:
    """Where the words of a command go: standard output, and progress to standard error."""

    def __init__(self, as_json: bool, quiet: bool) -> None:
        self.as_json, self.quiet = as_json, quiet
        self.notes: list[str] = []

    @property
    def _talks(self) -> bool:
        return not (self.as_json or self.quiet)

    def line(self, text: str = "", *, bold: bool = False) -> None:
        """Print a sentence."""
        if self._talks:
            _console().print(
                text, style="bold" if bold else None, markup=False, highlight=False, soft_wrap=True
            )

    def note(self, text: str) -> None:
        """Print a sentence that machines get too, under "notes"."""
        self.notes.append(text)
        self.line(f"Note: {text}")

    def warn(self, text: str) -> None:
        """Print a note that must be seen: on standard error, also where only errors are."""
        self.notes.append(text)
        typer.echo(f"commod: warning: {text}", err=True)

    def table(self, title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table; the first column to the left, the others to the right."""
        if not self._talks:
            return
        from rich.table import Table
        from rich.text import Text

        table = Table(title=Text(title), title_justify="left")
        for i, heading in enumerate(headings):
            table.add_column(Text(heading), justify="right" if i else "left", overflow="fold")
        for row in rows[:MOST_ROWS]:
            table.add_row(*(Text(cell) for cell in row))
        _console().print(table)
        if len(rows) > MOST_ROWS:
            self.line(f"and {len(rows) - MOST_ROWS:,} more")

    def result(self, found: dict[str, Any]) -> None:
        """Print what a machine reads, where one was asked for."""
        if self.as_json:
            whole = {**found, "notes": self.notes}
            typer.echo(json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False))

    @contextmanager
    def progress(self, words: str) -> Iterator[Callable[[float], None] | None]:
        """Yield what takes the share that is done and shows it on a terminal; None elsewhere."""
        if not self._talks or not sys.stderr.isatty():
            yield None
            return
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(words, total=1.0)
            yield lambda share: bar.update(task, completed=share)

    @contextmanager
    def waiting(self, words: str) -> Iterator[None]:
        """Show that something is being done whose end cannot be foreseen."""
        if not self._talks or not sys.stderr.isatty():
            yield
            return
        from rich.console import Console

        with Console(stderr=True).status(words):
            yield

    @contextmanager
    def checked(self) -> Iterator[None]:
        """Say once what the library warns of, and take its complaints for the user's mistakes.

        A wrong parameter is a ValueError or TypeError, as everywhere in scikit-learn, and so is
        what a base model says about columns that it does not like.
        """
        from commod.exceptions import CommodError, InputError, TargetWarning

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                yield
            except CommodError:
                raise
            except (ValueError, TypeError) as error:
                raise InputError(" ".join(str(error).split())) from error
        told = [w for w in caught if not issubclass(w.category, TargetWarning)]
        for text in dict.fromkeys(" ".join(str(w.message).split()) for w in told):
            self.note(in_options(text))


def _console() -> Any:
    """Return what prints; a reader that stopped reading (`| head`) ends the talk, not the work."""
    from rich.console import Console

    class Patient(Console):
        def on_broken_pipe(self) -> None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    console = Patient()
    console.width = max(console.width, 80)  # narrower tables lose their numbers
    return console


def audit_lines(say: Say, found: Audit) -> None:
    """Print the answer of an audit and its table of groups."""
    for sentence in found.answer:
        say.line(f"• {sentence}")
    if found.notice:
        say.line(f"• Most of the changes are losses. {found.notice}", bold=True)
    favorable = found.request.favorable_name
    headings = ("group", "people", "before", "after", "gain", "lose")
    rows = [
        (
            group.name,
            f"{group.n:,}",
            _percent(group.favorable_before.value),
            _percent(group.favorable_after.value),
            "not told" if group.n_gains is None else f"{group.n_gains:,}",
            "not told" if group.n_losses is None else f"{group.n_losses:,}",
        )
        for group in found.groups
    ]
    title = f"Share with the favourable outcome ({favorable}), {found.n:,} {found.rows}"
    say.table(title, headings, rows)


def is_met(found: Audit) -> bool | None:
    """Return whether the target holds after; None where none was stated."""
    target, asked = found.request.target, found.fairness[0]
    if target is None:
        return None
    value = asked.after.value
    if value is None:
        return False
    return value >= target if asked.higher_is_fairer else value <= target


def _percent(value: float | None) -> str:
    return "not known" if value is None else f"{value:.1%}"
