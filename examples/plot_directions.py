"""
The same P-rule by gains, by losses, or by both
===============================================

A P-rule of 0.8 can be reached in different directions. With gains only, nobody loses the
favourable outcome. With losses only, nobody gains. With a cap on the volume, gains and losses
balance. The number of changes differs, and so does who pays.

Bars count people among 1,500 fit rows, where all updates reach a P-rule of 0.8 or more. The
diamonds show the fewest changes that any method needs in that direction, even one that knows the
groups.
"""

# %%
# One base model, three requests.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from commod import ControlledDebiaser
from commod.datasets import make_biased

old, rows = (make_biased(1500, bias=1.2, random_state=seed) for seed in (1, 2))
model = LogisticRegression().fit(old.data, old.target)
requests = {
    "gains only": {"direction": "gains_only"},
    "both, the same volume": {"max_volume_change": 0.005},
    "losses only": {"direction": "losses_only"},
}
updates = {
    name: ControlledDebiaser(model, target=0.8, target_on="fit_rows", **request).fit(
        rows.data, rows.target, sensitive_features=rows.sensitive_features
    )
    for name, request in requests.items()
}

# %%
# Gains to the right, losses to the left, by group.

plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
figure, ax = plt.subplots(figsize=(7.4, 3.8), layout="constrained")
group = rows.sensitive_features.to_numpy()
for place, (name, update) in enumerate(updates.items()):
    changes = update.changes(rows.data)
    print(f"{name}: P-rule {update.fairness_:.3f}, changes {update.change_rate_:.1%}")
    for kind, sign in (("gain", 1), ("loss", -1)):
        start = 0
        for own, color in (("g1", "#cc6677"), ("g0", "#4477aa")):
            count = sign * int((getattr(changes, kind) & (group == own)).sum())
            ax.barh(place, count, 0.6, start, color=color)
            start += count
        if start:
            ax.text(
                start + sign * 5, place, abs(start), va="center", ha="left" if sign > 0 else "right"
            )
    fewest = round(update.limit_ * update.n_rows_)
    sides = {"gains only": [fewest], "losses only": [-fewest]}.get(name, [])
    ax.plot(sides, [place] * len(sides), "D", color="black", markersize=8)
ax.set_yticks(range(3), list(updates))
ax.invert_yaxis()
ax.axvline(0, color="black", linewidth=1)
ax.plot([], [], "D", color="black", label="fewest possible")
ax.barh(np.nan, 0, color="#cc6677", label="disadvantaged group")
ax.barh(np.nan, 0, color="#4477aa", label="advantaged group")
figure.legend(loc="outside upper center", ncols=3, frameon=False, columnspacing=1.2)
widest = 1.25 * max(abs(value) for value in ax.dataLim.intervalx)
ax.set_xlim(-widest, widest)
ax.xaxis.set_major_formatter(lambda value, _: f"{abs(value):.0f}")
ax.set_xlabel("people: ← lose | gain →")
ax.tick_params(axis="y", length=0)
plt.show()
