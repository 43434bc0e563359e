"""Let a command take its options as a few frozen dataclasses instead of one by one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, get_args, get_type_hints

import typer
from typer.models import OptionInfo

from commod.exceptions import InputError

__all__ = ["Sets", "with_options"]


@dataclass(frozen=True)
class Sets:
    """Name the Python parameter that an option sets, where the two have different names."""

    parameter: str


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command in the form that typer reads.

    A parameter of `command` that is annotated with a dataclass becomes one option per field. Each
    field is `Annotated` with a `typer.Option`, and with `Sets` where the names differ. The help
    shows the options of a class in the panel that its attribute `PANEL` names. A field with a
    `default_factory` has no default in the help.

    An `InputError` that names a Python parameter gets the name of the option in front of its
    message, such as "--max-changes: max_changes=2.0 must be at most 1".
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters = [_parameter("context", typer.Context)]
    for name, given in inspect.signature(command).parameters.items():
        if name in groups:
            parameters.extend(_field_parameters(groups[name]))
        else:
            parameters.append(_parameter(name, hints[name], given.default))

    @wraps(command)
    def run(context: typer.Context, **values: Any) -> None:
        arguments: dict[str, Any] = {}
        for name, group in groups.items():
            stated = {f.name: values.pop(f.name) for f in fields(group)}
            arguments[name] = group(**{k: v for k, v in stated.items() if v is not None})
        try:
            command(**arguments, **values)
        except InputError as error:
            option = _option_names(context, parameters).get(error.parameter or "")
            if option is None:
                raise
            raise InputError(f"{option}: {error}") from error

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def _parameter(name: str, hint: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, annotation=hint, default=default)


def _field_parameters(group: Any) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        kind, option, *marks = get_args(hints[field.name])
        option = copy(option)  # other classes may show the same option in their own panels
        if isinstance(option, OptionInfo):
            option.rich_help_panel = group.PANEL
        hint: Any = Annotated[kind, option, *marks]
        yield _parameter(field.name, hint, _default(field))


def _default(field: Field[Any]) -> Any:
    if field.default is not MISSING:
        return field.default
    return inspect.Parameter.empty if field.default_factory is MISSING else None


def _option_names(context: typer.Context, parameters: list[inspect.Parameter]) -> dict[str, str]:
    """Return the option for each Python parameter, as the definitions of the options have it."""
    options = {p.name: p.opts[0] for p in context.command.params if p.param_type_name == "option"}
    names: dict[str, list[str]] = {name: [option] for name, option in options.items() if name}
    for parameter in parameters:
        for mark in get_args(parameter.annotation)[1:]:
            if isinstance(mark, Sets):
                names.setdefault(mark.parameter, []).append(options[parameter.name])
    return {name: " or ".join(given) for name, given in names.items()}
