"""Other debiasing methods, as updates that `commod.compare` can measure on the same rows.

===============================  ===========================================  ==========  ==========
method                           what it does                                 at predict  decisions
===============================  ===========================================  ==========  ==========
`AdversarialDebiasing`           trains a new model against an adversary      X           fixed
`BayesPlugIn`                    Bayes-optimal rule, estimated probabilities  X (2)       fixed
`CalibratedEqualizedOdds`        withholds scores to equalise one error cost  X, group    randomised
`CFBC`                           one number makes true positive rates equal   X (2)       fixed
`FairProjection`                 nearest scores with equal means, by ratio    X (2)       fixed
`FairScoreTransformer`           nearest scores with equal means              X (2)       fixed
`FCGP`                           smooths the score over similar people        X           fixed
`FRAPPE`                         adds a learned term to the base logit        X           fixed
`IndividualGroupDebiasing`       scores people as in the privileged group     X, group    fixed
`LeafRelabelling`                inverts leaves of a decision tree            X           fixed
`LPP`                            linear programme on estimated probabilities  X (2)       fixed
`MinimalFlip`                    the fewest changes possible, group by group  X, group    fixed (1)
`ModifiedNaiveBayes`             trains naive Bayes, moves its class counts   X, group    fixed
`MultiaccuracyBoost`             corrects errors that auditors find           X           fixed
`RejectOption`                   decides rows near the threshold by group     X, group    fixed
`RelaxedThresholdOptimizer`      group thresholds, relaxed equalized odds     X, group    randomised
`RNF`                            retrains a network's head on neutral pairs   X           fixed
`ThresholdOptimizer`             Fairlearn's thresholds per group             X, group    randomised
`WassersteinLogisticRegression`  logistic regression, scores alike by group   X           fixed
`WassersteinPostProcessing`      gives all groups one distribution of scores  X, group    fixed
===============================  ===========================================  ==========  ==========

1. Randomised for ties at a threshold, and for constraints that compare errors.
2. With ``aware=True``: X and the group.

"at predict" lists the inputs of `predict`; every method sees the groups in `fit`. Every method has
one parameter `strength`; 0 changes nothing.
"""

from commod.rivals._lineup import Lineup as Lineup
from commod.rivals._lineup import lineup
from commod.rivals._rows import DecisionRows as DecisionRows
from commod.rivals._rows import RivalFitRows as RivalFitRows
from commod.rivals.adversarial_debiasing import AdversarialDebiasing
from commod.rivals.base import AwareRival, Rival, check_rival, fit_strengths
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

__all__ = [
    "CFBC",
    "FCGP",
    "FRAPPE",
    "LPP",
    "RNF",
    "AdversarialDebiasing",
    "AwareRival",
    "BayesPlugIn",
    "CalibratedEqualizedOdds",
    "FairProjection",
    "FairScoreTransformer",
    "IndividualGroupDebiasing",
    "LeafRelabelling",
    "MinimalFlip",
    "ModifiedNaiveBayes",
    "MultiaccuracyBoost",
    "RejectOption",
    "RelaxedThresholdOptimizer",
    "Rival",
    "ThresholdOptimizer",
    "WassersteinLogisticRegression",
    "WassersteinPostProcessing",
    "check_rival",
    "fit_strengths",
    "lineup",
]
