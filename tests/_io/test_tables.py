"""Tables on disk: hostile files end in one sentence, and no write leaves half a file."""

import csv
import gzip
import math
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commod._io import files as _files
from commod._io import queries as _queries
from commod._io.files import private_folder, replacement_file, write_whole
from commod._io.queries import run_query
from commod._io.sources import check_names
from commod._io.tables import (
    TABLE_SUFFIXES,
    check_output,
    open_tables,
    read_frame,
    write_table,
)
from commod.exceptions import InputError
from tables_of_cases import every_line


@pytest.fixture
def put(tmp_path):
    """Write a file into the test's folder and return its path as text."""

    def write(content, name="t.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return write


@pytest.mark.parametrize(("n_files", "ending"), [(1, "0.csv'"), (3, "0.csv' and 2 more")])
def test_a_table_is_called_by_its_first_file(put, n_files, ending):
    with open_tables([put("a,b\n1,2\n", f"{i}.csv") for i in range(n_files)]) as table:
        assert table.display_name.endswith(ending)


def frame_of(*paths, **options):
    with open_tables(paths, **options) as table:
        return read_frame(table)


def kinds_of(*paths, **options):
    with open_tables(paths, **options) as table:
        return dict(table.kinds)


# ---------------------------------------------------------------------------------------------
# What the values become


def test_kinds_and_dtypes_of_a_plain_file(put):
    path = put(
        "n,x,gap,t,b,bgap,d,s\n"
        "1,1.5,1,a,true,True,2026-01-31,2026-01-31 10:00:00\n"
        "-2,2,,b,FALSE,,2026-02-01,2026-01-31T10:00\n"
    )
    frame = frame_of(path)
    assert kinds_of(path) == {
        "n": "integer",
        "x": "number",
        "gap": "integer",
        "t": "text",
        "b": "boolean",
        "bgap": "boolean",
        "d": "date",
        "s": "timestamp",
    }
    assert frame["n"].dtype == np.int64 and frame["n"].tolist() == [1, -2]
    assert frame["x"].dtype == np.float64
    assert frame["gap"].dtype == np.float64 and math.isnan(frame["gap"][1])
    assert frame["b"].dtype == bool
    assert frame["bgap"].dtype == object and frame["bgap"].tolist() == [True, None]
    assert frame["d"].tolist() == [pd.Timestamp("2026-01-31"), pd.Timestamp("2026-02-01")]
    assert frame["t"].tolist() == ["a", "b"]


def test_only_the_columns_asked_for_are_read(put):
    with open_tables([put("a,b,c\n1,2,3\n")]) as table:
        assert list(read_frame(table, ["c", "a"]).columns) == ["c", "a"]
        with pytest.raises(InputError, match=r"has no column 'z' \(columns: a, b, c\)"):
            read_frame(table, ["z"])


def test_a_word_for_missing_is_missing_among_numbers(put):
    words = ["NA", "N/A", "NaN", "nan", "null", "NULL", "None", "", " "]
    columns = [f"c{i}" for i in range(len(words))]
    rows = [columns, ["1"] * len(words), words, ["2.5"] * len(words)]
    frame = frame_of(put("".join(",".join([*row, "x"]) + "\n" for row in rows)))
    wrong = [
        word
        for word, name in zip(words, columns, strict=True)
        if frame[name].dtype != np.float64 or frame[name].isna().tolist() != [False, True, False]
    ]
    assert wrong == []


def test_a_word_for_missing_is_text_among_texts(put):
    frame = frame_of(put("country,n\nNA,1\nDE,2\n,3\nNull,4\n"))
    assert frame["country"].tolist()[:2] == ["NA", "DE"]
    assert frame["country"].isna().tolist() == [False, False, True, False]


def test_a_column_without_values_is_a_column_of_missing_numbers(put):
    frame = frame_of(put("a,b,c\n1,,NA\n2,,\n"))
    assert frame["b"].isna().all() and frame["b"].dtype == np.float64
    assert frame["c"].isna().all() and frame["c"].dtype == np.float64


def test_the_kind_is_found_from_the_last_row_too(put):
    rows = "\n".join(["1"] * 25_000)
    assert kinds_of(put(f"a\n{rows}\nx\n")) == {"a": "text"}
    assert kinds_of(put(f"a\n{rows}\n1.5\n")) == {"a": "number"}
    assert kinds_of(put("a,b\n" + "\n".join(["1,"] * 30_000) + "\n1,2020-01-01\n"))["b"] == "date"


def test_what_would_come_back_different_is_text(put):
    values = ["00501", "12345678901234567890123", "1_000", "0x1A", "1,5", "1 0"]
    columns = {f"c{i}": [value, "12"] for i, value in enumerate(values)}
    path = put(pd.DataFrame(columns).to_csv(index=False, quoting=csv.QUOTE_ALL))
    assert frame_of(path).to_dict("list") == columns


def test_infinity_is_a_number_and_no_crash(put):
    frame = frame_of(put("a\n1\ninf\n-Infinity\n"))
    assert frame["a"].tolist() == [1.0, math.inf, -math.inf]


def test_a_day_that_does_not_exist_is_text(put):
    assert kinds_of(put("d\n2026-02-31\n2026-01-01\n")) == {"d": "text"}


@every_line(
    "kind, values, expected",
    [
        ("text", ["1", "2"], ["1", "2"]),
        ("number", ["01", "2"], [1.0, 2.0]),
        ("integer", ["007", "12.0"], [7, 12]),
        ("boolean", ["0", "yes"], [False, True]),
    ],
)
def test_the_user_corrects_a_kind(put, kind, values, expected):
    frame = frame_of(put("a\n" + "\n".join(values) + "\n"), types={"a": kind})
    assert frame["a"].tolist() == expected


def test_a_value_that_does_not_fit_its_given_kind_is_named_with_its_line(put):
    path = put('a,b\n1,"x\ny"\n2,z\noops,w\n')
    with pytest.raises(InputError, match=r"holds 'oops' in column 'a', line 5, .* type number"):
        open_tables([path], types={"a": "number"})


def test_a_correction_must_be_of_a_column_and_to_a_kind(put):
    path = put("a\n1\n")
    with pytest.raises(InputError, match=r"'z' is given, but .* no such column \(columns: a\)"):
        open_tables([path], types={"z": "text"})
    with pytest.raises(InputError, match=r"'float' .* one of integer, number, boolean, text"):
        open_tables([path], types={"a": "float"})


field = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)


