"""`commod debias`: find the fewest changes that meet a constraint; write a patch and a report."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import typer

from commod._text import codes_text, most_change_text
from commod.cli import _options as options
from commod.cli._command import option, with_options
from commod.cli._printing import Printer, changes_most, print_audit, target_holds
from commod.cli._studies import Studies, StudyOptions, make_studies
from commod.exceptions import InputError

if TYPE_CHECKING:
    from commod import Audit, ControlledDebiaser, Patch
    from commod.cli._rows import LoadedRows

EXAMPLES = (
    "commod debias train.csv --label y --sensitive race --score-column f --at-least 0.8",
    "commod debias 'train/*.parquet' --label y --sensitive race --sensitive sex --model "
    "model.skops --constraint 'equalized odds <= 0.1' --report report.html",
    "commod debias train.csv --label y --sensitive sex --score-column f --constraint "
    "'demographic parity >= 0.8 within department' --constraint 'minimum rate >= 0.3'",
    "commod debias train.csv --label y --sensitive sex --score-column f --gains-only "
    "--favorable 0 --test-size 0.3",
)


@dataclass(frozen=True, kw_only=True)
class DebiasColumns(options.ColumnOptions):
    """Which columns the fit reads, and which one names the rows."""

    identifier: str | None = option(
        None,
        "--id",
        help="Column that names a row in the ledger. It is no feature.",
        is_column=True,
    )
    change_cost: str | None = option(
        None,
        help="Column of the cost of changing each decision, such as an expected loss. It is no "
        "feature. \\[default: the distance of the score from the threshold]",
        is_column=True,
    )
    unknown_groups: str = option("error", help=options.UNKNOWN_GROUPS_HELP)


@dataclass(frozen=True, kw_only=True)
class DebiasModel(options.ModelOptions):
    """The base model, and whether it has seen the rows."""

    fit_rows_are_new: bool | None = option(
        None,
        "--fit-rows-are-new/--fit-rows-are-seen",
        help="Whether the rows are new to the base model. \\[default: judged from its accuracy]",
    )


@dataclass(frozen=True, kw_only=True)
class DebiasConstraint(options.ConstraintOptions):
    """What the update must reach, and the caps that it must keep."""

    max_changes: float | None = option(None, help="Cap on the share of decisions that change.")
    max_accuracy_loss: float | None = option(None, help="Cap on the loss of accuracy.")
    max_volume_change: float | None = option(
        None, help="Cap on the change of the overall positive rate."
    )
    max_margin: float | None = option(
        None, help="No decision changes whose score is further than this from the threshold."
    )
    target_on: str = option(
        "new_rows",
        help="new_rows: the target is expected to hold on new people. fit_rows: it holds on the "
        "rows of the table.",
    )
    gains_only: bool = option(False, help="Nobody loses the favourable outcome.")
    losses_only: bool = option(False, help="Nobody gains the favourable outcome.")
    confidence: float | None = option(
        None, help="Promise the target for new people with this confidence, such as 0.95."
    )

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of `ControlledDebiaser` that these options set, without labels."""
        return {
            **self.constraints_and_target(),
            "target_on": self.target_on,
            "max_changes": self.max_changes,
            "max_accuracy_loss": self.max_accuracy_loss,
            "max_volume_change": self.max_volume_change,
            "max_margin": self.max_margin,
            "direction": self.direction,
            "confidence": self.confidence,
        }

    @property
    def direction(self) -> str:
        """Return the parameter `direction`; refuse both options at once."""
        if self.gains_only and self.losses_only:
            raise InputError("--gains-only and --losses-only exclude each other; pass one.")
        return "gains_only" if self.gains_only else "losses_only" if self.losses_only else "any"


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """How to search for the update."""

    PANEL: ClassVar[str] = "Search"

    sparsity: float = option(
        0.14, help="Extra changes, as a share, that may be spent on a shorter scorecard."
    )
    borderline: float = option(
        0.1,
        help="Extra changes, as a share, that may be spent on people nearer to the threshold, or "
        "on cheaper changes (--change-cost).",
    )
    no_reads_score: bool = option(
        False,
        help="Let the update read columns of the table only, not the distance of the score from "
        "the threshold.",
        sets=("reads_score",),
    )
    score_edit: str = option(
        "changed_only",
        help="changed_only: scores stay where decisions stay. all: edit every score, as in the "
        "paper.",
    )
    all_rows: bool = option(False, help="Search on all rows, even where a sample would do.")

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of `ControlledDebiaser` that these options set."""
        return {
            "sparsity": self.sparsity,
            "borderline": self.borderline,
            "reads_score": not self.no_reads_score,
            "score_edit": self.score_edit,
            "sample": "all" if self.all_rows else "auto",
        }


@dataclass(frozen=True, kw_only=True)
class DebiasOutput(StudyOptions):
    """The files to write."""

    out: Path = option(Path("patch.json"), help="File for the patch (.json).")
    ledger: Path | None = option(None, help="File for the change ledger (.csv).")

    @property
    def files(self) -> dict[str, Path | None]:
        """Return the files by the name that the JSON object gives them."""
        return {"patch": self.out, "report": self.report, "ledger": self.ledger}


@with_options
def command(
    files: options.Files,
    columns: DebiasColumns,
    model: DebiasModel,
    constraint: DebiasConstraint,
    search: SearchOptions,
    table: options.TableOptions,
    names: options.NameOptions,
    output: DebiasOutput,
    min_group_size: options.MinGroupSize = 30,
    test_size: options.TestSize = 0.0,
    seed: options.Seed = 0,
) -> None:
    """Find the fewest changes that make a scored table fairer, and write them as a patch.

    Exit code 0: the target is expected on new people, with --test-size it also holds on the
    held-out rows. 1: it is not, and the closest update was written, or more than half of all
    decisions change. 2: bad input.
    """
    from commod._io.tables import check_outputs
    from commod.cli import _rows

    printer = Printer(output)
    parameters = constraint.parameters()
    _rows.check_test_size(test_size)
    output.check_studies()
    _check_cost(columns, output)
    endings = ((".json",), options.REPORTS, (".csv",))
    outputs = zip(output.files.values(), endings, strict=True)
    check_outputs(outputs, output.force, inputs=[*files, model.model])
    conditions = constraint.requirements.columns
    reader = _rows.TableReader(files, columns, model, table, printer, conditions)
    rows = reader.read().with_group_names(names)
    _rows.check_group_not_determined(rows)
    label_names = names.labels(rows.labels)
    fit_rows, test_rows = rows.split(test_size, seed)
    update = _fit(
        fit_rows,
        printer,
        threshold=model.threshold,
        fit_rows_are_new=model.fit_rows_are_new,
        **search.parameters(),
        min_group_size=min_group_size,
        unknown_groups=columns.unknown_groups,
        random_state=seed,
        **parameters,
        **constraint.labels(rows.labels),
    )
    patch, audit, studies = update.to_patch(), None, Studies(None, None)
    if output.report is not None or output.ledger is not None or test_size:
        held_out = test_rows if test_size else None
        studies = make_studies(update, fit_rows, held_out, output, printer, seed)
        audit = _audit(update, patch, fit_rows, held_out, printer, studies, label_names)
        patch = patch.with_audit(audit)
    # before anything is printed: the reader of a pipe may be gone
    _write(patch, audit, output, studies)
    for problem in patch.verify(fit_rows.X, fit_rows.groups).problems:
        printer.warn(problem)
    _print(update, audit, patch, output, printer)
    if codes := update.possible_codes_:
        printer.note(codes_text(codes, f"pass --type {shlex.quote(f'{codes[0]}=text')}"))
    is_met = bool(update.reached_) and update.promised_ is not False
    is_met = is_met and not most_change_text(update.change_rate_)
    if audit is not None and test_size:
        is_met = is_met and target_holds(audit) is not False and not changes_most(audit)
    printer.json(_summary(update, patch, audit, output, is_met))
    if not is_met:
        raise typer.Exit(1)


def _check_cost(columns: DebiasColumns, output: DebiasOutput) -> None:
    """Refuse studies that would fit without the costs; call this before any row is read."""
    for name, is_asked in (("--trade-off", output.trade_off), ("--refits", output.refits)):
        if is_asked and columns.change_cost is not None:
            raise InputError(
                f"{name} fits further updates, which know no costs of changes, so it does not go "
                "with --change-cost. Leave one of them out."
            )


def _fit(rows: LoadedRows, printer: Printer, **parameters: Any) -> ControlledDebiaser:
    from commod import ControlledDebiaser

    update = ControlledDebiaser(
        rows.estimator,
        locked_features=rows.locked,
        progress=printer.library_progress,
        **parameters,
    )
    task = f"looking for the fewest changes ({len(rows):,} rows)"
    with printer.library_call(), printer.spinner(task):
        return update.fit(
            rows.X, rows.y, sensitive_features=rows.groups, change_cost=rows.change_cost
        )


def _audit(
    update: ControlledDebiaser,
    patch: Patch,
    fit_rows: LoadedRows,
    held_out: LoadedRows | None,
    printer: Printer,
    studies: Studies,
    label_names: dict[Any, str] | None,
) -> Audit:

    import commod

    rows = fit_rows if held_out is None else held_out
    with printer.library_call(), printer.spinner("auditing"):
        explanation = commod.explain(update, rows.X)
        return commod.audit(
            explanation.y_before,
            explanation.y_after,
            sensitive_features=rows.groups,
            y_true=rows.y,
            X=rows.X,
            explanation=explanation,
            stability=studies.stability,
            label_names=label_names,
            rows=_rows_text(update, held_out),
            title=f"What the update changes in {', '.join(rows.files[:3])}",
            min_group_size=update.min_group_size,
            unknown_groups=update.unknown_groups,
        )


def _rows_text(update: ControlledDebiaser, held_out: LoadedRows | None) -> str:
    """Return what the report calls the audited rows."""
    if held_out is not None:
        return "rows held out"
    if update.confidence is not None:
        return "rows given to the fit, half of them to test the promise"
    return "rows the update was fitted on"


def _write(patch: Patch, audit: Audit | None, output: DebiasOutput, studies: Studies) -> None:
    import commod
    from commod._io.files import written_together

    with written_together():
        if audit is not None and output.ledger is not None:
            audit.ledger.to_csv(output.ledger)
        if audit is not None and output.report is not None:
            commod.report(audit, output.report, frontier=studies.frontier, patch=patch)
        patch.save(output.out)  # last: a patch file means that the other files exist too


def _print(
    update: ControlledDebiaser,
    audit: Audit | None,
    patch: Patch,
    output: DebiasOutput,
    printer: Printer,
) -> None:
    printer.sentence(update.status_, bold=True)
    if audit is not None:
        print_audit(printer, audit)
    elif update.confidence is None:
        printer.sentence("Measured on the fit rows. --test-size 0.3 would hold out some rows.")
    printer.sentence(f"Patch: {output.out} (SHA-256 {patch.sha256})")
    if audit is not None and output.ledger is not None:
        changes = f"{len(audit.ledger):,} changes"
        if len(audit.ledger) != audit.changes.n_changes:
            changes = "all changes, those in groups that no total counts among them"
        printer.sentence(f"Ledger of {changes}: {output.ledger}")
    if output.report is not None:
        printer.sentence(f"Report: {output.report}")


def _summary(
    update: ControlledDebiaser,
    patch: Patch,
    audit: Audit | None,
    output: DebiasOutput,
    is_met: bool,
) -> dict[str, Any]:
    from commod._record import to_plain
    from commod._reporting.explain.expected import expected_of

    return {
        "constraint_met": is_met,
        "status": update.status_,
        "groups_left_out": to_plain(update.groups_left_out_),
        "asked": to_plain(patch.content.asked),
        "reached": to_plain(patch.content.reached),
        "expected": to_plain(expected_of(update)),
        "columns": [column.name for column in patch.content.ratio.columns],
        "sha256": patch.sha256,
        "written": {name: str(path) for name, path in output.files.items() if path is not None},
        "audit": None if audit is None else audit.to_dict(),
    }
