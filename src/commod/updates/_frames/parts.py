"""Take a random part of the rows of a frame, inside its engine."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np

from commod._data.frames import as_lazy
from commod._data.tables import FreeNames
from commod.updates._frames.draws import P, read_seeds, with_draws, with_key

FURTHER_SEED = 1  # another draw than that of a fit with the same seed


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
    seeds = read_seeds(np.random.RandomState([seed, FURTHER_SEED]))
    drawn = with_draws(with_key(lazy, key, number), number, draw, spare, seeds)
    # a row without a key is in the other rows, where a fit refuses it
    is_in_part = (nw.col(draw) < int(np.ceil(share * P))).fill_null(False)
    return (
        drawn.filter(~is_in_part).select(*columns).to_native(),
        drawn.filter(is_in_part).select(*columns).to_native(),
    )
