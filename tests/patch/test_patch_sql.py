"""`Patch.to_sql`: what it refuses, how it quotes, and that every dialect parses what is written."""

import math
import sys
from contextlib import suppress
from itertools import product

import duckdb
import pytest
import sqlglot
from patches import as_arrow, bins, category, check_rows, content_of, in_order, margin, number
from patches import reference as expected_of

from commod.exceptions import InputError
from commod.patch import Patch
from commod.patch.query import DIALECTS
from tables_of_cases import every_line

every_dialect = every_line("dialect", DIALECTS)
MANY = {f"town {i}": i / 64 for i in range(60)}
HOSTILE = ["O'Hare", "a\\", "\\'; DROP TABLE people; --", "two\nlines", "東京", ""]
SENTINEL = "__SQLGLOT__LB__"  # what sqlglot writes for a line break while it works


def full_patch(**options):
    columns = (
        number("age", 0.1, 30.0, -1.0),
        bins("income", [1.0, 2.5], [0.5, -0.5, 1e-300], 0.25),
        category("town", MANY, 0.125),
        category("street", dict.fromkeys(HOSTILE, 0.5)),
        category("member", {True: 0.5}),
        category("code", {1: 0.5, 2.5: -0.5}),
        margin(0.25),
    )
    return Patch(content_of(*columns, **options))


@every_dialect
def test_every_dialect_parses_what_is_written_under_a_head_that_names_the_patch(dialect):
    patch = full_patch(may_raise=False)
    text = patch.to_sql(dialect, "people")
    (tree,) = sqlglot.parse(text, read=dialect)
    assert isinstance(tree, sqlglot.exp.Select)
    names = [e.alias for e in tree.selects[1:]]
    assert names == ["commod_score", "commod_decision", "commod_changed", "commod_direction"]
    assert patch.digest in text.partition("SELECT")[0]
    assert ("not run" in text) == (dialect in ("snowflake", "bigquery", "tsql"))


def test_the_same_patch_is_the_same_text():
    assert full_patch().to_sql("spark", "people") == full_patch().to_sql("spark", "people")


def test_unknown_dialect_names_the_six():
    with pytest.raises(InputError, match=r"'oracle' is not known.*duckdb.*tsql"):
        full_patch().to_sql("oracle", "people")


NO_TABLES = [
    *["", " ", "people; DROP TABLE people", "people -- x", "people AS p", "people, others"],
    *["(SELECT 1)", "people WHERE 1 = 1", "read_csv('x')", "people UNION SELECT 1", "?", "a\0b"],
    None,
]


@every_dialect
def test_anything_but_a_name_of_a_table_is_refused(dialect):
    patch, accepted = Patch(content_of(number("age", 1.0))), []
    for table in NO_TABLES:
        with suppress(InputError):
            accepted.append((table, patch.to_sql(dialect, table)))
    assert accepted == []


@every_line(
    "dialect, table, written",
    [
        ("duckdb", 'a."b c".people', 'FROM a."b c".people AS'),
        ("postgres", '"we""ird"', 'FROM "we""ird" AS'),
        ("spark", "`my-catalog`.people", "FROM `my-catalog`.people AS"),
        ("bigquery", "`my-project`.data.people", "FROM `my-project`.data.people AS"),
        ("tsql", "[a b].[c]]d]", "FROM [a b].[c]]d] AS"),
        ("snowflake", 'DB.PUBLIC."people"', 'FROM DB.PUBLIC."people" AS'),
    ],
)
def test_a_table_is_written_as_it_came(dialect, table, written):
    assert written in Patch(content_of(number("age", 1.0))).to_sql(dialect, table)


def test_columns_say_what_the_table_calls_them():
    patch = Patch(content_of(number("age", -0.5), category("town", {"x": 1.0})))
    text = patch.to_sql("snowflake", "people", score="SCORE", columns={"age": "AGE"})
    assert '"_commod_row"."AGE"' in text
    assert '"_commod_row"."town"' in text
    assert '"_commod_row"."SCORE"' in text


@every_line(
    "columns, message",
    [
        ({"agee": "AGE"}, "'agee', which the patch does not read .it reads 'age'"),
        ({"age": ""}, "must be the name of a column"),
        ({"age": 3}, "must be the name of a column"),
        (["age"], "must map names"),
        ({"base margin": "x"}, "does not read"),
    ],
)
def test_columns_that_make_no_sense_are_refused(columns, message):
    patch = Patch(content_of(number("age", -0.5), margin(0.5)))
    with pytest.raises(InputError, match=message):
        patch.to_sql("duckdb", "people", columns=columns)


