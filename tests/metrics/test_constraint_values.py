"""Values of constraints agree with Fairlearn and with sums by hand, within strata and without."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from benchmarks.fairlearn_rates import RATES
from fairlearn import metrics as fairlearn

from commod.constraints import (
    AccuracyParity,
    DemographicParity,
    EqualizedOdds,
    ErrorRatio,
    FalsePositiveRateParity,
    Maximum,
    Minimum,
    MinimumRate,
    MinimumTruePositiveRate,
    Parity,
    PredictiveParity,
    TruePositiveRateParity,
)
from commod.exceptions import InputError
from commod.metrics import fairness_by_stratum, fairness_value, p_rule
from commod.metrics._constraint import FORMS, get_constraint
from commod.metrics._measures import MEASURES
from tables_of_cases import every_line


def random_table(seed):
    """Return labels, decisions, groups, strata and weights of 2 to 4 groups and 1 to 3 strata.

    Every group has both labels in every stratum.
    """
    random = np.random.default_rng(seed)
    n, n_groups, n_strata = random.integers((160, 2, 1), (300, 5, 4))
    y, decisions = (random.random((2, n)) < random.uniform(0.2, 0.8, (2, 1))).astype(int)
    groups = np.array(list("abcd"))[random.integers(n_groups, size=n)]
    strata = np.array(["x", "y", "z"])[random.integers(n_strata, size=n)]
    for i, row in enumerate(np.ndindex(2, n_groups, n_strata)):
        y[i], groups[i], strata[i] = row[0], "abcd"[row[1]], "xyz"[row[2]]
    return y, decisions, groups, strata, random.integers(1, 4, n).astype(float)


def by_fairlearn(table, name, conditional):
    """Return Fairlearn's values of a rate by comparison: one per stratum where conditional."""
    y, decisions, groups, strata, weight = table
    frame = fairlearn.MetricFrame(
        metrics={name: RATES[name]},
        y_true=y,
        y_pred=decisions,
        sensitive_features=groups,
        control_features={"unit": strata} if conditional else None,
        sample_params={name: {"sample_weight": weight}},
    )
    return {
        "ratio": frame.ratio()[name],
        "difference": frame.difference()[name],
        "floor": frame.group_min()[name],
        "ceiling": frame.group_max()[name],
    }


def test_values_equal_fairlearns():
    """Of every rate, for one random table; every second one is compared within strata."""
    n_compared = 0
    for seed, name in enumerate(RATES):
        y, decisions, groups, strata, weight = table = random_table(seed)
        people = {"sensitive_features": groups, "sample_weight": weight}
        control = {"control_features": strata} if seed % 2 else {}
        theirs = by_fairlearn(table, name, bool(seed % 2))
        for form in [form for form in FORMS.values() if form.measures == (MEASURES[name],)]:
            constraint = get_constraint(form.name)
            value = fairness_value(constraint, y, decisions, **people, **control)
            if np.isnan(value):  # Fairlearn calls an undefined precision 0
                continue
            expected = np.atleast_1d(theirs[form.comparison])
            worst = expected.min() if constraint.higher_is_fairer else expected.max()
            assert value == pytest.approx(worst, abs=1e-9), form.name
            n_compared += 1
    assert n_compared >= 4 * len(RATES) - 2


def test_named_metrics_equal_fairlearns():
    y, decisions, groups, _, weight = random_table(0)
    people = {"sensitive_features": groups, "sample_weight": weight}
    for made, theirs in (
        (DemographicParity(), fairlearn.demographic_parity_ratio),
        (DemographicParity(difference=...), fairlearn.demographic_parity_difference),
        (EqualizedOdds(largest=...), fairlearn.equalized_odds_difference),
        (TruePositiveRateParity(), fairlearn.equal_opportunity_difference),
        (TruePositiveRateParity(ratio=...), fairlearn.equal_opportunity_ratio),
    ):
        ours = made.value(y, decisions, **people)
        assert ours == pytest.approx(theirs(y, decisions, **people), abs=1e-12)


# ---------------------------------------------------------------------------------------------
# By hand


def by_hand(measure, y, decisions, weight):
    counts = [
        weight[(y == label) & (decisions == decision)].sum()
        for label, decision in ((1, 1), (0, 1), (1, 0), (0, 0))
    ]
    top, bottom = (float(np.dot(part, counts)) for part in (measure.numerator, measure.denominator))
    return top / bottom if bottom else np.nan


def compared(form, numbers):
    """Return the value of a form from the groups' numbers, shape (n_measures, n_groups)."""
    if form.comparison == "floor":
        return numbers[0].min()
    if form.comparison == "ceiling":
        return numbers[0].max()
    gaps = np.ptp(numbers, axis=1)
    if form.comparison == "ratio":
        return numbers[0].min() / numbers[0].max() if numbers[0].max() > 0 else np.nan
    return gaps.max() if form.comparison == "largest" else gaps.sum()


