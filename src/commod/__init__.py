"""commod: the smallest, explainable update that makes a validated classifier fairer.

Public names are resolved on first use, so that `import commod` stays instant and JAX is loaded by
the first `COMMOD.fit` alone.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.3.0.dev0"

if TYPE_CHECKING:
    from commod import bounds as bounds
    from commod import datasets as datasets
    from commod import edit as edit
    from commod import exceptions as exceptions
    from commod import metrics as metrics
    from commod import rivals as rivals
    from commod import scorecard as scorecard
    from commod._data.base_model import ScoreColumn as ScoreColumn
    from commod._displays import CalibrationDisplay as CalibrationDisplay
    from commod._displays import ChangeDisplay as ChangeDisplay
    from commod._displays import ConceptDisplay as ConceptDisplay
    from commod._displays import FrontierDisplay as FrontierDisplay
    from commod._explore import Explorer as Explorer
    from commod._explore import explore as explore
    from commod._io.untrusted import TRUSTED_TYPES as TRUSTED_TYPES
    from commod._record.audit import Audit as Audit
    from commod._record.audit import Request as Request
    from commod._reporting.audit import Ledger as Ledger
    from commod._reporting.audit import audit as audit
    from commod._reporting.audit import audit_frame as audit_frame
    from commod._reporting.explain import Explanation as Explanation
    from commod._reporting.explain import explain as explain
    from commod._reporting.pair import verify_report as verify_report
    from commod._reporting.render.page import report as report
    from commod._study.compare import Comparison as Comparison
    from commod._study.compare import compare as compare
    from commod._study.frontier import Frontier as Frontier
    from commod._study.frontier import frontier as frontier
    from commod._study.frontier import frontier_frame as frontier_frame
    from commod._study.stability import Stability as Stability
    from commod._study.stability import stability as stability
    from commod.patch import Patch as Patch
    from commod.updates import COMMOD as COMMOD
    from commod.updates import ControlledDebiaser as ControlledDebiaser

_HOMES = {
    "Audit": "commod._record.audit",
    "COMMOD": "commod.updates",
    "CalibrationDisplay": "commod._displays",
    "ChangeDisplay": "commod._displays",
    "Comparison": "commod._study.compare",
    "ConceptDisplay": "commod._displays",
    "ControlledDebiaser": "commod.updates",
    "Explanation": "commod._reporting.explain",
    "Explorer": "commod._explore",
    "Frontier": "commod._study.frontier",
    "FrontierDisplay": "commod._displays",
    "Ledger": "commod._reporting.audit",
    "Patch": "commod.patch",
    "Request": "commod._record.audit",
    "ScoreColumn": "commod._data.base_model",
    "Stability": "commod._study.stability",
    "TRUSTED_TYPES": "commod._io.untrusted",
    "audit": "commod._reporting.audit",
    "audit_frame": "commod._reporting.audit",
    "compare": "commod._study.compare",
    "explain": "commod._reporting.explain",
    "explore": "commod._explore",
    "frontier": "commod._study.frontier",
    "frontier_frame": "commod._study.frontier",
    "report": "commod._reporting.render.page",
    "stability": "commod._study.stability",
    "verify_report": "commod._reporting.pair",
}
_MODULES = (
    *("bounds", "constraints", "datasets", "edit", "exceptions", "metrics", "rivals"),
    "scorecard",
)

_RESULTS = {"Comparison", "Explanation", "Explorer", "Frontier", "Ledger", "Stability"}  # for types

__all__ = [*(name for name in _HOMES if name not in _RESULTS), *_MODULES, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"commod.{name}")
    raise AttributeError(f"module 'commod' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted(__all__)
