"""`commod apply`, `show`, `verify` and `sql`: what can be done with a patch file."""

from __future__ import annotations

import glob
import hashlib
import json

import typer

from commod._text import visible
from commod.cli._command import with_options
from commod.cli._options import Options, split_pairs
from commod.cli._printing import Printer
from commod.exceptions import InputError

COUNTED = "_commod_counted_"  # begins the names of columns that are counted, but not written


@with_options(
    "commod apply patch.json scores.parquet edited.parquet --score f",
    "commod apply patch.json 'month/*.csv' edited.csv.gz --score f --type zip=text",
)
def apply(options: Options) -> None:
    """Add four columns to a table: edited score, decision, whether it changed, and direction.

    With --calibrated, a fifth column is the edited score as a calibrated probability. --columns
    names the columns instead: the four are commod_score, commod_decision, commod_changed and
    commod_direction; commod_calibrated and commod_r, the ratio itself, come on request.
    The rows keep their order and all their columns. Memory is bounded, however many rows there are.
    Exit code 1: more than half of the rows would get no decision, so nothing was written.
    """
    from commod import Patch
    from commod._io.tables import TABLE_SUFFIXES, check_output, write_table
    from commod.cli._tables import few_scores, open_table, patch_column_kinds, score_of

    printer, out, prefix = Printer(options), options.edited, options.prefix
    patch = Patch.load(options.patch, options.sha256)
    inputs = (options.source, options.patch)
    check_output(out, options.force, inputs=inputs, suffixes=TABLE_SUFFIXES)
    score = score_of(patch, options)
    is_parquet = out.suffix.lower() in (".parquet", ".pq")
    table = open_table(
        [options.source],
        options,
        printer,
        expected=patch_column_kinds(patch, score),
        others=None if is_parquet else "text",  # from text to text other columns stay as they are
        memory_limit=options.memory_limit,
    )
    with table:
        rows, columns = table.relation, options.columns or None
        edited = patch.apply(
            rows, score, prefix=prefix, calibrated=options.calibrated, columns=columns
        )
        if problem := few_scores(table, score, patch.content.base.score):
            printer.warn(problem)
            printer.json({"written": None})
            raise typer.Exit(1)
        with printer.progress("editing") as progress:
            write_table(table.with_relation(edited), out, force=options.force, progress=progress)
        if options.quiet and not options.as_json:  # nobody reads the counts
            return
        with printer.spinner("counting"):
            if prefix + "direction" not in edited.columns[len(rows.columns) :]:
                edited, prefix = patch.apply(rows, score, prefix=COUNTED), COUNTED
            elif is_parquet:  # it is read back fast; text would have to be parsed again
                edited = table.connection.read_parquet(glob.escape(str(out)))
            counts = patch.count(edited, prefix=prefix)
    printer.sentence(
        f"{counts.n_changed:,} of {counts.n_rows:,} decisions changed ({counts.n_gains:,} gains, "
        f"{counts.n_losses:,} losses of the favourable outcome): {out}"
    )
    if counts.n_without_score:
        printer.note(
            f"{counts.n_without_score:,} rows have no score between 0 and 1, and so no decision."
        )
    printer.json({"written": str(out), **vars(counts)})


@with_options("commod show patch.json", "commod show patch.json --diff newer.json")
def show(options: Options) -> None:
    """Print a patch as a scorecard that people can read."""
    from commod import Patch

    printer = Printer(options)
    patch = Patch.load(options.patch, options.sha256)
    if options.diff is not None:
        differences = patch.diff(Patch.load(options.diff))
        for sentence in differences or ["Both patches are alike."]:
            printer.sentence(sentence)
        printer.json({"differences": differences})
        return
    with open(options.patch, "rb") as file:  # the file's own bytes, however its JSON is laid out
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    printer.page(patch.to_text(every_term=options.every_term))
    printer.sentence(f"SHA-256 of the file: {digest}")
    printer.json({"sha256": digest, "patch": json.loads(patch.to_json())})


@with_options(
    "commod verify patch.json report.html",
    "commod verify patch.json report.md --sha256 $SIGNED",
)
def verify(options: Options) -> None:
    """Check that a patch and a report belong together, and name each field that differs.

    Exit code 0: they agree. 1: they differ, or the report was edited. 2: bad input, for example a
    damaged patch, or a report that carries no patch.
    """
    from commod import verify_report

    printer = Printer(options)
    result = verify_report(options.patch, options.signed, sha256=options.sha256)
    for sentence in result.sentences:
        printer.sentence(sentence)
    printer.json(
        {
            "agrees": result.passed,
            "differences": [
                {"field": d.field, "patch": d.in_patch, "report": d.in_report}
                for d in result.differences
            ],
            "patch_sha256": result.patch_sha256,
            "report_file_sha256": result.report_file_sha256,
        }
    )
    if not result.passed:
        raise typer.Exit(1)


@with_options(
    "commod sql patch.json --dialect postgres --table scores --score f",
    "commod sql patch.json --dialect snowflake --table DB.S.SCORES --score F --column age=AGE",
)
def sql(options: Options) -> None:
    """Print a SELECT that adds the edited score and the decision to a table of a database."""
    from commod import Patch
    from commod._io.files import write_whole
    from commod._io.tables import check_output
    from commod.cli._tables import score_of

    printer, out = Printer(options), options.statement
    patch = Patch.load(options.patch, options.sha256)
    if out is not None:
        check_output(out, options.force, inputs=[options.patch])
    form = "PATCH=TABLE, such as age=AGE"
    renamed = split_pairs("--column", options.renamed, form, str.partition)
    text = patch.to_sql(
        options.dialect,
        options.table,
        score_of(patch, options),
        prefix=options.prefix,
        columns=renamed,
        calibrated=options.calibrated,
    )
    if out is not None:
        write_whole(out, (text.rstrip() + "\n").encode())
        printer.sentence(f"SQL for {options.dialect}: {out}")
    elif printer.prints_text:
        if visible(text, keep="\n\t") != text:
            raise InputError(
                "A name or category of the patch has control or invisible characters. The "
                "statement must hold them as they are, and a terminal would obey them. Write the "
                "statement to a file with --out, or pass --json, which escapes them."
            )
        typer.echo(text.rstrip())
    written = None if out is None else str(out)
    printer.json({"dialect": options.dialect, "sql": text, "written": written})
