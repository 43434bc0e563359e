"""The power of the tests: the share of small faults in the package that they find."""
