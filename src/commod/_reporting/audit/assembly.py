"""Put an audit together: figures, checks and sentences become one record."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.columns import Column
from commod._data.groups import Groups
from commod._record.audit import SCHEMA, Audit, ExpectedOnNewPeople, Provenance, Subgroups
from commod._record.plain import utc_now
from commod._reporting.audit.checks import checks_of
from commod._reporting.audit.figures import (
    MeasuredAudit,
    changes_of,
    fairness_of,
    groups_of,
    limit_of,
    small_groups_of,
    unknown_groups_of,
)
from commod._reporting.audit.ledger import Ledger
from commod._reporting.audit.people import AuditedPeople, ShownPeople
from commod._reporting.audit.scores import quality_of
from commod._reporting.audit.sentences import answer_of, not_known_of, notice_of
from commod.patch.fingerprint import library_versions

NO_LEDGER = "not made"
NOT_MEASURED: dict[str, Any] = {  # without further figures
    "title": "What the update changes",
    "agreement": None,
    "calibration": None,
    "proxies": (),
    "subgroups": Subgroups(0, 0, 0, 100, 0.95, ()),
    "segments": None,
    "card": None,
    "stability": None,
    # reading versions takes time
    "provenance": Provenance("", {}, None, {}, None, None, "", "", None),
}
UNWRITTEN: dict[str, Any] = {"answer": (), "notice": None, "checks": (), "not_known": ()}


def measure(
    counted: ShownPeople, *, only_asked: bool = False, has_rows: bool = False, **more: Any
) -> MeasuredAudit:
    """Return the figures of counted people, without sentences and checks.

    `more` are further fields. With `only_asked`, fairness has the metrics of the request only.
    """
    groups = groups_of(counted)
    figures = {
        "fairness": fairness_of(counted, only_asked=only_asked),
        "changes": changes_of(counted),
        "limit": limit_of(counted),
        "groups": groups,
        "small_groups": small_groups_of(groups, counted.min_group_size),
        "quality": quality_of(counted, has_rows=has_rows),
        "unknown_groups": unknown_groups_of(counted),
    }
    return MeasuredAudit(
        SCHEMA,
        rows=counted.rows,
        n=counted.everybody.n,
        level=counted.level,
        request=counted.request,
        counted=counted,
        has_rows=has_rows,
        **UNWRITTEN,
        **{**NOT_MEASURED, **figures, **more},
    )


def title_of(method: str | None) -> str:
    """Return the usual heading of a report."""
    return f"What {method} changes" if method else NOT_MEASURED["title"]


def published(measured: MeasuredAudit, **written: Any) -> Audit:
    """Return the audit with its answer, without what only its checks and sentences read."""
    known = {field.name: getattr(measured, field.name) for field in fields(Audit)}
    return Audit(
        **{**known, **written, "answer": answer_of(measured), "notice": notice_of(measured)}
    )


def make_audit(measured: MeasuredAudit) -> Audit:
    """Return the audit with its checks and sentences."""
    return published(measured, checks=checks_of(measured), not_known=not_known_of(measured))


def first_screen(
    counted: ShownPeople, after: NDArray[np.bool_], expected: ExpectedOnNewPeople | None
) -> Audit:
    """Return an audit that has the figures of a report's first screen and no others.

    `after` (n,) says who of all people has the positive decision of the update.
    """
    people = replace(counted.people, after=after[counted.is_shown])
    return published(measure(replace(counted, people=people), only_asked=True, expected=expected))


# ---------------------------------------------------------------------------------------------
# Where the figures come from


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

    def __init__(self, people: AuditedPeople) -> None:
        super().__init__()
        self.add_array("decisions", np.stack([people.before, people.after]))
        self.add_array("labels", people.label)
        self.add_array("scores_before", people.scores_before)
        self.add_array("scores_after", people.scores_after)
        self.add_text("groups", people.group_names)
        self.add_array("group", people.groups.codes.astype(np.int32))
        if people.scores_calibrated is not None:
            self.add_array("scores_calibrated", people.scores_calibrated)
        self.add_strata(people.conditions)

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


def digest_counts(counted: ShownPeople, score_ranges: Mapping[str, Sequence[float]]) -> str:
    """Return the SHA-256 of group names, and of people by group, true label and decisions.

    `score_ranges` are the lowest and highest of the given scores, by parameter name. Sums of
    scores are left out, because engines add in different orders and round differently. With
    constraints within columns, people count by these columns, too.
    """
    digest, lines = Digest(), counted.merged
    digest.add_text("groups", counted.people.group_names)
    digest.add_array("people", counted.everybody.cells)
    for name, (low, high) in score_ranges.items():
        digest.add_text(name, [(low + 0.0).hex(), (high + 0.0).hex()])  # −0 becomes 0
    if lines.conditions:
        digest.add_strata(lines.conditions)
        digest.add_array("group", lines.groups.codes.astype(np.int32))
        digest.add_array("labels", lines.label)
        digest.add_array("decisions", np.stack([lines.before, lines.after]))
        digest.add_array("n", lines.n)
    return digest.hexdigest()


def provenance_of(
    counted: ShownPeople,
    digest: str,
    ledger: Ledger | None,
    created: str | None,
    *,
    method: str | None,
    settings: Mapping[str, str],
    reads_group: bool | None = None,
    is_randomised: bool | None = None,
) -> Provenance:
    """Return versions, settings and digests; `created` is the present time in UTC if None."""
    n_lines = 0 if ledger is None else len(ledger)
    # the number would tell how many hidden people change
    is_hidden = ledger is not None and (counted.n_hidden.any() or counted.n_unknown_hidden)
    return Provenance(
        created=utc_now() if created is None else created,
        versions=library_versions("narwhals"),
        method=method,
        settings=dict(settings),
        reads_group=reads_group,
        is_randomised=is_randomised,
        data_digest=digest,
        ledger_digest=NO_LEDGER if ledger is None else ledger.digest,
        ledger_lines=None if is_hidden else n_lines,
    )
