"""Load tables to try commod on: two tables of the paper, and a synthetic population.

- `load_compas` reads a table that is part of the package and works offline.
- `fetch_law_school` downloads a table once and keeps it.
- `make_biased` draws rows whose P(Y=1|x) and P(S=s|x) are known exactly, so that estimates can be
  compared with the truth.

All three return a scikit-learn `Bunch` with `data`, `target`, `sensitive_features`,
`feature_names`, `frame` and `DESCR`. Read `DESCR` before you use the two real tables: they
describe real people, and institutions made their labels.
"""

from commod.datasets._compas import load_compas
from commod.datasets._law_school import fetch_law_school
from commod.datasets._synthetic import make_biased

__all__ = ["fetch_law_school", "load_compas", "make_biased"]
