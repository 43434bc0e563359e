"""Draw the search sample of a frame in its engine, and read it as fit rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from commod._data.base_model import warn_about_base_model
from commod._data.columns import may_hold_codes, read_columns
from commod.exceptions import InputError
from commod.patch.fingerprint import scores_digest
from commod.updates._fit_rows import FitRows
from commod.updates._frames.draws import P
from commod.updates._frames.lines import CountedProblem, Lines
from commod.updates._frames.rescans import rows_differ
from commod.updates._held_out import take_fit_rows
from commod.updates._sample import MIN_CELL_ROWS, MIN_STRATUM_ROWS

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

MAX_ROWS_PER_KEY = 10  # on average: households are fine, regions are not
MAX_DEVIATION = 8.0  # standard deviations of the size of a sample: rows do not share keys


@dataclass(frozen=True)
class FrameSample:
    """A sample of a frame: a row of a line is drawn where its draw is below the line's bound.

    `stratum` (n_lines,) numbers the strata; rows of one stratum have the same `bound` (n_lines,).
    """

    lines: Lines
    stratum: Codes
    bound: NDArray[np.int64]

    @classmethod
    def of(
        cls, problem: CountedProblem, lines: Lines, size: int, growth: float = 1.0
    ) -> FrameSample:
        """Return a sample of about `size` rows; strata are those of `draw_sample`, and groups.

        Nobody who is held out is drawn.
        """
        rows, cell, held_out = problem.rows, problem.cells.index, lines.held_out
        whole = np.column_stack([rows.groups.codes, cell, rows.base.decisions, held_out])
        _, stratum = np.unique(whole, axis=0, return_inverse=True)
        stratum = stratum.ravel()
        sizes = np.bincount(stratum, lines.people)
        fit_people = lines.people * ~held_out
        cell_sizes = np.maximum(np.bincount(cell + 1, fit_people)[cell + 1], 1.0)
        rate = np.maximum(size / fit_people.sum(), growth * MIN_CELL_ROWS / cell_sizes)
        share = np.minimum(1.0, np.maximum(rate, growth * MIN_STRATUM_ROWS / sizes[stratum]))
        return cls(lines, stratum, np.ceil(share * P * ~held_out).astype(np.int64))

    def is_drawn(self, number: str) -> nw.Expr:
        """Return whether a row is drawn; the column `number` holds the number of its line."""
        bound = self.lines.lookup(nw.col(number), self.bound.tolist())
        return nw.col(self.lines.table.draw) < bound


@dataclass(frozen=True)
class PulledRows:
    """The rows of a sample on this machine: X, and the line, weight and cost of each row."""

    X: Any
    line: Codes
    weight: Floats
    cost: Floats | None
    draw: NDArray[np.int64]


def pull_rows(lines: Lines, sample: FrameSample | None) -> PulledRows:
    """Return the rows of a sample, in the order of their draws; all rows if None."""
    table = lines.table
    number = table.names.take("_commod_line")
    lazy = lines.with_number(number)
    if table.weight is not None:
        lazy = lazy.filter(nw.col(table.weight) > 0)
    if sample is not None:
        lazy = lazy.filter(sample.is_drawn(number))
    wanted = [*table.features, table.draw, number, table.score]
    wanted += [name for name in (table.weight, table.cost) if name is not None]
    try:
        frame = lazy.select(*wanted).collect(backend="pyarrow").to_pandas()
    except ImportError as error:
        raise InputError(
            "Rows of a frame come back through pyarrow: pip install 'commod-debiasing[parquet]'."
        ) from error
    # engines return rows in any order, and rows of one key share a draw
    order = [name for name in wanted[len(table.features) :] if name is not None]
    numeric = [n for n in table.features if frame[n].dtype.kind in "fiub"]
    frame = frame.sort_values([*order, *numeric], ignore_index=True, kind="stable")
    weight = np.ones(len(frame)) if table.weight is None else frame[table.weight].to_numpy(float)
    return PulledRows(
        X=frame[list(table.features)],
        line=lines.of_numbers(frame[number].to_numpy(np.int64)),
        weight=weight,
        cost=None if table.cost is None else frame[table.cost].to_numpy(float),
        draw=frame[table.draw].to_numpy(np.int64),
    )


def read_sample(
    update: Any, problem: CountedProblem, sample: FrameSample, pulled: PulledRows
) -> FitRows:
    """Return the rows of a sample; the rows of a stratum stand for all its people."""
    lines = sample.lines
    stratum = sample.stratum[pulled.line]
    n_drawn = np.bincount(stratum, minlength=sample.stratum.max() + 1)
    _check_keys(lines, pulled)
    _check_sizes(sample, n_drawn)
    people = (np.bincount(sample.stratum, lines.people) / np.maximum(n_drawn, 1))[stratum]
    weight = pulled.weight * people
    drawn_weight = np.bincount(stratum, weight, minlength=len(n_drawn))
    exact = np.bincount(sample.stratum, lines.weight, minlength=len(n_drawn))
    weight = weight * (exact / np.where(drawn_weight > 0, drawn_weight, 1.0))[stratum]
    X = pulled.X
    columns = read_columns(X, skip=update._unread())
    validate_data(update, X, skip_check_array=True, reset=True)
    base = update._base(X, columns)
    of_lines = take_fit_rows(problem.rows, pulled.line)
    known = {"classes": update.classes_, "pos_label": update.pos_label_, "label": of_lines.label}
    is_stated = update.fit_rows_are_new is not None
    warn_about_base_model(update.estimator, X, base, **known, may_be_seen=not is_stated)
    features = update._features(columns)
    update._columns_seen = [column.name for column in features]
    update._code_columns = [column.name for column in features if may_hold_codes(column)]
    update._n_fit_rows = round(float(lines.people.sum()))
    update._scores_digest = scores_digest(base.scores)
    return replace(
        of_lines,
        columns=features,
        base=base,
        weight=weight,
        people=people,
        squares=None,
        change_cost=pulled.cost,
    )


def _check_keys(lines: Lines, pulled: PulledRows) -> None:
    """Refuse a key that so many rows share that a sample is one of few clusters."""
    n_rows, n_keys = len(pulled.draw), len(np.unique(pulled.draw))
    if n_rows > MAX_ROWS_PER_KEY * n_keys:
        raise InputError(
            f"key={lines.table.named.key!r} has {n_keys:,} different values in a sample of "
            f"{n_rows:,} rows. Too many rows share a key. Name a column that differs from row to "
            "row.",
            parameter="key",
        )


def _check_sizes(sample: FrameSample, n_drawn: NDArray[np.intp]) -> None:
    """Refuse a key whose draws are far from uniform, because many rows share a key."""
    lines = sample.lines
    sizes = np.bincount(sample.stratum, lines.people)
    share = np.zeros(len(sizes))
    share[sample.stratum] = sample.bound / P
    expected = sizes * share
    deviation = np.abs(n_drawn - expected)
    if (deviation > 0)[share >= 1].any():  # all rows were asked for
        raise rows_differ()
    is_off = deviation > np.maximum(MAX_DEVIATION * np.sqrt(expected), expected / 2)
    is_off |= (share > 0) & (n_drawn == 0)
    if is_off.any():
        worst = int(np.argmax(is_off * deviation))
        raise InputError(
            f"key={lines.table.named.key!r} does not draw a sample: {n_drawn[worst]:,} of "
            f"{sizes[worst]:,.0f} rows of a stratum were drawn, and about {expected[worst]:,.0f} "
            "were expected. Too many rows share a key. Name a column that differs from row to row.",
            parameter="key",
        )
