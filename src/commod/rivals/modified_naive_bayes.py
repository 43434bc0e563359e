"""Naive Bayes with modified class counts (Calders and Verwer 2010): a new model by group."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from commod._data.arrays import Codes, Floats, Mask
from commod._data.encoding import TermTable
from commod.metrics._constraint import PARITY
from commod.rivals._rows import DecisionRows, RivalFitRows, find_group
from commod.rivals._trained import NewModelRival
from commod.rivals.base import AwareRival, choice, number
from commod.updates.base import LARGEST_WEIGHT

# ---------------------------------------------------------------------------------------------
# Naive Bayes with class counts that are moved between groups until their rates are equal


@dataclass(eq=False, repr=False, kw_only=True)
class ModifiedNaiveBayes(NewModelRival, AwareRival):
    """Train a naive Bayes model by group, and move its class counts until the rates are equal.

    The model decides by log odds: log N(1, s) − log N(0, s) + Σ log P(x_j | 1) − log P(x_j | 0).
    N(y, s) counts the rows with label y in group s. While the favoured group has a higher positive
    rate, a step changes these counts:

    - If the model accepts fewer rows than there are positive labels, delta · N(0, favoured) moves
      from the negative to the positive labels of the other group.
    - Otherwise, delta · N(1, other) moves from the positive to the negative labels of the favoured
      group.

    The base model's scores are not used. So decisions differ from the base model's for two reasons:
    fairness, and a training of its own.

    Parameters
    ----------
    estimator : fitted classifier or ScoreColumn
        The base model, to which the decisions are compared.
    strength : float, default=1.0
        Share of the base model's difference between the groups' positive rates to remove, in
        [0, 1]. The steps end at (1 − strength) times this difference; 1 is the published loop. 0
        keeps the base model and trains nothing. A tiny strength already changes decisions: the
        model is new.
    variant : str, default="2NB"
        "2NB" has tables P(x_j | y, s) for each group, "MNB" has tables P(x_j | y) for all rows.
    keep : str, default="closest"
        Which step to keep: the "last" one, as published, or the one whose difference is "closest"
        to the one asked for. The last step may go far beyond it.
    privileged : label, default=None
        The favoured group, a value of `sensitive_features`. None: the group with the higher
        positive rate under the naive Bayes model. If the other group has the higher rate, no count
        moves.
    delta : float, default=0.01
        Share of a count that one step moves.
    alpha : float, default=1.0
        alpha / 2 is added to each count of the prior.
    beta : float, default=1.0
        beta / v is added to each count in the table of a column with v values.
    n_bins : int, default=10
        Bins of a numeric column: naive Bayes reads discrete values.
    locked_features : collection of str, default=()
        Columns the new model must not read.
    min_category_size : int, default=20
        Fit rows that a category or a bin needs; rarer categories count as unseen.
    constraints : str, default="demographic_parity"
        The only constraint that the method knows.
    min_group_size : int, default=30
        Fit rows that a group needs; smaller groups keep their base decisions.
    threshold : float, default=0.5
        The decision is score > threshold, for the base model and the new one. The new model's score
        estimates P(Y = 1 | x, s) and is not shifted. So the threshold has the same meaning for both
        models only where the base score is calibrated.
    pos_label : label, default=None
        The label whose rates count. If None, `favorable_label`, or else `classes_[1]`.
    favorable_label : label, default=None
        The label that is good for the person; `pos_label` if None. It only names gains and losses.

    Attributes
    ----------
    privileged_ : label
        The favoured group.
    counts_ : ndarray of shape (2, 2)
        N(y, s) after the steps, labels in rows and groups in columns.
    tables_ : ndarray of shape (2, n_tables, n_terms)
        The smoothed counts of each label, group and term; "MNB" has one table for both groups.
    encoding_ : Encoding or None
        The terms: categories and bins of each column. None where the base model is kept.
    n_iter_ : int
        Number of steps.
    difference_ : float
        The difference between the rates of the fit rows after the steps, favoured minus other.

    Notes
    -----
    The published loop never ends where a step moves nothing, because no row has that label and
    group; here it stops. It may also end with one decision for all rows: a warning then says so.
    The third model of the paper, with a latent variable, is not part of this class.

    References
    ----------
    Calders, Verwer: "Three naive Bayes approaches for discrimination-free classification", Data
    Mining and Knowledge Discovery 21, 2010.

    Examples
    --------
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import ModifiedNaiveBayes
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> groups = data.sensitive_features
    >>> update = ModifiedNaiveBayes(model).fit(data.data, data.target, sensitive_features=groups)
    >>> bool(update.fairness_ > update.base_fairness_)
    True
    """

    variant: str = choice("2NB", "MNB")
    keep: str = choice("closest", "last")
    privileged: Any = None
    delta: float = number(0.01, low=0.0, high=1.0, include="right")
    alpha: float = number(1.0, low=0.0, high=LARGEST_WEIGHT, include="right")
    beta: float = number(1.0, low=0.0, high=LARGEST_WEIGHT, include="right")
    n_bins: int = number(10, low=2, whole=True)

    known_constraints = (PARITY,)
    several_groups = False
    new_model = "encoding_"
    largest_strength = 1.0

    # -- learning -------------------------------------------------------------------------------

    def _learn_all(self, models: Sequence[Self], rows: RivalFitRows) -> None:
        """Train one model and follow its counts once; each strength is one point of this path."""
        assert rows.label is not None
        for model in models:
            model.encoding_, model.n_iter_, model._is_reached = None, 0, True
        edited = [model for model in models if model.strength > 0]
        if not edited:
            return
        options: dict[str, Any] = {"numeric": "bins", "n_bins": self.n_bins}
        encoding, terms = self._learn_terms(rows.columns, rows.weight, **options)
        counts, tables = self._count(rows, terms, rows.label)
        path, favoured = self._path(rows, terms, counts, tables)
        rates = rows.rates(self._constraint, rows.base.decisions)[0]
        for model in edited:
            bound = (1 - float(model.strength)) * float(np.ptp(rates))
            kept = path.entry(bound, closest=self.keep == "closest")
            model._is_reached = bool((path.difference <= bound).any())
            model.encoding_, model.tables_ = encoding, tables
            model.privileged_ = rows.group_labels[favoured]
            model.counts_ = path.counts[kept]
            model.n_iter_ = int(path.n_steps[kept])
            model.difference_ = float(path.difference[kept])

    def _count(self, rows: RivalFitRows, terms: TermTable, label: Mask) -> tuple[Floats, Floats]:
        """Return the counts N(y, s), shape (2, 2), and the tables, shape (2, n_tables, d)."""
        used, n_groups = rows.is_counted, rows.n_groups
        weight, by_label = rows.weight[used], label[used].astype(np.intp)
        cells = by_label * n_groups + rows.group[used]
        counts = np.bincount(cells, weight, minlength=2 * n_groups).astype(np.float64)
        n_tables = n_groups
        if self.variant == "MNB":
            cells, n_tables = by_label, 1
        tables = attribute_tables(
            terms.take(np.flatnonzero(used)), cells, weight, 2 * n_tables, float(self.beta)
        )
        return counts.reshape(2, n_groups), tables.reshape(2, n_tables, terms.n_terms)

    def _path(
        self, rows: RivalFitRows, terms: TermTable, counts: Floats, tables: Floats
    ) -> tuple[CountPath, int]:
        """Return the path of the counts, and the number of the favoured group."""
        used = rows.is_counted
        log_ratio = _log_ratio(tables, terms, rows.group_index)
        odds = log_ratio + _prior(counts, self.alpha)[rows.group_index]
        own = rows.rates(self._constraint, expit(odds) > rows.base.threshold)[0]
        favoured = int(np.argmax(own))
        if self.privileged is not None:
            favoured = find_group(self.privileged, rows.group_labels)
        path = count_path(
            log_ratio[used],
            rows.group[used],
            rows.weight[used],
            counts,
            favoured=favoured,
            delta=float(self.delta),
            alpha=float(self.alpha),
            cut=float(logit(rows.base.threshold)),
        )
        return path, favoured

    def _way_out_of_collapse(self) -> str:
        return "Lower the strength or delta, or try the other variant."

    def _remarks(self) -> Iterator[str]:
        yield from super()._remarks()
        if not self._is_reached:
            yield "The steps ended before the rates were close enough: no count could move."
        elif self.encoding_ is not None and self.n_iter_ == 0:
            yield "No count moved: the decisions are those of plain naive Bayes."

    # -- deciding -------------------------------------------------------------------------------

    def _model_scores(self, rows: DecisionRows) -> Floats:
        """Return P(Y = 1 | x, s), shape (n,); the base score of a row whose group is unknown."""
        assert self.encoding_ is not None
        assert rows.group is not None
        terms = self.encoding_.encode(rows.columns)
        odds = _log_ratio(self.tables_, terms, rows.group_index)
        odds += _prior(self.counts_, self._fitted_param("alpha"))[rows.group_index]
        return np.where(rows.group >= 0, expit(odds), rows.base.scores)


def _prior(counts: Floats, alpha: float) -> Floats:
    """Return log N(1, s) − log N(0, s) of the smoothed counts, shape (n_groups,)."""
    return np.asarray(np.log(counts[1] + alpha / 2) - np.log(counts[0] + alpha / 2))


def _log_ratio(tables: Floats, terms: TermTable, group: Codes) -> Floats:
    """Return Σ log P(x_j | 1) − log P(x_j | 0) of each row, shape (n,)."""
    negative, positive = (log_probabilities(table, terms.code_terms) for table in tables)
    totals = [terms.total(points, 0.0) for points in positive - negative]
    return totals[0] if len(totals) == 1 else np.choose(group, totals)


def attribute_tables(
    terms: TermTable, cells: Codes, weight: Floats, n_cells: int, beta: float
) -> Floats:
    """Return the smoothed weight of each term in each cell, shape (n_cells, n_terms).

    A column with v terms adds beta / v to each of its terms.
    """
    size = terms.n_terms + 1  # the last entry collects rows without term
    totals = np.zeros(n_cells * size)
    for column in terms.codes.T:
        totals += np.bincount(cells * size + column, weight, minlength=n_cells * size)
    n_values = np.diff([*terms.code_terms.tolist(), terms.n_terms])
    return totals.reshape(n_cells, size)[:, :-1] + np.repeat(beta / n_values, n_values)


def log_probabilities(tables: Floats, first_terms: NDArray[np.intp]) -> Floats:
    """Return log P(term | cell), shape (n_cells, n_terms), from the weights of `attribute_tables`.

    Examples
    --------
    >>> np.exp(log_probabilities(np.array([[1.5, 0.5]]), np.array([0])))
    array([[0.75, 0.25]])
    """
    if not tables.shape[1]:
        return tables
    totals = np.add.reduceat(tables, first_terms, axis=1)
    n_values = np.diff([*first_terms.tolist(), tables.shape[1]])
    return np.asarray(np.log(tables) - np.log(np.repeat(totals, n_values, axis=1)))


@dataclass(frozen=True)
class CountPath:
    """The class counts after each change of a decision, and after the last step.

    Attributes
    ----------
    n_steps : ndarray of shape (m,)
        How many steps led to each entry; the first is 0.
    counts : ndarray of shape (m, 2, 2)
        The counts by entry, label and group.
    difference : ndarray of shape (m,)
        The positive rate of the favoured group, minus that of the other one.
    """

    n_steps: NDArray[np.intp]
    counts: Floats
    difference: Floats

    def entry(self, bound: float, *, closest: bool) -> int:
        """Return the entry at which the loop stops: the first difference of at most `bound`.

        Without such an entry it is the last. With `closest`, it is the entry up to there whose
        difference is closest to `bound`; the last step may lead far beyond it.
        """
        within = np.flatnonzero(self.difference <= bound)
        stop = int(within[0]) if within.size else len(self.difference) - 1
        return int(np.argmin(np.abs(self.difference[: stop + 1] - bound))) if closest else stop


class _SortedGroup:
    """The sorted critical counts of one group, and the weight of its positive decisions."""

    def __init__(self, critical: Floats, weight: Floats, counts: Floats) -> None:
        order = np.argsort(critical, kind="stable")
        self.critical: list[float] = critical[order].tolist()
        self.weight_below: list[float] = list(accumulate(weight[order].tolist(), initial=0.0))
        self.negative, self.positive = counts.tolist()
        self.n_positive = bisect_left(self.critical, self.positive)

    @property
    def positive_weight(self) -> float:
        return self.weight_below[self.n_positive]

    @property
    def rate(self) -> float:
        return self.positive_weight / self.weight_below[-1]

    def move(self, amount: float) -> None:
        """Move an amount from the negative to the positive labels."""
        self.positive += amount
        self.negative -= amount
        self.n_positive = bisect_left(self.critical, self.positive)


def count_path(
    log_ratio: Floats,
    group: Codes,
    weight: Floats,
    counts: Floats,
    *,
    favoured: int,
    delta: float,
    alpha: float,
    cut: float = 0.0,
) -> CountPath:
    """Return the path of the class counts until the groups' rates are equal or no count is left.

    Parameters
    ----------
    log_ratio : ndarray of shape (n,)
        log P(x | 1) − log P(x | 0) of each row.
    group, weight : ndarray of shape (n,)
        The group, 0 or 1, and the weight of each row.
    counts : ndarray of shape (2, 2)
        The weight of each label in each group.
    favoured : int
        The group whose positive rate is to fall, compared with the other one.
    delta : float
        A step moves this share of a count.
    alpha : float
        alpha / 2 is added to each count in the prior.
    cut : float, default=0.0
        A row is positive where its log odds exceed this number.

    Examples
    --------
    >>> group = np.repeat([0, 1], 100)
    >>> counts = np.array([[70.0, 40.0], [30.0, 60.0]])
    >>> path = count_path(np.zeros(200), group, np.ones(200), counts, favoured=1, delta=0.01,
    ...                   alpha=1.0)
    >>> path.n_steps, path.difference
    (array([ 0, 34]), array([1., 0.]))
    """
    n_positive_labels = float(counts[1].sum())
    groups = []
    for side in (0, 1):
        inside = group == side
        total = counts[:, side].sum() + alpha
        critical = total * expit(cut - log_ratio[inside]) - alpha / 2
        groups.append(_SortedGroup(critical, weight[inside], counts[:, side]))
    high, low = groups[favoured], groups[1 - favoured]
    n_steps, entries, differences = 0, [], []
    is_last = False
    while True:
        entries.append((n_steps, *((g.negative, g.positive) for g in groups)))
        differences.append(high.rate - low.rate)
        if is_last or differences[-1] <= 0:
            break
        if high.positive_weight + low.positive_weight < n_positive_labels:
            n_taken, is_last = _move(low, delta * high.negative, upwards=True)
        else:
            n_taken, is_last = _move(high, delta * low.positive, upwards=False)
        n_steps += n_taken
    counted = np.array([entry[1:] for entry in entries])  # (m, group, label)
    return CountPath(
        np.array([entry[0] for entry in entries], dtype=np.intp),
        counted.transpose(0, 2, 1),
        np.array(differences),
    )


def _move(group: _SortedGroup, step: float, *, upwards: bool) -> tuple[int, bool]:
    """Move counts to one label until a decision changes; return the steps and "is last".

    The label is the positive one if `upwards`, else the negative one. No step is taken where steps
    are too small to move a count.
    """
    count = group.negative if upwards else group.positive
    if step <= 0 or count / step > 2**53:
        return 0, True
    most = math.floor(count / step)
    most -= count - most * step < 0  # rounding: no count may fall below 0
    needed = math.inf
    at = group.n_positive if upwards else group.n_positive - 1
    if at < len(group.critical):
        gap = abs(group.critical[at] - group.positive) / step
        if gap <= 2**53:
            needed = max(math.floor(gap) + 1 if upwards else math.ceil(gap), 1)
    taken = int(min(needed, most))
    group.move(taken * step if upwards else -taken * step)
    return taken, needed > most
