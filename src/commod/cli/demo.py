"""`commod demo`: make a real model fairer in three acts, and open the page of the update."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from commod.cli._command import with_options
from commod.cli._options import Options
from commod.exceptions import InputError

if TYPE_CHECKING:
    from commod import COMMOD, Audit, ControlledDebiaser, Explanation
    from commod.cli._demo_text import DemoPrinter

    Update: TypeAlias = ControlledDebiaser | COMMOD

LABELS = {0: "low risk", 1: "high risk"}
TARGET = 0.8  # the P-rule that US guidelines on hiring call the four-fifths rule
MAX_MARGIN = 0.2  # nobody with a score below 0.3 or above 0.7 changes
LAMBDAS = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0)  # the frontier of COMMOD


@dataclass(frozen=True)
class DemoRows:
    """The people of COMPAS in three parts that share nobody: base model, update, measurement."""

    X: Any
    y: Any
    groups: Any
    train: Any
    fit: Any
    test: Any

    @property
    def fit_rows(self) -> dict[str, Any]:
        """Return the rows of the update, as `fit` takes them."""
        at = self.fit
        return {"X": self.X.loc[at], "y": self.y[at], "sensitive_features": self.groups[at]}

    @property
    def evaluated(self) -> dict[str, Any]:
        """Return the rows of the measurement, as the studies take them."""
        at = self.test
        return {
            "X_eval": self.X.loc[at],
            "y_eval": self.y[at],
            "sensitive_features_eval": self.groups[at],
        }


@with_options("commod demo --open", "commod demo --direction any --output my-folder")
def demo(options: Options) -> None:
    """Make a recidivism model fairer: the problem, the update, who changes and what it costs."""
    from commod.cli._demo_text import (
        DemoPrinter,
        headline,
        print_costs,
        print_problem,
        print_update,
    )

    printer, constraints, folder = DemoPrinter(), options.demo_constraints, options.folder
    folder.mkdir(parents=True, exist_ok=True)  # first: a bad folder must fail before the fit
    rows = split(options.seed)
    counts_errors = _needs_labels(constraints)
    with warnings.catch_warnings(), printer.console.status("The update is fitted ..."):
        warnings.simplefilter("ignore")  # the audit reports what the library warns of
        update = new_update(options, base_model(rows)).fit(**rows.fit_rows)
        audit, explanation = _audited(update, rows)
        audits = [audit, *_beside(update, rows)]
    printer.text(headline(audit), "bold")
    printer.text(
        f"\nThe model is a logistic regression. From {len(rows.train):,} people of the table "
        "COMPAS it learned who is arrested again within two years. The update is fitted on "
        f"{len(rows.fit):,} other people. Everything here is measured on {len(rows.test):,} "
        "people whom neither has seen."
    )
    print_problem(printer, audit, counts_errors=counts_errors)
    print_update(printer, audit, counts_errors=counts_errors)
    print_costs(printer, audits, explanation, counts_errors=counts_errors)
    path = _write(update, audit, rows, folder, printer)
    printer.text("\nNext: commod demo --open; the README has ten lines for your own model.")
    if options.open_page:
        _open(update, rows, path, printer)


def _needs_labels(constraints: str) -> bool:
    """Return whether a constraint compares rates among true labels."""
    from commod.metrics._constraint import get_constraint

    return get_constraint(constraints).needs_labels


def split(seed: int) -> DemoRows:
    """Return the people of COMPAS, cut at random into 40 %, 30 % and 30 %."""
    from sklearn.model_selection import train_test_split

    from commod.datasets import load_compas

    table: Any = load_compas()
    race = table.race.where(table.race == "African-American", "others")  # ProPublica's comparison
    train, others = train_test_split(table.data.index, test_size=0.6, random_state=seed)
    fit, test = train_test_split(others, test_size=0.5, random_state=seed)
    return DemoRows(table.data, table.target, race, train, fit, test)


def new_update(options: Options, model: Any) -> Update:
    """Return the update of the demo, not fitted; refuse a target and a direction for COMMOD.

    The label whose rates are compared is the favourable outcome, “low risk”, for all decisions.
    Rates among true labels are those of “high risk”: ProPublica counted people who are called high
    risk and are not arrested again.
    """
    from commod import COMMOD, ControlledDebiaser

    counts_errors = _needs_labels(options.demo_constraints)
    common: dict[str, Any] = {
        "constraints": options.demo_constraints,
        "pos_label": 1 if counts_errors else 0,
        "favorable_label": 0,
    }
    told = {"target": options.demo_target, "direction": options.demo_direction}
    stated: dict[str, Any] = {name: value for name, value in told.items() if value is not None}
    if options.method == "COMMOD":
        for name in stated:
            raise InputError(f"--{name} belongs to --method ControlledDebiaser; this is COMMOD.")
        common |= {"random_state": options.seed, "training": {"progress": False}}
        return COMMOD(model, lambda_fair=3.0, lambda_ratio=0.2, **common)
    common |= {"direction": "gains_only", "max_margin": MAX_MARGIN}
    if not counts_errors:
        common["target"] = TARGET
    return ControlledDebiaser(model, **(common | stated))


def base_model(rows: DemoRows) -> Any:
    """Return a logistic regression that learned from the first part of the people."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

    encode = make_column_transformer(
        (MinMaxScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    )
    model = make_pipeline(encode, LogisticRegression(max_iter=1000))
    return model.fit(rows.X.loc[rows.train], rows.y[rows.train])


def _beside(update: Update, rows: DemoRows) -> list[Audit]:
    """Return the audit of gains only, or of losses only where the update itself is gains only."""
    from commod import COMMOD

    if isinstance(update, COMMOD):  # COMMOD states none
        return []
    from sklearn.base import clone

    other = "losses_only" if update.direction == "gains_only" else "gains_only"
    beside = clone(update).set_params(direction=other).fit(**rows.fit_rows)
    audit, _ = _audited(beside, rows)
    return [audit]


def _audited(update: Update, rows: DemoRows) -> tuple[Audit, Explanation]:
    """Return the audit and the explanation of an update on the people whom nobody has seen."""
    import commod

    X = rows.X.loc[rows.test]
    explanation = commod.explain(update, X)
    audit = commod.audit(
        update.estimator.predict(X),
        update.predict(X),
        sensitive_features=rows.groups[rows.test],
        y_true=rows.y[rows.test],
        X=X,
        explanation=explanation,
        label_names=LABELS,
        rows="held-out people",
        title="Recidivism model (COMPAS): who changes, and why",
    )
    return audit, explanation


def _write(
    update: Update,
    audit: Audit,
    rows: DemoRows,
    folder: Path,
    printer: DemoPrinter,
) -> Path:
    """Write report, ledger and audit, and print their names; return the path of the report."""
    import commod
    from commod._io.files import write_whole, written_together

    is_commod = isinstance(update, commod.COMMOD)
    grid: dict[str, Any] = {"grid": {"lambda_fair": LAMBDAS}} if is_commod else {}
    with warnings.catch_warnings(), written_together():
        warnings.simplefilter("ignore")
        with printer.console.status("The report: the same for other targets ..."):
            frontier = commod.frontier(update, **rows.fit_rows, **grid, **rows.evaluated)
            path = commod.report(audit, folder / "report.html", frontier=frontier)
        audit.ledger.to_csv(folder / "ledger.csv")
        write_whole(folder / "audit.json", audit.to_json().encode())
    printer.text(f"\nThe report: {path}", "bold")
    printer.text("It is one file that needs no network. Beside it: ledger.csv and audit.json.")
    return path


def _open(update: Update, rows: DemoRows, report: Path, printer: DemoPrinter) -> None:
    """Open the page of the update until Ctrl-C; the report where a method has no page."""
    import webbrowser

    import commod
    from commod.cli.debias import in_browser

    if isinstance(update, commod.COMMOD):
        webbrowser.open(report.resolve().as_uri())
        return
    with commod.explore(update, **rows.fit_rows, label_names=LABELS) as page:
        printer.text(f"Page: {page.url}")
        printer.text("Do not share the address. Press Ctrl-C to end.")
        with suppress(KeyboardInterrupt), in_browser(page.url, is_wanted=True):
            page.wait()
