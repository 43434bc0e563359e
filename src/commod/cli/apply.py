"""`commod apply`: a patch on a table in files, streaming, in bounded memory."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import Annotated

import typer

from commod.cli import _options as options
from commod.cli._say import AsJson, Quiet, Say

__all__ = ["EXAMPLES", "command"]

EXAMPLES = (
    "commod apply patch.json scores.parquet edited.parquet --score f",
    "commod apply patch.json 'month/*.csv' edited.csv.gz --score f --type zip=text",
)


def command(
    patch: Annotated[Path, typer.Argument(help="The patch file.")],
    source: Annotated[str, typer.Argument(help="CSV, TSV or Parquet file, or a quoted pattern.")],
    out: Annotated[Path, typer.Argument(help="The file to write: .csv, .csv.gz or .parquet.")],
    score: options.Score = None,
    prefix: Annotated[str, typer.Option(help="Before the names of the new columns.")] = "commod_",
    sha256: options.Sha256 = None,
    types: options.Types = None,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = None,
    memory_limit: Annotated[
        str | None, typer.Option(help="For the rows in work. \\[default: 1GB]")
    ] = None,
    force: options.Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Add the edited score, the decision, whether it changed and the direction to a table.

    The rows pass through in bounded memory and keep their order; the base score stays.
    """
    from commod import Patch
    from commod._io.tables import TABLE_SUFFIXES, check_output, open_tables, write_table
    from commod.cli._patches import kinds_of, score_of

    say = Say(as_json, quiet)
    loaded = Patch.load(patch, sha256)
    check_output(out, force, inputs=[source, patch], suffixes=TABLE_SUFFIXES)
    column = score_of(loaded, score)
    is_parquet = out.suffix.lower() in (".parquet", ".pq")
    with say.progress("reading") as progress:
        table = open_tables(
            [source],
            types=options.types_of(types),
            expected=kinds_of(loaded, column),
            others=None if is_parquet else "text",  # from text to text other columns stay as is
            delimiter=delimiter,
            encoding=encoding,
            memory_limit=memory_limit,
            progress=progress,
        )
    with table:
        edited = loaded.apply(table.relation, column, prefix=prefix)
        with say.progress("editing") as progress:
            write_table(table.with_relation(edited), out, force=force, progress=progress)
        if quiet and not as_json:  # nobody wants the numbers
            return
        with say.waiting("counting"):
            # what was written is read back fast; text would have to be parsed anew
            back = table.connection.read_parquet(glob.escape(str(out))) if is_parquet else edited
            counts = loaded.count(back, prefix=prefix)
    say.line(
        f"{counts.n_changed:,} of {counts.n_rows:,} decisions changed ({counts.n_gains:,} gains, "
        f"{counts.n_losses:,} losses of the favourable outcome): {out}"
    )
    if counts.n_without_score:
        say.note(
            f"{counts.n_without_score:,} rows have no score between 0 and 1, and so no decision."
        )
    say.result({"written": str(out), **vars(counts)})
