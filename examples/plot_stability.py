"""
Would other fit rows change other people?
=========================================

An update is fitted on a sample. ``commod.stability`` fits it again on random halves of the fit
rows, and counts how often each person's decision changes. A dark dot is a person who changes in
nearly every refit, a light one a person who changes in few.

The table has two columns, so all people fit into one plane. The picture shows 1,000 evaluated
rows and 12 refits. People far from the edge of r = 0 change always or never. Those near the edge
depend on the sample.
"""

# %%
# Twelve refits on halves of the fit rows; all of them decide on the same new people.

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression

from commod import ControlledDebiaser, stability
from commod.datasets import make_biased

old, rows, new = (
    make_biased(1000, n_features=2, n_informative=2, bias=1.5, random_state=seed)
    for seed in (1, 2, 3)
)
model = LogisticRegression().fit(old.data, old.target)
update = ControlledDebiaser(model, target=0.8, direction="gains_only", target_on="fit_rows")
stable = stability(
    update,
    rows.data,
    rows.target,
    sensitive_features=rows.sensitive_features,
    X_eval=new.data,
    sensitive_features_eval=new.sensitive_features,
    n_refits=12,
    random_state=0,
)
print(f"two refits share {stable.agreement:.0%} of the people whom they change")

# %%
# How often each person changes.

plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
figure, ax = plt.subplots(figsize=(7, 4.8), layout="constrained")
never = stable.change_share == 0
ax.scatter(new.data["x0"][never], new.data["x1"][never], 12, "#d5dae0", linewidths=0)
ever = new.data[~never]
points = ax.scatter(
    ever["x0"], ever["x1"], 40, stable.change_share[~never], cmap="viridis_r", vmin=0, vmax=1,
    linewidths=0,
)  # fmt: skip
figure.colorbar(points, label="refits that change the person", format="{x:.0%}")
ax.set(xlabel="x0", ylabel="x1")
ax.set_title(f"two refits share {stable.agreement:.0%} of the people they change", loc="left")
plt.show()