@settings(max_examples=5)
@given(st.lists(st.tuples(field, field), min_size=1, max_size=20))
def test_text_comes_back_as_it_was_written(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerows([("a", "b"), *rows])
    frame = frame_of(str(path), types={"a": "text", "b": "text"})
    read = [tuple("" if v is None or v != v else v for v in row) for row in frame.values.tolist()]
    assert read == rows


@settings(max_examples=4)
@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=60))
def test_numbers_come_back_to_the_last_bit(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    pd.DataFrame({"a": values}).to_csv(path, index=False)
    assert frame_of(str(path))["a"].tolist() == values


# ---------------------------------------------------------------------------------------------
# Hostile text files


RAGGED = "a,b\n1,2\n\n"


@every_line(
    "content, message",
    [
        ("", r"is empty \(0 bytes\)"),
        ("a,b\n", "has a header but no rows"),
        ("a,b", "has a header but no rows"),
        ("\n\na,b\n1,2\n", "begins with an empty line"),
        ("a;b\n1;2\n", r"one column, 'a;b', .* a semicolon does. Pass --csv delimiter=';'"),
        ("a\tb\n1\t2\n", r"a tab does. Pass --csv delimiter=tab"),
        ("a|b\n1|2\n", r"Pass --csv delimiter='\|'"),
        (RAGGED + "3\n", "has 1 fields in line 4, but its header names 2 columns"),
        (RAGGED + "3,4,5\n", "has 3 fields in line 4, but its header names 2 columns"),
        (RAGGED + "3", "has 1 fields in line 4"),
        ('a,b\n1,"x\n3,4\n', "opens a quote in the row that begins in line 2 and never closes it"),
        ('a,"b\n1,2\n', "opens a quote in the row that begins in line 1"),
        ('a,b\n1,2\n3,"4"z\n', "text after a closing quote in the row that begins in line 3"),
        ("a,a\n1,2\n", "has two columns 'a'"),
        ("a,A\n1,2\n", "'a' and 'A', which differ only in upper and lower case"),
        ("a,,c\n1,2,3\n", "Column 2 of .* has no name"),
        (b"a,b\n1,x\n2,\xe9\n", "not UTF-8: byte 11, in line 3, is 0xe9.*--csv encoding=latin-1"),
        (b"a,\xe9\n1,x\n", "not UTF-8: byte 3, in line 1"),
        (b"a,b\n1,\xe2\x82", "ends inside a character"),
        ("a,b\n1,é\n".encode("utf-16"), "begins like text in UTF-16.*--csv encoding=utf-16"),
        ("a,b\n1,é\n".encode("utf-16-le"), "NUL byte"),
        (b"a,b\n1,x\0y\n", "byte 8, in line 2, is a NUL byte"),
        (b"\0a,b\n1,x\n", "byte 1, in line 1, is a NUL byte"),
        (b"a,b\n1," + b"x" * 3_000_000 + b"\n", r"more than 2,000,000 characters \(line 2\)"),
        (b"a,b\r\n1,2\n3,4\r\n", "mixes line ends"),
        (b"PAR1\x15\x04", "is a Parquet file, not text"),
        (b"PK\x03\x04junk", "zip or Excel file"),
        (gzip.compress(b"a,b\n1,2\n", mtime=0), "is a gzip file"),
        (",".join(f"c{i}" for i in range(10_000)) + "\n", "has 10,000 columns, but at most 2,000"),
    ],
)
def test_a_hostile_text_file_is_refused_in_one_sentence(put, content, message):
    with pytest.raises(InputError, match=f"(?s){message}") as caught:
        open_tables([put(content)])
    assert "\n" not in str(caught.value)


def test_a_ragged_row_far_down_is_named_by_its_line(put):
    good = "".join(f'{i},"x\n{i}"\n' for i in range(40_000))
    with pytest.raises(InputError, match="has 1 fields in line 80002"):
        open_tables([put(f"a,b\n{good}7\n{good}")])


def test_many_columns_work(put):
    check_names([f"c{i}" for i in range(2_000)], "the largest table")
    names = [f"c{i}" for i in range(80)]
    frame = frame_of(put(",".join(names) + "\n" + ",".join("1" * 80) + "\n"))
    assert frame.shape == (1, 80)


@every_line(
    "content",
    [
        b"\xef\xbb\xbfa,b\n1,x\n2,y\n",
        b"a,b\r\n1,x\r\n2,y\r\n",
        b"a,b\r1,x\r2,y\r",
        b"a,b\n1,x\n\n2,y",
        b'"a","b"\n"1","x"\n"2","y"\n',
        b" a , b \n1,x\n2,y\n",
    ],
)
def test_ways_to_write_the_same_table(put, content):
    frame = frame_of(put(content))
    assert frame.to_dict("list") == {"a": [1, 2], "b": ["x", "y"]}


def test_quoted_line_ends_and_quotes_stay(put):
    frame = frame_of(put('a,b\r\n1,"x\r\ny"\r\n2,"q""q"\r\n'))
    assert frame["b"].tolist() == ["x\r\ny", 'q"q']


@every_line(
    "name, content, options",
    [
        ("t.tsv", "a\tb\n1\tx,y\n", {}),
        ("t.txt", "a\tb\n1\tx,y\n", {}),
        ("t.txt", 'a,b\n1,"x,y"\n', {}),
        ("t.CSV", 'a,b\n1,"x,y"\n', {}),
        ("t.csv", "a;b\n1;x,y\n", {"delimiter": ";"}),
        ("t.csv", "a\tb\n1\tx,y\n", {"delimiter": "tab"}),
        ("t.csv.gz", gzip.compress(b'a,b\n1,"x,y"\n', mtime=0), {}),
        ("t.CSV.GZ", gzip.compress(b'a,b\n1,"x,y"\n', mtime=0), {}),
        ("t.tsv.gz", gzip.compress(b"a\tb\n", mtime=0) + gzip.compress(b"1\tx,y\n", mtime=0), {}),
    ],
)
def test_delimiters_and_gzip(put, name, content, options):
    frame = frame_of(put(content, name), **options)
    assert frame.to_dict("list") == {"a": [1], "b": ["x,y"]}


@every_line("delimiter", ["", ";;", '"', "\n"])
def test_what_cannot_delimit_is_refused(put, delimiter):
    with pytest.raises(InputError, match="cannot separate fields"):
        open_tables([put("a\n1\n")], delimiter=delimiter)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-8-sig"])
def test_encodings(put, encoding):
    path = put("ä,b\n1,é\n".encode(encoding))
    assert frame_of(path, encoding=encoding).to_dict("list") == {"ä": [1], "b": ["é"]}
    packed = put(gzip.compress("ä,b\n1,é\n".encode(encoding), mtime=0), "t.csv.gz")
    assert frame_of(packed, encoding=encoding).to_dict("list") == {"ä": [1], "b": ["é"]}


@every_line(
    "encoding, message",
    [("klingon", "'klingon' is unknown"), ("base64", "not an encoding"), ("ascii", "not text in")],
)
def test_an_encoding_that_does_not_fit(put, encoding, message):
    with pytest.raises(InputError, match=message):
        open_tables([put("a\né\n")], encoding=encoding)


PACKED = gzip.compress(b"a,b\n" + os.urandom(50_000).hex().encode() + b",1\n")


@pytest.mark.parametrize(
    "content",
    [b"a,b\n1,2\n", PACKED[:20_000], PACKED[:-4], PACKED[:-8] + b"abcd" + PACKED[-4:]],
    ids=["no gzip", "cut", "end cut", "wrong checksum"],
)
@pytest.mark.parametrize("encoding", [None, "latin-1"])
def test_a_broken_gzip_file(put, content, encoding):
    with pytest.raises(InputError, match="not a whole gzip file"):
        open_tables([put(content, "t.csv.gz")], encoding=encoding)


# ---------------------------------------------------------------------------------------------
# Paths


def test_files_of_a_pattern_are_read_one_after_the_other_in_sorted_order(put, tmp_path):
    for i in (10, 2, 1):
        put(f"a,b\n{i},x\n{i},y\n", f"part-{i:02}.csv")
    assert frame_of(f"{tmp_path}/part-*.csv")["a"].tolist() == [1, 1, 2, 2, 10, 10]
    paths = [f"{tmp_path}/part-10.csv", f"{tmp_path}/part-01.csv"]
    with open_tables(paths) as table:
        assert table.files == tuple(paths) and table.n_rows == 4
        assert read_frame(table)["a"].tolist() == [10, 10, 1, 1]


def test_the_kinds_hold_over_all_files(put):
    paths = [put("a\n1\n", "1.csv"), put("a\nx\n", "2.csv")]
    assert frame_of(*paths)["a"].tolist() == ["1", "x"]


@every_line(
    "other, message",
    [
        ("a,c\n1,2\n", "only the first has 'b'"),
        ("a,b,c\n1,2,3\n", "only the second has 'c'"),
        ("b,a\n1,2\n", "in another order"),
    ],
)
def test_files_with_different_columns_are_refused(put, other, message):
    paths = [put("a,b\n1,2\n", "1.csv"), put(other, "2.csv")]
    with pytest.raises(InputError, match=f"1.csv' and .*2.csv' have different columns.*{message}"):
        open_tables(paths)


def test_strange_file_names_mean_that_file(put):
    names = [
        "it's.csv",
        "100%.csv",
        "a b.csv",
        "o[1].csv",
        "a*b.csv",
        "a?.csv",
        'q".csv',
        "é漢.csv",
    ]
    names += ["$1.csv", "x;--.csv", "{a,b}.csv", "back\\slash.csv", "-.csv"]
    put("a\n99\n", "o1.csv"), put("a\n99\n", "aXb.csv"), put("a\n99\n", "a1.csv")
    paths = [put(f"a\n{i}\n", name) for i, name in enumerate(names)]
    assert frame_of(*paths)["a"].tolist() == list(range(len(names)))
    outs = [Path(path).with_name("out-" + name) for path, name in zip(paths, names, strict=True)]
    with open_tables([put("a\n7\n", "seven.csv")]) as table:
        for out in outs:
            write_table(table, out, force=False)
    assert [out.read_text() for out in outs] == ["a\n7\n"] * len(names)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_a_file_name_that_is_no_utf8(tmp_path):
    name = os.fsencode(tmp_path) + b"/\xff.csv"
    with open(name, "wb") as file:
        file.write(b"a\n1\n")
    assert frame_of(os.fsdecode(name))["a"].tolist() == [1]


def test_a_folder_named_like_a_partition_adds_no_column(tmp_path):
    folder = tmp_path / "year=2020"
    folder.mkdir()
    (folder / "t.csv").write_text("a\n1\n")
    pd.DataFrame({"a": [1]}).to_parquet(folder / "t.parquet")
    assert list(frame_of(str(folder / "t.csv")).columns) == ["a"]
    assert list(frame_of(str(folder / "t.parquet")).columns) == ["a"]


def test_a_folder_stands_for_the_parquet_files_below_it(tmp_path):
    """Names of folders hold values of a column, as text; files with _ or . in front are no data."""
    for year in ("2020", "02021"):
        (tmp_path / f"year={year}").mkdir()
        pd.DataFrame({"a": [int(year)]}).to_parquet(tmp_path / f"year={year}" / "t.parquet")
    (tmp_path / "_log").mkdir()
    pd.DataFrame({"b": [1]}).to_parquet(tmp_path / "_log" / "t.parquet")
    (tmp_path / ".t.parquet").write_bytes(b"")
    frame = frame_of(str(tmp_path)).sort_values("a")
    assert frame.to_dict("list") == {"a": [2020, 2021], "year": ["2020", "02021"]}


def test_folders_that_name_different_columns_are_refused(tmp_path):
    for folder in ("month=1", "year=2020"):
        (tmp_path / folder).mkdir()
        pd.DataFrame({"a": [1]}).to_parquet(tmp_path / folder / "t.parquet")
    with pytest.raises(InputError, match="do not name the same columns"):
        frame_of(str(tmp_path))


def test_what_is_no_file_is_refused(tmp_path, put):
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "gone.csv").symlink_to(tmp_path / "nothing")
    empty = tmp_path / "empty"
    empty.mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s.csv"))
    for path, message in [
        (tmp_path / "none.csv", "There is no file"),
        (tmp_path / "no*.csv", "No file matches"),
        (tmp_path / "pipe.csv", "pipe, socket or device"),
        (tmp_path / "s.csv", "pipe, socket or device"),
        ("/dev/null", "pipe, socket or device"),
        (tmp_path / "gone.csv", "points to a file that is gone"),
        (tmp_path, r"is a folder; name its files, such as .*\*\.csv"),
        (empty, r"is a folder; name its files, such as .*\*\.parquet"),
        ("s3://bucket/t.csv", "not a local file"),
        (put("x", "t.xlsx"), "Expected .csv, .tsv or .txt"),
    ]:
        with pytest.raises(InputError, match=message):
            open_tables([str(path)])
    with pytest.raises(InputError, match="No table was named"):
        open_tables([])


