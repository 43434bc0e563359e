"""Several methods' trade-offs side by side, and the changes each needs for a level of fairness."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_scalar

from commod._study.evaluation import EvaluationRows
from commod._study.frontier import Frontier
from commod.exceptions import InputError
from commod.metrics._constraint import get_constraint

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["LIMITS", "Comparison"]

LEVELS = (0.6, 0.7, 0.8, 0.9)  # of the P-rule
SHARES = (0.75, 0.5, 0.25)  # of the base model's disparity
LIMITS = ("exact limit", "limit with lots")


class Comparison:
    """The frontiers of several methods on the same rows; made by `compare`.

    Attributes
    ----------
    frontiers : dict of str to Frontier
        The updates of each method; `select` on one gives a fitted update.
    constraints : str
        What fairness means here.
    base_fairness, base_accuracy : float
        The base model's, on the same rows.
    failures : dict of str to str
        Methods that could not be fitted, and why.

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
    ) -> None:
        self.frontiers = dict(frontiers)
        self.failures = dict(failures)
        self._updates = frozenset(updates)
        self.constraints = rows.constraints
        self.base_fairness = rows.fairness(rows.before)
        self.base_accuracy = rows.accuracy(rows.before)
        self._rows = rows

    def __repr__(self) -> str:
        word = next(iter(self.frontiers.values())).rows_word
        plural = "s" if len(self.frontiers) > 1 else ""
        metric = get_constraint(self.constraints).metric
        return (
            f"Comparison of {len(self.frontiers)} method{plural}, {metric} "
            f"{self.base_fairness:.3f} before, measured on {len(self._rows):,} {word}\n"
            f"{self.changes_needed().to_string(float_format='{:.3f}'.format, na_rep='-')}"
        )

    def frame(self) -> pd.DataFrame:
        """Return one line per update of every method as a pandas frame.

        Columns: `method`; `strength` (a rival's strength, COMMOD's lambda_fair, the target of
        ControlledDebiaser; NaN for a classifier that has none); `fairness`, `accuracy`,
        `change_rate`, `n_changes`, `n_gains`, `n_losses` (expected where lots are drawn); `limit`,
        the fewest changes for the same fairness as a share; `needs_sensitive_features` (to decide);
        `randomised`; `collapsed` (fairness is undefined: nobody is decided positively);
        `fit_seconds`, of all updates of the method together.
        """
        import pandas as pd

        return pd.concat([_lines(name, f) for name, f in self.frontiers.items()], ignore_index=True)

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
            Floors on the P-rule or ceilings on the disparity. None: 0.6, 0.7, 0.8 and 0.9 where
            the base model is below; three quarters, half and a quarter of its disparity.
        min_accuracy : float, default=None
            Count only updates with at least this accuracy.
        max_accuracy_loss : float, default=None
            The same, as a loss against the base model.

        Returns
        -------
        DataFrame
            One line per method, one column per level: the share of changed decisions, NaN where no
            update of the method reaches it; 0 for every update where the base model does. The last
            lines are the exact limit at any accuracy, in whole people and, where a method draws
            lots, in expectation.

        Notes
        -----
        The best of a method's updates on these very rows is taken: a figure for comparing
        methods, too good as a promise for one update.
        """
        import pandas as pd

        chosen = self._default_levels() if levels is None else self._read_levels(levels)
        floor = self._floor(min_accuracy, max_accuracy_loss)
        table = {
            name: [self._fewest(name, level, floor) for level in chosen] for name in self.frontiers
        }
        needs = {name: f.needs_sensitive_features for name, f in self.frontiers.items()}
        by_lot = any(f.randomised for f in self.frontiers.values())
        for name, in_expectation in zip(LIMITS[: 1 + by_lot], (False, True), strict=False):
            table[name] = [
                self._rows.limit_at(level, in_expectation=in_expectation) for level in chosen
            ]
            needs[name] = True
        found = pd.DataFrame.from_dict(table, orient="index", columns=chosen)
        found.insert(0, "needs group", pd.Series(needs))
        return found.rename_axis(index="method", columns=get_constraint(self.constraints).metric)

    def plot(self) -> Figure:
        """Draw changes and accuracy against fairness, one column for each kind of method.

        Left the methods that decide from X alone, right those that need the group. Lines join the
        updates that no other of the method beats; the exact limit is black.
        """
        from commod._study.compare.plot import draw_comparison

        return draw_comparison(self)

    def limit_curve(self, n_points: int = 60) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return levels from the base model's fairness to parity, and the limit at each.

        In expectation, that is, in real numbers: a smooth curve that no method is below. In whole
        people it has steps, and a jump where rates are to be equal to the last digit.
        """
        end = get_constraint(self.constraints).ideal
        levels = np.linspace(self.base_fairness, end, n_points)
        limits = [self._rows.limit_at(level, in_expectation=True) for level in levels.tolist()]
        return levels, np.array(limits)

    def _read_levels(self, levels: Any) -> list[float]:
        largest = get_constraint(self.constraints).largest
        try:
            chosen = [float(level) for level in levels]
        except (TypeError, ValueError):
            chosen = [np.nan]
        if not all(0 <= level <= largest for level in chosen):
            raise InputError(
                f"levels must be a list of numbers from 0 to {largest:g}, values of the "
                f"{get_constraint(self.constraints).metric}; got {levels!r}."
            )
        return chosen

    def _floor(self, min_accuracy: Any, max_accuracy_loss: Any) -> float:
        """Return the lowest accuracy that counts, −inf where none was asked for."""
        floors = []
        for name, value in (
            ("min_accuracy", min_accuracy),
            ("max_accuracy_loss", max_accuracy_loss),
        ):
            if value is None:
                continue
            if np.isnan(self.base_accuracy):
                raise InputError(f"{name} needs true labels, which are not known on these rows.")
            number = check_scalar(value, name, Real, min_val=-1, max_val=1)
            floors.append(number if name == "min_accuracy" else self.base_accuracy - number)
        return max(floors, default=-np.inf)

    def _fewest(self, name: str, level: float, floor: float) -> float:
        """Return the fewest changes of an update at least as fair as `level`, NaN if none is."""
        frame = self.frontiers[name].frame()
        names = ["fairness", "accuracy", "change_rate"]
        fairness, accuracy, changes = frame[names].to_numpy(dtype=np.float64).T
        if name in self._updates:  # strength 0 is always at hand
            fairness = np.append(fairness, self.base_fairness)
            accuracy, changes = np.append(accuracy, self.base_accuracy), np.append(changes, 0.0)
        good = get_constraint(self.constraints).is_met(fairness, level)
        good = good & ((accuracy >= floor) | (floor == -np.inf))
        return float(changes[good].min()) if good.any() else float("nan")

    def _default_levels(self) -> list[float]:
        is_ratio = get_constraint(self.constraints).is_ratio
        if np.isnan(self.base_fairness):
            return list(LEVELS) if is_ratio else [0.1]
        if is_ratio:
            return [level for level in LEVELS if level > self.base_fairness] or [0.95]
        if not self.base_fairness:
            return [0.0]
        return [round(share * self.base_fairness, 3) for share in SHARES]


def _lines(name: str, found: Frontier) -> pd.DataFrame:
    frame = found.frame()
    strength = next((c for c in ("strength", "lambda_fair", "target") if c in frame), "target")
    figures = ["fairness", "accuracy", "change_rate", "n_changes", "n_gains", "n_losses", "limit"]
    lines = frame[figures].copy()
    lines.insert(0, "strength", frame[strength])
    lines.insert(0, "method", name)
    lines["needs_sensitive_features"] = found.needs_sensitive_features
    lines["randomised"] = found.randomised
    lines["collapsed"] = frame["fairness"].isna()
    lines["fit_seconds"] = found.fit_seconds
    return lines
