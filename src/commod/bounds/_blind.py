"""Estimate the fewest changes of a rule that does not know anybody's group.

The exact limit knows everybody's group, which a method that must not read the group cannot. A
flexible model of the same columns tells how far a rule without the group can come at best: it
learns how likely each person is in each group (and true label), on rows other than their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Floats, Mask
from commod._data.columns import Column, read_columns
from commod._data.draws import row_hashes
from commod._data.encoding import Encoding
from commod._data.labels import check_length
from commod._data.tables import check_same_rows
from commod._evidence.cut import best_stop, evidence
from commod._evidence.search import Pricing, priced_rows
from commod._evidence.task import N_FOLDS, EvidenceTask, with_bounds
from commod._text import n_of
from commod.bounds._limits import LimitRows, simple_requirement
from commod.exceptions import InputError
from commod.metrics._constraint import ConstraintLike
from commod.metrics._people import People, read_target

N_BOOTSTRAPS = 100  # of the interval
LEVEL = 0.95
MAX_CATEGORIES = 255  # that the model takes as categories
MIN_CELL = 10  # people of each compared rate: fewer teach a model nothing about them
MODEL = {"max_leaf_nodes": 6, "max_iter": 60}  # scikit-learn's defaults overfit small tables


@dataclass(frozen=True)
class BlindChanges:
    """An estimate of the fewest changes without the group: their number, share and interval.

    The interval ends in infinity where some samples of the people do not reach the target.

    `n_changes` is infinite, and `rate` NaN, where the model's rule does not reach the target.

    Examples
    --------
    >>> BlindChanges(n_changes=128.0, rate=0.05, interval=(110.0, 147.0)).n_changes
    128.0
    """

    n_changes: float
    rate: float
    interval: tuple[float, float]


def blind_changes(
    X: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    target: Any = None,
    constraints: ConstraintLike = "demographic_parity",
    y_true: Any = None,
    direction: str = "any",
    pos_label: Any = 1,
    favorable_label: Any = None,
) -> BlindChanges:
    """Estimate the fewest changes that reach a target without knowing anybody's group.

    Scikit-learn's gradient boosting learns from X and the decision how likely each person is in
    each group (and true label). Each fifth of these rows gets the probabilities of a model of the
    other rows. The rule that is optimal for them changes people until the target holds on these
    rows. This is an estimate, not a bound: another model may need fewer changes. It counts people
    and takes no sample weights.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        The columns that a rule may read, without the group: numbers, text, categories and
        booleans, missing values included.
    y_pred : array-like of shape (n_samples,)
        Decisions, with at most two different labels.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        Group of each row, two groups or more. At least ten people must be in each group (with
        each true label that is compared); nobody's group may be missing.
    target, constraints, y_true, direction, pos_label, favorable_label
        As in `minimal_changes`.

    Returns
    -------
    BlindChanges
        With a 95 % bootstrap interval for other people of the same population.

    Examples
    --------
    >>> from commod.datasets import make_biased
    >>> data = make_biased(800, random_state=0)
    >>> y_pred = (data.data["x0"] > 0).astype(int)
    >>> groups = {"sensitive_features": data.sensitive_features}
    >>> blind = blind_changes(data.data, y_pred, target=0.95, **groups)
    >>> from commod.bounds import minimal_changes
    >>> blind.n_changes >= minimal_changes(y_pred, target=0.95, **groups).n_changes
    True
    """
    constraint, target = simple_requirement(constraints, target, "The blind limit")
    read_target(constraint, target)
    check_same_rows({"X": X, "y_pred": y_pred, "sensitive_features": sensitive_features})
    given = y_true, y_pred, sensitive_features
    rows = LimitRows.read([constraint], *given, direction, pos_label, favorable_label)
    rows.problem(constraint)  # refuses a rate over nobody
    columns = read_columns(X)
    check_length(columns[0].values, "X", rows.n_rows)
    people = BlindPeople.of(columns, rows.people(constraint), rows.given.decisions)
    return people.fewest(float(target), may_raise=rows.may_raise, may_lower=rows.may_lower)


# A rule: what the rate of each cell is worth, (C,), whether it may raise, and whether it may lower.
BlindRule = tuple[Floats, bool, bool]


@dataclass(frozen=True, eq=False)
class BlindPeople:
    """People, and what a positive decision of each is expected to add to the rates, (n, C).

    `hashes` (n,) are those of their columns.
    """

    task: EvidenceTask
    expected: Floats
    hashes: NDArray[np.uint64]

    @classmethod
    def of(
        cls,
        columns: Sequence[Column],
        people: People,
        decisions: Mask,
    ) -> BlindPeople:
        """Return people with these columns and decisions; models learn their groups and labels.

        Everybody's probabilities come from the rows of other folds.
        """
        hashes = row_hashes(columns)
        task = _task(people, decisions, hashes)
        if task.smallest_base < MIN_CELL:
            among = " and true label" if people.constraint.needs_labels else ""
            found = n_of(task.smallest_base, "person")
            raise InputError(
                f"The smallest group{among} that is compared has {found}; the blind limit needs at "
                f"least {MIN_CELL}, because a model learns who they are. Merge small groups, leave "
                "them out, or use bounds.minimal_changes, which has no model.",
                parameter="sensitive_features",
            )
        chance = chances_by_fold(columns, decisions, task.fold, task.cell[:, 0], task.n_cells)
        return cls(task, chance / np.maximum(task.totals, 1.0), hashes)

    def fewest(
        self, target: float, *, may_raise: bool, may_lower: bool, level: float = LEVEL
    ) -> BlindChanges:
        """Return the fewest changes that reach a target by these moves, and their interval."""
        people = self.with_target(target)
        rule = people.best_rule(may_raise=may_raise, may_lower=may_lower)
        stop = best_stop(*people.applied(*rule))
        if not stop.is_reached:
            return BlindChanges(float("inf"), float("nan"), (float("nan"), float("nan")))
        interval = _interval(*people.applied(*rule), level)
        return BlindChanges(stop.n_changed, stop.n_changed / len(self.task), interval)

    def with_target(self, target: float) -> BlindPeople:
        """Return the same people with another target."""
        required = with_bounds(self.task.required, [target])
        return replace(self, task=replace(self.task, required=required))

    def best_rule(self, *, may_raise: bool, may_lower: bool) -> BlindRule:
        """Return the rule with the fewest changes; it may do without one of two moves."""
        moves = {(may_raise, may_lower), (may_raise, False), (False, may_lower)} - {(False, False)}
        rules = [rule for move in sorted(moves, reverse=True) for rule in self._rules(*move)]
        return min(rules, key=lambda rule: best_stop(*self.applied(*rule)).rank(self.task))

    def _rules(self, may_raise: bool, may_lower: bool) -> Iterator[BlindRule]:
        """Yield the rules of several prices of the target's inequalities."""
        nothing = np.zeros(self.task.n_cells)
        task, _ = self.applied(nothing, may_raise, may_lower)
        rows = priced_rows(task)
        pricing = Pricing(task, rows, self.expected[rows], np.ones(len(task)))
        for worth in (*pricing.rounds(task.base_rates), nothing):
            yield worth, may_raise, may_lower

    def applied(
        self, worth: Floats, may_raise: bool, may_lower: bool
    ) -> tuple[EvidenceTask, Floats]:
        """Return the task of a rule: only its moves are allowed. Return the evidence (n,), too."""
        may_change = np.where(self.task.positive, may_lower, may_raise)
        task = replace(self.task, may_change=may_change)
        score = evidence(task, self.expected @ worth, np.ones(len(task)))
        # People of equal probabilities change one by one: a rule may draw among them.
        return task, score * (1 + 1e-9 * (self.hashes / 2.0**64))


