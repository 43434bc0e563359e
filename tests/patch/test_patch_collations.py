"""Text columns that ignore case, accents or blanks get the decisions that pandas gives."""

import re

import duckdb
import pandas as pd
import pytest
from patches import OUTPUTS, as_arrow, category, check_rows, content_of, in_order
from patches import reference as expected_of

from commod import audit_frame
from commod.patch import Patch
from tables_of_cases import every_line

TOWNS = ["Bonn", "bonn", "BONN", "Bönn", "bonn ", " bonn", "köln", "Köln", "koln", "", " ", None]
TOWNS += ["Koln", "bönn"]  # equal to a category but for an accent
FEW = {"bonn": -3.0, "Köln": -2.0, "": -4.0}
SEVERAL = {**FEW, **{f"town {i}": 0.5 for i in range(30)}}  # one lookup in a DuckDB frame
MANY = {**FEW, **{f"town {i}": 0.5 for i in range(60)}}  # a joined table in SQL


def people():
    scores = [0.2 + 0.05 * (i % 9) for i in range(len(TOWNS))]
    return as_arrow({"id": list(range(len(TOWNS))), "score": scores, "town": TOWNS})


def patch_and_rows(n_kinds, sizes):
    """Return a patch that reads the towns once for each kind of column and size, and its rows.

    Each column has points of its own. So any two towns that an engine confuses in any column give
    other scores.
    """
    columns, n = [], n_kinds * len(sizes)
    for i in range(n):
        share = (1 + i / n) / n
        points = {town: share * p for town, p in sizes[i % len(sizes)].items()}
        columns.append(category(f"town_{i}", points, -5.0 * share))
    table = people()
    for column in columns:
        table = table.append_column(column.name, table["town"])
    patch = Patch(content_of(*columns, labels=(False, True, False)))
    return patch, table.drop_columns("town")


LISTED = ", ".join(f"'{town}'" for town in TOWNS if town is not None)
COLLATED = [f"VARCHAR COLLATE {name}" for name in ("NOCASE", "NOACCENT", "NOCASE.NOACCENT", "de")]
DUCKDB = [(COLLATED, ""), (["VARCHAR", f"ENUM ({LISTED})"], "nocase.noaccent")]


@pytest.mark.parametrize(("kinds", "setting"), DUCKDB, ids=["columns", "setting"])
def test_duckdb_decides_as_pandas_whatever_the_collation(kinds, setting):
    sizes = [SEVERAL, MANY] if setting else [FEW, SEVERAL, MANY]
    patch, table = patch_and_rows(len(kinds), sizes)
    wanted = expected_of(patch.content, table)
    with duckdb.connect() as connection:
        connection.execute(f"SET default_collation = '{setting}'")
        connection.register("source", table)
        fields = [f"town_{i} {kinds[i // len(sizes)]}" for i in range(len(kinds) * len(sizes))]
        connection.execute(f"CREATE TABLE people (id INTEGER, score DOUBLE, {', '.join(fields)})")
        connection.execute("INSERT INTO people SELECT * FROM source")
        relation = connection.table("people")
        edited = patch.apply(relation)
        assert edited.columns[: len(relation.columns)] == relation.columns
        check_rows(patch.content, wanted, in_order(edited.to_arrow_table()))
        found = connection.sql(patch.to_sql("duckdb", "people")).to_arrow_table()
        check_rows(patch.content, wanted, in_order(found))


def test_duckdb_decides_as_pandas_where_a_category_holds_a_nul():
    points = {**SEVERAL, "a\0b": -9.0}
    patch = Patch(content_of(category("town", points, -5.0)))
    with duckdb.connect() as connection:
        connection.register("source", people())
        connection.execute(
            "CREATE TABLE people (id INTEGER, score DOUBLE, town VARCHAR COLLATE NOCASE)"
        )
        connection.execute("INSERT INTO people SELECT * FROM source")
        connection.execute("INSERT INTO people VALUES (99, 0.2, 'A' || chr(0) || 'b')")
        edited = in_order(patch.apply(connection.table("people")).to_arrow_table())
    assert edited["commod_changed"][-1] is False
    wanted = expected_of(patch.content, people())
    assert edited["commod_changed"][:-1] == wanted.changed.tolist()


POSTGRES = [
    ("text COLLATE any_case", "CREATE COLLATION any_case (provider = icu, deterministic = false, "
     "locale = 'und-u-ks-level2')"),
    ("varchar(20) COLLATE base_letters", "CREATE COLLATION base_letters (provider = icu, "
     "deterministic = false, locale = 'und-u-ks-level1')"),
    ("citext", "CREATE EXTENSION IF NOT EXISTS citext"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "preparation"), POSTGRES, ids=["case", "letters", "citext"])
def test_postgres_decides_as_pandas_whatever_the_collation(kind, preparation, postgres):
    import psycopg

    patch, table = patch_and_rows(1, [FEW, MANY])
    wanted = expected_of(patch.content, table)
    with psycopg.connect(postgres) as connection:
        try:
            connection.execute(preparation)
        except psycopg.errors.Error as error:
            pytest.skip(f"This PostgreSQL cannot do it: {error}")
        connection.execute(
            "CREATE TEMP TABLE people "
            f"(id int, score double precision, town_0 {kind}, town_1 {kind})"
        )
        rows = [tuple(row.values()) for row in table.to_pylist()]
        connection.cursor().executemany("INSERT INTO people VALUES (%s, %s, %s, %s)", rows)
        ignores = "SELECT count(*) > 1 FROM people WHERE town_0 = 'bonn'"
        assert connection.execute(ignores).fetchone() == (True,)
        query = patch.to_sql("postgres", "people")
        found = connection.execute(f"SELECT * FROM ({query}) AS done ORDER BY id").fetchall()
        connection.rollback()
    check_found(patch, wanted, [row[4:] for row in found])


