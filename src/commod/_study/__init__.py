"""Many updates, or one update many times: frontier, compare, stability."""
