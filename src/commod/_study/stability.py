"""Fit an update again on resamples of the rows, and count who changes each time."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import get_tags

from commod._data.columns import UNNAMED, Column, Scalar, code_array, joint_codes, read_columns
from commod._data.encoding import BinTerms, ColumnTerms, NumericTerms
from commod._data.groups import Groups, read_groups
from commod._data.labels import check_length, read_labels
from commod._data.parameters import check_flag, check_seed
from commod._data.tables import check_same_rows, n_rows_of, take_rows
from commod._record.audit import StabilitySummary
from commod._study.evaluation import (
    EvaluationRows,
    choose_evaluated,
    compared_groups,
    read_evaluation_rows,
)
from commod._study.pictures import AFTER, LOSS_STYLE, MOST_COLUMNS, draw_columns
from commod._text import Table, first_rows, list_names, n_of, percent, shown, snippet, visible
from commod.exceptions import BaseModelWarning, InputError, InterruptionWarning
from commod.metrics._constraint import get_constraint
from commod.scorecard import Scorecard
from commod.updates._interface import RawRows, progress_bar
from commod.updates.base import BaseUpdate, ChangedDecisions, check_update

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_SEED = 2**31 - 1
MAX_REFITS = 100_000  # every refit keeps whom it changes
BLOCK = 100_000  # people counted at once: bounds memory
N_BARS = 10  # of the histogram, from never to always
MAX_SHOWN = 20  # columns of a table in a notebook
MOST_NAMED = 4  # columns that the text names


def stability(
    update: BaseUpdate,
    X: Any,
    y: Any = None,
    *,
    sensitive_features: Any = None,
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
    group vanishes, and all refits have the same number of rows. COMMOD is compiled in the first.

    `Stability.failures` keeps the errors of refits, and `Stability.warnings` their warnings. A
    keyboard interrupt ends the refits. If at least two are done, the result holds these, and a
    warning says so.

    Examples
    --------
    >>> from commod import ControlledDebiaser, stability
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
    check_update(update, "stability")
    check_flag(progress, "progress", optional=True)
    is_whole = isinstance(n_refits, int | np.integer) and not isinstance(n_refits, bool)
    if not is_whole or not 2 <= n_refits <= MAX_REFITS:
        raise InputError(
            f"n_refits={shown(n_refits)} must be a whole number of at least 2 and at most "
            f"{MAX_REFITS:,}.",
            parameter="n_refits",
        )
    share, sample_text = _read_sample(sample)
    sampler = RowSampler.read(update, RawRows(X, y, sensitive_features), share)
    given = RawRows(X_eval, y_eval, sensitive_features_eval)
    rows, rows_word = choose_evaluated(sampler.rows, given, needs_groups=False)
    if rows.sensitive_features is None and get_tags(update).needs_sensitive_features:
        raise InputError(
            f"{type(update).__name__} decides by group: pass sensitive_features_eval with the "
            "group of each row of X_eval."
        )
    reference = _changes_of(update, rows).changed if hasattr(update, "status_") else None
    compared, random = compared_groups(update, sampler.rows), check_seed(random_state)
    measured: EvaluationRows | None = None
    refits: list[tuple[ChangedDecisions, Scorecard | None]] = []  # that worked
    errors: list[Exception] = []
    messages: dict[str, list[str]] = {}
    try:
        with progress_bar("stability", progress, "refits") as report:
            for done in range(n_refits):
                drawn = sampler.draw(random)  # before the copy, which may draw a seed
                model = sampler.unfitted_copy(update, random)
                changes = _fit(model, drawn, rows, errors, messages)
                needs_labels = model._stated().needs_labels and rows.y is None
                is_first = changes is not None and not refits
                if is_first and rows.sensitive_features is not None and not needs_labels:
                    base = model._read_base(rows.X)
                    measured = read_evaluation_rows(model, compared, base, rows, "")
                if changes is not None:
                    refits.append((changes, getattr(model, "scorecard_", None)))
                if report is not None:
                    report(done + 1, n_refits)
    except KeyboardInterrupt:
        if len(refits) < 2:
            raise
        warnings.warn(
            f"Interrupted after {len(refits)} of {n_refits} refits. The result holds these.",
            InterruptionWarning,
            stacklevel=2,
        )
    return _counted(
        refits,
        errors,
        measured,
        n_asked=n_refits,
        sample=sample_text,
        rows_word=rows_word,
        constraints=update._stated().constraints[0].name,
        reference=reference,
        warnings=messages,
    )


def _counted(
    refits: Sequence[tuple[ChangedDecisions, Scorecard | None]],
    errors: Sequence[Exception],
    measured: EvaluationRows | None,
    **known: Any,
) -> Stability:
    """Return the counts of refits, on rows whose fairness is measured if these are given.

    Fewer than two refits are refused, with the first error of the others.
    """
    failures = tuple(f"{type(error).__name__}: {error}" for error in errors)
    if len(refits) < 2:
        raise InputError(
            f"{len(errors)} of {known['n_asked']} refits failed, and at least 2 are needed. The "
            f"first error is: {failures[0]}"
        ) from errors[0]
    fairness = [math.nan] * len(refits)
    if measured is not None:
        after = (measured.before ^ changes.changed for changes, _ in refits)
        fairness = [measured.people.fairness(decisions) for decisions in after]
    gains = np.array([changes.gain for changes, _ in refits])
    losses = np.array([changes.loss for changes, _ in refits])
    columns, terms = count_uses([scorecard for _, scorecard in refits])
    return Stability(
        n_refits=len(refits),
        gain_share=gains.mean(axis=0),
        loss_share=losses.mean(axis=0),
        change_share=(gains | losses).mean(axis=0),
        agreement=agreement_of(gains | losses),
        columns=columns,
        terms=terms,
        fairness=np.array(fairness),
        change_rate=(gains | losses).mean(axis=1),
        failures=failures,
        outcome="" if measured is None else measured.outcome,
        left_out="" if measured is None else measured.left_out_text,
        **known,
    )


def _read_sample(sample: Any) -> tuple[float | None, str]:
    """Return the share that is drawn without replacement, None for the bootstrap, and its name."""
    if isinstance(sample, str) and sample == "bootstrap":
        return None, "bootstrap samples"
    if isinstance(sample, str) and sample == "subsample":
        sample = 0.5
    if isinstance(sample, float | np.floating) and 0 < sample < 1:
        return float(sample), "random halves" if sample == 0.5 else f"random {sample:.0%}"
    raise InputError(
        f"sample={shown(sample)} is not known; choose 'subsample' (half of the rows), 'bootstrap', "
        "or a share between 0 and 1, such as 0.8.",
        parameter="sample",
    )


def _changes_of(model: BaseUpdate, rows: RawRows) -> ChangedDecisions:
    """Return whom a fitted update changes among some people."""
    if get_tags(model).needs_sensitive_features:
        return model.changes(rows.X, sensitive_features=rows.sensitive_features)
    return model.changes(rows.X)


def _fit(
    model: BaseUpdate,
    drawn: dict[str, Any],
    rows: RawRows,
    errors: list[Exception],
    messages: dict[str, list[str]],
) -> ChangedDecisions | None:
    """Return whom a model changes that is fitted on the drawn rows; None if it fails.

    Its error and its warnings are added to `errors` and `messages`.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            changes = _changes_of(model.fit(**drawn), rows)
        except Exception as error:
            errors.append(error)
            changes = None
    if any(issubclass(w.category, InterruptionWarning) for w in caught):
        raise KeyboardInterrupt  # training caught the interrupt; the model is half trained
    kinds = {(w.category, str(w.message)) for w in caught}
    for category, message in sorted(kinds, key=lambda kind: (kind[0].__name__, kind[1])):
        known = messages.setdefault(category.__name__, [])
        # every refit edits the same base model, so what it says about that is said once
        if not (known and issubclass(category, BaseModelWarning)):
            known.append(message)
    return changes


