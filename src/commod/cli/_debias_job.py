"""Options of `commod debias`, and what they ask of a fit wherever its rows are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from commod.cli import _options as options
from commod.cli._command import OUTPUT, WHOM, option, stated_parameters
from commod.cli._engines import BLIND_LIMIT, Need
from commod.cli._options import AuditOutput
from commod.cli._printing import Printer
from commod.exceptions import InputError

if TYPE_CHECKING:
    from commod import Audit, ControlledDebiaser, Frontier, Patch, Stability
    from commod.cli._frame_rows import FrameRows
    from commod.cli._rows import LoadedRows


@dataclass(frozen=True, kw_only=True)
class StudyOptions(AuditOutput):
    """The report, and the studies that it shows."""

    trade_off: bool = option(
        False,
        help="Show in the report what other targets would change (.html or .md).",
        advanced=True,
    )
    refits: int = option(
        0,
        help="Fit so often on halves of the rows, and show in the report who changes each time.",
        sets=("n_refits",),
        min=0,
        advanced=True,
    )

    def check_studies(self) -> None:
        """Refuse studies that no report would show; call this before any row is read."""
        for name, is_asked in (("--trade-off", self.trade_off), ("--refits", self.refits)):
            if is_asked and self.report is None:
                raise InputError(f"{name} is shown in a report: pass --report report.html.")
        if self.refits == 1:
            raise InputError("--refits 1: two or more refits are needed to compare them.")
        if self.trade_off and self.report is not None and self.report.suffix.lower() == ".json":
            raise InputError(
                f"--trade-off is not part of a JSON report, and --report is {self.report.name}. "
                "Write an .html or .md report."
            )


@dataclass(frozen=True)
class Studies:
    """The studies of an update; None for a study that was not asked for."""

    frontier: Frontier | None
    stability: Stability | None


def make_studies(
    update: ControlledDebiaser,
    fit_rows: LoadedRows,
    test_rows: LoadedRows | None,
    asked: StudyOptions,
    printer: Printer,
    seed: int,
) -> Studies:
    """Return the studies that were asked for, measured on `test_rows`, or else on the fit rows."""
    import commod

    rows: dict[str, Any] = {
        "X": fit_rows.X,
        "y": fit_rows.y,
        "sensitive_features": fit_rows.groups,
    }
    if test_rows is not None:
        rows |= {
            "X_eval": test_rows.X,
            "y_eval": test_rows.y,
            "sensitive_features_eval": test_rows.groups,
        }
    frontier, stability = None, None
    if asked.trade_off:
        with printer.library_call(), printer.spinner("fitting other targets"):
            frontier = commod.frontier(update, **rows, blind_limit=asked.blind_limit)
            frontier.trade_off()
    if asked.refits:
        with printer.library_call():
            stability = commod.stability(
                update,
                **rows,
                n_refits=asked.refits,
                random_state=seed,
                progress=printer.library_progress,
            )
    return Studies(frontier, stability)


@dataclass(frozen=True, kw_only=True)
class DebiasColumns(options.ColumnOptions, options.PartlyKnownPeople):
    """Which columns the fit reads, and which one names the rows."""


@dataclass(frozen=True, kw_only=True)
class DebiasConstraint(options.ConstraintOptions):
    """What the update must reach, whom it may change, and how its scorecard looks.

    A stated value that an option `passes` is a parameter of `ControlledDebiaser`, which has the
    default.
    """

    target_on: str | None = option(
        None,
        help="new_rows: the target is expected to hold on new people. fit_rows: it holds on the "
        "rows of the table. \\[default: new_rows]",
        passes=True,
        advanced=True,
    )
    confidence: float | None = option(
        None,
        help="Promise the target, such as with 0.95.",
        passes=True,
    )
    direction: str | None = option(
        None,
        help="any, gains_only (nobody loses the favourable outcome) or losses_only.",
        panel=WHOM,
        passes=True,
    )
    max_changes: float | None = option(
        None, help="Cap on the share of changed decisions.", panel=WHOM, passes=True
    )
    max_accuracy_loss: float | None = option(
        None, help="Cap on the loss of accuracy.", panel=WHOM, passes=True
    )
    max_volume_change: float | None = option(
        None, help="Cap on the change of the overall positive rate.", advanced=True, passes=True
    )
    max_margin: float | None = option(
        None,
        help="Cap on |score − threshold| of those who change.",
        panel=WHOM,
        passes=True,
    )
    borderline: float | None = option(
        None,
        help="Extra changes, as a share, for people nearer to the threshold. \\[default: 0.25]",
        panel=WHOM,
        passes=True,
    )
    points: str | None = option(
        None,
        help="integers (−10 to 10), per unit, per bin or auto: per unit.",
        panel=OUTPUT,
        passes=True,
    )
    max_lines: int | None = option(
        None,
        help="Most lines of the scorecard, 0: all. \\[default: 12]",
        min=0,
        panel=OUTPUT,
        passes=lambda n_lines: n_lines or None,
    )
    score_edit: str | None = option(
        None,
        help="changed_only: scores stay where decisions stay. all: edit every score, as in the "
        "paper. \\[default: changed_only]",
        advanced=True,
        passes=True,
    )

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of `ControlledDebiaser` that these options set, without labels."""
        return {**self.constraints_and_target(), **stated_parameters(self)}


