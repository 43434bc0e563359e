"""Import packages that are optional."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from commod.exceptions import InputError


def import_optional(package: str, extra: str, purpose: str) -> Any:
    """Return a package; if it is missing, the error says what needs it and how to install it.

    Examples
    --------
    >>> import_optional("no_such_package.io", "files", "Reading a table")
    Traceback (most recent call last):
    commod.exceptions.InputError: Reading a table needs the package no_such_package, which is not
    installed. Install it with: pip install 'commod-debiasing[files]'.
    """
    try:
        return import_module(package)
    except ImportError as error:
        raise InputError(
            f"{purpose} needs the package {package.partition('.')[0]}, which is not installed. "
            f"Install it with: pip install 'commod-debiasing[{extra}]'."
        ) from error
