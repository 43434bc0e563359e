"""The constraints that have a name of their own, one class each."""

from __future__ import annotations

from typing import ClassVar

from commod.metrics._constraint_text import FPR, SELECTION, TPR, Comparing
from commod.metrics._language import (
    Bound,
    FairnessConstraint,
    Minimum,
    Parity,
    bound_argument,
    state_bound,
)


class DemographicParity(Parity):
    """Every group is selected about equally often.

    Parameters
    ----------
    ratio : float, default=None
        Floor on the P-rule: the lowest selection rate divided by the highest. Without a bound, the
        ratio is compared.
    difference : float, default=None
        Ceiling on the highest selection rate minus the lowest. ``...`` leaves it to `target`.

    Examples
    --------
    >>> print(DemographicParity(ratio=0.8))
    The lowest group's selection rate is at least 0.8 times the highest's.
    >>> print(DemographicParity(difference=0.05))
    The groups' selection rates differ by at most 0.05.
    """

    DEFAULT: ClassVar[Comparing] = "ratio"
    FIXED: ClassVar[bool] = True

    def __init__(self, *, ratio: Bound = None, difference: Bound = None) -> None:
        super().__init__(SELECTION, difference=difference, ratio=ratio)


class ErrorRatio(Parity):
    """Every group has about as many false positives for each false negative.

    OxonFair calls it treatment equality. The denominator moves with the decisions.

    Parameters
    ----------
    ratio : float, default=None
        Floor on the lowest error ratio divided by the highest. Without a bound, the ratio is
        compared.
    difference : float, default=None
        Ceiling on the highest error ratio minus the lowest. It may exceed 1.

    Examples
    --------
    >>> print(ErrorRatio(difference=0.5))
    The groups' error ratios differ by at most 0.5.
    """

    DEFAULT: ClassVar[Comparing] = "ratio"
    FIXED: ClassVar[bool] = True

    def __init__(self, *, ratio: Bound = None, difference: Bound = None) -> None:
        super().__init__("error ratio", difference=difference, ratio=ratio)


class TruePositiveRateParity(Parity):
    """Those whose true label is positive are selected about equally often in every group.

    Parameters
    ----------
    difference : float, default=None
        Ceiling on the highest true positive rate minus the lowest.
    ratio : float, default=None
        Floor on the lowest true positive rate divided by the highest.

    Examples
    --------
    >>> print(TruePositiveRateParity(0.1))
    The groups' true positive rates differ by at most 0.1.
    """

    FIXED: ClassVar[bool] = True

    def __init__(self, difference: Bound = None, *, ratio: Bound = None) -> None:
        super().__init__(TPR, difference=difference, ratio=ratio)


class FalsePositiveRateParity(Parity):
    """Those whose true label is negative are selected about equally often in every group.

    Parameters
    ----------
    difference : float, default=None
        Ceiling on the highest false positive rate minus the lowest.
    ratio : float, default=None
        Floor on the lowest false positive rate divided by the highest.

    Examples
    --------
    >>> print(FalsePositiveRateParity(ratio=0.8))
    The lowest group's false positive rate is at least 0.8 times the highest's.
    """

    FIXED: ClassVar[bool] = True

    def __init__(self, difference: Bound = None, *, ratio: Bound = None) -> None:
        super().__init__(FPR, difference=difference, ratio=ratio)


class AccuracyParity(Parity):
    """Decisions are right about equally often in every group.

    Parameters
    ----------
    difference : float, default=None
        Ceiling on the highest accuracy minus the lowest.
    ratio : float, default=None
        Floor on the lowest accuracy divided by the highest.

    Examples
    --------
    >>> print(AccuracyParity(0.03))
    The groups' accuracies differ by at most 0.03.
    """

    FIXED: ClassVar[bool] = True

    def __init__(self, difference: Bound = None, *, ratio: Bound = None) -> None:
        super().__init__("accuracy", difference=difference, ratio=ratio)


class PredictiveParity(Parity):
    """Those who are selected have the positive label about equally often in every group.

    The denominator of the precision, those who are selected, moves with the decisions.

    Parameters
    ----------
    difference : float, default=None
        Ceiling on the highest precision minus the lowest.
    ratio : float, default=None
        Floor on the lowest precision divided by the highest.

    Examples
    --------
    >>> print(PredictiveParity(0.05))
    The groups' precisions differ by at most 0.05.
    """

    FIXED: ClassVar[bool] = True

    def __init__(self, difference: Bound = None, *, ratio: Bound = None) -> None:
        super().__init__("precision", difference=difference, ratio=ratio)


class EqualizedOdds(FairnessConstraint):
    """Groups have about the same true and false positive rates.

    Parameters
    ----------
    sum : float, default=None
        Ceiling on the gap of true positive rates plus that of false positive rates: disparate
        mistreatment. Without a bound, the sum is compared.
    largest : float, default=None
        Ceiling on the larger of the two gaps: Fairlearn's reading.

    Examples
    --------
    >>> print(EqualizedOdds(0.1))
    The gap of true positive rates plus the gap of false positive rates is at most 0.1.
    >>> print(EqualizedOdds(largest=0.1))
    The gap of true positive rates and the gap of false positive rates are each at most 0.1.
    """

    DEFAULT: ClassVar[Comparing] = "difference"

    def __init__(self, sum: Bound = None, *, largest: Bound = None) -> None:
        bounds: dict[Comparing, Bound] = {"difference": sum, "largest": largest}
        names: dict[Comparing, str] = {"difference": "sum", "largest": "largest"}
        state_bound(self, (TPR, FPR), bounds, self.DEFAULT, names)

    def _arguments(self) -> str:
        is_sum = self.constraint.comparison == self.DEFAULT
        return ", ".join(bound_argument(self, "sum" if is_sum else "largest"))


class MinimumRate(Minimum):
    """Every group's selection rate is at least the bound.

    Parameters
    ----------
    bound : float, default=None

    Examples
    --------
    >>> print(MinimumRate(0.3))
    Every group's selection rate is at least 0.3.
    """

    FIXED: ClassVar[bool] = True

    def __init__(self, bound: Bound = None) -> None:
        super().__init__(SELECTION, bound)


class MinimumTruePositiveRate(Minimum):
    """Every group's true positive rate is at least the bound.

    Parameters
    ----------
    bound : float, default=None

    Examples
    --------
    >>> print(MinimumTruePositiveRate(0.6))
    Every group's true positive rate is at least 0.6.
    """

    FIXED: ClassVar[bool] = True

    def __init__(self, bound: Bound = None) -> None:
        super().__init__(TPR, bound)
