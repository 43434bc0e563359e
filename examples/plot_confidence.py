"""
What a promise costs
====================

By default a target is expected on new people, so about half of all samples fall below it. With
``confidence``, the target is promised: updates are fitted on one half of the rows, and the other
half tests them. A promise is stricter, so it needs more changes.

Each mark is one update of the same base model. Its P-rule and its changes are measured on 20,000
evaluated rows, so chance hardly plays a part. The target is 0.8. The higher the confidence, the
further the update goes beyond it. If the rows are too few for a promise, ``promised_`` is False
and ``status_`` says so.
"""

# %%
# On the fit rows, in expectation, and promised.

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression

from commod import ControlledDebiaser, metrics
from commod.datasets import make_biased

old, rows = (make_biased(3000, random_state=seed) for seed in (1, 2))
new = make_biased(20_000, random_state=3)
model = LogisticRegression().fit(old.data, old.target)
requests = {
    "on the fit rows": {"target_on": "fit_rows"},
    "expected (default)": {},
    "promised, confidence 0.8": {"confidence": 0.8},
    "promised, confidence 0.95": {"confidence": 0.95},
}
fair, changes = [], []
for name, request in requests.items():
    update = ControlledDebiaser(model, target=0.8, **request)
    update = update.fit(rows.data, rows.target, sensitive_features=rows.sensitive_features)
    print(f"{name}: promised {update.promised_}")
    decided = update.predict(new.data)
    fair.append(metrics.p_rule(None, decided, sensitive_features=new.sensitive_features))
    changes.append(metrics.change_rate(model.predict(new.data), decided))

# %%
# Fairness for many new people, and its price.

plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
ax.axvspan(0.8, 1, color="#e8f1ec")
ax.axvline(0.8, color="black", linestyle=":")
ax.text(0.803, 0.02, "target kept →", transform=ax.get_xaxis_transform())
looks = zip(
    requests, fair, changes, ("#c44536", "#5b6672", "#2f7f9b", "#1f6f8b"), "sDo^", strict=True
)
for name, value, share, color, marker in looks:
    ax.plot(value, share, marker, color=color, markersize=15)
    place = (14, -5) if value > 0.8 else (-14, -5)
    side = "left" if value > 0.8 else "right"
    ax.annotate(name, (value, share), place, textcoords="offset points", color=color, ha=side)
ax.set_xlim(0.7, 1)
ax.margins(y=0.3)
ax.yaxis.set_major_formatter("{x:.1%}")
ax.set_xlabel("P-rule of 20,000 evaluated rows (fairer →)")
ax.set_ylabel("decisions changed")
plt.show()
