"""
A group column that is half empty
=================================

Lenders often know the group of some people only. With ``unknown_groups="ignore"``, rates are
those of the known rows, and the update still decides on everybody. What the unknown groups could
be is bounded: the shaded band is the lowest and the highest P-rule over every assignment of the
unknown people to groups.

The dots are the P-rule of the known ones among 1,000 fit rows. Diamonds are the P-rule of 5,000
evaluated rows whose groups are all known. The band is wide, because it is a worst case. It is no
statement about what is likely: here groups are missing at random, so the known rows are like the
others.
"""

# %%
# Groups go missing at random, more and more of them.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from commod import ControlledDebiaser, metrics
from commod.datasets import make_biased

old, rows = (make_biased(1000, random_state=seed) for seed in (1, 2))
new = make_biased(5000, random_state=3)
model = LogisticRegression().fit(old.data, old.target)
shares = [0, 0.1, 0.25, 0.5, 0.75]
known, low, high, evaluated = [], [], [], []
order = np.random.default_rng(0).random(1000)
for share in shares:
    group = rows.sensitive_features.astype(object)
    group[order < share] = None
    update = ControlledDebiaser(model, target=0.8, unknown_groups="ignore", target_on="fit_rows")
    update = update.fit(rows.data, rows.target, sensitive_features=group)
    known.append(update.fairness_)
    worst = update.unknown_groups_.worst_case if share else (update.fairness_,) * 2
    low.append(worst[0])
    high.append(worst[1])
    decided = update.predict(new.data)
    evaluated.append(metrics.p_rule(None, decided, sensitive_features=new.sensitive_features))

# %%
# What is known, and what could be.

plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
ax.fill_between(shares, low, high, color="#cfe6ee", label="what the unknown groups could be")
ax.plot(shares, known, "o-", color="#1f6f8b", markersize=9, linewidth=2.5, label="known fit rows")
ax.plot(shares, evaluated, "D--", color="#c44536", markersize=9, label="evaluated rows, all known")
ax.axhline(0.8, color="black", linewidth=1, linestyle=":")
ax.xaxis.set_major_formatter("{x:.0%}")
ax.set_ylim(0, 1.02)
ax.set_xlabel("fit rows whose group is missing")
ax.set_ylabel("P-rule (fairer ↑)")
ax.legend(frameon=False, loc="lower left")
plt.show()
