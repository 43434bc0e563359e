"""Open Parquet files, find the kinds of their columns, and correct them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from commod._io.tables import kinds as _kinds
from commod._io.tables.kinds import check_names, check_same_columns
from commod._io.tables.queries import Progress, error_sentence, run_query, translated_errors
from commod._io.tables.sources import SourceFile
from commod.exceptions import InputError

if TYPE_CHECKING:
    import duckdb


def open_parquet(
    connection: duckdb.DuckDBPyConnection,
    sources: Sequence[SourceFile],
    types: Mapping[str, str],
    progress: Progress | None,
    *,
    columns_in_folders: bool = False,
) -> tuple[duckdb.DuckDBPyRelation, dict[str, str], int]:
    """Return the rows of Parquet files, the kinds of their columns, and the number of rows.

    If `columns_in_folders`, names of folders such as "year=2025" hold values of further columns,
    which are text.
    """
    kinds_by_file = {source.name: _read_kinds(connection, source) for source in sources}
    check_same_columns({file: list(kinds) for file, kinds in kinds_by_file.items()})
    _check_same_kinds(kinds_by_file)
    relation = _read_files(connection, sources, columns_in_folders)
    names = list(relation.columns)
    _kinds.check_corrections(types, names, repr(sources[0].name))
    with translated_errors():
        n_rows = run_query(connection, relation.aggregate("count(*)").fetchall)[0][0]
    kinds = dict(zip(names, map(kind_of_type, relation.types), strict=True))
    if not types or not n_rows:
        return relation, kinds, n_rows
    corrected = _correct_kinds(connection, relation, types, progress)
    return corrected, {**kinds, **types}, n_rows


def _read_files(
    connection: duckdb.DuckDBPyConnection, sources: Sequence[SourceFile], columns_in_folders: bool
) -> duckdb.DuckDBPyRelation:
    import duckdb

    paths = [str(source.path) for source in sources]
    with translated_errors():  # some versions of DuckDB read rows here
        try:
            return connection.sql(
                "SELECT * FROM read_parquet($1, union_by_name = true, hive_partitioning = $2, "
                "hive_types_autocast = false)",
                params=[paths, columns_in_folders],
            )
        except duckdb.BinderException as error:
            raise InputError(
                f"The folders of {sources[0].name!r} and of {len(sources) - 1} more files do not "
                f"name the same columns ({error_sentence(error)}). Name the files themselves."
            ) from error


def _read_kinds(connection: duckdb.DuckDBPyConnection, source: SourceFile) -> dict[str, str]:
    """Return the kind of each column of a file."""
    import duckdb

    try:
        relation = connection.read_parquet(str(source.path), hive_partitioning=False)
        schema = connection.execute(
            "SELECT name, num_children FROM parquet_schema($1)", [str(source.path)]
        ).fetchall()
    except duckdb.Error as error:
        reason = error_sentence(error).replace(str(source.path), source.path.name)
        raise InputError(
            f"{source.name!r} is not a whole Parquet file ({reason}). Copy it again, or "
            "give it the ending of what it is."
        ) from error
    names = list(_top_level(schema))
    check_names(names, source.name)
    return dict(zip(names, map(kind_of_type, relation.types), strict=True))


def _top_level(schema: Sequence[tuple[str, int | None]]) -> Iterator[str]:
    """Yield the columns that are not nested in others; the schema lists them depth first."""
    elements = iter(schema[1:])
    for name, n_children in elements:
        yield name
        n_nested = n_children or 0
        while n_nested:
            n_nested += (next(elements)[1] or 0) - 1


def _check_same_kinds(kinds_by_file: Mapping[str, Mapping[str, str]]) -> None:
    (first, first_kinds), *others = kinds_by_file.items()
    for other, kinds in others:
        for name, kind in first_kinds.items():
            if kind != kinds[name] and {kind, kinds[name]} != {"integer", "number"}:
                raise InputError(
                    f"Column {name!r} is {kind} in {first!r} but {kinds[name]} in {other!r}. "
                    "Write the files with the same types."
                )


def _correct_kinds(
    connection: duckdb.DuckDBPyConnection,
    relation: duckdb.DuckDBPyRelation,
    types: Mapping[str, str],
    progress: Progress | None,
) -> duckdb.DuckDBPyRelation:
    as_text = ", ".join(
        f"CAST({q} AS VARCHAR) AS {q}" if name in types else q
        for name, q in ((name, _kinds.quote_name(name)) for name in relation.columns)
    )
    texts = relation.project(as_text)
    counts = [_kinds.count_misfits(name, kind, is_corrected=True) for name, kind in types.items()]
    query = texts.aggregate(", ".join(counts))
    with translated_errors():
        numbers = run_query(connection, query.fetchall, progress=progress)[0]
        for (name, kind), n_wrong in zip(types.items(), numbers, strict=True):
            if n_wrong:
                raise _misfit_error(connection, texts, name, kind)
    return texts.project(
        ", ".join(
            _kinds.cast_expression(name, types[name]) if name in types else _kinds.quote_name(name)
            for name in relation.columns
        )
    )


def _misfit_error(
    connection: duckdb.DuckDBPyConnection, texts: duckdb.DuckDBPyRelation, name: str, kind: str
) -> InputError:
    numbered = texts.project(f"{_kinds.quote_name(name)} AS value, row_number() OVER () AS line")
    wrong = numbered.filter(_kinds.misfit_condition("value", kind, is_corrected=True)).limit(1)
    value, row = run_query(connection, wrong.fetchall)[0]
    return InputError(
        f"Column {name!r} holds {value[:60]!r} in row {row}, but it was given the type {kind}. "
        "Correct the value, or give the column the type text."
    )


def kind_of_type(dtype: Any) -> str:
    """Return the kind of a column from its DuckDB type."""
    kind = str(dtype.id)
    if kind in {"tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger"}:
        return "integer"
    if kind in {"float", "double", "decimal", "hugeint", "uhugeint", "ubigint"}:
        return "number"
    if kind.startswith("timestamp"):
        return "timestamp"
    return {"varchar": "text", "enum": "text", "boolean": "boolean", "date": "date"}.get(
        kind, "other"
    )
