"""Draw updates: their concepts, and the trade-off between changes and fairness."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from commod._displays.base import Display, axes_or_new, check_fitted_update, width_in_inches
from commod._record.explanation import Card, CardLine, Concept
from commod._reporting.explain import make_card
from commod._study.frontier import Frontier, frontier
from commod._study.pictures import AFTER, BEFORE, bar_style, plain_text
from commod._text import percent, points
from commod.exceptions import InputError
from commod.updates.base import BaseUpdate
from commod.updates.ratio import RatioUpdate

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class ConceptDisplay(Display):
    """Each concept with its strongest terms, and how often people change where it is active.

    The length of a bar is what the term adds per standard deviation over the explained people. So
    terms in different units can be compared. The points stand beside the names. What bars mean
    depends on the scorecard:

    - Its sum is r: the points are on −r. Bars to the right push towards a change, bars to the left
      towards keeping the decision.
    - It has a rule: the points are evidence. Bars to the right push towards the favourable
      decision, so towards a gain and against a loss. Bars to the left do the opposite.

    A concept is active for a person whom it pushes towards a change more than on average.

    Parameters
    ----------
    card : Card
        The scorecard and its concepts, as `commod.explain(update, X).card` has them.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes of shape (n_concepts, 2)
        For each concept that has points: its terms, and the shares of people who change.
    ax_ : matplotlib Axes
        The first axes of `axes_`.
    figure_ : matplotlib Figure

    Notes
    -----
    Only the total scorecard is identified by the data; concepts are one way to write it down.

    Examples
    --------
    >>> from commod import ControlledDebiaser
    >>> from commod import ConceptDisplay
    >>> from commod.datasets import make_biased
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> update = ControlledDebiaser(model, target=0.8)
    >>> update = update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    >>> display = ConceptDisplay.from_estimator(update, data.data)
    >>> display.axes_.shape[1]
    2
    >>> import matplotlib.pyplot as plt
    >>> plt.close(display.figure_)
    """

    axes_: NDArray[Any]

    def __init__(self, *, card: Card) -> None:
        self.card = card

    @classmethod
    def from_estimator(
        cls, update: RatioUpdate, X: Any, *, ax: Axes | None = None, **kwargs: Any
    ) -> Self:
        """Draw the concepts of a fitted update, measured on the rows of X; return the display.

        Parameters
        ----------
        update : fitted update with a scorecard
            ControlledDebiaser, or COMMOD with architecture="concepts".
        X : table of shape (n, n_features)
        ax : matplotlib Axes, default=None
            As in `plot`.
        **kwargs
            As in `plot`.
        """
        check_fitted_update(update, "ConceptDisplay.from_estimator")
        scorecard = getattr(update, "scorecard_", None)
        if scorecard is None:
            raise InputError(
                f"This {type(update).__name__} has no scorecard, hence no concepts. ChangeDisplay "
                "shows whom it changes."
            )
        rows = update._read_rows(X)
        before = rows.base.decisions
        changed = update._decide_rows(rows) != before
        favorable = before == (update._pos_label == update._favorable_label)
        max_margin = update._allowed_changes().max_margin
        card = make_card(scorecard, rows.terms, changed, favorable, max_margin)
        return cls(card=card).plot(ax, **kwargs)

    @classmethod
    def from_explanation(cls, explanation: Any, *, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the concepts of an explanation; return the display.

        Parameters
        ----------
        explanation : Explanation
            The result of `commod.explain` for an update that has a scorecard.
        ax : matplotlib Axes, default=None
            As in `plot`.
        **kwargs
            As in `plot`.
        """
        card = getattr(explanation, "card", None)
        if not isinstance(card, Card):
            raise InputError(
                "from_explanation takes what commod.explain returns for an update with a scorecard;"
                f" got {type(explanation).__name__} without one."
            )
        return cls(card=card).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, *, max_terms: int = 8) -> Self:
        """Draw one row for each concept that has points.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes made by `subplots`; their space is divided. A new figure if None.
        max_terms : int, default=8
            Draw only this many terms of each concept, the strongest. The title says how many are
            left out.

        Returns
        -------
        self
        """
        concepts = [concept for concept in self.card.concepts if concept.lines]
        heights = [1 + min(len(c.lines), max_terms) for c in concepts] or [2]
        # narrow axes have room for short names only
        longest = 40 if ax is None else int(np.clip(5 * width_in_inches(ax) - 8, 12, 40))
        self.axes_ = _grid(ax, heights)
        if not concepts:
            total = "r =" if self.card.rule is None else "the sum is"
            text = f"No term has points: {total} {self.card.intercept:.3g} for everybody."
            self.axes_[0, 0].text(0, 0.5, text, transform=self.axes_[0, 0].transAxes)
            for empty in self.axes_[0]:
                empty.set_axis_off()
        for concept, (left, right) in zip(concepts, self.axes_, strict=bool(concepts)):
            _draw_terms(left, concept, max_terms, longest)
            _draw_shares(right, concept)
        if concepts:
            _label_all(self.axes_, self.card)
        return self._drawn_on(*self.axes_.flat)


