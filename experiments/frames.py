"""The tables of a run, read back from its folder."""

from __future__ import annotations

from pathlib import Path

import pandas as pd


def read_frames(folder: Path) -> dict[str, pd.DataFrame]:
    """Return the CSVs of a folder by name; one without columns is an empty frame."""
    return {path.stem: _read(path) for path in sorted(folder.glob("*.csv"))}


def _read(path: Path) -> pd.DataFrame:
    try:
        return pd.read_csv(path)
    except pd.errors.EmptyDataError:
        return pd.DataFrame()
