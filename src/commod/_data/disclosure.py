"""Hold the one bar for values that results may name: how many people must share a value.

A value that few people share tells about these people. Its points, or its place in a rule, would
also rest on few people. So a category, "missing", a bin or a rule needs this many people wherever
the library names one: scorecards, patches, rules, slices and rivals. Rows without weight are
nobody. `docs/decisions/0004-rare-categories.md` has the reasons.
"""

from __future__ import annotations

MIN_CATEGORY_SIZE = 20  # people