# ---------------------------------------------------------------------------------------------
# Draw rows for refits, stratified by group and true label, and prepare an update for them

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


# ---------------------------------------------------------------------------------------------
# What is returned: figures, tables, a picture and a text


@dataclass(frozen=True)
class ColumnUse:
    """How often refits use a column or a term of the scorecard, and in which direction.

    `share` is the share of refits in which it has points. `towards_change` is the share of these
    refits in which it pushes towards a change, that is, lowers r. Where points are evidence, it is
    None, and `towards_favorable` is the share of these refits in which it pushes towards the
    favourable decision. For a numeric column, larger values push. For a column of categories both
    are None, because its terms push in both directions.

    Examples
    --------
    >>> ColumnUse(share=0.5, towards_change=1.0).towards_change
    1.0
    """

    share: float
    towards_change: float | None
    towards_favorable: float | None = None


@dataclass(frozen=True, eq=False)
class Stability:
    """How often each person's decision changes over refits; made by `commod.stability`.

    Attributes
    ----------
    n_refits, n_asked : int
        Refits that worked, and refits that the user asked for.
    sample, rows_word, constraints : str
        Names of the samples and of the people who are counted, and the constraint.
    change_share, gain_share, loss_share : ndarray of shape (n,)
        Share of refits in which a person's decision changes, is a gain, is a loss.
    agreement : float
        Mean Jaccard index over all pairs of refits: the people whom both change as a share of those
        whom at least one changes. 1 means the same people each time. A pair that changes nobody is
        left out; NaN where nobody ever changes.
    columns, terms : dict of str to ColumnUse
        How often scorecards use each raw column and each term; empty without scorecards.
    fairness, change_rate : ndarray of shape (n_refits,)
        Figures of each refit on the same people; fairness is NaN where it cannot be measured.
    reference : ndarray of shape (n,) or None
        Whom the given update changes; None if it was not fitted.
    failures : tuple of str
        The errors of refits.
    warnings : dict of str to list of str
        Messages of the refits by kind of warning. What is said about the base model is kept once.
    left_out : str
        How many groups are too small to be in `fairness`; empty without any.
    outcome : str
        The label whose rates are compared, in words.

    Examples
    --------
    >>> from commod import ControlledDebiaser, stability
    >>> from commod.datasets import make_biased
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> rows = {"y": data.target, "sensitive_features": data.sensitive_features}
    >>> stable = stability(ControlledDebiaser(model), data.data, **rows, n_refits=4, random_state=0)
    >>> stable.frame().columns.tolist()
    ['change_share', 'gain_share', 'loss_share']
    >>> stable.summary().n_rows, len(stable.fairness)
    (800, 4)
    """

    n_refits: int
    n_asked: int
    sample: str
    rows_word: str
    constraints: str
    change_share: NDArray[np.float64]
    gain_share: NDArray[np.float64]
    loss_share: NDArray[np.float64]
    agreement: float
    columns: dict[str, ColumnUse]
    terms: dict[str, ColumnUse]
    fairness: NDArray[np.float64]
    change_rate: NDArray[np.float64]
    reference: NDArray[np.bool_] | None
    failures: tuple[str, ...]
    warnings: dict[str, list[str]]
    left_out: str = ""
    outcome: str = ""

    def __len__(self) -> int:
        return len(self.change_share)

    @property
    def n_failed(self) -> int:
        """Return how many refits raised an error."""
        return len(self.failures)

    @property
    def times_changed(self) -> NDArray[np.intp]:
        """Return in how many refits each person's decision changes, shape (n,)."""
        return np.rint(self.change_share * self.n_refits).astype(np.intp)

    @property
    def n_always(self) -> int:
        """Return how many people change in every refit."""
        return int((self.times_changed == self.n_refits).sum())

    @property
    def n_sometimes(self) -> int:
        """Return how many people change in some refits, but not in all."""
        times = self.times_changed
        return int(((times > 0) & (times < self.n_refits)).sum())

    @property
    def n_never(self) -> int:
        """Return how many people change in no refit."""
        return int((self.times_changed == 0).sum())

    @property
    def reference_share(self) -> float:
        """Return how often refits, on average, change the people whom the given update changes.

        NaN if the update was not fitted or changes nobody.
        """
        if self.reference is None or not self.reference.any():
            return math.nan
        return float(self.change_share[self.reference].mean())

    # -- tables -----------------------------------------------------------------------------------

    def summary(self) -> StabilitySummary:
        """Return the figures that an audit keeps; None where a figure is undefined."""
        bars = np.minimum(self.times_changed * N_BARS // self.n_refits, N_BARS - 1)
        known = self.fairness[~np.isnan(self.fairness)]
        return StabilitySummary(
            n_refits=self.n_refits,
            n_asked=self.n_asked,
            failure=self.failures[0] if self.failures else None,
            n_rows=len(self),
            agreement=None if math.isnan(self.agreement) else self.agreement,
            n_always=self.n_always,
            n_sometimes=self.n_sometimes,
            columns={name: use.share for name, use in self.columns.items()},
            histogram=tuple(np.bincount(bars, minlength=N_BARS).tolist()),
            fairness_low=float(known.min()) if len(known) else None,
            fairness_high=float(known.max()) if len(known) else None,
            changes_low=float(self.change_rate.min()),
            changes_high=float(self.change_rate.max()),
        )

    def frame(self, index: Any = None) -> pd.DataFrame:
        """Return one line per person, in the order of the rows, as a pandas frame.

        Parameters
        ----------
        index : array-like of shape (n,), default=None
            Index of the frame, such as ``X.index``; 0, 1, 2, … if None.

        Returns
        -------
        DataFrame
            `change_share`, `gain_share`, `loss_share`. If the update was fitted, `reference` says
            whether it changes the person.
        """
        import pandas as pd

        names = ["change_share", "gain_share", "loss_share"]
        names += [] if self.reference is None else ["reference"]
        return pd.DataFrame({name: getattr(self, name) for name in names}, index=index)

    def columns_frame(self) -> pd.DataFrame:
        """Return one line per raw column that any refit uses, the most used first."""
        return _frame_of_uses(self.columns, "column")

    def terms_frame(self) -> pd.DataFrame:
        """Return one line per term that any refit uses, the most used first."""
        return _frame_of_uses(self.terms, "term")

    def plot(self, ax: Any = None) -> Figure:
        """Draw how often people change, and how often columns are used; return the figure.

        Parameters
        ----------
        ax : matplotlib Axes or two of them, default=None
            Where to draw the people and, if there are two, the columns; a new figure if None.
            People who never change are counted in the legend: their bar would dwarf the others.
        """
        import matplotlib.pyplot as plt

        columns, axes = self.columns_frame(), ax
        if axes is None:
            n_bars = min(len(columns), MOST_COLUMNS)
            size = (11 if n_bars else 6.5, max(3.8, 1.6 + 0.27 * n_bars))
            _, axes = plt.subplots(1, 1 + bool(n_bars), figsize=size, layout="constrained")
        people_ax, *column_axes = np.ravel(axes).tolist()
        self._draw_people(people_ax)
        if column_axes:
            draw_columns(column_axes[0], columns)
        return people_ax.figure

    def _draw_people(self, ax: Axes) -> None:
        """Draw how many people change in how many refits; a person only gains or only loses."""
        times, n = self.times_changed, self.n_refits
        gains, losses = (
            np.bincount(times[share > 0], minlength=n + 1)[1:]
            for share in (self.gain_share, self.loss_share)
        )
        x = np.arange(1, n + 1)
        ax.bar(x, gains, width=0.85, color=AFTER, label="gain the favourable outcome")
        ax.bar(x, losses, bottom=gains, width=0.85, label="lose it", **LOSS_STYLE)
        ax.set_xlabel(f"refits that change the person, of {n} ({n}: always)")
        ax.set_ylabel("people")
        note = f"{self.n_never:,} of {len(self):,} {self.rows_word} never change"
        ax.legend(frameon=False, loc="upper center", title=note)
        ax.set_ylim(0, max(1, (gains + losses).max()) * 1.35)  # leaves space for the legend
        ax.set_xlim(0.3, n + 0.7)
        ax.spines[["top", "right"]].set_visible(False)
        ax.locator_params(integer=True)
        ax.set_title(
            "Nobody's decision changes"
            if math.isnan(self.agreement)
            else f"Two refits share {self.agreement:.0%} of the people they change"
        )

    # -- text -------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return "\n".join(map(visible, self._sentences()))

    def _repr_html_(self) -> str:
        people = [
            ("in every refit", self.n_always),
            ("in some refits", self.n_sometimes),
            ("in no refit", self.n_never),
        ]
        caption = f"Whose decision changes, of {len(self):,} {self.rows_word}"
        tables: list[Table] = [(caption, ("changes", "people"), people)]
        if self.columns:
            uses = []
            for name, use in self.columns.items():
                share = (
                    use.towards_change if use.towards_favorable is None else use.towards_favorable
                )
                towards = "no direction: categories" if share is None else f"{share:.0%} of these"
                uses.append((name, percent(use.share, 0), towards))
            is_evidence = any(use.towards_favorable is not None for use in self.columns.values())
            towards = "the favourable decision" if is_evidence else "a change"
            header = ("column", "used in", f"larger values push towards {towards} in")
            caption = f"Columns that the {self.n_refits} refits use"
            frame = "columns_frame()"
            tables.append(first_rows(caption, header, uses, most=MAX_SHOWN, all_in=frame))
        return snippet("Stability", self._sentences(), tables)

    def _sentences(self) -> list[str]:
        begin = f"On {self.n_refits} refits ({self.sample} of the fit rows)"
        people = f"{len(self):,} {self.rows_word}"
        if math.isnan(self.agreement):
            sentences = [f"{begin} nobody's decision changes ({people})."]
        elif self.agreement == 1:
            always = f"the same {self.n_always:,} people change each time (agreement 1)"
            sentences = [f"{begin} {always}, of {people}."]
        else:
            sentences = [
                f"{begin} two refits share {self.agreement:.0%} of the people they change "
                f"(agreement {self.agreement:.2f}; 1 would be the same people each time): "
                f"{self.n_always:,} change always, {self.n_sometimes:,} sometimes, "
                f"{self.n_never:,} never, of {people}."
            ]
        figures = f"A refit changes {_range_text(self.change_rate, '.1%')} of the decisions"
        known = self.fairness[~np.isnan(self.fairness)]
        if len(known):
            metric = get_constraint(self.constraints).metric_of(self.outcome)
            figures += f" and reaches {metric}: {_range_text(known, '.3f')}"
        sentences.append(f"{figures}.")
        if self.reference is not None and self.reference.any():
            sentences.append(
                f"The given update changes {int(self.reference.sum()):,} people. On average, a "
                f"refit changes {self.reference_share:.0%} of them."
            )
        if self.columns:
            lasting = [name for name, use in self.columns.items() if use.share == 1]
            n_others = len(self.columns) - len(lasting)
            text = f"No column is in every scorecard; {n_others} are in some."
            if lasting:
                names = list_names(lasting, MOST_NAMED, width=40)
                others = n_of(n_others, "other column")
                text = f"In every scorecard: {names}; {others} in some."
            sentences.append(text)
        if self.left_out:
            sentences.append(f"{self.left_out}.")
        if self.failures:
            failed = f"{self.n_failed} of {self.n_asked} refits failed: {self.failures[0]}"
            sentences.append(failed)
        for category, messages in self.warnings.items():
            often = f"{len(messages)} × {category}, such as" if len(messages) > 1 else category
            sentences.append(f"{often}: {messages[0]}")
        return sentences


def agreement_of(changed: NDArray[np.bool_]) -> float:
    """Return the mean Jaccard index of all pairs of rows of `changed`, shape (n_refits, n).

    A pair in which nobody changes is left out; NaN where nobody ever changes.

    Examples
    --------
    >>> agreement_of(np.array([[True, True, False], [True, False, False]]))
    0.5
    """
    ever = np.flatnonzero(changed.any(axis=0))
    if not len(ever):
        return math.nan
    both = np.zeros((len(changed), len(changed)))
    for begin in range(0, len(ever), BLOCK):  # one matrix product counts all pairs
        block = changed[:, ever[begin : begin + BLOCK]].astype(np.float64)
        both += block @ block.T
    sizes = np.diag(both)
    either = sizes[:, None] + sizes[None, :] - both
    pairs = np.triu_indices(len(changed), k=1)
    is_defined = either[pairs] > 0
    return float((both[pairs][is_defined] / either[pairs][is_defined]).mean())


def count_uses(
    scorecards: Sequence[Scorecard | None],
) -> tuple[dict[str, ColumnUse], dict[str, ColumnUse]]:
    """Return how often scorecards use each column and each term, the most used first.

    Both are empty where a refit has no scorecard.
    """
    known = [scorecard for scorecard in scorecards if scorecard is not None]
    if len(known) < len(scorecards):
        return {}, {}
    columns: dict[str, list[float]] = {}
    terms: dict[str, list[float]] = {}
    for scorecard in known:
        for name, points in scorecard.rows():
            terms.setdefault(name, []).append(points)
        start = 0
        for column in scorecard.encoding.columns:
            column_points = scorecard.points[start : start + column.n_terms]
            start += column.n_terms
            if column_points.any():
                columns.setdefault(column.name, []).append(_push(column, column_points))
    is_evidence = any(scorecard.rule is not None for scorecard in known)
    return _uses(columns, len(known), is_evidence), _uses(terms, len(known), is_evidence)


def _push(column: ColumnTerms, points: NDArray[np.float64]) -> float:
    """Return a number above 0 if larger values raise the sum; NaN for categories."""
    if isinstance(column, NumericTerms):
        return float(points[0])
    if isinstance(column, BinTerms):
        bins = points[: len(column.edges) + 1]
        return float((np.arange(len(bins)) - (len(bins) - 1) / 2) @ bins)
    return math.nan


def _uses(
    pushes: Mapping[str, Sequence[float]], n_refits: int, is_evidence: bool
) -> dict[str, ColumnUse]:
    """Return the uses of columns or terms from how they push the sum: evidence, or r."""
    uses = {}
    for name, values in pushes.items():
        known = np.array(values) * (1.0 if is_evidence else -1.0)
        towards = None if np.isnan(known).any() else float((known > 0).mean())
        both = (None, towards) if is_evidence else (towards, None)
        uses[name] = ColumnUse(len(values) / n_refits, *both)
    return dict(sorted(uses.items(), key=lambda item: (-item[1].share, item[0])))


def _frame_of_uses(uses: Mapping[str, ColumnUse], name: str) -> pd.DataFrame:
    import pandas as pd

    columns = [name, "share", "towards_change", "towards_favorable"]
    lines = [{name: used, **asdict(use)} for used, use in uses.items()]
    return pd.DataFrame(lines, columns=columns).astype(dict.fromkeys(columns[1:], float))


def _range_text(values: NDArray[np.float64], form: str) -> str:
    low, high = format(values.min(), form), format(values.max(), form)
    return low if low == high else f"{low} to {high}"
