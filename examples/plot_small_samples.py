"""
Equal groups look unequal in a small sample
===========================================

A P-rule divides the lowest rate by the highest one. In a sample, chance makes one group the
lowest and another the highest. So the P-rule of a sample is below that of the population on
average, even if all groups are truly alike.

Each violin shows 2,000 samples of groups that all have the same true rate of 40 %: the true
P-rule is 1. With 50 people per group, a P-rule of 0.8 or less is common. This is why
``expected_.fairness`` says what samples will show, and why small groups are left out of
constraints (``min_group_size``).
"""

# %%
# Draw samples of equal groups; nothing is fitted.

import matplotlib.pyplot as plt
import numpy as np

sizes = [50, 200, 1000, 5000]
random = np.random.default_rng(0)


def sampled_p_rules(n_people, n_groups):
    """Return the P-rules of 2,000 samples with `n_people` in each group."""
    rates = random.binomial(n_people, 0.4, size=(2000, n_groups)) / n_people
    return rates.min(axis=1) / rates.max(axis=1)


# %%
# Two groups beside five groups.

plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
figure, ax = plt.subplots(figsize=(7, 4.6), layout="constrained")
for n_groups, color, shift in ((2, "#4477aa", -0.2), (5, "#cc6677", 0.2)):
    places = np.arange(len(sizes)) + shift
    values = [sampled_p_rules(size, n_groups) for size in sizes]
    parts = ax.violinplot(values, places, widths=0.36, showextrema=False)
    for body in parts["bodies"]:
        body.set(facecolor=color, alpha=0.75)
    means = [each.mean() for each in values]
    ax.plot(places, means, "D", color="black", markersize=7)
    ax.bar(0, 0, color=color, label=f"{n_groups} equal groups")
    below = np.mean(values[0] < 0.8)
    print(f"{n_groups} groups of 50: {below:.0%} of the samples have a P-rule below 0.8")
ax.plot([], [], "D", color="black", label="mean")
ax.axhline(0.8, color="black", linestyle=":")
ax.set_xticks(range(len(sizes)), [f"{size:,}" for size in sizes])
ax.set_ylim(0.3, 1.02)
ax.set_xlabel("people in each group")
ax.set_ylabel("P-rule of a sample (true value 1)")
ax.legend(frameon=False, loc="lower right")
plt.show()
