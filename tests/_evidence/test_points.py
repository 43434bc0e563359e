"""Ridge regressions, short cards and rounded points, compared with direct solutions."""

import itertools
from dataclasses import replace
from decimal import Context, Decimal
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear, minimize
from small_tasks import People, written_out

from commod._evidence import points as points_module
from commod._evidence.points import (
    Points,
    all_lines,
    beside_pinned,
    design_of,
    rounded,
    shorten,
    significant,
    solve,
    solve_lines,
    sums_of,
    unit_of_pinned,
    unit_of_whole,
    whole,
)
from commod.updates._problem import evidence_task

ALPHA = 30.0


class Regressed:
    """A task, its terms written out, and one target of a regression."""

    def __init__(self, seed, **others):
        self.people = People(seed, n=300)
        self.problem, target = self.people.problem(weight=self.people.weight, **others)
        self.task = evidence_task(self.problem, target)
        self.full = written_out(self.problem.encoding, self.people.X)
        self.local = np.random.default_rng(seed).random(300)
        self.use(self.task)

    def use(self, task):
        """Use another version of the task."""
        self.task, self.design = task, design_of(task)
        self.gram, cross = sums_of(task, self.design, self.local).without(None)
        self.cross = cross @ [1.0, -0.7]
        return self

    @property
    def target(self):
        """Return what the terms are regressed on, (n,)."""
        task = self.task
        coef = np.array([1.0, -0.7])[task.cell[:, 0]]
        return coef * task.weight / task.totals[task.cell[:, 0]]

    def dense(self, fold=None):
        """Return the regression as ordinary least squares: matrix and right-hand side.

        Unknowns are the intercept and the points of all terms of the design, in raw units.
        """
        rows = np.ones(300, bool) if fold is None else self.task.fold != fold
        root, d = np.sqrt(self.local[rows])[:, None], self.design.n_terms
        matrix = np.column_stack([np.ones(300), self.full[:, self.design.terms]])[rows]
        penalty = np.sqrt(ALPHA) * np.column_stack([np.zeros(d), np.diag(self.design.scale)])
        right = np.concatenate([root[:, 0] * self.target[rows], np.zeros(d)])
        return np.vstack([root * matrix, penalty]), right

    def solved_directly(self, basis, fold=None, given=0.0):
        """Return intercept and points of the regression on the columns of `basis` (d, m)."""
        matrix, right = self.dense(fold)
        right = right - matrix[:, 1:] @ np.broadcast_to(given, self.design.n_terms)
        wide = np.column_stack([matrix[:, 0], matrix[:, 1:] @ basis])
        found = np.linalg.lstsq(wide, right, rcond=None)[0]
        return found[0], basis @ found[1:] + given

    def squared_error(self, intercept, values):
        matrix, right = self.dense()
        return float(((matrix @ np.append(intercept, values) - right) ** 2).sum())


def basis_of(lines):
    """Return which terms (d,) each line has, (d, m)."""
    return (lines[:, None] == np.arange(lines.max(initial=-1) + 1)) * 1.0


@pytest.fixture(scope="module")
def regressed():
    return Regressed(0)


@pytest.fixture(scope="module")
def binned():
    return Regressed(1, points="per bin")


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("fold", [None, 0, 3])
def test_a_ridge_solution_from_sums_is_that_of_the_rows_without_the_fold(regressed, fold):
    task, design = regressed.task, regressed.design
    gram, cross = sums_of(task, design, regressed.local).without(fold)
    found = solve(gram, cross, ALPHA) @ [1.0, -0.7]
    intercept, values = regressed.solved_directly(np.eye(design.n_terms), fold)
    close(found[0], intercept)
    close(found[1:] / design.scale, values)


# -- short cards -------------------------------------------------------------------------------


