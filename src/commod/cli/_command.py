"""Let a command take its options as a few frozen dataclasses instead of one by one."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

from commod.exceptions import InputError

REQUIRED = dataclasses.MISSING


def option(
    default: Any = REQUIRED,
    *names: str,
    help: str,
    sets: tuple[str, ...] = (),
    is_column: bool = False,
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
    sets : tuple of str, default=()
        Python parameters that the option sets, beside the name of the field.
    is_column : bool, default=False
        Whether the value names columns of the table, see `named_columns`.
    **settings : object
        Further parameters of `typer.Option`.
    """
    settings |= {"help": help}
    metadata = {"names": names, "sets": sets, "is_column": is_column, "settings": settings}
    if isinstance(default, list):
        return dataclasses.field(default_factory=list, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


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
    with `option`. The help shows them in the panel that the attribute `PANEL` of the class names.
    Every other parameter is left to typer.

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


def _field_parameters(group: Any) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(group)
    for field in dataclasses.fields(group):
        settings = {"rich_help_panel": group.PANEL, **field.metadata["settings"]}
        info = typer.Option(*_option_names(field), **settings)
        default = None if field.default is REQUIRED else field.default
        if field.default is REQUIRED and field.default_factory is REQUIRED:
            default = inspect.Parameter.empty
        yield _parameter(field.name, Annotated[hints[field.name], info], default)


def _parameter(name: str, hint: Any, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, annotation=hint, default=default)


def _option_names(field: dataclasses.Field[Any]) -> tuple[str, ...]:
    return field.metadata["names"] or (_option_name(field.name),)


def _option_name(parameter: str) -> str:
    return "--" + parameter.replace("_", "-")
