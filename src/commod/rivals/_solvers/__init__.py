"""Solvers that only rivals use."""
