"""The one door for data: rows, groups, labels and base models become checked arrays."""
