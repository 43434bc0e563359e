"""Options that several commands share, and what they mean for a fit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

__all__ = [
    "REPORTS",
    "AtLeast",
    "AtMost",
    "Constraint",
    "ConstraintName",
    "Delimiter",
    "DropMissing",
    "Encoding",
    "Favorable",
    "Features",
    "Files",
    "Force",
    "Identifier",
    "Ignore",
    "Label",
    "Model",
    "Positive",
    "Score",
    "ScoreColumn",
    "Sensitive",
    "Sha256",
    "Threshold",
    "Trust",
    "TrustPickle",
    "Types",
    "in_options",
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
PARAMETERS = {  # of the library, as its sentences name them
    "max_changes": "--max-changes",
    "max_accuracy_loss": "--max-accuracy-loss",
    "max_volume_change": "--max-volume-change",
    "min_group_size": "--min-group-size",
    "locked_features": "--ignore",
    "pos_label": "--positive",
    "favorable_label": "--favorable",
    "sensitive_features": "--sensitive",
    "y_true": "--label",
    "y_before": "--before",
    "y_after": "--after",
}
ASSIGNED = {  # words of their own, and parameters only where a value follows
    "target": "--at-least or --at-most",
    "confidence": "--confidence",
    "threshold": "--threshold",
    "sparsity": "--sparsity",
    "prefix": "--prefix",
    "score": "--score",
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
    str | None, typer.Option(help="Label that is good for the person. \\[default: --positive]")
]
Positive = Annotated[
    str | None, typer.Option(help="Label whose rates and scores count. \\[default: the larger one]")
]
Threshold = Annotated[
    float, typer.Option(help="The base decision is positive where the score is above this.")
]
Features = Annotated[
    list[str] | None, typer.Option(help="Column the update may read. \\[default: all others]")
]
Ignore = Annotated[list[str] | None, typer.Option(help="Column to leave out, such as an id.")]
Types = Annotated[
    list[str] | None,
    typer.Option(
        "--type", help="Correct a type: COLUMN=text, number, integer or boolean; can be repeated."
    ),
]
Delimiter = Annotated[
    str | None, typer.Option(help="What separates the fields of a text file. \\[default: a comma]")
]
Encoding = Annotated[str | None, typer.Option(help="Of a text file. \\[default: utf-8]")]
Identifier = Annotated[
    str | None, typer.Option("--id", help="Column that names a row in the ledger; not a feature.")
]
DropMissing = Annotated[
    bool, typer.Option("--drop-missing", help="Drop rows without label, group or score.")
]
Score = Annotated[
    str | None, typer.Option(help="Column of the base model's scores. \\[default: the patch's]")
]
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


def in_options(sentence: str) -> str:
    """Return a sentence of the library with the names that the command line has for parameters.

    Examples
    --------
    >>> in_options("max_changes=2.0 must be <= 1")
    '--max-changes 2.0 must be <= 1'
    """
    for name, option in (*PARAMETERS.items(), *ASSIGNED.items()):
        sentence = re.sub(rf"\b{name}(=| == )(?=[\w'\"-])", f"{option} ", sentence)
    for name, option in PARAMETERS.items():
        sentence = re.sub(rf"\b{name}\b=?", option, sentence)
    return sentence.replace("score=...", "--score")


def target_of(constraint: str, at_least: float | None, at_most: float | None) -> float | None:
    """Return the target; the bound that does not belong to the constraint is refused."""
    from commod.exceptions import InputError
    from commod.metrics._constraint import get_constraint

    asked = get_constraint(constraint)
    metric, is_floor, most = asked.metric, asked.higher_is_fairer, asked.largest
    for option, value in (("--at-least", at_least), ("--at-most", at_most)):
        if value is not None and not 0 <= value <= most:
            raise InputError(f"{option} {value:g} is no {metric}: it lies between 0 and {most:g}.")
    wrong = at_most if is_floor else at_least
    if wrong is not None:
        given, meant = ("most", "least") if is_floor else ("least", "most")
        raise InputError(
            f"--at-{given} {wrong:g} does not go with --constraint {constraint}: the "
            f"{metric} is fair where it is {'high' if is_floor else 'low'}. State "
            f"--at-{meant}."
        )
    return at_least if is_floor else at_most


def label_named(option: str, text: str | None, labels: list[Any], default: Any = None) -> Any:
    """Return the label that a user's text means; `default` where nothing was said.

    Examples
    --------
    >>> label_named("--positive", "1", [0, 1]), label_named("--positive", "True", [False, True])
    (1, True)
    """
    from commod.exceptions import InputError

    if text is None:
        return default
    for label in labels:
        if str(label) == text or (isinstance(label, bool) and str(label).lower() == text.lower()):
            return label
    for label in labels:
        is_number = isinstance(label, int | float) and not isinstance(label, bool)
        if is_number and _is_number(text) and float(text) == label:
            return label
    raise InputError(f"{option} {text!r} is not one of the labels: {', '.join(map(str, labels))}.")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
