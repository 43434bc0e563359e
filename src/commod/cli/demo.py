"""`commod demo`: make a real model fairer in three acts, and open the page of the update."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from commod.cli._options import CONSTRAINT_SETTINGS, Seed
from commod.exceptions import InputError

if TYPE_CHECKING:
    from commod import Audit, Explanation
    from commod.cli._demo_text import DemoPrinter

EXAMPLES = ("commod demo --open", "commod demo --direction any --output my-folder")

Method = Literal["ControlledDebiaser", "COMMOD"]
Direction = Literal["any", "gains_only", "losses_only"]

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


def command(
    method: Annotated[
        Method,
        typer.Option(help="ControlledDebiaser takes a target, COMMOD the lambdas of the paper."),
    ] = "ControlledDebiaser",
    constraints: Annotated[str, typer.Option(**CONSTRAINT_SETTINGS)] = "demographic_parity",
    target: Annotated[
        float | None,
        typer.Option(
            help="Lowest P-rule, or highest disparity, that is expected on new people. "
            "\\[default: 0.8, or 0.1]"
        ),
    ] = None,
    direction: Annotated[
        Direction | None,
        typer.Option(help="gains_only: nobody loses “low risk”. \\[default: gains_only]"),
    ] = None,
    seed: Seed = 0,
    output: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("commod-demo"),
    open_page: Annotated[
        bool,
        typer.Option(
            "--open",
            help="Open the page of the update in the browser, to change it by hand. With COMMOD: "
            "open the report.",
        ),
    ] = False,
) -> None:
    """Make a recidivism model fairer: the problem, the update, who changes and what it costs."""
    from commod.cli._demo_text import (
        DemoPrinter,
        headline,
        print_costs,
        print_problem,
        print_update,
    )

    printer = DemoPrinter()
    output.mkdir(parents=True, exist_ok=True)  # first: a bad folder must fail before the fit
    parameters = _method_parameters(method, constraints, {"target": target, "direction": direction})
    rows = split(seed)
    counts_errors = _needs_labels(constraints)
    with warnings.catch_warnings(), printer.console.status("The update is fitted ..."):
        warnings.simplefilter("ignore")  # the audit reports what the library warns of
        model = base_model(rows)
        update = new_update(method, model, constraints, seed, parameters).fit(**rows.fit_rows)
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
    path = _write(update, audit, rows, output, printer)
    printer.text("\nNext: commod demo --open; the README has ten lines for your own model.")
    if open_page:
        _open(update, rows, path, printer)


def _method_parameters(method: str, constraints: str, stated: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of the method; refuse a target and a direction for COMMOD."""
    given = {name: value for name, value in stated.items() if value is not None}
    if method == "COMMOD":
        for name in given:
            raise InputError(f"--{name} belongs to --method ControlledDebiaser; this is COMMOD.")
        return {"lambda_fair": 3.0, "lambda_ratio": 0.2}
    defaults: dict[str, Any] = {"direction": "gains_only", "max_margin": MAX_MARGIN}
    if not _needs_labels(constraints):
        defaults["target"] = TARGET
    return defaults | given


def _counted_label(constraints: str) -> int:
    """Return the label whose rates are compared.

    For all decisions this is the favourable outcome, “low risk”. Rates among true labels are those
    of “high risk”: ProPublica counted people who are called high risk and are not arrested again.
    """
    return 1 if _needs_labels(constraints) else 0


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


def new_update(
    method: str, model: Any, constraints: str, seed: int, parameters: dict[str, Any]
) -> Any:
    """Return the update of the demo, not fitted."""
    import commod

    own: dict[str, Any] = {}
    if method == "COMMOD":
        own = {"random_state": seed, "training": {"progress": False}}
    return getattr(commod, method)(
        model,
        constraints=constraints,
        pos_label=_counted_label(constraints),
        favorable_label=0,
        **own,
        **parameters,
    )


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


def _beside(update: Any, rows: DemoRows) -> list[Audit]:
    """Return the audit of gains only, or of losses only where the update itself is gains only."""
    if not hasattr(update, "direction"):  # COMMOD states none
        return []
    from sklearn.base import clone

    other = "losses_only" if update.direction == "gains_only" else "gains_only"
    beside = clone(update).set_params(direction=other).fit(**rows.fit_rows)
    audit, _ = _audited(beside, rows)
    return [audit]


def _audited(update: Any, rows: DemoRows) -> tuple[Audit, Explanation]:
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


def _write(update: Any, audit: Audit, rows: DemoRows, folder: Path, printer: DemoPrinter) -> Path:
    """Write report, ledger and audit, and print their names; return the path of the report."""
    import commod
    from commod._io.files import write_whole, written_together

    is_commod = not hasattr(update, "direction")
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


def _open(update: Any, rows: DemoRows, report: Path, printer: DemoPrinter) -> None:
    """Open the page of the update until Ctrl-C; the report where a method has no page."""
    import webbrowser

    if not hasattr(update, "direction"):
        webbrowser.open(report.resolve().as_uri())
        return
    import commod
    from commod.cli.explore import in_browser

    with commod.explore(update, **rows.fit_rows, label_names=LABELS) as page:
        printer.text(f"Page: {page.url}")
        printer.text("Do not share the address. Press Ctrl-C to end.")
        with suppress(KeyboardInterrupt), in_browser(page.url, is_wanted=True):
            page.wait()
