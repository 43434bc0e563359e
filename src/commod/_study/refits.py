"""Hold what refits have in common: figures, tables, a picture and a text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from commod._data.encoding import BinTerms, ColumnTerms, NumericTerms
from commod._record import StabilitySummary
from commod._text import Table, first_rows, list_names, n_of, percent, snippet, visible
from commod._text.drawing import AFTER, BEFORE, LOSS_STYLE, plain_text
from commod.metrics._constraint import get_constraint
from commod.scorecard import Scorecard

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLOCK = 100_000  # people counted at once: bounds memory
N_BARS = 10  # of the histogram, from never to always
MAX_SHOWN = 20  # columns of a table in a notebook
MOST_NAMED = 4  # columns that the text names


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
    >>> from commod import ControlledDebiaser
    >>> from commod import stability
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
        _draw_people(people_ax, self)
        if column_axes:
            _draw_columns(column_axes[0], columns)
        return people_ax.figure

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
            uses = [
                (name, percent(use.share, 0), _towards_text(use))
                for name, use in self.columns.items()
            ]
            is_evidence = any(use.towards_favorable is not None for use in self.columns.values())
            towards = "the favourable decision" if is_evidence else "a change"
            header = ("column", "used in", f"larger values push towards {towards} in")
            caption = f"Columns that the {self.n_refits} refits use"
            frame = "columns_frame()"
            tables.append(first_rows(caption, header, uses, most=MAX_SHOWN, all_in=frame))
        return snippet("Stability", self._sentences(), tables)

    def _sentences(self) -> list[str]:
        sentences = [self._people_text(), self._figures_text()]
        if self.reference is not None and self.reference.any():
            sentences.append(
                f"The given update changes {int(self.reference.sum()):,} people. On average, a "
                f"refit changes {self.reference_share:.0%} of them."
            )
        if self.columns:
            sentences.append(_columns_text(self.columns))
        if self.left_out:
            sentences.append(f"{self.left_out}.")
        if self.failures:
            failed = f"{self.n_failed} of {self.n_asked} refits failed: {self.failures[0]}"
            sentences.append(failed)
        for category, messages in self.warnings.items():
            often = f"{len(messages)} × {category}, such as" if len(messages) > 1 else category
            sentences.append(f"{often}: {messages[0]}")
        return sentences

    def _people_text(self) -> str:
        begin = f"On {self.n_refits} refits ({self.sample} of the fit rows) "
        if math.isnan(self.agreement):
            return f"{begin}nobody's decision changes ({len(self):,} {self.rows_word})."
        if self.agreement == 1:
            text = f"the same {self.n_always:,} people change each time (agreement 1)"
        else:
            text = (
                f"two refits share {self.agreement:.0%} of the people they change (agreement "
                f"{self.agreement:.2f}; 1 would be the same people each time): {self.n_always:,} "
                f"change always, {self.n_sometimes:,} sometimes, {self.n_never:,} never"
            )
        return f"{begin}{text}, of {len(self):,} {self.rows_word}."

    def _figures_text(self) -> str:
        text = f"A refit changes {_range_text(self.change_rate, '.1%')} of the decisions"
        known = self.fairness[~np.isnan(self.fairness)]
        if len(known):
            metric = get_constraint(self.constraints).metric_of(self.outcome)
            text += f" and reaches {metric}: {_range_text(known, '.3f')}"
        return f"{text}."


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


def _columns_text(columns: Mapping[str, ColumnUse]) -> str:
    always = [name for name, use in columns.items() if use.share == 1]
    n_others = len(columns) - len(always)
    if not always:
        return f"No column is in every scorecard; {n_others} are in some."
    names = list_names(always, MOST_NAMED, width=40)
    return f"In every scorecard: {names}; {n_of(n_others, 'other column')} in some."


def _towards_text(use: ColumnUse) -> str:
    share = use.towards_change if use.towards_favorable is None else use.towards_favorable
    return "no direction: categories" if share is None else f"{share:.0%} of these"


def _range_text(values: NDArray[np.float64], form: str) -> str:
    low, high = format(values.min(), form), format(values.max(), form)
    return low if low == high else f"{low} to {high}"


# ---------------------------------------------------------------------------------------------
# Draw stability: how often people change, and how often scorecards use each column

MOST_COLUMNS = 15


def _draw_people(ax: Axes, stable: Stability) -> None:
    """Draw how many people change in how many refits; a person only gains or only loses."""
    times, n = stable.times_changed, stable.n_refits
    gains, losses = (
        np.bincount(times[share > 0], minlength=n + 1)[1:]
        for share in (stable.gain_share, stable.loss_share)
    )
    x = np.arange(1, n + 1)
    ax.bar(x, gains, width=0.85, color=AFTER, label="gain the favourable outcome")
    ax.bar(x, losses, bottom=gains, width=0.85, label="lose it", **LOSS_STYLE)
    ax.set_xlabel(f"refits that change the person, of {n} ({n}: always)")
    ax.set_ylabel("people")
    note = f"{stable.n_never:,} of {len(stable):,} {stable.rows_word} never change"
    ax.legend(frameon=False, loc="upper center", title=note)
    ax.set_ylim(0, max(1, (gains + losses).max()) * 1.35)  # leaves space for the legend
    ax.set_xlim(0.3, n + 0.7)
    ax.spines[["top", "right"]].set_visible(False)
    ax.locator_params(integer=True)
    ax.set_title(
        "Nobody's decision changes"
        if math.isnan(stable.agreement)
        else f"Two refits share {stable.agreement:.0%} of the people they change"
    )


def _draw_columns(ax: Axes, columns: pd.DataFrame) -> None:
    """Draw the share of scorecards that use each column, split by what larger values do."""
    shown = columns[:MOST_COLUMNS][::-1]
    y = np.arange(len(shown))
    is_evidence = columns["towards_favorable"].notna().any()
    ends = ("favourable", "unfavourable") if is_evidence else ("change", "keep")
    share = shown["share"].to_numpy()
    towards = shown["towards_favorable" if is_evidence else "towards_change"].to_numpy()
    is_category = np.isnan(towards)
    bars = (
        (f"larger values push to {ends[0]}", share * towards, AFTER, "", "white"),
        (f"larger values push to {ends[1]}", share * (1 - towards), BEFORE, "...", "white"),
        ("categories", np.where(is_category, share, 0.0), "#e4e7eb", "///", BEFORE),
    )
    left = np.zeros(len(shown))
    for label, lengths, colour, hatch, edge in bars:
        widths = np.nan_to_num(lengths)
        if widths.any():
            style: Any = {"color": colour, "hatch": hatch, "edgecolor": edge, "linewidth": 0}
            ax.barh(y, widths, left=left, height=0.75, label=label, **style)
            left += widths
    ax.set_yticks(y, [plain_text(name) for name in shown["column"]])
    n_more = len(columns) - len(shown)
    ax.set_title("Columns that refits use" + (f" ({n_more} rarer ones not shown)" * bool(n_more)))
    ax.set_xlabel("share of the refits whose scorecard uses the column")
    ax.set_xlim(0, 1)
    ax.xaxis.set_major_formatter("{x:.0%}")
    ax.spines[["top", "right"]].set_visible(False)
    if len(shown):
        ax.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3)
