"""`commod demo`: debias a real model end to end and say in plain words what happened to whom."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.console import Console

    from commod import COMMOD

__all__ = ["command"]

Constraint = Literal[
    "demographic_parity",
    "equalized_odds",
    "true_positive_rate_parity",
    "false_positive_rate_parity",
]


@dataclass(frozen=True)
class Demo:
    """What the demo talks about: the test rows before and after the update."""

    update: COMMOD
    X: Any
    y: NDArray[np.int64]
    groups: NDArray[Any]
    before: NDArray[np.int64]
    after: NDArray[np.int64]


def command(
    constraints: Annotated[
        Constraint, typer.Option(help="Which unfairness to remove.")
    ] = "demographic_parity",
    lambda_fair: Annotated[float, typer.Option(min=0, help="How much fairness matters.")] = 3.0,
    lambda_ratio: Annotated[float, typer.Option(min=0, help="How much changes cost.")] = 0.2,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the split and of the training.")] = 0,
    output: Annotated[Path, typer.Option(help="Folder for the figures.")] = Path("commod-demo"),
) -> None:
    """Train a classifier on COMPAS, make it fairer with COMMOD and show what changed for whom."""
    from rich.console import Console

    console = Console()
    console.rule("[bold]commod demo: a recidivism model (COMPAS, bundled)")
    demo = _run(constraints, lambda_fair, lambda_ratio, seed, console)
    _print_before_after(demo, console)
    _print_people(demo, console)
    _print_concepts(demo, console)
    _save_figures(demo, output, console)
    other = "equalized_odds" if constraints != "equalized_odds" else "demographic_parity"
    console.print(
        f"\nNext: [bold]commod demo --constraints {other}[/] removes the other kind of unfairness; "
        "the README shows the same for your own model in ten lines of Python."
    )


def _run(
    constraints: str, lambda_fair: float, lambda_ratio: float, seed: int, console: Console
) -> Demo:
    import numpy as np
    from sklearn.model_selection import train_test_split

    from commod import COMMOD
    from commod.datasets import load_compas

    table: Any = load_compas()
    X, X_test, y, y_test, s, s_test = train_test_split(
        table.data, table.target, table.sensitive_features, test_size=0.3, random_state=seed
    )
    model = _base_model(X, y)
    console.print(
        f"A logistic regression learns from {len(X):,} people whether somebody is arrested again "
        f"within two years (label 1), from {X.shape[1]} columns without race. As in the paper, the "
        "update is learned on the same people (rows that are new to the model are better where you "
        f"have them). Everything below is measured on {len(X_test):,} other people."
    )
    update = COMMOD(
        model,
        constraints=constraints,
        lambda_fair=lambda_fair,
        lambda_ratio=lambda_ratio,
        favorable_label=0,
        random_state=seed,
    )
    with console.status("COMMOD learns the update (the first fit also compiles it) ..."):
        update.set_params(progress=False).fit(X, y, sensitive_features=s)
    return Demo(
        update,
        X_test,
        np.asarray(y_test),
        np.asarray(s_test),
        np.asarray(model.predict(X_test)),
        np.asarray(update.predict(X_test)),
    )


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


def _print_before_after(demo: Demo, console: Console) -> None:
    from rich.table import Table

    from commod import metrics

    table = Table(title="Before and after, test rows", title_justify="left")
    for heading in ("", "before", "after"):
        table.add_column(heading, justify="left" if not heading else "right")
    groups = {"sensitive_features": demo.groups}
    for name, metric in (
        ("P-rule (1 is equal)", metrics.p_rule),
        ("disparate mistreatment (0 is equal)", metrics.disparate_mistreatment),
    ):
        values = [metric(demo.y, decisions, **groups) for decisions in (demo.before, demo.after)]
        table.add_row(name, *(f"{value:.3f}" for value in values))
    table.add_row("accuracy", *(f"{(d == demo.y).mean():.3f}" for d in (demo.before, demo.after)))
    rates = [metrics.group_rates(demo.y, d, **groups) for d in (demo.before, demo.after)]
    for group, first in rates[0].items():
        table.add_section()
        second = rates[1][group]
        table.add_row(f"{group}: called high risk", *_percent(first, second, "selection_rate"))
        table.add_row("  of those not arrested again", *_percent(first, second, "fpr"))
        table.add_row("  of those arrested again", *_percent(first, second, "tpr"))
        table.add_row("  accuracy", *_percent(first, second, "accuracy"))
    console.print(table)


def _percent(first: Any, second: Any, field: str) -> list[str]:
    return [f"{rates[field]:.1%}" for rates in (first, second)]


def _print_people(demo: Demo, console: Console) -> None:
    from commod import metrics

    counts = metrics.count_changes(
        demo.before, demo.after, favorable_label=0, sensitive_features=demo.groups
    )
    console.print(
        f"\n[bold]{counts.n_changes} of {counts.n:,} decisions change "
        f"({counts.rate:.1%})[/]: {counts.n_gains} people called high risk are now called low "
        f"risk (they gain), {counts.n_losses} people called low risk are now called high risk "
        "(they lose)."
    )
    for group, (n, n_gains, n_losses) in counts.by_group.items():
        console.print(f"  {group}: {n_gains} gain, {n_losses} lose, of {n:,}.")
    if counts.n_losses > counts.n_gains:
        console.print(
            "Most changes are losses: here the cheapest way to equal rates is to call more people "
            "of the better-off group high risk. Whether that is wanted is for people to decide, "
            "not for a metric."
        )


def _print_concepts(demo: Demo, console: Console) -> None:
    from rich.table import Table

    card = demo.update.scorecard_
    console.print(
        f"\nA decision changes exactly where r(x) < 0. r starts at {card.intercept:+.3f}; each "
        "line adds its points (a number counts per unit)."
    )
    used = [j for j, weight in enumerate(card.contributions) if weight]
    table = Table(title="The update as a scorecard", title_justify="left")
    table.add_column("line")
    table.add_column("points in r", justify="right")
    for j in used:
        table.add_column(f"concept {j}\n(× {card.contributions[j]:+.3f})", justify="right")
    parts = [dict(card.rows(j)) for j in used]
    for name, points in card.rows():
        cells = (f"{part[name]:+.3f}" if name in part else "" for part in parts)
        table.add_row(name, f"{points:+.3f}", *cells)
    console.print(table)


def _save_figures(demo: Demo, output: Path, console: Console) -> None:
    from commod.cli import demo_figures

    output.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # font and backend chatter is not for the reader
        for name, draw in (
            ("rates.png", demo_figures.rates),
            ("ratio.png", demo_figures.ratio),
            ("scorecard.png", demo_figures.scorecard),
        ):
            draw(demo, output / name)
            console.print(f"saved {output / name}")
