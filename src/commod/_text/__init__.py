"""Text as people read it: numbers, plurals, names and phrases."""
