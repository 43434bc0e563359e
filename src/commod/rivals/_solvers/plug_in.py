"""Plug-in rules: whom to decide positively when every row's probabilities are known.

A positive decision of row i is worth `gain` g_i and adds to the predicted rate of each cell (a line
of the constraint, a group). The best decisions under linear limits on those rates are a threshold
rule g_i − Σ ψ_lj γ_lji > 0, whose multipliers ψ the functions here find: the linear programme of
Xian and Zhao (2024) for limits on predicted rates, and a walk along a path of multipliers for
limits on rates that are counted. NumPy and SciPy only; nothing is drawn by lot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from commod._solvers.search.rates import Cells
from commod.exceptions import CommodError

__all__ = [
    "LinearProgramme",
    "Path",
    "bent",
    "best_multipliers",
    "decide",
    "fair_margins",
    "one_multiplier",
    "walk",
]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

SLACK = 1e-10  # rates are sums of up to millions of shares: equal ones may differ by rounding
LEAST_GAP = 1e-7  # less than one person in a million: groups that cannot be told apart
TIE = 1e-12  # relative: breakpoints closer than this are one
EDGE = 1e-9  # margins this small are zero: what HiGHS is asked to be exact to
BEND = 1e-3  # small beside a gain that matters, large beside EDGE
SOLVED, INFEASIBLE = 0, 2  # how linprog ends
N_ROWS = 5_000  # up to here a linear programme has all rows


@dataclass(frozen=True)
class LinearProgramme:
    """What decisions are worth, and what they do to predicted rates.

    `gain` (n,) is what a positive decision is worth; above 0 the base decision is positive.
    `effects` (lines, groups, n) are γ, what it adds to the rate of each cell, and average to 1
    over the rows; `share` (n,) are the rows' weights and sum to 1.
    """

    gain: Floats
    effects: Floats
    share: Floats

    def rates(self, positive: Mask) -> Floats:
        """Return the predicted positive rate of each cell, shape (lines, groups)."""
        return np.asarray(self.effects @ (self.share * positive))

    def gap(self, positive: Mask) -> float:
        """Return the largest difference between two groups' predicted rates over the lines."""
        return float(np.ptp(self.rates(positive), axis=1).max())

    def decisions(self, multipliers: Floats) -> Mask:
        """Return the decisions at these multipliers, shape (n,)."""
        return decide(fair_margins(self.gain, self.effects, multipliers), self.gain > 0)


def fair_margins(gain: Floats, effects: Floats, multipliers: Floats) -> Floats:
    """Return g − Σ ψ_lj γ_lj of each row, shape (n,).

    Added cell by cell: a matrix product may round a row differently in another batch.
    """
    total = gain.copy()
    for row, weights in zip(effects, multipliers.tolist(), strict=True):
        for effect, weight in zip(row, weights, strict=True):
            if weight:
                total -= weight * effect
    return total


def decide(margins: Floats, base: Mask) -> Mask:
    """Return where the margin is positive; the base decision where it is exactly 0.

    Examples
    --------
    >>> decide(np.array([0.1, 0.0, 0.0]), np.array([False, True, False]))
    array([ True,  True, False])
    """
    return np.where(margins == 0, base, margins > 0).astype(np.bool_)


def bent(gain: Floats) -> Floats:
    """Return the gain with a slight bend, of the same sign.

    Where the group is known, gain and effects of equalized odds are straight lines in the score,
    and a group whose rates must both come down ends with a margin of 0 for everyone: the programme
    leaves open who is decided how. Lots would settle it; the bend settles it by the score instead,
    those near the threshold change first.
    """
    return gain + BEND * gain * np.abs(gain)


# ---------------------------------------------------------------------------------------------
# The linear programme


def best_multipliers(programme: LinearProgramme, tolerance: float) -> Floats:
    """Return the multipliers ψ (lines, groups) of the best decisions within the tolerance.

    Maximises Σ share·gain·p over p in [0, 1] such that in each line the predicted rates of all
    groups differ by at most `tolerance`. Each line of ψ sums to 0; all are exactly 0 where the base
    decisions are within the tolerance already.

    Examples
    --------
    >>> effects = np.array([[[2.0, 2.0, 0.0, 0.0], [0.0, 0.0, 2.0, 2.0]]])
    >>> two = LinearProgramme(np.array([0.4, -0.1, -0.1, -0.4]), effects, np.full(4, 0.25))
    >>> best_multipliers(two, 0.0).round(3)
    array([[ 0.125, -0.125]])
    >>> two.decisions(best_multipliers(two, 0.0))
    array([ True, False,  True, False])
    """
    n_lines, n_groups, _ = programme.effects.shape
    if programme.gap(programme.gain > 0) <= tolerance + LEAST_GAP:
        return np.zeros((n_lines, n_groups))
    if (n_lines, n_groups) == (1, 2):
        first, second = programme.effects[0]
        one = one_multiplier(programme.gain, second - first, programme.share, tolerance)
        return np.array([[-one, one]])
    return _off_the_edge(programme, _solve(programme, tolerance), tolerance)


