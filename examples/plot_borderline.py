"""
Who changes: the fewest people, or those near the threshold
===========================================================

The fewest changes may go to people with very low scores and pass over others who missed the
threshold by little. ``borderline`` allows extra changes for people nearer to the threshold, and
``max_margin`` forbids changes far from it.

The panels show at which base scores decisions change, on 1,500 fit rows that all three updates
bring to a P-rule of 0.8. The fewest changes go to people with low scores. Both other updates
change more people, and these are nearer to the threshold.
"""

# %%
# One target, three answers to "whom?".

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from commod import ControlledDebiaser
from commod.datasets import make_biased

old, rows = (make_biased(1500, bias=1.2, random_state=seed) for seed in (1, 2))
model = LogisticRegression().fit(old.data, old.target)
requests = {
    "the fewest changes": {"borderline": 0},
    "borderline=1": {"borderline": 1},
    "max_margin=0.35": {"max_margin": 0.35},
}
updates = {}
for name, request in requests.items():
    update = ControlledDebiaser(
        model, target=0.8, direction="gains_only", target_on="fit_rows", **request
    )
    updates[name] = update.fit(rows.data, rows.target, sensitive_features=rows.sensitive_features)

# %%
# Changes along the base score; grey bars are all people.

plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
figure, axes = plt.subplots(3, 1, figsize=(7, 5.6), sharex=True, sharey=True, layout="constrained")
score = model.predict_proba(rows.data)[:, 1]
edges = np.linspace(0, 1, 41)
for ax, (name, update) in zip(axes, updates.items(), strict=True):
    gain = update.changes(rows.data).gain
    ax.hist(score, edges, color="#d5dae0")
    ax.hist(score[gain], edges, color="#1f6f8b")
    ax.axvline(0.5, color="black", linewidth=1)
    distance = np.abs(score[gain] - 0.5).mean()
    title = f"{name}: {gain.sum()} gain, mean distance {distance:.2f}"
    ax.set_title(title, loc="left", color="#1f6f8b")
axes[1].set_ylabel("people")
axes[2].set_xlabel("base score (threshold 0.5)")
plt.show()