def test_spark_decides_as_pandas_whatever_the_collation(spark):
    collations = ["UTF8_LCASE", "UNICODE_CI_AI", "UTF8_BINARY_RTRIM"]
    patch, table = patch_and_rows(len(collations), [FEW, MANY])
    wanted = expected_of(patch.content, table)
    rows = [tuple(row.values()) for row in table.to_pylist()]
    names = table.column_names[2:]
    types = "".join(f", {name} string" for name in names)
    frame = spark.createDataFrame(rows, f"id int, score double{types}")
    collated = [f"{name} COLLATE {collations[i // 2]} AS {name}" for i, name in enumerate(names)]
    frame = frame.selectExpr("id", "score", *collated)
    frame.createOrReplaceTempView("collated_people")
    edited = patch.apply(frame)
    assert edited.schema[: len(frame.columns)] == frame.schema[:]  # the columns themselves stay
    for done in (edited, spark.sql(patch.to_sql("spark", "collated_people"))):
        rows = sorted(done.collect(), key=lambda row: row.id)
        check_found(patch, wanted, [row[len(frame.columns) :] for row in rows])


def check_found(patch, wanted, rows):
    names = [f"commod_{name}" for name in OUTPUTS]
    check_rows(patch.content, wanted, dict(zip(names, zip(*rows, strict=True), strict=True)))


@every_line(
    "dialect, comparison",
    [
        ("duckdb", 'ENCODE("_commod_row"."town")'),
        ("postgres", 'COLLATE "C"'),
        ("spark", "COLLATE UTF8_BINARY"),
        ("snowflake", 'COLLATE("_commod_row"."town", \'utf8\')'),
        ("bigquery", "COLLATE(`_commod_row`.`town`, '')"),
        ("tsql", "COLLATE Latin1_General_BIN2"),
    ],
)
def test_every_dialect_states_how_text_is_compared(dialect, comparison):
    few, many = (Patch(content_of(category("town", points))) for points in (FEW, MANY))
    assert few.to_sql(dialect, "people").count(comparison) == 1
    # a joined table has columns of its own, whose collation is the database's default
    joined = many.to_sql(dialect, "people")
    compared = re.search(r"\bON\s+(.*?)\s+=\s", joined, re.DOTALL).group(1)
    assert dialect == "duckdb" or "COLLATE" in compared
    assert dialect != "duckdb" or joined.count("ENCODE('") == len(MANY)


def test_blanks_at_the_end_count_in_tsql():
    """SQL Server ignores them, so a mark follows them, in the column as in the category."""
    text = " ".join(
        Patch(content_of(category("town", {"a ": 1.0}))).to_sql("tsql", "people").split()
    )
    assert "COLLATE Latin1_General_BIN2 ) + N'|' AS [_commod_value_0]" in text
    assert "WHEN N'a |' THEN 1.0e0" in text


# ---------------------------------------------------------------------------------------------
# Audits of frames


def decided():
    groups = ["Red", "red", "RED", "réd"]
    rows = [(groups[i % 4], i % 3 == 0, (i // 4) % 3 == 0) for i in range(240)]
    table = pd.DataFrame(rows, columns=["group", "before", "after"])
    labels = {True: "Yes", False: "yes"}
    return table.assign(before=table["before"].map(labels), after=table["after"].map(labels))


def audit_of(frame):
    return audit_frame(
        frame, before="before", after="after", sensitive_features="group", pos_label="Yes"
    )


def same(one, other):
    assert sorted(one.groups, key=lambda g: g.name) == sorted(other.groups, key=lambda g: g.name)
    assert [f.after for f in one.fairness] == [f.after for f in other.fairness]


@pytest.mark.parametrize(
    ("kind", "setting"),
    [("VARCHAR COLLATE NOCASE.NOACCENT", ""), ("VARCHAR", "nocase.noaccent")],
    ids=["column", "setting"],
)
def test_an_audit_of_duckdb_keeps_groups_and_labels_apart(kind, setting):
    wanted = audit_of(decided())
    with duckdb.connect() as connection:
        connection.execute(f"SET default_collation = '{setting}'")
        connection.register("source", decided())
        names = ", ".join(f'"{name}" {kind}' for name in ("group", "before", "after"))
        connection.execute(f"CREATE TABLE people ({names})")
        connection.execute("INSERT INTO people SELECT * FROM source")
        same(audit_of(connection.table("people")), wanted)


def test_an_audit_of_spark_keeps_groups_and_labels_apart(spark):
    rows = list(decided().itertuples(index=False, name=None))
    frame = spark.createDataFrame(rows, "`group` string, before string, after string")
    collated = frame.selectExpr(*(f"`{c}` COLLATE UNICODE_CI_AI AS `{c}`" for c in frame.columns))
    same(audit_of(collated), audit_of(decided()))
