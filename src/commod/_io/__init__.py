"""Files and tables on disk, and packages that are not always installed."""
