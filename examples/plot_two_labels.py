"""
Which label is counted decides what is fair
===========================================

A P-rule divides the lowest group's rate by the highest one's. Every decision has two labels, so
there are two P-rules: of "low risk" and of "high risk". The same changes can raise one and
hardly move the other.

All updates here only give "low risk" (COMPAS, scores within 0.2 of the threshold). They differ
in the target for the P-rule of "low risk". Both P-rules are measured on 1,851 evaluated rows.
The P-rule of "low risk" rises. That of "high risk" hardly does. Say which label you count before
you state a target.
"""

# %%
# Five targets for the P-rule of label 0, "low risk".

import matplotlib.pyplot as plt
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
values = {0: [], 1: []}
shares = []
for target in (None, 0.75, 0.79, 0.83, 0.87):
    decisions = model.predict(X.loc[test])
    if target:
        update = ControlledDebiaser(
            model,
            target=target,
            favorable_label=0,
            direction="gains_only",
            max_margin=0.2,
            target_on="fit_rows",
        )
        update = update.fit(X.loc[fit], y[fit], sensitive_features=race[fit])
        decisions = update.predict(X.loc[test])
    shares.append(metrics.change_rate(model.predict(X.loc[test]), decisions))
    for label, found in values.items():
        found.append(
            metrics.p_rule(None, decisions, sensitive_features=race[test], pos_label=label)
        )

# %%
# Two P-rules of the same decisions.

plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
styles = {0: ("#1f6f8b", "o", "low risk"), 1: ("#c44536", "s", "high risk")}
for label, (color, marker, name) in styles.items():
    ax.plot(shares, values[label], marker=marker, color=color, linewidth=2.5, markersize=9)
    place = shares[-1], values[label][-1]
    ax.annotate(f"of “{name}”", place, (10, -4), textcoords="offset points", color=color)
ax.axhline(0.8, color="black", linewidth=1, linestyle=":")
ax.text(0, 0.805, "0.8", va="bottom")
ax.set_xlim(0, max(shares) * 1.28)
ax.xaxis.set_major_formatter("{x:.1%}")
ax.set_xlabel("decisions changed, all to “low risk” (evaluated rows)")
ax.set_ylabel("P-rule (fairer ↑)")
plt.show()
