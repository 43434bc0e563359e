"""Load the COMPAS table of ProPublica, which is part of the package."""

from __future__ import annotations

import gzip
import io
import zlib
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from commod.datasets._files import as_bunch, check_digest, white_or_not
from commod.exceptions import DatasetError

if TYPE_CHECKING:
    from sklearn.utils import Bunch

FILE_NAME = "compas.csv.gz"
# Digest of the CSV inside, because compressed bytes differ between versions of zlib.
CSV_SHA256 = "062acac67b8bed7a2f2c068d3c29794954bff13ebf21f131ca6f48162fbe2707"
FEATURES = (
    *("sex", "age", "age_cat", "juv_fel_count", "juv_misd_count", "juv_other_count"),
    *("priors_count", "c_charge_degree", "c_charge_desc"),
)
SENSITIVE = "race"
TARGET = "two_year_recid"


def load_compas(*, as_frame: bool = True, return_X_y: bool = False) -> Bunch | tuple[Any, Any]:
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
    import pandas as pd

    table = pd.read_csv(io.BytesIO(_read_csv()), keep_default_na=False)
    race = table[SENSITIVE]
    return as_bunch(
        table[list(FEATURES)],
        table[TARGET],
        white_or_not(race == "Caucasian"),
        "compas",
        as_frame,
        return_X_y,
        race=race if as_frame else race.to_numpy(dtype=object),
    )


def _read_csv() -> bytes:
    packed = files("commod.datasets").joinpath("data", FILE_NAME).read_bytes()
    way_out = "The installation is damaged: install commod-debiasing again."
    try:
        content = gzip.decompress(packed)
    except (OSError, EOFError, zlib.error) as error:
        raise DatasetError(f"{FILE_NAME} cannot be unpacked ({error}). {way_out}") from error
    check_digest(content, CSV_SHA256, source=f"the table inside {FILE_NAME}", way_out=way_out)
    return content
