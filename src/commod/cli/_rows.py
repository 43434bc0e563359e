"""A table in files → what a fit needs: columns an update may read, labels, groups, the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commod.cli._options import types_of
from commod.cli._say import Say
from commod.exceptions import InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Asked", "Rows", "read_rows", "split_rows"]


@dataclass(frozen=True)
class Asked:
    """What a user says about a table and the model that scored it."""

    files: Sequence[str]
    label: str | None
    sensitive: Sequence[str]
    model: Path | None
    score_column: str | None
    trust_pickle: bool = False
    trust: Sequence[str] = ()
    features: Sequence[str] = ()
    ignore: Sequence[str] = ()
    types: Sequence[str] = ()
    delimiter: str | None = None
    encoding: str | None = None
    drop_missing: bool = False


@dataclass(frozen=True)
class Rows:
    """Rows to fit on; `locked` columns are for the base model alone."""

    X: pd.DataFrame
    y: Any
    groups: Any
    estimator: Any
    locked: tuple[str, ...]
    files: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.X)


def read_rows(asked: Asked, say: Say) -> Rows:
    """Return the rows that were asked for; everything is checked before it is used."""
    from commod._tables import open_tables, read_frame

    if (asked.model is None) == (asked.score_column is None):
        raise InputError(
            "Say where the base model's scores come from: --model FILE or --score-column NAME, one "
            "of them."
        )
    estimator = _estimator(asked)
    with say.progress("reading") as progress:
        table = open_tables(
            asked.files,
            types=types_of(list(asked.types)),
            delimiter=asked.delimiter,
            encoding=asked.encoding,
            progress=progress,
        )
        with table:
            names, kinds = table.names, dict(table.kinds)
            _check_named(asked, names, table.label)
            wanted = _features(asked, estimator, names)
            told = [*asked.sensitive, *([asked.label] if asked.label else [])]
            frame = read_frame(table, list(dict.fromkeys([*wanted, *told])), progress=progress)
            files = table.files
    known = [*told, *([asked.score_column] if asked.score_column else [])]
    if asked.drop_missing:
        frame = _without_missing(frame, known, say)
    _check_known(frame, known)
    used = _used(asked, frame, wanted, kinds, estimator, say)
    groups = frame[list(asked.sensitive)]
    return Rows(
        X=frame[used],
        y=None if asked.label is None else _labels(frame[asked.label]),
        groups=groups if len(asked.sensitive) > 1 else groups[asked.sensitive[0]],
        estimator=estimator,
        locked=tuple(name for name in used if name in asked.sensitive or kinds[name] not in READ),
        files=files,
    )


READ = ("text", "integer", "number", "boolean")  # kinds of columns that a scorecard can read


def _estimator(asked: Asked) -> Any:
    if asked.score_column is not None:
        from commod import ScoreColumn

        return ScoreColumn(asked.score_column)
    from commod.cli._models import load_model

    assert asked.model is not None
    return load_model(asked.model, trust_pickle=asked.trust_pickle, trust=asked.trust)


def _check_named(asked: Asked, names: Sequence[str], table: str) -> None:
    """Refuse a column that is not there, or that is named for two purposes."""
    given = {
        "--label": [asked.label] if asked.label else [],
        "--sensitive": list(asked.sensitive),
        "--score-column": [asked.score_column] if asked.score_column else [],
        "--features": list(asked.features),
        "--ignore": list(asked.ignore),
    }
    if not asked.sensitive:
        raise InputError("--sensitive is missing: name the column of the sensitive attribute.")
    seen: dict[str, str] = {}
    for option, columns in given.items():
        for name in columns:
            if name not in names:
                shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
                raise InputError(f"{option} {name!r} is no column of {table} (columns: {shown}).")
            if name in seen and {option, seen[name]} != {"--ignore", "--sensitive"}:
                raise InputError(
                    f"Column {name!r} is named by {seen[name]} and by {option}; it can be one."
                )
            seen[name] = option


def _features(asked: Asked, estimator: Any, names: Sequence[str]) -> list[str]:
    """Return the columns to read for the update and the base model."""
    needed = [str(name) for name in getattr(estimator, "feature_names_in_", ())]
    lost = [name for name in needed if name not in names]
    if lost:
        raise InputError(
            f"The base model was fitted on column {lost[0]!r}, which the table does not have. Pass "
            "a table with the model's own columns, or --score-column if it holds the scores."
        )
    if needed:
        return needed
    told = {*asked.sensitive, *asked.ignore, asked.label}
    chosen = asked.features or [name for name in names if name not in told]
    if asked.score_column is not None and asked.score_column not in chosen:
        chosen = [*chosen, asked.score_column]
    return list(chosen)


def _used(
    asked: Asked,
    frame: pd.DataFrame,
    wanted: Sequence[str],
    kinds: dict[str, str],
    estimator: Any,
    say: Say,
) -> list[str]:
    """Return the columns without those nobody can use; the base model's own all stay."""
    if not asked.score_column:
        return list(wanted)
    left_out = []
    for name in wanted:
        if name == asked.score_column or name in asked.features:
            continue
        if kinds[name] not in READ:
            left_out.append(name)
            say.note(
                f"Column {name!r} is a {kinds[name]}, which a scorecard cannot read: left out."
            )
        elif kinds[name] == "integer" and _is_identifier(frame[name]):
            left_out.append(name)
            say.note(
                f"Column {name!r} has a different whole number in every row, as an identifier has: "
                f"left out. Name the columns to use with --features if it is none."
            )
    return [name for name in wanted if name not in left_out]