def test_a_file_named_twice_or_two_formats_at_once(put):
    path = put("a\n1\n")
    with pytest.raises(InputError, match="is named twice"):
        open_tables([path, path])
    with pytest.raises(InputError, match="different formats"):
        open_tables([path, put("x", "t.parquet")])


def test_a_file_that_may_not_be_read(put, monkeypatch):
    path = put("a\n1\n")

    def refuse(*args, **options):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("builtins.open", refuse)  # root may read everything
    with pytest.raises(InputError, match="cannot be opened: Permission denied"):
        open_tables([path])


def test_without_duckdb_the_extra_is_named(put, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(InputError, match=r"pip install 'commod-debiasing\[files\]'"):
        open_tables([put("a\n1\n")])


def test_a_memory_limit_that_is_none(put):
    with pytest.raises(InputError, match="memory limit 'much' cannot be used"):
        open_tables([put("a\n1\n")], memory_limit="much")


def test_nothing_stays_in_the_folder_for_temporaries(put, tmp_path, monkeypatch):
    folder = tmp_path / "temporaries"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    with open_tables([put("a\né\n".encode("latin-1"))], encoding="latin-1"):
        assert len(list(folder.iterdir())) == 1
    assert not list(folder.iterdir())
    with pytest.raises(InputError):
        open_tables([put("a,b\né\n".encode("latin-1"))], encoding="latin-1")
    assert not list(folder.iterdir())


# ---------------------------------------------------------------------------------------------
# Parquet


@pytest.fixture
def parquet(tmp_path):
    def write(frame, name="t.parquet"):
        pd.DataFrame(frame).to_parquet(tmp_path / name, index=False)
        return str(tmp_path / name)

    return write


def test_parquet_keeps_its_types(parquet):
    frame = pd.DataFrame(
        {
            "i": np.array([1, 2], dtype=np.int8),
            "f": np.array([1.5, np.nan], dtype=np.float32),
            "gap": pd.array([1, None], dtype="Int32"),
            "t": ["00501", None],
            "b": [True, False],
            "bgap": pd.array([True, None], dtype="boolean"),
            "c": pd.Categorical(["x", "y"]),
            "d": pd.to_datetime(["2026-01-01", None]),
        }
    )
    path = parquet(frame)
    read = frame_of(path)
    assert [str(t) for t in read.dtypes.iloc[:3]] == ["int64", "float64", "float64"]
    assert read["t"].tolist()[0] == "00501" and read["t"].isna()[1]
    assert read["b"].dtype == bool and read["bgap"].tolist() == [True, None]
    assert read["c"].tolist() == ["x", "y"]
    assert list(kinds_of(path).values()) == [
        "integer", "number", "integer", "text", "boolean", "boolean", "text", "timestamp",
    ]  # fmt: skip


def test_parquet_kinds_can_be_corrected(parquet):
    path = parquet({"zip": [501, 2134], "x": ["1.5", "NA"], "f": [0, 1], "other": [1, 2]})
    frame = frame_of(path, types={"zip": "text", "x": "number", "f": "boolean"})
    assert frame["zip"].tolist() == ["501", "2134"]
    assert frame["x"].tolist()[0] == 1.5 and math.isnan(frame["x"][1])
    assert frame["f"].tolist() == [False, True] and frame["other"].tolist() == [1, 2]
    path = parquet({"x": ["1.5", "oops"]})
    with pytest.raises(InputError, match=r"Column 'x' holds 'oops' in row 2, .* type number"):
        open_tables([path], types={"x": "number"})


def test_parquet_files_with_nested_columns_open(tmp_path):
    path = tmp_path / "t.parquet"
    duckdb.execute(f"COPY (SELECT {{'p': 1, 'q': [2]}} AS s, 1 AS a, [1] AS l) TO '{path}'")
    assert kinds_of(str(path)) == {"s": "other", "a": "integer", "l": "other"}


@every_line("damage", [lambda b: b[:-20], lambda b: b[:200], lambda b: b"a,b\n1,2\n"])
def test_a_damaged_parquet_file(parquet, damage):
    path = parquet({"a": range(1000)})
    Path(path).write_bytes(damage(Path(path).read_bytes()))
    with pytest.raises(InputError, match="is not a whole Parquet file") as caught:
        open_tables([path])
    assert "\n" not in str(caught.value)


def test_a_parquet_file_damaged_inside_is_one_sentence_when_it_is_read(parquet):
    path = parquet({"a": np.random.default_rng(0).random(5000)})
    content = bytearray(Path(path).read_bytes())
    content[4:30] = b"\xff" * 26
    Path(path).write_bytes(content)
    with pytest.raises(InputError, match="cannot be read"):
        frame_of(path)


def test_parquet_without_rows_and_with_a_delimiter(parquet):
    with pytest.raises(InputError, match="has a header but no rows"):
        open_tables([parquet({"a": []})])
    with pytest.raises(InputError, match="Parquet files have none"):
        open_tables([parquet({"a": [1]})], delimiter=";")


def test_parquet_names_that_differ_in_case_only(parquet):
    with pytest.raises(InputError, match="'a' and 'A', which differ only in"):
        open_tables([parquet({"a": [1], "A": [2]})])


def test_parquet_files_must_fit_together(parquet):
    whole, gaps = parquet({"a": [1, 2]}, "1.parquet"), parquet({"a": [1.5, None]}, "2.parquet")
    assert frame_of(whole, gaps)["a"].tolist()[:3] == [1.0, 2.0, 1.5]
    with pytest.raises(InputError, match=r"'a' is integer in .*1.parquet' but text in"):
        open_tables([whole, parquet({"a": ["x"]}, "3.parquet")])
    with pytest.raises(InputError, match="different columns"):
        open_tables([whole, parquet({"b": [1]}, "4.parquet")])


# ---------------------------------------------------------------------------------------------
# Writing


def big_table(path, n):
    duckdb.execute(
        f"COPY (SELECT i, hash(i) AS h, i % 7 = 0 AS b, 'x' || i AS t FROM range({n}) r(i)) TO "
        f"'{path}' (ROW_GROUP_SIZE 2048)"
    )
    return str(path)


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".tsv", ".csv.gz"])
def test_the_output_has_the_rows_of_the_input_in_their_order(tmp_path, suffix):
    n = 20_000 if suffix == ".parquet" else 5_000  # row groups of 2,048
    source = big_table(tmp_path / "in.parquet", n)
    with open_tables([source], types={"h": "text"}) as table:
        texts = [f"x{i}" for i in range(100)]  # DuckDB makes a join of these, which loses the order
        lazy = nw.from_native(table.relation).with_columns(
            j=nw.col("i") * 2,
            k=nw.col("t").replace_strict(
                texts, list(range(100)), default=-1, return_dtype=nw.Int64
            ),
        )
        out = write_table(
            table.with_relation(lazy.to_native()), tmp_path / f"out{suffix}", force=False
        )
    frame = frame_of(str(out), types={"h": "text"})
    assert np.array_equal(frame["i"], np.arange(n))
    assert np.array_equal(frame["j"], 2 * frame["i"])
    assert np.array_equal(frame["k"], np.where(frame["i"] < 100, frame["i"], -1))
    assert frame["t"].iloc[-1] == f"x{n - 1}" and frame["b"].dtype == bool
    assert [p.name for p in tmp_path.iterdir()].count(out.name) == len(list(tmp_path.iterdir())) - 1


