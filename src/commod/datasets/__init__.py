"""Tables to try commod on: two that the paper uses, and one whose answers are known exactly.

`load_compas` is bundled and works offline, `fetch_law_school` is fetched once and kept, and
`make_biased` draws a population whose P(Y=1|x) and P(S=s|x) are known in closed form, so that
what a method estimates can be compared with the truth. All three return a scikit-learn
`Bunch` with `data`, `target`, `sensitive_features`, `feature_names`, `frame` and `DESCR`. Read
`DESCR` before you use the two real tables: they describe real people, and their labels were
made by institutions, not by nature.
"""

from commod.datasets._compas import load_compas
from commod.datasets._law_school import fetch_law_school
from commod.datasets._synthetic import make_biased

__all__ = ["fetch_law_school", "load_compas", "make_biased"]
