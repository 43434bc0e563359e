"""How the outputs of pages that train a network are compared: processors round differently."""

import doctest
import importlib.util
from pathlib import Path

spec = importlib.util.spec_from_file_location(
    "page_checks", Path(__file__).parents[1] / "conftest.py"
)
pages = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pages)


def test_words_are_the_same_and_numbers_near():
    for want, got, is_near in [
        ("94 gain, P-rule 0.81\n", "100 gain, P-rule 0.80\n", True),
        ("94 gain, P-rule 0.81\n", "94 gain, P-rule 0.70\n", False),
        ("94 gain\n", "150 gain\n", False),
        ("1,851 people\n", "1,902  people\n", True),
        ("reached: True, 9%\n", "reached: False, 9%\n", False),
        ("9... of 20 people\n", "100 of 20 people\n", False),
        ("... of 20 people\n", "many of 19 people\n", True),
        ("−0.5 points\n", "−0.4 points\n", True),
    ]:
        assert pages.is_near(want, got) is is_near


def test_half_of_the_outputs_of_a_page_may_differ_but_no_example_may_stay_silent():
    checker = pages.PageChecker(n_allowed=1)
    flags = doctest.NORMALIZE_WHITESPACE
    assert checker.check_output("2 lines\n", "2   lines\n", flags)
    assert checker.check_output("passed\n", "failed\n", flags)
    assert not checker.check_output("one\n", "another\n", flags)
    assert not pages.PageChecker(n_allowed=1).check_output("one\n", "", flags)


def test_only_pages_that_train_a_network_have_a_tolerance():
    for source, has_tolerance in [
        (">>> update = ControlledDebiaser(model, target=0.8)\n", False),
        (">>> update = COMMOD(model, lambda_fair=1.0)\n", True),
        (">>> update = COMMOD.as_in_the_paper(model)\n", True),
        (">>> from commod.rivals import LPP\n", True),
    ]:
        (example,) = doctest.DocTestParser().get_examples(source)
        assert bool(pages.TRAINING.search(example.source)) is has_tolerance
