"""Define the command line: one module per command. Heavy packages are imported on use."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import socket
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType, ModuleType
from typing import Annotated, Any, NoReturn

import typer

from commod import __version__
from commod._io.files import remove_unfinished
from commod._io.interruption import has_abandoned_work
from commod._text import json_text, visible
from commod.cli import apply, audit, check, compare, debias, demo, explore, show, sql, verify
from commod.exceptions import CommodError

__all__ = ["app", "main"]

CRASHED = 70  # exit code beside 0, 1, 2 and those of signals

app = typer.Typer(
    name="commod",
    help="The smallest, explainable update that makes a validated classifier fairer.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(is_requested: bool) -> None:
    if is_requested:
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
    """Return the text below the help of a command: one example per line."""
    return "\n\n".join(["Examples:", *(f"$ {line}" for line in module.EXAMPLES)])


for module in (debias, explore, audit, apply, check, show, verify, sql, compare, demo):
    app.command(module.__name__.rpartition(".")[2], epilog=_examples(module))(module.command)


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
    _fail(f"{' '.join(message.split()).rstrip('.')}. See {path} --help.")


def _fail(sentence: str) -> NoReturn:
    sentence = visible(sentence)
    typer.echo(f"commod: error: {sentence}", err=True)
    if "--json" in sys.argv:
        with contextlib.suppress(OSError):  # standard output itself may have failed
            typer.echo(json_text(json.dumps({"error": sentence}, ensure_ascii=False)))
    sys.exit(2)


INTERRUPTED = 128 + signal.SIGINT  # exit code 130
GRACE = 5.0  # seconds that the main thread has to end the command
SHOW_CURSOR = "\x1b[?25h"  # a progress bar hides it


@contextmanager
def ending_on_signals() -> Iterator[None]:
    """Let SIGTERM and Ctrl-C end the block; use it only in the main program.

    SIGTERM raises SystemExit(143) and Ctrl-C raises KeyboardInterrupt, so that temporary files are
    removed on the way out. A command that has ended after SIGTERM has the exit code 143, whatever
    became of the exception. Handlers are installed only in the main thread, and only where a
    signal has no handler but Python's own.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    watch = _Watch()
    earlier = {
        number: signal.signal(number, watch.handle)
        for number, own in (
            (signal.SIGTERM, signal.SIG_DFL),
            (signal.SIGINT, signal.default_int_handler),
        )
        if signal.getsignal(number) is own
    }
    watch.start()
    try:
        yield
    except SystemExit as stop:
        if stop.code == INTERRUPTED:
            watch.must_end(signal.SIGINT)
        raise
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
        watch.stop()


class _Watch:
    """Record signals, and end the process if the main thread does not."""

    def __init__(self) -> None:
        self._ours, self._theirs = socket.socketpair()
        self._theirs.setblocking(False)
        self._ended = threading.Event()
        self._handled = threading.Event()
        self._final: int | None = None
        self._earlier_fd = -1

    def start(self) -> None:
        """Start reading signals."""
        self._earlier_fd = signal.set_wakeup_fd(self._theirs.fileno(), warn_on_full_buffer=False)
        threading.Thread(target=self._read, name="commod-signals", daemon=True).start()

    def handle(self, number: int, frame: FrameType | None) -> NoReturn:
        """Raise the exception that ends the command."""
        self._handled.set()
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        self.must_end(number)
        sys.exit(128 + number)

    def must_end(self, number: int) -> None:
        """Record that the command ends with the exit code of a signal."""
        self._final = self._final or number

    def stop(self) -> None:
        """Stop reading signals; after one that ends the command, clean up and exit."""
        signal.set_wakeup_fd(self._earlier_fd)
        self._ended.set()
        self._theirs.close()  # ends the thread
        if self._final is not None:
            _clean_up()
            if has_abandoned_work():  # the interpreter would wait for it
                os._exit(128 + self._final)
            sys.exit(128 + self._final)

    def _read(self) -> None:
        """Wait for signals, and then for the main thread."""
        n_interrupts = 0
        with self._ours:
            while numbers := self._ours.recv(1):
                number = numbers[0]
                n_interrupts += number == signal.SIGINT
                if number == signal.SIGTERM or n_interrupts > 1:
                    is_late = not self._ended.wait(GRACE)
                elif number == signal.SIGINT:  # training goes on with what it has learned
                    is_late = not self._handled.wait(GRACE)
                else:
                    continue
                if is_late and not self._ended.is_set():
                    _clean_up()
                    os._exit(128 + number)


def _clean_up() -> None:
    """Remove temporary files and show the cursor of the terminal."""
    remove_unfinished()
    for stream in (sys.stderr, sys.stdout):
        with suppress(OSError, ValueError):
            if stream.isatty():
                os.write(stream.fileno(), SHOW_CURSOR.encode())
                return
