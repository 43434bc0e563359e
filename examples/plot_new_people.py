"""
A target on the fit rows is often missed by new people
======================================================

An update that just reaches its target on the fit rows mostly misses it on new people: its points
also fit the chance in these rows. So ``ControlledDebiaser`` states the target for new people by
default: it is then expected to hold.

Each dot is an update that was fitted on another sample of 600 fit rows. All P-rules are measured
on the same 5,000 new people. With ``target_on="fit_rows"``, new people fall short of 0.8 on
average. With the default, the mean is about 0.8. Single updates are still below: an expectation
is an average, and no guarantee. ``confidence=0.95`` makes a promise instead.
"""

# %%
# 20 samples of fit rows from one population with 20 columns. Every column gets points.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from commod import ControlledDebiaser, metrics
from commod.datasets import make_biased

old = make_biased(1500, n_features=20, random_state=0)
new = make_biased(5000, n_features=20, random_state=1)
model = LogisticRegression().fit(old.data, old.target)
measured = {"fit_rows": [], "new_rows": []}
for seed in range(2, 22):
    rows = make_biased(600, n_features=20, random_state=seed)
    for target_on, values in measured.items():
        update = ControlledDebiaser(
            model,
            target=0.8,
            target_on=target_on,
            borderline=0,
            max_lines=None,
        )
        update = update.fit(rows.data, rows.target, sensitive_features=rows.sensitive_features)
        decisions = update.predict(new.data)
        values.append(metrics.p_rule(None, decisions, sensitive_features=new.sensitive_features))

# %%
# One dot per update, and the mean as a bar.

plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
jitter = np.random.default_rng(0).uniform(-0.16, 0.16, 20)
for place, (values, color, marker) in enumerate(
    zip(measured.values(), ("#c44536", "#1f6f8b"), "so", strict=True)
):
    ax.plot(values, place + jitter, marker, color=color, alpha=0.75, markersize=8)
    mean, n_reached = np.mean(values), sum(value >= 0.8 for value in values)
    ax.plot([mean, mean], [place - 0.3, place + 0.3], color="black", linewidth=3)
    text = f"mean {mean:.2f}, {n_reached} of 20 reach 0.8"
    ax.text(mean, place - 0.34, text, ha="center", va="bottom")
ax.axvline(0.8, color="black", linestyle=":")
ax.set_yticks([0, 1], ["target on\nthe fit rows", "target on\nnew people\n(default)"])
ax.set_ylim(1.45, -0.6)
ax.set_xlabel("P-rule of 5,000 new people (fairer →)")
plt.show()
