"""Fit an update again on resamples of the rows, and count who changes each time."""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import get_tags

from commod._data.codes import code_array, joint_codes
from commod._data.columns import UNNAMED, Column, Scalar, read_columns
from commod._data.groups import Groups, read_groups
from commod._data.labels import check_length, read_labels
from commod._data.parameters import check_flag, check_seed
from commod._data.tables import check_same_rows, n_rows_of, take_rows
from commod._study.evaluation import (
    EvaluationRows,
    choose_evaluated,
    compared_groups,
    read_evaluation_rows,
    refuse_probabilities,
)
from commod._study.refits import Stability, agreement_of, count_uses
from commod._text import shown
from commod.exceptions import BaseModelWarning, InputError, InterruptionWarning
from commod.scorecard import Scorecard
from commod.updates._interface import RawRows
from commod.updates._progress import progress_bar
from commod.updates.base import BaseUpdate, ChangedDecisions, check_update

MAX_REFITS = 100_000  # every refit keeps whom it changes


def stability(
    update: BaseUpdate,
    X: Any,
    y: Any = None,
    *,
    sensitive_features: Any = None,
    sensitive_probabilities: Any = None,
    X_eval: Any = None,
    y_eval: Any = None,
    sensitive_features_eval: Any = None,
    n_refits: int = 30,
    sample: str | float = "subsample",
    progress: bool | None = None,
    random_state: Any = None,
) -> Stability:
    """Return how often each person's decision changes when the update is fitted on other rows.

    The update is fitted again on resamples of the rows. Every refit decides on the same people.

    Parameters
    ----------
    update : ControlledDebiaser, COMMOD or one of commod.rivals
        Fitted or not; copies are refitted and it stays as it is. If it is fitted,
        `Stability.reference_share` says how often refits change the people whom it changes.
    X, y, sensitive_features
        The rows to draw from, as in `update.fit`.
    sensitive_probabilities : default=None
        Refused: refits are measured on people whose group is known.
    X_eval : table, default=None
        The people to decide on; the rows of X if None.
    y_eval, sensitive_features_eval : default=None
        Labels and groups of X_eval. Without groups, the fairness of the refits is NaN, and a method
        that decides by group is refused. Constraints on errors also need labels.
    n_refits : int, default=30
        How many refits, at least 2.
    sample : {"subsample", "bootstrap"} or float, default="subsample"
        "subsample": half of the rows, without replacement. A number between 0 and 1: this share,
        without replacement. "bootstrap": as many rows as X has, with replacement.
    progress : bool, default=None
        Show a progress bar; None shows it on a terminal only.
    random_state : int, RandomState or None, default=None
        Seeds the samples. If the update has a `random_state` that is None, each refit gets a seed
        from here; otherwise the update keeps its own.

    Returns
    -------
    Stability

    Notes
    -----
    *Why half of the rows.* To first order, a smooth estimate varies over random halves as much as
    over new samples of the full size, and as much as over bootstrap samples. Over samples of 80 %
    it would vary half as much, and the update would look more stable than it is. A half also draws
    nobody twice. With repeated rows, a method that holds rows out (``confidence=0.95``) would find
    the same person on both sides and promise too much, and minimum sizes would count copies. The
    price: a refit has half the evidence, so it keeps a promise with more changes or not at all.

    `min_group_size` and `min_category_size` are lowered by the same share, so that the same groups
    and about the same categories take part. A category that fewer than `min_category_size` of all
    rows share has no points in the update. It gets none in a refit either, however often it is
    drawn.

    Rows are drawn within each group, and within each true label of it where `y` is given. So no
    group vanishes, and all refits have the same number of rows. COMMOD is therefore compiled once
    (for the sizes that it pads to), and the first refit takes the longest.

    A refit that raises an error is counted, and `Stability.failures` keeps the error. Warnings of
    refits are not shown; `Stability.warnings` has them. A keyboard interrupt ends the refits. If at
    least two are done, the result holds these, and a warning says so.

    Examples
    --------
    >>> from commod import ControlledDebiaser
    >>> from commod import stability
    >>> from commod.datasets import make_biased
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> stable = stability(
    ...     ControlledDebiaser(model, target=0.8),
    ...     data.data,
    ...     data.target,
    ...     sensitive_features=data.sensitive_features,
    ...     n_refits=5,
    ...     random_state=0,
    ... )
    >>> stable.n_refits, stable.change_share.shape, bool(0 < stable.agreement <= 1)
    (5, (800,), True)
    """
    refuse_probabilities(
        sensitive_probabilities,
        "refits are measured on people whose group is known. Pass sensitive_features, None where "
        "the group is not known, and an update with unknown_groups='ignore'.",
    )
    check_update(update, "stability")
    check_flag(progress, "progress", optional=True)
    _check_n_refits(n_refits)
    share = _share_of(sample)
    sampler = RowSampler.read(update, RawRows(X, y, sensitive_features), share)
    given = RawRows(X_eval, y_eval, sensitive_features_eval)
    rows, rows_word = _choose_people(update, sampler.rows, given)
    refits = _Refits(update, sampler, rows, compared_groups(update, sampler.rows))
    reference = refits.changes_of(update).changed if hasattr(update, "status_") else None
    interrupted = refits.run(n_refits, check_seed(random_state), progress)
    result = refits.result(
        n_asked=n_refits,
        sample=_sample_text(share),
        rows_word=rows_word,
        constraints=update._stated().constraints[0].name,
        reference=reference,
    )
    if interrupted:
        warnings.warn(
            f"Interrupted after {result.n_refits} of {n_refits} refits. The result holds these.",
            InterruptionWarning,
            stacklevel=2,
        )
    return result


