"""Load the Law School table of the paper, which is downloaded once and kept."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any

from commod.datasets._files import TableFile, as_bunch, read_files, white_or_not

if TYPE_CHECKING:
    from sklearn.utils import Bunch

FILE_NAME = "law_school.csv"
URL = "https://raw.githubusercontent.com/algowatchpenn/GerryFair/master/dataset/lawschool.csv"
SHA256 = "7bc6ada636067f0613cbdc2e42db766684ca8fe32189006d315d84fbd8e1ef1a"
FEATURES = (
    "cluster",
    "lsat",
    "ugpa",
    "zfygpa",
    "zgpa",
    "fulltime",
    "fam_inc",
    "age",
    "gender",
)
WHITE_COLUMN = "race7"
TARGET = "bar1"


def fetch_law_school(
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    as_frame: bool = True,
    return_X_y: bool = False,
) -> Bunch | tuple[Any, Any]:
    """Return the Law School table: 1,823 students, 9 numeric columns, label 1 = passed the bar.

    The file `law_school.csv` is read from the data home. If the file does not exist, it is
    downloaded from its public source and kept. Its SHA-256 is checked every time.

    Parameters
    ----------
    data_home : str or path, default=None
        Folder of `law_school.csv`. None means the folder in the environment variable
        COMMOD_DATA_HOME if it is set, otherwise `commod` inside scikit-learn's data home.
    download_if_missing : bool, default=True
        If False, a missing file is an error instead of a download.
    as_frame : bool, default=True
        Return pandas objects; otherwise NumPy arrays.
    return_X_y : bool, default=False
        Return only `(data, target)`.

    Returns
    -------
    Bunch
        With the fields

        - `data` of shape (1823, 9): numbers without race, no missing values;
        - `target` of shape (1823,): bar1, 0 or 1;
        - `sensitive_features` of shape (1823,): "white" or "not white", named "race";
        - `frame`: data, target and sensitive_features side by side (None without `as_frame`);
        - `feature_names`: list of the 9 column names;
        - `DESCR`: what the table is, where it comes from, and its known harms.

    Raises
    ------
    OSError
        The file does not exist and cannot or may not be downloaded, or its SHA-256 is not the
        expected one. Nothing is written in either case.

    Examples
    --------
    >>> from commod.datasets import fetch_law_school
    >>> law_school = fetch_law_school()  # doctest: +SKIP
    >>> law_school.data.shape  # doctest: +SKIP
    (1823, 9)
    >>> race = law_school.sensitive_features  # doctest: +SKIP
    >>> law_school.target.groupby(race).mean().round(3).to_dict()  # doctest: +SKIP
    {'not white': 0.246, 'white': 0.617}
    """
    import pandas as pd

    file = TableFile(FILE_NAME, SHA256, URL)
    (content,) = read_files([file], data_home=data_home, download_if_missing=download_if_missing)
    table = pd.read_csv(io.BytesIO(content))
    return as_bunch(
        table[list(FEATURES)],
        table[TARGET],
        white_or_not(table[WHITE_COLUMN] == 1),
        as_frame=as_frame,
        return_X_y=return_X_y,
        description="law_school",
    )
