"""Measure how scores rank people: ROC curves of groups, and who outscores whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod import _record
from commod._data.disclosure import FEWEST_DESCRIBED
from commod._record.explanation import Direction
from commod._reporting.audit.people import UNDEFINED, AuditedPeople
from commod._reporting.audit.scores import area_loss
from commod._statistics.intervals import share_estimate
from commod.metrics._outscoring import Sides
from commod.metrics._roc import N_RESAMPLES, ResampledCurves, ScoreCells, score_cells

MOST_GROUPS = 20  # with curves: every pair of them is compared
N_POINTS = 15  # of a curve in a picture, at most
SEED = 0  # of the resamples: an audit of the same people has the same figures

ONE_LABEL = "all people of the group have the same true label"
FEW_OF_A_LABEL = f"fewer than {FEWEST_DESCRIBED} people of the group have one of the true labels"


@dataclass(frozen=True)
class RankedGroups:
    """The people of each listed group by score and true label.

    `listed` are the numbers of the compared groups, largest groups only. `before` and `after` are
    their people by score, None where scores are not given. `losses` are the areas under the curve
    before minus after; None where single rows are not known. `n_bins` is the number of bins that
    scores were counted in, None where they were not.
    """

    listed: tuple[int, ...]
    n_left_out: int
    before: tuple[ScoreCells, ...] | None
    after: tuple[ScoreCells, ...] | None
    losses: tuple[_record.Estimate, ...] | None = None
    n_bins: int | None = None


def listed_groups(
    sizes: NDArray[np.integer], is_compared: NDArray[np.bool_]
) -> tuple[tuple[int, ...], int]:
    """Return the numbers of the largest compared groups, in order, and how many are left out.

    Examples
    --------
    >>> listed_groups(np.array([40, 7, 90]), np.array([True, False, True]))
    ((0, 2), 0)
    """
    compared = np.flatnonzero(is_compared)
    largest = compared[np.argsort(-sizes[compared], kind="stable")][:MOST_GROUPS]
    return tuple(np.sort(largest).tolist()), len(compared) - len(largest)


def rank_groups(
    people: AuditedPeople, is_compared: NDArray[np.bool_], level: float
) -> RankedGroups | None:
    """Return the people of each group by score; None without true labels or without scores."""
    scores = people.scores_before, people.scores_after
    is_scored = any(values is not None for values in scores)
    if people.label is None or not is_scored or not is_compared.any():
        return None
    label = people.label == people.coding.score_is_for_positive
    codes = people.groups.codes
    listed, n_left_out = listed_groups(people.groups.sizes, is_compared)
    before, after = (
        None if values is None else _cells_of(values, label, codes, listed) for values in scores
    )
    losses = None
    if people.scores_before is not None and people.scores_after is not None:
        if np.array_equal(people.scores_before, people.scores_after):
            after = before  # the same cells need not be resampled twice
        rows = [codes == i for i in listed]
        losses = tuple(
            area_loss(people.scores_before[own], people.scores_after[own], label[own], level)
            for own in rows
        )
    return RankedGroups(listed, n_left_out, before, after, losses)


def _cells_of(
    scores: NDArray[np.float64],
    label: NDArray[np.bool_],
    codes: NDArray[np.intp],
    listed: Sequence[int],
) -> tuple[ScoreCells, ...]:
    cells = score_cells(scores, label, codes, max(listed) + 1)
    return tuple(cells[i] for i in listed)


# ---------------------------------------------------------------------------------------------
# Figures


def roc_of(
    ranked: RankedGroups | None, groups: Sequence[_record.Group], level: float
) -> _record.RocFigures | None:
    """Return the areas under and between the curves; None where no group is ranked."""
    known = None if ranked is None else (ranked.before or ranked.after)
    if ranked is None or known is None:
        return None
    rocs = [
        _without_figures(groups[i].name, cells)
        for i, cells in zip(ranked.listed, known, strict=True)
    ]
    described = [j for j, roc in enumerate(rocs) if not roc.why_unknown]
    reference = max(described, key=lambda j: rocs[j].n, default=None)
    names = [rocs[j].name for j in described]
    before = _measure(ranked.before, described, reference, ranked, level)
    is_same = ranked.after is ranked.before
    after = before if is_same else _measure(ranked.after, described, reference, ranked, level)
    for k, j in enumerate(described):
        rocs[j] = replace(
            rocs[j],
            **({} if before is None else before.of_group(k, "before")),
            **({} if after is None else after.of_group(k, "after")),
            auc_loss=None if ranked.losses is None else ranked.losses[j],
        )
    return _record.RocFigures(
        reference=None if reference is None else rocs[reference].name,
        groups=tuple(rocs),
        largest_before=None if before is None else before.largest(names),
        largest_after=None if after is None else after.largest(names),
        n_left_out=ranked.n_left_out,
        n_bins=ranked.n_bins,
    )


def _without_figures(name: str, cells: ScoreCells) -> _record.GroupRoc:
    """Return a group without figures, and why it gets none, if so."""
    n_positive, n_negative = int(cells.positive.sum()), int(cells.negative.sum())
    fewest = min(n_positive, n_negative)
    why = "" if fewest >= FEWEST_DESCRIBED else FEW_OF_A_LABEL if fewest else ONE_LABEL
    return _record.GroupRoc(name, n_positive, n_negative, why_unknown=why)


@dataclass(frozen=True)
class _MeasuredCurves:
    """The curves of the described groups before or after, and how far bins may have moved them.

    `base` is the position of the reference group among them.
    """

    cells: Sequence[ScoreCells]
    base: int
    resampled: ResampledCurves
    level: float
    errors: Sequence[float]

    def of_group(self, k: int, when: str) -> dict[str, Any]:
        """Return the figures of a group under the field names of `GroupRoc`."""
        gap = None
        if k != self.base:
            error = self.errors[k] + self.errors[self.base]
            gap = _with_error(self.resampled.gap(k, self.base, self.level), error)
        return {
            f"auc_{when}": _widened(self.cells[k].area(self.level), self.errors[k]),
            f"gap_{when}": gap,
            f"curve_{when}": self.cells[k].points(N_POINTS, FEWEST_DESCRIBED),
        }

    def largest(self, names: Sequence[str]) -> _record.LargestGap | None:
        """Return the largest area over all pairs; None where there is no pair."""
        pairs = self.resampled.all_pairs()
        if not pairs:
            return None
        (first, second), gap = self.resampled.largest_gap(pairs, self.level)
        error = sum(sorted(self.errors)[-2:])
        return _record.LargestGap(names[first], names[second], _with_error(gap, error))


def _measure(
    cells: Sequence[ScoreCells] | None,
    described: Sequence[int],
    reference: int | None,
    ranked: RankedGroups,
    level: float,
) -> _MeasuredCurves | None:
    if cells is None or reference is None:
        return None
    own = [cells[j] for j in described]
    errors = [0.0 if ranked.n_bins is None else each.tied_area for each in own]
    resampled = ResampledCurves.of(own, N_RESAMPLES, np.random.RandomState(SEED))
    return _MeasuredCurves(own, described.index(reference), resampled, level, errors)


def _with_error(gap: _record.AreaBetween, error: float) -> _record.AreaBetween:
    return replace(gap, area=_widened(gap.area, error))


def _widened(figure: _record.Estimate, error: float) -> _record.Estimate:
    """Return the figure with an interval that also includes this error."""
    if figure.low is None or figure.high is None:
        return figure
    return _record.Estimate(
        figure.value, max(figure.low - error, 0.0), min(figure.high + error, 1.0)
    )


# ---------------------------------------------------------------------------------------------
# Measure whether those who change are nearer to the threshold than those who do not

DIRECTIONS: tuple[Direction, ...] = ("gain", "loss")


def outscoring_of(
    people: AuditedPeople, is_compared: NDArray[np.bool_], level: float
) -> tuple[_record.Outscoring, ...]:
    """Return the figures of gains and of losses, whichever occur; none without base scores.

    Only compared groups count: a pair is made within a group, and a small group has few pairs.
    """
    if people.scores_before is None or not is_compared.any():
        return ()
    # a high score may predict the favourable label, or the other one
    coding = people.coding
    is_good = coding.favorable_is_positive == coding.score_is_for_positive
    scores = people.scores_before if is_good else -people.scores_before
    number = np.where(is_compared, np.cumsum(is_compared) - 1, -1)
    names = [str(n) for n in np.array(people.coding.group_names, dtype=object)[is_compared]]
    sides = Sides.of(
        scores, people.favorable(people.before), number[people.groups.codes], len(names)
    )
    figures = (_of_direction(people, sides, change, names, level) for change in DIRECTIONS)
    return tuple(figure for figure in figures if figure.n_changed)


def _of_direction(
    people: AuditedPeople, sides: Sides, change: Direction, names: list[str], level: float
) -> _record.Outscoring:
    side, changed = sides.side_of(change), people.changed
    pairs = side.count_pairs(changed)
    true_shares: list[_record.Estimate | None] = [None, None]
    if people.label is not None:
        is_true, own = people.favorable(people.label)[side.rows], changed[side.rows]
        true_shares = [
            share_estimate(int(is_true[part].sum()), int(part.sum()), level) for part in (own, ~own)
        ]
    groups = []
    for i, name in enumerate(names):
        n_changed, n_others = int(pairs.n_changed[i]), int(pairs.n_others[i])
        # the rank of one person among few would tell about that person
        is_described = min(n_changed, n_others) >= FEWEST_DESCRIBED
        figure = pairs.of_group(i).estimate(level) if is_described else UNDEFINED
        groups.append(_record.GroupOutscoring(name, n_changed, n_others, figure))
    return _record.Outscoring(
        change=change,
        n_changed=int(pairs.n_changed.sum()),
        n_others=int(pairs.n_others.sum()),
        same_group=pairs.estimate(level),
        overall=side.without_groups().count_pairs(changed).estimate(level),
        true_share_changed=true_shares[0],
        true_share_others=true_shares[1],
        groups=tuple(groups),
    )
