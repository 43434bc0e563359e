"""Constraints as values: they print, compare, copy, combine, and survive text and JSON."""

import copy
import json
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from commod import ControlledDebiaser, constraints
from commod.constraints import (
    AccuracyParity,
    AllOf,
    DemographicParity,
    EqualizedOdds,
    ErrorRatio,
    FairnessConstraint,
    FalsePositiveRateParity,
    Maximum,
    Minimum,
    MinimumRate,
    MinimumTruePositiveRate,
    Parity,
    PredictiveParity,
    TruePositiveRateParity,
    constraint_from_json,
    parse_constraint,
)
from commod.exceptions import InputError
from commod.metrics._constraint import _TOKEN, CONSTRAINTS, FORMS, Constraint, get_constraint
from commod.metrics._named_constraints import as_object, read_constraints
from tables_of_cases import every_line

few = settings(max_examples=30)
columns = st.text(min_size=1, max_size=12) | st.sampled_from(
    ["and", "within", "it's", 'a "b"', "pay band", "average", "min_rows=3", "a\\", "80%", "≥"]
)


@st.composite
def single(draw):
    constraint = get_constraint(draw(st.sampled_from(sorted(FORMS))))
    largest = min(constraint.largest, 1e6)
    bound = draw(st.floats(0, largest)) if draw(st.booleans()) else None
    made = as_object(constraint, bound)
    if draw(st.booleans()):
        over = draw(st.sampled_from(["every", "average"]))
        made = made.within(draw(columns), min_rows=draw(st.integers(1, 999)), over=over)
    return made


@st.composite
def any_constraint(draw):
    parts = draw(st.lists(single(), min_size=1, max_size=3, unique_by=lambda c: c.constraint))
    try:
        return parts[0] if len(parts) == 1 else AllOf(parts)
    except InputError as error:
        assert "contradict" in str(error)
        return parts[0]


# ---------------------------------------------------------------------------------------------
# The same constraint, written in another way


@few
@given(made=any_constraint())
def test_text_json_repr_and_copies_mean_the_same(made):
    assert parse_constraint(made.text) == made
    assert constraint_from_json(json.loads(json.dumps(made.to_json()))) == made
    assert eval(repr(made), vars(constraints)) == made
    for same in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert same == made and hash(same) == hash(made) and type(same) is type(made)
    update = clone(ControlledDebiaser(None, constraints=made))
    assert update.get_params()["constraints"] == made


@few
@given(made=single())
def test_a_name_leads_back_to_the_same_constraint(made):
    found = get_constraint(made.constraint.name)
    assert found == made.constraint and found.metric == made.constraint.metric
    assert as_object(found, made.bound) == made


def test_parity_of_the_selection_rate_is_demographic_parity():
    assert get_constraint("Selection rate parity") == get_constraint("demographic_parity")


def test_every_form_has_a_name_of_its_own_and_the_old_names_stay():
    metrics = {form.metric for form in FORMS.values()}
    assert len(metrics) == len(FORMS)
    assert {name: get_constraint(name) for name in CONSTRAINTS} == CONSTRAINTS
    for name, constraint in CONSTRAINTS.items():
        assert as_object(constraint).constraint is constraint
        assert as_object(constraint, 0.5).constraint == get_constraint(name)
        assert FORMS[name].metric == constraint.metric


@every_line(
    "text, expected",
    [
        ("demographic parity >= 0.8 within department", "DemographicParity(ratio=0.8).within"),
        ("Demographic_Parity ≥ 80 %", "DemographicParity(ratio=0.8)"),
        ("demographic-parity => 80%", "DemographicParity(ratio=0.8)"),
        ("equalized odds <= 0.1", "EqualizedOdds(sum=0.1)"),
        ("equalised odds largest at most .1", "EqualizedOdds(largest=0.1)"),
        (
            "demographic parity difference <= 0.05 within 'pay band' average",
            "DemographicParity(difference=0.05).within('pay band', over='average')",
        ),
        (
            "TPR parity within unit min_rows=30 ≤ 0.1",
            "TruePositiveRateParity(difference=0.1).within('unit', min_rows=30)",
        ),
        ("FPR parity ratio >= 0.8", "FalsePositiveRateParity(ratio=0.8)"),
        ("minimum rate >= 0.3", "MinimumRate(0.3)"),
        ("minimum TPR >= 0.6", "MinimumTruePositiveRate(0.6)"),
        ("maximum false_positive_rate <= 0.2", "Maximum('false positive rate', 0.2)"),
        ("F1 score parity <= 0.05", "Parity('F1 score', difference=0.05)"),
        ("error ratio difference <= 2.5", "ErrorRatio(difference=2.5)"),
        ("precision parity <= 5%", "PredictiveParity(difference=0.05)"),
        ("accuracy difference <= 3%", "AccuracyParity(difference=0.03)"),
        (
            "demographic parity >= 0.8 and minimum rate >= 0.3",
            "DemographicParity(ratio=0.8) & MinimumRate(0.3)",
        ),
        ("P-rule >= 0.8; equal opportunity <= 0.1", "DemographicParity(ratio=0.8) & TruePos"),
    ],
)
def test_texts_are_read_with_patience(text, expected):
    assert repr(parse_constraint(text)).startswith(expected)


