"""`commod check`: test in CI whether a patch still holds on new rows or for a retrained model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from commod._text import at_bound, most_change_text, number
from commod.cli import _options as options
from commod.cli._command import named_columns, with_options
from commod.cli._engines import EngineOptions
from commod.cli._printing import Printer, changes_most, print_audit, write_report
from commod.exceptions import InputError

if TYPE_CHECKING:
    from commod import Audit, Patch
    from commod._record import Fairness

EXAMPLES = (
    "commod check patch.json new.csv --sensitive race --score f",
    "commod check patch.json 'month/*.parquet' --sensitive race --score f --label y "
    "--max-changes 0.06 --sha256 $SIGNED",
)

Verdict = Literal["holds", "does not hold", "not enough evidence"]
VERDICTS: dict[str, Verdict] = {  # by the state of a check
    "passed": "holds",
    "failed": "does not hold",
    "not enough evidence": "not enough evidence",
}

NOT_ENOUGH_EVIDENCE = 3  # exit code


@with_options
def command(
    patch: options.PatchFile,
    files: options.Files,
    scores: options.ScoreOptions,
    people: options.PartlyKnownPeople,
    bound: options.TargetOptions,
    table: options.TableOptions,
    engine: EngineOptions,
    names: options.NameOptions,
    output: options.ReportOptions,
    max_changes: Annotated[
        float | None, typer.Option(help="Cap on the share of decisions that change.")
    ] = None,
    min_group_size: options.MinGroupSize = 30,
) -> None:
    """Apply a patch to new rows and test whether its target still holds.

    The target is the one in the patch unless you state another. Exit code 0: it holds on the whole
    95% interval of the metric. 1: it holds on no part of the interval, or more decisions change
    than --max-changes allows. 2: bad input, for example a patch for other columns. 3: not enough
    evidence, because it holds on a part of the interval only.
    """
    from commod import Patch
    from commod._io.tables import check_outputs
    from commod.cli import _tables

    printer = Printer(output)
    engine.check()
    if engine.engine == "memory":
        raise InputError("--engine memory: check counts rows where they are. Leave it out.")
    loaded = Patch.load(patch, scores.sha256)
    request = loaded.content.asked
    target = bound.target(request.constraints)
    target = request.target if target is None else target
    if max_changes is not None and not 0 <= max_changes <= 1:
        raise InputError(f"--max-changes {max_changes:g} is no share: give 0 to 1.")
    check_outputs([(output.report, options.REPORTS)], output.force, inputs=[*files, patch])
    score = scores.score_column(loaded)
    kinds = _tables.patch_column_kinds(loaded, score, people.label)
    source = _tables.open_table(files, table, printer, engine=engine, expected=kinds)
    with source, printer.library_call(), printer.spinner("checking"):
        within = [("the column within", name) for name in _conditions(loaded)]
        _tables.check_columns(source, [*named_columns(people), *within])
        _tables.note_unscored_rows(source, score, printer)
        rows = _tables.complete_rows(source, people, printer)
        labels = loaded.content.labels
        audit = _audit(
            loaded,
            rows.relation,
            score,
            target,
            sensitive_features=people.sensitive,
            y_true=people.label,
            label_names=names.labels([labels.negative, labels.positive]),
            group_names=names.groups(_tables.group_values(rows, people.sensitive, names)),
            min_group_size=min_group_size,
            unknown_groups=people.unknown_groups,
            rows=f"rows of {', '.join(source.files[:3])}",
        )
    print_audit(printer, audit)
    write_report(printer, audit, output.report)
    verdict = _verdict(audit)
    sentence, excess = _sentence(loaded, audit, verdict), _excess_changes(audit, max_changes)
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
            "audit": audit.to_dict(),
        }
    )
    if failures or is_unsure:
        raise typer.Exit(1 if failures else NOT_ENOUGH_EVIDENCE)


def _conditions(patch: Patch) -> tuple[str, ...]:
    """Return the columns that constraints of a patch are within."""
    from commod.patch.checking import stated_in

    conditions = (constraint.within for constraint, _ in stated_in(patch.content))
    return tuple(dict.fromkeys(within.column for within in conditions if within is not None))


def _audit(
    patch: Patch, relation: Any, score: str, target: float | None, **parameters: Any
) -> Audit:
    """Return the audit of the patch, counted in the engine of the relation."""
    from commod import audit_frame
    from commod.cli._tables import PREFIX, with_decisions

    content, labels = patch.content, patch.content.labels
    return audit_frame(
        with_decisions(patch, relation, score),
        before=PREFIX + "before",
        after=PREFIX + "decision",
        scores_before=score,
        scores_after=PREFIX + "score",
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
        **parameters,
    )


def _verdict(audit: Audit) -> Verdict | None:
    """Return whether the intervals of all metrics keep their bounds: the answer to check CM102.

    None without a bound.
    """
    if all(metric.bound is None for metric in audit.fairness):
        return None
    if audit.fairness[0].after.value is None:
        return "not enough evidence"
    return next(VERDICTS[check.state] for check in audit.checks if check.code == "CM102")


def _sentence(patch: Patch, audit: Audit, verdict: Verdict | None) -> str:
    """Return the verdict with the figures behind it."""
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
    texts = [most_change_text(rate)] if changes_most(audit) else []
    if max_changes is not None and rate > max_changes:
        texts.append(
            f"The patch changes more than allowed: {rate:.2%} of the decisions, at most "
            f"{max_changes:.2%}."
        )
    return texts
