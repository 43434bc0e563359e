"""List the types that a saved update, and a saved model of scikit-learn, may contain."""

from __future__ import annotations

_TYPES = {
    "_data.base_model": "ScoreColumn",
    "_data.encoding": "BinTerms CategoryTerms Encoding NumericTerms",
    "_record.audit": "LeftOutGroup",
    "_record.edits": "Cap Drop EditFigures EditRecord Lock Merge Round SetPoints",
    "_record.explanation": "Estimate",
    "_record.scores": "ScoreKnot ScoreMap",
    "_words.update": (
        "AskedTarget Goal GroupsLeftOut NeededChanges PromiseOutcome UnknownPeople UpdateFacts"
    ),
    "metrics._constraint": "Constraint",
    "metrics._language": "AllOf FairnessConstraint Maximum Minimum Parity",
    "metrics._measures": "Measure Weights Within",
    "metrics._named_constraints": (
        "AccuracyParity DemographicParity EqualizedOdds ErrorRatio FalsePositiveRateParity "
        "MinimumRate MinimumTruePositiveRate PredictiveParity TruePositiveRateParity"
    ),
    "rivals._group_model": "LogisticGroupModel",
    "rivals.adversarial_debiasing": "AdversarialDebiasing",
    "rivals.calibrated_equalized_odds": "CalibratedEqualizedOdds",
    "rivals.fcgp": "Kernel FCGP _Smoother",
    "rivals.frappe": "FRAPPE",
    "rivals.individual_group_debiasing": "IndividualGroupDebiasing",
    "rivals.leaf_relabelling": "LeafRelabelling",
    "rivals.modified_naive_bayes": "ModifiedNaiveBayes",
    "rivals.multiaccuracy_boost": "MultiaccuracyBoost",
    "rivals.plug_in": "BayesPlugIn CFBC LPP",
    "rivals.projection": "FairProjection FairScoreTransformer",
    "rivals.rnf": "RNF",
    "rivals.thresholds": "MinimalFlip RejectOption RelaxedThresholdOptimizer ThresholdOptimizer",
    "rivals.wasserstein": (
        "FittedRegression GroupShift WassersteinLogisticRegression WassersteinPostProcessing"
    ),
    "scorecard": "EvidenceRule Scorecard",
    "updates.ratio": "Network",
    "updates.commod": "COMMOD",
    "updates.controlled": "ControlledDebiaser",
}

TRUSTED_TYPES = tuple(
    f"commod.{module}.{name}" for module, names in _TYPES.items() for name in names.split()
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
