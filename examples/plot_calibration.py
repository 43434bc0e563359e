"""
What an update does to the calibration of scores
================================================

An update keeps the base score wherever the decision stays. Where the decision changes, the
edited score goes just beyond the threshold, so it is not a probability any more.
``calibrated_proba`` maps the edited score to a calibrated probability that keeps every decision.

The upper panel compares scores with true labels on 4,000 evaluated rows. On the dotted line the
score is right on average. The dip at the threshold are the people whose decision changed: they
get a positive decision although fewer of them have label 1. The calibrated probability cannot
move them away, because it keeps every decision. Use the base score to price them.
"""

# %%
# Fit the update with true labels: the map is learned from them.

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression

from commod import CalibrationDisplay, ControlledDebiaser
from commod.datasets import make_biased

old, rows = (make_biased(1500, bias=1.2, random_state=seed) for seed in (1, 2))
new = make_biased(4000, bias=1.2, random_state=3)
model = LogisticRegression().fit(old.data, old.target)
update = ControlledDebiaser(model, target=0.85)
update = update.fit(rows.data, rows.target, sensitive_features=rows.sensitive_features)

# %%
# ``CalibrationDisplay`` draws base score, edited score and calibrated probability.

plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
figure, ax = plt.subplots(figsize=(6.4, 6), layout="constrained")
CalibrationDisplay.from_predictions(
    new.target,
    model.predict_proba(new.data)[:, 1],
    update.predict_proba(new.data)[:, 1],
    scores_calibrated=update.calibrated_proba(new.data)[:, 1],
    ax=ax,
)
plt.show()
