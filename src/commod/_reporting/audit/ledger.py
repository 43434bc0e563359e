"""The change ledger: one line per changed decision, and the digest that pins it."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from commod._data.codes import plain
from commod._io.files import write_whole
from commod._reporting.audit.people import People
from commod._reporting.explain import Explanation
from commod.exceptions import InputError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

__all__ = ["Ledger", "make_ledger"]

FORMULA_STARTS = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
BREAKS = str.maketrans("\r\n\t\v\f\x00\x85\u2028\u2029", " " * 9)  # one change is one line


@dataclass(frozen=True)
class Ledger:
    """One line per changed decision; made by `commod.audit`.

    Columns: `row` (the row's id), `before`, `after`, `score_before`, `score_after` (None where
    not given), `direction` ("gain" or "loss" of the favourable outcome), `rule` (the segment that
    describes the change, empty where none does), `concept` (the concept that pushed most, None
    without concepts), `reasons` (the strongest pushes in r), and `group` only where asked for.

    Attributes
    ----------
    columns : dict of str to tuple
        The lines, column by column.

    Examples
    --------
    >>> from commod import audit
    >>> found = audit([0, 1, 1], [1, 1, 0], sensitive_features=["a", "a", "b"], min_group_size=1)
    >>> found.ledger.frame()[["row", "before", "after", "direction"]]
       row  before  after direction
    0    0       0      1      gain
    1    2       1      0      loss
    """

    columns: Mapping[str, Sequence[Any]]

    def __post_init__(self) -> None:
        # what is signed must not change under its digest
        frozen = {name: tuple(values) for name, values in self.columns.items()}
        object.__setattr__(self, "columns", frozen)

    def __len__(self) -> int:
        return len(self.columns["row"])

    def __repr__(self) -> str:
        return f"Ledger of {len(self):,} changed decisions, SHA-256 {self.digest[:12]}…"

    def frame(self) -> pd.DataFrame:
        """Return the ledger as a pandas frame."""
        import pandas as pd

        return pd.DataFrame(dict(self.columns))

    def to_csv(self, path: str | Path) -> Path:
        """Write the ledger as CSV (UTF-8) and return the path; `sha256sum` prints its digest.

        Text that a spreadsheet would run as a formula gets an apostrophe in front; a line break
        inside a name becomes a space.
        """
        return write_whole(path, self._bytes)

    def to_parquet(self, path: str | Path) -> Path:
        """Write the ledger as Parquet and return the path; needs pyarrow."""
        parquet = _pyarrow("pyarrow.parquet")
        buffer = io.BytesIO()
        parquet.write_table(self._arrow(), buffer)
        return write_whole(path, buffer.getvalue())

    @cached_property
    def digest(self) -> str:
        """Return the SHA-256 of the CSV file that `to_csv` writes, in hexadecimal."""
        return hashlib.sha256(self._bytes).hexdigest()

    @staticmethod
    def digest_of(path: str | Path) -> str:
        """Return the digest of a ledger on disk, CSV or Parquet, to hold against a report's.

        Parameters
        ----------
        path : str or Path
            What `to_csv` or `to_parquet` wrote.
        """
        content = Path(path).read_bytes()
        if content[:4] != b"PAR1":  # how every Parquet file begins, whatever its name
            return hashlib.sha256(content).hexdigest()
        table = _pyarrow("pyarrow.parquet").read_table(io.BytesIO(content))
        return Ledger({name: table[name].to_pylist() for name in table.column_names}).digest

    @property
    def _bytes(self) -> bytes:
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
        writer.writerow(self.columns)
        writer.writerows(zip(*map(_cells, self.columns.values()), strict=True))
        return text.getvalue().encode("utf-8", "backslashreplace")

    def _arrow(self) -> pa.Table:
        pyarrow = _pyarrow("pyarrow")
        return pyarrow.table({name: list(values) for name, values in self.columns.items()})


def _cells(values: Sequence[Any]) -> Sequence[Any]:
    """Return what is written of a column, whose values are of one kind: text is made inert."""
    if not isinstance(next((v for v in values if v is not None), None), str):
        return values
    written = {text: _inert(text) for text in set(values) if text is not None}
    return [written.get(text) for text in values]


def _inert(text: str) -> str:
    text = text.translate(BREAKS)
    return f"'{text}" if text.lstrip().startswith(FORMULA_STARTS) else text


def _pyarrow(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InputError(
            "Parquet needs pyarrow: pip install 'commod-debiasing[parquet]', or write CSV."
        ) from error


# ---------------------------------------------------------------------------------------------
# Making one


def make_ledger(
    people: People,
    row_ids: Sequence[Any] | None,
    rules: tuple[Sequence[str], Any],
    explanation: Explanation | None,
    hidden: Sequence[str],
    *,
    with_group: bool,
) -> Ledger:
    """Return the ledger; `rules` are texts and, for each row (n,), an index into them or −1.

    Columns in `hidden` tell a person's group and are not among the reasons.
    """
    rows = np.flatnonzero(people.changed)
    texts = np.array([*rules[0], ""], dtype=object)
    columns: dict[str, Sequence[Any]] = {
        "row": rows.tolist() if row_ids is None else _ids([row_ids[i] for i in rows.tolist()]),
        "before": _labels(people, people.before[rows]),
        "after": _labels(people, people.after[rows]),
        "score_before": _some(people.scores_before, rows),
        "score_after": _some(people.scores_after, rows),
        "direction": np.where(people.gain[rows], "gain", "loss").tolist(),
        "rule": texts[rules[1][rows]].tolist(),
        **_why(explanation, rows, hidden),
    }
    if with_group:
        names = np.array(people.coding.group_names, dtype=object)
        columns["group"] = names[people.groups.codes[rows]].tolist()
    return Ledger(columns)


def _ids(values: list[Any]) -> list[Any]:
    """Return ids of one plain kind; others, and ids of several kinds, as text."""
    ids: list[Any] = [
        _text(value) if isinstance(value, tuple) else plain(value) for value in values
    ]
    kinds = {type(value) for value in ids} - {type(None)}
    is_large = kinds == {int} and any(abs(v) >= 2**63 for v in ids if v is not None)
    if len(kinds) > 1 or is_large or not kinds <= {str, int, float, bool}:
        ids = [None if value is None else str(value) for value in ids]
        kinds = {str}
    if kinds == {str}:  # what UTF-8 cannot hold is written as \\udc80, here and in every file
        return [v and v.encode("utf-8", "backslashreplace").decode() for v in ids]
    return ids


def _text(parts: tuple[Any, ...]) -> str:
    """Return the id of a row that several levels of an index name."""
    return ", ".join(str(plain(part)) for part in parts)


def _labels(people: People, decisions: Any) -> list[Any]:
    labels = np.empty(2, dtype=object)
    labels[:] = [plain(people.coding.negative_label), plain(people.coding.positive_label)]
    return list(labels[decisions.astype(np.intp)])


def _some(scores: Any, rows: Any) -> list[float | None]:
    return [None] * len(rows) if scores is None else scores[rows].tolist()


def _why(
    explanation: Explanation | None, rows: Any, hidden: Sequence[str]
) -> dict[str, Sequence[Any]]:
    if explanation is None or explanation.card is None:
        return {"concept": [None] * len(rows), "reasons": [""] * len(rows)}
    concepts = [None if c < 0 else c for c in explanation.concept_of(rows).tolist()]
    return {"concept": concepts, "reasons": explanation.reasons(rows, skip=hidden)}