@every_line("dialect, text", product(DIALECTS, ["a\0b", "\ud800"]))
def test_text_that_no_query_can_hold_is_refused(dialect, text):
    with pytest.raises(InputError, match=r"NUL|Unicode|surrogate"):
        Patch(content_of(category("town", {"a": 1.0}))).to_sql(dialect, "people", score=text)


@every_dialect
def test_a_category_that_no_query_can_hold_is_refused(dialect):
    with pytest.raises(InputError, match="NUL"):
        Patch(content_of(category("town", {"a\0b": 1.0}))).to_sql(dialect, "people")


@every_dialect
def test_a_text_that_would_not_come_back_is_refused(dialect):
    patch = Patch(content_of(category("town", {SENTINEL: 1.0})))
    with pytest.raises(InputError, match="would be read back as something else"):
        patch.to_sql(dialect, "people")


def test_categories_of_several_types_are_refused():
    patch = Patch(content_of(category("town", {"1": 0.5, 1: -0.5})))
    with pytest.raises(InputError, match=r"categories of several types \(float, str\)"):
        patch.to_sql("duckdb", "people")


def test_a_name_that_postgres_would_cut_is_refused():
    with pytest.raises(InputError, match="longer than 63 bytes"):
        full_patch().to_sql("postgres", "people", prefix="p" * 60)


def run_in_duckdb(patch, table, **options):
    with duckdb.connect() as connection:
        connection.register("people", table)
        return connection.sql(patch.to_sql("duckdb", "people", **options)).to_arrow_table()


def test_names_and_prefix_may_be_those_of_our_work_columns():
    table = as_arrow({"id": [0, 1], "_commod_score": [0.2, 0.9], "_commod_value_0": [3.0, 0.0]})
    patch = Patch(content_of(number("_commod_value_0", -1.0)))
    found = run_in_duckdb(patch, table, score="_commod_score", prefix="_commod__commod_")
    wanted = expected_of(patch.content, table.rename_columns(["id", "score", "_commod_value_0"]))
    check_rows(patch.content, wanted, in_order(found, "_commod__commod_"), "_commod__commod_")
    assert found.column_names[:3] == table.column_names


def test_more_columns_than_one_expression_holds_are_added_in_order():
    names = [f"x{i}" for i in range(60)]
    patch = Patch(content_of(*(number(name, 0.1 * (-1) ** i) for i, name in enumerate(names))))
    table = as_arrow(
        {"id": [0, 1], "score": [0.2, 0.9], **{n: [i / 7, 1.0] for i, n in enumerate(names)}}
    )
    found = run_in_duckdb(patch, table)
    check_rows(patch.content, expected_of(patch.content, table), in_order(found))
    assert "_commod_sum_before" in patch.to_sql("tsql", "people")


def test_a_patch_without_columns_keeps_or_turns_every_decision():
    table = as_arrow({"id": [0, 1, 2], "score": [0.2, 0.5, 0.9]})
    for intercept in (1.0, -1.0):
        patch = Patch(content_of(intercept=intercept))
        check_rows(
            patch.content, expected_of(patch.content, table), in_order(run_in_duckdb(patch, table))
        )


@every_line(
    "column, kind",
    [
        (number("x", 1.0), "text"),
        (number("x", 1.0), "boolean"),
        (bins("x", [1.0], [0.0, 1.0]), "text"),
        (category("x", {1: 1.0, 2: 0.5}), "text"),
    ],
)
def test_duckdb_fails_on_a_column_of_another_type(column, kind):
    table = as_arrow(
        {"id": [0], "score": [0.5], "x": ["1"] if kind == "text" else [True]},
    )
    with pytest.raises(duckdb.BinderException):
        run_in_duckdb(Patch(content_of(column)), table)


@every_line(
    "column, kind",
    [
        (number("x", 1.0), "text"),
        (number("x", 1.0), "boolean"),
        (category("x", {"1": 1.0}), "integer"),
        (category("x", {1: 1.0}), "text"),
        (category("x", {True: 1.0}), "integer"),
    ],
)
def test_postgres_fails_on_a_column_of_another_type(column, kind, postgres):
    import psycopg

    with psycopg.connect(postgres) as connection:
        connection.execute(f"CREATE TEMP TABLE people (score double precision, x {kind})")
        with pytest.raises(psycopg.errors.Error):
            connection.execute(Patch(content_of(column)).to_sql("postgres", "people"))


