"""Tables on disk, in and out, through DuckDB: what is wrong with a file is said in a sentence."""

from commod._io.tables.table import SourceTable, open_tables, read_frame
from commod._io.tables.writing import TABLE_SUFFIXES, check_output, check_outputs, write_table

__all__ = [
    "TABLE_SUFFIXES",
    "SourceTable",
    "check_output",
    "check_outputs",
    "open_tables",
    "read_frame",
    "write_table",
]
