"""Compute intervals of rates, and promises about new people."""
