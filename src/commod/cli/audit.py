"""`commod audit`: compare two columns of decisions by group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from commod.cli import _options as options
from commod.cli._command import named_columns, option, with_options
from commod.cli._engines import BLIND_LIMIT, EngineChoice, EngineOptions, Need, TableSize
from commod.cli._printing import Printer, changes_most, print_audit, target_holds, write_report
from commod.exceptions import InputError

if TYPE_CHECKING:
    from commod import Audit
    from commod.cli._tables import OpenTable

EXAMPLES = (
    "commod audit decisions.csv --before old --after new --sensitive race --label y",
    "commod audit decisions.parquet --before old --after new --sensitive race "
    "--at-least 0.8 --engine duckdb --report report.html",
    "commod audit decisions.csv --before old --after new --sensitive race --at-least 0.8 --strict",
)


WHAT = "counted the people; figures that need single rows are not in the audit"


@dataclass(frozen=True, kw_only=True)
class AuditColumns(options.PartlyKnownPeople):
    """Which columns hold decisions, scores, groups and labels."""

    before: str = option(
        help="Column of the earlier decisions.", sets=("y_before",), is_column=True
    )
    after: str = option(help="Column of the later decisions.", sets=("y_after",), is_column=True)
    score_before: str | None = option(
        None, help="Column of the earlier scores.", sets=("scores_before",), is_column=True
    )
    score_after: str | None = option(
        None, help="Column of the later scores.", sets=("scores_after",), is_column=True
    )

    score_is_for: str | None = option(
        None, help="Label that high scores predict. \\[default: the larger label]"
    )

    @property
    def parameters(self) -> dict[str, str | None]:
        """Return the column for each parameter of `commod.audit_frame`."""
        return {
            "before": self.before,
            "after": self.after,
            "y_true": self.label,
            "scores_before": self.score_before,
            "scores_after": self.score_after,
        }


@with_options
def command(
    files: options.Files,
    columns: AuditColumns,
    constraint: options.ConstraintOptions,
    table: options.TableOptions,
    engine: EngineOptions,
    names: options.NameOptions,
    output: options.AuditOutput,
    min_group_size: options.MinGroupSize = 30,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Exit code 1 if a check fails that blocks signing."),
    ] = False,
) -> None:
    """Report who changed between two columns of decisions, for better or worse, at what cost.

    Exit code 1: a bound is stated, and the later decisions do not keep it. With --strict, also if
    another check fails that blocks signing.
    """
    from commod._io.tables import check_outputs
    from commod.cli import _tables

    printer = Printer(output)
    needs = [BLIND_LIMIT] if output.blind_limit else []
    engine.check(needs)
    requirements = constraint.requirements
    check_outputs([(output.report, options.REPORTS)], output.force, inputs=files)
    source = _tables.open_table(files, table, printer, engine=engine)
    with source, printer.library_call(), printer.spinner("auditing"):
        decisions = [columns.before, columns.after]
        within = [("--constraint: the column within", name) for name in requirements.columns]
        _tables.check_columns(source, [*named_columns(columns), *within])
        kept = _tables.complete_rows(source, columns, printer, decisions)
        labels = _decision_labels(kept, decisions)
        larger = labels[-1] if len(labels) == 2 else None
        parameters = {
            "request": {"constraints": list(requirements.parts)},
            **constraint.labels(labels, larger),
            "score_is_for": options.find_label("--score-is-for", columns.score_is_for, labels),
            "label_names": names.labels(labels),
            "group_names": names.groups(_tables.group_values(kept, columns.sensitive, names)),
            "min_group_size": min_group_size,
            "unknown_groups": columns.unknown_groups,
            "rows": f"rows of {', '.join(source.files[:3])}",
        }
        choice = _choose(engine, source, needs)
        if text := choice.text(WHAT):
            printer.note(text)
        measure = _audit_in_memory if choice.in_memory else _audit_in_engine
        if output.blind_limit:
            parameters["blind_limit"] = True
        audit = measure(kept, columns, parameters)
    print_audit(printer, audit)
    write_report(printer, audit, output.report)
    is_met = target_holds(audit)
    if is_met and changes_most(audit):  # which is never a success
        is_met = False
    blocking = [check.code for check in audit.checks if check.blocks_signing]
    result = {"constraint_met": is_met, "blocks_signing": blocking, "audit": audit.to_dict()}
    printer.json(result)
    if is_met is False or (strict and blocking):
        raise typer.Exit(1)


def _choose(engine: EngineOptions, table: OpenTable, needs: list[Need]) -> EngineChoice:
    """Return where the table is audited; in memory, all its columns are read."""
    return engine.choose(TableSize.of(table.n_rows, table.kinds, table.names), needs)


def _decision_labels(table: OpenTable, columns: list[str]) -> list[Any]:
    """Return a few different values of the columns of decisions, sorted."""
    import narwhals as nw

    labels: set[Any] = set()
    for name in columns:
        frame: Any = nw.from_native(table.relation)
        labels.update(frame.select(name).unique().head(5).collect()[name].drop_nulls().to_list())
    return sorted(labels, key=lambda value: (str(type(value)), value))


def _audit_in_engine(table: OpenTable, columns: AuditColumns, parameters: dict[str, Any]) -> Audit:
    import commod

    named: dict[str, Any] = {**columns.parameters, **parameters}
    return commod.audit_frame(table.relation, sensitive_features=columns.sensitive, **named)


def _audit_in_memory(table: OpenTable, columns: AuditColumns, parameters: dict[str, Any]) -> Audit:
    import commod
    from commod._io.tables import SourceTable, read_frame

    assert isinstance(table, SourceTable)
    frame, sensitive = read_frame(table), columns.sensitive
    named = {name: column for name, column in columns.parameters.items() if column is not None}
    values: dict[str, Any] = {name: frame[column] for name, column in named.items()}
    X = frame.drop(columns=list({*named.values(), *sensitive}))
    if "blind_limit" in parameters and not len(X.columns):
        raise InputError(
            "--blind-limit needs other columns than decisions, labels, scores and groups: those "
            "that a rule may read. The table has none; leave the option out."
        )
    return commod.audit(
        values.pop("before"),
        values.pop("after"),
        sensitive_features=frame[sensitive] if len(sensitive) > 1 else frame[sensitive[0]],
        X=X if len(X.columns) else None,
        **values,
        **parameters,
    )