def test_missing_values_and_quotes_survive_a_csv_file(put, tmp_path):
    path = put('a,t,b\n1,"x,""y"" \n z",true\nNA,,\n')
    with open_tables([path]) as table:
        write_table(table, tmp_path / "out.csv", force=False)
        pd.testing.assert_frame_equal(frame_of(str(tmp_path / "out.csv")), read_frame(table))


def test_progress_goes_from_nothing_to_everything(tmp_path, monkeypatch):
    monkeypatch.setattr("commod._io.queries.POLL", 0.002)
    shares = []
    with open_tables([big_table(tmp_path / "in.parquet", 60_000)]) as table:
        write_table(table, tmp_path / "out.csv", force=False, progress=shares.append)
    assert shares == sorted(shares) and shares[-1] == 1.0 and len(shares) > 1


def test_reported_progress_does_not_fall_when_that_of_duckdb_does(monkeypatch):
    monkeypatch.setattr("commod._io.queries.POLL", 0.002)
    shown, shares, enough = iter([30.0, -1.0, 10.0, *[50.0] * 10_000]), [], threading.Event()
    connection = SimpleNamespace(query_progress=lambda: next(shown), interrupt=enough.set)

    def report(share):
        shares.append(share)
        if len(shares) == 4:
            enough.set()

    run_query(connection, enough.wait, progress=report)
    assert shares[:4] == [0.3, 0.3, 0.3, 0.5] and shares[-1] == 1.0


