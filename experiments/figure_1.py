"""Figure 1: changes against accuracy in each segment of fairness, every method.

Definition 1 of the segments (quartiles of AdvDebias) is the paper's figure. Definitions 2 (LPP) and
3 (ROC) are its robustness check. Accuracy is the difference from the base model on the same split,
so that splits can be combined.
"""

from __future__ import annotations

import pandas as pd

from experiments.base_points import DEFINERS
from experiments.run import Done
from experiments.settings import Settings
from experiments.table_1 import kinds_of, placed

STEP = 0.01  # of accuracy
KEYS = ["table", "notion", "definition", "edges", "fairness_q", "method", "accuracy_change"]


def tables(done: Done, settings: Settings, sweeps: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the mean share of changes per segment and step of accuracy."""
    updates = sweeps.dropna(subset="fairness")
    steps = pd.concat(
        [
            _steps(part, definer)
            for _, part in updates.groupby(["table", "notion"], sort=False)
            for definer in DEFINERS
        ],
        ignore_index=True,
    )
    is_first = steps["definition"] == 1
    return {"figure_1": steps[is_first], "robustness": steps[~is_first]}


def _steps(part: pd.DataFrame, definer: str) -> pd.DataFrame:
    """Return means over splits, with the paper's shifted edges where the paper prints edges."""
    kind = "shifted" if "shifted" in kinds_of(part, definer) else "ours"
    updates = placed(part, definer, kind)
    change = ((updates["accuracy"] - updates["base_accuracy"]) / STEP).round() * STEP
    updates = updates.assign(
        definition=DEFINERS.index(definer) + 1, edges=kind, accuracy_change=change.round(2) + 0.0
    )
    per_split = updates.groupby([*KEYS, "split"], sort=False)["change_rate"].mean().reset_index()
    grouped = per_split.groupby(KEYS, sort=False)["change_rate"]
    return grouped.agg(changes="mean", sd="std", n_splits="size").reset_index()
