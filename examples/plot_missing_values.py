"""
A missing value has points of its own
=====================================

Tables have holes, and holes are seldom random. With points per bin, "missing" is a bin like any
other, if at least 20 people have it. So a missing value needs no imputation, and everybody sees
what it counts for.

Here x2, a column that goes with the group, is missing for two in five disadvantaged people and
for one in ten others. Bars are the points of x2 in an update that was fitted on 2,000 fit rows.
"Missing" is the hatched bar. Dots show the share of the disadvantaged group among the fit rows
in each bin: where it is high, points push towards a change.
"""

# %%
# Make holes that depend on the group. The base model reads x0 and x1 only.

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from commod import ControlledDebiaser
from commod.datasets import make_biased

old, rows = (make_biased(2000, random_state=seed) for seed in (1, 2))
model = make_pipeline(
    make_column_transformer(("passthrough", ["x0", "x1"])), LogisticRegression()
).fit(old.data, old.target)
X, group = rows.data.copy(), rows.sensitive_features
random = np.random.default_rng(0)
X.loc[random.random(2000) < np.where(group == "g1", 0.4, 0.1), "x2"] = np.nan
update = ControlledDebiaser(
    model,
    target=0.8,
    points="per bin",
    direction="gains_only",
    target_on="fit_rows",
    borderline=0,
    locked_features=["x0", "x1", "x3"],
)
update = update.fit(X, rows.target, sensitive_features=group)
print(update.scorecard_)

# %%
# Points of each bin, and who is in it.

terms = dict(update.scorecard_.rows())
edges = [-np.inf, *(float(name.split("<")[-1]) for name in terms if "<" in name), np.inf]
inside = [X["x2"].ge(low) & X["x2"].lt(high) for low, high in pairwise(edges)]
shares = [(group[chosen] == "g1").mean() for chosen in [*inside, X["x2"].isna()]]

plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
figure, (ax, share_ax) = plt.subplots(
    1, 2, figsize=(7.6, 4.8), sharey=True, width_ratios=(3, 2), layout="constrained"
)
values = np.array(list(terms.values()))
bars = ax.barh(list(terms), values, color=np.where(values > 0, "#1f6f8b", "#9aa5b1"))
bars[-1].set(hatch="//", edgecolor="white", linewidth=0)
ax.axvline(0, color="black", linewidth=1)
ax.invert_yaxis()
ax.set_xlabel("points: towards acceptance →")
ax.tick_params(axis="y", length=0)
share_ax.hlines(range(len(terms)), 0, shares, color="#cc6677", linewidth=2)
share_ax.plot(shares, range(len(terms)), "o", color="#cc6677", markersize=9)
share_ax.set_xlim(0)
share_ax.xaxis.set_major_formatter("{x:.0%}")
share_ax.set_xlabel("disadvantaged people")
share_ax.tick_params(axis="y", length=0)
plt.show()