def test_postgres_reads_numeric_real_and_padded_text(postgres):
    """NUMERIC scores, REAL numbers, CHAR(n) categories: what old tables are made of."""
    import psycopg

    columns = number("age", -0.1), category("town", {"a ": 9.0, "a": 0.5})
    patch = Patch(content_of(*columns, threshold=0.3, labels=(0.5, 2, 2)))
    rows = {"score": [0.3, 0.25, math.nan, 1.0], "age": [1.0, 99.0, 1.0, math.nan]}
    wanted = expected_of(patch.content, as_arrow({**rows, "town": ["a", "a", "a", None]}))
    with psycopg.connect(postgres) as connection:
        connection.execute("CREATE TEMP TABLE people (score numeric, age real, town char(4))")
        values = "(0.3, 1, 'a'), (0.25, 99, 'a'), ('NaN', 1, 'a'), (1, 'NaN', NULL)"
        connection.execute(f"INSERT INTO people VALUES {values}")
        found = connection.execute(patch.to_sql("postgres", "people")).fetchall()
    assert [row[4] for row in found] == wanted.decision
    scores = [math.nan if row[3] is None else row[3] for row in found]
    assert scores == pytest.approx(wanted.score.tolist(), nan_ok=True)


BACKSLASHES = [
    "a\\b", "\\", "\\\\", "\\'", "'\\", "\\'; DROP TABLE people; --", "a\\\nb", "\\n", "\\x41",
    "\\101", "\\u0041", "tab\t\\", "O'Hare", "${env:HOME}", "$${spark.master}", "two\nlines",
    "a\\\r\nb",
]  # fmt: skip
MEANT_OTHERWISE = ["ab", "", "\n", "A", "\\n'", "a\nb", "/root", "a\\\\b", "O\\'Hare", "\\\\n"]


def texts_table():
    texts = [*BACKSLASHES, *MEANT_OTHERWISE]
    return as_arrow({"id": list(range(len(texts))), "score": [0.25] * len(texts), "x": texts})


def texts_patch(label="yes"):
    points = {text: -2.0 - i for i, text in enumerate(BACKSLASHES)}
    return Patch(content_of(category("x", points), labels=("no", label, label)))


@pytest.mark.parametrize("setting", ["on", "off"])
@pytest.mark.parametrize("label", ["yes", "y\\e's"])
def test_backslashes_mean_themselves_in_postgres_whatever_its_setting(label, setting, postgres):
    import psycopg

    patch, table = texts_patch(label), texts_table()
    wanted = expected_of(patch.content, table)
    with psycopg.connect(postgres) as connection:
        connection.execute("CREATE TEMP TABLE people (id int, score double precision, x text)")
        rows = [tuple(row.values()) for row in table.to_pylist()]
        connection.cursor().executemany("INSERT INTO people VALUES (%s, %s, %s)", rows)
        connection.execute(f"SET standard_conforming_strings = {setting}")
        connection.execute("SET escape_string_warning = off")
        query = f"SELECT * FROM ({patch.to_sql('postgres', 'people')}) AS done ORDER BY id"
        found = connection.execute(query).fetchall()
    assert [row[5] for row in found] == wanted.changed.tolist()
    assert [row[4] for row in found] == wanted.decision


@pytest.mark.parametrize("setting", ["false", "true"])
def test_backslashes_and_variables_mean_themselves_in_spark(setting, spark):
    patch, table = texts_patch("y\\e's ${env:HOME}"), texts_table()
    wanted = expected_of(patch.content, table)
    rows = [tuple(row.values()) for row in table.to_pylist()]
    frame = spark.createDataFrame(rows, "id int, score double, x string")
    frame.createOrReplaceTempView("people_with_backslashes")
    name = "spark.sql.parser.escapedStringLiterals"
    spark.conf.set(name, setting)
    try:
        done = spark.sql(patch.to_sql("spark", "people_with_backslashes")).collect()
    finally:
        spark.conf.unset(name)
    done.sort(key=lambda row: row.id)
    assert [row.commod_changed for row in done] == wanted.changed.tolist()
    assert [row.commod_decision for row in done] == wanted.decision


def test_a_name_that_spark_would_replace_is_refused():
    with pytest.raises(InputError, match="replaces by the value of a variable"):
        Patch(content_of(number("${env:HOME}", 1.0))).to_sql("spark", "people")


def test_a_backslash_before_a_line_break_joins_no_lines_in_tsql():
    text = Patch(content_of(category("x", {"a\\\nb": 1.0}))).to_sql("tsql", "people")
    assert "N'a\\' + N'\nb|'" in text


def test_sql_without_sqlglot_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    with pytest.raises(InputError, match=r"pip install 'commod-debiasing\[sql\]'"):
        full_patch().to_sql("duckdb", "people")
