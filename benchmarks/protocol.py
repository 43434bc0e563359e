"""The tables and splits of the figures; the protocol is that of the experiments."""

from __future__ import annotations

import os

from experiments.paper import COMPAS, LAW_SCHOOL
from experiments.protocol import N_CONCEPTS, Split, make_split

__all__ = ["N_CONCEPTS", "TABLES", "Split", "first_splits", "make_split"]

TABLES = (LAW_SCHOOL, COMPAS)


def first_splits(n: int) -> range:
    """Return the splits of a figure: 0..n-1, or fewer if the environment has e.g. SPLITS=2."""
    return range(min(n, int(os.environ.get("SPLITS", n))))
