"""`commod sql`: a patch as one SELECT for a warehouse."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from commod.cli import _options as options
from commod.cli._say import AsJson, Quiet, Say

__all__ = ["EXAMPLES", "command"]

EXAMPLES = (
    "commod sql patch.json --dialect postgres --table scores --score f",
    "commod sql patch.json --dialect snowflake --table DB.S.SCORES --score F --column age=AGE",
)

Dialect = Literal["duckdb", "postgres", "spark", "snowflake", "bigquery", "tsql"]


def command(
    patch: Annotated[Path, typer.Argument(help="The patch file.")],
    dialect: Annotated[Dialect, typer.Option(help="The last three are written, but not run.")],
    table: Annotated[str, typer.Option(help="The table, as the dialect writes it.")],
    score: options.Score = None,
    prefix: Annotated[str, typer.Option(help="Before the names of the new columns.")] = "commod_",
    column: Annotated[
        list[str] | None,
        typer.Option(help="PATCH=TABLE where a column has another name in the table."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write it to a file instead.")] = None,
    sha256: options.Sha256 = None,
    force: options.Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Print a SELECT that adds the edited score and decision to a table of a database."""
    from commod import Patch
    from commod._io.files import write_whole
    from commod._io.tables import check_output
    from commod.cli._patches import score_of

    say = Say(as_json, quiet)
    loaded = Patch.load(patch, sha256)
    if out is not None:
        check_output(out, force, inputs=[patch])
    name = score_of(loaded, score)
    text = loaded.to_sql(dialect, table, name, prefix=prefix, columns=_renamed(column))
    if out is not None:
        write_whole(out, (text.rstrip() + "\n").encode())
        say.line(f"SQL for {dialect}: {out}")
    elif not (as_json or quiet):
        typer.echo(text.rstrip())
    say.result({"dialect": dialect, "sql": text, "written": None if out is None else str(out)})


def _renamed(column: list[str] | None) -> dict[str, str]:
    from commod.exceptions import InputError

    pairs = [text.partition("=") for text in column or []]
    if any(not (ours and theirs) for ours, _, theirs in pairs):
        raise InputError(f"--column {column} is not of the form PATCH=TABLE, such as age=AGE.")
    return {ours: theirs for ours, _, theirs in pairs}
