"""One patch, many engines: the same decisions on every row, and the same scores.

The reference is plain Python (`patches.reference`). What runs here: NumPy, pandas, polars, pyarrow,
DuckDB and Spark frames, SQL in DuckDB, Spark and PostgreSQL, and onnxruntime.
"""

import math

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from engines import (
    FRAMES,
    IN_MEMORY,
    ONNX_FRAMES,
    Case,
    check_engine,
    check_onnx,
    every_engine,
)
from patches import (
    as_arrow,
    bins,
    category,
    check_scores,
    content_of,
    distance,
    distance_bins,
    margin,
    number,
)

from commod._data.columns import Column, read_columns
from commod.patch import Patch
from commod.scorecard import (
    DISTANCE_COLUMN,
    MARGIN_COLUMN,
    decide,
    distances,
    edited_scores,
    margins,
)

# PySpark leaves its sockets to the garbage collector, which comes when it likes
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")

N_ROWS = 2_000
N_TOWNS = 300
THRESHOLD = 0.3

# ---------------------------------------------------------------------------------------------
# A large table, and some small ones


def large_content(rng):
    towns = {f"town {i}": float(p) for i, p in enumerate(rng.integers(-64, 65, N_TOWNS) / 64)}
    towns |= {"to zero": -0.5, "to one": 0.5, "": 0.25, "O'Hare\\\n": -0.75, "Zürich 東京": 0.125}
    edges = np.arange(60) / 8
    return content_of(
        number("age", float(rng.normal(0, 0.01)), if_missing=41.5, missing=-0.25),
        bins("income", edges.tolist(), (rng.integers(-64, 65, 61) / 64).tolist(), 0.375),
        category("town", towns, -0.125),
        category("member", {True: 0.25, False: -0.5}, 0.5),
        category("colour", {"A": 0.25, "a": -0.25, "a ": 0.5, "true": -1.0}),
        category("code", {1: -0.5, 2: 0.25, 40_000: 1.0}, 0.125),
        number("debt", float(rng.normal(0, 0.1)), if_missing=float(rng.normal())),
        intercept=0.5,
        threshold=THRESHOLD,
    )


def sprinkle(rng, values, odd, share=0.1):
    """Return a list in which some values have been replaced by odd ones."""
    values = list(values)
    for i in np.flatnonzero(rng.random(len(values)) < share):
        values[i] = odd[rng.integers(len(odd))]
    return values


