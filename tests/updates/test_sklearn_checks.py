"""scikit-learn's own checks, on thin subclasses that train a base model and find groups in X.

An update needs a fitted model and sensitive features, which the checks do not have: the subclasses
make both up, and everything else is the update's own.
"""

import itertools
import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import validate_data

from commod import COMMOD, ControlledDebiaser
from commod.exceptions import CommodWarning
from commod.rivals import FRAPPE, LPP


def groups_of(X):
    """Halves of the first column, altered in some rows where this column would tell the group."""
    half = X[:, 0] > np.nanmedian(X[:, 0])
    is_shared = len(np.unique(X[:, 0])) < len(np.unique(X, axis=0))
    return half ^ (is_shared & (np.floor(np.nansum(X, axis=1)) % 3 == 1))


class SelfMade:
    """An update of a logistic regression of its own."""

    def fit(self, X, y, *, sample_weight=None):
        checked, y = validate_data(self, X, y, dtype="numeric")
        trained = LogisticRegression().fit(X, y, sample_weight=sample_weight)
        self.estimator, given = trained, self.estimator
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CommodWarning)
                super().fit(
                    X,
                    y,
                    sensitive_features=groups_of(checked),
                    sample_weight=sample_weight,
                )
        finally:
            self.estimator, self._trained = given, trained
        return self

    def _base(self, X, columns):
        given, self.estimator = self.estimator, getattr(self, "_trained", self.estimator)
        try:
            return super()._base(X, columns)
        finally:
            self.estimator = given


class SelfMadeUpdate(SelfMade, COMMOD):
    """COMMOD, trained for one epoch."""

    def __init__(self, estimator=None, *, epochs=1, random_state=0):
        super().__init__(estimator, epochs=epochs, random_state=random_state)
        self.min_group_size = 1
        self.training = {"warmup_epochs": 0, "progress": False}


class SelfMadeNetwork(SelfMade, COMMOD):
    """COMMOD with layers that stay at r = 1: training is that of `SelfMadeUpdate`."""

    def __init__(self, estimator=None, *, architecture="mlp", epochs=0, random_state=0):
        super().__init__(
            estimator, architecture=architecture, epochs=epochs, random_state=random_state
        )
        self.min_group_size = 1
        self.training = {"progress": False}


class SelfMadeControl(SelfMade, ControlledDebiaser):
    """ControlledDebiaser, whose groups may be small."""

    def __init__(self, estimator=None, *, target=0.8):
        super().__init__(estimator, target=target)
        self.min_group_size = 1


class SelfMadeLPP(SelfMade, LPP):
    """LPP, whose groups may be small."""

    def __init__(self, estimator=None, *, strength=0.5):
        super().__init__(estimator, strength=strength)
        self.min_group_size = 1


class SelfMadeFRAPPE(SelfMade, FRAPPE):
    """FRAPPE that stays at its base model: training is the loop of `SelfMadeUpdate`."""

    def __init__(self, estimator=None, *, epochs=0, random_state=0):
        super().__init__(estimator, epochs=epochs, random_state=random_state)
        self.min_group_size = 1
        self.progress = False


@pytest.fixture(autouse=True, scope="module")
def one_number_of_rows():
    """Pad all these small tables alike: dozens of sizes would each be compiled for one epoch.

    Padding is the training's own; here it has one size instead of many.
    """
    from commod._solvers.training import loop as training

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "padded_size", lambda n: -(-n // 320) * 320)
        yield


def not_expected(estimator):
    """On 15 rows, one person who counts twice and two equal people, in two folds, differ."""
    is_in_folds = isinstance(estimator, ControlledDebiaser)
    return {"check_sample_weight_equivalence_on_dense_data": "folds"} if is_in_folds else {}


@parametrize_with_checks([SelfMadeControl()], expected_failed_checks=not_expected)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_checks(estimator, check):
    check(estimator)


# Tables are read, and refused, by one base class, which the updates above stand for. These checks
# are on what a class does by itself: its parameters, training by weights, and what a fit keeps.
OWN_WORK = [
    "dict_unchanged",
    "dont_overwrite_parameters",
    "estimators_pickle",
    "estimators_unfitted",
    "fit_idempotent",
    "get_params_invariance",
    "methods_sample_order_invariance",
    "methods_subset_invariance",
    "n_features_in",
    "no_attributes_set_in_init",
    "parameters_default_constructible",
    "sample_weight_equivalence_on_dense_data",
    "sample_weights_not_overwritten",
    "set_params",
]


# Each check has tables of other columns, for which a program would be compiled.
OF_TRAINING = ["fit_idempotent", "sample_weight_equivalence_on_dense_data"]


# The network is COMMOD with other layers, and FRAPPE has a network too: these checks are on what
# layers do.
OF_LAYERS = [
    "dict_unchanged",
    "estimators_pickle",
    "fit_idempotent",
    "methods_subset_invariance",
    "sample_weight_equivalence_on_dense_data",
]


@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        *itertools.product([SelfMadeUpdate()], OF_TRAINING),
        *itertools.product([SelfMadeUpdate(epochs=0)], sorted({*OWN_WORK} - {*OF_TRAINING})),
        *itertools.product([SelfMadeLPP()], OWN_WORK),
        *itertools.product([SelfMadeFRAPPE()], OF_LAYERS),
        *itertools.product([SelfMadeNetwork()], OF_LAYERS),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
@pytest.mark.filterwarnings("ignore")
def test_what_an_update_that_is_trained_does_by_itself(estimator, check):
    getattr(estimator_checks, f"check_{check}")(type(estimator).__name__, estimator)
