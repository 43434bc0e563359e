"""Decide test rows with Fairlearn's ExponentiatedGradient, a randomised logistic regression."""

from __future__ import annotations

import sys

import numpy as np
from fairlearn.reductions import DemographicParity, ExponentiatedGradient
from sklearn.linear_model import LogisticRegression


def main() -> None:
    """Read rows, ask for a P-rule of 0.8, write the probability of a positive decision."""
    _, source, target = sys.argv[1:]
    rows = np.load(source)
    model = ExponentiatedGradient(
        LogisticRegression(max_iter=1000), DemographicParity(ratio_bound=0.8)
    )
    model.fit(rows["X"], rows["y"], sensitive_features=rows["s"])
    np.save(target, model._pmf_predict(rows["X_test"])[:, 1])


if __name__ == "__main__":
    main()
