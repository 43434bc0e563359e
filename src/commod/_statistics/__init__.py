"""Intervals for rates, and what may be promised about new people."""
