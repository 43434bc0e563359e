"""The rates of a group that Fairlearn and scikit-learn define, by the names of our measures."""

from __future__ import annotations

from functools import partial

from fairlearn import metrics as fairlearn
from sklearn.metrics import accuracy_score, f1_score, precision_score

RATES = {
    "selection rate": fairlearn.selection_rate,
    "true positive rate": fairlearn.true_positive_rate,
    "false positive rate": fairlearn.false_positive_rate,
    "false negative rate": fairlearn.false_negative_rate,
    "true negative rate": fairlearn.true_negative_rate,
    "accuracy": accuracy_score,
    "precision": partial(precision_score, zero_division=0.0),
    "F1 score": partial(f1_score, zero_division=0.0),
}
