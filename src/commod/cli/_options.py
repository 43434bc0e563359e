"""Describe every option of the command line once, and read what the options say together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from commod import __version__
from commod._text import did_you_mean, list_names
from commod.cli._command import (
    ADVANCED,
    COLUMNS,
    MODEL,
    OUTPUT,
    REACH,
    WHOM,
    option,
    print_all_help,
    with_defaults,
)
from commod.exceptions import InputError

if TYPE_CHECKING:
    from commod.metrics._language import AllOf

REPORTS = (".html", ".md", ".json")
MOST_ROWS = 5_000_000  # in memory, where the user states no engine

# Which commands take an option. "commod" is what stands before the name of a command.
FITS = ("debias", "explore")
MODELS = (*FITS, "compare")
AUDITS = ("debias", "audit", "check")
TABLES = (*MODELS, "audit", "check")
GROUPS = (*FITS, "audit", "check")
LABELS = (*MODELS, "audit")
SCORES = ("apply", "check", "sql")
PATCHES = (*SCORES, "show", "verify")
PRINTING = ("commod", *TABLES, *PATCHES)
WRITING = ("commod", *AUDITS, "apply", "sql", "compare")

# Makers of the options under a heading
reach, whom = partial(option, panel=REACH), partial(option, panel=WHOM)
output, advanced = partial(option, panel=OUTPUT), partial(option, panel=ADVANCED)
column = partial(option, panel=COLUMNS, is_column=True)

Dialect = Literal["duckdb", "postgres", "spark", "snowflake", "bigquery", "tsql"]
Method = Literal["ControlledDebiaser", "COMMOD"]
Direction = Literal["any", "gains_only", "losses_only"]


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


def _print_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"commod {__version__}")
        raise typer.Exit


@dataclass(frozen=True, kw_only=True)
@with_defaults
class Options:
    """What the user says to a command; options of other commands have their defaults."""

    command: str = ""  # its name

    # Arguments
    patch: Path = option(PATCHES, "The patch file.", argument=True)
    files: list[str] = option(
        TABLES, "CSV, TSV (also .gz) or Parquet, or a quoted pattern.", argument=True
    )
    source: str = option(
        ("apply",), "CSV, TSV or Parquet file, or a quoted pattern.", argument=True
    )
    edited: Path = option(
        ("apply",), "The file to write: .csv, .csv.gz or .parquet.", argument=True, metavar="out"
    )
    signed: Path = option(
        ("verify",), "The report: .html, .md or .json.", argument=True, metavar="report"
    )

    # Columns of the table
    sensitive: list[str] = column(
        TABLES,
        "Sensitive feature. Repeat it for intersections.",
        required=True,
        sets="sensitive_features",
    )
    label: str | None = column(TABLES, "True labels (two values).", sets="y y_true")
    drop_missing: bool = advanced(TABLES, "Drop rows without label, group or score.")
    unknown_groups: str = advanced(
        GROUPS,
        "People whose group is missing: error, or ignore (no group has them).",
        default="error",
    )
    features: list[str] = column(MODELS, "What the update may read. \\[default: all others]")
    ignore: list[str] = column(MODELS, "What the update must not read.", sets="locked_features")
    key: str | None = column(
        MODELS, "Name of each row: in the ledger, and for draws from a large table. No feature."
    )
    before: str = column(
        ("audit",), "Column of the earlier decisions.", required=True, sets="y_before"
    )
    after: str = column(("audit",), "Column of the later decisions.", required=True, sets="y_after")
    score_before: str | None = column(
        ("audit",), "Column of the earlier scores.", sets="scores_before"
    )
    score_after: str | None = column(("audit",), "Column of the later scores.", sets="scores_after")

    # Base model and patch
    model: Path | None = option(MODELS, ".skops, .onnx or a pickle.", panel=MODEL)
    score_column: str | None = option(
        MODELS, "Scores of the base model, instead of --model.", is_column=True, panel=MODEL
    )
    score_is_for: str | None = option(
        LABELS, "Label of a high score. \\[default: the larger label]", panel=MODEL
    )
    trust: list[str] = advanced(
        MODELS,
        "pickle: load a pickled model, which can run any code. Else: another type in a .skops file "
        "to trust. Can be repeated.",
    )
    threshold: float = option(
        MODELS, "The label is decided where the score is above.", default=0.5, panel=MODEL
    )
    sha256: str | None = option(
        PATCHES, "SHA-256 of the signed-off patch. Any other is refused.", panel="Patch"
    )
    score: str | None = option(
        SCORES,
        "Column of the base model's scores, of the label in the patch. "
        "\\[default: as in the patch]",
        panel="Patch",
    )

    # What to reach
    at_least: float | None = reach(TABLES, "Lowest allowed P-rule, ratio or rate.", sets="target")
    at_most: float | None = reach(TABLES, "Highest allowed gap or rate.", sets="target")
    constraint: list[str] = reach(
        LABELS,
        "What groups have alike, as in 'demographic parity >= 0.8 within department'. "
        "Names: demographic_parity (default), equalized_odds, true_positive_rate_parity, "
        "false_positive_rate_parity, minimum_rate and more. Repeat it: all hold.",
        callback=_check_texts,
        sets="constraints",
    )
    favorable: str | None = reach(
        LABELS, "Label that is good for the person.", sets="favorable_label"
    )
    positive: str | None = advanced(
        LABELS,
        "Label whose rates are compared. \\[default: as --favorable, else the larger label]",
        sets="pos_label",
    )
    target_on: str | None = advanced(
        FITS,
        "new_rows: the target is expected to hold on new people. fit_rows: it holds on the "
        "rows of the table. \\[default: new_rows]",
    )
    confidence: float | None = reach(FITS, "Promise the target, such as with 0.95.")

    # Whom to change
    direction: str | None = whom(
        FITS, "any, gains_only (nobody loses the favourable outcome) or losses_only."
    )
    max_changes: float | None = whom((*FITS, "check"), "Cap on the share of changed decisions.")
    max_accuracy_loss: float | None = whom(FITS, "Cap on the loss of accuracy.")
    max_volume_change: float | None = advanced(
        FITS, "Cap on the change of the overall positive rate."
    )
    max_margin: float | None = whom(FITS, "Cap on |score − threshold| of those who change.")
    borderline: float | None = whom(
        FITS, "Extra changes, as a share, for people nearer to the threshold. \\[default: 0.25]"
    )

    # The scorecard
    points: str | None = output(FITS, "integers (−10 to 10), per unit, per bin or auto: per unit.")
    max_lines: int | None = output(
        FITS, "Most lines of the scorecard, 0: all. \\[default: 12]", min=0
    )
    score_edit: str | None = advanced(
        FITS,
        "changed_only: scores stay where decisions stay. all: edit every score, as in the paper. "
        "\\[default: changed_only]",
    )

    # How to read the files, and where
    types: list[str] = option(
        (*TABLES, "apply"),
        "text, number, integer or boolean.",
        "--type",
        metavar="COLUMN=KIND",
        panel=COLUMNS,
    )
    csv: list[str] = advanced(
        (*TABLES, "apply"),
        "How to read a text file: delimiter=CHARACTER or encoding=NAME. Can be repeated. "
        "\\[default: comma, utf-8]",
    )
    engine: str = advanced(
        (*AUDITS, "compare"),
        "memory, duckdb or spark. auto: memory for a table that fits into it and has at most "
        f"{MOST_ROWS:,} rows, else duckdb. Spark reads Parquet files, on this machine or at an "
        "address in its place: spark://host:7077, sc://host or yarn.",
        default="auto",
    )

    # What groups and labels are called
    group_names: list[str] = advanced(
        GROUPS,
        "VALUE=NAME of a group, such as 1=women. Can be repeated. With several --sensitive: "
        "COLUMN:VALUE=NAME.",
    )
    label_names: list[str] = advanced(
        GROUPS, "LABEL=NAME of a label, such as 1=approved. Can be repeated."
    )

    # What to measure and to write
    report: Path | None = output(AUDITS, "The report: .html, .md or .json.")
    blind_limit: bool = advanced(
        ("debias", "audit"),
        "Estimate the fewest changes of a rule that does not read the group. Takes seconds.",
    )
    trade_off: bool = advanced(
        ("debias",), "Show in the report what other targets would change (.html or .md)."
    )
    refits: int = advanced(
        ("debias",),
        "Fit so often on halves of the rows, and show in the report who changes each time.",
        default=0,
        sets="n_refits",
        min=0,
    )
    out: Path = output(("debias",), "The patch: .json.", default=Path("patch.json"))
    ledger: Path | None = output(("debias",), "Who changes: .csv.")
    figures: Path | None = output(
        ("compare",), "File for the figures of every update (.csv).", "--out"
    )
    picture: Path | None = output(("compare",), "File for a picture (.png, .svg or .pdf).")
    statement: Path | None = output(
        ("sql",), "File for the statement, instead of printing it.", "--out"
    )
    min_group_size: int = advanced(
        GROUPS, "Groups with fewer rows are listed, but not compared.", default=30
    )
    test_size: float | None = output(
        ("debias", "compare"),
        "Share of the rows to hold out, to measure on. \\[default: 0, with compare 0.3]",
    )
    seed: int = advanced(
        ("debias", "compare", "demo"), "Seed of every random draw.", default=0, min=0
    )
    strict: bool = option(("audit",), "Exit code 1 if a check fails that blocks signing.")
    methods: list[str] = option(
        ("compare",),
        "Name of a method. Can be repeated. \\[default: the quick methods]",
        "--method",
    )
    no_browser: bool = output(("explore",), "Print the address of the page and open no browser.")
    port: int = output(
        ("explore",),
        "Port of the page. \\[default: a free one]",
        default=0,
        min=0,
        max=65535,
        show_default=False,
    )

    # Patches
    dialect: Dialect = option(
        ("sql",), "The last three dialects are not tested on a database.", required=True
    )
    table: str = option(("sql",), "Name of the table, as the dialect writes it.", required=True)
    prefix: str = option(
        ("apply", "sql"), "Text that begins the names of the new columns.", default="commod_"
    )
    calibrated: bool = option(("apply", "sql"), "Add the edited score as a calibrated probability.")
    columns: list[str] = option(
        ("apply",),
        "New column to add, such as commod_r. Can be repeated. \\[default: the four above]",
    )
    memory_limit: str | None = option(
        ("apply",), "Memory for the rows being edited. \\[default: 1GB]"
    )
    renamed: list[str] = option(
        ("sql",), "PATCH=TABLE where the table names a column differently.", "--column"
    )
    diff: Path | None = option(
        ("show",), "Another patch file: print how it differs from the first."
    )
    every_term: bool = option(
        ("show",), "Print every term of the scorecard, however many.", "--all"
    )

    # The demo
    method: Method = option(
        ("demo",),
        "ControlledDebiaser takes a target, COMMOD the lambdas of the paper.",
        default="ControlledDebiaser",
    )
    demo_constraints: str = option(
        ("demo",),
        "What to compare between groups: demographic_parity, equalized_odds, "
        "true_positive_rate_parity or false_positive_rate_parity.",
        "--constraints",
        default="demographic_parity",
        sets="constraints",
        callback=_check_constraint,
        metavar="NAME",
    )
    demo_target: float | None = option(
        ("demo",),
        "Lowest P-rule, or highest disparity, that is expected on new people. "
        "\\[default: 0.8, or 0.1]",
        "--target",
        sets="target",
    )
    demo_direction: Direction | None = option(
        ("demo",),
        "gains_only: nobody loses “low risk”. \\[default: gains_only]",
        "--direction",
        sets="direction",
    )
    folder: Path = option(
        ("demo",),
        "Folder for the files.",
        "--output",
        default=Path("commod-demo"),
        metavar="FOLDER",
    )
    open_page: bool = option(
        ("demo",),
        "Open the page of the update in the browser, to change it by hand. With COMMOD: open the "
        "report.",
        "--open",
    )

    # Every command
    as_json: bool = output(PRINTING, "Print one JSON object.", "--json")
    quiet: bool = output(PRINTING, "Print nothing but errors.", "--quiet", "-q")
    force: bool = output(WRITING, "Replace files that exist.")
    version: bool = option(
        ("commod",), "Print the version and stop.", callback=_print_version, is_eager=True
    )
    help_all: bool = option(
        ("commod", *TABLES, *PATCHES, "demo"),
        "Show all options and exit, also advanced ones.",
        callback=print_all_help,
        is_eager=True,
        expose_value=False,
    )

    # -- what options say together ----------------------------------------------------------------

    @cached_property
    def requirements(self) -> AllOf:
        """Return all constraints that are stated; refuse two bounds of the same one."""
        from commod.metrics._language import AllOf
        from commod.metrics._named_constraints import read_constraints

        stated = read_constraints([*self.constraint] or "demographic_parity")
        bounded = [part for part in stated.parts if part.bound is not None]
        if len(stated.parts) == 1 and not bounded:
            (part,) = stated.parts
            target = self.bound_of(part.constraint.name)
            return stated if target is None else AllOf((part.with_bound(target),))
        bounds = (("--at-least", self.at_least), ("--at-most", self.at_most))
        for name, bound in bounds:
            if bound is not None and bounded:
                raise InputError(
                    f"{name} {bound:g} does not go with --constraint {bounded[0].text!r}, which "
                    "states its bound. Leave one of them out."
                )
            if bound is not None:
                raise InputError(
                    f"{name} {bound:g} is the bound of one constraint, and --constraint states "
                    f"{len(stated.parts)}. State each bound with its constraint."
                )
        return stated

    def bound_of(self, name: str) -> float | None:
        """Return the stated bound of the constraint `name`; refuse a bound of the other kind."""
        from commod.metrics._constraint import get_constraint

        constraint = get_constraint(name)
        metric, is_floor, most = constraint.metric, constraint.higher_is_fairer, constraint.largest
        for option_name, value in (("--at-least", self.at_least), ("--at-most", self.at_most)):
            if value is not None and not 0 <= value <= most:
                raise InputError(f"{option_name} {value:g} is no {metric}: give 0 to {most:g}.")
        wrong = self.at_most if is_floor else self.at_least
        if wrong is not None:
            given, expected = ("most", "least") if is_floor else ("least", "most")
            raise InputError(
                f"--at-{given} {wrong:g} does not go with --constraint {name}: a "
                f"{'high' if is_floor else 'low'} {metric} is fair. State --at-{expected}."
            )
        return self.at_least if is_floor else self.at_most

    def constraints_and_target(self) -> dict[str, Any]:
        """Return the parameters `constraints` and `target`; several constraints state bounds."""
        stated = self.requirements
        if len(stated.parts) > 1:
            return {"constraints": stated, "target": None}
        (part,) = stated.parts
        return {"constraints": part.constraint.name, "target": part.bound}

    def label_parameters(self, known: list[Any], default: Any = None) -> dict[str, Any]:
        """Return `pos_label` and `favorable_label`, out of `known`.

        If neither is stated, `pos_label` is `default`; one of them stands for both.
        """
        default = default if self.favorable is None else None
        return {
            "pos_label": find_label("--positive", self.positive, known, default),
            "favorable_label": find_label("--favorable", self.favorable, known),
        }

    def named_labels(self, known: list[Any]) -> dict[Any, str] | None:
        """Return the names of the labels; `known` are the labels themselves."""
        if not self.label_names:
            return None
        return _read_names("--label-names", self.label_names, known)

    def named_groups(self, known: Mapping[str, list[Any]]) -> dict[Any, Any] | None:
        """Return the parameter `group_names` of an audit.

        `known` holds the values of each sensitive column.

        Examples
        --------
        >>> Options(group_names=["1=women"]).named_groups({"sex": [1, 2]})
        {1: 'women'}
        >>> Options(group_names=["sex:1=women"]).named_groups({"sex": [1, 2], "old": [True]})
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
            column: _read_names("--group-names", names, known[column])
            for column, names in by_column.items()
        }

    @property
    def text_format(self) -> dict[str, str]:
        """Return the delimiter and the encoding of text files, where the user states them.

        Examples
        --------
        >>> Options(csv=["delimiter=;"]).text_format
        {'delimiter': ';'}
        """
        form = "delimiter=CHARACTER or encoding=NAME"
        pairs = split_pairs("--csv", self.csv, form, str.partition)
        for name, value in pairs.items():
            if name not in ("delimiter", "encoding"):
                raise InputError(f"--csv {f'{name}={value}'!r} is not of the form {form}.")
        return pairs

    @property
    def column_types(self) -> dict[str, str]:
        """Return the type that the user gives to each column.

        Examples
        --------
        >>> Options(types=["zip=text", "a=b=number"]).column_types
        {'zip': 'text', 'a=b': 'number'}
        """
        return split_pairs("--type", self.types, "COLUMN=TYPE, such as zip=text")


