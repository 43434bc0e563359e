"""The settings of COMMOD as the paper states them, and the plainest ones where it is silent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from commod.exceptions import InputError

# `COMMOD.as_in_the_paper` says which sentence of the paper each setting comes from.
PAPER_SETTINGS: dict[str, Any] = {
    "architecture": "concepts",
    "adaptive_fairness": False,
    "reads_score": False,
    "threshold": 0.5,
    "concepts_by_column": False,
    "init": "zero",
    "adversary_hidden": (64, 32, 16),
}


def paper_settings(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the paper's settings and the user's other parameters as one dictionary.

    Raises InputError where the user asks for another value of a setting of the paper.

    Examples
    --------
    >>> paper_settings({"lambda_fair": 3})["lambda_fair"]
    3
    >>> paper_settings({"adaptive_fairness": True})
    Traceback (most recent call last):
    commod.exceptions.InputError: adaptive_fairness=True is not the paper's: ...
    """
    for name, setting in PAPER_SETTINGS.items():
        given = params.get(name, setting)
        given = tuple(given) if isinstance(given, list) else given
        if type(given) is not type(setting) or given != setting:
            raise InputError(
                f"{name}={params[name]!r} is not the paper's: COMMOD.as_in_the_paper sets {name}="
                f"{setting!r}. Leave it out, or use COMMOD(model, {name}={params[name]!r}).",
                parameter=name,
            )
    return {**params, **PAPER_SETTINGS}