# -- parameters -----------------------------------------------------------------------------------


def _check_n_refits(n_refits: Any) -> None:
    is_whole = isinstance(n_refits, int | np.integer) and not isinstance(n_refits, bool)
    if not is_whole or not 2 <= n_refits <= MAX_REFITS:
        raise InputError(
            f"n_refits={shown(n_refits)} must be a whole number of at least 2 and at most "
            f"{MAX_REFITS:,}.",
            parameter="n_refits",
        )


def _share_of(sample: Any) -> float | None:
    """Return the share of the rows that is drawn without replacement; None for the bootstrap."""
    if isinstance(sample, str) and sample in ("subsample", "bootstrap"):
        return 0.5 if sample == "subsample" else None
    if isinstance(sample, float | np.floating) and 0 < sample < 1:
        return float(sample)
    raise InputError(
        f"sample={shown(sample)} is not known; choose 'subsample' (half of the rows), 'bootstrap', "
        "or a share between 0 and 1, such as 0.8.",
        parameter="sample",
    )


def _sample_text(share: float | None) -> str:
    if share is None:
        return "bootstrap samples"
    return "random halves" if share == 0.5 else f"random {share:.0%}"


def _choose_people(
    update: BaseUpdate, fit_rows: RawRows, eval_rows: RawRows
) -> tuple[RawRows, str]:
    """Return the people who are decided on, and their name; those of the fit rows by default."""
    rows, rows_word = choose_evaluated(fit_rows, eval_rows, needs_groups=False)
    if rows.sensitive_features is None and get_tags(update).needs_sensitive_features:
        raise InputError(
            f"{type(update).__name__} decides by group: pass sensitive_features_eval with the "
            "group of each row of X_eval."
        )
    return rows, rows_word


# -- refitting and counting -----------------------------------------------------------------------


