"""Draw the two pictures of the site's front page: docs/images/site/points.png and rates.png.

Run ``python scripts/draw_site.py``. The update is the one of docs/index.md, and the rates are
measured on people whom neither the model nor the update saw.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

from commod import ControlledDebiaser
from commod.datasets import load_compas
from commod.metrics import group_rates, p_rule

FOLDER = Path(__file__).parents[1] / "docs" / "images" / "site"
LOSS, GAIN, BEFORE = "#5b6770", "#0072b2", "#b9c2c9"


def fitted() -> tuple[Any, Any, Any, Any, Any]:
    """Return model, update and the held-out rows: X, y and group."""
    people = load_compas()
    X, y = people.data, people.target
    race = people.race.where(people.race == "African-American", "others")
    old, new = train_test_split(X.index, test_size=0.6, random_state=0)
    edit, test = train_test_split(new, test_size=0.5, random_state=0)
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
        remainder=MinMaxScaler(),
    )
    model = make_pipeline(encode, LogisticRegression(max_iter=1000)).fit(X.loc[old], y[old])
    update = ControlledDebiaser(
        model,
        target=0.8,
        favorable_label=0,
        direction="gains_only",
        max_margin=0.2,
        points="integers",
        max_lines=5,
        locked_features=["c_charge_desc"],
    ).fit(X.loc[edit], y[edit], sensitive_features=race[edit])
    return model, update, X.loc[test], y[test], race[test]


def draw_points(ax: Any, update: Any) -> None:
    """Draw the scorecard as bars, in its own order."""
    names, points = zip(*update.scorecard_.rows(), strict=True)
    places = range(len(names))
    ax.barh(places, points, color=[GAIN if p > 0 else LOSS for p in points], height=0.62)
    for place, number in zip(places, points, strict=True):
        side = 0.25 if number > 0 else -0.25
        ax.text(
            number + side,
            place,
            f"{number:+.0f}",
            va="center",
            ha="left" if number > 0 else "right",
        )
    ax.set_yticks(places, names)
    ax.invert_yaxis()
    ax.axvline(0, color="black", linewidth=0.8)
    ax.margins(x=0.18)
    ax.set_xticks([])
    ax.set_title("The update is a table of points", loc="left", fontsize=12, fontweight="bold")
    start, rule = update.scorecard_.intercept, update.scorecard_.rule
    cut = rule.cut * rule.fixed_cost
    ax.set_xlabel(f"Start at {start:+g}. Above {cut:.2g} at the threshold: low risk.", loc="right")


def draw_rates(ax: Any, model: Any, update: Any, X: Any, y: Any, race: Any) -> None:
    """Draw the rate of the favourable decision of each group, before and after."""
    p_rules = []
    for shift, (decided, colour) in enumerate(((model, BEFORE), (update, GAIN))):
        decisions = decided.predict(X)
        rates = group_rates(y, decisions, sensitive_features=race, pos_label=0)
        p_rules.append(p_rule(y, decisions, sensitive_features=race, pos_label=0))
        for place, group in enumerate(sorted(rates)):
            rate = rates[group]["selection_rate"]
            ax.bar(place + 0.4 * shift, rate, width=0.36, color=colour)
            ax.text(place + 0.4 * shift, rate + 0.012, f"{rate:.0%}", ha="center")
    ax.set_xticks([0.2, 1.2], sorted(rates))
    ax.set_yticks([])
    ax.set_ylim(0, 0.85)
    ax.set_title("Called low risk, before and after", loc="left", fontsize=12, fontweight="bold")
    ax.set_xlabel(
        f"P-rule {p_rules[0]:.2f} → {p_rules[1]:.2f} on {len(X):,} held-out people", loc="left"
    )


def main() -> None:
    """Fit, draw and write the pictures."""
    model, update, X, y, race = fitted()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in ("points", "rates"):
        figure, ax = plt.subplots(figsize=(5.2, 3.4), layout="constrained")
        if name == "points":
            draw_points(ax, update)
        else:
            draw_rates(ax, model, update, X, y, race)
        ax.spines[:].set_visible(False)
        ax.spines["bottom"].set_visible(name == "rates")
        ax.tick_params(length=0)
        figure.savefig(FOLDER / f"{name}.png", dpi=150)


if __name__ == "__main__":
    main()