@every_line(
    "text, message",
    [
        ("demographic parity <= 0.1", "Write 'demographic parity >= 0.1' or 'demographic parity d"),
        ("equalized odds >= 0.1", "is a ceiling. Write 'equalized odds <= 0.1'"),
        ("minimum rate <= 0.1", "or 'maximum rate <= 0.1'"),
        ("demografic parity >= 0.8", "Did you mean 'demographic_parity'"),
        ("demographic parity >= 80", "Write 0.8 for 80 %"),
        ("demographic parity > 0.8", "Write >=, which includes the bound"),
        ("demographic parity 0.8", "a number without a sign"),
        ("demographic parity >= high", "needs a number after >="),
        ("demographic parity >= 0.8 within pay band", "in quotes, as 'pay band'"),
        ("demographic parity >= 0.8 within average", "in quotes, as within 'average'"),
        ("demographic parity >= 0.8 within 'unit", "a quote ' without its other end"),
        ("demographic parity >= 0.8 within unit min_rows=0", "a whole number from 1"),
        ("demographic parity >= 0.8 >= 0.9", "states two bounds, 0.8 and 0.9"),
        ("minimum rate at least .3 within a >= 30%", "states two bounds, 0.3 and 0.3"),
        ("F1 parity <= .1 within a within 'b c'", "within 'a' and within 'b c'"),
        ("F1 parity <= .1 within a every average", "every and average. Keep one"),
        ("F1 parity within a average min-rows=3 average", "average and average. Keep one"),
        ("minimum TPR within a min_rows=10 min_rows=90", "min_rows, 10 and 90. Keep one"),
        ("demographic parity >= 1e400", "from 0 to 1"),
        ("error ratio difference <= 1e999%", "a number from 0"),
        ("demographic parity >= 1e999999999", "needs a number after >="),
        ("minimum rate >= " + "7" * 1900, "a number from 0 to 1"),
        ("F1 parity within a min_rows=" + "9" * 16, "a whole number from 1"),
        ("precision parity " + "1" * 1900 + "x", "is not known"),
        ("'\\" * 8_000, "a text of 16,000 characters, and a constraint has at most 2,000"),
        ("minimum rate >= 0." + "1" * 1983, "a text of 2,001 characters"),
        ("demographic parity >= 0.8 and", "does not name a constraint"),
        ("demographic parity >= 0.8 and demographic parity >= 0.9", "demographic_parity twice"),
    ],
)
def test_a_wrong_text_is_refused_with_the_way_out(text, message):
    with pytest.raises(InputError) as error:
        read_constraints(text)
    assert message in str(error.value) and len(str(error.value)) < 600
    assert error.value.parameter == "constraints"


def test_a_text_of_the_largest_length_is_read():
    text = "minimum rate >= 0." + "1" * 1982
    assert len(text) == 2_000 and read_constraints(text).bounds == (1 / 9,)


PIECES = [
    *("demographic parity", "minimum rate", "equalized_odds", "within", "a", "every", "average"),
    *(">=", "≥", "=", "<=", "at least", "0.8", "80%", "1e400", "1e99999", "-1e-99999", "nan", "٣"),
    *("'", '"', "\\", "\\'", "'\\N{", "'\\x", "'pay band'", "\0", "\ud800", "\n", "and", "&", ","),
    *("min_rows=10", "min_rows=", "9" * 400, "1" * 90 + "x", "'" * 40, "\\'" * 100, "_", "%", "("),
]


@settings(max_examples=120, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=40), st.sampled_from(["", " "]))
@pytest.mark.filterwarnings("error")
def test_any_text_is_a_constraint_that_is_written_as_text_again_or_is_refused(pieces, gap):
    start = PIECES[len(pieces) % 3] + " >= 0.5 "
    for text in (gap.join(pieces), start + gap.join(pieces)):
        try:
            read = read_constraints(text)
        except InputError as error:
            assert len(str(error)) < 1_000
        else:
            assert read_constraints(read.text) == read