def one_multiplier(gain: Floats, difference: Floats, share: Floats, tolerance: float) -> float:
    """Return the λ of the rule gain − λ·difference > 0: two groups, one line, by sorting.

    It minimises Σ share·(gain − λ·difference)₊ + tolerance·|λ|, the dual of the programme. Moving
    away from 0 each row changes at most once, at λ = gain/difference, and each change brings the
    rates closer: the first λ within the tolerance is the best.
    """
    gap = float(share @ (difference * (gain > 0)))
    if abs(gap) <= tolerance + SLACK:
        return 0.0
    sign = np.sign(gap)
    breaks, steps = _breakpoints(gain, sign * difference, share)
    left = abs(gap) - np.cumsum(steps)
    is_last = np.append(np.diff(breaks) > TIE * np.abs(breaks[:-1]), True)  # rows of one value
    breaks, left = breaks[is_last], left[is_last]
    within = left <= tolerance + SLACK
    k = int(np.argmax(within)) if within.any() else len(breaks) - 1
    # Where `left` meets the tolerance exactly, every λ up to the next breakpoint is optimal, and
    # the middle is farthest from any row. Else the optimum is the breakpoint itself, with its row
    # decided in part. Lots are not drawn, so the row falls on the side where the limit holds: past
    # the breakpoint, again midway to the next. Should that overshoot (few rows, or many alike) by
    # more than stopping short would miss, it is the side before.
    overshoots = left[k] < -tolerance - SLACK
    before = left[k - 1] if k else abs(gap)
    if overshoots and before < -left[k]:
        k -= 1
    if k < 0:
        return 0.0
    return float(sign * _midway(breaks, k))


def _breakpoints(gain: Floats, slope: Floats, share: Floats) -> tuple[Floats, Floats]:
    """Return the λ > 0 at which gain − λ·slope changes its sign, rising, and what each step adds.

    A gain of 0 counts as negative, as in the base decision.
    """
    moves = np.where(gain > 0, slope > 0, slope < 0)
    with np.errstate(over="ignore"):  # a slope that is nearly 0 never matters
        at = np.abs(gain[moves] / slope[moves])
    steps = share[moves] * np.abs(slope[moves])
    finite = np.isfinite(at)
    at, steps = at[finite], steps[finite]
    order = np.argsort(at, kind="stable")
    return at[order], steps[order]


def _midway(breaks: Floats, k: int) -> float:
    """Return the middle between breakpoint k and the next one; a bit further after the last."""
    after = breaks[k + 1] if k + 1 < len(breaks) else breaks[k] + 1
    return float(breaks[k] + after) / 2


def _solve(programme: LinearProgramme, tolerance: float) -> Floats:
    """Return optimal multipliers, by a programme of the rows near the edge of the rule.

    Rows whose margin is far from 0 are decided by its sign. A programme of the others gives the
    exact optimum of all wherever its multipliers confirm those signs; where they do not, more rows
    join. The first guess is from a sample.
    """
    n = len(programme.gain)
    # the guess from m rows is off by about 1/√m, so about n/√m rows are near enough to matter:
    # both programmes are of one size
    size = max(N_ROWS, int(4 * n ** (2 / 3)))
    nothing = np.zeros(programme.effects.shape[:2])
    guess = None
    if size < n:
        guess = _solve_rows(_sample(programme, size), tolerance, np.arange(size), nothing)
    while size < n and guess is not None:
        margins = fair_margins(programme.gain, programme.effects, guess)
        is_near = _nearest(programme, margins, size)
        fixed = programme.effects @ (programme.share * (~is_near & (margins > 0)))
        found = _solve_rows(programme, tolerance, np.flatnonzero(is_near), fixed)
        if found is not None:
            now = fair_margins(programme.gain, programme.effects, found)
            if (is_near | (margins * now > 0)).all():
                return found
            guess = found
        size *= 3
    found = _solve_rows(programme, tolerance, np.arange(n), nothing)
    if found is None:  # all rates equal is always possible: numbers of absurd size
        raise CommodError(
            "The linear programme of this constraint could not be solved. Check the base scores "
            "and sample_weight for values that differ by many orders of magnitude."
        )
    return found


