"""Time one fit of every rival on 100,000 rows and 20 columns."""

from __future__ import annotations

import os
import time
import warnings
from typing import Any

from report import show_at_most
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags

from commod.datasets import make_biased
from commod.exceptions import CommodWarning
from commod.rivals import Rival
from commod.rivals._lineup import every_method

N_ROWS, N_COLUMNS = 100_000, 20
GROUP = "group"


def rival_speed() -> None:
    """Print the seconds of one fit and one `predict`, per method; `ONLY=LPP` times one method."""
    data = make_biased(N_ROWS, n_features=N_COLUMNS, random_state=0)
    X, y, groups = data.data, data.target, data.sensitive_features
    with_group = X.assign(**{GROUP: (groups == groups[0]).astype(float)})
    plain = LogisticRegression().fit(X, y)
    tree = DecisionTreeClassifier(max_leaf_nodes=200, random_state=0).fit(X, y)
    reads_group = LogisticRegression().fit(with_group, y)
    only = os.environ.get("ONLY", "").split(",")
    for name, update in every_method(None, random_state=0, group_column=GROUP).items():
        if not isinstance(update, Rival) or (only != [""] and name not in only):
            continue
        tags = get_tags(update)
        model = tree if tags.needs_tree else reads_group if tags.needs_group_in_model else plain
        update.set_params(estimator=model, constraints=update.known_constraints[0])
        table = with_group if tags.needs_group_in_model else X
        show_at_most(f"{name}: seconds at 100,000 rows", _seconds(update, table, y, groups), 60.0)


def _seconds(update: Rival, X: Any, y: Any, groups: Any) -> float:
    """Return the seconds of one fit and one `predict`."""
    known = {"sensitive_features": groups} if update.needs_sensitive_features else {}
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CommodWarning)
        update.fit(X, y, sensitive_features=groups)
        update.predict(X, **known)
    return time.perf_counter() - begin
