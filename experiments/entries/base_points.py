"""The black box and the segments."""

from __future__ import annotations

import pandas as pd

from experiments.entries.entry import FAILS, HOLDS, PARTLY, Entry, Frames
from experiments.markdown import NOTHING, number, spread, table
from experiments.methods import label_of
from experiments.paper import METRIC


def base_points(frames: Frames, base: str) -> Entry:
    """Say whether the black box and the quartiles are the paper's."""
    points, edges = frames["base_points"], frames["quartiles"]
    printed = points.dropna(subset="paper").drop_duplicates(["table", "figure", "paper"])
    near = (printed["mean"] - printed["paper"]).abs() <= 2 * printed["sd"]
    known = edges.dropna(subset="paper")
    gap = (known["ours"] - known["paper"]).abs()
    ours = f"{near.sum()} of {len(near)} base figures within two standard deviations over splits"
    status = PARTLY if near.all() and gap.max() > 0.05 else HOLDS if near.all() else FAILS
    verdict = (
        f"{ours}; the quartiles of the sweeps differ by {gap.mean():.3f} on average and by up to "
        f"{gap.max():.3f}."
    )
    why = (
        "Quartiles are those of a sweep, and the paper does not print the sweeps of AdvDebias, LPP "
        "and ROC, so that ours are others. That is why Table 1 and Figure 1 take the paper's own "
        "edges where it prints them, and why the deciding table needs no edges at all."
    )
    return Entry(
        "Black box and quartiles",
        "Fairness and accuracy of the logistic regression; the segments are quartiles of AdvDebias",
        "see tables",
        ours,
        status,
        verdict,
        (_base_table(points), why, _edge_table(edges)),
    )


def _base_table(points: pd.DataFrame) -> str:
    lines = []
    for (name, notion), part in points.groupby(["table", "notion"], sort=False):
        by = part.set_index("figure")
        cells = [
            cell
            for figure in ("fairness", "accuracy")
            for cell in (
                number(by.loc[figure, "paper"], 4),
                spread(by.loc[figure, "mean"], by.loc[figure, "sd"]),
            )
        ]
        lines.append([f"{name}, {METRIC[str(notion)]}", *cells])
    header = ["black box", "fairness, paper", "ours", "accuracy, paper", "ours"]
    return table(header, lines)


def _edge_table(edges: pd.DataFrame) -> str:
    lines = []
    keys = ["table", "notion", "method"]
    for (name, notion, method), part in edges.groupby(keys, sort=False):
        cells = []
        for figure in ("fairness", "accuracy"):
            these = part[part["figure"] == figure]
            for column in ("paper", "ours"):
                values = [number(value, 3) for value in these[column]]
                cells.append(NOTHING if these[column].isna().all() else " / ".join(values))
        lines.append([f"{name}, {METRIC[str(notion)]}: {label_of(str(method))}", *cells])
    header = ["inner edges of", "fairness, paper", "ours", "accuracy, paper", "ours"]
    return table(header, lines)
