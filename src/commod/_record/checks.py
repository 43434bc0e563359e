"""Records of an audit's checks: state, severity, and what they mean for a signature."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from commod._text import list_names, n_of, verb

Severity = Literal["blocks signing", "needs a reason", "for information"]
State = Literal["failed", "not enough evidence", "passed"]

SEVERITIES: tuple[Severity, ...] = ("blocks signing", "needs a reason", "for information")
STATES: tuple[State, ...] = ("failed", "not enough evidence", "passed")

# The checks of `commod.audit/1`, whose files state no severity. Later audits state it themselves.
_BLOCKS = ("CM101", "CM102", "CM103", "CM104", "CM105", "CM106", "CM107", "CM403")
_INFORMS = ("CM204", "CM301", "CM401", "CM402")


@dataclass(frozen=True)
class Check:
    """One question with a stable code, its answer, and the numbers behind the answer.

    `severity` says what a failed check means for a signature: it blocks signing, it needs a reason
    in writing, or it is for information.
    """

    code: str
    title: str
    state: State
    sentence: str
    severity: Severity

    @property
    def blocks_signing(self) -> bool:
        """Return whether the check failed and must not fail."""
        return self.state == "failed" and self.severity == "blocks signing"


def by_importance(checks: Iterable[Check]) -> list[tuple[Severity, list[Check]]]:
    """Return the checks of each severity, failed ones first; severities without one are left out.

    Examples
    --------
    >>> late = Check("CM204", "Close", "failed", "Far.", "for information")
    >>> first = Check("CM101", "Reached", "passed", "Yes.", "blocks signing")
    >>> [severity for severity, _ in by_importance([late, first])]
    ['blocks signing', 'for information']
    """
    ranked = sorted(checks, key=lambda check: STATES.index(check.state))
    groups = [(one, [check for check in ranked if check.severity == one]) for one in SEVERITIES]
    return [(severity, group) for severity, group in groups if group]


def state_of(checks: Iterable[Check]) -> State:
    """Return the worst state of the checks that block signing if they fail: the one verdict.

    Examples
    --------
    >>> state_of([Check("CM204", "Close", "failed", "Far.", "for information")])
    'passed'
    """
    states = {check.state for check in checks if check.severity == "blocks signing"}
    return next((state for state in STATES if state in states), "passed")


def verdict_of(checks: Sequence[Check]) -> tuple[str, ...]:
    """Return what the checks mean for a signature in sentences, most important first.

    Examples
    --------
    >>> check = Check("CM203", "Gains", "failed", "2 gains, 5 losses.", "needs a reason")
    >>> verdict_of([check])
    ('Nothing blocks signing.', '1 check needs a reason: CM203.')
    """
    if not checks:
        return ("No check was made.",)
    failed = {
        severity: [c.code for c in group if c.state == "failed"]
        for severity, group in by_importance(checks)
    }
    blocking, reasons, informing = (failed.get(severity, []) for severity in SEVERITIES)
    unclear = [c for c in checks if c.state == "not enough evidence"]
    sentences = ["Nothing blocks signing."]
    if blocking:
        n = len(blocking)
        sentences = [f"{n_of(n, 'check')} {verb(n, 'block')} signing: {_codes(blocking)}."]
    elif state_of(checks) == "not enough evidence":
        first = [c.code for c in unclear if c.severity == "blocks signing"]
        unclear = [c for c in unclear if c.severity != "blocks signing"]
        sentences = [f"Nothing blocks signing, but the evidence is not enough: {_codes(first)}."]
    if reasons:
        n = len(reasons)
        sentences.append(f"{n_of(n, 'check')} {verb(n, 'need')} a reason: {_codes(reasons)}.")
    if informing:
        sentences.append(f"For information: {_codes(informing)}.")
    if unclear:
        sentences.append(f"Not enough evidence: {_codes([c.code for c in unclear])}.")
    return tuple(sentences)


def _codes(codes: Sequence[str]) -> str:
    """Return at most ten codes; a hostile file may hold many long ones."""
    return list_names(codes, 10, width=20)


def with_severities(checks: Any) -> Any:
    """Return the checks of a `commod.audit/1` file with the severity that their codes have now.

    A code that is not known needs a reason. What is not a list of checks is returned as it is.
    """
    if not isinstance(checks, list):
        return checks
    return [
        {**check, "severity": _severity(check.get("code"))} if isinstance(check, dict) else check
        for check in checks
    ]


def _severity(code: Any) -> Severity:
    if code in _BLOCKS:
        return "blocks signing"
    return "for information" if code in _INFORMS else "needs a reason"
