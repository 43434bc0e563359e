"""List the types that a saved update, and a saved model of scikit-learn, may contain."""

from __future__ import annotations

TRUSTED_TYPES = (
    "commod._data.base_model.ScoreColumn",
    "commod._data.encoding.BinTerms",
    "commod._data.encoding.CategoryTerms",
    "commod._data.encoding.Encoding",
    "commod._data.encoding.NumericTerms",
    *(
        f"commod._record.edits.{name}"
        for name in (
            *("Cap", "Drop", "EditFigures", "EditRecord", "Lock", "Merge", "Round", "SetPoints"),
        )
    ),
    "commod._record.left_out.LeftOutGroup",
    "commod._record.score_map.ScoreKnot",
    "commod._record.score_map.ScoreMap",
    "commod.metrics._constraint.Constraint",
    "commod.metrics._constraint.RateRow",
    "commod.metrics._constraint_text.Within",
    "commod.metrics._language.AllOf",
    "commod.metrics._language.FairnessConstraint",
    "commod.metrics._language.Maximum",
    "commod.metrics._language.Minimum",
    "commod.metrics._language.Parity",
    "commod.metrics._measures.Measure",
    "commod.metrics._measures.Weights",
    "commod.metrics._named_constraints.AccuracyParity",
    "commod.metrics._named_constraints.DemographicParity",
    "commod.metrics._named_constraints.EqualizedOdds",
    "commod.metrics._named_constraints.ErrorRatio",
    "commod.metrics._named_constraints.FalsePositiveRateParity",
    "commod.metrics._named_constraints.MinimumRate",
    "commod.metrics._named_constraints.MinimumTruePositiveRate",
    "commod.metrics._named_constraints.PredictiveParity",
    "commod.metrics._named_constraints.TruePositiveRateParity",
    "commod.rivals._group_model.LogisticGroupModel",
    "commod.rivals._solvers.wasserstein.GroupShift",
    "commod.rivals.adversarial_debiasing.AdversarialDebiasing",
    "commod.rivals.bayes_plug_in.BayesPlugIn",
    "commod.rivals.cfbc.CFBC",
    "commod.rivals.fair_projection.FairProjection",
    "commod.rivals.fair_score_transformer.FairScoreTransformer",
    "commod.rivals.calibrated_equalized_odds.CalibratedEqualizedOdds",
    "commod.rivals.fcgp.Kernel",
    "commod.rivals.fcgp.FCGP",
    "commod.rivals.fcgp._Smoother",
    "commod.rivals.frappe.FRAPPE",
    "commod.rivals.individual_group_debiasing.IndividualGroupDebiasing",
    "commod.rivals.leaf_relabelling.LeafRelabelling",
    "commod.rivals.lpp.LPP",
    "commod.rivals.minimal_flip.MinimalFlip",
    "commod.rivals.modified_naive_bayes.ModifiedNaiveBayes",
    "commod.rivals.multiaccuracy_boost.MultiaccuracyBoost",
    "commod.rivals.reject_option.RejectOption",
    "commod.rivals.relaxed_thresholds.RelaxedThresholdOptimizer",
    "commod.rivals.rnf.RNF",
    "commod.rivals.threshold_optimizer.ThresholdOptimizer",
    "commod.rivals.wasserstein_post_processing.WassersteinPostProcessing",
    "commod.rivals.wasserstein_logistic_regression.FittedRegression",
    "commod.rivals.wasserstein_logistic_regression.WassersteinLogisticRegression",
    "commod.scorecard.EvidenceRule",
    "commod.scorecard.Scorecard",
    "commod.updates._network.Network",
    "commod.updates.commod.COMMOD",
    "commod.updates.controlled.ControlledDebiaser",
)
"""Types to pass to ``skops.io.load(file, trusted=[*commod.TRUSTED_TYPES, ...])``.

All of them only hold numbers and names. Whether to trust the types of the base model is the user's
decision.
"""

_KERNELS = (
    *("CompoundKernel", "ConstantKernel", "DotProduct", "ExpSineSquared", "Exponentiation"),
    *("Matern", "Product", "RBF", "RationalQuadratic", "Sum", "WhiteKernel"),
)
_DISTANCES = (
    *("BrayCurtis", "Canberra", "Chebyshev", "Euclidean", "Hamming", "Haversine", "Jaccard"),
    *("Mahalanobis", "Manhattan", "Minkowski", "SEuclidean"),
)

MODEL_TYPES = frozenset(
    (
        *TRUSTED_TYPES,
        "numpy.dtype",
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.calibration._TemperatureScaling",
        "sklearn.compose._column_transformer.make_column_selector",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
        *(f"sklearn.gaussian_process.kernels.{name}" for name in _KERNELS),
        "sklearn.impute._iterative.IterativeImputer",
        "sklearn.impute._iterative._ImputerTriplet",
        *(f"sklearn.metrics._dist_metrics.{name}Distance64" for name in _DISTANCES),
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.model_selection._split.KFold",
        "sklearn.model_selection._split.StratifiedKFold",
        "sklearn.neighbors._ball_tree.BallTree",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        "sklearn.tree._tree.Tree",
        "sklearn.utils._bunch.Bunch",
        "sklearn.utils._metadata_requests.MetadataRequest",
        "sklearn.utils._metadata_requests.MethodMetadataRequest",
    )
)
"""Types that `commod` on the command line accepts in a .skops file, beside what skops accepts.

skops may call any type that it is told to trust, with arguments of the file. So each type is
listed, and only holds data: it opens no file, starts nothing and keeps no function.
"""
