"""Draw one picture per method into docs/images/methods.

Each method is fitted on the training rows of the first split of Law School and drawn on its test
rows. Run `PYTHONPATH=. python scripts/draw_gallery.py`; names after it draw these methods only.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pandas as pd
from experiments.methods import every_method, makeable, with_own_base
from experiments.paper import DP, LAW_SCHOOL
from experiments.pictures.style import RC, percent
from experiments.protocol import Split, make_split, quietly
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image
from sklearn.utils import get_tags

from commod import Frontier, frontier

FOLDER = Path(__file__).parents[1] / "docs" / "images" / "methods"
NOTIONS = (DP, "true_positive_rate_parity", "equalized_odds")
TARGET = 0.8  # P-rule; a method that does not know it gets a quarter of the base gap
N_BINS = 20
GAIN, LOSS, GREY = "#0072B2", "#D55E00", "#999999"


def main(names: list[str]) -> None:
    """Draw the pictures of the named methods, or of all."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    split = make_split(LAW_SCHOOL, 0)
    for name in names or every_method():
        notion = next(notion for notion in NOTIONS if name in makeable(notion))
        rows, update = with_own_base(name, split, notion)
        with quietly():
            curve = frontier(update, **rows.fit_rows, **rows.test_rows, describe=False)
        with matplotlib.rc_context(RC):
            _save(_draw(name, rows, curve, notion), FOLDER / f"{file_name(name)}.png")
        print(name, flush=True)


def file_name(method: str) -> str:
    """Return a method's name as a file name.

    Examples
    --------
    >>> file_name("LPP (aware)")
    'lpp_aware'
    """
    return method.lower().replace(" (aware)", "_aware")


def _draw(name: str, rows: Split, curve: Frontier, notion: str) -> Figure:
    figure = Figure(figsize=(9.0, 2.6), layout="constrained", dpi=80)
    people, changes, accuracy = figure.subplots(1, 3)
    frame = curve.frame()
    target = TARGET if notion == DP else 0.25 * curve.base_fairness
    with quietly():
        _draw_people(people, rows, curve.select(target=target))
    words = "P-rule" if notion == DP else curve_words(notion)
    for ax, values in ((changes, "change_rate"), (accuracy, "accuracy")):
        ax.plot(frame["fairness"], frame[values], "o", color=GAIN, markersize=3.5)
        ax.set_xlabel(f"{words}\nfairer {'→' if notion == DP else '←'}")
    limits = frame.sort_values("fairness")
    changes.plot(limits["fairness"], limits["limit"], color="black", linewidth=1.2)
    changes.set_title("changes (line: exact limit)")
    percent(changes.yaxis)
    accuracy.axhline(curve.base_accuracy, color="black", linewidth=1.2)
    accuracy.set_title("accuracy (line: base model)")
    figure.suptitle(name, x=0.01, ha="left", fontweight="bold")
    return figure


def curve_words(notion: str) -> str:
    """Return a notion of fairness as a label of an axis."""
    return "gap of true positive rates" if notion.startswith("true") else "DM"


def _draw_people(ax: Axes, rows: Split, update: Any) -> None:
    """Draw how many people gain and lose at each base score, per group as light and dark bars."""
    groups = np.asarray(rows.test.s)
    known = {"sensitive_features": rows.test.s} if get_tags(update).needs_sensitive_features else {}
    changes = update.changes(rows.test.X, **known)
    score = rows.model.predict_proba(rows.test.X)[:, 1]
    edges = np.linspace(0, 1, N_BINS + 1)
    bottom = np.zeros((2, N_BINS))
    for group, strong in zip(pd.unique(groups), (1.0, 0.45), strict=False):
        for side, (who, color) in enumerate(((changes.gain, GAIN), (changes.loss, LOSS))):
            counts = np.histogram(score[who & (groups == group)], edges)[0] * (1 - 2 * side)
            ax.bar(edges[:-1], counts, 1 / N_BINS, bottom[side], align="edge", color=color,
                   alpha=strong)  # fmt: skip
            bottom[side] += counts
    ax.axhline(0, color="black", linewidth=0.8)
    ax.set_title(f"{changes.n_gains} gain, {changes.n_losses} lose")
    ax.set_xlabel("base score")


def _save(figure: Figure, path: Path) -> None:
    """Write a small PNG with few colours."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png")
    Image.open(drawn).convert("RGB").quantize(32).save(path, optimize=True)


if __name__ == "__main__":
    main(sys.argv[1:])
