"""Load tables to try commod on: four tables of real people, and a synthetic population.

- `load_compas` reads a table that is part of the package and works offline.
- `fetch_law_school`, `fetch_adult` and `fetch_german_credit` download a table once and keep it.
- `make_biased` draws rows whose P(Y=1|x) and P(S=s|x) are known exactly, so that estimates can be
  compared with the truth.

All of them return a scikit-learn `Bunch` with `data`, `target`, `sensitive_features`,
`feature_names`, `frame` and `DESCR`. Read `DESCR` before you use the four real tables: they
describe real people, and institutions made their labels.
"""

from commod.datasets._adult import fetch_adult
from commod.datasets._compas import load_compas
from commod.datasets._german_credit import fetch_german_credit
from commod.datasets._law_school import fetch_law_school
from commod.datasets._synthetic import make_biased

__all__ = [
    "fetch_adult",
    "fetch_german_credit",
    "fetch_law_school",
    "load_compas",
    "make_biased",
]
