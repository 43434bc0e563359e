"""The direct search of ControlledDebiaser: NumPy and SciPy only."""
