"""How often a test repeats itself: `COMMOD_THOROUGH=1 make test` takes the larger numbers."""

import os

THOROUGH = os.environ.get("COMMOD_THOROUGH") == "1"


def often(times, *, otherwise):
    """Return `times` in a thorough run, otherwise the number for every day."""
    return times if THOROUGH else otherwise
