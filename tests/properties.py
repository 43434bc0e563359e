"""Which examples property tests try: the same ones in every run, or new ones in a search.

`make test` and CI try the same examples on every machine, so no run fails by chance.
`make test-search` draws new ones, ten times as many, and prints how to reproduce a failure.
"""

from contextlib import suppress

from hypothesis import settings

TIMES_MORE = 10


def register_profiles():
    """Register both profiles and load the one of every day.

    A busy machine may take any time for an example, so no test has a deadline.
    """
    settings.register_profile(
        "commod", deadline=None, max_examples=25, derandomize=True, database=None
    )
    settings.register_profile(
        "search", deadline=None, max_examples=25, derandomize=False, print_blob=True
    )
    settings.load_profile("commod")


def ignore_constants_of_modules():
    """Keep Hypothesis from trying numbers and texts that it finds in the modules of the package.

    Which modules are loaded depends on the tests that ran before, and so would the examples.
    Older versions of Hypothesis do not look there.
    """
    with suppress(ImportError):
        from hypothesis.internal.conjecture import providers

        none = getattr(providers, "_local_constants", None)
        providers._get_local_constants = lambda: none


def try_more_examples(items):
    """Multiply the number of examples of each property, also where the test states its own."""
    tests = {getattr(item.obj, "__func__", item.obj) for item in items if hasattr(item, "obj")}
    for test in tests:  # all cases of a parametrised test share one function
        if usual := getattr(test, "_hypothesis_internal_use_settings", None):
            more = settings(usual, max_examples=TIMES_MORE * usual.max_examples)
            test._hypothesis_internal_use_settings = more
