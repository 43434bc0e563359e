"""Tables of cases that one test goes through: it names every line that fails, and how."""

import functools
import inspect

import pytest


def every_line(names, lines):
    """Run a test once, on every line of a table in turn, in place of a test per line.

    It takes what `pytest.mark.parametrize` takes. The lines share the fixtures of the test.
    """
    names, lines = [name.strip() for name in names.split(",")], list(lines)
    if len(names) == 1:
        lines = [(line,) for line in lines]

    def decorate(test):
        @functools.wraps(test)
        def on_every_line(**fixtures):
            failures = []
            for line in lines:
                try:
                    test(**dict(zip(names, line, strict=True)), **fixtures)
                except (Exception, pytest.fail.Exception) as error:
                    failures.append(f"{line}: {type(error).__name__}: {error}")
            assert not failures, "\n\n".join(failures)

        signature = inspect.signature(test)
        kept = [p for name, p in signature.parameters.items() if name not in names]
        on_every_line.__signature__ = signature.replace(parameters=kept)
        del on_every_line.__wrapped__  # pytest would read its parameters
        return on_every_line

    return decorate
