"""Name the versions of Python and of the packages that decide what a fit does."""

from __future__ import annotations

import importlib.metadata
import platform
from functools import cache

PACKAGE = "commod-debiasing"
PACKAGES = (PACKAGE, "numpy", "scipy", "scikit-learn")


def library_versions(*others: str) -> dict[str, str]:
    """Return the versions of Python, of commod and its foundations, and of `others`.

    Examples
    --------
    >>> list(library_versions("narwhals"))
    ['python', 'commod-debiasing', 'numpy', 'scipy', 'scikit-learn', 'narwhals']
    """
    packages = {name: _version(name) for name in (*PACKAGES, *others)}
    return {"python": platform.python_version(), **packages}


@cache  # every audit and patch states versions, and each takes milliseconds to read
def _version(package: str) -> str:
    return importlib.metadata.version(package)
