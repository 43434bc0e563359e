"""`commod sql`: print a patch as one SELECT statement for a database."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from commod._text import visible
from commod.cli import _options as options
from commod.cli._command import option, with_options
from commod.cli._printing import Printer
from commod.exceptions import InputError

EXAMPLES = (
    "commod sql patch.json --dialect postgres --table scores --score f",
    "commod sql patch.json --dialect snowflake --table DB.S.SCORES --score F --column age=AGE",
)

Dialect = Literal["duckdb", "postgres", "spark", "snowflake", "bigquery", "tsql"]


@dataclass(frozen=True, kw_only=True)
class SqlOutput(options.FileOptions):
    """Where the statement goes."""

    out: Path | None = option(None, help="File for the statement, instead of printing it.")


@with_options
def command(
    patch: options.PatchFile,
    scores: options.ScoreOptions,
    output: SqlOutput,
    dialect: Annotated[
        Dialect, typer.Option(help="The last three dialects are not tested on a database.")
    ],
    table: Annotated[str, typer.Option(help="Name of the table, as the dialect writes it.")],
    prefix: options.Prefix = "commod_",
    calibrated: options.Calibrated = False,
    column: Annotated[
        list[str] | None,
        typer.Option(help="PATCH=TABLE where the table names a column differently."),
    ] = None,
) -> None:
    """Print a SELECT that adds the edited score and the decision to a table of a database."""
    from commod import Patch
    from commod._io.files import write_whole
    from commod._io.tables import check_output

    printer = Printer(output)
    loaded, out = Patch.load(patch, scores.sha256), output.out
    if out is not None:
        check_output(out, output.force, inputs=[patch])
    score = scores.score_column(loaded)
    names = _column_names(column or [])
    text = loaded.to_sql(dialect, table, score, prefix=prefix, columns=names, calibrated=calibrated)
    if out is not None:
        write_whole(out, (text.rstrip() + "\n").encode())
        printer.sentence(f"SQL for {dialect}: {out}")
    elif printer.prints_text:
        _check_printable(text)
        typer.echo(text.rstrip())
    printer.json({"dialect": dialect, "sql": text, "written": None if out is None else str(out)})


def _check_printable(text: str) -> None:
    """Refuse to print a statement that holds control characters: they cannot be shown as codes."""
    if visible(text, keep="\n\t") != text:
        raise InputError(
            "A name or category of the patch has control or invisible characters. The statement "
            "must hold them as they are, and a terminal would obey them. Write the statement to a "
            "file with --out, or pass --json, which escapes them."
        )


def _column_names(pairs: list[str]) -> dict[str, str]:
    names = [pair.partition("=") for pair in pairs]
    if any(not (in_patch and in_table) for in_patch, _, in_table in names):
        raise InputError(f"--column {pairs} is not of the form PATCH=TABLE, such as age=AGE.")
    return {in_patch: in_table for in_patch, _, in_table in names}
