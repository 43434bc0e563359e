"""Print the results of a command: sentences for people, or one JSON object for programs."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from commod._text import json_text, visible
from commod.cli._options import Options
from commod.exceptions import CommodError, InputError, ScoreOrderWarning, TargetWarning

if TYPE_CHECKING:
    from commod import Audit
    from commod._record.audit import Group

MAX_ROWS = 30  # of a table on the screen; files hold every row


class Printer:
    """Print results to standard output, and progress and warnings to standard error.

    Every text goes through `commod._text.visible`: names of columns, groups, labels and files come
    from outside, and a terminal would obey the control characters in them.
    """

    def __init__(self, options: Options) -> None:
        self.as_json = options.as_json
        self.prints_text = not (options.as_json or options.quiet)
        self.notes: list[str] = []

    def sentence(self, text: str = "", *, bold: bool = False) -> None:
        """Print a sentence on one line."""
        self._print(visible(text), "bold" if bold else None)

    def page(self, text: str) -> None:
        """Print text of several lines. Its writer keeps line breaks out of names."""
        self._print(visible(text, keep="\n"))

    def _print(self, text: str, style: str | None = None) -> None:
        if self.prints_text:
            console().print(text, style=style, markup=False, highlight=False, soft_wrap=True)

    def note(self, text: str) -> None:
        """Print a sentence; the JSON object lists it under "notes"."""
        self.notes.append(text)
        self.sentence(f"Note: {text}")

    def warn(self, text: str) -> None:
        """Print a note to standard error, even where only errors are printed."""
        self.notes.append(text)
        typer.echo(f"commod: warning: {visible(text)}", err=True)

    def table(self, title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table. The first column is aligned left, the others right."""
        if not self.prints_text:
            return
        from rich.table import Table
        from rich.text import Text

        table = Table(title=Text(visible(title)), title_justify="left")
        for i, heading in enumerate(headings):
            justify: Literal["left", "right"] = "right" if i else "left"
            table.add_column(Text(visible(heading)), justify=justify, overflow="fold")
        for row in rows[:MAX_ROWS]:
            table.add_row(*(Text(visible(cell)) for cell in row))
        console().print(table)
        if len(rows) > MAX_ROWS:
            self.sentence(f"and {len(rows) - MAX_ROWS:,} more")

    def json(self, result: dict[str, Any]) -> None:
        """Print the result and the notes as one JSON object, if --json was passed."""
        if self.as_json:
            content = {**result, "notes": self.notes}
            text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
            typer.echo(json_text(text))

    @property
    def _shows_progress(self) -> bool:
        return self.prints_text and sys.stderr.isatty()

    @property
    def library_progress(self) -> bool | None:
        """Return the `progress` parameter of the library: None lets the library decide."""
        return None if self.prints_text else False

    @contextmanager
    def progress(self, task: str) -> Iterator[Callable[[float], None] | None]:
        """Yield a function that shows the share of the work done; None without a terminal."""
        if not self._shows_progress:
            yield None
            return
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=True) as bar:
            number = bar.add_task(task, total=1.0)
            yield lambda share: bar.update(number, completed=share)

    def spinner(self, task: str) -> AbstractContextManager[Any]:
        """Return a block that shows a running task whose end cannot be foreseen, with its step."""
        return self._steps(task) if self._shows_progress else nullcontext()

    @contextmanager
    def _steps(self, task: str) -> Iterator[None]:
        from rich.console import Console

        from commod.updates._interface import listening

        with (
            Console(stderr=True).status(task) as status,
            listening(lambda step: status.update(f"{task}: {step}")),
        ):
            yield

    @contextmanager
    def library_call(self) -> Iterator[None]:
        """Turn warnings of the library into notes, and ValueError or TypeError into InputError.

        A wrong parameter is a ValueError or TypeError, as everywhere in scikit-learn. So is an
        error of a base model that cannot read the columns. Each warning is printed once.
        """
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                yield
            except CommodError:
                raise
            except (ValueError, TypeError) as error:
                raise InputError(" ".join(str(error).split())) from error
        shown = [w for w in caught if not issubclass(w.category, TargetWarning)]
        texts = {" ".join(str(w.message).split()): w.category for w in shown}
        for text, category in texts.items():
            if text in self.notes:  # the studies of an update fit on the same rows again
                continue
            tell = self.warn if issubclass(category, ScoreOrderWarning) else self.note
            tell(text)


def console() -> Any:
    """Return a console that goes on working where its reader stops reading (`| head`)."""
    from rich.console import Console

    class PatientConsole(Console):
        def on_broken_pipe(self) -> None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    patient = PatientConsole()
    patient.width = max(patient.width, 80)  # narrower tables lose their numbers
    return patient


def print_audit(printer: Printer, audit: Audit) -> None:
    """Print the answer of an audit and its table of groups.

    The asked, expected and measured fairness come first.
    """
    from commod._reporting.render.texts import asked_expected_measured

    if line := asked_expected_measured(audit):
        printer.sentence(line, bold=True)
    for sentence in audit.answer:
        printer.sentence(f"• {sentence}")
    if audit.notice:
        printer.sentence(f"• Most of the changes are losses. {audit.notice}", bold=True)
    headings = ("group", "people", "before", "after", "gain", "lose")
    rows = [
        (
            group.name,
            f"{group.n:,}",
            _share(group, group.favorable_before.value),
            _share(group, group.favorable_after.value),
            "not shown" if group.n_gains is None else f"{group.n_gains:,}",
            "not shown" if group.n_losses is None else f"{group.n_losses:,}",
        )
        for group in audit.groups
    ]
    favorable = audit.request.favorable_name
    title = f"Share with the favourable outcome ({favorable}), {audit.n:,} {audit.rows}"
    printer.table(title, headings, rows)
    _print_curves(printer, audit)
    printer.sentence(f"Checks: {audit.verdict}")


def _print_curves(printer: Printer, audit: Audit) -> None:
    """Print the areas under and between the ROC curves of groups; nothing if not known."""
    if audit.roc is None:
        return
    from commod._reporting.render.texts import area_texts, roc_sentences

    headings = ("group", "AUC before", "AUC after", "ABROCA before", "ABROCA after")
    title = "Area under the ROC curve (AUC) by group"
    if audit.roc.reference is not None:
        title += f", and area between the curve and that of {audit.roc.reference} (ABROCA)"
    printer.table(title, headings, area_texts(audit.roc))
    for sentence in roc_sentences(audit):
        printer.sentence(f"• {sentence}")


def write_report(printer: Printer, audit: Audit, path: Path | None) -> None:
    """Write the report of an audit and print its path; do nothing without a path."""
    if path is None:
        return
    import commod

    commod.report(audit, path)
    printer.sentence(f"Report: {path}")


def target_holds(audit: Audit) -> bool | None:
    """Return whether all bounds are kept after the update; None if none was stated."""
    kept = [metric.is_kept for metric in audit.fairness if metric.is_kept is not None]
    return all(kept) if kept else None


def _share(group: Group, value: float | None) -> str:
    if group.n_gains is None:  # fewer than five people
        return "not shown"
    return "not known" if value is None else f"{value:.1%}"
