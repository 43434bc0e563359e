"""The COMPAS table of ProPublica, bundled with the package."""

from __future__ import annotations

import gzip
import io
import zlib
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from commod.datasets._tables import as_bunch, check_digest, white_or_not
from commod.exceptions import DatasetError

if TYPE_CHECKING:
    from sklearn.utils import Bunch

FILE_NAME = "compas.csv.gz"
# Of the CSV inside: compressed bytes differ between versions of zlib, the table does not.
CSV_SHA256 = "062acac67b8bed7a2f2c068d3c29794954bff13ebf21f131ca6f48162fbe2707"
FEATURES = (
    "sex",
    "age",
    "age_cat",
    "juv_fel_count",
    "juv_misd_count",
    "juv_other_count",
    "priors_count",
    "c_charge_degree",
    "c_charge_desc",
)
SENSITIVE = "race"
TARGET = "two_year_recid"

DESCRIPTION = """\
COMPAS, two-year recidivism
===========================

6,167 people who were scored with the risk tool COMPAS in Broward County, Florida, in 2013 and
2014; nine columns about them; and whether they were arrested again within two years.

Columns: sex, age, age_cat, juv_fel_count, juv_misd_count, juv_other_count, priors_count,
c_charge_degree (F = felony, M = misdemeanour) and c_charge_desc (389 different texts). No value
is missing. The score that COMPAS gave is left out, and so are names and dates of birth.

Target: two_year_recid, 1 = arrested again within two years. Label 0 is therefore the favourable
one (`favorable_label=0`).

Sensitive feature: race, as "white" (the source says Caucasian; 2,100 people) against "not white"
(everybody else; 4,067). The field `race` keeps the six values of the source: African-American
3,173, Caucasian 2,100, Hispanic 509, Other 343, Asian 31, Native American 11.

Where it comes from
-------------------
`compas-scores-two-years.csv`, collected by ProPublica from public records and published with
its article "Machine Bias" (J. Angwin, J. Larson, S. Mattu, L. Kirchner, May 2016), repository
propublica/compas-analysis, 7,214 rows. Rows are kept as ProPublica kept them: screened within 30
days of the arrest, is_recid other than -1, charge degree other than "O", score text other than
"N/A" (6,172 rows), and, in addition, without a missing value in the columns used (6,167). The
script scripts/derive_compas.py makes the bundled file from the original.

Known harms and limits
----------------------
- The label is an arrest, not a crime. Who is arrested depends on where and whom the police
  watch, so the label carries the racial disparities of policing. A model that is "accurate" or
  "fair" against this label is so against those records, not against behaviour.
- The records are known to be faulty: people who were arrested again were kept beyond the
  two-year window and the others were not, which raises the share of re-arrests from about 36 to
  45 per cent (M. Barenstein, "ProPublica's COMPAS Data Revisited", 2019).
- Race was written down by officials, and the two-way split hides differences between groups.
- These are real people, at one of the worst moments of their lives. Do not try to find out who
  they are.
- Use the table to study and compare methods. Do not build a product on it, and draw no
  conclusions about crime or about any group of people from it.
"""


def load_compas(*, as_frame: bool = True, return_X_y: bool = False) -> Bunch | tuple[Any, Any]:
    """Return the COMPAS two-year table: 6,167 people, 9 raw columns, label 1 = arrested again.

    The table is part of the package: nothing is downloaded. The favourable label is 0. The labels
    are re-arrests, not crimes, and carry the racial disparities of policing; read `DESCR` before
    use, and do not build products on this table.

    Parameters
    ----------
    as_frame : bool, default=True
        Give pandas objects; otherwise NumPy arrays (`data` then has dtype object, because numbers
        and texts stand side by side).
    return_X_y : bool, default=False
        Give only `(data, target)`.

    Returns
    -------
    Bunch
        With the fields

        - `data` of shape (6167, 9): the raw columns, no missing values, never race;
        - `target` of shape (6167,): two_year_recid, 0 or 1;
        - `sensitive_features` of shape (6167,): "white" or "not white", named "race";
        - `race` of shape (6167,): the six values of the source, to study several groups;
        - `frame`: data, target and sensitive_features side by side (None without `as_frame`);
        - `feature_names`: list of the 9 column names;
        - `DESCR`: what the table is, where it comes from, and its known harms.

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
    bunch = as_bunch(
        table[list(FEATURES)],
        table[TARGET],
        white_or_not(race == "Caucasian"),
        as_frame=as_frame,
        description=DESCRIPTION,
        race=race if as_frame else race.to_numpy(dtype=object),
    )
    return (bunch.data, bunch.target) if return_X_y else bunch


def _read_csv() -> bytes:
    packed = files("commod.datasets").joinpath("data", FILE_NAME).read_bytes()
    way_out = "The installation is damaged: install commod-debiasing again."
    try:
        content = gzip.decompress(packed)
    except (OSError, EOFError, zlib.error) as error:
        raise DatasetError(f"{FILE_NAME} cannot be unpacked ({error}). {way_out}") from error
    check_digest(content, CSV_SHA256, source=f"the table inside {FILE_NAME}", way_out=way_out)
    return content