def split_pairs(
    option_name: str, values: list[str], form: str, cut: Callable[[str, str], Any] = str.rpartition
) -> dict[str, str]:
    """Return both sides of the "=" that `cut` finds; refuse another form, and a side twice."""
    pairs: dict[str, str] = {}
    for value in values:
        left, _, right = cut(value, "=")
        if not (left and right):
            raise InputError(f"{option_name} {value!r} is not of the form {form}.")
        if left in pairs:
            raise _stated_twice(f"{option_name} {left!r}", pairs[left], right)
        pairs[left] = right
    return pairs


def _stated_twice(what: str, first: str, second: str) -> InputError:
    return InputError(f"{what} is stated twice, as {first!r} and as {second!r}. Keep one of them.")


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
    with suppress(ValueError):
        number = float(text)
        for label in labels:
            if isinstance(label, int | float) and not isinstance(label, bool) and number == label:
                return label
    raise InputError(
        f"{name} {text!r} is not one of the labels: {list_names(labels)}."
        f"{did_you_mean(text, labels)}"
    )


def _read_names(option_name: str, values: list[str], known: list[Any]) -> dict[Any, str]:
    """Return the name of each label or group that the values of an option name.

    Examples
    --------
    >>> _read_names("--label-names", ["1=yes", "a=b=c"], [1, "a=b"])
    {1: 'yes', 'a=b': 'c'}
    """
    names: dict[Any, str] = {}
    form = "VALUE=NAME, as 1=women"
    for value, name in split_pairs(option_name, [text.rstrip() for text in values], form).items():
        label = find_label(option_name, value, known)
        if label in names:
            raise _stated_twice(f"{option_name} {value!r}", names[label], name)
        names[label] = name
    return names
