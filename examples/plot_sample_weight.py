"""
Weights: when the table is not the population
=============================================

A survey often draws small groups more densely. Then the rows are not the population, and weights
say how many people each row stands for. ``sample_weight`` makes fairness and accuracy those of
the population. Changes count people of the table.

In this table, disadvantaged people with a high x1 are drawn five times as densely as everybody
else. The bars are P-rules of one update without weights and one with weights. Plain bars are
measured on the 2,000 fit rows as they are, hatched bars with weights, as in the population.
Without weights, the base model seems to reach the target of 0.8 already, so nothing changes.
"""

# %%
# A dense sample of one part of the population.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from commod import ControlledDebiaser, metrics
from commod.datasets import make_biased

old, people = make_biased(1500, random_state=1), make_biased(8000, random_state=2)
model = LogisticRegression().fit(old.data, old.target)
dense = (people.sensitive_features == "g1") & (people.data["x1"] > 0.3)
random = np.random.default_rng(0)
drawn = random.permutation(8000)
chance = np.where(dense, 1.0, 0.2)
rows = drawn[random.random(8000) < chance[drawn]][:2000]
X, y, group = people.data.iloc[rows], people.target.iloc[rows], people.sensitive_features.iloc[rows]
weight = 1 / chance[rows]
updates = {}
for name, given in (("without weights", None), ("with weights", weight)):
    update = ControlledDebiaser(model, target=0.8, target_on="fit_rows")
    updates[name] = update.fit(X, y, sensitive_features=group, sample_weight=given)

# %%
# The P-rule of the table, and that of the population.

plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
decisions = {"base model": model.predict(X)}
decisions |= {f"update\n{name}": update.predict(X) for name, update in updates.items()}
looks = (
    (-0.2, None, "the table", {"color": "#9aa5b1"}),
    (0.2, weight, "the population", {"color": "#1f6f8b", "hatch": "//", "edgecolor": "white"}),
)
for shift, given, name, look in looks:
    values = [
        metrics.p_rule(None, each, sensitive_features=group, sample_weight=given)
        for each in decisions.values()
    ]
    bars = ax.bar(np.arange(3) + shift, values, 0.38, label=name, **look)
    ax.bar_label(bars, fmt="{:.2f}", padding=3)
ax.axhline(0.8, color="black", linestyle=":")
ax.set_xticks(range(3), list(decisions))
ax.set_ylim(0, 1.15)
ax.set_ylabel("P-rule (fairer ↑)")
ax.legend(frameon=False, ncols=2, loc="upper left")
ax.tick_params(axis="x", length=0)
plt.show()