def _grid(ax: Axes | None, heights: list[int]) -> NDArray[Any]:
    """Return two axes for each concept, in a new figure or in the space of the axes given."""
    import matplotlib.pyplot as plt

    shape: Any = {"width_ratios": (3, 2), "height_ratios": heights}
    if ax is None:
        size = (10.0, 1.2 + 0.36 * sum(heights))
        figure = plt.figure(figsize=size, layout="constrained")
        return np.asarray(figure.subplots(len(heights), 2, squeeze=False, gridspec_kw=shape))
    spec = ax.get_subplotspec()
    if spec is None:
        raise InputError("ax has no space that could be divided: make it with plt.subplots().")
    ax.set_axis_off()
    cells = spec.subgridspec(len(heights), 2, **shape)
    return np.asarray(cells.subplots(squeeze=False))


def _draw_terms(ax: Axes, concept: Concept, max_terms: int, longest: int) -> None:
    """Draw a bar for each of the strongest terms; names have at most `longest` characters."""
    terms = sorted(concept.lines, key=lambda term: -abs(_length(term)))
    shown = terms[:max_terms]
    y = np.arange(len(shown))[::-1]
    lengths = np.array([_length(term) for term in shown])
    ax.barh(
        y,
        lengths,
        height=0.7,
        color=np.where(lengths > 0, AFTER, BEFORE).tolist(),
        hatch=np.where(lengths > 0, "", "...").tolist(),
        edgecolor="white",
        linewidth=0,
    )
    names = [
        f"{plain_text(term.text, longest)}  {points(term.points)} {term.unit}".strip()
        for term in shown
    ]
    ax.set_yticks(y, names, fontsize="small")
    n_hidden = len(terms) - len(shown)
    hidden = f" ({n_hidden} weaker terms left out)" if n_hidden else ""
    title = f"Concept {concept.number}: {plain_text(concept.name, longest)}{hidden}"
    ax.set_title(title, loc="left", fontsize="medium")
    ax.axvline(0, color="black", linewidth=0.8)


def _draw_shares(ax: Axes, concept: Concept) -> None:
    """Draw how many change where the concept is active and where it is not."""
    shares = (
        (1, "active", concept.change_if_active, concept.n_active, AFTER, ""),
        (0, "not active", concept.change_if_inactive, concept.n_inactive, BEFORE, "..."),
    )
    for y, _, share, _, colour, hatch in shares:
        value = share.value or 0.0
        ax.barh(y, value, height=0.55, **bar_style(colour, hatch))
        if share.low is not None and share.high is not None:
            ax.plot([share.low, share.high], [y, y], color="black", lw=1.2)
    names = [f"{name}\n{percent(share.value)} of {n:,}" for _, name, share, n, *_ in shares]
    ax.set_yticks([1, 0], names, fontsize="small")
    ax.set_ylim(-0.7, 1.7)
    ax.xaxis.set_major_formatter("{x:.0%}")
    ends = [end or 0.0 for _, _, share, *_ in shares for end in (share.value, share.high)]
    ax.set_xlim(0, 1.1 * max(*ends, 0.01))


