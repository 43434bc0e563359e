"""Load tables to try commod on, and look at their groups.

- `load_compas` reads a table that is part of the package and works offline.
- `fetch_law_school`, `fetch_adult`, `fetch_german_credit` and `fetch_bank_marketing` download a
  table once and keep it.
- `make_biased` draws rows whose P(Y=1|x) and P(S=s|x) are known exactly, so that estimates can be
  compared with the truth.
- `describe_groups` shows the groups of any of these tables, or of your own: people, rates of a
  label, missing values.

All loaders return a scikit-learn `Bunch` with `data`, `target`, `sensitive_features`,
`feature_names`, `frame` and `DESCR`. Read `DESCR` before you use the five real tables: they
describe real people, and institutions made their labels.
"""

from commod.datasets._describe import describe_groups
from commod.datasets._real import (
    fetch_adult,
    fetch_bank_marketing,
    fetch_german_credit,
    fetch_law_school,
    load_compas,
)
from commod.datasets._synthetic import make_biased

__all__ = [
    "describe_groups",
    "fetch_adult",
    "fetch_bank_marketing",
    "fetch_german_credit",
    "fetch_law_school",
    "load_compas",
    "make_biased",
]
