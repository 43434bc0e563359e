"""
Somebody objects to a term: edits by hand
=========================================

People can read a scorecard, so they can object to it. ``update.edit`` changes points after the
fit: here age is locked, and an arrest without a charge gets no points. ``refit=True`` fits the
other terms again, so that the target still holds.

Each mark is the points of a category, or of a numeric column for one standard deviation. Points
are divided by the largest of their scorecard, so that both scorecards can be compared. The
edits, the refits and the counts in the title belong to 1,850 fit rows of COMPAS. Every edit is
kept in a record with a name and a reason.
"""

# %%
# The update before the objections.

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
rows = {"X": X.loc[fit], "y": y[fit], "sensitive_features": race[fit]}
first = ControlledDebiaser(
    model, target=0.8, favorable_label=0, direction="gains_only", max_margin=0.2
).fit(**rows)

# %%
# Two objections, each with a refit.

ageless = first.edit(
    {"age": "lock", "age_cat": "lock"}, **rows, refit=True, by="Ann", note="age is off limits"
)
charge = "c_charge_desc = arrest case no charge"
final = ageless.edit({charge: 0}, **rows, refit=True, by="Ben", note="nobody was charged")
for record in final.edits_:
    print(f"{record.by}: {record.note}")

# %%
# Points before and after.

scale = X.loc[fit].std(numeric_only=True).to_dict()
before, after = (
    {name: points * scale.get(name, 1) for name, points in update.scorecard_.rows()}
    for update in (first, final)
)
for terms in (before, after):
    largest = max(map(abs, terms.values()))
    terms.update({name: points / largest for name, points in terms.items()})
names = sorted({*before, *after}, key=lambda name: before.get(name, 0))

plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
figure, ax = plt.subplots(figsize=(7.6, 5.4), layout="constrained")
for place, name in enumerate(names):
    start, end = before.get(name, 0), after.get(name, 0)
    ax.plot([start, end], [place, place], color="#9aa5b1", linewidth=2, zorder=1)
ax.plot(
    [before.get(n, 0) for n in names],
    range(len(names)),
    "o",
    color="#9aa5b1",
    markersize=10,
    label="before",
)
ax.plot(
    [after.get(n, 0) for n in names],
    range(len(names)),
    "D",
    color="#1f6f8b",
    markersize=8,
    label="after both edits",
)
ax.set_yticks(range(len(names)), [name.replace("c_charge_desc =", "charge:") for name in names])
for label, name in zip(ax.get_yticklabels(), names, strict=True):
    label.set_color("#c44536" if name.startswith("age") or name == charge else "black")
ax.axvline(0, color="black", linewidth=1)
ax.set_xlabel("points: towards “low risk” →")
ax.set_title(f"red: contested; {first.n_gains_} → {final.n_gains_} gain", loc="left")
ax.legend(frameon=False, loc="lower right")
plt.show()
