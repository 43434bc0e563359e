"""Make the change ledger: one line per changed decision, and the digest that identifies it."""

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

from commod._data.columns import plain
from commod._io.files import write_whole
from commod._io.optional import import_optional
from commod._record.explanation import Segment, Segments
from commod._reporting.audit.people import AuditedPeople
from commod._reporting.explain import Explanation
from commod._text import number, snippet, visible

if TYPE_CHECKING:
    import pandas as pd

MAX_SHOWN = 10  # lines of a table in a notebook
FORMULA_STARTS = ("=", "+", "-", "@", "＝", "＋", "－", "＠")


@dataclass(frozen=True)
class Ledger:
    """One line per changed decision; made by `commod.audit`.

    Attributes
    ----------
    columns : dict of str to tuple
        The lines, column by column:

        - `row`: the id of the row;
        - `before`, `after`: the decisions;
        - `score_before`, `score_after`: None where scores are not given;
        - `direction`: "gain" or "loss" of the favourable outcome;
        - `rule`: the segment that describes the change, empty where none does;
        - `concept`: the concept that contributed most, None without concepts;
        - `reasons`: the strongest contributions to r;
        - `group`: only with ``sensitive_in_ledger=True``.

    Examples
    --------
    >>> from commod import audit
    >>> result = audit([0, 1, 1], [1, 1, 0], sensitive_features=["a", "a", "b"], min_group_size=1)
    >>> result.ledger.frame()[["row", "before", "after", "direction"]]
       row  before  after direction
    0    0       0      1      gain
    1    2       1      0      loss
    """

    columns: Mapping[str, Sequence[Any]]

    def __post_init__(self) -> None:
        # a signed ledger must not change: its digest would no longer hold
        frozen = {name: tuple(values) for name, values in self.columns.items()}
        object.__setattr__(self, "columns", frozen)

    def __len__(self) -> int:
        return len(self.columns["row"])

    def __repr__(self) -> str:
        return f"Ledger of {len(self):,} changed decisions, SHA-256 {self.digest[:12]}…"

    def _repr_html_(self) -> str:
        used = {name: v for name, v in self.columns.items() if any(x not in (None, "") for x in v)}
        lines = [
            [number(cell, 3) if isinstance(cell, float) else cell for cell in line]
            for line in zip(*(values[:MAX_SHOWN] for values in used.values()), strict=True)
        ]
        caption = "Lines"
        if len(self) > MAX_SHOWN:
            caption = f"First {MAX_SHOWN} of {len(self):,} lines; frame() has all"
        sentence = f"SHA-256 of the CSV file: {self.digest}"
        tables = [(caption, list(used), lines)] if lines else []
        return snippet(f"Ledger of {len(self):,} changed decisions", [sentence], tables)

    def frame(self) -> pd.DataFrame:
        """Return the ledger as a pandas frame."""
        import pandas as pd

        return pd.DataFrame(dict(self.columns))

    def to_csv(self, path: str | Path) -> Path:
        """Write the ledger as CSV (UTF-8) and return the path; `sha256sum` prints its digest.

        Text that a spreadsheet would run as a formula gets an apostrophe in front. A line break
        inside a name becomes a space, and every other control or invisible character its code.
        """
        return write_whole(path, self._bytes)

    def to_parquet(self, path: str | Path) -> Path:
        """Write the ledger as Parquet and return the path; needs pyarrow."""
        buffer = io.BytesIO()
        columns = {name: list(values) for name, values in self.columns.items()}
        _pyarrow().write_table(_pyarrow("pyarrow").table(columns), buffer)
        return write_whole(path, buffer.getvalue())

    @cached_property
    def digest(self) -> str:
        """Return the SHA-256 of the CSV file that `to_csv` writes, in hexadecimal."""
        return hashlib.sha256(self._bytes).hexdigest()

    @staticmethod
    def digest_of(path: str | Path) -> str:
        """Return the digest of a ledger file, to compare with the digest in a report.

        Parameters
        ----------
        path : str or Path
            A file that `to_csv` or `to_parquet` wrote.
        """
        content = Path(path).read_bytes()
        if content[:4] != b"PAR1":  # the first bytes of every Parquet file
            return hashlib.sha256(content).hexdigest()
        table = _pyarrow().read_table(io.BytesIO(content))
        return Ledger({name: table[name].to_pylist() for name in table.column_names}).digest

    @property
    def _bytes(self) -> bytes:
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
        writer.writerow(self.columns)
        writer.writerows(zip(*map(_cells, self.columns.values()), strict=True))
        return text.getvalue().encode("utf-8", "backslashreplace")


