"""
Several constraints at once
===========================

One fair figure can hide another unfair one. ``&`` joins constraints: here the P-rule must be at
least 0.8 **and** every group must be accepted at a rate of at least 55 %.

The three rows are the base model, an update for the P-rule alone, and an update for both. Each
column is one constraint, with its bound as a line. Values are measured on the 1,500 fit rows,
where the updates have to keep their bounds. The update for the P-rule alone may leave a group
below 55 %.
"""

# %%
# One constraint, then two.

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression

from commod import ControlledDebiaser
from commod.constraints import DemographicParity, MinimumRate
from commod.datasets import make_biased

old, rows = (make_biased(1500, bias=1.2, random_state=seed) for seed in (1, 2))
model = LogisticRegression().fit(old.data, old.target)
parity, floor = DemographicParity(ratio=0.8), MinimumRate(0.55)
print(parity & floor)
decisions = {"base model": model.predict(rows.data)}
for name, constraint in (("P-rule alone", parity), ("both", parity & floor)):
    update = ControlledDebiaser(model, constraints=constraint, target_on="fit_rows")
    update = update.fit(rows.data, rows.target, sensitive_features=rows.sensitive_features)
    decisions[name] = update.predict(rows.data)

# %%
# The value of each constraint beside its bound.

plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.6), sharey=True, layout="constrained")
looks = ((parity, 0.8, "P-rule", "{:.2f}"), (floor, 0.55, "lowest rate", "{:.0%}"))
for ax, (constraint, bound, name, form) in zip(axes, looks, strict=True):
    values = [
        constraint.value(rows.target, each, sensitive_features=rows.sensitive_features)
        for each in decisions.values()
    ]
    colors = ["#1f6f8b" if value >= bound else "#c44536" for value in values]
    bars = ax.barh(list(decisions), values, color=colors)
    for bar, value in zip(bars, values, strict=True):
        if value < bound:
            bar.set(hatch="//", edgecolor="white", linewidth=0)
    ax.bar_label(bars, [form.format(value) for value in values], padding=9)
    ax.axvline(bound, color="black", linestyle=":", linewidth=2)
    ax.set_title(f"{name}, at least {form.format(bound)}", fontsize=12)
    ax.set_xlim(0, 1.3 * max(values))
    ax.set_xticks([])
    ax.spines["bottom"].set_visible(False)
    ax.tick_params(axis="y", length=0)
axes[0].invert_yaxis()
figure.supxlabel("red and hatched: below the bound", fontsize=12)
plt.show()
