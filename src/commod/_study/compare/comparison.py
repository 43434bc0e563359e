"""Hold the frontiers of several methods and the changes that each needs to be as fair."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Floats
from commod._data.parameters import check_number_parameter
from commod._study.evaluation import EvaluationRows
from commod._study.frontier import Frontier
from commod._text import Table, n_of, number, percent, snippet, visible
from commod.exceptions import InputError
from commod.metrics._constraint import Constraint

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DEFAULT_LEVELS = (0.6, 0.7, 0.8, 0.9)  # P-rules
DISPARITY_SHARES = (0.75, 0.5, 0.25)  # shares of the base model's disparity
LIMIT_NAMES = ("exact limit", "limit with random draws")  # in whole people, in expectation


class Comparison:
    """The frontiers of several methods on the same rows; made by `compare`.

    Attributes
    ----------
    frontiers : dict of str to Frontier
        The updates of each method; `select` of a frontier returns a fitted update.
    constraints : str
        The fairness constraint.
    base_fairness, base_accuracy : float
        The base model's figures on the same rows.
    failures : dict of str to str
        The error of each method that could not be fitted.
    left_out : dict of str to str
        Why `commod.rivals.lineup` left a method out; empty for methods that the user chose.

    Examples
    --------
    >>> from commod import ControlledDebiaser, compare
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import MinimalFlip
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> comparison = compare(
    ...     [ControlledDebiaser(model), MinimalFlip(model)],
    ...     data.data,
    ...     data.target,
    ...     sensitive_features=data.sensitive_features,
    ... )
    >>> list(comparison.frontiers)
    ['ControlledDebiaser', 'MinimalFlip']
    """

    def __init__(
        self,
        frontiers: Mapping[str, Frontier],
        rows: EvaluationRows,
        failures: Mapping[str, str],
        updates: Collection[str],
        left_out: Mapping[str, str] | None = None,
    ) -> None:
        self.frontiers = dict(frontiers)
        self.failures = dict(failures)
        self.left_out = dict(left_out or {})
        self._updates = frozenset(updates)
        self.constraints = rows.constraint.name
        self.base_fairness = rows.fairness(rows.before)
        self.base_accuracy = rows.accuracy(rows.before)
        self._rows = rows

    def __repr__(self) -> str:
        text = (
            f"Comparison of {n_of(len(self.frontiers), 'method')}, {self._rows.metric} "
            f"{self.base_fairness:.3f} before, measured on "
            f"{self._rows.name_with_left_out(self._rows_word)}\n"
            f"{self.changes_needed().to_string(float_format='{:.3f}'.format, na_rep='-')}"
        )
        for name, reason in (self.failures | self.left_out).items():
            text += f"\n{name} is left out: {reason}"
        return visible(text, keep="\n")

    def _repr_html_(self) -> str:
        rows = self._rows.name_with_left_out(self._rows_word)
        sentences = [
            f"The base model has {self._rows.metric} {number(self.base_fairness, 3)} on the "
            f"{rows}. For each method, the best update on these rows counts. plot() draws all."
        ]
        tables = [self._notebook_table()]
        if self.failures:
            failed = list(self.failures.items())
            tables.append(("Methods that could not be fitted", ("method", "error"), failed))
        if self.left_out:
            others = list(self.left_out.items())
            tables.append(("Methods that are left out", ("method", "reason"), others))
        return snippet(f"Comparison of {n_of(len(self.frontiers), 'method')}", sentences, tables)

    def _notebook_table(self) -> Table:
        needed = self.changes_needed()
        levels = needed.columns[1:]
        rows = [
            (
                name,
                "yes" if line["needs group"] else "no",
                *("not reached" if np.isnan(line[c]) else percent(line[c]) for c in levels),
            )
            for name, line in needed.iterrows()
        ]
        sign = "≥" if self._constraint.higher_is_fairer else "≤"
        header = ("method", "needs the group", *(f"{sign} {level:g}" for level in levels))
        caption = f"Share of decisions changed to reach each {self._rows.metric}"
        return caption, header, rows

    def frame(self) -> pd.DataFrame:
        """Return one line per update of every method as a pandas frame.

        Columns:

        - `method`;
        - `strength`: a rival's strength, COMMOD's lambda_fair, ControlledDebiaser's target; NaN for
          a classifier that has none of them;
        - `fairness`, `accuracy`, `change_rate`, `n_changes`, `n_gains`, `n_losses`: expected
          figures where the update is randomised;
        - `limit`: the fewest changes for the same fairness, as a share;
        - `accuracy_loss`: the base model's accuracy minus `accuracy`;
        - `outscoring`, `outscoring_losses`: the share of pairs of the same group in which a person
          who gains has a higher base score than one who stays rejected, and in which a person who
          loses has a lower one than one who does not; see `Frontier.frame`;
        - `needs_sensitive_features`: whether deciding needs the group;
        - `randomised`;
        - `collapsed`: fairness is undefined because nobody is decided positively;
        - `fit_seconds`: of all updates of the method together.
        """
        import pandas as pd

        frames = [_frame_of(name, curve) for name, curve in self.frontiers.items()]
        return pd.concat(frames, ignore_index=True)

    def changes_needed(
        self,
        levels: Sequence[float] | None = None,
        *,
        min_accuracy: float | None = None,
        max_accuracy_loss: float | None = None,
    ) -> pd.DataFrame:
        """Return the fewest changes with which each method reaches each level of fairness.

        Parameters
        ----------
        levels : sequence of float, default=None
            Floors on the P-rule or ceilings on the disparity. None: those of 0.6, 0.7, 0.8 and 0.9
            that are above the base model's P-rule, or 75 %, 50 % and 25 % of its disparity.
        min_accuracy : float, default=None
            Count only updates with at least this accuracy.
        max_accuracy_loss : float, default=None
            Count only updates that lose at most this accuracy against the base model.

        Returns
        -------
        DataFrame
            One line per method and one column per level: the share of changed decisions. NaN where
            no update of the method reaches the level; 0 where the base model reaches it and the
            method is an update. With several constraints, only updates that keep the bounds of the
            others count. The last lines are the exact limit at any accuracy: in whole
            people and, where a method is randomised, in expectation.

        Notes
        -----
        For each method, the best update on these very rows counts. The figures compare methods;
        as a promise for one update they are too good.
        """
        import pandas as pd

        levels = self._default_levels() if levels is None else self._read_levels(levels)
        floor = self._accuracy_floor(min_accuracy, max_accuracy_loss)
        table = {
            name: [self._fewest(name, level, floor) for level in levels] for name in self.frontiers
        }
        needs = {name: curve.needs_sensitive_features for name, curve in self.frontiers.items()}
        randomised = any(curve.randomised for curve in self.frontiers.values())
        for name, in_expectation in zip(LIMIT_NAMES[: 1 + randomised], (False, True), strict=False):
            table[name] = [
                self._rows.limit_at(level, in_expectation=in_expectation) for level in levels
            ]
            needs[name] = True
        frame = pd.DataFrame.from_dict(table, orient="index", columns=levels)
        frame.insert(0, "needs group", pd.Series(needs))
        return frame.rename_axis(index="method", columns=self._rows.metric)

    def plot(self) -> Figure:
        """Draw changes and accuracy against fairness, one column for each kind of method.

        Methods that decide without the group are on the left, those that need it on the right. A
        dot is one update. A line joins the updates that no other one of the method beats. The exact
        limit is black, and a cross marks the base model.
        """
        return draw_comparison(
            self.frame(),
            self.limit_curve(),
            base=(self.base_fairness, self.base_accuracy),
            constraint=self._constraint,
            metric=self._rows.metric,
            rows_word=self._rows_word,
        )

    def limit_curve(self, n_points: int = 60) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return levels from the base model's fairness to parity, and the limit at each.

        The limit is in expectation: a smooth curve that no method is below. In whole people it
        would have steps, and a jump where rates must be exactly equal.
        """
        levels = np.linspace(self.base_fairness, self._constraint.ideal, n_points)
        limits = [self._rows.limit_at(level, in_expectation=True) for level in levels.tolist()]
        return levels, np.array(limits)

    @property
    def _constraint(self) -> Constraint:
        return self._rows.constraint

    @property
    def _rows_word(self) -> str:
        return next(iter(self.frontiers.values())).rows_word

    def _read_levels(self, levels: Any) -> list[float]:
        largest = self._constraint.largest
        try:
            numbers = [float(level) for level in levels]
        except (TypeError, ValueError):
            numbers = [np.nan]
        if not all(0 <= level <= largest for level in numbers):
            raise InputError(
                f"levels must be a list of numbers from 0 to {largest:g}, values of the "
                f"{self._rows.metric}; got {levels!r}."
            )
        return numbers

    def _accuracy_floor(self, min_accuracy: Any, max_accuracy_loss: Any) -> float:
        """Return the lowest accuracy that counts; −inf where the user gave no limit."""
        floors = [-np.inf]
        given = {"min_accuracy": min_accuracy, "max_accuracy_loss": max_accuracy_loss}
        for name, value in given.items():
            if value is None:
                continue
            if np.isnan(self.base_accuracy):
                raise InputError(f"{name} needs true labels, which are not known on these rows.")
            number = check_number_parameter(value, name, Real, min_val=-1, max_val=1)
            floors.append(number if name == "min_accuracy" else self.base_accuracy - number)
        return max(floors)

    def _fewest(self, name: str, level: float, floor: float) -> float:
        """Return the fewest changes of an update at least as fair as `level`, NaN if none is.

        Only updates that keep the constraints that stand count.
        """
        frame = self.frontiers[name].frame()
        is_kept = [self._rows.keeps_standing(line) for line in frame.to_dict("records")]
        names = ["fairness", "accuracy", "change_rate"]
        fairness, accuracy, changes = frame[names].to_numpy(dtype=np.float64).T
        if name in self._updates:  # an update can always be left out
            fairness = np.append(fairness, self.base_fairness)
            accuracy, changes = np.append(accuracy, self.base_accuracy), np.append(changes, 0.0)
            is_kept.append(self._rows.keeps_standing(self._rows.standing_values(self._rows.before)))
        is_good = self._constraint.is_met(fairness, level) & np.array(is_kept)
        is_good = is_good & ((accuracy >= floor) | (floor == -np.inf))
        return float(changes[is_good].min()) if is_good.any() else float("nan")

    def _default_levels(self) -> list[float]:
        is_ratio, base = self._constraint.is_ratio, self.base_fairness
        if np.isnan(base):
            return list(DEFAULT_LEVELS) if is_ratio else [0.1]
        if is_ratio:
            return [level for level in DEFAULT_LEVELS if level > base] or [0.95]
        return [round(share * base, 3) for share in DISPARITY_SHARES] if base else [0.0]


