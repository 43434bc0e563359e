"""Say in plain words how the sum of a scorecard's points decides."""

from __future__ import annotations

from typing import Protocol

from commod._text.numbers import number

EVIDENCE = (
    "The points are evidence about the groups that the constraint compares. Every method that must "
    "not read the group when it decides relies on such evidence."
)
POSITIVE_POINTS = (
    "positive points push towards the favourable decision, negative points away from it"
)


class Rule(Protocol):
    """The figures of an `EvidenceRule`."""

    @property
    def cut(self) -> float: ...

    @property
    def nearness(self) -> float: ...

    @property
    def may_gain(self) -> bool: ...

    @property
    def may_lose(self) -> bool: ...


# PLACEHOLDER for `EvidenceRule.sentences()`: replace the calls and delete this function.
def rule_sentences(rule: Rule) -> list[str]:
    """Return when a decision changes: a sentence for each direction that is allowed."""
    cut = number(rule.cut * (1 - rule.nearness), 3)
    far = " ({}, the farther the score is from the threshold)" if rule.nearness else ""
    sides = (
        (rule.may_gain, "unfavourable", "favourable", f"above {cut}{far.format('more')}"),
        (rule.may_lose, "favourable", "unfavourable", f"below −{cut}{far.format('less')}"),
    )
    sentences = [
        f"If the base decision is {before} and the sum is {beyond}, the decision becomes {after}."
        for is_allowed, before, after, beyond in sides
        if is_allowed
    ]
    return sentences or ["No decision changes."]
