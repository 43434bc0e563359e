"""Import packages that are optional."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from commod.exceptions import InputError

JAX_PLATFORMS = "Linux (x86_64, aarch64), macOS (Apple silicon) and Windows (x86_64)"


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


def why_no_jax(method: str) -> str | None:
    """Return why a method that is trained with JAX cannot run here; None if JAX is installed.

    Examples
    --------
    >>> why_no_jax("COMMOD") is None
    True
    """
    if find_spec("jax") is not None:
        return None
    return (
        f"{method} is trained with JAX, which is not installed. Install it with: "
        f"pip install 'commod-debiasing[paper]'. JAX has wheels for {JAX_PLATFORMS}. "
        "ControlledDebiaser needs no JAX."
    )


def require_jax(method: str) -> None:
    """Raise an error with the way out where JAX is not installed."""
    reason = why_no_jax(method)
    if reason is not None:
        raise InputError(reason)