def test_every_form_is_what_its_measures_say():
    for seed, form in enumerate(FORMS.values()):
        y, decisions, groups, strata, weight = random_table(seed)
        people = {"sensitive_features": groups, "sample_weight": weight}

        def numbers(
            keep, measures=form.measures, y=y, decisions=decisions, groups=groups, w=weight
        ):
            parts = [keep & (groups == group) for group in np.unique(groups)]
            return np.array(
                [[by_hand(m, y[p], decisions[p], w[p]) for p in parts] for m in measures]
            )

        expected = compared(form, numbers(np.ones(len(y), dtype=bool)))
        value = fairness_value(form.name, y, decisions, **people)
        assert value == pytest.approx(expected, abs=1e-9, nan_ok=True), form.name

        per_stratum = {s: compared(form, numbers(strata == s)) for s in np.unique(strata)}
        found = fairness_by_stratum(form.name, y, decisions, control_features=strata, **people)
        assert found == pytest.approx(per_stratum, abs=1e-9, nan_ok=True), form.name


def test_the_average_weights_strata_by_their_people():
    for seed in range(5):
        _, decisions, groups, strata, weight = random_table(seed)
        units, sizes = np.unique(strata), []
        rates = np.empty((len(units), len(np.unique(groups))))
        for i, unit in enumerate(units):
            sizes.append(weight[strata == unit].sum())
            for k, group in enumerate(np.unique(groups)):
                here = (strata == unit) & (groups == group)
                rates[i, k] = np.average(decisions[here], weights=weight[here])
        means = np.average(rates, axis=0, weights=sizes)
        made = DemographicParity(difference=...).within("unit", min_rows=1, over="average")
        value = made.value(
            None,
            decisions,
            sensitive_features=groups,
            sample_weight=weight,
            control_features=strata,
        )
        assert value == pytest.approx(np.ptp(means), abs=1e-9)


# ---------------------------------------------------------------------------------------------
# Control features


PEOPLE = {
    "sensitive_features": ["a", "a", "b", "b"] * 2,
    "y_pred": [1, 0, 1, 1, 1, 1, 0, 1],
    "units": ["x"] * 4 + ["y"] * 4,
}


@every_line(
    "make",
    [
        list,
        np.array,
        lambda units: np.array(units)[:, None],
        pd.Series,
        lambda units: pd.Series(units, name="department"),
        lambda units: pd.DataFrame({"department": units, "other": range(8)}),
        lambda units: pl.DataFrame({"department": units}),
        lambda units: {"department": units, "other": list(range(8))},
        lambda units: [1 if unit == "x" else 2 for unit in units],
    ],
)
def test_a_condition_may_come_in_any_form(make):
    made = DemographicParity(ratio=0.5).within("department", min_rows=2)
    people = {"sensitive_features": PEOPLE["sensitive_features"]}
    control = make(PEOPLE["units"])
    assert made.value(None, PEOPLE["y_pred"], **people, control_features=control) == 0.5
    assert made.is_met(None, PEOPLE["y_pred"], **people, control_features=control)


def test_strata_and_groups_that_are_too_small_are_left_out():
    people = {"sensitive_features": list("aaabbb") + list("abc")}
    decisions, units = [1, 0, 0, 1, 1, 1, 0, 0, 1], ["x"] * 6 + ["y"] * 3
    control = {"control_features": units}
    assert p_rule(None, decisions, **people, **control) == 0.0  # stratum y: 0, 0 and 1
    made = DemographicParity(ratio=0.8).within("unit", min_rows=3)
    assert made.value(None, decisions, **people, **control) == pytest.approx(1 / 3)
    named = fairness_by_stratum(made.constraint, None, decisions, **people, **control)
    assert named == pytest.approx({"x": 1 / 3, "y": np.nan}, nan_ok=True)


def test_rows_that_a_rate_does_not_count_are_no_evidence_for_it():
    people = {
        "sensitive_features": list("aaaabbbb") * 2,
        "control_features": ["x"] * 8 + ["y"] * 8,
    }
    labels = [1, 1, 0, 0, 1, 1, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0]  # one positive of a in y
    decisions = [1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1]
    gap = TruePositiveRateParity().within("unit", min_rows=2)
    assert gap.value(labels, decisions, **people) == 0.5  # in stratum y it is 1
    gap = AccuracyParity().within("unit", min_rows=4)
    assert gap.value(labels, decisions, **people) == 0.25  # 3 of 4 and 2 of 4, in y


def test_several_constraints_have_several_values():
    both = DemographicParity(ratio=0.8).within("unit", min_rows=2) & AccuracyParity(0.5)
    people = {"sensitive_features": PEOPLE["sensitive_features"], "control_features": None}
    people["control_features"] = PEOPLE["units"]
    values = both.value(PEOPLE["y_pred"], PEOPLE["y_pred"], **people)
    assert values == (0.5, 0.0)
    assert not both.is_met(PEOPLE["y_pred"], PEOPLE["y_pred"], **people)