def _is_identifier(column: pd.Series[Any]) -> bool:
    return len(column) >= 100 and bool(column.is_unique)


def _check_known(frame: pd.DataFrame, columns: Sequence[str]) -> None:
    for name in columns:
        n_missing = int(frame[name].isna().sum())
        if n_missing:
            raise InputError(
                f"Column {name!r} is missing in {n_missing:,} of {len(frame):,} rows, but labels, "
                "groups and scores must be known. Fill it in, or drop such rows with "
                "--drop-missing."
            )


def _without_missing(frame: pd.DataFrame, named: Sequence[str], say: Say) -> pd.DataFrame:
    kept = frame[list(named)].notna().all(axis=1)
    n_lost = int((~kept).sum())
    if n_lost == len(frame):
        raise InputError(
            f"Every row has a missing value in {', '.join(named)}, so none is left. Look at these "
            "columns."
        )
    if n_lost:
        say.note(f"{n_lost:,} of {len(frame):,} rows were dropped: {', '.join(named)} is missing.")
    return frame[kept].reset_index(drop=True)


def _labels(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return labels as whole numbers where missing ones had made them floats."""
    if column.dtype == "float64" and column.notna().all() and (column % 1 == 0).all():
        return column.astype("int64")
    if column.dtype == object and column.notna().all() and column.isin([True, False]).all():
        return column.astype(bool)
    return column


def split_rows(rows: Rows, test_size: float, seed: int) -> tuple[Rows, Rows]:
    """Return rows to fit on, and rows to measure on: the same ones where none are held out."""
    if not 0 <= test_size < 1:
        raise InputError(f"--test-size {test_size:g} is a share of the rows, from 0 to below 1.")
    if not test_size:
        return rows, rows
    import numpy as np

    order = np.random.default_rng(seed).permutation(len(rows))
    n_test = round(test_size * len(rows))
    if not 0 < n_test < len(rows):
        raise InputError(f"--test-size {test_size:g} leaves no rows to fit or to measure on.")
    return _take(rows, np.sort(order[n_test:])), _take(rows, np.sort(order[:n_test]))


def _take(rows: Rows, index: Any) -> Rows:
    return replace(
        rows,
        X=rows.X.iloc[index].reset_index(drop=True),
        y=None if rows.y is None else rows.y.iloc[index].reset_index(drop=True),
        groups=rows.groups.iloc[index].reset_index(drop=True),
    )
