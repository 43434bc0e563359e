"""Find the fewest changes by trying every vector of decisions: what exact limits must agree with.

Values of constraints are computed here from confusion counts, without the library's comparisons.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commod.bounds._general import TIME_LIMIT, fewest_changes_of
from commod.bounds._integer import Answer
from commod.exceptions import InputError
from commod.metrics._cells import GroupComparison
from commod.metrics._constraint import (
    FALSE_POSITIVE_RATE,
    SELECTION_RATE,
    TRUE_POSITIVE_RATE,
    Constraint,
    Within,
)
from commod.metrics._measures import MEASURES
from commod.metrics._people import People, Strata, strata_of

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

BOTH = (TRUE_POSITIVE_RATE, FALSE_POSITIVE_RATE)
EVERY = Within("column", min_rows=1)
AVERAGE = Within("column", min_rows=1, over="average")

FLOORS = (0.3, 0.5, 2 / 3, 0.8, 0.9, 1.0)
CEILINGS = (0.0, 0.1, 0.2, 0.25, 1 / 3, 0.5)
DIRECTIONS = ((True, True), (True, True), (True, False), (False, True))


def of_kind(comparison: str, rows: tuple, measure: str | None = None) -> Constraint:
    """Return a constraint on the rates of `rows`, or on a measure, without a condition."""
    name = measure or "rates"
    return Constraint(name, name, (MEASURES[measure],) if measure else rows, comparison)


PARITY = of_kind("ratio", (SELECTION_RATE,))
PARITY_GAP = of_kind("difference", (SELECTION_RATE,))
ODDS = of_kind("difference", BOTH)
TPR_GAP = of_kind("difference", (TRUE_POSITIVE_RATE,))
FPR_GAP = of_kind("difference", (FALSE_POSITIVE_RATE,))
ACCURACY = of_kind("difference", BOTH, "accuracy")
PRECISION = of_kind("difference", BOTH, "precision")
MINIMUM_RATE = of_kind("floor", (SELECTION_RATE,))


CASES: dict[str, tuple[Constraint, ...]] = {
    # one constraint
    "P-rule": (PARITY,),
    "equalized odds, sum": (ODDS,),
    "equalized odds, largest": (of_kind("largest", BOTH),),
    "ratio of TPR": (of_kind("ratio", (TRUE_POSITIVE_RATE,)),),
    "minimum rate": (MINIMUM_RATE,),
    "minimum TPR": (of_kind("floor", (TRUE_POSITIVE_RATE,)),),
    "maximum FPR": (of_kind("ceiling", (FALSE_POSITIVE_RATE,)),),
    "accuracy": (ACCURACY,),
    "minimum accuracy": (of_kind("floor", BOTH, "accuracy"),),
    "ratio of FNR": (of_kind("ratio", (TRUE_POSITIVE_RATE,), "false negative rate"),),
    "precision": (PRECISION,),
    "ratio of precision": (of_kind("ratio", BOTH, "precision"),),
    "minimum precision": (of_kind("floor", BOTH, "precision"),),
    "error ratio": (of_kind("difference", BOTH, "error ratio"),),
    "F1 score": (of_kind("difference", BOTH, "F1 score"),),
    # conditional
    "P-rule in every stratum": (PARITY.conditional(EVERY),),
    "P-rule of averages": (PARITY.conditional(AVERAGE),),
    "equalized odds in every stratum": (ODDS.conditional(EVERY),),
    "equalized odds of averages": (ODDS.conditional(AVERAGE),),
    "precision in every stratum": (PRECISION.conditional(EVERY),),
    "precision of averages": (PRECISION.conditional(AVERAGE),),
    "minimum rate in every stratum": (MINIMUM_RATE.conditional(EVERY),),
    # two
    "P-rule, equalized odds": (PARITY, ODDS),
    "TPR, FPR": (TPR_GAP, FPR_GAP),
    "minimum rate, parity gap": (MINIMUM_RATE, PARITY_GAP),
    "accuracy, P-rule": (ACCURACY, PARITY),
    "precision, P-rule": (PRECISION, PARITY),
    "precision, P-rule in every stratum": (PRECISION, PARITY.conditional(EVERY)),
    "P-rule of all and in every stratum": (PARITY, PARITY.conditional(EVERY)),
    "precision, error ratio": (PRECISION, of_kind("ratio", BOTH, "error ratio")),
    # three
    "P-rule, TPR, minimum rate": (PARITY, TPR_GAP, MINIMUM_RATE),
    "P-rule of averages, TPR, accuracy": (PARITY.conditional(AVERAGE), TPR_GAP, ACCURACY),
    "precision, parity gap, minimum rate": (PRECISION, PARITY_GAP, MINIMUM_RATE),
}


@dataclass(frozen=True)
class Case:
    """A small table of people, and constraints with a bound each."""

    constraints: tuple[Constraint, ...]
    bounds: tuple[float, ...]
    group: NDArray[np.intp]
    label: BoolArray
    decisions: BoolArray
    strata: tuple[Strata, ...]
    n_groups: int
    may_raise: bool
    may_lower: bool


def random_case(name: str, rng: np.random.Generator) -> Case:
    """Return random people, few enough to try all decisions, and bounds."""
    return random_people(name, rng, n_rows=int(rng.integers(6, 10)))


def random_people(
    name: str,
    rng: np.random.Generator,
    n_rows: int,
    n_strata: int = 2,
    n_groups: int | None = None,
) -> Case:
    """Return random people and bounds; the conditions leave something to compare.

    There are a few more people than `n_rows` where a condition needs them. The number of groups
    is random where it is None.
    """
    constraints = CASES[name]
    is_average = any(one.within == AVERAGE for one in constraints)
    if n_groups is None:
        n_groups = 2 if is_average else int(rng.choice([2, 2, 3]))
    for n_failed in itertools.count():
        n_rows += n_failed % 20 == 19  # averages need people in every cell
        group = np.r_[np.arange(n_groups), rng.integers(n_groups, size=n_rows - n_groups)]
        label, decisions = rng.random((2, n_rows)) < rng.uniform(0.2, 0.8, size=(2, 1))
        decisions |= (group == 0) & (rng.random(n_rows) < 0.3)
        column = rng.integers(n_strata, size=n_rows)
        n_cells = len({*zip(group.tolist(), label.tolist(), strict=True)})
        if n_cells < 2 * n_groups and rng.random() < 0.9:  # mostly, all rates are defined
            continue
        try:
            strata = tuple(
                Strata.everybody(n_rows, n_groups)
                if one.within is None
                else strata_of(one, column, range(n_strata), group, n_groups, label)
                for one in constraints
            )
        except InputError:
            continue
        break
    bounds = tuple(
        float(rng.choice(FLOORS if one.higher_is_fairer else CEILINGS)) for one in constraints
    )
    directions = DIRECTIONS[rng.integers(len(DIRECTIONS))]
    return Case(constraints, bounds, group, label, decisions, strata, n_groups, *directions)


def compared_cells(case: Case) -> tuple[list[tuple[GroupComparison, float]], IntArray, IntArray]:
    """Return comparisons with their bounds, and the sizes and positives of the cells (R, G)."""
    strata = dict(zip(case.constraints, case.strata, strict=True))
    cells = People(case.constraints, case.group, case.n_groups, case.label, strata=strata)
    sizes = cells.totals(np.ones(len(case.group)))
    compared = [
        (comparison, bound)
        for i, bound in enumerate(case.bounds)
        for comparison in cells.comparisons(i, sizes)
    ]
    positives = cells.totals(case.decisions.astype(np.float64))
    return compared, sizes.astype(np.int64), positives.astype(np.int64)


def exact_limit(case: Case, time_limit: float = TIME_LIMIT) -> Answer | None:
    """Return the limit of the library."""
    allowed = {"may_raise": case.may_raise, "may_lower": case.may_lower}
    return fewest_changes_of(*compared_cells(case), **allowed, time_limit=time_limit)


def brute_force(case: Case) -> int | None:
    """Return the fewest changes over all vectors of decisions; None where none keeps all bounds."""
    n_rows = len(case.group)
    after = (np.arange(2**n_rows)[:, None] >> np.arange(n_rows)) & 1 == 1
    changed = after != case.decisions
    is_allowed = np.ones(len(after), dtype=bool)
    if not case.may_raise:
        is_allowed &= ~(changed & after).any(axis=1)
    if not case.may_lower:
        is_allowed &= ~(changed & ~after).any(axis=1)
    after, changed = after[is_allowed], changed[is_allowed]
    is_kept = np.ones(len(after), dtype=bool)
    for constraint, bound, strata in zip(case.constraints, case.bounds, case.strata, strict=True):
        values = np.round(_values(constraint, strata, case, after), 12)
        is_kept &= values >= bound if constraint.higher_is_fairer else values <= bound
    return int(changed[is_kept].sum(axis=1).min()) if is_kept.any() else None


def _values(constraint: Constraint, strata: Strata, case: Case, after: BoolArray) -> FloatArray:
    """Return a constraint's value for each row of decisions `after` (k, n), or NaN."""
    is_average = constraint.within is not None and constraint.within.over == "average"
    worst: Callable[..., FloatArray] = np.min if constraint.higher_is_fairer else np.max
    if is_average:
        blocks = [list(range(len(strata.is_compared)))]
    else:
        blocks = [[s] for s in range(len(strata.is_compared))]
    values = []
    for block in blocks:
        groups = np.flatnonzero(strata.is_compared[block].all(axis=0))
        if len(groups) < constraint.min_groups:
            continue
        numbers = [
            np.stack([_number(measure, strata, case, after, block, g) for g in groups])
            for measure in constraint.measures
        ]
        values.append(_combined(constraint.comparison, numbers))
    return worst(np.stack(values), axis=0)


