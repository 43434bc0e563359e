"""
A budget of changes: how fair can few changes make it?
======================================================

Sometimes the number of changes is given, and the fairness is the question. With ``max_changes``
and without a target, ``fit`` finds the fairest update within the budget. A budget that is larger
than parity needs is not used up.

The dots show the P-rule on the 600 fit rows for each budget. The black line is the best P-rule
on these rows that any method could reach with as many changes, even with the groups in hand. So
the gap between both is the price of a scorecard that does not see the group.
"""

# %%
# One fit for each budget.

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression

from commod import ControlledDebiaser, bounds
from commod.datasets import make_biased

old, rows = (make_biased(600, random_state=seed) for seed in (1, 2))
model = LogisticRegression().fit(old.data, old.target)
budgets = [0.0, 0.03, 0.06, 0.09]
fair = []
for budget in budgets:
    update = ControlledDebiaser(model, max_changes=budget, target_on="fit_rows")
    update = update.fit(rows.data, rows.target, sensitive_features=rows.sensitive_features)
    fair.append(update.fairness_)

# %%
# The limit takes no fit, so it is computed for every number of changes.

decisions, group = model.predict(rows.data), rows.sensitive_features
numbers = range(round(600 * budgets[-1]) + 1)
best = [
    bounds.best_fairness(decisions, sensitive_features=group, max_changes=n).fairness
    for n in numbers
]
shares = [n / 600 for n in numbers]

# %%
# Fairness that is bought with a budget.

plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
ax.fill_between(shares, best, 1.02, color="#e4e7eb")
ax.plot(shares, best, color="black", linewidth=2)
ax.text(0.002, 0.97, "no method can be here", va="top")
ax.plot(budgets, fair, "o-", color="#1f6f8b", markersize=9, linewidth=2.5, label="updates")
ax.legend(loc="lower right", frameon=False)
ax.xaxis.set_major_formatter("{x:.0%}")
ax.set_ylim(None, 1.02)
ax.set_xlabel("budget: the most decisions that may change")
ax.set_ylabel("P-rule on the fit rows (fairer ↑)")
plt.show()