def _cells(values: Sequence[Any]) -> Sequence[Any]:
    """Return the values of a column as they are written; text is made inert.

    All values of a column have one type.
    """
    if not isinstance(next((v for v in values if v is not None), None), str):
        return values
    written = {text: _inert(text) for text in set(values) if text is not None}
    return [written.get(text) for text in values]


def _inert(text: str) -> str:
    text = visible(text)  # one change is one line of the file
    return f"'{text}" if text.lstrip().startswith(FORMULA_STARTS) else text


def _pyarrow(module: str = "pyarrow.parquet") -> Any:
    return import_optional(module, "parquet", "Parquet, unlike CSV,")


# ---------------------------------------------------------------------------------------------
# Making a ledger


def make_ledger(
    people: AuditedPeople,
    row_ids: Sequence[Any] | None,
    segments: Segments | None,
    segment_of: Any,
    explanation: Explanation | None,
    *,
    hidden_columns: Sequence[str],
    with_group: bool,
) -> Ledger:
    """Return the ledger; `segment_of` (n,) is the segment of each row, −1 where there is none.

    Rules and reasons do not name `hidden_columns`, which determine the group.
    """
    rows = np.flatnonzero(people.changed)
    described = () if segments is None else segments.segments
    rules = np.array([*(_rule(s, hidden_columns) for s in described), ""], dtype=object)
    labels = [plain(people.negative_label), plain(people.positive_label)]
    columns: dict[str, Sequence[Any]] = {
        "row": rows.tolist() if row_ids is None else _ids([row_ids[i] for i in rows.tolist()]),
        "before": [labels[decision] for decision in people.before[rows].tolist()],
        "after": [labels[decision] for decision in people.after[rows].tolist()],
        "score_before": _known(people.scores_before, rows),
        "score_after": _known(people.scores_after, rows),
        "direction": np.where(people.gain[rows], "gain", "loss").tolist(),
        "rule": rules[segment_of[rows]].tolist(),
        **_reasons(explanation, rows, hidden_columns),
    }
    if with_group:
        names = np.array([*people.group_names, None], dtype=object)  # −1: not known
        columns["group"] = names[people.groups.codes[rows]].tolist()
    return Ledger(columns)


def _rule(segment: Segment, hidden_columns: Sequence[str]) -> str:
    """Return the rule of a segment; empty where the rule would reveal the group."""
    is_hidden = any(condition.column in hidden_columns for condition in segment.conditions)
    return "" if is_hidden else segment.text


def _ids(values: list[Any]) -> list[Any]:
    """Return ids of one plain type; ids of several types, or of another type, become text."""
    ids: list[Any] = [
        # a row of an index with several levels has a tuple as its id
        ", ".join(str(plain(part)) for part in value) if isinstance(value, tuple) else plain(value)
        for value in values
    ]
    kinds = {type(value) for value in ids} - {type(None)}
    is_large = kinds == {int} and any(abs(v) >= 2**63 for v in ids if v is not None)
    if len(kinds) > 1 or is_large or not kinds <= {str, int, float, bool}:
        ids = [None if value is None else str(value) for value in ids]
        kinds = {str}
    if kinds == {str}:  # UTF-8 cannot hold lone surrogates: they become text such as \udc80
        return [v and v.encode("utf-8", "backslashreplace").decode() for v in ids]
    return ids


def _known(scores: Any, rows: Any) -> list[float | None]:
    return [None] * len(rows) if scores is None else scores[rows].tolist()


def _reasons(
    explanation: Explanation | None, rows: Any, hidden_columns: Sequence[str]
) -> dict[str, Sequence[Any]]:
    if explanation is None or explanation.card is None:
        return {"concept": [None] * len(rows), "reasons": [""] * len(rows)}
    concepts = [None if c < 0 else c for c in explanation.concept_of(rows).tolist()]
    return {"concept": concepts, "reasons": explanation.reasons(rows, skip=hidden_columns)}
