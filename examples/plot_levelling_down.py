"""
Levelling down: the gap closes, but somebody pays
=================================================

Two groups can become alike because one rises or because the other falls. Taking the favourable
outcome from people without giving it to anybody is called levelling down. The P-rule does not
show it.

Each arrow is one group's share of favourable decisions, from the base model to the update. It is
measured on the 1,500 fit rows, where both updates reach a P-rule of 0.85. In the left panel the
lower group rises. In the right panel the higher group falls, and nobody is better off. The
parameter ``direction`` decides.
"""

# %%
# Two updates of one base model, both with the target 0.85 on the fit rows.

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression

from commod import ControlledDebiaser, metrics
from commod.datasets import make_biased

old, rows = (make_biased(1500, bias=1.2, random_state=seed) for seed in (1, 2))
model = LogisticRegression().fit(old.data, old.target)
rates, p_rules = {}, {}
people = {"sensitive_features": rows.sensitive_features}
for direction in ("gains_only", "losses_only"):
    update = ControlledDebiaser(model, target=0.85, direction=direction, target_on="fit_rows")
    update = update.fit(rows.data, rows.target, sensitive_features=rows.sensitive_features)
    decisions = model.predict(rows.data), update.predict(rows.data)
    rates[direction] = [metrics.group_rates(None, each, **people) for each in decisions]
    p_rules[direction] = [metrics.p_rule(None, each, **people) for each in decisions]

# %%
# Where each group starts and where it ends.

plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
figure, axes = plt.subplots(1, 2, figsize=(7.4, 4.4), sharey=True, layout="constrained")
titles = {"gains_only": "gains only", "losses_only": "losses only: levelling down"}
for ax, (direction, (before, after)) in zip(axes, rates.items(), strict=True):
    for place, (group, color) in enumerate((("g0", "#4477aa"), ("g1", "#cc6677"))):
        start, end = before[group]["selection_rate"], after[group]["selection_rate"]
        ax.plot(place, start, "o", markersize=13, color="white", markeredgecolor=color, mew=2.5)
        style = {"arrowstyle": "-|>", "color": color, "linewidth": 4, "mutation_scale": 26}
        if abs(end - start) > 0.02:
            ax.annotate("", (place, end), (place, start), arrowprops=style)
        ax.text(place + 0.14, end, f"{end:.0%}", va="center", fontsize=15, color=color)
    first, last = p_rules[direction]
    ax.set_title(f"{titles[direction]}\nP-rule {first:.2f} → {last:.2f}")
    ax.set_xticks([0, 1], ["advantaged", "disadvantaged"])
    ax.set_xlim(-0.4, 1.6)
axes[0].yaxis.set_major_formatter("{x:.0%}")
axes[0].set_ylabel("share with the favourable outcome")
axes[0].set_ylim(0, 0.7)
plt.show()
