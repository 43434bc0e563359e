"""ControlledDebiaser: the user states the constraint, the library finds the fewest changes."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from commod._data.encoding import Encoding, TermTable, learn_encoding
from commod._record import Request
from commod._solvers.concepts import Concepts
from commod._solvers.search.rates import Caps
from commod._statistics.promises import (
    fairness_interval,
    promise_along,
    promised_fairness,
    rows_factor,
)
from commod.bounds._tables import DIRECTIONS
from commod.exceptions import InputError, TargetWarning
from commod.scorecard import decide
from commod.updates._held_out import fairest_first, halves, take
from commod.updates._interface import Grid, RawRows, Sweep, read_grid, read_numbers
from commod.updates._progress import progress_bar
from commod.updates._search import Search, Update, check_monotone
from commod.updates._sweep_targets import SearchCandidate, sweep_search
from commod.updates._words import LimitsInWords, round_up
from commod.updates.base import (
    FitRows,
    by_column,
    check_locked,
    check_number,
    warn_about_group_columns,
)
from commod.updates.ratio import RatioUpdate

__all__ = ["ControlledDebiaser"]

CHOICES = {
    "numeric": ("auto", "unit", "bins"),
    "direction": DIRECTIONS,
    "sample": ("auto", "all"),
}
N_PROMISED = 24  # models between the target and parity that a promise is sought among


class ControlledDebiaser(RatioUpdate):
    """The update with the fewest changes that meets a stated constraint.

    Learns r(x), a scorecard on the raw columns, such that decisions change exactly where r(x) < 0,
    the constraint holds on the fit rows, and as few decisions as possible change. Where no such
    update is found, the closest one is kept and `status_` says why, with numbers. The sensitive
    attribute is seen by `fit` alone. Needs NumPy and SciPy, not JAX.

    Parameters
    ----------
    estimator : fitted classifier or ScoreColumn
        The base model f. It is never refitted.
    constraints : str, default="demographic_parity"
        "demographic_parity" (P-rule), "equalized_odds" (DM = ΔTPR + ΔFPR),
        "true_positive_rate_parity" or "false_positive_rate_parity" (one gap).
    target : float, default=None
        Floor on the P-rule, or ceiling on the disparity. None with `max_changes`: the best
        fairness for that budget. None without: 0.8 for the P-rule, 0.1 for a disparity.
    max_changes : float, default=None
        Hard limit on the share of decisions that change on the fit rows, in [0, 1].
    max_accuracy_loss : float, default=None
        Hard limit on the loss of accuracy on the fit rows, in [0, 1]. Needs y.
    max_volume_change : float, default=None
        Hard limit on the change, up or down, of the overall rate of `pos_label`, in [0, 1].
    direction : str, default="any"
        "gains_only": nobody loses the favourable outcome, r is held at 1 where the base decision
        is favourable already; "losses_only": the reverse; "any": r acts everywhere.
    n_concepts : int, default=2
        Concepts the scorecard is split into, by whole raw columns. The update is the same.
    sparsity : float, default=0.14
        Extra changes, as a share of the fewest found, that a shorter and steadier scorecard may
        cost on the fit rows. 0: the fewest changes, every column and line.
    numeric : str, default="auto"
        "unit": a numeric column has points per unit; "bins": points per bin, as credit scorecards.
        "auto": per unit for demographic parity and with `monotone`; per bin for the constraints on
        errors, where straight lines cost many more changes.
    monotone : mapping of str to int, default=None
        1: r may only rise with the column (a category may only have points ≥ 0), -1: only fall.
    locked_features : collection of str, default=()
        Columns r must not read; the base model still gets them.
    accuracy_weight : float, default=0.0
        What an error counts beside a change when the fewest are sought, in [0, 1]: at 0.5 a change
        that makes an error costs three times one that mends an error. Needs y.
    confidence : float, default=None
        Promise the target for new people, with this confidence: half of the rows find updates, the
        other half, which must be new to the base model too, says which keep the promise.
    sample : str, default="auto"
        "auto": of many rows, the direction is sought on a stratified sample, large enough that
        about 1,000 of its rows have to change, and verified on all rows; where it changes more of
        them than chance explains, the sample grows. Uneven weights need more rows. The cut and
        every figure are counted on all rows either way. The updates of a frontier and those of
        `confidence` share one sample, which grows for all of them. "all": the direction is sought
        on all rows.
    min_category_size : int, default=5
        Fit rows a category needs to have points of its own; rarer ones count as unseen.
    min_group_size : int, default=30
        Fit rows a group needs to be part of the constraint; smaller ones are reported.
    threshold : float, default=0.5
        The base decision is score > threshold.
    pos_label : label, default=None
        The label whose rates count; `classes_[1]` if None.
    favorable_label : label, default=None
        The label that is good for the person; `pos_label` if None.
    progress : bool, default=None
        Show a progress bar; None shows it on a terminal only.
    random_state : int, RandomState or None, default=None
        Draws the halves of `confidence`, and the sample of many rows, with which `sample="all"`
        begins, too. If None, halves are drawn anew in each fit, the sample is always the same.

    Attributes
    ----------
    scorecard_ : Scorecard
        r and its concepts as points on the raw columns.
    reached_ : bool
        Whether the target is met on the rows named in `status_`.
    promised_ : bool or None
        Whether the target is promised for new people; None without `confidence`.
    fairness_, base_fairness_, accuracy_, base_accuracy_, change_rate_ : float
        What was reached, beside the base model's: on the fit rows, with `confidence` on the half
        that was held out.
    fairness_interval_ : tuple of float
        Two-sided interval of the fairness for people like these rows, at `confidence` (0.95 if
        None); on rows the update was fitted on it is too good. NaN with sample weights.
    n_gains_, n_losses_, n_rows_ : int
        People who gain and who lose the favourable outcome, of how many.
    n_search_rows_ : int
        Rows on which the direction was sought: all, or a sample of them.
    limit_ : float
        Fewest changes, as a share, that reach the same fairness in the same direction with the
        sensitive attribute in hand. NaN with sample weights.
    multiplier_ : float
        How many more changes, as a share, one more unit of the constraint would cost: the price
        at the cut. NaN where nothing changes.
    path_ : list of dict
        The steps of the search: name, share of changes, lines; with `confidence` the models that
        were tested, in order.
    history_ : dict of str to list
        The same as columns.
    concept_weights_, concept_contributions_, intercept_, term_names_
        As in `COMMOD`.
    status_ : str
        All of it in words.

    Notes
    -----
    Directions are found with soft changes by an augmented Lagrangian whose temperature is lowered,
    from a logistic regression of the people worth changing; cuts are exact. r is scaled to minimise
    mean((r − 1)²), which changes no decision.

    Examples
    --------
    >>> from commod import ControlledDebiaser
    >>> from commod.datasets import make_biased
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> update = ControlledDebiaser(model, target=0.8)
    >>> update = update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    >>> bool(update.fairness_ >= 0.8), bool(update.change_rate_ >= update.limit_)
    (True, True)
    """

    promised_: bool | None

    def __init__(
        self,
        estimator: Any,
        *,
        constraints: str = "demographic_parity",
        target: float | None = None,
        max_changes: float | None = None,
        max_accuracy_loss: float | None = None,
        max_volume_change: float | None = None,
        direction: str = "any",
        n_concepts: int = 2,
        sparsity: float = 0.14,
        numeric: str = "auto",
        monotone: Mapping[str, int] | None = None,
        locked_features: Collection[str] = (),
        accuracy_weight: float = 0.0,
        confidence: float | None = None,
        sample: str = "auto",
        min_category_size: int = 5,
        min_group_size: int = 30,
        threshold: float = 0.5,
        pos_label: Any = None,
        favorable_label: Any = None,
        progress: bool | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.constraints = constraints
        self.target = target
        self.max_changes = max_changes
        self.max_accuracy_loss = max_accuracy_loss
        self.max_volume_change = max_volume_change
        self.direction = direction
        self.n_concepts = n_concepts
        self.sparsity = sparsity
        self.numeric = numeric
        self.monotone = monotone
        self.locked_features = locked_features
        self.accuracy_weight = accuracy_weight
        self.confidence = confidence
        self.sample = sample
        self.min_category_size = min_category_size
        self.min_group_size = min_group_size
        self.threshold = threshold
        self.pos_label = pos_label
        self.favorable_label = favorable_label
        self.progress = progress
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Find the update on rows that are, best, new to the base model.

        Parameters
        ----------
        X : table of shape (n, n_features)
            NumPy array, pandas or polars frame; passed to the base model untouched.
        y : array-like of shape (n,)
            True labels. May be None for demographic parity.
        sensitive_features : array-like of shape (n,) or (n, n_sensitive)
            The group of each row; several columns mean their intersections.
        sample_weight : array-like of shape (n,), default=None
            Weight of each row in fairness and accuracy. Changes are counted in people, whatever
            their weight. Not with `confidence`: its promise is about people counted once.

        Returns
        -------
        self
        """
        search = self._prepare(X, y, sensitive_features, sample_weight)
        if self.confidence is None:
            self._fit_once(search)
        else:
            self._fit_promise(search)
        if not self.reached_ or self.promised_ is False:
            warnings.warn(self.status_, TargetWarning, stacklevel=2)
        return self

    def _prepare(self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any) -> Search:
        """Check everything and return the rows and requirements of a fit."""
        self._check_parameters()
        if self.confidence is not None and sample_weight is not None:
            raise InputError(
                "confidence and sample_weight cannot be used together: the promise rests on counts "
                "of independent people, and a weighted rate has another error. Leave one out."
            )
        rows = self._read_fit_rows(X, y, sensitive_features, sample_weight)
        self._check_labels_needed(rows)
        check_locked(self.locked_features, rows.columns)
        warn_about_group_columns(rows, self.locked_features)
        if not rows.weight.all():  # a row without weight is as if it were not there
            rows = take(rows, np.flatnonzero(rows.weight))
        return self._search(rows)

    # -- parameters ---------------------------------------------------------------------

    def _check_parameters(self) -> None:
        shares = {"max_changes": 1.0, "max_accuracy_loss": 1.0, "max_volume_change": 1.0}
        for name, most in shares.items():
            if getattr(self, name) is not None:
                check_number(self, name, low=0.0, high=most)
        check_number(self, "sparsity", low=0.0)
        check_number(self, "accuracy_weight", low=0.0, high=1.0)
        for name in ("n_concepts", "min_category_size"):
            check_number(self, name, low=1, whole=True)
        if self.target is not None:
            check_number(self, "target", low=0.0, high=self._constraint.largest)
        for name, known in CHOICES.items():
            if getattr(self, name) not in known:
                raise InputError(
                    f"{name}={getattr(self, name)!r} is not known; choose one of "
                    f"{', '.join(known)}."
                )
        if self.confidence is not None:
            check_number(self, "confidence", low=0.5, high=0.9999, include="right")
            if self._is_budget:
                raise InputError(
                    "confidence promises a target, but target is None and max_changes alone names "
                    "none. Pass target=, too.",
                    parameter="confidence",
                )
        if self.monotone is not None and not isinstance(self.monotone, Mapping):
            raise InputError(
                f"monotone={self.monotone!r} must map columns to 1 or -1, such as "
                "{'age': 1}: r may only rise with age."
            )

    def _check_labels_needed(self, rows: FitRows) -> None:
        needed = [
            name
            for name, used in (
                ("max_accuracy_loss", self.max_accuracy_loss is not None),
                ("accuracy_weight", bool(self.accuracy_weight)),
            )
            if used and rows.label is None
        ]
        if needed:
            raise InputError(f"{needed[0]} compares decisions with labels, but y is None. Pass y.")

    @property
    def _target(self) -> float:
        """Return the target; the best there is where only a budget was given."""
        is_floor = self._constraint.higher_is_fairer
        if self.target is not None:
            return max(float(self.target), 1e-9) if is_floor else float(self.target)
        if self._is_budget:
            return self._constraint.near_ideal
        return 0.8 if is_floor else 0.1

    @property
    def _numeric(self) -> Literal["unit", "bins"]:
        if self.numeric == "bins":
            return "bins"
        errors = self._constraint.needs_labels
        return "bins" if self.numeric == "auto" and errors and not self.monotone else "unit"

    @property
    def _is_budget(self) -> bool:
        """Return whether a budget of changes was given and no target."""
        return self.target is None and self.max_changes is not None

    def _may_move(self) -> tuple[bool, bool]:
        """Return whether decisions may become positive, and may cease to be."""
        gains_raise = bool(self.favorable_label_ == self.pos_label_)
        if self.direction == "any":
            return True, True
        raises = gains_raise == (self.direction == "gains_only")
        return raises, not raises

    def _search(self, rows: FitRows, encoding: Encoding | None = None) -> Search:
        if encoding is None:
            encoding = learn_encoding(
                rows.columns,
                rows.weight,
                min_category_size=self.min_category_size,
                locked=self.locked_features,
                numeric=self._numeric,
            )
        monotone = dict(self.monotone or {})
        check_monotone(monotone, encoding, [c.name for c in rows.columns])
        may_raise, may_lower = self._may_move()
        search = Search(
            rows=rows,
            encoding=encoding,
            terms=encoding.encode(rows.columns),
            constraint=self._constraint,
            caps=Caps(self.max_changes, self.max_accuracy_loss, self.max_volume_change),
            may_raise=may_raise,
            may_lower=may_lower,
            sparsity=float(self.sparsity),
            accuracy_weight=float(self.accuracy_weight),
            monotone=monotone,
            use_all=self.sample == "all",
            random_state=check_random_state(0 if self.random_state is None else self.random_state),
        )
        search.check_cells()
        return search

    # -- fitting ---------------------------------------------------------------------

    def _fit_once(self, search: Search) -> None:
        self._keep(search, search.best(self._target))

    def _keep(self, search: Search, update: Update) -> None:
        """Store an update and what it does to the rows of the search."""
        self.promised_ = None
        self._store_update(search, update)
        self._store_figures(search)

    def _blank_scorecard(self, search: Search) -> None:
        """Store r = 1, so that rows can be read before anything is found."""
        mean, scale = search.moments
        blank = _no_change(self.n_concepts, search.terms.n_terms)
        self._store_scorecard(search.encoding, blank, mean, np.where(scale > 0, scale, 1.0))

    def _store_update(self, search: Search, update: Update) -> None:
        """Keep an update as a scorecard, scaled so that r is 1 on average."""
        mean, scale = search.moments
        scale = np.where(scale > 0, scale, 1.0)
        eta = search.eta(update)
        there = search.free
        changed = (eta > 0) & there
        concepts = _no_change(self.n_concepts, search.terms.n_terms)
        if changed.any():
            factor = _scale_to_one(eta[there])
            concepts = _one_concept(-factor * update.weights, self.n_concepts)
            concepts = Concepts(concepts.weights, concepts.contributions, -factor * update.shift)
            weight = search.rows.weight
            concepts = by_column(concepts, search.encoding, search.terms, scale, weight)
        self._store_scorecard(search.encoding, concepts, mean, scale)
        self.multiplier_ = update.price if changed.any() else float("nan")
        self.n_search_rows_ = update.n_sought
        self._sampled = (update.n_sought, len(search.rows), update.verified)
        self.path_ = [
            {"step": step, "change_rate": cost, "n_terms": n_terms}
            for step, cost, n_terms in update.found.steps
        ]
        self.history_ = {
            name: [step[name] for step in self.path_] for name in ("step", "change_rate", "n_terms")
        }

    def _store_figures(self, search: Search) -> None:
        """Measure the stored update on the rows of a search and say it in words."""
        rows = search.rows
        ratio = self._effective(rows.base.decisions, self._ratio_on(search.terms))
        decisions = decide(rows.base.scores, ratio, rows.base.threshold)
        self.target_ = self._target
        weighted = bool((rows.weight != rows.weight[0]).any())
        sizes, positives = search.counts(decisions)
        level = 0.95 if self.confidence is None else float(self.confidence)
        self.fairness_interval_ = (
            (float("nan"), float("nan"))
            if weighted
            else fairness_interval(self.constraints, sizes, positives, level)
        )
        fairness = rows.fairness(self.constraints, decisions)
        self.reached_ = self._is_budget or bool(self._is_reached(fairness))
        self._figures = LimitsInWords(self, search, decisions, weighted)
        self.limit_ = self._figures.share
        self._store_outcome(rows, decisions)
        del self._figures, self._sampled

    def _is_reached(self, fairness: float) -> bool:
        return bool(self._constraint.is_met(fairness, self._target))

    def _ratio_on(self, terms: TermTable) -> NDArray[np.float64]:
        return self._ratio_function().evaluate(terms)

    # -- promises ---------------------------------------------------------------------

    def _fit_promise(self, search: Search) -> None:
        """Fit a path on one half and keep the last model whose promise holds on the other."""
        sizes, _ = search.counts(search.rows.base.decisions)
        if (sizes < 2).any():
            raise InputError(
                "confidence needs rows of every group in both halves, but a group has only "
                f"{sizes.min()} that counts. Raise min_group_size, merge groups or add rows."
            )
        first, second = halves(search, check_random_state(self.random_state))
        train = self._search(take(search.rows, first), search.encoding)
        test = self._search(take(search.rows, second), search.encoding)
        is_floor = self._constraint.higher_is_fairer
        targets = np.linspace(self._target, self._constraint.near_ideal, N_PROMISED).tolist()
        with progress_bar("ControlledDebiaser", self.progress, "models") as report:
            models = [update for (update,) in train.path(targets, report)]
        tried = fairest_first(train, models, is_floor)
        tables = []
        for update in tried:
            self._store_update(train, update)
            ratio = self._effective(test.rows.base.decisions, self._ratio_on(test.terms))
            base = test.rows.base
            tables.append(test.counts(decide(base.scores, ratio, base.threshold)))
        confidence = float(self.confidence or 0.95)
        kept = promise_along(self.constraints, tables, self._target, confidence)
        self.promised_ = kept is not None
        self._store_update(train, tried[kept or 0])
        self.path_ = [
            {
                "step": "tested" if kept is not None and i <= kept + 1 else "not tested",
                "change_rate": update.found.direction.cost,
                "n_terms": int(update.found.support.sum()),
                "promised_fairness": promised_fairness(self.constraints, *table, confidence),
            }
            for i, (update, table) in enumerate(zip(tried, tables, strict=True))
        ]
        factor = rows_factor(self.constraints, *tables[kept or 0], self._target, confidence)
        self._more_rows = factor * 2 * len(test.rows)
        self._store_figures(test)
        del self._more_rows

    # -- words ---------------------------------------------------------------------

    def _sentence(self) -> str:
        text = super()._sentence()
        if self.confidence is not None:
            text = text.replace("fit rows", "held-out rows", 1).replace(
                "; new rows may differ.", "."
            )
        return " ".join([self._verdict(), text, *self._figures.sentences()])

    def _verdict(self) -> str:
        metric = self._constraint.metric
        goal = f"{metric} {self._constraint.sign} {self._target:g}"
        if self.confidence is not None:
            return self._promise_in_words(goal)
        if self._is_budget:
            return f"Best {metric} found with at most {self.max_changes:.1%} changed."
        if self.reached_:
            return f"{goal} is reached on the fit rows."
        return f"{goal} was not reached; what comes closest was kept."

    def _promise_in_words(self, goal: str) -> str:
        sure = f"{float(self.confidence or 0):g}"
        condition = "if the rows are new to the base model and new people come as they did"
        if self.promised_:
            return f"{goal} is promised for new people with confidence {sure}, {condition}."
        if np.isfinite(self._more_rows):
            need = f"about {round_up(self._more_rows):,} rows would be needed"
        else:
            need = "on the held-out rows no update tried is fairer than the target"
        return f"Insufficient evidence that {goal} holds for new people ({sure}): {need}."

    # -- applying ---------------------------------------------------------------------

    def _effective(
        self, base: NDArray[np.bool_], ratio: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        may_raise, may_lower = self._may_move()
        return np.where(np.where(base, may_lower, may_raise), ratio, 1.0)

    # -- internal interface: see _interface.py -----------------------------------------------------

    def sweep(
        self, rows: RawRows, targets: Sequence[float] | None = None, grid: Grid | None = None
    ) -> Sweep:
        """Return an update for each target and `accuracy_weight`; each is built when asked for."""
        hint = "Give targets= for the rest of the trade-off."
        weights = read_grid(grid, "accuracy_weight", "A ControlledDebiaser", hint)
        weights = [self.accuracy_weight] if weights is None else weights
        targets = read_numbers("targets", targets)
        for target in targets or ():
            clone(self).set_params(target=target)._check_parameters()
        candidates = []
        for weight in weights:
            model = clone(self).set_params(accuracy_weight=weight, confidence=None)
            search = model._prepare(*rows, None)
            model._blank_scorecard(search)  # lets the model read new rows
            allowed = model.allowed_changes()
            with progress_bar("frontier", self.progress, "targets") as report:
                swept = sweep_search(search, targets, model._target, report)
            for settings, update in swept:
                if len(weights) > 1:
                    settings["accuracy_weight"] = weight
                build = model._fitted_copy
                candidates.append(SearchCandidate(settings, search, update, allowed, build))
        return Sweep(candidates, model)

    def _fitted_copy(self, search: Search, update: Update, target: float | None) -> Self:
        """Return a copy with an update of a search; None as target: its points, no figures."""
        fitted = clone(self)
        fitted._take_reading(self)
        if target is None:
            fitted._store_update(search, update)
        else:
            is_known = not np.isnan(target)
            fitted.set_params(target=target if is_known else self._constraint.near_ideal)
            fitted._keep(search, update)
        return fitted

    def request(self) -> Request:
        """Return what the user asked of this update, as a record."""
        names = ("max_changes", "max_accuracy_loss", "max_volume_change", "confidence")
        asked: dict[str, Any] = {name: getattr(self, name) for name in names}
        asked = {name: value if value is None else float(value) for name, value in asked.items()}
        asked["target"] = None if self._is_budget else float(self.target_)
        return replace(super().request(), direction=self.direction, **asked)


def _no_change(n_concepts: int, n_terms: int) -> Concepts:
    return Concepts(np.zeros((n_concepts, n_terms)), np.zeros(n_concepts), 1.0)


def _one_concept(total: NDArray[np.float64], n_concepts: int) -> Concepts:
    """Return the whole scorecard as the first of k concepts, to be split by column."""
    weights = np.zeros((n_concepts, len(total)))
    weights[0] = total
    return Concepts(weights, np.eye(n_concepts)[0], 0.0)


def _scale_to_one(eta: NDArray[np.float64]) -> float:
    """Return c > 0 that minimises mean((−c·η − 1)²): r and c·r decide alike."""
    mean, square = float(eta.mean()), float(np.mean(eta**2))
    return -mean / square if mean < 0 else 1.0 / max(float(np.sqrt(square)), 1e-12)
