"""`commod debias`: the fewest changes that meet a stated constraint, as a patch and a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from commod.cli import _options as options
from commod.cli._say import AsJson, Quiet, Say, audit_lines

if TYPE_CHECKING:
    from commod import Audit, Patch
    from commod.cli._rows import Rows

__all__ = ["EXAMPLES", "command", "labels_of"]

EXAMPLES = (
    "commod debias train.csv --label y --sensitive race --score-column f --at-least 0.8",
    "commod debias 'train/*.parquet' --label y --sensitive race --sensitive sex --model "
    "model.skops --constraint equalized_odds --at-most 0.1 --report report.html",
    "commod debias train.csv --label y --sensitive sex --score-column f --gains-only "
    "--favorable 0 --test-size 0.3",
)

SUFFIXES = {"patch": (".json",), "report": options.REPORTS, "ledger": (".csv",)}


def command(
    files: options.Files,
    sensitive: options.Sensitive,
    label: options.Label = None,
    model: options.Model = None,
    score_column: options.ScoreColumn = None,
    constraint: options.Constraint = "demographic_parity",
    at_least: options.AtLeast = None,
    at_most: options.AtMost = None,
    max_changes: Annotated[
        float | None, typer.Option(help="Hard limit on the share of decisions that change.")
    ] = None,
    max_accuracy_loss: Annotated[
        float | None, typer.Option(help="Hard limit on the loss of accuracy.")
    ] = None,
    max_volume_change: Annotated[
        float | None, typer.Option(help="Hard limit on the change of the overall positive rate.")
    ] = None,
    gains_only: Annotated[
        bool, typer.Option("--gains-only", help="Nobody loses the favourable outcome.")
    ] = False,
    losses_only: Annotated[
        bool, typer.Option("--losses-only", help="Nobody gains the favourable outcome.")
    ] = False,
    positive: options.Positive = None,
    favorable: options.Favorable = None,
    threshold: options.Threshold = 0.5,
    confidence: Annotated[
        float | None, typer.Option(help="Promise the target for new people, such as 0.95.")
    ] = None,
    sparsity: Annotated[
        float, typer.Option(help="Extra changes, as a share, that a shorter scorecard may cost.")
    ] = 0.14,
    features: options.Features = None,
    ignore: options.Ignore = None,
    min_group_size: Annotated[
        int, typer.Option(help="Rows a group needs to be part of the constraint.")
    ] = 30,
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", help="Drop rows without label, group or score.")
    ] = False,
    test_size: Annotated[
        float, typer.Option(help="Share of the rows held out, on which all is measured.")
    ] = 0.0,
    out: Annotated[Path, typer.Option(help="Where the patch is written.")] = Path("patch.json"),
    report: Annotated[Path | None, typer.Option(help="Where a report is written (.html).")] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="Where the change ledger is written (.csv).")
    ] = None,
    trust_pickle: options.TrustPickle = False,
    trust: options.Trust = None,
    types: options.Types = None,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of samples and splits.")] = 0,
    force: options.Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Find the fewest changes that make a scored table fairer, and write them as a patch.

    Exit code 0: the constraint is met; 1: it is not, and the closest update was written;
    2: bad input.
    """
    from commod._tables import check_output
    from commod.cli._rows import Asked, read_rows, split_rows

    say = Say(as_json, quiet)
    target = options.target_of(constraint, at_least, at_most)
    direction = _direction(gains_only, losses_only)
    written = {"patch": out, "report": report, "ledger": ledger}
    for name, path in written.items():
        if path is not None:
            check_output(path, force, inputs=files, suffixes=SUFFIXES[name])
    asked = Asked(
        files, label, sensitive, model, score_column, trust_pickle, trust or (), features or (),
        ignore or (), types or (), delimiter, encoding, drop_missing,
    )  # fmt: skip
    rows = read_rows(asked, say)
    fit_rows, test_rows = split_rows(rows, test_size, seed)
    labels = labels_of(rows)
    update = _fit(
        fit_rows,
        say,
        constraints=constraint,
        target=target,
        max_changes=max_changes,
        max_accuracy_loss=max_accuracy_loss,
        max_volume_change=max_volume_change,
        direction=direction,
        pos_label=options.label_named("--positive", positive, labels),
        favorable_label=options.label_named("--favorable", favorable, labels),
        threshold=threshold,
        confidence=confidence,
        sparsity=sparsity,
        min_group_size=min_group_size,
        random_state=seed,
    )
    patch = update.to_patch()
    _verify(patch, fit_rows, say)
    say.line(update.status_, bold=True)
    found = None
    if report is not None or ledger is not None or test_size:
        found = _audit(update, test_rows, say, is_new=bool(test_size))
        audit_lines(say, found)
    elif confidence is None:
        say.line(
            "Measured on the rows the update was fitted on; --test-size 0.3 would keep some back."
        )
    _write(patch, found, written, say)
    met = bool(update.reached_) and update.promised_ is not False
    say.result(_summary(update, patch, found, written, met))
    if not met:
        raise typer.Exit(1)


