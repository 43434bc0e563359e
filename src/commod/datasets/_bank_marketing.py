"""Load the bank marketing table, which is fetched once and kept."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any

from commod.datasets._files import TableFile, as_bunch, read_files

if TYPE_CHECKING:
    from sklearn.utils import Bunch

# No package of the Python package index is known to hold this file, so its origin is the only
# source. The digest is that of two copies of the archive that were made independently.
FILE = TableFile(
    "bank-additional-full.csv",
    "74adfc578bf77a7ff4bb1ba4a9f8709d9e3c6907342959c2c8416847e0afb4d8",
    "https://archive.ics.uci.edu/ml/machine-learning-databases/00222/bank-additional.zip",
    member="bank-additional/bank-additional-full.csv",
)
AGE = "age"
YOUNG = 25  # years; people below are the younger group
DURATION = "duration"
ANSWER = "y"
TARGET = "subscribed"


def fetch_bank_marketing(
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    as_frame: bool = True,
    return_X_y: bool = False,
) -> Bunch | tuple[Any, Any]:
    """Return the bank marketing table: 41,188 calls, 18 raw columns, label 1 = subscribed.

    The file `bank-additional-full.csv` is read from the data home. If it does not exist, it is read
    out of an archive that is downloaded from the UCI repository. Its SHA-256 is checked every time.
    The table has the licence CC BY 4.0.

    The favourable label is 1 if an offer is good for a person: the label says who accepted a term
    deposit on the phone. Read `DESCR` before use.

    Parameters
    ----------
    data_home : str or path, default=None
        Folder of the file. None means the folder in the environment variable COMMOD_DATA_HOME if it
        is set, otherwise `commod` inside scikit-learn's data home.
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

        - `data` of shape (41188, 18): the raw columns without age and without the duration of the
          call, which is known only after the answer. Unknown values are the text "unknown", as in
          the source;
        - `target` of shape (41188,): 1 = subscribed to a term deposit, else 0, named "subscribed";
        - `sensitive_features` of shape (41188,): "under 25" or "25 or older", named "age";
        - `frame`: data, target and sensitive_features side by side (None without `as_frame`);
        - `feature_names`: list of the 18 column names;
        - `age_years` of shape (41188,): the age, for other groups;
        - `DESCR`: what the table is, where it comes from, its licence, and its known harms.

    Raises
    ------
    OSError
        The file does not exist and cannot or may not be fetched, or its SHA-256 is not the expected
        one. Nothing is written in either case.

    Examples
    --------
    >>> from commod.datasets import describe_groups, fetch_bank_marketing
    >>> bank = fetch_bank_marketing()  # doctest: +SKIP
    >>> bank.data.shape  # doctest: +SKIP
    (41188, 18)
    >>> describe_groups(bank)[["people", "label 1"]].round(3)  # doctest: +SKIP
                 people  label 1
    age
    25 or older   40120    0.109
    under 25       1068    0.240
    all           41188    0.113
    """
    import pandas as pd

    (content,) = read_files([FILE], data_home=data_home, download_if_missing=download_if_missing)
    table = pd.read_csv(io.BytesIO(content), sep=";", keep_default_na=False)
    years = table[AGE].rename("age_years")
    is_young = years < YOUNG
    return as_bunch(
        table.drop(columns=[AGE, DURATION, ANSWER]),
        (table[ANSWER] == "yes").astype("int64").rename(TARGET),
        is_young.map({True: f"under {YOUNG}", False: f"{YOUNG} or older"}).rename(AGE),
        as_frame=as_frame,
        return_X_y=return_X_y,
        description="bank_marketing",
        age_years=years if as_frame else years.to_numpy(),
    )
