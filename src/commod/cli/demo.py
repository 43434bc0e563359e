"""`commod demo`: make a real model fairer end to end, and print who changes and why."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from commod.cli._options import CONSTRAINT_SETTINGS, OutputOptions, Seed
from commod.cli._printing import Printer
from commod.exceptions import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from commod import Audit, Explanation, Frontier

EXAMPLES = ("commod demo", "commod demo --direction any --output my-folder")

Method = Literal["ControlledDebiaser", "COMMOD"]
Direction = Literal["any", "gains_only", "losses_only"]

LABELS = {0: "low risk", 1: "high risk"}
TARGET = 0.8  # the P-rule that US guidelines on hiring call the four-fifths rule
MAX_MARGIN = 0.2  # nobody with a score below 0.3 or above 0.7 changes
LAMBDAS = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0)  # the frontier of COMMOD
N_REFITS = 4  # for stability; more refits would be more exact and take longer


@dataclass(frozen=True)
class DemoResult:
    """What the demo prints and writes, measured on people who were not used for fitting."""

    explanation: Explanation
    audit: Audit
    frontier: Frontier


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
    lambda_fair: Annotated[
        float | None, typer.Option(min=0, help="COMMOD: weight of fairness. \\[default: 3]")
    ] = None,
    lambda_ratio: Annotated[
        float | None, typer.Option(min=0, help="COMMOD: cost of changes. \\[default: 0.2]")
    ] = None,
    seed: Seed = 0,
    output: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("commod-demo"),
) -> None:
    """Train a classifier on COMPAS, make it fairer, print who changes and why, write a report."""
    from rich.console import Console

    from commod.cli._demo_text import print_result

    console = Console()
    console.rule("[bold]commod demo: a recidivism model (COMPAS, bundled)")
    output.mkdir(parents=True, exist_ok=True)  # first: a bad folder must fail before the fit
    parameters = _method_parameters(
        method,
        constraints,
        {"target": target, "direction": direction},
        {"lambda_fair": lambda_fair, "lambda_ratio": lambda_ratio},
    )
    result = _run(method, {"constraints": constraints, **parameters}, seed, console)
    print_result(result.audit, result.explanation)
    printer = Printer(OutputOptions())
    _write(result, output, printer)
    other = "--direction any" if direction is None else "--constraints false_positive_rate_parity"
    printer.sentence()
    printer.sentence(
        f"Next: commod demo {other}; the README shows the same for your own model in ten lines of "
        "Python."
    )


def _method_parameters(
    method: str, constraints: str, stated: dict[str, Any], lambdas: dict[str, float | None]
) -> dict[str, Any]:
    """Return the parameters of the method; refuse those of the other method."""
    is_commod = method == "COMMOD"
    given, others = (lambdas, stated) if is_commod else (stated, lambdas)
    for name, value in others.items():
        if value is not None:
            option, other = name.replace("_", "-"), "ControlledDebiaser" if is_commod else "COMMOD"
            raise InputError(f"--{option} belongs to --method {other}; this is {method}.")
    given = {name: value for name, value in given.items() if value is not None}
    if is_commod:
        return {"lambda_fair": 3.0, "lambda_ratio": 0.2} | given
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


def _run(method: str, parameters: dict[str, Any], seed: int, console: Console) -> DemoResult:
    from sklearn.model_selection import train_test_split

    import commod
    from commod.datasets import load_compas

    table: Any = load_compas()
    X, y = table.data, table.target
    race = table.race.where(table.race == "African-American", "others")  # ProPublica's comparison
    train, others = train_test_split(X.index, test_size=0.6, random_state=seed)
    fit, test = train_test_split(others, test_size=0.5, random_state=seed)
    model = _base_model(X.loc[train], y[train])
    console.print(
        f"A logistic regression learned from {len(train):,} people whether somebody is arrested "
        f"again within two years (1, high risk). It reads {X.shape[1]} columns without race. It "
        "calls African-American people low risk less often than others. Among those who are not "
        "arrested again, it calls them high risk more often, as ProPublica found. The update is "
        f"fitted on {len(fit):,} other people. Everything below is measured on {len(test):,} "
        "people whom neither has seen."
    )
    update = getattr(commod, method)(
        model,
        pos_label=_counted_label(parameters["constraints"]),
        favorable_label=0,
        random_state=seed,
        progress=False,
        **parameters,
    )
    fit_rows = {"X": X.loc[fit], "y": y[fit], "sensitive_features": race[fit]}
    evaluated = {"X_eval": X.loc[test], "y_eval": y[test], "sensitive_features_eval": race[test]}
    grid: dict[str, Any] = {"grid": {"lambda_fair": LAMBDAS}} if method == "COMMOD" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", commod.exceptions.CommodWarning)  # the audit reports it
        with console.status(f"{method} learns the update ..."):
            update.fit(**fit_rows)
        with console.status("The frontier: the same for other targets ..."):
            frontier = commod.frontier(update, **fit_rows, **grid, **evaluated)
        with console.status(f"{N_REFITS} refits on halves of the rows ..."):
            stability = commod.stability(
                update,
                **fit_rows,
                **evaluated,
                n_refits=N_REFITS,
                progress=False,
                random_state=seed,
            )
    explanation = commod.explain(update, X.loc[test])
    audit = commod.audit(
        model.predict(X.loc[test]),
        update.predict(X.loc[test]),
        sensitive_features=race[test],
        y_true=y[test],
        X=X.loc[test],
        explanation=explanation,
        stability=stability,
        label_names=LABELS,
        rows="held-out people",
        title="Recidivism model (COMPAS): who changes, and why",
    )
    return DemoResult(explanation, audit, frontier)


def _base_model(X: Any, y: Any) -> Any:
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

    encode = make_column_transformer(
        (MinMaxScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    )
    return make_pipeline(encode, LogisticRegression(max_iter=1000)).fit(X, y)


def _write(result: DemoResult, folder: Path, printer: Printer) -> None:
    import commod
    from commod._io.files import write_whole, written_together
    from commod.cli._demo_pictures import save_pictures

    audit = result.audit
    with warnings.catch_warnings(), written_together():
        warnings.simplefilter("ignore")  # Matplotlib warns about fonts and backends
        save_pictures(audit, result.explanation, folder)
        audit.ledger.to_csv(folder / "ledger.csv")
        write_whole(folder / "audit.json", audit.to_json().encode())
        path = commod.report(audit, folder / "report.html", frontier=result.frontier)
    printer.sentence()
    printer.sentence(f"Written to {folder}/")
    for name, content in {
        "ratio.png, changes.png, concepts.png": "pictures",
        "ledger.csv": f"one line per changed decision, SHA-256 {audit.ledger.digest[:16]}…",
        "audit.json": "every figure, for programs and for the record",
    }.items():
        printer.sentence(f"  {name}: {content}")
    printer.sentence(f"  The report: {path} (open it in a browser; it needs no network)", bold=True)
