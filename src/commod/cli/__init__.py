"""The command line, one module per command; heavy packages are imported when a command runs."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from commod import __version__
from commod.cli import demo

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


app.command("demo")(demo.command)


def main() -> None:
    """Run the command line; a mistake of the user is one line on standard error and exit code 2."""
    from commod.exceptions import CommodError

    try:
        app()
    except (CommodError, OSError) as error:
        typer.echo(f"commod: error: {error}", err=True)
        sys.exit(2)
