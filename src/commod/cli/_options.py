"""Options that several commands share, each defined once and grouped by subject."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from commod._text import did_you_mean, list_names
from commod.cli._command import option
from commod.exceptions import InputError

if TYPE_CHECKING:
    from commod import Patch
    from commod.metrics._requirements import Requirements

REPORTS = (".html", ".md", ".json")


def _check_constraint(name: str) -> str:
    """Return the name of a constraint; refuse others. The import is too slow for --help."""
    from commod.metrics._constraint import CONSTRAINTS

    if name not in CONSTRAINTS:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(CONSTRAINTS)}")
    return name


def _check_texts(texts: list[str] | None) -> list[str] | None:
    """Return texts of constraints; refuse what is none. The import is too slow for --help."""
    from commod.metrics._requirements import read_constraints

    try:
        read_constraints([*(texts or [])] or "demographic_parity")
    except InputError as error:
        raise typer.BadParameter(str(error)) from error
    return texts


CONSTRAINT_SETTINGS: dict[str, Any] = {
    "callback": _check_constraint,
    "metavar": "NAME",
    "help": "What to compare between groups: demographic_parity, equalized_odds, "
    "true_positive_rate_parity or false_positive_rate_parity.",
}
CONSTRAINT_TEXT_SETTINGS: dict[str, Any] = {
    "callback": _check_texts,
    "metavar": "TEXT",
    "help": "What to compare between groups, as in 'demographic parity >= 0.8 within department'. "
    "Names: demographic_parity, equalized_odds, true_positive_rate_parity, "
    "false_positive_rate_parity, minimum_rate and more. Without a bound, state --at-least or "
    "--at-most. Can be repeated: all hold at once. \\[default: demographic_parity]",
}
UNKNOWN_GROUPS_HELP = "People whose group is missing: error, or ignore (no group has them)."
Files = Annotated[
    list[str],
    typer.Argument(help="CSV, TSV or Parquet files, or a pattern in quotes. Text may be .gz."),
]
MinGroupSize = Annotated[
    int, typer.Option(help="Groups with fewer rows are listed, but not compared.")
]
PatchFile = Annotated[Path, typer.Argument(help="The patch file.")]
Prefix = Annotated[str, typer.Option(help="Text that begins the names of the new columns.")]
Calibrated = Annotated[
    bool, typer.Option("--calibrated", help="Add the edited score as a calibrated probability.")
]
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

    types: list[str] = option(
        [], "--type", help="COLUMN=text, number, integer or boolean. Can be repeated."
    )
    delimiter: str | None = option(
        None, help="Character between the fields of a text file. \\[default: comma]"
    )
    encoding: str | None = option(None, help="Encoding of a text file. \\[default: utf-8]")

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

    sensitive: list[str] = option(
        help="Column of the sensitive feature. Repeat it for intersections.",
        sets=("sensitive_features",),
        is_column=True,
    )
    label: str | None = option(
        None, help="Column of the true labels (two values).", sets=("y", "y_true"), is_column=True
    )
    drop_missing: bool = option(False, help="Drop rows without label, group or score.")


@dataclass(frozen=True, kw_only=True)
class PartlyKnownPeople(PeopleOptions):
    """Which columns hold group and label of people; some groups may be unknown."""

    unknown_groups: str = option("error", help=UNKNOWN_GROUPS_HELP)


@dataclass(frozen=True, kw_only=True)
class ColumnOptions(PeopleOptions):
    """Which columns a fit reads, and for what."""

    features: list[str] = option(
        [], help="Column that the update may read. \\[default: all others]", is_column=True
    )
    ignore: list[str] = option(
        [],
        help="Column that the update must not read, such as an id.",
        sets=("locked_features",),
        is_column=True,
    )


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """The base model, or the column of its scores."""

    PANEL: ClassVar[str] = "Base model"

    model: Path | None = option(None, help="File of the base model: .skops, .onnx or a pickle.")
    score_column: str | None = option(
        None, help="Column of the base model's scores, instead of --model.", is_column=True
    )
    score_is_for: str | None = option(
        None, help="Label that a high score predicts. \\[default: the larger label]"
    )
    trust_pickle: bool = option(False, help="Load a pickled model. It can run any code.")
    trust: list[str] = option([], help="Another type in a .skops file to trust. Can be repeated.")
    threshold: float = option(
        0.5, help="The base decision is the label that the score predicts where it is above this."
    )


@dataclass(frozen=True, kw_only=True)
class PatchOptions:
    """Which patch is accepted."""

    PANEL: ClassVar[str] = "Patch"

    sha256: str | None = option(None, help="SHA-256 of the signed-off patch. Any other is refused.")


@dataclass(frozen=True, kw_only=True)
class ScoreOptions(PatchOptions):
    """Which patch is accepted, and which column of scores it edits."""

    score: str | None = option(
        None, help="Column of the base model's scores. \\[default: as in the patch]"
    )

    score_is_for: str | None = option(
        None, help="Label that a high score predicts. It must be that of the patch."
    )

    def score_column(self, patch: Patch) -> str:
        """Return the column of scores: as stated, else the one that the update was fitted on.

        A score of another label than the patch edits is refused.
        """
        labels = patch.content.labels
        known = [labels.negative, labels.positive]
        stated = find_label("--score-is-for", self.score_is_for, known, labels.positive)
        if stated != labels.positive:
            raise InputError(
                f"--score-is-for {self.score_is_for} does not go with the patch, which edits the "
                f"score of label {labels.positive!r}. Give it a column with that score: 1 minus "
                "the score of the other label."
            )
        return self.score or patch.content.base.score or "score"


# ---------------------------------------------------------------------------------------------
# Constraint


@dataclass(frozen=True, kw_only=True)
class TargetOptions:
    """The floor or the ceiling that the metric of a constraint must keep."""

    PANEL: ClassVar[str] = "Constraint"

    at_least: float | None = option(
        None, help="Lowest allowed P-rule, ratio or rate of a group.", sets=("target",)
    )
    at_most: float | None = option(
        None, help="Highest allowed gap, or rate of a group.", sets=("target",)
    )

    def target(self, name: str) -> float | None:
        """Return the target of the constraint `name`; refuse a bound of the other kind."""
        from commod.metrics._constraint import get_constraint

        constraint = get_constraint(name)
        metric, is_floor, most = constraint.metric, constraint.higher_is_fairer, constraint.largest
        for bound, value in (("--at-least", self.at_least), ("--at-most", self.at_most)):
            if value is not None and not 0 <= value <= most:
                raise InputError(f"{bound} {value:g} is no {metric}: give 0 to {most:g}.")
        wrong = self.at_most if is_floor else self.at_least
        if wrong is not None:
            given, expected = ("most", "least") if is_floor else ("least", "most")
            raise InputError(
                f"--at-{given} {wrong:g} does not go with --constraint {name}: a "
                f"{'high' if is_floor else 'low'} {metric} is fair. State --at-{expected}."
            )
        return self.at_least if is_floor else self.at_most

    @property
    def stated_bound(self) -> str:
        """Return the option that states a bound, with its value; empty without one."""
        bounds = (("--at-least", self.at_least), ("--at-most", self.at_most))
        return next((f"{name} {bound:g}" for name, bound in bounds if bound is not None), "")


@dataclass(frozen=True, kw_only=True)
class ConstraintOptions(TargetOptions):
    """What is compared between groups, and which label counts."""

    constraint: list[str] = option([], sets=("constraints",), **CONSTRAINT_TEXT_SETTINGS)
    positive: str | None = option(
        None,
        help="Label whose rates are compared. \\[default: as --favorable, else the larger label]",
        sets=("pos_label",),
    )
    favorable: str | None = option(
        None,
        help="Label that is good for the person. \\[default: as --positive]",
        sets=("favorable_label",),
    )

    @property
    def requirements(self) -> Requirements:
        """Return all constraints that are stated; refuse two bounds of the same one."""
        from commod.metrics._requirements import Requirements, read_constraints

        stated = read_constraints([*self.constraint] or "demographic_parity")
        bounded = [part for part in stated.parts if part.bound is not None]
        if len(stated.parts) == 1 and not bounded:
            (part,) = stated.parts
            target = self.target(part.constraint.name)
            return stated if target is None else Requirements((part.with_bound(target),))
        if self.stated_bound and bounded:
            raise InputError(
                f"{self.stated_bound} does not go with --constraint {bounded[0].text!r}, which "
                "states its bound. Leave one of them out."
            )
        if self.stated_bound:
            raise InputError(
                f"{self.stated_bound} is the bound of one constraint, and --constraint states "
                f"{len(stated.parts)}. State each bound with its constraint."
            )
        return stated

    def constraints_and_target(self) -> dict[str, Any]:
        """Return the parameters `constraints` and `target`; several constraints state bounds."""
        from commod.constraints import AllOf

        parts = self.requirements.parts
        if len(parts) > 1:
            return {"constraints": AllOf(parts), "target": None}
        return {"constraints": parts[0].constraint.name, "target": parts[0].bound}

    def labels(self, known: list[Any], default: Any = None) -> dict[str, Any]:
        """Return `pos_label` and `favorable_label`, out of `known`.

        Where neither is stated, `pos_label` is `default`; one of them stands for both.
        """
        default = default if self.favorable is None else None
        return {
            "pos_label": find_label("--positive", self.positive, known, default),
            "favorable_label": find_label("--favorable", self.favorable, known),
        }


def find_label(name: str, text: str | None, labels: list[Any], default: Any = None) -> Any:
    """Return the label that a text means; `default` where there is no text.

    Examples
    --------
    >>> find_label("--positive", "1", [0, 1]), find_label("--positive", "True", [False, True])
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
    raise InputError(
        f"{name} {text!r} is not one of the labels: {list_names(labels)}."
        f"{did_you_mean(text, labels)}"
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# ---------------------------------------------------------------------------------------------
# Names


@dataclass(frozen=True, kw_only=True)
class NameOptions:
    """What groups and labels are called in sentences, tables and reports."""

    PANEL: ClassVar[str] = "Names"

    group_names: list[str] = option(
        [],
        help="VALUE=NAME of a group, such as 1=women. Can be repeated. With several --sensitive: "
        "COLUMN:VALUE=NAME.",
    )
    label_names: list[str] = option(
        [], help="LABEL=NAME of a label, such as 1=approved. Can be repeated."
    )

    def labels(self, known: list[Any]) -> dict[Any, str] | None:
        """Return the names of the labels; `known` are the labels themselves."""
        if not self.label_names:
            return None
        return _read_names("--label-names", self.label_names, known)

    def groups(self, known: Mapping[str, list[Any]]) -> dict[Any, Any] | None:
        """Return the parameter `group_names` of an audit.

        `known` holds the values of each sensitive column.

        Examples
        --------
        >>> NameOptions(group_names=["1=women"]).groups({"sex": [1, 2]})
        {1: 'women'}
        >>> NameOptions(group_names=["sex:1=women"]).groups({"sex": [1, 2], "old": [True]})
        {'sex': {1: 'women'}}
        """
        if not self.group_names:
            return None
        if len(known) == 1:
            (values,) = known.values()
            return _read_names("--group-names", self.group_names, values)
        by_column: dict[str, list[str]] = {}
        for text in self.group_names:
            column = next((name for name in known if text.startswith(f"{name}:")), None)
            if column is None:
                raise InputError(
                    f"--group-names {text!r} is not of the form COLUMN:VALUE=NAME; the sensitive "
                    f"columns are {', '.join(known)}."
                )
            by_column.setdefault(column, []).append(text.removeprefix(f"{column}:"))
        return {
            column: _read_names("--group-names", texts, known[column])
            for column, texts in by_column.items()
        }


def _read_names(option_name: str, texts: list[str], known: list[Any]) -> dict[Any, str]:
    """Return the name of each value that the texts name.

    Examples
    --------
    >>> _read_names("--label-names", ["1=yes", "a=b=c"], [1, "a=b"])
    {1: 'yes', 'a=b': 'c'}
    """
    names: dict[Any, str] = {}
    for text in texts:
        value, _, name = text.rpartition("=")
        if not value or not name.strip():
            raise InputError(f"{option_name} {text!r} is not of the form VALUE=NAME, as 1=women.")
        label = find_label(option_name, value, known)
        if label in names:
            raise InputError(f"{option_name} names {value!r} twice; name it once.")
        names[label] = name
    return names


# ---------------------------------------------------------------------------------------------
# Output


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """What a command prints."""

    PANEL: ClassVar[str] = "Output"

    as_json: bool = option(False, "--json", help="Print one JSON object instead of sentences.")
    quiet: bool = option(False, "--quiet", "-q", help="Print nothing but errors.")


@dataclass(frozen=True, kw_only=True)
class FileOptions(OutputOptions):
    """What a command prints, and whether it may replace files."""

    force: bool = option(False, help="Replace files that exist.")


@dataclass(frozen=True, kw_only=True)
class ReportOptions(FileOptions):
    """What a command prints, and the report that it writes."""

    report: Path | None = option(None, help="File for a report (.html, .md or .json).")


@dataclass(frozen=True, kw_only=True)
class AuditOutput(ReportOptions):
    """What a command prints and writes about people whose rows it has."""

    blind_limit: bool = option(
        False,
        help="Estimate the fewest changes of a rule that does not read the group. Takes seconds.",
    )
