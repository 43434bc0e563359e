"""Say in words what a constraint measures and what it demands."""

from __future__ import annotations

from collections.abc import Sequence

from commod.metrics._constraint_text import SELECTION, Comparing, Within
from commod.metrics._measures import MEASURES

_PLURALS = {"accuracy": "accuracies", "labels per selection": "labels per selection"}


def measure_meaning(measure: str, outcome: str, other: str) -> str:
    """Return what a measure is; `outcome` is the label that it counts, `other` the other one.

    Examples
    --------
    >>> measure_meaning("precision", "1", "0")
    'the share of those decided 1 whose true label is 1'
    """
    rightly = "the share of those decided {0} whose true label is {0}"
    among = "how often people are decided {0} among those whose true label is {1}"
    return {
        SELECTION: f"how often people are decided {outcome}",
        "true positive rate": among.format(outcome, outcome),
        "false positive rate": among.format(outcome, other),
        "false negative rate": among.format(other, outcome),
        "true negative rate": among.format(other, other),
        "accuracy": "the share of decisions that equal the true label",
        "precision": rightly.format(outcome),
        "negative predictive value": rightly.format(other),
        "F1 score": f"the harmonic mean of precision and true positive rate of {outcome}",
        "error ratio": f"how many are wrongly decided {outcome} for each one wrongly {other}",
        "labels per selection": (
            f"how many have the true label {outcome} for each one decided {outcome}"
        ),
    }[measure]


def plural_of(measure: str) -> str:
    """Return the plural of a measure.

    Examples
    --------
    >>> plural_of("accuracy"), plural_of("selection rate")
    ('accuracies', 'selection rates')
    """
    return _PLURALS.get(measure, f"{measure}s")


def definition_text(
    comparison: Comparing, measures: Sequence[str], outcome: str, spelled: str, condition: str
) -> str:
    """Return what a metric measures. `spelled` explains the measures, `condition` the strata.

    Examples
    --------
    >>> definition_text("floor", ["precision"], "approval", "", "")
    'the lowest precision of approval of any group'
    """
    of = [f" of {outcome}" if MEASURES[m].counts_one_label else "" for m in measures]
    names = zip(measures, of, strict=True)
    singles = [f"{'rate' if m == SELECTION else m}{counted}" for m, counted in names]
    plurals = [f"{plural_of(m)}{counted}" for m, counted in zip(measures, of, strict=True)]
    if comparison == "ratio":
        text = f"the lowest group's {singles[0]} divided by the highest's"
    elif comparison in ("floor", "ceiling"):
        text = f"the {'lowest' if comparison == 'floor' else 'highest'} {singles[0]} of any group"
    else:
        whose = ["the groups'", *["their"] * len(plurals)]
        gaps = [f"how far {w} {p} lie apart" for w, p in zip(whose, plurals, strict=False)]
        link = " or " if comparison == "largest" else " plus "
        text = link.join(gaps) + (", whichever is more" if comparison == "largest" else "")
    meaning = {"ratio": "; 1 means equal", "floor": "", "ceiling": ""}.get(
        comparison, "; 0 means equal"
    )
    return f"{text}{f' ({spelled})' if spelled else ''}{condition}{meaning}"


def condition_text(within: Within | None) -> str:
    """Return how the strata enter a metric; empty without a condition.

    Examples
    --------
    >>> condition_text(Within("department"))
    ", in the least fair stratum of 'department'"
    """
    if within is None:
        return ""
    if within.over == "average":
        return f", with each group's figures averaged over the strata of {within.column!r}"
    return f", in the least fair stratum of {within.column!r}"


def demand_text(
    comparison: Comparing, measures: Sequence[str], bound: str, within: Within | None
) -> str:
    """Return the sentence that a constraint demands; `bound` is its bound in words.

    Examples
    --------
    >>> demand_text("ratio", ["selection rate"], "0.8", None)
    "The lowest group's selection rate is at least 0.8 times the highest's."
    >>> demand_text("difference", ["accuracy"], "0.03", Within("department", 30, "average"))
    "The groups' accuracies differ by at most 0.03, on average over the strata of 'department' with
    at least 30 rows per group."
    """
    first, gaps = measures[0], [f"the gap of {plural_of(m)}" for m in measures]
    if comparison == "ratio":
        text = f"The lowest group's {first} is at least {bound} times the highest's"
    elif comparison in ("floor", "ceiling"):
        text = f"Every group's {first} is at {'least' if comparison == 'floor' else 'most'} {bound}"
    elif len(measures) == 1:
        text = f"The groups' {plural_of(first)} differ by at most {bound}"
    elif comparison == "largest":
        text = f"{' and '.join(gaps)} are each at most {bound}"
    else:
        text = f"{' plus '.join(gaps)} is at most {bound}"
    strata = ""
    if within is not None:
        which = "on average over the strata" if within.over == "average" else "in every stratum"
        strata = f", {which} of {within.column!r} with at least {within.min_rows} rows per group"
    return f"{text[0].upper()}{text[1:]}{strata}."
