"""
With the group in hand, or without it
=====================================

``MinimalFlip`` needs the group of every person at prediction: it moves the threshold of one
group. So two people with equal columns can get different decisions. ``ControlledDebiaser`` sees
groups in ``fit`` only. It draws one line for everybody, so people of the other group beyond the
line change, too.

Both panels show the same 1,000 fit rows, on which both methods reach a P-rule of 0.8. Coloured
marks are people who gain. Triangles belong to the disadvantaged group, circles to the advantaged
one.
"""

# %%
# Both methods change as few decisions as they can. ``frontier`` chooses the strength of
# ``MinimalFlip``.

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression

from commod import ControlledDebiaser, frontier, metrics
from commod.datasets import make_biased
from commod.rivals import MinimalFlip

old, rows = (
    make_biased(1000, n_features=2, n_informative=2, bias=1.5, random_state=seed) for seed in (1, 2)
)
model = LogisticRegression().fit(old.data, old.target)
X, y, group = rows.data, rows.target, rows.sensitive_features
aware = frontier(MinimalFlip(model), X, y, sensitive_features=group).select(target=0.8)
blind = ControlledDebiaser(
    model, target=0.8, direction="gains_only", target_on="fit_rows", borderline=0
)
blind = blind.fit(X, y, sensitive_features=group)
decisions = {
    "sees the group: MinimalFlip": aware.predict(X, sensitive_features=group),
    "does not: ControlledDebiaser": blind.predict(X),
}

# %%
# Who gains in each panel.

plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
figure, axes = plt.subplots(1, 2, figsize=(8, 4.6), sharex=True, sharey=True, layout="constrained")
base = model.predict(X)
slope, shift = -model.coef_[0, 0] / model.coef_[0, 1], -model.intercept_[0] / model.coef_[0, 1]
for ax, (name, decided) in zip(axes, decisions.items(), strict=True):
    changed = decided != base
    for own, marker, color in (("g0", "o", "#4477aa"), ("g1", "^", "#cc6677")):
        chosen = (group == own).to_numpy()
        stays, moves = X[chosen & ~changed], X[chosen & changed]
        ax.scatter(stays["x0"], stays["x1"], 9, "#d5dae0", marker=marker, linewidths=0)
        ax.scatter(moves["x0"], moves["x1"], 34, color, marker=marker, linewidths=0, zorder=2)
    ax.axline((0, shift), slope=slope, color="black", linestyle="--", linewidth=1.2)
    fair = metrics.p_rule(None, decided, sensitive_features=group)
    ax.set_title(f"{name}\n{changed.sum()} change, P-rule {fair:.2f}", fontsize=12)
    ax.set(xlabel="x0", xlim=(-4, 4), ylim=(-3.5, 3.5))
axes[0].set_ylabel("x1")
axes[0].text(1.2, 3, "accepted")
axes[0].text(-3.8, -3.3, "rejected")
plt.show()
