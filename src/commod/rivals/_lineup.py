"""`lineup`: all methods with the same base model and constraint, for `compare`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from commod._io.optional import why_no_jax
from commod.exceptions import InputError
from commod.rivals._group_model import GroupProbabilityRival
from commod.rivals._trained import TrainedRival
from commod.rivals.adversarial_debiasing import AdversarialDebiasing
from commod.rivals.base import Rival
from commod.rivals.calibrated_equalized_odds import CalibratedEqualizedOdds
from commod.rivals.fcgp import FCGP
from commod.rivals.frappe import FRAPPE
from commod.rivals.individual_group_debiasing import IndividualGroupDebiasing
from commod.rivals.leaf_relabelling import LeafRelabelling
from commod.rivals.modified_naive_bayes import ModifiedNaiveBayes
from commod.rivals.multiaccuracy_boost import MultiaccuracyBoost
from commod.rivals.plug_in import CFBC, LPP, BayesPlugIn
from commod.rivals.projection import FairProjection, FairScoreTransformer
from commod.rivals.rnf import RNF
from commod.rivals.thresholds import (
    MinimalFlip,
    RejectOption,
    RelaxedThresholdOptimizer,
    ThresholdOptimizer,
)
from commod.rivals.wasserstein import WassersteinLogisticRegression, WassersteinPostProcessing
from commod.updates.base import BaseUpdate
from commod.updates.commod import COMMOD
from commod.updates.controlled import ControlledDebiaser

FROM_COLUMNS: tuple[type[BaseUpdate], ...] = (
    *(ControlledDebiaser, COMMOD, AdversarialDebiasing, FRAPPE, RNF),
    *(WassersteinLogisticRegression, LPP, BayesPlugIn, FairScoreTransformer, FairProjection),
    *(CFBC, MultiaccuracyBoost, FCGP, LeafRelabelling),
)
BY_GROUP: tuple[type[BaseUpdate], ...] = (
    *(CalibratedEqualizedOdds, RejectOption, IndividualGroupDebiasing, ModifiedNaiveBayes),
    *(MinimalFlip, RelaxedThresholdOptimizer, ThresholdOptimizer, WassersteinPostProcessing),
)


class Lineup(dict[str, BaseUpdate]):
    """The methods that fit a base model and a constraint, by name.

    Attributes
    ----------
    left_out : dict of str to str
        Why each other method of this library is left out.

    Examples
    --------
    >>> Lineup({}, {"FCGP": "It compares two groups."}).left_out["FCGP"]
    'It compares two groups.'
    """

    def __init__(self, methods: Mapping[str, BaseUpdate], left_out: Mapping[str, str]) -> None:
        super().__init__(methods)
        self.left_out = dict(left_out)


def lineup(
    estimator: Any,
    *,
    constraints: str = "demographic_parity",
    min_group_size: int = 30,
    threshold: float = 0.5,
    pos_label: Any = None,
    favorable_label: Any = None,
    random_state: Any = None,
    group_column: str | int | None = None,
) -> Lineup:
    """Return the methods that fit a base model and a constraint, unfitted, by name.

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
    group_column : str or int, default=None
        The column of X that holds the group, if the base model reads it. Methods that ask the base
        model for the score of the same person in another group need it.

    Returns
    -------
    Lineup
        A dict of str to update. Methods that decide from X alone come first. Its attribute
        `left_out` names the methods that do not fit, each with the reason.

    Examples
    --------
    >>> from commod import ScoreColumn
    >>> from commod.rivals import lineup
    >>> list(lineup(ScoreColumn("score")))[:4]
    ['ControlledDebiaser', 'COMMOD', 'AdversarialDebiasing', 'FRAPPE']
    """
    methods = every_method(
        estimator,
        constraints=constraints,
        min_group_size=min_group_size,
        threshold=threshold,
        pos_label=pos_label,
        favorable_label=favorable_label,
        random_state=random_state,
        group_column=group_column,
    )
    reasons = {name: _reason_against(update) for name, update in methods.items()}
    left_out = {name: reason for name, reason in reasons.items() if reason is not None}
    fitting = {name: update for name, update in methods.items() if name not in left_out}
    return Lineup(fitting, left_out)


def every_method(
    estimator: Any, *, random_state: Any = None, group_column: Any = None, **shared: Any
) -> dict[str, BaseUpdate]:
    """Return all methods, unfitted, by name; also those that do not fit the base model.

    `shared` are the parameters that all updates have; see `lineup`.
    """
    given = {**shared, "random_state": random_state, "group_column": group_column}

    def made(kind: type[BaseUpdate], **more: Any) -> BaseUpdate:
        known = inspect.signature(kind).parameters
        return kind(estimator, **{k: v for k, v in given.items() if k in known}, **more)

    aware = [kind for kind in FROM_COLUMNS if issubclass(kind, GroupProbabilityRival)]
    return {
        **{kind.__name__: made(kind) for kind in FROM_COLUMNS},
        **{f"{kind.__name__} (aware)": made(kind, aware=True) for kind in aware},
        **{kind.__name__: made(kind) for kind in BY_GROUP},
    }


def _reason_against(update: BaseUpdate) -> str | None:
    """Return why a method does not fit its base model or constraint; None if it does."""
    if isinstance(update, ThresholdOptimizer) and find_spec("fairlearn") is None:
        return "ThresholdOptimizer needs Fairlearn: pip install fairlearn."
    if isinstance(update, COMMOD | TrainedRival) and (reason := why_no_jax(type(update).__name__)):
        return reason
    if not isinstance(update, Rival):
        return None
    try:
        _ = update._constraint
        update._check_base_model()
    except InputError as error:
        return str(error)
    return None
