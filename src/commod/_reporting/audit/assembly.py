"""Put an audit together: evidence, checks and sentences become one record."""

from __future__ import annotations

from commod._record import SCHEMA, Audit
from commod._reporting.audit.checks import checks_of
from commod._reporting.audit.evidence import Evidence
from commod._reporting.audit.ledger import Ledger
from commod._reporting.audit.not_known import not_known_of
from commod._reporting.audit.provenance import UpdateFacts, provenance_of
from commod._reporting.audit.sentences import answer_of, notice_of
from commod._reporting.explain import Explanation


def make_audit(
    evidence: Evidence,
    *,
    digest: str,
    title: str | None,
    created: str | None,
    explanation: Explanation | UpdateFacts | None = None,
    ledger: Ledger | None = None,
) -> Audit:
    """Return the audit of the evidence; `digest` is the digest of the audited data."""
    method = None if explanation is None else explanation.method
    return Audit(
        schema=SCHEMA,
        title=title or (f"What {method} changes" if method else "What the update changes"),
        rows=evidence.rows,
        n=evidence.n,
        level=evidence.level,
        request=evidence.request,
        answer=answer_of(evidence),
        notice=notice_of(evidence),
        fairness=evidence.fairness_metrics,
        changes=evidence.changes,
        limit=evidence.limit,
        groups=evidence.groups,
        small_groups=evidence.small_groups,
        quality=evidence.quality,
        agreement=evidence.scores.agreement,
        calibration=evidence.scores.calibration,
        proxies=evidence.proxies,
        subgroups=evidence.subgroups,
        segments=evidence.segments,
        card=evidence.card,
        stability=evidence.stability,
        checks=checks_of(evidence),
        not_known=not_known_of(evidence),
        provenance=provenance_of(evidence, digest, explanation, ledger, created),
        outscoring=evidence.outscoring,
        expected=evidence.expected,
        roc=evidence.roc,
        unknown_groups=evidence.unknown_groups,
        edits=evidence.edits,
        ledger=ledger,
    )