@every_line("piece", ["\\'", '"\\', "'\\\\\\"])
def test_a_quote_without_its_other_end_is_looked_for_once(piece):
    """So the work grows with the length of a text, not with its square."""
    assert len(list(_TOKEN.finditer(piece * 400))) <= 3


# ---------------------------------------------------------------------------------------------
# Sentences


@every_line(
    "made, sentence",
    [
        (
            DemographicParity(ratio=0.8).within("department"),
            "The lowest group's selection rate is at least 0.8 times the highest's, in every "
            "stratum of 'department' with at least 50 rows per group.",
        ),
        (
            DemographicParity(difference=0.05).within("unit", min_rows=30, over="average"),
            "The groups' selection rates differ by at most 0.05, on average over the strata of "
            "'unit' with at least 30 rows per group.",
        ),
        (
            DemographicParity(),
            "The lowest group's selection rate is at least the target times the highest's.",
        ),
        (ErrorRatio(difference=2), "The groups' error ratios differ by at most 2."),
        (Minimum("F1 score", 0.5), "Every group's F1 score is at least 0.5."),
        (Maximum("false positive rate", 0.2), "Every group's false positive rate is at most 0.2."),
    ],
)
def test_a_constraint_prints_as_one_sentence(made, sentence):
    assert str(made) == sentence


@few
@given(made=single())
def test_every_sentence_and_definition_is_whole(made):
    assert str(made).endswith(".") and str(made)[0].isupper()
    constraint = made.constraint
    for text in (constraint.definition("approval", "denial"), constraint.metric_of("approval")):
        assert text and "None" not in text.replace(repr(getattr(made.condition, "column", "")), "")
    if made.condition is not None:
        assert repr(made.condition.column) in constraint.metric_of("approval")


# ---------------------------------------------------------------------------------------------
# Values


def test_equal_constraints_are_equal_whatever_their_class():
    assert Parity("True_Positive_Rate", difference=0.1) == TruePositiveRateParity(0.1)
    assert Minimum("selection rate", 0.3) == MinimumRate(0.3)
    assert len({MinimumRate(0.3), Minimum("selection rate", 0.3), MinimumRate(0.4)}) == 2
    assert DemographicParity() != DemographicParity(ratio=0.8)
    assert DemographicParity(difference=...) != DemographicParity()
    assert MinimumRate(0.3) != "minimum rate >= 0.3"


def test_a_constraint_cannot_be_changed():
    made = MinimumRate(0.3)
    for one in (made, made & DemographicParity(ratio=0.8)):
        with pytest.raises(AttributeError, match="cannot be changed"):
            one.bound = 0.4
        with pytest.raises(AttributeError, match="cannot be changed"):
            del one.bound


def test_constraints_join_flat_and_keep_their_order():
    parity, floor, odds = DemographicParity(ratio=0.8), MinimumRate(0.3), EqualizedOdds(0.1)
    joined = parity & (floor & odds)
    assert joined.parts == (parity, floor, odds) == ((parity & floor) & odds).parts
    assert joined.needs_labels and not (parity & floor).needs_labels
    assert [part.condition.column for part in joined.within("unit")] == ["unit"] * 3
    with pytest.raises(TypeError):
        parity & 0.8


