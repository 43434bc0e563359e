"""commod: the smallest, explainable update that makes a validated classifier fairer.

Public names are resolved on first use, so that `import commod` stays instant and JAX is loaded by
the first `COMMOD.fit` alone.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from commod import bounds as bounds
    from commod import datasets as datasets
    from commod import exceptions as exceptions
    from commod import metrics as metrics
    from commod import rivals as rivals
    from commod import scorecard as scorecard
    from commod._base_model import ScoreColumn as ScoreColumn
    from commod._compare import Comparison as Comparison
    from commod._compare import compare as compare
    from commod._frontier import Frontier as Frontier
    from commod._frontier import frontier as frontier
    from commod.updates import COMMOD as COMMOD
    from commod.updates import ControlledDebiaser as ControlledDebiaser

_HOMES = {
    "COMMOD": "commod.updates",
    "Comparison": "commod._compare",
    "ControlledDebiaser": "commod.updates",
    "Frontier": "commod._frontier",
    "ScoreColumn": "commod._base_model",
    "compare": "commod._compare",
    "frontier": "commod._frontier",
}
_MODULES = ("bounds", "datasets", "exceptions", "metrics", "rivals", "scorecard")

__all__ = [*_HOMES, *_MODULES, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"commod.{name}")
    raise AttributeError(f"module 'commod' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted(__all__)
