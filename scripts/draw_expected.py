"""Draw docs/images/expected.png: the P-rule of held-out people over many splits. Run from the root.

    .venv/bin/python scripts/draw_expected.py

The model, the parameters and the sizes of the parts are those of the README.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

from commod import ControlledDebiaser, metrics
from commod.datasets import load_compas

IMAGE = Path(__file__).parents[1] / "docs" / "images" / "expected.png"
SEEDS = range(200, 260)
TARGET = 0.8
NAMES = {"fit_rows": "target_on=“fit_rows”", "new_rows": "target_on=“new_rows”, the default"}


def measured_on_held_out(seed: int) -> dict[str, float]:
    """Return the P-rule of held-out people for both values of `target_on`, on one split."""
    people = load_compas()
    X, y = people.data, people.target
    race = people.race.where(people.race == "African-American", "others")
    old, new = train_test_split(X.index, test_size=0.6, random_state=seed)
    fit, test = train_test_split(new, test_size=0.5, random_state=seed)
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
        remainder=MinMaxScaler(),
    )
    model = make_pipeline(encode, LogisticRegression(max_iter=1000)).fit(X.loc[old], y[old])
    values = {}
    for target_on in NAMES:
        update = ControlledDebiaser(
            model,
            target=TARGET,
            target_on=target_on,
            favorable_label=0,
            direction="gains_only",
            max_margin=0.2,
        )
        update.fit(X.loc[fit], y[fit], sensitive_features=race[fit])
        after = update.predict(X.loc[test])
        values[target_on] = metrics.p_rule(
            y[test], after, sensitive_features=race[test], pos_label=0
        )
    return values


def main() -> None:
    """Print the shares of splits that reach the target, and draw both histograms."""
    warnings.simplefilter("ignore")
    splits = [measured_on_held_out(seed) for seed in SEEDS]
    figure, axes = plt.subplots(
        2, 1, figsize=(6.4, 3.6), sharex=True, sharey=True, layout="constrained"
    )
    edges = np.arange(0.68, 0.92, 0.01)
    for (target_on, name), axis in zip(NAMES.items(), axes, strict=True):
        values = np.array([split[target_on] for split in splits])
        n_reached = int((values >= TARGET).sum())
        print(
            f"{target_on}: mean {values.mean():.3f}, standard deviation {values.std(ddof=1):.3f}, "
            f"{n_reached} of {len(values)} reach {TARGET}"
        )
        axis.hist(values, edges, color="#4477aa")
        axis.axvline(TARGET, color="black", label="asked")
        axis.axvline(values.mean(), color="#cc3311", linestyle="--", label="mean")
        axis.set_title(f"{name}: {n_reached} of {len(values)} reach it", fontsize=10, loc="left")
        axis.set_ylabel("splits")
        axis.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes[0].legend(frameon=False)
    axes[1].set_xlabel("P-rule of “low risk” of held-out people")
    figure.savefig(IMAGE, dpi=110)
    print(IMAGE)


if __name__ == "__main__":
    main()
