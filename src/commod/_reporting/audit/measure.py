"""Counts → evidence → the record: the part of an audit that never sees a row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._record import SCHEMA, Audit, Provenance, Request, SmallGroup
from commod._reporting.audit.checks import checks_of
from commod._reporting.audit.coding import Coding
from commod._reporting.audit.counts import Counts
from commod._reporting.audit.evidence import Evidence
from commod._reporting.audit.ledger import Ledger
from commod._reporting.audit.rates import changes_of, fairness_of_all, groups_of, limit_of
from commod._reporting.audit.scores import Areas, quality_of
from commod._reporting.audit.words import answer_of, not_known_of, notice_of
from commod._reporting.explain import Explanation

__all__ = ["measure", "names_of_large", "record_of"]

BoolArray = NDArray[np.bool_]
MeanScores = tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]


def names_of_large(coding: Coding, large: BoolArray) -> tuple[str, ...]:
    """Return the names of the groups that are large enough to be compared."""
    named = zip(coding.group_names, large.tolist(), strict=True)
    return tuple(name for name, is_large in named if is_large)


def measure(
    coding: Coding,
    counts: Counts,
    asked: Request,
    large: BoolArray,
    *,
    rows: str,
    level: float,
    min_group_size: int,
    mean_scores: MeanScores,
    areas: Areas,
    **given: Any,
) -> Evidence:
    """Add to what is given all that follows from counts of people."""
    gains_raise = coding.favorable_is_positive
    compared = counts.of_groups(large)
    # people of groups too small to be compared change too, but no limit knows of them
    n_compared = sum(int(moves.sum()) for moves in compared.moves())
    sizes = zip(coding.group_names, counts.sizes.tolist(), large.tolist(), strict=True)
    return Evidence(
        rows=rows,
        n=counts.n,
        level=level,
        request=asked,
        counts=counts,
        compared=compared,
        names=names_of_large(coding, large),
        all_fairness=fairness_of_all(compared, asked, level),
        changes=changes_of(counts, gains_raise, level),
        limit=limit_of(compared, asked, n_compared, gains_raise),
        groups=groups_of(counts, coding, mean_scores, large, level),
        small=tuple(
            SmallGroup(name, n, min_group_size) for name, n, is_large in sizes if not is_large
        ),
        quality=quality_of(counts, areas, level),
        **given,
    )


def record_of(
    found: Evidence,
    explanation: Explanation | None,
    title: str | None,
    ledger: Ledger | None,
    provenance: Provenance,
) -> Audit:
    """Return the audit: the evidence, its checks and its sentences."""
    method = None if explanation is None else explanation.method
    return Audit(
        schema=SCHEMA,
        title=title or (f"What {method} changes" if method else "What the update changes"),
        rows=found.rows,
        n=found.n,
        level=found.level,
        request=found.request,
        answer=answer_of(found),
        notice=notice_of(found),
        fairness=found.all_fairness,
        changes=found.changes,
        limit=found.limit,
        groups=found.groups,
        small_groups=found.small,
        quality=found.quality,
        agreement=found.agreement,
        calibration=found.calibration,
        proxies=found.proxies,
        subgroups=found.subgroups,
        segments=found.segments,
        card=None if explanation is None else explanation.card,
        stability=found.stability,
        checks=checks_of(found),
        not_known=not_known_of(found),
        provenance=provenance,
        ledger=ledger,
    )
