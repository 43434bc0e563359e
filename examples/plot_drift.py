"""
Watch a patch while the population drifts
=========================================

A target is expected on people like the fit rows. Populations drift. So measure a patch every
month, with an interval, and act when the whole interval is below the target.

Each month brings 1,500 new people. From month 7 on, the column x2, which the update reads,
drifts upwards, as an income does with inflation. The line is the P-rule of the patched
decisions, with its 95 % interval; the grey line is the base model on the same people. A month
whose whole interval is below the target is marked. ``commod check`` is the same check.
"""

# %%
# The update is stored as a patch. It needs the columns and the base score.

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression

from commod import ControlledDebiaser, audit
from commod.datasets import make_biased

old, rows = (make_biased(2000, random_state=seed) for seed in (1, 2))
model = LogisticRegression().fit(old.data, old.target)
update = ControlledDebiaser(model, target=0.7)
update = update.fit(rows.data, rows.target, sensitive_features=rows.sensitive_features)
patch = update.to_patch()

# %%
# Twelve months of new people. ``audit`` measures before and after, with intervals.

months = range(1, 13)
before, after = [], []
for month in months:
    people = make_biased(1500, random_state=100 + month)
    X = people.data.assign(x2=people.data["x2"] + 0.3 * max(month - 6, 0))
    scored = X.assign(score=model.predict_proba(X)[:, 1])
    decided = patch.apply(scored, score="score")
    measured = audit(
        (scored["score"] > 0.5).astype(int),
        decided["commod_decision"],
        sensitive_features=people.sensitive_features,
    )
    before.append(measured.fairness[0].before)
    after.append(measured.fairness[0].after)

# %%
# The P-rule month by month.

plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
ax.axvspan(6.5, 12.5, color="#f3f1e7")
ax.text(9.5, 1.0, "x2 drifts", ha="center", va="top")
ax.axhline(0.7, color="black", linestyle=":")
ax.text(12.4, 0.71, "target", ha="right")
ax.plot(months, [each.value for each in before], "s--", color="#9aa5b1", label="base model")
ax.fill_between(
    months, [each.low for each in after], [each.high for each in after], color="#cfe6ee"
)
values = [each.value for each in after]
ax.plot(months, values, "o-", color="#1f6f8b", linewidth=2.5, markersize=8, label="with the patch")
missed = [month for month, each in zip(months, after, strict=True) if each.high < 0.7]
ax.plot(
    missed, [values[month - 1] for month in missed], "X", color="#c44536", markersize=14,
    label="whole interval below the target",
)  # fmt: skip
ax.set(xlim=(0.5, 12.5), ylim=(0, 1.02), xticks=months)
ax.set_xlabel("month (1,500 new people each)")
ax.set_ylabel("P-rule (fairer ↑)")
ax.legend(frameon=False, loc="lower left")
plt.show()
