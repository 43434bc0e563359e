"""`lineup`: all methods with the same base model and constraint, for `compare`."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from commod.rivals.adversarial_debiasing import AdversarialDebiasing
from commod.rivals.bayes_plug_in import BayesPlugIn
from commod.rivals.frappe import FRAPPE
from commod.rivals.lpp import LPP
from commod.rivals.minimal_flip import MinimalFlip
from commod.rivals.reject_option import RejectOption
from commod.rivals.relaxed_thresholds import RelaxedThresholdOptimizer
from commod.rivals.threshold_optimizer import ThresholdOptimizer
from commod.updates.base import BaseUpdate
from commod.updates.commod import COMMOD
from commod.updates.controlled import ControlledDebiaser


def lineup(
    estimator: Any,
    *,
    constraints: str = "demographic_parity",
    min_group_size: int = 30,
    threshold: float = 0.5,
    pos_label: Any = None,
    favorable_label: Any = None,
    random_state: Any = None,
) -> dict[str, BaseUpdate]:
    """Return every method by name, unfitted, with the same base model and constraint.

    Parameters
    ----------
    estimator : fitted classifier or ScoreColumn
        The base model.
    constraints : str, default="demographic_parity"
        Or "equalized_odds", "true_positive_rate_parity", "false_positive_rate_parity".
    min_group_size, threshold, pos_label, favorable_label
        As in every update.
    random_state : int, RandomState or None, default=None
        Seed of the methods that train or draw at random.

    Returns
    -------
    dict of str to update
        Methods that decide from X alone come first. `ThresholdOptimizer` is left out where
        Fairlearn is not installed.

    Examples
    --------
    >>> from commod import ScoreColumn
    >>> from commod.rivals import lineup
    >>> list(lineup(ScoreColumn("score")))[:4]
    ['ControlledDebiaser', 'COMMOD', 'AdversarialDebiasing', 'FRAPPE']
    """
    shared: dict[str, Any] = {
        "constraints": constraints,
        "min_group_size": min_group_size,
        "threshold": threshold,
        "pos_label": pos_label,
        "favorable_label": favorable_label,
    }
    seeded = {**shared, "random_state": random_state}
    methods: dict[str, BaseUpdate] = {
        "ControlledDebiaser": ControlledDebiaser(estimator, **seeded),
        "COMMOD": COMMOD(estimator, **seeded),
        "AdversarialDebiasing": AdversarialDebiasing(estimator, **seeded),
        "FRAPPE": FRAPPE(estimator, **seeded),
        "LPP": LPP(estimator, **shared),
        "BayesPlugIn": BayesPlugIn(estimator, **shared),
        "LPP (aware)": LPP(estimator, aware=True, **shared),
        "BayesPlugIn (aware)": BayesPlugIn(estimator, aware=True, **shared),
        "RejectOption": RejectOption(estimator, **shared),
        "MinimalFlip": MinimalFlip(estimator, **seeded),
        "RelaxedThresholdOptimizer": RelaxedThresholdOptimizer(estimator, **seeded),
    }
    if find_spec("fairlearn") is not None:
        methods["ThresholdOptimizer"] = ThresholdOptimizer(estimator, **seeded)
    return methods
