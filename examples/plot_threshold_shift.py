"""
Why not simply lower the threshold?
===================================

A lower threshold for everybody also raises the P-rule: nearly all are accepted in the end. It is
blind to the group, too. But most people who gain belong to the group that was better off
already, so far more decisions must change.

Left: changes against the P-rule on 1,500 evaluated rows, for a threshold that is lowered step by
step and for updates along targets. Right: who gains at the first step that reaches a P-rule of
0.8.
"""

# %%
# A frontier of updates, and 40 lower thresholds.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from commod import ControlledDebiaser, frontier, metrics
from commod.datasets import make_biased

old, rows, new = (make_biased(1500, bias=1.2, random_state=seed) for seed in (1, 2, 3))
model = LogisticRegression().fit(old.data, old.target)
group = new.sensitive_features
curve = frontier(
    ControlledDebiaser(model, direction="gains_only"),
    rows.data,
    rows.target,
    sensitive_features=rows.sensitive_features,
    targets=np.linspace(0.5, 0.95, 10),
    X_eval=new.data,
    y_eval=new.target,
    sensitive_features_eval=group,
)
score, base = model.predict_proba(new.data)[:, 1], model.predict(new.data)
lowered = [(score > threshold).astype(int) for threshold in np.linspace(0.5, 0.02, 40)]
shift_fair = np.array([metrics.p_rule(None, each, sensitive_features=group) for each in lowered])
shift_changes = np.array([metrics.change_rate(base, each) for each in lowered])

# %%
# Changes against fairness, and who gains.

frame = curve.frame()
decided = {
    "lower\nthreshold": lowered[int(np.argmax(shift_fair >= 0.8))],
    "update": curve.select(target=0.8).predict(new.data),
}

plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
figure, (left, right) = plt.subplots(
    1, 2, figsize=(8, 4.4), width_ratios=(3, 2), layout="constrained"
)
left.plot(shift_fair, shift_changes, "s-", color="#9aa5b1", label="lower threshold", markersize=6)
left.plot(frame["fairness"], frame["change_rate"], "o", color="#1f6f8b", label="updates")
left.axvline(0.8, color="black", linestyle=":")
left.yaxis.set_major_formatter("{x:.0%}")
left.set_xlabel("P-rule (fairer →)")
left.set_ylabel("decisions changed")
left.legend(frameon=False, loc="upper left")
start = np.zeros(2)
for own, color, name in (("g1", "#cc6677", "disadvantaged"), ("g0", "#4477aa", "advantaged")):
    counts = [int(((each != base) & (group == own)).sum()) for each in decided.values()]
    right.bar(list(decided), counts, 0.6, start, color=color, label=name)
    start += counts
for place, total in enumerate(start):
    right.text(place, total + 6, f"{total:.0f}", ha="center", fontsize=14)
right.set_ylabel("people who gain")
figure.legend(*right.get_legend_handles_labels(), loc="outside upper right", ncols=2, frameon=False)
plt.show()
