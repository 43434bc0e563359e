"""Compute OxonFair's metrics on tables of decisions, one value per metric and table."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from oxonfair_pairs import metric_of


def main() -> None:
    """Read tables and names of metrics, write values of shape (n_metrics, n_tables)."""
    source, asked, target = map(Path, sys.argv[1:])
    names = json.loads(asked.read_text())
    with np.load(source) as stored:
        rows, ends = stored["rows"], stored["ends"]
    tables = np.split(rows, ends[:-1], axis=1)
    values = np.full((len(names), len(tables)), np.nan)
    for i, name in enumerate(names):
        metric, n_arrays = metric_of(name), 4 if name.startswith("conditional.") else 3
        for k, table in enumerate(tables):
            values[i, k] = metric(*table[:n_arrays])[0]
    np.save(target, values)


if __name__ == "__main__":
    main()
