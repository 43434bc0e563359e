"""
The trade-off between fairness and changes, with the exact limit
================================================================

How many decisions must change for a fairer model? ``commod.frontier`` fits updates along the
whole trade-off. Each point is one update, measured on 1,500 evaluated rows. The black line is
the exact limit at each fairness. No method can be below it, even one that knows the group of
every person. The updates do not see groups when they decide, so they need more changes.

The diamond marks the update with the fewest changes among those that reach a P-rule of 0.8 on
the evaluated rows. An update that is chosen on some rows looks better on them than it is:
measure it on other rows.
"""

# %%
# Three samples of one synthetic population: for the base model, the updates and the figures.

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression

from commod import ControlledDebiaser, frontier
from commod.datasets import make_biased

old, rows, new = (make_biased(1500, bias=1.2, random_state=seed) for seed in (1, 2, 3))
model = LogisticRegression().fit(old.data, old.target)
curve = frontier(
    ControlledDebiaser(model),
    rows.data,
    rows.target,
    sensitive_features=rows.sensitive_features,
    X_eval=new.data,
    y_eval=new.target,
    sensitive_features_eval=new.sensitive_features,
)
print(curve)

# %%
# ``frame`` has one row per update.

frame = curve.frame().sort_values("fairness")
print(frame[["fairness", "change_rate", "limit", "accuracy"]].iloc[::20].round(3))
reached = frame[frame["fairness"] >= 0.8]
chosen = reached.loc[reached["change_rate"].idxmin()]

plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
figure, ax = plt.subplots(figsize=(7, 4.6), layout="constrained")
points = ax.scatter(
    frame["fairness"], frame["change_rate"], c=frame["accuracy"], cmap="viridis", s=42, zorder=2
)
figure.colorbar(points, label="accuracy", format="{x:.0%}")
ax.plot(frame["fairness"], frame["limit"], color="black", linewidth=2)
ax.fill_between(frame["fairness"], 0, frame["limit"], color="#e4e7eb")
ax.text(0.97, 0.08, "no method can be here", transform=ax.transAxes, ha="right")
place = chosen["fairness"], chosen["change_rate"]
ax.plot(*place, "D", markersize=13, markerfacecolor="none", color="#c44536", markeredgewidth=2.5)
ax.annotate(
    f"chosen: {place[1]:.1%} of the decisions change",
    place,
    (-10, 22),
    textcoords="offset points",
    ha="right",
    color="#c44536",
)
ax.yaxis.set_major_formatter("{x:.0%}")
ax.set_ylim(0)
ax.set_xlim(frame["fairness"].min())
ax.set_xlabel("P-rule on evaluated rows (fairer →)")
ax.set_ylabel("decisions changed")
plt.show()