def _sample(programme: LinearProgramme, size: int) -> LinearProgramme:
    """Return a programme of some rows, evenly from the gains of every group."""
    group = programme.effects.sum(axis=0).argmax(axis=0)
    order = np.lexsort((programme.gain, group))
    rows = order[np.linspace(0, len(order) - 1, size).astype(np.intp)]
    share = programme.share[rows] / programme.share[rows].sum()
    effects = programme.effects[:, :, rows]
    means = effects @ share
    return LinearProgramme(
        programme.gain[rows], effects / np.where(means > 0, means, 1.0)[:, :, None], share
    )


def _nearest(programme: LinearProgramme, margins: Floats, size: int) -> Mask:
    """Return the rows that the smallest changes of the multipliers can turn."""
    reach = np.maximum(programme.effects.sum(axis=(0, 1)), np.finfo(float).tiny)
    is_near = np.zeros(len(margins), dtype=np.bool_)
    is_near[np.argpartition(np.abs(margins) / reach, size)[:size]] = True
    return is_near


def _solve_rows(
    programme: LinearProgramme, tolerance: float, rows: NDArray[np.intp], fixed: Floats
) -> Floats | None:
    """Return the multipliers of the programme of some rows; None where it has no solution.

    The unknowns are p of each row, the middle q of each line and the difference of each cell's
    rate to it, within ± tolerance/2: one equation for each cell, whose marginal is its multiplier.
    `fixed` (lines, groups) is what the other rows add to the rates.
    """
    n_lines, n_groups, _ = programme.effects.shape
    n, n_cells = len(rows), n_lines * n_groups
    # rows of weight 1 on average: HiGHS takes what is below 1e-9 for nothing
    size = programme.share[rows] * n
    equations = np.hstack(
        [
            size * programme.effects[:, :, rows].reshape(n_cells, n),
            np.repeat(-n * np.eye(n_lines), n_groups, axis=0),
            -n * np.eye(n_cells),
        ]
    )
    worth = np.concatenate([-size * programme.gain[rows], np.zeros(n_lines + n_cells)])
    half = max(tolerance, 0.0) / 2
    low = np.concatenate([np.zeros(n), np.full(n_lines, -np.inf), np.full(n_cells, -half)])
    high = np.concatenate([np.ones(n), np.full(n_lines, np.inf), np.full(n_cells, half)])
    settings: Any = {
        "bounds": np.column_stack([low, high]),
        "options": {"dual_feasibility_tolerance": EDGE, "primal_feasibility_tolerance": EDGE},
    }
    for method in ("highs", "highs-ipm"):
        settings["method"] = method
        found = linprog(worth, A_eq=equations, b_eq=-n * fixed.ravel(), **settings)
        if found.status in (SOLVED, INFEASIBLE):  # else a second method may do better
            break
    if found.status != SOLVED:
        return None
    # the marginal is what the least cost gains from a larger right-hand side: −ψ
    return -np.asarray(found.eqlin.marginals, dtype=np.float64).reshape(n_lines, n_groups)


def _off_the_edge(programme: LinearProgramme, multipliers: Floats, tolerance: float) -> Floats:
    """Return multipliers close by at which no row has a margin of 0.

    At an optimum a few rows (one for each free multiplier) are decided in part. Along the ray
    through ψ they all change at ψ itself: a little before it they keep their base decisions, a
    little past it they change. The side that keeps the limit is taken, else the closer one.
    """
    margins = fair_margins(programme.gain, programme.effects, multipliers)
    clear = np.abs(margins) > EDGE
    pull = programme.gain - margins
    breaks, _ = _breakpoints(programme.gain[clear], pull[clear], programme.share[clear])
    before = breaks[breaks < 1].max(initial=0.0)
    after = breaks[breaks > 1].min(initial=2.0)
    sides = [(before + 1) / 2 * multipliers, (1 + after) / 2 * multipliers]
    gaps = [programme.gap(programme.decisions(side)) for side in sides]
    if gaps[0] <= max(tolerance + SLACK, gaps[1]):
        return sides[0]
    return sides[1]


# ---------------------------------------------------------------------------------------------
# Along a path of multipliers


