"""
Parity overall, or within each department
=========================================

In 1973, Berkeley admitted 45 % of the men and 30 % of the women who applied to six departments.
Within most departments, women were admitted about as often as men: they applied to the
departments that admit few. This is Simpson's paradox (Bickel, Hammel and O'Connell, *Science*,
1975).

The counts are those of 1973; scores and courses are made up. The panels show the rates of the
same 4,526 applicants. Parity overall admits more women where most of them applied. Parity within
departments sees department A, where men have the lower rate. No figure can say which of the two
constraints is right.
"""

# %%
# Applications and admissions of men and women by department.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from commod import ControlledDebiaser, ScoreColumn
from commod.constraints import DemographicParity

admissions = {
    "A": (825, 512, 108, 89),
    "B": (560, 353, 25, 17),
    "C": (325, 120, 593, 202),
    "D": (417, 138, 375, 131),
    "E": (191, 53, 393, 94),
    "F": (373, 22, 341, 24),
}
random = np.random.default_rng(0)
parts = []
for department, counts in admissions.items():
    for sex, n, n_admitted in (("men", *counts[:2]), ("women", *counts[2:])):
        part = {
            "department": department,
            "mathematics": random.poisson(4 if sex == "men" else 2, n),
            "languages": random.poisson(1 if sex == "men" else 3, n),
            "score": random.uniform(0, 0.5, n) + 0.5 * (np.arange(n) < n_admitted),
            "sex": sex,
        }
        parts.append(pd.DataFrame(part))
people = pd.concat(parts, ignore_index=True)
X, sex = people.drop(columns="sex"), people["sex"]

# %%
# Two updates of the same decisions. They are fitted and measured on all applicants.

overall = DemographicParity(ratio=0.8)
decisions = {"as in 1973": (X["score"] > 0.5).astype(int)}
for name, constraint in (
    ("parity overall", overall),
    ("within departments", overall.within("department")),
):
    update = ControlledDebiaser(ScoreColumn("score"), constraints=constraint, target_on="fit_rows")
    decisions[name] = update.fit(X, sensitive_features=sex).predict(X)

# %%
# Rates by department; the last pair of bars is everybody.

plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
figure, axes = plt.subplots(3, 1, figsize=(7, 6.4), sharex=True, sharey=True, layout="constrained")
base = decisions["as in 1973"]
for ax, (name, decided) in zip(axes, decisions.items(), strict=True):
    own = pd.Series(decided, index=X.index)
    rates = own.groupby([X["department"], sex]).mean().unstack()
    rates.loc["all"] = own.groupby(sex).mean()
    places = np.arange(7) + np.array([0, 0, 0, 0, 0, 0, 0.5])
    for shift, group, color in ((-0.2, "men", "#4477aa"), (0.2, "women", "#cc6677")):
        ax.bar(places + shift, rates[group], 0.38, color=color, label=group)
    moved = (own - base).groupby(sex).sum()
    texts = [f"{count:+d} {group}" for group, count in moved.items() if count]
    ax.set_title(f"{name}: {', '.join(texts) or 'no change'}", loc="left")
    ax.set_ylabel("admitted")
axes[0].yaxis.set_major_formatter("{x:.0%}")
axes[0].legend(frameon=False, ncols=2, loc="upper center")
axes[2].set_xticks(places, [*admissions, "all"])
axes[2].set_xlabel("department")
plt.show()
