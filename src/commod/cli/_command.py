"""Make the options of commands from descriptions: one field of a frozen dataclass per option.

A field says all there is to say: type, help, panel, the parameter that it sets, and whether its
value is passed on to the update. So a new parameter is one entry.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from commod.exceptions import InputError

REQUIRED = dataclasses.MISSING
LENDERS = {"explore": "debias"}  # commands that take their options from another one
REACH, WHOM, COLUMNS, MODEL = "What to reach", "Whom to change", "Columns", "Model"
OUTPUT, ADVANCED = "Output", "Advanced"  # --help-all alone shows advanced options
PANELS = (REACH, WHOM, COLUMNS, MODEL, OUTPUT, ADVANCED)  # in the order of the help

REMOVED_OPTIONS = {  # with what to do instead
    "--numeric": "Pass --points 'per unit' or 'per bin'.",
    "--fit-rows-are-new": "Leave it out.",
    "--fit-rows-are-seen": "Leave it out.",
    "--gains-only": "Pass --direction gains_only.",
    "--losses-only": "Pass --direction losses_only.",
    "--id": "Pass --key.",
    "--delimiter": "Pass --csv delimiter=CHARACTER.",
    "--encoding": "Pass --csv encoding=NAME.",
    "--trust-pickle": "Pass --trust pickle.",
    "--spark-master": "Pass the address as --engine.",
    "--counts-only": "Pass --engine duckdb.",
    "--score-is-for": "Leave it out: the patch says which label its score predicts.",
    "--lambda-fair": "Leave it out, or fit COMMOD in Python.",
    "--lambda-ratio": "Leave it out, or fit COMMOD in Python.",
    "--no-reads-score": "Pass --borderline 0.",
    "--sparsity": "Pass --max-lines.",
    "--accuracy-weight": "Pass --borderline.",
    "--n-concepts": "Leave it out.",
    "--sample": "Leave it out.",
}


def option(
    default: Any = REQUIRED,
    *names: str,
    help: str,
    panel: str | None = None,
    advanced: bool = False,
    sets: tuple[str, ...] = (),
    is_column: bool = False,
    passes: bool | Callable[[Any], Any] = False,
    **settings: Any,
) -> Any:
    """Return a dataclass field that is an option of a command.

    Parameters
    ----------
    default : object, default=REQUIRED
        Default of the option. A list must be empty.
    *names : str
        Names of the option, if not the name of the field: "--quiet", "-q".
    help : str
        Text in the help of the command.
    panel : str, default=None
        Heading in the help. None: the attribute `PANEL` of the class.
    advanced : bool, default=False
        Whether only --help-all shows the option.
    sets : tuple of str, default=()
        Python parameters that the option sets, beside the name of the field.
    is_column : bool, default=False
        Whether the value names columns of the table, see `named_columns`.
    passes : bool or function, default=False
        Whether a stated value is a parameter of the update, see `stated_parameters`. A function
        turns it into the parameter. The default of the option is None then.
    **settings : object
        Further parameters of `typer.Option`.
    """
    settings |= {"help": help, "hidden": advanced}
    if advanced or panel:
        settings["rich_help_panel"] = ADVANCED if advanced else panel
    metadata = {"names": names, "sets": sets, "is_column": is_column, "settings": settings}
    metadata["passes"] = passes
    if isinstance(default, list):
        return dataclasses.field(default_factory=list, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def stated_parameters(*groups: Any) -> dict[str, Any]:
    """Return the parameters of an update that the user states by options of the groups."""
    parameters = {}
    for group in groups:
        for field in dataclasses.fields(group):
            passes, value = field.metadata["passes"], getattr(group, field.name)
            if passes and value is not None:
                name = next(iter(field.metadata["sets"]), field.name)
                parameters[name] = passes(value) if callable(passes) else value
    return parameters


def named_columns(*groups: Any) -> list[tuple[str, str]]:
    """Return each option of the groups that names a column, with the column."""
    pairs = [
        (_option_names(field)[0], getattr(group, field.name))
        for group in groups
        for field in dataclasses.fields(group)
        if field.metadata["is_column"]
    ]
    return [
        (name, column)
        for name, value in pairs
        for column in (value if isinstance(value, list) else [value])
        if column is not None
    ]


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command in the form that typer reads.

    A parameter of `command` that is annotated with a dataclass becomes one option per field, made
    with `option`. The help shows them in the panel that the field, or the attribute `PANEL` of the
    class, names. Every other parameter is left to typer.

    An `InputError` that names a Python parameter gets the name of the option in front of its
    message, such as "--max-changes: max_changes=2.0 must be at most 1".
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {k: v for k, v in hints.items() if dataclasses.is_dataclass(v)}
    parameters: list[inspect.Parameter] = []
    options: dict[str, list[str]] = {}
    for name, given in inspect.signature(command).parameters.items():
        if name not in groups:
            parameters.append(_parameter(name, hints[name], given.default))
            options[name] = [_option_name(name)]
            continue
        parameters.extend(_field_parameters(groups[name]))
        for field in dataclasses.fields(groups[name]):
            for parameter in (field.name, *field.metadata["sets"]):
                options.setdefault(parameter, []).append(_option_names(field)[0])

    @wraps(command)
    def run(**values: Any) -> None:
        arguments: dict[str, Any] = {}
        for name, group in groups.items():
            stated = {field.name: values.pop(field.name) for field in dataclasses.fields(group)}
            arguments[name] = group(**{k: v for k, v in stated.items() if v is not None})
        try:
            command(**arguments, **values)
        except InputError as error:
            if error.parameter not in options:
                raise
            raise InputError(f"{' or '.join(options[error.parameter])}: {error}") from error

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


class Command(TyperCommand):
    """A command; options that a lender has too are the lender's, which describes them once."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.borrowed: list[Any] = []

    def borrow(self, options: Iterable[Any]) -> None:
        """Take the lender's options in place of own ones with the same names."""
        own = {param.name for param in self.params}
        shared = [param for param in options if param.name in own]
        names = {param.name for param in shared}
        self.params = [param for param in self.params if param.name not in names]
        self.borrowed += shared

    def get_params(self, ctx: Any) -> list[Any]:
        """Return all options that the command takes."""
        *own, ask_for_help = super().get_params(ctx)
        return [*sorted([*own, *self.borrowed], key=_place_in_help), ask_for_help]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options; those of every command may also stand before its name."""
        rest = super().parse_args(ctx, args)
        for name, value in (ctx.parent.params if ctx.parent else {}).items():
            if name in ctx.params:
                ctx.params[name] = value or ctx.params[name]
            elif value:
                option = next(p.opts[0] for p in ctx.parent.command.params if p.name == name)
                raise InputError(f"{option} does not go with {ctx.command_path}. Leave it out.")
        return rest


class Commands(TyperGroup):
    """All commands: options of the root belong to every command that reads them."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        commands: dict[str, Any] = dict(self.commands)
        for name, command in commands.items():
            lender = commands.get(LENDERS.get(name, ""))
            command.borrow(self.params)
            command.borrow(lender.params if lender else [])
            command.borrowed += [param for param in self.params if param.name == "help_all"]


