"""Options that several commands share, and what they mean for a fit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

__all__ = [
    "REPORTS",
    "AtLeast",
    "AtMost",
    "Constraint",
    "Delimiter",
    "Encoding",
    "Favorable",
    "Features",
    "Files",
    "Force",
    "Ignore",
    "Label",
    "Model",
    "Positive",
    "ScoreColumn",
    "Sensitive",
    "Sha256",
    "Threshold",
    "Trust",
    "TrustPickle",
    "Types",
    "label_named",
    "target_of",
    "types_of",
]

REPORTS = (".html", ".md", ".json")

ConstraintName = Literal[
    "demographic_parity",
    "equalized_odds",
    "true_positive_rate_parity",
    "false_positive_rate_parity",
]
METRICS = {
    "demographic_parity": "P-rule",
    "equalized_odds": "disparate mistreatment",
    "true_positive_rate_parity": "gap of the true positive rates",
    "false_positive_rate_parity": "gap of the false positive rates",
}

Files = Annotated[
    list[str],
    typer.Argument(help="CSV, TSV or Parquet files, also .gz, or a pattern in quotes."),
]
Label = Annotated[str | None, typer.Option(help="Column of the true labels, of two kinds.")]
Sensitive = Annotated[
    list[str], typer.Option(help="Column of the sensitive attribute; several: intersections.")
]
Model = Annotated[
    Path | None, typer.Option(help="The base model: a .skops or .onnx file (or a pickle).")
]
ScoreColumn = Annotated[
    str | None, typer.Option(help="Column of the base model's scores, instead of --model.")
]
TrustPickle = Annotated[
    bool, typer.Option("--trust-pickle", help="Load a pickled model, which can run any code.")
]
Trust = Annotated[
    list[str] | None, typer.Option(help="Type in a .skops file to trust, besides the usual ones.")
]
Constraint = Annotated[ConstraintName, typer.Option(help="Which unfairness is meant.")]
AtLeast = Annotated[float | None, typer.Option(help="Floor on the P-rule, for demographic_parity.")]
AtMost = Annotated[
    float | None, typer.Option(help="Ceiling on the disparity, for the other constraints.")
]
Favorable = Annotated[
    str | None, typer.Option(help="Label that is good for the person. [default: --positive]")
]
Positive = Annotated[
    str | None, typer.Option(help="Label whose rates and scores count. [default: the larger one]")
]
Threshold = Annotated[
    float, typer.Option(help="The base decision is positive where the score is above this.")
]
Features = Annotated[
    list[str] | None, typer.Option(help="Column the update may read. [default: all others]")
]
Ignore = Annotated[list[str] | None, typer.Option(help="Column to leave out, such as an id.")]
Types = Annotated[
    list[str] | None,
    typer.Option(
        "--type", help="Correct a type: COLUMN=text, number, integer or boolean; can be repeated."
    ),
]
Delimiter = Annotated[
    str | None, typer.Option(help="What separates the fields of a text file. [default: a comma]")
]
Encoding = Annotated[str | None, typer.Option(help="Of a text file. [default: utf-8]")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that are there already.")]
Sha256 = Annotated[
    str | None, typer.Option(help="SHA-256 of the patch that was signed off; no other is used.")
]


def types_of(given: list[str] | None) -> dict[str, str]:
    """Return the types a user corrects.

    Examples
    --------
    >>> types_of(["zip=text", "a=b=number"])
    {'zip': 'text', 'a=b': 'number'}
    """
    from commod.exceptions import InputError

    found: dict[str, str] = {}
    for text in given or []:
        name, sign, kind = text.rpartition("=")
        if not sign or not name:
            raise InputError(f"--type {text!r} is not of the form COLUMN=TYPE, such as zip=text.")
        found[name] = kind
    return found


def target_of(constraint: str, at_least: float | None, at_most: float | None) -> float | None:
    """Return the target; the bound that does not belong to the constraint is refused."""
    from commod.exceptions import InputError

    is_floor = constraint == "demographic_parity"
    wrong = at_most if is_floor else at_least
    if wrong is not None:
        given, meant = ("most", "least") if is_floor else ("least", "most")
        raise InputError(
            f"--at-{given} {wrong:g} does not go with --constraint {constraint}: the "
            f"{METRICS[constraint]} is fair where it is {'high' if is_floor else 'low'}. State "
            f"--at-{meant}."
        )
    return at_least if is_floor else at_most


def label_named(option: str, text: str | None, labels: list[Any]) -> Any:
    """Return the label that a user's text means; None where nothing was said.

    Examples
    --------
    >>> label_named("--positive", "1", [0, 1]), label_named("--positive", "True", [False, True])
    (1, True)
    """
    from commod.exceptions import InputError

    if text is None:
        return None
    for label in labels:
        if str(label) == text or (isinstance(label, bool) and str(label).lower() == text.lower()):
            return label
    for label in labels:
        if isinstance(label, float) and _is_number(text) and float(text) == label:
            return label
    raise InputError(f"{option} {text!r} is not one of the labels: {', '.join(map(str, labels))}.")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
