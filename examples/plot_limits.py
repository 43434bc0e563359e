"""
How few changes are possible, for each constraint
=================================================

``commod.bounds`` computes limits: the fewest changes that reach a target on given rows, whoever
decides and whatever they know. No fit is needed, so a limit can be read before any project
begins.

The base decisions are those of a model on 1,851 people of COMPAS whom it has not seen. Left: the
P-rule of "low risk", in any direction, with gains only and with losses only. Right: two
constraints that compare gaps. A curve begins where the base model keeps the target no longer.
Exact parity, beyond the right end, can be much dearer.
"""

# %%
# Decisions of the base model, and the limits for many targets.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

from commod.bounds import minimal_changes
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
decisions = model.predict(X.loc[test])
request = {"sensitive_features": race[test], "y_true": y[test], "pos_label": 0}


def fewest(target, **settings):
    """Return the fewest changes as a share of all decisions."""
    return minimal_changes(decisions, target=target, **request, **settings).rate


ratios, gaps = np.linspace(0.7, 0.98, 29), np.linspace(0.02, 0.4, 39)
curves = {
    "any direction": [fewest(ratio) for ratio in ratios],
    "gains only": [fewest(ratio, direction="gains_only") for ratio in ratios],
    "losses only": [fewest(ratio, direction="losses_only") for ratio in ratios],
}
errors = {
    "equalized odds (DM)": [fewest(gap, constraints="equalized_odds") for gap in gaps],
    "true positive rates": [fewest(gap, constraints="true_positive_rate_parity") for gap in gaps],
}

# %%
# What fairness costs at least.

plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 4.4), sharey=True, layout="constrained")
styles = (
    ("#c8cdd3", "-"),
    ("#1f6f8b", "--"),
    ("#c44536", ":"),
    ("#aa4499", "-"),
    ("#117733", "--"),
)
panels = [(left, ratios, name, values) for name, values in curves.items()]
panels += [(right, gaps, name, values) for name, values in errors.items()]
for (ax, targets, name, values), (color, line) in zip(panels, styles, strict=True):
    ax.plot(
        targets,
        values,
        line,
        color=color,
        linewidth=9 if name == "any direction" else 3,
        label=name,
    )
left.set_xlabel("P-rule of “low risk”\n(fairer →)")
left.set_ylabel("fewest changes possible")
right.set_xlabel("largest gap allowed\n(fairer →)")
right.invert_xaxis()
left.yaxis.set_major_formatter("{x:.0%}")
for ax in (left, right):
    ax.legend(frameon=False, loc="upper left")
    ax.set_ylim(0)
plt.show()