def _task(people: People, decisions: Mask, hashes: NDArray[np.uint64]) -> EvidenceTask:
    """Return the question whom to change; people have no terms, but probabilities of cells."""
    none, everybody = np.zeros(0), np.ones(len(decisions), dtype=bool)
    return EvidenceTask.of(
        people,
        [people.constraint.least_fair],
        terms=Encoding(()).encode([]),
        column=none.astype(np.intp),
        is_level=none.astype(bool),
        is_bin=none.astype(bool),
        sign=none,
        pinned=none,
        fold=(hashes % np.uint64(N_FOLDS)).astype(np.int8),
        positive=decisions,
        distance=np.zeros(len(decisions)),
        may_change=everybody,
        sizes=people.weights.ravel(),
        is_known=everybody,
        for_new=False,
    )


def chances_by_fold(
    columns: Sequence[Column],
    decisions: Mask,
    fold: NDArray[Any],
    cell: NDArray[np.intp],
    n_cells: int,
) -> Floats:
    """Return how likely everybody is in each cell, (n, C), by models of the people of other folds.

    The models read the columns and the decision, which every rule knows.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier  # half a second to import

    is_category = [c.kind == "category" and len(c.categories) < MAX_CATEGORIES for c in columns]
    filled = [np.where(c.is_missing(), np.nan, c.values) for c in columns]
    values, kinds = np.column_stack([*filled, decisions]), np.array([*is_category, False])
    chances = np.zeros((len(cell), n_cells + 1))
    for number in np.unique(fold):
        own = fold == number
        known = ~np.isnan(values[~own]).all(axis=0)
        model = HistGradientBoostingClassifier(
            categorical_features=kinds[known], random_state=0, **MODEL
        )
        model.fit(values[~own][:, known], cell[~own])
        chances[np.ix_(own, model.classes_)] = model.predict_proba(values[own][:, known])
    return chances[:, :-1]  # the last ones are in no cell


def _interval(task: EvidenceTask, score: Floats, level: float) -> tuple[float, float]:
    """Return the interval of the number of changes over samples of the people, with replacement."""
    random, n = np.random.RandomState(0), len(task)
    found = []
    for _ in range(N_BOOTSTRAPS):
        people = random.multinomial(n, np.full(n, 1 / n)).astype(np.float64)
        totals = np.bincount(task.cell[:, 0], people, task.n_cells + 1)[:-1].astype(np.float64)
        drawn = replace(task, weight=people, people=people, totals=totals, sizes=totals)
        stop = best_stop(drawn, score)
        found.append(stop.n_changed if stop.is_reached else np.inf)
    low, high = np.quantile(found, ((1 - level) / 2, (1 + level) / 2), method="nearest").tolist()
    return float(low), float(high)