@every_line(
    "made, control, parameter, message",
    [
        (MinimumRate(0.3).within("unit"), None, "control_features", "control_features is missing"),
        (MinimumRate(0.3), ["x"] * 8, "control_features", "has no condition"),
        (
            MinimumRate(0.3).within("unit", min_rows=2),
            ["x"] * 7 + [None],
            "control_features",
            "1 missing value in 8 rows",
        ),
        (MinimumRate(0.3).within("unit"), ["x"] * 7, "control_features", "7 rows, but 8"),
        (
            MinimumRate(0.3).within("unit"),
            {"units": ["x"] * 8, "b": [1] * 8},
            "control_features",
            "Did you mean 'units'",
        ),
        (MinimumRate(0.3).within("unit"), [["x", "y"]] * 8, "control_features", "shape (8, 2)"),
        (
            MinimumRate(0.3).within("unit"),
            pd.Series(["x"] * 8, index=range(1, 9)),
            "control_features",
            "belong together",
        ),
        (
            DemographicParity(ratio=0.8).within("unit"),
            ["x"] * 8,
            "constraints",
            "leaves nothing to compare",
        ),
    ],
)
def test_a_wrong_condition_is_refused(made, control, parameter, message):
    decisions = PEOPLE["y_pred"]
    if isinstance(control, pd.Series):
        decisions = pd.Series(decisions)
    with pytest.raises(InputError) as error:
        made.value(
            None,
            decisions,
            sensitive_features=PEOPLE["sensitive_features"],
            control_features=control,
        )
    assert message in str(error.value)
    if parameter != "control_features" or "belong" not in message:
        assert error.value.parameter == parameter


def test_a_stratum_per_person_is_refused_at_once():
    n = 2**17
    random = np.random.default_rng(0)
    decisions, groups = random.integers(2, size=(2, n))
    people = {"sensitive_features": groups, "control_features": np.arange(n)}
    with pytest.raises(InputError, match=r"none of its 131,072 strata has 2 groups"):
        DemographicParity(ratio=0.8).within("id").value(None, decisions, **people)
    with pytest.raises(InputError, match=r"strata that are large enough, and at most 200"):
        MinimumRate(0.1).within("id", min_rows=1).value(None, decisions, **people)


def test_labels_are_asked_for_where_a_constraint_needs_them():
    for made in (EqualizedOdds(0.1), PredictiveParity(0.1), Minimum("accuracy", 0.5)):
        with pytest.raises(InputError, match="y_true is None"):
            made.value(None, [1, 0], sensitive_features=["a", "b"])
    assert MinimumRate(0.3).value(None, [1, 0], sensitive_features=["a", "b"]) == 0.0


def test_an_undefined_value_meets_nothing():
    people = {"sensitive_features": ["a", "a", "b", "b"]}
    for made in (PredictiveParity(1), ErrorRatio(difference=9), FalsePositiveRateParity(1)):
        assert np.isnan(made.value([1, 1, 1, 1], [0, 0, 1, 1], **people))
        assert not made.is_met([1, 1, 1, 1], [0, 0, 1, 1], **people)
    assert Maximum("selection rate", 1).is_met(None, [0, 0, 1, 1], **people)
    assert MinimumTruePositiveRate(0).is_met([1, 1, 1, 1], [0, 0, 1, 1], **people)
    with pytest.raises(InputError, match="has no bound"):
        Parity("accuracy").is_met([1, 1, 1, 1], [0, 0, 1, 1], **people)


def test_a_condition_reads_its_own_column_and_no_other():
    within = DemographicParity(ratio=0.8).within("unit", min_rows=1)
    people = {"sensitive_features": list("abab"), "control_features": None}
    columns = {"unit": [1, 1, 2, 2], "income": [1.0, None, 2.0, None]}
    assert within.value(None, [1, 1, 1, 0], **people | {"control_features": columns}) == 0
    for other in ({"band": [1, 1, 1, 1]}, pd.Series([1, 1, 1, 1], name="band")):
        with pytest.raises(InputError, match="no column 'unit'; it has band"):
            within.value(None, [1, 1, 1, 0], **people | {"control_features": other})
    assert within.value(None, [1, 1, 1, 0], **people | {"control_features": [1, 1, 1, 1]}) == 0.5


def test_sizes_of_strata_are_bounds_that_are_included():
    """A group with exactly `min_rows` rows is compared, and 200 strata are not too many."""
    constraint = DemographicParity(ratio=0.8).within("unit").constraint  # of 50 rows or more
    for n in (50, 49):
        people = {
            "sensitive_features": ["a"] * 50 + ["b"] * n,
            "control_features": ["x"] * (50 + n),
        }
        decisions = [1, 0] * 25 + [1] * n
        if n == 50:
            found = fairness_by_stratum(constraint, None, decisions, **people)
            assert found == {"x": 0.5}
        else:
            with pytest.raises(InputError, match="group of a stratum has 49 at most"):
                fairness_by_stratum(constraint, None, decisions, **people)
    for n_strata in (200, 201):
        people = {
            "sensitive_features": ["a", "b"] * n_strata,
            "control_features": np.repeat(np.arange(n_strata), 2),
        }
        made = DemographicParity(ratio=0.8).within("unit", min_rows=1)
        if n_strata == 200:
            assert made.value(None, [1, 1] * n_strata, **people) == 1
        else:
            with pytest.raises(InputError, match="at most 200"):
                made.value(None, [1, 1] * n_strata, **people)
