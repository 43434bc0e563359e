"""Count comparisons of texts: tests bound operations, not seconds."""


class Counted(str):
    """A text that counts how often texts are compared."""

    n_compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Counted.n_compared += 1
        return str.__eq__(self, other)


def n_comparisons(work):
    """Return how many comparisons of such texts a call makes."""
    Counted.n_compared = 0
    work()
    return Counted.n_compared