def test_check_output_refuses_before_any_work(tmp_path, put, monkeypatch):
    path = put("a\n1\n")
    os.mkfifo(tmp_path / "pipe.csv")
    for target, message in [
        (path, "is already there. Pass --force"),
        (tmp_path, "is a folder; name a file in it"),
        (tmp_path / "none" / "t.csv", "There is no folder"),
        (tmp_path / "t.json", "does not say in which format.*.parquet"),
        (tmp_path / "pipe.csv", "pipe, socket or device"),
        ("/dev/null", "does not say in which format"),
    ]:
        with pytest.raises(InputError, match=message):
            check_output(target, False, suffixes=TABLE_SUFFIXES)
    with pytest.raises(InputError, match="pipe, socket or device"):
        check_output("/dev/null", True)
    assert check_output(path, True) == Path(path)
    monkeypatch.setattr(os, "access", lambda *args: False)
    with pytest.raises(InputError, match="may not be written to"):
        check_output(tmp_path / "new.csv", False)


def test_an_input_is_never_replaced_under_any_name(put, tmp_path):
    path = put("a\n1\n")
    (tmp_path / "link.csv").symlink_to(path)
    os.link(path, tmp_path / "hard.csv")
    with open_tables([path]) as table:
        for target in (path, tmp_path / "link.csv", tmp_path / "hard.csv"):
            with pytest.raises(InputError, match="one of the files being read"):
                write_table(table, target, force=True)


