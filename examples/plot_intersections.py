"""
Groups at the intersection of two columns
=========================================

A model can be fair by sex and fair by race, and unfair to women of one race. Pass both columns
as sensitive features: their intersections are then the groups.

Each square is the share of "low risk" in one intersection, on 1,851 evaluated rows of COMPAS.
The update may only give "low risk". Its target is a P-rule of 0.75 over all four intersections:
the darkest square has to come closer to the lightest one.
"""

# %%
# Four groups: sex by race. The update must not read the sex, so this column is locked.

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
groups = people.data[["sex"]].assign(race=race)
update = ControlledDebiaser(
    model, target=0.75, favorable_label=0, direction="gains_only", locked_features=["sex"]
)
update = update.fit(X.loc[fit], y[fit], sensitive_features=groups.loc[fit])
decisions = {"before": model.predict(X.loc[test]), "after": update.predict(X.loc[test])}

# %%
# Rates of "low risk" by intersection.

plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
figure, axes = plt.subplots(1, 2, figsize=(7.6, 4), layout="constrained")
for ax, (when, decided) in zip(axes, decisions.items(), strict=True):
    own = groups.loc[test]
    low = (decided == 0) * 1.0
    rates = own.assign(low=low).pivot_table(index="sex", columns="race", values="low")
    picture = ax.imshow(rates, cmap="cividis", vmin=0.3, vmax=1)
    for row in range(2):
        for column in range(2):
            rate = rates.iloc[row, column]
            ax.text(
                column, row, f"{rate:.0%}", ha="center", va="center", fontsize=20,
                color="white" if rate < 0.62 else "black",
            )  # fmt: skip
    fair = metrics.p_rule(None, decided, sensitive_features=own, pos_label=0)
    ax.set_title(f"{when}: P-rule {fair:.2f}")
    ax.set_xticks(range(2), rates.columns)
    ax.set_yticks(range(2), rates.index, rotation=90, va="center")
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
figure.suptitle("share of “low risk”")
plt.show()
