"""Draw docs/images/simpson.png: who changes under parity overall and within departments.

PYTHONPATH=.:benchmarks .venv/bin/python scripts/draw_simpson.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from benchmarks.admissions import make_applicants
from simpson import OVERALL, WITHIN, fit_asked

IMAGE = Path(__file__).parents[1] / "docs" / "images" / "simpson.png"
COLORS = {"men": "#4477aa", "women": "#cc6677"}
PEOPLE = (-25, 110)  # limits of the axis of changes


def main() -> None:
    """Draw admission rates, and the changes of both updates, by department."""
    X, sex = make_applicants()
    admitted = (X["score"] > 0.5).to_numpy()
    figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.2), sharey=True, layout="constrained")
    _draw_rates(axes[0], X, sex, admitted)
    for axis, constraint, name in zip(
        axes[1:], (OVERALL, WITHIN), ("over all departments", "within departments"), strict=True
    ):
        _, changes = fit_asked(X, sex, constraint)
        _draw_changes(axis, X, sex, changes)
        axis.set_title(f"P-rule ≥ 0.8 {name}", fontsize=10, loc="left")
    figure.savefig(IMAGE, dpi=110)
    print(IMAGE)


def _draw_rates(axis: Any, X: Any, sex: Any, admitted: Any) -> None:
    """Draw the share of men and of women whom the base model admits; the first line is all."""
    places = ["all", *sorted(X["department"].unique())]
    for group, color in COLORS.items():
        of_group = (sex == group).to_numpy()
        rates = [
            admitted[of_group & ((X["department"] == place) | (place == "all")).to_numpy()].mean()
            for place in places
        ]
        axis.plot(rates, range(len(places)), "o", color=color, label=group)
    axis.set_yticks(range(len(places)), places)
    axis.invert_yaxis()
    axis.axhline(0.5, color="#bbbbbb", linewidth=0.8)
    axis.set_xlim(0, 1)
    axis.set_xlabel("share admitted")
    axis.set_ylabel("department")
    axis.set_title("before", fontsize=10, loc="left")
    axis.legend(frameon=False)


def _draw_changes(axis: Any, X: Any, sex: Any, changes: Any) -> None:
    """Draw gains to the right and losses to the left, one bar for each sex and department."""
    departments = sorted(X["department"].unique())
    for shift, (group, color) in zip((-0.2, 0.2), COLORS.items(), strict=True):
        for sign in (1, -1):
            chosen = (sex == group).to_numpy() & (changes == sign)
            places = ["all", *departments]
            counts = [
                sign * int((chosen & ((X["department"] == one) | (one == "all")).to_numpy()).sum())
                for one in places
            ]
            axis.barh(np.arange(len(places)) + shift, counts, 0.4, color=color)
    axis.axvline(0, color="black", linewidth=0.8)
    axis.axhline(0.5, color="#bbbbbb", linewidth=0.8)
    axis.set_xlim(*PEOPLE)
    axis.set_xlabel("people: losses ← → gains")


if __name__ == "__main__":
    main()
