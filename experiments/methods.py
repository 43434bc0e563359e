"""The methods of the paper and of this library, as they are made for a split."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import Bunch, get_tags

from commod import COMMOD, ControlledDebiaser, frontier
from commod.rivals import _lineup as rivals
from commod.rivals import lineup
from experiments.protocol import FAVORABLE, N_CONCEPTS, Split

LIMIT = "exact limit"
GROUP_COLUMN = "group"  # for a base model that must read the group
TREE = {"max_leaf_nodes": 50, "min_samples_leaf": 20, "random_state": 0}
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
    "COMMOD": {"epochs": 30, "training": {"warmup_epochs": 2, "ramp_epochs": 4}},
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
        extra = 1.0 if method == WEIGHED else 0.0  # changes for accuracy, as a share of the fewest
        update: Any = ControlledDebiaser(split.model, borderline=extra, **shared)
    elif method == AS_IN_PAPER:
        update = COMMOD.as_in_the_paper(split.model, random_state=0, **shared)
    else:
        methods = lineup(split.model, random_state=0, group_column=GROUP_COLUMN, **shared)
        update = methods[method]
    if method in VARIANTS:
        update.set_params(n_concepts=N_CONCEPTS[split.name])
    fewer = FEWER_EPOCHS.get(method, {}) if len(split.train.y) > MANY_ROWS else {}
    silent: dict[str, Any] = {"training": {"progress": False}}
    if not isinstance(update, COMMOD):
        silent = {"progress": False} if "progress" in update.get_params() else {}
    for params in (silent, fewer, settings):
        if "training" in params:  # what others have set stays
            params = {**params, "training": {**(update.training or {}), **params["training"]}}
        update.set_params(**params)
    return update


@cache
def every_method() -> dict[str, Any]:
    """Return all methods of this library by name, blind ones first, without a base model.

    They only say what a method needs; `with_own_base` returns one that can be fitted.
    """
    methods = rivals.every_method(None).items()
    return dict(sorted(methods, key=lambda method: get_tags(method[1]).needs_sensitive_features))


def makeable(notion: str) -> list[str]:
    """Return the names of the methods that know a notion of fairness."""
    methods = every_method().items()
    return [
        name for name, update in methods if notion in getattr(update, "known_constraints", [notion])
    ]


def with_own_base(method: str, split: Split, notion: str) -> tuple[Split, Any]:
    """Return the split with the base model that a method needs, and the unfitted method.

    A method that edits a tree gets a tree. A method whose base model must read the group gets a
    logistic regression that does. All others get the split's own base model.
    """
    tags = get_tags(every_method()[method])
    if tags.needs_tree:
        encode = clone(split.model[:-1])
        tree = make_pipeline(encode, DecisionTreeClassifier(**TREE)).fit(
            split.train.X, split.train.y
        )
        split = replace(split, model=tree)
    elif tags.needs_group_in_model:
        split = _with_group(split)
    return split, make(method, split, notion)


def _with_group(split: Split) -> Split:
    """Return the split with the group as a column and a base model that reads it."""
    train, test = (
        Bunch(X=part.X.assign(**{GROUP_COLUMN: part.s.astype(str)}), y=part.y, s=part.s)
        for part in (split.train, split.test)
    )
    return replace(split, model=clone(split.model).fit(train.X, train.y), train=train, test=test)


def measured(update: Any, split: Split, grid: dict[str, Any]) -> list[dict[str, Any]]:
    """Return one record per point of COMMOD's grid: lambdas and figures on the test rows."""
    curve = frontier(update, **split.fit_rows, **split.test_rows, grid=grid, describe=False)
    records = curve.frame()[["lambda_fair", "lambda_ratio", "fairness", "accuracy", "change_rate"]]
    base = {"base_fairness": curve.base_fairness, "base_accuracy": curve.base_accuracy}
    return records.assign(**base).to_dict("records")
