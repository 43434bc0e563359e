"""The command line, one module per command; heavy packages are imported when a command runs."""

from __future__ import annotations

import json
import os
import sys
from types import ModuleType
from typing import Annotated, NoReturn

import typer

from commod import __version__
from commod.cli import apply, audit, check, compare, debias, demo, show, sql

__all__ = ["app", "main"]

app = typer.Typer(
    name="commod",
    help="The smallest, explainable update that makes a validated classifier fairer.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"commod {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and stop."
        ),
    ] = False,
) -> None:
    pass


def _examples(module: ModuleType) -> str:
    """Return the examples of a command, each a line of its own below its help."""
    return "\n\n".join(["Examples:", *(f"$ {line}" for line in module.EXAMPLES)])


for name, module in {
    "debias": debias,
    "audit": audit,
    "apply": apply,
    "check": check,
    "show": show,
    "sql": sql,
    "compare": compare,
    "demo": demo,
}.items():
    app.command(name, epilog=_examples(module))(module.command)


def main() -> None:
    """Run the command line; a mistake of the user is one line on standard error and exit code 2."""
    from commod.exceptions import CommodError

    try:
        app()
    except (CommodError, OSError, ValueError, TypeError) as error:
        # the last two come from scikit-learn's checks of parameters, or from the base model
        if "COMMOD_TRACEBACK" in os.environ:
            raise
        _fail(" ".join(str(error).split()))
    except RuntimeError as error:
        if "interrupted" not in str(error):  # as DuckDB says it
            raise
        sys.exit(130)
    except MemoryError:
        _fail("There is not enough memory for this table. Pass fewer columns or rows.")


def _fail(sentence: str) -> NoReturn:
    typer.echo(f"commod: error: {sentence}", err=True)
    if "--json" in sys.argv:
        typer.echo(json.dumps({"error": sentence}, ensure_ascii=False))
    sys.exit(2)