def large_table(rng):
    cut = THRESHOLD
    nowhere = [None, math.nan, -0.1, 1.1, math.inf, -math.inf, -1e-300]
    beside = [0.0, 1.0, cut, math.nextafter(cut, 0), math.nextafter(cut, 1), 1e-300, 1 - 1e-16]
    missing = [None, math.nan, math.inf, -math.inf]
    columns = {
        "id": list(range(N_ROWS)),
        "score": sprinkle(rng, rng.random(N_ROWS).tolist(), nowhere + beside),
        "age": sprinkle(rng, rng.integers(-90, 90, N_ROWS).astype(float).tolist(), [*missing, 0.0]),
        "income": sprinkle(rng, (rng.integers(-16, 70, N_ROWS) / 8).tolist(), [*missing, 1e300]),
        "town": sprinkle(
            rng,
            [f"town {i}" for i in rng.integers(N_TOWNS, size=N_ROWS)],
            [None, "unseen", "TOWN 1", "town 1 ", "", "O'Hare\\\n", "Zürich 東京", "to zero"],
        ),
        "member": sprinkle(rng, (rng.random(N_ROWS) < 0.5).tolist(), [None]),
        "colour": sprinkle(rng, ["A", "a", "a ", "A ", "true"] * (N_ROWS // 5), [None, ""]),
        "code": sprinkle(rng, rng.integers(0, 4, N_ROWS).tolist(), [None, 40_000]),
        "debt": sprinkle(rng, rng.normal(size=N_ROWS).tolist(), [*missing, -1e300, 5e-324]),
    }
    _plant_exact_ratios(columns)
    types = {name: pa.float64() for name in ("score", "age", "income", "debt")}
    return as_arrow(columns, **types)


def _plant_exact_ratios(columns):
    """Make r exactly 0 in rows 0 to 3 and exactly 1 in rows 4 to 7, at scores of every sort."""
    for i, score in enumerate([0.0, 1.0, THRESHOLD, 0.9] * 2):
        plain = {"age": 0.0, "income": 1e300, "member": True, "colour": "none", "code": 3}
        town = "to zero" if i < 4 else "to one"
        for name, value in {**plain, "score": score, "town": town, "debt": 0.0}.items():
            columns[name][i] = value


@pytest.fixture(scope="module")
def large():
    rng = np.random.default_rng(0)
    content = large_content(rng)
    last = content.ratio.columns[1].bins[-1].points  # of income in rows 0 to 7
    content = content_of(*content.ratio.columns, intercept=0.5 - 0.25 - last, threshold=THRESHOLD)
    return Case(content, large_table(rng))


def small_table(rng, n_rows=400):
    columns = {
        "id": list(range(n_rows)),
        "score": sprinkle(rng, rng.random(n_rows).tolist(), [None, math.nan, 2.0, 0.7, 0.0, 1.0]),
        "age": sprinkle(rng, rng.integers(20, 60, n_rows).astype(float).tolist(), [None]),
        "group": sprinkle(rng, ["x", "y", "z", "Y"] * (n_rows // 4), [None]),
    }
    return as_arrow(columns, score=pa.float64(), age=pa.float64())


SMALL_COLUMNS = (number("age", -0.05, 40.0), category("group", {"x": 0.75, "y": -1.5}, 0.25))
SMALL = {
    "gains only, text labels": {
        "may_lower": False,
        "labels": ("deny", "it's granted", "it's granted"),
        "intercept": 1.5,
        "score_edit": "changed_only",
    },
    "margin, boolean labels": {"labels": (False, True, False), "with_margin": True},
}


def small_case(name):
    options = {"threshold": 0.7, "intercept": 1.75, **SMALL[name]}
    columns = SMALL_COLUMNS
    if options.pop("with_margin", False):
        columns = (SMALL_COLUMNS[0], margin(0.3), SMALL_COLUMNS[1], distance(-0.25))
    content = content_of(*columns, **options)
    return Case(content, small_table(np.random.default_rng(1)))


# ---------------------------------------------------------------------------------------------
# The same everywhere


def test_the_large_table_holds_what_it_should(large):
    ratio = large.expected.ratio
    assert (ratio[:4] == 0).all()
    assert (ratio[4:8] == 1).all()
    changed = large.expected.changed.mean()
    assert 0.2 < changed < 0.8
    assert {"gain", "loss", "kept", None} == set(large.expected.direction)


@every_engine
def test_every_engine_decides_alike_on_a_large_table(large, engine, request):
    check_engine(large, engine, request)


def finite(table):
    """Return a table whose infinite numbers are missing: an update refuses them."""
    frame = table.to_pandas()
    return frame.replace([math.inf, -math.inf], math.nan)


@pytest.mark.parametrize("name", ["large", "margin, boolean labels"])
def test_numpy_decides_alike(name, request):
    case = request.getfixturevalue("large") if name == "large" else small_case(name)
    threshold, card = case.content.base.threshold, case.patch.scorecard
    scores = np.array(case.table["score"].to_pylist(), dtype=float)
    known = (scores >= 0) & (scores <= 1)
    columns = read_columns(finite(case.table).drop(columns="score")[known], card.encoding.kinds)
    z = margins(scores[known], threshold)
    columns = [_as_categories(c) if c.name == "code" else c for c in columns]
    far = Column(DISTANCE_COLUMN, "numeric", distances(scores[known], threshold))
    ratio = card.ratio([*columns, Column(MARGIN_COLUMN, "numeric", z), far])
    np.testing.assert_allclose(ratio, case.expected.ratio[known], rtol=0, atol=1e-14)
    decisions = decide(scores[known], ratio, threshold)
    labels = [label for label in case.expected.decision if label is not None]
    assert decisions.tolist() == [label == case.content.labels.positive for label in labels]
    edited = np.full(len(scores), np.nan)
    edited[known] = edited_scores(scores[known], ratio, threshold)
    check_scores(case.content, case.expected, edited)


def _as_categories(column):
    """Return numbers as codes: pandas reads whole numbers where the patch has categories."""
    values = sorted(set(column.values[~np.isnan(column.values)]))
    codes = np.searchsorted(values, np.where(column.is_missing(), values[0], column.values))
    return Column(column.name, "category", np.where(column.is_missing(), -1, codes), tuple(values))


@pytest.mark.parametrize("frame", ONNX_FRAMES)
def test_onnxruntime_decides_alike_on_a_large_table(large, frame):
    check_onnx(large, frame)


# ---------------------------------------------------------------------------------------------
# Odd names and values

ODD_NAMES = [
    'a"b',
    "select",
    "naïve 東京",
    "x.y",
    "back\\slash",
    "o'clock",
    "`tick`",
    "[x]",
    " ",
    "_commod_score",
    "_commod_row",
    "column:score",
    "value_1",
    "commod_",
    "$1",
    "new\nline",
]
ODD_TEXTS = [
    "",
    " ",
    "A",
    "a",
    "a ",
    "a\\",
    "\\n",
    "'",
    "''",
    '"',
    "%s",
    "--",
    "\n",
    "é",
    "e\u0301",
]
ODD_TEXTS += ["true", "1", "nan", "None", "NULL", "😀", "\x1f", ";", "$$", "{x}", "\t"]
NUMBERS = [0.0, -0.0, 1.0, 2.0, 0.1, -3.5, 1e-300, 5e-324, 1e100, 1e300, -1e308]
MISSING = [None, math.nan, math.inf, -math.inf]
CODES = [0.0, 1.0, 2.5, 3.0, -7.0, 1e20]
LABELS = [(0, 1, 1), (0.5, 2, 0.5), ("no", "yes'\\", "no"), (False, True, True), (-1, 1, -1)]
GATES = [{}, {"may_raise": False}, {"may_lower": False}]


class Draw:
    """Random choices of a seed."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def one(self, values):
        return values[self.rng.integers(len(values))]

    def some(self, values, n):
        return [self.one(values) for _ in range(n)]

    def points(self, n):
        """Return points in sixteenths or any: sums of the former are exact."""
        exact = (self.rng.integers(-32, 33, n) / 16).tolist()
        return self.one([exact, self.rng.uniform(-2, 2, n).tolist()])

    def maybe_points(self):
        return self.one([None, *self.points(2)])


def random_column(draw, kind, name):
    """Return a column of a kind and values for it, odd ones and those in no bin or category."""
    if kind == "number":
        (points,), fill = draw.points(1), float(draw.rng.uniform(-10, 10))
        centre = draw.one([0.0, 3.5])
        return number(name, points, fill, draw.maybe_points(), centre), NUMBERS + MISSING
    if kind == "bins":
        inside = sorted({*NUMBERS} - {1e300, -1e308})
        edges = sorted(draw.rng.choice(inside, draw.rng.integers(1, 5), replace=False).tolist())
        return bins(
            name, edges, draw.points(len(edges) + 1), draw.maybe_points()
        ), NUMBERS + MISSING
    keys, odd = {
        "text": (ODD_TEXTS, [None]),
        "many texts": ([*ODD_TEXTS, *(f"k{i}" for i in range(60))], [None]),
        "boolean": ([True, False], [None]),
        "code": (CODES, [None, math.nan]),
    }[kind]
    n = draw.rng.integers(1, len(keys)) if kind != "many texts" else len(keys) - 3
    chosen = [keys[i] for i in draw.rng.permutation(len(keys))[:n]]
    points = draw.points(n)
    return category(name, dict(zip(chosen, points, strict=True)), draw.maybe_points()), keys + odd


KINDS = ["number", "bins", "text", "many texts", "boolean", "code"]
OF_THE_SCORE = [[], [margin(0.25)], [distance(-3.0)], [distance_bins([0.125], [0.0, -0.75])]]


def random_case(seed, n_rows=60):
    """Return a random patch with a column of each kind, and a table in which all sorts meet."""
    draw = Draw(seed)
    names = draw.rng.permutation(ODD_NAMES).tolist()
    drawn = [random_column(draw, kind, names.pop()) for kind in KINDS]
    threshold = [0.5, 0.3, 0.41, 0.9, 1e-6][seed % 5]
    has_evidence = seed % 3 == 2
    columns = [column for column, _ in drawn]
    if not has_evidence:
        columns[draw.rng.integers(6) : 0] = OF_THE_SCORE[seed % 4]
    content = content_of(
        *columns,
        intercept=draw.points(1)[0],
        threshold=threshold,
        labels=LABELS[seed % 5],
        max_margin=draw.one([None, 0.25]),
        score_edit=["all", "changed_only"][seed % 2],
        evidence=(0.75, draw.one([0.0, 0.5, 1.0]), 0.25) if has_evidence else None,
        **GATES[seed // 2 % 3],
    )
    odd = [0.0, 1.0, threshold, threshold - 0.25, 0.999, 1e-12, None, math.nan, 1.5, -0.5]
    scores = sprinkle(draw.rng, draw.rng.random(n_rows), odd, share=0.3)
    table = {"id": list(range(n_rows)), "score": scores}
    table |= {column.name: draw.some(values, n_rows) for column, values in drawn}
    types = {column.name: _arrow_type(column) for column, _ in drawn}
    return Case(content, as_arrow(table, score=pa.float64(), **types))


def _arrow_type(column):
    kinds = {type(c.value) for c in getattr(column, "categories", ())}
    return pa.string() if str in kinds else pa.bool_() if bool in kinds else pa.float64()


N_CASES = 8


@pytest.fixture(scope="module")
def random_cases():
    return [random_case(seed) for seed in range(N_CASES)]


def test_random_cases_hold_what_they_should(random_cases):
    contents = [case.content for case in random_cases]
    assert {content.asked.direction for content in contents} == {"any", "gains_only", "losses_only"}
    assert {content.ratio.max_margin for content in contents} == {None, 0.25}
    reads = {column.reads for content in contents for column in content.ratio.columns}
    assert reads == {"number", "bins", "category", "margin", "distance", "distance_bins"}
    assert {content.ratio.evidence is None for content in contents} == {True, False}
    assert all(case.expected.changed.any() for case in random_cases)
    moves = {move for case in random_cases for move in case.expected.direction}
    assert moves == {"gain", "loss", "kept", None}


@pytest.mark.parametrize("engine", IN_MEMORY)
def test_random_patches_are_applied_alike(engine, random_cases, request):
    """pandas takes all of them, and every other engine half of them, in turn."""
    first, step = (0, 1) if engine == "pandas" else (IN_MEMORY.index(engine) % 2, 2)
    for case in random_cases[first::step]:
        check_engine(case, engine, request)


def test_random_patches_are_applied_alike_in_onnxruntime(random_cases):
    for i, case in enumerate(random_cases[1::2]):
        check_onnx(case, ONNX_FRAMES[i % 3])


def odd_case(names):
    """One table with all odd names and texts at once: for engines that are slow to start.

    Gate, labels, margin, distance and the way to edit scores are others than in the large table.
    """
    rng = np.random.default_rng(2)
    n_rows = 8 * len(ODD_TEXTS)
    columns = [
        category(name, {t: float(p) for t, p in zip(ODD_TEXTS, rng.normal(size=99), strict=False)})
        for name in names[:-4]
    ]
    table = {name: rng.choice([*ODD_TEXTS, "other"], n_rows).tolist() for name in names[:-4]}
    columns += [number(name, 1e-10) for name in names[-4:]]
    small = [0.0, 5e-324, -1e-310, 1e300, math.nan]
    table |= {name: rng.choice(small, n_rows).tolist() for name in names[-4:]}
    scores = sprinkle(rng, rng.random(n_rows), [0.0, 1.0, 0.7, 0.5, math.nan, 2.0])
    table |= {"id": list(range(n_rows)), "score": scores}
    columns[2:2] = [margin(0.3), distance_bins([0.125], [0.0, -0.5])]
    content = content_of(
        *columns,
        may_lower=False,
        labels=("deny", "it's granted", "it's granted"),
        threshold=0.7,
        max_margin=0.4,
        score_edit="changed_only",
    )
    return Case(content, as_arrow(table))


@pytest.mark.parametrize("engine", [name for name in FRAMES if name not in IN_MEMORY])
def test_odd_names_and_values_are_read_alike_in_databases(engine, request):
    names = [name for name in ODD_NAMES if name.strip()]
    if engine == "Spark":  # narwhals takes x.y for a field of a column x
        names = [name for name in names if "." not in name and "`" not in name]
    check_engine(odd_case(names), engine, request)


# ---------------------------------------------------------------------------------------------
# More rows than memory


def test_duckdb_applies_a_patch_to_more_rows_than_memory_holds(tmp_path):
    n_cycles = 16_000
    n_rows = 21 * n_cycles  # x and town come together in 21 ways
    content = content_of(number("x", -2.0), category("town", {"a": 0.5, "b": -0.25}))
    with duckdb.connect(config={"threads": 2, "memory_limit": "45MB"}) as connection:
        connection.execute("SET preserve_insertion_order = false")
        folder, edited = tmp_path / "people", tmp_path / "edited.parquet"
        connection.execute(
            f"""COPY (
                SELECT i AS id, (i % 1000 + 0.5) / 1000 AS score, i % 7 / 4.0::DOUBLE AS x,
                    chr((97 + i % 3)::INT) AS town, hash(i) AS a,
                    repeat(md5(i::TEXT), 6) AS b
                FROM range({n_rows}) AS r(i)
            ) TO '{folder}' (FORMAT parquet, PER_THREAD_OUTPUT, COMPRESSION uncompressed,
                ROW_GROUP_SIZE 10_000)"""
        )
        size = sum(file.stat().st_size for file in folder.iterdir())
        assert size > 55e6
        people = connection.read_parquet(f"{folder}/*.parquet")
        Patch(content).apply(people).write_parquet(str(edited), row_group_size=10_000)
        found = connection.sql(
            f"SELECT count(*), sum(commod_changed::INT) FROM '{edited}'"
        ).fetchall()
    # r = 1 − 2·x + points, x in quarters of 0 to 6 and three towns, all equally often
    rule = {"a": 0.5, "b": -0.25, "c": 0.0}
    expected = sum(1 - 2 * (i % 7 / 4) + rule["abc"[i % 3]] < 0 for i in range(21))
    assert found == [(n_rows, n_cycles * expected)]
