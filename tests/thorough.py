"""How often a test repeats itself: `COMMOD_THOROUGH=1 make test` takes the larger numbers."""

import os

THOROUGH = os.environ.get("COMMOD_THOROUGH") == "1"


def often(times, *, otherwise):
    """Return the number of repetitions: `times` in a thorough run, otherwise the smaller one."""
    return times if THOROUGH else otherwise
