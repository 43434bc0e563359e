"""Other debiasing methods, as updates that `commod.compare` can measure on the same rows.

===========================  ============================================  ==========  ==========
method                       what it does                                  at predict  decisions
===========================  ============================================  ==========  ==========
`AdversarialDebiasing`       trains a new model against an adversary       X           fixed
`CFBC`                       one multiplier for equal opportunity          X           fixed
`CFBC` (aware=True)          the same with known groups                    X, group    fixed
`FairProjection`             nearest model with equal mean scores          X           fixed
`FairProjection` (aware)     the same with known groups                    X, group    fixed
`FairScoreTransformer`       nearest scores with equal means               X           fixed
`FairScoreTransformer` [2]_  the same with known groups                    X, group    fixed
`FRAPPE`                     adds a learned term to the base logit         X           fixed
`LPP`                        linear programme on estimated probabilities   X           fixed
`LPP` (aware=True)           the same with known groups                    X, group    fixed
`IndividualGroupDebiasing`   scores people as in the privileged group      X, group    fixed
`ModifiedNaiveBayes`         trains naive Bayes, moves its class counts    X, group    fixed
`RejectOption`               decides rows near the threshold by group      X, group    fixed
`ThresholdOptimizer`         Fairlearn's thresholds per group              X, group    randomised
`RelaxedThresholdOptimizer`  thresholds per group, equalized odds relaxed  X, group    randomised
`BayesPlugIn`                Bayes-optimal rule, estimated probabilities   X           fixed
`BayesPlugIn` (aware=True)   the same with known groups                    X, group    fixed
`MinimalFlip`                the fewest changes possible, group by group   X, group    fixed [1]_
===========================  ============================================  ==========  ==========

.. [1] Randomised for ties at a threshold, and for constraints that compare errors.
.. [2] With aware=True.

"at predict" lists the inputs of `predict`; every method sees the groups in `fit`. Every method has
one parameter `strength`; 0 changes nothing.
"""

from commod.rivals._check import check_rival
from commod.rivals._lineup import lineup
from commod.rivals._rows import DecisionRows, RivalFitRows
from commod.rivals.adversarial_debiasing import AdversarialDebiasing
from commod.rivals.base import AwareRival, Rival, fit_strengths
from commod.rivals.bayes_plug_in import BayesPlugIn
from commod.rivals.cfbc import CFBC
from commod.rivals.fair_projection import FairProjection
from commod.rivals.fair_score_transformer import FairScoreTransformer
from commod.rivals.frappe import FRAPPE
from commod.rivals.individual_group_debiasing import IndividualGroupDebiasing
from commod.rivals.lpp import LPP
from commod.rivals.minimal_flip import MinimalFlip
from commod.rivals.modified_naive_bayes import ModifiedNaiveBayes
from commod.rivals.reject_option import RejectOption
from commod.rivals.relaxed_thresholds import RelaxedThresholdOptimizer
from commod.rivals.threshold_optimizer import ThresholdOptimizer

__all__ = [
    "CFBC",
    "FRAPPE",
    "LPP",
    "AdversarialDebiasing",
    "AwareRival",
    "BayesPlugIn",
    "DecisionRows",
    "FairProjection",
    "FairScoreTransformer",
    "IndividualGroupDebiasing",
    "MinimalFlip",
    "ModifiedNaiveBayes",
    "RejectOption",
    "RelaxedThresholdOptimizer",
    "Rival",
    "RivalFitRows",
    "ThresholdOptimizer",
    "check_rival",
    "fit_strengths",
    "lineup",
]
