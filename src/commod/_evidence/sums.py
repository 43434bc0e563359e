"""Sum the squares and products of terms by fold: all that a regression needs of the rows.

Categories and bins are codes, so their products are counts. The cost does not depend on the number
of categories, and no dense matrix of the terms is built. But each pair of columns is counted: of
many columns with few codes each, such as indicators, dense blocks of rows are multiplied instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from commod._data.arrays import Codes, Floats
from commod._evidence.task import N_FOLDS, EvidenceTask

MAX_TERMS = 400  # of a regression: of more, those that tell the cells apart best are taken
BLOCK_ROWS = 65_536  # of numbers in one product, so that memory stays small
DENSE_VALUES = 4_000_000  # of terms in one product
MANY_COLUMNS, FEW_CODES = 24, 4  # from so many columns with so few terms each, blocks are faster


@dataclass(frozen=True)
class TermDesign:
    """The d terms of a regression, out of `n_all`: `terms` are their numbers, `scale` their spread.

    `numeric` (n, p) holds the numbers, and `numeric_place` (p,) their places among the d terms.
    `codes` has one array (n,) per column of codes, and `places` the place of each of its k codes.
    The code k means that no term is present.
    """

    n_all: int
    terms: Codes
    scale: Floats
    numeric: Floats
    numeric_place: Codes
    codes: tuple[Codes, ...]
    places: tuple[Codes, ...]

    @property
    def n_terms(self) -> int:
        """Return d."""
        return len(self.terms)


@dataclass(frozen=True)
class Sums:
    """Sums over the rows of each fold: `gram` (F, d + 1, d + 1), `cross` (F, d + 1, K).

    Terms are divided by their scale, and a term of ones comes first.
    """

    gram: Floats
    cross: Floats

    def without(self, fold: int | None) -> tuple[Floats, Floats]:
        """Return the sums of all folds but one; of all folds if None."""
        gram, cross = self.gram.sum(axis=0), self.cross.sum(axis=0)
        if fold is None:
            return gram, cross
        return gram - self.gram[fold], cross - self.cross[fold]


def design_of(task: EvidenceTask) -> TermDesign:
    """Return the terms that a regression reads: at most MAX_TERMS without constant ones.

    Terms that are pinned without points do not count, as if their column was locked.
    """
    table = task.terms
    mean, scale = table.moments(task.weight)
    used = np.flatnonzero(np.where(np.isnan(task.pinned), scale > 0, task.pinned != 0))
    if len(used) > MAX_TERMS:
        used = np.sort(used[np.argsort(-_told(task, mean, scale)[used], kind="stable")[:MAX_TERMS]])
    place = np.full(table.n_terms + 1, len(used), dtype=np.intp)
    place[used] = np.arange(len(used))
    is_used = np.isin(table.numeric_terms, used)
    codes, places = [], []
    for j in range(table.codes.shape[1]):
        present = np.unique(table.codes[:, j])
        known = present[place[present] < len(used)]
        if len(known) == 0:
            continue
        local = np.full(table.n_terms + 1, len(known), dtype=np.int64)
        local[known] = np.arange(len(known))
        codes.append(local[table.codes[:, j]])
        places.append(place[known])
    scale = np.where(scale > 0, scale, 1.0)[used]
    return TermDesign(
        n_all=table.n_terms,
        terms=used,
        scale=scale,
        numeric=table.numeric if is_used.all() else table.numeric[:, is_used],
        numeric_place=place[table.numeric_terms[is_used]],
        codes=tuple(codes),
        places=tuple(places),
    )


def dense_rows(design: TermDesign, rows: Codes) -> Floats:
    """Return the terms of some rows (m,), divided by their scale, after ones: (m, d + 1)."""
    matrix = np.zeros((len(rows), design.n_terms + 2))
    matrix[:, 0] = 1.0
    matrix[:, 1 + design.numeric_place] = design.numeric[rows] / design.scale[design.numeric_place]
    for codes, places in zip(design.codes, design.places, strict=True):
        place = np.append(1 + places, design.n_terms + 1)[codes[rows]]
        matrix[np.arange(len(rows)), place] = np.append(1 / design.scale, 0.0)[place - 1]
    return matrix[:, :-1]


def _told(task: EvidenceTask, mean: Floats, scale: Floats) -> Floats:
    """Return how well each term tells the cells apart, (d,), as a standardised difference."""
    table, told = task.terms, np.zeros(task.terms.n_terms)
    for c in range(task.n_cells):
        weight = (task.share * (task.cell == c)).sum(axis=1) * task.weight
        if not weight.any():
            continue
        shift = np.abs(table.moments(weight)[0] - mean)
        size = np.sqrt(weight.sum())
        told = np.maximum(told, size * shift / np.where(scale > 0, scale, 1.0))
    return told


def sums_of(task: EvidenceTask, design: TermDesign, local: Floats) -> Sums:
    """Return the sums where each row counts with the weight `local` (n,)."""
    if MANY_COLUMNS <= len(design.codes) >= design.n_terms / FEW_CODES:
        return _dense_sums(task, design, local)
    d, fold = design.n_terms, task.fold.astype(np.int64)
    gram, cross = np.zeros((N_FOLDS, d + 1, d + 1)), np.zeros((N_FOLDS, d + 1, _n_sums(task)))
    numbers = np.append(0, 1 + design.numeric_place)  # the place of the ones and of each number
    _add_numbers(task, design, local, numbers, gram, cross)
    for codes, places in zip(design.codes, design.places, strict=True):
        size, rows = len(places) + 1, 1 + places
        by_fold = fold * size + codes
        counts = np.bincount(by_fold, local, N_FOLDS * size).reshape(N_FOLDS, size)[:, :-1]
        gram[:, rows, rows] = counts
        gram[:, 0, rows] = gram[:, rows, 0] = counts
        for place, values in zip(numbers[1:], design.numeric.T, strict=True):
            total = np.bincount(by_fold, local * values, N_FOLDS * size)
            total = total.reshape(N_FOLDS, size)[:, :-1]
            gram[:, place, rows] = gram[:, rows, place] = total
        _add_cells(task, local, by_fold, size, rows, cross)
    for (a, at_a), (b, at_b) in combinations(zip(design.codes, design.places, strict=True), 2):
        shape = (N_FOLDS, len(at_a) + 1, len(at_b) + 1)
        pairs = np.bincount(
            (fold * shape[1] + a) * shape[2] + b, local, int(np.prod(shape))
        ).reshape(shape)[:, :-1, :-1]
        gram[:, (1 + at_a)[:, None], 1 + at_b] = pairs
        gram[:, (1 + at_b)[:, None], 1 + at_a] = pairs.transpose(0, 2, 1)
    scale = np.append(1.0, design.scale)
    return Sums(gram / np.outer(scale, scale), cross / scale[:, None])


def _dense_sums(task: EvidenceTask, design: TermDesign, local: Floats) -> Sums:
    """Return the same sums from dense blocks of rows."""
    n_terms = design.n_terms + 1
    gram, cross = np.zeros((N_FOLDS, n_terms, n_terms)), np.zeros((N_FOLDS, n_terms, _n_sums(task)))
    for f in range(N_FOLDS):
        rows = np.flatnonzero(task.fold == f)
        for block in np.split(rows, range(0, len(rows), max(1, DENSE_VALUES // n_terms))[1:]):
            values = dense_rows(design, block)
            weighted = (values * local[block, None]).T
            gram[f] += weighted @ values
            steps = np.zeros((len(block), task.n_cells + 1))
            for cell, step in zip(task.cell[block].T, task.step[block].T, strict=True):
                steps[np.arange(len(block)), cell] += step
            cross[f] += weighted @ np.hstack([steps[:, :-1], task.caps_steps[block]])
    return Sums(gram, cross)


def _n_sums(task: EvidenceTask) -> int:
    return task.n_cells + task.caps_steps.shape[1]


def _add_numbers(
    task: EvidenceTask,
    design: TermDesign,
    local: Floats,
    numbers: Codes,
    gram: Floats,
    cross: Floats,
) -> None:
    """Add the products of numbers with each other, with the cells and with the capped sums."""
    n_cells = task.n_cells
    for f in range(N_FOLDS):
        rows = np.flatnonzero(task.fold == f)
        for start in range(0, len(rows), BLOCK_ROWS):
            block = rows[start : start + BLOCK_ROWS]
            values = np.column_stack([np.ones(len(block)), design.numeric[block]])
            weighted = values * local[block, None]
            gram[f][np.ix_(numbers, numbers)] += weighted.T @ values
            if task.caps_steps.shape[1]:
                cross[f][numbers, n_cells:] += weighted.T @ task.caps_steps[block]
            for cell, step in zip(task.cell[block].T, task.step[block].T, strict=True):
                for place, column in zip(numbers, weighted.T, strict=True):
                    sums = np.bincount(cell, column * step, n_cells + 1)[:-1]
                    cross[f, place, :n_cells] += sums


def _add_cells(
    task: EvidenceTask, local: Floats, by_fold: Codes, size: int, rows: Codes, cross: Floats
) -> None:
    """Add the products of one column of codes with the cells and with the capped sums."""
    n_cells = task.n_cells
    for cell, step in zip(task.cell.T, task.step.T, strict=True):
        key = by_fold * (n_cells + 1) + cell
        sums = np.bincount(key, local * step, N_FOLDS * size * (n_cells + 1))
        sums = sums.reshape(N_FOLDS, size, n_cells + 1)[:, :-1, :-1]
        cross[:, rows, :n_cells] += sums
    for k, steps in enumerate(task.caps_steps.T):
        sums = np.bincount(by_fold, local * steps, N_FOLDS * size).reshape(N_FOLDS, size)
        cross[:, rows, n_cells + k] += sums[:, :-1]
