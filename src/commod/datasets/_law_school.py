"""The Law School table of the paper, fetched once from its public origin and kept."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commod._io.files import write_whole
from commod.datasets._tables import as_bunch, check_digest, white_or_not
from commod.exceptions import DatasetError

if TYPE_CHECKING:
    from sklearn.utils import Bunch

FILE_NAME = "law_school.csv"
DATA_HOME_VARIABLE = "COMMOD_DATA_HOME"
URL = "https://raw.githubusercontent.com/algowatchpenn/GerryFair/master/dataset/lawschool.csv"
SHA256 = "7bc6ada636067f0613cbdc2e42db766684ca8fe32189006d315d84fbd8e1ef1a"
TIMEOUT_SECONDS = 30.0
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

DESCRIPTION = """\
Law School, passing the bar
===========================

1,823 law students in the United States, nine numeric columns about them, and whether they passed
the bar examination.

Columns: cluster (group of similar law schools), lsat (admission test), ugpa (undergraduate
grades), zfygpa and zgpa (standardised law school grades, first year and later), fulltime,
fam_inc (family income, five brackets), age and gender, all coded as in the source (age there is a
negative number). No value is missing. The eight race columns of the source are not features.

Target: bar1, 1 = passed the bar. Label 1 is the favourable one.

Sensitive feature: race, as "white" (column race7 of the source is 1; 1,363 people) against "not
white" (everybody else; 460).

Where it comes from
-------------------
The National Longitudinal Bar Passage Study of the Law School Admission Council (L. Wightman,
1998), in the selection published in the repository algowatchpenn/GerryFair, path
dataset/lawschool.csv. Larger tables from the same study have about 20,800 rows, 89 per cent of
them positive; in this one 52 per cent passed, so its rates are not those of law students at
large.

Known harms and limits
----------------------
- Passing the bar is a gate, not a measure of being a good lawyer, and admission tests and grades
  depend on schooling and money that were not shared out equally.
- Only people whom a law school had admitted are in the table.
- These are real people. Do not try to find out who they are.
- Use the table to study and compare methods; do not build admissions or hiring products on it.
"""


def fetch_law_school(
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    as_frame: bool = True,
    return_X_y: bool = False,
) -> Bunch | tuple[Any, Any]:
    """Return the Law School table: 1,823 students, 9 numeric columns, label 1 = passed the bar.

    The file `law_school.csv` is read from the data home; if it is not there it is fetched from its
    public origin and kept. Its SHA-256 is checked every time.

    Parameters
    ----------
    data_home : str or path, default=None
        Folder that has, or shall have, `law_school.csv`. None means the folder in the environment
        variable COMMOD_DATA_HOME, or else `commod` inside scikit-learn's data home.
    download_if_missing : bool, default=True
        If False, a missing file is an error instead of a download.
    as_frame : bool, default=True
        Give pandas objects; otherwise NumPy arrays.
    return_X_y : bool, default=False
        Give only `(data, target)`.

    Returns
    -------
    Bunch
        With the fields

        - `data` of shape (1823, 9): numbers, none missing, never race;
        - `target` of shape (1823,): bar1, 0 or 1;
        - `sensitive_features` of shape (1823,): "white" or "not white", named "race";
        - `frame`: data, target and sensitive_features side by side (None without `as_frame`);
        - `feature_names`: list of the 9 column names;
        - `DESCR`: what the table is, where it comes from, and its known harms.

    Raises
    ------
    OSError
        The file is not there and cannot or may not be fetched, or it is not the right file (its
        SHA-256 differs). Nothing is written in either case.

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

    path = _data_home(data_home) / FILE_NAME
    table = pd.read_csv(io.BytesIO(_read(path, download_if_missing)))
    bunch = as_bunch(
        table[list(FEATURES)],
        table[TARGET],
        white_or_not(table[WHITE_COLUMN] == 1),
        as_frame=as_frame,
        description=DESCRIPTION,
    )
    return (bunch.data, bunch.target) if return_X_y else bunch


def _data_home(data_home: str | os.PathLike[str] | None) -> Path:
    # An empty variable counts as not set, as shells treat it.
    chosen = data_home if data_home is not None else os.environ.get(DATA_HOME_VARIABLE) or None
    if chosen is not None:
        return Path(chosen).expanduser()
    from sklearn.datasets import get_data_home

    return Path(get_data_home()) / "commod"


def _read(path: Path, download_if_missing: bool) -> bytes:
    if path.exists():
        content = path.read_bytes()
        check_digest(
            content,
            SHA256,
            source=str(path),
            way_out="It is another or a damaged table: move it away and it will be fetched again.",
        )
        return content
    if not download_if_missing:
        raise DatasetError(
            f"{path} does not exist and download_if_missing=False. Pass data_home=, or set "
            f"{DATA_HOME_VARIABLE}, to the folder that has it, or allow the download."
        )
    content = _download(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content)
    return content


def _download(path: Path) -> bytes:
    # Imported here: the network modules are slow to load, and most calls never need them.
    from http.client import HTTPException
    from urllib.request import urlopen

    try:
        with urlopen(URL, timeout=TIMEOUT_SECONDS) as response:
            content: bytes = response.read()
    except (OSError, HTTPException) as error:
        raise DatasetError(
            f"{path} does not exist and {URL} cannot be fetched ({error}). Three ways out: "
            f"(1) try again with a working connection; (2) get that file by other means and save "
            f"it as {path}; (3) pass data_home=, or set {DATA_HOME_VARIABLE}, to a folder that "
            f"already has {FILE_NAME}."
        ) from error
    check_digest(
        content,
        SHA256,
        source=f"What {URL} returned",
        way_out=f"Nothing was saved. Get the right file by other means and save it as {path}.",
    )
    return content