def folder_of(path):
    return sorted(p.name for p in Path(path).parent.iterdir())


def test_a_query_that_fails_leaves_the_earlier_file(put, tmp_path):
    path = put("a\n1\nx\n")
    out = tmp_path / "out.csv"
    out.write_text("earlier")
    with open_tables([path]) as table:
        broken = table.with_relation(table.relation.project("CAST(a AS INTEGER) AS a"))
        with pytest.raises(InputError, match=r"could not be written .* nothing was changed"):
            write_table(broken, out, force=True)
    assert out.read_text() == "earlier" and folder_of(out) == ["out.csv", "t.csv"]


def test_a_full_disk_is_one_sentence(put, tmp_path, monkeypatch):
    out = tmp_path / "out.csv"

    def full(*args, **options):
        raise duckdb.IOException('IO Error: Could not write file "x": No space left on device')

    with open_tables([put("a\n1\n")]) as table:
        monkeypatch.setattr("commod._io.tables.run_query", full)
        with pytest.raises(InputError, match=r"The disk is full: .*out.csv"):
            write_table(table, out, force=False)
    assert folder_of(out) == ["t.csv"]


def started(code, *args):
    """Start Python on `code` with the arguments in `sys.argv`; return once it prints a line."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout.readline().strip() == b"writing"
    return process


SLOW_WRITE = """
    import signal, sys
    from commod._io.tables import open_tables, write_table

    def progress(share):
        if not done:
            print("writing"), done.append(1)

    if sys.argv[3:] == ["handles SIGTERM"]:
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    done = []
    with open_tables([sys.argv[1]]) as table:
        endless = table.relation.project("a").cross(
            table.connection.sql("SELECT range AS i FROM range(100000000000)")
        )
        write_table(table.with_relation(endless), sys.argv[2], force=True, progress=progress)
