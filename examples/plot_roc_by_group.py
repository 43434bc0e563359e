"""
ROC curves by group, and the area between them
==============================================

A score can rank people well in one group and badly in another. ABROCA is the area between the
ROC curves of two groups, over all thresholds. A small value can be chance: on few people, two
equal curves never look equal.

The base model reads the age, the record and the charge of COMPAS. Both curves and the area are
measured on 1,851 people whom the model has not seen. The text in the picture puts the area
beside its 95 % interval, and beside what chance alone would give. Here chance alone explains the
area.
"""

# %%
# No update is needed to compare curves: only scores, labels and groups.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_curve
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

from commod import metrics
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
score = model.predict_proba(X.loc[test])[:, 1]
compared = metrics.compare_roc_curves(y[test], score, sensitive_features=race[test])
print(compared.by_group)
print(compared.largest)

# %%
# The two curves and the area.

plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
figure, ax = plt.subplots(figsize=(6.4, 5.2), layout="constrained")
grid = np.linspace(0, 1, 400)
curves = []
for group, color, line in (("African-American", "#4477aa", "-"), ("others", "#cc6677", "--")):
    own = (race[test] == group).to_numpy()
    fpr, tpr, _ = roc_curve(y[test][own], score[own])
    curves.append(np.interp(grid, fpr, tpr))
    label = f"{group}: AUC {compared.by_group[group].value:.2f}"
    ax.plot(fpr, tpr, line, color=color, linewidth=2.5, label=label)
ax.fill_between(grid, *curves, color="#ddcc77", alpha=0.8, label="ABROCA", zorder=0)
ax.plot([0, 1], [0, 1], ":", color="black", linewidth=1)
area = compared.largest
text = (
    f"ABROCA {area.value:.3f}\n95% interval {area.low:.3f} to {area.high:.3f}\n"
    f"by chance {area.chance:.3f}"
)
ax.text(0.45, 0.3, text, va="top")
ax.legend(loc="lower right", frameon=False, bbox_to_anchor=(1, -0.01), fontsize=11)
ax.set(xlabel="false positive rate", ylabel="true positive rate", xlim=(0, 1), ylim=(0, 1))
plt.show()
