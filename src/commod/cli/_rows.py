"""A table in files → what a fit needs: columns an update may read, labels, groups, the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commod.cli._options import types_of
from commod.cli._say import Say
from commod.exceptions import InputError

if TYPE_CHECKING:
    import pandas as pd

    from commod._io.tables import Table

__all__ = [
    "Asked",
    "Rows",
    "check_blind",
    "check_columns",
    "check_test_size",
    "known_rows",
    "labels_of",
    "read_rows",
    "split_rows",
]


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
    identifier: str | None = None


@dataclass(frozen=True)
class Rows:
    """Rows to fit on; `locked` columns are for the base model alone.

    The index of `X` is what a ledger calls the rows: the identifier, or the row from 0.
    """

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
    from commod._io.tables import open_tables, read_frame

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
            named = [*wanted, *told, *([asked.identifier] if asked.identifier else [])]
            frame = read_frame(table, list(dict.fromkeys(named)), progress=progress)
            files = table.files
    if asked.identifier is not None:
        frame.index = _identifiers(frame[asked.identifier])
    known = [*told, *([asked.score_column] if asked.score_column else [])]
    if asked.drop_missing:
        frame = _without_missing(frame, known, say)
    _check_known(frame, known)
    used = _used(asked, frame, wanted, kinds, say)
    groups = frame[list(asked.sensitive)]
    return Rows(
        X=frame[used],
        y=None if asked.label is None else _labels(frame[asked.label]),
        groups=groups if len(asked.sensitive) > 1 else groups[asked.sensitive[0]],
        estimator=estimator,
        locked=tuple(name for name in used if _is_locked(name, asked, kinds)),
        files=files,
    )


READ = ("text", "integer", "number", "boolean")  # kinds of columns that a scorecard can read


def _is_locked(name: str, asked: Asked, kinds: dict[str, str]) -> bool:
    """Return whether a column is for the base model alone."""
    if name in asked.sensitive or name in asked.ignore or kinds[name] not in READ:
        return True
    return bool(asked.features) and name not in asked.features and name != asked.score_column


def _identifiers(column: pd.Series[Any]) -> Any:
    import pandas as pd

    if not column.is_unique or column.isna().any():
        raise InputError(
            f"--id {str(column.name)!r} does not name rows: it repeats a value, or one is missing."
        )
    return pd.Index(column, name=column.name)


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
        "--id": [asked.identifier] if asked.identifier else [],
    }
    if not asked.sensitive:
        raise InputError("--sensitive is missing: name the column of the sensitive attribute.")
    seen: dict[str, str] = {}
    for option, columns in given.items():
        for name in columns:
            if name not in names:
                raise _no_column(option, name, names, table)
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
    told = {*asked.sensitive, *asked.ignore, asked.label, asked.identifier}
    chosen = asked.features or [name for name in names if name not in told]
    n_needed = getattr(estimator, "n_features_in_", len(chosen))
    if asked.score_column is None and n_needed != len(chosen):
        raise InputError(
            f"The base model was fitted on {n_needed} columns without names, and the table has "
            f"{len(chosen)} for it. Name them in the model's order, each with --features."
        )
    if asked.score_column is not None and asked.score_column not in chosen:
        chosen = [*chosen, asked.score_column]
    return list(chosen)


def _used(
    asked: Asked,
    frame: pd.DataFrame,
    wanted: Sequence[str],
    kinds: dict[str, str],
    say: Say,
) -> list[str]:
    """Return the columns without those nobody can use; the base model's own all stay."""
    if not asked.score_column:
        return list(wanted)
    left_out = []
    for name in wanted:
        is_read = kinds[name] in READ
        if name == asked.score_column or (is_read and name in asked.features):
            continue
        if not is_read:
            words = f"Column {name!r} is of type {kinds[name]}, which a scorecard cannot read"
            if name in asked.features:
                raise InputError(f"{words}. Turn it into a number, such as days since a fixed day.")
            say.note(f"{words}: left out.")
            left_out.append(name)
        elif kinds[name] == "integer" and _is_identifier(frame[name]):
            left_out.append(name)
            say.note(
                f"Column {name!r} has a different whole number in every row, as an identifier has: "
                "left out. If it is one, pass --id; if not, name the columns with --features."
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
    return frame[kept]


def _labels(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return labels as whole numbers where missing ones had made them floats."""
    if column.dtype == "float64" and column.notna().all() and (column % 1 == 0).all():
        return column.astype("int64")
    if column.dtype == object and column.notna().all() and column.isin([True, False]).all():
        return column.astype(bool)
    return column


def labels_of(rows: Rows) -> list[Any]:
    """Return the two labels, those of the base model where it names them."""
    classes = getattr(rows.estimator, "classes_", None)
    if classes is not None:
        return list(classes.tolist())
    if rows.y is None:
        return [0, 1]
    return sorted(rows.y.dropna().unique().tolist(), key=str)


def check_test_size(test_size: float) -> None:
    """Refuse what is no share of the rows, before any is read."""
    if not 0 <= test_size < 1:
        raise InputError(f"--test-size {test_size:g} is a share of the rows, from 0 to below 1.")


def check_blind(rows: Rows) -> None:
    """Refuse columns that tell the group exactly: the patch would hold the sensitive attribute."""
    from commod._data.columns import iter_columns
    from commod._data.groups import determines_group, read_groups

    groups = read_groups(rows.groups, len(rows))
    score = getattr(rows.estimator, "name", None)
    for column in iter_columns(rows.X, skip=rows.locked):
        if column.name in rows.locked or column.name == score:
            continue
        if any(determines_group(column, codes) for codes in (groups.codes, *groups.parts)):
            raise InputError(
                f"Column {column.name!r} tells the sensitive group exactly, so a patch that reads "
                f"it would hold the sensitive attribute. Leave it out: --ignore {column.name!r}."
            )


def split_rows(rows: Rows, test_size: float, seed: int) -> tuple[Rows, Rows]:
    """Return rows to fit on, and rows to measure on: the same ones where none are held out."""
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
        X=rows.X.iloc[index],
        y=None if rows.y is None else rows.y.iloc[index],
        groups=rows.groups.iloc[index],
    )


# ---------------------------------------------------------------------------------------------
# Rows that stay in the engine


def check_columns(table: Table, columns: Mapping[str, Sequence[str]]) -> None:
    """Refuse columns that a table does not have; `columns` are those that each option names."""
    for option, names in columns.items():
        for name in names:
            if name not in table.names:
                raise _no_column(option, name, table.names, table.label)


def known_rows(
    table: Table, columns: Sequence[str], decisions: Sequence[str], drop: bool, say: Say
) -> Table:
    """Return the rows whose `columns` are all known, and some of whose `decisions` are.

    Rows without any decision are left out with a note; those that lack another value are dropped
    only where asked.
    """
    import narwhals as nw

    frame: Any = nw.from_native(table.relation)
    lacks = {name: nw.col(name).is_null() for name in columns}
    if decisions:
        undecided = nw.all_horizontal(*(nw.col(d).is_null() for d in decisions), ignore_nulls=False)
        frame = _without(frame, undecided, "a decision before and after", say)
    for name, is_missing in lacks.items():
        if drop:
            frame = _without(frame, is_missing, name, say)
        elif n_missing := _number(frame, is_missing):
            raise InputError(
                f"Column {name!r} is missing in {n_missing:,} of {table.n_rows:,} rows, but labels "
                "and groups must be known. Fill it in, or drop such rows with --drop-missing."
            )
    return table.with_relation(frame.to_native())


def _without(frame: Any, condition: Any, words: str, say: Say) -> Any:
    n_lost = _number(frame, condition)
    if n_lost:
        say.note(f"{n_lost:,} rows without {words} were left out.")
    return frame.filter(~condition) if n_lost else frame


def _number(frame: Any, condition: Any) -> int:
    import narwhals as nw

    ones = nw.when(condition).then(nw.lit(1)).otherwise(nw.lit(0)).sum()
    return int(frame.select(n=ones).collect()["n"][0] or 0)


def _no_column(option: str, name: str, names: Sequence[str], table: str) -> InputError:
    shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    return InputError(f"{option} {name!r} is no column of {table} (columns: {shown}).")