def steps_of(regressed, is_free, fewest):
    """Return the lines of cards that get shorter by one line each."""
    cross = beside_pinned(regressed.gram, regressed.cross, regressed.task, regressed.design)
    return [
        shorten(regressed.gram, cross, ALPHA, regressed.task, regressed.design, is_free, most)
        for most in range(int(is_free.sum()), fewest - 1, -1)
    ]


def is_allowed_line(regressed, members):
    """Return whether terms may share points: levels of a column, or bins in a row."""
    terms = regressed.design.terms[members]
    task = regressed.task
    if len(terms) == 1:
        return True
    if len(set(task.column[terms].tolist())) > 1:
        return False
    return bool(task.is_level[terms].all() or (task.is_bin[terms].all() and is_row(terms)))


def is_row(terms):
    return bool((np.diff(terms) == 1).all())


def next_cards(regressed, lines):
    """Yield every card with one line less: one line without points, or two lines merged."""
    for j in range(lines.max(initial=-1) + 1):
        yield renumbered(np.where(lines == j, -1, lines))
        for k in range(j + 1, (lines.max(initial=-1) + 1)):
            merged = np.where(lines == k, j, lines)
            if is_allowed_line(regressed, np.flatnonzero(merged == j)):
                yield renumbered(merged)


def renumbered(line):
    used = np.unique(line[line >= 0])
    return np.where(line < 0, -1, np.searchsorted(used, line))


@pytest.mark.parametrize("case", ["regressed", "binned"])
def test_each_step_is_the_one_with_the_least_rise_of_the_squared_error(case, request):
    regressed = request.getfixturevalue(case)
    is_free = np.ones(regressed.design.n_terms, bool)
    cards = steps_of(regressed, is_free, 1)
    assert [(card.max(initial=-1) + 1) for card in cards] == list(range(len(is_free), 0, -1))
    for before, after in list(itertools.pairwise(cards))[:: 1 if case == "regressed" else 3]:
        errors = [
            regressed.squared_error(*regressed.solved_directly(basis_of(card)))
            for card in next_cards(regressed, before)
        ]
        error = regressed.squared_error(*regressed.solved_directly(basis_of(after)))
        assert error == pytest.approx(min(errors), rel=1e-9)
        for line in range(after.max(initial=-1) + 1):
            assert is_allowed_line(regressed, np.flatnonzero(after == line))
        values = solve_lines(
            regressed.gram, regressed.cross, ALPHA, regressed.task, regressed.design, after
        )
        intercept, direct = regressed.solved_directly(basis_of(after))
        close(values.intercept, intercept)
        close(values.values[regressed.design.terms], direct)


def test_pinned_terms_are_in_no_line_and_bins_beside_them_do_not_merge(binned):
    task = binned.task
    bins = np.flatnonzero(
        task.is_bin & (task.column == task.column[np.flatnonzero(task.is_bin)[0]])
    )
    pinned = np.full(task.terms.n_terms, np.nan)
    pinned[bins[3]] = 0.5
    held = Regressed(1, points="per bin").use(replace(task, pinned=pinned))
    is_free = np.isnan(pinned[held.design.terms])
    for card in steps_of(held, is_free, 2):
        assert card[~is_free].tolist() == [-1]
        for line in range(card.max(initial=-1) + 1):
            assert is_allowed_line(held, np.flatnonzero(card == line))


def test_of_columns_with_equal_rows_the_first_is_taken_out_whatever_the_last_bits_are():
    people = People(4)
    people.X.insert(1, "copy", people.X["number"])
    task = people.task()
    design = design_of(task)
    is_free = np.ones(design.n_terms, bool)
    gram, cross = sums_of(task, design, np.ones(len(task))).without(None)
    cross = cross @ [1.0, -1.0]
    rng, kept = np.random.default_rng(0), set()
    for _ in range(20):
        noise = 1 + 1e-13 * rng.normal(size=gram.shape)
        card = shorten(gram * (noise + noise.T) / 2, cross, ALPHA, task, design, is_free, 3)
        kept.add(tuple(card.tolist()))
    assert len(kept) == 1
    assert (next(iter(kept))[0], next(iter(kept))[1] >= 0) == (-1, True)


