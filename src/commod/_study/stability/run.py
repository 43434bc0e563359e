"""Fit an update again and again on resamples, and count who changes each time."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state, get_tags

from commod._data.codes import code_array, joint_codes
from commod._data.columns import Column, Scalar, read_columns
from commod._data.groups import Groups, read_groups
from commod._data.labels import check_length, read_labels
from commod._data.tables import n_rows_of, take_rows
from commod._study.evaluation import EvaluationRows
from commod._study.frontier import groups_compared, read_evaluated
from commod._study.stability.result import Stability, agreement_of, count_uses
from commod.exceptions import InputError, InterruptionWarning
from commod.metrics._constraint import get_constraint
from commod.scorecard import Scorecard
from commod.updates._progress import progress_bar
from commod.updates.base import BaseUpdate, Changes

__all__ = ["stability"]

MAX_SEED = 2**31 - 1


def stability(
    update: BaseUpdate,
    X: Any,
    y: Any = None,
    *,
    sensitive_features: Any,
    X_eval: Any = None,
    y_eval: Any = None,
    sensitive_features_eval: Any = None,
    n_refits: int = 30,
    sample: str | float = "subsample",
    progress: bool | None = None,
    random_state: Any = None,
) -> Stability:
    """Return how often each person's decision changes when the update is fitted on other rows.

    The update is fitted again on resamples of the rows; the same people are decided on each time.

    Parameters
    ----------
    update : ControlledDebiaser, COMMOD or one of commod.rivals
        Fitted or not; it is cloned and stays as it is. If it is fitted, the people it changes
        itself are followed through the refits (`Stability.reference_share`).
    X, y, sensitive_features
        The rows to draw from, as in `update.fit`.
    X_eval : table, default=None
        The people to decide on; the rows themselves if None.
    y_eval, sensitive_features_eval : default=None
        Their labels and groups. Without the groups the fairness of the refits is NaN, and a method
        that decides by group is refused; constraints on errors need the labels too.
    n_refits : int, default=30
        How many refits, at least 2.
    sample : {"subsample", "bootstrap"} or float, default="subsample"
        "subsample": half of the rows, without repetition. A number between 0 and 1: that share,
        without repetition. "bootstrap": as many rows as there are, with repetition.
    progress : bool, default=None
        Show a progress bar; None shows it on a terminal only.
    random_state : int, RandomState or None, default=None
        Draws the rows. An update whose own `random_state` is None also gets a seed for each refit
        from here; one that has a seed keeps it.

    Returns
    -------
    Stability

    Notes
    -----
    *Why half of the rows.* Over random halves a smooth estimate varies around its value on all rows
    as much as it would over new samples of the full size, the bootstrap's variation to first order;
    with 80 % it would vary half as much, and the update look steadier than it is. And nobody is
    drawn twice: methods that hold rows out (``confidence=0.95``) would find the same person on both
    sides and promise too much, and every smallest size would count copies. The price: a refit has
    half the evidence, so a promise is kept with more changes, or not at all. `min_group_size` and
    `min_category_size` are lowered by the same share, so that the same groups and about the same
    categories take part. A category that fewer than `min_category_size` of all rows share has no
    points in the update, and can have none in a refit either, however often it is drawn.

    Rows are drawn within each group, and within each true label of it where `y` is given: no group
    vanishes and all refits have the same number of rows. So COMMOD is compiled once (for sizes it
    pads to), and the first refit takes the longest.

    A refit that raises is counted and its reason kept in `Stability.failures`; warnings of refits
    are in `Stability.warnings`, not printed. A keyboard interrupt ends the refits, not the program,
    if two are done: the result has what was done, and a warning says so.

    Examples
    --------
    >>> from commod import ControlledDebiaser
    >>> from commod import stability
    >>> from commod.datasets import make_biased
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> found = stability(
    ...     ControlledDebiaser(model, target=0.8),
    ...     data.data,
    ...     data.target,
    ...     sensitive_features=data.sensitive_features,
    ...     n_refits=5,
    ...     random_state=0,
    ... )
    >>> found.n_refits, found.change_share.shape, bool(0 < found.agreement <= 1)
    (5, (800,), True)
    """
    _check_update(update, n_refits)
    rows = _Rows.read(X, y, sensitive_features, _share_of(sample), update)
    people = _People.choose(update, rows, (X_eval, y_eval, sensitive_features_eval))
    reference = people.changes(update).changed if hasattr(update, "status_") else None
    tally = _Tally()
    interrupted = _refit_all(update, rows, people, tally, n_refits, progress, random_state)
    found = tally.result(
        n_asked=n_refits,
        sample=_sample_words(rows.share),
        rows_word=people.word,
        constraints=update.constraints,
        reference=reference,
    )
    if interrupted:
        warnings.warn(
            f"Interrupted after {found.n_refits} of {n_refits} refits; these were kept.",
            InterruptionWarning,
            stacklevel=2,
        )
    return found


# ---------------------------------------------------------------------------------------------
# What is asked


def _check_update(update: Any, n_refits: Any) -> None:
    if not isinstance(update, BaseUpdate):
        raise InputError(
            "stability takes a ControlledDebiaser, a COMMOD or one of commod.rivals, fitted or "
            f"not; got {type(update).__name__}."
        )
    whole = isinstance(n_refits, int | np.integer) and not isinstance(n_refits, bool)
    if not whole or n_refits < 2:
        raise InputError(f"n_refits={n_refits!r} must be a whole number of at least 2.")


def _share_of(sample: Any) -> float | None:
    """Return the share of the rows that is drawn without repetition; None for the bootstrap."""
    if isinstance(sample, str) and sample in ("subsample", "bootstrap"):
        return 0.5 if sample == "subsample" else None
    if isinstance(sample, float | np.floating) and 0 < sample < 1:
        return float(sample)
    raise InputError(
        f"sample={sample!r} is not known; choose 'subsample' (half of the rows), 'bootstrap', or a "
        "share between 0 and 1, such as 0.8."
    )


def _sample_words(share: float | None) -> str:
    if share is None:
        return "bootstrap samples"
    return "random halves" if share == 0.5 else f"random {share:.0%}"


# ---------------------------------------------------------------------------------------------
# The rows that are drawn from


@dataclass(frozen=True)
class _Rows:
    """The rows to draw from; `cells` has the rows of each group (and label), and how many to draw.

    `group` (n,) or (n, n_sensitive) holds the values of the sensitive attribute, `common` the
    categories of each column that enough rows share to have points; None is "missing".
    """

    X: Any
    y: NDArray[Any] | None
    sensitive_features: Any
    group: NDArray[Any]
    share: float | None
    cells: list[tuple[NDArray[np.intp], int]]
    common: dict[str, frozenset[Scalar | None]]

    @classmethod
    def read(
        cls, X: Any, y: Any, sensitive_features: Any, share: float | None, update: BaseUpdate
    ) -> _Rows:
        """Check the rows before any work."""
        n_rows = n_rows_of(X)
        labels = None if y is None else read_labels(y, "y")
        if labels is not None:
            check_length(labels, "y", n_rows)
        groups = read_groups(sensitive_features, n_rows)
        values = np.empty((len(groups.labels), max(1, len(groups.parts))), dtype=object)
        values[:] = [v if groups.parts else (v,) for v in groups.labels]
        cells = _cells(groups, labels, share, update.min_group_size)
        group = values[groups.codes] if groups.parts else values[groups.codes, 0]
        common = _common_categories(X, update)
        return cls(X, labels, sensitive_features, group, share, cells, common)

    def draw(self, random: np.random.RandomState) -> dict[str, Any]:
        """Return what `fit` takes: rows of every cell, in their order."""
        repeat = self.share is None
        drawn = [random.choice(rows, size, replace=repeat) for rows, size in self.cells]
        rows = np.sort(np.concatenate(drawn))
        return {
            "X": take_rows(self.X, rows),
            "y": None if self.y is None else self.y[rows],
            "sensitive_features": self.group[rows],
        }


def _cells(
    groups: Groups, labels: NDArray[Any] | None, share: float | None, min_group_size: int
) -> list[tuple[NDArray[np.intp], int]]:
    """Return the rows of each cell and how many are drawn of them.

    Rounded up in groups that are part of the constraint, down in the others: with `min_group_size`
    lowered by the same share, the same groups are part of it in every refit.
    """
    large = groups.sizes >= min_group_size
    parts = [groups.codes] if labels is None else [groups.codes, code_array(labels).codes]
    codes, _ = joint_codes(parts)
    order = np.argsort(codes, kind="stable")
    cells = []
    for rows in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
        rounded = math.ceil if large[groups.codes[rows[0]]] else math.floor
        size = len(rows) if share is None else min(len(rows), rounded(share * len(rows)))
        cells.append((rows.astype(np.intp), size))
    return cells


def _common_categories(X: Any, update: BaseUpdate) -> dict[str, frozenset[Scalar | None]]:
    """Return the categories of each column that may have points in a fit on all rows."""
    smallest = getattr(update, "min_category_size", None)
    if not isinstance(smallest, int | np.integer):
        return {}
    common = {}
    for column in read_columns(X, skip=update._unread()):
        if column.kind == "category":
            n_rows = np.bincount(column.values + 1, minlength=len(column.categories) + 1)
            sizes = zip((None, *column.categories), n_rows.tolist(), strict=True)
            common[column.name] = frozenset(c for c, n in sizes if n >= smallest)
    return common


def _fresh(update: BaseUpdate, rows: _Rows, random: np.random.RandomState) -> BaseUpdate:
    """Return an unfitted copy for one refit: silent, with a seed, its smallest sizes to scale."""
    copied: BaseUpdate = clone(update)
    known = copied.get_params()
    changed: dict[str, Any] = {}
    if "progress" in known:
        changed["progress"] = False
    if "random_state" in known and known["random_state"] is None:
        changed["random_state"] = int(random.randint(MAX_SEED))
    for name in ("min_group_size", "min_category_size"):
        if rows.share is not None and isinstance(known.get(name), int | np.integer):
            # never 1 where it was not: a rare category would be let in again, row by row
            changed[name] = max(min(2, known[name]), math.ceil(rows.share * known[name]))
    copied.set_params(**changed)
    features = copied._features

    def without_rare(columns: Sequence[Column]) -> list[Column]:
        return [_hide_rare(column, rows.common) for column in features(columns)]

    # the columns of the update alone: the base model reads X as it is
    copied._features = without_rare  # type: ignore[method-assign]
    return copied


def _hide_rare(column: Column, common: Mapping[str, frozenset[Scalar | None]]) -> Column:
    """Return a column in which each row of a rare category has a category of its own.

    Nothing that one row alone has gets points. Making them "missing" would not do: that is a
    category like another, and a common one then.
    """
    if column.kind != "category" or column.name not in common:
        return column
    kept = common[column.name]
    is_rare = np.array([c not in kept for c in (*column.categories, None)])[column.values]
    if not is_rare.any():
        return column
    n_known, n_rare = len(column.categories), int(is_rare.sum())
    values = column.values.copy()
    values[is_rare] = n_known + np.arange(n_rare)
    nameless = (f"\0rare {i}" for i in range(n_rare))
    return replace(column, values=values, categories=(*column.categories, *nameless))


# ---------------------------------------------------------------------------------------------
# The people who are decided on


@dataclass(frozen=True)
class _People:
    """The people whose decisions are counted; `compared` are the groups fairness compares."""

    X: Any
    y: Any
    sensitive_features: Any
    word: str
    compared: list[Any]

    @classmethod
    def choose(cls, update: BaseUpdate, rows: _Rows, given: tuple[Any, Any, Any]) -> _People:
        """Return the people given, or those of the rows where none are."""
        compared = groups_compared(update, rows.X, rows.sensitive_features)
        X, y, sensitive_features = given
        if X is None:
            if y is not None or sensitive_features is not None:
                raise InputError(
                    "y_eval and sensitive_features_eval belong to X_eval, which is None."
                )
            return cls(rows.X, rows.y, rows.sensitive_features, "fit rows", compared)
        if sensitive_features is None and get_tags(update).needs_sensitive_features:
            raise InputError(
                f"{type(update).__name__} decides by group: pass sensitive_features_eval with the "
                "group of each row of X_eval."
            )
        return cls(X, y, sensitive_features, "evaluated rows", compared)

    def changes(self, model: BaseUpdate) -> Changes:
        """Return whom a fitted update changes."""
        if get_tags(model).needs_sensitive_features:
            return model.changes(self.X, sensitive_features=self.sensitive_features)
        return model.changes(self.X)

    def evaluation(self, model: BaseUpdate) -> EvaluationRows | None:
        """Return what measures fairness; None where groups, or labels it needs, are not known."""
        needs_label = get_constraint(model.constraints).needs_labels
        if self.sensitive_features is None or (needs_label and self.y is None):
            return None
        base = model._base(self.X, read_columns(self.X, skip=model._unread()))
        return read_evaluated(model, self.compared, base, (self.X, self.y, self.sensitive_features))


# ---------------------------------------------------------------------------------------------
# Refitting and counting


@dataclass
class _Tally:
    """What refits did so far: `changes` and the rest have one entry per refit that worked."""

    changes: list[Changes] = field(default_factory=list)
    fairness: list[float] = field(default_factory=list)
    cards: list[Scorecard | None] = field(default_factory=list)
    failures: list[Exception] = field(default_factory=list)
    messages: dict[str, list[str]] = field(default_factory=dict)

    def warn(self, caught: Sequence[warnings.WarningMessage]) -> None:
        """Keep the warnings of one refit, each message once."""
        said = {(w.category.__name__, str(w.message)) for w in caught}
        for name, message in sorted(said):
            self.messages.setdefault(name, []).append(message)

    def result(self, *, n_asked: int, **how: Any) -> Stability:
        """Return the counts; fewer than two refits that worked are an error."""
        if len(self.changes) < 2:
            first = self.failures[0]
            raise InputError(
                f"{len(self.failures)} of {n_asked} refits failed, and at least 2 are needed. The "
                f"first said: {type(first).__name__}: {first}"
            ) from first
        gains = np.array([c.gain for c in self.changes])
        losses = np.array([c.loss for c in self.changes])
        columns, lines = count_uses(self.cards)
        return Stability(
            n_refits=len(self.changes),
            n_asked=n_asked,
            gain_share=gains.mean(axis=0),
            loss_share=losses.mean(axis=0),
            change_share=(gains | losses).mean(axis=0),
            agreement=agreement_of(gains | losses),
            columns=columns,
            lines=lines,
            fairness=np.array(self.fairness),
            change_rate=(gains | losses).mean(axis=1),
            failures=tuple(f"{type(error).__name__}: {error}" for error in self.failures),
            warnings=self.messages,
            **how,
        )


def _refit_all(
    update: BaseUpdate,
    rows: _Rows,
    people: _People,
    tally: _Tally,
    n_refits: int,
    progress: bool | None,
    random_state: Any,
) -> bool:
    """Fill the tally; return whether the work was interrupted with enough refits done."""
    random = check_random_state(random_state)
    try:
        with progress_bar("stability", progress, "refits") as report:
            _refit_each(update, rows, people, tally, n_refits, random, report)
    except KeyboardInterrupt:
        if len(tally.changes) < 2:
            raise
        return True
    return False


def _refit_each(
    update: BaseUpdate,
    rows: _Rows,
    people: _People,
    tally: _Tally,
    n_refits: int,
    random: np.random.RandomState,
    report: Callable[[int, int], None] | None,
) -> None:
    evaluation: EvaluationRows | None = None
    for done in range(n_refits):
        drawn = rows.draw(random)
        model = _fresh(update, rows, random)
        changes = _refit(model, drawn, people, tally)
        if changes is not None:
            if not tally.changes:
                evaluation = people.evaluation(model)
            tally.changes.append(changes)
            tally.fairness.append(_fairness(evaluation, changes))
            tally.cards.append(getattr(model, "scorecard_", None))
        if report is not None:
            report(done + 1, n_refits)


def _refit(
    model: BaseUpdate, drawn: dict[str, Any], people: _People, tally: _Tally
) -> Changes | None:
    """Fit one model and return whom it changes; None, and the reason kept, where it raises."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            changes = people.changes(model.fit(**drawn))
        except Exception as error:
            tally.failures.append(error)
            changes = None
    if any(issubclass(w.category, InterruptionWarning) for w in caught):
        raise KeyboardInterrupt  # training caught it, and what it learned is half a model
    tally.warn(caught)
    return changes


def _fairness(evaluation: EvaluationRows | None, changes: Changes) -> float:
    if evaluation is None:
        return math.nan
    return evaluation.fairness(np.asarray(evaluation.before ^ changes.changed))
