"""Sparsity and redundancy of concepts: their definitions in plain Python, and examples by hand."""

import math

import numpy as np
import pytest
from experiments.concept_metrics import concept_redundancy, concept_sparsity
from hypothesis import given, settings
from hypothesis import strategies as st

quick = settings(deadline=None, max_examples=30)


EXAMPLE = [[0.5, -0.3, 0.005, 0], [0.4, 0.3, 0, 0.2]]
weight_rows = st.lists(
    st.lists(st.sampled_from([-2.0, -0.5, 0.0, 0.0, 1e-4, 1.0]), min_size=3, max_size=3),
    min_size=1,
    max_size=4,
)


def supports(rows):
    """Signed supports in plain Python."""
    found = []
    for weights in rows:
        norm = math.sqrt(sum(w * w for w in weights)) or 1.0
        found.append({(i, w > 0) for i, w in enumerate(weights) if abs(w) / norm > 0.01})
    return found


@quick
@given(weight_rows)
def test_sparsity_and_redundancy_follow_their_definitions(rows):
    sets = supports(rows)
    n_nonzero = sum(len(s) for s in sets)
    assert concept_sparsity(rows) == pytest.approx(1 - n_nonzero / (3 * len(rows)))
    pairs = [(a, b) for i, a in enumerate(sets) for b in sets[:i]]
    indices = [len(a & b) / len(a | b) if a | b else 0 for a, b in pairs]
    expected = sum(indices) / len(indices) if indices else 0
    assert concept_redundancy(rows) == pytest.approx(expected)


@quick
@given(weight_rows, st.sampled_from([1e-200, 1e-3, 7.0, 1e200]))
def test_the_scale_of_a_concept_does_not_matter(rows, scale):
    scaled = np.array(rows) * scale
    assert concept_sparsity(scaled) == concept_sparsity(rows)
    assert concept_redundancy(scaled) == concept_redundancy(rows)


def test_the_worked_example():
    assert concept_sparsity(EXAMPLE) == 0.375
    assert concept_redundancy(EXAMPLE) == 0.25
    assert concept_sparsity([[1, 1, 0.012]]) == 1 / 3  # 0.012 is 0.0085 of the row's norm
    assert concept_sparsity(EXAMPLE, eps=0.0) == 0.25  # now 0.005 counts
    assert concept_redundancy(EXAMPLE, eps=0.0) == 0.2


def test_empty_and_single_concepts():
    assert concept_sparsity([[0, 0], [0, 0]]) == 1
    assert concept_redundancy([[0, 0], [0, 0]]) == 0
    assert concept_redundancy([[1, 2]]) == 0
    assert concept_redundancy([[1, 2], [2, 1]]) == 1
    assert concept_redundancy([[1, 2], [-1, -2]]) == 0
