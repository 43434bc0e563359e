"""
Decisions change exactly where r is below zero
==============================================

With two columns, the whole update fits into one plane. The dashed line is the threshold of the
base model: people above it are accepted. The update may only accept people, so r is 1 above this
line. The solid line is r = 0, where the points are just what a gain needs. Decisions change in
the shaded part and nowhere else, because r is below zero there.

Dots are 1,000 evaluated rows. People who gain lie below the dashed line and in the shaded part.
The update does not see the group. Its scorecard reads x0, which depends on the group; x1 hardly
counts.
"""

# %%
# Two informative columns; the mean of x0 depends on the group.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from commod import ControlledDebiaser
from commod.datasets import make_biased

old, rows, new = (
    make_biased(1000, n_features=2, n_informative=2, bias=1.5, random_state=seed)
    for seed in (1, 2, 3)
)
model = LogisticRegression().fit(old.data, old.target)
update = ControlledDebiaser(model, target=0.8, direction="gains_only", borderline=0)
update = update.fit(rows.data, rows.target, sensitive_features=rows.sensitive_features)
print(update.scorecard_)

# %%
# r and the base score on a grid.

x0, x1 = np.meshgrid(np.linspace(-4, 4, 200), np.linspace(-3.5, 3.5, 200))
grid = pd.DataFrame({"x0": x0.ravel(), "x1": x1.ravel()})
r = update.ratio(grid).reshape(x0.shape)
score = model.predict_proba(grid)[:, 1].reshape(x0.shape)
changes = update.changes(new.data)

plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
figure, ax = plt.subplots(figsize=(7, 5), layout="constrained")
ax.contourf(x0, x1, r, [-99, 0], colors=["#cfe6ee"])
ax.contour(x0, x1, r, [0], colors="#1f6f8b", linewidths=2.5)
ax.contour(x0, x1, score, [0.5], colors="black", linestyles="--", linewidths=1.5)
for group, marker, label in (("g0", "o", "advantaged group"), ("g1", "^", "disadvantaged group")):
    of_group = (new.sensitive_features == group).to_numpy()
    for chosen, color, size in ((~changes.gain, "#9aa5b1", 14), (changes.gain, "#c44536", 34)):
        people = new.data[of_group & chosen]
        name = label if size == 34 else None
        ax.scatter(people["x0"], people["x1"], size, color, marker=marker, label=name, linewidths=0)
ax.text(2.2, 2.8, "accepted", fontsize=14)
ax.text(0.5, -3.2, "rejected", fontsize=14)
ax.text(-3.9, -3.2, "r < 0: decisions change", color="#1f6f8b", fontsize=14)
figure.legend(loc="outside upper center", ncols=2, frameon=False, title="people who gain")
ax.set(xlabel="x0", ylabel="x1", xlim=(-4, 4), ylim=(-3.5, 3.5))
plt.show()
