"""Other methods under the same contract, so that updates are compared on the same rows.

===========================  ============================================  ==========  ==========
method                       what it does                                  at predict  decisions
===========================  ============================================  ==========  ==========
`AdversarialDebiasing`       trains anew against an adversary              X           fixed
`FRAPPE`                     adds a learned term to the base logit         X           fixed
`LPP`                        linear programme on estimated probabilities   X           fixed
`LPP` (aware=True)           the same with the group known                 X, group    fixed
`RejectOption`               decides doubtful rows by their group          X, group    fixed
`ThresholdOptimizer`         Fairlearn's thresholds per group              X, group    by lot
`RelaxedThresholdOptimizer`  thresholds per group, equalized odds relaxed  X, group    by lot
`BayesPlugIn`                the corrected Bayes-optimal rule, plugged in  X           fixed
`BayesPlugIn` (aware=True)   the same with the group known                 X, group    fixed
`MinimalFlip`                the fewest changes possible, group by group   X, group    fixed
===========================  ============================================  ==========  ==========

`at predict` says what `predict` takes; every method sees the group while fitting. Each has one
`strength`; 0 changes nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from commod.rivals._check import check_rival as check_rival
    from commod.rivals._lineup import lineup as lineup
    from commod.rivals.adversarial_debiasing import AdversarialDebiasing as AdversarialDebiasing
    from commod.rivals.base import AwareRival as AwareRival
    from commod.rivals.base import DecisionRows as DecisionRows
    from commod.rivals.base import Rival as Rival
    from commod.rivals.base import RivalFitRows as RivalFitRows
    from commod.rivals.base import fit_strengths as fit_strengths
    from commod.rivals.bayes_plug_in import BayesPlugIn as BayesPlugIn
    from commod.rivals.frappe import FRAPPE as FRAPPE
    from commod.rivals.lpp import LPP as LPP
    from commod.rivals.minimal_flip import MinimalFlip as MinimalFlip
    from commod.rivals.reject_option import RejectOption as RejectOption
    from commod.rivals.relaxed_thresholds import (
        RelaxedThresholdOptimizer as RelaxedThresholdOptimizer,
    )
    from commod.rivals.threshold_optimizer import ThresholdOptimizer as ThresholdOptimizer

_HOMES = {
    "AdversarialDebiasing": "adversarial_debiasing",
    "AwareRival": "base",
    "BayesPlugIn": "bayes_plug_in",
    "DecisionRows": "base",
    "FRAPPE": "frappe",
    "LPP": "lpp",
    "MinimalFlip": "minimal_flip",
    "RejectOption": "reject_option",
    "RelaxedThresholdOptimizer": "relaxed_thresholds",
    "Rival": "base",
    "RivalFitRows": "base",
    "ThresholdOptimizer": "threshold_optimizer",
    "check_rival": "_check",
    "fit_strengths": "base",
    "lineup": "_lineup",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"commod.rivals.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'commod.rivals' has no attribute {name!r}; it has {__all__}")


def __dir__() -> list[str]:
    return sorted(__all__)
