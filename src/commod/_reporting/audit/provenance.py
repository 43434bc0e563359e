"""Record where figures come from: versions, and digests of the audited data."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commod._data.columns import Column
from commod._data.groups import Groups
from commod._record import Provenance
from commod._reporting.audit.counts import Coding, DecisionCounts
from commod._reporting.audit.evidence import Evidence
from commod._reporting.audit.ledger import Ledger
from commod._reporting.audit.people import AuditedPeople
from commod._reporting.audit.stated import ConditionCounts
from commod._reporting.explain import Explanation
from commod.patch.versions import library_versions

NO_LEDGER = "not made"


class UpdateFacts(NamedTuple):
    """What an audit of counts states about the update: its method and its settings."""

    method: str
    settings: Mapping[str, str]


class Digest:
    """SHA-256 of named arrays and texts, including their types and shapes."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def hexdigest(self) -> str:
        """Return the digest in hexadecimal."""
        return self._hash.hexdigest()

    def add_array(self, name: str, values: NDArray[Any] | None) -> None:
        """Add an array under a name."""
        self.add_text(name, [] if values is None else [str(values.dtype), *map(str, values.shape)])
        if values is not None:
            self._hash.update(np.ascontiguousarray(values).data)

    def add_text(self, name: str, parts: Iterable[str]) -> None:
        """Add texts under a name."""
        self._hash.update(json.dumps([name, *parts]).encode())

    def add_strata(self, columns: Mapping[str, Groups]) -> None:
        """Add the columns that constraints are within; nothing without any."""
        for name, column in columns.items():
            self.add_text("within", [name, *map(repr, column.labels)])
            self.add_array("", column.codes.astype(np.int32))


class DataDigest(Digest):
    """SHA-256 of the audited rows, one column at a time; the same for every kind of frame."""

    def __init__(self, people: AuditedPeople, conditions: Mapping[str, Groups]) -> None:
        super().__init__()
        self.add_array("decisions", np.stack([people.before, people.after]))
        self.add_array("labels", people.label)
        self.add_array("scores_before", people.scores_before)
        self.add_array("scores_after", people.scores_after)
        self.add_text("groups", people.coding.group_names)
        self.add_array("group", people.groups.codes.astype(np.int32))
        if people.scores_calibrated is not None:
            self.add_array("scores_calibrated", people.scores_calibrated)
        self.add_strata(conditions)

    def add_column(self, column: Column) -> None:
        """Add one raw column."""
        if column.kind == "numeric":
            self.add_text("number", [column.name])
            self.add_array("", np.where(column.is_missing(), np.nan, column.values))
            return
        # frame libraries number the same categories differently; sorting by name makes one order
        names = [json.dumps(value) for value in column.categories]
        order = sorted(range(len(names)), key=names.__getitem__)
        rank = np.full(len(names) + 1, -1, np.int32)
        rank[order] = np.arange(len(order))
        used = np.unique(column.values[column.values >= 0])
        self.add_text("category", [column.name, *sorted(names[c] for c in used)])
        position = np.cumsum(np.isin(np.arange(len(names)), rank[used])) - 1
        codes = rank[column.values]
        self.add_array(
            "", np.where(codes >= 0, np.append(position, -1)[codes], -1).astype(np.int32)
        )


def digest_counts(
    coding: Coding,
    counts: DecisionCounts,
    score_ranges: Mapping[str, tuple[float, float]],
    conditions: ConditionCounts | None,
) -> str:
    """Return the SHA-256 of group names, and of people by group, true label and decisions.

    `score_ranges` are the lowest and highest of the given scores, by parameter name. Sums of
    scores are left out, because engines add in different orders and round differently.
    `conditions` count people by the columns that constraints are within.
    """
    digest = Digest()
    digest.add_text("groups", coding.group_names)
    digest.add_array("people", counts.cells)
    for name, (low, high) in score_ranges.items():
        digest.add_text(name, [(low + 0.0).hex(), (high + 0.0).hex()])  # −0 becomes 0
    if conditions is not None:
        digest.add_strata(conditions.columns)
        digest.add_array("group", conditions.group.astype(np.int32))
        digest.add_array("labels", conditions.label)
        digest.add_array("decisions", np.stack([conditions.before, conditions.after]))
        digest.add_array("n", conditions.n)
    return digest.hexdigest()


def provenance_of(
    evidence: Evidence,
    digest: str,
    explanation: Explanation | UpdateFacts | None,
    ledger: Ledger | None,
    created: str | None,
) -> Provenance:
    """Return versions, settings and digests; `created` is the present time in UTC if None."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return Provenance(
        created=now if created is None else created,
        versions=library_versions("narwhals"),
        method=None if explanation is None else explanation.method,
        settings={} if explanation is None else dict(explanation.settings),
        reads_group=evidence.reads_group,
        is_randomised=evidence.is_randomised,
        data_digest=digest,
        ledger_digest=NO_LEDGER if ledger is None else ledger.digest,
        ledger_lines=_ledger_lines(evidence, ledger),
    )


def _ledger_lines(evidence: Evidence, ledger: Ledger | None) -> int | None:
    """Return the number of lines; None where it would tell how many hidden people change."""
    if ledger is None:
        return 0
    n_hidden = 0 if evidence.n_hidden is None else int(evidence.n_hidden.sum())
    return None if n_hidden + evidence.n_unknown_hidden else len(ledger)