@dataclass(frozen=True, kw_only=True)
class DebiasOutput(StudyOptions):
    """The files to write."""

    out: Path = option(Path("patch.json"), help="The patch: .json.")
    ledger: Path | None = option(None, help="Who changes: .csv.")

    @property
    def files(self) -> dict[str, Path | None]:
        """Return the files by the name that the JSON object gives them."""
        return {"patch": self.out, "report": self.report, "ledger": self.ledger}


@dataclass(frozen=True)
class Job:
    """The options of the command, checked, that a fit and its audit read."""

    columns: DebiasColumns
    model: options.ModelOptions
    constraint: DebiasConstraint
    names: options.NameOptions
    output: DebiasOutput
    printer: Printer
    min_group_size: int
    test_size: float = 0.0
    seed: int = 0

    def update(self, rows: LoadedRows | FrameRows) -> ControlledDebiaser:
        """Return the update that the options ask for, not fitted."""
        from commod import ControlledDebiaser

        return ControlledDebiaser(
            rows.estimator,
            locked_features=rows.locked,
            threshold=self.model.threshold,
            min_group_size=self.min_group_size,
            unknown_groups=self.columns.unknown_groups,
            **self.constraint.parameters(),
            **self.constraint.labels(rows.labels),
        )

    @property
    def wants_audit(self) -> bool:
        """Return whether an audit is printed or written."""
        output = self.output
        asked = output.report, output.ledger, output.blind_limit or None, self.test_size or None
        return any(value is not None for value in asked)

    def needs(self) -> list[Need]:
        """Return the options that need all rows in memory, with a way out."""
        asked = (
            (self.output.ledger, "--ledger", "Write all decisions with commod apply"),
            (self.output.refits, "--refits", "Leave it out"),
            (
                self.columns.unknown_groups == "ignore",
                "--unknown-groups ignore",
                "Give missing groups a value of their own, or pass --drop-missing",
            ),
        )
        needs = [Need(name, way_out) for is_asked, name, way_out in asked if is_asked]
        return [*needs, BLIND_LIMIT] if self.output.blind_limit else needs


class Fitted(NamedTuple):
    """A fitted update with what the command writes and prints about it."""

    update: ControlledDebiaser
    patch: Patch
    audit: Audit | None
    studies: Studies
    problems: Sequence[str]


def title_of(files: Sequence[str]) -> str:
    """Return the heading of the report."""
    return f"What the update changes in {', '.join(files[:3])}"


def rows_text(update: ControlledDebiaser, *, is_held_out: bool) -> str:
    """Return what the report calls the audited rows."""
    if is_held_out:
        return "rows held out"
    if update.confidence is not None:
        return "rows given to the fit, half of them to test the promise"
    return "rows the update was fitted on"
