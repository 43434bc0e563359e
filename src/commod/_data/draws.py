"""Draw a pseudo-random number for each row, from its key or from its content.

What depends on chance then does not depend on the order of the rows. The number of a key is the
same in every dataframe engine: that of a whole-number key k is a polynomial of k in whole numbers.
All of them stay below 2**62, so every engine computes it exactly:

1. x = k for k ≥ 0, and −(k + 1) for k < 0. a = x mod P, b = x mod Q, s = 1 for k < 0 and else 0.
2. h = (A · a + s + seed_1) mod P.
3. Three times: h = (h³ + b + seed_2) mod P. The cube is computed as ((h · h) mod P) · h.

P and Q are primes, and cubing permutes the numbers below P. The key of a text is the whole number
that the first 15 hexadecimal digits of its MD5 digest (of UTF-8) mean.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from commod._data.columns import Column, Scalar
from commod._data.frames import TEXT_TYPES, as_lazy, is_spark, spark_functions
from commod._data.tables import FreeNames
from commod._io.queries import quoted
from commod.exceptions import InputError

P, Q = 2147483579, 2147483549  # the largest primes below 2**31 that are 2 modulo 3
A = 1103515245  # any number spreads neighbouring keys
N_ROUNDS = 3
N_HEX_DIGITS = 15
N_DRAW_BITS = 31  # of a draw, which is below P

Hashes = NDArray[np.uint64]
Seeds = tuple[int, int]
FIT_SEEDS: Seeds = (1274126177, 668265263)  # of every fit: any two numbers below P
FURTHER_SEED = 1  # of `split_frame`: another draw than that of a fit with the same seed


def key_hashes(keys: NDArray[np.int64]) -> Hashes:
    """Return a number of 64 bits for each whole-number key, (n,): the draw of a fit comes first.

    The other bits tell keys with the same draw apart.

    Examples
    --------
    >>> key = np.array([12], dtype=np.int64)
    >>> bool(key_hashes(key)[0] >> np.uint64(33) == draws_of(key, FIT_SEEDS)[0])
    True
    """
    draws = draws_of(keys, FIT_SEEDS).astype(np.uint64)
    others = spread_bits(keys.astype(np.int64).view(np.uint64)) >> np.uint64(N_DRAW_BITS)
    return (draws << np.uint64(64 - N_DRAW_BITS)) | others


def draws_of(keys: NDArray[np.int64], seeds: Seeds) -> NDArray[np.int64]:
    """Return the draws of whole-number keys, (n,), in [0, P).

    Examples
    --------
    >>> draws_of(np.array([0, 1, -1]), (1, 1)).tolist()
    [730, 1766945806, 389017001]
    """
    is_negative = keys < 0
    x = np.where(is_negative, -(keys + 1), keys)
    b = x % Q
    h = (A * (x % P) + is_negative + seeds[0]) % P
    for _ in range(N_ROUNDS):
        h = (h * h % P * h + b + seeds[1]) % P
    return np.asarray(h)


def text_key(text: str) -> int:
    """Return the whole-number key of a text.

    Examples
    --------
    >>> text_key("row 1")
    26494715979364358
    """
    digest = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
    return int(digest[:N_HEX_DIGITS], 16)


def with_draws(
    frame: nw.LazyFrame[Any], key: str, draw: str, work: str, seeds: Seeds
) -> nw.LazyFrame[Any]:
    """Return the frame with the column `draw`; `key` holds whole numbers, `work` is a free name.

    Every step is a column of its own: an engine computes a repeated part of an expression twice.
    """
    k, h, b = nw.col(key), nw.col(draw), nw.col(work)
    zero, one = nw.lit(0, nw.Int64), nw.lit(1, nw.Int64)
    x = nw.when(k < 0).then(-(k + 1)).otherwise(k)
    frame = frame.with_columns(x.alias(work), nw.when(k < 0).then(one).otherwise(zero).alias(draw))
    if frame.implementation.is_duckdb() or is_spark(frame):
        return _with_draws_in_sql(frame, draw, work, seeds)
    frame = frame.with_columns(((b % P) * A + h + seeds[0]).alias(draw), (b % Q).alias(work))
    frame = frame.with_columns((h % P).alias(draw))
    for _ in range(N_ROUNDS):
        frame = frame.with_columns((((h * h) % P * h + b + seeds[1]) % P).alias(draw))
    return frame.drop(work)


def _with_draws_in_sql(
    frame: nw.LazyFrame[Any], draw: str, work: str, seeds: Seeds
) -> nw.LazyFrame[Any]:
    """Return the frame with draws by the same steps in SQL.

    narwhals writes two divisions for a remainder, because a number may be negative. Here none is.
    """
    h, b = (quoted(name, '"' if frame.implementation.is_duckdb() else "`") for name in (draw, work))
    steps = [(draw, f"(({b} % {P}) * {A} + {h} + {seeds[0]}) % {P}"), (work, f"{b} % {Q}")]
    steps += [(draw, f"((({h} * {h}) % {P}) * {h} + {b} + {seeds[1]}) % {P}")] * N_ROUNDS
    native: Any = frame.to_native()
    for name, text in steps:
        if frame.implementation.is_duckdb():
            native = native.project(f"* REPLACE ({text} AS {quoted(name)})")
        else:
            native = native.withColumn(name, spark_functions(frame).expr(text))
    return nw.from_native(native).drop(work)


def with_key(frame: nw.LazyFrame[Any], column: str | None, name: str) -> nw.LazyFrame[Any]:
    """Return the frame with the whole-number key of each row; row numbers without a column."""
    if column is None:
        return _with_row_numbers(frame, name)
    dtype = frame.collect_schema()[column]
    if dtype.is_integer():
        _check_range(frame, column, dtype)
        return frame.with_columns(nw.col(column).cast(nw.Int64).alias(name))
    if dtype in TEXT_TYPES:
        return _with_text_key(frame, column, name)
    raise InputError(
        f"key={column!r} has type {dtype}; a key holds whole numbers or text, one for each row. "
        "Cast the column, or name another one.",
        parameter="key",
    )


def _check_range(frame: nw.LazyFrame[Any], column: str, dtype: Any) -> None:
    """Refuse whole numbers that do not fit into 64 bits; only wide types need a query."""
    if dtype not in (nw.UInt64, nw.Int128, nw.UInt128):
        return
    ends = frame.select(
        nw.col(column).min().alias("low"), nw.col(column).max().alias("high")
    ).collect()
    low, high = (ends[name].to_list()[0] for name in ("low", "high"))
    limits = np.iinfo(np.int64)
    if high is not None and not limits.min <= int(low) <= int(high) <= limits.max:
        raise InputError(
            f"key={column!r} holds {int(high if int(high) > limits.max else low)}, but a "
            "whole-number key lies between −2**63 and 2**63 − 1. Cast the column to text.",
            parameter="key",
        )


def _with_row_numbers(frame: nw.LazyFrame[Any], name: str) -> nw.LazyFrame[Any]:
    """Return the frame with the number that its engine gives to each row."""
    engine, native = frame.implementation, frame.to_native()
    if engine.is_duckdb():
        numbered = native.project(f"*, row_number() OVER () AS {quoted(name)}")
    elif is_spark(frame):
        functions = spark_functions(frame)
        numbered = native.withColumn(name, functions.monotonically_increasing_id())
    elif engine.is_polars():
        return nw.from_native(native.with_row_index(name)).with_columns(nw.col(name).cast(nw.Int64))
    else:
        eager = frame.collect().with_row_index(name)
        return eager.with_columns(nw.col(name).cast(nw.Int64)).lazy()
    return nw.from_native(numbered)


def _with_text_key(frame: nw.LazyFrame[Any], column: str, name: str) -> nw.LazyFrame[Any]:
    engine, native = frame.implementation, frame.to_native()
    if engine.is_duckdb():
        digits = f"substr(md5(CAST({quoted(column)} AS VARCHAR)), 1, {N_HEX_DIGITS})"
        return nw.from_native(
            native.project(f"*, CAST('0x' || {digits} AS BIGINT) AS {quoted(name)}")
        )
    if is_spark(frame):
        functions = spark_functions(frame)
        digest = functions.md5(functions.col(quoted(column, "`")).cast("binary"))
        number = functions.conv(functions.substring(digest, 1, N_HEX_DIGITS), 16, 10)
        return nw.from_native(native.withColumn(name, number.cast("bigint")))
    if engine.is_polars():
        polars = import_module("polars")
        texts = polars.col(column).cast(polars.String)
        return nw.from_native(
            native.with_columns(texts.map_elements(text_key, return_dtype=polars.Int64).alias(name))
        )
    eager = frame.collect()
    texts = eager[column].cast(nw.String).to_list()
    keys = [None if text is None else text_key(text) for text in texts]
    series = nw.new_series(name, keys, nw.Int64, backend=eager.implementation)
    return eager.with_columns(series).lazy()


# ---------------------------------------------------------------------------------------------
# Parts of a frame


def split_frame(frame: Any, share: float, *, key: str | None, seed: int) -> tuple[Any, Any]:
    """Return the other rows and a random part of the rows, both lazily in the frame's engine.

    Rows are drawn by a hash of `key`, as `fit_frame` draws its sample, but by other draws. The
    same key and seed give the same part in every engine.

    Examples
    --------
    >>> import duckdb
    >>> people = duckdb.sql("SELECT i AS id FROM range(1000) AS t(i)")
    >>> kept, part = split_frame(people, 0.25, key="id", seed=0)
    >>> len(kept) + len(part), 200 < len(part) < 300
    (1000, True)
    """
    lazy = as_lazy(frame, "Use arrays with the functions for rows in memory.")
    columns = list(lazy.collect_schema().names())
    names = FreeNames(columns)
    number, draw, spare = (names.take(f"_commod_{name}") for name in ("part", "draw", "spare"))
    first, second = np.random.RandomState([seed, FURTHER_SEED]).randint(1, P, 2).tolist()
    drawn = with_draws(with_key(lazy, key, number), number, draw, spare, (first, second))
    # a row without a key is in the other rows, where a fit refuses it
    is_in_part = (nw.col(draw) < int(np.ceil(share * P))).fill_null(False)
    return (
        drawn.filter(~is_in_part).select(*columns).to_native(),
        drawn.filter(is_in_part).select(*columns).to_native(),
    )


# ---------------------------------------------------------------------------------------------
# Hashes of rows in memory


def row_hashes(columns: Sequence[Column], ties: Sequence[NDArray[np.float64]] = ()) -> Hashes:
    """Return a number of 64 bits for each row, from its content, shape (n,).

    It is the same for pandas, polars and pyarrow, for numbers of any width, and for columns in any
    order. Equal rows get different numbers: they are counted among each other.

    Parameters
    ----------
    columns : sequence of Column
        What the hash depends on.
    ties : sequence of ndarray of shape (n,), default=()
        Numbers by which equal rows are counted, the most important first; in the order of the rows
        without any.

    Examples
    --------
    >>> age = Column("age", "numeric", np.array([31.0, 40.0, 31.0]))
    >>> first, second, third = row_hashes([age]).tolist()
    >>> first == third, row_hashes([age.take([1, 0])]).tolist() == [second, first]
    (False, True)
    """
    total = np.zeros(len(columns[0]) if columns else 0, dtype=np.uint64)
    for column in columns:
        total += spread_bits(_values(column) ^ _text_hash(f"column {column.name}"))
    order = np.argsort(total, kind="stable")
    ordered = total[order]
    if ties and (ordered[1:] == ordered[:-1]).any():
        order = np.lexsort([*reversed(ties), total])
    is_new = np.append(True, ordered[1:] != ordered[:-1]) if len(ordered) else np.zeros(0, bool)
    position = np.arange(len(ordered))
    number = np.empty(len(total), dtype=np.uint64)
    number[order] = position - np.maximum.accumulate(np.where(is_new, position, 0))
    return spread_bits(total + spread_bits(number))


def _values(column: Column) -> Hashes:
    if column.kind == "numeric":
        values = column.values + 0.0  # −0 is 0
        return np.where(np.isnan(values), np.nan, values).view(np.uint64)
    table = [_scalar_hash(value) for value in (*column.categories, None)]
    return np.array(table, dtype=np.uint64)[column.values]  # missing is −1, the last entry


def _scalar_hash(value: Scalar | None) -> np.uint64:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _text_hash(f"number {float(value)!r}")
    return _text_hash(f"{type(value).__name__} {value}")


def _text_hash(text: str) -> np.uint64:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))


def spread_bits(values: Hashes) -> Hashes:
    """Return numbers whose bits are spread: the last step of SplitMix64."""
    mixed = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))
