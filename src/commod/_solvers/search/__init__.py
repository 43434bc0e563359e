"""Search for the fewest changes: the solver of `ControlledDebiaser`, on NumPy and SciPy only."""
