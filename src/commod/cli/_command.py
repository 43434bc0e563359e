"""Make the options of all commands from one description each: a field of a frozen dataclass.

A field says all there is to say: which commands take it, its heading, help, type and default, and
the parameter that it sets. So a new option is one entry.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import cache, wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from commod.exceptions import InputError

T = TypeVar("T")

REACH, WHOM, COLUMNS, MODEL = "What to reach", "Whom to change", "Columns", "Model"
OUTPUT, ADVANCED = "Output", "Advanced"  # --help-all alone shows advanced options
PANELS = (REACH, WHOM, COLUMNS, MODEL, OUTPUT, ADVANCED)  # in the order of the help
METAVARS = {Path: "FILE", float: "NUMBER", int: "NUMBER", str: "TEXT"}

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
    commands: Sequence[str],
    help: str,
    *names: str,
    panel: str | None = None,
    default: Any = None,
    required: bool = False,
    argument: bool = False,
    sets: str = "",
    is_column: bool = False,
    **settings: Any,
) -> Any:
    """Return a dataclass field that is an option of some commands.

    Parameters
    ----------
    commands : sequence of str
        Names of the commands that take the option; "commod" is what stands before a name.
    help : str
        Text in the help.
    *names : str
        Names of the option, if not the name of the field: "--quiet", "-q".
    panel : str, default=None
        Heading in the help. Only --help-all shows options of the heading `ADVANCED`.
    default : object, default=None
        Value where the user states none; see also `with_defaults`.
    required : bool, default=False
        Whether the user must state a value.
    argument : bool, default=False
        Whether the value has no name in front of it, and must be stated.
    sets : str, default=""
        Python parameters that the option sets, beside the name of the field.
    is_column : bool, default=False
        Whether the value names columns of the table, see `named_columns`.
    **settings : object
        Further parameters of `typer.Option`.
    """
    settings |= {"help": help, "rich_help_panel": panel, "hidden": panel == ADVANCED}
    metadata = {
        "commands": commands,
        "names": names,
        "is_required": required or argument,
        "is_argument": argument,
        "sets": sets,
        "is_column": is_column,
        "settings": settings,
    }
    return dataclasses.field(default=default, metadata=metadata)


def with_defaults(described: type[T]) -> type[T]:
    """Give options without a default that of their type: no value of a list, or False."""
    for name, hint in described.__annotations__.items():
        field = described.__dict__[name]
        if isinstance(field, dataclasses.Field) and field.default is None:
            if hint == "bool":
                field.default = False
            elif hint.startswith("list"):
                field.default, field.default_factory = dataclasses.MISSING, list
    return described


def named_columns(options: Any) -> list[tuple[str, str]]:
    """Return each option that names a column, with the column."""
    pairs = [
        (_option_names(field)[0], getattr(options, field.name))
        for field in dataclasses.fields(options)
        if field.metadata.get("is_column")
    ]
    return [
        (name, column)
        for name, value in pairs
        for column in (value if isinstance(value, list) else [value])
        if column is not None
    ]


def with_options(*examples: str) -> Callable[[Callable[[Any], None]], Any]:
    """Give a command its options and the examples of its help, in the form that typer reads.

    The only parameter of the command is annotated with the dataclass of all options. The options
    are those fields that name the command among theirs. The field `command` gets its name.

    An `InputError` that names a Python parameter gets the name of the option in front of its
    message, such as "--max-changes: max_changes=2.0 must be at most 1".
    """

    def decorate(command: Callable[[Any], None]) -> Any:
        (described,) = (v for k, v in get_type_hints(command).items() if k != "return")
        fields = [
            field
            for field in dataclasses.fields(described)
            if command.__name__ in field.metadata.get("commands", ())
        ]
        names: dict[str, list[str]] = {}
        for field in fields:
            for parameter in (field.name, *field.metadata["sets"].split()):
                names.setdefault(parameter, []).append(_option_names(field)[0])

        @wraps(command)
        def run(**values: Any) -> None:
            try:
                stated = {k: v for k, v in values.items() if v is not None}
                command(described(command=command.__name__, **stated))
            except InputError as error:
                if error.parameter not in names:
                    raise
                raise InputError(f"{' or '.join(names[error.parameter])}: {error}") from error

        parameters = list(_parameters(_hints(described), fields))
        decorated: Any = run
        decorated.__signature__ = inspect.Signature(parameters)
        decorated.__annotations__ = {p.name: p.annotation for p in parameters}
        decorated.epilog = "\n\n".join(["Examples:", *(f"$ {line}" for line in examples)])
        return decorated

    return decorate


@cache
def _hints(described: type) -> dict[str, Any]:
    """Return the types of all options, read once for all commands."""
    return get_type_hints(described)


def _parameters(hints: dict[str, Any], fields: Sequence[Any]) -> Iterator[inspect.Parameter]:
    for field in fields:
        hint, told = hints[field.name], field.metadata
        default = None if field.default is dataclasses.MISSING else field.default
        if told["is_argument"]:
            info = typer.Argument(**told["settings"])
        else:
            settings = {**_metavar(hint, told), **told["settings"]}
            info = typer.Option(*_option_names(field), **settings)
        yield inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=Annotated[hint, info],
            default=inspect.Parameter.empty if told["is_required"] else default,
        )


def _metavar(hint: Any, told: Any) -> dict[str, str]:
    """Return what the help calls the value of an option; nothing where typer knows."""
    if told["is_column"]:
        return {"metavar": "COLUMN"}
    names = [METAVARS[kind] for kind in (hint, *get_args(hint)) if kind in METAVARS]
    return {"metavar": names[0]} if names else {}


def _option_names(field: Any) -> tuple[str, ...]:
    return field.metadata["names"] or ("--" + field.name.replace("_", "-"),)


class Command(TyperCommand):
    """A command. An option that an earlier command has too is that command's, described once."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.order = {param.name: number for number, param in enumerate(self.params)}
        self.shared: list[Any] = []

    def share(self, known: dict[str, Any]) -> None:
        """Take the options that are known in place of own ones; add all others to them."""
        self.shared = [known[param.name] for param in self.params if param.name in known]
        self.params = [param for param in self.params if param.name not in known]
        known |= {param.name: param for param in self.params}

    def get_params(self, ctx: Any) -> list[Any]:
        """Return all options that the command takes, in the order of the help."""
        *own, ask_for_help = super().get_params(ctx)
        return [*sorted([*own, *self.shared], key=self._place_in_help), ask_for_help]

    def _place_in_help(self, param: Any) -> tuple[int, int]:
        panel = getattr(param, "rich_help_panel", None)
        return PANELS.index(panel) if panel in PANELS else -1, self.order[param.name]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options; those of every command may also stand before its name."""
        self._check_each_once(ctx, args)
        rest = super().parse_args(ctx, args)
        for name, value in (ctx.parent.params if ctx.parent else {}).items():
            if name in ctx.params:
                ctx.params[name] = value or ctx.params[name]
            elif value:
                option = next(p.opts[0] for p in ctx.parent.command.params if p.name == name)
                raise InputError(f"{option} does not go with {ctx.command_path}. Leave it out.")
        return rest

    def _check_each_once(self, ctx: Any, args: list[str]) -> None:
        """Refuse an option with one value that is stated twice: the earlier value would be lost."""
        order = self.make_parser(ctx).parse_args([*args])[2]
        for param in order:
            takes_one = not (param.multiple or getattr(param, "is_flag", True))
            if takes_one and order.count(param) > 1:
                raise InputError(f"{param.opts[0]} is stated twice, and has one value. Keep one.")


class Commands(TyperGroup):
    """All commands: options of the root belong to every command that reads them."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        known: dict[str, Any] = {str(param.name): param for param in self.params}
        commands: dict[str, Any] = dict(self.commands)
        for command in commands.values():
            command.share(known)


def print_all_help(ctx: Any, is_requested: bool) -> None:
    """Print the help with advanced options."""
    if is_requested:
        hidden = [param for param in ctx.command.get_params(ctx) if param.hidden]
        for param in hidden:
            param.hidden = False
        typer.echo(ctx.get_help())
        for param in hidden:
            param.hidden = True
        raise typer.Exit
