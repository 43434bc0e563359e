"""
A scorecard is a short list of points
=====================================

An update is a scorecard: a few terms with points. The points are evidence about the groups that
the constraint compares. They are added up, and a person gains where the sum is above a stated
number. Bars to the right push towards a gain, bars to the left against it. Categories with equal
points are one line; the scorecard has at most 12 lines.

The update was fitted on 1,850 fit rows of COMPAS. It may only give "low risk", so the scorecard
acts on people with "high risk" alone. The title has the sum that a score at the threshold needs.
The label of a numeric column says for how many units its bar is drawn.
"""

# %%
# The base model is fitted on other people than the update.

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
update = ControlledDebiaser(
    model, target=0.8, favorable_label=0, direction="gains_only", max_margin=0.2
)
update = update.fit(X.loc[fit], y[fit], sensitive_features=race[fit])
print(f"{update.n_gains_} of {update.n_rows_:,} fit rows gain")
print(update.scorecard_)

# %%
# ``rows`` lists the terms with their points.

units = {"age": 10, "priors_count": 5, "juv_misd_count": 1}
terms = {
    f"{name}, per {units[name]}" if name in units else name: points * units.get(name, 1)
    for name, points in update.scorecard_.rows()
}
terms = dict(sorted(terms.items(), key=lambda term: -term[1]))

plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
figure, ax = plt.subplots(figsize=(7.6, 5), layout="constrained")
colors = ["#1f6f8b" if points > 0 else "#9aa5b1" for points in terms.values()]
ax.barh(
    [name.replace("c_charge_desc =", "charge:") for name in terms],
    list(terms.values()),
    color=colors,
)
ax.axvline(0, color="black", linewidth=1)
ax.set_xlabel("points: towards “low risk” →")
card = update.scorecard_
needed = card.rule.cut * card.rule.fixed_cost
ax.set_title(f"start {card.intercept:+.2f}; needed {needed:.2f}", loc="left")
ax.spines["left"].set_visible(False)
ax.tick_params(axis="y", length=0)
plt.show()
