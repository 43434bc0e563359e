"""Compare segments with the leaves of a decision tree as descriptions of who changes.

For each table and seed:

1. A logistic regression is fitted on half of the rows: the base model.
2. `ControlledDebiaser` is fitted on a quarter, for a P-rule of 0.9. Rules for its changes are
   learned on the same rows, with `explain` and with decision trees of depth 3.
3. The rules are applied to the last quarter, the held-out rows.

Coverage is the share of the changed people whom a rule of their direction describes. Precision is
the share of the described people who change. Run it with
`PYTHONPATH=. python benchmarks/segments.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from commod import ControlledDebiaser, explain
from commod.datasets import load_compas
from experiments import adult

SEEDS = range(5)
MAX_RULES = 4  # in each direction
MAX_CONDITIONS = 3
MIN_PRECISION = 0.5

Mask = np.ndarray


class Rules(NamedTuple):
    """What one method learned: `covers` returns whom its rules describe, shape (n,)."""

    n_rules: int
    n_conditions: int
    covers: Callable[[pd.DataFrame, Mask], Mask]


class Changes(NamedTuple):
    """Rows, whether their base decision is favourable, and whose decision changes."""

    X: pd.DataFrame
    favorable_before: Mask
    changed: Mask


# ---------------------------------------------------------------------------------------------
# Segments


def segment_rules(changes: Changes) -> Rules:
    """Return the segments of `explain`."""
    before = changes.favorable_before.astype(int)
    after = np.where(changes.changed, 1 - before, before)
    why = explain(None, changes.X, y_before=before, y_after=after, pos_label=1)
    segments = why.segments.segments

    def covers(X: pd.DataFrame, favorable_before: Mask) -> Mask:
        covered = np.zeros(len(X), dtype=bool)
        for segment in segments:
            rows = favorable_before == (segment.direction == "loss")
            for condition in segment.conditions:
                rows = rows & _satisfies(condition, X[condition.column])
            covered |= rows
        return covered

    return Rules(len(segments), sum(len(s.conditions) for s in segments), covers)


def _satisfies(condition: Any, column: pd.Series) -> Mask:
    """Return which rows satisfy a condition of a segment, shape (n,)."""
    missing = column.isna().to_numpy()
    if condition.values is not None:
        inside = column.isin(list(condition.values)).to_numpy() != condition.negated
    else:
        low = -np.inf if condition.low is None else condition.low
        high = np.inf if condition.high is None else condition.high
        inside = ((column >= low) & (column < high)).to_numpy()
    return np.where(missing, condition.missing, inside)


# ---------------------------------------------------------------------------------------------
# Leaves of a tree


def tree_rules(changes: Changes, class_weight: str | None) -> Rules:
    """Return the leaves of one tree per direction: precise ones, those with most changes first."""
    trees = {
        favorable: _TreeRules.fit(changes, favorable, class_weight) for favorable in (False, True)
    }

    def covers(X: pd.DataFrame, favorable_before: Mask) -> Mask:
        covered = np.zeros(len(X), dtype=bool)
        for favorable, tree in trees.items():
            covered |= (favorable_before == favorable) & tree.covers(X)
        return covered

    n_rules = sum(len(tree.leaves) for tree in trees.values())
    return Rules(n_rules, sum(tree.n_conditions() for tree in trees.values()), covers)


class _TreeRules(NamedTuple):
    model: Any
    leaves: list[int]

    @classmethod
    def fit(cls, changes: Changes, favorable: bool, class_weight: str | None) -> _TreeRules:
        rows = changes.favorable_before == favorable
        X, changed = changes.X[rows], changes.changed[rows]
        if not changed.any():
            return cls(None, [])
        tree = DecisionTreeClassifier(
            max_depth=MAX_CONDITIONS, class_weight=class_weight, random_state=0
        )
        model = make_pipeline(_encoder(scaled=False), tree).fit(X, changed)
        leaf_of = tree.apply(model[:-1].transform(X))
        size = np.bincount(leaf_of)
        n_changed = np.bincount(leaf_of, changed)
        precise = np.flatnonzero((size > 0) & (n_changed > MIN_PRECISION * size))
        return cls(model, sorted(precise.tolist(), key=lambda leaf: -n_changed[leaf])[:MAX_RULES])

    def covers(self, X: pd.DataFrame) -> Mask:
        if not self.leaves:
            return np.zeros(len(X), dtype=bool)
        return np.isin(self.model[-1].apply(self.model[:-1].transform(X)), self.leaves)

    def n_conditions(self) -> int:
        """Return the number of conditions; several on one raw column count as one."""
        return sum(len(self._columns_of(leaf)) for leaf in self.leaves)

    def _columns_of(self, leaf: int) -> set[str]:
        tree = self.model[-1].tree_
        encoder = self.model[0]
        names = encoder.get_feature_names_out()
        raw = {}
        for step, _, columns in encoder.transformers_:
            for column in columns if step != "remainder" else ():
                raw |= {name: column for name in names if name.startswith(f"{step}__{column}")}
        parents = {
            int(child): node
            for node in range(tree.node_count)
            for child in (tree.children_left[node], tree.children_right[node])
            if child >= 0
        }
        used, node = set(), leaf
        while node in parents:
            node = parents[node]
            used.add(raw[names[tree.feature[node]]])
        return used


def _encoder(scaled: bool) -> Any:
    numbers = make_pipeline(SimpleImputer(), *([StandardScaler()] if scaled else []))
    return make_column_transformer(
        (numbers, make_column_selector(dtype_include=np.number)),
        (
            OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=10),
            make_column_selector(dtype_exclude=np.number),
        ),
    )


# ---------------------------------------------------------------------------------------------
# Both on the same rows


def measure(name: str, data: Any) -> None:
    """Print the means over all seeds, one row per method."""
    methods = {
        "segments": segment_rules,
        "tree, balanced": partial(tree_rules, class_weight="balanced"),
        "tree, unweighted": partial(tree_rules, class_weight=None),
    }
    figures: dict[str, list[list[float]]] = {method: [] for method in methods}
    for seed in SEEDS:
        learned_on, held_out = make_changes(data, seed)
        for method, learn in methods.items():
            rules = learn(learned_on)
            shares = [s for rows in (learned_on, held_out) for s in coverage_precision(rules, rows)]
            figures[method].append([*shares, rules.n_rules, rules.n_conditions])
    for method, values in figures.items():
        mean = np.nanmean(values, axis=0)
        cells = " ".join(f"{value:9.3f}" for value in mean[:4])
        print(f"{name:<8} {method:<16} {cells} {mean[4]:7.1f} {mean[5]:11.1f}", flush=True)


def make_changes(data: Any, seed: int) -> tuple[Changes, Changes]:
    """Return the rows on which rules are learned, and the held-out rows."""
    y, s = np.asarray(data.target), np.asarray(data.sensitive_features)
    base, others = train_test_split(np.arange(len(y)), test_size=0.5, random_state=seed)
    fit, held_out = train_test_split(others, test_size=0.5, random_state=seed)
    X = data.data
    model = make_pipeline(_encoder(scaled=True), LogisticRegression(max_iter=2000))
    model.fit(X.iloc[base], y[base])
    update = ControlledDebiaser(model, target=0.9)
    update.fit(X.iloc[fit], y[fit], sensitive_features=s[fit])
    return _changes_of(update, X.iloc[fit]), _changes_of(update, X.iloc[held_out])


def _changes_of(update: ControlledDebiaser, X: pd.DataFrame) -> Changes:
    changes = update.changes(X)
    before = update.estimator.predict(X) == update._favorable_label
    return Changes(X, before, changes.changed)


def coverage_precision(rules: Rules, changes: Changes) -> tuple[float, float]:
    """Return the share of changes that the rules describe, and how often a rule is right."""
    covered = rules.covers(changes.X, changes.favorable_before)
    n_right = (covered & changes.changed).sum()
    return n_right / changes.changed.sum(), n_right / covered.sum() if covered.any() else np.nan


def main() -> None:
    """Print a table: both methods on COMPAS, and on Adult where it is available."""
    print(f"{'':<25} {'learned on':^19} {'held out':^19}")
    print(
        f"{'table':<8} {'method':<16} {'coverage precision ' * 2} {'rules':>7} {'conditions':>11}"
    )
    measure("COMPAS", load_compas())
    reason = adult.fetch()
    if reason is not None:
        print(f"Adult is left out: {reason}")
    else:
        measure("Adult", adult.load_adult())


if __name__ == "__main__":
    main()
