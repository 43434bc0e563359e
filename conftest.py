"""Check pages: every output digit by digit, but for pages that train a network.

ControlledDebiaser finds the same update on every processor. Training with JAX does not: processors
round differently. So on pages that train `COMMOD`, numbers are compared with a tolerance, and up to
half of the outputs may differ.
"""

import doctest
import re

from _pytest.doctest import DoctestItem

TRAINING = re.compile(r"\bCOMMOD(\(|\.as_in_the_paper)|\bcommod\.rivals\b")
SHARE = 0.25  # by which counts and percentages may differ
GAP = 0.05  # by which numbers below 1 may differ: rates, ratios, accuracies
LAST_DIGITS = 3  # units of the last digit shown, by which all numbers may differ
NUMBER = re.compile(r"[-+−]?\d[\d,]*(?:\.\d+)?")
WILDCARD = "..."


def pytest_collection_modifyitems(items):
    """Let pages that train a network be checked with a tolerance."""
    for item in items:
        if isinstance(item, DoctestItem) and item.path.suffix == ".md":
            examples = item.dtest.examples
            if any(TRAINING.search(example.source) for example in examples):
                n_outputs = sum(bool(example.want) for example in examples)
                item.runner._checker = PageChecker(max(1, n_outputs // 2))


class PageChecker(doctest.OutputChecker):
    """Accept outputs that are near the expected ones, and at most `n_allowed` others."""

    def __init__(self, n_allowed):
        self.n_allowed = n_allowed
        self.n_different = 0

    def check_output(self, want, got, optionflags):
        """Return whether an output is accepted."""
        if super().check_output(want, got, optionflags) or is_near(want, got):
            return True
        if not want or not got:  # an example that should print, or should not
            return False
        self.n_different += 1
        return self.n_different <= self.n_allowed


def is_near(want, got):
    """Return whether two outputs have the same words, and numbers that are near each other."""
    words = [as_pattern(part) for part in NUMBER.split(want.strip())]
    match = re.fullmatch(f"({NUMBER.pattern})".join(words), got.strip())
    return match is not None and all(map(are_near, NUMBER.findall(want), match.groups()))


def as_pattern(words):
    """Return a pattern of words with any white space between them; "..." stands for anything."""
    parts = [re.sub(r"(\\\s|\s)+", r"\\s+", re.escape(part)) for part in words.split(WILDCARD)]
    return r"[\s\S]*?".join(parts)


def are_near(first, second):
    """Return whether two numbers, given as texts, differ by little."""
    a, b = (float(text.replace(",", "").replace("−", "-")) for text in (first, second))
    decimals = max(len(text.partition(".")[2]) for text in (first, second))
    size = max(abs(a), abs(b))
    most = GAP if size < 1 else SHARE * size
    return abs(a - b) <= max(most, LAST_DIGITS * 10.0**-decimals) + 1e-12
