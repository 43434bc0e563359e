"""Explore an update on a local page: change points by hand and see at once who changes."""

from commod._explore.server import Explorer, explore

__all__ = ["Explorer", "explore"]
