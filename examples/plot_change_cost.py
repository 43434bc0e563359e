"""
When some changes cost more than others
=======================================

A changed decision can cost money, and not the same for everybody. ``fit(..., change_cost=cost)``
states the cost of each person's change. With ``borderline=1``, the update may make up to twice
the fewest changes where that lowers the cost.

Here a change costs 10 in the region "dear" and 1 elsewhere. The bars show whom each update
changes among 1,500 fit rows, on which both reach a P-rule of 0.8. The titles add up the costs.
The second update changes more people, and their changes cost less.
"""

# %%
# The same target without and with costs.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from commod import ControlledDebiaser
from commod.datasets import make_biased

old, rows = (make_biased(1500, bias=1.2, random_state=seed) for seed in (1, 2))
model = LogisticRegression().fit(old.data, old.target)
region = np.where(rows.data["x1"] > 0, "dear", "cheap")
cost = np.where(region == "dear", 10.0, 1.0)
updates = {}
for name, change_cost in (("costs not stated", None), ("costs stated", cost)):
    update = ControlledDebiaser(
        model,
        target=0.8,
        direction="gains_only",
        target_on="fit_rows",
        borderline=1 if change_cost is not None else 0,
    )
    updates[name] = update.fit(
        rows.data,
        rows.target,
        sensitive_features=rows.sensitive_features,
        change_cost=change_cost,
    )

# %%
# Changes in each region.

plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
figure, axes = plt.subplots(1, 2, figsize=(7.2, 4.2), sharey=True, layout="constrained")
for ax, (name, update) in zip(axes, updates.items(), strict=True):
    gain = update.changes(rows.data).gain
    counts = [int((gain & (region == own)).sum()) for own in ("dear", "cheap")]
    bars = ax.bar(["dear: 10 each", "cheap: 1 each"], counts, color=["#c44536", "#1f6f8b"])
    bars[0].set(hatch="//", edgecolor="white", linewidth=0)
    ax.bar_label(bars, padding=3, fontsize=15)
    ax.set_title(f"{name}\n{gain.sum()} change, total cost {cost[gain].sum():.0f}")
    ax.tick_params(axis="x", length=0)
axes[0].set_ylabel("people who gain")
axes[0].margins(y=0.12)
plt.show()
