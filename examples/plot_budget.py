"""
A budget of changes: how fair can few changes make it?
======================================================

Sometimes the number of changes is given, and the fairness is the question. With ``max_changes`` and
without a target, the search looks for the fairest update within the budget. It stops at parity.

The line shows the P-rule on the 1,000 fit rows for each budget. The black line is the best P-rule that any
method could reach with as many changes, even with the groups in hand. Open circles are the same updates
on 5,000 evaluated rows: new people are a little less fair than the rows that the update was fitted on.
"""

# %%
# One fit for each budget.

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression

from commod import ControlledDebiaser, bounds, metrics
from commod.datasets import make_biased

old, rows = (make_biased(1000, random_state=seed) for seed in (1, 2))
new = make_biased(5000, random_state=3)
model = LogisticRegression().fit(old.data, old.target)
budgets = [0.0, 0.01, 0.02, 0.04, 0.06, 0.08]
fair, fair_new, best = [], [], []
for budget in budgets:
    update = ControlledDebiaser(model, max_changes=budget, target_on="fit_rows")
    update = update.fit(rows.data, rows.target, sensitive_features=rows.sensitive_features)
    fair.append(update.fairness_)
    decisions = update.predict(new.data)
    fair_new.append(metrics.p_rule(None, decisions, sensitive_features=new.sensitive_features))
    best.append(
        bounds.best_fairness(
            model.predict(rows.data),
            sensitive_features=rows.sensitive_features,
            max_changes=round(budget * 1000),
        ).fairness
    )

# %%
# Fairness that is bought with a budget.

plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
ax.fill_between(budgets, best, 1.02, color="#e4e7eb")
ax.plot(budgets, best, color="black", linewidth=2)
ax.text(0.002, 0.97, "no method can be here", va="top")
ax.plot(budgets, fair, "o-", color="#1f6f8b", markersize=9, linewidth=2.5, label="fit rows")
ax.plot(
    budgets, fair_new, "o--", color="#1f6f8b", markersize=9, markerfacecolor="white",
    label="evaluated rows",
)  # fmt: skip
ax.legend(loc="lower right", frameon=False)
ax.xaxis.set_major_formatter("{x:.0%}")
ax.set_ylim(None, 1.02)
ax.set_xlabel("budget: the most decisions that may change")
ax.set_ylabel("P-rule (fairer ↑)")
plt.show()
