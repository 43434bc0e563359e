"""`commod explore`: fit an update and open a page on which people can change it by hand."""

from __future__ import annotations

import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from commod.cli import _options as options
from commod.cli._command import option, with_options
from commod.cli._debias_job import (
    DebiasColumns,
    DebiasConstraint,
    DebiasOutput,
    Job,
)
from commod.cli._engines import EngineOptions
from commod.cli._printing import Printer

if TYPE_CHECKING:
    from commod._explore import Explorer
    from commod.cli._rows import LoadedRows

EXAMPLES = (
    "commod explore train.csv --label y --sensitive race --score-column f --at-least 0.8",
    "commod explore train.csv --label y --sensitive sex --model model.skops --direction gains_only "
    "--no-browser",
)


@dataclass(frozen=True, kw_only=True)
class ExploreOutput(options.OutputOptions):
    """How to open the page."""

    no_browser: bool = option(False, help="Print the address of the page and open no browser.")
    port: int = option(0, min=0, max=65535, help="Port of the page. \\[default: a free one]")


@with_options
def command(
    files: options.Files,
    columns: DebiasColumns,
    model: options.ModelOptions,
    constraint: DebiasConstraint,
    table: options.TableOptions,
    names: options.NameOptions,
    output: ExploreOutput,
    min_group_size: options.MinGroupSize = 30,
) -> None:
    """Fit an update as debias does, and open a page to change it by hand.

    The page is served on this machine only, under an address with a random token. Rows stay here.
    Patch and report are saved from the page. Ctrl-C ends the command, with exit code 0.
    """
    from commod.cli import _rows

    printer = Printer(output)
    job = Job(columns, model, constraint, names, DebiasOutput(), printer, min_group_size)
    constraint.parameters()
    conditions = constraint.requirements.columns
    reader = _rows.TableReader(files, columns, model, table, printer, conditions)
    with reader.open(EngineOptions(engine="memory")) as opened:
        rows = reader.load(opened).with_group_names(names)  # type: ignore[arg-type]
    _rows.check_group_not_determined(rows)
    with _explored(job, rows, output.port) as page:
        printer.sentence(page.update.status_, bold=True)
        printer.sentence(f"Page: {page.url}")
        printer.sentence("Do not share the address. Press Ctrl-C to end.")
        printer.json({"url": page.url})
        with suppress(KeyboardInterrupt), in_browser(page.url, is_wanted=not output.no_browser):
            page.wait()


@contextmanager
def _explored(job: Job, rows: LoadedRows, port: int) -> Iterator[Explorer]:
    """Yield the page of an update that is fitted here."""
    from commod._explore.edits import PeopleOfFit
    from commod._explore.server import open_session, serve

    people = PeopleOfFit(rows.X, rows.y, rows.groups)
    task = f"looking for the fewest changes ({len(rows):,} rows)"
    with job.printer.library_call(), job.printer.spinner(task):
        update = job.update(rows).fit(rows.X, rows.y, sensitive_features=rows.groups)
    session = open_session(update, people, job.names.labels(rows.labels))
    with serve(session, in_notebook=False, port=port) as page:
        yield page


@contextmanager
def in_browser(url: str, *, is_wanted: bool) -> Iterator[None]:
    """Open the page in the browser, by a file that only this user can read.

    Other users of the machine see the arguments of programs, and the address has the token.
    """
    if not is_wanted:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="commod-") as folder:
        path = Path(folder) / "page.html"
        refresh = f'<!DOCTYPE html><meta http-equiv="refresh" content="0; url={escape(url)}">'
        path.write_text(refresh, "utf-8")
        webbrowser.open(path.as_uri())
        yield
