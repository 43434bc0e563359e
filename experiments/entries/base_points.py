"""Entry: the black box and the segments."""

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
    count = f"{near.sum()} of {len(near)} base figures"
    status = PARTLY if near.all() and gap.max() > 0.05 else HOLDS if near.all() else FAILS
    verdict = (
        f"{count} lie within two standard deviations (over splits) of the paper's. The quartiles "
        f"of the sweeps differ from the paper's by {gap.mean():.3f} on average and by up to "
        f"{gap.max():.3f}."
    )
    reason = (
        "Quartiles depend on the sweep they are taken from. The paper does not print the sweeps of "
        "AdvDebias, LPP and ROC, so our sweeps and our quartiles differ. For this reason Table 1 "
        "and Figure 1 use the paper's own edges where the paper prints them. The deciding table "
        "needs no edges."
    )
    return Entry(
        "Black box and quartiles",
        "It prints fairness and accuracy of the logistic regression, and the quartiles of "
        "AdvDebias that define the segments",
        "see tables",
        f"{count} within two standard deviations over splits",
        status,
        verdict,
        (_base_table(points), reason, _edge_table(edges)),
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
            edges_of_figure = part[part["figure"] == figure]
            for column in ("paper", "ours"):
                values = [number(value, 3) for value in edges_of_figure[column]]
                cells.append(
                    NOTHING if edges_of_figure[column].isna().all() else " / ".join(values)
                )
        lines.append([f"{name}, {METRIC[str(notion)]}: {label_of(str(method))}", *cells])
    header = ["inner edges of", "fairness, paper", "ours", "accuracy, paper", "ours"]
    return table(header, lines)
