"""Options that several commands share, each defined once and grouped by subject."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import typer

from commod.cli._command import Sets
from commod.exceptions import InputError

if TYPE_CHECKING:
    from commod import Patch

__all__ = [
    "REPORTS",
    "ColumnOptions",
    "ConstraintName",
    "ConstraintOptions",
    "FileOptions",
    "Files",
    "MinGroupSize",
    "ModelOptions",
    "OutputOptions",
    "PatchOptions",
    "PeopleOptions",
    "Prefix",
    "ReportOptions",
    "ScoredPatchOptions",
    "Seed",
    "TableOptions",
    "TargetOptions",
    "TestSize",
]

REPORTS = (".html", ".md", ".json")

ConstraintName = Literal[
    "demographic_parity",
    "equalized_odds",
    "true_positive_rate_parity",
    "false_positive_rate_parity",
]
Files = Annotated[
    list[str],
    typer.Argument(help="CSV, TSV or Parquet files, or a pattern in quotes. Text may be .gz."),
]
MinGroupSize = Annotated[
    int, typer.Option(help="Groups with fewer rows are listed, but not compared.")
]
Prefix = Annotated[str, typer.Option(help="Text that begins the names of the new columns.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of every random draw.")]
TestSize = Annotated[
    float, typer.Option(help="Share of the rows to hold out from fitting, and to measure on.")
]


# ---------------------------------------------------------------------------------------------
# Input


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """How to read the files of a table."""

    PANEL: ClassVar[str] = "Reading the table"

    types: Annotated[
        list[str],
        typer.Option("--type", help="COLUMN=text, number, integer or boolean. Can be repeated."),
    ] = field(default_factory=list)
    delimiter: Annotated[
        str | None,
        typer.Option(help="Character between the fields of a text file. \\[default: comma]"),
    ] = None
    encoding: Annotated[
        str | None, typer.Option(help="Encoding of a text file. \\[default: utf-8]")
    ] = None

    def corrected_types(self) -> dict[str, str]:
        """Return the type that the user gives to each column.

        Examples
        --------
        >>> TableOptions(types=["zip=text", "a=b=number"]).corrected_types()
        {'zip': 'text', 'a=b': 'number'}
        """
        pairs = {text: text.rpartition("=") for text in self.types}
        for text, (name, _, _) in pairs.items():
            if not name:
                raise InputError(
                    f"--type {text!r} is not of the form COLUMN=TYPE, such as zip=text."
                )
        return {name: kind for name, _, kind in pairs.values()}


@dataclass(frozen=True, kw_only=True)
class PeopleOptions:
    """Which columns hold the group and the true label of a person."""

    PANEL: ClassVar[str] = "Columns"

    sensitive: Annotated[
        list[str],
        typer.Option(help="Column of the sensitive feature. Repeat it for intersections."),
        Sets("sensitive_features"),
    ]
    label: Annotated[
        str | None, typer.Option(help="Column of the true labels (two values)."), Sets("y_true")
    ] = None
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", help="Drop rows without label, group or score.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class ColumnOptions(PeopleOptions):
    """Which columns a fit reads, and for what."""

    features: Annotated[
        list[str], typer.Option(help="Column that the update may read. \\[default: all others]")
    ] = field(default_factory=list)
    ignore: Annotated[
        list[str],
        typer.Option(help="Column that the update must not read, such as an id."),
        Sets("locked_features"),
    ] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """The base model, or the column of its scores."""

    PANEL: ClassVar[str] = "Base model"

    model: Annotated[
        Path | None, typer.Option(help="File of the base model: .skops, .onnx or a pickle.")
    ] = None
    score_column: Annotated[
        str | None, typer.Option(help="Column of the base model's scores, instead of --model.")
    ] = None
    trust_pickle: Annotated[
        bool, typer.Option("--trust-pickle", help="Load a pickled model. It can run any code.")
    ] = False
    trust: Annotated[
        list[str], typer.Option(help="Another type in a .skops file to trust. Can be repeated.")
    ] = field(default_factory=list)
    threshold: Annotated[
        float, typer.Option(help="The base decision is positive where the score is above this.")
    ] = 0.5


@dataclass(frozen=True, kw_only=True)
class PatchOptions:
    """The patch file."""

    PANEL: ClassVar[str] = "Patch"

    patch: Annotated[Path, typer.Argument(help="The patch file.", show_default=False)]
    sha256: Annotated[
        str | None, typer.Option(help="SHA-256 of the signed-off patch. Any other is refused.")
    ] = None

    def load(self) -> Patch:
        """Return the patch in the file."""
        from commod import Patch

        return Patch.load(self.patch, self.sha256)


@dataclass(frozen=True, kw_only=True)
class ScoredPatchOptions(PatchOptions):
    """The patch file, and the column of scores that the patch edits."""

    score: Annotated[
        str | None,
        typer.Option(help="Column of the base model's scores. \\[default: as in the patch]"),
    ] = None

    def score_column(self, patch: Patch) -> str:
        """Return the column of scores: as stated, else the one that the update was fitted on."""
        return self.score or patch.content.base.score or "score"


# ---------------------------------------------------------------------------------------------
# Constraint


@dataclass(frozen=True, kw_only=True)
class TargetOptions:
    """The floor or the ceiling that the metric of a constraint must keep."""

    PANEL: ClassVar[str] = "Constraint"

    at_least: Annotated[
        float | None,
        typer.Option(help="Lowest allowed P-rule, for demographic_parity."),
        Sets("target"),
    ] = None
    at_most: Annotated[
        float | None,
        typer.Option(help="Highest allowed disparity, for the other constraints."),
        Sets("target"),
    ] = None

    def target(self, name: str) -> float | None:
        """Return the target of the constraint `name`; refuse a bound of the other kind."""
        from commod.metrics._constraint import get_constraint

        constraint = get_constraint(name)
        metric, is_floor, most = constraint.metric, constraint.higher_is_fairer, constraint.largest
        for option, value in (("--at-least", self.at_least), ("--at-most", self.at_most)):
            if value is not None and not 0 <= value <= most:
                raise InputError(f"{option} {value:g} is no {metric}: give 0 to {most:g}.")
        wrong = self.at_most if is_floor else self.at_least
        if wrong is not None:
            given, expected = ("most", "least") if is_floor else ("least", "most")
            raise InputError(
                f"--at-{given} {wrong:g} does not go with --constraint {name}: a "
                f"{'high' if is_floor else 'low'} {metric} is fair. State --at-{expected}."
            )
        return self.at_least if is_floor else self.at_most


@dataclass(frozen=True, kw_only=True)
class ConstraintOptions(TargetOptions):
    """What is compared between groups, and which label counts."""

    constraint: Annotated[
        ConstraintName, typer.Option(help="What to compare between groups."), Sets("constraints")
    ] = "demographic_parity"
    positive: Annotated[
        str | None,
        typer.Option(help="Label whose rates and scores count. \\[default: the larger label]"),
        Sets("pos_label"),
    ] = None
    favorable: Annotated[
        str | None,
        typer.Option(help="Label that is good for the person. \\[default: as --positive]"),
        Sets("favorable_label"),
    ] = None

    def labels(self, known: list[Any], default: Any = None) -> dict[str, Any]:
        """Return `pos_label` (`default` unless stated) and `favorable_label`, out of `known`."""
        return {
            "pos_label": _find_label("--positive", self.positive, known, default),
            "favorable_label": _find_label("--favorable", self.favorable, known),
        }


def _find_label(option: str, text: str | None, labels: list[Any], default: Any = None) -> Any:
    """Return the label that a text means; `default` where there is no text.

    Examples
    --------
    >>> _find_label("--positive", "1", [0, 1]), _find_label("--positive", "True", [False, True])
    (1, True)
    """
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


# ---------------------------------------------------------------------------------------------
# Output


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """What a command prints."""

    PANEL: ClassVar[str] = "Output"

    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of sentences.")
    ] = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False


@dataclass(frozen=True, kw_only=True)
class FileOptions(OutputOptions):
    """What a command prints, and whether it may replace files."""

    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False


@dataclass(frozen=True, kw_only=True)
class ReportOptions(FileOptions):
    """What a command prints, and the report that it writes."""

    report: Annotated[
        Path | None, typer.Option(help="File for a report (.html, .md or .json).")
    ] = None

    def check(self, inputs: Sequence[str | Path | None]) -> None:
        """Refuse a file that cannot be written; call this before any row is read."""
        from commod._io.tables import check_outputs

        check_outputs([(self.report, REPORTS)], self.force, inputs=inputs)
