"""Where figures come from: versions, and a digest of the audited data."""

from __future__ import annotations

import datetime
import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.columns import Column
from commod._record import Provenance
from commod._reporting.audit.coding import Coding
from commod._reporting.audit.counts import Counts
from commod._reporting.audit.ledger import Ledger
from commod._reporting.audit.people import People
from commod._reporting.explain import Explanation

__all__ = ["CountDigest", "DataDigest", "provenance_of"]

PACKAGES = ("commod-debiasing", "numpy", "scipy", "scikit-learn", "narwhals")
NO_LEDGER = "not made"


class _Digest:
    """SHA-256 of named arrays and texts; their types and shapes count too."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def hexdigest(self) -> str:
        """Return the digest in hexadecimal."""
        return self._hash.hexdigest()

    def _add(self, name: str, values: NDArray[Any] | None) -> None:
        self._text(name, [] if values is None else [str(values.dtype), *map(str, values.shape)])
        if values is not None:
            self._hash.update(np.ascontiguousarray(values).data)

    def _text(self, name: str, parts: Iterable[str]) -> None:
        self._hash.update(json.dumps([name, *parts]).encode())


class DataDigest(_Digest):
    """SHA-256 of the audited rows, fed one column at a time; the same for every kind of frame."""

    def __init__(self, people: People) -> None:
        super().__init__()
        self._add("decisions", np.stack([people.before, people.after]))
        self._add("labels", people.label)
        self._add("scores_before", people.scores_before)
        self._add("scores_after", people.scores_after)
        self._text("groups", people.coding.group_names)
        self._add("group", people.groups.codes.astype(np.int32))

    def add(self, column: Column) -> None:
        """Add one raw column."""
        if column.kind == "numeric":
            self._text("number", [column.name])
            self._add("", np.where(column.is_missing(), np.nan, column.values))
            return
        # libraries number the same categories differently: by name they are one
        names = [json.dumps(value) for value in column.categories]
        order = sorted(range(len(names)), key=names.__getitem__)
        rank = np.full(len(names) + 1, -1, np.int32)
        rank[order] = np.arange(len(order))
        used = np.unique(column.values[column.values >= 0])
        self._text("category", [column.name, *sorted(names[c] for c in used)])
        position = np.cumsum(np.isin(np.arange(len(names)), rank[used])) - 1
        codes = rank[column.values]
        self._add("", np.where(codes >= 0, np.append(position, -1)[codes], -1).astype(np.int32))


class CountDigest(_Digest):
    """SHA-256 of a table of counts: group names, people by group, true label and decisions.

    `ends` are the lowest and the highest of the scores that are given. Their sums are left out:
    engines add in different orders and round differently.
    """

    def __init__(
        self, coding: Coding, counts: Counts, ends: Mapping[str, tuple[float, float]]
    ) -> None:
        super().__init__()
        self._text("groups", coding.group_names)
        self._add("people", counts.cells)
        for name, (low, high) in ends.items():
            self._text(name, [(low + 0.0).hex(), (high + 0.0).hex()])  # −0 is 0


def provenance_of(
    digest: str,
    ledger: Ledger | None,
    *,
    explanation: Explanation | None,
    reads_group: bool | None,
    created: str | None,
) -> Provenance:
    """Return versions, settings and digests; `created` is now, in UTC, where None."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return Provenance(
        created=now if created is None else created,
        versions={
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in PACKAGES},
        },
        method=None if explanation is None else explanation.method,
        settings={} if explanation is None else dict(explanation.settings),
        reads_group=reads_group,
        draws_lots=None if explanation is None else explanation.randomised,
        data_digest=digest,
        ledger_digest=NO_LEDGER if ledger is None else ledger.digest,
        ledger_lines=0 if ledger is None else len(ledger),
    )
