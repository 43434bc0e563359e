"""
Beside other methods: fairness against changes
==============================================

"Few changes" only means something next to other methods on the same rows. ``commod.compare``
fits each method along its strengths and measures all of them in the same way, here on 1,500
evaluated rows.

Full lines are methods that decide without the group. Dashed lines need the group of every person
at prediction. The black line is the exact limit on these rows. Lower is better.
This is one synthetic table; other tables give other orders.
"""

# %%
# Five methods, one base model.

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression

from commod import ControlledDebiaser, compare, rivals
from commod.datasets import make_biased

old, rows, new = (make_biased(1500, bias=1.2, random_state=seed) for seed in (1, 2, 3))
model = LogisticRegression().fit(old.data, old.target)
comparison = compare(
    {
        "ControlledDebiaser": ControlledDebiaser(model),
        "LPP": rivals.LPP(model),
        "FairScoreTransformer": rivals.FairScoreTransformer(model),
        "RejectOption": rivals.RejectOption(model),
        "WassersteinPostProcessing": rivals.WassersteinPostProcessing(model),
    },
    rows.data,
    rows.target,
    sensitive_features=rows.sensitive_features,
    X_eval=new.data,
    y_eval=new.target,
    sensitive_features_eval=new.sensitive_features,
)
print(comparison)

# %%
# The fewest changes of each method for each P-rule.

targets = [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95]
needed = comparison.changes_needed(targets)
looks = {
    "ControlledDebiaser": ("#1f6f8b", "o-"),
    "LPP": ("#cc6677", "s-"),
    "FairScoreTransformer": ("#999933", "^-"),
    "RejectOption": ("#882255", "D--"),
    "WassersteinPostProcessing": ("#88ccee", "v--"),
}

plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
figure, ax = plt.subplots(figsize=(7.4, 5), layout="constrained")
for name, (color, line) in looks.items():
    ours = 3.5 if name == "ControlledDebiaser" else 2
    values = needed.loc[name, targets].astype(float)
    ax.plot(targets, values, line, color=color, linewidth=ours, markersize=7, label=name)
limit = needed.loc["exact limit", targets].astype(float)
ax.plot(targets, limit, color="black", linewidth=2, label="exact limit")
ax.fill_between(targets, 0, limit, color="#e4e7eb")
ax.yaxis.set_major_formatter("{x:.0%}")
ax.set_yticks([0, 0.05, 0.1, 0.15])
ax.set_ylim(0)
ax.set_xlim(0.5, 0.95)
ax.set_xlabel("P-rule to reach on evaluated rows (fairer →)")
ax.set_ylabel("decisions changed (fewer ↓)")
ax.legend(frameon=False, fontsize=10.5)
plt.show()
