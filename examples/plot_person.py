"""
Why did this person's decision change?
======================================

A scorecard answers for one person: which values moved r below zero? The waterfall starts at the r
of a mean person of the fit rows. Each bar is what one column of this person adds to r, compared
with the mean. The distance of the score from the threshold adds to r, too: near the threshold, a
change needs fewer points. The last value is the r of this person. It is below zero, so the
decision changes.

The person has the median r of people who gain among 1,851 evaluated rows of COMPAS. ``sentence``
says the same in words. It also names another value that alone would have kept the decision, if
there is one.
"""

# %%
# The update and the person.

import matplotlib.pyplot as plt
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

from commod import ControlledDebiaser, explain
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
why = explain(update, X.loc[test])
who_gains = why.gain.nonzero()[0]
median = who_gains[why.ratio[who_gains].argsort()[len(who_gains) // 2]]
person = why.person(int(median))
print(person.sentence)

# %%
# The columns in the order of their size.

parts = sorted(person.contributions, key=lambda part: -abs(part.points))
parts = [part for part in parts if abs(part.points) >= 0.005]

plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
figure, ax = plt.subplots(figsize=(7.4, 4.6), layout="constrained")
level = person.ratio - sum(part.points for part in parts)
names = ["mean person"]
box = {"facecolor": "white", "edgecolor": "none", "pad": 1}
ax.barh(0, level, color="#9aa5b1")
ax.text(level + 0.03, 0, f"{level:.2f}", va="center")
for place, part in enumerate(parts, start=1):
    down = part.points < 0
    ax.barh(place, part.points, left=level, color="#1f6f8b" if down else "#cc6677")
    ax.plot([level, level], [place - 1.4, place + 0.4], color="black", linewidth=0.8)
    edge = max(level, level + part.points) + 0.03
    ax.text(edge, place, f"{part.points:+.2f}".replace("-", "−"), va="center", bbox=box)
    level += part.points
    value = part.value if isinstance(part.value, str) else f"{part.value:.2g}"
    names.append(f"{part.column.removeprefix('c_')} = {value}")
ax.barh(len(names), level, color="black")
ax.text(0.03, len(names), f"r = {level:.2f}".replace("-", "−"), va="center", fontweight="bold")
ax.set_yticks(range(len(names) + 1), [*names, "this person"])
ax.invert_yaxis()
ax.axvline(0, color="black", linewidth=1)
ax.margins(x=0.12)
ax.set_xlabel("r: the decision changes below 0")
ax.tick_params(axis="y", length=0)
ax.spines["left"].set_visible(False)
plt.show()
