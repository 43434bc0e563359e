"""
Whole numbers that people can add up
====================================

With ``points="integers"``, all points are whole numbers and numeric columns are in bins, as in
clinical scores. A person adds them up and compares the sum with what a gain needs at this score.
That form has a price: it can need more changes than free points with as many lines.

Both scorecards give "low risk" only, within 0.2 of the threshold, and have at most eight lines.
The target holds on the 1,850 fit rows of COMPAS. The titles count the people who gain among the
fit rows.
"""

# %%
# The same request, once with whole numbers and once with free points.

import matplotlib.pyplot as plt
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

from commod import ControlledDebiaser
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
updates = {}
for points in ("integers", "per bin"):
    update = ControlledDebiaser(
        model,
        target=0.8,
        favorable_label=0,
        direction="gains_only",
        max_margin=0.2,
        points=points,
        max_lines=8,
        target_on="fit_rows",
        locked_features=["c_charge_desc"],
    )
    updates[points] = update.fit(X.loc[fit], y[fit], sensitive_features=race[fit])
print(updates["integers"].scorecard_)
price = updates["integers"].change_rate_ / updates["per bin"].change_rate_
print(f"price of whole numbers: {price:.2f} times the changes")

# %%
# Two scorecards side by side.

plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
figure, axes = plt.subplots(2, 1, figsize=(7, 7.4), layout="constrained")
names = {"integers": "whole numbers", "per bin": "free points"}
for ax, (points, update) in zip(axes, updates.items(), strict=True):
    terms = sorted(update.scorecard_.rows(), key=lambda term: -term[1])
    values = [value for _, value in terms]
    bars = ax.barh(
        [name for name, _ in terms], values, color="#1f6f8b" if points == "integers" else "#9aa5b1"
    )
    form = "{:+.0f}" if points == "integers" else "{:+.2f}"
    ax.bar_label(bars, [form.format(value) for value in values], padding=4)
    ax.axvline(0, color="black", linewidth=1)
    ax.margins(x=0.16)
    ax.set_title(f"{names[points]}: {update.n_gains_} gain", loc="left")
    ax.tick_params(axis="y", length=0)
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.set_xticks([])
plt.show()
