"""`commod demo`: debias a real model end to end and say in plain words what happened to whom."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from commod.cli._options import ConstraintName

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from commod import Audit, Explanation, Frontier

__all__ = ["EXAMPLES", "command"]

EXAMPLES = ("commod demo", "commod demo --direction gains_only --output my-folder")

Method = Literal["ControlledDebiaser", "COMMOD"]
Direction = Literal["any", "gains_only", "losses_only"]

LABELS = {0: "low risk", 1: "high risk"}
LAMBDAS = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0)  # of COMMOD's trade-off
N_REFITS = 10  # for stability; more would say more and take longer
N_LINES = 15  # of the scorecard; the report has more


@dataclass(frozen=True)
class Demo:
    """What the demo talks about: an update, and people that neither it nor the model has seen."""

    update: Any
    X: Any
    y: Any
    groups: Any
    why: Explanation
    found: Audit
    curve: Frontier


def command(
    method: Annotated[
        Method,
        typer.Option(help="State a target (ControlledDebiaser) or the paper's lambdas (COMMOD)."),
    ] = "ControlledDebiaser",
    constraints: Annotated[
        ConstraintName, typer.Option(help="Which unfairness to remove.")
    ] = "demographic_parity",
    target: Annotated[
        float | None,
        typer.Option(help="P-rule at least, or disparity at most. \\[default: 0.8, or 0.1]"),
    ] = None,
    direction: Annotated[
        Direction | None,
        typer.Option(help="gains_only: nobody loses the favourable outcome. \\[default: any]"),
    ] = None,
    lambda_fair: Annotated[
        float | None, typer.Option(min=0, help="COMMOD: how much fairness matters. \\[default: 3]")
    ] = None,
    lambda_ratio: Annotated[
        float | None, typer.Option(min=0, help="COMMOD: what changes cost. \\[default: 0.2]")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the split and of the training.")] = 0,
    output: Annotated[Path, typer.Option(help="Folder for what is written.")] = Path("commod-demo"),
) -> None:
    """Train a classifier on COMPAS, make it fairer, say who changes and why, write the report."""
    from rich.console import Console

    console = Console()
    console.rule("[bold]commod demo: a recidivism model (COMPAS, bundled)")
    output.mkdir(parents=True, exist_ok=True)  # a folder that cannot be made is said at once
    options = _options(
        method,
        {"target": target, "direction": direction},
        {"lambda_fair": lambda_fair, "lambda_ratio": lambda_ratio},
    )
    demo = _run(method, {"constraints": constraints, **options}, seed, console)
    _print_answer(demo, console)
    _print_groups(demo, console)
    _print_who(demo, console)
    _print_why(demo, console)
    _write(demo, output, console)
    other = "--direction gains_only" if direction is None else "--constraints equalized_odds"
    console.print(
        f"\nNext: [bold]commod demo {other}[/]; the README shows the same for your own model in "
        "ten lines of Python."
    )


def _options(
    method: str, stated: dict[str, Any], lambdas: dict[str, float | None]
) -> dict[str, Any]:
    """Return what the method takes; what belongs to the other one is refused."""
    from commod.exceptions import InputError

    is_commod = method == "COMMOD"
    given, others = (lambdas, stated) if is_commod else (stated, lambdas)
    wrong = [name for name, value in others.items() if value is not None]
    if wrong:
        option, other = wrong[0].replace("_", "-"), "ControlledDebiaser" if is_commod else "COMMOD"
        raise InputError(f"--{option} belongs to --method {other}; this is {method}.")
    chosen = {name: value for name, value in given.items() if value is not None}
    return ({"lambda_fair": 3.0, "lambda_ratio": 0.2} if is_commod else {}) | chosen


# ---------------------------------------------------------------------------------------------
# Doing it


def _run(method: str, options: dict[str, Any], seed: int, console: Console) -> Demo:
    from sklearn.model_selection import train_test_split

    import commod
    from commod.datasets import load_compas

    table: Any = load_compas()
    X, y, race = table.data, table.target, table.sensitive_features
    old, new = train_test_split(X.index, test_size=0.6, random_state=seed)
    edit, test = train_test_split(new, test_size=0.5, random_state=seed)
    model = _base_model(X.loc[old], y[old])
    console.print(
        f"A logistic regression learned from {len(old):,} people whether somebody is arrested "
        f"again within two years (1, high risk), from {X.shape[1]} columns without race. The "
        f"update is learned on {len(edit):,} others. Everything below is measured on "
        f"{len(test):,} people that neither has seen."
    )
    update = getattr(commod, method)(
        model, favorable_label=0, random_state=seed, progress=False, **options
    )
    fit_rows = {"X": X.loc[edit], "y": y[edit], "sensitive_features": race[edit]}
    measured = {"X_eval": X.loc[test], "y_eval": y[test], "sensitive_features_eval": race[test]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", commod.exceptions.CommodWarning)  # the audit says it
        with console.status(f"{method} learns the update ..."):
            update.fit(**fit_rows)
        with console.status("The trade-off: the same for other targets ..."):
            curve = commod.frontier(update, **fit_rows, **_grid(method), **measured)
        with console.status(f"{N_REFITS} refits on halves of the rows ..."):
            steady = commod.stability(
                update, **fit_rows, **measured, n_refits=N_REFITS, progress=False, random_state=seed
            )
    why = commod.explain(update, X.loc[test])
    found = commod.audit(
        model.predict(X.loc[test]),
        update.predict(X.loc[test]),
        sensitive_features=race[test],
        y_true=y[test],
        X=X.loc[test],
        explanation=why,
        stability=steady,
        label_names=LABELS,
        rows="people neither the model nor the update has seen",
        title="Recidivism model (COMPAS): who changes, and why",
    )
    return Demo(update, X.loc[test], y[test], race[test], why, found, curve)


def _grid(method: str) -> dict[str, Any]:
    return {} if method == "ControlledDebiaser" else {"grid": {"lambda_fair": LAMBDAS}}


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


# ---------------------------------------------------------------------------------------------
# Saying it


def _print_answer(demo: Demo, console: Console) -> None:
    console.print()
    for sentence in demo.found.answer:
        console.print(f"• {sentence}", highlight=False)
    if demo.found.notice:
        notice = f"Most of the changes are losses. {demo.found.notice}"
        console.print(f"• [bold]{notice}[/]", highlight=False)


def _print_groups(demo: Demo, console: Console) -> None:
    table = _table("Before and after", ("", "before", "after"))
    for fairness in demo.found.fairness[:2]:
        best = "1 is equal" if fairness.higher_is_fairer else "0 is equal"
        values = (fairness.before.value, fairness.after.value)
        table.add_row(f"{fairness.metric} ({best})", *(_number(value, ".3f") for value in values))
    for group in demo.found.groups:
        table.add_section()
        for words, name in (
            (f"{group.name}: called high risk", "selected"),
            ("  of those not arrested again", "false_positive"),
            ("  of those arrested again", "true_positive"),
            ("  accuracy", "accuracy"),
        ):
            rates = (getattr(group, f"{name}_{when}") for when in ("before", "after"))
            table.add_row(words, *(_number(rate and rate.value, ".1%") for rate in rates))
        table.add_row("  gain, lose", "", f"{group.n_gains}, {group.n_losses} of {group.n:,}")
    console.print("\n", table)


def _print_who(demo: Demo, console: Console) -> None:
    segments = demo.found.segments
    if segments is None or not segments.segments:
        return
    table = _table("Who changes, in a few rules", ("rule", "", "change", "of all such changes"))
    for segment in segments.segments:
        table.add_row(
            segment.text,
            segment.direction,
            f"{segment.n_changed} of {segment.size}",
            f"{segment.coverage:.0%}",
        )
    console.print("\n", table)


def _print_why(demo: Demo, console: Console) -> None:
    card = demo.found.card
    assert card is not None
    console.print(
        f"\nA decision changes where r(x) < 0{_if_it_may(demo)}. r starts at "
        f"{card.intercept:+.3f}; each line adds its points (a number counts per unit). A minus "
        "pushes towards a change."
    )
    more = max(0, len(card.lines) - N_LINES)
    title = f"The update as a scorecard{f', its {N_LINES} strongest lines' if more else ''}"
    table = _table(title, ("line", "points in r", "concept"))
    for line in card.lines[:N_LINES]:
        number = "" if line.concept is None else str(line.concept)
        table.add_row(line.term, f"{line.points:+.3f} {line.unit}".rstrip(), number)
    console.print(table)
    for concept in card.concepts:
        console.print(
            f"Concept {concept.number} ({concept.name}): where it pushes more than usual, "
            f"{_number(concept.change_if_active.value, '.1%')} change, elsewhere "
            f"{_number(concept.change_if_inactive.value, '.1%')}.",
            highlight=False,
        )
    changed = demo.why.gain | demo.why.loss
    if changed.any():
        console.print(f"\nOne person: {demo.why.person(int(changed.argmax())).sentence}")


def _if_it_may(demo: Demo) -> str:
    return "" if demo.found.request.direction == "any" else " and the direction allows it"


def _table(title: str, headings: tuple[str, ...]) -> Table:
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for i, heading in enumerate(headings):
        table.add_column(heading, justify="right" if i else "left")
    return table


def _number(value: float | None, kind: str) -> str:
    return "not known" if value is None else format(value, kind)


# ---------------------------------------------------------------------------------------------
# Writing it


def _write(demo: Demo, output: Path, console: Console) -> None:
    import commod
    from commod._io.files import write_whole
    from commod.cli import demo_figures

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # font and backend chatter is not for the reader
        demo_figures.draw(demo, output)
    written = {
        "ratio.png, changes.png, concepts.png": "pictures",
        "ledger.csv": f"one line per changed decision, SHA-256 {demo.found.ledger.digest[:16]}…",
        "audit.json": "every figure, for machines and for the file",
    }
    demo.found.ledger.to_csv(output / "ledger.csv")
    write_whole(output / "audit.json", demo.found.to_json().encode())
    path = commod.report(demo.found, output / "report.html", frontier=demo.curve)
    console.print(f"\nWritten to {output}/")
    for name, words in written.items():
        console.print(f"  {name}: {words}", highlight=False)
    console.print(f"  [bold]The report: {path}[/] (open it in a browser; it needs no network)")
