"""`commod audit`: two columns of decisions in files, compared by group."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from commod.cli import _options as options
from commod.cli._say import AsJson, Quiet, Say, audit_lines, is_met

if TYPE_CHECKING:
    from commod import Audit
    from commod._io.tables import Table

__all__ = ["EXAMPLES", "command"]

EXAMPLES = (
    "commod audit decisions.csv --before old --after new --sensitive race --label y",
    "commod audit decisions.parquet --before old --after new --sensitive race "
    "--at-least 0.8 --counts-only --report report.html",
)


def command(
    files: options.Files,
    sensitive: options.Sensitive,
    before: Annotated[str, typer.Option(help="Column of the decisions before.")],
    after: Annotated[str, typer.Option(help="Column of the decisions after.")],
    label: options.Label = None,
    score_before: Annotated[str | None, typer.Option(help="Column of the scores before.")] = None,
    score_after: Annotated[str | None, typer.Option(help="Column of the scores after.")] = None,
    constraint: options.Constraint = "demographic_parity",
    at_least: options.AtLeast = None,
    at_most: options.AtMost = None,
    positive: options.Positive = None,
    favorable: options.Favorable = None,
    min_group_size: Annotated[
        int, typer.Option(help="Smaller groups are named, and compared with nothing.")
    ] = 30,
    counts_only: Annotated[
        bool,
        typer.Option(
            "--counts-only",
            help="Count inside the engine, for tables larger than memory: no segments, no AUC.",
        ),
    ] = False,
    drop_missing: options.DropMissing = False,
    report: Annotated[Path | None, typer.Option(help="Where a report is written (.html).")] = None,
    types: options.Types = None,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = None,
    force: options.Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Say who changed between two columns of decisions, for better or worse, and at what cost.

    Exit code 1 where --at-least or --at-most is stated and does not hold after.
    """
    import commod
    from commod._io.tables import check_output, open_tables
    from commod.cli._rows import check_columns, known_rows

    say = Say(as_json, quiet)
    target = options.target_of(constraint, at_least, at_most)
    if report is not None:
        check_output(report, force, inputs=files, suffixes=options.REPORTS)
    columns = {"before": before, "after": after, "y_true": label}
    scores = {"scores_before": score_before, "scores_after": score_after}
    with say.progress("reading") as progress:
        table = open_tables(
            files,
            types=options.types_of(types),
            delimiter=delimiter,
            encoding=encoding,
            progress=progress,
        )
    with table, say.checked(), say.waiting("auditing"):
        named = {"--before": [before], "--after": [after], "--sensitive": sensitive}
        told = {"--label": label, "--score-before": score_before, "--score-after": score_after}
        check_columns(table, named | {option: [c] for option, c in told.items() if c is not None})
        needed = [*sensitive, *([label] if label else [])]
        kept = known_rows(table, needed, [before, after], drop_missing, say)
        labels = _labels(kept, [before, after])
        larger = labels[-1] if len(labels) == 2 else None
        asked = {
            "request": {"constraints": constraint, "target": target},
            "pos_label": options.label_named("--positive", positive, labels, larger),
            "favorable_label": options.label_named("--favorable", favorable, labels),
            "min_group_size": min_group_size,
            "rows": f"rows of {', '.join(table.files[:3])}",
        }
        how = _counted if counts_only else _audited
        found = how(kept, {**columns, **scores}, sensitive, asked)
    audit_lines(say, found)
    if report is not None:
        commod.report(found, report)
        say.line(f"Report: {report}")
    met = is_met(found)
    say.result({"constraint_met": met, "audit": found.to_dict()})
    if met is False:
        raise typer.Exit(1)


def _labels(table: Table, columns: list[str]) -> list[Any]:
    """Return the values of the columns of decisions, a few at most."""
    import narwhals as nw

    found: dict[Any, None] = {}
    for name in columns:
        frame: Any = nw.from_native(table.relation)
        values = frame.select(name).unique().head(5).collect()[name].drop_nulls().to_list()
        found.update(dict.fromkeys(values))
    return sorted(found, key=lambda value: (str(type(value)), value))


def _counted(
    table: Table, columns: dict[str, str | None], sensitive: list[str], asked: dict[str, Any]
) -> Audit:
    import commod

    named: dict[str, Any] = {**columns, **asked}
    return commod.audit_frame(table.relation, sensitive_features=sensitive, **named)


def _audited(
    table: Table, columns: dict[str, str | None], sensitive: list[str], asked: dict[str, Any]
) -> Audit:
    import commod
    from commod._io.tables import read_frame

    frame = read_frame(table)
    told = [name for name in (*columns.values(), *sensitive) if name is not None]
    read: dict[str, Any] = {
        name: None if column is None else frame[column] for name, column in columns.items()
    }
    X = frame.drop(columns=list(dict.fromkeys(told)))
    groups = frame[sensitive] if len(sensitive) > 1 else frame[sensitive[0]]
    return commod.audit(
        read.pop("before"),
        read.pop("after"),
        sensitive_features=groups,
        X=X if len(X.columns) else None,
        **read,
        **asked,
    )
