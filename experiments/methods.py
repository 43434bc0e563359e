"""The methods of the paper and of this library, as they are made for a split."""

from __future__ import annotations

from typing import Any

from commod import COMMOD, ControlledDebiaser, frontier
from commod.rivals import lineup
from experiments.protocol import FAVORABLE, N_CONCEPTS, Split

LIMIT = "exact limit"
FEWER = "ControlledDebiaser (31 targets)"
WEIGHED = "ControlledDebiaser (errors count)"  # 31 targets, an error costs as much as a change
AS_IN_PAPER = "COMMOD (as in the paper)"  # the other variant, "COMMOD", is this library's default
VARIANTS = {AS_IN_PAPER: "as in the paper", "COMMOD": "adaptive"}
RIVALS = ("LPP", "AdversarialDebiasing", "FRAPPE")  # blind: they decide without the group
BLIND = (*RIVALS, "COMMOD")
PAPERS = ("RejectOption", "LPP (aware)", *RIVALS, *VARIANTS)
METHODS = (*PAPERS, "ControlledDebiaser", FEWER, WEIGHED)
LABELS = {
    AS_IN_PAPER: "COMMOD, as in the paper",
    "COMMOD": "COMMOD, adaptive",
    "RejectOption": "ROC, sees the group",
    "LPP (aware)": "LPP, sees the group",
    "AdversarialDebiasing": "AdvDebias (Zhang)",
}
MANY_ROWS = 10_000  # above, fewer epochs give as many steps as on the paper's tables
FEWER_EPOCHS = {
    "COMMOD": {"epochs": 30, "warmup_epochs": 2, "ramp_epochs": 4},
    "FRAPPE": {"epochs": 40},
    "AdversarialDebiasing": {"epochs": 10, "warmup_epochs": 2},
}


def label_of(method: str) -> str:
    """Return the method's name in tables and pictures."""
    return LABELS.get(method, method)


def make(method: str, split: Split, notion: str, **settings: Any) -> Any:
    """Return an unfitted method for a split, with our defaults and the paper's n_concepts.

    `AS_IN_PAPER` is COMMOD with the paper's other settings, too.
    """
    # as in the paper, rates count label 1, also where label 0 is favourable
    favorable = FAVORABLE[split.name]
    shared = {"constraints": notion, "pos_label": 1, "favorable_label": favorable}
    if method in (FEWER, WEIGHED):
        weight = 1.0 if method == WEIGHED else 0.0
        update: Any = ControlledDebiaser(
            split.model, accuracy_weight=weight, borderline=0, random_state=0, **shared
        )
    elif method == AS_IN_PAPER:
        update = COMMOD.as_in_the_paper(split.model, random_state=0, **shared)
    else:
        update = lineup(split.model, random_state=0, **shared)[method]
    if method in VARIANTS:
        update.set_params(n_concepts=N_CONCEPTS[split.name])
    if "progress" in update.get_params():
        update.set_params(progress=False)
    if len(split.train.y) > MANY_ROWS:
        update.set_params(**FEWER_EPOCHS.get(method, {}))
    return update.set_params(**settings)


def measured(update: Any, split: Split, grid: dict[str, Any]) -> list[dict[str, Any]]:
    """Return one record per point of COMMOD's grid: lambdas and figures on the test rows."""
    curve = frontier(update, **split.fit_rows, **split.test_rows, grid=grid, describe=False)
    records = curve.frame()[["lambda_fair", "lambda_ratio", "fairness", "accuracy", "change_rate"]]
    base = {"base_fairness": curve.base_fairness, "base_accuracy": curve.base_accuracy}
    return records.assign(**base).to_dict("records")