"""


@pytest.mark.parametrize(
    ("number", "handler", "exit_code"),
    [
        (signal.SIGINT, (), -signal.SIGINT),
        (signal.SIGTERM, ("handles SIGTERM",), 128 + signal.SIGTERM),
        (signal.SIGKILL, (), -signal.SIGKILL),
    ],
    ids=["interrupted", "ended with a handler", "killed"],
)
@pytest.mark.usefixtures("heard_interrupts")
def test_a_run_that_is_ended_leaves_the_earlier_file(put, tmp_path, number, handler, exit_code):
    folder, out = tmp_path / "out", tmp_path / "out" / "t.csv"
    folder.mkdir()
    out.write_text("earlier")
    process = started(SLOW_WRITE, put("a\n1\n2\n"), out, *handler)
    assert len(folder_of(out)) == 2  # the temporary file is there, beside the earlier file
    process.send_signal(number)
    process.stdout.close()
    assert process.wait() == exit_code
    assert out.read_text() == "earlier"
    if number == signal.SIGKILL:  # or another signal that nobody handles
        # Python could not remove the temporary file: the next write does.
        (left,) = set(folder.iterdir()) - {out}
        assert left.name.startswith(".t.csv.")
        os.utime(left, (0, 0))
        write_whole(out, b"later")
    assert folder_of(out) == ["t.csv"]


def test_writing_installs_no_signal_handler(tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    with replacement_file(tmp_path / "t.csv"), private_folder():
        assert signal.getsignal(signal.SIGTERM) is before
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_write_that_raises_leaves_no_temporary_file(tmp_path, error):
    target = tmp_path / "t.csv"
    target.write_text("earlier")
    with pytest.raises(error), replacement_file(target), private_folder() as folder:
        raise error
    assert target.read_text() == "earlier" and folder_of(target) == ["t.csv"]
    assert not folder.exists()


def test_a_disk_limit_met_while_writing_leaves_nothing(put, tmp_path):
    out = tmp_path / "out.csv"
    code = """
        import resource, signal, sys
        from commod._io.tables import open_tables, write_table
        from commod.exceptions import InputError

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        print("writing")
        with open_tables([sys.argv[1]]) as table:
            many = table.connection.sql("SELECT range AS i FROM range(1000000)")
            try:
                write_table(table.with_relation(many), sys.argv[2], force=True)
            except InputError as error:
                sys.exit(0 if "could not be written" in str(error) else 3)
    """
    process = started(code, put("a\n1\n"), out)
    process.stdout.close()
    assert process.wait() == 0
    assert folder_of(out) == ["t.csv"]


def test_a_temporary_in_use_is_not_taken_for_a_stale_one(tmp_path):
    target = tmp_path / "t.csv"
    with replacement_file(target) as temporary:
        os.utime(temporary, (0, 0))
        write_whole(target, b"other")
        assert temporary.exists()
        temporary.write_bytes(b"mine")
    assert target.read_bytes() == b"mine" and folder_of(target) == ["t.csv"]


def test_other_files_are_never_taken_for_stale_ones(tmp_path):
    names = [".t.csv.part", ".t.csv.0123456789abcdef", ".u.csv.0123456789abcdef.part", "t.csv.part"]
    for name in names:
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (0, 0))
    write_whole(tmp_path / "t.csv", b"x")
    assert folder_of(tmp_path / "t.csv") == sorted([*names, "t.csv"])


def test_a_fresh_temporary_is_left_to_its_process(tmp_path):
    fresh = tmp_path / ".t.csv.0123456789abcdef.part"
    fresh.touch()
    write_whole(tmp_path / "t.csv", b"x")
    assert fresh.exists()


def test_without_locks_nothing_is_called_stale(tmp_path, monkeypatch):
    monkeypatch.setattr(_files, "fcntl", None)
    old = tmp_path / ".t.csv.0123456789abcdef.part"
    old.touch()
    os.utime(old, (0, 0))
    write_whole(tmp_path / "t.csv", b"x")
    assert old.exists() and (tmp_path / "t.csv").read_bytes() == b"x"


def test_a_private_file_stays_private_and_a_link_a_link(tmp_path):
    real = tmp_path / "real.csv"
    real.write_text("earlier")
    real.chmod(0o600)
    (tmp_path / "link.csv").symlink_to(real)
    write_whole(tmp_path / "link.csv", b"later")
    assert (tmp_path / "link.csv").is_symlink() and real.read_bytes() == b"later"
    assert real.stat().st_mode & 0o777 == 0o600


# ---------------------------------------------------------------------------------------------
# Running a query


def test_an_interrupted_query_stops():
    connection = duckdb.connect()
    endless = connection.sql(
        "SELECT sum(a.range * b.range) FROM range(1000000) a, range(1000000) b"
    )

    def interrupt(share):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_query(connection, endless.fetchall, progress=interrupt)
    assert connection.sql("SELECT 1").fetchall() == [(1,)]


def test_run_query_passes_results_and_errors_on():
    connection = duckdb.connect()
    assert run_query(connection, connection.sql("SELECT 42").fetchall) == [(42,)]
    with pytest.raises(duckdb.ConversionException):
        run_query(connection, connection.sql("SELECT CAST('x' AS INTEGER)").fetchall)
    assert (
        _queries.error_sentence(duckdb.IOException("IO Error: No such thing.\nmore"))
        == "No such thing"
    )


def test_importing_the_rooms_loads_no_heavy_package():
    code = (
        "import sys, commod._io.tables; "
        "sys.exit(bool({'duckdb', 'pandas', 'pyarrow', 'onnxruntime'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


# -- private folders of killed processes ----------------------------------------------------------

KILLED_READER = """
    import sys, tempfile, time
    tempfile.tempdir = sys.argv[2]
    from commod._io.tables import open_tables

    with open_tables([sys.argv[1]], encoding="latin-1"):
        print("writing", flush=True)
        time.sleep(60)
