"""Hold the updates of a trade-off with their figures, select one of them, and draw them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commod._data.codes import plain
from commod._data.columns import Column
from commod._data.parameters import check_choice, check_number_parameter
from commod._people import all_kept
from commod._record import Card, Estimate, Segments, Step, TradeOff
from commod._study.evaluation import ANY_CHANGE, EvaluationRows
from commod._text import count, first_rows, number, percent, snippet
from commod.exceptions import InputError, TargetWarning
from commod.metrics._constraint import Constraint
from commod.updates._interface import AllowedChanges, Candidate

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MAX_SHOWN = 30  # updates of a table in a notebook
MOST_STEPS = 20  # steps of a trade-off: as many as a slider can show
MOST_BLIND = 8  # updates with a blind limit, each of which takes up to a second
EXPECTED = ("expected_fairness", "expected_change_rate", "expected_accuracy")
FIGURES = (
    "target",
    "fairness",
    "accuracy",
    "change_rate",
    "n_changes",
    "n_gains",
    "n_losses",
    "limit",
    "outscoring",
    "outscoring_losses",
    *EXPECTED,
)
BLIND = ("blind_limit", "blind_limit_low", "blind_limit_high")  # figures on request
COLOR_LABELS = {
    "outscoring": "pairs in which the one who gains\noutscores one who stays rejected",
    "outscoring_losses": "pairs in which the one who loses\nscores below one who does not",
    "accuracy": "accuracy",
}
BLIND_LABEL = "fewest without the group"


class Point(NamedTuple):
    """One update of a frontier, and its decisions on the evaluated rows.

    Where rows stand for many people (`EvaluationCounts`), `after` says how many of each it changes.
    """

    candidate: Candidate
    after: NDArray[Any]


Describe = Callable[[Point], tuple[Segments | None, Card | None]]


class Frontier:
    """Updates along the trade-off, measured on the same rows; made by `frontier`.

    Attributes
    ----------
    constraints : str
        The fairness constraint.
    base_fairness, base_accuracy : float
        The base model's figures on the same rows; accuracy is NaN without labels.
    rows_word : str
        "fit rows" or "evaluated rows": the rows on which the figures were measured.
    fit_seconds : float
        Seconds that fitting all updates took.
    needs_sensitive_features, randomised : bool
        Whether the updates need the group to decide, and whether some of them are randomised. A
        randomised update has expected figures.
    notes : str
        What was counted on all rows of a frame, and what is not known; empty for rows in memory.

    Examples
    --------
    >>> from commod import ControlledDebiaser, frontier
    >>> from commod.datasets import make_biased
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> curve = frontier(
    ...     ControlledDebiaser(model),
    ...     data.data,
    ...     data.target,
    ...     sensitive_features=data.sensitive_features,
    ...     targets=[0.7, 0.9],
    ... )
    >>> len(curve), list(curve.frame().columns[:5])
    (2, ['target', 'fairness', 'accuracy', 'change_rate', 'n_changes'])
    """

    def __init__(
        self,
        points: Sequence[Point],
        rows: EvaluationRows,
        rows_word: str,
        *,
        allowed: AllowedChanges = ANY_CHANGE,
        fit_seconds: float = float("nan"),
        needs_sensitive_features: bool = False,
        method: str = "update",
        describe: Describe | None = None,
        notes: str = "",
        blind_columns: Sequence[Column] | None = None,
    ) -> None:
        self.constraints = rows.constraint.name
        self.rows_word = rows_word
        self.fit_seconds = fit_seconds
        self.needs_sensitive_features = needs_sensitive_features
        self.randomised = any(point.after.dtype.kind == "f" for point in points)
        self.notes = notes
        self.base_fairness = rows.fairness(rows.before)
        self.base_accuracy = rows.accuracy(rows.before)
        self._points = list(points)
        self._rows = rows
        self._allowed = allowed
        self._method = method
        self._describe = describe
        self._figures = self._measured()
        self._has_blind_limits = blind_columns is not None
        if blind_columns is not None:
            self._add_blind_limits(blind_columns)

    @property
    def points(self) -> list[Point]:
        """Return the updates of the frontier with their numbers of changes, fewest first."""
        return list(self._points)

    def __len__(self) -> int:
        return len(self._points)

    def __getstate__(self) -> dict[str, Any]:
        self.trade_off()  # drops the columns of the evaluated rows: no file may hold them
        return self.__dict__.copy()

    def __repr__(self) -> str:
        return (
            f"Frontier of {len(self)} updates, {self._rows.metric} "
            f"{self.base_fairness:.3f} before, measured on "
            f"{self._rows.name_with_left_out(self.rows_word)}"
        )

    def _repr_html_(self) -> str:
        metric = self._rows.metric
        before = f"{metric} {number(self.base_fairness, 3)}"
        if not np.isnan(self.base_accuracy):
            before += f" and accuracy {number(self.base_accuracy, 3)}"
        names = dict.fromkeys(name for line in self._figures for name in line)
        settings = tuple(name for name in names if name not in (*FIGURES, *BLIND))
        blind = BLIND[:1] if self._has_blind_limits else ()
        rows = [
            (
                number(line["target"]),
                number(line["fairness"], 3),
                number(line["accuracy"], 3),
                percent(line["change_rate"]),
                percent(line["limit"]),
                count(line["n_gains"]),
                count(line["n_losses"]),
                percent(line["outscoring"]),
                *(percent(line[name]) for name in blind),
                *(_setting_text(line.get(name)) for name in settings),
            )
            for line in self._figures
        ]
        figures = ("target", metric, "accuracy", "changed", "fewest possible", "gains", "losses")
        without = [f"{BLIND_LABEL} (estimate)"] if blind else []
        header = (*figures, "gainers outscore", *without, *settings)
        measured = f"Measured on {self._rows.name_with_left_out(self.rows_word)}"
        table = first_rows(measured, header, rows, most=MAX_SHOWN, all_in="frame()")
        sentence = f"The base model has {before}. plot() draws the trade-off."
        sentences = [sentence, self.notes] if self.notes else [sentence]
        return snippet(f"Frontier of {len(self)} updates ({self._method})", sentences, [table])

    def frame(self) -> pd.DataFrame:
        """Return one line per update as a pandas frame.

        Columns: `target` (NaN where an update has none), `fairness`, `accuracy`, `change_rate`,
        `n_changes`, `n_gains`, `n_losses`, `limit`, `outscoring`, `outscoring_losses`,
        `expected_fairness`, `expected_change_rate`, `expected_accuracy`, then the settings that
        differ between updates. Where several constraints are stated, columns with the names of the
        others hold their metrics. Expected figures are those on as many new people as were fitted;
        NaN where they are not known. The others are measured on the rows of the frontier. For a
        `ControlledDebiaser`, most lines are approximate: points are fitted at a few targets, and
        the other targets move the cut of the nearest ones. `select` fits again.

        `limit` is the fewest changes, as a share, that reach the same fairness in the same
        direction with the sensitive features in hand. `outscoring` is the share of pairs of the
        same group in which a person who gains has a higher base score than a person who stays
        rejected; `outscoring_losses` is the share in which a person who loses has a lower one than
        a person who keeps the favourable decision. Both are NaN where nobody gains, or loses; see
        `commod.metrics.outscoring_probability`.

        With ``frontier(..., blind_limit=True)``, `blind_limit` estimates the fewest changes without
        the group, as a share, for at most eight of the efficient updates. It is NaN for the others,
        and where the estimated rule is never as fair. `blind_limit_low` and `blind_limit_high` are
        its 95 % interval.
        """
        import pandas as pd

        return pd.DataFrame(self._figures)

    def trade_off(self) -> TradeOff:
        """Return the efficient updates, each with its segments and its scorecard.

        An update is efficient if no other one of the frontier is at least as fair with fewer
        changes, and if it is not less fair than the base model. The steps go from the base model
        towards parity; there are at most 20.

        Segments are searched for on the first call, or before the frontier is pickled. Afterwards
        the frontier keeps the segments and drops the columns. Segments are None for a randomised
        update, cards for an update without a scorecard, and both with `describe=False`.
        """
        trade_off = self._trade_off
        self._describe = None
        return trade_off

    def plot(self, ax: Axes | None = None, *, color: str | None = None) -> Axes:
        """Draw changes against fairness, whom the updates change as colour, and the exact limit.

        Dots are measured on rows. A dashed line shows what is expected on new people, where known,
        and another one the estimated blind limits with their intervals, where they were requested.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        color : {"outscoring", "outscoring_losses", "accuracy"}, default=None
            The column of `frame` that the colour of a dot shows. If None, `outscoring` or
            `outscoring_losses`, depending on whether gains or losses are more; `accuracy` where
            base scores are not known. A dot whose value is undefined is hollow.

        Returns
        -------
        matplotlib Axes
        """
        import matplotlib.pyplot as plt

        frame = self.frame()
        color = check_choice(color, "color", COLOR_LABELS) if color else default_color(frame)
        limit_curve = self._limit_curve(frame["fairness"].dropna())
        if ax is None:
            _, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
        _draw_dots(frame, color, ax)
        constraint = self._rows.constraint
        if (expected := efficient_expectations(frame, constraint)) is not None:
            label = "expected on new people"
            ax.plot(*expected, color="tab:orange", lw=1.5, ls="--", label=label)
        ax.plot(*limit_curve, color="black", lw=1.2, label="fewest possible changes")
        if self._has_blind_limits:
            _draw_blind_limits(frame.dropna(subset="blind_limit").sort_values("fairness"), ax)
        ax.plot([self.base_fairness], [0], "x", color="tab:red", label="base model")
        rows_text = self._rows.name_with_left_out(self.rows_word)
        ax.set_xlabel(f"{self._rows.metric} on the {rows_text}")
        ax.set_ylabel("share of decisions changed")
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        if not constraint.higher_is_fairer:
            ax.invert_xaxis()  # fairer is to the right for every constraint
        ax.legend(frameon=False)
        return ax

    def select(self, *, target: float | None = None, max_changes: float | None = None) -> Any:
        """Return the fitted update with the fewest changes that reaches `target`.

        Parameters
        ----------
        target : float, default=None
            Floor on the P-rule or ceiling on the disparity, on the evaluated rows. Without
            `X_eval`, it is one on new people, where expected figures are known.
        max_changes : float, default=None
            Largest share of changed decisions, on the same rows. Without a target, the fairest
            update within it is returned.

        Returns
        -------
        update
            A copy: the frontier keeps its own. A `ControlledDebiaser` is fitted again: for
            `target`, or with `X_eval` for the target of its line, and the new fit may change a few
            decisions more or fewer. Where no update reaches both, the fairest within `max_changes`
            (or of all), with a warning. The update was chosen on the rows of the frontier, so
            measure it on others.
        """
        if target is None and max_changes is None:
            raise InputError("select needs target=, max_changes= or both.")
        for name, value in (("target", target), ("max_changes", max_changes)):
            if value is not None:
                check_number_parameter(value, name, Real, min_val=0)
        prefix = "expected_" if self._uses_expectations else ""
        fairness = np.array([figures[f"{prefix}fairness"] for figures in self._figures])
        changes = np.array([figures[f"{prefix}change_rate"] for figures in self._figures])
        is_within = changes <= (np.inf if max_changes is None else max_changes)
        if not is_within.any():
            raise InputError(
                f"No update of this frontier changes at most {max_changes:.1%}; the fewest is "
                f"{changes.min():.1%}. Add looser targets."
            )
        if target is not None:
            is_good = (
                is_within & self._rows.constraint.is_met(fairness, target) & self._keeps_standing
            )
            if is_good.any():
                return self._built_for(target, self._cheapest(is_good, changes))
        fairest = self._fairest_value(fairness[is_within])
        is_good = is_within & (fairness == fairest)
        if target is not None:
            warnings.warn(
                f"No update {'is expected to reach' if prefix else 'reaches'} "
                f"{self._rows.metric} {self._rows.constraint.sign} {target:g} on "
                f"{'new people' if prefix else f'the {self.rows_word}'}. "
                f"The closest one is returned: {fairest:.3f} with {changes[is_good].min():.1%} "
                "changed.",
                TargetWarning,
                stacklevel=2,
            )
        return self._cheapest(is_good, changes).candidate.build()

    @property
    def _keeps_standing(self) -> NDArray[np.bool_]:
        """Return which updates keep the bounds of the constraints that stand, shape (m,).

        That is measured, or expected where updates are selected by what is expected.
        """
        if not self._uses_expectations:
            kept = [self._rows.keeps_standing(figures) for figures in self._figures]
            return np.array(kept, dtype=bool)
        expectations = [getattr(point.candidate, "expectation", None) for point in self._points]
        kept = [
            expectation is None or all_kept(self._rows.standing, expectation.values[1:])
            for expectation in expectations
        ]
        return np.array(kept, dtype=bool)

    @property
    def _uses_expectations(self) -> bool:
        """Return whether updates are selected by what is expected on new people."""
        is_known = [not np.isnan(figures["expected_fairness"]) for figures in self._figures]
        return self.rows_word == "fit rows" and all(is_known)

    def _built_for(self, target: float, point: Point) -> Any:
        """Return the update of a line, fitted for the target where that is one on the fit rows.

        On other rows, the line's own target is the one that reaches it there.
        """
        candidate: Any = point.candidate
        if self.rows_word == "fit rows" and hasattr(candidate, "with_target"):
            candidate = candidate.with_target(target)
        return candidate.build()

    def _cheapest(self, is_good: NDArray[np.bool_], changes: NDArray[np.float64]) -> Point:
        return self._points[int(np.argmin(np.where(is_good, changes, np.inf)))]

    def _fairest_value(self, fairness: NDArray[np.float64]) -> float:
        known = fairness[~np.isnan(fairness)]
        if not len(known):
            raise InputError(
                f"No update of this frontier has a defined {self._rows.metric}: nobody is "
                "decided positively, or a group has no row with the label it is measured on."
            )
        return float(known.max() if self._rows.constraint.higher_is_fairer else known.min())

    # -- figures ----------------------------------------------------------------------------------

    def _measured(self) -> list[dict[str, float]]:
        """Return the figures of all updates; those with the same decisions are measured once."""
        known: dict[tuple[str, bytes], dict[str, float]] = {}
        lines = []
        for point in self._points:
            key = point.after.dtype.str, point.after.tobytes()
            if key not in known:
                known[key] = self._rows.measure(point.after, self._allowed)
            settings = dict(point.candidate.settings)
            target = settings.pop("target", float("nan"))
            lines.append({"target": target, **known[key], **_expected(point.candidate), **settings})
        return lines

    @cached_property
    def _efficient(self) -> list[int]:
        """Return the positions of the efficient updates, least fair first, at most MOST_STEPS."""
        sign = 1.0 if self._rows.constraint.higher_is_fairer else -1.0
        return _spread(_efficient(self._figures, sign * self.base_fairness, sign), MOST_STEPS)

    def _add_blind_limits(self, columns: Sequence[Column]) -> None:
        """Estimate the blind limit of a few efficient updates; it is NaN for the others.

        `columns` are those of the evaluated rows.
        """
        at, n = _spread(self._efficient, MOST_BLIND), len(self._rows)
        values = [self._figures[i]["fairness"] for i in at]
        found = dict(zip(at, self._rows.blind_limits(columns, values, self._allowed), strict=True))
        for i, line in enumerate(self._figures):
            blind = (found[i].n_changes, *found[i].interval) if i in found else (np.nan,) * 3
            shares = (value / n if np.isfinite(value) else np.nan for value in blind)
            line.update(zip(BLIND, shares, strict=True))

    @cached_property
    def _trade_off(self) -> TradeOff:
        steps = []
        for i in self._efficient:
            settings: dict[str, Any] = {n: plain(value) for n, value in self._figures[i].items()}
            blind = [settings.pop(name, None) for name in BLIND]
            segments, card = self._describe(self._points[i]) if self._describe else (None, None)
            figures = {name: settings.pop(name) for name in FIGURES}
            limit = None if blind[0] is None else Estimate(*blind)
            step = Step(
                **figures, settings=settings, segments=segments, card=card, blind_limit=limit
            )
            steps.append(step)
        return TradeOff(
            constraints=self._rows.constraint.name,
            metric=self._rows.metric,
            method=self._method,
            rows=self.rows_word,
            n_rows=len(self._rows),
            base_fairness=plain(self.base_fairness),
            base_accuracy=plain(self.base_accuracy),
            steps=tuple(steps),
            higher_is_fairer=self._rows.constraint.higher_is_fairer,
        )

    def _limit_curve(self, fairness: Iterable[float]) -> tuple[list[float], list[float]]:
        """Return values of fairness over the range of the updates, and the limit at each."""
        values = sorted({self.base_fairness, *fairness})
        if len(values) > 1:
            values = np.linspace(values[0], values[-1], 40).tolist()
        return values, [self._rows.limit_at(value, self._allowed) for value in values]


def _expected(candidate: Candidate) -> dict[str, float]:
    """Return what is expected of an update on new people; NaN where that is not known."""
    known = getattr(candidate, "expectation", None)
    values = (np.nan,) * 3
    if known is not None:
        values = known.values[0], known.change_rate, known.accuracy
    return dict(zip(EXPECTED, map(float, values), strict=True))


def _setting_text(value: Any) -> str:
    """Return a setting in which updates differ as short text."""
    if value is None:
        return "–"
    return f"{value:.3g}" if isinstance(value, Real) else str(value)


def _efficient(figures: Sequence[Mapping[str, float]], base: float, sign: float) -> list[int]:
    """Return the positions of the efficient updates, least fair first.

    `sign` times fairness grows with fairness; `base` is this value for the base model.
    """
    value = [sign * line["fairness"] for line in figures]
    error = [-np.nan_to_num(line["accuracy"]) for line in figures]
    is_fairer = [i for i, v in enumerate(value) if not (np.isnan(v) or v < base)]
    order = sorted(is_fairer, key=lambda i: (figures[i]["n_changes"], -value[i], error[i]))
    efficient: list[int] = []
    for i in order:
        if not efficient or value[i] > value[efficient[-1]]:
            efficient.append(i)
    return efficient


def _spread(positions: list[int], most: int) -> list[int]:
    """Return at most so many of the positions, evenly spread, the first and last included."""
    if len(positions) <= most:
        return positions
    kept = np.linspace(0, len(positions) - 1, most).round().astype(int)
    return [positions[i] for i in kept]


# ---------------------------------------------------------------------------------------------
# Draw a frontier: share of changed decisions against fairness, beside the exact limit


def default_color(frame: pd.DataFrame) -> str | None:
    """Return the column for the colour of dots; None if no column has a value.

    It is that of gains or of losses, whichever are more, and else the accuracy.
    """
    mostly_gains = frame["n_gains"].sum() >= frame["n_losses"].sum()
    names = "outscoring" if mostly_gains else "outscoring_losses", "accuracy"
    return next((name for name in names if frame[name].notna().any()), None)


def _draw_blind_limits(frame: pd.DataFrame, ax: Axes) -> None:
    """Draw the blind limits of the updates that have one, and their intervals."""
    x, label = frame["fairness"], f"{BLIND_LABEL} (estimate)"
    ax.vlines(x, frame["blind_limit_low"], frame["blind_limit_high"], color="grey", lw=1)
    ax.plot(x, frame["blind_limit"], color="black", lw=1.2, ls="--", marker="s", ms=4, label=label)


def efficient_expectations(
    frame: pd.DataFrame, constraint: Constraint
) -> tuple[list[float], list[float]] | None:
    """Return expected fairness and expected changes of the efficient updates, least fair first.

    An update is efficient if no other one is expected to be as fair with fewer changes. None where
    nothing is expected.
    """
    known = frame.dropna(subset=["expected_fairness", "expected_change_rate"])
    if known.empty:
        return None
    ordered = known.sort_values("expected_fairness", ascending=not constraint.higher_is_fairer)
    is_cheapest = ordered["expected_change_rate"] <= ordered["expected_change_rate"].cummin()
    efficient = ordered[is_cheapest].iloc[::-1]
    return efficient["expected_fairness"].tolist(), efficient["expected_change_rate"].tolist()


def _draw_dots(frame: pd.DataFrame, color: str | None, ax: Axes) -> None:
    """Draw one dot per update, and a colour bar where the colour means something."""
    is_known = frame["fairness"].notna() if color is None else frame[color].notna()
    known, unknown = frame[is_known], frame[~is_known]
    if len(unknown):
        ax.scatter(
            unknown["fairness"], unknown["change_rate"], s=22, facecolors="none", edgecolors="grey"
        )
    if color is None:
        ax.scatter(known["fairness"], known["change_rate"], c="tab:blue", s=22, label="updates")
        return
    is_share = color != "accuracy"
    dots = ax.scatter(
        known["fairness"],
        known["change_rate"],
        c=known[color],
        # a share of pairs has a middle, chance; the edge keeps pale dots visible
        cmap="RdYlBu" if is_share else "viridis",
        vmin=0 if is_share else None,
        vmax=1 if is_share else None,
        edgecolors="dimgrey" if is_share else "none",
        linewidths=0.5,
        s=26,
        label="updates",
    )
    bar = ax.figure.colorbar(dots, ax=ax, label=COLOR_LABELS[color])
    if is_share:
        bar.ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        bar.ax.axhline(0.5, color="black", lw=1)