def _direction(gains_only: bool, losses_only: bool) -> str:
    from commod.exceptions import InputError

    if gains_only and losses_only:
        raise InputError("--gains-only and --losses-only exclude each other; pass one.")
    return "gains_only" if gains_only else "losses_only" if losses_only else "any"


def labels_of(rows: Rows) -> list[Any]:
    """Return the two labels, those of the base model where it names them."""
    classes = getattr(rows.estimator, "classes_", None)
    if classes is not None:
        return list(classes.tolist())
    if rows.y is None:
        return [0, 1]
    return sorted(rows.y.dropna().unique().tolist(), key=str)


def _fit(rows: Rows, say: Say, **parameters: Any) -> Any:
    from commod import ControlledDebiaser

    update = ControlledDebiaser(
        rows.estimator,
        locked_features=rows.locked,
        progress=None if not (say.as_json or say.quiet) else False,
        **parameters,
    )
    words = f"looking for the fewest changes ({len(rows):,} rows)"
    with say.warnings_as_notes(), say.waiting(words):
        return update.fit(rows.X, rows.y, sensitive_features=rows.groups)


def _verify(patch: Patch, rows: Rows, say: Say) -> None:
    """Say where the patch holds what it must not."""
    for problem in patch.verify(rows.X, rows.groups).problems:
        say.note(problem)


def _audit(update: Any, rows: Rows, say: Say, *, is_new: bool) -> Audit:
    import commod

    with say.warnings_as_notes(), say.waiting("auditing"):
        why = commod.explain(update, rows.X)
        return commod.audit(
            update._labels_of(why.before),
            update._labels_of(why.after),
            sensitive_features=rows.groups,
            y_true=rows.y,
            X=rows.X,
            explanation=why,
            rows="rows held out" if is_new else "rows the update was fitted on",
            title=f"What the update changes in {', '.join(rows.files[:3])}",
            min_group_size=update.min_group_size,
        )


def _write(patch: Patch, found: Audit | None, written: dict[str, Path | None], say: Say) -> None:
    import commod

    out, report, ledger = (written[name] for name in ("patch", "report", "ledger"))
    assert out is not None
    patch.save(out)
    say.line(f"Patch: {out} (SHA-256 {patch.sha256})")
    if ledger is not None:
        assert found is not None
        found.ledger.to_csv(ledger)
        say.line(f"Ledger of {len(found.ledger):,} changes: {ledger}")
    if report is not None:
        assert found is not None
        commod.report(found, report)
        say.line(f"Report: {report}")


def _summary(
    update: Any, patch: Patch, found: Audit | None, written: dict[str, Path | None], met: bool
) -> dict[str, Any]:
    from commod._record import to_plain

    return {
        "constraint_met": met,
        "status": update.status_,
        "asked": to_plain(patch.content.asked),
        "reached": to_plain(patch.content.reached),
        "columns": [column.name for column in patch.content.ratio.columns],
        "sha256": patch.sha256,
        "written": {name: str(path) for name, path in written.items() if path is not None},
        "audit": None if found is None else found.to_dict(),
    }
