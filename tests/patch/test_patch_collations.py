"""Text columns that ignore case, accents or blanks get the decisions that pandas gives."""

import re

import duckdb
import pandas as pd
import pytest
from patches import as_arrow, category, check_rows, content_of, in_order
from patches import reference as expected_of

from commod import audit_frame
from commod.patch import Patch

TOWNS = ["Bonn", "bonn", "BONN", "Bönn", "bonn ", " bonn", "köln", "Köln", "koln", "", " ", None]
TOWNS += ["Koln", "bönn"]  # equal to a category but for an accent
FEW = {"bonn": -3.0, "Köln": -2.0, "": -4.0}
SEVERAL = {**FEW, **{f"town {i}": 0.5 for i in range(30)}}  # one lookup in a DuckDB frame
MANY = {**FEW, **{f"town {i}": 0.5 for i in range(60)}}  # a joined table in SQL
every_size = pytest.mark.parametrize("points", [FEW, SEVERAL, MANY], ids=["few", "several", "many"])


def people():
    scores = [0.2 + 0.05 * (i % 9) for i in range(len(TOWNS))]
    return as_arrow({"id": list(range(len(TOWNS))), "score": scores, "town": TOWNS})


def duckdb_table(kind, setting=""):
    connection = duckdb.connect()
    connection.execute(f"SET default_collation = '{setting}'")
    connection.register("source", people())
    connection.execute(f"CREATE TABLE people (id INTEGER, score DOUBLE, town {kind})")
    connection.execute("INSERT INTO people SELECT id, score, town FROM source")
    return connection


LISTED = ", ".join(f"'{town}'" for town in TOWNS if town is not None)
DUCKDB = [
    ("VARCHAR COLLATE NOCASE", ""),
    ("VARCHAR COLLATE NOACCENT", ""),
    ("VARCHAR COLLATE NOCASE.NOACCENT", ""),
    ("VARCHAR COLLATE de", ""),
    ("VARCHAR", "nocase.noaccent"),
    (f"ENUM ({LISTED})", "nocase"),
]


@every_size
@pytest.mark.parametrize(("kind", "setting"), DUCKDB, ids=range(len(DUCKDB)))
def test_duckdb_decides_as_pandas_whatever_the_collation(kind, setting, points):
    patch = Patch(content_of(category("town", points, -5.0)))
    wanted = expected_of(patch.content, people())
    with duckdb_table(kind, setting) as connection:
        relation = connection.table("people")
        edited = patch.apply(relation)
        assert edited.columns[:3] == relation.columns
        check_rows(patch.content, wanted, in_order(edited.to_arrow_table()))
        found = connection.sql(patch.to_sql("duckdb", "people")).to_arrow_table()
        check_rows(patch.content, wanted, in_order(found))


def test_duckdb_decides_as_pandas_where_a_category_holds_a_nul():
    points = {**SEVERAL, "a\0b": -9.0}
    patch = Patch(content_of(category("town", points, -5.0)))
    with duckdb_table("VARCHAR COLLATE NOCASE") as connection:
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


@pytest.mark.parametrize("points", [FEW, MANY], ids=["few", "many"])
@pytest.mark.parametrize(("kind", "preparation"), POSTGRES, ids=["case", "letters", "citext"])
def test_postgres_decides_as_pandas_whatever_the_collation(kind, preparation, points, postgres):
    import psycopg

    patch = Patch(content_of(category("town", points, -5.0)))
    wanted = expected_of(patch.content, people())
    with psycopg.connect(postgres) as connection:
        try:
            connection.execute(preparation)
        except psycopg.errors.Error as error:
            pytest.skip(f"This PostgreSQL cannot do it: {error}")
        connection.execute(
            f"CREATE TEMP TABLE people (id int, score double precision, town {kind})"
        )
        rows = [tuple(row.values()) for row in people().to_pylist()]
        connection.cursor().executemany("INSERT INTO people VALUES (%s, %s, %s)", rows)
        ignores = "SELECT count(*) > 1 FROM people WHERE town = 'bonn'"
        assert connection.execute(ignores).fetchone() == (True,)
        query = patch.to_sql("postgres", "people")
        found = connection.execute(f"SELECT * FROM ({query}) AS done ORDER BY id").fetchall()
        connection.rollback()
    assert [row[5] for row in found] == wanted.changed.tolist()
    assert [row[4] for row in found] == wanted.decision


@pytest.mark.parametrize("points", [FEW, MANY], ids=["few", "many"])
@pytest.mark.parametrize("collation", ["UTF8_LCASE", "UNICODE_CI_AI", "UTF8_BINARY_RTRIM"])
def test_spark_decides_as_pandas_whatever_the_collation(collation, points, spark):
    patch = Patch(content_of(category("town", points, -5.0)))
    wanted = expected_of(patch.content, people())
    rows = [tuple(row.values()) for row in people().to_pylist()]
    frame = spark.createDataFrame(rows, "id int, score double, town string")
    frame = frame.selectExpr("id", "score", f"town COLLATE {collation} AS town")
    frame.createOrReplaceTempView("collated_people")
    for done in (patch.apply(frame), spark.sql(patch.to_sql("spark", "collated_people"))):
        rows = sorted(done.collect(), key=lambda row: row.id)
        assert [row.commod_changed for row in rows] == wanted.changed.tolist()
        assert [row.commod_decision for row in rows] == wanted.decision
    assert patch.apply(frame).schema["town"] == frame.schema["town"]  # the column itself stays


@pytest.mark.parametrize(
    ("dialect", "comparison"),
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


@pytest.mark.parametrize(("kind", "setting"), [DUCKDB[2], DUCKDB[4]], ids=["column", "setting"])
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