def _combined(comparison: str, numbers: Sequence[FloatArray]) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore"):
        match comparison:
            case "ratio":
                return numbers[0].min(axis=0) / numbers[0].max(axis=0)
            case "floor":
                return numbers[0].min(axis=0)
            case "ceiling":
                return numbers[0].max(axis=0)
        gaps = np.stack([table.max(axis=0) - table.min(axis=0) for table in numbers])
        return gaps.sum(axis=0) if comparison == "difference" else gaps.max(axis=0)


def _number(measure, strata: Strata, case: Case, after: BoolArray, block, group) -> FloatArray:
    """Return a measure of one group (k,): its average over the strata of a block."""
    counted = (
        np.ones(len(case.group), bool) if measure.label is None else case.label == measure.label
    )
    in_block = counted & np.isin(strata.codes, block) & (case.group >= 0)
    top = np.zeros(len(after))
    bottom = np.zeros(len(after))
    for s in block:
        in_stratum = counted & (strata.codes == s)
        members = (case.group == group) & (strata.codes == s)
        share = in_stratum.sum() / max(in_block.sum(), 1)
        n_members = (members & counted).sum()
        factor = share / n_members if len(block) > 1 else 1.0
        label, positive = case.label[members], after[:, members]
        counts = (
            (positive & label).sum(axis=1),
            (positive & ~label).sum(axis=1),
            (~positive & label).sum(axis=1),
            (~positive & ~label).sum(axis=1),
        )
        top += factor * sum(w * n for w, n in zip(measure.numerator, counts, strict=True))
        bottom += factor * sum(w * n for w, n in zip(measure.denominator, counts, strict=True))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(bottom > 0, top / bottom, np.nan)
