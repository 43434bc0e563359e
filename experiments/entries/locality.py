"""Entry: locality of the changes."""

from __future__ import annotations

import pandas as pd

from experiments.entries.entry import (
    ADAPTIVE_ONLY,
    FAILS,
    HOLDS,
    PARTLY,
    Entry,
    Frames,
    entry_without_updates,
    tables_in,
)
from experiments.locality import DEPTHS
from experiments.markdown import number, picture, spread, table
from experiments.methods import label_of

CLAIM = "At every depth, a tree predicts COMMOD's changes better than FRAPPE's and AdvDebias's"


def locality(frames: Frames, base: str) -> Entry:
    """Say whether small trees predict COMMOD's changes better than its rivals' changes."""
    scores = frames["locality"]
    if scores.empty:
        return entry_without_updates("Locality of the changes", CLAIM)
    wide = scores.pivot_table(index=["table", "depth"], columns="method", values="f1", sort=False)
    rivals = wide[["FRAPPE", "AdversarialDebiasing"]].max(axis=1)
    won, n = int((wide["COMMOD"] > rivals).sum()), len(wide)
    new = scores.pivot_table(index=["table", "depth"], columns="method", values="f1_new")
    won_new = int((new["COMMOD"] > new[["FRAPPE", "AdversarialDebiasing"]].max(axis=1)).sum())
    status = HOLDS if won == n else PARTLY if won >= n / 2 else FAILS
    parts = []
    for name in tables_in(scores):
        part = scores[scores["table"] == name]
        n_splits = int(part["n_splits"].iloc[0])
        parts += [
            f"**{name}**, {n_splits} split{'s' if n_splits > 1 else ''}:",
            _locality_table(part),
        ]
    return Entry(
        "Locality of the changes",
        CLAIM,
        "in words",
        f"adaptive: higher F1 than both rivals at {won} of {n} depths of the two tables",
        status,
        f"COMMOD's F1 is above that of both rivals at {won} of {n} depths if trees are grown and "
        f"scored on the same rows. It is above both at {won_new} of {n} depths if trees are grown "
        "on training rows and scored on test rows.",
        (
            picture("locality", "F1 of trees that predict who changed, by depth", base),
            ADAPTIVE_ONLY,
            *parts,
        ),
    )


def _locality_table(part: pd.DataFrame) -> str:
    lines = []
    for method, rows in part.groupby("method", sort=False):
        first = rows.iloc[0]
        by_depth = rows.set_index("depth")
        lines.append(
            [
                label_of(str(method)),
                *(number(first[c], 2) for c in ("p_rule", "accuracy", "changes")),
                *(spread(by_depth.loc[d, "f1"], by_depth.loc[d, "f1_sd"], 2) for d in DEPTHS),
            ]
        )
    header = ["F1 at depth", "P-rule", "accuracy", "changes", *(str(d) for d in DEPTHS)]
    return table(header, lines)