@dataclass
class _Refits:
    """Refits an update and keeps what each refit did; lists have an entry per successful refit.

    `rows` are the people whose decisions are counted; fairness compares the groups in `compared`.
    """

    update: BaseUpdate
    sampler: RowSampler
    rows: RawRows
    compared: list[Hashable]
    evaluation: EvaluationRows | None = None
    changes: list[ChangedDecisions] = field(default_factory=list)
    fairness: list[float] = field(default_factory=list)
    scorecards: list[Scorecard | None] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)
    messages: dict[str, list[str]] = field(default_factory=dict)

    def run(self, n_refits: int, random: np.random.RandomState, progress: bool | None) -> bool:
        """Refit n times; return whether an interrupt ended the work with at least two refits."""
        try:
            with progress_bar("stability", progress, "refits") as report:
                for done in range(n_refits):
                    self._refit(random)
                    if report is not None:
                        report(done + 1, n_refits)
        except KeyboardInterrupt:
            if len(self.changes) < 2:
                raise
            return True
        return False

    def _refit(self, random: np.random.RandomState) -> None:
        drawn = self.sampler.draw(random)
        model = self.sampler.unfitted_copy(self.update, random)
        changes = self._fit(model, drawn)
        if changes is None:
            return
        if not self.changes:
            self.evaluation = self._evaluation_of(model)
        self.changes.append(changes)
        self.fairness.append(self._fairness_after(changes))
        self.scorecards.append(getattr(model, "scorecard_", None))

    def _fit(self, model: BaseUpdate, drawn: dict[str, Any]) -> ChangedDecisions | None:
        """Fit one model and return whom it changes; keep its error and return None if it fails."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                changes = self.changes_of(model.fit(**drawn))
            except Exception as error:
                self.errors.append(error)
                changes = None
        if any(issubclass(w.category, InterruptionWarning) for w in caught):
            raise KeyboardInterrupt  # training caught the interrupt; the model is half trained
        kinds = {(w.category, str(w.message)) for w in caught}
        for category, message in sorted(kinds, key=lambda kind: (kind[0].__name__, kind[1])):
            messages = self.messages.setdefault(category.__name__, [])
            # every refit edits the same base model, so what it says about that is said once
            if not (messages and issubclass(category, BaseModelWarning)):
                messages.append(message)
        return changes

    def changes_of(self, model: BaseUpdate) -> ChangedDecisions:
        """Return whom a fitted update changes."""
        if get_tags(model).needs_sensitive_features:
            return model.changes(self.rows.X, sensitive_features=self.rows.sensitive_features)
        return model.changes(self.rows.X)

    def _evaluation_of(self, model: BaseUpdate) -> EvaluationRows | None:
        """Return the rows to measure fairness on; None without groups, or labels if needed."""
        needs_labels = model._stated().needs_labels
        if self.rows.sensitive_features is None or (needs_labels and self.rows.y is None):
            return None
        base = model._read_base(self.rows.X)
        return read_evaluation_rows(model, self.compared, base, self.rows)

    def _fairness_after(self, changes: ChangedDecisions) -> float:
        if self.evaluation is None:
            return math.nan
        return self.evaluation.fairness(np.asarray(self.evaluation.before ^ changes.changed))

    def result(self, *, n_asked: int, **request: Any) -> Stability:
        """Return the counts; raise an error if fewer than two refits worked."""
        if len(self.changes) < 2:
            first = self.errors[0]
            raise InputError(
                f"{len(self.errors)} of {n_asked} refits failed, and at least 2 are needed. The "
                f"first error is: {type(first).__name__}: {first}"
            ) from first
        gains = np.array([changes.gain for changes in self.changes])
        losses = np.array([changes.loss for changes in self.changes])
        columns, terms = count_uses(self.scorecards)
        return Stability(
            n_refits=len(self.changes),
            n_asked=n_asked,
            gain_share=gains.mean(axis=0),
            loss_share=losses.mean(axis=0),
            change_share=(gains | losses).mean(axis=0),
            agreement=agreement_of(gains | losses),
            columns=columns,
            terms=terms,
            fairness=np.array(self.fairness),
            change_rate=(gains | losses).mean(axis=1),
            failures=tuple(f"{type(error).__name__}: {error}" for error in self.errors),
            warnings=self.messages,
            outcome="" if self.evaluation is None else self.evaluation.outcome,
            left_out="" if self.evaluation is None else self.evaluation.left_out_text,
            **request,
        )


# ---------------------------------------------------------------------------------------------
# Draw rows for refits, stratified by group and true label, and prepare an update for them

MAX_SEED = 2**31 - 1

CategorySets = Mapping[str, frozenset[Scalar | None]]
Stratum = tuple[NDArray[np.intp], int]  # the rows of a stratum, and how many of them to draw


@dataclass(frozen=True)
class RowSampler:
    """Draws the rows of refits, and prepares unfitted copies of an update for them.

    `rows` are the rows to draw from. `group` (n,) or (n, n_sensitive) holds their sensitive values.
    `share` is the share of the rows in a sample; None for the bootstrap. `common` has the
    categories of each column that may have points; None among them is "missing".
    """

    rows: RawRows
    group: NDArray[Any]
    share: float | None
    strata: list[Stratum]
    common: CategorySets

    @classmethod
    def read(cls, update: BaseUpdate, rows: RawRows, share: float | None) -> RowSampler:
        """Check the rows before any work."""
        check_same_rows(rows.by_name())
        n_rows = n_rows_of(rows.X)
        labels = None if rows.y is None else read_labels(rows.y, "y")
        if labels is not None:
            check_length(labels, "y", n_rows)
        unknown = getattr(update, "unknown_groups", "error")
        groups = read_groups(rows.sensitive_features, n_rows, unknown)
        # the last line, all None, is that of unknown groups, whose code is −1
        values = np.full((len(groups.labels) + 1, max(1, len(groups.parts))), None, dtype=object)
        values[:-1] = [label if groups.parts else (label,) for label in groups.labels]
        return cls(
            rows=RawRows(rows.X, labels, rows.sensitive_features),
            group=values[groups.codes] if groups.parts else values[groups.codes, 0],
            share=share,
            strata=_strata(groups, labels, share, update.min_group_size),
            common=_common_categories(rows.X, update),
        )

    def draw(self, random: np.random.RandomState) -> dict[str, Any]:
        """Return the arguments of `fit`: a sample of each stratum, in the order of the rows."""
        is_bootstrap = self.share is None
        drawn = [random.choice(rows, size, replace=is_bootstrap) for rows, size in self.strata]
        index = np.sort(np.concatenate(drawn))
        return {
            "X": take_rows(self.rows.X, index),
            "y": None if self.rows.y is None else self.rows.y[index],
            "sensitive_features": self.group[index],
        }

    def unfitted_copy(self, update: BaseUpdate, random: np.random.RandomState) -> BaseUpdate:
        """Return a copy for one refit: without a progress bar, with a seed and smaller minima."""
        copied: BaseUpdate = clone(update)
        params = copied.get_params()
        changed: dict[str, Any] = {}
        if "progress" in params:
            changed["progress"] = False
        if "random_state" in params and params["random_state"] is None:
            changed["random_state"] = int(random.randint(MAX_SEED))
        for name in ("min_group_size", "min_category_size"):
            if self.share is not None and isinstance(params.get(name), int | np.integer):
                # keep 2 or more: at 1, every category with one row would get points
                lowered = math.ceil(self.share * params[name])
                changed[name] = max(min(2, params[name]), lowered)
        copied.set_params(**changed)
        return copied._edit_columns(partial(_split_rare_categories, common=self.common))


def _strata(
    groups: Groups, labels: NDArray[Any] | None, share: float | None, min_group_size: int
) -> list[Stratum]:
    """Return the rows of each group and true label, and how many of them to draw.

    Sizes are rounded up in groups that are part of the constraint, and down in the others. As
    `min_group_size` is lowered by the same share, every refit compares the same groups.
    """
    is_large = np.append(groups.sizes >= min_group_size, False)  # −1, not known: the last entry
    known = groups.codes + 1
    parts = [known] if labels is None else [known, code_array(labels).codes]
    codes, _ = joint_codes(parts)
    order = np.argsort(codes, kind="stable")
    strata = []
    for rows in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
        size = len(rows)
        if share is not None:
            rounded = math.ceil if is_large[groups.codes[rows[0]]] else math.floor
            size = min(size, rounded(share * size))
        strata.append((rows.astype(np.intp), size))
    return strata


def _common_categories(X: Any, update: BaseUpdate) -> CategorySets:
    """Return the categories of each column that may have points in a fit on all rows."""
    smallest = getattr(update, "min_category_size", None)
    if not isinstance(smallest, int | np.integer):
        return {}
    common = {}
    for column in read_columns(X, skip=update._unread_columns()):
        if column.kind == "category":
            n_rows = np.bincount(column.values + 1, minlength=len(column.categories) + 1)
            sizes = zip((None, *column.categories), n_rows.tolist(), strict=True)
            common[column.name] = frozenset(c for c, n in sizes if n >= smallest)
    return common


def _split_rare_categories(column: Column, common: CategorySets) -> Column:
    """Return a column in which each row of a rare category has a category of its own.

    A category with one row gets no points. Rare categories must not become "missing" instead:
    "missing" may have points, and together they could be common.
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
    new_names = (f"{UNNAMED}rare {i}" for i in range(n_rare))
    return replace(column, values=values, categories=(*column.categories, *new_names))
