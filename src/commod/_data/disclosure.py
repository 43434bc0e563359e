"""Hold the bars for values that few people share: when results may name one, when it is small.

A value that few people share tells about these people. Its points, or its place in a rule, would
also rest on few people. So a category, "missing", a bin or a rule needs this many people wherever
the library names one: scorecards, patches, rules, slices and rivals. Rows without weight are
nobody. `docs/decisions/0004-rare-categories.md` has the reasons.
"""

from __future__ import annotations

MIN_CATEGORY_SIZE = 20  # people

# People: a category that fewer share is small. Its points are shrunk when they are fitted
# (`_solvers/search/credibility.py`), and an audit checks what they predict (CM306).
SMALL_CATEGORY = 100
