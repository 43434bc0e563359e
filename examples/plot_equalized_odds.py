"""
Equalized odds: both error rates move together
==============================================

Demographic parity compares rates of decisions. Equalized odds compares errors: the true positive
rate and the false positive rate of each group. Disparate mistreatment (DM) is the sum of the two
gaps; 0 means equal odds.

Each group is one point of the plane, before and after the update. The closer the two points are,
the more equal are the odds. The rates are measured on 4,000 evaluated rows, which neither the
base model nor the update has seen. The target was a DM of at most 0.12, expected on new people.
The title shows what these people get.
"""

# %%
# The target is a disparate mistreatment of at most 0.12.

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression

from commod import ControlledDebiaser, metrics
from commod.datasets import make_biased

old, rows = (make_biased(1500, bias=1.5, random_state=seed) for seed in (1, 2))
new = make_biased(4000, bias=1.5, random_state=3)
model = LogisticRegression().fit(old.data, old.target)
update = ControlledDebiaser(
    model, constraints="equalized_odds", target=0.12, points="per unit", direction="gains_only"
)
update = update.fit(rows.data, rows.target, sensitive_features=rows.sensitive_features)
people = {"sensitive_features": new.sensitive_features}
decisions = model.predict(new.data), update.predict(new.data)
before, after = (metrics.group_rates(new.target, each, **people) for each in decisions)
mistreated = [metrics.disparate_mistreatment(new.target, each, **people) for each in decisions]

# %%
# Two groups, before and after.

plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
figure, ax = plt.subplots(figsize=(7, 4.8), layout="constrained")
for group, color, name in (("g0", "#4477aa", "advantaged"), ("g1", "#cc6677", "disadvantaged")):
    start, end = ((rates[group]["fpr"], rates[group]["tpr"]) for rates in (before, after))
    ax.plot(*start, "o", color="white", markeredgecolor=color, markersize=15, mew=3)
    ax.plot(*end, "o", color=color, markersize=15)
    style = {
        "arrowstyle": "-|>",
        "color": color,
        "linewidth": 3,
        "mutation_scale": 24,
        "shrinkB": 8,
    }
    ax.annotate("", end, start, arrowprops=style)
    shift = 18 if group == "g0" else -28
    ax.annotate(name, start, (0, shift), textcoords="offset points", ha="center", color=color)
for rates, style in ((before, ":"), (after, "-")):
    ax.plot(
        [rates[group]["fpr"] for group in ("g0", "g1")],
        [rates[group]["tpr"] for group in ("g0", "g1")],
        style, color="black", linewidth=1.5, zorder=0,
    )  # fmt: skip
ax.margins(0.22)
ax.xaxis.set_major_formatter("{x:.0%}")
ax.yaxis.set_major_formatter("{x:.0%}")
ax.set_xlabel("false positive rate (fewer errors ←)")
ax.set_ylabel("true positive rate (fewer errors ↑)")
ax.set_title(f"DM {mistreated[0]:.2f} → {mistreated[1]:.2f}: the points move together")
plt.show()
