"""Fit an update where the table is: count in the dataframe engine, search on a sample."""