@every_line(
    "make, parameter, message",
    [
        (lambda: DemographicParity(ratio=80), "ratio", "Write 0.8 for 80 %"),
        (lambda: DemographicParity(ratio=True), "ratio", "must be a number"),
        (lambda: DemographicParity(ratio=0.8, difference=0.1), "ratio", "join both with &"),
        (lambda: EqualizedOdds(0.1, largest=0.1), "largest", "sum=0.1 and largest=0.1"),
        (lambda: EqualizedOdds(2.1), "sum", "from 0 to 2"),
        (lambda: FalsePositiveRateParity(-0.1), "difference", "from 0 to 1"),
        (lambda: AccuracyParity("0.1"), "difference", "must be a number"),
        (lambda: PredictiveParity(float("nan")), "difference", "out of range"),
        (lambda: ErrorRatio(difference=float("inf")), "difference", "a number from 0."),
        (lambda: MinimumTruePositiveRate(10**400), "bound", "out of range"),
        (lambda: Parity("f1 scor"), "measure", "Did you mean 'F1 score'"),
        (lambda: MinimumRate(0.3).within(""), "column", "the name of a column"),
        (lambda: MinimumRate(0.3).within("a" * 1_000), "column", "Give the column a shorter"),
        (lambda: MinimumRate(0.3).within(["a", "b"]), "column", "the name of a column"),
        (lambda: MinimumRate(0.3).within("a", min_rows=0), "min_rows", "must be >= 1"),
        (lambda: MinimumRate(0.3).within("a", over="all"), "over", "every, average"),
        (lambda: MinimumRate(0.3).within("a").within("b"), "column", "one column of both"),
        (lambda: AllOf([]), "parts", "is empty"),
        (lambda: AllOf(["demographic_parity"]), "parts", "is no constraint"),
        (lambda: MinimumRate(0.3) & MinimumRate(0.4), "parts", "minimum_rate twice"),
        (
            lambda: MinimumRate(0.6) & Maximum("selection rate", 0.5),
            "parts",
            "contradict each other",
        ),
        (
            lambda: Minimum("false negative rate", 0.5) & MinimumTruePositiveRate(0.6),
            "parts",
            "contradict each other",
        ),
    ],
)
def test_a_wrong_constraint_is_refused(make, parameter, message):
    with pytest.raises(InputError) as error:
        make()
    assert message in str(error.value)
    assert error.value.parameter == parameter


def test_floors_and_ceilings_that_leave_room_are_kept():
    assert len(MinimumRate(0.5) & Maximum("selection rate", 0.5)) == 2
    assert len(MinimumRate(0.6) & Maximum("selection rate", 0.5).within("unit")) == 2
    assert len(Minimum("false negative rate", 0.3) & MinimumTruePositiveRate(0.7)) == 2


# ---------------------------------------------------------------------------------------------
# What users pass as `constraints` and `target`


def test_constraints_are_read_from_objects_texts_and_lists():
    expected = (DemographicParity(ratio=0.8), MinimumRate(0.3).within("unit"))
    for written in (
        expected[0] & expected[1],
        list(expected),
        "demographic parity >= 0.8 and minimum rate >= 0.3 within unit",
        ["demographic parity >= 0.8", expected[1]],
    ):
        read = read_constraints(written)
        assert read.parts == expected
        assert read.bounds == (0.8, 0.3) and read.columns == ("unit",)
        assert not read.needs_labels


def test_a_constraint_from_outside_is_kept_as_it_is():
    toy = Constraint("toy", "toy gap", get_constraint("demographic_parity").rate_rows, "difference")
    (part,) = read_constraints(toy, target=0.1).parts
    assert type(part) is FairnessConstraint and part.constraint is toy


@every_line(
    "written, target, parameter, message",
    [
        (DemographicParity(ratio=0.8), 0.9, "target", "Leave out target, or the bound"),
        ("demographic parity >= 0.8", 0.9, "target", "Leave out target, or the bound"),
        (["demographic_parity", "minimum_rate"], 0.9, "target", "the bound of one constraint"),
        ([], None, "constraints", "is empty"),
        (None, 0.8, "constraints", "is not known"),
        ("demographic parity >= 8", None, "constraints", "out of range"),
    ],
)
def test_bounds_beside_target_are_refused(written, target, parameter, message):
    with pytest.raises(InputError) as error:
        read_constraints(written, target)
    assert message in str(error.value) and error.value.parameter == parameter


@every_line(
    "data",
    [
        {"bound": 0.8},
        {"name": "demographic_parity", "target": 0.8},
        {"name": "demographic_parity", "within": "unit"},
        {"name": "demographic_parity", "within": {"min_rows": 3}},
        {"name": "demographic_parity", "bound": "0.8"},
        {"name": "parity"},
        ["demographic_parity"],
        None,
    ],
)
def test_wrong_json_is_refused(data):
    with pytest.raises(InputError):
        constraint_from_json(data)


def test_a_constraint_is_neither_true_nor_false():
    one, other = DemographicParity(ratio=0.8), MinimumRate(0.3)
    for both in (lambda: one and other, lambda: (one & other) or one, lambda: not one):
        with pytest.raises(InputError, match="Join two of them with A & B"):
            both()


def test_a_decimal_comma_is_named():
    with pytest.raises(InputError, match="a decimal has a point, not a comma"):
        parse_constraint("demographic parity >= 0,8")


def test_the_sum_of_two_gaps_may_be_named():
    assert parse_constraint("equalized odds sum <= 0.1") == EqualizedOdds(sum=0.1)
