"""`commod check`: does a patch still hold on new rows, or on a retrained score? For CI."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from commod.cli import _options as options
from commod.cli._say import AsJson, Quiet, Say, audit_lines, is_met

if TYPE_CHECKING:
    from commod import Audit, Patch

__all__ = ["EXAMPLES", "command"]

EXAMPLES = (
    "commod check patch.json new.csv --sensitive race --score f",
    "commod check patch.json 'month/*.parquet' --sensitive race --score f --label y "
    "--max-changes 0.06 --sha256 $SIGNED",
)

PREFIX = "_commod_check_"  # so that a table that was edited before can be checked


def command(
    patch: Annotated[Path, typer.Argument(help="The patch file.")],
    files: options.Files,
    sensitive: options.Sensitive,
    score: options.Score = None,
    label: options.Label = None,
    at_least: options.AtLeast = None,
    at_most: options.AtMost = None,
    max_changes: Annotated[
        float | None, typer.Option(help="Share of decisions that may change. \\[default: no limit]")
    ] = None,
    min_group_size: Annotated[
        int, typer.Option(help="Smaller groups are named, and compared with nothing.")
    ] = 30,
    drop_missing: options.DropMissing = False,
    sha256: options.Sha256 = None,
    report: Annotated[Path | None, typer.Option(help="Where a report is written (.html).")] = None,
    types: options.Types = None,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = None,
    force: options.Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Apply a patch to new rows and say whether what it was made for still holds.

    The target is the patch's own unless another is stated. Exit code 0: it holds; 1: it does not;
    2: bad input, a patch for other columns among it.
    """
    import commod
    from commod._io.tables import check_output, open_tables
    from commod.cli._patches import kinds_of, score_of
    from commod.cli._rows import check_columns, known_rows
    from commod.exceptions import InputError

    say = Say(as_json, quiet)
    loaded = commod.Patch.load(patch, sha256)
    asked = loaded.content.asked
    target = options.target_of(asked.constraints, at_least, at_most)
    target = asked.target if target is None else target
    if max_changes is not None and not 0 <= max_changes <= 1:
        raise InputError(f"--max-changes {max_changes:g} is a share, between 0 and 1.")
    if report is not None:
        check_output(report, force, inputs=[*files, patch], suffixes=options.REPORTS)
    column = score_of(loaded, score)
    with say.progress("reading") as progress:
        table = open_tables(
            files,
            types=options.types_of(types),
            expected=kinds_of(loaded, column, label),
            delimiter=delimiter,
            encoding=encoding,
            progress=progress,
        )
    with table, say.checked(), say.waiting("checking"):
        told = {"--sensitive": sensitive, "--label": [label] if label else []}
        check_columns(table, told)
        kept = known_rows(table, [*sensitive, *told["--label"]], (), drop_missing, say)
        found = _audit(
            loaded,
            kept.relation,
            column,
            sensitive_features=sensitive,
            y_true=label,
            target=target,
            min_group_size=min_group_size,
            rows=f"rows of {', '.join(table.files[:3])}",
        )
    audit_lines(say, found)
    if report is not None:
        commod.report(found, report)
        say.line(f"Report: {report}")
    failures = _failures(loaded, found, target, max_changes)
    for sentence in failures or [_holds(found, target)]:
        say.line(sentence, bold=True)
    say.result({"holds": not failures, "failures": failures, "audit": found.to_dict()})
    if failures:
        raise typer.Exit(1)


def _audit(
    patch: Patch,
    frame: Any,
    score: str,
    *,
    sensitive_features: list[str],
    y_true: str | None,
    target: float | None,
    **how: Any,
) -> Audit:
    """Return the audit of the patch on a frame, counted inside its engine."""
    import narwhals as nw

    from commod import audit_frame

    content, prefix = patch.content, PREFIX
    edited: Any = nw.from_native(patch.apply(frame, score, prefix=prefix))
    decided, changed = nw.col(prefix + "decision"), nw.col(prefix + "changed")
    labels = content.labels
    is_positive = decided == labels.positive
    other = nw.when(is_positive).then(nw.lit(labels.negative)).otherwise(nw.lit(labels.positive))
    edited = edited.with_columns(
        nw.when(changed).then(other).otherwise(decided).alias(prefix + "before")
    )
    return audit_frame(
        edited.to_native(),
        before=prefix + "before",
        after=prefix + "decision",
        scores_before=score,
        scores_after=prefix + "score",
        sensitive_features=sensitive_features,
        y_true=y_true,
        request={
            "constraints": content.asked.constraints,
            "target": target,
            "direction": content.asked.direction,
            "threshold": content.base.threshold,
        },
        pos_label=labels.positive,
        favorable_label=labels.favorable,
        **how,
    )


def _failures(
    patch: Patch, found: Audit, target: float | None, max_changes: float | None
) -> list[str]:
    said = []
    asked, reached = found.fairness[0], patch.content.reached
    if is_met(found) is False:
        value = "is not defined" if asked.after.value is None else f"is {asked.after.value:.3f}"
        sign = "≥" if asked.higher_is_fairer else "≤"
        before = reached.fairness_after
        then = "" if before is None else f" (it was {before:.3f} on the {reached.rows})"
        said.append(
            f"The patch no longer holds: {asked.metric} {value}{then}, not {sign} {target:g}."
        )
    rate = found.changes.rate.value or 0.0
    if max_changes is not None and not rate <= max_changes:
        said.append(
            f"The patch changes more than allowed: {rate:.2%} of the decisions, at most "
            f"{max_changes:.2%}."
        )
    return said


def _holds(found: Audit, target: float | None) -> str:
    asked = found.fairness[0]
    if target is None or asked.after.value is None:
        return "The patch states no target, so there is nothing to hold: pass --at-least."
    sign = "≥" if asked.higher_is_fairer else "≤"
    return f"The patch holds: {asked.metric} {asked.after.value:.3f} {sign} {target:g}."