def _frame_of(name: str, curve: Frontier) -> pd.DataFrame:
    """Return the lines of one method."""
    figures = curve.frame()
    columns = ["fairness", "accuracy", "change_rate", "n_changes", "n_gains", "n_losses", "limit"]
    strength = next(c for c in ("strength", "lambda_fair", "target") if c in figures)
    frame = figures[columns].copy()
    frame["accuracy_loss"] = curve.base_accuracy - figures["accuracy"]
    frame[["outscoring", "outscoring_losses"]] = figures[["outscoring", "outscoring_losses"]]
    frame.insert(0, "strength", figures[strength])
    frame.insert(0, "method", name)
    frame["needs_sensitive_features"] = curve.needs_sensitive_features
    frame["randomised"] = curve.randomised
    frame["collapsed"] = figures["fairness"].isna()
    frame["fit_seconds"] = curve.fit_seconds
    return frame


# ---------------------------------------------------------------------------------------------
# Draw a comparison: changes and accuracy against fairness, with and without the group


TITLES = {False: "decide without the group", True: "need the group to decide"}
OWN_METHODS = ("COMMOD", "ControlledDebiaser")  # drawn thicker: the reader looks for them


def draw_comparison(
    frame: pd.DataFrame,
    limit_curve: tuple[Floats, Floats],
    *,
    base: tuple[float, float],
    constraint: Constraint,
    metric: str,
    rows_word: str,
) -> Figure:
    """Return a figure with two panels for each kind of method.

    `frame` is that of a `Comparison`, `limit_curve` holds values of fairness and the fewest changes
    for each, `base` is the fairness and the accuracy of the base model.
    """
    import matplotlib.pyplot as plt

    kinds = sorted(frame["needs_sensitive_features"].unique())
    figure, grid = plt.subplots(
        2,
        len(kinds),
        figsize=(1.5 + 5.5 * len(kinds), 8),
        sharex=True,
        sharey="row",
        squeeze=False,
        layout="constrained",
    )
    base_fairness, base_accuracy = base
    for (top, bottom), needs_group in zip(grid.T, kinds, strict=True):
        of_kind = frame[frame["needs_sensitive_features"] == needs_group]
        for i, (name, lines) in enumerate(of_kind.groupby("method", sort=False)):
            style = {"color": f"C{i % 10}", "ls": ("-", "--", ":")[i // 10 % 3]}
            _draw_method(top, bottom, str(name), lines, style, constraint.higher_is_fairer)
        top.plot(*limit_curve, color="black", lw=1.4, label="fewest possible changes", zorder=3)
        for ax, value in ((top, 0.0), (bottom, base_accuracy)):
            ax.plot([base_fairness], [value], "x", color="black", ms=8, zorder=4)
        top.set_title(TITLES[bool(needs_group)])
        top.legend(frameon=False, fontsize=8, loc="upper left")
        bottom.set_xlabel(f"{metric} on the {rows_word}")
    _label_rows(grid, has_accuracy=not frame["accuracy"].isna().all())
    _explain_marks(figure)
    _zoom(grid, base_fairness, constraint.ideal)
    return figure


def _explain_marks(figure: Figure) -> None:
    """Say below the panels what a dot, a line and a cross are."""
    from matplotlib.lines import Line2D

    marks = [
        Line2D([], [], color="grey", marker="o", ms=4, alpha=0.5, ls="", label="one update"),
        Line2D([], [], color="grey", lw=1.3, label="updates that no other of its method beats"),
        Line2D([], [], color="black", marker="x", ms=8, ls="", label="base model"),
    ]
    figure.legend(handles=marks, loc="outside lower center", ncols=3, frameon=False, fontsize=8)


def _zoom(grid: Any, base_fairness: float, ideal: float) -> None:
    """Show the values between the base model and parity, and cut off less fair updates."""
    if np.isnan(base_fairness) or base_fairness == ideal:
        return
    edge = 0.04 * (ideal - base_fairness)  # negative for a disparity: fairer is to the right
    grid[0, 0].set_xlim(base_fairness - edge, ideal + edge)
    for row in grid:
        lines = [np.asarray(line.get_ydata(), dtype=float) for ax in row for line in ax.lines]
        values = np.concatenate(lines)
        values = values[np.isfinite(values)]
        if len(values):
            margin = 0.05 * (np.ptp(values) or 1.0)
            row[0].set_ylim(values.min() - margin, values.max() + margin)


def _draw_method(
    top: Axes,
    bottom: Axes,
    name: str,
    lines: pd.DataFrame,
    style: dict[str, Any],
    is_floor: bool,
) -> None:
    """Draw a method's updates as dots, and a line through those that no other one beats."""
    n_collapsed = int(lines["collapsed"].sum())
    label = f"{name} ({n_collapsed} collapsed)" if n_collapsed else name
    lines = lines[~lines["collapsed"]]
    fairness = lines["fairness"].to_numpy()
    for ax, column, sign in ((top, "change_rate", 1.0), (bottom, "accuracy", -1.0)):
        values = lines[column].to_numpy()
        ax.scatter(fairness, values, color=style["color"], s=9, alpha=0.35, lw=0)
        order = _unbeaten(fairness if is_floor else -fairness, sign * values)
        marker: dict[str, Any] = {"marker": "o", "ms": 5} if len(order) == 1 else {}
        width = 2.4 if name in OWN_METHODS else 1.3
        # the space makes matplotlib show a name that begins with an underscore
        ax.plot(fairness[order], values[order], label=f" {label}", lw=width, **style, **marker)


def _unbeaten(fairness: Floats, cost: Floats) -> NDArray[np.intp]:
    """Return the positions of points that no fairer point undercuts, fairest first.

    Examples
    --------
    >>> _unbeaten(np.array([0.5, 0.9, 0.7]), np.array([0.1, 0.2, 0.3]))
    array([1, 0])
    """
    order = np.lexsort((cost, -fairness))
    lowest = np.minimum.accumulate(cost[order])
    is_new = np.diff(lowest, prepend=np.inf) < 0
    return np.asarray(order[is_new])


def _label_rows(grid: Any, *, has_accuracy: bool) -> None:
    from matplotlib.ticker import PercentFormatter

    top, bottom = grid[:, 0]
    top.set_ylabel("share of decisions changed")
    top.yaxis.set_major_formatter(PercentFormatter(1.0))
    bottom.set_ylabel("accuracy")
    if not has_accuracy:
        bottom.text(0.5, 0.5, "true labels not known", ha="center", transform=bottom.transAxes)