def test_many_lines_are_taken_out_in_batches_that_touch_no_line_twice(monkeypatch, binned):
    single = steps_of(binned, np.ones(binned.design.n_terms, bool), 5)[-1]
    monkeypatch.setattr(points_module, "MAX_SINGLE_STEPS", 12)
    cards = steps_of(binned, np.ones(binned.design.n_terms, bool), 5)
    assert [(card.max(initial=-1) + 1) for card in cards] == list(
        range(binned.design.n_terms, 4, -1)
    )
    batches = cards[-1]
    errors = [
        binned.squared_error(*binned.solved_directly(basis_of(card))) for card in (single, batches)
    ]
    everything = binned.squared_error(0.0, np.zeros(binned.design.n_terms))
    assert errors[0] <= errors[1] * (1 + 1e-9) < everything


# -- pinned points, signs and order --------------------------------------------------------------


def test_points_beside_pinned_ones_are_the_exact_solution(regressed):
    pinned = np.full(regressed.task.terms.n_terms, np.nan)
    pinned[[0, 3]] = 0.25, -0.5
    held = Regressed(0).use(replace(regressed.task, pinned=pinned))
    design = held.design
    is_free = np.isnan(pinned[design.terms])
    cross = beside_pinned(held.gram, held.cross, held.task, design)
    found = solve_lines(held.gram, cross, ALPHA, held.task, design, all_lines(is_free))
    given_points = np.nan_to_num(pinned[design.terms])
    intercept, values = held.solved_directly(np.eye(design.n_terms)[:, is_free], None, given_points)
    close(found.intercept, intercept)
    close(found.values[design.terms], values)
    assert found.values[[0, 3]].tolist() == [0.25, -0.5]


