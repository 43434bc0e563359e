"""`commod apply`: edit a table with a patch, in bounded memory."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import Annotated

import typer

from commod.cli import _options as options
from commod.cli._command import with_options
from commod.cli._printing import Printer

EXAMPLES = (
    "commod apply patch.json scores.parquet edited.parquet --score f",
    "commod apply patch.json 'month/*.csv' edited.csv.gz --score f --type zip=text",
)
COUNTED = "_commod_counted_"  # begins the names of columns that are counted, but not written


@with_options
def command(
    patch: options.PatchFile,
    source: Annotated[str, typer.Argument(help="CSV, TSV or Parquet file, or a quoted pattern.")],
    out: Annotated[Path, typer.Argument(help="The file to write: .csv, .csv.gz or .parquet.")],
    scores: options.ScoreOptions,
    table: options.TableOptions,
    output: options.FileOptions,
    prefix: options.Prefix = "commod_",
    calibrated: options.Calibrated = False,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            help="New column to add, such as commod_r. Can be repeated. \\[default: the four above]"
        ),
    ] = None,
    memory_limit: Annotated[
        str | None, typer.Option(help="Memory for the rows being edited. \\[default: 1GB]")
    ] = None,
) -> None:
    """Add four columns to a table: edited score, decision, whether it changed, and direction.

    With --calibrated, a fifth column is the edited score as a calibrated probability. --columns
    names the columns instead: the four are commod_score, commod_decision, commod_changed and
    commod_direction; commod_calibrated and commod_r, the ratio itself, come on request.
    The rows keep their order and all their columns. Memory is bounded, however many rows there are.
    """
    from commod import Patch
    from commod._io.tables import TABLE_SUFFIXES, check_output, write_table
    from commod.cli._tables import open_local, patch_column_kinds

    printer = Printer(output)
    loaded = Patch.load(patch, scores.sha256)
    check_output(out, output.force, inputs=[source, patch], suffixes=TABLE_SUFFIXES)
    score = scores.score_column(loaded)
    is_parquet = out.suffix.lower() in (".parquet", ".pq")
    opened = open_local(
        [source],
        table,
        printer,
        expected=patch_column_kinds(loaded, score),
        others=None if is_parquet else "text",  # from text to text other columns stay as they are
        memory_limit=memory_limit,
    )
    with opened:
        edited = loaded.apply(
            opened.relation, score, prefix=prefix, calibrated=calibrated, columns=columns or None
        )
        with printer.progress("editing") as progress:
            write_table(opened.with_relation(edited), out, force=output.force, progress=progress)
        if output.quiet and not output.as_json:  # nobody reads the counts
            return
        with printer.spinner("counting"):
            if prefix + "direction" not in edited.columns[len(opened.relation.columns) :]:
                edited, prefix = loaded.apply(opened.relation, score, prefix=COUNTED), COUNTED
            elif is_parquet:  # it is read back fast; text would have to be parsed again
                edited = opened.connection.read_parquet(glob.escape(str(out)))
            counts = loaded.count(edited, prefix=prefix)
    printer.sentence(
        f"{counts.n_changed:,} of {counts.n_rows:,} decisions changed ({counts.n_gains:,} gains, "
        f"{counts.n_losses:,} losses of the favourable outcome): {out}"
    )
    if counts.n_without_score:
        printer.note(
            f"{counts.n_without_score:,} rows have no score between 0 and 1, and so no decision."
        )
    printer.json({"written": str(out), **vars(counts)})
