"""List the types of commod that a saved update may contain."""

from __future__ import annotations

TRUSTED_TYPES = (
    "commod._data.base_model.ScoreColumn",
    "commod._data.encoding.BinTerms",
    "commod._data.encoding.CategoryTerms",
    "commod._data.encoding.Encoding",
    "commod._data.encoding.NumericTerms",
    "commod._record.left_out.LeftOutGroup",
    "commod.metrics._constraint.Constraint",
    "commod.metrics._constraint.RateRow",
    "commod.rivals._group_model.LogisticGroupModel",
    "commod.rivals.adversarial_debiasing.AdversarialDebiasing",
    "commod.rivals.bayes_plug_in.BayesPlugIn",
    "commod.rivals.frappe.FRAPPE",
    "commod.rivals.lpp.LPP",
    "commod.rivals.minimal_flip.MinimalFlip",
    "commod.rivals.reject_option.RejectOption",
    "commod.rivals.relaxed_thresholds.RelaxedThresholdOptimizer",
    "commod.rivals.threshold_optimizer.ThresholdOptimizer",
    "commod.scorecard.Scorecard",
    "commod.updates._network.Network",
    "commod.updates.commod.COMMOD",
    "commod.updates.controlled.ControlledDebiaser",
)
"""Types to pass to ``skops.io.load(file, trusted=[*commod.TRUSTED_TYPES, ...])``.

All of them only hold numbers and names. Whether to trust the types of the base model is the user's
decision.
"""