"""


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def private_folder_names(folder):
    with private_folder():
        pass
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="no locks on Windows")
def test_the_copy_of_a_killed_process_is_removed_by_the_next_and_no_sooner(put, temporary):
    process = started(KILLED_READER, put("a\nsecret\n"), temporary)
    (left,) = temporary.iterdir()
    assert b"secret" in b"".join(f.read_bytes() for f in left.rglob("*.csv"))
    assert left.stat().st_mode & 0o777 == 0o700
    assert private_folder_names(temporary) == [left.name]  # its owner lives
    process.kill()
    process.stdout.close()
    process.wait()
    assert left.is_dir()
    assert private_folder_names(temporary) == []


@contextmanager
def limited_to(seconds):
    """Fail where the block takes longer, also where it waits in a system call."""

    def fail(number, frame):
        raise AssertionError(f"still busy after {seconds} seconds")

    earlier = signal.signal(signal.SIGALRM, fail)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, earlier)


@pytest.mark.skipif(sys.platform == "win32", reason="no locks on Windows")
def test_folders_and_links_that_are_not_ours_stay(temporary, tmp_path):
    victim = tmp_path / "victim"
    victim.mkdir(mode=0o700)
    (victim / "data.csv").write_text("a")
    (victim / ".commod-lock").write_text("")
    (temporary / "commod-link").symlink_to(victim)
    for name, mode, lock in (("plain", 0o700, False), ("shared", 0o755, True)):
        folder = temporary / f"commod-{name}"
        folder.mkdir()
        folder.chmod(mode)
        (folder / "data.csv").write_text("a")
        if lock:
            (folder / ".commod-lock").write_text("")
    inside = temporary / "commod-linked-lock"
    inside.mkdir(mode=0o700)
    (inside / ".commod-lock").symlink_to(victim / ".commod-lock")
    (temporary / "commod-file").write_text("")
    os.mkfifo(temporary / "commod-pipe", 0o700)
    names = ["commod-file", "commod-link", "commod-linked-lock", "commod-pipe", "commod-plain"]
    with limited_to(10):  # whoever opens the pipe waits for ever
        assert private_folder_names(temporary) == [*names, "commod-shared"]
    assert (victim / "data.csv").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="no locks on Windows")
def test_what_a_stale_folder_links_to_stays(temporary, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("a")
    stale = temporary / "commod-stale"
    stale.mkdir(mode=0o700)
    (stale / ".commod-lock").write_text("")
    (stale / "0.csv").symlink_to(table)
    (stale / "folder").symlink_to(tmp_path)
    (stale / "spill").mkdir()
    (stale / "spill" / "part").write_text("a")
    assert private_folder_names(temporary) == []
    assert table.read_text() == "a"