@settings(max_examples=12)
@given(seed=st.integers(0, 1000), is_short=st.booleans())
def test_signs_are_the_bounds_of_a_constrained_optimum(seed, is_short):
    signs = np.random.default_rng(seed).choice([-1, 0, 1], 3)
    monotone = dict(zip(["number", "town", "flag"], signs.tolist(), strict=True))
    regressed = Regressed(seed, monotone=monotone)
    design, sign = regressed.design, regressed.task.sign[regressed.design.terms]
    lines = all_lines(np.ones(design.n_terms, bool))
    if is_short:
        lines = steps_of(regressed, np.ones(design.n_terms, bool), 4)[-1]
    basis = basis_of(lines)
    of_line = np.array([sign[lines == line][0] for line in range(lines.max(initial=-1) + 1)])
    matrix, right = regressed.dense()
    wide = np.column_stack([matrix[:, 0], matrix[:, 1:] @ basis])
    low = np.append(-np.inf, np.where(of_line > 0, 0.0, -np.inf))
    high = np.append(np.inf, np.where(of_line < 0, 0.0, np.inf))
    direct = lsq_linear(wide, right, (low, high), method="bvls", tol=1e-14).x
    found = solve_lines(regressed.gram, regressed.cross, ALPHA, regressed.task, design, lines)
    np.testing.assert_allclose(found.values[design.terms], basis @ direct[1:], rtol=1e-4, atol=1e-8)
    assert (found.values[design.terms] * sign >= 0).all()


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("n_lines", [None, 12, 6])
def test_bins_of_a_monotone_column_are_in_order_and_nothing_better_is(sign, n_lines):
    regressed = Regressed(3, points="per bin", monotone={"number": sign, "gaps": -sign})
    design, task = regressed.design, regressed.task
    lines = all_lines(np.ones(design.n_terms, bool))
    if n_lines:
        lines = steps_of(regressed, np.ones(design.n_terms, bool), n_lines)[-1]
    found = solve_lines(regressed.gram, regressed.cross, ALPHA, task, design, lines)
    values, basis, order = found.values[design.terms], basis_of(lines), []
    assert values[lines < 0].tolist() == [0.0] * (lines < 0).sum()
    for column, wanted in ((0, sign), (1, -sign)):
        bins = np.flatnonzero((task.column == column)[design.terms] & task.is_bin[design.terms])
        order.append(wanted * np.diff(basis[bins], axis=0))
        assert (np.diff(values[bins]) * wanted >= -1e-12).all()
    order = np.column_stack([np.zeros(sum(map(len, order))), np.vstack(order)])
    matrix, right = regressed.dense()
    wide = np.column_stack([matrix[:, 0], matrix[:, 1:] @ basis])
    size = np.linalg.norm(wide, axis=0)
    wide, right = wide / size, right / np.linalg.norm(right)
    solved = minimize(
        lambda x: (0.5 * ((wide @ x - right) ** 2).sum(), wide.T @ (wide @ x - right)),
        np.zeros(wide.shape[1]),
        jac=True,
        method="SLSQP",
        constraints={
            "type": "ineq",
            "fun": lambda x: order @ (x / size),
            "jac": lambda _: order / size,
        },
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    ours = regressed.squared_error(found.intercept, values) / np.square(regressed.dense()[1]).sum()
    assert ours == pytest.approx(2 * solved.fun, rel=1e-7)


# -- rounding ------------------------------------------------------------------------------------


@given(value=st.floats(-1e9, 1e9), digits=st.integers(1, 9))
def test_significant_digits_are_those_of_the_decimal_text(value, digits):
    (found,) = significant(np.array([value]), digits).tolist()
    assert Decimal(repr(found)) == Context(prec=digits).create_decimal(Decimal(value))


def test_rounded_points_stay_equal_in_a_line_and_pinned_ones_as_given():
    design = SimpleNamespace(terms=np.array([0, 1, 2, 3]))
    lines = np.array([0, 0, 1, -1])
    # the last bits of two terms of a line may differ, and so may their third digits
    points = Points(np.array([0.12349999999999, 0.12350000000001, -98765.0, 0.33333]), 0.0123456)
    pinned = np.array([np.nan, np.nan, np.nan, 0.33333])
    found = rounded(points, lines, design, pinned)
    assert found.values.tolist() == [0.123, 0.123, -98800.0, 0.33333]
    assert found.intercept == 0.0123


def test_whole_points_have_ten_as_the_largest():
    points = Points(np.array([0.31, -0.155, 0.01, 0.2]), 0.07)
    found = whole(points, np.full(4, np.nan), unit_of_whole(points))
    assert found.values.tolist() == [10.0, -5.0, 0.0, 6.0]
    assert found.intercept == 2.0
    nothing = Points(np.zeros(4), 0.0)
    assert whole(nothing, np.full(4, np.nan), unit_of_whole(nothing)).values.tolist() == [0.0] * 4


def test_pinned_whole_numbers_have_the_unit_with_the_least_error(regressed):
    # the points of the exact solution, in another unit, are pinned in part
    design = regressed.design
    _, values = regressed.solved_directly(np.eye(design.n_terms))
    pinned = np.full(regressed.task.terms.n_terms, np.nan)
    pinned[design.terms[:4]] = values[:4] / 0.037
    held = replace(regressed.task, pinned=pinned)
    assert unit_of_pinned(regressed.gram, regressed.cross, ALPHA, held, design) == pytest.approx(
        0.037, rel=1e-4
    )
    pinned[design.terms[:4]] *= -1  # they contradict the evidence
    unit = unit_of_pinned(regressed.gram, regressed.cross, ALPHA, held, design)
    assert 0 < unit * np.nanmax(np.abs(pinned)) <= 2 * np.abs(values).max()
    points = Points(0.037 * np.array([3.2, -1.4, 5.0]), 0.037 * 2.6)
    found = whole(points, np.array([np.nan, np.nan, 5.0]), 0.037)
    assert (found.values.tolist(), found.intercept) == ([3.0, -1.0, 5.0], 3.0)
