"""`commod audit` and `commod check`: decisions by group, of two columns or of a patch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import typer

from commod._text import at_bound, number
from commod._words.shared import degenerate_check
from commod.cli._command import with_options
from commod.cli._engines import BLIND_LIMIT, check_engine, choose_engine
from commod.cli._options import REPORTS, Options, find_label
from commod.cli._printing import Printer, print_audit, target_holds, write_report
from commod.exceptions import InputError

if TYPE_CHECKING:
    from commod import Audit, Patch
    from commod._io.tables import StoredTable
    from commod._record.audit import Fairness

WHAT = "counted the people; figures that need single rows are not in the audit"

Verdict = Literal["holds", "does not hold", "not enough evidence"]
VERDICTS: dict[str, Verdict] = {  # by the state of a check
    "passed": "holds",
    "failed": "does not hold",
    "not enough evidence": "not enough evidence",
}
NOT_ENOUGH_EVIDENCE = 3  # exit code
SAID_ANYWAY = ("CM101", "CM102", "CM205")  # checks whose figures other sentences of `check` have


@with_options(
    "commod audit decisions.csv --before old --after new --sensitive race --label y",
    "commod audit decisions.parquet --before old --after new --sensitive race "
    "--at-least 0.8 --engine duckdb --report report.html",
    "commod audit decisions.csv --before old --after new --sensitive race --at-least 0.8 --strict",
)
def audit(options: Options) -> None:
    """Report who changed between two columns of decisions, for better or worse, at what cost.

    Exit code 1: a bound is stated, and the later decisions do not keep it. With --strict, also if
    another check fails that blocks signing.
    """
    import commod
    from commod._io.tables import check_outputs
    from commod.cli import _tables

    printer = Printer(options)
    needs = BLIND_LIMIT if options.blind_limit else {}
    check_engine(options.engine, needs)
    constraints = list(options.requirements.parts)
    check_outputs([(options.report, REPORTS)], options.force, inputs=options.files)
    table = _tables.open_table(options.files, options, printer)
    with table, printer.library_call(), printer.spinner("auditing"):
        _tables.check_columns(table, options)
        kept = _tables.complete_rows(table, options, printer)
        labels = _decision_labels(kept, [options.before, options.after])
        larger = labels[-1] if len(labels) == 2 else None
        parameters = {
            "request": {"constraints": constraints},
            **options.label_parameters(labels, larger),
            "score_is_for": find_label("--score-is-for", options.score_is_for, labels),
            **_parameters(options, kept, labels),
        }
        choice = choose_engine(options, table, table.names, needs)
        if text := choice.text(WHAT):
            printer.note(text)
        if choice.in_memory:
            result = _audit_in_memory(kept, options, parameters)
        else:
            parameters |= {**_columns(options), "sensitive_features": options.sensitive}
            result = commod.audit_frame(kept.relation, **parameters)
    print_audit(printer, result)
    write_report(printer, result, options.report)
    is_met = target_holds(result)
    if is_met and degenerate_check(result.checks) is not None:
        is_met = False
    blocking = [one.code for one in result.checks if one.blocks_signing]
    printer.json({"constraint_met": is_met, "blocks_signing": blocking, "audit": result.to_dict()})
    if is_met is False or (options.strict and blocking):
        raise typer.Exit(1)


@with_options(
    "commod check patch.json new.csv --sensitive race --score f",
    "commod check patch.json 'month/*.parquet' --sensitive race --score f --label y "
    "--max-changes 0.06 --sha256 $SIGNED",
)
def check(options: Options) -> None:
    """Apply a patch to new rows and test whether its target still holds.

    The target is the one in the patch unless you state another. Exit code 0: it holds on the whole
    95% interval of the metric. 1: it holds on no part of the interval, another check fails that
    blocks signing, or more decisions change than --max-changes allows. 2: bad input, for example a
    patch for other columns. 3: not enough evidence, because it holds on a part of the interval
    only.
    """
    from commod import Patch
    from commod._io.tables import check_outputs

    printer, most = Printer(options), options.max_changes
    check_engine(options.engine, {})
    if options.engine == "memory":
        raise InputError("--engine memory: check counts rows where they are. Leave it out.")
    patch = Patch.load(options.patch, options.sha256)
    asked = patch.content.asked
    target = options.bound_of(asked.constraints)
    target = asked.target if target is None else target
    if most is not None and not 0 <= most <= 1:
        raise InputError(f"--max-changes {most:g} is no share: give 0 to 1.")
    outputs = [(options.report, REPORTS)]
    check_outputs(outputs, options.force, inputs=[*options.files, str(options.patch)])
    result = _audit_of_patch(patch, target, options, printer)
    print_audit(printer, result)
    write_report(printer, result, options.report)
    verdict = _verdict(result)
    sentence, excess = _sentence(patch, result, verdict), _excess_changes(result, most)
    for text in (sentence, *excess):
        printer.sentence(text, bold=True)
    failures = [*([sentence] if verdict == "does not hold" else []), *excess]
    is_unsure = verdict == "not enough evidence"
    printer.json(
        {
            "verdict": verdict,
            "holds": False if failures else None if is_unsure else True,
            "sentence": sentence,
            "failures": failures,
            "audit": result.to_dict(),
        }
    )
    if failures or is_unsure:
        raise typer.Exit(1 if failures else NOT_ENOUGH_EVIDENCE)


def _parameters(options: Options, table: StoredTable, labels: list[Any]) -> dict[str, Any]:
    """Return the parameters of an audit that both commands set alike."""
    import narwhals as nw

    known: dict[str, list[Any]] = {column: [] for column in options.sensitive}
    if options.group_names:
        frame: Any = nw.from_native(table.relation)
        for column in known:
            known[column] = frame.select(column).unique().collect()[column].drop_nulls().to_list()
    return {
        "label_names": options.named_labels(labels),
        "group_names": options.named_groups(known),
        "min_group_size": options.min_group_size,
        "unknown_groups": options.unknown_groups,
        "rows": f"rows of {', '.join(table.files[:3])}",
    }


# ---------------------------------------------------------------------------------------------
# Two columns of decisions


def _decision_labels(table: StoredTable, columns: list[str]) -> list[Any]:
    """Return a few different values of the columns of decisions, sorted."""
    import narwhals as nw

    labels: set[Any] = set()
    for name in columns:
        frame: Any = nw.from_native(table.relation)
        labels.update(frame.select(name).unique().head(5).collect()[name].drop_nulls().to_list())
    return sorted(labels, key=lambda value: (str(type(value)), value))


def _columns(options: Options) -> dict[str, Any]:
    """Return the column for each parameter of `commod.audit_frame`."""
    return {
        "before": options.before,
        "after": options.after,
        "y_true": options.label,
        "scores_before": options.score_before,
        "scores_after": options.score_after,
    }


def _audit_in_memory(table: StoredTable, options: Options, parameters: dict[str, Any]) -> Audit:
    import commod
    from commod._io.tables import read_frame

    frame, sensitive = read_frame(table), options.sensitive
    named = {name: column for name, column in _columns(options).items() if column is not None}
    values: dict[str, Any] = {name: frame[column] for name, column in named.items()}
    X = frame.drop(columns=list({*named.values(), *sensitive}))
    if options.blind_limit and not len(X.columns):
        raise InputError(
            "--blind-limit needs other columns than decisions, labels, scores and groups: those "
            "that a rule may read. The table has none; leave the option out."
        )
    return commod.audit(
        values.pop("before"),
        values.pop("after"),
        sensitive_features=frame[sensitive] if len(sensitive) > 1 else frame[sensitive[0]],
        X=X if len(X.columns) else None,
        blind_limit=options.blind_limit,
        **values,
        **parameters,
    )


# ---------------------------------------------------------------------------------------------
# A patch


def _audit_of_patch(
    patch: Patch, target: float | None, options: Options, printer: Printer
) -> Audit:
    """Return the audit of the patch on new rows, counted in their engine."""
    import narwhals as nw

    import commod
    from commod.cli import _tables
    from commod.patch.checking import stated_in

    content, labels, score = patch.content, patch.content.labels, _tables.score_of(patch, options)
    kinds = _tables.patch_column_kinds(patch, score, options.label)
    table = _tables.open_table(options.files, options, printer, expected=kinds)
    with table, printer.library_call(), printer.spinner("checking"):
        conditions = [one.within for one, _ in stated_in(content) if one.within is not None]
        within = [("the column within", condition.column) for condition in conditions]
        _tables.check_columns(table, options, within)
        if score in table.names:  # if not, the patch refuses the table in its own words
            frame: Any = nw.from_native(table.relation)
            is_missing = nw.col(score).is_null()
            _tables.leave_out(frame, is_missing, f"a score ({score})", printer)
        rows = _tables.complete_rows(table, options, printer)
        return commod.audit_frame(
            _tables.with_decisions(patch, rows.relation, score),
            sensitive_features=options.sensitive,
            y_true=options.label,
            request={
                "constraints": content.asked.constraints,
                "target": target,
                "further": content.asked.further,
                "direction": content.asked.direction,
                "threshold": content.base.threshold,
            },
            pos_label=labels.compared,
            favorable_label=labels.favorable,
            score_is_for=labels.positive,
            **_tables.columns_of_decisions(score),
            **_parameters(options, rows, [labels.negative, labels.positive]),
        )


def _verdict(audit: Audit) -> Verdict | None:
    """Return the verdict of the checks that block signing; None without a bound if none fails.

    One of them is CM102, whether the intervals of all metrics keep their bounds.
    """
    if audit.verdict_state != "failed" and all(one.bound is None for one in audit.fairness):
        return None
    return VERDICTS[audit.verdict_state]


def _sentence(patch: Patch, audit: Audit, verdict: Verdict | None) -> str:
    """Return the verdict with the figures behind it, and the checks that alone decide it."""
    if verdict is None:
        return "The patch states no target, so there is nothing to check: pass --at-least."
    opening = {
        "holds": "The patch holds",
        "does not hold": "The patch does not hold",
        "not enough evidence": "Not enough evidence that the patch holds",
    }[verdict]
    reached = patch.content.reached
    stated = [metric for metric in audit.fairness if metric.asked]
    earlier = [reached.fairness_after, *(figures.after for figures in reached.further)]
    texts = [
        _figures(audit, metric, value, reached.rows)
        for metric, value in zip(stated, earlier, strict=True)
        if metric.bound is not None
    ]
    failed = [one for one in audit.checks if one.blocks_signing and one.code not in SAID_ANYWAY]
    texts += [one.sentence.rstrip(".") for one in failed]
    return f"{opening}: {'. And '.join(texts)}."


def _figures(audit: Audit, metric: Fairness, earlier: float | None, rows: str) -> str:
    """Return a metric with its interval, its bound, and what it was on the rows of the fit."""
    if metric.after.value is None:
        now = f"the {metric.name} is not defined on these rows"
    else:
        low, high = (number(end, 3) for end in (metric.after.low, metric.after.high))
        now = (
            f"{metric.name} {metric.after.value:.3f}, between {low} and {high} "
            f"({audit.level * 100:g}% interval)"
        )
    then = "" if earlier is None else f"; it was {earlier:.3f} on the {rows}"
    required = at_bound(f"{metric.bound:g}", metric.higher_is_fairer)
    return f"{now}; required: {required}{then}"


def _excess_changes(audit: Audit, max_changes: float | None) -> list[str]:
    """Return a sentence if most decisions change, and one if more change than the cap allows."""
    rate = audit.changes.rate.value or 0.0
    texts = [audit.answer[0]] if degenerate_check(audit.checks) else []
    if max_changes is not None and rate > max_changes:
        texts.append(
            f"The patch changes more than allowed: {rate:.2%} of the decisions, at most "
            f"{max_changes:.2%}."
        )
    return texts
