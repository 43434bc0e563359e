"""`commod debias`: the fewest changes that meet a stated constraint, as a patch and a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from commod.cli import _options as options
from commod.cli._say import AsJson, Quiet, Say, audit_lines, is_met

if TYPE_CHECKING:
    from commod import Audit, Patch
    from commod.cli._rows import Rows

__all__ = ["EXAMPLES", "command"]

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
    all_rows: Annotated[
        bool, typer.Option("--all-rows", help="Seek on all of many rows, not on a sample of them.")
    ] = False,
    features: options.Features = None,
    ignore: options.Ignore = None,
    min_group_size: Annotated[
        int, typer.Option(help="Rows a group needs to be part of the constraint.")
    ] = 30,
    identifier: options.Identifier = None,
    drop_missing: options.DropMissing = False,
    test_size: Annotated[
        float, typer.Option(help="Share of the rows held out; the constraint must hold there, too.")
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
    from commod._io.tables import check_outputs
    from commod.cli._rows import (
        Asked,
        check_blind,
        check_test_size,
        labels_of,
        read_rows,
        split_rows,
    )

    say = Say(as_json, quiet)
    target = options.target_of(constraint, at_least, at_most)
    direction = _direction(gains_only, losses_only)
    check_test_size(test_size)
    written = {"patch": out, "report": report, "ledger": ledger}
    endings = [(path, SUFFIXES[name]) for name, path in written.items()]
    check_outputs(endings, force, inputs=[*files, model])
    asked = Asked(
        files=files,
        label=label,
        sensitive=sensitive,
        model=model,
        score_column=score_column,
        trust_pickle=trust_pickle,
        trust=trust or (),
        features=features or (),
        ignore=ignore or (),
        types=types or (),
        delimiter=delimiter,
        encoding=encoding,
        drop_missing=drop_missing,
        identifier=identifier,
    )
    rows = read_rows(asked, say)
    check_blind(rows)
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
        sample="all" if all_rows else "auto",
        min_group_size=min_group_size,
        random_state=seed,
    )
    patch = update.to_patch()
    found = None
    if report is not None or ledger is not None or test_size:
        found = _audit(update, patch, test_rows, say, is_new=bool(test_size))
    _write(patch, found, written)  # before anything is said: whoever listens may have gone
    _verify(patch, fit_rows, say)
    _tell(update, found, patch, written, say)
    met = bool(update.reached_) and update.promised_ is not False
    if found is not None and test_size:
        met = met and is_met(found) is not False
    say.result(_summary(update, patch, found, written, met))
    if not met:
        raise typer.Exit(1)


def _direction(gains_only: bool, losses_only: bool) -> str:
    from commod.exceptions import InputError

    if gains_only and losses_only:
        raise InputError("--gains-only and --losses-only exclude each other; pass one.")
    return "gains_only" if gains_only else "losses_only" if losses_only else "any"


def _fit(rows: Rows, say: Say, **parameters: Any) -> Any:
    from commod import ControlledDebiaser

    update = ControlledDebiaser(
        rows.estimator,
        locked_features=rows.locked,
        progress=None if not (say.as_json or say.quiet) else False,
        **parameters,
    )
    words = f"looking for the fewest changes ({len(rows):,} rows)"
    with say.checked(), say.waiting(words):
        return update.fit(rows.X, rows.y, sensitive_features=rows.groups)


def _verify(patch: Patch, rows: Rows, say: Say) -> None:
    """Say where the patch holds what it must not."""
    for problem in patch.verify(rows.X, rows.groups).problems:
        say.warn(problem)


def _audit(update: Any, patch: Patch, rows: Rows, say: Say, *, is_new: bool) -> Audit:
    import numpy as np

    import commod

    labels = patch.content.labels

    with say.checked(), say.waiting("auditing"):
        why = commod.explain(update, rows.X)
        return commod.audit(
            np.where(why.before, labels.positive, labels.negative),
            np.where(why.after, labels.positive, labels.negative),
            sensitive_features=rows.groups,
            y_true=rows.y,
            X=rows.X,
            explanation=why,
            rows="rows held out" if is_new else "rows the update was fitted on",
            title=f"What the update changes in {', '.join(rows.files[:3])}",
            min_group_size=update.min_group_size,
        )


def _write(patch: Patch, found: Audit | None, written: dict[str, Path | None]) -> None:
    import commod

    out, report, ledger = (written[name] for name in ("patch", "report", "ledger"))
    assert out is not None
    if found is not None and ledger is not None:
        found.ledger.to_csv(ledger)
    if found is not None and report is not None:
        commod.report(found, report)
    patch.save(out)  # last: where it is, the others are


def _tell(
    update: Any, found: Audit | None, patch: Patch, written: dict[str, Path | None], say: Say
) -> None:
    say.line(update.status_, bold=True)
    if found is not None:
        audit_lines(say, found)
    elif update.confidence is None:
        say.line(
            "Measured on the rows the update was fitted on; --test-size 0.3 would keep some back."
        )
    say.line(f"Patch: {written['patch']} (SHA-256 {patch.sha256})")
    if found is not None and written["ledger"] is not None:
        say.line(f"Ledger of {len(found.ledger):,} changes: {written['ledger']}")
    if written["report"] is not None:
        say.line(f"Report: {written['report']}")


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
