"""Add studies of an update to the report of `commod debias`: the trade-off and refits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from commod.cli._command import option
from commod.cli._options import AuditOutput
from commod.cli._printing import Printer
from commod.exceptions import InputError

if TYPE_CHECKING:
    from commod import ControlledDebiaser, Frontier, Stability
    from commod.cli._rows import LoadedRows


@dataclass(frozen=True, kw_only=True)
class StudyOptions(AuditOutput):
    """The report, and the studies that it shows."""

    trade_off: bool = option(
        False, help="Show in the report what other targets would change (.html or .md)."
    )
    refits: int = option(
        0,
        help="Fit so often on halves of the rows, and show in the report who changes each time.",
        sets=("n_refits",),
        min=0,
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
