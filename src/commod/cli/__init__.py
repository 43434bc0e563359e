"""Define the command line. Heavy packages are imported on use."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import typer

from commod._text import json_text, visible
from commod.cli import audit, compare, debias, demo, patches
from commod.cli._command import REMOVED_OPTIONS, Command, Commands, with_options
from commod.cli._options import Options
from commod.cli._signals import INTERRUPTED, ending_on_signals
from commod.exceptions import CommodError

__all__ = ["app", "main"]

CRASHED = 70  # exit code beside 0, 1, 2 and those of signals

app = typer.Typer(
    name="commod",
    cls=Commands,
    help="The smallest, explainable update that makes a validated classifier fairer.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
@with_options()
def commod(options: Options) -> None:
    """Read the options of every command; they may stand before or after its name."""


for run in (
    debias.debias,
    debias.explore,
    audit.audit,
    patches.apply,
    audit.check,
    patches.show,
    patches.verify,
    patches.sql,
    compare.compare,
    demo.demo,
):
    app.command(run.__name__, cls=Command, epilog=run.epilog)(run)


def main() -> None:
    """Run the command line.

    A mistake of the user is one line on standard error and exit code 2.
    """
    _make_printable()
    with ending_on_signals():
        _run()


def _run() -> NoReturn:
    try:
        with _plain_warnings():
            code = app(standalone_mode=False)
    except (CommodError, OSError) as error:
        _fail(_message(error))
    except MemoryError:
        _fail("There is not enough memory for this table. Pass fewer columns or rows.")
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(INTERRUPTED)
    except Exception as error:
        if "interrupted" in str(error):  # the text of DuckDB
            sys.exit(INTERRUPTED)
        if hasattr(error, "format_message"):
            _fail_usage(error)
        if type(error).__module__.lstrip("_").startswith("duckdb"):
            _fail(f"The table cannot be read: {_message(error)}.")
        # a bug of commod: neither bad input nor an unmet constraint
        typer.echo(visible(traceback.format_exc(), keep="\n"), err=True, nl=False)
        sys.exit(CRASHED)
    sys.exit(code or 0)


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Write Python's warnings as lines without control characters."""
    earlier = warnings.formatwarning
    warnings.formatwarning = lambda message, *_, **__: f"commod: warning: {visible(message)}\n"
    try:
        yield
    finally:
        warnings.formatwarning = earlier


def _make_printable() -> None:
    """Escape characters that a stream cannot encode, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename!r} cannot be used: {error.strerror}."
    return " ".join(str(error).split())


def _fail_usage(error: Any) -> NoReturn:
    """Print what typer found wrong with the arguments, and stop."""
    message = str(error.format_message())
    context = getattr(error, "ctx", None)
    if not message or "Usage:" in message:  # a command without arguments prints its help
        shown = message or (context.get_help() if context is not None else "")
        typer.echo(visible(shown, keep="\n"), err=True)
        sys.exit(2)
    path = "commod" if context is None else context.command_path
    if successor := REMOVED_OPTIONS.get(getattr(error, "option_name", "")):
        _fail(f"{path} has no option {error.option_name} since version 0.3. {successor}")
    _fail(f"{' '.join(message.split()).rstrip('.')}. See {path} --help.")


def _fail(sentence: str) -> NoReturn:
    sentence = visible(sentence)
    typer.echo(f"commod: error: {sentence}", err=True)
    if "--json" in sys.argv:
        with contextlib.suppress(OSError):  # standard output itself may have failed
            typer.echo(json_text(json.dumps({"error": sentence}, ensure_ascii=False)))
    sys.exit(2)
