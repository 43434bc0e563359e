"""Plain records of results: frozen, comparable, written to JSON and read back.

Records compute nothing. A number that is undefined or not known is None, never NaN: so a record
equals its copy, and JSON can hold it. Names of groups, columns and categories are kept as they
came. The code that writes them into a page, a table or a file makes them harmless there.
"""