def print_all_help(ctx: Any, is_requested: bool) -> None:
    """Print the help with advanced options."""
    if is_requested:
        for param in ctx.command.get_params(ctx):
            param.hidden = False
        typer.echo(ctx.get_help())
        raise typer.Exit


def _place_in_help(param: Any) -> int:
    panel = getattr(param, "rich_help_panel", None)
    return PANELS.index(panel) if panel in PANELS else -1


def _field_parameters(group: Any) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(group)
    for field in dataclasses.fields(group):
        shown = {"rich_help_panel": group.PANEL, "metavar": _metavar(field, hints[field.name])}
        settings = {**shown, **field.metadata["settings"]}
        info = typer.Option(*_option_names(field), **settings)
        default = None if field.default is REQUIRED else field.default
        if field.default is REQUIRED and field.default_factory is REQUIRED:
            default = inspect.Parameter.empty
        yield _parameter(field.name, Annotated[hints[field.name], info], default)


def _metavar(field: dataclasses.Field[Any], hint: Any) -> str | None:
    """Return what the help calls the value of an option; None where typer knows."""
    kinds = {Path: "FILE", float: "NUMBER", int: "NUMBER", str: "TEXT"}
    if field.metadata["is_column"]:
        return "COLUMN"
    return next((kinds[kind] for kind in (hint, *get_args(hint)) if kind in kinds), None)


def _parameter(name: str, hint: Any, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, annotation=hint, default=default)


def _option_names(field: dataclasses.Field[Any]) -> tuple[str, ...]:
    return field.metadata["names"] or (_option_name(field.name),)


def _option_name(parameter: str) -> str:
    return "--" + parameter.replace("_", "-")