@dataclass(frozen=True)
class Path:
    """The decisions along straight legs between multipliers, and the fairness each stretch has.

    `knots` (m + 1, lines, groups) begin at 0; position 2.5 is halfway from knot 2 to knot 3, and
    the last leg goes on for ever. Stretch k begins at position `starts[k]` (K,), where some
    decisions change, and has `fairness[k]` (K,): the P-rule, or minus the disparity.
    """

    knots: Floats
    starts: Floats
    fairness: Floats

    def first(self, target: float) -> Floats:
        """Return the multipliers of the first stretch this fair, else of the fairest one."""
        enough = self.fairness >= target - SLACK
        k = int(np.argmax(enough) if enough.any() else np.argmax(self.fairness))
        return self.at(_midway(self.starts, k)) if k else self.knots[0]

    def at(self, position: float) -> Floats:
        """Return the multipliers at a position, shape (lines, groups)."""
        leg = min(int(position), len(self.knots) - 2)
        begin, end = self.knots[leg : leg + 2]
        return np.asarray(begin + (position - leg) * (end - begin))


def walk(
    gain: Floats,
    effects: Floats,
    knots: Sequence[Floats],
    *,
    cells: Cells,
    weight: Floats,
    as_ratio: bool,
) -> Path:
    """Return the fairness that is counted at every step of a path of multipliers.

    Parameters
    ----------
    gain : ndarray of shape (n,)
    effects : ndarray of shape (lines, groups, n)
    knots : sequence of ndarrays of shape (lines, groups)
        Where the straight legs of the path meet; the first is 0, the base decisions.
    cells : Cells
        The true cell of each row, in which decisions are counted.
    weight : ndarray of shape (n,)
    as_ratio : bool
        Fairness is the lowest rate over the highest, else minus the sum over the lines of the
        differences between the highest and the lowest.
    """
    positive = gain > 0
    totals = cells.totals(weight)
    counts = cells.totals(weight * positive).ravel()
    starts, fairness = [np.zeros(1)], [_fairness(counts[:, None], totals, as_ratio)]
    margins = gain
    for leg, end in enumerate(knots[1:]):
        is_last = leg == len(knots) - 2
        ahead = fair_margins(gain, effects, end)
        at, order = _crossings(margins, ahead, positive, np.inf if is_last else 1.0)
        steps = np.where(positive[order], -1.0, 1.0) * weight[order]
        running = counts[:, None] + _running(cells.index[order], steps, len(counts))
        new = np.append(np.diff(at) > TIE * np.maximum(at[:-1], TIE), True)[: len(at)]
        starts.append(leg + at[new])
        fairness.append(_fairness(running[:, new], totals, as_ratio))
        counts = running[:, -1] if len(at) else counts
        positive = positive.copy()
        positive[order] ^= True
        margins = ahead
    return Path(np.stack(knots), np.concatenate(starts), np.concatenate(fairness))


def _crossings(
    begin: Floats, end: Floats, positive: Mask, most: float
) -> tuple[Floats, NDArray[np.intp]]:
    """Return where in (0, most) rows change on the way from `begin` to `end`, rising; and which."""
    slope = end - begin
    least = TIE * np.abs(slope).max(initial=0.0)  # a slope below is rounding and crosses nothing
    moves = np.where(positive, slope < -least, slope > least)
    index = np.flatnonzero(moves)
    at = np.maximum(-begin[index] / slope[index], 0.0)
    inside = at < most
    at, index = at[inside], index[inside]
    order = np.argsort(at, kind="stable")
    return at[order], index[order]


def _running(cell: NDArray[np.intp], steps: Floats, n_cells: int) -> Floats:
    """Return the running sum of the steps in each cell, shape (n_cells, len(steps))."""
    running = np.zeros((n_cells, len(steps)))
    inside = np.flatnonzero(cell >= 0)
    running[cell[inside], inside] = steps[inside]
    return np.cumsum(running, axis=1, out=running)


def _fairness(counts: Floats, totals: Floats, as_ratio: bool) -> Floats:
    """Return the fairness of each column of counts (cells, K), shape (K,); −inf if undefined."""
    rates = (counts / totals.reshape(-1, 1)).reshape(*totals.shape, -1)
    if not as_ratio:
        return -np.asarray(np.ptp(rates, axis=1).sum(axis=0))
    highest = rates[0].max(axis=0)
    ratio = np.full(len(highest), -np.inf)  # nobody decided positively is undefined, not fair
    return np.divide(rates[0].min(axis=0), highest, out=ratio, where=highest > 0)
