"""
A first update in one picture
=============================

The base model predicts who reoffends (COMPAS). It gives "low risk" less often to
African-American people than to others. The update may only give "low risk", never take it away,
and only where the score is within 0.2 of the threshold. Its target is a P-rule of "low risk" of
at least 0.8 for new people.

The picture shows 1,851 evaluated rows, which neither the base model nor the update has seen.
Grey bars count people by base score. Coloured bars are the people whose decision changes from
"high risk" to "low risk". The update does not see the group when it decides.
"""

# %%
# The base model, the update and the figures use three separate parts of the table.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

from commod import ControlledDebiaser, metrics
from commod.datasets import load_compas

people = load_compas()
X, y = people.data, people.target
race = people.race.where(people.race == "African-American", "others")
old, new = train_test_split(X.index, test_size=0.6, random_state=0)
fit, test = train_test_split(new, test_size=0.5, random_state=0)
encode = make_column_transformer(
    (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    remainder=MinMaxScaler(),
)
model = make_pipeline(encode, LogisticRegression(max_iter=1000)).fit(X.loc[old], y[old])

# %%
# Label 0 means "low risk", which is favourable.

update = ControlledDebiaser(
    model, target=0.8, favorable_label=0, direction="gains_only", max_margin=0.2
)
update = update.fit(X.loc[fit], y[fit], sensitive_features=race[fit])
print(update.status_)

# %%
# Who changes along the base score, on the evaluated rows.

score = model.predict_proba(X.loc[test])[:, 1]
changes = update.changes(X.loc[test])
before, after = (
    metrics.p_rule(None, decisions, sensitive_features=race[test], pos_label=0)
    for decisions in (model.predict(X.loc[test]), update.predict(X.loc[test]))
)

plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
colors = {"African-American": "#4477aa", "others": "#cc6677"}
figure, axes = plt.subplots(2, 1, figsize=(7, 5.2), sharex=True, sharey=True, layout="constrained")
edges = np.linspace(0, 1, 31)
for ax, (group, color) in zip(axes, colors.items(), strict=True):
    of_group = (race[test] == group).to_numpy()
    ax.hist(score[of_group], edges, color="#d5dae0")
    ax.hist(score[of_group & changes.gain], edges, color=color)
    ax.axvline(0.5, color="black", linewidth=1)
    n_gains = int((of_group & changes.gain).sum())
    ax.set_title(f"{group}: {n_gains} of {of_group.sum():,} gain", loc="left", color=color)
    ax.set_ylabel("people")
    ax.text(0.02, 0.85, "← low risk", transform=ax.transAxes)
    ax.text(0.98, 0.85, "high risk →", transform=ax.transAxes, ha="right")
axes[1].set_xlabel("base score: predicted probability of reoffending")
figure.suptitle(f"P-rule of “low risk” {before:.2f} → {after:.2f}, nobody loses")
plt.show()