def _length(term: CardLine) -> float:
    """Return what the term adds per standard deviation; its points if not measured."""
    return float(term.points if term.spread is None else np.sign(term.points) * term.spread)


def _label_all(axes: NDArray[Any], card: Card) -> None:
    """Label the lowest axes and give all concepts the same scale."""
    widest = max(abs(v) for ax in axes[:, 0] for v in ax.dataLim.intervalx) or 1.0
    for ax in axes[:, 0]:
        ax.set_xlim(-1.1 * widest, 1.1 * widest)
    highest = max(ax.get_xlim()[1] for ax in axes[:, 1])
    for ax in axes[:, 1]:
        ax.set_xlim(0, highest)
    for ax in axes.flat:
        ax.locator_params(axis="x", nbins=4)
    left, right = axes[-1]
    meaning = "← pushes to keep | pushes to change →\n(−r per standard deviation)"
    if card.rule is not None:
        meaning = "← evidence for a loss | evidence for a gain →\n(points per standard deviation)"
    left.set_xlabel(meaning)
    right.set_xlabel("share of people\nwho change")


class FrontierDisplay(Display):
    """Share of changed decisions against fairness: many updates beside the fewest possible.

    Parameters
    ----------
    frontier : Frontier
        The result of `commod.frontier`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the last drawing.
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from commod import ControlledDebiaser
    >>> from commod import FrontierDisplay
    >>> from commod.datasets import make_biased
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> display = FrontierDisplay.from_estimator(
    ...     ControlledDebiaser(model),
    ...     data.data,
    ...     data.target,
    ...     sensitive_features=data.sensitive_features,
    ...     targets=[0.7, 0.9],
    ... )
    >>> display.ax_.get_xlabel()
    'P-rule of label 1 on the 800 fit rows (fairer →)'
    >>> import matplotlib.pyplot as plt
    >>> plt.close(display.figure_)
    """

    def __init__(self, *, frontier: Frontier) -> None:
        self.frontier = frontier

    @classmethod
    def from_estimator(
        cls,
        update: BaseUpdate,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Compute the frontier of an update with `commod.frontier`, draw it, return the display.

        Parameters
        ----------
        update, X, y, sensitive_features
            As in `commod.frontier`.
        ax : matplotlib Axes, default=None
            A new figure if None.
        **kwargs
            Other arguments of `commod.frontier`, such as `targets`, `grid` and `X_eval`.
        """
        curve = frontier(update, X, y, sensitive_features=sensitive_features, **kwargs)
        return cls(frontier=curve).plot(ax)

    @classmethod
    def from_frontier(cls, frontier: Frontier, *, ax: Axes | None = None) -> Self:
        """Draw a frontier that was computed before; return the display.

        Parameters
        ----------
        frontier : Frontier
        ax : matplotlib Axes, default=None
            A new figure if None.
        """
        if not isinstance(frontier, Frontier):
            raise InputError(
                f"from_frontier takes what commod.frontier returns; got {type(frontier).__name__}. "
                "For an update use from_estimator."
            )
        return cls(frontier=frontier).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw changes against fairness, fairer to the right.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            A new figure if None.

        Returns
        -------
        self
        """
        ax = axes_or_new(ax, 7.5, 4.5)
        self.frontier.plot(ax)
        ax.set_xlabel(f"{ax.get_xlabel()} (fairer →)")
        ax.set_ylabel(f"{ax.get_ylabel()} (fewer is better ↓)")
        return self._drawn_on(ax)
