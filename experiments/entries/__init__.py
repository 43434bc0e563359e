"""The entries of docs/paper.md: one per table or figure, computed from the CSVs alone."""

from __future__ import annotations

from collections.abc import Callable

from experiments.entries.adult import adult
from experiments.entries.agreement import agreement
from experiments.entries.all_methods import all_methods
from experiments.entries.architectures import architectures
from experiments.entries.base_points import base_points
from experiments.entries.concepts import concepts
from experiments.entries.deciding import deciding
from experiments.entries.entry import NOT_IN_PAPER, Entry, Frames
from experiments.entries.figure_1 import figure_1, robustness
from experiments.entries.gains_only import gains_only
from experiments.entries.illustration import illustration
from experiments.entries.limits import limits
from experiments.entries.locality import locality
from experiments.entries.pareto import pareto
from experiments.entries.post_hoc import post_hoc
from experiments.entries.sensitivity import sensitivity
from experiments.entries.table_1 import table_1

__all__ = ["ENTRIES", "NOT_IN_PAPER", "Entry", "Frames"]

ENTRIES: tuple[Callable[[Frames, str], Entry], ...] = (
    base_points,
    table_1,
    deciding,
    figure_1,
    robustness,
    pareto,
    illustration,
    concepts,
    locality,
    sensitivity,
    architectures,
    agreement,
    post_hoc,
    limits,
    gains_only,
    all_methods,
    adult,
)
