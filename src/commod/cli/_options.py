"""Options that several commands share, each defined once and grouped by subject."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from commod._text import did_you_mean, list_names
from commod.cli._command import ADVANCED, COLUMNS, MODEL, OUTPUT, REACH, option
from commod.exceptions import InputError

if TYPE_CHECKING:
    from commod import Patch
    from commod.metrics._language import AllOf

REPORTS = (".html", ".md", ".json")


def _check_constraint(name: str) -> str:
    """Return the name of a constraint; refuse others. The import is too slow for --help."""
    from commod.metrics._constraint import CONSTRAINTS

    if name not in CONSTRAINTS:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(CONSTRAINTS)}")
    return name


def _check_texts(texts: list[str] | None) -> list[str] | None:
    """Return texts of constraints; refuse what is none. The import is too slow for --help."""
    from commod.metrics._named_constraints import read_constraints

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
Files = Annotated[
    list[str],
    typer.Argument(help="CSV, TSV (also .gz) or Parquet, or a quoted pattern."),
]
MinGroupSize = Annotated[
    int,
    typer.Option(
        help="Groups with fewer rows are listed, but not compared.",
        rich_help_panel=ADVANCED,
        hidden=True,
    ),
]
PatchFile = Annotated[Path, typer.Argument(help="The patch file.")]
Prefix = Annotated[str, typer.Option(help="Text that begins the names of the new columns.")]
Calibrated = Annotated[
    bool, typer.Option("--calibrated", help="Add the edited score as a calibrated probability.")
]
Seed = Annotated[
    int,
    typer.Option(min=0, help="Seed of every random draw.", rich_help_panel=ADVANCED, hidden=True),
]
TestSize = Annotated[
    float,
    typer.Option(
        help="Share of the rows to hold out, to measure on.",
        metavar="NUMBER",
        rich_help_panel=OUTPUT,
    ),
]


# ---------------------------------------------------------------------------------------------
# Input


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """How to read the files of a table."""

    PANEL: ClassVar[str] = COLUMNS

    types: list[str] = option(
        [], "--type", metavar="COLUMN=KIND", help="text, number, integer or boolean."
    )
    csv: list[str] = option(
        [],
        help="How to read a text file: delimiter=CHARACTER or encoding=NAME. Can be repeated. "
        "\\[default: comma, utf-8]",
        advanced=True,
    )

    @property
    def text_format(self) -> dict[str, str]:
        """Return the delimiter and the encoding of text files, where the user states them.

        Examples
        --------
        >>> TableOptions(csv=["delimiter=;"]).text_format
        {'delimiter': ';'}
        """
        pairs = [text.partition("=") for text in self.csv]
        for (name, _, value), text in zip(pairs, self.csv, strict=True):
            if name not in ("delimiter", "encoding") or not value:
                raise InputError(
                    f"--csv {text!r} is not of the form delimiter=CHARACTER or encoding=NAME."
                )
        return {name: value for name, _, value in pairs}

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

    PANEL: ClassVar[str] = COLUMNS

    sensitive: list[str] = option(
        help="Sensitive feature. Repeat it for intersections.",
        sets=("sensitive_features",),
        is_column=True,
    )
    label: str | None = option(
        None, help="True labels (two values).", sets=("y", "y_true"), is_column=True
    )
    drop_missing: bool = option(
        False, help="Drop rows without label, group or score.", advanced=True
    )


@dataclass(frozen=True, kw_only=True)
class PartlyKnownPeople(PeopleOptions):
    """Which columns hold group and label of people; some groups may be unknown."""

    unknown_groups: str = option(
        "error",
        help="People whose group is missing: error, or ignore (no group has them).",
        advanced=True,
    )


@dataclass(frozen=True, kw_only=True)
class ColumnOptions(PeopleOptions):
    """Which columns a fit reads, and for what."""

    features: list[str] = option(
        [], help="What the update may read. \\[default: all others]", is_column=True
    )
    ignore: list[str] = option(
        [],
        help="What the update must not read.",
        sets=("locked_features",),
        is_column=True,
    )
    key: str | None = option(
        None,
        help="Name of each row: in the ledger, and for draws from a large table. No feature.",
        is_column=True,
    )


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """The base model, or the column of its scores."""

    PANEL: ClassVar[str] = MODEL

    model: Path | None = option(None, help=".skops, .onnx or a pickle.")
    score_column: str | None = option(
        None, help="Scores of the base model, instead of --model.", is_column=True
    )
    score_is_for: str | None = option(
        None, help="Label of a high score. \\[default: the larger label]"
    )
    trust: list[str] = option(
        [],
        help="pickle: load a pickled model, which can run any code. Else: another type in a .skops "
        "file to trust. Can be repeated.",
        advanced=True,
    )
    threshold: float = option(0.5, help="The label is decided where the score is above.")


@dataclass(frozen=True, kw_only=True)
class PatchOptions:
    """Which patch is accepted."""

    PANEL: ClassVar[str] = "Patch"

    sha256: str | None = option(None, help="SHA-256 of the signed-off patch. Any other is refused.")


@dataclass(frozen=True, kw_only=True)
class ScoreOptions(PatchOptions):
    """Which patch is accepted, and which column of scores it edits."""

    score: str | None = option(
        None,
        help="Column of the base model's scores, of the label in the patch. "
        "\\[default: as in the patch]",
    )

    def score_column(self, patch: Patch) -> str:
        """Return the column of scores: as stated, else the one that the update was fitted on."""
        return self.score or patch.content.base.score or "score"


# ---------------------------------------------------------------------------------------------
# Constraint


@dataclass(frozen=True, kw_only=True)
class TargetOptions:
    """The floor or the ceiling that the metric of a constraint must keep."""

    PANEL: ClassVar[str] = REACH

    at_least: float | None = option(
        None, help="Lowest allowed P-rule, ratio or rate.", sets=("target",)
    )
    at_most: float | None = option(None, help="Highest allowed gap or rate.", sets=("target",))

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

    constraint: list[str] = option(
        [],
        callback=_check_texts,
        metavar="TEXT",
        help="What groups have alike, as in 'demographic parity >= 0.8 within department'. "
        "Names: demographic_parity (default), equalized_odds, true_positive_rate_parity, "
        "false_positive_rate_parity, minimum_rate and more. Repeat it: all hold.",
        sets=("constraints",),
    )
    favorable: str | None = option(
        None,
        help="Label that is good for the person.",
        sets=("favorable_label",),
    )
    positive: str | None = option(
        None,
        help="Label whose rates are compared. \\[default: as --favorable, else the larger label]",
        sets=("pos_label",),
        advanced=True,
    )

    @property
    def requirements(self) -> AllOf:
        """Return all constraints that are stated; refuse two bounds of the same one."""
        from commod.metrics._language import AllOf
        from commod.metrics._named_constraints import read_constraints

        stated = read_constraints([*self.constraint] or "demographic_parity")
        bounded = [part for part in stated.parts if part.bound is not None]
        if len(stated.parts) == 1 and not bounded:
            (part,) = stated.parts
            target = self.target(part.constraint.name)
            return stated if target is None else AllOf((part.with_bound(target),))
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
        stated = self.requirements
        if len(stated.parts) > 1:
            return {"constraints": stated, "target": None}
        (part,) = stated.parts
        return {"constraints": part.constraint.name, "target": part.bound}

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

    PANEL: ClassVar[str] = OUTPUT

    group_names: list[str] = option(
        [],
        help="VALUE=NAME of a group, such as 1=women. Can be repeated. With several --sensitive: "
        "COLUMN:VALUE=NAME.",
        advanced=True,
    )
    label_names: list[str] = option(
        [], help="LABEL=NAME of a label, such as 1=approved. Can be repeated.", advanced=True
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

    PANEL: ClassVar[str] = OUTPUT

    as_json: bool = option(False, "--json", help="Print one JSON object.")
    quiet: bool = option(False, "--quiet", "-q", help="Print nothing but errors.")


@dataclass(frozen=True, kw_only=True)
class FileOptions(OutputOptions):
    """What a command prints, and whether it may replace files."""

    force: bool = option(False, help="Replace files that exist.")


@dataclass(frozen=True, kw_only=True)
class ReportOptions(FileOptions):
    """What a command prints, and the report that it writes."""

    report: Path | None = option(None, help="The report: .html, .md or .json.")


@dataclass(frozen=True, kw_only=True)
class AuditOutput(ReportOptions):
    """What a command prints and writes about people whose rows it has."""

    blind_limit: bool = option(
        False,
        help="Estimate the fewest changes of a rule that does not read the group. Takes seconds.",
        advanced=True,
    )
